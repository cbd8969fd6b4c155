"""How each number came about: protocol, scalings, data, versions, machine and command."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from cbrank import datasets
from cbrank.datasets.entry import DataSet
from cbrank.study.report.blocks import Block, Code, Heading, Section, Terms
from cbrank.study.report.marks import SAMPLE, marked
from cbrank.study.report.results import SCALINGS, Result, Study, in_order
from cbrank.study.report.words import MEANINGS, listed, plural, scaling_words
from cbrank.tables import ABSENT, Cell, Row, Table


def origin_section(study: Study) -> Section:
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
    runs = {kind: _runs(study, kind) for kind in study.tables()}
    counts = listed([f"{plural(count, 'run')} on {kind} data sets" for kind, count in runs.items()])
    rows = (
        f"At most {counts}. Each run shuffles a data set, keeps at most {dense:,} rows "
        f"({text:,} of a high-dimensional one), trains on four fifths and tests on one fifth; all "
        "methods and scalings see the same rows in the same order. The parameter is chosen by "
        "3-fold cross-validation on the training rows, by mean AUC, "
        f"{plural(len(powers), 'power')} of two from 2^{min(powers)} to 2^{max(powers)}; then one "
        "fit on all training rows, timed alone."
    )
    measures = (
        "AUC is the area under the ROC curve of the test rows. Accuracy at OPTROC is that at the "
        "ROC curve's optimal operating point, found on the test rows as MATLAB's perfcurve does. "
        "A standard deviation is that of a sample (n − 1). Differences from the paper are of "  # noqa: RUF001
        "figures rounded to three decimals, as the paper prints them. A method is ranked if it has "
        "results for half of the data sets or more, on the data sets where all ranked methods do."
    )
    return [rows, measures]


def _runs(study: Study, kind: str) -> int:
    return len({result.run for result in study.results if result.table == kind})


def _scalings(study: Study) -> Terms:
    present = in_order({result.scaling for result in study.results}, SCALINGS)
    return Terms(
        tuple(
            (f"{scaling}: {scaling_words(scaling)}", MEANINGS.get(scaling, "No description."))
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
            f"{SAMPLE} Only a sample of the data set was at hand; its figures are shown beside the "
            "paper's but left out of the sentences about the distance from the paper."
        )
    absent = [n for k in study.tables() for n in datasets.names(k) if n not in _names(used)]
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
        task = f"{r.dataset}, {r.method}, {scaling_words(r.scaling)}"
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
