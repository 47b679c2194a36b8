/* The guard tree at work: one lookup. The commonest expressions and checks are decided here, in line; guard_expr.c and
 * guard_check.c have all. */
#include "guard_internal.h"

typedef int (*TrySpec)(void *ctx, int spec_index);

static inline PyObject *value_of(Lookup *lookup, int index)
{
    if (lookup->evaluated[index] != EVALUATED_NOT) {
        return lookup->values[index];
    }
    const GuardExpr *e = &lookup->tree->exprs[index];
    if (e->kind == EXPR_LOCAL) {
        PyObject *value = lookup->frame->slots[e->number];
        lookup->evaluated[index] = EVALUATED_SURE;
        return lookup->values[index] = Py_XNewRef(value);
    }
    return guard_expr_evaluate(lookup, index);
}

PyObject *Lookup_value(Lookup *lookup, int index)
{
    return value_of(lookup, index);
}

static inline bool key_of(const GuardCheck *c, PyObject *value, uint64_t *key)
{
    switch (c->kind) {
    case CHECK_TYPE_IS:
        *key = (uint64_t)(uintptr_t)Py_TYPE(value);
        return true;
    case CHECK_IS:
        *key = (uint64_t)(uintptr_t)value;
        return true;
    case CHECK_ARRAY:
        if (!array_check_exact(value)) {
            return false;
        }
        *key = array_key(value) & c->mask;
        return true;
    default:
        return guard_check_key(c, value, key);
    }
}

static inline bool holds(const GuardCheck *c, Lookup *lookup)
{
    uint64_t key;
    PyObject *value = value_of(lookup, c->expr);
    if (value == NULL) {
        return c->kind == CHECK_NULL && lookup->evaluated[c->expr] == EVALUATED_SURE;
    }
    if (!c->keyed) {
        return guard_check_unkeyed(c, value);
    }
    return key_of(c, value, &key) && key == c->key && (!c->verify || (!c->never && guard_check_verify(c, value)));
}

static int take_branch(const GuardTree *t, const GuardNode *node, Lookup *lookup)
{
    const GuardBranch *branches = t->branches + node->first;
    const GuardCheck *any = &t->checks[node->yes];
    bool hashed = node->count >= GUARD_TABLE_FROM;
    uint64_t key;
    PyObject *value = value_of(lookup, any->expr);
    if (value == NULL || !key_of(any, value, &key)) {
        return node->no;
    }
    int i = hashed ? (int)(guard_mix(key) & (uint64_t)(node->count - 1)) : 0;
    for (int left = node->count; left > 0; left--) {
        const GuardBranch *branch = &branches[i];
        if (branch->check < 0) {
            break;
        }
        if (branch->key == key) {
            const GuardCheck *c = &t->checks[branch->check];
            if (!c->verify || guard_check_verify(c, value)) {
                return branch->node;
            }
        }
        i = hashed ? (i + 1) & (node->count - 1) : i + 1;
    }
    return node->no;
}

static inline bool all_hold(const GuardTree *t, const int *refs, int n, Lookup *lookup)
{
    for (int i = 0; i < n; i++) {
        if (!holds(&t->checks[refs[i]], lookup)) {
            return false;
        }
    }
    return true;
}

static int run_list(const GuardTree *t, const GuardNode *node, Lookup *lookup, TrySpec try_spec, void *ctx)
{
    const int *words = t->refs + node->first;
    for (int i = 0; i < node->count; i++, words += 2 + words[1]) {
        if (all_hold(t, words + 2, words[1], lookup)) {
            int result = try_spec(ctx, words[0]);
            if (result != 1) {
                return result;
            }
        }
    }
    return 1;
}

int GuardTree_lookup(Lookup *lookup, TrySpec try_spec, void *ctx)
{
    const GuardTree *t = lookup->tree;
    int at = t->root;
    for (;;) {
        const GuardNode *node = &t->nodes[at];
        switch ((NodeKind)node->kind) {
        case NODE_FAIL:
            return 1;
        case NODE_TRY: {
            int result = try_spec(ctx, node->first);
            if (result != 1) {
                return result;
            }
            at = node->yes;
            break;
        }
        case NODE_TESTS:
            at = all_hold(t, t->refs + node->first, node->count, lookup) ? node->yes : node->no;
            break;
        case NODE_SWITCH:
            at = take_branch(t, node, lookup);
            break;
        case NODE_LIST:
            return run_list(t, node, lookup, try_spec, ctx);
        }
    }
}

void Lookup_clear(Lookup *lookup)
{
    int n = lookup->tree->nexprs;
    for (int i = 0; i < n; i++) {
        if (lookup->evaluated[i] != EVALUATED_NOT) {
            lookup->evaluated[i] = EVALUATED_NOT;
            Py_XDECREF(lookup->values[i]);
        }
    }
}
