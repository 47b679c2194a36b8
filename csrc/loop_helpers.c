/* What native loops call: lists get new items. Each function returns the item (borrowed), or NULL having done nothing
 * (no memory, or the item that would go might run code when it goes). Layouts that they read themselves are exported as
 * numbers. */
#include "tierup.h"

#include <math.h>
#include <stddef.h>

/* Numbers and the like are released without running anybody's code. */
static bool goes_quietly(PyObject *o)
{
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || o == Py_None;
}

/* The index is in range. */
static PyObject *put(PyObject *list, int64_t index, PyObject *stolen)
{
    PyObject **place = &((PyListObject *)list)->ob_item[index], *old = *place;
    if (stolen == NULL || !goes_quietly(old)) {
        Py_XDECREF(stolen);
        PyErr_Clear();
        return NULL;
    }
    *place = stolen;
    Py_DECREF(old);
    return stolen;
}

static PyObject *append(PyObject *list, PyObject *stolen)
{
    int status = stolen == NULL ? -1 : PyList_Append(list, stolen);
    Py_XDECREF(stolen);
    if (status < 0)
        PyErr_Clear();
    return status < 0 ? NULL : stolen;
}

/* What a helper stores: a known object, or else a new one. */
static PyObject *float_item(PyObject *known, double value)
{
    return known != NULL ? Py_NewRef(known) : PyFloat_FromDouble(value);
}

static PyObject *int_item(PyObject *known, int64_t value)
{
    return known != NULL ? Py_NewRef(known) : PyLong_FromLongLong(value);
}

/* A float that only the list refers to takes the new value itself: nobody can tell it from a new object. */
static PyObject *put_float(PyObject *list, int64_t index, double value, PyObject *known)
{
    PyObject *old = ((PyListObject *)list)->ob_item[index];
    if (known == NULL && PyFloat_CheckExact(old) && Py_REFCNT(old) == 1) {
        ((PyFloatObject *)old)->ob_fval = value;
        return old;
    }
    return put(list, index, float_item(known, value));
}

static PyObject *put_int(PyObject *list, int64_t index, int64_t value, PyObject *known)
{
    return put(list, index, int_item(known, value));
}

static PyObject *put_bool(PyObject *list, int64_t index, int64_t value, PyObject *Py_UNUSED(known))
{
    return put(list, index, PyBool_FromLong(value != 0));
}

static PyObject *put_object(PyObject *list, int64_t index, PyObject *item)
{
    return put(list, index, Py_NewRef(item));
}

static PyObject *append_float(PyObject *list, double value, PyObject *known)
{
    return append(list, float_item(known, value));
}

static PyObject *append_int(PyObject *list, int64_t value, PyObject *known)
{
    return append(list, int_item(known, value));
}

static PyObject *append_bool(PyObject *list, int64_t value, PyObject *Py_UNUSED(known))
{
    return append(list, PyBool_FromLong(value != 0));
}

static PyObject *append_object(PyObject *list, PyObject *item)
{
    return append(list, Py_NewRef(item));
}

static int add_number(PyObject *dict, const char *name, PyObject *stolen)
{
    int status = stolen == NULL ? -1 : PyDict_SetItemString(dict, name, stolen);
    Py_XDECREF(stolen);
    return status;
}

static int add_function(PyObject *dict, const char *name, void *address)
{
    return add_number(dict, name, PyLong_FromVoidPtr(address));
}

static const struct {
    const char *name;
    size_t offset;
} layout[] = {
    {"type", offsetof(PyObject, ob_type)},
    {"size", offsetof(PyVarObject, ob_size)},
    {"list_items", offsetof(PyListObject, ob_item)},
    {"float_value", offsetof(PyFloatObject, ob_fval)},
#if PY_VERSION_HEX >= 0x030C0000
    {"int_tag", offsetof(PyLongObject, long_value.lv_tag)},
    {"int_digit", offsetof(PyLongObject, long_value.ob_digit)},
#else
    {"int_tag", offsetof(PyVarObject, ob_size)},     {"int_digit", offsetof(PyLongObject, ob_digit)},
#endif
};

/* The functions that CPython's own float, complex and math call. */
#define OF_ONE(name) {#name, (uintptr_t)(double (*)(double))name}
#define OF_TWO(name) {#name, (uintptr_t)(double (*)(double, double))name}
static const struct {
    const char *name;
    uintptr_t address;
} mathematics[] = {
    OF_ONE(sin),   OF_ONE(cos),   OF_ONE(tan),   OF_ONE(asin),  OF_ONE(acos),  OF_ONE(atan),
    OF_ONE(sinh),  OF_ONE(cosh),  OF_ONE(tanh),  OF_ONE(asinh), OF_ONE(acosh), OF_ONE(atanh),
    OF_ONE(exp),   OF_ONE(expm1), OF_ONE(log),   OF_ONE(log2),  OF_ONE(log10), OF_ONE(log1p),
    OF_TWO(atan2), OF_TWO(fmod),  OF_TWO(hypot), OF_TWO(pow),
};

static int fill(PyObject *dict)
{
    for (size_t i = 0; i < sizeof mathematics / sizeof mathematics[0]; i++)
        if (add_function(dict, mathematics[i].name, (void *)mathematics[i].address) < 0)
            return -1;
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        if (add_number(dict, layout[i].name, PyLong_FromSize_t(layout[i].offset)) < 0)
            return -1;
    if (add_function(dict, "put_object", (void *)(uintptr_t)put_object) < 0 ||
        add_function(dict, "append_object", (void *)(uintptr_t)append_object) < 0 ||
        add_function(dict, "put_float", (void *)(uintptr_t)put_float) < 0 ||
        add_function(dict, "put_int", (void *)(uintptr_t)put_int) < 0 ||
        add_function(dict, "put_bool", (void *)(uintptr_t)put_bool) < 0 ||
        add_function(dict, "append_float", (void *)(uintptr_t)append_float) < 0 ||
        add_function(dict, "append_int", (void *)(uintptr_t)append_int) < 0)
        return -1;
    return add_function(dict, "append_bool", (void *)(uintptr_t)append_bool);
}

int loop_helpers_add_to_module(PyObject *module)
{
    PyObject *helpers = PyDict_New();
    int status = helpers == NULL || fill(helpers) < 0 ? -1 : PyModule_AddObjectRef(module, "LOOP_HELPERS", helpers);
    Py_XDECREF(helpers);
    return status;
}
