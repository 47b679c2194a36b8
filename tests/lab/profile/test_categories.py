"""The table of categories, as it comes and as users write it."""

from __future__ import annotations

import tomllib

import pytest

from tierup.lab.errors import ReadError
from tierup.lab.profile.categories import DEFAULT, load
from tierup.lab.profile.symbols import has_name, printable, source_name

from ..errors import one_line

CATEGORIES = [
    *("interpreter", "lookup", "gc", "memory", "dynamic", "library", "int", "tuple", "dict", "list", "float", "str", "miscobj"),
    *("exceptions", "gil", "calls", "import", "compiler", "async", "threading", "kernel", "libc", "jit", "unknown"),
]


def test_the_categories():
    assert sorted(load().names) == sorted(CATEGORIES)


@pytest.mark.parametrize(
    ("symbol", "category"),
    [
        ("_PyEval_EvalFrameDefault", "interpreter"),
        ("_TAIL_CALL_LOAD_FAST", "interpreter"),
        ("_PyEval_EvalFrameDefault.cold", "interpreter"),
        ("_PyFrame_ClearExceptCode", "interpreter"),
        ("initialize_locals", "interpreter"),
        ("unicodekeys_lookup_unicode", "lookup"),
        ("_PyType_Lookup", "lookup"),
        ("PyObject_GenericGetAttr", "lookup"),
        ("gc_collect_main", "gc"),
        ("dict_traverse", "gc"),
        ("visit_reachable.lto_priv.0", "gc"),
        ("_PyObject_Malloc", "memory"),
        ("PyObject_Malloc@plt", "memory"),
        ("tupledealloc", "memory"),
        ("list_dealloc", "memory"),
        ("mi_malloc", "memory"),
        ("PyNumber_Add", "dynamic"),
        ("slot_tp_richcompare", "dynamic"),
        ("PyObject_RichCompareBool", "dynamic"),
        ("sre_ucs1_match", "library"),
        ("sre_ucs2_charset.isra.0", "library"),
        ("deque_append", "library"),
        ("_io_BytesIO_write", "library"),
        ("k_mul", "int"),
        ("long_rshift1", "int"),
        ("PyLong_AsLongAndOverflow (inlined)", "int"),
        ("tuplehash", "tuple"),
        ("insertdict", "dict"),
        ("PyDict_SetItem", "dict"),
        ("list_slice.isra.0.lto_priv.0.cold", "list"),
        ("float_div", "float"),
        ("PyUnicode_New.part.0", "str"),
        ("_copy_characters.part.0.constprop.0", "str"),
        ("set_lookkey", "miscobj"),
        ("_PyErr_SetObject.part.0", "exceptions"),
        ("take_gil", "gil"),
        ("drop_gil_impl", "gil"),
        ("_PyObject_MakeTpCall", "calls"),
        ("convertitem.constprop.0", "calls"),
        ("r_object", "import"),
        ("compiler_visit_expr1", "compiler"),
        ("_loop0_106_rule", "compiler"),
        ("async_gen_asend_iternext", "async"),
        ("lock_PyThread_acquire_lock", "threading"),
        ("uop_optimize", "jit"),
        ("_PyOptimizer_Optimize", "jit"),
        ("memcpy@plt", "libc"),
        ("no_such_function_anywhere", "unknown"),
        ("0x00000000000fb660", "unknown"),
        ("[unknown]", "unknown"),
    ],
)
@pytest.mark.parametrize("obj", ["python", "/usr/bin/python3.14", "libpython3.13.so.1.0", "/opt/python/lib/libpython3.15t.so.1.0"])
def test_functions_of_cpython(obj, symbol, category):
    assert load().category(obj, symbol) == category


@pytest.mark.parametrize(
    ("obj", "symbol", "category"),
    [
        ("[kernel.kallsyms]", "clear_page_erms", "kernel"),
        ("[guest.kernel.kallsyms]", "clear_page_erms", "kernel"),
        ("[e1000e]", "e1000_xmit_frame", "kernel"),
        ("[vdso]", "__vdso_clock_gettime", "kernel"),
        ("libc-2.31.so", "__nss_database_lookup", "libc"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "__memmove_avx_unaligned_erms", "libc"),
        ("libm.so.6", "__sin_fma", "libc"),
        ("ld-linux-x86-64.so.2", "__tls_get_addr", "libc"),
        ("libc.so.6", "pthread_mutex_lock", "threading"),
        ("libpthread-2.31.so", "__pthread_mutex_lock", "threading"),
        ("libcrypto.so.1.1", "AES_unwrap_key", "library"),
        ("_json.cpython-313-x86_64-linux-gnu.so", "scanstring_unicode", "library"),
        ("_json.cpython-313-x86_64-linux-gnu.so", "_PyEval_EvalFrameDefault", "library"),
        ("[JIT] tid 8604", "[unknown]", "jit"),
        ("[JIT] tid 8604", "0x00007f0000001000", "jit"),
        ("//anon", "0x00007f0000001000", "jit"),
        ("perf-8604.map", "add+mul", "jit"),
        ("jitted-8604-17.so", "f", "jit"),
        ("memfd:tierup (deleted)", "0x0000000000000079", "jit"),
        ("/memfd:tierup (deleted)", "tierup:add+mul", "jit"),
        ("/lib/site-packages/tierup/_core.cpython-313-x86_64-linux-gnu.so", "run_kernel", "jit"),
        ("/lib/site-packages/other/_core.cpython-313-x86_64-linux-gnu.so", "run", "library"),
        ("perf-8604.map", "py::main:/home/me/a.py", "interpreter"),
        ("[unknown]", "[unknown]", "unknown"),
        ("[heap]", "0x55", "unknown"),
        ("dpkg-query", "0x000000000000f340", "unknown"),
        ("gcc", "memory_function", "unknown"),
    ],
)
def test_other_objects(obj, symbol, category):
    assert load().category(obj, symbol) == category


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("list_slice", "list_slice"),
        ("list_slice.isra.0", "list_slice"),
        ("list_slice.constprop.0.isra.0", "list_slice"),
        ("list_slice.part.0.cold", "list_slice"),
        ("list_slice.lto_priv.0", "list_slice"),
        ("list_slice.llvm.1234567", "list_slice"),
        ("list_slice/1", "list_slice"),
        ("list_slice.cold/3(*2)", "list_slice"),
        ("PyList_New@plt", "PyList_New"),
        ("memcpy@GLIBC_2.14@plt", "memcpy"),
        ("PyList_New.constprop.0 (inlined)", "PyList_New"),
        (".cold", ".cold"),
        ("cold.storage", "cold.storage"),
    ],
)
def test_what_is_appended_to_names_is_taken_off(symbol, name):
    assert source_name(symbol) == name


@pytest.mark.parametrize("symbol", ["0x00000000000fb660", "7f50ede88300", "[unknown]", "", "0000000000000000"])
def test_addresses_are_no_names(symbol):
    assert not has_name(symbol)


@pytest.mark.parametrize("symbol", ["main", "add", "dead", "fade", "advance", "x_add"])
def test_names_may_look_like_numbers(symbol):
    assert has_name(symbol)


def test_what_a_terminal_would_act_on_is_escaped():
    assert printable("a\x1b[31mb\nc ü") == "a\\x1b[31mb\\nc ü"


def own(tmp_path, text):
    path = tmp_path / "categories.toml"
    path.write_text(text)
    return path


def test_users_write_their_own_table(tmp_path):
    text = """
        [python]
        objects = ["python*"]
        [[category]]
        name = "mine"
        symbols = ["my_*", "list_append"]
        [[category]]
        name = "rest"
        objects = ["*.so"]
        symbols = ["*"]
    """
    table = load(own(tmp_path, text))
    assert table.names == ("mine", "rest", "unknown")
    for symbol, category in (("my_function", "mine"), ("list_append", "mine"), ("list_pop", "rest"), ("a_my_function", "rest")):
        assert table.category("python3", symbol) == category
    assert table.category("libc.so", "my_function") == "rest"
    assert table.category("[kernel.kallsyms]", "my_function") == "unknown"


def test_a_name_beats_a_pattern_and_an_earlier_pattern_a_later_one(tmp_path):
    text = """
        python.objects = ["python"]
        [[category]]
        name = "a"
        symbols = ["long_*", "l*"]
        [[category]]
        name = "b"
        symbols = ["long_add", "long_a*", "x*"]
    """
    table = load(own(tmp_path, text))
    assert [table.category("python", symbol) for symbol in ("long_add", "long_abs", "lshift", "x")] == ["b", "a", "a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a [[category]] section"),
        ("category = 3", "a [[category]] section"),
        ('[[category]]\nname = "a"', "has to list the file names of CPython"),
        ('python.objects = "python"\n[[category]]\nname = "a"', "has to list the file names of CPython"),
        ("python.objects = []\n[[category]]\nsymbols = []", "category number 1 has no name"),
        ('python.objects = []\n[[category]]\nname = "a"\nsymbol = []', "category 'a' has the unknown key 'symbol'"),
        ('python.objects = []\n[[category]]\nname = "a"\nsymbols = [1]', "'symbols' has to be a list of texts"),
        ('python.objects = []\n[[category]]\nname = "a"\n[[category]]\nname = "a"', "'a' is there twice"),
        ('python.objects = []\n[[category]]\nname = "unknown"', "what has no category"),
        (
            'python.objects = []\n[[category]]\nname = "a"\nsymbols = ["f"]\n[[category]]\nname = "b"\nsymbols = ["f"]',
            "'f' is in two categories, a and b",
        ),
        ("category = [", "not TOML"),
    ],
)
def test_a_wrong_table_is_said_in_one_line(tmp_path, text, message):
    path = own(tmp_path, text)
    with one_line(ReadError, message, str(path)):
        load(path)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(ReadError, match=r"cannot read the categories .*No such file"):
        load(tmp_path / "absent.toml")


def test_no_pattern_stands_behind_one_that_takes_all_it_could_match():
    table = load()
    entries = tomllib.loads(DEFAULT.read_text(encoding="utf-8"))["category"]
    shadowed = {
        (entry["name"], pattern): taken
        for entry in entries
        for pattern in entry.get("symbols", [])
        if (taken := table.category("python", pattern.replace("*", "_qq_"))) != entry["name"]
    }
    assert shadowed == {}


def test_the_table_is_no_wider_than_the_code():
    assert max(map(len, DEFAULT.read_text(encoding="utf-8").splitlines())) <= 140


def test_every_function_with_a_noticeable_share_has_a_category(public_profiles):
    """0.1 % of a benchmark's time is noticeable; addresses without names are not guessed at."""
    table = load()
    python = [row for profile in public_profiles.profiles for row in profile.rows if table.is_python(row.object)]
    assert len(python) > 100_000
    assert {
        row.symbol for row in python if row.weight >= 0.1 and has_name(row.symbol) and table.category(row.object, row.symbol) == "unknown"
    } == set()
