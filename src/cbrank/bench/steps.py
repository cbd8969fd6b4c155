"""The list of all measurements."""

import difflib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from cbrank.bench.workloads import WORKLOADS, Workload

SINGLE = {"start": 20.0, "memory": 5.0, "selection": 30.0}


@dataclass(frozen=True)
class Step:
    """A measurement that is done as a whole, or again.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    run : callable
        Measures, and returns what JSON can hold.
    work : float
        About how long it takes, beside others.
    """

    name: str
    run: Callable[[], Any]
    work: float

    def __str__(self) -> str:
        return self.name


def plan(seed: int, quick: bool, only: list[str]) -> list[Step]:
    """List the measurements.

    Parameters
    ----------
    seed : int
        What decides the rows.
    quick : bool
        Whether to do less.
    only : list of str
        Names of workloads, groups of them or other measurements; all if empty.

    Returns
    -------
    list of Step
        Those that the data sets on this machine allow.
    """
    here = _here()
    workloads = [
        Step(workload.name, partial(_race, workload, seed, quick), workload.work)
        for workload in WORKLOADS
        if (not only or {workload.name, workload.group} & set(only))
        and (workload.quick or not quick)
        and (not workload.data or workload.data in here)
    ]
    return workloads + [
        Step(name, partial(_single, name, seed, quick), work)
        for name, work in SINGLE.items()
        if not only or name in only
    ]


def absent(only: list[str]) -> list[str]:
    """Name the data sets that are wanted and not on this machine."""
    here = _here()
    wanted = [w for w in WORKLOADS if not only or {w.name, w.group} & set(only)]
    return list(dict.fromkeys(w.data for w in wanted if w.data and w.data not in here))


def find(name: str) -> str:
    """Return the name of a measurement or a group of them.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> find("text")
    'text'
    """
    known = list(dict.fromkeys([w.group for w in WORKLOADS] + [w.name for w in WORKLOADS]))
    known += SINGLE
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
    raise ValueError(f"unknown measurement {name!r}: {hint}")


def _here() -> list[str]:
    from cbrank import datasets  # noqa: PLC0415

    return datasets.available()


def _race(workload: Workload, seed: int, quick: bool) -> list[dict[str, Any]]:
    from cbrank.bench.race import race  # noqa: PLC0415

    cuts = workload.quick if quick else workload.cuts
    rows = workload.load(cuts[-1], seed)
    ends = [cut for cut in cuts if cut < len(rows.y)]
    ends += [len(rows.y)] if len(ends) < len(cuts) else []
    passes = 1 if quick else workload.passes
    return [asdict(result) for result in race(workload.name, workload.peers, rows, ends, passes)]


def _single(name: str, seed: int, quick: bool) -> Any:
    from cbrank.bench import single  # noqa: PLC0415

    if name == "start":
        return single.starts(seed)
    return single.memories(seed, quick) if name == "memory" else single.selection(seed, quick)
