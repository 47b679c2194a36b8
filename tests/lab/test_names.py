"""Names of profiles, names of results, and groups of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.files import write
from tierup.lab.errors import ReadError
from tierup.lab.results.groups import read_groups, resolve
from tierup.lab.results.names import match

RESULTS = [
    "async_tree_none",
    "async_tree_none_tg",
    "async_tree_io",
    "async_tree_io_tg",
    "bench_mp_pool",
    "bench_thread_pool",
    "create_gc_cycles",
    "deepcopy",
    "deepcopy_memo",
    "deepcopy_reduce",
    "go",
    "logging_format",
    "logging_silent",
    "pickle",
    "pickle_dict",
    "pickle_pure_python",
    "richards",
    "richards_super",
    "sqlglot_normalize",
    "sqlglot_parse",
    "unpickle",
    "unpickle_list",
    "base64_small",
    "ascii85_large",
]


@pytest.mark.parametrize(
    ("entry", "means"),
    [
        ("async_tree", ["async_tree_none"]),
        ("async_tree_tg", ["async_tree_none_tg"]),
        ("async_tree_io", ["async_tree_io"]),
        ("base64", ["base64_small", "ascii85_large"]),
        ("concurrent_imap", ["bench_mp_pool", "bench_thread_pool"]),
        ("deepcopy", ["deepcopy", "deepcopy_memo", "deepcopy_reduce"]),
        ("gc_collect", ["create_gc_cycles"]),
        ("go", ["go"]),
        ("logging", ["logging_format", "logging_silent"]),
        ("pickle", ["pickle"]),
        ("pickle_dict", ["pickle_dict"]),
        ("richards", ["richards"]),
        ("sqlglot", ["sqlglot_normalize"]),
        ("unpickle", ["unpickle"]),
    ],
)
def test_an_entry_means_its_results(entry, means):
    assert match([entry], RESULTS).found == {entry: tuple(means)}


def test_equal_names_only_when_asked_for():
    found = match(["deepcopy", "logging"], RESULTS, exact=True)
    assert found.found == {"deepcopy": ("deepcopy",)}
    assert found.unmatched == ("logging",)


def test_an_unknown_entry_with_a_longer_name_keeps_its_results():
    results = ["mine_a", "mine_own_a", "mine_own_b"]
    assert match(["mine", "mine_own"], results).found == {"mine": ("mine_a",), "mine_own": ("mine_own_a", "mine_own_b")}
    assert match(["mine"], results, others=["mine_own"]).names == ["mine_a"]


@given(st.lists(st.sampled_from([*RESULTS, "logging", "async_tree", "gc_collect", "nothing"]), unique=True))
def test_no_name_is_lost_and_no_result_is_claimed_twice(entries):
    found = match(entries, RESULTS)
    assert {*found.found, *found.unmatched} == set(entries)
    claimed = [name for names in found.found.values() for name in names]
    assert len(claimed) == len(set(claimed))


def test_groups_are_resolved_with_what_they_miss(tmp_path):
    path = write(tmp_path / "groups.json", {"copying": ["deepcopy", "pickle", "pickle"], "odd": ["deepcopy_memo", "absent"], "none": []})
    copying, odd, none = resolve(read_groups(path), RESULTS)
    assert copying.members == ("deepcopy", "deepcopy_reduce", "pickle")
    assert (odd.members, odd.unmatched) == (("deepcopy_memo",), ("absent",))
    assert (none.members, none.unmatched) == ((), ())


@pytest.mark.parametrize("content", ["[]", '{"a": "b"}', '{"a": [1]}', "nonsense"])
def test_other_files_are_no_groups(tmp_path, content):
    path = write(tmp_path / "groups.json", content)
    with pytest.raises(ReadError, match=r"no groups file|not JSON"):
        read_groups(path)
