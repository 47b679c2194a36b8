/* Scalars: unboxing, casting, boxing. */
#include "plan.h"
#include <math.h>

int slot_from_int(Slot *s, PyObject *o)
{
    int overflow;
    if (!PyLong_CheckExact(o))
        return MISS;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
        return MISS;
    s->i = value;
    return OK;
}

static inline bool is_scalar_of(PyObject *o, int type)
{
    return element_types[type].scalar != NULL && Py_TYPE(o) == element_types[type].scalar;
}

int slot_from_float(Slot *s, PyObject *o)
{
    if (!PyFloat_CheckExact(o) && !is_scalar_of(o, NPY_DOUBLE))
        return MISS;
    s->d = PyFloat_AS_DOUBLE(o); /* np.float64 is a float by layout, too */
    return OK;
}

int slot_from_bool(Slot *s, PyObject *o)
{
    if (!PyBool_Check(o))
        return MISS;
    s->b = o == Py_True;
    return OK;
}

int slot_from_complex(Slot *s, PyObject *o)
{
    if (!PyComplex_CheckExact(o) && !is_scalar_of(o, NPY_CDOUBLE))
        return MISS;
    Py_complex value = ((PyComplexObject *)o)->cval;
    s->c[0] = value.real;
    s->c[1] = value.imag;
    return OK;
}

/* NumPy's scalar objects hold their value right behind the object header. */
enum { SCALAR_OFFSET = offsetof(PyDoubleScalarObject, obval) };
_Static_assert(offsetof(PyBoolScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.bool");
_Static_assert(offsetof(PyByteScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.byte");
_Static_assert(offsetof(PyShortScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.short");
_Static_assert(offsetof(PyIntScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.intc");
_Static_assert(offsetof(PyLongScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.long");
_Static_assert(offsetof(PyFloatScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.float32");
_Static_assert(offsetof(PyCDoubleScalarObject, obval) == SCALAR_OFFSET, "layout of numpy.complex128");

int slot_from_numpy(Slot *s, PyObject *o, int type)
{
    if (!is_scalar_of(o, type))
        return MISS;
    memcpy(s->raw, (char *)o + SCALAR_OFFSET, (size_t)element_types[type].size);
    return OK;
}

PyObject *slot_to_numpy(const Slot *s, int type)
{
    return PyArray_Scalar((void *)s, element_types[type].descr, NULL);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* A value of any type, wide. */
typedef struct {
    char kind;
    int64_t i;
    uint64_t u;
    double re, im;
} Wide;

static Wide widen(const Slot *s, int type)
{
    Wide w = {.kind = element_types[type].kind};
    int size = element_types[type].size;
    switch (w.kind) {
    case 'b':
        w.i = s->b;
        break;
    case 'i':
        w.i = size == 1 ? s->i1 : size == 2 ? s->i2 : size == 4 ? s->i4 : s->i;
        break;
    case 'u':
        w.u = size == 1 ? s->u1 : size == 2 ? s->u2 : size == 4 ? s->u4 : s->u;
        break;
    case 'f':
        w.re = size == 4 ? (double)s->f : s->d;
        break;
    default:
        w.re = size == 8 ? (double)s->cf[0] : s->c[0];
        w.im = size == 8 ? (double)s->cf[1] : s->c[1];
    }
    return w;
}

static int narrow_signed(Slot *dst, int size, const Wide *w)
{
    if (w->kind == 'f' || w->kind == 'c' || (w->kind == 'u' && w->u > INT64_MAX))
        return MISS;
    int64_t v = w->kind == 'u' ? (int64_t)w->u : w->i;
    int64_t limit = size == 8 ? INT64_MAX : ((int64_t)1 << (8 * size - 1)) - 1;
    if (v > limit || v < -limit - 1)
        return MISS;
    dst->i = v; /* little endian: the low bytes are the narrow value */
    return OK;
}

static int narrow_unsigned(Slot *dst, int size, const Wide *w)
{
    if (w->kind == 'f' || w->kind == 'c' || (w->kind != 'u' && w->i < 0))
        return MISS;
    uint64_t v = w->kind == 'u' ? w->u : (uint64_t)w->i;
    if (size < 8 && v >> (8 * size))
        return MISS;
    dst->u = v;
    return OK;
}

/* NumPy takes a Python int to float32 through a double; where that rounds twice, and where it overflows, it is left to
 * NumPy. */
static int narrow_single(float *dst, const Wide *w)
{
    const int64_t exact = (int64_t)1 << 53;
    if ((w->kind == 'u' && w->u > (uint64_t)exact) || (w->kind == 'i' && (w->i > exact || w->i < -exact)))
        return MISS;
    double wide = w->kind == 'u' ? (double)w->u : w->kind == 'i' || w->kind == 'b' ? (double)w->i : w->re;
    *dst = (float)wide;
    return isinf(*dst) && isfinite(wide) ? MISS : OK;
}

static double wide_double(const Wide *w)
{
    return w->kind == 'u' ? (double)w->u : w->kind == 'i' || w->kind == 'b' ? (double)w->i : w->re;
}

static int narrow_complex(Slot *dst, int size, const Wide *w)
{
    if (size == 16) {
        dst->c[0] = wide_double(w);
        dst->c[1] = w->im;
        return OK;
    }
    Wide imaginary = {.kind = 'f', .re = w->im};
    return narrow_single(&dst->cf[0], w) | narrow_single(&dst->cf[1], &imaginary);
}

int slot_cast(Slot *dst, int to, const Slot *src, int from)
{
    Wide w = widen(src, from);
    int size = element_types[to].size;
    switch (element_types[to].kind) {
    case 'b':
        if (w.kind != 'b')
            return MISS;
        dst->b = (uint8_t)w.i;
        return OK;
    case 'i':
        return narrow_signed(dst, size, &w);
    case 'u':
        return narrow_unsigned(dst, size, &w);
    case 'f':
        if (w.kind == 'c')
            return MISS;
        if (size == 4)
            return narrow_single(&dst->f, &w);
        dst->d = wide_double(&w);
        return OK;
    default:
        return narrow_complex(dst, size, &w);
    }
}

bool int_floordiv(int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return false;
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    *quotient = q;
    *remainder = r;
    return true;
}

/* By squaring; a negative exponent makes a float in Python. */
bool int_pow(int64_t base, int64_t exponent, int64_t *result)
{
    int64_t value = 1;
    if (exponent < 0) {
        return false;
    }
    while (exponent != 0) {
        if ((exponent & 1) && __builtin_mul_overflow(value, base, &value)) {
            return false;
        }
        exponent >>= 1;
        if (exponent != 0 && __builtin_mul_overflow(base, base, &base)) {
            return false;
        }
    }
    *result = value;
    return true;
}

/* float_pow of CPython's Objects/floatobject.c for operands without a special case: the same call of libm's pow. What
   raises there (overflow, a negative base with a fractional exponent gives a complex) or comes near it is not done
   here. */
bool double_pow(double base, double exponent, double *result)
{
    if (!isfinite(base) || !isfinite(exponent) || base == 0.0) {
        return false;
    }
    bool negate = false;
    if (base < 0.0) {
        if (exponent != floor(exponent)) {
            return false;
        }
        base = -base;
        negate = fmod(fabs(exponent), 2.0) == 1.0;
    }
    double value = base == 1.0 ? 1.0 : pow(base, exponent);
    if (!isnormal(value)) {
        return false;
    }
    *result = negate ? -value : value;
    return true;
}
