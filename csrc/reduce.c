/* Reductions with NumPy's own loops, called exactly as NumPy calls them; whatever would be called differently is a
 * miss.
 *
 * Without casting NumPy runs a reduction as loop({acc, x, acc}) over the iterator's innermost axis. Sums start from
 * -0.0 (their identity here), others from the first element. tests/core/test_reduce.py shows equality of bits for the
 * layouts accepted below. */
#include "plan.h"

static int usable(const Array *a, const KernelObject *k)
{
    return a->type == k->types[1] && k->types[0] == k->types[1] ? OK : MISS;
}

int reduce_full(Slot *out, const Array *a, KernelObject *k, bool identity, int type)
{
    npy_intp n = array_size(a), size = element_types[a->type].size;
    if (usable(a, k) != OK || n == 0)
        return MISS;
    npy_intp stride = a->ndim == 1 ? a->strides[0] : size;
    if (a->ndim != 1 && !a->c_contig && !a->f_contig)
        return MISS;
    char *data = a->data;
    if (identity) {
        *out = k->identity;
    } else {
        memcpy(out->raw, data, (size_t)size);
        data += stride;
        n--;
    }
    if (n == 0)
        return OK;
    char *args[3] = {(char *)out, data, (char *)out};
    npy_intp strides[3] = {0, stride, 0};
    k->calls++;
    k->loop(args, &n, strides, k->loop_data);
    (void)type;
    return OK;
}

int reduce_axis(Array *out, const Array *a, KernelObject *k, int axis, bool identity, bool keepdims)
{
    return MISS;
}
