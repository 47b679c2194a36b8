/* Builds the guard tree: from a list of specialisations, each a list of checks, to nodes in which a check that several
 * of them share is made once and checks of one slot against different payloads are a switch.
 *
 * A state is an ordered list of (specialisation, checks still to be made); a node decides a state. The first
 * specialisation of a state is tried as soon as nothing is left of its checks, so the given order is the order of
 * trials. Equal states share one node. */
#include "guard_internal.h"

#include <string.h>

/* A state as ints: then, per specialisation, its number, the number of checks left, and those. */
typedef struct {
    int *words;
    int nwords;
    int nspecs;
} State;

typedef struct {
    uint64_t hash;
    State state;
    int node; /* -1: empty */
} Memo;

typedef struct {
    GuardTree *tree;
    Memo *memo;
    size_t memo_size, memo_used;
    int *counts; /* per slot: specialisations of the state that look at it */
    int max_nodes;
} Builder;

static int build(Builder *b, State *state);

/* ---- growing arrays ------------------------------------------------------------------------------------------ */

static void *grow(void *array, int *room, int needed, size_t size)
{
    if (needed <= *room) {
        return array;
    }
    int wanted = needed + needed / 2 + 8;
    void *bigger = PyMem_Realloc(array, (size_t)wanted * size);
    if (bigger == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *room = wanted;
    return bigger;
}

static int add_node(GuardTree *t, NodeKind kind)
{
    GuardNode *nodes = grow(t->nodes, &t->nodes_room, t->nnodes + 1, sizeof *nodes);
    if (nodes == NULL) {
        return -1;
    }
    t->nodes = nodes;
    nodes[t->nnodes] = (GuardNode){.kind = (uint8_t)kind, .yes = -1, .no = -1};
    return t->nnodes++;
}

static int add_ref(GuardTree *t, int ref)
{
    int *refs = grow(t->refs, &t->refs_room, t->nrefs + 1, sizeof *refs);
    if (refs == NULL) {
        return -1;
    }
    t->refs = refs;
    refs[t->nrefs++] = ref;
    return 0;
}

/* ---- states -------------------------------------------------------------------------------------------------- */

static int state_alloc(State *s, int nwords)
{
    s->nspecs = s->nwords = 0;
    s->words = PyMem_Malloc(sizeof(int) * (size_t)(nwords > 0 ? nwords : 1));
    if (s->words == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void state_free(State *s)
{
    PyMem_Free(s->words);
    s->words = NULL;
}

static void state_push(State *s, const int *spec, int skip_check)
{
    int *out = s->words + s->nwords;
    int n = 0;
    out[0] = spec[0];
    for (int i = 0; i < spec[1]; i++) {
        if (spec[2 + i] != skip_check) {
            out[2 + n++] = spec[2 + i];
        }
    }
    out[1] = n;
    s->nwords += 2 + n;
    s->nspecs++;
}

#define FOR_SPECS(spec, state)                                                                                         \
    for (const int *spec = (state)->words, *end_ = spec + (state)->nwords; spec < end_; spec += 2 + spec[1])

/* The check of this specialisation that looks at the slot, or -1. */
static int check_at_slot(const GuardTree *t, const int *spec, int slot)
{
    for (int i = 0; i < spec[1]; i++) {
        if (t->checks[spec[2 + i]].slot == slot) {
            return spec[2 + i];
        }
    }
    return -1;
}

/* What is left when the check holds (check >= 0) or no check of the slot does (check < 0). */
static int state_after(const GuardTree *t, const State *from, int slot, int check, State *out)
{
    if (state_alloc(out, from->nwords) < 0) {
        return -1;
    }
    FOR_SPECS(spec, from)
    {
        int mine = check_at_slot(t, spec, slot);
        if (mine < 0 || mine == check) {
            state_push(out, spec, check);
        }
    }
    return 0;
}

static int state_rest(const State *from, State *out)
{
    if (state_alloc(out, from->nwords) < 0) {
        return -1;
    }
    FOR_SPECS(spec, from)
    {
        if (spec != from->words) {
            state_push(out, spec, -1);
        }
    }
    return 0;
}

/* ---- memo ------------------------------------------------------------------------------------------------------ */

static uint64_t state_hash(const State *s)
{
    uint64_t h = (uint64_t)s->nwords;
    for (int i = 0; i < s->nwords; i++) {
        h = guard_mix(h ^ (uint64_t)(uint32_t)s->words[i]);
    }
    return h;
}

static Memo *memo_place(Memo *table, size_t size, uint64_t hash, const State *s)
{
    for (size_t i = (size_t)hash & (size - 1);; i = (i + 1) & (size - 1)) {
        Memo *m = &table[i];
        if (m->node < 0 || (m->hash == hash && m->state.nwords == s->nwords &&
                            memcmp(m->state.words, s->words, sizeof(int) * (size_t)s->nwords) == 0)) {
            return m;
        }
    }
}

static Memo *memo_table(size_t size)
{
    Memo *table = PyMem_Malloc(sizeof(Memo) * size);
    if (table == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        table[i].node = -1;
    }
    return table;
}

/* Takes the state over. */
static int memo_put(Builder *b, State *s, int node)
{
    if ((b->memo_used + 1) * 2 > b->memo_size) {
        size_t size = b->memo_size * 2;
        Memo *table = memo_table(size);
        if (table == NULL) {
            return -1;
        }
        for (size_t i = 0; i < b->memo_size; i++) {
            if (b->memo[i].node >= 0) {
                *memo_place(table, size, b->memo[i].hash, &b->memo[i].state) = b->memo[i];
            }
        }
        PyMem_Free(b->memo);
        b->memo = table;
        b->memo_size = size;
    }
    uint64_t hash = state_hash(s);
    Memo *m = memo_place(b->memo, b->memo_size, hash, s);
    *m = (Memo){hash, *s, node};
    b->memo_used++;
    s->words = NULL;
    return 0;
}

static void memo_free(Builder *b)
{
    for (size_t i = 0; b->memo != NULL && i < b->memo_size; i++) {
        if (b->memo[i].node >= 0) {
            state_free(&b->memo[i].state);
        }
    }
    PyMem_Free(b->memo);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Of the first specialisation's checks the slot that most specialisations look at; the earliest among equals. */
static int choose_slot(Builder *b, const State *s)
{
    const GuardTree *t = b->tree;
    const int *first = s->words;
    int best = -1;
    FOR_SPECS(spec, s)
    {
        for (int i = 0; i < spec[1]; i++) {
            b->counts[t->checks[spec[2 + i]].slot]++;
        }
    }
    for (int i = 0; i < first[1]; i++) {
        int slot = t->checks[first[2 + i]].slot;
        if (best < 0 || b->counts[slot] > b->counts[best]) {
            best = slot;
        }
    }
    FOR_SPECS(spec, s)
    {
        for (int i = 0; i < spec[1]; i++) {
            b->counts[t->checks[spec[2 + i]].slot] = 0;
        }
    }
    return best;
}

static bool one_payload(const GuardTree *t, const State *s, int slot)
{
    int only = -1;
    FOR_SPECS(spec, s)
    {
        int check = check_at_slot(t, spec, slot);
        if (check >= 0 && only >= 0 && check != only) {
            return false;
        }
        only = check >= 0 ? check : only;
    }
    return true;
}

/* Whether exactly the specialisations that look at one slot look at the other. */
static bool same_specs(const GuardTree *t, const State *before, int slot, const State *after, int next_slot)
{
    const int *a = before->words;
    const int *z = after->words;
    for (int i = 0; i < before->nspecs; i++) {
        if ((check_at_slot(t, a, slot) >= 0) != (check_at_slot(t, z, next_slot) >= 0)) {
            return false;
        }
        a += 2 + a[1];
        z += 2 + z[1];
    }
    return true;
}

/* ---- nodes --------------------------------------------------------------------------------------------------------
 */

static int build_try(Builder *b, const State *s)
{
    State rest;
    int node = add_node(b->tree, NODE_TRY);
    if (node < 0 || state_rest(s, &rest) < 0) {
        return -1;
    }
    b->tree->nodes[node].first = s->words[0];
    int next = build(b, &rest);
    if (next < 0) {
        return -1;
    }
    b->tree->nodes[node].yes = next;
    return node;
}

/* A run of checks whose failure leads to the same place. */
static int build_tests(Builder *b, const State *s, int slot)
{
    GuardTree *t = b->tree;
    State no = {0};
    State now = {0};
    int first = t->nrefs;
    int check = check_at_slot(t, s->words, slot);
    if (add_ref(t, check) < 0 || state_after(t, s, slot, -1, &no) < 0) {
        return -1;
    }
    if (state_after(t, s, slot, check, &now) < 0) {
        state_free(&no);
        return -1;
    }
    int node = -1;
    while (now.words[1] > 0) {
        int next = choose_slot(b, &now);
        if (!one_payload(t, &now, next) || !same_specs(t, s, slot, &now, next)) {
            break;
        }
        State after = {0};
        check = check_at_slot(t, now.words, next);
        if (add_ref(t, check) < 0 || state_after(t, &now, next, check, &after) < 0) {
            goto failed;
        }
        state_free(&now);
        now = after;
    }
    node = add_node(t, NODE_TESTS);
    if (node < 0) {
        goto failed;
    }
    t->nodes[node].first = first;
    t->nodes[node].count = t->nrefs - first;
    int yes = build(b, &now);
    if (yes < 0) {
        state_free(&no);
        return -1;
    }
    int otherwise = build(b, &no);
    if (otherwise < 0) {
        return -1;
    }
    t->nodes[node].yes = yes;
    t->nodes[node].no = otherwise;
    return node;
failed:
    state_free(&now);
    state_free(&no);
    return -1;
}

static int distinct_checks(const GuardTree *t, const State *s, int slot, int *out)
{
    int n = 0;
    FOR_SPECS(spec, s)
    {
        int check = check_at_slot(t, spec, slot);
        bool seen = check < 0;
        for (int i = 0; i < n && !seen; i++) {
            seen = out[i] == check;
        }
        if (!seen) {
            out[n++] = check;
        }
    }
    return n;
}

static int add_branches(GuardTree *t, int n)
{
    GuardBranch *branches = grow(t->branches, &t->branches_room, t->nbranches + n, sizeof *branches);
    if (branches == NULL) {
        return -1;
    }
    t->branches = branches;
    for (int i = 0; i < n; i++) {
        branches[t->nbranches + i] = (GuardBranch){0, -1, -1};
    }
    t->nbranches += n;
    return t->nbranches - n;
}

static void put_branch(GuardTree *t, int first, int size, bool hashed, int check, int child)
{
    GuardBranch *branches = t->branches + first;
    uint64_t key = t->checks[check].key;
    int i = hashed ? (int)(guard_mix(key) & (uint64_t)(size - 1)) : 0;
    while (branches[i].check >= 0) {
        i = (i + 1) & (hashed ? size - 1 : INT32_MAX);
    }
    branches[i] = (GuardBranch){key, check, child};
}

static int build_switch(Builder *b, const State *s, int slot)
{
    GuardTree *t = b->tree;
    int *checks = PyMem_Malloc(sizeof(int) * (size_t)s->nspecs);
    if (checks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int node = -1;
    int n = distinct_checks(t, s, slot, checks);
    bool hashed = n >= GUARD_TABLE_FROM;
    int size = n;
    for (size = hashed ? 8 : n; hashed && size < 2 * n; size *= 2) {
    }
    int first = add_branches(t, size);
    if (first < 0 || (node = add_node(t, NODE_SWITCH)) < 0) {
        goto failed;
    }
    t->nodes[node].first = first;
    t->nodes[node].count = size;
    t->nodes[node].yes = checks[0];
    State next;
    for (int i = 0; i < n; i++) {
        int child = state_after(t, s, slot, checks[i], &next) < 0 ? -1 : build(b, &next);
        if (child < 0) {
            goto failed;
        }
        put_branch(t, first, size, hashed, checks[i], child);
    }
    int otherwise = state_after(t, s, slot, -1, &next) < 0 ? -1 : build(b, &next);
    if (otherwise < 0) {
        goto failed;
    }
    t->nodes[node].no = otherwise;
    PyMem_Free(checks);
    return node;
failed:
    PyMem_Free(checks);
    return -1;
}

static int build_list(Builder *b, const State *s)
{
    GuardTree *t = b->tree;
    int first = t->nrefs;
    int node = add_node(t, NODE_LIST);
    for (int i = 0; node >= 0 && i < s->nwords; i++) {
        if (add_ref(t, s->words[i]) < 0) {
            return -1;
        }
    }
    if (node >= 0) {
        t->nodes[node].first = first;
        t->nodes[node].count = s->nspecs;
    }
    return node;
}

static int build_new(Builder *b, const State *s)
{
    if (s->nspecs == 0) {
        return add_node(b->tree, NODE_FAIL);
    }
    if (b->tree->nnodes >= b->max_nodes) {
        return build_list(b, s);
    }
    if (s->words[1] == 0) {
        return build_try(b, s);
    }
    int slot = choose_slot(b, s);
    return one_payload(b->tree, s, slot) ? build_tests(b, s, slot) : build_switch(b, s, slot);
}

/* Node for the state; takes the state over. */
static int build(Builder *b, State *s)
{
    Memo *known = memo_place(b->memo, b->memo_size, state_hash(s), s);
    if (known->node >= 0) {
        int node = known->node;
        b->tree->nodes[node].mentions = 2;
        state_free(s);
        return node;
    }
    int node = build_new(b, s);
    if (node < 0 || memo_put(b, s, node) < 0) {
        state_free(s);
        return -1;
    }
    return node;
}

static int first_state(const GuardTree *t, State *s)
{
    int nwords = 0;
    for (int i = 0; i < t->nspecs; i++) {
        nwords += 2 + t->spec_nchecks[i];
    }
    if (state_alloc(s, nwords) < 0) {
        return -1;
    }
    for (int i = 0; i < t->nspecs; i++) {
        if (t->spec_checks[i] != NULL) {
            s->words[s->nwords++] = i;
            s->words[s->nwords++] = t->spec_nchecks[i];
            memcpy(s->words + s->nwords, t->spec_checks[i], sizeof(int) * (size_t)t->spec_nchecks[i]);
            s->nwords += t->spec_nchecks[i];
            s->nspecs++;
        }
    }
    return 0;
}

int guard_tree_build(GuardTree *t)
{
    /* The bound also bounds the recursion of build(). */
    Builder b = {.tree = t, .memo_size = 64, .max_nodes = 64 + 2 * t->nchecks + 4 * t->nspecs};
    State all;
    int root = -1;
    if (b.max_nodes > 2048) {
        b.max_nodes = 2048;
    }
    b.memo = memo_table(b.memo_size);
    b.counts = PyMem_Calloc((size_t)t->nslots + 1, sizeof(int));
    if (b.memo != NULL && b.counts != NULL && first_state(t, &all) == 0) {
        root = build(&b, &all);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    memo_free(&b);
    PyMem_Free(b.counts);
    t->root = root;
    return root < 0 ? -1 : 0;
}
