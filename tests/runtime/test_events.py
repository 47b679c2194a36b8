"""Events, statistics and the stage log."""

from __future__ import annotations

import json
import os

import pytest

from tierup.runtime import config, events, stats
from tierup.runtime.config import Options
from tierup.runtime.stats import Place, Stats


@pytest.fixture(autouse=True)
def clean():
    stats.reset()
    events.clear()
    yield
    stats.reset()
    events.clear()


@pytest.fixture
def options():
    before = config.current()
    yield lambda **changes: config.set_current(before.replace(**changes))
    config.set_current(before)


def test_each_kind_has_its_counter():
    for kind in events.KINDS:
        events.record(kind, "hit" if kind == "cache" else "why", "file.py", 3, "f")
    now = stats.snapshot()
    counted = (now.attempts, now.specialisations, now.misses, now.rejections, now.backed_off, now.abandoned, now.errors, now.cache_hits)
    assert counted == (1,) * 8
    assert now.rejected == {"why": 1}
    assert [(place.reason, place.file, place.line, place.function) for place in now.breaks] == [("why", "file.py", 3, "f")]


def test_what_has_no_place_is_only_counted():
    events.record("attempt", "hot site", "f.py", 3)
    events.record("cache", "miss")
    events.record("cache", "the folder is not used")
    assert [place.reason for place in stats.snapshot().places] == ["the folder is not used"]
    assert stats.snapshot().cache_misses == 1


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="unknown event kind"):
        events.record("surprise", "x")


def test_places_are_counted_and_ordered():
    for line in (5, 7, 7):
        events.record("break", "call", "f.py", line)
    assert [(place.line, place.count) for place in stats.snapshot().breaks] == [(7, 2), (5, 1)]


def test_log_of_events_is_bounded_but_counts_are_not(monkeypatch):
    monkeypatch.setattr(events, "LIMIT", 10)
    for line in range(100):
        events.record("note", "n", "f.py", line)
    assert [event.line for event in events.recent()] == list(range(90, 100))
    assert len(stats.snapshot().of_kind("note")) == 100


def test_number_of_places_is_bounded(monkeypatch):
    monkeypatch.setattr(stats, "MAX_PLACES", 5)
    for line in range(20):
        events.record("break", "call", "f.py", line)
    now = stats.snapshot()
    assert now.by_reason("break") == {"call": 20}
    assert len(now.breaks) == 6


def test_event_text():
    event = events.record("break", "call of f", "a.py", 3, "g", "unknown function")
    assert str(event) == "break: call of f at a.py:3 in g (unknown function)"
    assert events.recent("break") == [event]
    assert events.recent("miss") == []


def test_stage_log_goes_to_the_descriptor(options, capfd, monkeypatch):
    options(log=frozenset({"graph"}))
    monkeypatch.setattr("sys.stderr", None)
    events.log("graph", "one\ntwo \udcff")
    events.log("asm", "not wanted")
    assert capfd.readouterr().err == "tierup graph: one\ntierup graph: two \\udcff\n"
    assert events.wants("graph") and not events.wants("asm")


def test_stage_log_survives_a_closed_stderr(options):
    options(log=frozenset({"graph"}))
    kept = os.dup(2)
    try:
        os.close(2)
        events.log("graph", "x")
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_provider_is_added_and_reset_is_its_new_zero(monkeypatch):
    monkeypatch.setattr(stats, "_providers", [])
    monkeypatch.setattr(stats, "_baseline", {})
    totals = {"hits": 5}
    stats.add_provider(lambda: totals)
    assert stats.snapshot().hits == 5
    stats.reset()
    totals["hits"] = 8
    assert stats.snapshot().hits == 3
    totals["hits"] = 1  # sites died
    assert stats.snapshot().hits == 0


def test_nested_phases_do_not_count_twice():
    with stats.timed("outer"), stats.timed("inner"):
        sum(range(100_000))
    seconds = stats.snapshot().translate_seconds
    assert 0 <= seconds["outer"] < seconds["inner"]


def test_phase_ends_with_an_exception():
    with pytest.raises(KeyError), stats.timed("phase"):
        raise KeyError
    assert stats.timed._innermost is None
    assert stats.snapshot().translate_seconds["phase"] >= 0


def test_round_trip_and_merge():
    one = Stats({"attempts": 2}, [Place("break", "r", "f", 1, "g", 3)], {"capture": 0.5})
    again = Stats.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again.to_dict() == one.to_dict()
    both = one.merged(again)
    assert (both.attempts, both.breaks[0].count, both.translate_seconds, both.processes) == (4, 6, {"capture": 1.0}, 2)


@pytest.mark.parametrize(
    "damage",
    [{"version": 2}, {"places": [{}]}, {"places": 3}, {"attempts": "many"}, {"translate_seconds": []}, {"places": [{"kind": 1}]}],
)
def test_damaged_data_is_refused(damage):
    with pytest.raises(ValueError, match="not a statistics file"):
        Stats.from_dict({**Stats().to_dict(), **damage})


def test_text_names_reasons_and_places():
    events.record("break", "call of f", "a.py", 3, "g")
    text = str(stats.snapshot())
    assert "call of f" in text and "a.py:3" in text
    assert repr(Stats({"hits": 2})) == "Stats(hits=2)"


def test_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dump", full)
    with pytest.raises(OSError, match="No space"):
        stats.write_file(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_process_are_the_default(options):
    options(threads=2)
    assert config.current() == Options(**{**config.current().to_dict(), "threads": 2})
