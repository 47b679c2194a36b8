"""Array and scalar expressions over the variables in scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from .choice import Chooser, chance, pick, weighted

T = TypeVar("T")

_UNARY_FLOAT = [
    "np.sqrt",
    "np.exp",
    "np.sin",
    "np.tanh",
    "np.abs",
    "np.negative",
    "np.square",
    "np.log1p",
    "np.floor",
    "np.sign",
    "np.cbrt",
]
_BINARY_FLOAT = ["+", "-", "*", "+", "-", "*", "/", "**", "//", "%"]
_COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
_CUTS = [("1:", "<"), (":-1", "<"), ("1:-1", "<<"), ("::-1", ""), ("::2", "/"), ("::-2", "/"), (":", ""), ("-1::-1", "")]


@dataclass(frozen=True)
class Kind:
    """What the generator knows of a variable. `dims` names each axis' length; `flavour` is f, i, b or c."""

    what: str
    dims: tuple[str, ...] = ()
    flavour: str = "f"

    @property
    def ndim(self) -> int:
        return len(self.dims)


@dataclass
class Expressions:
    """Builds expressions from a chooser's decisions."""

    chooser: Chooser
    moves_only: bool = False
    """Only move values around: then NaN payloads are compared, too."""
    smooth: bool = False
    """Little that ends a region: long graphs."""
    scope: dict[str, Kind] = field(default_factory=dict)
    depth: int = 0
    names: int = 0

    # ---- decisions

    def pick(self, *items: T) -> T:
        return pick(self.chooser, items)

    def chance(self, percent: int) -> bool:
        return chance(self.chooser, percent)

    def fresh(self, prefix: str = "v") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def variables(self, accept: Callable[[Kind], bool]) -> list[str]:
        return [name for name, kind in self.scope.items() if accept(kind)]

    def array(self, accept: Callable[[Kind], bool] = lambda kind: True) -> tuple[str, Kind] | None:
        names = self.variables(lambda kind: kind.what == "array" and accept(kind))
        if not names:
            return None
        # Recent variables are the interesting ones.
        name = names[max(self.chooser.integer(0, len(names) - 1), self.chooser.integer(0, len(names) - 1))]
        return name, self.scope[name]

    def number(self, flavour: str = "f") -> str:
        """A scalar expression: literal, parameter or global."""
        options = ["2", "3", "1", "-1", "k", "BOX.limit", "len(LOG)"]
        if flavour != "i":
            options += [
                "0.5",
                "1.5",
                "-0.25",
                "s",
                "SCALE",
                "BOX.gain",
                "np.float64(0.75)",
                "math.pi",
                'MODES["half"]',
                "0.0",
                "(2, s, 0.5, 3)[k]",
            ]
        options += self.variables(lambda kind: kind.what == "scalar" and kind.flavour == "f" and flavour != "i")
        options += self.variables(lambda kind: kind.what == "int")
        return self.pick(*options)

    # ---- array expressions

    def expression(self, budget: int) -> tuple[str, Kind] | None:
        """An array expression and its kind."""
        leaf = self.array()
        if leaf is None:
            return None
        if self.moves_only:
            return self.moved(leaf)
        if budget <= 0:
            return leaf
        makers = [
            (10, self._binary),
            (5, self._scaled),
            (4, self._unary),
            (4, self._view),
            (4, self._select),
            (2, self._called),
            (1, self._cast),
            (1, self._reduced_rows),
        ]
        return weighted(self.chooser, makers)(budget - 1) or leaf

    def moved(self, leaf: tuple[str, Kind]) -> tuple[str, Kind]:
        """An expression that moves or copies the values of an array."""
        text, kind = self.cut(*leaf) if self.chance(60) else leaf
        how = self.pick("{}.copy()", "{}", "np.where({0} == {0}, {0}, {0})", "+{}", "np.array({})", "{}.T.copy().T", "np.positive({})")
        if how.startswith("+") and kind.flavour == "b":
            how = "{}.copy()"
        return how.format(text), kind

    def cut(self, text: str, kind: Kind) -> tuple[str, Kind]:
        """A basic slice of an array."""
        if not kind.dims:
            return text + "[...]", kind
        cut, suffix = self.pick(*_CUTS)
        axis = self.chooser.integer(0, min(kind.ndim - 1, 1))
        dims = list(kind.dims)
        if dims[axis] != "1":
            dims[axis] = suffix + dims[axis]
        elif suffix:
            return text, kind
        index = ":, " * axis + cut
        return f"{text}[{index}]", Kind("array", tuple(dims), kind.flavour)

    def _partner(self, kind: Kind, budget: int) -> tuple[str, Kind] | None:
        """Another array expression that broadcasts with `kind`."""

        def fits(other: Kind) -> bool:
            pairs = zip(reversed(kind.dims), reversed(other.dims), strict=False)
            return all(a == b or "1" in (a, b) for a, b in pairs)

        other = self.array(fits)
        if other is None or budget <= 0 or self.chance(60):
            return other
        text, found = other
        return f"{self.pick(*_UNARY_FLOAT[:6])}({text})" if found.flavour == "f" else text, found

    @staticmethod
    def _into(target: Kind, value: Kind) -> bool:
        """Whether a value can be written into a target."""
        if value.flavour not in "ib" + target.flavour or value.ndim > target.ndim:
            return False
        return all(b in (a, "1") for a, b in zip(reversed(target.dims), reversed(value.dims), strict=False))

    @staticmethod
    def _joined(left: Kind, right: Kind, flavour: str) -> Kind:
        long, short = (left.dims, right.dims) if left.ndim >= right.ndim else (right.dims, left.dims)
        gap = len(long) - len(short)
        dims = [*long[:gap], *(b if a == "1" else a for a, b in zip(long[gap:], short, strict=True))]
        return Kind("array", tuple(dims), flavour)

    def _binary(self, budget: int) -> tuple[str, Kind] | None:
        left = self.expression(budget)
        if left is None:
            return None
        right = self._partner(left[1], budget)
        if self.chance(1):
            right = self.array() or left  # may well not broadcast
        if right is None:
            return left
        flavours = {left[1].flavour, right[1].flavour}
        if "c" in flavours:
            op, flavour = self.pick("+", "-", "*", "/"), "c"
        elif flavours == {"b"}:
            op, flavour = self.pick("&", "|", "^", "==", "!="), "b"
        elif "f" in flavours:
            op, flavour = self.pick(*_BINARY_FLOAT), "f"
        else:
            op = self.pick("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "/")
            flavour = "f" if op == "/" else "i"
            if op in ("<<", ">>"):
                right = f"({right[0]} & 3)", right[1]
            if op == "-" and "b" in flavours:
                op = "+"
        if self.chance(8) and "c" not in flavours:
            op, flavour = self.pick(*_COMPARISONS), "b"
        elif self.chance(8) and op in "+-*":
            name = {"+": "add", "-": "subtract", "*": "multiply"}[op]
            return f"np.{name}({left[0]}, {right[0]})", self._joined(left[1], right[1], flavour)
        return f"({left[0]} {op} {right[0]})", self._joined(left[1], right[1], flavour)

    def _scaled(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget)
        if inner is None or inner[1].flavour == "b":
            return inner
        text, kind = inner
        number = self.number(kind.flavour)
        op = self.pick("+", "-", "*", "*", "/", "**") if kind.flavour != "i" else self.pick("+", "-", "*", "//", "%")
        if op == "**":
            number = self.pick("2", "3", "0.5", "2.0", "k", "-1.0")
        if self.chance(30) and op != "**":
            return f"({number} {op} {text})", kind
        return f"({text} {op} {number})", kind

    def _unary(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget)
        if inner is None:
            return None
        text, kind = inner
        if kind.flavour == "f":
            if self.chance(10):
                return f"{self.pick('np.isnan', 'np.isfinite', 'np.signbit')}({text})", Kind("array", kind.dims, "b")
            return f"{self.pick(*_UNARY_FLOAT)}({text})", kind
        if kind.flavour == "b":
            return f"{self.pick('~', 'np.logical_not')}({text})", kind
        return f"{self.pick('-', 'np.abs', 'np.square', '+')}({text})", Kind(
            "array", kind.dims, "f" if kind.flavour == "c" else kind.flavour
        )

    def _view(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget - 1)
        if inner is None:
            return None
        text, kind = inner
        if kind.ndim == 2 and self.chance(25):
            return f"{self.pick('{}.T', 'np.transpose({})', '{}.transpose()').format(text)}", Kind("array", kind.dims[::-1], kind.flavour)
        if kind.ndim == 1 and self.chance(25):
            how, dims = self.pick(
                ("{}[:, None]", (kind.dims[0], "1")), ("{}[np.newaxis]", ("1", kind.dims[0])), ("{}.reshape(1, -1)", ("1", kind.dims[0]))
            )
            return how.format(text), Kind("array", dims, kind.flavour)
        if kind.ndim == 2 and self.chance(20):
            return f"{self.pick('{}.reshape(-1)', '{}.ravel()', '{}.flatten()').format(text)}", Kind(
                "array", ("*".join(kind.dims),), kind.flavour
            )
        return self.cut(text, kind)

    def _select(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget)
        if inner is None or inner[1].flavour == "c":
            return inner
        text, kind = inner
        other = self._partner(kind, 0) or inner
        if other[1].flavour == "c":
            return inner
        flavour = "f" if "f" in (kind.flavour, other[1].flavour) else "i" if "i" in (kind.flavour, other[1].flavour) else "b"
        joined = self._joined(kind, other[1], flavour)
        if kind.flavour == "b" or other[1].flavour == "b":
            return f"np.where({text}, {other[0]}, {self.number('i')})", Kind(
                "array", joined.dims, flavour if other[1].flavour == flavour else "i"
            )
        how = self.pick(
            "np.where({0} > {2}, {0}, {1})",
            "np.where({0} < {1}, {1}, {2})",
            "np.maximum({0}, {1})",
            "np.minimum({0}, {1})",
            "np.clip({0}, -1, 2)",
            "np.maximum({0}, {2})",
            "np.minimum({0}, {2})",
            *(("np.maximum({0}, s)", "np.minimum(s, {0})") if kind.flavour == "f" else ()),
        )
        if "{1}" not in how:
            joined = kind
        return how.format(text, other[0], self.number(flavour)), joined

    def _called(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget)
        if inner is None or inner[1].flavour in "bc":
            return inner
        text, kind = inner
        options = [
            ("affine({})", "f"),
            ("affine({}, 3)", "f"),
            ("affine({}, b=k)", kind.flavour),
            ("affine({}, 1, 2, 7, 8, bias=k)", kind.flavour),
            ("branchy({}, k)", kind.flavour),
            ("BOX.scaled({}, by=2)", "f"),
            ("BOX.scaled({})", "f"),
        ]
        if not self.smooth:
            options += [
                ("OPAQUE({})", kind.flavour),
                ("remember({})", kind.flavour),
                ("HALF({})", "f"),
                ("(lambda q, w=k: q + w)({})", kind.flavour),
            ]
        if kind.ndim == 1 and not kind.dims[0].startswith("<"):
            options.append(("np.cumsum({})", kind.flavour))
            options.append(("smooth({})", kind.flavour))
            options.append(("np.sort({})", kind.flavour))
        how, flavour = self.pick(*options)
        return how.format(text), Kind("array", kind.dims, flavour)

    def _cast(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.expression(budget)
        if inner is None or inner[1].flavour == "c":
            return inner
        text, kind = inner
        dtype, flavour = self.pick(('"f8"', "f"), ("np.float32", "f"), ("float", "f"), ("complex", "c"), ("np.int32", "i"), ("bool", "b"))
        if flavour == "i" and kind.flavour == "f":
            text = f"np.clip({text}, -9, 9)"
        return f"{text}.astype({dtype})", Kind("array", kind.dims, flavour)

    def _reduced_rows(self, budget: int) -> tuple[str, Kind] | None:
        inner = self.array(lambda kind: kind.ndim == 2 and kind.flavour in "fi")
        if inner is None:
            return None
        text, kind = inner
        how = self.pick("sum", "mean", "max", "min", "prod", "std", "cumsum")
        axis = self.pick(0, 1, -1)
        if how == "cumsum":
            return f"{text}.cumsum(axis={axis})", kind
        flavour = "f" if how in ("mean", "std") else kind.flavour
        if self.chance(30):
            dims = ("1", kind.dims[1]) if axis == 0 else (kind.dims[0], "1")
            return f"{text}.{how}(axis={axis}, keepdims=True)", Kind("array", dims, flavour)
        left = kind.dims[1] if axis == 0 else kind.dims[0]
        return self.pick(f"{text}.{how}({axis})", f"np.{how}({text}, axis={axis})"), Kind("array", (left,), flavour)

    def scalar(self) -> tuple[str, Kind] | None:
        """A reduction of an array to a number, or an element."""
        found = self.array(lambda kind: kind.flavour in "fib")
        if found is None:
            return None
        text, kind = found
        options = [
            "{}.sum()",
            "np.sum({})",
            "{}.max()",
            "{}.size",
            "np.count_nonzero({} > 0)",
            "{}.any()",
            "({} > 0).all()",
            "float({}.sum())",
            "{}.shape",
            "{}.mean()",
        ]
        if kind.ndim == 1:
            options += ["len({})", "{}[0]", "{}[-1]", "int(len({})) * k", "{0} @ {0}", "np.dot({0}, {0})", "{}.argmax()"]
        how = self.pick(*options)
        flavour = "b" if "any" in how or "all" in how else "f"
        what = "int" if how.startswith(("len", "int")) or (how.endswith(("size", "})")) and "count" in how) else "scalar"
        if "shape" in how or "argmax" in how:
            what = "other"
        return how.format(text), Kind(what, (), flavour)

    def condition(self) -> str:
        """Something to branch on: ints, None, floats, array values, types, shapes."""
        options = [
            "k > 2",
            "k < 3",
            "k % 2 == 0",
            "t is None",
            "t is not None",
            "s > 0",
            "s == 0.0",
            "flag",
            "not flag",
            "len(LOG) > 2",
            "COUNT < 3",
            "k",
            "isinstance(t, int)",
            "a is b",
            "a is b",
            "thing is BOX",
            "tool is affine",
        ]
        found = self.array(lambda kind: kind.flavour in "fib")
        if found is not None:
            name, kind = found
            options += [
                f"{name}.sum() > 1",
                f"{name}.ndim == {kind.ndim}",
                f"{name}.dtype == np.float64",
                f"isinstance({name}, np.ndarray)",
                f"{name}.size > 3",
                f"{name} is a",
            ]
            options += [f"{name}.shape[0] > 3 and k" if kind.dims else "k > 1", f"{name}.any()", f"({name} == {name}).all()"]
        options += [f"{scalar} < {number}" for scalar in self.variables(lambda kind: kind.what == "scalar")[:2] for number in ("2", "0.5")]
        return self.pick(*options)
