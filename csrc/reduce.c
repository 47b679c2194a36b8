/* Reductions with NumPy's own loops, called as NumPy calls them where nothing is cast.
 *
 * NumPy walks the operand in its iterator's order of axes (the result has no say, it is allocated along them), merges
 * axes where both operand and result allow it, and calls loop({acc, x, acc}) for each stretch of the innermost axis.
 * Results start from the identity, or from the first elements, which the loop then skips. If one axis is reduced, NumPy
 * may go through its buffer only where the reduced axis is not the innermost: then each result still takes its elements
 * in order, one per call. (For fmax and fmin even that shows, in the signs of zeros.) tests/core/test_reduce.py
 * compares the bits over random layouts. */
#include "plan.h"

typedef struct {
    npy_intp length, in, out; /* strides in bytes; out is 0 along reduced axes */
    bool reduced;
} ReduceAxis;

typedef struct {
    const KernelObject *kernel;
    int naxes; /* at least 1; axis 0 is the fastest */
    ReduceAxis axes[MAX_NDIM];
    char *in, *out;
    bool skip_first;
} Reduction;

/* Lists the axes in the iterator's order and merges them. axis < 0: all are reduced. */
static void plan_reduction(Reduction *r, const Array *a, const int *perm, int axis, const npy_intp *out_strides)
{
    r->naxes = 0;
    for (int i = 0; i < a->ndim; i++) {
        int own = perm[i];
        ReduceAxis next = {a->shape[own], a->strides[own], out_strides == NULL ? 0 : out_strides[own],
                           axis < 0 || own == axis};
        if (next.length == 1)
            continue;
        if (r->naxes > 0) {
            ReduceAxis *last = &r->axes[r->naxes - 1];
            if (last->reduced == next.reduced && next.in == last->length * last->in &&
                next.out == last->length * last->out) {
                last->length *= next.length;
                continue;
            }
        }
        r->axes[r->naxes++] = next;
    }
    if (r->naxes == 0)
        r->axes[r->naxes++] = (ReduceAxis){1, 0, 0, true};
}

static void reduce_stretch(const Reduction *r, char *in, char *out, bool first_visit)
{
    const ReduceAxis *inner = &r->axes[0];
    npy_intp n = inner->length;
    if (r->skip_first && first_visit) { /* the result already holds these elements */
        if (!inner->reduced)
            return;
        n--;
        in += inner->in;
    }
    if (n == 0)
        return;
    char *args[3] = {out, in, out};
    npy_intp strides[3] = {inner->out, inner->in, inner->out};
    r->kernel->loop(args, &n, strides, r->kernel->loop_data);
}

static void run_reduction(const Reduction *r)
{
    npy_intp index[MAX_NDIM] = {0};
    char *in = r->in, *out = r->out;
    for (;;) {
        bool first_visit = true;
        for (int i = 1; i < r->naxes; i++)
            first_visit = first_visit && !(r->axes[i].reduced && index[i] != 0);
        reduce_stretch(r, in, out, first_visit);
        int i = 1;
        for (; i < r->naxes; i++) {
            in += r->axes[i].in;
            out += r->axes[i].out;
            if (++index[i] < r->axes[i].length)
                break;
            in -= index[i] * r->axes[i].in;
            out -= index[i] * r->axes[i].out;
            index[i] = 0;
        }
        if (i == r->naxes)
            return;
    }
}

/* Above this many elements the loop runs without the GIL (500 in NumPy). */
enum { GIL_ELEMENTS = 20000 };

static void run_released(const Reduction *r, npy_intp elements)
{
    if (elements < GIL_ELEMENTS) {
        run_reduction(r);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    run_reduction(r);
    Py_END_ALLOW_THREADS;
}

static bool usable(const Array *a, const KernelObject *k)
{
    return a->type == k->types[0] && a->type == k->types[1] && a->type == k->types[2];
}

int reduce_full(Slot *out, const Array *a, KernelObject *k, bool identity)
{
    npy_intp n = array_size(a);
    int perm[MAX_NDIM];
    if (!usable(a, k) || n == 0)
        return MISS;
    Slot result = k->identity;
    if (!identity)
        memcpy(result.raw, a->data, (size_t)element_types[a->type].size);
    Reduction r = {.kernel = k, .in = a->data, .out = (char *)&result, .skip_first = !identity};
    iter_axes(a, perm);
    plan_reduction(&r, a, perm, -1, NULL);
    if (r.naxes > 1)
        return MISS; /* NumPy copies such operands piecewise into its buffer; the pieces depend on np.setbufsize */
    k->calls++;
    run_released(&r, n);
    *out = result;
    return OK;
}

/* The result's shape and strides (bytes), and its strides by the operand's axes (0 for the reduced one). */
static int result_layout(const Array *a, const int *perm, int axis, bool keepdims, npy_intp *shape, npy_intp *strides,
                         npy_intp *by_axis)
{
    npy_intp stride = element_types[a->type].size;
    for (int i = 0; i < a->ndim; i++) {
        int own = perm[i], position = own - (!keepdims && own > axis);
        by_axis[own] = own == axis ? 0 : stride;
        if (own == axis && !keepdims)
            continue;
        shape[position] = own == axis ? 1 : a->shape[own];
        strides[position] = stride;
        stride *= shape[position];
    }
    return keepdims ? a->ndim : a->ndim - 1;
}

/* The first elements along the axis, or the identity, into the whole result. */
static void start_result(const Array *result, const Array *a, const KernelObject *k, int axis, bool identity,
                         bool keepdims)
{
    Array from = *a;
    Slot start = k->identity;
    if (identity) {
        from.owner = NULL;
        view_scalar(&from, &start, a->type);
    } else {
        from.shape[axis] = 1;
        for (int i = axis; !keepdims && i < a->ndim - 1; i++) {
            from.shape[i] = a->shape[i + 1];
            from.strides[i] = a->strides[i + 1];
        }
        from.ndim = result->ndim;
    }
    copy_elements(result, &from);
}

int reduce_axis(Array *out, const Array *a, KernelObject *k, int axis, bool identity, bool keepdims)
{
    npy_intp shape[MAX_NDIM], strides[MAX_NDIM], by_axis[MAX_NDIM], n = array_size(a);
    int perm[MAX_NDIM];
    if (!usable(a, k) || n == 0 || a->ndim < 2 || axis >= a->ndim)
        return MISS;
    iter_axes(a, perm);
    int ndim = result_layout(a, perm, axis, keepdims, shape, strides, by_axis);
    Reduction r = {.kernel = k, .in = a->data, .skip_first = !identity};
    plan_reduction(&r, a, perm, axis, by_axis);
    if (r.naxes > 2 && element_types[a->type].kind == 'c')
        return MISS; /* NumPy may buffer, and its complex product differs between contiguous and strided operands */
    PyArrayObject *made = array_alloc(a->type, ndim, shape, strides, false);
    if (made == NULL)
        return MISS;
    Array result = {0};
    array_describe(&result, made);
    start_result(&result, a, k, axis, identity, keepdims);
    r.out = result.data;
    k->calls++;
    run_released(&r, n);
    array_release(out);
    array_describe(out, made);
    return OK;
}
