"""What the machine allows the sweep: its operations, its loads and stores, and the least time.

This is the one place where the work of CBR's sweep with full covariance is counted.
"""

from typing import Any, NamedTuple

# Products with Sigma, and rank-one updates of it, that are made in one pass over it.
_PRODUCTS, _UPDATES = 2, 4
_BYTES = 8.0  # of a number


class Work(NamedTuple):
    """What a sweep does.

    Attributes
    ----------
    operations : float
        Additions and multiplications.
    loaded : float
        Bytes that are only loaded.
    changed : float
        Bytes that are loaded, changed and stored.
    """

    operations: float
    loaded: float
    changed: float


def work(d: int, M: int, rows: int, updates: int) -> Work:
    """Count what CBR's sweep with full covariance must do.

    Pair by pair, for fewer columns than `WORTHWHILE` of the blocked kernel: a row takes one product with Sigma, 2 d^2 operations for which
    Sigma is loaded, and the margins of its M pairs, 3 M d, for which the buffered rows are. A pair
    that fires takes another product, 2 d^2, and a rank-one update, 2 d^2. Products are made for two
    pairs at a time and updates for four, so that Sigma is loaded once for two products, and loaded
    and stored once for four updates.

    In blocks, for more columns: a row takes 2 d^2; a pair that fires takes d^2 for one triangle
    of its rank-one matrix, and 8 M d to bring scores and products of both buffers up to date. What
    is loaded is used many times, so only operations count.

    Pairs that are looked at and do not fire are not counted, nor are the corrections for updates
    that wait to be applied: what they cost counts against CBR.

    Parameters
    ----------
    d, M : int
        Features, and buffered rows of each class.
    rows, updates : int
        Rows learned from, and pairs that fired.

    Returns
    -------
    Work
        The counts.

    Examples
    --------
    >>> work(10, 5, rows=1, updates=4)
    Work(operations=1950.0, loaded=2800.0, changed=800.0)
    """
    from cbrank.kernels.blocked import WORTHWHILE  # noqa: PLC0415

    matrix = float(d * d)
    if d >= WORTHWHILE:
        return Work(rows * 2.0 * matrix + updates * (matrix + 8.0 * M * d), 0.0, 0.0)
    return Work(
        operations=rows * (2.0 * matrix + 3.0 * M * d) + updates * 4.0 * matrix,
        loaded=_BYTES * (rows * (matrix + M * d) + updates * matrix / _PRODUCTS),
        changed=_BYTES * updates * matrix / _UPDATES,
    )


class Limits:
    """The machine's limits, as measured by `benchmarks.limits`.

    Parameters
    ----------
    measured : dict
        What `benchmarks.limits.limits` returned.
    """

    def __init__(self, measured: dict[str, Any]) -> None:
        self.matrix = float(measured["matrix"])
        self.lines: list[dict[str, Any]] = measured["sizes"]

    def loads(self, d: int) -> float:
        """Return the bytes a second that can be loaded from a matrix of d columns and rows."""
        return self._rate("loads", d)

    def changes(self, d: int) -> float:
        """Return the bytes a second of such a matrix that can be loaded, changed and stored."""
        return self._rate("changes", d)

    def _rate(self, name: str, d: int) -> float:
        """Take the highest of those of larger blocks too: a smaller one is not slower to load.

        That the loop over a block of a few numbers hardly starts before it ends, is no limit.
        """
        largest = max(line["features"] for line in self.lines)
        return max(float(li[name]) for li in self.lines if li["features"] >= min(d, largest))

    def least_seconds(self, d: int, todo: Work, matrix: float | None = None) -> float:
        """Return the least time of some work: the longer one of operations, and of loads and stores.

        Parameters
        ----------
        d : int
            Features.
        todo : Work
            The work.
        matrix : float, optional
            The rate of matrix products meanwhile, if it was measured.
        """
        traffic = todo.loaded / self.loads(d) + todo.changed / self.changes(d)
        return max(todo.operations / (matrix or self.matrix), traffic)

    def attainable(self, d: int, M: int, fired: float) -> float:
        """Return the operations a second that a sweep can reach if a share of its pairs fires."""
        rows = 1000
        todo = work(d, M, rows, round(fired * M * rows))
        return todo.operations / self.least_seconds(d, todo)
