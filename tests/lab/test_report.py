"""`tierup lab report`: a page that stands alone, Markdown, figures."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from lab.files import noisy, pyperf_data, write, write_pyperf
from tierup.cli.main import main

pytest.importorskip("pyperf")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

NAMES = [f"bench_{letter}" for letter in "abcdefghij"] + ["<script>alert('$x$')</script>", "a|b`c`"]
FIGURES = ["groups", "benchmarks", "histogram", "series", "categories", "pies"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Everything that the command writes, of a base and two heads with odd names."""
    folder = tmp_path_factory.mktemp("report")
    base = write_pyperf(folder / "base.json", noisy(NAMES, seed=1), memory=1000)
    heads = [write_pyperf(folder / f"head{k}.json", noisy(NAMES, seed=2 + k, ratio=1.1 - 0.2 * k), memory=1100) for k in range(2)]
    groups = write(folder / "groups.json", {"<b>": NAMES[:9], "none": ["absent"]})
    shares = {name: {"interpreter": 0.5, "gc": 0.3, "<i>": 0.2} for name in NAMES}
    profile = write(folder / "profile.json", {"shares": shares})
    outputs = [folder / name for name in ("page.html", "summary.md", "figures")]
    options = ["--groups", groups, "--profile", profile, "--output", outputs[0], "--markdown", outputs[1], "--figures", outputs[2]]
    assert main(["lab", "report", *map(str, [base, *heads, *options])]) == 0
    return outputs


class Reader(html.parser.HTMLParser):
    """The elements of a page, their identifiers, what they refer to, and their text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.ids, self.references, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "src", "xlink:href"):
                self.references.append(value)

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_nothing_else(written):
    text = written[0].read_text(encoding="utf-8")
    page = Reader(text)
    assert not {"script", "link", "img", "iframe"} & set(page.elements)
    assert all(reference.startswith("#") for reference in page.references)
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(page.ids)
    assert "@import" not in text and "url(http" not in text


def test_identifiers_are_there_once(written):
    ids = Reader(written[0].read_text(encoding="utf-8")).ids
    assert len(ids) == len(set(ids))


def test_names_are_text_and_nothing_else(written):
    text = written[0].read_text(encoding="utf-8")
    page = Reader(text)
    for name in NAMES:
        assert name in page.text
    assert "<script" not in text and "<b>" not in text and "<i>" not in text


def test_the_page_has_each_figure_in_its_own_colours(written):
    text = written[0].read_text(encoding="utf-8")
    assert text.count("<svg") == len(FIGURES) == text.count('role="img"')
    assert "currentColor" in text and "var(--rule)" in text and "#010203" not in text
    assert "prefers-color-scheme: dark" in text and 'name="viewport"' in text


def test_figures_are_files_for_a_paper(written):
    assert sorted(path.name for path in written[2].iterdir()) == sorted(f"{name}.{form}" for name in FIGURES for form in ("svg", "png"))
    for name in FIGURES:
        svg = ET.parse(written[2] / f"{name}.svg")
        assert svg.getroot().tag.endswith("svg")
        assert (written[2] / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_markdown_is_tables_of_as_many_cells(written):
    text = written[1].read_text(encoding="utf-8")
    assert "### head0 against base" in text and "### head1 against base" in text
    assert re.search(r"^\| all \| 12 \| 1\.\d+x slower \|", text, re.M) and re.search(r"^\| all \| 12 \| 1\.\d+x faster \|", text, re.M)
    cells = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| bench")}
    assert cells <= {6, 9}
    assert "| \\<b\\> | 9 |" in text and "<b>" not in text
    assert "- none: not in both files: absent" in text


def test_the_same_data_are_the_same_page(written, tmp_path):
    folder = written[0].parent
    options = ["--groups", folder / "groups.json", "--profile", folder / "profile.json", "--output", tmp_path / "again.html"]
    assert main(["lab", "report", *map(str, [folder / "base.json", folder / "head0.json", folder / "head1.json", *options])]) == 0
    assert (tmp_path / "again.html").read_bytes() == written[0].read_bytes()


def test_partial_results_are_marked_on_the_page(tmp_path, capsys):
    text = json.dumps(pyperf_data(noisy(["a", "b"], seed=2)))
    base, cut = write_pyperf(tmp_path / "base.json", noisy(["a", "b"], seed=1)), write(tmp_path / "cut.json", text[: text.index('"b"')])
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    assert main(["lab", "report", str(base), str(cut), "--output", str(page), "--markdown", str(summary), "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["written"] == [str(page), str(summary)] and "partial results" in err
    assert "Partial results" in page.read_text(encoding="utf-8") and "**partial results:**" in summary.read_text(encoding="utf-8")


def test_files_with_nothing_in_common_make_a_page_that_says_so(tmp_path):
    base, head = (write_pyperf(tmp_path / f"{name}.json", noisy([name], seed=1)) for name in ("one", "two"))
    assert main(["lab", "report", str(base), str(head), "--output", str(tmp_path / "page.html")]) == 0
    assert "all: no benchmarks" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path):
    base = write_pyperf(tmp_path / "base.json", noisy(["a"], seed=1))
    old = write(tmp_path / "page.html", "old")
    # No file of this process may be longer than a page is: as on a full disk, the write fails in the middle.
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); from tierup.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-B", "-c", program, "lab", "report", base, base, "--output", old]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"tierup lab report: cannot write {old}: File too large\n")
    assert old.read_text(encoding="utf-8") == "old"
    assert not (tmp_path / "page.html.tmp").exists()


@pytest.mark.parametrize("content", ["[]", "{}", '{"shares": []}', '{"shares": {"a": 1}}', '{"shares": {"a": {"gc": 2}}}'])
def test_other_files_are_no_profile(tmp_path, capsys, content):
    base, profile = write_pyperf(tmp_path / "base.json", noisy(["a"], seed=1)), write(tmp_path / "profile.json", content)
    assert main(["lab", "report", str(base), str(base), "--profile", str(profile), "--output", str(tmp_path / "page.html")]) == 1
    assert "is no profile" in capsys.readouterr().err
