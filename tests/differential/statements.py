"""Statements: assignments, writes through views, effects, branches, loops, handlers, closures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .choice import weighted
from .expressions import Expressions, Kind


@dataclass
class Block:
    """A compound statement: clauses of (header, body). The first clause's body may be reduced, never emptied."""

    clauses: list[tuple[str, list[Any]]]


Statement = str | Block


def render(body: list[Statement], depth: int) -> Iterator[str]:
    """The lines of some statements."""
    pad = "    " * depth
    if not body:
        yield pad + "pass"
    for statement in body:
        if isinstance(statement, str):
            yield from (pad + line for line in statement.split("\n"))
        else:
            for header, inner in statement.clauses:
                yield pad + header
                yield from render(inner, depth + 1)


@dataclass
class Statements(Expressions):
    """Builds statements from a chooser's decisions."""

    early_returns: bool = True
    script: bool = False

    def assign(self) -> Statement:
        made = self.expression(self.chooser.integer(1, 4))
        if made is None:
            return "pass"
        text, kind = made
        same = self.variables(lambda other: other == kind)
        name = self.pick(*same) if same and self.chance(35) else self.fresh()
        if self.depth == 0 or name in self.scope:
            self.scope[name] = kind
        return f"{name} = {text}"

    def copy_input(self) -> Statement:
        found = self.array()
        if found is None:
            return "pass"
        name = self.fresh("w")
        how = self.pick(
            "{}.copy()", "np.array({})", "np.empty_like({})", "np.zeros_like({})", "np.ones_like({})", "np.asarray({})", "{}[...]"
        )
        self._define(name, found[1])
        line = f"{name} = {how.format(found[0])}"
        return f"{line}\n{name}[...] = 1" if "empty" in how else line

    def _define(self, name: str, kind: Kind) -> None:
        if self.depth == 0:
            self.scope[name] = kind

    def write(self) -> Statement:
        """An in-place write: whole, through a slice, to an element, through a mask, with out=."""
        target = self.array(lambda kind: kind.flavour in "fic" or self.moves_only)
        if target is None or (target[1].ndim == 0 and not self.chance(5)):
            return "pass"  # arithmetic on 0-d arrays gives scalars, which cannot be written to
        name, kind = target
        if self.moves_only:
            text, part = self.cut(name, kind)
            source = self.array(lambda other: other.dims == part.dims and other.flavour == part.flavour)
            return f"{text} = {source[0]}" if source else f"{text} = {text}.copy()"
        op = self.pick("+=", "-=", "*=", "+=", "/=") if kind.flavour in "fc" else self.pick("+=", "-=", "*=", "//=")
        choice = self.chooser.integer(0, 9)
        if choice <= 2:
            partner = self._partner(kind, 0)
            return f"{name} {op} {partner[0] if partner and self._into(kind, partner[1]) else self.number(kind.flavour)}"
        text, part = self.cut(name, kind)
        if choice <= 4:
            return f"{text} {op} {self.number(kind.flavour)}"
        if choice <= 6:
            source = self.array(lambda other: other.dims == part.dims and other.flavour == kind.flavour)
            overlap = self.cut(name, kind)
            value = source[0] if source and self.chance(50) else overlap[0] if overlap[1].dims == part.dims else self.number(kind.flavour)
            return f"{text} {self.pick('=', op)} {value}"
        if choice == 7 and kind.ndim:
            return f"{name}[{self.pick('0', '-1', 'k % len(' + name + ')')}] {self.pick('=', op)} {self.number(kind.flavour)}"
        if choice == 8 and kind.flavour != "c":
            return f"{name}[{name} > 1] = {self.number(kind.flavour)}"
        return self.pick(
            f"{name}[1:] = {self.number('i')}\n{name}[:-1] = {self.number('i')}" if kind.ndim else f"{name}[...] = 3",
            f"np.multiply({name}, 2, out={name})",
            f"{text}[...] = 1",
            f"{name}.fill(2)",
            f"np.add({text}, 1, out={text})",
        )

    def own_views(self) -> Statement:
        """A new array, a view of it, and a change through one that shows in the other."""
        found = self.array(lambda kind: kind.flavour in "fi" and kind.ndim > 0)
        if found is None:
            return "pass"
        name, view, (x, kind) = self.fresh(), self.fresh(), found
        number = self.pick("1", "2", "k")
        part, part_kind = self.cut(name, kind)
        self._define(name, kind)
        self._define(view, part_kind)
        made = f"{name} = {x} {self.pick('+', '-', '*')} {self.number(kind.flavour)}\n{view} = {part}"
        change = self.pick(
            f"{name} += {number}", f"{name} *= {number}", f"{view} += {number}", f"{view}[...] = {number}", f"{name}[:1] = {number}"
        )
        return f"{made}\n{change}"

    def reduce(self) -> Statement:
        made = self.scalar()
        if made is None:
            return "pass"
        name = self.fresh("r")
        self._define(name, made[1])
        return f"{name} = {made[0]}"

    def pack(self) -> Statement:
        """Tuples, lists, dicts, star-unpacking, swaps."""
        first, second = self.array(), self.array()
        if first is None or second is None:
            return "pass"
        one, two = self.fresh(), self.fresh()
        self._define(one, first[1])
        self._define(two, second[1])
        x, y = first[0], second[0]
        return self.pick(
            f"{one}, {two} = {x}, {y}",
            f"pair = ({x}, {y}, k)\n{one}, {two}, _ = pair",
            f"items = [{x}, {y}]\nitems.append(k)\n{one} = items[0]\n{two} = items[1]",
            f'named = {{"x": {x}, "y": {y}}}\nnamed["z"] = k\n{one} = named["x"]\n{two} = named.get("y")',
            f"{one}, *middle, {two} = [{x}, 1, 2, {y}]",
            f"{one} = {x}\n{two} = {y}\n{one}, {two} = {two}, {one}\n{one}, {two} = {two}, {one}",
            f"{one} = {two} = {x}\n{two} = {y}",
            f"{one}, {two} = [q for q in ({x}, {y})]",
            f"{one} = ({two} := {x})\n{two} = {y}",
        )

    def integers(self) -> Statement:
        name = self.fresh("i")
        self._define(name, Kind("int", (), "i"))
        text = self.pick(
            "k * 3 // 2",
            "k + 1",
            "(k - 5) % 3",
            "min(k, 4)",
            "abs(k) + 1",
            "k if flag else 2",
            "-k // 2",
            "divmod(k, 3)[1]",
            "k * k - 1",
            "max(1, k)",
            "int(s)",
            "k << 2",
            "round(s)",
        )
        return f"{name} = {text}"

    def floats(self) -> Statement:
        """Arithmetic on Python floats."""
        name = self.fresh("r")
        known = ["s", "s", "SCALE", *self.variables(lambda kind: kind.what == "scalar" and kind.flavour == "f")]
        self._define(name, Kind("scalar", (), "f"))
        x, y = self.pick(*known), self.pick("k", "2", "0.5", *known)
        text = self.pick("{0} * {1} + 1", "{0} - {1}", "{0} / ({1} + 3)", "abs({0})", "-{0}", "{0} ** 2", "min({0}, {1})", "max({0}, {1})")
        rare = self.pick(
            "{0} / {1}", "{0} ** {1}", "{0} // {1}", "{0} % {1}", "float({0})", "math.sqrt(abs({0}))", "{0} * 1e300", "int({0})"
        )
        return f"{name} = {(rare if self.chance(30) else text).format(x, y)}"

    def containers_in(self) -> Statement:
        """What comes in as a list and a dict, and functions picked from a list."""
        found = self.array(lambda kind: kind.flavour == "f")
        if found is None:
            return "pass"
        name, (x, kind) = self.fresh(), found
        self._define(name, kind)
        return self.pick(
            f"{name} = {x} * len(items)",
            f"{name} = {x} + items[0]" if self.chance(40) else f"{name} = {x} + (items[0] if items else 0)",
            f"{name} = {x}\nfor item in items:\n    {name} = {name} + (item or 0)",
            f"{name} = {x} * opts['gain']" if self.chance(40) else f"{name} = {x} * (opts['gain'] if opts else 1)",
            f"{name} = {x}\nfor key in opts or ():\n    {name} = {name} * opts[key] + len(key)",
            f"{name} = {x} - ('bias' in opts if opts else 3)",
            f"{name} = {x} - len(opts or ())",
            f"{name} = {x}\nfor value in (opts or {{}}).values():\n    {name} = {name} * value + 1",
            f"{name} = TOOLS[k % 3]({x})",
            f"{name} = {x} * (2 if t == 'text' else 3)",
            f"{name} = {x} if isinstance(items, tuple) else {x} + 1",
            f"{name} = {x} + sum(item or 0 for item in items)",
        )

    def objects_in(self) -> Statement:
        """Functions and instances that come in, and who is who."""
        found = self.array(lambda kind: kind.flavour == "f")
        if found is None:
            return "pass"
        name, (x, kind) = self.fresh(), found
        self._define(name, kind)
        return self.pick(
            f"{name} = tool({x})",
            f"{name} = tool({x} * 2) + 1",
            f"{name} = tool({x}) * {x}",
            f"{name} = tool(tool({x}) + 1)",
            f"{name} = {x} * thing.gain",
            f"{name} = thing.scaled({x}) - thing.limit",
            f"{name} = {x} + (1 if isinstance(thing, Box) else 2)",
            f"{name} = {x} + (1 if type(thing) is Box else 2)",
            f"{name} = {x} * (5, 0.5, s, 3)[k]",
            f"{name} = {x} + items[k - 3]" if self.chance(40) else f"{name} = {x} + (5, 0.5, 7, 3)[k % 4]",
            f"{name} = {x} * (2 if a is b else 3)",
            f"{name} = {x} * (2 if thing is BOX else 3)",
            f"{name} = {x} + (tool is affine)",
            f"{name} = {x} * (2 if k {self.pick('> 2', '>= 3', '< 3', '<= 2')} else 3)",
            f"{name} = {x} + (2 if s {self.pick('>', '>=', '<', '<=')} {self.pick('0', '1.5', '2')} else 3)",
            f"{name} = {x} + {x}.max(axis).sum()",
            f"{name} = {x} * {x}.sum(axis=axis).mean()",
        )

    def big_integer(self) -> Statement:
        big = ("(k + 2) ** 40", "(k + 7) * 10**18 * (k + 9)", "k * k * k * 2**60", "(k + 1) << 70", "2**62 + 2**62 + k")
        return f"{self.fresh('big')} = {self.pick(*big)}"

    def effects(self) -> Statement:
        """State outside the function: globals, lists, attributes, closures, output."""
        found = self.array()
        x = found[0] if found else "k"
        return self.pick(
            "COUNT += 1",
            "COUNT = COUNT + k",
            f"LOG.append(k)\nLOG.append({x}.shape if hasattr({x}, 'shape') else 0)",
            "BOX.gain = BOX.gain + 0.5",
            f"BOX.data = {x}",
            "print('at', k, s)",
            f"print(f'{{k:03d}} {{s!r}} {{{x}.shape}}')" if found else "print(k)",
            "LOG.append(here())",
            "BUMP(2)",
            f"print(len({x}))\nLOG.append(f'{{k}}/{{COUNT}}')" if found and found[1].dims else "LOG.append(COUNT)",
            "Box.limit += 1",
            'MODES["half"] = MODES["half"] + 0.25',
            "LOG.extend([k, s])",
            f"LOG.append({x} is a)",
            "TABLE[1:] += 1",
        )

    def stacked_break(self) -> Statement:
        """An unknown call while values wait on the stack."""
        found = self.array(lambda kind: kind.flavour == "f")
        if found is None:
            return "here()"
        name, (x, kind) = self.fresh(), found
        self._define(name, kind)
        return self.pick(
            f"{name} = {x} * 2 + OPAQUE({x}) * 3",
            f"{name} = affine({x} + 1, len(here()[2]), b=BUMP())",
            f"{name} = [{x} * 2, here(), {x} + 1][2]",
            f"{name} = ({x} * 0.5 if len(str(k)) > 1 else {x}) + len(here())",
            f"{name} = {x} * BUMP() + len(print(k) or 'ab')",
            f'{name} = {{"a": {x} * 2, "b": here()}}["a"]',
            f"{name} = np.add({x} * 2, OPAQUE({x} - 1), out=None)",
        )

    def attributes(self) -> Statement:
        found = self.array(lambda kind: kind.flavour == "f")
        if found is None:
            return "pass"
        name, (x, kind) = self.fresh(), found
        self._define(name, kind)
        return self.pick(
            f"{name} = {x} * BOX.double",
            f"box = Box(k, {x})\n{name} = box.data * box.gain",
            f"slim = Slim()\nslim.gain = s\nslim.data = {x} + slim.gain\n{name} = slim.data",
            f"{name} = {x} + getattr(BOX, 'missing', 2)",
            f"{name} = {x} * (3 if hasattr(BOX, 'data') else 4)",
            f"box = Box(0.5)\nbox.data = {x}\nbox.data += 1\n{name} = box.data",
            f"method = BOX.scaled\n{name} = method({x}, 2)",
            f"{name} = {x} - BOX.missing" if self.chance(10) else f"{name} = {x} - BOX.limit",
        )

    def forget(self) -> Statement:
        names = [name for name in self.scope if name not in ("a", "b", "k", "s", "t", "flag")]
        if not names or self.depth:
            return "pass"
        name = self.pick(*names)
        if not self.chance(5):  # else the next use of it raises
            del self.scope[name]
        return f"del {name}"

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def body(self, size: int) -> list[Statement]:
        with self.nested():
            return [self.statement() for _ in range(size)]

    def small_body(self) -> list[Statement]:
        return self.body(self.chooser.integer(1, 3))

    def branch(self) -> Statement:
        clauses = [(f"if {self.condition()}:", self.small_body())]
        if self.chance(25):
            clauses.append((f"elif {self.condition()}:", self.small_body()))
        if self.chance(60):
            clauses.append(("else:", self.small_body()))
        if self.chance(10) and self.early_returns:
            clauses[-1][1].append(self.result())
        return Block(clauses)

    def loop(self) -> Statement:
        found = self.array(lambda kind: kind.ndim >= 1)
        x = found[0] if found else "range(3)"
        index = self.fresh("j")
        header = self.pick(
            f"for {index} in range(3):",
            f"for {index} in range(k % 4):",
            f"for {index} in range(4, 0, -2):",
            f"for {index} in (1, 2, s):",
            f"for {index}, row in enumerate({x}[:3]):" if found else f"for {index} in [1, 2]:",
            f"for {index}, row in zip(range(3), {x}):" if found else f"for {index} in (2,):",
            f"for {index} in rows({x}, 2):" if found else f"for {index} in (3,):",
            f"for {index} in list({x}[:2]):" if found else f"for {index} in (4,):",
            f"for {index}, value in MODES.items():",
            f"while (k := k // 2 - 1) > {self.pick(0, 1)}:",
        )
        if not self.scope.get("k"):
            header = f"for {index} in range(2):"
        inner = self.small_body()
        if self.chance(20):
            inner.append(Block([(f"if {self.condition()}:", [self.pick("break", "continue", "continue")])]))
        if self.chance(20):
            inner.insert(0, f"LOG.append({index})")
        clauses = [(header, inner)]
        if self.chance(10):
            clauses.append(("else:", self.small_body()))
        return Block(clauses)

    def guarded(self) -> Statement:
        raiser = self.pick(
            "raise ValueError('asked for')",
            "a[99999]",
            "k // (k - k)",
            "np.zeros(3) + np.zeros(4)",
            "missing_name",
            "BOX.missing",
            "int('x')",
            "MODES['none']",
            "np.float64(s) / 0",
        )
        inner = self.small_body()
        if self.chance(60):
            inner.insert(self.chooser.integer(0, len(inner)), Block([(f"if {self.condition()}:", [raiser])]) if self.chance(75) else raiser)
        kinds = self.pick(
            "Exception",
            "Exception",
            "Exception",
            "Exception",
            "Exception",
            "(ValueError, IndexError)",
            "ZeroDivisionError",
            "(NameError, AttributeError, LookupError)",
            "ValueError",
            "ArithmeticError",
        )
        clauses = [("try:", inner)]
        if self.chance(85):
            handler: list[Statement] = ["LOG.append(type(error).__name__)", *self.small_body()]
            if self.chance(15):
                again = self.pick("raise", "raise RuntimeError('second')", "raise KeyError(k) from error", "raise KeyError from None")
                handler.append(Block([(f"if {self.condition()}:", [again])]))
            clauses.append((f"except {kinds} as error:", handler))
            if self.chance(25):
                clauses.append(("else:", self.small_body()))
        if len(clauses) == 1 or self.chance(30):
            clauses.append(("finally:", ["LOG.append('finally')", *self.small_body()]))
        return Block(clauses)

    def managed(self) -> Statement:
        manager = self.pick(
            'Scope("span")',
            'Scope("quiet")',
            'np.errstate(all="ignore")',
            'np.errstate(divide="raise", invalid="raise")',
            "contextlib.suppress(ValueError, ArithmeticError)",
            'Scope("x") as scope',
            "contextlib.nullcontext(k) as inner",
        )
        return Block([(f"with {manager}:", self.small_body())])

    def closure(self) -> Statement:
        """An inner function that reads, or rebinds, what surrounds it."""
        found = self.array(lambda kind: kind.flavour == "f")
        if found is None or self.depth or self.script:
            return "pass"
        name, (x, kind), inner = self.fresh(), found, self.fresh("g")
        self._define(name, kind)
        state = self.fresh("n")
        return self.pick(
            f"def {inner}(q, w=k):\n    return q * w + k\n{name} = {inner}({x})",
            f"{state} = 1\ndef {inner}():\n    nonlocal {state}\n    {state} += k\n    return {x} * {state}\n"
            f"{name} = {inner}()\nLOG.append({state})",
            f"{inner} = [lambda q, w=j: q + w for j in range(2)]\n{name} = {inner}[1]({x})",
            f"{name} = sum(({x} * j for j in range(1, 3)), 0)",
            f"def {inner}():\n    for j in range(2):\n        yield {x} * j\n{name} = list({inner}())[1]",
        )

    def statement(self) -> Statement:
        """One statement, simple or compound."""
        simple: list[tuple[int, Callable[[], Statement]]] = [(14, self.assign), (8, self.write), (3, self.copy_input), (2, self.pack)]
        compound: list[tuple[int, Callable[[], Statement]]] = [(4, self.branch), (3, self.loop)]
        if not self.moves_only:
            simple += [(5, self.reduce), (2, self.integers), (3, self.floats), (2, self.own_views)]
            simple += [(4, self.containers_in), (4, self.objects_in)]
        if not self.smooth:
            compound += [(2, self.guarded), (1, self.managed)]
            simple.append((1, self.forget))
        if not self.smooth and not self.moves_only:
            simple += [(1, self.big_integer), (3, self.effects), (2, self.stacked_break), (2, self.attributes), (1, self.closure)]
        return weighted(self.chooser, simple if self.depth >= 2 else simple + compound)()

    def result(self) -> str:
        names = self.variables(lambda kind: kind.what in ("array", "scalar", "int"))
        if not names:
            return "return None"
        picked = [self.pick(*names) for _ in range(self.chooser.integer(1, 4))]
        made = self.expression(2)
        tail = made[0] if made else "k"
        return self.pick(
            f"return {', '.join(picked)}",
            f"return {tail}",
            f"return {tail}, {picked[0]}",
            f"return [{', '.join(picked)}]",
            f'return {{"out": {tail}, "k": k, "kept": {picked[0]}}}',
            f"return {picked[0]}",
        )
