"""The page's sections of results, in reading order."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cbrank.datasets.entry import Table as Kind
from cbrank.methods import Look
from cbrank.study.report import paper
from cbrank.study.report.blocks import Block, Figure, Gallery, Heading, Section
from cbrank.study.report.ceiling import ceiling_table, distances
from cbrank.study.report.critical_difference import Diagram, Group, diagram
from cbrank.study.report.curves import panels
from cbrank.study.report.diverged import diverged_table
from cbrank.study.report.far import far_table
from cbrank.study.report.grids import Grid, grid
from cbrank.study.report.held import held_table
from cbrank.study.report.looks import online, ordered, papers
from cbrank.study.report.overview import overview
from cbrank.study.report.parameters import parameter_table
from cbrank.study.report.results import SCALINGS, Study, in_order
from cbrank.study.report.running_time import running_time
from cbrank.study.report.scores import score_table
from cbrank.study.report.time_split import spent, time_picture, time_table
from cbrank.study.report.words import scaling_words


@dataclass(frozen=True)
class Scene:
    """What every section draws from: the study, the methods' looks and where figures go."""

    study: Study
    looks: dict[str, Look]
    figures: Path

    def cases(self) -> Iterator[tuple[Kind, str]]:
        """Go through the kinds of data sets and their scalings."""
        for kind in self.study.tables():
            for scaling in self.study.scalings(kind):
                yield kind, scaling


def summary_section(scene: Scene) -> Section:
    """Show average ranks and means."""
    tables = [overview(scene.study, kind) for kind in scene.study.tables()]
    return Section("overview", "Who is ahead, by scaling", tables)


def score_section(scene: Scene) -> Section:
    """Show the paper's Tables 3 to 6."""
    blocks: list[Block] = []
    for scaling in in_order({scaling for _, scaling in scene.cases()}, SCALINGS):
        words = scaling_words(scaling).capitalize()
        blocks.append(Heading(words + ", the paper's scaling" * (scaling == "unit")))
        blocks += [
            score_table(scene.study, table, scaling)
            for table in paper.TABLES
            if scaling in scene.study.scalings(table.table)
        ]
    far = far_table(scene.study)
    if far.rows:
        blocks += [Heading("Where ours and the paper's figures differ most"), far]
    return Section("tables", "The paper's tables", blocks)


def rank_section(scene: Scene) -> Section:
    """Show whether the methods differ over data sets."""
    intro = (
        "Friedman's test asks whether the methods differ at all; where it says so, Wilcoxon's "
        "signed-rank test with Holm's correction compares every pair, at a level of 5 %. Blocks "
        "are data sets, each with its mean over runs, never the runs themselves."
    )
    found = [d for case in scene.cases() for d in _diagrams(scene, *case)]
    drawn = tuple(Figure(d.picture, d.verdict) for d in found if d.picture)
    said = [f"{d.title}. {d.verdict}" for d in found if not d.picture]
    gallery = [Gallery(drawn)] if drawn else []
    return Section("ranks", "Are the differences more than chance?", [intro, *gallery, *said])


def _diagrams(scene: Scene, kind: Kind, scaling: str) -> Iterator[Diagram]:
    for measure in ("auc", "accuracy"):
        scores = grid(scene.study, kind, scaling, measure)
        for group, methods in _groups(scores):
            yield diagram(scores, methods, group=group, looks=scene.looks, folder=scene.figures)


def _groups(grid: Grid) -> Iterator[tuple[Group, list[str]]]:
    of_paper, of_all = papers(grid.methods, grid.table), online(grid.methods)
    if of_paper:
        yield "paper", of_paper
    if of_all != of_paper:
        yield "all", of_all


def time_section(scene: Scene) -> Section:
    """Show the paper's Figures 1 and 2."""
    drawn = [running_time(scene.study, *case, scene.looks, scene.figures) for case in scene.cases()]
    figures = tuple(Figure(picture) for picture in drawn if picture)
    intro = (
        "One fit on the training rows with the chosen parameter, tuning not included. The paper "
        "gives its times as pictures only and for another machine: compare the order, not the "
        "milliseconds."
    )
    return Section("time", "Running time", [intro, *([Gallery(figures)] if figures else [])])


def ceiling_section(scene: Scene) -> Section | None:
    """Show the distance from batch logistic regression."""
    tables = [
        ceiling_table(distance)
        for kind in scene.study.tables()
        for distance in distances(scene.study, kind)
    ]
    intro = (
        "Logistic regression with a cross-validated penalty sees all training rows as often as it "
        "likes. It is about the best a linear scorer can do, so the distance from it is the price "
        "of one pass. On benchmark data sets it has standardised columns, whatever the scaling "
        "of the others."
    )
    return Section("ceiling", "How near is the ceiling?", [intro, *tables]) if tables else None


def held_section(scene: Scene) -> Section | None:
    """Show accuracy at thresholds that were chosen without the test labels."""
    tables = [held_table(scene.study, *case) for case in scene.cases()]
    tables = [table for table in tables if table.rows]
    intro = (
        "OPTROC picks the threshold on the very labels it is measured on, which flatters every "
        "method. Here the threshold comes from the training rows alone, as it must in use."
    )
    return Section("held", "Accuracy in use", [intro, *tables]) if tables else None


def curve_section(scene: Scene) -> Section | None:
    """Show learning curves."""
    blocks: list[Block] = []
    for scaling in in_order({point.scaling for point in scene.study.curves}, SCALINGS):
        pictures = panels(scene.study, scaling, scene.looks, scene.figures)
        methods = ordered({p.method for p in scene.study.curves if p.scaling == scaling})
        legend = tuple((method, scene.looks[method]) for method in methods)
        blocks.append(Heading(scaling_words(scaling).capitalize()))
        blocks.append(Gallery(tuple(map(Figure, pictures)), legend, small=True))
    intro = (
        "How well a method ranks rows that it has not learned from yet, along the stream; the "
        "first run of each data set."
    )
    return Section("curves", "Learning curves", [intro, *blocks]) if blocks else None


def parameter_section(scene: Scene) -> Section | None:
    """Show the parameters chosen."""
    tables = [parameter_table(scene.study, *case) for case in scene.cases()]
    tables = [table for table in tables if table.rows]
    tables += [table for table in [diverged_table(scene.study)] if table.rows]
    intro = (
        "Bars show how often each power of two was chosen, from the grid's lowest to its highest."
    )
    return Section("parameters", "Parameters chosen", [intro, *tables]) if tables else None


def cost_section(scene: Scene) -> Section:
    """Show where the study's time went."""
    times = spent(scene.study)
    figure = Figure(time_picture(times, scene.looks, scene.figures))
    seconds = scene.study.facts.get("seconds")
    clock = [f"The study took {seconds / 60:,.1f} minutes by the clock."] if seconds else []
    return Section("cost", "What the study cost", [*clock, Gallery((figure,)), time_table(times)])
