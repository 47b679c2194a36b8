/* The guard tree as an indented listing, for people. Objects are shown without calling any user's __repr__. */
#include "guard_internal.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct {
    const GuardTree *tree;
    PyObject *lines; /* list of str */
    bool *shown;     /* per node */
} Listing;

static bool repr_is_plain(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (type == &PyTuple_Type) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
            if (!repr_is_plain(PyTuple_GET_ITEM(o, i))) {
                return false;
            }
        }
        return true;
    }
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBytes_Type ||
           type == &PyBool_Type || o == Py_None;
}

static PyObject *show_object(PyObject *o)
{
    if (repr_is_plain(o)) {
        return PyObject_Repr(o);
    }
    if (PyType_Check(o)) {
        return PyUnicode_FromFormat("<type %s>", ((PyTypeObject *)o)->tp_name);
    }
    if (PyFunction_Check(o)) {
        return PyUnicode_FromFormat("<function %U>", ((PyFunctionObject *)o)->func_qualname);
    }
    if (PyWeakref_CheckRef(o)) {
        PyObject *referent = ((PyWeakReference *)o)->wr_object;
        return referent == Py_None ? PyUnicode_FromString("<dead>") : show_object(referent);
    }
    if (PyCode_Check(o)) {
        return PyUnicode_FromFormat("<code %U>", ((PyCodeObject *)o)->co_qualname);
    }
    return PyUnicode_FromFormat("<%s at %p>", Py_TYPE(o)->tp_name, (void *)o);
}

static PyObject *show_expr(const GuardTree *t, int index)
{
    const GuardExpr *e = &t->exprs[index];
    const char *name = guard_expr_names[e->kind];
    PyObject *base = e->base >= 0 ? show_expr(t, e->base) : NULL;
    PyObject *arg = e->arg != NULL ? show_object(e->arg) : PyUnicode_FromFormat("%lld", (long long)e->number);
    PyObject *out = NULL;
    if (arg == NULL || (e->base >= 0 && base == NULL)) {
        Py_XDECREF(base);
        Py_XDECREF(arg);
        return NULL;
    }
    if (e->kind == EXPR_TYPE || e->kind == EXPR_METHOD_SELF || e->kind == EXPR_METHOD_FUNC) {
        out = PyUnicode_FromFormat("%s(%U)", name, base);
    } else if (base != NULL) {
        out = PyUnicode_FromFormat("%s(%U, %U)", name, base, arg);
    } else {
        out = PyUnicode_FromFormat("%s(%U)", name, arg);
    }
    Py_XDECREF(base);
    Py_DECREF(arg);
    return out;
}

static PyObject *show_payload(const GuardCheck *c)
{
    switch (c->kind) {
    case CHECK_ARRAY: { /* %llx is not for PyUnicode_FromFormat before 3.12 */
        char text[64];
        snprintf(text, sizeof text, "mask=0x%llx key=0x%llx", (unsigned long long)c->mask, (unsigned long long)c->key);
        return PyUnicode_FromString(text);
    }
    case CHECK_TUPLE_LEN:
    case CHECK_LIST_LEN:
        return PyUnicode_FromFormat("%llu", (unsigned long long)c->key);
    case CHECK_FUNC_DEFAULTS: {
        PyObject *names = show_object(c->payload);
        PyObject *out = names == NULL ? NULL : PyUnicode_FromFormat("%llu %U", (unsigned long long)c->key, names);
        Py_XDECREF(names);
        return out;
    }
    default:
        return c->payload == NULL ? PyUnicode_FromString("") : show_object(c->payload);
    }
}

static int add_line(Listing *l, int depth, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (text == NULL) {
        return -1;
    }
    /* Deep trees are chains: past this the indentation says nothing more. */
    static const char spaces[] = "                                                                                ";
    PyObject *line = PyUnicode_FromFormat("%s%U", spaces + 80 - (depth < 40 ? 2 * depth : 80), text);
    Py_DECREF(text);
    int failed = line == NULL ? -1 : PyList_Append(l->lines, line);
    Py_XDECREF(line);
    return failed;
}

static int check_line(Listing *l, int depth, int check)
{
    const GuardCheck *c = &l->tree->checks[check];
    PyObject *expr = show_expr(l->tree, c->expr);
    PyObject *payload = show_payload(c);
    int failed = -1;
    if (expr != NULL && payload != NULL) {
        const char *gap = PyUnicode_GET_LENGTH(payload) > 0 ? " " : "";
        failed = add_line(l, depth, "%s %U%s%U", guard_check_names[c->kind], expr, gap, payload);
    }
    Py_XDECREF(expr);
    Py_XDECREF(payload);
    return failed;
}

static int check_lines(Listing *l, int depth, const int *refs, int n)
{
    for (int i = 0; i < n; i++) {
        if (check_line(l, depth, refs[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int list_node(Listing *l, int depth, int at);

static int list_switch(Listing *l, int depth, const GuardNode *node)
{
    const GuardTree *t = l->tree;
    bool headed = false;
    for (int i = 0; i < node->count; i++) {
        const GuardBranch *branch = &t->branches[node->first + i];
        if (branch->check < 0) {
            continue;
        }
        const GuardCheck *c = &t->checks[branch->check];
        if (!headed) {
            PyObject *expr = show_expr(t, c->expr);
            int failed = expr == NULL ? -1 : add_line(l, depth, "switch %s %U", guard_check_names[c->kind], expr);
            Py_XDECREF(expr);
            if (failed) {
                return -1;
            }
            headed = true;
        }
        PyObject *payload = show_payload(c);
        int failed = payload == NULL ? -1 : add_line(l, depth + 1, "case %U:", payload);
        Py_XDECREF(payload);
        if (failed || list_node(l, depth + 2, branch->node) < 0) {
            return -1;
        }
    }
    return add_line(l, depth + 1, "default:") < 0 ? -1 : list_node(l, depth + 2, node->no);
}

static int list_plain(Listing *l, int depth, const GuardNode *node)
{
    const int *words = l->tree->refs + node->first;
    for (int i = 0; i < node->count; i++, words += 2 + words[1]) {
        if (add_line(l, depth, "if all:") < 0 || check_lines(l, depth + 1, words + 2, words[1]) < 0 ||
            add_line(l, depth + 1, "try specialisation %d", words[0]) < 0) {
            return -1;
        }
    }
    return add_line(l, depth, "miss");
}

static int list_tests(Listing *l, int depth, const GuardNode *node)
{
    if (add_line(l, depth, "if") < 0 || check_lines(l, depth + 2, l->tree->refs + node->first, node->count) < 0 ||
        add_line(l, depth, "then") < 0 || list_node(l, depth + 1, node->yes) < 0) {
        return -1;
    }
    return add_line(l, depth, "else") < 0 ? -1 : list_node(l, depth + 1, node->no);
}

static int list_node(Listing *l, int depth, int at)
{
    const GuardNode *node = &l->tree->nodes[at];
    if (node->kind == NODE_FAIL) {
        return add_line(l, depth, "miss");
    }
    if (l->shown[at]) {
        return add_line(l, depth, "go to @%d", at);
    }
    l->shown[at] = true;
    if (node->mentions > 1 && add_line(l, depth, "@%d:", at) < 0) {
        return -1;
    }
    switch ((NodeKind)node->kind) {
    case NODE_TRY:
        return add_line(l, depth, "try specialisation %d", node->first) < 0 ? -1 : list_node(l, depth, node->yes);
    case NODE_TESTS:
        return list_tests(l, depth, node);
    case NODE_SWITCH:
        return list_switch(l, depth, node);
    default:
        return list_plain(l, depth, node);
    }
}

PyObject *GuardTree_text(const GuardTree *t)
{
    Listing l = {t, PyList_New(0), PyMem_Calloc((size_t)t->nnodes + 1, sizeof(bool))};
    PyObject *newline = PyUnicode_FromString("\n");
    PyObject *text = NULL;
    if (l.shown == NULL) {
        PyErr_NoMemory();
    } else if (l.lines != NULL && newline != NULL && list_node(&l, 0, t->root) == 0) {
        text = PyUnicode_Join(newline, l.lines);
    }
    Py_XDECREF(newline);
    Py_XDECREF(l.lines);
    PyMem_Free(l.shown);
    return text;
}
