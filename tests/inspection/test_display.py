"""Curves, bars and maps, drawn."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from tables import run

import cbrank
from cbrank import AdditiveRanker
from cbrank.inspection import CurvesDisplay
from cbrank.inspection.display import draw_curves, ends_of, panels_of

mpl.use("agg")


@pytest.fixture(scope="module")
def rows():
    random = np.random.RandomState(0)
    frame = {
        "a $x$ of a name that is much too long": random.normal(size=600),
        "city": random.choice([f"town number {at}" for at in range(20)], 600).tolist(),
        "flag": (random.rand(600) < 0.5).tolist(),
    }
    first = frame["a $x$ of a name that is much too long"]
    y = (first + np.where(frame["flag"], 1, -1) * first + random.normal(size=600) > 0.5).astype(int)
    return frame, y


@pytest.fixture(scope="module")
def ranker(rows):
    return AdditiveRanker(random_state=0).fit(*rows)


def overlaps(labels, renderer):
    """Say whether any two texts lie over each other."""
    boxes = [label.get_window_extent(renderer) for label in labels if label.get_text()]
    return any(one.overlaps(two) for at, one in enumerate(boxes) for two in boxes[:at])


def test_what_moves_most_is_first_and_no_labels_overlap(ranker, rows):
    display = CurvesDisplay.from_estimator(ranker, X=rows[0])
    moves = [panel.moves for panel in display.panels[:3]]
    assert moves == sorted(moves, reverse=True)
    assert [panel.kind for panel in display.panels[3:]] == ["pair"] * 3
    assert {panel.kind for panel in display.panels[:3]} == {"number", "word"}
    assert len(display.axes_) == len(display.panels) == 6
    display.figure_.canvas.draw()
    renderer = display.figure_._get_renderer()  # type: ignore[attr-defined]
    for axes in display.axes_:
        assert not overlaps(axes.get_yticklabels(), renderer)
        assert len(axes.get_title(loc="left")) <= 30
    plt.close(display.figure_)


def test_columns_and_axes_of_the_callers(ranker):
    figure, axes = plt.subplots(1, 2)
    display = CurvesDisplay.from_estimator(ranker, ["city", (0, "flag")], ax=axes)
    assert display.figure_ is figure
    assert [panel.kind for panel in display.panels] == ["word", "pair"]
    assert axes[0].get_xlabel() == "8 of 20 categories"
    with pytest.raises(ValueError, match="`ax` has 2 axes, and there are 1 panels"):
        CurvesDisplay.from_estimator(ranker, ["city"], ax=axes)
    plt.close(figure)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_inspect_draws_them(rows, tmp_path, ending):
    ranker = AdditiveRanker(random_state=0).fit(*rows)
    model, path = tmp_path / "x.model", tmp_path / f"curves.{ending}"
    cbrank.save(ranker, model)
    result = run("inspect", model, "--picture", path)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert "class            AdditiveRanker" in lines
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["column", "kind", "effect", "lowest", "highest"]
    assert len(table) == 1 + len(ranker.effects().terms)
    assert path.stat().st_size > 1000
    shown = run("inspect", model, "--top", "1", "--json").stdout
    assert shown.count('"kind"') == 1


@pytest.mark.parametrize("kind", ["number", "word", "time"])
def test_a_column_of_gaps_only_has_nothing_to_show(rows, tmp_path, kind):
    frame = {**rows[0], "none": [None] * 600}
    ranker = AdditiveRanker(random_state=0, kinds={"none": kind}).fit(frame, rows[1])
    assert "none" in [term.name for term in ranker.effects().terms]
    panels = panels_of(ranker)
    assert len(panels) == 3
    assert [len(ends_of(panel)) for panel in panels] == [2, 2, 2]
    display = CurvesDisplay.from_estimator(ranker, ["none"])
    assert [len(panel.curve.grid) for panel in display.panels] == [0]
    display.figure_.canvas.draw()
    plt.close(display.figure_)
    cbrank.save(ranker, tmp_path / "x.model")
    result = run("inspect", tmp_path / "x.model", "--picture", tmp_path / "x.svg")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "none" not in result.stdout.partition("lowest")[2]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_letters_that_the_font_lacks_are_no_warning(rows, tmp_path, ending):
    frame = {"mood 😀": rows[0]["city"], "日本": rows[0]["flag"]}
    ranker = AdditiveRanker(random_state=0).fit(frame, rows[1])
    path = tmp_path / f"curves.{ending}"
    draw_curves(path, panels_of(ranker))
    assert ending == "png" or "mood 😀" in path.read_text("utf-8")
