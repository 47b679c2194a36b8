"""The HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from tierup.lab.compare import Comparison
from tierup.lab.errors import MissingLibraryError
from tierup.lab.report.embed import inline_svg
from tierup.lab.report.figures import Figure
from tierup.lab.results.model import Results
from tierup.lab.statistics.verdict import RELIABILITIES, percent
from tierup.lab.words import factor, quantity, ratio, reliability, remarks, times


def html(base: Results, heads: Mapping[str, Comparison], figures: Sequence[Figure]) -> str:
    """A page that needs no other file and no network. Raises MissingLibraryError without jinja2."""
    try:
        import jinja2
    except ImportError:
        raise MissingLibraryError("jinja2") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(factor=factor, ratio=ratio, reliability=reliability, times=times, percent=percent)
    environment.globals.update(quantity=quantity, remarks=remarks, levels=RELIABILITIES)
    template = environment.from_string(files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8"))
    drawn = [(figure, inline_svg(figure)) for figure in figures]
    problems = [*base.problems, *(problem for comparison in heads.values() for problem in comparison.head.problems)]
    page: str = template.render(base=base, heads=heads, figures=drawn, problems=problems)
    return page
