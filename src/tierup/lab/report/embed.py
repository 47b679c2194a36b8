"""A figure as a part of a page, or as a file."""

from __future__ import annotations

import io
import re
from typing import Final, Literal

from tierup.lab.report.figures import INK, RULE, Figure

_START: Final = re.compile(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>')
_REFERENCE: Final = re.compile(r'(\bid="|url\(#|href="#)')


def inline_svg(figure: Figure) -> str:
    """The figure as an SVG element: as wide as there is room, in the page's colours, with identifiers of its own."""
    text = _rendered(figure, "svg").decode("utf-8")
    element = text[text.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = _REFERENCE.sub(rf"\g<1>{figure.name}-", element)
    element = _START.sub(r'<svg viewBox="\1" role="img" xmlns:xlink="http://www.w3.org/1999/xlink">', element, count=1)
    return element.replace(INK, "currentColor").replace(RULE, "var(--rule)")


def image(figure: Figure, form: Literal["svg", "png"]) -> bytes:
    """The figure as a file for a paper: black on white or on nothing, 300 dots an inch."""
    return _rendered(figure, form).replace(INK.encode(), b"#000000")


def _rendered(figure: Figure, form: str) -> bytes:
    import matplotlib as mpl

    out = io.BytesIO()
    # Without the date, the same data give the same bytes.
    metadata = {"Date": None} if form == "svg" else None
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": figure.name}):
        figure.drawing.savefig(out, format=form, dpi=300, metadata=metadata)
    return out.getvalue()
