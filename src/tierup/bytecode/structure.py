"""First half of the verifier: what can be said of each instruction by itself and of its neighbours.

The numbers in messages' comments are the invariants CPython relies on without checking; the second half (`abstract.py`) follows
the flow of control.
"""

from __future__ import annotations

import opcode as _opcode
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from tierup.bytecode.fields import KIND_CELL, KIND_FREE, KIND_LOCAL, CodeFields
from tierup.bytecode.opcodes import CO_ANY_GENERATOR, CO_VARARGS, CO_VARKEYWORDS, OpTable, table
from tierup.bytecode.tables import covered_units, decode_exceptions


class Fault(Exception):
    """A broken rule, at an instruction (by code unit) or, with unit -1, in the code object as a whole."""

    def __init__(self, unit: int, message: str) -> None:
        super().__init__(message)
        self.unit = unit
        self.message = message


@dataclass(frozen=True, slots=True)
class Row:
    """An exception row by instruction index; `end` is exclusive."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(slots=True)
class Scan:
    """The code cut into instructions."""

    fields: CodeFields
    ops: list[int]
    args: list[int]
    starts: list[int]
    """First code unit of each instruction; one more for the end."""
    own: list[int]
    """Code unit of the opcode itself."""
    targets: list[int]
    """Jump target by index, or -1."""
    rows: list[Row]
    closure_tuples: dict[int, int]
    """BUILD_TUPLE instructions that make a closure, and how many cells they must hold."""
    length_tests: set[int]
    """Comparisons of a GET_LEN with an int: they give an exact bool whatever their operand says."""
    kinds: tuple[int, ...]


# An argument check: None if fine, else what is wrong.
ArgCheck = Callable[[CodeFields, tuple[int, ...], int], str | None]


def scan(fields: CodeFields, hits: frozenset[int] = frozenset()) -> Scan:
    """Cuts the code up and checks everything that needs no flow analysis. `hits` are the first code units of hit blocks. Raises Fault."""
    optable = table()
    _check_counts(fields)
    result = _cut(fields, optable)
    index_at = {unit: k for k, unit in enumerate(result.starts)}
    _resolve_jumps(result, index_at, optable)
    _read_rows(result, index_at)
    _check_arguments(result, optable)
    _check_glue(result, optable)
    _check_prologue(result, optable)
    back = _Backwards(result, hits, optable)
    _check_functions(result, back, optable)
    _find_length_tests(result, back, optable)
    _check_locations(fields)
    return result


# ---- the code object as a whole


_PLAIN_CONSTANTS: Final = frozenset({int, float, complex, str, bytes, bool, type(None), type(...), tuple, frozenset, CodeType})


def _check_counts(fields: CodeFields) -> None:
    args = fields.argcount + fields.kwonlyargcount
    args += bool(fields.flags & CO_VARARGS) + bool(fields.flags & CO_VARKEYWORDS)
    if not 0 <= fields.posonlyargcount <= fields.argcount or fields.kwonlyargcount < 0 or args > len(fields.varnames):
        raise Fault(-1, f"{args} arguments, {fields.posonlyargcount} positional-only, do not fit {len(fields.varnames)} locals")
    if not fields.code or len(fields.code) % 2:
        raise Fault(-1, f"code of {len(fields.code)} bytes")
    if fields.stacksize < _smallest_stack():
        raise Fault(-1, f"stack size {fields.stacksize}")
    for number, value in enumerate(fields.consts):
        # 21: hash(code) hashes every constant.
        if type(value) not in _PLAIN_CONSTANTS and type(value).__hash__ is None:
            raise Fault(-1, f"constant {number} of type {type(value).__name__} is unhashable")


def _smallest_stack() -> int:
    """Since 3.13 the compiler gives every code object at least one slot."""
    return 1 if table().version >= (3, 13) else 0


def _check_locations(fields: CodeFields) -> None:
    """20: every code unit has an entry, or `traceback` fails."""
    try:
        covered = covered_units(fields.linetable)
    except ValueError as error:
        raise Fault(-1, str(error)) from None
    if covered != len(fields.code) // 2:
        raise Fault(-1, f"location table covers {covered} of {len(fields.code) // 2} code units")


# ---- cutting


def _cut(fields: CodeFields, optable: OpTable) -> Scan:
    """1, 2: base opcodes only, each followed by exactly its cache units, all zero."""
    code, extended, caches, base = fields.code, optable.extended_arg, optable.caches, optable.base
    ops: list[int] = []
    args: list[int] = []
    starts: list[int] = []
    own: list[int] = []
    zeros = [bytes(2 * n) for n in range(max(caches) + 1)]
    at, size = 0, len(code)
    while at < size:
        starts.append(at >> 1)
        op, arg = code[at], code[at + 1]
        at += 2
        if op == extended:
            op, arg, at = _extended(code, at - 2, extended)
        if op not in base:
            raise Fault(starts[-1], f"opcode {op} is no base opcode of this Python (a specialised, instrumented or internal one?)")
        own.append((at >> 1) - 1)
        ops.append(op)
        args.append(arg)
        cache = caches[op]
        if cache:
            if code[at : at + 2 * cache] != zeros[cache]:
                raise Fault(starts[-1], f"{optable.names[op]} must be followed by {cache} zero cache units")
            at += 2 * cache
    starts.append(size >> 1)
    return Scan(fields, ops, args, starts, own, [-1] * len(ops), [], {}, set(), fields.kinds)


def _extended(code: bytes, at: int, extended: int) -> tuple[int, int, int]:
    """(opcode, argument, byte behind) of an instruction with EXTENDED_ARG prefixes."""
    start, arg = at, 0
    while at < len(code) and code[at] == extended:
        arg = (arg | code[at + 1]) << 8
        at += 2
    if at >= len(code):
        raise Fault(start >> 1, "code ends in EXTENDED_ARG")
    if at - start > 6:
        raise Fault(start >> 1, "more than three EXTENDED_ARG")
    return code[at], arg | code[at + 1], at + 2


def _resolve_jumps(scan: Scan, index_at: dict[int, int], optable: OpTable) -> None:
    """3: targets are instruction starts inside the code."""
    jump, count = optable.jump, len(scan.ops)
    for k, op in enumerate(scan.ops):
        direction = jump[op]
        if direction:
            unit = scan.starts[k + 1] + direction * scan.args[k]
            target = index_at.get(unit, -1)
            if not 0 <= target < count:
                raise Fault(scan.starts[k], f"{optable.names[op]} jumps to {_place(unit, scan)}")
            scan.targets[k] = target


def _place(unit: int, scan: Scan) -> str:
    if not 0 <= unit < scan.starts[-1]:
        return f"unit {unit}, outside the code"
    return f"unit {unit}, inside an instruction or its cache"


def _read_rows(scan: Scan, index_at: dict[int, int]) -> None:
    """9: rows are sorted, do not overlap, and begin, end and lead to instruction starts."""
    try:
        raw = decode_exceptions(scan.fields.exceptiontable)
    except ValueError as error:
        raise Fault(-1, str(error)) from None
    previous = 0
    for start, end, target, depth, lasti in raw:
        if start < previous or end <= start:
            raise Fault(start, f"exception row {start}..{end} is empty or out of order")
        previous = end
        for unit in (start, end, target):
            if unit not in index_at:
                raise Fault(start, f"exception row {start}..{end} -> {target}: {_place(unit, scan)}")
        if index_at[target] >= len(scan.ops):
            raise Fault(start, f"exception row {start}..{end} -> {target}: {_place(target, scan)}")
        scan.rows.append(Row(index_at[start], index_at[end], index_at[target], depth, lasti))


# ---- arguments


def _check_arguments(scan: Scan, optable: OpTable) -> None:
    """11: indices in range and of the right kind."""
    checks, fields, kinds = _argument_checks(), scan.fields, scan.kinds
    consts = len(fields.consts)
    load_const = optable.op("LOAD_CONST")
    for k, op in enumerate(scan.ops):
        if op == load_const:
            if scan.args[k] < consts:
                continue
            raise Fault(scan.starts[k], f"LOAD_CONST {scan.args[k]}: {consts} constants")
        check = checks[op]
        if check is not None:
            wrong = check(fields, kinds, scan.args[k])
            if wrong is not None:
                raise Fault(scan.starts[k], f"{optable.names[op]} {scan.args[k]}: {wrong}")


def _const(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg < len(fields.consts) else f"{len(fields.consts)} constants"


def _keyword_names(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    if arg >= len(fields.consts):
        return f"{len(fields.consts)} constants"
    value = fields.consts[arg]
    fine = type(value) is tuple and all(type(n) is str for n in value)
    return None if fine else "the constant is no tuple of names"


def _name(shift: int) -> ArgCheck:
    return lambda fields, kinds, arg: None if arg >> shift < len(fields.names) else f"{len(fields.names)} names"


def _slot(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg < len(kinds) else f"{len(kinds)} slots"


def _local(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg < len(kinds) and kinds[arg] & KIND_LOCAL else "no local"


def _two_locals(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    # 18: two 4-bit locals.
    return None if arg < 256 and arg >> 4 < len(kinds) and arg & 15 < len(kinds) else "no two locals"


def _own_cell(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg < len(kinds) and kinds[arg] & KIND_CELL else "no cell of this code"


def _cell(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg < len(kinds) and kinds[arg] & (KIND_CELL | KIND_FREE) else "no cell or free variable"


def _free_count(fields: CodeFields, kinds: tuple[int, ...], arg: int) -> str | None:
    return None if arg == len(fields.freevars) else f"{len(fields.freevars)} free variables"


def _between(low: int, high: int) -> ArgCheck:
    return lambda fields, kinds, arg: None if low <= arg <= high else f"the operand is not in {low}..{high}"


def _one_of(*allowed: int) -> ArgCheck:
    return lambda fields, kinds, arg: None if arg in allowed else f"the operand is not one of {allowed}"


def _comparison(optable: OpTable) -> ArgCheck:
    count = len(optable.compare_symbols)
    return lambda fields, kinds, arg: None if arg >> optable.compare_shift < count else "no comparison"


def _intrinsics(name: str) -> int:
    descriptions: Any = getattr(_opcode, name, ())
    return len(descriptions) - 1


@lru_cache(maxsize=1)
def _argument_checks() -> list[ArgCheck | None]:
    optable = table()
    checks: list[ArgCheck | None] = [None] * 256
    for op in optable.hasconst:
        checks[op] = _const
    for op in optable.hasname:
        checks[op] = _name(optable.name_shift[op])
    for op in optable.haslocal:
        checks[op] = _slot
    for op in optable.hasfree:
        checks[op] = _cell
    local = _local if optable.version < (3, 12) else _slot
    before_313 = optable.version < (3, 13)
    special: dict[str, ArgCheck] = {
        "KW_NAMES": _keyword_names,
        "LOAD_FAST": local,
        "STORE_FAST": local,
        "DELETE_FAST": _local,
        "LOAD_FAST_LOAD_FAST": _two_locals,
        "STORE_FAST_LOAD_FAST": _two_locals,
        "STORE_FAST_STORE_FAST": _two_locals,
        # An inlined comprehension (3.12) may make a free variable's slot a cell of its own for a while.
        "MAKE_CELL": _own_cell if optable.version < (3, 12) else _cell,
        "COPY_FREE_VARS": _free_count,
        "BINARY_OP": _between(0, len(optable.binary_symbols) - 1),
        "COMPARE_OP": _comparison(optable),
        "IS_OP": _between(0, 1),
        "CONTAINS_OP": _between(0, 1),
        "BUILD_SLICE": _between(2, 3),
        "CALL_FUNCTION_EX": _between(0, 1),
        "CALL_INTRINSIC_1": _between(1, _intrinsics("_intrinsic_1_descs")),
        "CALL_INTRINSIC_2": _between(1, _intrinsics("_intrinsic_2_descs")),
        "CONVERT_VALUE": _between(1, 3),
        "COPY": _between(1, 1 << 30),
        "SWAP": _between(1, 1 << 30),
        "FORMAT_VALUE": _between(0, 7),
        "GET_AWAITABLE": _between(0, 2),
        "LIST_APPEND": _between(1, 1 << 30),
        "SET_ADD": _between(1, 1 << 30),
        "MAP_ADD": _between(1, 1 << 30),
        "MAKE_FUNCTION": _between(0, 15 if before_313 else 0),
        "RAISE_VARARGS": _between(0, 2),
        "RERAISE": _between(0, 2),
        # 3.13 adds a bit that says the generator has but one exception handler around it.
        "RESUME": _between(0, 3 if before_313 else 7),
        "SET_FUNCTION_ATTRIBUTE": _one_of(1, 2, 4, 8),
    }
    for name, check in special.items():
        if optable.has(name):
            checks[optable.op(name)] = check
    return checks


# ---- neighbours


def _must_follow(optable: OpTable) -> dict[int, tuple[str, ...]]:
    """4, 5, 13: what must stand directly behind an instruction."""
    rules = {
        "PRECALL": ("CALL",),
        "KW_NAMES": ("PRECALL",) if optable.has("PRECALL") else ("CALL",),
        "YIELD_VALUE": ("RESUME",),
        "RETURN_GENERATOR": ("POP_TOP",),
    }
    return {optable.op(name): after for name, after in rules.items() if optable.has(name)}


def _check_glue(scan: Scan, optable: OpTable) -> None:
    ops, args, names = scan.ops, scan.args, optable.names
    follow = _must_follow(optable)
    sealed: set[int] = set()
    calls_need_precall = optable.has("PRECALL")
    call, precall = optable.op("CALL"), optable.opmap.get("PRECALL", -1)
    yield_value, resume = optable.op("YIELD_VALUE"), optable.op("RESUME")
    for k, op in enumerate(ops):
        after = follow.get(op)
        if after is not None:
            if k + 1 >= len(ops) or names[ops[k + 1]] not in after:
                raise Fault(scan.starts[k], f"{names[op]} is not followed by {' or '.join(after)}")
            sealed.add(k + 1)
            if op == precall and args[k] != args[k + 1]:
                raise Fault(scan.starts[k], f"PRECALL {args[k]} is followed by CALL {args[k + 1]}")
            if names[op] == "KW_NAMES":
                _check_keyword_count(scan, k)
        if op == call and calls_need_precall and (k == 0 or ops[k - 1] != precall):
            raise Fault(scan.starts[k], "CALL without its PRECALL")
        if op == resume and args[k] & 3 and (k == 0 or ops[k - 1] != yield_value):
            raise Fault(scan.starts[k], f"RESUME {args[k]} does not follow YIELD_VALUE")
        if op == yield_value and not args[k + 1] & 3:
            raise Fault(scan.starts[k], "YIELD_VALUE is followed by the RESUME of a function's start")
        if scan.targets[k] >= 0:
            _check_loop_jump(scan, k, optable)
    _check_sealed(scan, sealed, optable)


def _check_keyword_count(scan: Scan, k: int) -> None:
    keywords = scan.fields.consts[scan.args[k]]
    assert isinstance(keywords, tuple)
    if len(keywords) > scan.args[k + 1]:
        raise Fault(scan.starts[k], f"{len(keywords)} keyword names for a call with {scan.args[k + 1]} arguments")


def _check_loop_jump(scan: Scan, k: int, optable: OpTable) -> None:
    """15: an exhausted FOR_ITER jumps over END_FOR (and 3.13's POP_TOP) without looking."""
    if optable.version < (3, 12):
        return
    name, target = optable.names[scan.ops[k]], scan.targets[k]
    if name == "FOR_ITER":
        wanted = ("END_FOR", "POP_TOP") if optable.version >= (3, 13) else ("END_FOR",)
    elif name == "SEND":
        wanted = ("END_SEND",)
    else:
        return
    there = tuple(optable.names[op] for op in scan.ops[target : target + len(wanted)])
    if there != wanted:
        raise Fault(scan.starts[k], f"{name} jumps to {', '.join(there)}, not to {', '.join(wanted)}")


def _check_sealed(scan: Scan, sealed: set[int], optable: OpTable) -> None:
    """4, 5: nothing jumps between the parts of a call."""
    for k, target in enumerate(scan.targets):
        if target in sealed:
            raise Fault(scan.starts[k], f"jump between {optable.names[scan.ops[target - 1]]} and {optable.names[scan.ops[target]]}")
    for row in scan.rows:
        if row.target in sealed:
            raise Fault(scan.starts[row.target], f"handler starts between {optable.names[scan.ops[row.target - 1]]} and its follower")


# ---- the start of the code


def _check_prologue(scan: Scan, optable: OpTable) -> None:
    """12, 13, 14: COPY_FREE_VARS, MAKE_CELL*, RETURN_GENERATOR and POP_TOP, then RESUME 0."""
    names = [optable.names[op] for op in scan.ops[: 4 + len(scan.kinds)]]
    at = 0
    if names[at] == "COPY_FREE_VARS":
        at += 1
    elif scan.fields.freevars:
        raise Fault(0, f"{len(scan.fields.freevars)} free variables, but the code does not start with COPY_FREE_VARS")
    made = set()
    while at < len(names) and names[at] == "MAKE_CELL":
        made.add(scan.args[at])
        at += 1
    names_of, kinds = scan.fields.localsplus, scan.kinds
    missing = [names_of[slot] for slot, kind in enumerate(kinds) if kind & KIND_CELL and slot not in made]
    if missing:
        raise Fault(scan.starts[at], f"no MAKE_CELL for {', '.join(missing)} before RESUME")
    generator = bool(scan.fields.flags & CO_ANY_GENERATOR)
    if generator:
        if names[at : at + 2] != ["RETURN_GENERATOR", "POP_TOP"]:
            raise Fault(scan.starts[at], "a generator or coroutine must create itself before RESUME")
        at += 2
    if at >= len(names) or names[at] != "RESUME" or scan.args[at] & 3:
        raise Fault(scan.starts[min(at, len(scan.ops))], "the code's first instruction behind the prologue is not RESUME 0")
    _check_once(scan, at, generator, optable)
    # The compiler forgets the handler around a lambda that yields (3.12, 3.13).
    if generator and optable.version >= (3, 12) and scan.fields.name != "<lambda>":
        _check_stop_iteration(scan, at, optable)


def _check_once(scan: Scan, resume_at: int, generator: bool, optable: OpTable) -> None:
    only_before = {optable.op("COPY_FREE_VARS"), optable.op("RETURN_GENERATOR")}
    yield_value, resume = optable.op("YIELD_VALUE"), optable.op("RESUME")
    for k, op in enumerate(scan.ops):
        if k > resume_at and (op in only_before or (op == resume and not scan.args[k] & 3)):
            raise Fault(scan.starts[k], f"{optable.names[op]} stands behind the start of the code")
        if op == yield_value and not generator:
            raise Fault(scan.starts[k], "YIELD_VALUE in code that is no generator or coroutine")
        if k < resume_at and op in only_before and op == optable.op("RETURN_GENERATOR") and not generator:
            raise Fault(scan.starts[k], "RETURN_GENERATOR in code that is no generator or coroutine")
        if 0 <= scan.targets[k] <= resume_at:
            raise Fault(scan.starts[k], f"{optable.names[op]} jumps into the start of the code")


def _check_stop_iteration(scan: Scan, resume_at: int, optable: OpTable) -> None:
    """13: since 3.12 the code itself turns StopIteration into RuntimeError."""
    intrinsic, stop_iteration_error = optable.op("CALL_INTRINSIC_1"), 3
    for row in scan.rows:
        if row.start <= resume_at < row.end:
            if scan.ops[row.target] == intrinsic and scan.args[row.target] == stop_iteration_error:
                return
            break
    raise Fault(scan.starts[resume_at], "the generator's body is not covered by a StopIteration handler")


# ---- short patterns, over sites in between


class _Backwards:
    """Steps to the instruction before another in the original code, over the sites between them."""

    def __init__(self, scan: Scan, hits: frozenset[int], optable: OpTable) -> None:
        self.scan = scan
        self.hits = hits
        self.site_size = 3 if optable.has("TO_BOOL") else 2
        self.empty_end = optable.op("POP_TOP")
        self.empty_test = optable.op("TO_BOOL") if optable.has("TO_BOOL") else optable.op("UNARY_NOT")

    def before(self, k: int) -> int:
        """Index of that instruction, -1 at the start."""
        scan, k = self.scan, k - 1
        while k >= self.site_size:
            if scan.targets[k] >= 0 and scan.starts[scan.targets[k]] in self.hits:
                k -= self.site_size
            elif scan.ops[k] == self.empty_end and scan.ops[k - 1] == self.empty_test:
                k -= 3
            else:
                break
        return k


def _check_functions(scan: Scan, back: _Backwards, optable: OpTable) -> None:
    """12: a function's closure holds as many cells as its code has free variables."""
    ops, args = scan.ops, scan.args
    make, load_const, build = optable.op("MAKE_FUNCTION"), optable.op("LOAD_CONST"), optable.op("BUILD_TUPLE")
    attribute = optable.opmap.get("SET_FUNCTION_ATTRIBUTE", -1)
    closures = {back.before(k) for k, op in enumerate(ops) if op == attribute and args[k] == 8}
    for k, op in enumerate(ops):
        if op != make:
            continue
        loaded = back.before(k)
        code = scan.fields.consts[args[loaded]] if loaded >= 0 and ops[loaded] == load_const else None
        if not isinstance(code, CodeType):
            raise Fault(scan.starts[k], "MAKE_FUNCTION does not follow a code constant")
        closure = bool(args[k] & 8) if attribute < 0 else k in closures
        if closure != bool(code.co_freevars):
            has = "a" if closure else "no"
            raise Fault(scan.starts[k], f"{code.co_name} has {len(code.co_freevars)} free variables, but {has} closure")
        if closure:
            built = back.before(loaded)
            if built < 0 or ops[built] != build or args[built] != len(code.co_freevars):
                raise Fault(scan.starts[k], f"the closure of {code.co_name} is no tuple of {len(code.co_freevars)} cells made just before")
            scan.closure_tuples[built] = args[built]


def _find_length_tests(scan: Scan, back: _Backwards, optable: OpTable) -> None:
    """A sequence pattern's length test; 3.13.0's compiler does not ask for an exact bool there."""
    if not optable.compare_bool:
        return
    get_len, load_const, compare = optable.op("GET_LEN"), optable.op("LOAD_CONST"), optable.op("COMPARE_OP")
    for k, op in enumerate(scan.ops):
        if op == compare:
            loaded = back.before(k)
            if loaded > 0 and scan.ops[loaded] == load_const and type(scan.fields.consts[scan.args[loaded]]) is int:
                measured = back.before(loaded)
                if measured >= 0 and scan.ops[measured] == get_len:
                    scan.length_tests.add(k)
