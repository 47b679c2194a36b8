"""The figures, drawn by matplotlib.

Text and axes are drawn in INK and rules in RULE, two colours that occur nowhere else: on the page they become the page's own, in the dark
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np

from tierup.lab.compare import CONFIDENCE, Comparison, Summary
from tierup.lab.errors import MissingLibraryError
from tierup.lab.statistics.bootstrap import interval
from tierup.lab.statistics.verdict import percent

INK: Final = "#010203"
RULE: Final = "#989796"

HEADS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of heads, told apart by colour-blind people and on either ground (Okabe and Ito, 2008)."""

CATEGORIES: Final = (
    *("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#ee8866", "#44bb99", "#ffaabb"),
    *("#99ddff", "#eedd88", "#bbcc33", "#aaaa00", "#77aadd", "#882255", "#117733", "#ddcc77", "#332288", "#88ccee"),
)
"""Colours of categories, the largest first; those beyond share grey."""

_WIDTH: Final = 7.0
_STYLE: Final[Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "tierup",
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": RULE,
    "grid.alpha": 0.4,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}

Shares = Mapping[str, Mapping[str, float]]
"""Benchmark → category → share of its time, 0 to 1."""


@dataclass(frozen=True)
class Figure:
    """A figure with the words that go with it."""

    name: str
    title: str
    caption: str
    drawing: Any
    """matplotlib's Figure."""


def draw(heads: Mapping[str, Comparison], shares: Shares | None = None) -> list[Figure]:
    """All figures that there is something for. Raises MissingLibraryError without matplotlib."""
    with _style():
        figures = [_groups(heads), _benchmarks(heads), _histogram(heads)]
        if len(heads) > 1:
            figures.append(_series(heads))
        if shares:
            figures += [_categories(shares), _pies(shares)]
    return figures


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingLibraryError("matplotlib") from None
    with mpl.rc_context(_STYLE):
        yield


def _canvas(height: float, width: float = _WIDTH) -> tuple[Any, Any]:
    """A figure of that size in inches, and its axes. Not by pyplot, which would look for a display and keep the figure."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(drawing)
    return drawing, drawing.add_subplot()


def _summaries(comparison: Comparison) -> list[tuple[str, Summary]]:
    return [("all", comparison.whole), *comparison.groups.items()]


def _groups(heads: Mapping[str, Comparison]) -> Figure:
    rows = [group for group, _ in _summaries(next(iter(heads.values())))]
    drawing, axes = _canvas(1.1 + 0.16 * len(rows) * (1 + len(heads)))
    for number, (name, comparison) in enumerate(heads.items()):
        points = [(row, summary) for row, (_, summary) in enumerate(_summaries(comparison)) if summary.geometric_mean is not None]
        offset = (number - (len(heads) - 1) / 2) * 0.8 / max(2, len(heads))
        for row, summary in points:
            if summary.interval_of_such:
                axes.plot(summary.interval_of_such, [row + offset] * 2, color=_head_colour(number), linewidth=1, alpha=0.6)
            if summary.interval:
                axes.plot(summary.interval, [row + offset] * 2, color=_head_colour(number), linewidth=3.5, solid_capstyle="butt")
        centres = [summary.geometric_mean for _, summary in points]
        axes.plot(centres, [row + offset for row, _ in points], "o", markersize=4, color=_head_colour(number), label=name)
    _finish_rows(axes, rows, len(heads))
    caption = (
        f"Geometric means of head / base; right of 1 is slower. Thick: {percent(CONFIDENCE)} interval for these benchmarks; "
        "thin: for such programs as these."
    )
    return Figure("groups", "All benchmarks and groups", caption, drawing)


def _benchmarks(heads: Mapping[str, Comparison]) -> Figure:
    first = next(iter(heads.values()))
    rows = sorted(first.pairs, key=lambda name: -first.pairs[name].ratio)
    rows += [name for comparison in heads.values() for name in comparison.pairs if name not in first.pairs and name not in rows]
    drawing, axes = _canvas(1.1 + 0.15 * max(1, len(rows)))
    place = {name: row for row, name in enumerate(rows)}
    for number, (head, comparison) in enumerate(heads.items()):
        for significant in (True, False):
            chosen = [pair for pair in comparison.pairs.values() if pair.samples.significant is significant]
            at = [place[pair.name] for pair in chosen]
            for pair, row in zip(chosen, at, strict=True):
                if pair.draws is not None:
                    axes.plot(interval(pair.draws, CONFIDENCE), [row, row], color=_head_colour(number), linewidth=1, alpha=0.7)
            face = _head_colour(number) if significant else "none"
            axes.plot(
                [pair.ratio for pair in chosen], at, "o", markersize=3.5, markerfacecolor=face, color=_head_colour(number),
                label=head if significant else None,
            )  # fmt: skip
    _finish_rows(axes, rows, len(heads))
    caption = f"Means of head / base with {percent(CONFIDENCE)} intervals; right of 1 is slower. Hollow: the difference is not significant."
    return Figure("benchmarks", "Each benchmark", caption, drawing)


def _finish_rows(axes: Any, rows: Sequence[str], heads: int) -> None:
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.axvline(1, color=RULE, linewidth=1)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    _ratio_scale(axes)
    if heads > 1:
        axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2)


def _ratio_scale(axes: Any) -> None:
    """A logarithmic scale of ratios, on which faster and slower are as wide as each other."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 2.5, 5, 10]) if high < 4 * low else LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}x"))
    axes.set_xlim(low, high)


def _histogram(heads: Mapping[str, Comparison]) -> Figure:
    drawing, axes = _canvas(2.6)
    logarithms = {head: np.log([pair.ratio for pair in comparison.pairs.values()]) for head, comparison in heads.items()}
    everything = np.concatenate(list(logarithms.values()))
    if len(everything):
        edges = np.linspace(min(everything.min(), -0.005), max(everything.max(), 0.005), 41)
        for number, (head, values) in enumerate(logarithms.items()):
            axes.hist(np.exp(values), np.exp(edges), histtype="stepfilled", color=_head_colour(number), alpha=0.45, label=head)
    axes.axvline(1, color=RULE, linewidth=1)
    _ratio_scale(axes)
    axes.set_ylabel("benchmarks")
    if len(heads) > 1:
        axes.legend()
    return Figure("histogram", "How the ratios are spread", "Benchmarks by head / base; right of 1 is slower.", drawing)


def _series(heads: Mapping[str, Comparison]) -> Figure:
    drawing, axes = _canvas(3.0)
    groups = [group for group, _ in _summaries(next(iter(heads.values())))]
    for number, group in enumerate(groups[: len(HEADS)]):
        summaries = [dict(_summaries(comparison))[group] for comparison in heads.values()]
        points = [(place, summary) for place, summary in enumerate(summaries) if summary.geometric_mean is not None]
        where = [place for place, _ in points]
        axes.plot(where, [summary.geometric_mean for _, summary in points], "o-", markersize=4, color=_head_colour(number), label=group)
        bounded = [(place, summary.interval) for place, summary in points if summary.interval]
        lows, highs = ([bounds[side] for _, bounds in bounded] for side in (0, 1))
        axes.fill_between([place for place, _ in bounded], lows, highs, color=_head_colour(number), alpha=0.2, linewidth=0)
    axes.axhline(1, color=RULE, linewidth=1)
    axes.set_xticks(range(len(heads)), heads, rotation=20, ha="right")
    axes.set_ylabel("head / base")
    axes.grid(axis="y")
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    caption = "Geometric means of head / base, in the order in which the heads were given" + (
        f"; the first {len(HEADS)} groups." if len(groups) > len(HEADS) else "."
    )
    return Figure("series", "From head to head", caption, drawing)


def _colours(shares: Shares) -> dict[str, str]:
    """Category → colour, those with the largest share over all benchmarks first."""
    totals: dict[str, float] = {}
    for of in shares.values():
        for category, share in of.items():
            totals[category] = totals.get(category, 0.0) + share
    ordered = sorted(totals, key=lambda category: -totals[category])
    return {category: CATEGORIES[k] if k < len(CATEGORIES) else "#999999" for k, category in enumerate(ordered)}


def _categories(shares: Shares) -> Figure:
    colours = _colours(shares)
    leading = next(iter(colours))
    rows = sorted(shares, key=lambda name: -shares[name].get(leading, 0.0))
    drawing, axes = _canvas(1.4 + 0.15 * len(rows))
    left = np.zeros(len(rows))
    for category, colour in colours.items():
        widths = np.array([shares[name].get(category, 0.0) for name in rows])
        axes.barh(range(len(rows)), widths, left=left, color=colour, height=0.85, label=category)
        left += widths
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, max(1.0, float(left.max())))
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    drawing.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return Figure("categories", "Where the time goes", "Share of each category in the benchmark's time.", drawing)


def _pies(shares: Shares) -> Figure:
    from matplotlib.patches import Wedge

    colours = _colours(shares)
    columns = 6
    rows = ceil(len(shares) / columns)
    drawing, axes = _canvas(1.3 * rows + 0.2)
    for number, (name, of) in enumerate(shares.items()):
        x, y = number % columns, -(number // columns) * 1.15
        angle = 90.0
        for category in colours:
            share = of.get(category, 0.0)
            if share >= 0.002:
                axes.add_patch(Wedge((x, y), 0.4, angle - 360 * share, angle, width=0.22, facecolor=colours[category]))
                angle -= 360 * share
        axes.text(x, y - 0.5, name if len(name) <= 20 else f"{name[:19]}…", ha="center", va="center", fontsize=6)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(-(rows - 1) * 1.15 - 0.6, 0.5)
    axes.set_aspect("equal")
    axes.axis("off")
    return Figure("pies", "Each benchmark's time", "The same by benchmark; the colours are those of the bars above.", drawing)


def _head_colour(number: int) -> str:
    return HEADS[number % len(HEADS)]
