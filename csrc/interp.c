/* The plan interpreter. Programs were validated: operands are in range, registers are set before they are read. */
#include "frame_shim.h"
#include "plan.h"
#include <math.h>

typedef struct {
    PlanObject *plan;
    Lookup *lookup;
    PyObject *const *values; /* test entry */
    Py_ssize_t nvalues;
    PyObject **regs;
    Slot *slots;
    Array *arrays;
    bool cleared; /* the floating-point flags were clear when the run began */
    bool dirty;   /* and may have been raised since they were last collected */
    int raised;   /* collected */
    int end;      /* which EXIT */
    bool looped;  /* a loop ran: no way back */
} Run;

/* OK, MISS, or: flags are up that may have been so before, run again. */
enum { AGAIN = 2 };

/* Reading the flag register costs as much as a small array's loop, so it is read as seldom as possible: after each
 * kernel, because some of NumPy's loops clear them, and not before the first step. Python's own arithmetic seldom
 * leaves a flag behind; where one is up in the end, the run is repeated from clear flags. */
static inline void flags_begin(Run *r)
{
    r->dirty = true;
}

static inline int flags_collect(Run *r)
{
    r->dirty = false;
    return fp_take(r->plan->x87);
}

/* Before a loop that may clear flags. */
static inline void flags_begin_loop(Run *r)
{
    if (r->dirty)
        r->raised |= flags_collect(r);
    flags_begin(r);
}

static int flags_test(Run *r)
{
    if (r->dirty)
        r->raised |= flags_collect(r);
    if (r->raised == 0)
        return OK;
    if (r->raised & ~errstate_ignored()) {
        if (!r->cleared)
            return AGAIN;
        r->plan->alarms++;
        return MISS;
    }
    r->raised = 0;
    return OK;
}

/* Keeps the compiler from moving an operation over the reads of the flag register. */
static inline double settled(double value)
{
#if defined(__x86_64__)
    __asm__ volatile("" : "+x"(value));
#endif
    return value;
}

static int set_object(Run *r, int32_t reg, PyObject *stolen)
{
    if (stolen == NULL) {
        PyErr_Clear(); /* out of memory: the original code meets it again, at its own place */
        return MISS;
    }
    Py_XSETREF(r->regs[reg], stolen);
    return OK;
}

static int load_expression(Run *r, int32_t reg, int32_t expression)
{
    PyObject *value;
    if (r->values == NULL)
        value = Lookup_value(r->lookup, expression);
    else
        value = expression < r->nvalues ? r->values[expression] : NULL;
    return value == NULL ? MISS : set_object(r, reg, Py_NewRef(value));
}

/* ---- kernels and new arrays
 * -------------------------------------------------------------------------------------------- */

static int run_kernel(Run *r, const int32_t *pc)
{
    KernelObject *k = r->plan->kernel_items[pc[1]];
    Array *in[MAX_OPERANDS], *out[MAX_OPERANDS];
    Slot *scalars[MAX_OPERANDS];
    const int32_t *operand = pc + 3;
    for (int i = 0; i < k->nin; i++)
        in[i] = &r->arrays[*operand++];
    for (int i = 0; i < k->nscalars; i++)
        scalars[i] = &r->slots[*operand++];
    for (int i = 0; i < k->nout; i++)
        out[i] = &r->arrays[*operand++];
    flags_begin_loop(r);
    int status = launch(k, in, scalars, out);
    int raised = flags_collect(r);
    if (k->raises_flags)
        r->raised |= raised;
    return status;
}

/* Replaces an array register by a new ndarray (NULL: miss). */
static int set_array(Run *r, int32_t reg, PyArrayObject *stolen)
{
    if (stolen == NULL)
        return MISS;
    array_release(&r->arrays[reg]);
    array_describe(&r->arrays[reg], stolen);
    return OK;
}

static void read_shape(const Run *r, npy_intp *shape, int n, const int32_t *slots)
{
    for (int i = 0; i < n; i++)
        shape[i] = (npy_intp)r->slots[slots[i]].i;
}

static int new_full(Run *r, const int32_t *pc)
{
    npy_intp shape[MAX_NDIM];
    read_shape(r, shape, pc[4], pc + 5);
    Slot value = r->slots[pc[2]];
    if (set_array(r, pc[1], array_alloc(pc[3], pc[4], shape, NULL, false)) != OK)
        return MISS;
    Array scalar = {0};
    view_scalar(&scalar, &value, pc[3]);
    copy_elements(&r->arrays[pc[1]], &scalar);
    return OK;
}

static PyArrayObject *alloc_like(const Array *a, int type, bool keep_order)
{
    Layout at;
    npy_intp strides[MAX_NDIM];
    if (!keep_order)
        return array_alloc(type, a->ndim, a->shape, NULL, false);
    layout_like(&at, a);
    for (int i = 0; i < a->ndim; i++)
        strides[i] = at.strides[i] * element_types[type].size;
    return array_alloc(type, a->ndim, a->shape, strides, false);
}

static int new_like(Run *r, const int32_t *pc, bool zeros)
{
    const Array *like = &r->arrays[pc[2]];
    if (zeros && like->c_contig) /* memory that the system hands out zeroed */
        return set_array(r, pc[1], array_alloc_zeros(pc[3], like->ndim, like->shape));
    PyArrayObject *made = alloc_like(like, pc[3], true);
    if (made != NULL && zeros)
        memset(PyArray_BYTES(made), 0, (size_t)PyArray_NBYTES(made));
    return set_array(r, pc[1], made);
}

static int new_copy(Run *r, const int32_t *pc, bool keep_order)
{
    const Array *src = &r->arrays[pc[2]];
    PyArrayObject *made = alloc_like(src, src->type, keep_order);
    if (made == NULL)
        return MISS;
    Array described = {0};
    array_describe(&described, made);
    copy_elements(&described, src);
    return set_array(r, pc[1], made);
}

/* Whether no two elements of an array can share memory: each axis, from the smallest stride on, steps over all before
 * it. */
static bool elements_apart(const Array *a)
{
    npy_intp reach = element_types[a->type].size;
    bool done[MAX_NDIM] = {false};
    for (int k = 0; k < a->ndim; k++) {
        int next = -1;
        for (int i = 0; i < a->ndim; i++)
            if (!done[i] && (next < 0 || llabs(a->strides[i]) < llabs(a->strides[next])))
                next = i;
        done[next] = true;
        if (a->shape[next] <= 1)
            continue;
        npy_intp stride = llabs(a->strides[next]);
        if (stride < reach)
            return false;
        reach += stride * (a->shape[next] - 1);
    }
    return true;
}

static int check_storable(const Array *target, const Array *value)
{
    Layout full;
    const Array *both[2] = {target, value};
    if (!target->writeable || target->type != value->type || !broadcast_shape(&full, both, 2, 3))
        return MISS;
    if (full.ndim != target->ndim || memcmp(full.shape, target->shape, (size_t)full.ndim * sizeof(npy_intp)) != 0)
        return MISS;
    return elements_apart(target) && arrays_disjoint(target, value) ? OK : MISS;
}

/* ---- boxing
 * ---------------------------------------------------------------------------------------------------------------- */

static PyObject *box_sequence(Run *r, const int32_t *pc, bool tuple)
{
    int n = pc[2];
    PyObject *sequence = tuple ? PyTuple_New(n) : PyList_New(n);
    for (int i = 0; sequence != NULL && i < n; i++) {
        PyObject *item = Py_NewRef(r->regs[pc[3 + i]]);
        if (tuple)
            PyTuple_SET_ITEM(sequence, i, item);
        else
            PyList_SET_ITEM(sequence, i, item);
    }
    return sequence;
}

static PyObject *box_zip(Run *r, const int32_t *pc)
{
    PyObject *iterators = box_sequence(r, pc, true);
    PyObject *made = iterators == NULL ? NULL : PyObject_CallObject((PyObject *)&PyZip_Type, iterators);
    Py_XDECREF(iterators);
    return made;
}

static PyObject *box_dict(Run *r, const int32_t *pc)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < pc[2]; i += 2) {
        PyObject *key = r->regs[pc[3 + i]];
        bool plain = PyUnicode_CheckExact(key) || PyLong_CheckExact(key); /* hashing runs no Python code */
        if (!plain || PyDict_SetItem(dict, key, r->regs[pc[4 + i]]) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *box_shape(const Array *a)
{
    PyObject *tuple = PyTuple_New(a->ndim);
    for (int i = 0; tuple != NULL && i < a->ndim; i++) {
        PyObject *length = PyLong_FromSsize_t(a->shape[i]);
        if (length == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, length);
    }
    return tuple;
}

/* ---- loops --------------------------------------------------------------------------------------------------------
 */

/* The native function of a whole loop. It polls *breaker & mask and leaves where the interpreter would look at it. */
typedef int64_t (*LoopFunction)(Slot *slots, const volatile int32_t *breaker, int32_t mask);

static void run_loop(Run *r, const int32_t *pc)
{
    int32_t mask;
    const volatile int32_t *breaker = shim_eval_breaker(&mask);
    LoopFunction function = (LoopFunction)(intptr_t)r->slots[pc[2]].i;
    r->looped = true;
    r->slots[pc[1]].i = function(r->slots, breaker, mask);
}

/* ---- comparisons
 * -------------------------------------------------------------------------------------------------------- */

/* Quiet: a NaN raises no flag, as in NumPy and Python. */
static bool compare_doubles(double a, double b, int how)
{
    switch (how) {
    case 0:
        return isless(a, b);
    case 1:
        return islessequal(a, b);
    case 2:
        return a == b;
    case 3:
        return a != b;
    case 4:
        return isgreater(a, b);
    default:
        return isgreaterequal(a, b);
    }
}

static bool compare_ints(int64_t a, int64_t b, int how)
{
    switch (how) {
    case 0:
        return a < b;
    case 1:
        return a <= b;
    case 2:
        return a == b;
    case 3:
        return a != b;
    case 4:
        return a > b;
    default:
        return a >= b;
    }
}

static int to_double(Slot *dst, int64_t value)
{
    const int64_t exact = (int64_t)1 << 53;
    if (value > exact || value < -exact)
        return MISS;
    dst->d = (double)value;
    return OK;
}

/* ---- the loop
 * --------------------------------------------------------------------------------------------------------------- */

#define O(k) r->regs[pc[k]]
#define S(k) r->slots[pc[k]]
#define A(k) r->arrays[pc[k]]
#define NEXT(words)                                                                                                    \
    pc += 1 + (words);                                                                                                 \
    break
#define MISS_IF(condition)                                                                                             \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            return MISS;                                                                                               \
    } while (0)
#define TRY(status) MISS_IF((status) != OK)
#define BOX(object) TRY(set_object(r, pc[1], object))
#define DOUBLE_OP(expression)                                                                                          \
    flags_begin(r);                                                                                                    \
    S(1).d = settled(expression);                                                                                      \
    NEXT(3)

static int interpret(Run *r)
{
    const int32_t *pc = r->plan->code;
    npy_intp shape[MAX_NDIM];
    int64_t quotient, remainder;
    int status;
    for (;;) {
        switch (*pc) {
        case OP_O_EXPR:
            TRY(load_expression(r, pc[1], pc[2]));
            NEXT(2);
        case OP_O_CONST:
            BOX(Py_NewRef(r->plan->constant_items[pc[2]]));
            NEXT(2);
        case OP_S_INT:
            TRY(slot_from_int(&S(1), O(2)));
            NEXT(2);
        case OP_S_FLOAT:
            TRY(slot_from_float(&S(1), O(2)));
            NEXT(2);
        case OP_S_BOOL:
            TRY(slot_from_bool(&S(1), O(2)));
            NEXT(2);
        case OP_S_COMPLEX:
            TRY(slot_from_complex(&S(1), O(2)));
            NEXT(2);
        case OP_S_NUMPY:
            TRY(slot_from_numpy(&S(1), O(2), pc[3]));
            NEXT(3);
        case OP_S_CAST:
            flags_begin(r);
            TRY(slot_cast(&S(1), pc[2], &S(3), pc[4]));
            NEXT(4);
        case OP_A_OBJ:
            TRY(array_load(&A(1), O(2)));
            NEXT(2);

        case OP_I_ADD:
            MISS_IF(__builtin_add_overflow(S(2).i, S(3).i, &S(1).i));
            NEXT(3);
        case OP_I_SUB:
            MISS_IF(__builtin_sub_overflow(S(2).i, S(3).i, &S(1).i));
            NEXT(3);
        case OP_I_MUL:
            MISS_IF(__builtin_mul_overflow(S(2).i, S(3).i, &S(1).i));
            NEXT(3);
        case OP_I_FLOORDIV:
            MISS_IF(!int_floordiv(S(2).i, S(3).i, &quotient, &remainder));
            S(1).i = quotient;
            NEXT(3);
        case OP_I_MOD:
            MISS_IF(!int_floordiv(S(2).i, S(3).i, &quotient, &remainder));
            S(1).i = remainder;
            NEXT(3);
        case OP_I_POW:
            MISS_IF(!int_pow(S(2).i, S(3).i, &S(1).i));
            NEXT(3);
        case OP_I_NEG:
            MISS_IF(S(2).i == INT64_MIN);
            S(1).i = -S(2).i;
            NEXT(2);
        case OP_I_ABS:
            MISS_IF(S(2).i == INT64_MIN);
            S(1).i = S(2).i < 0 ? -S(2).i : S(2).i;
            NEXT(2);
        case OP_I_MIN:
            S(1).i = S(2).i < S(3).i ? S(2).i : S(3).i;
            NEXT(3);
        case OP_I_MAX:
            S(1).i = S(2).i > S(3).i ? S(2).i : S(3).i;
            NEXT(3);
        case OP_I_DIM:
            MISS_IF(pc[3] >= A(2).ndim);
            S(1).i = A(2).shape[pc[3]];
            NEXT(3);
        case OP_I_SIZE:
            S(1).i = array_size(&A(2));
            NEXT(2);
        case OP_I_TODOUBLE:
            TRY(to_double(&S(1), S(2).i));
            NEXT(2);

        case OP_C_EQ:
            MISS_IF(S(1).i != S(2).i);
            NEXT(2);
        case OP_C_NE:
            MISS_IF(S(1).i == S(2).i);
            NEXT(2);
        case OP_C_LT:
            MISS_IF(S(1).i >= S(2).i);
            NEXT(2);
        case OP_C_LE:
            MISS_IF(S(1).i > S(2).i);
            NEXT(2);
        case OP_C_DEQ:
            MISS_IF(!(S(1).d == S(2).d));
            NEXT(2);
        case OP_C_DNE:
            MISS_IF(!(S(1).d != S(2).d));
            NEXT(2);
        case OP_C_DLT:
            MISS_IF(!isless(S(1).d, S(2).d));
            NEXT(2);
        case OP_C_DLE:
            MISS_IF(!islessequal(S(1).d, S(2).d));
            NEXT(2);
        case OP_C_DNLT:
            MISS_IF(isless(S(1).d, S(2).d));
            NEXT(2);
        case OP_C_DNLE:
            MISS_IF(islessequal(S(1).d, S(2).d));
            NEXT(2);
        case OP_C_TRUE:
            MISS_IF(!S(1).b);
            NEXT(1);
        case OP_C_FALSE:
            MISS_IF(S(1).b);
            NEXT(1);
        case OP_C_IS:
            MISS_IF(O(1) != O(2));
            NEXT(2);
        case OP_C_ISNOT:
            MISS_IF(O(1) == O(2));
            NEXT(2);
        case OP_C_NOOVERLAP:
            MISS_IF(!arrays_disjoint(&A(1), &A(2)));
            NEXT(2);
        case OP_C_CCONTIG:
            MISS_IF(!A(1).c_contig);
            NEXT(1);

        case OP_D_ADD:
            DOUBLE_OP(S(2).d + S(3).d);
        case OP_D_SUB:
            DOUBLE_OP(S(2).d - S(3).d);
        case OP_D_MUL:
            DOUBLE_OP(S(2).d * S(3).d);
        case OP_D_DIV:
            MISS_IF(S(3).d == 0); /* an exception for Python's float, whatever np.errstate says */
            DOUBLE_OP(S(2).d / S(3).d);
        case OP_D_NEG:
            S(1).d = -S(2).d;
            NEXT(2);
        case OP_D_ABS:
            S(1).d = fabs(S(2).d);
            NEXT(2);
        case OP_D_SQRT:
            flags_begin(r);
            S(1).d = settled(sqrt(S(2).d));
            NEXT(2);
        case OP_D_POW:
            MISS_IF(!double_pow(S(2).d, S(3).d, &S(1).d));
            NEXT(3);
        case OP_D_CMP:
            S(1).b = compare_doubles(S(2).d, S(3).d, pc[4]);
            NEXT(4);
        case OP_I_CMP:
            S(1).b = compare_ints(S(2).i, S(3).i, pc[4]);
            NEXT(4);

        case OP_A_SLICE:
            TRY(view_slice(&A(1), &A(2), pc[3], pc[4], &S(5), &S(6), &S(7)));
            NEXT(7);
        case OP_A_INDEX:
            TRY(view_index(&A(1), &A(2), pc[3], S(4).i));
            NEXT(4);
        case OP_A_NEWAXIS:
            TRY(view_newaxis(&A(1), &A(2), pc[3]));
            NEXT(3);
        case OP_A_TRANSPOSE:
            TRY(view_transpose(&A(1), &A(2), pc[3], pc + 4));
            NEXT(3 + pc[3]);
        case OP_A_BROADCAST:
            read_shape(r, shape, pc[3], pc + 4);
            TRY(view_broadcast(&A(1), &A(2), pc[3], shape));
            NEXT(3 + pc[3]);
        case OP_A_RESHAPE:
            read_shape(r, shape, pc[3], pc + 4);
            TRY(view_reshape(&A(1), &A(2), pc[3], shape));
            NEXT(3 + pc[3]);
        case OP_A_RAVEL_KEEP:
            shape[0] = array_size(&A(2));
            TRY(view_reshape(&A(1), &A(2), 1, shape));
            NEXT(2);
        case OP_A_REAL:
            TRY(view_part(&A(1), &A(2), false));
            NEXT(2);
        case OP_A_IMAG:
            TRY(view_part(&A(1), &A(2), true));
            NEXT(2);
        case OP_A_SCALAR:
            view_scalar(&A(1), &S(2), pc[3]);
            NEXT(3);
        case OP_S_LOAD:
            MISS_IF(A(2).ndim != 0);
            memcpy(S(1).raw, A(2).data, (size_t)element_types[A(2).type].size);
            NEXT(2);

        case OP_A_EMPTY:
            read_shape(r, shape, pc[3], pc + 4);
            TRY(set_array(r, pc[1], array_alloc(pc[2], pc[3], shape, NULL, false)));
            NEXT(3 + pc[3]);
        case OP_A_ZEROS:
            read_shape(r, shape, pc[3], pc + 4);
            TRY(set_array(r, pc[1], array_alloc_zeros(pc[2], pc[3], shape)));
            NEXT(3 + pc[3]);
        case OP_A_FULL:
            TRY(new_full(r, pc));
            NEXT(4 + pc[4]);
        case OP_A_EMPTY_LIKE:
            TRY(new_like(r, pc, false));
            NEXT(3);
        case OP_A_ZEROS_LIKE:
            TRY(new_like(r, pc, true));
            NEXT(3);
        case OP_A_COPY:
            TRY(new_copy(r, pc, pc[3]));
            NEXT(3);
        case OP_A_APART:
            if (arrays_disjoint(&A(2), &A(3)))
                view_all(&A(1), &A(2));
            else
                TRY(new_copy(r, pc, true));
            NEXT(3);
        case OP_A_FREE:
            array_release(&A(1));
            NEXT(1);

        case OP_KERNEL:
            TRY(run_kernel(r, pc));
            NEXT(2 + pc[2]);
        case OP_REDUCE:
            flags_begin_loop(r);
            TRY(reduce_full(&S(1), &A(2), r->plan->kernel_items[pc[3]], pc[4]));
            r->raised |= flags_collect(r);
            NEXT(5);
        case OP_REDUCE_AXIS:
            flags_begin_loop(r);
            TRY(reduce_axis(&A(1), &A(2), r->plan->kernel_items[pc[3]], pc[4], pc[5], pc[6]));
            r->raised |= flags_collect(r);
            NEXT(6);
        case OP_S_ARRAY:
            TRY(load_array(&S(1), &A(2), pc[3]));
            NEXT(3);
        case OP_S_RANGE:
            TRY(load_range(&S(1), O(2)));
            NEXT(2);
        case OP_A_SEQITER:
            TRY(load_sequence(&A(1), &S(2), O(3)));
            NEXT(3);
        case OP_S_POINTER:
            S(1).i = (int64_t)(intptr_t)O(2);
            NEXT(2);
        case OP_S_LISTITER:
            TRY(load_list_iterator(&S(1), O(2)));
            NEXT(2);
        case OP_S_COMBINED:
            TRY(load_combined(&S(1), O(2), pc[3]));
            NEXT(3);
        case OP_S_TEXT:
            TRY(load_text(&S(1), O(2)));
            NEXT(2);
        case OP_C_ARRAY:
            MISS_IF(A(1).type != element_types[pc[2]].canonical || A(1).ndim != pc[3]);
            NEXT(3);
        case OP_C_UNDERFLOW:
            MISS_IF(!(errstate_ignored() & FP_UNDERFLOW));
            NEXT(0);
        case OP_LOOP:
            run_loop(r, pc);
            NEXT(2);
        case OP_SWITCH:
            MISS_IF((uint64_t)S(1).i >= (uint64_t)pc[2]);
            pc = r->plan->code + pc[3 + S(1).i];
            break;
        case OP_EXIT:
            r->end = pc[1];
            return OK;
        case OP_BOX_RANGE:
            BOX(box_range(&S(2)));
            NEXT(2);
        case OP_BOX_SEQITER:
            BOX(box_sequence_iterator(O(2), &S(3)));
            NEXT(3);
        case OP_BOX_ENUM:
            BOX(box_enumerate(O(2), &S(3)));
            NEXT(3);
        case OP_BOX_ZIP:
            BOX(box_zip(r, pc));
            NEXT(2 + pc[2]);
        case OP_O_SELECT:
            BOX(Py_NewRef(S(2).b ? O(3) : O(4)));
            NEXT(4);
        case OP_BOX_POINTER:
            BOX(Py_NewRef((PyObject *)(intptr_t)S(2).i));
            NEXT(2);
        case OP_BOX_CHAR:
            BOX(PyUnicode_FromOrdinal((int)S(2).i));
            NEXT(2);
        case OP_ENUM_SET:
            shim_enum_write(O(1), S(2).i);
            NEXT(2);
        case OP_SEQITER_SET:
            shim_seqiter_write(O(1), S(2).i);
            NEXT(2);
        case OP_BOX_VIEW:
            BOX(box_view(&A(2), &S(3), pc[4], pc[5]));
            NEXT(5);
        case OP_RANGE_SET:
            shim_range_write(O(1), S(2).i, r->slots[pc[2] + 2].i);
            NEXT(2);
        case OP_FLAGS:
            status = flags_test(r);
            if (status != OK)
                return status;
            NEXT(0);

        case OP_BOX_ARRAY:
            BOX(array_box(&A(2)));
            NEXT(2);
        case OP_BOX_INT:
            BOX(PyLong_FromLongLong(S(2).i));
            NEXT(2);
        case OP_BOX_FLOAT:
            BOX(PyFloat_FromDouble(S(2).d));
            NEXT(2);
        case OP_BOX_BOOL:
            BOX(PyBool_FromLong(S(2).b));
            NEXT(2);
        case OP_BOX_COMPLEX:
            BOX(PyComplex_FromDoubles(S(2).c[0], S(2).c[1]));
            NEXT(2);
        case OP_BOX_NUMPY:
            BOX(slot_to_numpy(&S(2), pc[3]));
            NEXT(3);
        case OP_BOX_TUPLE:
            BOX(box_sequence(r, pc, true));
            NEXT(2 + pc[2]);
        case OP_BOX_LIST:
            BOX(box_sequence(r, pc, false));
            NEXT(2 + pc[2]);
        case OP_BOX_DICT:
            BOX(box_dict(r, pc));
            NEXT(2 + pc[2]);
        case OP_BOX_SLICE:
            BOX(PySlice_New(O(2), O(3), O(4)));
            NEXT(4);
        case OP_BOX_METHOD:
            BOX(PyMethod_New(O(2), O(3)));
            NEXT(3);
        case OP_BOX_SHAPE:
            BOX(box_shape(&A(2)));
            NEXT(2);

        case OP_C_STORABLE:
            TRY(check_storable(&A(1), &A(2)));
            NEXT(2);
        case OP_STORE:
            copy_elements(&A(1), &A(2));
            NEXT(2);
        default: /* OP_END */
            return OK;
        }
    }
}

enum { STACK_BYTES = 32 * 1024 };

static void finish(Run *r, int status)
{
    PlanObject *p = r->plan;
    for (int i = 0; i < p->narrays; i++)
        array_release(&r->arrays[i]);
    if (status != OK)
        for (int i = 0; i < p->nobjects; i++)
            Py_CLEAR(r->regs[i]);
    if (r->dirty)
        (void)fp_take(p->x87);
}

int plan_execute(PlanObject *p, Lookup *lookup, PyObject *const *values, Py_ssize_t nvalues, PyObject **regs, int *end)
{
    Run run = {.plan = p, .lookup = lookup, .values = values, .nvalues = nvalues, .regs = regs};
    size_t slot_bytes = (size_t)p->nslots * sizeof(Slot), bytes = slot_bytes + (size_t)p->narrays * sizeof(Array) + 64;
    memset(regs, 0, (size_t)p->nobjects * sizeof(PyObject *));
    p->runs++;
    if (p->narrays > 0 && !numpy_ready())
        return MISS;
    void *memory = bytes <= STACK_BYTES ? __builtin_alloca_with_align(bytes, 512) : PyMem_Malloc(bytes);
    if (memory == NULL)
        return MISS;
    run.slots = memory;
    run.arrays = (Array *)((char *)memory + slot_bytes);
    memcpy(run.slots, p->image, slot_bytes);
    for (int i = 0; i < p->narrays; i++)
        run.arrays[i].owner = NULL;
    Py_INCREF(p); /* leaving the GIL may let somebody replace the specialisation */
    int status = interpret(&run);
    finish(&run, status);
    if (status == AGAIN) { /* nothing was stored: the flags are tested before */
        (void)fp_take(p->x87);
        run.cleared = true;
        run.dirty = false;
        run.raised = 0;
        memcpy(run.slots, p->image, slot_bytes);
        status = interpret(&run);
        finish(&run, status);
    }
    if (bytes > STACK_BYTES)
        PyMem_Free(memory);
    Py_DECREF(p);
    *end = run.end;
    p->left += status == MISS;
    if (status == MISS && run.looped) {
        PyErr_NoMemory();
        return -1;
    }
    return status;
}
