/* NumPy's C API: binding, the table of element types, metadata keys, error state, inner loops of ufuncs. */
#define TIERUP_NUMPY_MAIN
#include "numpy_api.h"
#include "flags.h"

ElementType element_types[NTYPES];

static int ready;
static PyObject *get_error_state; /* numpy's own C function, or np.geterr */
static PyObject
    *error_state_var; /* the context variable that holds the state, an opaque and immutable object; or NULL */
static PyTypeObject *ufunc_type;

static void element(int type, size_t size, char kind, int canonical)
{
    element_types[type].size = (int)size;
    element_types[type].kind = kind;
    element_types[type].canonical = canonical;
}

void element_types_init(void)
{
    element(NPY_BOOL, 1, 'b', NPY_BOOL);
    element(NPY_BYTE, 1, 'i', NPY_BYTE);
    element(NPY_UBYTE, 1, 'u', NPY_UBYTE);
    element(NPY_SHORT, sizeof(short), 'i', NPY_SHORT);
    element(NPY_USHORT, sizeof(short), 'u', NPY_USHORT);
    element(NPY_INT, sizeof(int), 'i', NPY_INT);
    element(NPY_UINT, sizeof(int), 'u', NPY_UINT);
    element(NPY_LONG, sizeof(long), 'i', NPY_LONG);
    element(NPY_ULONG, sizeof(long), 'u', NPY_ULONG);
    element(NPY_LONGLONG, sizeof(long long), 'i', sizeof(long) == 8 ? NPY_LONG : NPY_LONGLONG);
    element(NPY_ULONGLONG, sizeof(long long), 'u', sizeof(long) == 8 ? NPY_ULONG : NPY_ULONGLONG);
    element(NPY_FLOAT, 4, 'f', NPY_FLOAT);
    element(NPY_DOUBLE, 8, 'f', NPY_DOUBLE);
    element(NPY_CFLOAT, 8, 'c', NPY_CFLOAT);
    element(NPY_CDOUBLE, 16, 'c', NPY_CDOUBLE);
}

int numpy_ready(void)
{
    return ready;
}

static PyObject *attribute_of(const char *module, const char *name)
{
    PyObject *m = PyImport_ImportModule(module);
    if (m == NULL)
        return NULL;
    PyObject *value = PyObject_GetAttrString(m, name);
    Py_DECREF(m);
    return value;
}

static int bind_types(void)
{
    for (int t = 0; t < NTYPES; t++) {
        if (!type_handled(t))
            continue;
        PyArray_Descr *descr = PyArray_DescrFromType(t);
        if (descr == NULL)
            return -1;
        element_types[t].descr = descr;
        element_types[t].scalar = descr->typeobj;
    }
    return 0;
}

static int bind_numpy(void)
{
    if (PyArray_ImportNumPyAPI() < 0 || bind_types() < 0)
        return -1;
    get_error_state = attribute_of("numpy._core._multiarray_umath", "_get_extobj_dict");
    if (get_error_state == NULL) {
        PyErr_Clear(); /* private name: the public function says the same, more slowly */
        get_error_state = attribute_of("numpy", "geterr");
    }
    error_state_var = attribute_of("numpy._core._multiarray_umath", "_extobj_contextvar");
    if (error_state_var == NULL || !PyContextVar_CheckExact(error_state_var)) {
        PyErr_Clear(); /* without it the state is asked for each time */
        Py_CLEAR(error_state_var);
    }
    ufunc_type = (PyTypeObject *)attribute_of("numpy", "ufunc");
    if (get_error_state == NULL || ufunc_type == NULL)
        return -1;
    ready = 1;
    return 0;
}

PyObject *py_init_numpy(PyObject *self, PyObject *unused)
{
    if (!ready && bind_numpy() < 0)
        return NULL;
    Py_RETURN_NONE;
}

bool array_check_exact(PyObject *o)
{
    return ready && PyArray_CheckExact(o);
}

/* NPY_ARRAY_WARN_ON_WRITE, which NumPy sets on what broadcast_arrays returns: the first write warns. */
#define WARN_ON_WRITE ((int)(1u << 31))

uint64_t array_key(PyObject *ndarray)
{
    PyArrayObject *a = (PyArrayObject *)ndarray;
    int type = PyArray_TYPE(a);
    int flags = PyArray_FLAGS(a);
    /* Results inherit a dtype's metadata, and a first write may have to warn: neither is an ordinary array. */
    bool ordinary =
        type >= 0 && type < 255 && !(flags & WARN_ON_WRITE) && PyDataType_METADATA(PyArray_DESCR(a)) == NULL;
    uint64_t key = ordinary ? (uint64_t)type : 255;
    key |= (uint64_t)(PyArray_NDIM(a) & 255) << 8;
    key |= (uint64_t)((flags & NPY_ARRAY_C_CONTIGUOUS) != 0) << 16;
    key |= (uint64_t)((flags & NPY_ARRAY_F_CONTIGUOUS) != 0) << 17;
    key |= (uint64_t)((flags & NPY_ARRAY_ALIGNED) != 0) << 18;
    key |= (uint64_t)((flags & NPY_ARRAY_WRITEABLE) != 0) << 19;
    key |= (uint64_t)(PyArray_ISNOTSWAPPED(a) != 0) << 20;
    key |= (uint64_t)((flags & NPY_ARRAY_OWNDATA) == 0) << 21;
    bool empty = false;
    for (int i = 0; i < PyArray_NDIM(a); i++)
        empty |= PyArray_DIM(a, i) == 0;
    return key | (uint64_t)empty << 22;
}

PyObject *py_array_key(PyObject *self, PyObject *a)
{
    if (!array_check_exact(a)) {
        PyErr_SetString(PyExc_TypeError, "array_key() takes an exact numpy.ndarray");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(array_key(a));
}

bool array_dtype_equal(PyObject *value, PyObject *dtype)
{
    if (!ready || !PyArray_DescrCheck(value) || !PyArray_DescrCheck(dtype))
        return false;
    if (value == dtype)
        return true;
    PyArray_Descr *a = (PyArray_Descr *)value, *b = (PyArray_Descr *)dtype;
    /* Only builtin numeric dtypes: EquivTypes of anything else may run Python code. */
    return a->type_num == b->type_num && a->type_num < NPY_OBJECT && PyArray_ISNBO(a->byteorder) &&
           PyArray_ISNBO(b->byteorder);
}

static bool is_ignored(PyObject *state, const char *key)
{
    PyObject *value = PyDict_GetItemString(state, key);
    return value != NULL && PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "ignore") == 0;
}

/* *plain: the state refers to no object of the user. */
static int read_error_state(bool *plain)
{
    *plain = false;
    PyObject *state = PyObject_CallNoArgs(get_error_state);
    if (state == NULL || !PyDict_Check(state)) {
        Py_XDECREF(state);
        PyErr_Clear(); /* not knowing is a miss: the caller falls back to NumPy itself */
        return 0;
    }
    int ignored = (is_ignored(state, "divide") ? FP_DIVIDE : 0) | (is_ignored(state, "over") ? FP_OVERFLOW : 0) |
                  (is_ignored(state, "under") ? FP_UNDERFLOW : 0) | (is_ignored(state, "invalid") ? FP_INVALID : 0);
    *plain = PyDict_GetItemString(state, "call") == Py_None;
    Py_DECREF(state);
    return ignored;
}

int errstate_ignored(void)
{
    static PyObject *last_state; /* strong, so that its address is not used again */
    static int last_ignored;
    PyObject *state = NULL;
    bool plain;
    if (error_state_var == NULL || PyContextVar_Get(error_state_var, Py_None, &state) < 0) {
        PyErr_Clear();
        return read_error_state(&plain);
    }
    if (state != last_state) {
        int ignored = read_error_state(&plain);
        if (!plain) { /* do not keep the user's handler alive */
            Py_DECREF(state);
            return ignored;
        }
        Py_XSETREF(last_state, Py_NewRef(state));
        last_ignored = ignored;
    }
    Py_DECREF(state);
    return last_ignored;
}

static bool signature_matches(const PyUFuncObject *ufunc, int loop, const char *wanted)
{
    const char *types = ufunc->types + loop * ufunc->nargs;
    int position = 0;
    for (int i = 0; i < ufunc->nargs; i++) {
        if (i == ufunc->nin) {
            if (wanted[position] != '-' || wanted[position + 1] != '>')
                return false;
            position += 2;
        }
        PyArray_Descr *descr = PyArray_DescrFromType(types[i]);
        if (descr == NULL) {
            PyErr_Clear();
            return false;
        }
        char letter = descr->type;
        Py_DECREF(descr);
        if (wanted[position] != letter)
            return false;
        position++;
    }
    return wanted[position] == 0;
}

PyObject *py_ufunc_loop(PyObject *self, PyObject *args)
{
    PyObject *object;
    const char *signature;
    if (!PyArg_ParseTuple(args, "Os:ufunc_loop", &object, &signature))
        return NULL;
    if (!ready || Py_TYPE(object) != ufunc_type) {
        PyErr_SetString(PyExc_TypeError, ready ? "ufunc_loop() takes a numpy.ufunc" : "init_numpy() was not called");
        return NULL;
    }
    PyUFuncObject *ufunc = (PyUFuncObject *)object;
    for (int loop = 0; loop < ufunc->ntypes; loop++) {
        if (ufunc->functions == NULL || ufunc->types == NULL || !signature_matches(ufunc, loop, signature))
            continue;
        if (ufunc->functions[loop] == NULL)
            break;
        void *data = ufunc->data == NULL ? NULL : (void *)ufunc->data[loop];
        PyObject *function = PyLong_FromVoidPtr((void *)ufunc->functions[loop]);
        PyObject *pointer = PyLong_FromVoidPtr(data);
        return Py_BuildValue("(NN)", function, pointer);
    }
    Py_RETURN_NONE;
}

PyObject *py_dot_function(PyObject *self, PyObject *arg)
{
    long type = PyLong_AsLong(arg);
    if (type == -1 && PyErr_Occurred())
        return NULL;
    if (!ready || type < 0 || type >= NTYPES || !type_handled((int)type))
        Py_RETURN_NONE;
    PyArray_DotFunc *function = PyDataType_GetArrFuncs(element_types[type].descr)->dotfunc;
    if (function == NULL)
        Py_RETURN_NONE;
    return PyLong_FromVoidPtr((void *)function);
}
