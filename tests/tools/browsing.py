"""A real browser, without a window, for the tests of pages."""

import contextlib
import importlib.util
import os
import shutil

import pytest

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


def missing():
    programs = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return programs + ["selenium"] * (importlib.util.find_spec("selenium") is None)


def need_browser():
    """Skip a test, or let it fail if browsers are required, where there is none."""
    if lacking := missing():
        reason = f"no {', '.join(lacking)}: apt-get install chromium chromium-driver, pip selenium"
        if os.environ.get("CBRANK_BROWSER_REQUIRED"):
            pytest.fail(reason)
        pytest.skip(reason)


@contextlib.contextmanager
def opened_browser(profile):
    """Start a browser that keeps its files in a folder."""
    from selenium import webdriver  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for name in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-background-networking",
        "no-first-run",
        f"user-data-dir={profile}",
    ):
        options.add_argument(f"--{name}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options=options, service=service) as browser:
        yield browser


def use_screen(browser, *, width=1280, scheme="light"):
    """Have a screen of some width, light or dark."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def show(browser, address, *, width=1280, scheme="light"):
    """Open a page on a screen of some width, light or dark."""
    use_screen(browser, width=width, scheme=scheme)
    browser.get(address)


def fetched(browser):
    """Return what a page has loaded from elsewhere."""
    script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    return [name for name in browser.execute_script(script) if name.startswith("http")]
