/* An object attached to a code object, and constants of enclosing code replaced in place. */
#include "site.h"

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

static Py_ssize_t extra_index = -1;

/* The slot holds this box rather than the object, so that replacing the object can release the old one last. */
typedef struct {
    PyObject *object;
} Box;

static void box_free(void *p)
{
    Box *box = p;
    if (box != NULL) {
        PyObject *old = box->object;
        PyMem_Free(box);
        Py_XDECREF(old);
    }
}

static int check_code(PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "expected a code object, not %s", Py_TYPE(code)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *code_extra_get(PyObject *module, PyObject *code)
{
    void *extra = NULL;
    if (check_code(code) < 0 || PyUnstable_Code_GetExtra(code, extra_index, &extra) < 0) {
        return NULL;
    }
    PyObject *object = extra == NULL ? NULL : ((Box *)extra)->object;
    return Py_NewRef(object == NULL ? Py_None : object);
}

static PyObject *code_extra_set(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    void *extra = NULL;
    if (nargs != 2) {
        PyErr_Format(PyExc_TypeError, "code_extra_set() takes 2 arguments (%zd given)", nargs);
        return NULL;
    }
    if (check_code(args[0]) < 0 || PyUnstable_Code_GetExtra(args[0], extra_index, &extra) < 0) {
        return NULL;
    }
    Box *box = extra;
    if (box == NULL) {
        box = PyMem_Calloc(1, sizeof *box);
        if (box == NULL) {
            return PyErr_NoMemory();
        }
        if (PyUnstable_Code_SetExtra(args[0], extra_index, box) < 0) {
            PyMem_Free(box);
            return NULL;
        }
    }
    PyObject *old = box->object;
    box->object = Py_IsNone(args[1]) ? NULL : Py_NewRef(args[1]);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyObject *patch_constant(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 3) {
        PyErr_Format(PyExc_TypeError, "patch_constant() takes 3 arguments (%zd given)", nargs);
        return NULL;
    }
    if (check_code(args[0]) < 0 || check_code(args[2]) < 0) {
        return NULL;
    }
    Py_ssize_t index = PyNumber_AsSsize_t(args[1], PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *consts = ((PyCodeObject *)args[0])->co_consts;
    if (index < 0 || index >= PyTuple_GET_SIZE(consts)) {
        PyErr_Format(PyExc_IndexError, "the code object has no constant %zd", index);
        return NULL;
    }
    PyObject *old = PyTuple_GET_ITEM(consts, index);
    if (check_code(old) < 0) {
        return NULL;
    }
    /* The closure that MAKE_FUNCTION attaches was built for the old one. */
    if (((PyCodeObject *)old)->co_nfreevars != ((PyCodeObject *)args[2])->co_nfreevars) {
        PyErr_SetString(PyExc_ValueError, "the replacement has another number of free variables");
        return NULL;
    }
    PyTuple_SET_ITEM(consts, index, Py_NewRef(args[2]));
    Py_DECREF(old);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"code_extra_get", code_extra_get, METH_O,
     PyDoc_STR("The object attached to a code object by code_extra_set, or None.")},
    {"code_extra_set", (PyCFunction)(void (*)(void))code_extra_set, METH_FASTCALL,
     PyDoc_STR("Attaches an object to a code object (None: takes it away). The collector does not see it.")},
    {"patch_constant", (PyCFunction)(void (*)(void))patch_constant, METH_FASTCALL,
     PyDoc_STR("Replaces the code object co_consts[index] of enclosing code in place.")},
    {NULL, NULL, 0, NULL},
};

int code_extra_add_to_module(PyObject *module)
{
    if (extra_index < 0) {
        extra_index = PyUnstable_Eval_RequestCodeExtraIndex(box_free);
    }
    if (extra_index < 0) {
        PyErr_SetString(PyExc_RuntimeError, "CPython has no slot left for data attached to code objects");
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
