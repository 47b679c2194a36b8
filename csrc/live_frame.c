/* LiveFrame: what a site shows the translator of its frame, for as long as the call lasts. */
#include "site.h"

typedef struct {
    PyObject_HEAD bool valid;
    int depth;
    FrameView view;
} LiveFrame;

static PyObject null_object = {_PyObject_EXTRA_INIT.ob_type = &Null_Type, .ob_refcnt = 1};

static PyObject *null_repr(PyObject *self)
{
    return PyUnicode_FromString("NULL");
}

PyTypeObject Null_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tierup._core._Null",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = PyDoc_STR("The type of NULL, which stands for an empty slot."),
    .tp_repr = null_repr,
};

static const FrameView *view_of(PyObject *op)
{
    LiveFrame *self = (LiveFrame *)op;
    if (!self->valid) {
        PyErr_SetString(PyExc_RuntimeError, "this LiveFrame was valid only while its site's callback ran");
        return NULL;
    }
    return &self->view;
}

static PyObject *new_or_none(PyObject *o)
{
    return Py_NewRef(o == NULL ? Py_None : o);
}

static PyObject *live_slots(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    if (f == NULL) {
        return NULL;
    }
    int n = f->nlocalsplus + ((LiveFrame *)op)->depth;
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++) {
        PyList_SET_ITEM(list, i, Py_NewRef(f->slots[i] == NULL ? &null_object : f->slots[i]));
    }
    return list;
}

static PyObject *live_code(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    return f == NULL ? NULL : Py_NewRef((PyObject *)f->code);
}

static PyObject *live_globals(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    return f == NULL ? NULL : new_or_none(f->globals);
}

static PyObject *live_builtins(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    return f == NULL ? NULL : new_or_none(f->builtins);
}

static PyObject *live_locals(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    return f == NULL ? NULL : new_or_none(f->locals);
}

static PyObject *live_function(PyObject *op, void *closure)
{
    const FrameView *f = view_of(op);
    if (f == NULL) {
        return NULL;
    }
    return new_or_none(f->function != NULL && PyFunction_Check(f->function) ? f->function : NULL);
}

static PyGetSetDef live_getset[] = {
    {"slots", live_slots, NULL,
     PyDoc_STR("localsplus, then the value stack up to the site's depth; NULL for empty slots."), NULL},
    {"code", live_code, NULL, PyDoc_STR("The frame's code object."), NULL},
    {"globals", live_globals, NULL, PyDoc_STR("The frame's globals."), NULL},
    {"builtins", live_builtins, NULL, PyDoc_STR("The frame's builtins."), NULL},
    {"locals", live_locals, NULL, PyDoc_STR("The namespace of a module or class body, else None."), NULL},
    {"function", live_function, NULL, PyDoc_STR("The function that runs, if any."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject LiveFrame_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tierup._core.LiveFrame",
    .tp_basicsize = sizeof(LiveFrame),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = PyDoc_STR("What a site shows its callback; valid only during the call."),
    .tp_getset = live_getset,
};

PyObject *live_frame_new(const FrameView *frame, int depth)
{
    LiveFrame *self = PyObject_New(LiveFrame, &LiveFrame_Type);
    if (self != NULL) {
        self->valid = true;
        self->depth = depth;
        self->view = *frame;
    }
    return (PyObject *)self;
}

void live_frame_end(PyObject *live)
{
    ((LiveFrame *)live)->valid = false;
}

int live_frame_add_to_module(PyObject *module)
{
    if (PyType_Ready(&Null_Type) < 0 || PyModule_AddType(module, &LiveFrame_Type) < 0) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "NULL", &null_object);
}
