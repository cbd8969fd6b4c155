"""The report in a real browser: drawn, sortable, quiet, and whole on a phone."""

import importlib.util
import os
import shutil

import pytest
from made_up_study import study, write_study

from cbrank.study import report

pytestmark = pytest.mark.slow

PHONE = 390

# What stands outside the page's width, but for what scrolls inside its own container.
CUT_OFF = """
return [...document.querySelectorAll('body *')]
  .filter(item => !item.closest('.scroll, pre'))
  .filter(item => {
    const box = item.getBoundingClientRect();
    return box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
  })
  .map(item => item.tagName + ' ' + item.textContent.trim().slice(0, 40));
"""
DRAWN = """
return [...document.querySelectorAll('figure > *:first-child')].map(item => {
  const box = item instanceof SVGElement ? item.getBBox() : {width: item.naturalWidth, height: 1};
  return Math.min(box.width, box.height, item.getBoundingClientRect().width);
});
"""


def _missing():
    programs = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return programs + ["selenium"] * (importlib.util.find_spec("selenium") is None)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    if missing := _missing():
        reason = f"no {', '.join(missing)}: apt-get install chromium chromium-driver, pip selenium"
        if os.environ.get("CBRANK_BROWSER_REQUIRED"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = write_study(tmp_path_factory.mktemp("browser"), study(scalings=("unit",)))
    return report.write(folder).as_uri()


@pytest.fixture
def browser(address, tmp_path):
    from selenium import webdriver  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for name in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-background-networking",
        "no-first-run",
        f"user-data-dir={tmp_path / 'profile'}",
    ):
        options.add_argument(f"--{name}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as browser:
        yield browser


def _open(browser, address, *, width=1280, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)


def test_no_complaint_and_every_figure_drawn(browser, address):
    _open(browser, address)
    sizes = browser.execute_script(DRAWN)
    assert len(sizes) == 4 + 2 + 5 + 1  # ranks, times, curves, cost
    assert min(sizes) > 20
    assert browser.get_log("browser") == []
    requests = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    assert [name for name in browser.execute_script(requests) if name.startswith("http")] == []


def test_a_click_on_a_header_sorts(browser, address):
    _open(browser, address)
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
    _open(browser, address, width=PHONE, scheme=scheme)
    width = browser.execute_script("return document.scrollingElement.scrollWidth")
    assert width <= PHONE
    assert browser.execute_script(CUT_OFF) == []
    wide = "return [...document.querySelectorAll('.scroll')].filter(x => x.scrollWidth > x.clientWidth).length"
    assert browser.execute_script(wide) > 0


def test_dark_ground_has_light_ink(browser, address):
    def colours():
        script = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        return [sum(map(int, c[4:-1].split(", "))) for c in browser.execute_script(script)]

    _open(browser, address, scheme="light")
    ink, ground = colours()
    assert ink < ground
    _open(browser, address, scheme="dark")
    ink, ground = colours()
    assert ink > ground
    line = "return getComputedStyle(document.querySelector('figure svg text')).fill"
    assert browser.execute_script(line) == "rgb(230, 234, 238)"
