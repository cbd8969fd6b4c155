"""The page: all sections in one file that needs nothing else."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from cbrank.methods import Look
from cbrank.study.report.blocks import Section


def page(
    headline: str, points: Sequence[str], sections: Sequence[Section], looks: Mapping[str, Look]
) -> str:
    """Put the page together.

    Parameters
    ----------
    headline : str
        The finding in a sentence.
    points : sequence of str
        What else came out.
    sections : sequence of Section
        The rest.
    looks : mapping of str to Look
        The methods' colours.

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
        headline=escape(headline),
        points="\n".join(f"<li>{escape(point)}</li>" for point in points),
        contents="\n".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        sections="\n\n".join(section.html() for section in sections),
    )


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _colours(looks: Mapping[str, Look], ground: str) -> str:
    return "".join(f"--c{look.colour[1:]}:{getattr(look, ground)};" for look in looks.values())
