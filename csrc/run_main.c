/* Runs a program's main function as the interpreter itself would: at the bottom of the stack of frames.
 *
 * `tierup run` is a Python program that starts another one. Its own frames would show in sys._getframe, inspect.stack,
 * warnings' stacklevel and tracebacks, and would take a part of the recursion limit. So they are unlinked from the
 * thread state while the program runs: a new frame then has no predecessor, as CPython's pymain_run_python leaves it.
 */
#include "tierup.h"

typedef struct {
    struct _PyInterpreterFrame *frame;
    int depth; /* Python frames that count against the recursion limit */
} Below;

#if PY_VERSION_HEX >= 0x030D0000
#define CURRENT_FRAME(ts) ((ts)->current_frame)
#else
#define CURRENT_FRAME(ts) ((ts)->cframe->current_frame)
#endif
#if PY_VERSION_HEX >= 0x030C0000
#define RECURSION_LIMIT(ts) ((ts)->py_recursion_limit)
#define RECURSION_REMAINING(ts) ((ts)->py_recursion_remaining)
#else
#define RECURSION_LIMIT(ts) ((ts)->recursion_limit)
#define RECURSION_REMAINING(ts) ((ts)->recursion_remaining)
#endif

static Below unlink_frames(PyThreadState *ts)
{
    Below below = {CURRENT_FRAME(ts), RECURSION_LIMIT(ts) - RECURSION_REMAINING(ts)};
    CURRENT_FRAME(ts) = NULL;
    RECURSION_REMAINING(ts) += below.depth;
    return below;
}

static void link_frames(PyThreadState *ts, Below below)
{
    CURRENT_FRAME(ts) = below.frame;
    RECURSION_REMAINING(ts) -= below.depth;
}

/* Writes out what is buffered in sys.stdout and sys.stderr, as CPython does before it shows an exception; errors are
 * dropped there, too. */
static void flush_streams(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    static const char *const names[] = {"stderr", "stdout"};
    for (size_t k = 0; k < 2; k++) {
        PyObject *stream = PySys_GetObject(names[k]); /* borrowed */
        if (stream != NULL) {
            Py_INCREF(stream);
            PyObject *result = PyObject_CallMethod(stream, "flush", NULL);
            Py_XDECREF(result);
            Py_DECREF(stream);
            PyErr_Clear();
        }
    }
    PyErr_Restore(type, value, trace);
}

/* Executes a code object in a namespace, or calls a function with a tuple of arguments. */
static PyObject *start_program(PyObject *what, PyObject *with)
{
    if (!PyCode_Check(what)) {
        return PyObject_Call(what, with, NULL);
    }
    if (PySys_Audit("exec", "O", what) < 0) {
        return NULL;
    }
    return PyEval_EvalCode(what, with, with);
}

PyDoc_STRVAR(run_main_doc,
             "run_main(what, with, /)\n--\n\n"
             "Runs a program without any frame below it, as the interpreter does, and returns its exit code.\n\n"
             "what, with: a code object and its namespace, or a function and its arguments. 0: it ended; 1: its\n"
             "exception was shown by sys.excepthook; -1: likewise, and it was a KeyboardInterrupt.\n"
             "SystemExit comes out.");

static PyObject *run_main(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *what, *with;
    if (!PyArg_ParseTuple(arguments, "OO:run_main", &what, &with)) {
        return NULL;
    }
    if (PyCode_Check(what) ? !PyDict_Check(with) : !PyTuple_Check(with)) {
        PyErr_SetString(PyExc_TypeError, "run_main() needs a code object and a dict, or a function and a tuple");
        return NULL;
    }
    PyThreadState *ts = PyThreadState_Get();
    Below below = unlink_frames(ts);
    PyObject *result = start_program(what, with);
    flush_streams();
    long code = 0;
    bool exits = false;
    if (result == NULL) {
        exits = PyErr_ExceptionMatches(PyExc_SystemExit);
        /* Not subclasses: run_eval_code_obj in CPython compares in this way, too. */
        code = PyErr_Occurred() == PyExc_KeyboardInterrupt ? -1 : 1;
        if (!exits) {
            PyErr_Print();
        }
    }
    Py_XDECREF(result);
    link_frames(ts, below);
    return exits ? NULL : PyLong_FromLong(code);
}

/* exec(code, globals) as importlib and runpy call it, with prepare(code, globals) in between. Being a C function, it
 * leaves no frame in tracebacks, and self is prepare. */
static PyObject *exec_prepared(PyObject *prepare, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !PyCode_Check(args[0]) || !PyDict_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "expected a code object and a dict");
        return NULL;
    }
    PyObject *globals = args[1];
    PyObject *code = PyObject_CallFunctionObjArgs(prepare, args[0], globals, NULL);
    if (code == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    if (!PyCode_Check(code)) {
        PyErr_SetString(PyExc_TypeError, "prepare() must return a code object");
    } else if (PyDict_GetItemString(globals, "__builtins__") != NULL ||
               PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) == 0) {
        result = start_program(code, globals);
    }
    Py_DECREF(code);
    return result;
}

static PyMethodDef exec_definition = {"exec", (PyCFunction)(void (*)(void))exec_prepared, METH_FASTCALL, NULL};

PyDoc_STRVAR(make_exec_doc, "make_exec(prepare, /)\n--\n\n"
                            "A function exec(code, globals) that executes prepare(code, globals) instead of the code.");

static PyObject *make_exec(PyObject *Py_UNUSED(module), PyObject *prepare)
{
    return PyCFunction_New(&exec_definition, prepare);
}

static PyMethodDef methods[] = {
    {"run_main", run_main, METH_VARARGS, run_main_doc},
    {"make_exec", make_exec, METH_O, make_exec_doc},
    {NULL, NULL, 0, NULL},
};

int run_main_add_to_module(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
