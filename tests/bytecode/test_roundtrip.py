"""Decoding and assembling gives back the same bytes, for all of the standard library."""

from __future__ import annotations

import dis
import marshal

import pytest

from tierup.bytecode.assemble import assemble, assemble_fields, stack_depths, stack_size
from tierup.bytecode.concrete import decode, expand_superinstructions, fuse_superinstructions
from tierup.bytecode.effects import effects
from tierup.bytecode.opcodes import table
from tierup.bytecode.tables import covered_units, decode_exceptions, decode_locations, encode_exceptions, encode_locations
from tierup.bytecode.verify import verify_fields

from .corpus import library


@pytest.mark.timeout(3000)
def test_library_is_reproduced() -> None:
    count = 0
    for code in library():
        program = decode(code)
        again = assemble(program)
        where = (code.co_filename, code.co_qualname)
        # marshal writes every field (and the nested constants, which are the same objects).
        assert marshal.dumps(again, 2) == marshal.dumps(code, 2), where
        assert list(again.co_positions()) == list(code.co_positions()), where
        assert list(again.co_lines()) == list(code.co_lines()), where
        # CPython also counts the stack of handlers that nothing reaches.
        assert stack_size(program) == code.co_stacksize or None in stack_depths(program), where
        count += 1
    assert count > 500


@pytest.mark.timeout(3000)
def test_superinstructions_are_split_and_packed_again() -> None:
    for code in library():
        program = decode(code)
        expanded = expand_superinstructions(program)
        assert all("_FAST_LOAD_FAST" not in i.name and "_FAST_STORE_FAST" not in i.name for i in expanded.instrs)
        verify_fields(assemble_fields(expanded).fields)
        packed, new_index = fuse_superinstructions(expanded)
        assert assemble_fields(packed).fields.code == code.co_code, (code.co_filename, code.co_qualname)
        assert new_index[-1] == len(program)


def test_effects_agree_with_dis() -> None:
    """Our table against CPython's own net effects, over a range of operands."""
    optable, effect = table(), effects()
    # CPython counts PRECALL + CALL together; on 3.11 and 3.12 it lets RETURN_GENERATOR's push happen before the start.
    elsewhere = {"PRECALL", "CALL", "RETURN_GENERATOR"} if optable.has("PRECALL") else {"RETURN_GENERATOR"}
    for name, op in optable.opmap.items():
        if name in elsewhere or op == optable.extended_arg:
            continue
        for arg in (*range(20), 255, 256, 1000):
            try:
                wanted = dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=False)
                jumped = dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=True)
            except ValueError:
                continue
            if not _valid_operand(name, arg):
                continue
            _, pops, pushes = effect.of(op, arg)
            assert pushes - pops == wanted, (name, arg)
            if optable.jump[op]:
                assert pushes - pops + effect.jump_extra[op] == jumped, (name, arg)


def _valid_operand(name: str, arg: int) -> bool:
    limits = {"MAKE_FUNCTION": 15, "CALL_FUNCTION_EX": 1, "BUILD_SLICE": 3, "FORMAT_VALUE": 7, "RAISE_VARARGS": 2}
    return arg <= limits.get(name, arg)


def test_extended_arguments() -> None:
    """Many names, constants and far jumps need one and two EXTENDED_ARG."""
    body = "\n".join(f"  v{i} = g{i} + {i}.5" for i in range(700))
    source = f"def f(a):\n while a:\n{body}\n  if a:\n   continue\n return a\n"
    space: dict[str, object] = {}
    exec(source, space)
    code = space["f"].__code__  # type: ignore[attr-defined]
    assert marshal.dumps(assemble(decode(code)), 2) == marshal.dumps(code, 2)
    many = "def f():\n return [" + ",".join(f"{i}.25" for i in range(70000)) + "]\n"
    exec(many, space)
    code = space["f"].__code__  # type: ignore[attr-defined]
    assert marshal.dumps(assemble(decode(code)), 2) == marshal.dumps(code, 2)


def test_jump_grows_when_code_is_inserted() -> None:
    """A jump just short of needing EXTENDED_ARG gets one when what it jumps over grows."""
    lines = "\n".join("  a.b" for _ in range(20))
    space: dict[str, object] = {}
    exec(f"def f(a):\n if a:\n{lines}\n return a\n", space)
    program = decode(space["f"].__code__)  # type: ignore[attr-defined]
    nop = program.instrs[0]._replace(opcode=table().op("NOP"), name="NOP", arg=0, target=None)
    jump_at = next(k for k, i in enumerate(program.instrs) if i.target is not None)
    for extra in (1, 40, 300, 70000):
        instrs = list(program.instrs)
        inserted = [i if i.target is None else i._replace(target=i.target + extra) for i in instrs]
        inserted[jump_at + 1 : jump_at + 1] = [nop] * extra
        code = assemble(program.edited(inserted, ()))
        assert [i.target for i in decode(code).instrs] == [i.target for i in inserted]


@pytest.mark.parametrize("depth", [0, 1, 31, 32, 63, 5000])
def test_exception_table(depth: int) -> None:
    rows = [(0, 1, 9, depth, False), (1, 64, 70, depth, True), (64, 70000, 5000000, 0, False)]
    assert decode_exceptions(encode_exceptions(rows)) == rows


def test_exception_table_refuses_damage() -> None:
    data = encode_exceptions([(3, 70, 900, 2, True)])
    for cut in range(1, len(data)):
        with pytest.raises(ValueError, match="exception table"):
            decode_exceptions(data[:cut])
    with pytest.raises(ValueError, match="misplaced"):
        decode_exceptions(data[1:])


def test_location_table() -> None:
    runs = [
        (1, (10, 10, 0, 15)),
        (20, (10, 10, 79, 94)),
        (3, (11, 11, 100, 127)),
        (1, (12, 12, 128, 300)),
        (9, (None, None, None, None)),
        (2, (5, 5, None, None)),
        (2, (500, 507, 3, 1)),
        (2, (500, 500, 8, 2)),
    ]
    data = encode_locations(runs, 10)
    flat = [p for units, p in runs for _ in range(units)]
    assert [p for units, p in decode_locations(data, 10) for _ in range(units)] == flat
    assert covered_units(data) == len(flat)
    for cut in range(1, len(data)):
        try:
            units = sum(u for u, _ in decode_locations(data[:cut], 10))
        except ValueError:
            with pytest.raises(ValueError, match="malformed"):
                covered_units(data[:cut])
            continue
        assert units == covered_units(data[:cut]) < len(flat)
