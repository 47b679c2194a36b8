/* Site: the constant whose truth test is a place where a region may begin. */
#include "site.h"

#include <structmember.h>

#define NEVER INT64_MAX

static Py_ssize_t disabled_blocks; /* open `with tierup.disabled()` blocks of all threads */

/* ---- calling the translator ----------------------------------------------------------------------------------------
 */

static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL && value != NULL && PyException_SetTraceback(value, traceback) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* "ValueError: text (file.py:12)" */
static PyObject *describe(PyObject *exc)
{
    PyObject *text = PyObject_Str(exc);
    PyObject *traceback = PyException_GetTraceback(exc);
    PyObject *out = NULL;
    if (text != NULL && traceback != NULL && PyTraceBack_Check(traceback)) {
        PyTracebackObject *tb = (PyTracebackObject *)traceback;
        while (tb->tb_next != NULL) {
            tb = tb->tb_next;
        }
        PyCodeObject *code = PyFrame_GetCode(tb->tb_frame);
        int line = PyCode_Addr2Line(code, tb->tb_lasti);
        out = PyUnicode_FromFormat("%s: %U (%U:%d)", Py_TYPE(exc)->tp_name, text, code->co_filename, line);
        Py_DECREF(code);
    } else if (text != NULL) {
        out = PyUnicode_FromFormat("%s: %U", Py_TYPE(exc)->tp_name, text);
    }
    if (out == NULL) {
        PyErr_Clear();
        out = PyUnicode_FromString(Py_TYPE(exc)->tp_name);
    }
    Py_XDECREF(text);
    Py_XDECREF(traceback);
    return out;
}

/* Keeps an error of the translator to itself; returns what is not its to keep (KeyboardInterrupt and the like), else
 * NULL. */
static PyObject *swallow_error(Site *self)
{
    bool ours = PyErr_ExceptionMatches(PyExc_Exception);
    PyObject *exc = take_exception();
    if (!ours && exc != NULL) {
        if (PyException_SetTraceback(exc, Py_None) < 0) { /* it is raised at the user's line, not in the translator */
            PyErr_Clear();
        }
        return exc;
    }
    self->errors++;
    PyObject *text = exc == NULL ? NULL : describe(exc);
    if (text == NULL) {
        PyErr_Clear();
    } else {
        Py_XSETREF(self->last_error, text);
    }
    Py_XDECREF(exc);
    return NULL;
}

static int call_translator(Site *self, PyThreadState *ts, const FrameView *frame, PyObject **raised)
{
    int again = 0;
    ShimGuard *guard = shim_guard_enter(ts);
    if (guard == NULL) {
        *raised = swallow_error(self);
        return 0;
    }
    PyObject *callback = Py_NewRef(self->callback); /* it may replace itself */
    PyObject *live = live_frame_new(frame, self->depth);
    PyObject *result = live == NULL ? NULL : PyObject_CallFunctionObjArgs(callback, (PyObject *)self, live, NULL);
    if (live != NULL) {
        live_frame_end(live);
    }
    if (result != NULL) {
        again = PyObject_IsTrue(result);
    }
    if (result == NULL || again < 0) {
        *raised = swallow_error(self);
        again = 0;
    }
    Py_XDECREF(result);
    Py_XDECREF(live);
    Py_DECREF(callback);
    if (shim_guard_leave(ts, guard) < 0 && *raised == NULL) {
        *raised = take_exception();
    }
    PyErr_Clear();
    return again;
}

/* 1: look up once more, 0: miss, -1: an exception goes to the user's line. */
static int translate(Site *self, PyThreadState *ts, const FrameView *frame)
{
    PyObject *raised = NULL;
    if (self->callback == NULL) {
        self->countdown = NEVER;
        return 0;
    }
    if (self->translating) { /* in another thread, or below us in this one */
        self->countdown = 1;
        return 0;
    }
    self->translating = true;
    self->countdown = NEVER; /* unless the callback says when to ask again */
    int again = call_translator(self, ts, frame, &raised);
    self->translating = false;
    if (raised != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
        Py_DECREF(raised);
        return -1;
    }
    return again;
}

/* ---- a visit --------------------------------------------------------------------------------------------------------
 */

static void keep_counting(Site *self)
{
    if (self->countdown <= 0) {
        self->countdown = 1;
    }
}

static Visiting visiting(Site *self, PyThreadState *ts, FrameView *out)
{
    return shim_visit(ts, ((PyWeakReference *)self->code)->wr_object, self->instr, out);
}

static int site_visit(Site *self)
{
    FrameView frame;
    PyThreadState *ts = shim_thread_state();
    bool counted = self->installed == NULL; /* site_bool did */
    Visiting where = visiting(self, ts, &frame);
    if (where != VISIT_HERE) {
        self->observed += where == VISIT_OBSERVED;
        keep_counting(self);
        return 0;
    }
    if (trial_stands_aside(self, &frame)) {
        keep_counting(self);
        return 0;
    }
    if (self->installed != NULL) {
        if (self->hits >= self->trial_at) {
            if (!trial_visit(self, &frame)) {
                return 0;
            }
            if (self->slow) { /* whoever installed this is to hear of it now */
                self->countdown = 0;
            }
        }
        int hit = self->slow ? 0 : site_lookup(self, ts, &frame);
        if (hit != 0) {
            return hit;
        }
        self->misses++;
    }
    if (!counted && --self->countdown > 0) {
        return 0;
    }
    int again = translate(self, ts, &frame);
    if (again <= 0 || !self->armed || self->installed == NULL || visiting(self, ts, &frame) != VISIT_HERE) {
        return again < 0 ? -1 : 0;
    }
    int hit = site_lookup(self, ts, &frame);
    self->misses += hit == 0;
    return hit;
}

static int site_bool(PyObject *op)
{
    Site *self = (Site *)op;
    if (!self->armed || disabled_blocks > 0 || (self->installed == NULL && --self->countdown > 0)) {
        return 0;
    }
    return site_visit(self);
}

static PyObject *site_negative(PyObject *op)
{
    int exit = site_exit_number((Site *)op, shim_thread_state());
    return exit < 0 ? NULL : PyLong_FromLong(exit);
}

static PyObject *site_invert(PyObject *op)
{
    return site_fetch_deep((Site *)op, shim_thread_state());
}

/* ---- methods
 * ---------------------------------------------------------------------------------------------------------- */

static void set_armed(Site *self)
{
    self->armed = self->enabled && self->code != NULL;
}

static PyCodeObject *bound_code(Site *self)
{
    PyObject *code = self->code == NULL ? Py_None : ((PyWeakReference *)self->code)->wr_object;
    return code != Py_None && Py_REFCNT(code) > 0 ? (PyCodeObject *)code : NULL;
}

static PyObject *site_bind(PyObject *op, PyObject *args)
{
    Site *self = (Site *)op;
    PyCodeObject *code;
    int instr;
    if (!PyArg_ParseTuple(args, "O!i:bind", &PyCode_Type, &code, &instr)) {
        return NULL;
    }
    if (instr < 0 || instr >= Py_SIZE(code)) {
        return PyErr_Format(PyExc_ValueError, "code unit %d; the code has %zd", instr, Py_SIZE(code));
    }
    if (self->depth > code->co_stacksize) {
        return PyErr_Format(PyExc_ValueError, "the site's depth is %d; the code's stack size is %d", self->depth,
                            code->co_stacksize);
    }
    if (self->installed != NULL && installed_fit(self->installed, code) < 0) {
        return NULL;
    }
    PyObject *ref = PyWeakref_NewRef((PyObject *)code, NULL);
    if (ref == NULL) {
        return NULL;
    }
    self->instr = instr;
    Py_XSETREF(self->code, ref);
    set_armed(self);
    Py_RETURN_NONE;
}

static PyObject *site_install(PyObject *op, PyObject *args)
{
    Site *self = (Site *)op;
    PyObject *exprs, *specs;
    if (!PyArg_ParseTuple(args, "OO:install", &exprs, &specs)) {
        return NULL;
    }
    Installed *inst = installed_new(exprs, specs, self->depth);
    if (inst == NULL) {
        return NULL;
    }
    PyCodeObject *code = bound_code(self);
    if (code != NULL && installed_fit(inst, code) < 0) {
        installed_release(inst);
        return NULL;
    }
    if (inst->nspecs == 0) { /* an empty site is the cheapest */
        installed_release(inst);
        inst = NULL;
    }
    Installed *old = self->installed;
    self->installed = inst;
    trial_reset(self);
    installed_release(old);
    Py_RETURN_NONE;
}

static PyObject *site_tree_text(PyObject *op, PyObject *unused)
{
    Installed *inst = ((Site *)op)->installed;
    return inst == NULL ? PyUnicode_FromString("miss") : GuardTree_text(inst->tree);
}

static PyObject *site_spec_hits(PyObject *op, PyObject *unused)
{
    Installed *inst = ((Site *)op)->installed;
    int n = inst == NULL ? 0 : inst->nspecs;
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(inst->specs[i].hits);
        if (count == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, count);
        }
    }
    return list;
}

static PyObject *site_reduce(PyObject *op, PyObject *unused)
{
    return Py_BuildValue("(O())", (PyObject *)&PyBytes_Type);
}

static PyMethodDef site_methods[] = {
    {"bind", site_bind, METH_VARARGS,
     PyDoc_STR(
         "bind(code, instr)\n\nSays at which code unit of which code object (held weakly) the site's truth test is.")},
    {"install", site_install, METH_VARARGS,
     PyDoc_STR("install(exprs, specs)\n\nReplaces the guard tree; a spec is (checks, plan, exit number, top_null).")},
    {"tree_text", site_tree_text, METH_NOARGS, PyDoc_STR("The guard tree as an indented listing.")},
    {"spec_hits", site_spec_hits, METH_NOARGS, PyDoc_STR("Hits of each installed specialisation.")},
    {"__reduce__", site_reduce, METH_NOARGS, PyDoc_STR("A site pickles as the empty bytes object, which is false.")},
    {NULL, NULL, 0, NULL},
};

/* ---- attributes
 * --------------------------------------------------------------------------------------------------------- */

static PyObject *get_callback(PyObject *op, void *closure)
{
    PyObject *callback = ((Site *)op)->callback;
    return Py_NewRef(callback == NULL ? Py_None : callback);
}

static int set_callback(PyObject *op, PyObject *value, void *closure)
{
    Site *self = (Site *)op;
    if (value != NULL && value != Py_None && !PyCallable_Check(value)) {
        PyErr_Format(PyExc_TypeError, "callback must be callable or None, not %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    PyObject *old = self->callback;
    self->callback = value == NULL || value == Py_None ? NULL : Py_NewRef(value);
    Py_XDECREF(old);
    return 0;
}

static PyObject *get_enabled(PyObject *op, void *closure)
{
    return PyBool_FromLong(((Site *)op)->enabled);
}

static int set_enabled(PyObject *op, PyObject *value, void *closure)
{
    Site *self = (Site *)op;
    if (value == NULL || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "enabled must be a bool");
        return -1;
    }
    self->enabled = value == Py_True;
    set_armed(self);
    return 0;
}

static PyGetSetDef site_getset[] = {
    {"callback", get_callback, set_callback, PyDoc_STR("Called as callback(site, frame) when countdown reaches zero."),
     NULL},
    {"enabled", get_enabled, set_enabled, PyDoc_STR("False: every visit is a miss without counting."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef site_members[] = {
    {"index", T_INT, offsetof(Site, index), READONLY, PyDoc_STR("Instruction index in the original program.")},
    {"depth", T_INT, offsetof(Site, depth), READONLY, PyDoc_STR("Depth of the value stack at the site.")},
    {"hits", T_ULONGLONG, offsetof(Site, hits), 0, PyDoc_STR("Visits in which a specialisation ran.")},
    {"misses", T_ULONGLONG, offsetof(Site, misses), 0, PyDoc_STR("Lookups in which no specialisation applied.")},
    {"observed", T_ULONGLONG, offsetof(Site, observed), 0,
     PyDoc_STR("Visits that stood aside for a tracer, profiler or monitoring tool.")},
    {"errors", T_ULONGLONG, offsetof(Site, errors), 0, PyDoc_STR("Exceptions of the callback that were swallowed.")},
    {"last_error", T_OBJECT, offsetof(Site, last_error), READONLY,
     PyDoc_STR("Text of the last swallowed exception, or None.")},
    {"reach", T_INT, offsetof(Site, reach), 0,
     PyDoc_STR("Index of the original instruction before which its regions end, as far as is known; sites in between "
               "stand aside while a trial leaves the region to the interpreter.")},
    {"slow", T_BOOL, offsetof(Site, slow), READONLY,
     PyDoc_STR("A trial found what is installed slower than the interpreter: it does not run any more.")},
    {"countdown", T_LONGLONG, offsetof(Site, countdown), 0,
     PyDoc_STR("Visits without a hit until the callback is called. Before each call it is set to 2**63 - 1, that is, "
               "never.")},
    {NULL, 0, 0, 0, NULL},
};

/* ---- the type
 * -------------------------------------------------------------------------------------------------------------- */

static PyObject *site_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"index", "depth", NULL};
    int index, depth;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ii:Site", names, &index, &depth)) {
        return NULL;
    }
    if (depth < 0) {
        return PyErr_Format(PyExc_ValueError, "a stack depth cannot be %d", depth);
    }
    Site *self = (Site *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->index = index;
        self->depth = depth;
        self->enabled = true;
        self->countdown = NEVER;
        self->trial_at = UINT64_MAX;
    }
    return (PyObject *)self;
}

static int site_traverse(PyObject *op, visitproc visit, void *arg)
{
    Site *self = (Site *)op;
    Py_VISIT(self->callback);
    for (SitePending *p = self->pending; p != NULL; p = p->next) {
        for (int i = 0; i < p->ndeep; i++) {
            Py_VISIT(p->deep[i]);
        }
    }
    return self->installed == NULL ? 0 : installed_traverse(self->installed, visit, arg);
}

static int site_clear(PyObject *op)
{
    Site *self = (Site *)op;
    Installed *inst = self->installed;
    self->installed = NULL;
    self->armed = false;
    Py_CLEAR(self->callback);
    trial_reset(self);
    site_drop_pending(self);
    installed_release(inst);
    return 0;
}

static void site_dealloc(PyObject *op)
{
    Site *self = (Site *)op;
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    site_clear(op);
    Py_CLEAR(self->code);
    Py_CLEAR(self->last_error);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *site_repr(PyObject *op)
{
    Site *self = (Site *)op;
    int n = self->installed == NULL ? 0 : self->installed->nspecs;
    return PyUnicode_FromFormat("<tierup site %d: %d specialisation%s>", self->index, n, n == 1 ? "" : "s");
}

static int site_getbuffer(PyObject *op, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, op, "", 0, 1, flags);
}

static PyNumberMethods site_number = {
    .nb_bool = site_bool,
    .nb_negative = site_negative,
    .nb_invert = site_invert,
};

/* Makes marshal.dumps write a site as b"". */
static PyBufferProcs site_buffer = {.bf_getbuffer = site_getbuffer};

PyTypeObject Site_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tierup._core.Site",
    .tp_basicsize = sizeof(Site),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = PyDoc_STR("Site(index, depth)\n\nA place in generated code where a region may begin. bool(site) there "
                        "runs it; elsewhere it is False.\n"
                        "\nThe collector sees callback and installed objects. It does not see code objects: callback "
                        "must not own the site's."),
    .tp_new = site_new,
    .tp_dealloc = site_dealloc,
    .tp_traverse = site_traverse,
    .tp_clear = site_clear,
    .tp_repr = site_repr,
    .tp_as_number = &site_number,
    .tp_as_buffer = &site_buffer,
    .tp_weaklistoffset = offsetof(Site, weakrefs),
    .tp_methods = site_methods,
    .tp_members = site_members,
    .tp_getset = site_getset,
};

static PyObject *disable(PyObject *module, PyObject *arg)
{
    Py_ssize_t delta = PyNumber_AsSsize_t(arg, PyExc_OverflowError);
    if (delta == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (delta < -disabled_blocks) {
        PyErr_SetString(PyExc_ValueError, "more disabled() blocks closed than opened");
        return NULL;
    }
    disabled_blocks += delta;
    return PyLong_FromSsize_t(disabled_blocks);
}

static PyMethodDef functions[] = {
    {"disable", disable, METH_O,
     PyDoc_STR("disable(delta)\n\nAdds to the count of open disabled() blocks; above zero every site misses without "
               "counting. Returns the count.")},
    {NULL, NULL, 0, NULL},
};

int site_add_to_module(PyObject *module)
{
    static const struct {
        const char *name;
        int value;
    } exits[] = {
        {"EXIT_LOCAL", EXIT_LOCAL}, {"EXIT_STACK", EXIT_STACK}, {"EXIT_CELL", EXIT_CELL}, {"EXIT_NAME", EXIT_NAME}};
    for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
        if (PyModule_AddIntConstant(module, exits[i].name, exits[i].value) < 0) {
            return -1;
        }
    }
    return PyModule_AddFunctions(module, functions) < 0 ? -1 : PyModule_AddType(module, &Site_Type);
}
