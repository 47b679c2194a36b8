"""The object cache: warm starts, and every way in which its folder can be wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from native.graphs import Maker, run, same_bits
from tierup.native import cache
from tierup.native.compile import Compiled
from tierup.runtime import config, events


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = config.current()
    path = tmp_path / "objects"
    config.set_current(before.replace(cache_dir=str(path)))
    cache._ready.cache_clear()
    yield path
    config.set_current(before)
    cache._ready.cache_clear()


def compile_something() -> Compiled:
    m = Maker()
    x = m.array(np.ones(3))
    m.result(m.ufunc("negative", "d->d", m.ufunc("square", "d->d", x)))
    compiled = m.compile()
    a = np.arange(20.0)
    got = run(compiled, [a])
    assert got is not None and same_bits(got[0], -np.square(a))
    return compiled


def complaint() -> events.Event:
    """The newest cache event that is no hit or miss."""
    return [e for e in events.recent("cache") if e.reason not in ("hit", "miss")][-1]


def from_cache() -> bool:
    return compile_something().kernels[0].from_cache


def test_the_second_time_is_warm(folder: Path) -> None:
    assert not from_cache()
    assert from_cache()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"TUPK" + bytes(80)])
def test_a_damaged_entry_is_replaced(folder: Path, damage: bytes) -> None:
    compile_something()
    (entry,) = folder.iterdir()
    good = entry.read_bytes()
    entry.write_bytes(damage)
    assert not from_cache()
    assert entry.read_bytes() == good
    for at in range(0, len(good), 37):
        entry.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert cache.read(entry.name) is None
    for length in range(0, len(good), 41):
        entry.write_bytes(good[:length])
        assert cache.read(entry.name) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o722])
def test_a_folder_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    assert not from_cache() and not from_cache()
    assert list(folder.iterdir()) == []
    assert "others may write" in complaint().detail


def test_a_folder_of_somebody_else_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert not from_cache() and not from_cache()
    assert "another user" in complaint().detail


def test_a_link_or_a_file_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "real")
    assert not from_cache() and not from_cache()
    assert list((tmp_path / "real").iterdir()) == []


def test_a_full_or_read_only_disk_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert not from_cache() and not from_cache()
    assert list(folder.iterdir()) == [], "nothing half-written is left"
    assert complaint().reason == "a kernel could not be stored"


def test_an_empty_setting_turns_it_off(folder: Path) -> None:
    config.set_current(config.current().replace(cache_dir=""))
    assert not from_cache() and not from_cache()
    assert not folder.exists()


def test_keys_tell_cpus_and_texts_apart() -> None:
    assert len({cache.key(text, cpu) for text in ("a", "b") for cpu in ("x", "y")}) == 4


PROGRAM = """
import sys
import numpy as np
from native.graphs import Maker, run
from tierup.native import cache
m = Maker()
x = m.array(np.ones(3))
m.result(m.ufunc("negative", "d->d", m.ufunc("square", "d->d", x)))
compiled = m.compile()
assert run(compiled, [np.arange(20.0)])[0][3] == -9
print(compiled.kernels[0].from_cache, "llvmlite" in sys.modules)
"""


def test_other_processes_start_warm_and_without_llvm(folder: Path) -> None:
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "TIERUP_CACHE_DIR": str(folder), "PYTHONPATH": path, "TIERUP_STRICT": "0"}
    command = [sys.executable, "-c", PROGRAM]
    # Two at once, with an empty folder:
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [p.communicate(timeout=120)[0].split() for p in both]
    assert all(p.returncode == 0 for p in both)
    assert ["False", "True"] in outputs
    warm = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert warm.stdout.split() == ["True", "False"]
