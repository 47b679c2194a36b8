"""Reading profiles: CSV reports, text of perf report and perf script."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierup.lab.errors import ReadError
from tierup.lab.profile.model import Profile, Row, merge
from tierup.lab.profile.readers import csv_reports
from tierup.lab.profile.readers.read import benchmark_name, read, read_folder
from tierup.lab.profile.symbols import printable

from ..errors import one_line

OLD = (
    "self,children,object,symbol\n60.5,88.96,python,_PyEval_EvalFrameDefault\n39.5,41.0,libc-2.31.so,malloc\n0.0,0.01,python,f (inlined)\n"
)
NEW = "self,pid,command,shared_obj,symbol\n700,12,python,python,k_mul\n300,12,python,[kernel.kallsyms],clear_page_erms\n"

REPORT = """\
# To display the perf.data header info, please use --header/--header-only options.
#
#
# Total Lost Samples: 0
#
# Samples: 1K of event 'cpu-clock'
# Event count (approx.): 1000
#
# Overhead        Period      Pid:Command  Symbol                               Shared Object         IPC   [IPC Coverage]
# ........  ............  ...............  ...................................  ....................  ....................
#
    60.00%           600     8604:python   [.] _PyEval_EvalFrameDefault         libpython3.13.so.1.0  -      -            
    30.00%           300     8604:python   [.] visit(int, std::pair<int, int>)  libfoo bar.so         -      -            
    10.00%           100     8604:python   [k] finish_task_switch.isra.0        [kernel.kallsyms]     -      -            


#
# (Tip: Sampling by period: perf record -c <n>)
#
"""  # noqa: W291

CHILDREN = """\
# Children      Self  Command  Shared Object         Symbol
# ........  ........  .......  ....................  ..............................
#
    99.30%    60.00%  python   libpython3.13.so.1.0  [.] _PyEval_EvalFrameDefault
            |
            ---main
               |
               |--55.00%--f
    40.00%    40.00%  python   [JIT] tid 8604        [.] 0x00007f0000001000
"""

SCRIPT = """\
          python  8604/8604  49082.791474:    1001001 cpu-clock:      7f50ee5b6069 do_lookup_x+0x309 (/usr/lib/ld-linux-x86-64.so.2)
   a b thread 1  8604/8611 [003] 49082.792472:    1001001 cpu-clock:  ffffffff8158c3e1 next_uptodate_folio+0xc1 ([kernel.kallsyms])
          python  8604/8604  49082.793468:    1001001 cycles:u:      7f50ede88300 PyUnicode_New@plt+0x0 (/usr/lib/libpython3.13.so.1.0)
          python  8604/8604  49082.798477:    1001001 cpu-clock:      7f6d2fef168d [unknown] (/memfd:tierup (deleted))
          python  8604/8604  49082.79947:    1001001 cpu-clock:      7f6d2fef1690 void (anonymous namespace)::f(int)+0x1f (/usr/lib/libx.so)
"""

CHAINS = """\
python  8604 49082.791474:    1001001 cpu-clock:
\t    7f50ee069ec0 inner+0x3 (inlined)
\t    7f50ee069ec0 _PyEval_EvalFrameDefault+0x30 (/usr/lib/libpython3.13.so.1.0)
\t    7f50ee069f00 main+0x30 (/usr/bin/python3.13)

python  8604 49082.792474:    1001001 cpu-clock:
\tffffffff8158c3e1 next_uptodate_folio+0xc1 ([kernel.kallsyms])

"""


def write(tmp_path, text, name="bench.perf.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(profile):
    return [(row.object, row.symbol, row.weight) for row in profile.rows]


def test_an_old_report(tmp_path):
    profile = read(write(tmp_path, OLD))
    assert (profile.name, profile.unit, profile.problems) == ("bench", "percent", ())
    assert rows(profile) == [("python", "_PyEval_EvalFrameDefault", 60.5), ("libc-2.31.so", "malloc", 39.5), ("python", "f (inlined)", 0.0)]


def test_a_new_report(tmp_path):
    profile = read(write(tmp_path, NEW))
    assert (profile.unit, profile.problems) == ("period", ())
    assert profile.rows[0] == Row("python", "k_mul", 700.0, 12, "python")


@pytest.mark.parametrize("head", ["self,children,shared obj,symbol", "Self, Children, Shared Obj, Symbol", "self,dso,symbol"])
def test_heads_differ(tmp_path, head):
    line = "100,python,f" if "dso" in head else "100,1,python,f"
    assert rows(read(write(tmp_path, f"{head}\n{line}\n"))) == [("python", "f", 100.0)]


@pytest.mark.parametrize("encoded", [OLD.encode("utf-8-sig"), OLD.encode("utf-16"), OLD.replace("\n", "\r\n").encode()])
def test_other_encodings_and_line_ends(tmp_path, encoded):
    profile = read(write(tmp_path, encoded))
    assert (len(profile.rows), profile.problems) == (3, ())


def test_symbols_with_commas_and_quotes(tmp_path):
    text = 'self,children,object,symbol\n50,0,x.so,f(int, char)\n30,0,x.so,"g(int, char)"\n20,0,"a,b.so",operator"" _x\n'
    assert rows(read(write(tmp_path, text))) == [
        ("x.so", "f(int, char)", 50.0),
        ("x.so", "g(int, char)", 30.0),
        ("a,b.so", 'operator"" _x', 20.0),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-3.1,0,python,f", "line 3: the share -3.1 is negative"),
        ("nan,0,python,f", "line 3: the share nan is not finite"),
        ("inf,0,python,f", "line 3: the share inf is not finite"),
        ("zwölf,0,python,f", "line 3: 'zwölf' is no number"),
        ("12,0", "line 3: 2 columns where there should be 4"),
        ("\x1b[2J,0,python,f", r"line 3: '\x1b[2J' is no number"),
    ],
)
def test_a_line_that_is_wrong_is_left_out_and_said(tmp_path, line, message):
    profile = read(write(tmp_path, f"self,children,object,symbol\n99,0,python,k_mul\n{line}\n"))
    assert rows(profile) == [("python", "k_mul", 99.0)]
    assert len(profile.problems) == 1 and message in profile.problems[0] and "\x1b" not in profile.problems[0]


def test_many_wrong_lines_are_one_complaint(tmp_path):
    profile = read(write(tmp_path, "self,children,object,symbol\n99,0,python,k_mul\n" + "-1,0,python,f\n" * 500))
    assert profile.problems == ("left out 500 lines, the first is line 3: the share -1 is negative",)


@pytest.mark.parametrize(("share", "word"), [("40", "cut off"), ("170", "twice")])
def test_shares_that_cannot_be_all(tmp_path, share, word):
    (problem,) = read(write(tmp_path, f"self,children,object,symbol\n{share},0,python,k_mul\n")).problems
    assert f"{share}.0 %" in problem and word in problem


def test_a_report_that_was_cut_off_gives_what_is_left(tmp_path):
    text = OLD + "0.3,0,python,k_mul\n" * 10
    profile = read(write(tmp_path, text[:-14]))
    assert len(profile.rows) == 12 and "cut off" in profile.problems[0]


def test_wrong_bytes_are_replaced_and_said(tmp_path):
    profile = read(write(tmp_path, OLD.encode().replace(b"malloc", b"mall\xffc")))
    assert profile.rows[1].symbol == "mall\ufffdc"
    assert profile.problems == ("line 3: bytes that are not UTF-8 were replaced",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x7fELF\x00\x00\x00\x00", "is no text"),
        (b"hello\nworld\n", "is none: a profile is"),
        (b'{"benchmarks": []}', "is none: a profile is"),
        (b"self,children,object,symbol\n", "no function with time of its own"),
        (b"self,children,object,symbol\n0,0,python,f\n", "no function with time of its own"),
        (b"self,children,object,symbol\n-1,0,python,f\n", "no function with time of its own in it (left out line 2"),
        (b"self,children,symbol\n1,1,f\n", "no column 'object'"),
        (b"self,chil\rdren,object,symbol\n1,1,python,f\n", "the first line names no columns: new-line character"),
        (b"children,object,symbol,self\n1,python,f,1\n", "the symbol has to be the last column"),
        (b"itself,children,object,a symbol\n1,python,f,1\n", "no column 'self'"),
    ],
)
def test_a_file_of_no_use_is_said_in_one_line(tmp_path, content, message):
    path = write(tmp_path, content)
    with one_line(ReadError, message, str(path)):
        read(path)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ReadError, match=r"cannot read .*absent.csv.*No such file"):
        read(tmp_path / "absent.csv")


TEXTS = (
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=12).map(str.strip).filter(bool)
)
WEIGHTS = st.floats(0, 1e12, allow_nan=False)


@given(st.lists(st.builds(Row, TEXTS, TEXTS, WEIGHTS, st.none() | st.integers(0, 2**22), TEXTS | st.just("")), min_size=1))
def test_what_is_written_is_read_again(written):
    profile = Profile("b", tuple(written), "period")
    if profile.total > 0:
        again = csv_reports.parse("b", csv_reports.to_csv(profile))
        assert [(printable_row(row)) for row in written] == list(again.rows)
        assert (again.unit, again.problems) == ("period", ())


def printable_row(row):
    return Row(printable(row.object), printable(row.symbol), row.weight, row.pid, printable(row.command))


@given(st.binary(max_size=300))
def test_any_bytes_give_a_profile_or_one_line(tmp_path_factory, content):
    path = write(tmp_path_factory.mktemp("any"), b"self,children,object,symbol\n50,1,python,f\n" + content)
    try:
        profile = read(path)
    except ReadError as error:
        assert "\n" not in str(error)
    else:
        assert all(math.isfinite(row.weight) and row.weight >= 0 for row in profile.rows)


def test_text_of_perf_report(tmp_path):
    profile = read(write(tmp_path, REPORT, "b.txt"))
    assert (profile.name, profile.unit, profile.problems) == ("b", "period", ())
    assert list(profile.rows) == [
        Row("libpython3.13.so.1.0", "_PyEval_EvalFrameDefault", 600.0, 8604, "python"),
        Row("libfoo bar.so", "visit(int, std::pair<int, int>)", 300.0, 8604, "python"),
        Row("[kernel.kallsyms]", "finish_task_switch.isra.0", 100.0, 8604, "python"),
    ]


def test_text_of_perf_report_with_call_chains(tmp_path):
    profile = read(write(tmp_path, CHILDREN, "b.txt"))
    assert profile.unit == "percent"
    assert rows(profile) == [("libpython3.13.so.1.0", "_PyEval_EvalFrameDefault", 60.0), ("[JIT] tid 8604", "0x00007f0000001000", 40.0)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("60.00%           600 ", "60.00%          -600 ", "line 12: the share -600 is negative"),
        ("60.00%           600 ", "60.00%           nan ", "line 12: the share nan is not finite"),
        (
            "_PyEval_EvalFrameDefault         libpython3.13.so.1.0  -      -            ",
            "_PyEv",
            "line 12: there is no symbol or no object",
        ),
    ],
)
def test_wrong_rows_of_perf_report(tmp_path, old, new, message):
    assert old in REPORT
    profile = read(write(tmp_path, REPORT.replace(old, new), "b.txt"))
    assert len(profile.rows) == 2 and message in profile.problems[0]


def test_the_first_of_several_events_is_read(tmp_path):
    text = REPORT + REPORT[REPORT.index("# Samples") :].replace("cpu-clock", "page-faults").replace("   600 ", "   999 ")
    profile = read(write(tmp_path, text, "b.txt"))
    assert [row.weight for row in profile.rows] == [600.0, 300.0, 100.0]
    assert profile.problems == ("of the events cpu-clock, page-faults only the first was read",)


@pytest.mark.parametrize("column", ["Symbol", "Shared Object", "Period"])
def test_a_perf_report_without_a_column(tmp_path, column):
    text = REPORT.replace(column, "X" * len(column)).replace("Overhead", "Abcdefgh")
    with pytest.raises(ReadError, match=r"make it by: perf report --stdio -g none -s pid,symbol,dso"):
        read(write(tmp_path, text, "b.txt"))


def test_text_of_perf_script(tmp_path):
    profile = read(write(tmp_path, SCRIPT, "b.script.txt"))
    assert (profile.name, profile.unit, profile.problems) == ("b", "period", ())
    assert list(profile.rows) == [
        Row("/usr/lib/ld-linux-x86-64.so.2", "do_lookup_x", 1001001, 8604, "python"),
        Row("[kernel.kallsyms]", "next_uptodate_folio", 1001001, 8604, "a b thread 1"),
        Row("/usr/lib/libpython3.13.so.1.0", "PyUnicode_New@plt", 1001001, 8604, "python"),
        Row("/memfd:tierup (deleted)", "[unknown]", 1001001, 8604, "python"),
        Row("/usr/lib/libx.so", "void (anonymous namespace)::f(int)", 1001001, 8604, "python"),
    ]


def test_call_chains_of_perf_script_count_for_their_innermost_function(tmp_path):
    profile = read(write(tmp_path, CHAINS, "b.txt"))
    assert list(profile.rows) == [
        Row("/usr/lib/libpython3.13.so.1.0", "_PyEval_EvalFrameDefault", 1001001, None, "python"),
        Row("[kernel.kallsyms]", "next_uptodate_folio", 1001001, None, "python"),
    ]


def test_a_perf_script_that_was_cut_off(tmp_path):
    profile = read(write(tmp_path, SCRIPT[: SCRIPT.index(" void") + 9], "b.txt"))
    assert len(profile.rows) == 4
    assert profile.problems == ("left out line 5: a sample whose place cannot be read (the file may be cut off)",)


def test_samples_without_periods(tmp_path):
    profile = read(write(tmp_path, SCRIPT.replace("    1001001 ", " ") * 2, "b.txt"))
    assert profile.unit == "samples" and [row.weight for row in profile.rows] == [2.0] * 5


@given(st.sampled_from([REPORT, CHILDREN, SCRIPT, CHAINS, OLD, NEW]), st.integers(0, 2000), st.integers(0, 2000), st.text(max_size=5))
def test_any_cut_gives_a_profile_or_one_line(tmp_path_factory, text, start, end, new):
    path = write(tmp_path_factory.mktemp("cut"), text[:start] + new + text[end:], "b.txt")
    try:
        profile = read(path)
    except ReadError as error:
        assert "\n" not in str(error)
    else:
        assert all(math.isfinite(row.weight) and row.weight >= 0 for row in profile.rows) and profile.total > 0


@pytest.mark.parametrize(
    ("name", "bench"),
    [
        ("go.perf.csv", "go"),
        ("python_startup_no_site.csv", "python_startup_no_site"),
        ("2to3.perf.data", "2to3"),
        ("a.b.perf.txt", "a.b"),
        ("x.perf.script.txt", "x"),
        ("perf.data", "perf"),
        ("UPPER.CSV", "UPPER"),
        ("über schall.csv", "über schall"),
    ],
)
def test_names_of_benchmarks(name, bench):

    assert benchmark_name(Path(name)) == bench


def test_a_folder_in_which_one_file_is_wrong(tmp_path):
    write(tmp_path, OLD, "good.perf.csv")
    write(tmp_path, "", "empty.perf.csv")
    write(tmp_path, NEW, "good.csv")
    write(tmp_path, "{}", "results.json")
    (tmp_path / "folder.csv").mkdir()
    found = read_folder(tmp_path)
    assert [profile.name for profile in found.profiles] == ["good"]
    assert len(found.failed) == 2
    assert "empty.perf.csv is empty" in found.failed[0] and "another profile of good" in found.failed[1]


def test_a_folder_without_profiles(tmp_path):
    with pytest.raises(ReadError, match="there is no profile in"):
        read_folder(tmp_path)
    with pytest.raises(ReadError, match="cannot read"):
        read_folder(tmp_path / "absent")


def test_recordings_are_added():
    one = Profile("b", (Row("python", "f", 1.0),), "period", "timed", ("p",), ("n",))
    both = merge("b", [one, one])
    assert (both.total, both.region, both.problems, both.notes) == (2.0, "timed", ("p",), ("n",))
    with pytest.raises(ValueError, match="percent and period"):
        merge("b", [one, Profile("b", one.rows, "percent")])
