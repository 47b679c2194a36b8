/* Guard expressions: how to reach a value from the frame. Evaluation runs no Python code, allocates nothing and sets no
 * exception. */
#include "guard_internal.h"

#include <structmember.h>

const char *const guard_expr_names[EXPR_COUNT] = {
#define GUARD_EXPR(name) #name,
#include "guard_kinds.def"
};

/* ---- parsing ---------------------------------------------------------------------------------------------- */

typedef enum { ARG_NUMBER, ARG_INDEX, ARG_NAME, ARG_KEY, ARG_OBJECT, ARG_WEAKREF, ARG_NONE } ArgKind;

static const struct {
    bool has_base;
    ArgKind arg;
} expr_forms[EXPR_COUNT] = {
    [EXPR_LOCAL] = {false, ARG_NUMBER},       [EXPR_STACK] = {false, ARG_NUMBER},
    [EXPR_CELL] = {false, ARG_NUMBER},        [EXPR_GLOBAL] = {false, ARG_NAME},
    [EXPR_BUILTIN] = {false, ARG_NAME},       [EXPR_NAME] = {false, ARG_NAME},
    [EXPR_CONST] = {false, ARG_OBJECT},       [EXPR_WEAK] = {false, ARG_WEAKREF},
    [EXPR_ATTR] = {true, ARG_NAME},           [EXPR_METHOD] = {true, ARG_NAME},
    [EXPR_CLASSATTR] = {true, ARG_NAME},      [EXPR_MODATTR] = {true, ARG_NAME},
    [EXPR_ITEM] = {true, ARG_INDEX},          [EXPR_DICTITEM] = {true, ARG_KEY},
    [EXPR_FUNC_GLOBAL] = {true, ARG_NAME},    [EXPR_FUNC_BUILTIN] = {true, ARG_NAME},
    [EXPR_FUNC_CELL] = {true, ARG_NUMBER},    [EXPR_FUNC_DEFAULT] = {true, ARG_NUMBER},
    [EXPR_FUNC_KWDEFAULT] = {true, ARG_NAME}, [EXPR_METHOD_SELF] = {true, ARG_NONE},
    [EXPR_ITERATED] = {true, ARG_NUMBER},     [EXPR_METHOD_FUNC] = {true, ARG_NONE},
    [EXPR_TYPE] = {true, ARG_NONE},
};

static int parse_number(GuardExpr *e, int index, PyObject *arg)
{
    if (!PyLong_CheckExact(arg)) {
        PyErr_Format(PyExc_TypeError, "guard expression %d (%s): the argument must be an int, not %s", index,
                     guard_expr_names[e->kind], Py_TYPE(arg)->tp_name);
        return -1;
    }
    int overflow = 0;
    long long n = PyLong_AsLongLongAndOverflow(arg, &overflow);
    bool is_index = expr_forms[e->kind].arg == ARG_INDEX;
    if (overflow != 0 || n > INT32_MAX || n < (is_index ? INT32_MIN : 0)) {
        PyErr_Format(PyExc_ValueError, "guard expression %d (%s): argument %R is out of range", index,
                     guard_expr_names[e->kind], arg);
        return -1;
    }
    e->number = n;
    return 0;
}

static int parse_name(GuardExpr *e, int index, PyObject *arg, bool allow_int)
{
    if (!PyUnicode_CheckExact(arg) && !(allow_int && PyLong_CheckExact(arg))) {
        PyErr_Format(PyExc_TypeError, "guard expression %d (%s): the argument must be a str%s, not %s", index,
                     guard_expr_names[e->kind], allow_int ? " or int" : "", Py_TYPE(arg)->tp_name);
        return -1;
    }
    e->arg = Py_NewRef(arg);
    if (PyUnicode_CheckExact(arg)) {
        PyUnicode_InternInPlace(&e->arg); /* found by identity then */
    }
    e->hash = PyObject_Hash(e->arg);
    return e->hash == -1 ? -1 : 0;
}

static int parse_arg(GuardExpr *e, int index, PyObject *arg)
{
    switch (expr_forms[e->kind].arg) {
    case ARG_NUMBER:
    case ARG_INDEX:
        return parse_number(e, index, arg);
    case ARG_NAME:
        return parse_name(e, index, arg, false);
    case ARG_KEY:
        return parse_name(e, index, arg, true);
    case ARG_OBJECT:
        e->arg = Py_NewRef(arg);
        return 0;
    case ARG_WEAKREF:
        if (!PyWeakref_CheckRef(arg)) {
            PyErr_Format(PyExc_TypeError, "guard expression %d (WEAK): the argument must be a weakref, not %s", index,
                         Py_TYPE(arg)->tp_name);
            return -1;
        }
        e->arg = Py_NewRef(arg);
        return 0;
    case ARG_NONE:
        break;
    }
    return 0;
}

int guard_expr_parse(GuardExpr *e, int index, PyObject *tuple)
{
    long kind = -1;
    long base = -1;
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != 3 || !PyLong_CheckExact(PyTuple_GET_ITEM(tuple, 0)) ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(tuple, 1))) {
        PyErr_Format(PyExc_TypeError, "guard expression %d must be a tuple (kind, base, arg) with two ints in front",
                     index);
        return -1;
    }
    kind = PyLong_AsLong(PyTuple_GET_ITEM(tuple, 0));
    base = PyLong_AsLong(PyTuple_GET_ITEM(tuple, 1));
    if (PyErr_Occurred()) {
        PyErr_Clear();
        kind = -1;
    }
    if (kind < 0 || kind >= EXPR_COUNT) {
        PyErr_Format(PyExc_ValueError, "guard expression %d: there is no kind %R", index, PyTuple_GET_ITEM(tuple, 0));
        return -1;
    }
    e->kind = (uint8_t)kind;
    bool has_base = expr_forms[kind].has_base;
    if (has_base ? base < 0 || base >= index : base != -1) {
        PyErr_Format(PyExc_ValueError, "guard expression %d (%s): base must be %s, not %ld", index,
                     guard_expr_names[kind], has_base ? "an earlier expression" : "-1", base);
        return -1;
    }
    e->base = (int)base;
    if (parse_arg(e, index, PyTuple_GET_ITEM(tuple, 2)) < 0) {
        return -1;
    }
    if (kind == EXPR_MODATTR) {
        PyObject *unused;
        e->unsure = shim_type_get(&PyModule_Type, e->arg, e->hash, &unused) != LOOK_ABSENT;
    }
    return 0;
}

/* ---- evaluation ---------------------------------------------------------------------------------------------- */

static inline Look present(PyObject *v, PyObject **value)
{
    *value = v;
    return v != NULL ? LOOK_FOUND : LOOK_ABSENT;
}

static Look cell_contents(PyObject *cell, PyObject **value)
{
    if (cell == NULL || !PyCell_Check(cell)) {
        return LOOK_UNSURE;
    }
    return present(PyCell_GET(cell), value);
}

static Look tuple_item(PyObject *tuple, int64_t i, PyObject **value)
{
    if (tuple == NULL) {
        return LOOK_ABSENT;
    }
    if (!PyTuple_CheckExact(tuple)) {
        return LOOK_UNSURE;
    }
    i += i < 0 ? PyTuple_GET_SIZE(tuple) : 0;
    return i >= 0 && i < PyTuple_GET_SIZE(tuple) ? present(PyTuple_GET_ITEM(tuple, i), value) : LOOK_ABSENT;
}

static Look list_item(PyObject *list, int64_t i, PyObject **value)
{
    i += i < 0 ? PyList_GET_SIZE(list) : 0;
    return i >= 0 && i < PyList_GET_SIZE(list) ? present(PyList_GET_ITEM(list, i), value) : LOOK_ABSENT;
}

static bool is_data_descriptor(PyObject *descr)
{
    return Py_TYPE(descr)->tp_descr_get != NULL && Py_TYPE(descr)->tp_descr_set != NULL;
}

/* A __slots__ member: plain memory inside the object. Read-restricted members audit, other types convert: unsure. */
static Look member_value(PyObject *obj, PyObject *descr, PyObject **value)
{
    if (!Py_IS_TYPE(descr, &PyMemberDescr_Type) || !PyObject_TypeCheck(obj, PyDescr_TYPE(descr))) {
        return LOOK_UNSURE;
    }
    const PyMemberDef *m = ((PyMemberDescrObject *)descr)->d_member;
    if (m->type != T_OBJECT_EX || (m->flags & ~READONLY) != 0) {
        return LOOK_UNSURE;
    }
    return present(*(PyObject **)((char *)obj + m->offset), value);
}

/* What PyObject_GenericGetAttr does, up to where a descriptor's code would run. */
static Look generic_attr(GuardExpr *e, PyObject *obj, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(obj);
    PyObject *descr = NULL;
    if (type->tp_getattro != PyObject_GenericGetAttr) {
        return LOOK_UNSURE;
    }
    Look on_type = shim_type_recall(type, e->arg, e->hash, &descr, &e->memo);
    if (on_type == LOOK_UNSURE) {
        return LOOK_UNSURE;
    }
    if (on_type == LOOK_FOUND && is_data_descriptor(descr)) {
        return member_value(obj, descr, value);
    }
    Look own = shim_instance_get(obj, e->arg, e->hash, value);
    if (own != LOOK_ABSENT || on_type == LOOK_ABSENT) {
        return own;
    }
    if (Py_TYPE(descr)->tp_descr_get != NULL) {
        return LOOK_UNSURE; /* a function is METHOD's business, anything else runs code */
    }
    return present(descr, value);
}

static Look method_function(GuardExpr *e, PyObject *obj, PyObject **value)
{
    PyObject *descr = NULL;
    PyObject *own = NULL;
    if (Py_TYPE(obj)->tp_getattro != PyObject_GenericGetAttr ||
        shim_type_recall(Py_TYPE(obj), e->arg, e->hash, &descr, &e->memo) != LOOK_FOUND) {
        return LOOK_UNSURE;
    }
    if (!Py_IS_TYPE(descr, &PyFunction_Type) && !Py_IS_TYPE(descr, &PyMethodDescr_Type)) {
        return LOOK_UNSURE;
    }
    if (shim_instance_get(obj, e->arg, e->hash, &own) != LOOK_ABSENT) {
        return LOOK_UNSURE;
    }
    return present(descr, value);
}

/* What type.__getattribute__ does, up to where a descriptor's code would run. */
static Look class_attr(GuardExpr *e, PyObject *obj, PyObject **value)
{
    PyObject *meta = NULL;
    PyObject *attr = NULL;
    if (!PyType_Check(obj) || Py_TYPE(obj)->tp_getattro != PyType_Type.tp_getattro) {
        return LOOK_UNSURE;
    }
    Look on_meta = shim_type_recall(Py_TYPE(obj), e->arg, e->hash, &meta, &e->meta);
    if (on_meta == LOOK_UNSURE || (on_meta == LOOK_FOUND && is_data_descriptor(meta))) {
        return LOOK_UNSURE;
    }
    Look own = shim_type_recall((PyTypeObject *)obj, e->arg, e->hash, &attr, &e->memo);
    if (own == LOOK_FOUND && (Py_TYPE(attr)->tp_descr_get == NULL || Py_IS_TYPE(attr, &PyFunction_Type))) {
        return present(attr, value);
    }
    return own == LOOK_ABSENT && on_meta == LOOK_ABSENT ? LOOK_ABSENT : LOOK_UNSURE;
}

static PyObject *interned_getattr_name;

static Look module_attr(GuardExpr *e, PyObject *obj, PyObject **value)
{
    if (e->unsure || !Py_IS_TYPE(obj, &PyModule_Type)) {
        return LOOK_UNSURE;
    }
    PyObject *dict = PyModule_GetDict(obj);
    Look own = shim_dict_recall(dict, e->arg, e->hash, value, &e->memo);
    if (own != LOOK_ABSENT) {
        return own;
    }
    if (interned_getattr_name == NULL) {
        return LOOK_UNSURE;
    }
    PyObject *hook = NULL; /* PEP 562: a module's own __getattr__ would run */
    return shim_dict_get(dict, interned_getattr_name, PyObject_Hash(interned_getattr_name), &hook) == LOOK_ABSENT
               ? LOOK_ABSENT
               : LOOK_UNSURE;
}

static Look function_part(GuardExpr *e, PyObject *obj, PyObject **value)
{
    if (!Py_IS_TYPE(obj, &PyFunction_Type)) {
        return LOOK_UNSURE;
    }
    PyFunctionObject *f = (PyFunctionObject *)obj;
    PyObject *cell = NULL;
    switch (e->kind) {
    case EXPR_FUNC_GLOBAL:
        return shim_dict_recall(f->func_globals, e->arg, e->hash, value, &e->memo);
    case EXPR_FUNC_BUILTIN:
        return shim_dict_recall(f->func_builtins, e->arg, e->hash, value, &e->memo);
    case EXPR_FUNC_CELL:
        return tuple_item(f->func_closure, e->number, &cell) == LOOK_FOUND ? cell_contents(cell, value) : LOOK_UNSURE;
    case EXPR_FUNC_DEFAULT:
        return tuple_item(f->func_defaults, e->number, value);
    default:
        return f->func_kwdefaults == NULL ? LOOK_ABSENT
                                          : shim_dict_recall(f->func_kwdefaults, e->arg, e->hash, value, &e->memo);
    }
}

static Look evaluate_based(GuardExpr *e, PyObject *base, PyObject **value)
{
    switch (e->kind) {
    case EXPR_ATTR:
        return generic_attr(e, base, value);
    case EXPR_METHOD:
        return method_function(e, base, value);
    case EXPR_CLASSATTR:
        return class_attr(e, base, value);
    case EXPR_MODATTR:
        return module_attr(e, base, value);
    case EXPR_ITEM:
        return PyTuple_CheckExact(base)  ? tuple_item(base, e->number, value)
               : PyList_CheckExact(base) ? list_item(base, e->number, value)
                                         : LOOK_UNSURE;
    case EXPR_DICTITEM:
        return shim_dict_recall(base, e->arg, e->hash, value, &e->memo);
    case EXPR_METHOD_SELF:
        return Py_IS_TYPE(base, &PyMethod_Type) ? present(PyMethod_GET_SELF(base), value) : LOOK_UNSURE;
    case EXPR_METHOD_FUNC:
        return Py_IS_TYPE(base, &PyMethod_Type) ? present(PyMethod_GET_FUNCTION(base), value) : LOOK_UNSURE;
    case EXPR_ITERATED:
        *value = shim_inner_iterator(base, e->number);
        return *value != NULL ? LOOK_FOUND : LOOK_UNSURE;
    case EXPR_TYPE:
        return present((PyObject *)Py_TYPE(base), value);
    default:
        return function_part(e, base, value);
    }
}

static Look evaluate_root(GuardExpr *e, const FrameView *f, PyObject **value)
{
    switch (e->kind) {
    case EXPR_LOCAL:
        return present(f->slots[e->number], value);
    case EXPR_STACK:
        return present(f->slots[f->nlocalsplus + e->number], value);
    case EXPR_CELL:
        return cell_contents(f->slots[e->number], value);
    case EXPR_GLOBAL:
        return shim_dict_recall(f->globals, e->arg, e->hash, value, &e->memo);
    case EXPR_BUILTIN:
        return shim_dict_recall(f->builtins, e->arg, e->hash, value, &e->memo);
    case EXPR_NAME:
        return shim_dict_recall(f->locals, e->arg, e->hash, value, &e->memo);
    case EXPR_CONST:
        return present(e->arg, value);
    default: { /* WEAK */
        PyObject *referent = ((PyWeakReference *)e->arg)->wr_object;
        return referent != Py_None && Py_REFCNT(referent) > 0 ? present(referent, value) : LOOK_UNSURE;
    }
    }
}

PyObject *guard_expr_evaluate(Lookup *lookup, int index)
{
    GuardExpr *e = &lookup->tree->exprs[index];
    PyObject *value = NULL;
    Look found = LOOK_UNSURE;
    if (e->base < 0) {
        found = evaluate_root(e, lookup->frame, &value);
    } else {
        PyObject *base = Lookup_value(lookup, e->base);
        if (base != NULL) {
            found = evaluate_based(e, base, &value);
        }
    }
    if (found != LOOK_FOUND) {
        value = NULL;
    }
    lookup->evaluated[index] = found == LOOK_UNSURE ? EVALUATED_UNSURE : EVALUATED_SURE;
    lookup->values[index] = Py_XNewRef(value);
    return value;
}

int guard_expr_init(void)
{
    interned_getattr_name = PyUnicode_InternFromString("__getattr__");
    return interned_getattr_name == NULL ? -1 : 0;
}
