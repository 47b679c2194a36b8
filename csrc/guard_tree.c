/* The guard tree as an object: made from Python's lists, looked up, freed. */
#include "guard_internal.h"

#include <string.h>

/* ---- making ---------------------------------------------------------------------------------------------- */

static int parse_exprs(GuardTree *t, PyObject *exprs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(exprs);
    if (n > GUARD_MAX_EXPRS) {
        PyErr_Format(PyExc_ValueError, "%zd guard expressions; the limit is %d", n, GUARD_MAX_EXPRS);
        return -1;
    }
    t->exprs = PyMem_Calloc((size_t)n + 1, sizeof *t->exprs);
    if (t->exprs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        t->nexprs = (int)i + 1; /* a failing parse may already own its argument */
        if (guard_expr_parse(&t->exprs[i], (int)i, PyTuple_GET_ITEM(exprs, i)) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What parsing needs besides the tree: the newest check of each expression, and of each slot the specialisation that
 * last used it. */
typedef struct {
    int *expr_checks;
    int *slot_specs;
    int *slot_checks;
} Scratch;

static int find_or_add_check(GuardTree *t, const Scratch *scratch, GuardCheck *c)
{
    c->slot = -1;
    c->next = scratch->expr_checks[c->expr];
    for (int i = c->next; i >= 0; i = t->checks[i].next) {
        if (guard_checks_same(&t->checks[i], c)) {
            Py_CLEAR(c->payload);
            return i;
        }
        if (c->slot < 0 && guard_checks_same_slot(&t->checks[i], c)) {
            c->slot = t->checks[i].slot;
        }
    }
    if (c->slot < 0) {
        c->slot = t->nslots++;
    }
    scratch->expr_checks[c->expr] = t->nchecks;
    t->checks[t->nchecks] = *c;
    return t->nchecks++;
}

/* Keeps a check once. False: a second payload for the same slot, so the specialisation can never match. */
static bool add_to_spec(GuardTree *t, const Scratch *scratch, int spec, int check)
{
    int slot = t->checks[check].slot;
    if (scratch->slot_specs[slot] == spec) {
        return scratch->slot_checks[slot] == check;
    }
    scratch->slot_specs[slot] = spec;
    scratch->slot_checks[slot] = check;
    t->spec_checks[spec][t->spec_nchecks[spec]++] = check;
    return true;
}

static int parse_spec(GuardTree *t, const Scratch *scratch, int spec, PyObject *checks)
{
    Py_ssize_t n = PyTuple_GET_SIZE(checks);
    bool possible = true;
    t->spec_checks[spec] = PyMem_Malloc(sizeof(int) * (size_t)(n + 1));
    if (t->spec_checks[spec] == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        GuardCheck c = {0};
        if (guard_check_parse(&c, t->nexprs, PyTuple_GET_ITEM(checks, i)) < 0) {
            Py_XDECREF(c.payload);
            return -1;
        }
        possible &= add_to_spec(t, scratch, spec, find_or_add_check(t, scratch, &c));
    }
    if (!possible) {
        PyMem_Free(t->spec_checks[spec]);
        t->spec_checks[spec] = NULL;
        t->spec_nchecks[spec] = 0;
    }
    return 0;
}

static int *minus_ones(Py_ssize_t n)
{
    int *out = PyMem_Malloc(sizeof(int) * (size_t)(n + 1));
    for (Py_ssize_t i = 0; out != NULL && i <= n; i++) {
        out[i] = -1;
    }
    return out;
}

static int parse_lists(GuardTree *t, PyObject *lists, Py_ssize_t total)
{
    Py_ssize_t n = PyTuple_GET_SIZE(lists);
    Scratch scratch = {minus_ones(t->nexprs), minus_ones(total), minus_ones(total)};
    t->checks = PyMem_Calloc((size_t)total + 1, sizeof *t->checks);
    t->spec_checks = PyMem_Calloc((size_t)n + 1, sizeof *t->spec_checks);
    t->spec_nchecks = PyMem_Calloc((size_t)n + 1, sizeof *t->spec_nchecks);
    int failed = 0;
    if (t->checks == NULL || t->spec_checks == NULL || t->spec_nchecks == NULL || scratch.expr_checks == NULL ||
        scratch.slot_specs == NULL || scratch.slot_checks == NULL) {
        PyErr_NoMemory();
        failed = -1;
    } else {
        t->nspecs = (int)n;
    }
    for (int i = 0; failed == 0 && i < t->nspecs; i++) {
        failed = parse_spec(t, &scratch, i, PyTuple_GET_ITEM(lists, i));
    }
    PyMem_Free(scratch.expr_checks);
    PyMem_Free(scratch.slot_specs);
    PyMem_Free(scratch.slot_checks);
    return failed;
}

/* A tuple of tuples: the checks of each specialisation. NULL with an exception on anything else. */
static PyObject *check_lists(PyObject *specs, Py_ssize_t *total)
{
    PyObject *out = NULL;
    PyObject *seq = PySequence_Tuple(specs);
    if (seq == NULL || (out = PyTuple_New(PyTuple_GET_SIZE(seq))) == NULL) {
        Py_XDECREF(seq);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(seq); i++) {
        PyObject *spec = PyTuple_GET_ITEM(seq, i);
        if (!PyTuple_CheckExact(spec) || PyTuple_GET_SIZE(spec) < 1) {
            PyErr_Format(PyExc_TypeError, "specialisation %zd must be a tuple that begins with its checks", i);
            goto failed;
        }
        PyObject *checks = PySequence_Tuple(PyTuple_GET_ITEM(spec, 0));
        if (checks == NULL) {
            goto failed;
        }
        PyTuple_SET_ITEM(out, i, checks);
        *total += PyTuple_GET_SIZE(checks);
    }
    Py_DECREF(seq);
    return out;
failed:
    Py_DECREF(seq);
    Py_DECREF(out);
    return NULL;
}

static int parse_specs(GuardTree *t, PyObject *specs)
{
    Py_ssize_t total = 0;
    PyObject *lists = check_lists(specs, &total);
    if (lists == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(lists);
    if (n > GUARD_MAX_SPECS || total > GUARD_MAX_CHECKS) {
        PyErr_Format(PyExc_ValueError, "%zd specialisations with %zd checks; the limits are %d and %d", n, total,
                     GUARD_MAX_SPECS, GUARD_MAX_CHECKS);
        Py_DECREF(lists);
        return -1;
    }
    int failed = parse_lists(t, lists, total);
    Py_DECREF(lists);
    return failed;
}

GuardTree *GuardTree_new(PyObject *exprs, PyObject *specs)
{
    PyObject *expr_tuple = PySequence_Tuple(exprs);
    if (expr_tuple == NULL) {
        return NULL;
    }
    GuardTree *t = PyMem_Calloc(1, sizeof *t);
    if (t == NULL) {
        Py_DECREF(expr_tuple);
        PyErr_NoMemory();
        return NULL;
    }
    int failed = parse_exprs(t, expr_tuple) < 0 || parse_specs(t, specs) < 0 || guard_tree_build(t) < 0;
    Py_DECREF(expr_tuple);
    if (failed) {
        PyObject *type, *value, *traceback; /* freeing may run destructors */
        PyErr_Fetch(&type, &value, &traceback);
        GuardTree_free(t);
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    return t;
}

void GuardTree_free(GuardTree *t)
{
    if (t == NULL) {
        return;
    }
    for (int i = 0; i < t->nexprs; i++) {
        Py_XDECREF(t->exprs[i].arg);
    }
    for (int i = 0; i < t->nchecks; i++) {
        Py_XDECREF(t->checks[i].payload);
    }
    for (int i = 0; i < t->nspecs; i++) {
        PyMem_Free(t->spec_checks[i]);
    }
    PyMem_Free(t->exprs);
    PyMem_Free(t->checks);
    PyMem_Free(t->spec_checks);
    PyMem_Free(t->spec_nchecks);
    PyMem_Free(t->nodes);
    PyMem_Free(t->refs);
    PyMem_Free(t->branches);
    PyMem_Free(t);
}

int GuardTree_traverse(GuardTree *t, visitproc visit, void *arg)
{
    for (int i = 0; i < t->nexprs; i++) {
        Py_VISIT(t->exprs[i].arg);
    }
    for (int i = 0; i < t->nchecks; i++) {
        Py_VISIT(t->checks[i].payload);
    }
    return 0;
}

int GuardTree_nexprs(const GuardTree *t)
{
    return t->nexprs;
}

void GuardTree_reach(const GuardTree *t, int *slots, int *stack)
{
    *slots = *stack = 0;
    for (int i = 0; i < t->nexprs; i++) {
        const GuardExpr *e = &t->exprs[i];
        if (e->kind == EXPR_LOCAL || e->kind == EXPR_CELL) {
            *slots = e->number >= *slots ? (int)e->number + 1 : *slots;
        } else if (e->kind == EXPR_STACK) {
            *stack = e->number >= *stack ? (int)e->number + 1 : *stack;
        }
    }
}

/* ---- the module's part ------------------------------------------------------------------------------------------ */

static int add_kinds(PyObject *module, const char *name, const char *const *names, int n)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < n; i++) {
        PyObject *number = PyLong_FromLong(i);
        if (number == NULL || PyDict_SetItemString(dict, names[i], number) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(number);
    }
    int failed = dict == NULL ? -1 : PyModule_AddObjectRef(module, name, dict);
    Py_XDECREF(dict);
    return failed;
}

int guard_add_to_module(PyObject *module)
{
    if (guard_expr_init() < 0 || add_kinds(module, "EXPR_KINDS", guard_expr_names, EXPR_COUNT) < 0) {
        return -1;
    }
    return add_kinds(module, "CHECK_KINDS", guard_check_names, CHECK_COUNT);
}
