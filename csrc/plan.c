/* The Plan type and what the module exports of plans. */
#include "plan.h"
#include <structmember.h>

PyObject *py_init_numpy(PyObject *self, PyObject *unused);
PyObject *py_array_key(PyObject *self, PyObject *a);
PyObject *py_ufunc_loop(PyObject *self, PyObject *args);
PyObject *py_dot_function(PyObject *self, PyObject *arg);
void pool_set_threads(int n);

/* ---- access for site.c --------------------------------------------------------------------------------------------
 */

int plan_run(PyObject *plan, Lookup *lookup, PyObject **regs, int *end)
{
    PlanObject *p = (PlanObject *)plan;
    int status = p->direct == NULL ? LATER : direct_run(p, lookup, regs);
    *end = 0;
    return status == LATER ? plan_execute(p, lookup, NULL, 0, regs, end) : status;
}

int plan_nobjects(PyObject *plan)
{
    return ((PlanObject *)plan)->nobjects;
}

int plan_nends(PyObject *plan)
{
    return ((PlanObject *)plan)->nends;
}

const ExitEntry *plan_end(PyObject *plan, int end, int *n)
{
    const PlanEnd *e = &((PlanObject *)plan)->ends[end];
    *n = e->n;
    return e->entries;
}

PyObject *plan_constant(PyObject *plan, int k)
{
    return ((PlanObject *)plan)->constant_items[k];
}

uint64_t plan_alarms(PyObject *plan)
{
    return ((PlanObject *)plan)->alarms;
}

/* ---- construction ---------------------------------------------------------------------------------------------------
 */

static int copy_code(PlanObject *p, const char *code, Py_ssize_t bytes)
{
    if (bytes % (Py_ssize_t)sizeof(int32_t) || bytes > INT32_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "plan: code must be whole 32-bit words");
        return -1;
    }
    p->ncode = (int)(bytes / (Py_ssize_t)sizeof(int32_t));
    p->code = PyMem_Malloc((size_t)bytes + sizeof(int32_t));
    if (p->code == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(p->code, code, (size_t)bytes);
    p->code[p->ncode] = OP_END;
    return 0;
}

static int copy_image(PlanObject *p, const char *image, Py_ssize_t bytes)
{
    if (bytes > (Py_ssize_t)p->nslots * (Py_ssize_t)sizeof(Slot)) {
        PyErr_SetString(PyExc_ValueError, "plan: slot_image is longer than the slots");
        return -1;
    }
    p->image = PyMem_Calloc((size_t)p->nslots + 1, sizeof(Slot));
    if (p->image == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(p->image, image, (size_t)bytes);
    return 0;
}

static int copy_exit(PlanEnd *end, PyObject *sequence)
{
    PyObject *fast = PySequence_Fast(sequence, "exit must be a sequence");
    if (fast == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    end->entries = PyMem_Calloc((size_t)n + 1, sizeof(ExitEntry));
    if (end->entries == NULL) {
        Py_DECREF(fast);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        int kind, slot, reg;
        PyObject *entry = PySequence_Fast_GET_ITEM(fast, i);
        if (!PyTuple_Check(entry)) {
            PyErr_SetString(PyExc_TypeError, "exit must hold (kind, slot, register) tuples");
            Py_DECREF(fast);
            return -1;
        }
        if (!PyArg_ParseTuple(entry, "iii:exit entry", &kind, &slot, &reg)) {
            Py_DECREF(fast);
            return -1;
        }
        end->entries[i] = (ExitEntry){kind, slot, reg};
    }
    end->n = (int)n;
    Py_DECREF(fast);
    return 0;
}

/* exits: a tuple of exits, or NULL: the one. */
static int copy_exits(PlanObject *p, PyObject *exit, PyObject *exits)
{
    Py_ssize_t n = exits == NULL ? 1 : PyTuple_GET_SIZE(exits);
    if (n < 1 || n > 4096) {
        PyErr_SetString(PyExc_ValueError, "plan: there must be one to 4096 exits");
        return -1;
    }
    p->ends = PyMem_Calloc((size_t)n, sizeof(PlanEnd));
    if (p->ends == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    p->nends = (int)n;
    for (Py_ssize_t i = 0; i < n; i++)
        if (copy_exit(&p->ends[i], exits == NULL ? exit : PyTuple_GET_ITEM(exits, i)) < 0)
            return -1;
    return 0;
}

static int take_kernels(PlanObject *p)
{
    Py_ssize_t n = PyTuple_GET_SIZE(p->kernels);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *k = PyTuple_GET_ITEM(p->kernels, i);
        if (Py_TYPE(k) != &Kernel_Type) {
            PyErr_SetString(PyExc_TypeError, "plan: kernels must be Kernel objects");
            return -1;
        }
        p->x87 = p->x87 || ((KernelObject *)k)->x87_flags;
    }
    p->kernel_items = (KernelObject **)&PyTuple_GET_ITEM(p->kernels, 0);
    p->constant_items = &PyTuple_GET_ITEM(p->constants, 0);
    return 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code",    "constants",  "kernels", "nobjects", "nslots",
                            "narrays", "slot_image", "exit",    "exits",    NULL};
    const char *code, *image;
    Py_ssize_t code_bytes, image_bytes;
    PyObject *constants, *kernels, *exit, *exits = NULL;
    int nobjects, nslots, narrays;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#O!O!iiiy#O|O!:Plan", names, &code, &code_bytes, &PyTuple_Type,
                                     &constants, &PyTuple_Type, &kernels, &nobjects, &nslots, &narrays, &image,
                                     &image_bytes, &exit, &PyTuple_Type, &exits))
        return NULL;
    if (nobjects < 0 || nslots < 0 || narrays < 0 || nobjects > 1 << 20 || nslots > 1 << 20 || narrays > 1 << 16) {
        PyErr_SetString(PyExc_ValueError, "plan: register counts are out of range");
        return NULL;
    }
    PlanObject *p = (PlanObject *)type->tp_alloc(type, 0);
    if (p == NULL)
        return NULL;
    p->nobjects = nobjects;
    p->nslots = nslots;
    p->narrays = narrays;
    p->constants = Py_NewRef(constants);
    p->kernels = Py_NewRef(kernels);
    if (take_kernels(p) < 0 || copy_code(p, code, code_bytes) < 0 || copy_image(p, image, image_bytes) < 0 ||
        copy_exits(p, exit, exits) < 0 || plan_validate(p) < 0 || direct_recognise(p) < 0) {
        Py_DECREF(p);
        return NULL;
    }
    return (PyObject *)p;
}

static int plan_traverse(PlanObject *p, visitproc visit, void *arg)
{
    Py_VISIT(p->constants);
    Py_VISIT(p->kernels);
    return 0;
}

static void plan_dealloc(PlanObject *p)
{
    PyObject_GC_UnTrack(p);
    PyMem_Free(p->code);
    PyMem_Free(p->image);
    for (int i = 0; i < p->nends; i++)
        PyMem_Free(p->ends[i].entries);
    PyMem_Free(p->ends);
    PyMem_Free(p->direct);
    Py_XDECREF(p->constants);
    Py_XDECREF(p->kernels);
    Py_TYPE(p)->tp_free(p);
}

static PyMemberDef plan_members[] = {
    {"runs", T_ULONGLONG, offsetof(PlanObject, runs), READONLY, "Executions, misses included."},
    {"left", T_ULONGLONG, offsetof(PlanObject, left), READONLY, "Runs that were misses, for whatever reason."},
    {"alarms", T_ULONGLONG, offsetof(PlanObject, alarms), READONLY, "Misses because of a floating-point flag."},
    {NULL},
};

PyTypeObject Plan_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tierup._core.Plan",
    .tp_doc = "A compiled specialisation body; immutable.",
    .tp_basicsize = sizeof(PlanObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = plan_new,
    .tp_dealloc = (destructor)plan_dealloc,
    .tp_traverse = (traverseproc)plan_traverse,
    .tp_members = plan_members,
};

/* ---- module functions
 * ------------------------------------------------------------------------------------------------- */

static PyObject *registers_as_list(PyObject **regs, int n)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *item = regs[i] == NULL ? Py_NewRef(Py_None) : regs[i];
        if (list == NULL)
            Py_DECREF(item);
        else
            PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *py_run_plan(PyObject *self, PyObject *args)
{
    PyObject *plan, *values;
    if (!PyArg_ParseTuple(args, "O!O!:run_plan", &Plan_Type, &plan, &PyList_Type, &values))
        return NULL;
    PlanObject *p = (PlanObject *)plan;
    PyObject **regs = PyMem_Calloc((size_t)p->nobjects + 1, sizeof(PyObject *));
    PyObject *held = PyList_AsTuple(values);
    if (regs == NULL || held == NULL) {
        Py_XDECREF(held);
        PyMem_Free(regs);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    int end = 0;
    int status = plan_execute(p, NULL, &PyTuple_GET_ITEM(held, 0), PyTuple_GET_SIZE(held), regs, &end);
    Py_DECREF(held);
    PyObject *list = status < 0 ? NULL : registers_as_list(regs, p->nobjects);
    PyMem_Free(regs);
    return list == NULL ? NULL : Py_BuildValue("(iN)", status, list);
}

/* Processor time per run, without the cost of calling: for the lab and for tests of speed. */
static PyObject *py_time_plan(PyObject *self, PyObject *args)
{
    PyObject *plan, *values;
    int count;
    if (!PyArg_ParseTuple(args, "O!O!i:time_plan", &Plan_Type, &plan, &PyTuple_Type, &values, &count))
        return NULL;
    PlanObject *p = (PlanObject *)plan;
    PyObject **regs = PyMem_Calloc((size_t)p->nobjects + 1, sizeof(PyObject *));
    if (regs == NULL)
        return PyErr_NoMemory();
    struct timespec start, stop;
    int status = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (int i = 0; status == 0 && i < count; i++) {
        int end;
        status = plan_execute(p, NULL, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values), regs, &end);
        for (int r = 0; r < p->nobjects; r++)
            Py_CLEAR(regs[r]);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &stop);
    PyMem_Free(regs);
    if (status < 0)
        return NULL;
    double ns = (double)(stop.tv_sec - start.tv_sec) * 1e9 + (double)(stop.tv_nsec - start.tv_nsec);
    return Py_BuildValue("(id)", status, count > 0 ? ns / count : 0.0);
}

static PyObject *py_set_num_threads(PyObject *self, PyObject *arg)
{
    long n = PyLong_AsLong(arg);
    if (n == -1 && PyErr_Occurred())
        return NULL;
    if (n < 1 || n > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "the number of threads must be positive");
        return NULL;
    }
    pool_set_threads((int)n);
    Py_RETURN_NONE;
}

static PyObject *py_num_threads(PyObject *self, PyObject *unused)
{
    return PyLong_FromLong(pool_threads());
}

static PyObject *py_set_launch_limits(PyObject *self, PyObject *args)
{
    double thread_ns, gil_ns;
    if (!PyArg_ParseTuple(args, "dd:set_launch_limits", &thread_ns, &gil_ns))
        return NULL;
    set_launch_limits(thread_ns, gil_ns);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"init_numpy", py_init_numpy, METH_NOARGS, "Binds NumPy's C API (imports numpy). Idempotent."},
    {"array_key", py_array_key, METH_O, "64-bit metadata key of an exact ndarray."},
    {"ufunc_loop", py_ufunc_loop, METH_VARARGS,
     "(function, data) pointers of a ufunc's first loop with that signature, or None."},
    {"dot_function", py_dot_function, METH_O,
     "Address of NumPy's dot product of two vectors of a type number, or None."},
    {"run_plan", py_run_plan, METH_VARARGS,
     "run_plan(plan, values) -> (status, object registers). For tests: expression e is values[e]."},
    {"time_plan", py_time_plan, METH_VARARGS,
     "time_plan(plan, values: tuple, count) -> (status, nanoseconds per run)."},
    {"set_num_threads", py_set_num_threads, METH_O, "Sets how many threads large kernels may use."},
    {"num_threads", py_num_threads, METH_NOARGS, "How many threads large kernels may use."},
    {"set_launch_limits", py_set_launch_limits, METH_VARARGS,
     "set_launch_limits(thread_ns, gil_ns): estimated work from which on a kernel uses threads, and runs without the "
     "GIL."},
    {NULL},
};

static int add_tables(PyObject *module)
{
    PyObject *ops = PyDict_New(), *operands = PyDict_New();
    int status = ops == NULL || operands == NULL ? -1 : 0;
    for (int op = 0; status == 0 && op < OP_END; op++) {
        PyObject *number = PyLong_FromLong(op), *text = PyUnicode_FromString(plan_op_operands[op]);
        if (number == NULL || text == NULL || PyDict_SetItemString(ops, plan_op_names[op], number) < 0 ||
            PyDict_SetItemString(operands, plan_op_names[op], text) < 0)
            status = -1;
        Py_XDECREF(number);
        Py_XDECREF(text);
    }
    if (status == 0 && (PyModule_AddObjectRef(module, "PLAN_OPS", ops) < 0 ||
                        PyModule_AddObjectRef(module, "PLAN_OPERANDS", operands) < 0))
        status = -1;
    Py_XDECREF(ops);
    Py_XDECREF(operands);
    return status;
}

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } constants[] = {{"EXIT_LOCAL", EXIT_LOCAL},   {"EXIT_STACK", EXIT_STACK},   {"EXIT_CELL", EXIT_CELL},
                     {"EXIT_NAME", EXIT_NAME},     {"LAYOUT_CAST", LAYOUT_CAST}, {"LAYOUT_ITER", LAYOUT_ITER},
                     {"LAYOUT_COPY", LAYOUT_COPY}, {"WALK_ANY", WALK_ANY},       {"WALK_NUMPY", WALK_NUMPY},
                     {"WALK_FLAT", WALK_FLAT}};
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0)
            return -1;
    return 0;
}

int plan_add_to_module(PyObject *module)
{
    element_types_init();
    if (PyModule_AddType(module, &Plan_Type) < 0 || PyModule_AddType(module, &Kernel_Type) < 0 ||
        add_tables(module) < 0 || add_constants(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
