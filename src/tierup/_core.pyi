"""The C core: sites, guard tree, plan interpreter, kernels. Types only; the code is in csrc/."""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Final

EXPR_KINDS: Final[dict[str, int]]
CHECK_KINDS: Final[dict[str, int]]
PLAN_OPS: Final[dict[str, int]]
PLAN_OPERANDS: Final[dict[str, str]]
EXIT_LOCAL: Final[int]
EXIT_STACK: Final[int]
EXIT_CELL: Final[int]
EXIT_NAME: Final[int]

class _Null: ...

NULL: Final[_Null]
"""Stands for an empty slot in what a site tells its callback."""

Expr = tuple[int, int, object]
Check = tuple[int, int, object]
Spec = (
    tuple[Sequence[Check], Plan, int | tuple[int, ...], bool | tuple[bool, ...]]
    | tuple[Sequence[Check], Plan, tuple[int, ...], tuple[bool, ...], tuple[int, ...]]
)

class LiveFrame:
    """What a site shows its callback; valid only during the call."""

    @property
    def slots(self) -> list[object]:
        """localsplus, then the value stack up to the site's depth; NULL for empty slots. Cell slots hold the cell."""
    @property
    def code(self) -> CodeType: ...
    @property
    def globals(self) -> dict[str, object]: ...
    @property
    def builtins(self) -> dict[str, object]: ...
    @property
    def locals(self) -> dict[str, object] | None: ...
    @property
    def function(self) -> FunctionType | None: ...

class Site:
    """A place in generated code where a region may begin. `bool(site)` in that code runs it; elsewhere it is False."""

    def __init__(self, index: int, depth: int) -> None: ...
    index: int
    """Instruction index in the original program."""
    depth: int
    """Depth of the value stack at the site."""
    hits: int
    misses: int
    """Lookups in which no specialisation applied (empty sites do not look up and do not count)."""
    observed: int
    """Times the site stood aside for a tracer, profiler or monitoring tool."""
    errors: int
    """Exceptions of the callback that were swallowed (all but KeyboardInterrupt and SystemExit-like BaseExceptions)."""
    countdown: int
    """Visits without a hit until the callback is called; counts down on every such visit. Settable. It is set to 2**63 - 1 before each call
    of the callback, so without another word from there none follows."""
    callback: Callable[[Site, LiveFrame], bool | None] | None
    """Called with the GIL when countdown reaches zero. A true result makes the site look up once more before it misses.
    It is called with a raised recursion budget, and exc_info, errno and the floating-point environment are restored after it."""
    last_error: str | None
    """Text of the last exception that was swallowed."""
    enabled: bool
    """False: every visit is a miss without counting (`tierup.disabled`, stress modes)."""
    reach: int
    """Index of the original instruction before which its regions end, as far as is known. While a trial leaves the region to the
    interpreter, the sites in between stand aside."""
    slow: bool
    """A trial found what is installed slower than the interpreter: it does not run any more, and the callback is asked what now."""
    def bind(self, code: CodeType, instr: int) -> None:
        """Says which code object (held weakly) and code unit (of the truth test) the site sits at; before that it always misses."""
    def install(self, exprs: Sequence[Expr], specs: Sequence[Spec]) -> None:
        """Replaces the guard tree. A spec is (checks, plan, exit number, top_null); exit number -1 means this code has no landing for it:
        the spec misses. top_null: the landing's top stack slot is NULL, so UNARY_INVERT fills all placeholders and returns None. Of a plan
        with several exits both are tuples, one item for each; a fifth item may name the exits at which a loop is not through."""
    def tree_text(self) -> str:
        """The guard tree as an indented listing."""
    def spec_hits(self) -> list[int]: ...
    def __bool__(self) -> bool: ...
    def __neg__(self) -> int:
        """Number of the exit that the last hit took."""
    def __invert__(self) -> object:
        """Fills the placeholders of the last hit's deeper stack slots and returns the top one."""
    def __reduce__(self) -> tuple[type[bytes], tuple[()]]: ...

LOOP_HELPERS: Final[dict[str, int]]
"""Addresses of what native loops call, and offsets in objects that they read (csrc/loop_helpers.c)."""
DRIVE: Final[int]
"""Address of the kernel function that runs generated segments and NumPy's loops by a description (see csrc/drive.c)."""

LAYOUT_CAST: Final[int]
LAYOUT_ITER: Final[int]
LAYOUT_COPY: Final[int]
WALK_ANY: Final[int]
WALK_NUMPY: Final[int]
WALK_FLAT: Final[int]

class Kernel:
    """A native function with NumPy's inner-loop shape, and what the launcher must know of it."""

    def __init__(
        self,
        address: int,
        in_types: Sequence[int],
        scalar_types: Sequence[int],
        out_types: Sequence[int],
        *,
        scratch_per_element: int = 0,
        block: int = 0,
        cost: float = 1.0,
        functions: Sequence[tuple[int, int]] = (),
        raises_flags: bool = True,
        x87_flags: bool = False,
        layout: Sequence[Sequence[int]] = (),
        layout_out: Sequence[int] = (),
        identity: bytes | None = None,
        numpy_loop: bool = False,
        keepalive: object = None,
        walk: int = -1,
        name: str = "",
    ) -> None:
        """address: of `void k(char**, const intptr_t*, intptr_t n, char *scratch, void **fns)`, or of a PyUFuncGenericFunction with
        numpy_loop=True (then functions[0] = (address, data)). *_types: NumPy type numbers. scratch_per_element: bytes of scratch that the
        kernel needs per element of a block. block: most elements a call may take (0: unlimited). cost: nanoseconds per element, for the
        thread threshold. functions: (function pointer, data pointer) pairs handed over as fns[2*i], fns[2*i+1].

        layout: for each operation of the fused chain the operand numbers (0.. array inputs, then nin.. earlier operations; scalars do not
        appear); layout_out: for each output its operation; used to find the memory order NumPy would give each output when the inputs'
        orders differ (see layout.c). An operand may carry LAYOUT_CAST (NumPy casts it for the loop), LAYOUT_ITER (NumPy always iterates
        here: np.where, several outputs) or LAYOUT_COPY (the operation is copy("K"), astype or empty_like of its one operand).

        identity: an element's bytes, what a reduction starts from. walk: WALK_ANY if every element is computed alike, WALK_NUMPY (the
        default where there are functions) if the inner axis must be NumPy's, WALK_FLAT if it calls loops that round differently for other
        strides: it MISSes unless NumPy would walk all operands in one stretch."""
    calls: int
    name: str

class Plan:
    """A compiled specialisation body; immutable."""

    def __init__(
        self,
        code: bytes,
        constants: tuple[object, ...],
        kernels: tuple[Kernel, ...],
        nobjects: int,
        nslots: int,
        narrays: int,
        slot_image: bytes,
        exit: Sequence[tuple[int, int, int]],
        exits: tuple[Sequence[tuple[int, int, int]], ...] = ...,
    ) -> None:
        """code: int32 words (plan_ops.def). slot_image: initial contents of the 16-byte scalar slots (constants). exit: (kind, slot,
        register) entries. Raises ValueError naming the instruction where a register, constant or kernel index is out of range, a register
        is read before it is set, floating-point flags are not tested before the first store and the end, or something follows a store
        that may fail. exits: where the program has EXIT operations, the entries of each exit in place of `exit`."""
    runs: int
    """Executions, misses included."""
    alarms: int
    """Misses because of a floating-point flag."""
    left: int
    """Runs that were misses, for whatever reason."""

def dot_function(type_number: int) -> int | None:
    """Address of NumPy's dot product of two vectors of that type, None if it has none."""

def run_plan(plan: Plan, values: list[object]) -> tuple[int, list[object]]:
    """For tests: runs the plan with expression e being values[e]. (0 done or 1 miss, object registers; None where unset)."""

def time_plan(plan: Plan, values: tuple[object, ...], count: int) -> tuple[int, float]:
    """The status, and nanoseconds of processor time per run."""

def set_launch_limits(thread_ns: float, gil_ns: float) -> None:
    """Estimated work (nanoseconds) from which on a kernel uses threads, and runs without the GIL."""

def disable(delta: int) -> int:
    """Adds to the count of `tierup.disabled` blocks that are open and returns it; while it is above zero every site misses uncounted."""

def init_numpy() -> None:
    """Binds NumPy's C API (imports numpy). Raises ImportError. Idempotent."""

def array_key(a: Any) -> int: ...
def ufunc_loop(ufunc: Any, signature: str) -> tuple[int, int] | None:
    """(function, data) pointers of the first inner loop of `ufunc` whose type characters are `signature` ('dd->d'), or None."""

def set_first_trial(hits: int) -> None:
    """Hits after which what is installed from now on is first tried against the interpreter; 0: never."""

def set_num_threads(n: int) -> None: ...
def num_threads() -> int: ...
def code_extra_get(code: CodeType) -> object | None:
    """The object attached to a code object by code_extra_set, or None. The collector tracks neither code objects nor these."""

def code_extra_set(code: CodeType, value: object | None) -> None: ...
def patch_constant(code: CodeType, index: int, value: object) -> None:
    """Replaces co_consts[index] in place (for code constants of enclosing code)."""

def run_main(what: CodeType | Callable[..., object], with_: dict[str, object] | tuple[object, ...], /) -> int:
    """Runs a program (a code object in a namespace, or a function with arguments) without any frame below it, as the interpreter does.

    0: it ended; 1: its exception was shown by sys.excepthook; -1: likewise, and it was a KeyboardInterrupt. SystemExit comes out."""

def make_exec(prepare: Callable[[CodeType, dict[str, object]], CodeType], /) -> Callable[[CodeType, dict[str, object]], None]:
    """A C function exec(code, globals) that executes prepare(code, globals) instead of the code; it leaves no frame in tracebacks."""
