"""How the gallery's examples are ordered and drawn."""

import logging
from pathlib import Path

import matplotlib.pyplot as plt

STYLE = Path(__file__).with_name("house.mplstyle")

# From the first steps to the last; examples that are not named here come at the end.
READING_ORDER = [
    "plot_start.py",
    "plot_choosing.py",
    "plot_text.py",
    "plot_csv.py",
    "plot_table.py",
    "plot_curves.py",
    "plot_algorithm.py",
    "plot_baselines.py",
    "plot_weights.py",
    "plot_selection.py",
    "plot_active_learning.py",
    "plot_abstaining.py",
    "plot_forgetting.py",
    "plot_river.py",
    "plot_dask.py",
]


class ReadingOrder:
    """The order of the gallery."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        name = Path(filename).name
        known = name in READING_ORDER
        return (READING_ORDER.index(name) if known else len(READING_ORDER), name)

    def __repr__(self):
        return f"<ReadingOrder {READING_ORDER}>"


def house_style(gallery_conf, fname):  # noqa: ARG001
    """Give each example the same look, and no word on what is compiled."""
    plt.style.use(STYLE)
    logging.getLogger("cbrank").setLevel(logging.ERROR)
