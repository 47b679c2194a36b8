/* The only file that knows CPython's internal structures. Each function says per version where things are. */
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif
#include "frame_shim.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "tierup supports CPython 3.11, 3.12 and 3.13; this version's frame layout is not known to csrc/frame_shim.c"
#endif
#ifdef Py_GIL_DISABLED
#error "tierup does not support free-threaded builds of CPython yet"
#endif
#ifdef PYPY_VERSION
#error "tierup works on CPython only"
#endif

#include <errno.h>
#include <fenv.h>
#include <string.h>

#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_object.h"
#include "internal/pycore_runtime.h"
#if PY_VERSION_HEX >= 0x030C0000
#include "internal/pycore_range.h"
#endif
#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_ceval.h"
#endif

/* ---- the current frame --------------------------------------------------------------------------------------- */

PyThreadState *shim_thread_state(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

bool frame_current(PyThreadState *ts, FrameView *out)
{
#if PY_VERSION_HEX >= 0x030D0000
    _PyInterpreterFrame *f = ts->current_frame;
#else
    _PyInterpreterFrame *f = ts->cframe->current_frame;
#endif
    if (f == NULL) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030C0000
    if (f->owner == FRAME_OWNED_BY_CSTACK) {
        return false;
    }
#endif
#if PY_VERSION_HEX >= 0x030D0000
    if (!PyCode_Check(f->f_executable)) {
        return false;
    }
    PyCodeObject *code = (PyCodeObject *)f->f_executable;
    out->function = f->f_funcobj;
    out->instr = (int)(f->instr_ptr - _PyCode_CODE(code));
#elif PY_VERSION_HEX >= 0x030C0000
    PyCodeObject *code = f->f_code;
    out->function = f->f_funcobj;
    out->instr = (int)(f->prev_instr - _PyCode_CODE(code));
#else
    PyCodeObject *code = f->f_code;
    out->function = (PyObject *)f->f_func;
    out->instr = (int)(f->prev_instr - _PyCode_CODE(code));
#endif
    out->raw = f;
    out->code = code;
    out->globals = f->f_globals;
    out->builtins = f->f_builtins;
    /* Optimised code keeps a snapshot made by locals() there on 3.11 and 3.12: not a namespace the code reads. */
    out->locals = (code->co_flags & CO_OPTIMIZED) ? NULL : f->f_locals;
    out->slots = f->localsplus;
    out->nlocalsplus = code->co_nlocalsplus;
    return true;
}

#if PY_VERSION_HEX >= 0x030C0000
/* Bits of the tools that watch what a region would leave out: CALL, LINE, INSTRUCTION, JUMP, BRANCH and STOP_ITERATION
   events, which are neighbours. Tools 6 and 7 are setprofile and settrace, which are per thread and looked up there. */
static inline bool watching(const uint8_t *tools)
{
    static const uint8_t looked_at[8] = {0, 0, 0x3F, 0x3F, 0x3F, 0x3F, 0x3F, 0x3F};
    _Static_assert(PY_MONITORING_EVENT_CALL == 4 && PY_MONITORING_EVENT_STOP_ITERATION == 9, "event numbers moved");
    uint64_t eight, mask; /* events 2 to 9 at once */
    memcpy(&eight, tools + 2, sizeof eight);
    memcpy(&mask, looked_at, sizeof mask);
    return (eight & mask) != 0;
}
#endif

bool frame_is_observed(PyThreadState *ts, const FrameView *f)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (ts->c_tracefunc != NULL || ts->c_profilefunc != NULL) {
        return true;
    }
    /* Setting global events instruments all code that is running, so what this code object says is enough
       (instrumentation.c: instrument_all_executing_code_objects). */
    const _PyCoMonitoringData *data = f->code->_co_monitoring;
    return data != NULL && (watching(data->local_monitors.tools) || watching(data->active_monitors.tools));
#else
    (void)f;
    return ts->cframe->use_tracing != 0;
#endif
}

Visiting shim_visit(PyThreadState *ts, PyObject *code, int instr, FrameView *out)
{
    if (!frame_current(ts, out) || (PyObject *)out->code != code || out->instr != instr) {
        return VISIT_ELSEWHERE;
    }
    return frame_is_observed(ts, out) ? VISIT_OBSERVED : VISIT_HERE;
}

bool shim_slot_is_cell(PyCodeObject *code, int slot)
{
    return (_PyLocals_GetKind(code->co_localspluskinds, slot) & (CO_FAST_CELL | CO_FAST_FREE)) != 0;
}

/* ---- dicts without user code ------------------------------------------------------------------------------------ */

static Py_ssize_t index_at(const PyDictKeysObject *keys, size_t i)
{
    int log2_size = DK_LOG_SIZE(keys);
    if (log2_size < 8) {
        return ((const int8_t *)keys->dk_indices)[i];
    }
    if (log2_size < 16) {
        return ((const int16_t *)keys->dk_indices)[i];
    }
#if SIZEOF_VOID_P > 4
    if (log2_size >= 32) {
        return (Py_ssize_t)((const int64_t *)keys->dk_indices)[i];
    }
#endif
    return ((const int32_t *)keys->dk_indices)[i];
}

static bool str_equal(PyObject *a, PyObject *b)
{
    return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
}

/* Whether comparing with an object of this type runs nobody's code. */
static bool plain_key_type(PyTypeObject *type)
{
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type ||
           type == &PyBytes_Type || type == &PyComplex_Type || type == Py_TYPE(Py_None);
}

static Look keys_equal(PyObject *stored, PyObject *key)
{
    if (!plain_key_type(Py_TYPE(stored))) {
        return LOOK_UNSURE;
    }
    int equal = PyObject_RichCompareBool(stored, key, Py_EQ);
    if (equal < 0) { /* a warning filter of `python -bb` can raise on str/bytes comparison */
        PyErr_Clear();
        return LOOK_UNSURE;
    }
    return equal ? LOOK_FOUND : LOOK_ABSENT;
}

/* The probe sequence is that of Objects/dictobject.c (lookdict): i = i*5 + perturb + 1. */
#define PERTURB_SHIFT 5

/* Index of an exact str in the entries of a table whose keys are all exact str, -1 if absent. */
static Py_ssize_t unicode_index(PyDictKeysObject *keys, PyObject *key, Py_hash_t hash)
{
    const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    size_t mask = (size_t)DK_SIZE(keys) - 1;
    size_t perturb = (size_t)hash;
    for (size_t i = (size_t)hash & mask;; i = mask & (i * 5 + perturb + 1)) {
        Py_ssize_t ix = index_at(keys, i);
        if (ix == DKIX_EMPTY) {
            return -1;
        }
        if (ix >= 0) {
            PyObject *stored = entries[ix].me_key;
            if (stored == key || (((PyASCIIObject *)stored)->hash == hash && str_equal(stored, key))) {
                return ix;
            }
        }
        perturb >>= PERTURB_SHIFT;
    }
}

static Look general_get(PyDictKeysObject *keys, PyObject *key, Py_hash_t hash, PyObject **value)
{
    const PyDictKeyEntry *entries = DK_ENTRIES(keys);
    size_t mask = (size_t)DK_SIZE(keys) - 1;
    size_t perturb = (size_t)hash;
    for (size_t i = (size_t)hash & mask;; i = mask & (i * 5 + perturb + 1)) {
        Py_ssize_t ix = index_at(keys, i);
        if (ix == DKIX_EMPTY) {
            return LOOK_ABSENT;
        }
        if (ix >= 0 && (entries[ix].me_key == key || entries[ix].me_hash == hash)) {
            Look same = entries[ix].me_key == key ? LOOK_FOUND : keys_equal(entries[ix].me_key, key);
            if (same != LOOK_ABSENT) {
                *value = same == LOOK_FOUND ? entries[ix].me_value : NULL;
                return same;
            }
        }
        perturb >>= PERTURB_SHIFT;
    }
}

static bool str_is_ready(PyObject *key)
{
#if PY_VERSION_HEX < 0x030C0000
    return PyUnicode_IS_READY(key);
#else
    (void)key;
    return true;
#endif
}

Look shim_dict_get(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value)
{
    *value = NULL;
    if (dict == NULL || !PyDict_CheckExact(dict)) {
        return LOOK_UNSURE;
    }
    PyDictObject *d = (PyDictObject *)dict;
    if (!DK_IS_UNICODE(d->ma_keys)) {
        return general_get(d->ma_keys, key, hash, value);
    }
    if (!PyUnicode_CheckExact(key)) {
        return LOOK_ABSENT; /* no str equals an int */
    }
    if (!str_is_ready(key)) {
        return LOOK_UNSURE;
    }
    Py_ssize_t ix = unicode_index(d->ma_keys, key, hash);
    if (ix < 0) {
        return LOOK_ABSENT;
    }
    *value = d->ma_values != NULL ? d->ma_values->values[ix] : DK_UNICODE_ENTRIES(d->ma_keys)[ix].me_value;
    return *value != NULL ? LOOK_FOUND : LOOK_ABSENT;
}

/* ---- instances and types ------------------------------------------------------------------------------------------
 */

static Look values_get(PyTypeObject *type, PyDictValues *values, PyObject *name, Py_hash_t hash, PyObject **value)
{
    Py_ssize_t ix = unicode_index(((PyHeapTypeObject *)type)->ht_cached_keys, name, hash);
    if (ix < 0) {
        return LOOK_ABSENT;
    }
    *value = values->values[ix];
    return *value != NULL ? LOOK_FOUND : LOOK_ABSENT;
}

static Look dict_or_absent(PyObject *dict, PyObject *name, Py_hash_t hash, PyObject **value)
{
    return dict == NULL ? LOOK_ABSENT : shim_dict_get(dict, name, hash, value);
}

static Look managed_get(PyObject *obj, PyObject *name, Py_hash_t hash, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(obj);
#if PY_VERSION_HEX >= 0x030D0000
    if ((type->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(obj)->valid) {
        return values_get(type, _PyObject_InlineValues(obj), name, hash, value);
    }
    return dict_or_absent((PyObject *)_PyObject_GetManagedDict(obj), name, hash, value);
#elif PY_VERSION_HEX >= 0x030C0000
    PyDictOrValues dorv = *_PyObject_DictOrValuesPointer(obj);
    if (_PyDictOrValues_IsValues(dorv)) {
        return values_get(type, _PyDictOrValues_GetValues(dorv), name, hash, value);
    }
    return dict_or_absent(_PyDictOrValues_GetDict(dorv), name, hash, value);
#else
    PyDictValues *values = *_PyObject_ValuesPointer(obj);
    if (values != NULL) {
        return values_get(type, values, name, hash, value);
    }
    return dict_or_absent(*_PyObject_ManagedDictPointer(obj), name, hash, value);
#endif
}

Look shim_instance_get(PyObject *obj, PyObject *name, Py_hash_t hash, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(obj);
    *value = NULL;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        return managed_get(obj, name, hash, value);
    }
    if (type->tp_dictoffset == 0) {
        return LOOK_ABSENT;
    }
    if (type->tp_dictoffset < 0) { /* behind the items of a variable-sized object: not worth the arithmetic */
        return LOOK_UNSURE;
    }
    return dict_or_absent(*(PyObject **)((char *)obj + type->tp_dictoffset), name, hash, value);
}

Look shim_type_get(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value)
{
    *value = NULL;
    PyObject *mro = type->tp_mro;
    if (mro == NULL || !PyTuple_CheckExact(mro)) {
        return LOOK_UNSURE;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *dict = base->tp_dict;
#if PY_VERSION_HEX >= 0x030C0000
        if (dict == NULL) { /* static builtin types keep it per interpreter, which also keeps it alive */
            dict = PyType_GetDict(base);
            Py_XDECREF(dict);
        }
#endif
        Look found = shim_dict_get(dict, name, hash, value);
        if (found != LOOK_ABSENT) {
            return found;
        }
    }
    return LOOK_ABSENT;
}

/* ---- remembered answers ------------------------------------------------------------------------------------ */

static inline bool recall(const ShimMemo *memo, const void *owner, uint64_t version)
{
    return memo->owner == owner && memo->version == version && version != 0;
}

static Look remember(ShimMemo *memo, const void *owner, uint64_t version, PyObject *value, Look look)
{
    if (look != LOOK_UNSURE && version != 0) {
        *memo = (ShimMemo){owner, version, value, look};
    }
    return look;
}

Look shim_dict_recall(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value, ShimMemo *memo)
{
    if (dict == NULL || !PyDict_CheckExact(dict)) {
        *value = NULL;
        return LOOK_UNSURE;
    }
    /* A split table may be written through its instance, which need not change the dict's version. */
    PyDictObject *d = (PyDictObject *)dict;
    uint64_t version = d->ma_values == NULL ? d->ma_version_tag : 0;
    if (recall(memo, dict, version)) {
        *value = memo->value;
        return memo->look;
    }
    Look look = shim_dict_get(dict, key, hash, value);
    return remember(memo, dict, version, *value, look);
}

static inline uint64_t type_version(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030D0000
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) {
        return 0;
    }
#endif
    return type->tp_version_tag;
}

Look shim_type_recall(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value, ShimMemo *memo)
{
    uint64_t version = type_version(type);
    if (recall(memo, type, version)) {
        *value = memo->value;
        return memo->look;
    }
    Look look = shim_type_get(type, name, hash, value);
    return remember(memo, type, version, *value, look);
}

/* ---- calling the translator
 * ------------------------------------------------------------------------------------------ */

/* ---- what loops need ------------------------------------------------------------------------------------------------
 */

const volatile int32_t *shim_eval_breaker(int32_t *mask)
{
    PyThreadState *ts = shim_thread_state();
#if PY_VERSION_HEX >= 0x030D0000
    *mask = _PY_EVAL_EVENTS_MASK; /* the upper bits count versions of instrumentation */
    return (const volatile int32_t *)&ts->eval_breaker;
#else
    *mask = -1;
    return (const volatile int32_t *)&ts->interp->ceval.eval_breaker._value;
#endif
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the events of eval_breaker are in its first bytes");

#if PY_VERSION_HEX < 0x030C0000
typedef struct { /* rangeiterobject in Objects/rangeobject.c */
    PyObject_HEAD long index;
    long start;
    long step;
    long len;
} RangeIterator;
#else
typedef _PyRangeIterObject RangeIterator;
#endif

bool shim_range_read(PyObject *iterator, ShimRange *out)
{
    if (!Py_IS_TYPE(iterator, &PyRangeIter_Type)) {
        return false;
    }
    const RangeIterator *r = (const RangeIterator *)iterator;
    out->step = r->step;
#if PY_VERSION_HEX < 0x030C0000
    out->left = r->len - r->index;
    return !__builtin_mul_overflow((int64_t)r->index, (int64_t)r->step, &out->next) &&
           !__builtin_add_overflow(out->next, (int64_t)r->start, &out->next);
#else
    out->left = r->len;
    out->next = r->start;
    return true;
#endif
}

void shim_range_write(PyObject *iterator, int64_t next, int64_t left)
{
    RangeIterator *r = (RangeIterator *)iterator;
#if PY_VERSION_HEX < 0x030C0000
    (void)next; /* it is start + index * step */
    r->index = r->len - (long)left;
#else
    r->start = (long)next;
    r->len = (long)left;
#endif
}

typedef struct { /* seqiterobject in Objects/iterobject.c, and the same in Objects/listobject.c */
    PyObject_HEAD Py_ssize_t it_index;
    PyObject *it_seq;
} SequenceIterator;

PyObject *shim_seqiter_read(PyObject *iterator, int64_t *position)
{
    if (!Py_IS_TYPE(iterator, &PySeqIter_Type) && !Py_IS_TYPE(iterator, &PyListIter_Type)) {
        return NULL;
    }
    const SequenceIterator *it = (const SequenceIterator *)iterator;
    *position = it->it_index;
    return it->it_seq;
}

void shim_seqiter_write(PyObject *iterator, int64_t position)
{
    ((SequenceIterator *)iterator)->it_index = (Py_ssize_t)position;
}

typedef struct { /* enumobject in Objects/enumobject.c */
    PyObject_HEAD Py_ssize_t index;
    PyObject *iterator, *result, *long_index;
} Enumeration;

typedef struct { /* zipobject in Python/bltinmodule.c */
    PyObject_HEAD Py_ssize_t size;
    PyObject *iterators, *result;
    int strict;
} Zip;

PyObject *shim_inner_iterator(PyObject *iterator, Py_ssize_t k)
{
    if (Py_IS_TYPE(iterator, &PyEnum_Type)) {
        const Enumeration *e = (const Enumeration *)iterator;
        return k == 0 && e->long_index == NULL ? e->iterator : NULL;
    }
    if (Py_IS_TYPE(iterator, &PyZip_Type)) {
        const Zip *z = (const Zip *)iterator;
        return !z->strict && k < z->size && PyTuple_CheckExact(z->iterators) ? PyTuple_GET_ITEM(z->iterators, k) : NULL;
    }
    return NULL;
}

Py_ssize_t shim_inner_count(PyObject *iterator)
{
    return Py_IS_TYPE(iterator, &PyZip_Type) ? ((const Zip *)iterator)->size : 1;
}

int64_t shim_enum_index(PyObject *iterator)
{
    return Py_IS_TYPE(iterator, &PyEnum_Type) ? (int64_t)((const Enumeration *)iterator)->index : 0;
}

void shim_enum_write(PyObject *iterator, int64_t index)
{
    ((Enumeration *)iterator)->index = (Py_ssize_t)index;
}

enum { EXTRA_PYTHON_DEPTH = 1000, EXTRA_C_DEPTH = 200 };

struct ShimGuard {
    int saved_errno;
    fenv_t fenv;
    _PyErr_StackItem exc; /* with no previous one: the translator does not see what the user is handling */
    _PyErr_StackItem *users_exc;
    PyObject *context;
    bool holds_signals;
};

static void add_recursion_budget(PyThreadState *ts, int sign)
{
#if PY_VERSION_HEX >= 0x030C0000
    ts->py_recursion_remaining += sign * EXTRA_PYTHON_DEPTH;
    ts->c_recursion_remaining += sign * EXTRA_C_DEPTH;
#else
    ts->recursion_remaining += sign * EXTRA_PYTHON_DEPTH;
#endif
}

/* Python runs signal handlers in the main thread, between any two instructions. What a handler raises belongs to the
   user's program, but the translator would take it for an error of its own, or be torn apart by a KeyboardInterrupt. So
   for as long as it runs no thread is the main one, and signals wait. False where this CPython keeps the main thread's
   number elsewhere. */
static bool knows_main_thread;

static bool hold_signals(void)
{
    if (!knows_main_thread || _PyRuntime.main_thread != PyThread_get_thread_ident()) {
        return false;
    }
    _PyRuntime.main_thread = 0;
    return true;
}

static int release_signals(void)
{
    _PyRuntime.main_thread = PyThread_get_thread_ident();
    return PyErr_CheckSignals();
}

static bool find_main_thread(void)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *main = threading == NULL ? NULL : PyObject_CallMethod(threading, "main_thread", NULL);
    PyObject *ident = main == NULL ? NULL : PyObject_GetAttrString(main, "ident");
    bool found = ident != NULL && PyLong_Check(ident) && PyLong_AsUnsignedLong(ident) == _PyRuntime.main_thread;
    Py_XDECREF(threading);
    Py_XDECREF(main);
    Py_XDECREF(ident);
    PyErr_Clear();
    return found && _PyRuntime.main_thread != 0;
}

int shim_check(void)
{
    FrameView seen;
    PyFrameObject *frame = PyEval_GetFrame();
    if (frame != NULL && frame_current(shim_thread_state(), &seen)) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        bool same = seen.code == code && seen.nlocalsplus == code->co_nlocalsplus &&
                    seen.instr * (int)sizeof(_Py_CODEUNIT) == PyFrame_GetLasti(frame);
        Py_DECREF(code);
        PyObject *globals = PyFrame_GetGlobals(frame);
        same = same && seen.globals == globals;
        Py_XDECREF(globals);
        if (!same) {
            PyErr_SetString(PyExc_ImportError,
                            "tierup was built for another release of this CPython version: frames look different here");
            return -1;
        }
    }
    knows_main_thread = find_main_thread();
    return 0;
}

ShimGuard *shim_guard_enter(PyThreadState *ts)
{
    int saved_errno = errno;
    ShimGuard *g = PyMem_Malloc(sizeof *g);
    if (g == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    g->saved_errno = saved_errno;
    g->context = PyContext_CopyCurrent();
    if (g->context == NULL || PyContext_Enter(g->context) < 0) {
        Py_XDECREF(g->context);
        PyMem_Free(g);
        return NULL;
    }
    fegetenv(&g->fenv);
    g->exc.exc_value = NULL;
    g->exc.previous_item = NULL;
    g->users_exc = ts->exc_info;
    ts->exc_info = &g->exc;
    add_recursion_budget(ts, 1);
    PyThreadState_EnterTracing(ts);
    g->holds_signals = hold_signals();
    return g;
}

int shim_guard_leave(PyThreadState *ts, ShimGuard *g)
{
    bool holds_signals = g->holds_signals;
    PyThreadState_LeaveTracing(ts);
    add_recursion_budget(ts, -1);
    ts->exc_info = g->users_exc;
    Py_XDECREF(g->exc.exc_value);
    if (PyContext_Exit(g->context) < 0) {
        PyErr_Clear(); /* only if the translator itself left another context entered */
    }
    Py_DECREF(g->context);
    fesetenv(&g->fenv);
    errno = g->saved_errno;
    PyMem_Free(g);
    return holds_signals ? release_signals() : 0;
}
