"""The report: what its tables, sentences and files say about a made-up study."""

import random
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from made_up_study import result, study, times_of, write_study

from cbrank import datasets, page
from cbrank.study import report
from cbrank.study.report import published
from cbrank.study.report.findings import headline, points
from cbrank.study.report.names import looks, ordered_methods
from cbrank.study.report.score_tables import score_table
from cbrank.study.report.scores import mean_scores, ranking
from cbrank.study.report.study import read_study
from cbrank.study.times_file import write_times


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Report on a study with all there is: rivals, a sample, a failure."""
    lines = study()
    failed = {"status": "failed", "error": "ValueError: a < b", "auc": ""}
    lines = [x | failed if _is(x, "german", "SCW", 1) else x for x in lines]
    folder = write_study(tmp_path_factory.mktemp("report"), lines)
    write_times(folder / "times.csv", times_of(lines))
    assert report.write(folder) == folder / "report.html"
    return folder


def _is(line, dataset, method, run):
    return (line["dataset"], line["method"], line["run"]) == (dataset, method, run)


def _row(folder, table, name):
    text = (folder / "tables" / f"{table}.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_paper_s_figures_are_all_there():
    assert [len(table.figures) for table in published.TABLES] == [90, 90, 24, 24]
    for table in published.TABLES:
        sets = dict.fromkeys(dataset for dataset, _ in table.figures)
        assert set(sets) == set(datasets.names(table.kind))
    # Sums over a column tell a slip of a digit.
    totals = [round(sum(mean for mean, _ in t.figures.values()), 3) for t in published.TABLES]
    spreads = [round(sum(sd for _, sd in t.figures.values()), 3) for t in published.TABLES]
    assert totals == [73.124, 72.256, 22.719, 21.814]
    assert spreads == [2.861, 2.052, 0.149, 0.145]


@pytest.mark.parametrize(
    ("number", "dataset", "method", "figure"),
    [
        (3, "acoustic", "CBR_RS", (0.879, 0.006)),
        (3, "australian", "OPAUC", (0.735, 0.138)),
        (3, "segment", "AdaOAM", (0.855, 0.008)),
        (4, "acoustic", "CBR_RS", (0.844, 0.005)),
        (4, "spambase", "OAM_seq", (0.849, 0.053)),
        (5, "sector", "OPAUCr", (0.908, 0.013)),
        (6, "reuters", "Uni-Exp", (0.953, 0.006)),
    ],
)
def test_the_paper_s_figures(number, dataset, method, figure):
    assert published.TABLES[number - 3].figures[dataset, method] == figure


def test_cells_have_mean_deviation_paper_and_difference(folder):
    row = _row(folder, "table-3-unit", "glass")
    assert row[1] == "0.829 ± 0.014<br>paper 0.825, +0.004"
    assert row[3] == "0.718 ± 0.014<br>paper 0.714, +0.004"


def test_the_best_online_method_is_bold(folder):
    row = _row(folder, "table-3-unit", "heart")
    assert [cell.startswith("**") for cell in row] == [False, False, True] + 7 * [False]
    assert row[-1].startswith("0.914 ± 0.014")  # the ceiling is higher, and not bold


def test_bold_compares_unrounded_means(tmp_path):
    lines = [
        result("heart", "unit", "CBR_RS", 0, auc=0.9004),
        result("heart", "unit", "CBR_FIFO", 0, auc=0.90041),
    ]
    table = score_table(read_study(write_study(tmp_path, lines)), published.TABLES[0], "unit")
    assert [(cell.text, cell.bold) for cell in table.rows[0].cells] == [
        ("0.900", False),
        ("0.900", True),
    ]


def test_a_difference_beyond_two_standard_errors_is_marked(tmp_path):
    # The standard errors: of ours 0.01 / sqrt(2), of the paper's 0.021 and 0.046 over sqrt(10).
    lines = [result("heart", "unit", "CBR_FIFO", run, auc=0.88 + 0.01 * run) for run in (0, 1)]
    lines += [result("glass", "unit", "CBR_FIFO", run, auc=0.788 + 0.01 * run) for run in (0, 1)]
    table = score_table(read_study(write_study(tmp_path, lines)), published.TABLES[0], "unit")
    below = {row.name: row.cells[0].below for row in table.rows}
    assert below == {"heart": "paper 0.909, −0.024‡", "glass": "paper 0.823, −0.030"}  # noqa: RUF001


def test_only_the_paper_s_scaling_stands_beside_the_paper(folder):
    assert "paper 0." not in (folder / "tables/table-3-none.md").read_text(encoding="utf-8")


def test_ranks_of_the_paper_s_methods_and_of_all(folder):
    own = _row(folder, "table-3-unit", "Average rank, paper's")
    assert own[1:7] == ["**1.33**", "1.67", "6.00", "4.33", "3.67", "4.00"]
    assert own[7:10] == ["–", "–", "–"]  # noqa: RUF001
    everyone = _row(folder, "table-3-unit", "Average rank, all")
    assert everyone[9] == "–"  # noqa: RUF001


def test_ranks_leave_out_what_is_not_complete(tmp_path):
    lines = study(sets=("glass", "german", "heart"), scalings=("unit",), extras=())
    lines = [x for x in lines if not (x["dataset"] == "heart" and x["method"] == "OPAUC")]
    lines = [x for x in lines if x["method"] != "AdaOAM" or x["dataset"] == "glass"]
    scores = mean_scores(read_study(write_study(tmp_path, lines)), "benchmark", "unit", "auc")
    ranks = ranking(scores, scores.methods)
    assert ranks.datasets == ("glass", "german")
    assert "AdaOAM" not in ranks.ranks


def test_choices_at_an_end_of_the_grid_are_counted(tmp_path):
    ends = {"lowest": -15, "highest": 10}
    powers = [-15, -14, 10, 9]
    lines = [
        result("glass", "none", "OPAUC", run, parameter=2.0**power, **ends)
        for run, power in enumerate(powers)
    ]
    lines += [result("glass", "unit", "OPAUC", run) for run in range(3)]
    report.write(write_study(tmp_path, lines, curves=False))
    assert _row(tmp_path, "edges", "OPAUC") == ["OPAUC", "0 of 3, 0.0 %", "2 of 4, 50.0 %"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "between 2^-15 and 2^10" in page


def test_samples_and_missing_runs_are_told(folder):
    row = _row(folder, "table-5-unit", "sector †")
    assert row[1].startswith("**0.931**")
    text = (folder / "tables/table-5-unit.md").read_text(encoding="utf-8")
    assert "† Only a sample" in text
    assert _row(folder, "table-3-unit", "german")[7].endswith("1 of 2 runs")


def test_latex_is_balanced(folder):
    for path in (folder / "tables").glob("*.tex"):
        text = path.read_text(encoding="utf-8")
        assert text.count("{") - text.count("}") == text.count("\\{") - text.count("\\}") == 0
        assert re.findall(r"\\begin\{(\w+)\}", text) == ["table", "tabular"]
        assert re.findall(r"\\end\{(\w+)\}", text) == ["tabular", "table"]
        rows = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1
        assert text.replace("\n", "").isascii(), path.name
        assert not re.search(r"(?<!\\)[%#]", text)
    text = (folder / "tables/table-3-unit.tex").read_text(encoding="utf-8")
    assert r"CBR$_{\mathrm{FIFO}}$ & Uni-Exp" in text
    assert r"\textbf{0.913} $\pm$ 0.014" in text
    assert r"{\tiny paper 0.825, +0.004}" in text


def test_findings(folder):
    found = read_study(folder)
    assert headline(found).startswith(
        "With rows of unit length, the paper's scaling, CBR_RS is first of the paper's methods"
    )
    told = " ".join(points(found))
    assert "With raw columns" in told
    assert "CBR-diag_FIFO is first by average rank on AUC (1.00)" in told
    # three benchmark sets and farm-ads, all shifted by 0.004; the sample is left out
    assert "Of 36 figures of Tables 3 and 4 that can be compared, 36 (100 %) lie within" in told
    assert "Over all 44 figures" in told
    assert "Ours less the paper's, on average: CBR_RS +0.004, CBR_FIFO +0.004" in told
    assert "Nearest to Batch LR" in told
    assert "Ranked together with SCW and Something New" in told
    assert "3 runs failed" in told
    assert "Of 28 claims of the paper, " in told


def test_the_page_is_whole_and_needs_no_network(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert not re.search(r'(src|href|action)\s*=\s*"(?!#|data:)', page)
    assert not re.search(r"@import|url\((?!#)", page)
    for told in ("cbrank reproduce --seed 3", "An &lt;abacus&gt;", "a &lt; b", "1.5 minutes"):
        assert told in page
    assert "3 powers of two from 2^-4 to 2^4" in page
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<figure>") == page.count('<figure><svg role="img" aria-label="')
    assert page.count("<table") == page.count("<caption>") > 20


def test_figures_and_tables_are_files_too(folder):
    figures = {path.name for path in (folder / "figures").iterdir()}
    wanted = {"figure-1-unit", "figure-2-unit", "study-time", "curves-unit"}
    wanted |= {"ranks-benchmark-auc-unit-paper", "ranks-benchmark-accuracy-standard-all"}
    assert {f"{name}{end}" for name in wanted for end in (".svg", ".png")} <= figures
    assert not [name for name in figures if "high-dimensional" in name]  # two sets are too few
    assert "there are 2 and 4" in (folder / "report.html").read_text(encoding="utf-8")
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert {f"table-{n}-unit.{end}" for n in (3, 4, 5, 6) for end in ("md", "tex")} <= tables
    assert {f"{n}-benchmark.{end}" for n in ("claims", "times") for end in ("md", "tex")} <= tables


def test_without_times_there_is_nothing_about_them(tmp_path):
    write_study(tmp_path, study(sets=("glass",), scalings=("unit",), extras=()), curves=False)
    page = report.write(tmp_path).read_text(encoding="utf-8")
    assert "Running time" not in page
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(("times", "figure-"))]


@pytest.mark.slow
def test_the_same_results_give_the_same_files(tmp_path):
    lines = study(sets=("glass", "german", "heart"), scalings=("unit",), extras=())
    one = write_study(tmp_path / "one", lines)
    random.Random(1).shuffle(lines)
    other = write_study(tmp_path / "other", [*lines, lines[0]])
    with (other / "results.csv").open("a", encoding="utf-8") as file:
        file.write("benchmark,glass,un")  # torn by a crash
    assert report.write(one).read_bytes() == report.write(other).read_bytes()
    for path in [*one.glob("tables/*"), *one.glob("figures/*")]:
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path


def _only(**chosen):
    return lambda line: all(line[name] == value for name, value in chosen.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "keep",
    [
        _only(dataset="glass", scaling="none"),
        _only(dataset="glass", method="Batch LR"),
        _only(dataset="sector"),
        _only(method="Something New"),
        _only(scaling="standard", run=0),
    ],
    ids=["one set, one scaling", "ceiling only", "sample only", "unknown only", "one run"],
)
def test_partial_results(tmp_path, keep):
    write_study(tmp_path, list(filter(keep, study())), curves=False, facts=False)
    page = report.write(tmp_path).read_text(encoding="utf-8")
    assert "<h1>With " in page
    assert "nan" not in re.sub(
        r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL
    )
    assert report.summary(tmp_path).startswith("Mean AUC over")


@pytest.mark.slow
def test_numbers_may_be_missing(tmp_path):
    blank = {
        "accuracy_held": "",
        "parameter": "",
        "lowest": "",
        "fit_seconds": "",
        "tune_seconds": "",
    }
    write_study(tmp_path, [line | blank for line in study(scalings=("unit",))], curves=False)
    page = report.write(tmp_path).read_text(encoding="utf-8")
    assert "Accuracy in use" not in page
    assert "Parameters chosen" not in page


def test_no_results(tmp_path):
    with pytest.raises(ValueError, match=r"no results\.csv"):
        report.write(tmp_path)
    write_study(tmp_path, [result("glass", "unit", "OPAUC", 0, status="failed")])
    with pytest.raises(ValueError, match="nothing to report"):
        report.summary(tmp_path)


def test_what_can_be_made_without_the_extra_is_made(tmp_path, monkeypatch, folder):
    assert report.what_is_left_out() == ""
    write_study(tmp_path, study())
    write_times(tmp_path / "times.csv", times_of(study()))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = report.write(tmp_path).read_text(encoding="utf-8")
    assert "leaves out figures: matplotlib is not installed; pip install " in page
    assert "Friedman over 3 data sets" in page
    assert "<figure>" not in page
    assert not (tmp_path / "figures").exists()
    tables = [{path.name for path in (each / "tables").iterdir()} for each in (folder, tmp_path)]
    assert tables[0] == tables[1]
    assert "glass" in report.summary(tmp_path)


def test_no_output_is_ever_half_written(tmp_path, monkeypatch):
    copy = write_study(tmp_path, study())
    report.write(copy)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cbrank.atomic.os.fsync", full)
    with pytest.raises(OSError, match="could not be written: No space left"):
        report.write(copy)
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_summary(tmp_path):
    write_study(tmp_path, study(sets=("glass", "heart", "sector"), extras=("Batch LR",)))
    assert report.summary(tmp_path).splitlines() == [
        "Mean AUC over 2 runs, benchmark data sets, rows of unit length (*: the best)",
        "              CBR_RS  CBR_FIFO  Uni-Exp   OPAUC  OAM_seq  AdaOAM  Batch LR",
        "glass         0.829*    0.827    0.718   0.802    0.809   0.798     0.914",
        "heart         0.912     0.913*   0.737   0.792    0.810   0.803     0.914",
        "average rank   1.50      1.50     6.00    4.50     3.00    4.50         -",
        "",
        "Mean AUC over 2 runs, high-dimensional data sets, rows of unit length (*: the best)",
        "              CBR-diag_FIFO  Uni-Exp  OPAUCr  OAM_seq  Batch LR",
        "sector †             0.931*   0.850   0.912    0.861     0.914",
        "average rank          1.00     4.00    2.00     3.00         -",
        "† Only a sample of the data set was at hand.",
    ]


def test_every_method_keeps_its_colour():
    known, more = looks([]), looks(["Z", "A"])
    assert {name: more[name] for name in known} == known
    assert len({look.colour for look in more.values()}) == len(more)
    assert ordered_methods({"Z", "Batch LR", "SCW", "OPAUC", "CBR_RS"}, "benchmark") == [
        "CBR_RS",
        "OPAUC",
        "SCW",
        "Z",
        "Batch LR",
    ]


def test_headings_go_down_one_step_at_a_time(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    levels = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_the_page_is_part_of_the_package():
    package = Path(page.__file__).parent
    assert {path.suffix for path in package.glob("page.*")} == {".html", ".css", ".js"}
