/* The memory order of results: what NumPy would allocate for each operation of a fused chain.
 *
 * A ufunc call takes one of two ways in NumPy. If all operands have one shape and one contiguous order (or one
 * dimension), the output simply gets that order. Otherwise the iterator sorts the axes by the operands' strides and
 * allocates along the sorted axes; axes of length one and broadcast axes have stride zero there and decide nothing. The
 * two differ in the strides of length-one axes of Fortran-ordered results, so both are modelled.
 * tests/core/test_layout.py compares with NumPy over random operands. */
#include "plan.h"

/* NumPy computes in place of a temporary of at least this size when nobody else holds it (temp_elide.c); the order is
 * then the temporary's. */
enum { ELISION_BYTES = 256 * 1024, MAX_ITEMSIZE = 16 };

typedef struct { /* an operand or intermediate result of the chain */
    Layout at;
    bool c, f;  /* contiguous */
    bool owned; /* may be a temporary that NumPy reuses */
} Operand;

static bool merge_shape(Layout *out, int ndim, const npy_intp *shape)
{
    if (ndim > out->ndim) { /* make room in front */
        int grow = ndim - out->ndim;
        for (int i = ndim - 1; i >= 0; i--)
            out->shape[i] = i >= grow ? out->shape[i - grow] : 1;
        out->ndim = ndim;
    }
    npy_intp *tail = out->shape + (out->ndim - ndim);
    for (int i = 0; i < ndim; i++) {
        if (tail[i] == shape[i] || shape[i] == 1)
            continue;
        if (tail[i] != 1)
            return false;
        tail[i] = shape[i];
    }
    return true;
}

bool broadcast_shape(Layout *out, const Array *const *in, int n, uint64_t mask)
{
    out->ndim = 0;
    for (int i = 0; i < n; i++)
        if (mask >> i & 1 && !merge_shape(out, in[i]->ndim, in[i]->shape))
            return false;
    npy_intp size = MAX_ITEMSIZE; /* views may broadcast to more than there is memory; no size below is to overflow */
    for (int i = 0; i < out->ndim; i++)
        if (out->shape[i] != 0 && __builtin_mul_overflow(size, out->shape[i], &size))
            return false;
    return true;
}

static npy_intp layout_size(const Layout *l)
{
    npy_intp n = 1;
    for (int i = 0; i < l->ndim; i++)
        n *= l->shape[i];
    return n;
}

/* Strides of a new array whose axes, fastest first, are perm. */
static void strides_along(Layout *l, const int *perm)
{
    npy_intp stride = 1;
    for (int i = 0; i < l->ndim; i++) {
        l->strides[perm[i]] = stride;
        stride *= l->shape[perm[i]];
    }
}

static void c_order(Layout *l)
{
    npy_intp stride = 1;
    for (int i = l->ndim - 1; i >= 0; i--) {
        l->strides[i] = stride;
        stride *= l->shape[i];
    }
}

static void f_order(Layout *l)
{
    npy_intp stride = 1;
    for (int i = 0; i < l->ndim; i++) {
        l->strides[i] = stride;
        stride *= l->shape[i];
    }
}

static inline npy_intp magnitude(npy_intp x)
{
    return x < 0 ? -x : x;
}

/* Stride of an operand along an axis of the result; 0 where it is broadcast or has length one. */
static npy_intp iter_stride(const Operand *op, int ndim, int axis)
{
    int own = axis - (ndim - op->at.ndim);
    return own < 0 || op->at.shape[own] == 1 ? 0 : op->at.strides[own];
}

/* How the iterator ranks axis `candidate` against `axis`: 1 the candidate is faster, -1 it is not, 0 no operand can
 * tell. */
static int compare_axes(const Operand *const *ops, int nops, int ndim, int axis, int candidate)
{
    int verdict = 0;
    for (int i = 0; i < nops; i++) {
        npy_intp a = iter_stride(ops[i], ndim, candidate), b = iter_stride(ops[i], ndim, axis);
        if (a == 0 || b == 0)
            continue;
        if (magnitude(b) <= magnitude(a))
            verdict = -1; /* operands that disagree: C order wins */
        else if (verdict == 0)
            verdict = 1;
    }
    return verdict;
}

/* The iterator's order of axes, fastest first: an insertion sort in which undecided pairs are skipped over. */
static void iter_order(const Operand *const *ops, int nops, int ndim, int *perm)
{
    for (int i = 0; i < ndim; i++)
        perm[i] = ndim - 1 - i;
    for (int i = 1; i < ndim; i++) {
        int candidate = perm[i], place = i;
        for (int j = i - 1; j >= 0; j--) {
            int verdict = compare_axes(ops, nops, ndim, perm[j], candidate);
            if (verdict < 0)
                break;
            if (verdict > 0)
                place = j;
        }
        memmove(perm + place + 1, perm + place, (size_t)(i - place) * sizeof(int));
        perm[place] = candidate;
    }
}

/* Order K of copy() and friends: axes sorted by stride, where those of length one count with the stride they happen to
 * have. */
static void like_order(Layout *out, const npy_intp *strides, bool c, bool f)
{
    if (c || out->ndim <= 1) {
        c_order(out);
        return;
    }
    if (f) {
        f_order(out);
        return;
    }
    int perm[MAX_NDIM]; /* fastest first; equal strides stay in C order */
    for (int i = 0; i < out->ndim; i++) {
        int axis = out->ndim - 1 - i, place = i;
        while (place > 0 && magnitude(strides[perm[place - 1]]) > magnitude(strides[axis]))
            place--;
        memmove(perm + place + 1, perm + place, (size_t)(i - place) * sizeof(int));
        perm[place] = axis;
    }
    strides_along(out, perm);
}

void layout_like(Layout *out, const Array *a)
{
    out->ndim = a->ndim;
    memcpy(out->shape, a->shape, (size_t)a->ndim * sizeof(npy_intp));
    like_order(out, a->strides, a->c_contig, a->f_contig);
}

static void update_contiguity(Operand *o)
{
    npy_intp stride = 1;
    o->c = o->f = true;
    for (int i = 0; i < o->at.ndim; i++) {
        if (o->at.shape[i] == 0) {
            o->c = o->f = true;
            return;
        }
        if (o->at.shape[i] == 1)
            continue;
        o->f = o->f && o->at.strides[i] == stride;
        stride *= o->at.shape[i];
    }
    stride = 1;
    for (int i = o->at.ndim - 1; i >= 0; i--) {
        if (o->at.shape[i] == 1)
            continue;
        o->c = o->c && o->at.strides[i] == stride;
        stride *= o->at.shape[i];
    }
}

static bool same_shape(const Layout *a, const Layout *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(npy_intp)) == 0;
}

/* The way without an iterator: 'C', 'F', or 0 if NumPy does not take it. */
static char simple_order(const Operand *const *ops, const int *numbers, int nops, const Layout *out)
{
    bool c = true, f = true;
    for (int i = 0; i < nops; i++) {
        if (ops[i]->at.ndim == 0)
            continue;
        if (!same_shape(&ops[i]->at, out))
            return 0;
        if (out->ndim == 1)
            continue;
        if (numbers[i] & LAYOUT_CAST)
            return 0;
        c = c && ops[i]->c;
        f = f && ops[i]->f;
    }
    return c ? 'C' : f ? 'F' : 0;
}

static bool elision_in_doubt(const Operand *const *ops, int nops, const Operand *result)
{
    for (int i = 0; i < nops; i++)
        if (ops[i]->owned && same_shape(&ops[i]->at, &result->at) &&
            layout_size(&result->at) * MAX_ITEMSIZE >= ELISION_BYTES &&
            memcmp(ops[i]->at.strides, result->at.strides, (size_t)result->at.ndim * sizeof(npy_intp)) != 0)
            return true;
    return false;
}

/* Lays out one operation's result. */
static int simulate(Operand *result, const Operand *const *ops, const int *numbers, int nops, int flags)
{
    int perm[MAX_NDIM];
    result->at.ndim = 0;
    result->owned = true;
    for (int i = 0; i < nops; i++)
        if (!merge_shape(&result->at, ops[i]->at.ndim, ops[i]->at.shape))
            return MISS;
    if (flags & LAYOUT_COPY) {
        like_order(&result->at, ops[0]->at.strides, ops[0]->c, ops[0]->f);
        update_contiguity(result);
        return OK;
    }
    char simple = flags & LAYOUT_ITER ? 0 : simple_order(ops, numbers, nops, &result->at);
    if (simple == 'C') {
        c_order(&result->at);
    } else if (simple == 'F') {
        f_order(&result->at);
    } else {
        iter_order(ops, nops, result->at.ndim, perm);
        strides_along(&result->at, perm);
    }
    update_contiguity(result);
    return elision_in_doubt(ops, nops, result) ? MISS : OK;
}

/* Strides in elements, or in bytes where they are no multiple of the element size (fields of structured arrays): only
 * their order matters. */
static void input_operand(Operand *o, const Array *a)
{
    npy_intp unit = element_types[a->type].size;
    for (int i = 0; i < a->ndim; i++)
        if (a->strides[i] % unit != 0)
            unit = 1;
    o->at.ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        o->at.shape[i] = a->shape[i];
        o->at.strides[i] = a->strides[i] / unit;
    }
    o->c = a->c_contig;
    o->f = a->f_contig;
    o->owned = a->whole && a->owner != NULL && PyArray_CHKFLAGS(a->owner, NPY_ARRAY_OWNDATA);
}

void iter_axes(const Array *a, int *perm)
{
    Operand o;
    const Operand *ops[1] = {&o};
    input_operand(&o, a);
    iter_order(ops, 1, a->ndim, perm);
}

static int simulate_single(const KernelObject *k, const Array *const *in, Layout *out)
{
    Operand inputs[MAX_OPERANDS], result;
    const Operand *ops[MAX_OPERANDS];
    int numbers[MAX_OPERANDS];
    for (int i = 0; i < k->nin; i++) {
        input_operand(&inputs[i], in[i]);
        ops[i] = &inputs[i];
        numbers[i] = i;
    }
    if (simulate(&result, ops, numbers, k->nin, k->nout > 1 ? LAYOUT_ITER : 0) != OK)
        return MISS;
    for (int i = 0; i < k->nout; i++)
        out[i] = result.at;
    return OK;
}

static int simulate_chain(const KernelObject *k, const Array *const *in, Layout *out)
{
    Operand *all = PyMem_Malloc((size_t)(k->nin + k->nlayout) * sizeof(Operand));
    const Operand *ops[MAX_OPERANDS];
    int status = all == NULL ? MISS : OK;
    for (int i = 0; status == OK && i < k->nin; i++)
        input_operand(&all[i], in[i]);
    for (int i = 0; status == OK && i < k->nlayout; i++) {
        const LayoutOp *op = &k->layout[i];
        const int *numbers = k->layout_operands + op->first;
        for (int j = 0; j < op->count; j++)
            ops[j] = &all[numbers[j] & ~LAYOUT_FLAGS];
        status = simulate(&all[k->nin + i], ops, numbers, op->count, op->flags);
    }
    for (int i = 0; status == OK && i < k->nout; i++)
        out[i] = all[k->nin + k->layout_out[i]].at;
    PyMem_Free(all);
    return status;
}

/* Strides never grow from left to right: the iterator then keeps C order, whatever the shapes. */
static bool c_like(const Array *a)
{
    npy_intp last = NPY_MAX_INTP;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 1 || a->strides[i] == 0)
            continue;
        if (magnitude(a->strides[i]) > last)
            return false;
        last = magnitude(a->strides[i]);
    }
    return true;
}

static bool all_c_like(const KernelObject *k, const Array *const *in)
{
    if (k->has_copy)
        return false; /* sorts broadcast axes by their stride of zero */
    for (int i = 0; i < k->nin; i++)
        if (!c_like(in[i]))
            return false;
    return true;
}

/* An empty result needs no loop, but an operation before it may have had elements (and flags). */
static bool some_operation_nonempty(const KernelObject *k, const Array *const *in)
{
    Layout at;
    for (int i = 0; i < k->nlayout; i++)
        if (!broadcast_shape(&at, in, k->nin, k->layout[i].inputs) || layout_size(&at) != 0)
            return true;
    return false;
}

int layout_outputs(const KernelObject *k, const Array *const *in, const Layout *full, Layout *out)
{
    if (k->nlayout > 0 && layout_size(full) == 0 && some_operation_nonempty(k, in))
        return MISS;
    if (!all_c_like(k, in))
        return k->nlayout > 0 ? simulate_chain(k, in, out) : simulate_single(k, in, out);
    for (int i = 0; i < k->nout; i++) {
        if (k->outputs_full)
            out[i] = *full;
        else if (!broadcast_shape(&out[i], in, k->nin, k->layout[k->layout_out[i]].inputs))
            return MISS;
        c_order(&out[i]);
    }
    return OK;
}
