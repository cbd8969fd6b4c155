"""The report in a real browser: drawn, sortable, quiet, and whole on a phone."""

import pytest
from browsing import CUT_OFF, DRAWN, PHONE, fetched, need_browser, opened_browser, show
from made_up_study import study, times_of, write_study

from cbrank.study import report
from cbrank.study.times_file import write_times

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    need_browser()
    lines = study(scalings=("unit",))
    folder = write_study(tmp_path_factory.mktemp("browser"), lines)
    write_times(folder / "times.csv", times_of(lines))
    return report.write(folder).as_uri()


@pytest.fixture
def browser(address, tmp_path):
    with opened_browser(tmp_path / "profile") as browser:
        yield browser


def test_no_complaint_and_every_figure_drawn(browser, address):
    show(browser, address)
    sizes = browser.execute_script(DRAWN)
    assert len(sizes) == 4 + 2 + 5 + 1  # ranks, times, curves, cost
    assert min(sizes) > 20
    assert browser.get_log("browser") == []
    assert fetched(browser) == []


def test_a_click_on_a_header_sorts(browser, address):
    show(browser, address)
    cells = "return [...document.querySelectorAll('#table-3-unit tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    heads = browser.find_elements("css selector", "#table-3-unit thead button")
    names = [row[0] for row in browser.execute_script(cells)]
    assert names == ["glass", "german", "heart"]

    def click(column):
        browser.execute_script("arguments[0].click()", heads[column])
        return [row[0] for row in browser.execute_script(cells)]

    assert click(0) == ["german", "glass", "heart"]
    assert click(0) == ["heart", "glass", "german"]
    assert click(2) == ["heart", "glass", "german"]  # the best first
    assert click(2) == ["german", "glass", "heart"]
    sorted_by = browser.find_elements("css selector", "#table-3-unit th[aria-sort=ascending]")
    assert [head.text.strip(" ↑↓↕") for head in sorted_by] == ["CBR_FIFO"]
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off_on_a_phone(browser, address, scheme):
    show(browser, address, width=PHONE, scheme=scheme)
    width = browser.execute_script("return document.scrollingElement.scrollWidth")
    assert width <= PHONE
    assert browser.execute_script(CUT_OFF) == []
    wide = "return [...document.querySelectorAll('.scroll')].filter(x => x.scrollWidth > x.clientWidth).length"
    assert browser.execute_script(wide) > 0


def test_dark_ground_has_light_ink(browser, address):
    def colours():
        script = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        return [sum(map(int, c[4:-1].split(", "))) for c in browser.execute_script(script)]

    show(browser, address, scheme="light")
    ink, ground = colours()
    assert ink < ground
    show(browser, address, scheme="dark")
    ink, ground = colours()
    assert ink > ground
    line = "return getComputedStyle(document.querySelector('figure svg text')).fill"
    assert browser.execute_script(line) == "rgb(230, 234, 238)"
