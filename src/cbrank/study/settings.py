"""What decides the numbers of a study, apart from the code."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from cbrank.datasets.entry import Table

Scaling = Literal["unit", "standard", "none"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)
RUNS: dict[Table, int] = {"benchmark": 10, "high-dimensional": 5}


class StudyError(ValueError):
    """A study's folder holds files that a new session cannot continue."""


@dataclass(frozen=True)
class Settings:
    """The seed, the grid and the sizes of a study.

    Attributes
    ----------
    seed : int
        Master seed.
    exponents : tuple of int
        The grid of the tuned parameter, as powers of two.
    benchmark_rows, text_rows : int
        Most rows taken of a data set of the paper's Table 1 and Table 2.

    Examples
    --------
    >>> Settings(seed=3).grid[:2]
    [0.0009765625, 0.001953125]
    """

    seed: int = 0
    exponents: tuple[int, ...] = tuple(range(-10, 11))
    benchmark_rows: int = 8000
    text_rows: int = 2000

    @property
    def grid(self) -> list[float]:
        """The values of the tuned parameter, in increasing order."""
        return [2.0**exponent for exponent in self.exponents]

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


def quick(seed: int) -> Settings:
    """Return settings for a first look: a coarser grid and fewer rows."""
    return Settings(seed, tuple(range(-10, 11, 4)), benchmark_rows=1000, text_rows=1000)
