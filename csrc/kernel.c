/* The Kernel type: a native function and what the launcher must know of it. */
#include "plan.h"
#include <structmember.h>

/* Copies a sequence of ints. Returns its length, or -1 with an exception set. *out is NULL for an empty one. */
static int read_ints(PyObject *sequence, const char *what, int **out)
{
    *out = NULL;
    PyObject *fast = PySequence_Fast(sequence, what);
    if (fast == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int *items = n > 0 ? PyMem_Malloc((size_t)n * sizeof(int)) : NULL;
    if (n > 1 << 20 || (n > 0 && items == NULL)) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        long value = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));
        if (value == -1 && PyErr_Occurred())
            goto fail;
        if (value < -(1L << 24) || value > 1L << 24) {
            PyErr_Format(PyExc_ValueError, "%s: %ld is out of range", what, value);
            goto fail;
        }
        items[i] = (int)value;
    }
    Py_DECREF(fast);
    *out = items;
    return (int)n;
fail:
    PyMem_Free(items);
    Py_DECREF(fast);
    return -1;
}

/* The three lists of operand types, appended to k->types in canonical form. */
static int read_types(KernelObject *k, PyObject *const sequences[3])
{
    static const char *const names[3] = {"in_types", "scalar_types", "out_types"};
    int *counts[3] = {&k->nin, &k->nscalars, &k->nout};
    k->types = PyMem_Calloc(MAX_OPERANDS, sizeof(int));
    if (k->types == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int part = 0; part < 3; part++) {
        int *types;
        int n = read_ints(sequences[part], names[part], &types);
        if (n < 0)
            return -1;
        bool fits = k->nops + n <= MAX_OPERANDS;
        for (int i = 0; fits && i < n; i++) {
            if (!type_handled(types[i])) {
                PyErr_Format(PyExc_ValueError, "%s: type number %d is not handled", names[part], types[i]);
                PyMem_Free(types);
                return -1;
            }
            k->types[k->nops + i] = element_types[types[i]].canonical;
        }
        PyMem_Free(types);
        if (!fits) {
            PyErr_Format(PyExc_ValueError, "a kernel has at most %d operands", MAX_OPERANDS);
            return -1;
        }
        *counts[part] = n;
        k->nops += n;
    }
    if (k->nin == 0 || k->nout == 0) {
        PyErr_SetString(PyExc_ValueError, "a kernel needs at least one array input and one output");
        return -1;
    }
    k->all_inputs = k->nin == 64 ? ~(uint64_t)0 : ((uint64_t)1 << k->nin) - 1;
    return 0;
}

static void *pointer_item(PyObject *pair, Py_ssize_t i)
{
    return PyLong_AsVoidPtr(PyTuple_GET_ITEM(pair, i));
}

static int read_functions(KernelObject *k, PyObject *sequence, PyObject *address, bool numpy_loop)
{
    PyObject *fast = PySequence_Fast(sequence, "functions must be a sequence");
    if (fast == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    k->functions = PyMem_Calloc((size_t)(2 * n + 1), sizeof(void *));
    if (k->functions == NULL) {
        Py_DECREF(fast);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(fast, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
            Py_DECREF(fast);
            PyErr_SetString(PyExc_TypeError, "functions must hold (function, data) tuples");
            return -1;
        }
        k->functions[2 * i] = pointer_item(pair, 0);
        k->functions[2 * i + 1] = pointer_item(pair, 1);
    }
    Py_DECREF(fast);
    void *function = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return -1;
    if (function == NULL) {
        PyErr_SetString(PyExc_ValueError, "address is null");
        return -1;
    }
    if (numpy_loop) {
        k->loop = (PyUFuncGenericFunction)function;
        k->loop_data = n > 0 ? k->functions[1] : NULL;
    } else {
        k->function = (KernelFunction)function;
    }
    return 0;
}

/* ---- layout -------------------------------------------------------------------------------------------------------
 */

static int check_layout_op(KernelObject *k, int index)
{
    LayoutOp *op = &k->layout[index];
    for (int i = 0; i < op->count; i++) {
        int *operand = &k->layout_operands[op->first + i];
        int flags = *operand & LAYOUT_FLAGS, number = *operand & ~LAYOUT_FLAGS;
        if (*operand < 0 || number >= k->nin + index || (flags & LAYOUT_COPY && op->count != 1)) {
            PyErr_Format(PyExc_ValueError, "layout: operation %d has a bad operand %d", index, *operand);
            return -1;
        }
        if (flags)
            k->plain_layout = false;
        op->flags |= flags & ~LAYOUT_CAST;
        op->inputs |= number < k->nin ? (uint64_t)1 << number : k->layout[number - k->nin].inputs;
    }
    if (op->flags & LAYOUT_COPY)
        k->has_copy = true;
    return 0;
}

static int read_layout_ops(KernelObject *k, PyObject *fast)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    if (n > 4096) {
        PyErr_SetString(PyExc_ValueError, "layout is too long");
        return -1;
    }
    k->layout = PyMem_Calloc((size_t)n + 1, sizeof(LayoutOp));
    if (k->layout == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int total = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        int *operands;
        int count = read_ints(PySequence_Fast_GET_ITEM(fast, i), "layout", &operands);
        if (count < 0)
            return -1;
        if (count > MAX_OPERANDS) {
            PyMem_Free(operands);
            PyErr_Format(PyExc_ValueError, "layout: operation %zd has too many operands", i);
            return -1;
        }
        int *grown = PyMem_Realloc(k->layout_operands, (size_t)(total + count + 1) * sizeof(int));
        if (grown == NULL) {
            PyMem_Free(operands);
            PyErr_NoMemory();
            return -1;
        }
        k->layout_operands = grown;
        if (count > 0)
            memcpy(grown + total, operands, (size_t)count * sizeof(int));
        PyMem_Free(operands);
        k->layout[i].first = total;
        k->layout[i].count = count;
        total += count;
        k->nlayout = (int)i + 1;
        if (check_layout_op(k, (int)i) < 0)
            return -1;
    }
    return 0;
}

static int read_layout(KernelObject *k, PyObject *layout, PyObject *layout_out)
{
    k->plain_layout = true;
    k->outputs_full = true;
    if (layout != NULL) {
        PyObject *fast = PySequence_Fast(layout, "layout must be a sequence");
        if (fast == NULL)
            return -1;
        int failed = read_layout_ops(k, fast);
        Py_DECREF(fast);
        if (failed)
            return -1;
    }
    if (k->nlayout == 0)
        return 0;
    int n = layout_out == NULL ? 0 : read_ints(layout_out, "layout_out", &k->layout_out);
    if (n < 0)
        return -1;
    if (n != k->nout) {
        PyErr_SetString(PyExc_ValueError, "layout_out must name one operation per output");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (k->layout_out[i] < 0 || k->layout_out[i] >= k->nlayout) {
            PyErr_Format(PyExc_ValueError, "layout_out: there is no operation %d", k->layout_out[i]);
            return -1;
        }
        k->outputs_full = k->outputs_full && k->layout[k->layout_out[i]].inputs == k->all_inputs;
    }
    return 0;
}

/* ---- construction ---------------------------------------------------------------------------------------------------
 */

static int set_block(KernelObject *k, Py_ssize_t scratch, Py_ssize_t block)
{
    if (scratch < 0 || block < 0 || scratch > 1 << 16) {
        PyErr_SetString(PyExc_ValueError, "scratch_per_element and block must not be negative");
        return -1;
    }
    k->scratch_per_element = scratch;
    if (block == 0 && scratch > 0) { /* what keeps the scratch in the second-level cache */
        block = (1 << 18) / scratch & ~(Py_ssize_t)63;
        block = block < 64 ? 64 : block;
    }
    k->block = block == 0 ? NPY_MAX_INTP : block;
    return 0;
}

static int set_walk(KernelObject *k, int walk, bool calls)
{
    if (walk < -1 || walk > WALK_FLAT) {
        PyErr_SetString(PyExc_ValueError, "walk must be WALK_ANY, WALK_NUMPY or WALK_FLAT");
        return -1;
    }
    k->walk = walk >= 0 ? walk : calls ? WALK_NUMPY : WALK_ANY;
    return 0;
}

static int set_identity(KernelObject *k, PyObject *identity)
{
    if (identity == NULL || identity == Py_None)
        return 0;
    if (!PyBytes_Check(identity) || PyBytes_GET_SIZE(identity) > (Py_ssize_t)sizeof(Slot)) {
        PyErr_SetString(PyExc_TypeError, "identity must be bytes, at most 16");
        return -1;
    }
    memcpy(k->identity.raw, PyBytes_AS_STRING(identity), (size_t)PyBytes_GET_SIZE(identity));
    k->has_identity = true;
    return 0;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "address",   "in_types",     "scalar_types", "out_types", "scratch_per_element", "block",    "cost",
        "functions", "raises_flags", "x87_flags",    "layout",    "layout_out",          "identity", "numpy_loop",
        "keepalive", "walk",         "name",         NULL};
    PyObject *address, *types[3], *functions = NULL, *layout = NULL, *layout_out = NULL, *identity = NULL;
    PyObject *keepalive = Py_None, *name = NULL;
    Py_ssize_t scratch = 0, block = 0;
    double cost = 1.0;
    int raises = 1, x87 = 0, numpy_loop = 0, walk = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|$nndOppOOOpOiU:Kernel", names, &address, &types[0], &types[1],
                                     &types[2], &scratch, &block, &cost, &functions, &raises, &x87, &layout,
                                     &layout_out, &identity, &numpy_loop, &keepalive, &walk, &name))
        return NULL;
    KernelObject *k = (KernelObject *)type->tp_alloc(type, 0);
    PyObject *none = PyTuple_New(0);
    if (k == NULL || none == NULL)
        goto fail;
    k->cost = cost > 0 ? cost : 0;
    k->raises_flags = raises;
    k->x87_flags = x87;
    k->keepalive = Py_NewRef(keepalive);
    k->name = name == NULL ? PyUnicode_FromString("") : Py_NewRef(name);
    if (k->name == NULL || read_types(k, types) < 0 ||
        read_functions(k, functions == NULL ? none : functions, address, numpy_loop) < 0 ||
        read_layout(k, layout, layout_out) < 0 || set_block(k, scratch, block) < 0 ||
        set_walk(k, walk, numpy_loop || (functions != NULL && PyObject_IsTrue(functions) == 1)) < 0 ||
        set_identity(k, identity) < 0)
        goto fail;
    Py_DECREF(none);
    return (PyObject *)k;
fail:
    Py_XDECREF(none);
    Py_XDECREF(k);
    return NULL;
}

static int kernel_traverse(KernelObject *k, visitproc visit, void *arg)
{
    Py_VISIT(k->keepalive);
    return 0;
}

static void kernel_dealloc(KernelObject *k)
{
    PyObject_GC_UnTrack(k);
    PyMem_Free(k->types);
    PyMem_Free(k->functions);
    PyMem_Free(k->layout);
    PyMem_Free(k->layout_operands);
    PyMem_Free(k->layout_out);
    Py_XDECREF(k->keepalive);
    Py_XDECREF(k->name);
    Py_TYPE(k)->tp_free(k);
}

static PyObject *kernel_repr(KernelObject *k)
{
    return PyUnicode_FromFormat("<Kernel %U: %d inputs, %d scalars, %d outputs>", k->name, k->nin, k->nscalars,
                                k->nout);
}

static PyMemberDef kernel_members[] = {
    {"calls", T_ULONGLONG, offsetof(KernelObject, calls), READONLY, "Launches."},
    {"name", T_OBJECT_EX, offsetof(KernelObject, name), READONLY, "For listings."},
    {NULL},
};

PyTypeObject Kernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tierup._core.Kernel",
    .tp_doc = "A native function with NumPy's inner-loop shape, and what the launcher must know of it.",
    .tp_basicsize = sizeof(KernelObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_repr = (reprfunc)kernel_repr,
    .tp_members = kernel_members,
};
