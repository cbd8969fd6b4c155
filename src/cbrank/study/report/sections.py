"""The page's sections: results in reading order, then how each number came about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from cbrank import datasets
from cbrank.datasets.entry import DataSet
from cbrank.datasets.entry import Table as Kind
from cbrank.methods import Look
from cbrank.page import Block, Code, Figure, Gallery, Heading, Section, Terms
from cbrank.study.report.against_paper import agreement_table, far_table, z_table
from cbrank.study.report.figures import learning_curves, running_time, time_picture
from cbrank.study.report.names import (
    SAMPLE_MARK,
    SCALING_TEXTS,
    in_order,
    listed,
    marked,
    online_methods,
    ordered_methods,
    paper_methods,
    plural,
    scaling_name,
)
from cbrank.study.report.published import TABLES
from cbrank.study.report.rank_diagrams import Diagram, Group, diagram
from cbrank.study.report.score_tables import score_table, threshold_table
from cbrank.study.report.scores import Scores, mean_scores
from cbrank.study.report.study import Study
from cbrank.study.report.summary_tables import ceiling_table, distances, overview
from cbrank.study.report.time_tables import MEASURED
from cbrank.study.report.time_tables import time_table as kernel_times
from cbrank.study.report.tuning_tables import (
    diverged_table,
    edge_table,
    parameter_table,
    time_spent,
    time_table,
)
from cbrank.study.report.verdicts import RULES, claims_table, verdicts
from cbrank.study.results import Result
from cbrank.study.settings import SCALINGS
from cbrank.tables import ABSENT, Cell, Row, Table


@dataclass(frozen=True)
class Material:
    """What sections are made from: the study, and how methods are drawn.

    Figures go to a folder; without one, none are drawn.
    """

    study: Study
    looks: dict[str, Look]
    figures: Path | None


def all_sections(material: Material) -> list[Section]:
    """Write all sections that have something to show."""
    sections = [
        _summary_section(material),
        _score_section(material),
        _agreement_section(material),
        _claims_section(material),
        _rank_section(material),
        _ceiling_section(material),
        _time_section(material),
        _threshold_section(material),
        _curve_section(material),
        _parameter_section(material),
        _cost_section(material),
        _provenance_section(material.study),
    ]
    return [section for section in sections if section]


def _summary_section(material: Material) -> Section:
    """Show average ranks and means."""
    tables = [overview(material.study, kind) for kind in material.study.kinds()]
    return Section("overview", "Who is ahead, by scaling", tables)


def _score_section(material: Material) -> Section:
    """Show the paper's Tables 3 to 6."""
    blocks: list[Block] = []
    for scaling in material.study.scalings():
        words = scaling_name(scaling).capitalize()
        blocks.append(Heading(words + ", the paper's scaling" * (scaling == "unit")))
        blocks += [
            score_table(material.study, table, scaling)
            for table in TABLES
            if scaling in material.study.scalings(table.kind)
        ]
    return Section("tables", "The paper's tables", blocks)


def _agreement_section(material: Material) -> Section | None:
    """Show how far the figures are from the paper's."""
    study = material.study
    tables = [
        agreement_table(study),
        *(z_table(study, table) for table in TABLES),
        far_table(study),
    ]
    tables = [table for table in tables if table.rows]
    intro = (
        "A difference is judged by its standard error, the root of s²/n of our runs and of the "
        "paper's, and of what rounding to three decimals takes away. The paper averages 10 runs on "
        "benchmark data sets and 5 on high-dimensional ones; that its ± is the standard deviation "
        "over these runs is inferred. Methods of one data set see the same rows, so their "
        "differences go together."
    )
    return (
        Section("distance", "How near are the paper's figures?", [intro, *tables])
        if tables
        else None
    )


def _rank_section(material: Material) -> Section:
    """Show whether the methods differ over data sets."""
    intro = (
        "Friedman's test and Iman and Davenport's, which is less conservative, ask whether the "
        "methods differ at all. Where the second says so, Wilcoxon's signed-rank test with Holm's "
        "correction compares every pair, at a level of 5 %. In the diagrams, bars join methods "
        "whose average ranks lie less than Nemenyi's critical difference (CD) apart; this test is "
        "more conservative than Wilcoxon's. Blocks are data sets, each with its mean over runs, "
        "never the runs themselves."
    )
    found = [d for case in material.study.cases() for d in _diagrams(material, *case)]
    drawn = tuple(Figure(d.picture, d.verdict) for d in found if d.picture)
    said = [f"{d.title}. {d.verdict}" for d in found if not d.picture]
    gallery = [Gallery(drawn)] if drawn else []
    return Section("ranks", "Are the differences more than chance?", [intro, *gallery, *said])


def _diagrams(material: Material, kind: Kind, scaling: str) -> Iterator[Diagram]:
    for measure in ("auc", "accuracy"):
        scores = mean_scores(material.study, kind, scaling, measure)
        for group, methods in _groups(scores):
            yield diagram(
                scores, methods, group=group, looks=material.looks, folder=material.figures
            )


def _groups(scores: Scores) -> Iterator[tuple[Group, list[str]]]:
    of_paper, of_all = paper_methods(scores.methods, scores.kind), online_methods(scores.methods)
    if of_paper:
        yield "paper", of_paper
    if of_all != of_paper:
        yield "all", of_all


def _claims_section(material: Material) -> Section:
    """Hold the paper's sentences against the figures."""
    tables = [claims_table(material.study, kind) for kind in material.study.kinds()]
    return Section("claims", "What the paper claims", [RULES, verdicts(material.study), *tables])


def _time_section(material: Material) -> Section | None:
    """Show the paper's Figures 1 and 2, and the times in them."""
    study, figures = material.study, material.figures
    tables = [table for kind in study.kinds() if (table := kernel_times(study, kind)).rows]
    drawn = [
        running_time(study, kind, material.looks, figures) for kind in study.kinds() if figures
    ]
    pictures = tuple(Figure(picture) for picture in drawn if picture)
    gallery = [Gallery(pictures)] if pictures else []
    return Section("time", "Running time", [MEASURED, *gallery, *tables]) if tables else None


def _ceiling_section(material: Material) -> Section | None:
    """Show the distance from batch logistic regression."""
    tables = [
        ceiling_table(distance)
        for kind in material.study.kinds()
        for distance in distances(material.study, kind)
    ]
    intro = (
        "Logistic regression with a cross-validated penalty sees all training rows as often as it "
        "likes. It is about the best a linear scorer can do, so the distance from it is the price "
        "of one pass. On benchmark data sets it has standardised columns, whatever the scaling "
        "of the others."
    )
    return Section("ceiling", "How near is the ceiling?", [intro, *tables]) if tables else None


def _threshold_section(material: Material) -> Section | None:
    """Show accuracy at thresholds that were chosen without the test labels."""
    tables = [threshold_table(material.study, *case) for case in material.study.cases()]
    tables = [table for table in tables if table.rows]
    intro = (
        "OPTROC picks the threshold on the very labels it is measured on, which flatters every "
        "method. Here the threshold comes from the training rows alone, as it must in use."
    )
    return Section("held", "Accuracy in use", [intro, *tables]) if tables else None


def _curve_section(material: Material) -> Section | None:
    """Show learning curves."""
    if not material.figures:
        return None
    blocks: list[Block] = []
    for scaling in in_order({scaling for _, scaling, _ in material.study.curves}, SCALINGS):
        pictures = learning_curves(material.study, scaling, material.looks, material.figures)
        methods = ordered_methods({m for _, s, m in material.study.curves if s == scaling})
        legend = tuple((method, material.looks[method]) for method in methods)
        blocks.append(Heading(scaling_name(scaling).capitalize()))
        blocks.append(Gallery(tuple(map(Figure, pictures)), legend, small=True))
    intro = (
        "How well a method ranks rows that it has not learned from yet, along the stream; the "
        "first run of each data set."
    )
    return Section("curves", "Learning curves", [intro, *blocks]) if blocks else None


def _parameter_section(material: Material) -> Section | None:
    """Show the parameters chosen."""
    tables = [parameter_table(material.study, *case) for case in material.study.cases()]
    tables = [table for table in tables if table.rows]
    others = [edge_table(material.study), diverged_table(material.study)] if tables else []
    tables += [table for table in others if table.rows]
    intro = (
        "Bars show how often each power of two was chosen; those of a table have the same axis, "
        "which holds the paper's grid and all that was chosen."
    )
    return Section("parameters", "Parameters chosen", [intro, *tables]) if tables else None


def _cost_section(material: Material) -> Section:
    """Show where the study's time went."""
    times = time_spent(material.study)
    drawn = []
    if material.figures:
        picture = time_picture(times, material.looks, material.figures)
        drawn = [Gallery((Figure(picture),))]
    seconds = material.study.facts.get("seconds")
    clock = [f"The study took {seconds / 60:,.1f} minutes by the clock."] if seconds else []
    return Section("cost", "What the study cost", [*clock, *drawn, time_table(times)])


# How each number came about ---------------------------------------------------------------------------


def _provenance_section(study: Study) -> Section:
    """Tell where the numbers come from."""
    blocks: list[Block] = []
    if command := study.facts.get("command"):
        blocks += [Heading("Command"), Code(_text(command))]
    blocks += [Heading("Protocol"), *_protocol(study)]
    blocks += [Heading("What the scalings mean for you"), _scalings(study)]
    blocks += [Heading("Data"), _data(study), *_data_notes(study)]
    blocks += [*_failures(study), *_machine(study)]
    return Section("origins", "How each number came about", blocks)


def _protocol(study: Study) -> list[str]:
    settings = study.facts.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    dense, text = settings.get("benchmark_rows", 8000), settings.get("text_rows", 2000)
    powers = settings.get("exponents") or range(-10, 11)
    runs = {kind: _runs(study, kind) for kind in study.kinds()}
    counts = listed([f"{plural(count, 'run')} on {kind} data sets" for kind, count in runs.items()])
    most = f"at most {dense:,} rows ({text:,} of a high-dimensional data set)"
    parts = (
        f"keeps {most}, trains on four fifths of them and tests on one fifth"
        if settings.get("cut") == "all"
        else f"trains on {most} of four fifths and tests on the whole last fifth"
    )
    rows = (
        f"At most {counts}. Each run shuffles a data set, {parts}; all "
        "methods and scalings see the same rows in the same order. The parameter is chosen by "
        "3-fold cross-validation on the training rows, by mean AUC, among equals the value nearest "
        f"to 1, from {plural(len(powers), 'power')} of two from 2^{min(powers)} to "
        f"2^{max(powers)}; then one fit on all training rows. With standardised and "
        "raw columns, some values far from this grid are tried as well, and then those beside the "
        "best, five powers of two at a time and up to "
        f"2^±{settings.get('bound', 60)}, until both its neighbours were tried."
    )
    measures = (
        "AUC is the area under the ROC curve of the test rows. Accuracy at OPTROC is that at the "
        "ROC curve's optimal operating point, found on the test rows as MATLAB's perfcurve does. "
        "A standard deviation is that of a sample (n − 1). Differences from the paper are of "  # noqa: RUF001
        "figures rounded to three decimals, as the paper prints them. A method is ranked if it has "
        "results for half of the data sets or more, on the data sets where all ranked methods do."
    )
    inferred = (
        "Inferred from the figures that the paper prints, not stated in it: that rows have unit length, "
        "how classes are grouped where a data set has more than two (the notes on the data say "
        "where), what is cut, and that one fold is tested, not five."
    )
    return [rows, inferred, measures]


def _runs(study: Study, kind: str) -> int:
    return len({result.run for result in study.results if result.table == kind})


def _scalings(study: Study) -> Terms:
    present = study.scalings()
    return Terms(
        tuple(
            (f"{scaling}: {scaling_name(scaling)}", SCALING_TEXTS.get(scaling, "No description."))
            for scaling in present
        )
    )


def _one_each(study: Study) -> list[Result]:
    firsts: dict[str, Result] = {}
    for result in study.results:
        firsts.setdefault(result.dataset, result)
    return list(firsts.values())


def _data(study: Study) -> Table:
    samples = [result.dataset for result in _one_each(study) if result.sample == 1]
    return Table(
        key="data",
        title="Data sets",
        note="Rows of a run; positives as a share of the whole data set.",
        corner="Data set",
        columns=("Training rows", "Test rows", "Features", "Positives"),
        rows=tuple(
            Row(
                marked(result.dataset, samples),
                (
                    *map(_count, (result.train_rows, result.test_rows, result.features)),
                    _share(result.positives),
                ),
            )
            for result in _one_each(study)
        ),
    )


def _count(number: float) -> Cell:
    return Cell(text=f"{number:,.0f}", value=number) if isfinite(number) else Cell(text=ABSENT)


def _share(number: float) -> Cell:
    return Cell(text=f"{100 * number:.1f} %", value=number) if isfinite(number) else _count(number)


def _data_notes(study: Study) -> Iterator[Block]:
    used = _one_each(study)
    notes = [(marked(r.dataset, _samples(r)), note) for r in used if (note := _note(r))]
    if notes:
        yield Terms(tuple(notes))
    if any(result.sample == 1 for result in used):
        yield (
            f"{SAMPLE_MARK} Only a sample of the data set was at hand; its figures are shown beside the "
            "paper's but left out of the sentences about the distance from the paper."
        )
    absent = [n for k in study.kinds() for n in datasets.names(k) if n not in _names(used)]
    if absent:
        yield f"In the paper, not in this study: {listed(absent)}."


def _names(results: list[Result]) -> set[str]:
    return {result.dataset for result in results}


def _samples(result: Result) -> list[str]:
    return [result.dataset] if result.sample == 1 else []


def _note(result: Result) -> str:
    entry: DataSet | None = None
    if result.dataset in datasets.names():
        entry = datasets.info(result.dataset)
    if entry and entry.sample and result.sample == 1:
        return entry.sample.note
    return entry.note if entry else ""


def _failures(study: Study) -> Iterator[Block]:
    runs: dict[tuple[str, str], list[str]] = {}
    for r in study.failures:
        task = f"{r.dataset}, {r.method}, {scaling_name(r.scaling)}"
        runs.setdefault((task, r.error), []).append(f"{r.run:g}")
    if runs:
        yield Heading("Runs that failed")
        yield Terms(tuple((f"{t}, run {listed(n)}", error) for (t, error), n in runs.items()))


def _machine(study: Study) -> Iterator[Block]:
    times = ("seconds", "started", "finished", "sessions")
    known = ("seed", *times, "versions", "machine", "settings")
    facts = {key: study.facts[key] for key in known if study.facts.get(key) is not None}
    terms = tuple((key.capitalize(), _text(value)) for key, value in facts.items())
    if terms:
        yield Heading("Seed, versions and machine")
        yield Terms(terms)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
