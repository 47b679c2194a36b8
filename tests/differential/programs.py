"""Source text of small array programs: straight lines, branches, loops, views, breaks, handlers, closures, generators.

A program is deterministic and ends quickly. Most of what it does succeeds; some of it warns or raises, as programs do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .choice import Chooser, Drawn, Seeded, chance, weighted
from .expressions import Kind
from .inputs import LAYOUTS
from .prelude import PRELUDE
from .statements import Statement, Statements, render

_SHAPES: list[tuple[int, tuple[str, ...]]] = [(8, ("n",)), (6, ("n", "m")), (3, ("m",)), (1, ("1", "m")), (1, ()), (1, ("n", "1"))]
_SCALARS = ("1.5", "-0.5", "2.0", "0.0", "-0.0", "0.75", "float('nan')", "2.0", "1e200", "float('inf')", "3", "1e-320")
_ITEMS = ("[1, 2.5]", "(1, 2.5)", "[2, 2.5]", "[1]", "[1, 2.5, 0]", "[]", "[1, None]", "[True, 2.5]", "[1.0, 2.5]")
_OPTIONS = (
    '{"bias": 0.5, "gain": 2}',
    '{"gain": 2.0, "bias": 0.5}',
    '{"gain": 3}',
    '{"gain": 2, "bias": 0.5, "x": 1}',
    '{"bias": 0.5, "gain": 2, "y": 3}',
    "None",
)
_TOOLS = ("TOOLS[0]", "TOOLS[1]", "affine", "np.negative", "smooth", "HALF", "Box(2).scaled")
_THINGS = ("BOX", "Box(2.0)", "Twin(2.0)", "Heir(2.0)", "Box(2)", "Box(np.float64(2))", "Twin(2)")
_VARIATIONS = [
    *((2, what) for what in ("size", "layout", "k")),
    *((3, what) for what in ("values", "alias", "containers", "objects")),
    *((1, what) for what in ("dtype", "environment", "kind", "everything", "axis")),
]
_DTYPES = {"f": ["f8", "f4", "f8", "f4", "f4", "f2"], "i": ["i8", "i4", "i2", "u1", "u8", "i1"], "b": ["?"], "c": ["c16", "c8"]}


SCRIPT_MARK = "# --- script ---"
"""What follows it in a program's source is executed once for each call, as a script."""


@dataclass(frozen=True)
class Program:
    """A function's body, and what stands around it."""

    header: list[str]
    body: list[Statement]
    footer: list[str]
    calls: list[str]
    exact_nans: bool
    indent: int = 1

    @property
    def source(self) -> str:
        """The module's text."""
        return PRELUDE + "\n" + self.own_source

    @property
    def own_source(self) -> str:
        """The text without what all programs begin with."""
        calls = ["CALLS = [", *self.calls, "]", ""]
        if self.header[0] == SCRIPT_MARK:
            lines = [*calls, *self.header, *render(self.body, 0), ""]
        else:
            lines = [*self.header, *render(self.body, self.indent), *self.footer, "", *calls]
        return "\n".join(lines)


@dataclass
class Generator(Statements):
    """Builds one program from a chooser's decisions."""

    def program(self) -> Program:
        """The whole module."""
        shapes = [weighted(self.chooser, _SHAPES) for _ in range(2)]
        if self.chance(40):
            shapes[1] = shapes[0]
        flavours = [self.pick("f", "f", "f", "f", "f", "f", "i", "i", "b", "c") for _ in range(2)]
        self.scope = {name: Kind("array", dims, flavour) for name, dims, flavour in zip("ab", shapes, flavours, strict=True)}
        self.scope["k"] = Kind("int", (), "i")
        form = self.pick(*("plain",) * 6, "method", "closure", "script", "plain" if self.smooth else "generator")
        self.early_returns, self.script = form not in ("generator", "script"), form == "script"
        # What guards watch belongs to the first region, which every call reaches.
        first = [] if self.moves_only or self.chance(50) else [self.pick(self.objects_in, self.containers_in)()]
        body: list[Statement] = [*first, *(self.statement() for _ in range(self.chooser.integer(3, 9) + (3 if self.smooth else 0)))]
        last = self.result()
        body.append(last)
        if form == "script":
            body[-1] = last.replace("return", "result =", 1)
            body.insert(0, "result = None")
        if form == "generator":
            body.insert(self.chooser.integer(0, len(body) - 1), f"yield {self.pick('a', 'b', 'k')}")
            yielded = [name for name in self.scope if self.scope[name].what == "array"]
            body.insert(len(body) - 1, f"yield {self.pick(*yielded)}" if yielded else "yield k")
        header, footer, indent = self._frame(form)
        if form != "script":
            body.insert(0, "global COUNT")
        return Program(header, body, footer, self._calls(shapes, flavours), self.moves_only, indent)

    @staticmethod
    def _frame(form: str) -> tuple[list[str], list[str], int]:
        parameters = "a, b, k=2, s=1.5, t=None, *, flag=False, items=(), opts=None, tool=affine, thing=BOX, axis=0"
        if form == "method":
            return ["class Host:", "    bias = 1", "    @jit", f"    def f(self, {parameters}):"], ["f = Host().f"], 2
        if form == "closure":
            return (
                ["def maker(extra):", "    @jit", f"    def f({parameters}):", "        s_extra = extra"],
                ["    return f", "f = maker(SCALE)"],
                2,
            )
        if form == "script":
            return [SCRIPT_MARK], [], 0
        if form == "generator":
            head = ["@jit", f"def steps({parameters}):"]
            return (
                head,
                [
                    "def f(*args, **kwargs):",
                    "    out = []",
                    "    for value in steps(*args, **kwargs):",
                    "        out.append(value)",
                    "    return out",
                ],
                1,
            )
        return ["@jit", f"def f({parameters}):"], [], 1

    def _calls(self, shapes: list[tuple[str, ...]], flavours: list[str]) -> list[str]:
        """The same specification a few times, then others, then the first again."""
        first = self._specification(flavours, plain=True)
        plan = [first] * 7
        for _ in range(3):
            plan.append(self._varied(first, flavours))
        plan += [first, self._varied(first, flavours), first]
        return [self._call(i, spec, shapes) for i, spec in enumerate(plan)]

    def _specification(self, flavours: list[str], plain: bool) -> dict[str, Any]:
        return {
            "dtypes": [self.pick(*_DTYPES[flavour]) if self.chance(35) else _DTYPES[flavour][0] for flavour in flavours],
            "n": self.pick(4, 5, 7, 2, 33),
            "m": self.pick(3, 4, 2, 6),
            "layouts": ["C", "C"] if plain else [self.pick(*LAYOUTS) for _ in flavours],
            "values": "nan" if self.moves_only else "plain",
            "alias": None,
            "environment": "always",
            "k": 3,
            "t": "None",
            "items": "[1, 2.5]",
            "opts": '{"gain": 2, "bias": 0.5}',
            "tool": self.pick("affine", "TOOLS[0]"),
            "thing": self.pick("BOX", "Box(2.0)"),
            "axis": "0",
        }

    def _varied(self, first: dict[str, Any], flavours: list[str]) -> dict[str, Any]:
        spec = dict(first)
        what = weighted(self.chooser, _VARIATIONS)
        if what in ("size", "everything"):
            spec["n"], spec["m"] = self.pick(0, 1, 3, 6, 17, 70, 3000), self.pick(1, 2, 3, 5)
        if what in ("dtype", "everything"):
            spec["dtypes"] = [self.pick(*_DTYPES[flavour]) for flavour in flavours]
        if what in ("layout", "everything"):
            spec["layouts"] = [self.pick(*LAYOUTS) for _ in flavours]
        if what in ("values", "everything") and not self.moves_only:
            spec["values"] = self.pick("edge", "zero", "unit", "nan", "nan")
        if what in ("alias", "everything"):
            spec["alias"] = self.pick("same", "same", "view", "reversed", "overlapping", "overlapping")
        if what in ("environment", "everything"):
            spec["environment"] = self.pick("error", "default", "ignore", "raise", "call", "trace", "profile")
            if not self.moves_only:
                spec["values"] = self.pick("edge", "zero", "plain")
        if what == "k":
            spec["k"] = self.pick(0, 1, 2, 0, 1, 2, 5, -3, 2**40, 2**70, "True", "np.int64(3)", "3.0", "np.float32(2)")
        if what in ("k", "containers", "everything"):
            spec["t"] = self.pick("None", "1", "'text'", "0.5", "(1, 2)")
        if what in ("containers", "everything"):
            spec["items"] = self.pick(*_ITEMS)
            spec["opts"] = self.pick(*_OPTIONS)
        if what in ("objects", "everything"):
            spec["tool"], spec["thing"] = self.pick(*_TOOLS), self.pick(*_THINGS)
        if what in ("axis", "everything"):
            spec["axis"] = self.pick("-1", "-1", "None", "1", "(0,)", "np.int64(-1)", "False")
        if what == "kind":
            # Arrays of Python ints would compute powers without end.
            spec["dtypes"] = [self.pick("f8", "i4", "?", "c16", "u2", "m8[s]", "O" if flavour == "f" else "f4") for flavour in flavours]
        return spec

    def _call(self, number: int, spec: dict[str, Any], shapes: list[tuple[str, ...]]) -> str:
        arrays = []
        for i, dims in enumerate(shapes):
            shape = "".join(f"{1 if dim == '1' else spec[dim]}, " for dim in dims)
            arrays.append(f'make("{spec["dtypes"][i]}", ({shape}), "{spec["layouts"][i]}", {number + 5 * i}, "{spec["values"]}")')
        scalar = self.pick(*_SCALARS)
        flag = self.pick("True", "False")
        options = {
            "k": spec["k"],
            "s": scalar,
            "t": spec["t"],
            "flag": flag,
            **{name: spec[name] for name in ("items", "opts", "tool", "thing", "axis")},
        }
        arguments = "{" + ", ".join(f'"{name}": {value}' for name, value in options.items()) + "}"
        if spec["alias"] == "overlapping" and shapes[0] == shapes[1] == ("n",):
            pair = f'overlapping("{spec["dtypes"][0]}", {spec["n"]}, {number}, "{spec["values"]}")'
            return f'    ("{spec["environment"]}", lambda: ({pair}, {arguments})),'
        if spec["alias"] and shapes[0] == shapes[1]:
            return f'    ("{spec["environment"]}", lambda: (lambda x: ((x, alias(x, "{spec["alias"]}")), {arguments}))({arrays[0]})),'
        return f'    ("{spec["environment"]}", lambda: (({arrays[0]}, {arrays[1]}), {arguments})),'


def from_seed(seed: int) -> Program:
    """The program of a seed."""
    return _generate(Seeded(seed))


def strategy() -> Any:
    """Hypothesis' view of the same programs: it shrinks the decisions."""
    from hypothesis import strategies

    return strategies.composite(lambda draw: _generate(Drawn(draw)))()


def _generate(chooser: Chooser) -> Program:
    return Generator(chooser, moves_only=chance(chooser, 8), smooth=chance(chooser, 50)).program()
