"""Expressions over numbers, elements of arrays and truth values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from differential.choice import Chooser, chance, pick, weighted

T = TypeVar("T")

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LITERALS = ("0", "1", "2", "3", "-1", "7", "10", "255", "-128", "1000003", "2147483648")
_LARGE = (
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
    "4611686018427387905",
    "-4611686018427387905",
    "-(2**53) - 1",
    "9007199254740993",
)
_FLOATS = ("0.5", "1.5", "-0.25", "3.0", "0.0", "-0.0", "1e308", "GAIN", "INF", "NAN", "5e-324", "-1e-3", "BOX.gain", "2.0**53", "1e16")


@dataclass
class Expressions:
    """Builds expressions from a chooser's decisions."""

    chooser: Chooser
    arrays: dict[str, str]
    """Flavour (f or i) of the elements of a, b and m."""
    form: str = "plain"
    depth: int = 0
    loops: int = 0
    names: int = 0
    indices: list[tuple[str, str]] = field(default_factory=list)
    """Loop variables, outermost first, and the axis that each is an index of (a, m0, m1), if any."""

    # ---- decisions

    def pick(self, *items: T) -> T:
        return pick(self.chooser, items)

    def chance(self, percent: int) -> bool:
        return chance(self.chooser, percent)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def maybe(self, items: list[tuple[int, Callable[[], str]]]) -> str:
        return weighted(self.chooser, items)()

    # ---- indices and elements

    def loop_variable(self) -> str:
        return self.pick(*[name for name, _ in self.indices]) if self.indices else "k"

    def index(self, axis: str) -> str:
        """Mostly in range for an axis of that kind (a, m0, m1)."""
        fitting = [name for name, of in self.indices if of == axis or {of, axis} == {"a", "m0"}]
        length = {"a": "len(a)", "m0": "m.shape[0]", "m1": "m.shape[1]"}[axis]
        if fitting and self.chance(75):
            name = self.pick(*fitting)
            return self.pick(name, name, name, name, f"{name} - 1", f"-{name}", f"{name} + 1" if self.chance(20) else name, f"~{name}")
        name = self.loop_variable()
        odd = self.pick(f"{name}", f"{name} + 1", "i1", f"i2 % {length}", "-1", "0", "1", f"{name} - 2")
        return odd if self.chance(12) else self.pick(f"{name} % {length}", f"{name} % {length}", "0", "-1", f"({name} + 1) % {length}")

    def place(self) -> tuple[str, str, str]:
        """An array, an index into it, and the flavour of its elements."""
        name = self.pick("a", "a", "b", "m")
        place = self.index("a") if name in "ab" else f"{self.index('m0')}, {self.index('m1')}"
        return name, place, self.arrays[name]

    def one(self, flavour: str | None = None) -> str:
        """An element as it stands."""
        names = [name for name in ("a", "b", "m") if flavour in (None, self.arrays[name])]
        if not names:
            return self.pick("np.int64(3)", "np.int8(5)", "np.int64(i1 & 255)") if flavour == "i" else "np.float64(0.5)"
        name = self.pick(*names)
        if name == "m":
            row, column = self.index("m0"), self.index("m1")
            return f"m[{row}][{column}]" if self.chance(15) else f"m[{row}, {column}]"
        return f"{name}[{self.index('a')}]"

    def element(self, budget: int, flavour: str | None = None) -> str:
        """A NumPy scalar."""
        flavour = flavour or self.pick(*self.arrays.values())
        if budget <= 0 or self.chance(20):
            return self.one(flavour)
        return self._float_element(budget - 1) if flavour == "f" else self._integer_element(budget - 1)

    def _float_element(self, budget: int) -> str:
        x = self.element(budget, "f")
        y = self.pick(self.element(budget, "f"), self.floating(0), self.pick("2", "0.5", "-3", self.loop_variable()))
        return self.maybe([
            (4, lambda: f"({x} {self.pick('+', '-', '*')} {y})"),
            (1, lambda: f"({y} {self.pick('+', '-', '*')} {x})"),
            (1, lambda: f"{x} / {self.pick(y, '2.0', '4')}"),
            (1, lambda: f"-{x}"),
            (1, lambda: f"abs({x})"),
            (1, lambda: f"np.sqrt(abs({self.one('f')}))"),
            (1, lambda: f"{self.pick('np.tanh', 'np.sin', 'np.exp', 'np.arctan', 'np.cos')}({self.one('f')})"),
            (1, lambda: f"np.float64({self.floating(0)})"),
            (1, lambda: f"({x} if {self.condition(0)} else {y})"),
            (1, lambda: f"TABLE[{self.loop_variable()} % 5] * {x}"),
            (1, lambda: f"mix({x}, {y})"),
        ])  # fmt: skip

    def _integer_element(self, budget: int) -> str:
        x, y = self.element(budget, "i"), self.element(budget, "i")
        small = self.pick("1", "2", "3", "-1", "5")
        return self.maybe([
            (4, lambda: f"({x} {self.pick('+', '-', '*')} {self.pick(y, small, self.loop_variable())})"),
            (2, lambda: f"({x} {self.pick('&', '|', '^')} {self.pick(y, small, '7')})"),
            (2, lambda: f"{x} {self.pick('//', '%')} {self.pick(y, '3', '-2', '7')}"),
            (1, lambda: f"({x} {self.pick('>>', '<<')} {self.pick('1', '2', '3', y)})"),
            (1, lambda: f"{self.pick('-', '~')}{x}"),
            (1, lambda: f"np.int64({self.small_integer()})"),
            (1, lambda: f"({x} if {self.condition(0)} else {y})"),
            (1, lambda: f"{self.pick('min', 'max')}({self.one('i')}, {self.one('i')})"),
        ])  # fmt: skip

    # ---- Python numbers

    def small_integer(self) -> str:
        return self.pick("(i1 & 7)", "2", "3", "1", f"({self.loop_variable()} & 3)", "len(a)", "(i2 % 5)")

    def integer(self, budget: int) -> str:
        """A Python int."""
        if budget <= 0 or self.chance(15):
            names = ["i1", "i2", "n", "k", self.loop_variable(), self.loop_variable(), "i1"]
            if self.form == "closure":
                names.append("c1")
            return self.pick(*names, self.pick(*_LITERALS), self.pick(*_LARGE) if self.chance(40) else "1", "len(a)", "m.shape[0]", "LIMIT")
        x, y = self.integer(budget - 1), self.integer(budget - 1)
        j = self.loop_variable()
        return self.maybe([
            (5, lambda: f"({x} {self.pick('+', '-')} {y})"),
            (2, lambda: f"({x} * {self.pick('3', '-2', j, j, '-7', '65599')})"),
            (2, lambda: f"({x} * {y}) {self.pick('& 65535', '% 1000003', '% -97', '& 0x7fffffff')}"),
            (3, lambda: f"({x} {self.pick('//', '%')} {self.pick('2', '3', '-3', '10', '-7', '1', '-1')})"),
            (1, lambda: f"({x} {self.pick('//', '%')} ({y} | 1))"),
            (1, lambda: f"({x} {self.pick('//', '%')} {y})" if self.chance(25) else f"({x} % 7)"),
            (3, lambda: f"({x} {self.pick('&', '|', '^')} {y})"),
            (1, lambda: f"({x} << ({y} & {self.pick('3', '7', '63')}))"),
            (1, lambda: f"({x} >> {self.pick(f'({y} & 7)', '1', '70', y if self.chance(10) else '3')})"),
            (1, lambda: f"{self.pick('-', '~', '+' if self.chance(10) else '-')}{x}"),
            (1, lambda: f"abs({x})"),
            (1, lambda: f"int({self.one('i')})"),
            (1, lambda: f"int({self.floating(0) if self.chance(30) else 'f1 if abs(f1) < 1e9 else 0'})"),
            (1, lambda: f"{self.pick('min', 'max')}({x}, {y})"),
            (1, lambda: f"{self.pick('min', 'max')}({x}, {y}, {j})"),
            (2, lambda: f"({x} if {self.condition(budget - 1)} else {y})"),
            (1, lambda: f"clamp({x}, {self.pick('-3', '0')}, {self.pick('5', '100')})"),
            (1, lambda: f"sign({self.pick(x, self.one('f'))})"),
            (1, lambda: f"gcd({x} & 255, {y} & 63)"),
            (1, lambda: self.pick(f"power({j} & 3, 3)", f"factorial({j} & 3)", f"mix({x}, {y})", f"first_above(a, {x})")),
            (2, lambda: f"({x} {self.pick('+', '-', '*')} {self.pick('t1', 'flag', f'({self.condition(0)})', f'bool({y})')})"),
        ])  # fmt: skip

    def floating(self, budget: int) -> str:
        """A float, mostly Python's."""
        if budget <= 0 or self.chance(15):
            names = ["f1", "f2", "f1", "s", self.pick(*_FLOATS), f"float({self.pick('i1', self.loop_variable(), 'k')})"]
            if self.form == "closure":
                names.append("c2")
            return self.pick(*names)
        x, y = self.floating(budget - 1), self.pick(self.floating(budget - 1), self.integer(0), self.floating(budget - 1))
        return self.maybe([
            (6, lambda: f"({x} {self.pick('+', '-', '*')} {y})"),
            (2, lambda: f"{x} / {self.pick('2.0', '-4.0', '3', '(abs(f1) + 1.0)', y, 'f2')}"),
            (1, lambda: f"{self.integer(0)} / {self.pick('3', '-7', '1000003', 'n' if self.chance(40) else '2')}"),
            (1, lambda: f"-{x}"),
            (1, lambda: f"abs({x})"),
            (1, lambda: f"math.sqrt({self.pick(f'abs({x})', f'abs({x})', x if self.chance(20) else '2.0')})"),
            (1, lambda: f"math.fabs({x})"),
            (2, lambda: self.of_library(x, y)),
            (1, lambda: f"abs(complex({x}, {y}))"),
            (1, lambda: f"({self.complex_number(budget - 1)}).{self.pick('real', 'imag')}"),
            (1, lambda: f"{self.pick('min', 'max')}(float({x}), {self.pick('1.0', '-0.0', '0.0', '-0.0', '0.5', 'NAN')})"),
            (1, lambda: f"({x} if {self.condition(budget - 1)} else {y})"),
            (1, lambda: f"clamp({x}, -1.0, 1e3)"),
            (1, lambda: f"mix({x}, {y})"),
            (1, lambda: f"float({self.one()})"),
            (1, lambda: f"row_sum(m, {self.index('m0')})"),
        ])  # fmt: skip

    def of_library(self, x: str, y: str) -> str:
        """What needs the C library; mostly of arguments for which it raises nothing."""
        small = f"({x} if abs({x}) < 50.0 else 0.5)"
        return self.pick(
            f"math.{self.pick('sin', 'cos', 'atan', 'tanh', 'asinh')}({small})", f"math.exp(-abs({x}))", f"math.log(abs({x}) + 1.0)",
            f"math.atan2({small}, {self.pick('1.5', '-0.0', 'f2')})", f"({x} % {self.pick('2.5', '-3', 'f2', y)})",
            f"({x} // {self.pick('2.5', '-3', '0.1', 'f2')})", f"abs({small}) ** {self.pick('0.5', '1.5', '-1.0', 'f2')}",
            f"({small}) ** {self.pick('2', '3', '2.0')}", f"float(math.{self.pick('floor', 'ceil', 'trunc')}({small}))",
            f"float(round({small}))", f"math.{self.pick('sqrt', 'log', 'exp', 'acos')}({x})", f"math.copysign({x}, f2)",
        )  # fmt: skip

    def complex_number(self, budget: int) -> str:
        """A Python complex number."""
        x = f"complex({self.floating(0)}, {self.floating(0)})"
        if budget <= 0:
            return self.pick(x, "(1.5 - 2j)", "0j", f"complex({self.integer(0)})")
        y = self.pick(self.complex_number(budget - 1), self.floating(0), self.integer(0))
        return self.maybe([
            (4, lambda: f"({x} {self.pick('+', '-', '*')} {y})"),
            (1, lambda: f"({y} {self.pick('+', '-', '*', '/')} {x})"),
            (1, lambda: f"({x} / {self.pick('(2 - 1j)', y)})"),
            (1, lambda: f"{x} ** {self.pick('2', '3')}"),
            (1, lambda: f"{x}.conjugate()"),
            (1, lambda: f"-{x}"),
        ])  # fmt: skip

    def anything(self, budget: int) -> str:
        """A number of any kind."""
        return self.maybe([
            (3, lambda: self.integer(budget)), (4, lambda: self.floating(budget)), (5, lambda: self.element(budget)),
            (1, lambda: "x1"), (1, lambda: f"(x1 {self.pick('+', '-')} {self.pick('1', '0.5', self.one())})"),
            (1, lambda: self.pick("t1", "flag")),
        ])  # fmt: skip

    def for_name(self, name: str, budget: int) -> str:
        """A value for a variable: its name's first letter tells of what kind."""
        match name[0]:
            case "i":
                return self.integer(budget)
            case "t":
                return self.condition(budget) if self.chance(70) else f"bool({self.anything(0)})"
            case "f":
                return self.floating(budget) if self.chance(85) else self.element(budget, "f")
        return self.anything(budget)

    # ---- truth values

    def compared(self, budget: int) -> str:
        """Two or three values that are compared."""
        make = self.pick(self.integer, self.integer, self.floating, self.element, self.anything)
        x, y = make(budget), make(budget) if self.chance(80) else self.anything(budget)
        if self.chance(20):
            return f"{x} {self.pick(*_COMPARISONS)} {y} {self.pick(*_COMPARISONS)} {self.anything(0)}"
        return f"{x} {self.pick(*_COMPARISONS)} {y}"

    def condition(self, budget: int) -> str:
        if budget <= 0:
            return self.pick(
                "flag", "t1", f"{self.loop_variable()} % 2", "i1 & 1", "f1 > 0", f"{self.one()} > 0", "f1 == f1", "x1", "o is None",
                f"{self.loop_variable()} < 3", f"{self.one()}", "f1", "i1 < i2",
            )  # fmt: skip
        return self.maybe([
            (6, lambda: self.compared(budget - 1)),
            (1, lambda: f"not ({self.condition(budget - 1)})"),
            (2, lambda: f"({self.condition(budget - 1)}) {self.pick('and', 'or')} ({self.condition(budget - 1)})"),
            (1, lambda: self.pick("o is not None", "row is None" if self.chance(10) else "o is None")),
            (2, lambda: self.condition(0)),
        ])  # fmt: skip
