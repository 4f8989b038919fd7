"""The report in a real browser: no errors, every figure drawn, nothing overflows, tables sort.

Needs Chromium and its driver; skipped with a message where they are missing.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes.chromium import DESKTOP, PHONE, open_chromium, set_network, set_screen
from tiny.scores import draw_photos, invented, write_method

from facepairs.evaluation.evaluate import evaluate
from facepairs.evaluation.page.page import write_page

FIGURES = """
return [...document.querySelectorAll(".plots img")].map(image => {
  const box = image.getBoundingClientRect();
  return [image.closest("figure").id, box.width, box.height, image.complete && image.naturalWidth];
});
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    with open_chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """One page with everything: three verifiers, pictures, folds, long names."""
    root = tmp_path_factory.mktemp("world")
    photos = draw_photos(root / "photos")
    long_name = "a_very_long_name_without_any_space_in_it_that_no_phone_has_room_for"
    methods = [
        write_method(root / "run" / name, invented(seed=seed, apart=apart))
        for name, seed, apart in ((long_name, 0, 2.0), ("pixels", 1, 0.8), ("fisher", 2, 1.5))
    ]
    found = evaluate([*map(str, methods), str(photos)])
    write_page(found.with_command("facepairs evaluate " + 30 * "word"), root / "report.html")
    return root / "report.html"


def show(
    browser: Any,
    page: Path,
    screen: tuple[int, int, bool],
    scheme: str = "light",
    unfolded: bool = True,
) -> None:
    """Open the page on a screen, without network, so that loading anything is an error."""
    set_network(browser, offline=True)
    set_screen(browser, screen, scheme)
    browser.get(page.as_uri())
    if unfolded:
        browser.execute_script(
            "for (const d of document.querySelectorAll('details')) d.open = true"
        )


def pixels(element: Any) -> np.ndarray:
    with Image.open(io.BytesIO(element.screenshot_as_png)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_without_browser_errors(browser, page, screen, scheme):
    show(browser, page, screen, scheme)
    inner, scroll = browser.execute_script(
        "return [window.innerWidth, document.documentElement.scrollWidth]"
    )
    assert inner == screen[0]
    assert scroll <= inner, "the page is wider than the screen"
    figures = browser.execute_script(FIGURES)
    names = {name for name, *_ in figures}
    shared = {"figure-roc", "figure-det"}
    each = {"scores", "reliability"}
    assert names == shared | {f"figure-{key}-{number}" for key in each for number in (1, 2, 3)}
    for name, width, height, drawn in figures:
        assert width > 250, name
        assert height > 100, name
        assert drawn > 250, name
    pictures = browser.execute_script(
        "return [...document.querySelectorAll('.worst img')].map(i => i.complete && i.naturalWidth)"
    )
    assert pictures == [144] * (3 * 2 * 2 * 8)
    assert browser.get_log("browser") == []
    dark = pixels(browser.find_element("css selector", "header")).mean()
    assert (dark < 80) if scheme == "dark" else (dark > 170)


def test_a_comparison_is_short_and_its_tables_are_not_cut_off(browser, page):
    show(browser, page, DESKTOP, unfolded=False)
    assert browser.execute_script("return document.documentElement.scrollHeight") < 8000
    widths = browser.execute_script(
        "return [...document.querySelectorAll('#comparison .scroll')]"
        ".map(e => [e.scrollWidth, e.clientWidth])"
    )
    assert len(widths) >= 2
    for needed, available in widths:
        assert needed <= available


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_figures_are_not_blank(browser, page, scheme):
    show(browser, page, PHONE, scheme)
    for figure in browser.find_elements("css selector", ".plots img"):
        found = pixels(figure)
        ground = np.median(found.reshape(-1, 3), axis=0)
        inked = np.abs(found - ground).max(axis=2) > 60
        name = figure.get_attribute("alt")
        assert 0.004 < inked.mean() < 0.6, name
        rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
        assert np.ptp(rows) > 0.7 * found.shape[0], name
        assert np.ptp(columns) > 0.7 * found.shape[1], name
        coloured = (np.ptp(found, axis=2) > 60).mean()
        assert coloured > 0.0005, name


def test_tables_sort_numbers_in_both_directions(browser, page):
    show(browser, page, DESKTOP)
    cells = (
        "return [...document.querySelectorAll('#table-folds-1 tbody tr')]"
        ".map(r => r.cells[%d].dataset.value)"
    )
    heads = browser.find_elements("css selector", "#table-folds-1 th")
    for column in (0, 1, 5):
        before = sorted(browser.execute_script(cells % column))
        for reverse, direction in ((False, "ascending"), (True, "descending")):
            heads[column].find_element("css selector", "button").click()
            found = browser.execute_script(cells % column)
            assert list(map(float, found)) == sorted(map(float, found), reverse=reverse)
            assert sorted(found) == before
            assert heads[column].get_attribute("aria-sort") == direction
    assert browser.get_log("browser") == []


@pytest.mark.slow
def test_the_page_prints(browser, page):
    show(browser, page, DESKTOP)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.7})
    assert len(printed["data"]) > 50_000
