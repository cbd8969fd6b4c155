"""Draw the picture of the README and of the first page.

    python docs/make_picture.py    # writes docs/picture.svg

Left: mean AUC over the study's benchmark sets, from docs/study/results.csv. Right: the words of
docs/examples/plot_text.py, which is run for it. The picture has its own background, light or dark as
the reader prefers.
"""

import csv
import io
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
METHODS = {
    "CBR_FIFO": "CBR",
    "AdaOAM": "AdaOAM",
    "OAM_seq": "OAM",
    "Uni-Exp": "Uni-Exp",
    "OPAUC": "OPAUC",
}

# Colours on a light background, and what they become on a dark one.
INK, SOFT, FAINT, GROUND = "#1d2329", "#5b6570", "#d5dbe1", "#fffffe"
BLUE, ORANGE = "#0072b2", "#d55e00"
DARK = {
    INK: "#e6eaee",
    SOFT: "#a9b3bd",
    FAINT: "#3b444d",
    GROUND: "#15191e",
    BLUE: "#4ea3dd",
    ORANGE: "#ff8a3d",
}


def mean_auc(scaling):
    """Return the mean AUC of each method over the data sets of the study."""
    with (HERE / "study/results.csv").open(encoding="utf-8") as file:
        lines = [row for row in csv.DictReader(file) if row["table"] == "benchmark"]
    found = {}
    for method in METHODS:
        of_method = [r for r in lines if (r["method"], r["scaling"]) == (method, scaling)]
        names = sorted({row["dataset"] for row in of_method})
        means = [np.mean([float(r["auc"]) for r in of_method if r["dataset"] == n]) for n in names]
        found[method] = np.mean(means)
    return found, len(names)


def draw_scaling(panel):
    """Draw what happens to each method when nobody scales the columns."""
    (scaled, count), (raw, _) = mean_auc("standard"), mean_auc("none")
    for place, (method, name) in enumerate(METHODS.items()):
        colour = BLUE if method == "CBR_FIFO" else SOFT
        panel.plot([raw[method], scaled[method]], [-place] * 2, color=FAINT, linewidth=4, zorder=1)
        panel.plot(
            scaled[method],
            -place,
            "o",
            color=GROUND,
            markeredgecolor=colour,
            markersize=7.5,
            markeredgewidth=1.6,
        )
        panel.plot(raw[method], -place, "o", color=colour, markersize=8)
        panel.text(
            0.925,
            -place,
            name,
            va="center",
            color=colour,
            weight="bold" if place == 0 else "normal",
            fontsize=11,
        )
        panel.text(
            raw[method] - 0.012, -place, f"{raw[method]:.3f}", va="center", ha="right", color=colour
        )
    panel.set(xlim=(0.53, 0.92), ylim=(-4.6, 0.6), yticks=[])
    panel.set_xlabel(f"AUC after one pass, mean of {count} data sets")
    panel.set_title("Take the scaler away", pad=26)
    subtitle(panel, "● columns as they come   ○ columns standardised")


def draw_words(panel):
    """Draw the most certain words of the text example, with their deviations."""
    with plt.rc_context({"backend": "agg"}):
        known = runpy.run_path(str(HERE / "examples/plot_text.py"))
    weights, deviations = known["weights"], known["deviations"]
    surest = np.argsort(-abs(weights / deviations))
    chosen = np.concatenate([surest[weights[surest] > 0][:8], surest[weights[surest] < 0][:3]])
    for place, word in enumerate(chosen):
        colour = ORANGE if weights[word] > 0 else BLUE
        reach = weights[word] + np.array([-1, 1]) * deviations[word]
        panel.plot(reach, [-place] * 2, color=colour, linewidth=2.2, alpha=0.55)
        panel.plot(weights[word], -place, "o", color=colour, markersize=5.5)
    panel.axvline(0, color=SOFT, linewidth=0.8)
    panel.set_yticks(-np.arange(len(chosen)), [known["words"][word] for word in chosen])
    panel.tick_params(axis="y", length=0)
    panel.set(ylim=(-len(chosen) + 0.4, 0.6), xlabel="weight of the word ± its deviation")
    panel.set_title("A confidence for every weight", pad=26)
    subtitle(panel, "words for and against: is it about optimisation?")


def subtitle(panel, text):
    panel.annotate(text, (0, 1), (0, 10), "axes fraction", "offset points", color=SOFT)


def svg(figure):
    """Return the drawing as text, with colours that a dark page changes."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for name, light in enumerate(DARK):
        text = text.replace(light, f"var(--c{name})")
    light = "".join(f"--c{name}:{colour};" for name, colour in enumerate(DARK))
    dark = "".join(f"--c{name}:{colour};" for name, colour in enumerate(DARK.values()))
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text.replace("<defs>", style + "<defs>", 1)


def main():
    plt.style.use(HERE / "house.mplstyle")
    plt.rcParams.update({
        "axes.edgecolor": SOFT, "axes.labelcolor": SOFT, "grid.color": FAINT, "svg.hashsalt": "cbrank",
        "text.color": INK, "xtick.color": SOFT, "xtick.labelcolor": SOFT, "ytick.color": SOFT, "ytick.labelcolor": SOFT,
        "axes.titlesize": 13, "font.size": 10, "figure.facecolor": GROUND, "axes.facecolor": GROUND, "axes.titlecolor": INK,
    })  # fmt: skip
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.9), width_ratios=[1.15, 1])
    figure.set_layout_engine("constrained", w_pad=0.2, h_pad=0.15)
    for panel in (left, right):
        panel.grid(visible=False)
        panel.spines["left"].set_visible(False)
    draw_scaling(left)
    draw_words(right)
    (HERE / "picture.svg").write_text(svg(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
