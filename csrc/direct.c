/* Plans that are one kernel over whole arrays (`x * 2 + 1`), run without registers.
 *
 * On arrays of a few elements the plan interpreter costs more than the arithmetic. A plan that only loads arrays, runs
 * one kernel over them and boxes what comes out is recognised when it is made; where its arrays have one shape and lie
 * contiguously, and there are few elements, the kernel is called right away. Everything else is left to the
 * interpreter, before anything was done. */
#include "plan.h"

enum { FEW = 1024 };

struct Direct {
    KernelObject *kernel;       /* borrowed from the plan */
    int input[MAX_OPERANDS];    /* expressions */
    int boxed[MAX_OPERANDS];    /* object registers of the outputs */
    Slot scalars[MAX_OPERANDS]; /* their values are constants of the plan */
};

/* ---- recognising -------------------------------------------------------------------------------------------------
 */

typedef struct {
    const PlanObject *p;
    int *expression_of_object; /* per object register, -1: none */
    int *expression_of_array;  /* per array register, -1: none */
    const int32_t *kernel;     /* the KERNEL operation, NULL before it */
    Direct *d;
    int nboxed;
} Reader;

static int output_number(const Reader *r, int32_t array)
{
    const KernelObject *k = r->d->kernel;
    const int32_t *out = r->kernel + 3 + k->nin + k->nscalars;
    for (int i = 0; i < k->nout; i++)
        if (out[i] == array)
            return i;
    return -1;
}

static bool read_kernel(Reader *r, const int32_t *pc)
{
    KernelObject *k = r->p->kernel_items[pc[1]];
    const int32_t *operand = pc + 3;
    if (r->kernel != NULL)
        return false;
    r->kernel = pc;
    r->d->kernel = k;
    for (int i = 0; i < k->nin; i++)
        if ((r->d->input[i] = r->expression_of_array[*operand++]) < 0)
            return false;
    for (int i = 0; i < k->nscalars; i++)
        r->d->scalars[i] = r->p->image[*operand++];
    for (int i = 0; i < k->nout; i++)
        r->d->boxed[i] = -1;
    return true;
}

static bool read_box(Reader *r, const int32_t *pc)
{
    int number = r->kernel == NULL ? -1 : output_number(r, pc[2]);
    if (number < 0 || r->d->boxed[number] >= 0)
        return false;
    r->d->boxed[number] = pc[1];
    r->nboxed++;
    return true;
}

/* Whether the plan has the form; fills r->d. */
static bool read_plan(Reader *r)
{
    const int32_t *pc = r->p->code;
    for (;;) {
        bool fits = true;
        switch (*pc) {
        case OP_O_EXPR:
            r->expression_of_object[pc[1]] = pc[2];
            fits = r->kernel == NULL;
            pc += 3;
            break;
        case OP_A_OBJ:
            r->expression_of_array[pc[1]] = r->expression_of_object[pc[2]];
            fits = r->kernel == NULL;
            pc += 3;
            break;
        case OP_KERNEL:
            fits = read_kernel(r, pc);
            pc += 3 + pc[2];
            break;
        case OP_FLAGS:
            pc += 1;
            break;
        case OP_A_FREE:
            pc += 2;
            break;
        case OP_BOX_ARRAY:
            fits = read_box(r, pc);
            pc += 3;
            break;
        case OP_END:
            return r->kernel != NULL && r->nboxed == r->d->kernel->nout;
        default:
            return false;
        }
        if (!fits)
            return false;
    }
}

/* An exit may hand on what was boxed, and nothing else. */
static bool exit_fits(const PlanObject *p, const Direct *d)
{
    for (int i = 0; i < p->ends[0].n; i++) {
        int reg = p->ends[0].entries[i].reg;
        bool found = reg < 0;
        for (int k = 0; k < d->kernel->nout; k++)
            found = found || d->boxed[k] == reg;
        if (!found)
            return false;
    }
    return true;
}

int direct_recognise(PlanObject *p)
{
    size_t bytes = ((size_t)p->nobjects + (size_t)p->narrays) * sizeof(int);
    Reader r = {.p = p, .d = PyMem_Calloc(1, sizeof(Direct)), .expression_of_object = PyMem_Malloc(bytes + 1)};
    bool fits = false;
    if (r.d == NULL || r.expression_of_object == NULL) {
        PyErr_NoMemory();
    } else {
        memset(r.expression_of_object, -1, bytes);
        r.expression_of_array = r.expression_of_object + p->nobjects;
        fits = p->nends == 1 && read_plan(&r) && exit_fits(p, r.d);
    }
    PyMem_Free(r.expression_of_object);
    if (fits)
        p->direct = r.d;
    else
        PyMem_Free(r.d);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* An ndarray that the kernel can read from end to end. */
static inline bool is_plain(PyObject *o, int type)
{
    if (!array_check_exact(o))
        return false;
    PyArrayObject *a = (PyArrayObject *)o;
    int number = PyArray_TYPE(a);
    return type_handled(number) && element_types[number].canonical == type && PyArray_ISCARRAY_RO(a);
}

static inline bool same_shape(PyArrayObject *a, PyArrayObject *b)
{
    int ndim = PyArray_NDIM(a);
    if (PyArray_NDIM(b) != ndim)
        return false;
    for (int i = 0; i < ndim; i++)
        if (PyArray_DIM(a, i) != PyArray_DIM(b, i))
            return false;
    return true;
}

/* Fills the kernel's inputs; the first of them, or NULL if this is not the place for them. */
static inline PyArrayObject *take_inputs(const Direct *d, Lookup *lookup, char **args, npy_intp *strides)
{
    const KernelObject *k = d->kernel;
    PyArrayObject *first = NULL;
    for (int i = 0; i < k->nin; i++) {
        PyObject *value = Lookup_value(lookup, d->input[i]);
        if (value == NULL || !is_plain(value, k->types[i]))
            return NULL;
        PyArrayObject *array = (PyArrayObject *)value;
        if (first == NULL)
            first = array;
        else if (!same_shape(first, array))
            return NULL;
        args[i] = PyArray_BYTES(array);
        strides[i] = element_types[k->types[i]].size;
    }
    return first;
}

/* The number of elements if it is small, else 0. */
static inline npy_intp few(PyArrayObject *a)
{
    npy_intp n = 1;
    int ndim = PyArray_NDIM(a);
    if (ndim == 0)
        return 0;
    for (int i = 0; i < ndim; i++) {
        npy_intp length = PyArray_DIM(a, i);
        if (length > FEW || (n *= length) > FEW)
            return 0;
    }
    return n;
}

static int make_outputs(const KernelObject *k, PyArrayObject *like, PyArrayObject **made, char **args,
                        npy_intp *strides)
{
    int first = k->nin + k->nscalars;
    for (int i = 0; i < k->nout; i++) {
        int type = k->types[first + i];
        made[i] = array_alloc(type, PyArray_NDIM(like), PyArray_DIMS(like), NULL, false);
        if (made[i] == NULL) {
            while (i > 0)
                Py_DECREF((PyObject *)made[--i]);
            return MISS;
        }
        args[first + i] = PyArray_BYTES(made[i]);
        strides[first + i] = element_types[type].size;
    }
    return OK;
}

int direct_run(PlanObject *p, Lookup *lookup, PyObject **regs)
{
    Direct *d = p->direct;
    KernelObject *k = d->kernel;
    char *args[MAX_OPERANDS];
    npy_intp strides[MAX_OPERANDS];
    PyArrayObject *made[MAX_OPERANDS];
    PyArrayObject *first = numpy_ready() ? take_inputs(d, lookup, args, strides) : NULL;
    npy_intp n = first == NULL ? 0 : few(first);
    if (n == 0 || !kernel_is_short(k, n))
        return LATER;
    for (int i = 0; i < k->nscalars; i++) {
        args[k->nin + i] = (char *)&d->scalars[i];
        strides[k->nin + i] = 0;
    }
    if (make_outputs(k, first, made, args, strides) != OK)
        return MISS;
    kernel_call_short(k, args, strides, n);
    int raised = fp_take(k->x87_flags);
    if (raised && k->raises_flags && (raised & ~errstate_ignored())) {
        for (int i = 0; i < k->nout; i++) /* the interpreter finds out whether it was this kernel */
            Py_DECREF((PyObject *)made[i]);
        return LATER;
    }
    k->calls++;
    p->runs++;
    memset(regs, 0, (size_t)p->nobjects * sizeof(PyObject *));
    for (int i = 0; i < k->nout; i++)
        regs[d->boxed[i]] = (PyObject *)made[i];
    return OK;
}
