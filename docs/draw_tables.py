"""Draw the pictures of two pages from the tables that they include.

    python docs/draw_tables.py    # writes docs/selection.svg and docs/buffers.svg

Left to right: docs/_selection_table.md, AUC by the number of features; docs/_certificates_table.md, the gap by the
size of the buffer.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from make_picture import BLUE, FAINT, GROUND, INK, ORANGE, SOFT, svg
from matplotlib.ticker import NullFormatter, ScalarFormatter

HERE = Path(__file__).parent
METHODS = {
    "`max_features=K`": ("max_features=K", BLUE, "-"),
    "cut after the pass": ("cut after the pass", ORANGE, "--"),
    "SOFS": ("SOFS, a cut after each row", SOFT, ":"),
}
SETS = "farm-ads", "rcv1", "sector", "news20"
STREAMS = "magic04, shuffled", "spambase, shuffled", "covtype, shuffled"


def cells(name):
    """Return the rows of the tables of a page, as lists of cells."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


def by_features(panels):
    """Draw AUC against the number of features, a panel for each set."""
    rows = cells("_selection_table.md")
    head = next(row for row in rows if row[0] == "set")
    Ks = [int(cell.replace(",", "")) for cell in head[2:-1]]
    rows = [row for row in rows if len(row) == len(Ks) + 3]
    for panel, name in zip(panels, SETS, strict=True):
        for method, (title, colour, line) in METHODS.items():
            [values] = [row[2:] for row in rows if row[:2] == [name, method]]
            panel.plot(Ks, [float(value) for value in values[:-1]], line, color=colour, label=title)
            if line == "-":
                label = "all features"
                panel.axhline(float(values[-1]), color=FAINT, zorder=0, label=label)
        panel.set(xscale="log", xlabel="features, K", title=name)
    panels[0].set_ylabel("AUC")


def by_buffer(panels):
    """Draw the gap of streams against the rows that a buffer holds, and the rate of the bound."""
    rows = cells("_certificates_table.md")
    sizes = [int(cell) for cell in next(row for row in rows if row[0] == "stream")[3:]]
    for panel, name in zip(panels, STREAMS, strict=True):
        for policy, colour in (("reservoir", BLUE), ("fifo", ORANGE)):
            for what, line in (("gap", "o-"), ("rate of the bound", ":")):
                [row] = [row[3:] for row in rows if row[:3] == [name, policy, what]]
                shown = what == "gap" or policy == "reservoir"
                label = f"{policy}, gap" if what == "gap" else r"$1 / \sqrt{s}$"
                if shown:
                    panel.plot(
                        sizes, [float(cell) for cell in row], line, color=colour, label=label
                    )
        panel.axhline(0.0, color=FAINT, zorder=0)
        panel.set(xscale="log", xlabel="rows of each class, s", title=name)
        panel.xaxis.set_major_formatter(ScalarFormatter())
        panel.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel("gap in AUC")


def write(name, draw, panels):
    figure, axes = plt.subplots(1, panels, figsize=(9.4, 3.3), sharey=True)
    figure.set_layout_engine("constrained")
    draw(axes)
    lines, labels = axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(lines), frameon=False)
    (HERE / name).write_text(svg(figure), encoding="utf-8")


def main():
    plt.style.use(HERE / "house.mplstyle")
    plt.rcParams.update({
        "axes.edgecolor": SOFT, "axes.labelcolor": SOFT, "grid.color": FAINT, "svg.hashsalt": "cbrank",
        "text.color": INK, "xtick.color": SOFT, "xtick.labelcolor": SOFT, "ytick.color": SOFT, "ytick.labelcolor": SOFT,
        "font.size": 10, "figure.facecolor": GROUND, "axes.facecolor": GROUND, "axes.titlecolor": INK,
    })  # fmt: skip
    write("selection.svg", by_features, len(SETS))
    write("buffers.svg", by_buffer, len(STREAMS))


if __name__ == "__main__":
    main()
