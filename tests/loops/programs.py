"""Source text of small programs whose time goes into loops over numbers and elements of arrays.

A program is deterministic and ends quickly: the counts of its loops are bounded and numbers grow slowly. Names tell what they hold: `i`
Python ints, `f` floats of any kind, `x` any number, `t` truth values, `j` loop variables, `w` counters of `while` loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from differential.choice import Chooser, Drawn, Seeded, pick, weighted
from differential.inputs import LAYOUTS
from differential.programs import Program
from differential.statements import Block, Statement

from .expressions import Expressions
from .prelude import PRELUDE

T = TypeVar("T")

_DTYPES = {"f": ("f8", "f8", "f8", "f4"), "i": ("i8", "i8", "i4", "i2", "i1", "u1", "u4")}
_OTHER_DTYPES = ("f8", "f4", "i8", "i4", "i2", "i1", "u1", "u2", "u4", "u8", "?", "f2", "c16", "m8[s]")
_SCALARS = ("1.5", "-0.5", "2.0", "0.0", "-0.0", "NAN", "INF", "1e308", "5e-324", "np.float64(0.75)", "3", "True", "HALF", "-7")
_COUNTS = ("3", "0", "1", "-2", "5", "True", "2**31", "-2**63", "2**63 - 1", "2**70", "np.int64(3)", "np.int8(-3)", "np.uint8(4)", "2.0")
_OPTIONALS = ("None", "1", "2.5", "'text'", "np.float64(0.5)")


@dataclass(frozen=True)
class LoopProgram(Program):
    """A program with the prelude of loops."""

    @property
    def source(self) -> str:
        """The module's text."""
        return PRELUDE + "\n" + self.own_source


@dataclass
class Generator(Expressions):
    """Builds one program from a chooser's decisions."""

    loose: bool = False
    """Also statements that are compiled only under conditions."""
    wild: bool = False
    """Also statements at which a loop must be left or that are not compiled."""
    form: str = "plain"
    breakable: list[bool] = field(default_factory=list)

    # ---- statements

    def assign(self) -> Statement:
        name = self.pick("i1", "i2", "f1", "f2", "x1", "t1", "f1")
        return f"{name} = {self.for_name(name, self.chooser.integer(1, 3))}"

    def augment(self) -> Statement:
        name = self.pick("i1", "i2", "f1", "f2", "x1", "f1")
        if name[0] == "i":
            grown = self.pick(
                f"({name} << 5)", f"{name} * {self.loop_variable()}", f"{name} * 65599", f"({name} << {self.small_integer()})"
            )
            if self.chance(20):
                return f"{name} = {grown} & {self.pick('0xffffffff', '0xff', '0x7fffffffffff')}"
            op = self.pick("+=", "-=", "+=", "^=", "|=", "&=", "//=", "%=", ">>=")
            value = {"//=": "3", "%=": self.pick("1000003", "-7"), ">>=": "1"}
            return f"{name} {op} {value.get(op) or self.integer(1)}"
        op = self.pick("+=", "-=", "+=", "*=", "/=")
        value_of = {"*=": self.pick("0.5", "-1.25", "2"), "/=": self.pick("2.0", "-3", "1e-3")}
        return f"{name} {op} {value_of.get(op) or self.anything(1)}"

    def mixed_in(self) -> Statement:
        """Something that every turn leaves a trace of."""
        x, y, truth = self.floating(3), self.element(3, "f"), self.condition(2)
        return self.pick(
            f"i1 = (i1 * 31 + {self.integer(3)}) & 0xffffff",
            f"i2 = i2 * 7 % 1000003 ^ {self.integer(3)} & 0xffff",
            f"i2 = (i2 + ({self.integer(3)}) * 3) % -10007",
            f"f1 = float(f1 * 0.5 + {x}) if abs(f1) < 1e200 else 1.0",
            f"f2 = float({x} - f2 * 0.25) if f2 == f2 else 0.5",
            f"x1 = {y} + x1 * 0.5" if self.chance(50) else f"x1 = float({y})",
            f"f1 = min(float({x}), float(f1) + 1.0)",
            f"f2 = float(f1 / {self.pick(self.loop_variable(), 'f2', 'i1')})",
            f"i1 += {self.pick('t1', 'flag')}",
            f"i2 = i2 * 2 % 1000003 + ({truth} or 0)" if self.chance(30) else f"i2 = i2 * 2 % 1000003 + bool({truth})",
            f"i1 += 1 if {truth} else 2",
            f"t1 = not t1 if {truth} else t1",
            f"f1 += float({y} if {truth} else {x})",
            f"a[{self.index('a')}] = {y if self.arrays['a'] == 'f' else self.element(3, 'i')}",
            f"b[{self.index('a')}] += {x if self.arrays['b'] == 'f' else self.small_integer()}",
            f"m[{self.index('m0')}, {self.index('m1')}] = {y if self.arrays['m'] == 'f' else self.element(2, 'i')}",
        )

    def tidied(self) -> list[Statement]:
        """Numbers out of hand would keep loops from running natively."""
        i, f = self.pick("i1", "i2"), self.pick("f1", "f2")
        most = self.pick("2**40", "2**62", "2**62", "1000")
        return [
            self.pick(
                Block([(f"if not -{most} < {i} < {most}:", [f"{i} %= 1000003"])]),
                Block([(f"if {f} != {f} or abs({f}) > 1e6:", [f"{f} = 0.5"])]),
                f"{f} = {f} if abs({f}) < 1e300 else 1.5",
                f"{i} &= 0x7fffffffffff",
            )
        ]

    def unpack(self) -> Statement:
        return self.pick(
            "i1, i2 = i2, (i1 + i2) % 10007",
            "f1, f2 = f2, f1",
            f"f1, x1 = x1, {self.floating(1)}",
            f"i1, f1 = {self.integer(1)}, {self.floating(1)}",
            f"(i1, x1), f2 = (i2, {self.anything(1)}), f1",
            "i1, i2 = (i2, i1) if i1 < i2 else (i1, i2)",
            "x1 = i2 = 1000",
            f"f1 = x1 = {self.floating(1)}",
        )

    def store(self) -> Statement:
        name, place, flavour = self.place()
        if flavour == "f":
            value = self.pick(self.element(1), self.floating(1), self.anything(1), self.integer(0))
        else:
            value = self.pick(
                self.element(1, "i"), self.integer(1), self.small_integer(), "t1", self.anything(1) if self.chance(30) else "1"
            )
        op = self.pick("=", "=", "=", "+=", "-=", "*=" if flavour == "f" else "+=")
        if op == "*=":
            value = self.pick("0.5", "-1", "2.0")
        return f"{name}[{place}] {op} {value}"

    def rows(self) -> Statement:
        row, column = self.index("m0"), self.index("m1")
        return self.pick(
            f"row = m[{row}]\nrow[{column}] = row[{self.index('m1')}]",
            f"row = m[{row}]\nx1 = row[{column}]",
            f"m[{row}][{column}] = {self.element(1, self.arrays['m'])}",
            f"row = m[{row}]\nf1 += first_above(row, {self.pick('0', '1', 'LIMIT')})",
            f"row = m[{row}]",
        )

    def vectors(self) -> Statement:
        """A statement on slices."""
        row, other, column = self.index("m0"), self.index("m0"), self.index("m1")
        x, y, j = self.pick("a", "b"), self.pick("a", "b"), self.loop_variable()
        op, number = self.pick("+=", "-=", "="), self.pick("f1", "2", "0.5", "s", self.one())
        return self.pick(
            f"m[{row}, :] {op} m[{other}] {self.pick('*', '-', '+', '/')} {number}",
            f"m[{row}] {op} {number} * m[{other}]",
            f"m[:, {column}] {op} {self.pick('a', 'b', 'a[::-1]', number)}",
            f"{x}[1:] {op} {y}[:-1]",
            f"{x}[{j}:] {op} {number}",
            f"{x}[:{j} + 1] {op} {y}[:{j} + 1] * {y}[:{j} + 1]",
            f"{x}[::-2] {op} {x}[::2]",
            f"{x}[{j}:-1:2] = {number}",
            f"{x}[-3:{j}] {op} -{y}[-3:{j}] + {number}",
            f"m[1:, {j}:] = m[:-1, {j}:]",
            f"m[{row}][{j}:] += m[{other}, {j}:] / (m[{row}, {j}:] - {number})",
            f"x1 = np.dot(m[{row}], m[{other}])",
            f"f1 += m[{row}, :{j}] @ m[{other}, :{j}]",
            f"x1 = m[:, {column}] @ {x}",
            f"row = m[{row}, {j}:]\nrow {op} {number}",
            f"m[{row}], m[{other}] = m[{other}], m[{row}]",
        )

    def swap(self) -> Statement:
        name, place, _ = self.place()
        other = self.index("a") if name in "ab" else f"{self.index('m0')}, {self.index('m1')}"
        if self.chance(30):
            return f"{name}[{place}], {name}[{other}] = {name}[{other}], {name}[{place}]"
        return f"x1 = {name}[{place}]\n{name}[{place}] = {name}[{other}]\n{name}[{other}] = x1"

    def called_store(self) -> Statement:
        name, flavour = self.pick(*[(n, self.arrays[n]) for n in ("a", "b")])
        value = self.element(1, flavour) if flavour == "i" else self.floating(1)
        if self.chance(6):  # may fail behind its store: such loops are not compiled
            return f"x1 = bump({name}, {self.index('a')})"
        return f"set_at({name}, {self.index('a')}, {value})"

    def unsupported(self) -> Statement:
        j = self.loop_variable()
        return self.pick(
            f"print({j}, i1)",
            f"LOG.append({j})",
            "LOG.append(f1)",
            "COUNT += 1",
            "x1 = noisy(x1)",
            "i2 = STEP()",
            "del t1\nt1 = not flag",
            "LOG.append(here())",
            f"x1 = [i1, {self.floating(0)}][{j} % 2]",
            "f1 = f1 % 3.0",
            "f2 = f2 // 0.75",
            f"x1 = {self.element(1)} ** 2",
            f"x1 = np.maximum({self.element(1)}, 0)",
            "t1 = x1 is f1",
            f"x1 = sum([{j}, i1])",
            "LOG.append(f'{i1:d} {f1!r}')",
            "a[:1] = 1",
            "f1 = float(str(f1))",
            "x1 = WEIGHTS[-1]",
            "x1 = divmod(i1, 7)[1]",
            "x1 = pow(i2, 2, 1000)",
            "x1 = round(f1, 1) if f1 == f1 and abs(f1) < 1e300 else 0",
            "raise ValueError(i1)",
            "extra = 5",
            "LOG.append(row)",
        )

    # ---- compound statements

    def body(self, size: int) -> list[Statement]:
        self.depth += 1
        out = [statement for _ in range(size) for statement in self.statement()]
        self.depth -= 1
        return out

    def small_body(self, most: int = 3) -> list[Statement]:
        return self.body(self.chooser.integer(1, most))

    def branch(self) -> Statement:
        clauses = [(f"if {self.condition(2)}:", self.small_body(2))]
        if self.chance(25):
            clauses.append((f"elif {self.condition(1)}:", self.small_body(1)))
        if self.chance(50):
            clauses.append(("else:", self.small_body(2)))
        return Block(clauses)

    def control(self) -> Statement:
        what = self.pick("break", "continue", "continue", "break", self.result() if self.chance(40) else "break")
        if what.startswith("return") and self.form == "generator":
            what = "return"
        test = self.pick(self.condition(1), f"{self.loop_variable()} == {self.pick(1, 2, 3)}", "f1 > 1e6", "i1 % 5 == 4")
        return Block([(f"if {test}:", [what])])

    def guarded(self) -> Statement:
        inner = self.small_body(2)
        if self.chance(50):
            raiser = self.pick("a[99999]", "i1 // (i1 - i1)", "a[0.5]", "1.0 / (f1 - f1)", "m[0, 0, 0]", "raise ValueError(i1)")
            inner.append(Block([(f"if {self.condition(1)}:", [raiser])]) if self.chance(70) else raiser)
        kinds = self.pick("Exception", "IndexError", "(ZeroDivisionError, ValueError)", "ArithmeticError", "(LookupError, TypeError)")
        clauses = [("try:", inner), (f"except {kinds} as error:", ["LOG.append(type(error).__name__)", *self.small_body(1)])]
        if self.chance(30):
            clauses.append(("finally:", self.small_body(1)))
        return Block(clauses)

    def header(self) -> tuple[list[Statement], str, tuple[str, str] | None]:
        """Statements before a loop, its first line, and its variable with what it is an index of."""
        if self.chance(22):
            return self.while_header()
        j = self.fresh("j")
        outer = [name for name, _ in self.indices]
        before = self.pick(*outer) if outer else "k % 3"
        whole = [("range(n)", "a"), ("range(len(a))", "a"), ("range(len(a) - 1, -1, -1)", "a"), ("range(m.shape[0])", "m0")]
        part = [
            ("range(1, n)", "a"), ("range(m.shape[1])", "m1"), ("range(0, n, 2)", "a"), ("range(n - 1, 0, -2)", "a"),
            ("range(-len(a), len(a))", "a"), (f"range({before}, len(a))", "a"), (f"range({before} % 7 + 1)", ""), ("range(4)", ""),
            ("range(k % 5)", ""), ("reversed(range(1, n, 2))", "a"), ("reversed(range(n))", "a"), ("range(LIMIT)", ""),
            ("range(3, -4, -3)", ""), ("range(min(n, 4))", "a"),
            (f"range(-3, {self.small_integer()})", ""), ("range(i1 & 3, 6, (i2 & 1) + 1)", ""), ("range(3, 3)", ""),
            (f"range(int({self.element(0, 'i')}) & 3)", ""),
        ]  # fmt: skip
        odd = [("range(2**62, 2**62 + 3)", ""), ("range(0, 6, k & 3)", ""), ("range(True)", ""), ("range(n, 2**64, 2**62)", "")]
        text, of = self.pick(*(whole if not self.indices or self.chance(30) else part), *(part if self.chance(40) else whole))
        if self.chance(5):
            text, of = self.pick(*odd)
        before_it: list[Statement] = []
        if not self.depth and self.chance(12):
            held = self.fresh("it")
            text = self.pick(text, text, "a", "m[0]")
            before_it, text = [f"{held} = iter({text})"], held
        return before_it, f"for {j} in {text}:", (j, of)

    def while_header(self) -> tuple[list[Statement], str, tuple[str, str] | None]:
        w = self.fresh("w")
        if self.chance(50):
            start = self.pick("n", "5", "LIMIT", "k & 7", "len(a)")
            test = self.pick(f"{w} > 0", f"{w} > 0", f"{w}", f"{w} > 0 and ({self.condition(1)})", f"not {w} <= 0")
            return [f"{w} = {start}"], f"while {test}:", (w, "-")
        test = self.pick(f"{w} < n", f"{w} < n", f"{w} < len(a) and ({self.condition(1)})", f"0 <= {w} < n", f"{w} < 6 or False", "True")
        return [f"{w} = {self.pick(0, 0, 1, -2)}"], f"while {test}:", (w, "+")

    def over_array(self) -> tuple[list[Statement], str, tuple[str, str]]:
        """A loop over elements or rows, which also counts."""
        w = self.fresh("w")
        what = self.pick(
            ("e", "a", "a"), ("e", "b", "a"), ("row", "m", "m0"), ("e", "m[0]", "m1"), ("e", "a[1:]", "a"), ("row", "m.T", "m1")
        )
        return [f"{w} = {self.pick(-1, 0)}"], f"for {what[0]} in {what[1]}:", (w, what[2])

    def over_several(self) -> tuple[list[Statement], str, tuple[str, str]]:
        """A loop over an enumerate or a zip, in which one variable counts."""
        w = self.fresh("w")
        items, what, of = self.pick(
            (f"{w}, e", "enumerate(a)", "a"), (f"{w}, e", "enumerate(b, k % 3)", ""), (f"{w}, row", "enumerate(m)", "m0"),
            (f"{w}, e", "zip(range(len(a)), a)", "a"), (f"e, {w}", "zip(a, range(n))", "a"), (f"{w}, (e, g)", "enumerate(zip(a, b))", "a"),
            (f"{w}, (g, e)", "zip(range(1, n), enumerate(a[1:]))", "a"), (f"e, {w}", "zip(range(5), reversed(range(n)))", "a"),
            (f"{w}, e", "enumerate(range(n, 0, -1), -1)", ""),
        )  # fmt: skip
        return [], f"for {items} in {what}:", (w, of)

    def element_statement(self, header: str) -> Statement:
        if "row in" in header:
            return self.pick(
                "f1 += row[-1]", "x1 = row[0]", "row[0] = f1", f"row += {self.pick('1', 'f1')}", "f2 = row_sum(m, 0)", "x1 = row @ row"
            )
        return self.pick(
            "f1 += e", "x1 = e", "f1 = f1 * 0.5 + e", "f2 = f2 - e * 2 if e > 0 else f1", "a[0] = e", f"x1 = e {self.pick('<', '==')} f1"
        )

    def loop(self) -> list[Statement]:
        elements, several = self.chance(15), self.chance(12)
        before, header, variable = self.over_several() if several else self.over_array() if elements else self.header()
        first: list[Statement] = []
        if (elements or several) and variable is not None:
            first = [*([] if several else [f"{variable[0]} += 1"]), self.element_statement(header)]
        if variable is not None and variable[1] in "+-" and variable[1]:
            w, direction = variable
            first = [f"{w} {direction}= 1"]
            if header == "while True:":
                first.append(Block([(f"if {w} > {self.pick('n', 5, 'LIMIT')}:", ["break"])]))
            variable = (w, "")
        if variable is not None:
            self.indices.append(variable)
        self.loops += 1
        inner = first + self.body(self.chooser.integer(3, 5) if self.loops == 1 else self.chooser.integer(1, 3))
        inner += [statement for _ in range(2) if self.chance(60) for statement in self.tidied()]
        if self.chance(35):
            inner.insert(self.chooser.integer(len(first), len(inner)), self.control())
        self.loops -= 1
        if variable is not None:
            self.indices.pop()
        clauses = [(header, inner)]
        if self.chance(15):
            clauses.append(("else:", self.small_body(2)))
        out: list[Statement] = [*before, Block(clauses)]
        if before and " = iter(" in str(before[0]):
            out.append(f"rest{self.names} = list({str(before[0]).split(' ')[0]})")
        return out

    def wrapped(self) -> list[Statement]:
        """A loop in what surrounds loops."""
        self.depth += 1
        inner = self.loop()
        self.depth -= 1
        if self.chance(50):
            manager = self.pick(
                'np.errstate(all="ignore")', 'np.errstate(all="raise")', 'np.errstate(divide="raise", under="warn")', 'Scope("quiet")',
                'np.errstate(over="raise")', "contextlib.suppress(ArithmeticError, ValueError)",
            )  # fmt: skip
            return [Block([(f"with {manager}:", inner)])]
        handler: list[Statement] = ["LOG.append(str(error))"]
        clauses = [("try:", inner), (f"except {self.pick('Exception', 'IndexError', 'ArithmeticError', 'ValueError')} as error:", handler)]
        if self.chance(30):
            clauses.append(("finally:", [f"LOG.append({self.pick('i1', 'f1')})"]))
        return [Block(clauses)]

    def statement(self) -> list[Statement]:
        simple = [(8, self.assign), (12, self.mixed_in), (8, self.augment), (3, self.unpack), (9, self.store), (3, self.rows)]
        if self.loose:
            simple += [(4, self.vectors), (2, self.swap), (4, self.called_store)]
        compound = [(5, self.branch)]
        if self.wild:
            simple.append((4, self.unsupported))
            compound.append((2, self.guarded))
        if self.loops and self.depth < 5 and self.chance((0, 22, 12, 0)[min(self.loops, 3)]):
            return self.loop()
        return [weighted(self.chooser, simple if self.depth >= 4 else simple + compound)()]

    # ---- the whole

    def result(self) -> str:
        names = ["i1", "f1", "x1", "a", "b", "m", "t1", "i2", "f2", "(i1, f1, x1)", "row", "a[-1:]"]
        picked = ", ".join(self.pick(*names) for _ in range(self.chooser.integer(1, 4)))
        whole = "return dict(locals())"
        return self.pick(whole, whole, f"return {picked}", whole, "return here()", whole)

    def program(self) -> LoopProgram:
        """The whole module."""
        self.form = self.pick(*("plain",) * 6, "closure", "generator", "method")
        body: list[Statement] = [
            "global COUNT",
            f"i1 = {self.pick(0, 1, 'n', 'k', 2**40, 5, 7)}",
            f"i2 = {self.pick(1, 3, -5, 'len(a)', 1, -2) if self.chance(85) else self.pick(2**62, -(2**63) + 9, 2**63 - 5)}",
            f"f1 = {self.pick(0.0, 0, 's', 1.5)}",
            f"f2 = {self.pick('s', 'GAIN', -2.0, 'NAN')}",
            f"x1 = {self.pick('s', 0, 'a[0]' if self.chance(20) else 0.5, 'flag')}",
        ]
        body += [f"t1 = {self.pick('flag', False, True, 'n > 3')}"]
        if self.chance(70):
            body += ["row = None"]
        for _ in range(self.pick(1, 1, 1, 2)):
            self.wild, self.loose = self.chance(12), self.chance(40)
            body += self.wrapped() if self.chance(20) else self.loop()
            if self.chance(25):
                body += self.after()
            if self.chance(3):
                body += ["alarm_soon()", Block([("while WAIT[0] == 0:", ["i2 = (i2 + 1) & 0"])])]
        last = self.result()
        if self.form == "generator":
            last = "yield " + last.removeprefix("return ")
            body.insert(self.chooser.integer(7, len(body)), "yield i1, f1")
        body.append(last)
        header, footer, indent = self._frame()
        return LoopProgram(header, body, footer, self._calls(), False, indent)

    def after(self) -> list[Statement]:
        """What happens between loops."""
        return [
            self.pick(
                "LOG.append(f1)", "x1 = i1 = 2", "f1 = i1 + 0.5", "i1 = int(i1)", "a = a[::-1]", "b = a", "x1 = f2", "m = m.T", "COUNT += 1"
            )
        ]

    def _frame(self) -> tuple[list[str], list[str], int]:
        parameters = "a, b, m, n=4, k=3, s=1.5, o=None, flag=False"
        if self.form == "method":
            return ["class Host:", "    @jit", f"    def f(self, {parameters}):"], ["f = Host().f"], 2
        if self.form == "closure":
            return (
                ["def maker(c1, c2):", "    @jit", f"    def f({parameters}):", "        c3 = c1, c2"],
                ["    return f", "f = maker(2, 0.75)"],
                2,
            )
        if self.form == "generator":
            return ["@jit", f"def steps({parameters}):"], ["def f(*args, **kwargs):", "    return list(steps(*args, **kwargs))"], 1
        return ["@jit", f"def f({parameters}):"], [], 1

    # ---- calls

    def _calls(self) -> list[str]:
        """The same kinds of arguments a few times, then others, then the first again."""
        first = {
            "dtypes": [self.pick(*_DTYPES[self.arrays[name]]) for name in "abm"],
            "layouts": ["C", "C", "C"],
            "n": self.pick(4, 5, 7, 9),
            "p": self.pick(3, 4, 5),
            "values": "plain",
            "environment": "always",
            "alias": None,
            "short": 0,
            "arguments": {"k": "3", "s": "1.5", "o": "None", "flag": "False"},
        }
        plan = [first] * 2 + [self._varied(first) for _ in range(5)] + [first] * 2
        return [self._call(number, spec) for number, spec in enumerate(plan)]

    def _varied(self, first: dict[str, Any]) -> dict[str, Any]:
        spec: dict[str, Any] = {**first, "arguments": dict(first["arguments"])}
        spec["values"] = self.pick("plain", "plain", "plain", "edge", "edge", "zero", "nan", "unit")
        if self.chance(20):
            spec["n"], spec["p"] = self.pick(0, 1, 2, 6, 12, 30), self.pick(1, 2, 3, 6, 0)
        if self.chance(20):
            spec["layouts"] = [self.pick(*LAYOUTS) for _ in "abm"]
        if self.chance(12):
            spec["dtypes"] = [self.pick(*_OTHER_DTYPES) if self.chance(60) else dtype for dtype in first["dtypes"]]
        elif self.chance(12):
            spec["alias"] = self.pick("same", "view", "reversed", "overlapping", "overlapping")
        if self.chance(15):
            spec["environment"] = self.pick("error", "default", "ignore", "raise", "raise", "call", "trace", "profile")
        if self.chance(25):
            spec["short"] = self.pick(1, 1, 1, -1, 3)
        for name, values in (("k", _COUNTS), ("s", _SCALARS), ("o", _OPTIONALS), ("flag", ("True", "False"))):
            if self.chance(20):
                spec["arguments"][name] = self.pick(*values)
        return spec

    def _call(self, number: int, spec: dict[str, Any]) -> str:
        n, p = spec["n"], spec["p"]
        shapes = [f"({n},)", f"({n},)", f"({n}, {p})"]
        made = [
            f'make("{dtype}", {shape}, "{layout}", {number + 5 * i}, "{spec["values"]}")'
            for i, (dtype, layout, shape) in enumerate(zip(spec["dtypes"], spec["layouts"], shapes, strict=True))
        ]
        arguments = {"n": str(n + spec["short"]), **spec["arguments"]}
        options = "{" + ", ".join(f'"{name}": {value}' for name, value in arguments.items()) + "}"
        if spec["alias"] == "overlapping":
            pair = f'*overlapping("{spec["dtypes"][0]}", {n}, {number}, "{spec["values"]}")'
            return f'    ("{spec["environment"]}", lambda: (({pair}, {made[2]}), {options})),'
        if spec["alias"]:
            return (
                f'    ("{spec["environment"]}", lambda: (lambda x: ((x, alias(x, "{spec["alias"]}"), {made[2]}), {options}))({made[0]})),'
            )
        return f'    ("{spec["environment"]}", lambda: (({", ".join(made)}), {options})),'


def from_seed(seed: int) -> LoopProgram:
    """The program of a seed."""
    return _generate(Seeded(seed))


def strategy() -> Any:
    """Hypothesis' view of the same programs: it shrinks the decisions."""
    from hypothesis import strategies

    return strategies.composite(lambda draw: _generate(Drawn(draw)))()


def _generate(chooser: Chooser) -> LoopProgram:
    arrays = {name: pick(chooser, "fffi") for name in "abm"}
    return Generator(chooser, arrays).program()
