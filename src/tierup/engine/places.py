"""Where regions may begin and end before anything is known: the sites and landings that the first generated code carries.

A running frame cannot be given new code, so loops get their sites and landings in advance: a site where a body begins and behind every
statement at which a region is likely to end, and landings at every statement of the same loop level.
"""

from __future__ import annotations

from tierup.bytecode.canonical import Op
from tierup.bytecode.concrete import Program
from tierup.bytecode.flow import Flow, Loop
from tierup.bytecode.listing import Listing
from tierup.engine import stress

_ENDS_STATEMENT = frozenset(
    {Op.STORE_LOCAL, Op.STORE_NAME, Op.STORE_GLOBAL, Op.STORE_DEREF, Op.STORE_SUBSCR, Op.STORE_SLICE, Op.STORE_ATTR, Op.POP_TOP,
     Op.DELETE_LOCAL, Op.DELETE_NAME, Op.DELETE_SUBSCR, Op.DELETE_ATTR, Op.RESUME}
)  # fmt: skip
_ENDS_REGION = frozenset({Op.CALL, Op.CALL_FUNCTION_EX, Op.STORE_SUBSCR, Op.STORE_SLICE, Op.STORE_ATTR, Op.STORE_GLOBAL, Op.OTHER})
_CO_NEWLOCALS = 0x2
_RETURNS = frozenset({Op.RETURN_VALUE, Op.RETURN_CONST})
_WORTH_A_SITE = frozenset({Op.BINARY_OP, Op.CALL, Op.CALL_FUNCTION_EX, Op.UNARY_NEGATIVE, Op.UNARY_INVERT, Op.STORE_SUBSCR, Op.STORE_SLICE})


def _loop_of(flow: Flow, index: int) -> frozenset[int] | None:
    """Body of the innermost loop around an instruction."""
    loop = flow.loop_of(index)
    return None if loop is None else loop.body


def statement_starts(program: Program, listing: Listing, flow: Flow) -> list[int]:
    """Boundaries at which a statement begins: behind a store or a dropped value, or where a jump leads to with no expression half done."""
    starts = []
    previous = None
    for canon in listing.canons:
        if previous is not None and canon.index != previous.index and flow.depth[canon.index] is not None:
            begins = previous.op in _ENDS_STATEMENT or _line_change(program, previous.index, canon.index)
            if begins and program.is_boundary(canon.index):
                starts.append(canon.index)
        previous = canon
    return starts


def _line_change(program: Program, before: int, at: int) -> bool:
    """A jump target on a new line begins a statement, too (the first instruction of a branch)."""
    return at in program.jump_targets and program.instrs[before].positions[0] != program.instrs[at].positions[0]


def _every_boundary(program: Program, flow: Flow) -> list[int]:
    return [i for i in range(len(program)) if flow.depth[i] is not None and program.is_boundary(i)]


def initial_sites(program: Program, listing: Listing, flow: Flow) -> list[int]:
    """The entry, the beginnings of loop bodies, and in loops the statements behind likely ends of regions."""
    if stress.mode() is not None and len(program) <= stress.MAX_STRESSED_INSTRUCTIONS:
        return _every_boundary(program, flow)
    if not any(canon.op in _WORTH_A_SITE for canon in listing.canons):
        return []
    sites = []
    resume = next((canon.index for canon in listing.canons if canon.op is Op.RESUME), None)
    if resume is not None and program.flags & _CO_NEWLOCALS:
        sites.append(resume)  # a module's straight-line code runs once
    starts = statement_starts(program, listing, flow)
    for loop in flow.loops:
        if _has_work(listing, loop.body):
            sites.extend(_loop_sites(listing, flow, loop.header, loop.body, starts))
    return sorted(set(sites))


def _has_work(listing: Listing, body: frozenset[int]) -> bool:
    return any(canon.op in _WORTH_A_SITE for canon in listing.canons if canon.index in body)


def _loop_sites(listing: Listing, flow: Flow, header: int, body: frozenset[int], starts: list[int]) -> list[int]:
    inside = [s for s in starts if s in body and _loop_of(flow, s) == body]
    sites = [loop_entry(listing, header, body)]
    pending = False
    for canon in listing.canons:
        if canon.index not in body:
            continue
        if pending and canon.index in inside:
            sites.append(canon.index)
            pending = False
        pending = pending or canon.op in _ENDS_REGION
    jumps = {canon.index for canon in listing.canons if canon.op in (Op.JUMP, *_RETURNS)}
    return [s for s in sites if s not in jumps]


def loop_entry(listing: Listing, header: int, body: frozenset[int]) -> int:
    """Where a turn of a loop begins for us: behind a `for` loop's own instructions, also those that take its item apart into variables, at
    a `while` loop's header."""
    first = listing.canons[listing.position[header]]
    if first.op is not Op.FOR_ITER:
        return header
    at, values = listing.position[first.next_index], 1
    while values and at + 1 < len(listing.canons):
        canon = listing.canons[at]
        if canon.op is Op.UNPACK_SEQUENCE:
            values += canon.arg - 1
        elif canon.op in (Op.STORE_LOCAL, Op.STORE_NAME):
            values -= 1
        else:
            return first.next_index
        at += 1
    behind = listing.canons[at].index
    whole = listing.position[behind] == at  # not in the middle of an instruction that does two things
    return behind if not values and whole and behind in body else first.next_index


def loop_at(listing: Listing, flow: Flow, index: int) -> Loop | None:
    """The loop whose turns begin at an instruction."""
    return next((loop for loop in flow.loops if loop_entry(listing, loop.header, loop.body) == index), None)


def landings(program: Program, listing: Listing, flow: Flow, index: int) -> tuple[bool, list[int]]:
    """(whether the site is in a loop, the instructions at which its regions may end in the first generated code)."""
    body = _loop_of(flow, index)
    mode = stress.mode()
    if mode is not None:
        boundaries = _every_boundary(program, flow)
        ahead = [i for i in boundaries if i > index] + [i for i in boundaries if i < index]
        return body is not None, ahead[: mode.exits]
    # Outside loops a region may end anywhere: the code is made anew with the landing it needs. A running loop must do with these.
    whole = loop_at(listing, flow, index) is not None
    # A whole loop is left from anywhere in it, and at its end.
    level = [] if body is None else [s for s in body if whole or _loop_of(flow, s) == body]
    found = [s for s in statement_starts(program, listing, flow) if s != index and s in level] + [index] * whole
    for canon in listing.canons:
        at = canon.index
        if flow.depth[at] is None or not program.is_boundary(at):
            continue
        if canon.op in _RETURNS and (_loop_of(flow, at) == body or at in level):
            found.append(at)
        elif canon.op in (Op.JUMP, Op.POP_JUMP_IF) and at in level:
            target = canon.arg[0] if canon.op is Op.JUMP else canon.arg[1]
            if target <= at:
                found.append(at)
            elif whole and canon.op is Op.JUMP and target not in level and _can_land(program, flow, target):
                found.append(target)
        if whole and canon.op is Op.FOR_ITER and at in level and _can_land(program, flow, canon.arg):
            found.append(canon.arg)
        if whole and canon.op is Op.POP_JUMP_IF and at in level:
            ways_out = [t for t in (canon.arg[1], canon.next_index) if t not in level and _can_land(program, flow, t)]
            found.extend(ways_out)
    if whole:
        found += [loop.header for loop in flow.loops if loop.header in level and _can_land(program, flow, loop.header)]
    return body is not None, sorted(set(found), key=lambda i: (i < index, i))


def _can_land(program: Program, flow: Flow, index: int) -> bool:
    return index < len(program) and flow.depth[index] is not None and program.is_boundary(index)


def top_is_null(flow: Flow, index: int) -> bool:
    """Whether the top stack slot before an instruction is a NULL."""
    depth = flow.depth[index]
    return bool(depth and flow.nulls[index] >> (depth - 1) & 1)
