"""Figures: ratios beside targets, the roofline, AUC against time, and cost against sizes."""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers import BUFFER_SIZES
from benchmarks.results_folder import FAST, FAST_10, PLAIN, PLAIN_10, Results
from benchmarks.targets import Target, targets
from benchmarks.workloads import Workload
from cbrank.methods import Look
from cbrank.plotting import GRID, WIDTH, Picture, dots, headed, log_axis, log_y_axis, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Line = tuple[str, list[float], list[float]]

_LOOKS = {
    "CBR 50": Look("#0072b2", "#4ea3dd", "o"),
    "CBR 10": Look("#56b4e9", "#8fd0f5", "s"),
    "CBR 10, row by row": Look("#56b4e9", "#8fd0f5", "*"),
    "CBR default": Look("#0072b2", "#4ea3dd", "d"),
    "CBR fixed C": Look("#0072b2", "#4ea3dd", "H"),
    "CBR 50, C auto": Look("#0072b2", "#4ea3dd", "X"),
    FAST: Look("#0072b2", "#4ea3dd", "o"),
    FAST_10: Look("#56b4e9", "#8fd0f5", "s"),
    "CBR-diag 50": Look("#332288", "#9a92ea", "o"),
    "CBR-diag 10": Look("#332288", "#9a92ea", "s"),
    "CBR-diag default": Look("#332288", "#9a92ea", "d"),
    "CBR-diag 50, one call": Look("#332288", "#9a92ea", "*"),
    PLAIN: Look("#5b6570", "#a9b3bd", "P"),
    PLAIN_10: Look("#5b6570", "#a9b3bd", "x"),
    "SGD": Look("#e69f00", "#f0b432", "^"),
    "SGD hinge": Look("#e69f00", "#f0b432", "<"),
    "SGD averaged": Look("#e69f00", "#f0b432", ">"),
    "SGD, one call": Look("#e69f00", "#f0b432", "*"),
    "SGD, ten passes": Look("#e69f00", "#f0b432", "d"),
    "Batch LR": Look("#882255", "#d97bab", "X"),
    "River LR": Look("#009e73", "#2cc79b", "D"),
    "River AdPredictor": Look("#44aa99", "#63c9b8", "P"),
    "Vowpal Wabbit": Look("#d55e00", "#ff8a3d", "v"),
    "LibAUC": Look("#cc79a7", "#e29dc3", "p"),
    "CBR": Look("#0072b2", "#4ea3dd", "o"),
    "CBR-diag": Look("#332288", "#9a92ea", "o"),
}


def figures(results: Results, folder: Path) -> list[Picture]:
    """Draw all figures that the measurements allow."""
    drawn = [
        _ratios(targets(results), folder),
        _roofline(results, folder),
        *[_pareto(results, workload, folder) for workload in results.workloads("tabular", "text")],
        *[_dimension(results, noise, folder) for noise in ("easy", "noisy")],
        _buffer(results, folder),
        _length(results, folder),
    ]
    return [drawing for drawing in drawn if drawing]


def _ratios(aims: Sequence[Target], folder: Path) -> Picture | None:
    """Draw how far each ratio is from its target."""
    known = [
        (aim, aim.measured / aim.limit if aim.sign in "≤<" else aim.limit / aim.measured)
        for aim in aims
        if "/" in aim.text or "share" in aim.text
        if aim.verdict in {"met", "missed"}
    ]
    if not known:
        return None
    title = "Ratios beside their targets: what is left of the line is better"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for verdict, look in (("met", _LOOKS["CBR 50"]), ("missed", _LOOKS["Vowpal Wabbit"])):
            at = [place for place, (aim, _) in enumerate(known) if aim.verdict == verdict]
            if at:
                dots(axes, look, [known[place][1] for place in at], [-p for p in at], verdict)
        axes.axvline(1.0, color="#5b6570", linewidth=1)
        axes.set_yticks(
            [-at for at in range(len(known))],
            [f"{aim.text.replace('`', '')}  {aim.measured:#.3g}" for aim, _ in known],
            fontsize=6.5,
        )
        headed(figure, title)
        log_axis(axes, "times the target (log scale)")
        axes.grid(visible=True)
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.2, columnspacing=1)

    missed = [aim.text for aim, _ in known if aim.verdict == "missed"]
    alt = f"Ratios beside their targets: {len(known) - len(missed)} of {len(known)} are met."
    size = (6.6, 1.2 + 0.17 * len(known))
    return picture(draw, key="ratios", alt=alt, size=size, looks=_LOOKS, folder=folder)


def _roofline(results: Results, folder: Path) -> Picture | None:
    """Draw what the machine allows the sweep at each number of features, and what sweeps reach."""
    limits = results.limits()
    known = [
        (w.name, int(r.features), r.fired)
        for w in results.workloads("dimension")
        if w.name.endswith("third") and (r := results.ok(w.name, FAST))
    ]
    if not limits or not known:
        return None
    title = "Operations a second, a third of the pairs firing"
    x = [d for _, d, _ in known]
    lines = {
        "matrix rate": ("-", [limits.matrix for _ in x]),
        "loads, one product at a time": (":", [limits.loads(d) / 4 for d in x]),
        "loads and stores, one update at a time": ("--", [limits.changes(d) / 4 for d in x]),
    }
    allowed = [limits.attainable(d, 50, fired) / 1e9 for _, d, fired in known]
    points = {
        peer: [results.rate(name, peer, of) / 1e9 for name, _, _ in known]
        for peer, of in ((FAST, FAST), (FAST_10, FAST_10), (PLAIN, FAST), (PLAIN_10, FAST_10))
    }

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot(x, allowed, color=GRID, linewidth=6, label="allowed, 50 buffered")
        for name, (style, y) in lines.items():
            axes.plot(
                x, [rate / 1e9 for rate in y], style, color="#5b6570", linewidth=1, label=name
            )
        for peer, y in points.items():
            axes.plot(x, y, color=_LOOKS[peer].colour, linewidth=1)
            dots(axes, _LOOKS[peer], x, y, label=peer)
        headed(figure, title)
        log_axis(axes, "features (log scale)")
        log_y_axis(axes, "Gflop/s (log scale)")
        axes.grid(visible=True)
        figure.legend(loc="outside lower left", ncols=2, handletextpad=0.4, columnspacing=1)

    reached = ", ".join(f"{y:.3g} at {d}" for d, y in zip(x, points[FAST], strict=True))
    alt = (
        f"{title}, in Gflop/s: the matrix rate is {limits.matrix / 1e9:.3g}; CBR 50 has {reached}."
    )
    return picture(draw, key="roofline", alt=alt, size=(WIDTH, 4.6), looks=_LOOKS, folder=folder)


def _pareto(results: Results, workload: Workload, folder: Path) -> Picture | None:
    """Draw AUC against the time of a row, and a line through the peers that none beats in both."""
    points = [
        (result.peer, result.cost, result.auc)
        for result in results.of(workload.name)
        if result.status == "ok" and not math.isnan(result.auc)
    ]
    if not points:
        return None
    title = f"AUC against time: {workload.title}"

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        x, y = zip(*_front([point[1:] for point in points]), strict=True)
        axes.step(x, y, where="post", color="#5b6570", linewidth=0.8, zorder=0)
        for peer, cost, auc in points:
            dots(axes, _LOOKS[peer], [cost], [auc], label=peer)
        headed(figure, title)
        log_axis(axes, "microseconds a row (log scale)")
        axes.set_ylabel("AUC on rows held out")
        axes.grid(visible=True)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.2, columnspacing=1)

    best = max(points, key=lambda point: point[2])
    alt = (
        f"{title}. The best AUC, {best[2]:.4f}, is {best[0]}'s at {best[1]:.3g} microseconds a row."
    )
    return picture(
        draw, key=f"pareto-{workload.name}", alt=alt, size=(WIDTH, 4.4), looks=_LOOKS, folder=folder
    )


def _front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that none beats in both cost and AUC, by cost."""
    ordered = sorted(points, key=lambda point: (point[0], -point[1]))
    best = [-math.inf, *accumulate((auc for _, auc in ordered), max)]
    return [point for point, before in zip(ordered, best, strict=False) if point[1] > before]


def _dimension(results: Results, noise: str, folder: Path) -> Picture | None:
    workloads = [w for w in results.workloads("dimension") if w.name.endswith(noise)]
    peers = dict.fromkeys(peer for workload in workloads for peer in workload.peers)
    lines = []
    for peer in peers:
        known = [r for w in workloads if (r := results.ok(w.name, peer))]
        lines.append((peer, [r.features for r in known], [r.cost for r in known]))
    title = f"Cost of a row against features, {noise} rows"
    return _lines(lines, title, "features (log scale)", f"cost-d-{noise}", folder)


def _buffer(results: Results, folder: Path) -> Picture | None:
    lines = []
    for form in ("CBR", "CBR-diag"):
        known = [(M, r) for M in BUFFER_SIZES if (r := results.ok("buffer", f"{form} {M}"))]
        lines.append((form, [float(M) for M, _ in known], [r.cost for _, r in known]))
    title = "Cost of a row against rows buffered, 54 features"
    return _lines(lines, title, "rows buffered of each class (log scale)", "cost-M", folder)


def _length(results: Results, folder: Path) -> Picture | None:
    lines = []
    for result in results.of("length"):
        if result.status == "ok":
            ends = list(accumulate(float(chunk.rows) for chunk in result.chunks[0]))[1:]
            lines.append((result.peer, ends, result.costs))
    title = "Cost of a row against rows seen, 54 features"
    return _lines(lines, title, "rows seen (log scale)", "cost-n", folder)


def _lines(lines: Iterable[Line], title: str, label: str, key: str, folder: Path) -> Picture | None:
    lines = [line for line in lines if line[1]]
    if not lines:
        return None

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for name, x, y in lines:
            axes.plot(x, y, color=_LOOKS[name].colour, linewidth=1)
            dots(axes, _LOOKS[name], x, y, label=name)
        headed(figure, title)
        log_axis(axes, label)
        log_y_axis(axes, "microseconds a row (log scale)")
        axes.grid(visible=True)
        figure.legend(loc="outside lower left", ncols=3, handletextpad=0.2, columnspacing=1)

    ends = [f"{name} from {y[0]:.3g} to {y[-1]:.3g}" for name, _, y in lines]
    alt = f"{title}, microseconds: {', '.join(ends)}."
    return picture(draw, key=key, alt=alt, size=(WIDTH, 4.0), looks=_LOOKS, folder=folder)
