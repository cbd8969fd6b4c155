"""The page of an evaluation: every number against a plain computation, and in a real browser."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from browsing import CUT_OFF, DRAWN, PHONE, fetched, need_browser, opened_browser, show
from made_evaluation import LONG, made_evaluation
from scipy.stats import norm
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from cbrank import AdditiveRanker
from cbrank.inspection import pictures
from cbrank.inspection.display import ends_of, maps_of, panels_of
from cbrank.inspection.evaluation import evaluate
from cbrank.inspection.groups import Grouping
from cbrank.inspection.page import write_page
from cbrank.inspection.summary import tables
from cbrank.metrics import auc_interval
from cbrank.tables import plain
from cbrank.training.ages import ages_of

pytest.importorskip("matplotlib", reason="pages need matplotlib")

LABEL = "<yes>" + 60 * "s"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    ranker, rows, found = made_evaluation()
    path = tmp_path_factory.mktemp("page") / "towns.html"
    how = {"model": "a & b.model", "command": "cbrank evaluate 'a & b.model' x.csv"}
    write_page(path, found, LABEL, **how, ranker=ranker)
    return path, ranker, rows, found


class Page(HTMLParser):
    """Headings, points, cells of tables by the name of the table, names of pictures, anchors."""

    def __init__(self, text):
        super().__init__()
        self.headings, self.points, self.alts, self.ids, self.terms = [], [], [], [], {}
        self.tables, self.captions = {}, []
        self.into, self.table = None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids += [named["id"]] if "id" in named else []
        if tag == "svg" and named.get("role") == "img":
            self.alts.append(named["aria-label"])
        if tag == "table":
            self.table = self.tables.setdefault(named["id"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("th", "td"):
            self.table[-1].append("")
            self.into = lambda text, cells=self.table[-1]: cells.append(cells.pop() + text)
        elif tag in ("h1", "h2", "h3", "figcaption", "li", "caption"):
            kept = {"figcaption": self.captions, "li": self.points}.get(tag, self.headings)
            kept.append("")
            self.into = lambda text, kept=kept: kept.append(kept.pop() + text)

    def handle_endtag(self, tag):
        if tag in ("th", "td", "h1", "h2", "h3", "figcaption", "li", "caption"):
            self.into = None

    def handle_data(self, data):
        if self.into:
            self.into(data)


@pytest.fixture(scope="module")
def page(made):
    return Page(made[0].read_text(encoding="utf-8"))


def percent(share):
    return f"{share:.2%}"


def among(values, scores, rows):
    """Return the mean sum of values of the first rows, over all orders of equal scores."""
    total = 0.0
    for score in np.unique(scores):
        equal = scores == score
        taken = min(1.0, max(0.0, (rows - (scores > score).sum()) / equal.sum()))
        total += taken * values[equal].sum()
    return total


def test_the_measures(made, page):
    y, scores, p, _ = made[2]
    auc = auc_interval(y, scores)
    error, base = 0.0, log_loss(y, np.full(3000, y.mean()))
    for first, last in pairwise(range(0, 3001, 300)):
        share, mean = ((among(v, scores, last) - among(v, scores, first)) / 300 for v in (y, p))
        error += abs(share - mean) / 10
    assert page.points[:6] == [
        "Rows: 3,000.",
        f"Positives: {y.sum()} ({percent(y.mean())}), labelled {LABEL!r}.",
        f"AUC: {roc_auc_score(y, scores):.4f}, 95% interval {auc.low:.4f} to {auc.high:.4f}.",
        f"Average precision: {average_precision_score(y, scores):.4f}, by chance {y.mean():.4f}.",
        f"Log loss: {log_loss(y, p):.4f}, by the share of positives alone {base:.4f}.",
        f"Calibration error: {error:.4f}, mean probability {percent(p.mean())}.",
    ]
    recall = among(y, scores, 300) / y.sum()
    assert page.headings[0] == (
        f"The first 10% of the rows have {recall:.1%} of the positives; AUC {auc.auc:.4f}"
    )


def test_the_first_rows(made, page):
    y, scores, _, _ = made[2]
    expected = [["top", "rows", "positives", "precision", "recall", "lift"]]
    for name, rows in {"0.1%": 3, "25 rows": 25, "1%": 30, "2%": 60, "5%": 150, "10%": 300}.items():
        hits = among(y, scores, rows)
        rates = percent(hits / rows), percent(hits / y.sum()), f"{hits / rows / y.mean():.2f}"
        expected.append([name, str(rows), f"{hits:.1f}", *rates])
    assert sorted(page.tables["tops"]) == sorted(expected)


def test_the_deciles(made, page):
    y, scores, p, _ = made[2]
    head, *rows = page.tables["deciles"]
    assert head[1:] == ["rows", "positives", "share", "lift", "recall so far", "mean probability"]
    for at, row in enumerate(rows):
        before, upto = (among(y, scores, 300 * end) for end in (at, at + 1))
        chance = among(p, scores, 300 * at + 300) - among(p, scores, 300 * at)
        hits = upto - before
        assert row == [
            str(at + 1),
            "300",
            f"{hits:.1f}",
            percent(hits / 300),
            f"{hits / 300 / y.mean():.2f}",
            percent(upto / y.sum()),
            percent(chance / 300),
        ]
    assert len(rows) == 10


def test_the_thresholds(made, page):
    y, scores, _, _ = made[2]
    points = [(y[scores >= t].mean(), (scores[y == 1] >= t).mean(), t) for t in np.unique(scores)]
    _, own, best, precise, none, recalled = page.tables["thresholds"]

    def row(name, sign, threshold, called):
        rates = y[called].mean(), called[y == 1].mean(), (called == (y == 1)).mean()
        return [name, f"{sign} {threshold:.6g}", f"{called.sum():,}", *map(percent, rates)]

    assert own == row("of the model", ">", 0, scores > 0)
    accurate = max(((scores >= t) == (y == 1)).mean() for t in [*np.unique(scores), np.inf])
    assert best[-1] == percent(accurate)
    _, _, t = max((point for point in points if point[0] >= 0.4), key=lambda point: point[1])
    assert precise == row("precision 40%", ">=", t, scores >= t)
    _, _, t = max(point for point in points if point[1] >= 0.5)
    assert recalled == row("recall 50%", ">=", t, scores >= t)
    highest = max(precision for precision, _, _ in points)
    text = made[0].read_text(encoding="utf-8")
    if highest < 0.9999:
        assert none == ["precision 99.99%", "not reached", "–", "–", "–", "–"]  # noqa: RUF001
        sentence = "No threshold has a precision of 99.99% on these rows: the highest is "
        assert f"<p>{sentence}{percent(highest)}.</p>" in text


def test_the_groups(made, page):
    y, scores, _, cities = made[2]
    head, *rows = page.tables["groups"]
    assert head == ["city", "rows", "positives", "share", "AUC", "95% interval"]
    assert len(rows) == 51
    shown = {row[0] for row in rows[:-1]}
    groups = {row[0]: row for row in rows[:-1]} | {"": rows[-1]}
    assert rows[-1][0] == f"the other {len(set(cities) - shown)} values"
    counts = [int(row[1]) for row in rows[:-1]]
    assert counts == sorted(counts, reverse=True)
    assert max((cities == name).sum() for name in set(cities) - shown) <= counts[-1]
    for name, row in groups.items():
        inside = cities == name if name else ~np.isin(cities, list(shown))
        hits = y[inside].sum()
        assert row[1:4] == [str(inside.sum()), str(hits), percent(hits / inside.sum())]
        if hits == 0:
            assert row[4:] == ["–", "one label only"]  # noqa: RUF001
            continue
        auc = auc_interval(y[inside], scores[inside], pos_label=1)
        assert row[4] == f"{roc_auc_score(y[inside], scores[inside]):.4f}"
        interval = "one row of a class" if hits == 1 else f"{auc.low:.4f} to {auc.high:.4f}"
        assert row[5] == interval
    assert any(row[4] == "–" for row in rows)  # noqa: RUF001


def test_the_curves(made, page):
    panels = panels_of(made[1]) + maps_of(made[1])
    assert len(page.alts) == 3 + len(panels) == 3 + 4 + 3
    for panel, alt, caption in zip(panels, page.alts[3:], page.captions[3:], strict=True):
        (lowest, least), (highest, most) = ends_of(panel)
        assert alt == (
            f"{panel.name}, {panel.kind}: it adds least, {least:+.3g} at {lowest}, and most, "
            f"{most:+.3g} at {highest}."
        )
        assert caption.startswith(f"{panel.name} moves scores by {panel.moves:.3g} (standard")
    assert any(LONG in caption for caption in page.captions)


def test_pictures_have_names_with_the_numbers(made, page):
    y, scores, _, _ = made[2]
    roc, pr, calibration = page.alts[:3]
    assert f"the AUC, is {roc_auc_score(y, scores):.4f}." in roc
    tpr, fpr = (scores[y == 1] > 0).mean(), (scores[y == 0] > 0).mean()
    assert f"{tpr:.1%} of the positives and {fpr:.1%} of the negatives" in roc
    assert f"is {average_precision_score(y, scores):.4f}; that of a random order is" in pr
    assert "in 13 parts of the ranking: from " in calibration


def test_it_is_one_sound_file(made, page):
    text = made[0].read_text(encoding="utf-8")
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]+"|http://www.w3.org/\S+', "", text)
    assert len(page.ids) == len(set(page.ids))
    levels = [int(level) for level in re.findall(r"<h(\d)", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert "<title>a &amp; b.model: evaluation</title>" in text
    assert "town <" not in text
    assert "<yes" not in text
    assert 50_000 < len(text) < 400_000


def test_the_same_evaluation_gives_the_same_bytes(made, tmp_path):
    how = {"model": "a & b.model", "command": "cbrank evaluate 'a & b.model' x.csv"}
    write_page(tmp_path / "again.html", made[3], LABEL, **how, ranker=made[1])
    assert (tmp_path / "again.html").read_bytes() == made[0].read_bytes()


@pytest.fixture(scope="module")
def aged(made, tmp_path_factory):
    """The page of a model that learned rows in order which turn what they say."""
    random = np.random.RandomState(0)
    X, angle = random.randn(16_000, 2), np.linspace(0, 2.5, 16_000)
    y = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + 0.5 * random.randn(16_000) > 0.5
    ranker = AdditiveRanker(random_state=0, pieces=1).partial_fit(X, y)
    path = tmp_path_factory.mktemp("aged") / "aged.html"
    write_page(path, made[3], LABEL, model="m", command="c", ranker=ranker)
    return path, ranker


def test_how_long_a_model_keeps(aged, page):
    ages = aged[1].auc_by_age_
    assert len(ages) == 4
    old = Page(aged[0].read_text(encoding="utf-8"))
    assert "How long the model keeps" in old.headings
    (alt,) = [alt for alt in old.alts if alt.startswith("AUC with standard error, by age")]
    for rows, auc, error in ages:
        assert f"{auc:.4f} ± {error:.4f} about {rows:,.0f} rows later" in alt
    assert "Put away, this model will not keep" in aged[0].read_text(encoding="utf-8")
    assert "How long the model keeps" not in page.headings  # its rows were shuffled


def test_the_picture_of_ages_has_their_intervals(aged):
    ages = aged[1].auc_by_age_
    lines, axes = lines_of(pictures.ages(ages_of(aged[1])))
    np.testing.assert_array_equal(lines[0], ages[:, :2])
    assert axes.get_xscale() == "log"
    (ends,) = [item.get_segments() for item in axes.collections]
    reach = norm.ppf(0.975) * ages[:, 2]
    expected = [[[x, y - r], [x, y + r]] for (x, y, _), r in zip(ages, reach, strict=True)]
    np.testing.assert_allclose(ends, expected)


def test_of_few_rows_and_without_curves(tmp_path):
    y, scores = np.array([0, 1, 0, 1, 0]), np.array([0.1, 0.5, 0.2, 0.2, -1])
    write_page(
        tmp_path / "few.html", evaluate(y, scores, 1 / (1 + np.exp(-scores))), "1", model="m", command="c"
    )  # fmt: skip
    few = Page((tmp_path / "few.html").read_text(encoding="utf-8"))
    assert few.headings[0] == f"AUC {roc_auc_score(y, scores):.4f}"
    assert set(few.tables) == {"thresholds"}
    assert len(few.alts) == 3


def test_names_that_would_disturb_a_terminal_or_are_too_long():
    y, scores = np.array([0, 1, 0, 1, 0, 1]), np.arange(6.0)
    grouping = Grouping("a\tb")
    grouping.add(["\x1b[31mred", "\x1b[31mred", 80 * "x", 80 * "x", " ", "ok"])
    found = evaluate(y, scores, np.full(6, 0.5), by=grouping)
    lines = plain(tables(found)[-1]).splitlines()
    names = [line.split("  ")[0] for line in lines]
    assert names == ["a�b", "�[31mred", 39 * "x" + "…", "(empty)", "ok"]
    assert len({len(line) for line in lines}) == 1


# What pictures show ---------------------------------------------------------------------------------


def lines_of(draw):
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure()
    draw(figure)
    (axes,) = figure.axes
    return [line.get_xydata() for line in axes.lines], axes


def test_the_areas_below_the_curves_are_the_measures(made):
    y, scores, _, _ = made[2]
    lines, _ = lines_of(pictures.roc(made[3]))
    x, height = lines[1].T
    assert np.trapezoid(height, x) == pytest.approx(roc_auc_score(y, scores))
    lines, _ = lines_of(pictures.pr(made[3]))
    x, height = lines[1].T
    assert (np.diff(x) * height[1:]).sum() == pytest.approx(average_precision_score(y, scores))
    assert lines[0][:, 1].tolist() == [y.mean()] * 2
    assert lines[2].tolist() == [[(scores[y == 1] > 0).mean(), y[scores > 0].mean()]]


def test_curves_of_many_scores_are_thinned_but_hold_their_area(tmp_path):
    random = np.random.RandomState(0)
    y = (random.rand(200_000) < 0.02).astype(np.int8)
    scores = random.standard_normal(200_000) + 2 * y
    found = evaluate(y, scores, np.full(len(y), 0.02))
    lines, _ = lines_of(pictures.roc(found))
    assert len(lines[1]) <= 2001
    assert np.trapezoid(*lines[1].T[::-1]) == pytest.approx(found.auc.auc, abs=1e-4)
    lines, _ = lines_of(pictures.pr(found))
    area = (np.diff(lines[1][:, 0]) * lines[1][1:, 1]).sum()
    assert area == pytest.approx(found.average_precision, abs=2e-3)


def test_calibration_shows_parts_by_a_scale_that_fits(made):
    y, scores, p, _ = made[2]
    lines, axes = lines_of(pictures.calibration(made[3]))
    assert axes.get_xscale() == axes.get_yscale() == "log"  # the class is rare
    ends = [0, 3, 30, 150, *range(300, 3001, 300)]
    expected = []
    for first, last in pairwise(ends):
        mean, share = (
            (among(v, scores, last) - among(v, scores, first)) / (last - first) for v in (p, y)
        )
        expected += [[mean, share]] if share > 1e-12 else []
    np.testing.assert_allclose(lines[1], expected)
    wrong = evaluate(y, scores, np.where(scores > 0, 0.3, 1e-12))
    assert lines_of(pictures.calibration(wrong))[1].get_xlim()[0] > 1e-5
    common = evaluate(1 - y, scores, np.where(scores > 0, 0.3, 1e-12))
    assert lines_of(pictures.calibration(common))[1].get_xscale() == "linear"


@pytest.mark.parametrize("y", [[0, 1, 0, 0], [1, 1, 1, 0]])
@pytest.mark.parametrize("p", [[0.0, 0, 0, 0], [1.0, 1, 1, 1], [0, 0.3, 0.3, 1]])
def test_pictures_of_extremes_are_drawn(y, p, tmp_path):
    found = evaluate(np.array(y, np.int8), np.array(p), np.array(p))
    for picture in pictures.PICTURES:
        pictures.draw(tmp_path / "x.svg", picture, found)


# In a browser ---------------------------------------------------------------------------------------

# The least contrast of texts, and of lines of pictures, with the ground they stand on.
CONTRAST = """
const parts = colour => colour.match(/[\\d.]+/g).map(Number);
const light = colour => {
  const [r, g, b] = parts(colour).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const ground = item => {
  for (; item; item = item.parentElement) {
    const colour = getComputedStyle(item).backgroundColor;
    if (parts(colour)[3] !== 0) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const contrast = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + .05) / (low + .05);
};
const own = item => [...item.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
const texts = [...document.querySelectorAll('body *')]
  .filter(item => own(item) && !['SCRIPT', 'STYLE', 'style'].includes(item.tagName) && item.getBoundingClientRect().width)
  .map(item => {
    const style = getComputedStyle(item);
    return [contrast(item instanceof SVGElement ? style.fill : style.color, ground(item)), item.textContent.trim().slice(0, 40)];
  });
const grid = getComputedStyle(document.documentElement).getPropertyValue('--grid').trim();
const lines = [...document.querySelectorAll('figure svg path')]
  .filter(item => item.getAttribute('style')?.includes('var(--c') && getComputedStyle(item).stroke !== 'none')
  .map(item => [contrast(getComputedStyle(item).stroke, ground(item)), 'a line']);
const least = list => list.sort((a, b) => a[0] - b[0])[0];
return [least(texts), least(lines), texts.length, lines.length];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    need_browser()
    with opened_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE])
def test_in_a_browser_it_is_quiet_whole_and_readable(made, browser, width, scheme):
    show(browser, made[0].as_uri(), width=width, scheme=scheme)
    assert browser.get_log("browser") == []
    assert fetched(browser) == []
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(CUT_OFF) == []
    sizes = browser.execute_script(DRAWN)
    assert len(sizes) == 10
    assert min(sizes) > 20
    text, line, texts, lines = browser.execute_script(CONTRAST)
    assert texts > 500
    assert lines > 10
    assert text[0] >= 4.5, text
    assert line[0] >= 3, line
    if width == PHONE:
        wide = "return [...document.querySelectorAll('.scroll')].filter(x => x.scrollWidth > x.clientWidth).length"
        assert browser.execute_script(wide) > 0


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE])
def test_in_a_browser_the_picture_of_ages_is_whole_and_readable(aged, browser, width, scheme):
    show(browser, aged[0].as_uri(), width=width, scheme=scheme)
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= width
    assert browser.execute_script(CUT_OFF) == []
    assert browser.find_element("css selector", "#ages svg").size["width"] > 0.2 * width
    text, line, _, _ = browser.execute_script(CONTRAST)
    assert text[0] >= 4.5, text
    assert line[0] >= 3, line


@pytest.mark.slow
def test_in_a_browser_pictures_and_tables_have_names_and_groups_sort(made, browser):
    show(browser, made[0].as_uri())
    unnamed = (
        "return [...document.querySelectorAll('figure svg[role=img], .scroll')]"
        ".filter(item => !item.getAttribute('aria-label')).length"
    )
    assert browser.execute_script(unnamed) == 0
    head = browser.find_elements("css selector", "#groups thead button")[4]
    cells = "return [...document.querySelectorAll('#groups tbody tr')].map(row => row.cells[4].textContent)"
    browser.execute_script("arguments[0].click()", head)
    shown = [float(cell) for cell in browser.execute_script(cells) if cell != "–"]  # noqa: RUF001
    assert shown == sorted(shown, reverse=True)
    assert browser.get_log("browser") == []
