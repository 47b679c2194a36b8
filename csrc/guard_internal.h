/* Shared by guard_expr.c, guard_check.c, guard_build.c, guard_tree.c and guard_text.c. */
#ifndef TIERUP_GUARD_INTERNAL_H
#define TIERUP_GUARD_INTERNAL_H

#include "frame_shim.h"

typedef enum {
#define GUARD_EXPR(name) EXPR_##name,
#include "guard_kinds.def"
    EXPR_COUNT
} ExprKind;

typedef enum {
#define GUARD_CHECK(name) CHECK_##name,
#include "guard_kinds.def"
    CHECK_COUNT
} CheckKind;

extern const char *const guard_expr_names[EXPR_COUNT];
extern const char *const guard_check_names[CHECK_COUNT];

typedef struct {
    uint8_t kind;
    bool unsure;    /* MODATTR of a name that the module type itself defines: never known */
    int base;       /* index of an earlier expression, or -1 */
    int64_t number; /* slot, position or index */
    PyObject *arg;  /* owned: name, key, constant or weakref; NULL where the kind takes a number */
    Py_hash_t hash; /* of a name or key */
    ShimMemo memo;  /* the last answer of the dict or type that it was asked of */
    ShimMemo meta;  /* CLASSATTR: of the metatype */
} GuardExpr;

typedef struct {
    uint8_t kind;
    bool keyed;  /* decided by comparing `key`: different keys exclude each other */
    bool verify; /* …and then `payload` must agree too (equal hashes, a dead weak reference) */
    bool never;  /* cannot hold any more: the weak payload was dead already */
    int expr;
    int next;      /* the previous check of the same expression, -1: none */
    int slot;      /* checks with the same slot look at the same thing and exclude each other */
    uint64_t mask; /* ARRAY */
    uint64_t key;
    PyObject *payload; /* owned, or NULL */
} GuardCheck;

typedef enum { NODE_FAIL, NODE_TRY, NODE_TESTS, NODE_SWITCH, NODE_LIST } NodeKind;

typedef struct {
    uint64_t key;
    int check; /* -1: empty place of a hash table */
    int node;
} GuardBranch;

/* FAIL: no specialisation is left.      TRY: run specialisation `first`, on a miss go on at `yes`.
   TESTS: `count` checks from refs[first]; all hold: `yes`, else `no`.
   SWITCH: `count` branches from branches[first], a hash table from GUARD_TABLE_FROM on; none fits: `no`. `yes` is one
   of its checks, for what they all look at. LIST: the plain form, used when a tree would grow too large: refs[first] on
   are, `count` times, (spec, n, n checks). */
typedef struct {
    uint8_t kind;
    uint8_t mentions; /* times this node is entered from others, up to 2: for the listing */
    int first;
    int count;
    int yes;
    int no;
} GuardNode;

struct GuardTree {
    int nexprs, nchecks, nspecs, nslots;
    GuardExpr *exprs;
    GuardCheck *checks; /* without duplicates */
    int **spec_checks;  /* per specialisation: its checks, NULL if they contradict each other */
    int *spec_nchecks;
    GuardNode *nodes;
    int nnodes, nodes_room;
    int *refs;
    int nrefs, refs_room;
    GuardBranch *branches;
    int nbranches, branches_room;
    int root;
};

enum { EVALUATED_NOT = 0, EVALUATED_SURE = 1, EVALUATED_UNSURE = 2 };
enum { GUARD_MAX_EXPRS = 4096, GUARD_MAX_CHECKS = 1 << 14, GUARD_MAX_SPECS = 4096, GUARD_TABLE_FROM = 5 };

/* guard_expr.c */
int guard_expr_init(void); /* once, at import */
int guard_expr_parse(GuardExpr *out, int index, PyObject *tuple);
PyObject *guard_expr_evaluate(Lookup *lookup, int index); /* fills the lookup's entry */

/* guard_check.c */
int guard_check_parse(GuardCheck *out, int nexprs, PyObject *tuple);
bool guard_checks_same(const GuardCheck *a, const GuardCheck *b);
bool guard_checks_same_slot(const GuardCheck *a, const GuardCheck *b);
/* The key under which a SWITCH on such checks files the value (not NULL); false: of another type, no branch can hold.
 */
bool guard_check_key(const GuardCheck *c, PyObject *value, uint64_t *key);
bool guard_check_verify(const GuardCheck *c, PyObject *value);
bool guard_check_unkeyed(const GuardCheck *c, PyObject *value); /* the other kinds but NULL */

/* guard_build.c */
int guard_tree_build(GuardTree *tree);

static inline uint64_t guard_mix(uint64_t x)
{
    x *= UINT64_C(0x9E3779B97F4A7C15);
    return x ^ (x >> 32);
}

#endif
