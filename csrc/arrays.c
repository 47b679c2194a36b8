/* Array descriptors: from and to ndarray objects, allocation, contiguity, extents. */
#include "plan.h"

void array_update_contiguity(Array *a)
{
    npy_intp c_stride = element_types[a->type].size, f_stride = c_stride;
    bool c = true, f = true;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 0) {
            a->c_contig = a->f_contig = true;
            return;
        }
        if (a->shape[i] == 1)
            continue;
        f = f && a->strides[i] == f_stride;
        f_stride *= a->shape[i];
    }
    for (int i = a->ndim - 1; i >= 0; i--) {
        if (a->shape[i] == 1)
            continue;
        c = c && a->strides[i] == c_stride;
        c_stride *= a->shape[i];
    }
    a->c_contig = c;
    a->f_contig = f;
}

void array_describe(Array *a, PyArrayObject *stolen)
{
    int flags = PyArray_FLAGS(stolen);
    int ndim = PyArray_NDIM(stolen);
    const npy_intp *shape = PyArray_DIMS(stolen), *strides = PyArray_STRIDES(stolen);
    a->owner = stolen;
    a->data = PyArray_BYTES(stolen);
    a->ndim = ndim;
    a->type = element_types[PyArray_TYPE(stolen)].canonical;
    a->whole = true;
    a->writeable = (flags & NPY_ARRAY_WRITEABLE) != 0;
    a->c_contig = (flags & NPY_ARRAY_C_CONTIGUOUS) != 0;
    a->f_contig = (flags & NPY_ARRAY_F_CONTIGUOUS) != 0;
    for (int i = 0; i < ndim; i++) {
        a->shape[i] = shape[i];
        a->strides[i] = strides[i];
    }
}

int array_load(Array *a, PyObject *ndarray)
{
    if (!array_check_exact(ndarray))
        return MISS;
    PyArrayObject *array = (PyArrayObject *)ndarray;
    if (PyArray_NDIM(array) > MAX_NDIM || !type_handled(PyArray_TYPE(array)) || !PyArray_ISBEHAVED_RO(array))
        return MISS;
    array_release(a);
    Py_INCREF(ndarray);
    array_describe(a, array);
    return OK;
}

npy_intp array_size(const Array *a)
{
    npy_intp n = 1;
    for (int i = 0; i < a->ndim; i++)
        n *= a->shape[i];
    return n;
}

/* Lowest byte and one past the highest; false if there are no elements. */
static bool extent(const Array *a, char **low, char **high)
{
    *low = a->data;
    *high = a->data + element_types[a->type].size;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 0)
            return false;
        npy_intp span = (a->shape[i] - 1) * a->strides[i];
        if (span < 0)
            *low += span;
        else
            *high += span;
    }
    return true;
}

bool arrays_disjoint(const Array *a, const Array *b)
{
    char *a_low, *a_high, *b_low, *b_high;
    if (!extent(a, &a_low, &a_high) || !extent(b, &b_low, &b_high))
        return true;
    return a_high <= b_low || b_high <= a_low;
}

static bool shape_possible(int type, int ndim, const npy_intp *shape)
{
    npy_intp bytes = element_types[type].size;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return false;
        /* NumPy leaves out zeros here, too: an empty array of impossible extent is refused. */
        if (shape[i] != 0 && __builtin_mul_overflow(bytes, shape[i], &bytes))
            return false;
    }
    return ndim <= MAX_NDIM;
}

/* Whatever NumPy refuses is a miss: the original code then raises the error where the user sees it. */
static PyArrayObject *or_clear(PyObject *array)
{
    if (array == NULL)
        PyErr_Clear();
    return (PyArrayObject *)array;
}

PyArrayObject *array_alloc(int type, int ndim, const npy_intp *shape, const npy_intp *strides, bool fortran)
{
    if (!shape_possible(type, ndim, shape))
        return NULL;
    PyArray_Descr *descr = element_types[type].descr;
    Py_INCREF(descr);
    return or_clear(PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, NULL,
                                         fortran ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL));
}

PyArrayObject *array_alloc_zeros(int type, int ndim, const npy_intp *shape)
{
    if (!shape_possible(type, ndim, shape))
        return NULL;
    PyArray_Descr *descr = element_types[type].descr;
    Py_INCREF(descr);
    return or_clear(PyArray_Zeros(ndim, shape, descr, 0));
}

PyObject *array_box(const Array *a)
{
    if (a->owner == NULL)
        return NULL; /* memory of a scalar slot: it dies with the region */
    if (a->whole) {
        Py_INCREF(a->owner);
        return (PyObject *)a->owner;
    }
    /* A view with its owner's type keeps the owner's dtype object (metadata); a part of a complex number has the
     * builtin one. */
    PyArray_Descr *descr = PyArray_DESCR(a->owner);
    if (element_types[PyArray_TYPE(a->owner)].canonical != a->type)
        descr = element_types[a->type].descr;
    Py_INCREF(descr);
    int flags = NPY_ARRAY_ALIGNED | (a->writeable ? NPY_ARRAY_WRITEABLE : 0);
    PyArrayObject *view =
        or_clear(PyArray_NewFromDescr(&PyArray_Type, descr, a->ndim, a->shape, a->strides, a->data, flags, NULL));
    if (view == NULL)
        return NULL;
    Py_INCREF(a->owner);
    if (PyArray_SetBaseObject(view, (PyObject *)a->owner) < 0) {
        PyErr_Clear();
        Py_DECREF(view);
        return NULL;
    }
    return (PyObject *)view;
}
