"""Pages: sections made of blocks, as one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from importlib.resources import files
from string import Template

from cbrank.methods import Look
from cbrank.plotting import Picture
from cbrank.tables import Cell, Row, Table


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Code:
    """A command, to be copied."""

    text: str


@dataclass(frozen=True)
class Terms:
    """Names and what they mean."""

    terms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Figure:
    """A picture and its caption."""

    picture: Picture
    caption: str = ""


@dataclass(frozen=True)
class Gallery:
    """Figures side by side, as many as fit; small ones share a legend."""

    figures: tuple[Figure, ...]
    legend: tuple[tuple[str, Look], ...] = ()
    small: bool = False


Block = str | Heading | Code | Terms | Gallery | Table


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its title and its blocks."""

    key: str
    title: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """Write the section."""
        body = "\n".join(html(block) for block in self.blocks)
        return f'<section id="{self.key}">\n<h2>{escape(self.title)}</h2>\n{body}\n</section>'


@singledispatch
def html(block: object) -> str:
    """Write a block as HTML."""
    raise TypeError(f"no such block: {block!r}")


@html.register
def _(block: str) -> str:
    return f"<p>{escape(block)}</p>"


@html.register
def _(block: Heading) -> str:
    return f"<h3>{escape(block.text)}</h3>"


@html.register
def _(block: Code) -> str:
    return f"<pre><code>{escape(block.text)}</code></pre>"


@html.register
def _(block: Terms) -> str:
    terms = "".join(f"<dt>{escape(t)}</dt><dd>{escape(d)}</dd>\n" for t, d in block.terms)
    return f"<dl>\n{terms}</dl>"


@html.register
def _(block: Gallery) -> str:
    figures = "\n".join(_figure(figure) for figure in block.figures)
    names = "".join(
        f'<li><span style="background:var(--c{look.colour[1:]})"></span>{escape(name)}</li>'
        for name, look in block.legend
    )
    legend = f'<ul class="legend">{names}</ul>\n' if names else ""
    return f'{legend}<div class="gallery{" small" * block.small}">\n{figures}\n</div>'


def _figure(figure: Figure) -> str:
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>" if figure.caption else ""
    return f"<figure>{figure.picture.svg}{caption}</figure>"


@html.register
def _(block: Table) -> str:
    head = "".join(map(_head, (block.corner, *block.columns)))
    body = "\n".join(_row(row) for row in block.rows)
    foot = "\n".join(_row(row) for row in block.foot)
    title = f"<strong>{escape(block.title)}.</strong> {escape(block.note)}"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(block.title)}">\n'
        f'<table id="{block.key}">\n<caption><span>{title}</span></caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        + (f"<tfoot>\n{foot}\n</tfoot>\n" if foot else "")
        + "</table>\n</div>"
    )


def _head(name: str) -> str:
    long = ' class="long"' * (len(name) > 16)
    return f'<th scope="col"{long}><button type="button">{escape(name)}</button></th>'


def _row(row: Row) -> str:
    return f'<tr><th scope="row">{escape(row.name)}</th>{"".join(map(_cell, row.cells))}</tr>'


def _cell(cell: Cell) -> str:
    number, *rest = escape(cell.text).split(" ")
    text = " ".join([f"<b>{number}</b>" if cell.bold else number, *rest])
    below = f"<small>{escape(cell.below)}</small>" if cell.below else ""
    value = "" if cell.value is None else f' data-value="{cell.value:.12g}"'
    best = ' class="best"' if cell.bold else ""
    return f"<td{best}{value}>{text}{below}{cell.picture}</td>"


def page(
    *,
    title: str,
    kicker: str,
    headline: str,
    points: Sequence[str],
    sections: Sequence[Section],
    looks: Mapping[str, Look],
) -> str:
    """Put a page together.

    Parameters
    ----------
    title : str
        The name of the page, in the browser's tab.
    kicker : str
        What the page is about, above the headline.
    headline : str
        The finding in a sentence.
    points : sequence of str
        What else came out.
    sections : sequence of Section
        The rest.
    looks : mapping of str to Look
        The colours of the pictures, on light and on dark ground.

    Returns
    -------
    str
        HTML with its style, script and pictures inside.
    """
    return Template(_part("page.html")).substitute(
        style=_part("page.css"),
        script=_part("page.js"),
        light=_colours(looks, "colour"),
        dark=_colours(looks, "dark"),
        title=escape(title),
        kicker=escape(kicker),
        headline=escape(headline),
        points="\n".join(f"<li>{escape(point)}</li>" for point in points),
        contents="\n".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        sections="\n\n".join(section.html() for section in sections),
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _colours(looks: Mapping[str, Look], ground: str) -> str:
    return "".join(f"--c{look.colour[1:]}:{getattr(look, ground)};" for look in looks.values())
