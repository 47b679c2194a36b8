/* What the core needs of CPython's insides beyond the current frame (tierup.h). Everything here is implemented in
   frame_shim.c, the one file that includes internal headers. */
#ifndef TIERUP_FRAME_SHIM_H
#define TIERUP_FRAME_SHIM_H

#include "tierup.h"

/* The answer of a lookup that must not run a user's code. UNSURE: only running such code could tell. */
typedef enum { LOOK_UNSURE = -1, LOOK_ABSENT = 0, LOOK_FOUND = 1 } Look;

/* dict[key] of an exact dict for an exact str or int key; *value is borrowed. Never calls a user's __eq__ or __hash__.
 */
Look shim_dict_get(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value);

/* obj's own attribute in its instance dict or inline values; *value is borrowed. Never materialises the dict. */
Look shim_instance_get(PyObject *obj, PyObject *name, Py_hash_t hash, PyObject **value);

/* First entry for name in the MRO of the type; *value is borrowed. */
Look shim_type_get(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value);

/* The same with a memory of one answer: dicts and types carry a version that changes with their contents. Start with
 * zeroes. */
typedef struct {
    const void *owner; /* not owned: a new object at the same address has another version */
    uint64_t version;
    PyObject *value; /* alive as long as the version holds */
    Look look;
} ShimMemo;
Look shim_dict_recall(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value, ShimMemo *memo);
Look shim_type_recall(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value, ShimMemo *memo);

/* Kind bits of a localsplus slot. */
bool shim_slot_is_cell(PyCodeObject *code, int slot);

PyThreadState *shim_thread_state(void);

/* Whether the code object is running its instruction `instr` right now, unobserved; fills the view if so. */
typedef enum { VISIT_ELSEWHERE, VISIT_OBSERVED, VISIT_HERE } Visiting;
Visiting shim_visit(PyThreadState *ts, PyObject *code, int instr, FrameView *out);

/* Where the interpreter looks for requests (signals, other threads, pending calls): set bits under the mask are some.
 */
const volatile int32_t *shim_eval_breaker(int32_t *mask);

/* A range iterator's state; false for anything else. */
typedef struct {
    int64_t next, step, left;
} ShimRange;
bool shim_range_read(PyObject *iterator, ShimRange *out);
void shim_range_write(PyObject *iterator, int64_t next, int64_t left);

/* The sequence and position of an iterator over a sequence or a list (borrowed); NULL for anything else and for an
 * exhausted one.
 */
PyObject *shim_seqiter_read(PyObject *iterator, int64_t *position);
void shim_seqiter_write(PyObject *iterator, int64_t position);
/* The k-th iterator (borrowed) that an enumerate or a zip that is not strict goes through; NULL for anything else. */
PyObject *shim_inner_iterator(PyObject *iterator, Py_ssize_t k);
Py_ssize_t shim_inner_count(PyObject *iterator);
int64_t shim_enum_index(PyObject *iterator); /* 0 of a zip */
void shim_enum_write(PyObject *iterator, int64_t index);

/* Around a call of the translator: a raised recursion budget, an empty exc_info, a context of its own, no tracing of
   its frames, no signal handlers; errno and the floating-point environment are put back afterwards. enter returns NULL
   with an exception set when it changed nothing. leave runs the handlers of signals that arrived meanwhile: -1 with
   what they raised. */
typedef struct ShimGuard ShimGuard;
ShimGuard *shim_guard_enter(PyThreadState *ts);
int shim_guard_leave(PyThreadState *ts, ShimGuard *guard);

/* Once, at import: compares what the shim sees with what CPython's own functions say. -1 with ImportError where they
   differ, as they would on an interpreter whose internal structures are not those of the headers used here. */
int shim_check(void);

#endif
