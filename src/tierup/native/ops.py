"""Which operations are generated, and how: one emitter per operation, on vectors of a fixed number of lanes.

Only what IEEE 754 and integer arithmetic fix exactly is here; everything else calls NumPy's loop. Floating-point operations are LLVM's
constrained intrinsics with strict exceptions, so none is dropped, invented or moved to a lane that does not need it. Comparisons are the
quiet ones: NumPy's raise no flag on a NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tierup.native.kernels import ITEMSIZE, Target

_LLVM: Final = {
    "b1": "i8", "i1": "i8", "u1": "i8", "i2": "i16", "u2": "i16", "i4": "i32", "u4": "i32", "i8": "i64", "u8": "i64",
    "f4": "float", "f8": "double",
}  # fmt: skip
_FLOATS: Final = ("f4", "f8")
_COMPLEX: Final = {"c8": "f4", "c16": "f8"}
_SIGNED: Final = ("i1", "i2", "i4", "i8")
_INTS: Final = (*_SIGNED, "u1", "u2", "u4", "u8")


def llvm_type(dtype: str) -> str:
    """The LLVM type of one lane; of one part for complex dtypes."""
    return _LLVM[_COMPLEX.get(dtype, dtype)]


def component(dtype: str) -> str:
    """The dtype of a complex dtype's parts; the dtype itself otherwise."""
    return _COMPLEX.get(dtype, dtype)


def is_complex(dtype: str) -> bool:
    return dtype in _COMPLEX


@dataclass(slots=True)
class Vec:
    """A value in registers. Bools are a byte vector (`name`), a mask of bits (`mask`), or both of them. Complex values are two vectors
    (`name` and `im`), or one as in memory with the parts in turn (`pairs`), or both forms."""

    dtype: str
    name: str = ""
    im: str = ""
    mask: str = ""
    pairs: str = ""


class Emitter:
    """Writes LLVM text for straight-line vector code, and collects the intrinsics it used."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declares: dict[str, str] = {}
        self._n = 0

    # -- text ----------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        self._n += 1
        return f"%v{self._n}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def vec(self, scalar: str, factor: int = 1) -> str:
        return f"<{self.lanes * factor} x {scalar}>"

    def splat(self, scalar: str, value: str) -> str:
        """A constant vector (integers, or floats as LLVM writes them)."""
        return "<" + ", ".join([f"{scalar} {value}"] * self.lanes) + ">"

    # -- floating point ------------------------------------------------------------------------------------

    def _suffix(self, scalar: str, factor: int = 1) -> str:
        return f"v{self.lanes * factor}" + {"float": "f32", "double": "f64"}.get(scalar, scalar)

    def fp(self, op: str, scalar: str, *args: str, factor: int = 1) -> str:
        """A strict operation on vectors of one floating-point type, rounding to nearest where it rounds. factor: 2 for pairs."""
        ty = self.vec(scalar, factor)
        rounds = op in ("fadd", "fsub", "fmul", "fdiv", "sqrt")
        name = f"@llvm.experimental.constrained.{op}.{self._suffix(scalar, factor)}"
        params = [ty] * len(args) + ["metadata"] * (2 if rounds else 1)
        self.declares[name] = f"declare {ty} {name}({', '.join(params)})"
        text = [f"{ty} {a}" for a in args]
        if rounds:
            text.append('metadata !"round.tonearest"')
        text.append('metadata !"fpexcept.strict"')
        return self.let(f"call {ty} {name}({', '.join(text)}) strictfp")

    def fcmp(self, pred: str, scalar: str, a: str, b: str) -> str:
        ty = self.vec(scalar)
        out = self.vec("i1")
        name = f"@llvm.experimental.constrained.fcmp.{self._suffix(scalar)}"
        self.declares[name] = f"declare {out} {name}({ty}, {ty}, metadata, metadata)"
        return self.let(f'call {out} {name}({ty} {a}, {ty} {b}, metadata !"{pred}", metadata !"fpexcept.strict") strictfp')

    def convert(self, op: str, source: str, target: str, value: str) -> str:
        """sitofp, uitofp, fpext or fptrunc, strict."""
        src, dst = self.vec(source), self.vec(target)
        name = f"@llvm.experimental.constrained.{op}.{self._suffix(target)}.{self._suffix(source)}"
        rounds = op != "fpext"
        params = f"{src}, metadata, metadata" if rounds else f"{src}, metadata"
        self.declares[name] = f"declare {dst} {name}({params})"
        mode = 'metadata !"round.tonearest", ' if rounds else ""
        return self.let(f'call {dst} {name}({src} {value}, {mode}metadata !"fpexcept.strict") strictfp')

    def fneg(self, scalar: str, a: str) -> str:
        return self.let(f"fneg {self.vec(scalar)} {a}")

    def fabs(self, scalar: str, a: str) -> str:
        ty = self.vec(scalar)
        name = f"@llvm.fabs.{self._suffix(scalar)}"
        self.declares[name] = f"declare {ty} {name}({ty})"
        return self.let(f"call {ty} {name}({ty} {a})")

    # -- everything else -----------------------------------------------------------------------------------

    def binary(self, op: str, scalar: str, a: str, b: str) -> str:
        return self.let(f"{op} {self.vec(scalar)} {a}, {b}")

    def icmp(self, pred: str, scalar: str, a: str, b: str) -> str:
        return self.let(f"icmp {pred} {self.vec(scalar)} {a}, {b}")

    def select(self, mask: str, scalar: str, a: str, b: str) -> str:
        ty = self.vec(scalar)
        return self.let(f"select {self.vec('i1')} {mask}, {ty} {a}, {ty} {b}")

    def cast(self, op: str, source: str, target: str, a: str) -> str:
        return self.let(f"{op} {self.vec(source)} {a} to {self.vec(target)}")

    def mask_of(self, v: Vec) -> str:
        """v as a truth mask: for bools the value, for numbers `!= 0` (a NaN is true)."""
        if v.dtype == "b1":
            if not v.mask:
                v.mask = self.icmp("ne", "i8", v.name, "zeroinitializer")
            return v.mask
        scalar = llvm_type(v.dtype)
        self.parts_of(v)
        if component(v.dtype) in _FLOATS:
            m = self.fcmp("une", scalar, v.name, "zeroinitializer")
            if v.im:
                m = self.binary("or", "i1", m, self.fcmp("une", scalar, v.im, "zeroinitializer"))
            return m
        return self.icmp("ne", scalar, v.name, "zeroinitializer")

    def parts_of(self, v: Vec) -> Vec:
        """v with real and imaginary parts as vectors of their own, if it is complex."""
        if is_complex(v.dtype) and not v.name:
            both = self.vec(llvm_type(v.dtype), 2)
            order = [", ".join(f"i32 {2 * k + part}" for k in range(self.lanes)) for part in (0, 1)]
            v.name, v.im = (self.let(f"shufflevector {both} {v.pairs}, {both} poison, <{self.lanes} x i32> <{o}>") for o in order)
        return v

    def pairs_of(self, v: Vec) -> str:
        """A complex v as it lies in memory."""
        if not v.pairs:
            t = self.vec(llvm_type(v.dtype))
            order = ", ".join(f"i32 {k}, i32 {self.lanes + k}" for k in range(self.lanes))
            v.pairs = self.let(f"shufflevector {t} {v.name}, {t} {v.im}, <{2 * self.lanes} x i32> <{order}>")
        return v.pairs

    def bytes_of(self, v: Vec) -> str:
        """The register of a plain value; a bool as bytes 0 and 1."""
        if not v.name:
            v.name = self.cast("zext", "i1", "i8", v.mask)
        return v.name


Emit = Callable[[Emitter, list[Vec], str], Vec]
"""(emitter, operands already of the loop's input types, output dtype) → result."""


# -- arithmetic ------------------------------------------------------------------------------------------------


def _arith(float_op: str, int_op: str, bool_op: str = "") -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        if out == "b1":
            return _truth(bool_op)(e, v, out)
        t = llvm_type(out)
        if is_complex(out):
            return Vec(out, pairs=e.fp(float_op, t, e.pairs_of(v[0]), e.pairs_of(v[1]), factor=2))
        if out in _FLOATS:
            return Vec(out, e.fp(float_op, t, v[0].name, v[1].name))
        return Vec(out, e.binary(int_op, t, v[0].name, v[1].name))

    return emit


def _square(e: Emitter, v: list[Vec], out: str) -> Vec:
    return _arith("fmul", "mul")(e, [v[0], v[0]], out)


def _divide(e: Emitter, v: list[Vec], out: str) -> Vec:
    return Vec(out, e.fp("fdiv", llvm_type(out), v[0].name, v[1].name))


def _reciprocal(e: Emitter, v: list[Vec], out: str) -> Vec:
    t = llvm_type(out)
    return Vec(out, e.fp("fdiv", t, e.splat(t, "1.0"), v[0].name))


def _negative(e: Emitter, v: list[Vec], out: str) -> Vec:
    t = llvm_type(out)
    if is_complex(out):
        return Vec(out, pairs=e.let(f"fneg {e.vec(t, 2)} {e.pairs_of(v[0])}"))
    if out in _FLOATS:
        return Vec(out, e.fneg(t, v[0].name))
    return Vec(out, e.binary("sub", t, "zeroinitializer", v[0].name))


def _identity(e: Emitter, v: list[Vec], out: str) -> Vec:
    return v[0]


def _conjugate(e: Emitter, v: list[Vec], out: str) -> Vec:
    return Vec(out, e.parts_of(v[0]).name, e.fneg(llvm_type(out), v[0].im)) if is_complex(out) else v[0]


def _absolute(e: Emitter, v: list[Vec], out: str) -> Vec:
    t = llvm_type(out)
    if out in _FLOATS:
        return Vec(out, e.fabs(t, v[0].name))
    if out not in _SIGNED:
        return v[0]
    minus = e.binary("sub", t, "zeroinitializer", v[0].name)
    return Vec(out, e.select(e.icmp("slt", t, v[0].name, "zeroinitializer"), t, minus, v[0].name))


def _fp_unary(op: str) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        return Vec(out, e.fp(op, llvm_type(out), v[0].name))

    return emit


# -- comparisons and truth ---------------------------------------------------------------------------------------


_FCMP: Final = {"equal": "oeq", "not_equal": "une", "less": "olt", "less_equal": "ole", "greater": "ogt", "greater_equal": "oge"}
_ICMP: Final = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}


def _compare(name: str) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        dtype = v[0].dtype
        t = llvm_type(dtype)
        v = [e.parts_of(x) for x in v]
        if component(dtype) in _FLOATS:
            m = e.fcmp(_FCMP[name], t, v[0].name, v[1].name)
            if is_complex(dtype):
                other = e.fcmp(_FCMP[name], t, v[0].im, v[1].im)
                m = e.binary("and" if name == "equal" else "or", "i1", m, other)
            return Vec(out, mask=m)
        pred = _ICMP[name]
        if name not in ("equal", "not_equal"):
            pred = ("s" if dtype in _SIGNED else "u") + pred
        if dtype == "b1":
            return Vec(out, mask=e.icmp(pred, "i1", e.mask_of(v[0]), e.mask_of(v[1])))
        return Vec(out, mask=e.icmp(pred, t, v[0].name, v[1].name))

    return emit


def _truth(op: str) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        return Vec(out, mask=e.binary(op, "i1", e.mask_of(v[0]), e.mask_of(v[1])))

    return emit


def _not(e: Emitter, v: list[Vec], out: str) -> Vec:
    return Vec(out, mask=e.binary("xor", "i1", e.mask_of(v[0]), e.splat("i1", "true")))


def _isnan(e: Emitter, v: list[Vec], out: str) -> Vec:
    t = llvm_type(v[0].dtype)
    e.parts_of(v[0])
    m = e.fcmp("uno", t, v[0].name, v[0].name)
    if v[0].im:
        m = e.binary("or", "i1", m, e.fcmp("uno", t, v[0].im, v[0].im))
    return Vec(out, mask=m)


def _against_inf(pred: str, join: str) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        t = llvm_type(v[0].dtype)
        inf = e.splat(t, "0x7FF0000000000000")
        e.parts_of(v[0])
        m = e.fcmp(pred, t, e.fabs(t, v[0].name), inf)
        if v[0].im:
            m = e.binary(join, "i1", m, e.fcmp(pred, t, e.fabs(t, v[0].im), inf))
        return Vec(out, mask=m)

    return emit


def _int_of(dtype: str) -> str:
    return "i32" if dtype == "f4" else "i64"


def _signbit(e: Emitter, v: list[Vec], out: str) -> Vec:
    t, i = llvm_type(v[0].dtype), _int_of(v[0].dtype)
    return Vec(out, mask=e.icmp("slt", i, e.cast("bitcast", t, i, v[0].name), "zeroinitializer"))


def _copysign(e: Emitter, v: list[Vec], out: str) -> Vec:
    t, i = llvm_type(out), _int_of(out)
    bits = 32 if out == "f4" else 64
    magnitude = e.binary("and", i, e.cast("bitcast", t, i, v[0].name), e.splat(i, str(2 ** (bits - 1) - 1)))
    sign = e.binary("and", i, e.cast("bitcast", t, i, v[1].name), e.splat(i, str(-(2 ** (bits - 1)))))
    return Vec(out, e.cast("bitcast", i, t, e.binary("or", i, magnitude, sign)))


# -- bits ----------------------------------------------------------------------------------------------------------


def _bitwise(op: str) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        if out == "b1":
            return _truth(op)(e, v, out)
        return Vec(out, e.binary(op, llvm_type(out), v[0].name, v[1].name))

    return emit


def _invert(e: Emitter, v: list[Vec], out: str) -> Vec:
    if out == "b1":
        return _not(e, v, out)
    t = llvm_type(out)
    return Vec(out, e.binary("xor", t, v[0].name, e.splat(t, "-1")))


def _shift(left: bool) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        """NumPy (npy_lshift, npy_rshift): a count outside 0..width-1 gives 0, or -1 for a right shift of a negative number."""
        t = llvm_type(out)
        ok = e.icmp("ult", t, v[1].name, e.splat(t, str(8 * ITEMSIZE[out])))
        count = e.select(ok, t, v[1].name, "zeroinitializer")
        signed = out in _SIGNED
        shifted = e.binary("shl" if left else "ashr" if signed else "lshr", t, v[0].name, count)
        beyond = "zeroinitializer"
        if signed and not left:
            beyond = e.binary("ashr", t, v[0].name, e.splat(t, str(8 * ITEMSIZE[out] - 1)))
        return Vec(out, e.select(ok, t, shifted, beyond))

    return emit


# -- choosing --------------------------------------------------------------------------------------------------------


def _choose(e: Emitter, dtype: str, greater: bool, a: str, b: str) -> str:
    """`a` where it is strictly beyond `b` or a NaN, otherwise `b` (so a NaN in `b` wins too, and of ±0 the second)."""
    t = llvm_type(dtype)
    if dtype in _FLOATS:
        take = e.binary("or", "i1", e.fcmp("ogt" if greater else "olt", t, a, b), e.fcmp("uno", t, a, a))
    else:
        take = e.icmp(("s" if dtype in _SIGNED else "u") + ("gt" if greater else "lt"), t, a, b)
    return e.select(take, t, a, b)


def _extremum(greater: bool) -> Emit:
    def emit(e: Emitter, v: list[Vec], out: str) -> Vec:
        if out == "b1":
            return _truth("or" if greater else "and")(e, v, out)
        return Vec(out, _choose(e, out, greater, v[0].name, v[1].name))

    return emit


def _sign(e: Emitter, v: list[Vec], out: str) -> Vec:
    """1, -1, 0.0 (also of -0.0), or the NaN itself."""
    t, x = llvm_type(out), v[0].name
    if out not in _FLOATS:
        positive = e.select(e.icmp("ne", t, x, "zeroinitializer"), t, e.splat(t, "1"), "zeroinitializer")
        if out not in _SIGNED:
            return Vec(out, positive)
        return Vec(out, e.select(e.icmp("slt", t, x, "zeroinitializer"), t, e.splat(t, "-1"), positive))
    r = e.select(e.fcmp("oeq", t, x, "zeroinitializer"), t, "zeroinitializer", x)
    r = e.select(e.fcmp("olt", t, x, "zeroinitializer"), t, e.splat(t, "-1.0"), r)
    return Vec(out, e.select(e.fcmp("ogt", t, x, "zeroinitializer"), t, e.splat(t, "1.0"), r))


def _clip(e: Emitter, v: list[Vec], out: str) -> Vec:
    """np.clip with scalar bounds. Of floats an element equal to a bound stays (-0.0 below a bound of 0.0), and a bound that is a NaN is
    the result."""
    t, x, low, high = llvm_type(out), v[0].name, v[1].name, v[2].name
    if out not in _FLOATS:
        return Vec(out, _choose(e, out, False, _choose(e, out, True, x, low), high))
    x = e.select(e.fcmp("olt", t, x, low), t, low, x)
    x = e.select(e.fcmp("ogt", t, x, high), t, high, x)
    x = e.select(e.fcmp("uno", t, high, high), t, high, x)
    return Vec(out, e.select(e.fcmp("uno", t, low, low), t, low, x))


def _where(e: Emitter, v: list[Vec], out: str) -> Vec:
    mask, a, b = e.mask_of(v[0]), e.parts_of(v[1]), e.parts_of(v[2])
    t = llvm_type(out)
    if out == "b1":
        return Vec(out, e.select(mask, t, e.bytes_of(a), e.bytes_of(b)))
    return Vec(out, e.select(mask, t, a.name, b.name), e.select(mask, t, a.im, b.im) if a.im else "")


# -- conversion --------------------------------------------------------------------------------------------------------


def _cast_real(e: Emitter, name: str, source: str, target: str) -> str:
    """One real number type to another, as C converts; never float to integer."""
    if source == target:
        return name
    s, t = llvm_type(source), llvm_type(target)
    if source in _FLOATS:
        return e.convert("fpext" if target == "f8" else "fptrunc", s, t, name)
    if target in _FLOATS:
        return e.convert("sitofp" if source in _SIGNED else "uitofp", s, t, name)
    if ITEMSIZE[source] == ITEMSIZE[target]:
        return name
    if ITEMSIZE[source] > ITEMSIZE[target]:
        return e.cast("trunc", s, t, name)
    return e.cast("sext" if source in _SIGNED else "zext", s, t, name)


def _cast(e: Emitter, v: list[Vec], out: str) -> Vec:
    src = v[0]
    if src.dtype == out:
        return src
    if out == "b1":
        return Vec(out, mask=e.mask_of(src))
    source, target = component(src.dtype), component(out)
    re = _cast_real(e, e.bytes_of(e.parts_of(src)), source, target)
    if not is_complex(out):
        return Vec(out, re)
    im = _cast_real(e, src.im, source, target) if src.im else e.splat(llvm_type(out), "0.0")
    return Vec(out, re, im)


# -- the table -----------------------------------------------------------------------------------------------------------

_REAL: Final = (*_INTS, *_FLOATS)
_NUMBERS: Final = (*_REAL, *_COMPLEX)
_ALL: Final = ("b1", *_NUMBERS)

_TABLE: Final[dict[str, tuple[Emit, tuple[str, ...], str]]] = {
    # name: (emitter, dtypes of all inputs alike, output: 'same' or a dtype)
    "add": (_arith("fadd", "add", "or"), _ALL, "same"),
    "subtract": (_arith("fsub", "sub"), _NUMBERS, "same"),
    "multiply": (_arith("fmul", "mul", "and"), ("b1", *_REAL), "same"),
    "divide": (_divide, _FLOATS, "same"),
    "negative": (_negative, _NUMBERS, "same"),
    "positive": (_identity, _NUMBERS, "same"),
    "conjugate": (_conjugate, _NUMBERS, "same"),
    "absolute": (_absolute, _REAL, "same"),
    "fabs": (_absolute, _FLOATS, "same"),
    "sqrt": (_fp_unary("sqrt"), _FLOATS, "same"),
    "square": (_square, _REAL, "same"),
    "reciprocal": (_reciprocal, _FLOATS, "same"),
    "floor": (_fp_unary("floor"), _FLOATS, "same"),
    "ceil": (_fp_unary("ceil"), _FLOATS, "same"),
    "trunc": (_fp_unary("trunc"), _FLOATS, "same"),
    "rint": (_fp_unary("roundeven"), _FLOATS, "same"),
    "equal": (_compare("equal"), _ALL, "b1"),
    "not_equal": (_compare("not_equal"), _ALL, "b1"),
    "less": (_compare("less"), ("b1", *_REAL), "b1"),
    "less_equal": (_compare("less_equal"), ("b1", *_REAL), "b1"),
    "greater": (_compare("greater"), ("b1", *_REAL), "b1"),
    "greater_equal": (_compare("greater_equal"), ("b1", *_REAL), "b1"),
    "logical_and": (_truth("and"), _ALL, "b1"),
    "logical_or": (_truth("or"), _ALL, "b1"),
    "logical_xor": (_truth("xor"), _ALL, "b1"),
    "logical_not": (_not, _ALL, "b1"),
    "isnan": (_isnan, (*_FLOATS, *_COMPLEX), "b1"),
    "isinf": (_against_inf("oeq", "or"), (*_FLOATS, *_COMPLEX), "b1"),
    "isfinite": (_against_inf("olt", "and"), (*_FLOATS, *_COMPLEX), "b1"),
    "signbit": (_signbit, _FLOATS, "b1"),
    "copysign": (_copysign, _FLOATS, "same"),
    "bitwise_and": (_bitwise("and"), ("b1", *_INTS), "same"),
    "bitwise_or": (_bitwise("or"), ("b1", *_INTS), "same"),
    "bitwise_xor": (_bitwise("xor"), ("b1", *_INTS), "same"),
    "invert": (_invert, ("b1", *_INTS), "same"),
    "left_shift": (_shift(True), _INTS, "same"),
    "right_shift": (_shift(False), _INTS, "same"),
    "maximum": (_extremum(True), ("b1", *_REAL), "same"),
    "minimum": (_extremum(False), ("b1", *_REAL), "same"),
    "sign": (_sign, _REAL, "same"),
    "clip": (_clip, _REAL, "same"),
}

_SPECIAL: Final[dict[str, Emit]] = {"where": _where, "cast": _cast}
_ROUNDING: Final = ("floor", "ceil", "trunc", "rint")
_CHOOSING: Final = ("maximum", "minimum", "clip")


def emitter(name: str) -> Emit:
    """How an operation is generated. Raises KeyError for one that never is."""
    return _SPECIAL[name] if name in _SPECIAL else _TABLE[name][0]


def is_generated(name: str, ins: tuple[str, ...], out: str, scalars: tuple[bool, ...], target: Target) -> bool:
    """Whether code is generated for a ufunc's loop; otherwise NumPy's own must be called. scalars: which operands are scalars."""
    entry = _TABLE.get(name)
    if entry is None or len(set(ins)) != 1 or ins[0] not in entry[1] or out != (ins[0] if entry[2] == "same" else entry[2]):
        return False
    if name in _ROUNDING:
        return target.has_rounding
    if name in _CHOOSING and ins[0] in _FLOATS:
        # With array bounds clip's choice between zeros depends on their strides.
        return target.second_zero and (name != "clip" or scalars == (False, True, True))
    return True
