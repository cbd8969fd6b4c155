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


_AT_A_TIME = 5  # powers of two by which a grid is widened


class Grid(NamedTuple):
    """Values of the tuned parameter, as powers of two.

    Attributes
    ----------
    exponents : tuple of int
        What is tried at first, in increasing order.
    bound : int or None
        The largest size of an exponent that may be tried when the best value lies at an end; None
        if the grid is not widened.
    """

    exponents: tuple[int, ...]
    bound: int | None = None

    def wider(self, tried: Collection[int], best: Collection[int]) -> list[int]:
        """Return what is to be tried next, beyond the ends of `tried` that are among the best.

        Examples
        --------
        >>> grid = Grid((-2, -1, 0, 1, 2), bound=60)
        >>> grid.wider(grid.exponents, [-2])
        [-7, -6, -5, -4, -3]
        >>> grid.wider(grid.exponents, [-1])
        []
        """
        if self.bound is None:
            return []
        gaps = [b - a for a, b in zip(self.exponents, self.exponents[1:], strict=False)] or [1]
        below = range(gaps[0], max(gaps[0], _AT_A_TIME) + 1, gaps[0])
        above = range(gaps[-1], max(gaps[-1], _AT_A_TIME) + 1, gaps[-1])
        low, high = min(tried), max(tried)
        next_ones = [low - by for by in reversed(below)] * (low in best)
        next_ones += [high + by for by in above] * (high in best)
        return [exponent for exponent in next_ones if abs(exponent) <= self.bound]


@dataclass(frozen=True)
class Settings:
    """The seed, the grid, the protocol and the sizes of a study.

    Attributes
    ----------
    seed : int
        Master seed.
    exponents : tuple of int
        The paper's grid of the tuned parameter, as powers of two.
    bound : int
        How far this grid may be widened in other scalings than the paper's.
    benchmark_rows, text_rows : int
        Most rows taken of a data set of the paper's Table 1 and Table 2.
    cut : {"training", "all"}
        Which rows that is the most of: those learned from, so that the whole fifth fold is tested
        on, or all rows, before they are divided into folds.

    Examples
    --------
    >>> Settings(exponents=(-1, 0, 1)).grid("none")
    Grid(exponents=(-1, 0, 1), bound=60)
    """

    seed: int = 0
    exponents: tuple[int, ...] = tuple(range(-10, 11))
    bound: int = 60
    benchmark_rows: int = 8000
    text_rows: int = 2000
    cut: Cut = "training"

    def grid(self, scaling: Scaling) -> Grid:
        """Return the grid for rows of a scaling: in the paper's own it is the paper's."""
        return Grid(self.exponents, None if scaling == "unit" else self.bound)

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
        return asdict(self) | {"exponents": list(self.exponents)}


def quick(seed: int, cut: Cut = "training") -> Settings:
    """Return settings for a first look: a coarser grid and fewer rows."""
    return Settings(seed, tuple(range(-10, 11, 4)), benchmark_rows=1000, text_rows=1000, cut=cut)
