"""Comparisons for people who were not there: a page, a summary for a pull request, figures for a paper.

In: comparisons of a base and its heads, and, if there are any, shares of categories by benchmark. Out: one HTML page that needs nothing
else, Markdown, SVG and PNG. `figures.py` draws (matplotlib), `embed.py` makes a figure part of the page, `page.py` and its template lay
it out (jinja2), `markdown.py` writes the summary.
"""
