"""`tierup lab report`: a comparison as a page, as Markdown, and as figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tierup.lab.commands.comparisons import OPTIONS, OPTIONS_HELP, request
from tierup.lab.commands.output import existing, help_text, print_json, warn
from tierup.lab.errors import LabError, ReadError
from tierup.lab.report.embed import image
from tierup.lab.report.figures import Shares, draw
from tierup.lab.report.markdown import markdown
from tierup.lab.report.page import html
from tierup.lab.results.json_files import read_json
from tierup.runtime.args import parse

HELP: Final = f"""\
usage: tierup lab report [options] BASE HEAD…

Writes a comparison as one HTML page that needs no other file and no network.

  --output FILE         the page (report.html)
  --markdown FILE       also a summary for a pull request
  --figures FOLDER      also each figure as SVG and PNG
  --profile FILE        also where the time goes: what `tierup lab characterize --json` printed
{OPTIONS_HELP}\
  --json                print plain data: what `tierup lab compare --json` prints, and the files written
"""

_OPTIONS: Final = OPTIONS | {"--output": True, "--markdown": True, "--figures": True, "--profile": True}


def prepare(words: Sequence[str]) -> Callable[[], int]:
    """Reads the command line; the result writes the files."""
    arguments = parse(words, _OPTIONS, mixed=True)
    if arguments.flags & {"-h", "--help"}:
        return help_text(HELP)
    wanted = request("report", arguments)
    profile = arguments.value("--profile")
    profile_path = existing(profile) if profile is not None else None
    page, summary, folder = (arguments.value(f"--{option}") for option in ("output", "markdown", "figures"))

    def work() -> int:
        shares = _read_shares(profile_path) if profile_path is not None else None
        compared = wanted.load()
        figures = draw(compared.heads, shares)
        files = {Path(page or "report.html"): html(compared.base, compared.heads, figures).encode()}
        if summary is not None:
            files[Path(summary)] = markdown(compared.base, compared.heads).encode()
        if folder is not None:
            for figure in figures:
                files |= {Path(folder, f"{figure.name}.{form}"): image(figure, form) for form in ("svg", "png")}
        for path, data in files.items():
            _write(path, data)
        if "--json" in arguments.flags:
            print_json({**compared.to_dict(), "written": [str(path) for path in files]})
        else:
            print("".join(f"wrote {path}\n" for path in files), end="")
        warn("report", [f"partial results: {problem}" for problem in compared.problems])
        return 1 if compared.problems else 0

    return work


def _read_shares(path: Path) -> Shares:
    """The shares of categories by benchmark. Raises ReadError."""
    data: Any = read_json(path)
    shares = data.get("shares") if isinstance(data, dict) else None
    if not (isinstance(shares, dict) and all(_are_shares(of) for of in shares.values())):
        raise ReadError(f'{path} is no profile: it has to have {{"shares": {{BENCHMARK: {{CATEGORY: share}}}}}}')
    return shares


def _are_shares(of: object) -> bool:
    return isinstance(of, dict) and all(isinstance(share, (int, float)) and 0 <= share <= 1 for share in of.values())


def _write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all: what was there stays until the new one is complete. Raises LabError."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        if temporary.is_file():
            temporary.unlink()
        raise LabError(f"cannot write {path}: {error.strerror}") from None
