"""The study's report: the paper's tables and figures, and one page that shows and explains them.

* ``study``: the files of a study, read; ``published``: the paper's own figures
* ``scores``, ``significance``: means over runs, average ranks, and whether methods differ
* ``rank_diagrams``: critical-difference diagrams, and what they show in words
* ``against_paper``: how far our figures are from the paper's, in standard errors
* ``claims``, ``verdicts``: the paper's sentences, and whether our figures bear them out
* ``score_tables``, ``summary_tables``, ``tuning_tables``, ``time_tables``: the tables; ``figures``: the figures
* ``findings``: the results in sentences; ``names``: what things are called
* ``sections``: the parts of the page

Figures need the ``report`` extra (``pip install 'cbrank[report]'``); all else comes without it.
"""

from pathlib import Path

from cbrank.atomic import atomic_write_text
from cbrank.optional import can_import
from cbrank.page import Section, page
from cbrank.study.report.findings import headline, points
from cbrank.study.report.names import looks
from cbrank.study.report.sections import Material, all_sections
from cbrank.study.report.study import read_study
from cbrank.study.report.summary_tables import text_table
from cbrank.tables import Table, latex, markdown

__all__ = ["summary", "what_is_left_out", "write"]


def what_is_left_out() -> str:
    """Say what reports lack for want of libraries, and how to get it.

    Returns
    -------
    str
        A sentence; empty if nothing is left out.
    """
    if can_import("matplotlib"):
        return ""
    return (
        "The report leaves out figures: matplotlib is not installed; pip install 'cbrank[report]'."
    )


def write(folder: Path) -> Path:
    """Write a study's report beside its results.

    Parameters
    ----------
    folder : Path
        Has ``results.csv``, and may have ``curves.csv``, ``times.csv`` and ``study.json``; gets
        ``report.html``, ``tables/`` (Markdown and LaTeX) and, if Matplotlib is installed,
        ``figures/`` (SVG and PNG).

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If there are no results.
    """
    study = read_study(folder)
    figures = folder / "figures" if can_import("matplotlib") else None
    for made in filter(None, (folder / "tables", figures)):
        made.mkdir(exist_ok=True)
    material = Material(study, looks(study.methods()), figures)
    sections = all_sections(material)
    _write_tables(sections, folder / "tables")
    told = [*points(study), *filter(None, [what_is_left_out()])]
    path = folder / "report.html"
    html = page(
        title="Confidence-weighted bipartite ranking: the study",
        kicker="Confidence-weighted bipartite ranking: the paper's study, run again",
        headline=headline(study),
        points=told,
        sections=sections,
        looks=material.looks,
    )
    atomic_write_text(path, html)
    return path


def summary(folder: Path) -> str:
    """Write a study's mean AUCs and average ranks for a terminal.

    Parameters
    ----------
    folder : Path
        Has ``results.csv``.

    Returns
    -------
    str
        A table for each kind of data sets, with ``unit`` scaling or the first there is.

    Raises
    ------
    ValueError
        If there are no results.
    """
    study = read_study(folder)
    return "\n\n".join(text_table(study, kind) for kind in study.kinds())


def _write_tables(sections: list[Section], folder: Path) -> None:
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table):
                atomic_write_text(folder / f"{block.key}.md", markdown(block))
                atomic_write_text(folder / f"{block.key}.tex", latex(block))
