/* Shared declarations of the C core. One header: who provides what is said per section. */
#ifndef TIERUP_H
#define TIERUP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- frame_shim.h: the current interpreter frame, per CPython version ------------------------------------ */
/* Only frame_shim.c includes CPython's internal headers; everything else sees this view. */
typedef struct {
    void *raw;          /* the _PyInterpreterFrame */
    PyCodeObject *code; /* borrowed */
    PyObject *globals;  /* borrowed */
    PyObject *builtins; /* borrowed */
    PyObject *locals;   /* borrowed f_locals of module/class bodies, or NULL */
    PyObject *function; /* borrowed function object, or NULL */
    PyObject **slots;   /* localsplus; the value stack starts at slots[nlocalsplus] */
    int nlocalsplus;
    int instr; /* index of the current code unit */
} FrameView;

bool frame_current(PyThreadState *ts, FrameView *out); /* false: no Python frame */
bool frame_is_observed(
    PyThreadState *ts,
    const FrameView *f); /* settrace/setprofile/monitoring LINE, INSTRUCTION or CALL is active for it */

/* ---- guard_tree.c ------------------------------------------------------------------------------------------ */
typedef struct GuardTree GuardTree;

typedef struct { /* one lookup: values are evaluated at most once */
    const GuardTree *tree;
    const FrameView *frame;
    PyObject **values; /* owned references or NULL; GuardTree_nexprs long */
    uint8_t *evaluated;
} Lookup;

/* exprs, specs: see Site.install in _core.pyi. NULL with an exception set on malformed input. */
GuardTree *GuardTree_new(PyObject *exprs, PyObject *specs);
void GuardTree_free(GuardTree *);
int GuardTree_nexprs(const GuardTree *);
int GuardTree_traverse(GuardTree *, visitproc visit, void *arg);
void GuardTree_reach(const GuardTree *, int *slots,
                     int *stack); /* how many localsplus slots and stack positions its expressions read up to */
PyObject *GuardTree_text(const GuardTree *);
PyObject *Lookup_value(Lookup *, int expr); /* borrowed; NULL without exception: no value */
/* Calls try_spec(ctx, index) for every specialisation whose checks hold, most specific/oldest first, until it returns
   other than 1 (miss). Returns that value, or 1 when none matched. */
int GuardTree_lookup(Lookup *, int (*try_spec)(void *ctx, int spec_index), void *ctx);
void Lookup_clear(Lookup *);

/* ---- plan.c -------------------------------------------------------------------------------------------------- */
extern PyTypeObject Plan_Type;
extern PyTypeObject Kernel_Type;

typedef struct {  /* one entry of an exit snapshot */
    int32_t kind; /* EXIT_LOCAL … */
    int32_t slot; /* localsplus slot, stack position, cell slot; or index in the plan's constants (EXIT_NAME) */
    int32_t reg;  /* object register; -1: NULL (unbound, or a NULL on the stack; a deleted name) */
} ExitEntry;
enum { EXIT_LOCAL = 0, EXIT_STACK = 1, EXIT_CELL = 2, EXIT_NAME = 3 };

/* Runs the plan. Returns 0: done, regs[] (plan_nobjects of them) hold new references, NULL where unset; 1: miss,
   nothing happened; -1: exception set (only MemoryError and what a broken plan causes). lookup gives O_EXPR's values.
 */
int plan_run(PyObject *plan, Lookup *lookup, PyObject **regs, int *end); /* *end: which of its ends it came to */
int plan_nobjects(PyObject *plan);
int plan_nends(PyObject *plan);
const ExitEntry *plan_end(PyObject *plan, int end, int *n);
PyObject *plan_constant(PyObject *plan, int k); /* borrowed */
uint64_t plan_alarms(PyObject *plan);           /* how often FLAGS missed */

/* 64-bit metadata key of an exact ndarray (see ARRAY check): bits 0-7 type number (255 for user dtypes, dtypes with
   metadata and arrays whose first write warns), 8-15 rank, 16 C-contiguous, 17 F-contiguous, 18 aligned, 19 writeable,
   20 native byte order, 21 owns no data, 22 size is zero. */
uint64_t array_key(PyObject *ndarray);
bool array_check_exact(PyObject *o);                      /* false before init_numpy() */
bool array_dtype_equal(PyObject *value, PyObject *dtype); /* DTYPE_IS */
int numpy_ready(void);                                    /* 1 after _core.init_numpy() */

/* ---- threads.c ------------------------------------------------------------------------------------------------- */
/* Runs work(ctx, part) for part 0..nparts-1 on the pool and the caller; the GIL must not be needed by work. Workers
   start with the caller's floating-point environment; the floating-point exception flags they raise are OR-ed into the
   caller's. Safe after fork (the pool is made anew). */
void pool_run(void (*work)(void *ctx, int part), void *ctx, int nparts);
int pool_threads(void); /* TIERUP_NUM_THREADS, else cores available to the process */

/* ---- drive.c: address of the function that runs fused kernels, as DRIVE ------------------------------------- */
int drive_add_to_module(PyObject *module);

/* ---- site.c ------------------------------------------------------------------------------------------------------ */
extern PyTypeObject Site_Type;

/* module.c registers each file's types and functions through these (0 or -1) */
int site_add_to_module(PyObject *module);
int trial_add_to_module(PyObject *module);
int loop_helpers_add_to_module(PyObject *module); /* LOOP_HELPERS dict: addresses, offsets */
int guard_add_to_module(PyObject *module);        /* EXPR_KINDS, CHECK_KINDS dicts */
int plan_add_to_module(PyObject *module); /* Plan, Kernel, PLAN_OPS dict, init_numpy, ufunc_loop, set_num_threads … */
int run_main_add_to_module(PyObject *module); /* run_main, make_exec: the program that `tierup run` starts */

#endif
