"""What the user chose: the options of this process, from the environment and from `tierup.jit(...)`.

Plain classes rather than dataclasses: importing `dataclasses` and `typing` costs more than the rest of `import tierup` together.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final, NoReturn, Self

STAGES: Final = ("bytecode", "capture", "guards", "graph", "llvm", "asm", "runtime")
"""What `TIERUP_LOG` can show, in the order of the path of a call."""

MAX_THREADS: Final = 1024

_DEFAULTS: Final[dict[str, object]] = {
    "enabled": True,
    "fast": False,
    "min_graph_size": 1,
    "threads": None,
    "log": frozenset(),
    "cache_dir": None,
    "stats_dir": None,
    "strict": False,
    "compile_budget": None,
    "trial_hits": 8,
    "perf_map": False,
}


class ConfigError(ValueError):
    """An option or environment variable has a value that is not allowed. The message is one line and says what is."""


class Options:
    """The options in force; immutable, compared by value."""

    __slots__ = tuple(_DEFAULTS)

    enabled: bool
    """False: every function runs as if tierup were not there (`TIERUP=0`)."""
    fast: bool
    """True gives up bit equality for speed: reassociation, contraction, transcendental functions of our own."""
    min_graph_size: int
    """A graph with fewer array operations is left to the interpreter (`TIERUP_MIN_GRAPH_SIZE`)."""
    threads: int | None
    """Threads of large kernels (`TIERUP_NUM_THREADS`); None: the cores this process may use."""
    log: frozenset[str]
    """Stages that are printed to stderr (`TIERUP_LOG`)."""
    cache_dir: str | None
    """Folder of the object cache (`TIERUP_CACHE_DIR`); None: the user's cache folder. An empty variable turns the cache off."""
    stats_dir: str | None
    """Folder in which each process leaves its statistics at exit (`TIERUP_STATS_DIR`)."""
    strict: bool
    """Check every guard three ways and every graph after every pass; raise on disagreement (`TIERUP_STRICT`; for tests)."""
    compile_budget: float | None
    """Seconds this process may spend on translation in all (`TIERUP_COMPILE_BUDGET`); None: no limit."""
    trial_hits: int
    """Hits of a site after which it is first timed against the interpreter (`TIERUP_TRIAL_HITS`); 0: never."""
    perf_map: bool
    """Name the kernels for profilers in a perf map (`TIERUP_PERF_MAP`)."""

    def __init__(self, **values: object) -> None:
        for name, default in _DEFAULTS.items():
            object.__setattr__(self, name, values.pop(name, default))
        if values:
            raise ConfigError(f"unknown option {next(iter(values))!r}; tierup knows {', '.join(_DEFAULTS)}")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """The options that the environment asks for. Raises ConfigError naming the variable at the first bad value."""
        environ = os.environ if environ is None else environ
        return cls(**dict(parse(name, environ[name]) for name in _VARIABLES if name in environ))

    def replace(self, **changes: object) -> Options:
        """A copy with some options changed, each checked as the environment's are."""
        for name, value in changes.items():
            check = _CHECKS.get(name)
            if check is not None:
                check(name, value)
        return Options(**{**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, object]:
        """Option names and values."""
        return {name: getattr(self, name) for name in _DEFAULTS}

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Options are immutable; use replace()")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Options are immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().values()))

    def __repr__(self) -> str:
        changed = {name: value for name, value in self.to_dict().items() if value != _DEFAULTS[name]}
        return f"Options({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _bad(name: str, allowed: str, value: object) -> NoReturn:
    raise ConfigError(f"{name} must be {allowed}, not {value!r}")


def _flag(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in ("1", "on", "true", "yes"):
        return True
    if word in ("", "0", "off", "false", "no"):
        return False
    _bad(name, "0 or 1", text)


def _switch(name: str, text: str) -> bool:
    """As a flag, but an empty variable means the default, on."""
    return True if not text.strip() else _flag(name, text)


def _whole_number(low: int, high: int) -> Callable[[str, str], int]:
    def parse(name: str, text: str) -> int:
        # isascii: int() takes other scripts' digits and underscores, too
        if not (text.isascii() and text.strip().isdigit() and low <= int(text) <= high):
            _bad(name, f"a whole number from {low} to {high}", text)
        return int(text)

    return parse


def _seconds(name: str, text: str) -> float:
    allowed = "a number of seconds, 0 or more"
    try:
        value = float(text)
    except ValueError:
        _bad(name, allowed, text)
    if not 0 <= value < float("inf"):
        _bad(name, allowed, text)
    return value


def _stages(name: str, text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if words <= {"0"}:
        return frozenset()
    if words & {"all", "1"}:
        words = words - {"all", "1"} | frozenset(STAGES)
    if not words <= frozenset(STAGES):
        _bad(name, f"'all' or a comma-separated list of {', '.join(STAGES)}", text)
    return words


def _path(_name: str, text: str) -> str:
    return os.path.abspath(os.path.expanduser(text)) if text else ""


_VARIABLES: Final[dict[str, tuple[str, Callable[[str, str], object]]]] = {
    "TIERUP": ("enabled", _switch),
    "TIERUP_MIN_GRAPH_SIZE": ("min_graph_size", _whole_number(0, 1_000_000)),
    "TIERUP_LOG": ("log", _stages),
    "TIERUP_CACHE_DIR": ("cache_dir", _path),
    "TIERUP_NUM_THREADS": ("threads", _whole_number(1, MAX_THREADS)),
    "TIERUP_STATS_DIR": ("stats_dir", lambda name, text: _path(name, text) or None),
    "TIERUP_STRICT": ("strict", _flag),
    "TIERUP_COMPILE_BUDGET": ("compile_budget", _seconds),
    "TIERUP_TRIAL_HITS": ("trial_hits", _whole_number(0, 1_000_000)),
    "TIERUP_PERF_MAP": ("perf_map", _flag),
}

VARIABLES: Final = tuple(_VARIABLES)
"""The environment variables tierup reads."""


def parse(variable: str, text: str, shown_as: str | None = None) -> tuple[str, object]:
    """(option name, value) of what an environment variable, or a command-line option of the same meaning, says. Raises ConfigError."""
    option, read = _VARIABLES[variable]
    return option, read(shown_as or variable, text)


def _check_bool(name: str, value: object) -> None:
    if type(value) is not bool:
        _bad(name, "True or False", value)


def _check_size(name: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= 1_000_000:
        _bad(name, "a whole number from 0 to 1000000", value)


def _check_threads(name: str, value: object) -> None:
    if value is not None and (type(value) is not int or not 1 <= value <= MAX_THREADS):
        _bad(name, f"None or a whole number from 1 to {MAX_THREADS}", value)


_CHECKS: Final[dict[str, Callable[[str, object], None]]] = {
    "enabled": _check_bool,
    "fast": _check_bool,
    "strict": _check_bool,
    "min_graph_size": _check_size,
    "threads": _check_threads,
}

_current: Options | None = None


def current() -> Options:
    """The options of this process. The environment is read at the first call; raises ConfigError then if it is wrong."""
    global _current  # noqa: PLW0603 - one value a process, read once
    if _current is None:
        _current = Options.from_env()
    return _current


def set_current(options: Options | None) -> None:
    """Replaces the options of this process; None: read the environment again at the next `current()`."""
    global _current  # noqa: PLW0603
    _current = options
