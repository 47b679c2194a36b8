/* A hit: looking up the guard tree, running the plan, writing its exit snapshot into the frame.
 *
 * Releasing an old value may run a destructor, and that any code: it may meet this site again in another frame, replace
 * its tree, look at the frame, start a tracer. So first everything is written, then what the hit block will still ask
 * for is filed under its frame, and only then are the old values released. */
#include "site.h"

#include <string.h>

/* ---- what install() installs --------------------------------------------------------------------------------- */

static int bad_exit(int spec, const char *what, int number)
{
    PyErr_Format(PyExc_ValueError, "specialisation %d: %s (%d)", spec, what, number);
    return -1;
}

static int add_write(SiteSpec *spec, SiteEnd *s, int index, const ExitEntry *e)
{
    SiteWrite *w = &s->writes[s->nwrites];
    *w = (SiteWrite){e->kind, e->slot, e->reg, NULL};
    if (e->slot < 0) {
        return bad_exit(index, "the exit has a negative slot", e->slot);
    }
    if (e->reg < -1 || e->reg >= spec->nregs) {
        return bad_exit(index, "the exit names an object register that the plan does not have", e->reg);
    }
    switch (e->kind) {
    case EXIT_LOCAL:
    case EXIT_CELL:
        s->nslots = e->slot >= s->nslots ? e->slot + 1 : s->nslots;
        s->has_cells |= e->kind == EXIT_CELL;
        break;
    case EXIT_STACK:
        break;
    case EXIT_NAME:
        w->name = plan_constant(spec->plan, e->slot);
        if (w->name == NULL || !PyUnicode_CheckExact(w->name)) {
            return bad_exit(index, "the exit stores a name that is no str among the plan's constants", e->slot);
        }
        s->has_names = true;
        break;
    default:
        return bad_exit(index, "the exit has an entry of unknown kind", e->kind);
    }
    s->nwrites++;
    return 0;
}

/* Stack values beyond the site's depth: there must be one for each position, and the top is NULL if and only if
   top_null says so (~site cannot return NULL). Without such values top_null means nothing. */
static int check_deep(SiteEnd *s, int index, int depth)
{
    int top = -1;
    for (int i = 0; i < s->nwrites; i++) {
        if (s->writes[i].kind == EXIT_STACK && s->writes[i].slot > top) {
            top = s->writes[i].slot;
        }
    }
    s->ndeep = top >= depth ? top + 1 - depth : 0;
    for (int position = depth; position <= top; position++) {
        int found = 0;
        for (int i = 0; i < s->nwrites; i++) {
            const SiteWrite *w = &s->writes[i];
            if (w->kind == EXIT_STACK && w->slot == position) {
                found++;
                if (position == top && (w->reg < 0) != s->top_null) {
                    return bad_exit(index, "top_null does not agree with the exit's top stack slot", position);
                }
            }
        }
        if (found != 1) {
            return bad_exit(index, "the exit must name each stack slot beyond the site's depth once", position);
        }
    }
    return 0;
}

static int parse_end(SiteSpec *spec, int number, int index, PyObject *exit, PyObject *top_null, int depth)
{
    SiteEnd *s = &spec->ends[number];
    int nentries = 0;
    if (!PyLong_CheckExact(exit) || !PyBool_Check(top_null)) {
        PyErr_Format(PyExc_TypeError, "specialisation %d: an end is an exit number and a bool", index);
        return -1;
    }
    long value = PyLong_AsLong(exit);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (value < -1 || value > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "specialisation %d: exit number %ld", index, value);
        return -1;
    }
    s->exit = (int)value;
    s->top_null = top_null == Py_True;
    const ExitEntry *entries = plan_end(spec->plan, number, &nentries);
    s->writes = PyMem_Calloc((size_t)nentries + 1, sizeof *s->writes);
    if (s->writes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < nentries; i++) {
        if (add_write(spec, s, index, &entries[i]) < 0) {
            return -1;
        }
    }
    spec->possible = spec->possible && s->exit >= 0;
    if (check_deep(s, index, depth) < 0) {
        return -1;
    }
    spec->max_deep = s->ndeep > spec->max_deep ? s->ndeep : spec->max_deep;
    return 0;
}

static int parse_early(SiteSpec *s, int index, PyObject *numbers)
{
    for (Py_ssize_t i = 0; PyTuple_CheckExact(numbers) && i < PyTuple_GET_SIZE(numbers); i++) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
        if (number < 0 || number >= s->nends) {
            return PyErr_Occurred() ? -1 : bad_exit(index, "there is no such end", (int)number);
        }
        s->ends[number].early = true;
    }
    return 0;
}

/* (checks, Plan, exit number, top_null), or tuples of as many of the latter two as the plan has ends; then there may be
   a fifth, the numbers of the ends at which a loop is left before it is through. */
static int parse_spec(SiteSpec *s, int index, PyObject *tuple, int depth)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) < 4 || PyTuple_GET_SIZE(tuple) > 5 ||
        !PyObject_TypeCheck(PyTuple_GET_ITEM(tuple, 1), &Plan_Type)) {
        PyErr_Format(PyExc_TypeError, "specialisation %d must be a tuple (checks, Plan, exit number, top_null)", index);
        return -1;
    }
    PyObject *exits = PyTuple_GET_ITEM(tuple, 2), *top_nulls = PyTuple_GET_ITEM(tuple, 3);
    bool several = PyTuple_CheckExact(exits) && PyTuple_CheckExact(top_nulls);
    s->plan = Py_NewRef(PyTuple_GET_ITEM(tuple, 1));
    s->nregs = plan_nobjects(s->plan);
    s->nends = plan_nends(s->plan);
    s->possible = true;
    s->ends = PyMem_Calloc((size_t)s->nends, sizeof *s->ends);
    if (s->ends == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (several ? PyTuple_GET_SIZE(exits) != s->nends || PyTuple_GET_SIZE(top_nulls) != s->nends : s->nends != 1) {
        PyErr_Format(PyExc_ValueError, "specialisation %d: the plan has %d ends", index, s->nends);
        return -1;
    }
    for (int i = 0; i < s->nends; i++) {
        PyObject *exit = several ? PyTuple_GET_ITEM(exits, i) : exits;
        PyObject *top_null = several ? PyTuple_GET_ITEM(top_nulls, i) : top_nulls;
        if (parse_end(s, i, index, exit, top_null, depth) < 0) {
            return -1;
        }
    }
    return PyTuple_GET_SIZE(tuple) == 5 ? parse_early(s, index, PyTuple_GET_ITEM(tuple, 4)) : 0;
}

static int parse_specs(Installed *inst, PyObject *specs, int depth)
{
    for (int i = 0; i < (int)PyTuple_GET_SIZE(specs); i++) {
        SiteSpec *s = &inst->specs[i];
        inst->nspecs = i + 1; /* a failing parse may already own parts */
        if (parse_spec(s, i, PyTuple_GET_ITEM(specs, i), depth) < 0) {
            return -1;
        }
        inst->max_regs = s->nregs > inst->max_regs ? s->nregs : inst->max_regs;
        for (int k = 0; k < s->nends; k++) {
            const SiteEnd *end = &s->ends[k];
            inst->nslots = end->nslots > inst->nslots ? end->nslots : inst->nslots;
            inst->max_writes = end->nwrites > inst->max_writes ? end->nwrites : inst->max_writes;
        }
    }
    return 0;
}

static Installed *installed_parse(PyObject *exprs, PyObject *specs, int depth)
{
    int slots = 0;
    int stack = 0;
    Installed *inst = PyMem_Calloc(1, sizeof *inst);
    if (inst == NULL ||
        (inst->specs = PyMem_Calloc((size_t)PyTuple_GET_SIZE(specs) + 1, sizeof *inst->specs)) == NULL) {
        PyMem_Free(inst);
        PyErr_NoMemory();
        return NULL;
    }
    inst->refs = 1;
    if (parse_specs(inst, specs, depth) < 0 || (inst->tree = GuardTree_new(exprs, specs)) == NULL) {
        goto failed;
    }
    inst->nexprs = GuardTree_nexprs(inst->tree);
    GuardTree_reach(inst->tree, &slots, &stack);
    if (stack > depth) {
        PyErr_Format(PyExc_ValueError, "a guard expression reads stack position %d; the site's depth is %d", stack - 1,
                     depth);
        goto failed;
    }
    inst->nslots = slots > inst->nslots ? slots : inst->nslots;
    return inst;
failed:;
    PyObject *type, *value, *traceback; /* freeing may run destructors */
    PyErr_Fetch(&type, &value, &traceback);
    installed_release(inst);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

Installed *installed_new(PyObject *exprs, PyObject *specs, int depth)
{
    PyObject *tuple = PySequence_Tuple(specs);
    if (tuple == NULL) {
        return NULL;
    }
    Installed *inst = NULL;
    if (PyTuple_GET_SIZE(tuple) > 4096) {
        PyErr_Format(PyExc_ValueError, "%zd specialisations; the limit is 4096", PyTuple_GET_SIZE(tuple));
    } else {
        inst = installed_parse(exprs, tuple, depth);
    }
    Py_DECREF(tuple);
    return inst;
}

void installed_release(Installed *inst)
{
    if (inst == NULL || --inst->refs > 0) {
        return;
    }
    GuardTree_free(inst->tree);
    for (int i = 0; i < inst->nspecs; i++) {
        SiteSpec *s = &inst->specs[i];
        for (int k = 0; s->ends != NULL && k < s->nends; k++) {
            PyMem_Free(s->ends[k].writes);
        }
        PyMem_Free(s->ends);
        Py_XDECREF(s->plan);
    }
    PyMem_Free(inst->specs);
    PyMem_Free(inst);
}

int installed_traverse(Installed *inst, visitproc visit, void *arg)
{
    for (int i = 0; i < inst->nspecs; i++) {
        Py_VISIT(inst->specs[i].plan);
    }
    return GuardTree_traverse(inst->tree, visit, arg);
}

int installed_fit(Installed *inst, PyCodeObject *code)
{
    if (inst->nslots > code->co_nlocalsplus) {
        PyErr_Format(PyExc_ValueError, "the guard tree or an exit uses slot %d; the code has %d", inst->nslots - 1,
                     code->co_nlocalsplus);
        return -1;
    }
    for (int i = 0; i < inst->nspecs; i++) {
        for (int e = 0; e < inst->specs[i].nends; e++) {
            SiteEnd *s = &inst->specs[i].ends[e];
            for (int k = 0; k < s->nwrites; k++) {
                s->has_cells |= s->writes[k].kind == EXIT_LOCAL && shim_slot_is_cell(code, s->writes[k].slot);
            }
        }
    }
    return 0;
}

/* ---- pending exits --------------------------------------------------------------------------------------------- */

/* Releases what the entry, which is in no list, still owns; that may run any code. */
static void pending_free(Site *site, SitePending *p)
{
    for (int i = 0; i < p->ndeep; i++) {
        Py_XDECREF(p->deep[i]);
    }
    if (p->spare_size && site->spare == NULL) {
        site->spare = p;
    } else {
        PyMem_Free(p);
    }
}

void site_drop_pending(Site *site)
{
    SitePending *p = site->pending;
    site->pending = NULL;
    while (p != NULL) {
        SitePending *next = p->next;
        pending_free(site, p);
        p = next;
    }
    PyMem_Free(site->spare);
    site->spare = NULL;
}

/* Takes the frame's entry out of the list. */
static SitePending *pending_take(Site *site, const void *frame)
{
    for (SitePending **link = &site->pending; *link != NULL; link = &(*link)->next) {
        if ((*link)->frame == frame) {
            SitePending *p = *link;
            *link = p->next;
            return p;
        }
    }
    return NULL;
}

static void pending_add(Site *site, SitePending *p)
{
    p->next = site->pending;
    site->pending = p;
}

static SitePending *pending_new(Site *site, void *frame, int ndeep)
{
    bool spare_size = ndeep <= SPARE_DEEP;
    SitePending *p = spare_size ? site->spare : NULL;
    if (p != NULL) {
        site->spare = NULL;
    } else {
        p = PyMem_Malloc(sizeof *p + sizeof(PyObject *) * (size_t)(spare_size ? SPARE_DEEP : ndeep));
    }
    if (p != NULL) {
        for (int i = 0; i < ndeep; i++) {
            p->deep[i] = NULL;
        }
        p->spare_size = spare_size;
        p->frame = frame;
        p->ndeep = ndeep;
    }
    return p;
}

/* ---- the visit ----------------------------------------------------------------------------------------------------
 */

enum { ON_STACK = 48 };

typedef struct {
    Site *site;
    PyThreadState *ts;
    const FrameView *frame;
    Installed *inst;
    Lookup lookup;
    PyObject **regs;
    PyObject **old; /* overwritten values, released last */
    int nold;
    SiteSpec *hit;
    const SiteEnd *end; /* of the hit */
    SitePending *pending;
    bool failed; /* the frame is written, but a namespace could not be */
} Visit;

static bool cells_fit(const SiteEnd *s, const FrameView *f)
{
    for (int i = 0; i < s->nwrites; i++) {
        const SiteWrite *w = &s->writes[i];
        if (w->kind != EXIT_CELL && (w->kind != EXIT_LOCAL || !shim_slot_is_cell(f->code, w->slot))) {
            continue;
        }
        /* An inlined comprehension can make a cell of a plain variable's slot for a while. */
        bool is_cell = f->slots[w->slot] != NULL && PyCell_Check(f->slots[w->slot]);
        if (is_cell != (w->kind == EXIT_CELL)) {
            return false;
        }
    }
    return true;
}

static bool names_fit(const SiteEnd *s, const FrameView *f)
{
    PyObject *unused;
    for (int i = 0; i < s->nwrites; i++) {
        PyObject *name = s->writes[i].name;
        if (name != NULL && shim_dict_get(f->locals, name, PyObject_Hash(name), &unused) == LOOK_UNSURE) {
            return false;
        }
    }
    return true;
}

static void write_name(Visit *v, PyObject *name, PyObject *value)
{
    PyObject *locals = v->frame->locals;
    PyObject *old = NULL;
    shim_dict_get(locals, name, PyObject_Hash(name), &old);
    v->old[v->nold++] = Py_XNewRef(old);
    if (value != NULL ? PyDict_SetItem(locals, name, value) < 0 : old != NULL && PyDict_DelItem(locals, name) < 0) {
        v->failed = true; /* no memory */
    }
}

static void write_exit(Visit *v, const SiteEnd *s)
{
    const FrameView *f = v->frame;
    for (int i = 0; i < s->nwrites; i++) {
        const SiteWrite *w = &s->writes[i];
        PyObject *value = w->reg < 0 ? NULL : v->regs[w->reg];
        PyObject **place;
        if (w->kind == EXIT_NAME) {
            write_name(v, w->name, value);
            continue;
        }
        if (w->kind == EXIT_LOCAL) {
            place = &f->slots[w->slot];
        } else if (w->kind == EXIT_CELL) {
            place = &((PyCellObject *)f->slots[w->slot])->ob_ref;
        } else if (w->slot < v->site->depth) {
            place = &f->slots[f->nlocalsplus + w->slot];
        } else {
            place = &v->pending->deep[w->slot - v->site->depth];
        }
        v->old[v->nold++] = *place;
        *place = Py_XNewRef(value);
    }
}

/* Whether the frame can take whatever end it comes to. */
static inline bool ends_fit(const SiteSpec *s, const FrameView *f)
{
    for (int i = 0; i < s->nends; i++) {
        const SiteEnd *e = &s->ends[i];
        if ((e->has_cells && !cells_fit(e, f)) || (e->has_names && !names_fit(e, f))) {
            return false;
        }
    }
    return true;
}

enum { EARLY_ENOUGH = 256, EARLY_TO_THROUGH = 8 };

/* A loop that is left again and again costs more than the interpreter: the translator is to hear of it. */
static inline void count_end(Site *site, SiteSpec *s, const SiteEnd *end)
{
    if (!end->early) {
        s->through++;
    } else if (++s->early >= EARLY_ENOUGH && s->early > EARLY_TO_THROUGH * s->through) {
        site->slow = true;
        site->countdown = 0;
    }
}

static int try_spec(void *ctx, int index)
{
    Visit *v = ctx;
    SiteSpec *s = &v->inst->specs[index];
    int end = 0;
    if (!s->possible || !ends_fit(s, v->frame)) {
        return 1;
    }
    if (s->max_deep > 0 && (v->pending = pending_new(v->site, v->frame->raw, s->max_deep)) == NULL) {
        return 1;
    }
    int result = plan_run(s->plan, &v->lookup, v->regs, &end);
    if (result != 0) {
        if (v->pending != NULL) {
            pending_free(v->site, v->pending); /* still empty */
        }
        v->pending = NULL;
        return result;
    }
    v->hit = s;
    v->end = &s->ends[end];
    count_end(v->site, s, v->end);
    if (v->pending != NULL && v->end->ndeep == 0) {
        pending_free(v->site, v->pending); /* another end would have needed it */
        v->pending = NULL;
    }
    if (v->pending != NULL) {
        v->pending->exit = v->end->exit;
        v->pending->ndeep = v->end->ndeep;
        v->pending->top_null = v->end->top_null;
    }
    write_exit(v, v->end);
    return 0;
}

/* Everything is written. From here on other code may run. */
static void settle_hit(Visit *v)
{
    Site *site = v->site;
    SiteSpec *s = v->hit;
    void *frame = v->frame->raw;
    int exit = v->end->exit;
    SitePending *stale = site->pending == NULL ? NULL : pending_take(site, frame);
    if (v->pending != NULL) {
        pending_add(site, v->pending);
    }
    site->hits++;
    s->hits++;
    for (int i = 0; i < v->nold; i++) {
        Py_XDECREF(v->old[i]);
    }
    for (int i = 0; i < s->nregs; i++) {
        Py_XDECREF(v->regs[i]);
    }
    if (stale != NULL) {
        pending_free(site, stale);
    }
    Lookup_clear(&v->lookup);
    if (v->pending == NULL && frame_is_observed(v->ts, v->frame)) {
        /* A destructor started a tracer, which will run code between here and the hit block's question for the exit
         * number. */
        SitePending *note = pending_new(site, frame, -1);
        if (note != NULL) {
            note->exit = exit;
            note->top_null = false;
            pending_add(site, note);
        }
    }
    installed_release(v->inst);
    site->last_exit = exit;
    site->last_frame = frame;
}

static inline int look_up(Visit *v)
{
    v->inst->refs++;
    int result = GuardTree_lookup(&v->lookup, try_spec, v);
    if (result == 0) {
        settle_hit(v);
        return v->failed ? -1 : 1;
    }
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    if (result < 0) {
        PyErr_Fetch(&type, &value, &traceback);
    }
    Lookup_clear(&v->lookup);
    installed_release(v->inst);
    if (result < 0) {
        PyErr_Restore(type, value, traceback);
    }
    return result < 0 ? -1 : 0;
}

int site_lookup(Site *site, PyThreadState *ts, const FrameView *frame)
{
    Installed *inst = site->installed;
    size_t nexprs = (size_t)inst->nexprs;
    size_t nregs = (size_t)inst->max_regs;
    size_t nold = (size_t)inst->max_writes;
    Visit v = {.site = site, .ts = ts, .frame = frame, .inst = inst, .lookup = {.tree = inst->tree, .frame = frame}};
    if (nexprs <= ON_STACK && nregs <= ON_STACK && nold <= ON_STACK) {
        PyObject *values[ON_STACK];
        PyObject *regs[ON_STACK];
        PyObject *old[ON_STACK];
        uint8_t evaluated[ON_STACK] = {0};
        v.lookup.values = values;
        v.lookup.evaluated = evaluated;
        v.regs = regs;
        v.old = old;
        return look_up(&v);
    }
    PyObject **heap = PyMem_Malloc(sizeof(PyObject *) * (nexprs + nregs + nold) + nexprs);
    if (heap == NULL) {
        return 0;
    }
    v.lookup.values = heap;
    v.regs = heap + nexprs;
    v.old = heap + nexprs + nregs;
    v.lookup.evaluated = (uint8_t *)(heap + nexprs + nregs + nold);
    memset(v.lookup.evaluated, 0, nexprs);
    int result = look_up(&v);
    PyMem_Free(heap);
    return result;
}

/* ---- what the hit block asks for ----------------------------------------------------------------------------------
 */

static PyObject *no_hit(void)
{
    PyErr_SetString(PyExc_RuntimeError, "the site has no hit of this frame to answer for");
    return NULL;
}

int site_exit_number(Site *site, PyThreadState *ts)
{
    FrameView f;
    if (!frame_current(ts, &f)) {
        no_hit();
        return -1;
    }
    for (SitePending *p = site->pending; p != NULL; p = p->next) {
        if (p->frame == f.raw) {
            int exit = p->exit;
            if (p->ndeep < 0) {
                pending_free(site, pending_take(site, f.raw));
            }
            return exit;
        }
    }
    if (site->last_frame != f.raw) {
        no_hit();
        return -1;
    }
    return site->last_exit;
}

PyObject *site_fetch_deep(Site *site, PyThreadState *ts)
{
    FrameView f;
    SitePending *p = frame_current(ts, &f) ? pending_take(site, f.raw) : NULL;
    if (p == NULL || p->ndeep < 0 || site->depth + p->ndeep > f.code->co_stacksize) {
        if (p != NULL) {
            pending_free(site, p);
        }
        return no_hit();
    }
    PyObject **stack = f.slots + f.nlocalsplus + site->depth;
    int filled = p->top_null ? p->ndeep : p->ndeep - 1;
    PyObject *top = p->top_null ? Py_NewRef(Py_None) : p->deep[filled];
    for (int i = 0; i < filled; i++) {
        PyObject *placeholder = stack[i];
        stack[i] = p->deep[i];
        p->deep[i] = placeholder;
    }
    p->ndeep = filled;
    pending_free(site, p);
    if (top == NULL) {
        PyErr_SetString(PyExc_SystemError, "the plan left the register of the top stack slot empty");
    }
    return top;
}
