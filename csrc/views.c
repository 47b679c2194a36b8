/* Views: descriptors derived from descriptors, as NumPy's basic indexing derives them. dst may be src. */
#include "plan.h"

void view_all(Array *dst, const Array *src)
{
    if (dst != src) {
        PyArrayObject *old = dst->owner;
        Py_XINCREF((PyObject *)src->owner);
        memcpy(dst, src, offsetof(Array, shape));
        memcpy(dst->shape, src->shape, (size_t)src->ndim * sizeof(npy_intp));
        memcpy(dst->strides, src->strides, (size_t)src->ndim * sizeof(npy_intp));
        Py_XDECREF((PyObject *)old);
    }
    dst->whole = false;
}

int view_slice(Array *dst, const Array *src, int axis, int given, const Slot *start, const Slot *stop, const Slot *step)
{
    if (axis >= src->ndim)
        return MISS;
    Py_ssize_t by = given & 4 ? step->i : 1;
    if (by == 0)
        return MISS;
    if (by < -PY_SSIZE_T_MAX)
        by = -PY_SSIZE_T_MAX; /* PySlice_Unpack: so that it can be negated */
    Py_ssize_t first = given & 1 ? start->i : (by < 0 ? PY_SSIZE_T_MAX : 0);
    Py_ssize_t last = given & 2 ? stop->i : (by < 0 ? PY_SSIZE_T_MIN : PY_SSIZE_T_MAX);
    Py_ssize_t n = PySlice_AdjustIndices(src->shape[axis], &first, &last, by);
    if (n <= 0) { /* NumPy's empty slice points to the start and keeps the stride */
        n = 0;
        first = 0;
        by = 1;
    }
    view_all(dst, src);
    dst->data += first * dst->strides[axis];
    dst->strides[axis] = (npy_intp)((npy_uintp)dst->strides[axis] * (npy_uintp)by); /* a huge step wraps, as in NumPy */
    dst->shape[axis] = n;
    array_update_contiguity(dst);
    return OK;
}

int view_index(Array *dst, const Array *src, int axis, int64_t index)
{
    if (axis >= src->ndim)
        return MISS;
    npy_intp n = src->shape[axis];
    if (index < -n || index >= n)
        return MISS;
    view_all(dst, src);
    dst->data += (index < 0 ? index + n : index) * dst->strides[axis];
    dst->ndim--;
    for (int i = axis; i < dst->ndim; i++) {
        dst->shape[i] = dst->shape[i + 1];
        dst->strides[i] = dst->strides[i + 1];
    }
    array_update_contiguity(dst);
    return OK;
}

int view_newaxis(Array *dst, const Array *src, int axis)
{
    if (axis > src->ndim || src->ndim == MAX_NDIM)
        return MISS;
    view_all(dst, src);
    for (int i = dst->ndim; i > axis; i--) {
        dst->shape[i] = dst->shape[i - 1];
        dst->strides[i] = dst->strides[i - 1];
    }
    dst->shape[axis] = 1;
    dst->strides[axis] = 0;
    dst->ndim++;
    return OK; /* an axis of length one changes no contiguity */
}

int view_transpose(Array *dst, const Array *src, int n, const int32_t *perm)
{
    npy_intp shape[MAX_NDIM], strides[MAX_NDIM];
    if (n != src->ndim)
        return MISS;
    for (int i = 0; i < n; i++) { /* the validator made sure that it is a permutation */
        shape[i] = src->shape[perm[i]];
        strides[i] = src->strides[perm[i]];
    }
    view_all(dst, src);
    memcpy(dst->shape, shape, (size_t)n * sizeof(npy_intp));
    memcpy(dst->strides, strides, (size_t)n * sizeof(npy_intp));
    array_update_contiguity(dst);
    return OK;
}

int view_broadcast(Array *dst, const Array *src, int n, const npy_intp *shape)
{
    npy_intp strides[MAX_NDIM], bytes = element_types[src->type].size;
    if (n > MAX_NDIM || n < src->ndim)
        return MISS;
    int lead = n - src->ndim;
    for (int i = 0; i < n; i++) {
        npy_intp length = i < lead ? 1 : src->shape[i - lead];
        if (shape[i] < 0 || (length != 1 && length != shape[i]))
            return MISS;
        if (shape[i] != 0 && __builtin_mul_overflow(bytes, shape[i], &bytes))
            return MISS;
        strides[i] = length == 1 ? 0 : src->strides[i - lead];
    }
    view_all(dst, src);
    dst->ndim = n;
    memcpy(dst->shape, shape, (size_t)n * sizeof(npy_intp));
    memcpy(dst->strides, strides, (size_t)n * sizeof(npy_intp));
    dst->writeable = false; /* as np.broadcast_to */
    array_update_contiguity(dst);
    return OK;
}

int view_reshape(Array *dst, const Array *src, int n, const npy_intp *shape)
{
    npy_intp size = 1, strides[MAX_NDIM];
    if (n > MAX_NDIM || !src->c_contig)
        return MISS;
    for (int i = 0; i < n; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(size, shape[i], &size))
            return MISS;
    if (size == 0 || size != array_size(src))
        return MISS; /* strides of empty reshapes differ between NumPy versions */
    npy_intp stride = element_types[src->type].size;
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape[i];
    }
    size_t bytes = (size_t)n * sizeof(npy_intp);
    bool same_shape = n == src->ndim && memcmp(shape, src->shape, bytes) == 0;
    if (same_shape && memcmp(strides, src->strides, bytes) != 0)
        return MISS; /* length-one axes with strides of their own: NumPy keeps them, unless a length was given as -1 */
    view_all(dst, src);
    dst->ndim = n;
    memcpy(dst->shape, shape, bytes);
    memcpy(dst->strides, strides, bytes);
    array_update_contiguity(dst);
    return OK;
}

int view_part(Array *dst, const Array *src, bool imaginary)
{
    int type = src->type == NPY_CDOUBLE ? NPY_DOUBLE : src->type == NPY_CFLOAT ? NPY_FLOAT : -1;
    if (type < 0)
        return MISS;
    view_all(dst, src);
    dst->type = type;
    if (imaginary)
        dst->data += element_types[type].size;
    array_update_contiguity(dst);
    return OK;
}

void view_scalar(Array *dst, Slot *slot, int type)
{
    array_release(dst);
    dst->data = (char *)slot;
    dst->ndim = 0;
    dst->type = element_types[type].canonical;
    dst->whole = false;
    dst->writeable = false;
    dst->c_contig = dst->f_contig = true;
}
