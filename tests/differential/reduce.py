"""Makes a failing program small: drops statements and calls as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .programs import Program
from .statements import Block, Statement

Fails = Callable[[Program], bool]


def _smaller_lists(items: list[Any]) -> Iterator[list[Any]]:
    """The list without one of its halves, quarters, …, single items."""
    width = max(1, len(items) // 2)
    while items:
        for start in range(0, len(items), width):
            yield items[:start] + items[start + width :]
        if width == 1:
            return
        width //= 2


def _smaller_bodies(body: list[Statement]) -> Iterator[list[Statement]]:
    yield from _smaller_lists(body)
    for i, statement in enumerate(body):
        if isinstance(statement, str):
            continue
        for _, inner in statement.clauses:
            yield [*body[:i], *inner, *body[i + 1 :]]
        for j, (header, inner) in enumerate(statement.clauses):
            for less in _smaller_bodies(inner):
                clauses = [*statement.clauses[:j], (header, less), *statement.clauses[j + 1 :]]
                yield [*body[:i], Block(clauses), *body[i + 1 :]]
            if j and not (j == 1 and statement.clauses[0][0] == "try:"):
                yield [*body[:i], Block(statement.clauses[:j] + statement.clauses[j + 1 :]), *body[i + 1 :]]


def _smaller(program: Program) -> Iterator[Program]:
    for calls in _smaller_lists(program.calls):
        if calls:
            yield replace(program, calls=calls)
    for body in _smaller_bodies(program.body):
        yield replace(program, body=body)


def reduced(program: Program, fails: Fails, attempts: int = 400) -> Program:
    """The smallest failing program found within a number of attempts."""

    def still_fails(candidate: Program) -> bool:
        try:
            compile(candidate.source, "candidate", "exec")
        except SyntaxError:
            return False
        return fails(candidate)

    progress = True
    while progress:
        progress = False
        for candidate in _smaller(program):
            attempts -= 1
            if attempts < 0:
                return program
            if still_fails(candidate):
                program, progress = candidate, True
                break
    return program
