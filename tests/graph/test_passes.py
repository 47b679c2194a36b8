"""Passes, each as two listings in a text file: `passes/<pass>-*.txt` holds the input, a line of dashes, the expected output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierup.graph.parser import parse_graph
from tierup.graph.passes import PASSES
from tierup.graph.printer import opaque_values, print_graph
from tierup.graph.verify import verify

CASES = sorted(Path(__file__).with_name("passes").glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_pass(path: Path) -> None:
    before, _, after = path.read_text().partition("----\n")
    opaque = {f"${k}": object() for k in range(10)}
    graph = parse_graph(before, opaque)
    verify(graph)
    text = print_graph(graph)
    result = PASSES[path.stem.partition("-")[0]](graph)
    verify(result)
    assert print_graph(graph) == text, "the pass changed its input"
    wanted = parse_graph(after, opaque)
    assert print_graph(result) == print_graph(wanted)
    assert opaque_values(result).keys() <= opaque.keys()


def test_there_are_cases_for_every_pass() -> None:
    assert {p.stem.partition("-")[0] for p in CASES} == set(PASSES)
