"""Perf maps."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from tierup.lab.profile.perf_map import parse, read_all


def test_names_by_address():
    found = parse("1000 20 tierup:add+mul\n1020 10 a name with blanks\nffffffff81000000 1 high\n")
    assert [found.name(at) for at in (0xFFF, 0x1000, 0x101F, 0x1020, 0x102F, 0x1030)] == [
        None,
        *["tierup:add+mul"] * 2,
        *["a name with blanks"] * 2,
        None,
    ]
    assert found.name(0xFFFFFFFF81000000) == "high"


def test_lines_that_are_none_are_passed_over():
    found = parse("nonsense\n\n10 zz f\n10 -4 f\n10 0 f\n10 4\n20 4 good\n30 4")
    assert found.names == ("good",)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.sampled_from("abcdef"))))
def test_the_last_entry_of_an_address_counts(entries):
    """Against the plain rule: code that overlaps newer code is gone whole, since its memory was used again."""
    alive: list[tuple[int, int, str]] = []
    for start, size, name in entries:
        alive = [entry for entry in alive if entry[1] <= start or start + size <= entry[0]] + [(start, start + size, name)]
    found = parse("".join(f"{start:x} {size:x} {name}\n" for start, size, name in entries))
    for address in range(90):
        assert found.name(address) == next((name for start, end, name in alive if start <= address < end), None)


def test_maps_of_a_folder_by_pid(tmp_path):
    for pid, name in ((7, "old"), (8, "new")):
        (tmp_path / f"perf-{pid}.map").write_text(f"10 4 {name}\n")
    (tmp_path / "perf-x.map").write_text("10 4 f\n")
    os.utime(tmp_path / "perf-7.map", (100, 100))
    assert {pid: found.names for pid, found in read_all(tmp_path).items()} == {7: ("old",), 8: ("new",)}
    assert list(read_all(tmp_path, since=200)) == [8]
    assert read_all(tmp_path / "absent") == {}
