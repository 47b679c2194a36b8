/* Guard checks: what a value must be. A check reads the value's memory only; none runs Python code. */
#include "guard_internal.h"

#include <string.h>

const char *const guard_check_names[CHECK_COUNT] = {
#define GUARD_CHECK(name) #name,
#include "guard_kinds.def"
};

/* ---- parsing ---------------------------------------------------------------------------------------------- */

static int bad_payload(const GuardCheck *c, const char *wanted, PyObject *payload)
{
    PyErr_Format(PyExc_TypeError, "check %s: the payload must be %s, not %s", guard_check_names[c->kind], wanted,
                 Py_TYPE(payload)->tp_name);
    return -1;
}

static int own_payload(GuardCheck *c, PyObject *payload)
{
    c->payload = Py_NewRef(payload);
    return 0;
}

static int parse_pointer(GuardCheck *c, PyObject *payload)
{
    c->keyed = true;
    c->key = (uint64_t)(uintptr_t)payload;
    return own_payload(c, payload);
}

static int parse_length(GuardCheck *c, PyObject *payload)
{
    if (!PyLong_CheckExact(payload)) {
        return bad_payload(c, "an int", payload);
    }
    Py_ssize_t n = PyLong_AsSsize_t(payload);
    if (n == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (n < 0) {
        PyErr_Format(PyExc_ValueError, "check %s: a length cannot be %zd", guard_check_names[c->kind], n);
        return -1;
    }
    c->keyed = true;
    c->key = (uint64_t)n;
    return 0;
}

static int parse_int(GuardCheck *c, PyObject *payload)
{
    if (!PyLong_CheckExact(payload)) {
        return bad_payload(c, "an int", payload);
    }
    int overflow = 0;
    c->key = (uint64_t)PyLong_AsLongLongAndOverflow(payload, &overflow);
    c->keyed = overflow == 0;
    return own_payload(c, payload);
}

static int parse_hashed(GuardCheck *c, PyObject *payload, PyTypeObject *type, const char *wanted)
{
    if (!Py_IS_TYPE(payload, type)) {
        return bad_payload(c, wanted, payload);
    }
    Py_hash_t hash = PyObject_Hash(payload);
    if (hash == -1) {
        return -1;
    }
    c->keyed = c->verify = true;
    c->key = (uint64_t)hash;
    return own_payload(c, payload);
}

static int parse_array(GuardCheck *c, PyObject *payload)
{
    if (!PyTuple_CheckExact(payload) || PyTuple_GET_SIZE(payload) != 2 ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(payload, 0)) || !PyLong_CheckExact(PyTuple_GET_ITEM(payload, 1))) {
        return bad_payload(c, "a tuple (mask, key) of ints", payload);
    }
    c->mask = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(payload, 0));
    if (PyErr_Occurred()) {
        return -1;
    }
    c->key = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(payload, 1));
    if (PyErr_Occurred()) {
        return -1;
    }
    if ((c->key & ~c->mask) != 0) {
        PyErr_SetString(PyExc_ValueError, "check ARRAY: the key has bits outside the mask");
        return -1;
    }
    c->keyed = true;
    return 0;
}

/* Identity with something that must not be kept alive: the address is the key, the weak reference says whether it still
 * counts. */
static int parse_weak(GuardCheck *c, PyObject *ref)
{
    PyObject *referent = ((PyWeakReference *)ref)->wr_object;
    c->keyed = c->verify = true;
    c->never = referent == Py_None || Py_REFCNT(referent) <= 0;
    c->key = (uint64_t)(uintptr_t)referent;
    return own_payload(c, ref);
}

/* Code objects are not tracked by the collector: owning one from a site in its own constants would leak both. */
static int parse_code(GuardCheck *c, PyObject *payload)
{
    if (!PyCode_Check(payload)) {
        return bad_payload(c, "a code object", payload);
    }
    PyObject *ref = PyWeakref_NewRef(payload, NULL);
    if (ref == NULL) {
        return -1;
    }
    int failed = parse_weak(c, ref);
    Py_DECREF(ref);
    return failed;
}

static bool only_plain_keys(PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *key = PyTuple_GET_ITEM(tuple, i);
        if (!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key)) {
            return false;
        }
    }
    return true;
}

static int parse_keys(GuardCheck *c, PyObject *payload)
{
    if (!PyTuple_CheckExact(payload) || !only_plain_keys(payload)) {
        return bad_payload(c, "a tuple of str and int", payload);
    }
    return own_payload(c, payload);
}

static int parse_defaults(GuardCheck *c, PyObject *payload)
{
    if (!PyTuple_CheckExact(payload) || PyTuple_GET_SIZE(payload) != 2 ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(payload, 0)) || !PyTuple_CheckExact(PyTuple_GET_ITEM(payload, 1)) ||
        !only_plain_keys(PyTuple_GET_ITEM(payload, 1))) {
        return bad_payload(c, "a tuple (int, tuple of names)", payload);
    }
    Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(payload, 0));
    if (n == -1 && PyErr_Occurred()) {
        return -1;
    }
    c->key = (uint64_t)n; /* the number of positional defaults; not `keyed`: it is half of the answer */
    return own_payload(c, PyTuple_GET_ITEM(payload, 1));
}

static int parse_payload(GuardCheck *c, PyObject *payload)
{
    switch (c->kind) {
    case CHECK_TYPE_IS:
        return PyType_Check(payload) ? parse_pointer(c, payload) : bad_payload(c, "a type", payload);
    case CHECK_IS:
        return parse_pointer(c, payload);
    case CHECK_IS_WEAK:
        return PyWeakref_CheckRef(payload) ? parse_weak(c, payload) : bad_payload(c, "a weakref", payload);
    case CHECK_ARRAY:
        return parse_array(c, payload);
    case CHECK_INT_EQ:
        return parse_int(c, payload);
    case CHECK_FLOAT_EQ:
        if (!PyFloat_CheckExact(payload)) {
            return bad_payload(c, "a float", payload);
        }
        c->keyed = true;
        memcpy(&c->key, &((PyFloatObject *)payload)->ob_fval, sizeof c->key);
        return own_payload(c, payload);
    case CHECK_STR_EQ:
        return parse_hashed(c, payload, &PyUnicode_Type, "a str");
    case CHECK_BYTES_EQ:
        return parse_hashed(c, payload, &PyBytes_Type, "bytes");
    case CHECK_TUPLE_LEN:
    case CHECK_LIST_LEN:
        return parse_length(c, payload);
    case CHECK_DICT_KEYS:
        return parse_keys(c, payload);
    case CHECK_FUNC_CODE:
        return parse_code(c, payload);
    case CHECK_FUNC_DEFAULTS:
        return parse_defaults(c, payload);
    case CHECK_DTYPE_IS:
        return own_payload(c, payload);
    default: /* NULL, NOT_NULL: nothing to say */
        return 0;
    }
}

int guard_check_parse(GuardCheck *c, int nexprs, PyObject *tuple)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) != 3 || !PyLong_CheckExact(PyTuple_GET_ITEM(tuple, 0)) ||
        !PyLong_CheckExact(PyTuple_GET_ITEM(tuple, 1))) {
        PyErr_SetString(PyExc_TypeError, "a check must be a tuple (kind, expression, payload) with two ints in front");
        return -1;
    }
    int overflow = 0;
    long kind = PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(tuple, 0), &overflow);
    if (overflow != 0 || kind < 0 || kind >= CHECK_COUNT) {
        PyErr_Format(PyExc_ValueError, "there is no check kind %R", PyTuple_GET_ITEM(tuple, 0));
        return -1;
    }
    long expr = PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(tuple, 1), &overflow);
    if (overflow != 0 || expr < 0 || expr >= nexprs) {
        PyErr_Format(PyExc_ValueError, "check %s: there is no guard expression %R", guard_check_names[kind],
                     PyTuple_GET_ITEM(tuple, 1));
        return -1;
    }
    c->kind = (uint8_t)kind;
    c->expr = (int)expr;
    return parse_payload(c, PyTuple_GET_ITEM(tuple, 2));
}

/* ---- comparing plain objects ------------------------------------------------------------------------------- */

static bool str_equal(PyObject *a, PyObject *b)
{
    if (a == b) {
        return true;
    }
#if PY_VERSION_HEX < 0x030C0000
    if (!PyUnicode_IS_READY(a) || !PyUnicode_IS_READY(b)) {
        return false;
    }
#endif
    return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
}

static bool int_equal(PyObject *a, PyObject *b)
{
    if (a == b) {
        return true;
    }
    PyObject *same =
        PyLong_Type.tp_richcompare(a, b, Py_EQ); /* exact ints: True or False, both immortal or owned elsewhere */
    bool equal = same == Py_True;
    Py_XDECREF(same);
    return equal;
}

static bool plain_equal(PyObject *a, PyObject *b)
{
    if (PyUnicode_CheckExact(a)) {
        return PyUnicode_CheckExact(b) && str_equal(a, b);
    }
    return PyLong_CheckExact(a) && PyLong_CheckExact(b) && int_equal(a, b);
}

static bool key_tuples_equal(PyObject *a, PyObject *b)
{
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
        if (!plain_equal(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) {
            return false;
        }
    }
    return true;
}

static bool dict_keys_are(PyObject *dict, PyObject *keys)
{
    Py_ssize_t pos = 0;
    Py_ssize_t i = 0;
    PyObject *key;
    if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) {
        return false;
    }
    while (PyDict_Next(dict, &pos, &key, NULL)) {
        if (i >= PyTuple_GET_SIZE(keys) || !plain_equal(PyTuple_GET_ITEM(keys, i), key)) {
            return false;
        }
        i++;
    }
    return i == PyTuple_GET_SIZE(keys);
}

static bool defaults_are(const GuardCheck *c, PyObject *value)
{
    if (!Py_IS_TYPE(value, &PyFunction_Type)) {
        return false;
    }
    PyFunctionObject *f = (PyFunctionObject *)value;
    Py_ssize_t n = f->func_defaults == NULL ? 0 : PyTuple_GET_SIZE(f->func_defaults);
    if ((uint64_t)n != c->key) {
        return false;
    }
    if (f->func_kwdefaults == NULL) {
        return PyTuple_GET_SIZE(c->payload) == 0;
    }
    return PyDict_CheckExact(f->func_kwdefaults) && dict_keys_are(f->func_kwdefaults, c->payload);
}

/* ---- deciding ------------------------------------------------------------------------------------------------ */

static bool int_key(PyObject *value, uint64_t *key)
{
    if (!PyLong_CheckExact(value)) {
        return false;
    }
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)value)) {
        *key = (uint64_t)(int64_t)PyUnstable_Long_CompactValue((PyLongObject *)value);
        return true;
    }
#endif
    int overflow = 0;
    *key = (uint64_t)PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0;
}

bool guard_check_key(const GuardCheck *c, PyObject *value, uint64_t *key)
{
    switch (c->kind) {
    case CHECK_TYPE_IS:
        *key = (uint64_t)(uintptr_t)Py_TYPE(value);
        return true;
    case CHECK_IS:
    case CHECK_IS_WEAK:
        *key = (uint64_t)(uintptr_t)value;
        return true;
    case CHECK_ARRAY:
        if (!array_check_exact(value)) {
            return false;
        }
        *key = array_key(value) & c->mask;
        return true;
    case CHECK_INT_EQ:
        return int_key(value, key);
    case CHECK_FLOAT_EQ:
        if (!PyFloat_CheckExact(value)) {
            return false;
        }
        memcpy(key, &((PyFloatObject *)value)->ob_fval, sizeof *key);
        return true;
    case CHECK_STR_EQ:
        if (!PyUnicode_CheckExact(value)) {
            return false;
        }
        *key = (uint64_t)PyObject_Hash(value);
        return true;
    case CHECK_BYTES_EQ:
        if (!PyBytes_CheckExact(value)) {
            return false;
        }
        *key = (uint64_t)PyObject_Hash(value);
        return true;
    case CHECK_TUPLE_LEN:
        *key = PyTuple_CheckExact(value) ? (uint64_t)PyTuple_GET_SIZE(value) : UINT64_MAX;
        return true;
    case CHECK_LIST_LEN:
        *key = PyList_CheckExact(value) ? (uint64_t)PyList_GET_SIZE(value) : UINT64_MAX;
        return true;
    case CHECK_FUNC_CODE:
        if (!Py_IS_TYPE(value, &PyFunction_Type)) {
            return false;
        }
        *key = (uint64_t)(uintptr_t)((PyFunctionObject *)value)->func_code;
        return true;
    default:
        return false;
    }
}

bool guard_check_verify(const GuardCheck *c, PyObject *value)
{
    switch (c->kind) {
    case CHECK_STR_EQ:
        return str_equal(value, c->payload);
    case CHECK_BYTES_EQ:
        return value == c->payload ||
               (PyBytes_GET_SIZE(value) == PyBytes_GET_SIZE(c->payload) &&
                memcmp(PyBytes_AS_STRING(value), PyBytes_AS_STRING(c->payload), (size_t)PyBytes_GET_SIZE(value)) == 0);
    default: /* IS_WEAK, FUNC_CODE: the address counts only as long as its object lives */
        return (uint64_t)(uintptr_t)((PyWeakReference *)c->payload)->wr_object == c->key;
    }
}

bool guard_check_unkeyed(const GuardCheck *c, PyObject *value)
{
    switch (c->kind) {
    case CHECK_NOT_NULL:
        return true;
    case CHECK_INT_EQ: /* beyond 64 bits */
        return PyLong_CheckExact(value) && int_equal(value, c->payload);
    case CHECK_DICT_KEYS:
        return PyDict_CheckExact(value) && dict_keys_are(value, c->payload);
    case CHECK_FUNC_DEFAULTS:
        return defaults_are(c, value);
    case CHECK_DTYPE_IS:
        return array_dtype_equal(value, c->payload);
    default:
        return false;
    }
}

/* ---- comparing checks ------------------------------------------------------------------------------------------ */

bool guard_checks_same_slot(const GuardCheck *a, const GuardCheck *b)
{
    return a->kind == b->kind && a->expr == b->expr && a->mask == b->mask && a->keyed && b->keyed && !a->never &&
           !b->never;
}

bool guard_checks_same(const GuardCheck *a, const GuardCheck *b)
{
    if (a->kind != b->kind || a->expr != b->expr || a->mask != b->mask || a->key != b->key || a->keyed != b->keyed ||
        a->never || b->never) {
        return false;
    }
    switch (a->kind) {
    case CHECK_STR_EQ:
        return str_equal(a->payload, b->payload);
    case CHECK_BYTES_EQ:
        return guard_check_verify(a, b->payload);
    case CHECK_INT_EQ:
        return int_equal(a->payload, b->payload);
    case CHECK_DICT_KEYS:
    case CHECK_FUNC_DEFAULTS:
        return key_tuples_equal(a->payload, b->payload);
    case CHECK_DTYPE_IS:
        return a->payload == b->payload;
    default: /* the key says it all */
        return true;
    }
}
