"""Sites that retire: the frame goes on in a copy of the loop without sites, and nothing the user sees changes."""

from __future__ import annotations

from types import CodeType

import pytest

from tierup.bytecode.concrete import Program, decode, expand_superinstructions
from tierup.bytecode.flow import Flow
from tierup.bytecode.splice import RETIRE, SiteSpec, splice

from . import transform

RETIRED = {"count": 0}


class Retire:
    """A site that retires at every `every`th visit and misses otherwise."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.visits = 0

    def __bool__(self) -> bool:
        self.visits += 1
        retires = self.visits % self.every == 0
        RETIRED["count"] += retires
        return retires


def sites_in_loops(program: Program, every: int) -> list[SiteSpec]:
    flow = Flow(program)
    inside = [i for i in range(len(program)) if flow.depth[i] is not None and program.is_boundary(i) and flow.loop_of(i) is not None]
    return [SiteSpec(i, Retire(every), (RETIRE,)) for i in inside]


def retiring(every: int) -> transform.Transform:
    def apply(code: CodeType) -> CodeType:
        program = expand_superinstructions(decode(code))
        return splice(program, sites_in_loops(program, every)).code

    return apply


@pytest.fixture(scope="module")
def plain() -> dict[str, object]:
    space = transform.load()
    return {name: transform.outcome(space, name) for name in transform.case_names()}


@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_the_samples_behave_as_plain(every: int, plain: dict[str, object]) -> None:
    RETIRED["count"] = 0
    space = transform.load(retiring(every))
    for name, wanted in plain.items():
        assert transform.outcome(space, name) == wanted, name
    assert RETIRED["count"] > 5


def test_a_retired_site_is_not_met_again_in_that_loop() -> None:
    space: dict[str, object] = {}
    exec("def f(n):\n total = 0\n for i in range(n):\n  total += i\n return total\n", space)
    code = space["f"].__code__  # type: ignore[attr-defined]
    program = expand_superinstructions(decode(code))
    sites = sites_in_loops(program, 5)
    space["f"].__code__ = splice(program, sites).code  # type: ignore[attr-defined]
    assert space["f"](1000) == sum(range(1000))  # type: ignore[operator]
    assert sum(site.constant.visits for site in sites) < 100  # type: ignore[attr-defined]


def test_a_site_outside_a_loop_cannot_retire() -> None:
    program = expand_superinstructions(decode(compile("x = 1\n", "<test>", "exec")))
    with pytest.raises(ValueError, match="cannot retire"):
        splice(program, [SiteSpec(1, Retire(1), (RETIRE,))])


@pytest.mark.parametrize("every", [1, 2, 5])
def test_retiring_in_the_middle_of_calls(every: int) -> None:
    """NULLs and callables that wait on the stack go along."""
    space: dict[str, object] = {}
    source = (
        "def f(n, *rest, **kw):\n out = []\n for i in range(n):\n  if i % 3:\n   late = i\n"
        "  out.append(max(*[i, 3], *rest, **({'key': abs} if i > 2 else kw)) + min(i, sum([j for j in range(i)])))\n"
        "  if i > 3: out.append(late)\n return out\n"
    )
    exec(source, space)
    wanted = space["f"](9, 4, 5)  # type: ignore[operator]
    program = expand_superinstructions(decode(space["f"].__code__))  # type: ignore[attr-defined]
    space["f"].__code__ = splice(program, sites_in_loops(program, every)).code  # type: ignore[attr-defined]
    assert space["f"](9, 4, 5) == wanted  # type: ignore[operator]
