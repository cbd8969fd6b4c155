"""What decides the numbers of a study, apart from the code."""

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from cbrank.datasets.entry import Table

Scaling = Literal["unit", "standard", "none"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)
Cut = Literal["training", "all"]
CUTS: tuple[Cut, ...] = get_args(Cut)
RUNS: dict[Table, int] = {"benchmark": 10, "high-dimensional": 5}


class StudyError(ValueError):
    """A study's folder holds files that a new session cannot continue."""


_AT_A_TIME = 5  # powers of two that are tried together beside the best


class Grid(NamedTuple):
    """Values of the tuned parameter, as powers of two.

    Attributes
    ----------
    exponents : tuple of int
        The paper's grid, evenly spaced.
    probes : tuple of int
        What else is tried at first: far from the grid, a method may be better again.
    bound : int or None
        The largest size of an exponent that may be tried; None if nothing but `exponents` is.
    """

    exponents: tuple[int, ...]
    probes: tuple[int, ...] = ()
    bound: int | None = None

    @property
    def first(self) -> list[int]:
        """What is tried at first, in increasing order."""
        return sorted({*self.exponents, *(self.probes if self.bound else ())})

    def beside(self, best: int, tried: Collection[int]) -> list[int]:
        """Return what is to be tried next, in increasing order.

        If a neighbour of the best exponent was not tried, it is, and with it all that are less
        than five powers further on that side.

        Examples
        --------
        >>> grid = Grid((-2, -1, 0, 1, 2), probes=(-6, 6), bound=60)
        >>> grid.beside(-2, grid.first)
        [-7, -5, -4, -3]
        >>> grid.beside(-1, grid.first)
        []
        """
        if self.bound is None:
            return []
        step = self.exponents[1] - self.exponents[0] if len(self.exponents) > 1 else 1
        away = range(step, max(step, _AT_A_TIME) + 1, step)
        sides = [[best + side * by for by in away] for side in (-1, 1)]
        wanted = {e for side in sides if side[0] not in tried for e in side if abs(e) <= self.bound}
        return sorted(wanted - {*tried})


@dataclass(frozen=True)
class Settings:
    """The seed, the grid, the protocol and the sizes of a study.

    Attributes
    ----------
    seed : int
        Master seed.
    exponents : tuple of int
        The paper's grid of the tuned parameter, as powers of two.
    probes : tuple of int
        Powers of two that are tried beside it in other scalings than the paper's.
    bound : int
        How far one may go from there while better values are found.
    benchmark_rows, text_rows : int
        Most rows taken of a data set of the paper's Table 1 and Table 2.
    cut : {"training", "all"}
        Which rows that is the most of: those learned from, so that the whole fifth fold is tested
        on, or all rows, before they are divided into folds.

    Examples
    --------
    >>> Settings(exponents=(-1, 0, 1)).grid("unit")
    Grid(exponents=(-1, 0, 1), probes=(), bound=None)
    """

    seed: int = 0
    exponents: tuple[int, ...] = tuple(range(-10, 11))
    probes: tuple[int, ...] = (-30, -25, -20, -15, 15, 20, 25, 30)
    bound: int = 60
    benchmark_rows: int = 8000
    text_rows: int = 2000
    cut: Cut = "training"

    def grid(self, scaling: Scaling) -> Grid:
        """Return the grid for rows of a scaling: in the paper's own it is the paper's."""
        if scaling == "unit":
            return Grid(self.exponents)
        return Grid(self.exponents, self.probes, self.bound)

    def rows(self, table: Table) -> int:
        """Return the most rows taken of a data set of a table."""
        return self.benchmark_rows if table == "benchmark" else self.text_rows

    def run_seed(self, dataset: str, run: int) -> int:
        """Return the seed of a run, the same for every method and scaling.

        Examples
        --------
        >>> Settings().run_seed("glass", 0)
        2669841716
        """
        digest = hashlib.sha256(f"{self.seed} {dataset} {run}".encode()).digest()
        return int.from_bytes(digest[:4], "big")

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON will give them back."""
        lists = {"exponents": list(self.exponents), "probes": list(self.probes)}
        return asdict(self) | lists


def quick(seed: int, cut: Cut = "training") -> Settings:
    """Return settings for a first look: a coarser grid and fewer rows."""
    return Settings(
        seed,
        tuple(range(-10, 11, 4)),
        probes=(-26, -18, 18, 26),
        benchmark_rows=1000,
        text_rows=1000,
        cut=cut,
    )
