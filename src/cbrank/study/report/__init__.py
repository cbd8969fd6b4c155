"""The study's report: the paper's tables and figures, and one page that shows and explains them.

`write` needs the ``report`` extra (``pip install 'cbrank[report]'``); `summary` does not.
"""

from pathlib import Path

from cbrank.optional import need
from cbrank.plotting import matplotlib
from cbrank.study.report.blocks import Section
from cbrank.study.report.chapters import (
    Scene,
    ceiling_section,
    cost_section,
    curve_section,
    held_section,
    parameter_section,
    rank_section,
    score_section,
    summary_section,
    time_section,
)
from cbrank.study.report.findings import headline, points
from cbrank.study.report.looks import looks
from cbrank.study.report.origins import origin_section
from cbrank.study.report.page import page
from cbrank.study.report.results import read
from cbrank.study.report.terminal import text_table
from cbrank.tables import Table, latex, markdown

__all__ = ["summary", "write"]


def write(folder: Path) -> Path:
    """Write a study's report beside its results.

    Parameters
    ----------
    folder : Path
        Has ``results.csv``, and may have ``curves.csv`` and ``study.json``; gets
        ``report.html``, ``tables/`` (Markdown and LaTeX) and ``figures/`` (SVG and PNG).

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If there are no results.
    ModuleNotFoundError
        If the ``report`` extra is not installed; the message says so.
    """
    study = read(folder)
    matplotlib()
    need("scikit_posthocs", "comparing methods", "report")
    for name in ("tables", "figures"):
        (folder / name).mkdir(exist_ok=True)
    scene = Scene(study, looks(study.methods()), folder / "figures")
    sections = _sections(scene)
    _write_tables(sections, folder / "tables")
    path = folder / "report.html"
    text = page(headline(study), points(study), sections, scene.looks)
    path.write_text(text, encoding="utf-8")
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
    study = read(folder)
    return "\n\n".join(text_table(study, kind) for kind in study.tables())


def _sections(scene: Scene) -> list[Section]:
    sections = [
        summary_section(scene),
        score_section(scene),
        rank_section(scene),
        ceiling_section(scene),
        time_section(scene),
        held_section(scene),
        curve_section(scene),
        parameter_section(scene),
        cost_section(scene),
        origin_section(scene.study),
    ]
    return [section for section in sections if section]


def _write_tables(sections: list[Section], folder: Path) -> None:
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table):
                (folder / f"{block.key}.md").write_text(markdown(block), encoding="utf-8")
                (folder / f"{block.key}.tex").write_text(latex(block), encoding="utf-8")
