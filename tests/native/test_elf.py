"""Objects become flat code only if they refer to nothing outside themselves."""

from __future__ import annotations

import pytest

from tierup.native import llvm
from tierup.native.elf import LinkError, link


def compiled(body: str, head: str = "") -> bytes:
    return llvm.compile_object(f"{head}\ndefine double @f(double %x) {{\n{body}\n}}\n")


def test_constants_are_carried_along() -> None:
    code = link(compiled("%y = fmul double %x, 3.25\nret double %y"), ("f",))
    assert len(code.entries) == 1 and 0 <= code.entries[0] < len(code.data)


def test_a_call_of_libm_is_refused() -> None:
    with pytest.raises(LinkError, match="nothing outside itself: 'sin'"):
        link(compiled("%y = call double @llvm.sin.f64(double %x)\nret double %y", "declare double @llvm.sin.f64(double)"), ("f",))


def test_writable_data_is_refused() -> None:
    with pytest.raises(LinkError, match="writable"):
        link(
            compiled(
                "%y = load double, ptr @g\nret double %y",
                "@g = internal global double 1.0\ndefine void @s() {\nstore double 2.0, ptr @g\nret void\n}",
            ),
            ("f",),
        )


def test_missing_symbol_and_foreign_bytes() -> None:
    with pytest.raises(LinkError, match="no symbols"):
        link(compiled("ret double %x"), ("g",))
    with pytest.raises(LinkError, match="not a little-endian"):
        link(b"MZ" + bytes(100), ("f",))
