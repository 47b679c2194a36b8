/* What loops find and leave behind: arrays, iterators, lists and strings as slots, and objects made of slots again. */
#include "frame_shim.h"
#include "plan.h"

int load_array(Slot *first, const Array *a, int ndim)
{
    if (a->ndim != ndim)
        return MISS;
    first[0].i = (int64_t)(intptr_t)a->data;
    for (int i = 0; i < ndim; i++) {
        first[1 + i].i = a->shape[i];
        first[1 + ndim + i].i = a->strides[i];
    }
    return OK;
}

enum { OWN_REFERENCES = 3 }; /* of the value stack, the guards' lookup and the register */

/* No item, and none behind the last, is beyond 64 bits. */
static bool is_near(const ShimRange *range)
{
    const int64_t far = (int64_t)1 << 61;
    int64_t end;
    return range->next > -far && range->next < far && range->step > -far && range->step < far &&
           !__builtin_mul_overflow(range->step, range->left, &end) && end > -2 * far && end < 2 * far;
}

/* A loop that is through drops its iterator without moving it: none but the frame's value stack may hold it. */
int load_range(Slot *first, PyObject *iterator)
{
    ShimRange range;
    if (Py_REFCNT(iterator) > OWN_REFERENCES || !shim_range_read(iterator, &range) || !is_near(&range))
        return MISS;
    first[0].i = range.next;
    first[1].i = range.step;
    first[2].i = range.left;
    return OK;
}

PyObject *box_range(const Slot *first)
{
    PyObject *step = PyLong_FromLongLong(first[1].i), *next = PyLong_FromLongLong(first[0].i);
    PyObject *left = PyLong_FromLongLong(first[2].i), *span = NULL, *stop = NULL, *range = NULL, *iterator = NULL;
    if (step != NULL && next != NULL && left != NULL && (span = PyNumber_Multiply(step, left)) != NULL &&
        (stop = PyNumber_Add(next, span)) != NULL)
        range = PyObject_CallFunctionObjArgs((PyObject *)&PyRange_Type, next, stop, step, NULL);
    if (range != NULL)
        iterator = PyObject_GetIter(range);
    Py_XDECREF(step);
    Py_XDECREF(next);
    Py_XDECREF(left);
    Py_XDECREF(span);
    Py_XDECREF(stop);
    Py_XDECREF(range);
    return iterator;
}

int load_sequence(Array *a, Slot *position, PyObject *iterator)
{
    PyObject *sequence = Py_REFCNT(iterator) > OWN_REFERENCES ? NULL : shim_seqiter_read(iterator, &position->i);
    return sequence == NULL ? MISS : array_load(a, sequence);
}

PyObject *box_sequence_iterator(PyObject *sequence, const Slot *position)
{
    PyObject *iterator = PyList_CheckExact(sequence) ? PyObject_GetIter(sequence) : PySeqIter_New(sequence);
    if (iterator != NULL)
        shim_seqiter_write(iterator, position->i);
    return iterator;
}

int load_combined(Slot *index, PyObject *iterator, int count)
{
    if (Py_REFCNT(iterator) > OWN_REFERENCES || shim_inner_count(iterator) != count ||
        shim_inner_iterator(iterator, count - 1) == NULL)
        return MISS;
    index->i = shim_enum_index(iterator);
    return index->i < INT64_MAX / 2 ? OK : MISS;
}

PyObject *box_enumerate(PyObject *iterator, const Slot *index)
{
    PyObject *start = PyLong_FromLongLong(index->i);
    PyObject *made =
        start == NULL ? NULL : PyObject_CallFunctionObjArgs((PyObject *)&PyEnum_Type, iterator, start, NULL);
    Py_XDECREF(start);
    return made;
}

int load_list_iterator(Slot *first, PyObject *iterator)
{
    PyObject *list = Py_REFCNT(iterator) > OWN_REFERENCES ? NULL : shim_seqiter_read(iterator, &first[1].i);
    first[0].i = (int64_t)(intptr_t)list;
    return list != NULL && PyList_CheckExact(list) ? OK : MISS;
}

int load_text(Slot *first, PyObject *text)
{
    if (!PyUnicode_CheckExact(text) || PyUnicode_READY(text) < 0 || PyUnicode_KIND(text) != PyUnicode_1BYTE_KIND) {
        PyErr_Clear();
        return MISS;
    }
    first[0].i = (int64_t)(intptr_t)PyUnicode_DATA(text);
    first[1].i = PyUnicode_GET_LENGTH(text);
    return OK;
}

PyObject *box_view(const Array *base, const Slot *first, int ndim, bool writeable)
{
    Array view = {.owner = base->owner,
                  .data = (char *)(intptr_t)first[0].i,
                  .ndim = ndim,
                  .type = base->type,
                  .writeable = writeable && base->writeable};
    for (int i = 0; i < ndim; i++) {
        view.shape[i] = first[1 + i].i;
        view.strides[i] = first[1 + ndim + i].i;
    }
    return array_box(&view);
}
