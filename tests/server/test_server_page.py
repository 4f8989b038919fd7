"""The web page in a real browser, on a real server: as a person uses it.

Needs Chromium and its driver; skipped with a message where they are missing.
"""

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from drawn.photos import encoded
from drawn.scenes import Place, canvas, drawn_faces, paste
from processes.chromium import DESKTOP, PHONE, open_chromium, set_screen
from processes.command_line import in_process
from processes.live_server import live_server

from facepairs import Verifier

pytest.importorskip("uvicorn", reason="needs facepairs[serve]")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
ActionChains, Keys = webdriver.ActionChains, webdriver.Keys
PATIENCE_S = 60
TOKEN = "a-token-that-only-this-test-knows"
ROWS = """
return [...document.querySelectorAll(arguments[0] + " > div")].flatMap(row => {
  const [label, ...texts] = [...row.children].map(cell => cell.textContent);
  return texts.map((text, at) => [at ? "" : label, text]);
});
"""
GROUND = "return getComputedStyle(document.body).backgroundColor"
WORDS_AT = """
const [thresholds, table, done] = arguments;
import(new URL("static/words.js", document.baseURI)).then(({errorsAt, oneIn}) =>
  done(thresholds.map(one => Object.values(errorsAt(table, one)).map(oneIn))));
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> SimpleNamespace:
    """Files to choose."""
    folder = tmp_path_factory.mktemp("photos")
    ann, again, ben, _ = drawn_faces(folder / "faces", people=2, images=2)
    two, nobody, text = (folder / name for name in ("two.jpg", "nobody.jpg", "text.jpg"))
    both = paste(canvas(420, 260), ann, Place(110, 130, 180))
    paste(both, ben, Place(310, 130, 150)).save(two)
    canvas(160, 120).save(nobody)
    text.write_text("no photo")
    return SimpleNamespace(ann=ann, ann_again=again, ben=ben, two=two, nobody=nobody, text=text)


@pytest.fixture(scope="module")
def browser(tmp_path_factory, photos) -> Iterator[Any]:
    """A browser with a camera that always sees Ann."""
    folder = tmp_path_factory.mktemp("browser")
    seen = paste(canvas(320, 240), photos.ann, Place(160, 120, 230))
    (folder / "camera.mjpeg").write_bytes(10 * encoded(seen, "JPEG", quality=95))
    camera = (
        "--use-fake-ui-for-media-stream",
        "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={folder / 'camera.mjpeg'}",
    )
    with open_chromium(folder / "profile", *camera) as opened:
        opened.execute_cdp_cmd(
            "Browser.grantPermissions",
            {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite", "videoCapture"]},
        )
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory, browser) -> Iterator[str]:
    gallery = tmp_path_factory.mktemp("gallery") / "known.gallery"
    with live_server("--gallery", gallery) as server:
        yield server.url


class Page:
    """The page, and how a person sees it."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser = browser
        browser.get(url)
        self.wait(lambda: self.text("#model"))

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def wait(self, found: Any) -> Any:
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        ignored = [StaleElementReferenceException]
        waiting = WebDriverWait(self.browser, PATIENCE_S, 0.05, ignored)
        return waiting.until(lambda _: found())

    def slot(self, number: int) -> Any:
        return self.all(".slot")[number]

    def choose(self, number: int, photo: Path) -> None:
        """Choose a file for photo A (0), photo B (1) or that of the known people (2)."""
        self.slot(number).find_element("css selector", "input[type=file]").send_keys(str(photo))

    def seen(self, number: int) -> str:
        """Return what the model sees in a photo, once it is known."""
        note = self.slot(number).find_element("css selector", ".seen .note")
        return self.wait(lambda: note.text)

    def problem(self, number: int) -> str:
        alert = self.slot(number).find_element("css selector", "[role=alert]")
        return self.wait(lambda: alert.text)

    def verdict(self) -> str:
        return self.wait(lambda: self.text("#words"))

    def rows(self, selector: str) -> list[list[str]]:
        return self.browser.execute_script(ROWS, selector)

    def answer(self) -> dict[str, Any]:
        return json.loads(self.one("#json").get_property("textContent"))

    def unfold(self) -> None:
        self.browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = 1)")

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()


@pytest.fixture
def page(browser, url) -> Iterator[Page]:
    set_screen(browser, DESKTOP)
    yield Page(browser, url)
    lines = [line["message"] for line in browser.get_log("browser")]
    refused = ("/v1/detect - Failed", "/v1/identify - Failed")  # which the page explains
    assert [line for line in lines if not any(part in line for part in refused)] == []


def compared(page: Page, left: Path, right: Path) -> Page:
    page.choose(0, left)
    page.choose(1, right)
    page.verdict()
    return page


def test_two_photos_get_the_verdict_of_the_command_line(page, photos):
    compared(page, photos.ann, photos.ann_again)
    printed = in_process("verify", photos.ann, photos.ann_again).stdout.splitlines()
    expected = [[line[:13].strip(), line[13:]] for line in printed]
    assert [["verdict", page.verdict()], *page.rows("#rows")] == expected
    page.unfold()
    left, top, side = page.answer()["left"]["box"]
    box = page.one(".slot svg .chosen rect")
    drawn = [int(box.get_attribute(name)) for name in ("x", "y", "width", "height")]
    assert drawn == [left, top, side, side]
    assert len(page.slot(0).find_elements("css selector", "svg circle")) == 5
    crop = page.slot(0).find_element("css selector", ".seen img")
    assert crop.get_property("naturalWidth") == 150
    words = shlex.split(page.text("#curl"))
    files = [f"left=@{photos.ann.name}", f"right=@{photos.ann_again.name}"]
    assert [word for word in words if "=" in word] == files
    page.one("#copy-curl").click()
    assert page.wait(lambda: page.text("#copied")) == "Copied."


def test_photos_are_dropped(page, photos):
    drop = page.slot(0).find_element("css selector", ".drop").rect
    place = {"x": drop["x"] + 20, "y": drop["y"] + 20}
    data = {"items": [], "files": [str(photos.ann)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, **place, "data": data}
        page.browser.execute_cdp_cmd("Input.dispatchDragEvent", event)
    page.choose(1, photos.ann)
    page.verdict()
    assert page.answer()["score"] == pytest.approx(1, abs=1e-3)  # the same photo


def test_what_is_wrong_with_a_photo_is_said_beside_it(page, photos):
    page.choose(0, photos.text)
    assert page.problem(0).startswith("not a JPEG, ")
    assert page.slot(0).find_element("css selector", ".photo").is_displayed() is False
    page.choose(1, photos.nobody)
    assert "face" in page.problem(1)
    compared(page, photos.ann, photos.ann_again)  # better ones take their place
    assert [alert.text for alert in page.all("[role=alert]") if alert.text] == []


def test_one_of_several_faces_is_chosen_by_key_or_click(page, photos):
    compared(page, photos.ann, photos.two)
    assert page.slot(1).find_element("css selector", "legend").text == "2 faces: choose one"
    first = page.answer()
    page.slot(1).find_element("css selector", "input:checked").send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.text("#words") and page.answer()["score"] != first["score"])
    second = page.answer()
    assert page.seen(1).endswith("number 2 of 2.")
    assert page.rows("#rows")[-1][1].endswith("number 2 of 2")
    assert second["right"]["box"][0] > first["right"]["box"][0]
    page.unfold()
    assert "right_face=2" in page.text("#curl")
    page.slot(1).find_elements("css selector", "svg rect")[0].click()
    page.wait(lambda: page.text("#words") and page.answer() == first)


def test_the_slider_says_what_another_threshold_means(page, photos):
    compared(page, photos.ann, photos.ben)
    threshold, score = page.answer()["operating_point"]["threshold"], page.answer()["score"]
    slider = page.one("#threshold")
    slider.send_keys(Keys.END)
    rows = dict(page.rows("#errors"))
    assert rows["genuine pairs"] == "100 in 100 would be missed"
    assert rows["verdict"].endswith(f"the score {score:.4f} is below it")
    assert not rows["verdict"].startswith("same person")
    page.unfold()
    assert "threshold=" in page.text("#curl")
    slider.send_keys(Keys.HOME)
    assert dict(page.rows("#errors"))["strangers"] == "100 in 100 would pass"
    page.one("#reset").click()
    assert page.text("#threshold-value") == f"{threshold:.4f}"
    assert "threshold=" not in page.text("#curl")

    errors = Verifier.load().model.profile.errors
    middles = [(a + b) / 2 for a, b in pairwise(errors.thresholds)]
    thresholds = [-1.0, *errors.thresholds, *middles, 1.0]
    expected = [
        [rate.one_in() for rate in (found.fmr, found.lookalike_fmr, found.fnmr)]
        for found in map(errors.at, thresholds)
    ]
    table = msgspec.to_builtins(errors)
    assert page.browser.execute_async_script(WORDS_AT, thresholds, table) == expected


def test_known_people_are_enrolled_identified_and_forgotten(page, photos):
    page.choose(2, photos.ann)
    page.seen(2)
    page.one("#any-quality").click()
    page.one("#name").send_keys("Ann <b>O'Hara</b>", Keys.ENTER)
    page.wait(lambda: "is enrolled" in page.text("#who"))
    page.wait(lambda: page.text("#people-count") == "1 person is enrolled.")
    page.choose(2, photos.ann_again)
    page.seen(2)
    page.one("#max-fpir").send_keys("5")
    page.one("#identify").click()
    page.wait(lambda: page.text("#who") == "Ann <b>O'Hara</b>")
    share = dict(page.rows("#who-rows"))["errors"].removeprefix("at most ").split(" in 100 ")[0]
    assert 1 < float(share) <= 5
    page.one("#people button").click()
    assert page.text("#forget-title") == "Forget Ann <b>O'Hara</b>?"
    page.press(Keys.ESCAPE)
    assert page.text("#people-count") == "1 person is enrolled."
    page.one("#people button").send_keys(Keys.ENTER)
    page.one("#forget .danger").send_keys(Keys.ENTER)
    page.wait(lambda: page.text("#people-count") == "No one is enrolled yet.")


def test_people_of_a_sorted_heap_are_named_and_enrolled(page, photos, tmp_path):
    heap, people = tmp_path / "heap", tmp_path / "people"
    heap.mkdir()
    for photo in (photos.ann, photos.ann_again):
        (heap / f"{photo.parent.name}-{photo.name}").symlink_to(photo)
    in_process("group", heap, "--out", people)
    page.unfold()
    page.one("#heap-folder").send_keys(str(heap))
    page.wait(lambda: page.text("#heap-task [role=alert]"))
    page.one("#heap-folder").send_keys(str(people))
    form = page.wait(lambda: page.one("#heap-people form"))
    pictures = page.all("#heap-people .heap img")
    assert [one.get_property("naturalWidth") for one in pictures] == [96, 96]
    page.one("#any-quality").click()
    form.find_element("css selector", "input").send_keys("Ann", Keys.ENTER)
    page.wait(lambda: page.text("#people-count") == "1 person is enrolled.")
    cells = [cell.text for cell in page.all("#people td")]
    assert cells[:2] == ["Ann", "2"]
    page.one("#people button").click()
    page.one("#forget .danger").click()
    page.wait(lambda: page.text("#people-count") == "No one is enrolled yet.")


def test_the_camera_is_on_only_after_consent_and_off_afterwards(page):
    page.browser.execute_script(
        "window.streams = []; const ask = navigator.mediaDevices.getUserMedia;"
        "navigator.mediaDevices.getUserMedia = async function (wish) {"
        "  const stream = await ask.call(this, wish); window.streams.push(stream); return stream; }"
    )
    page.slot(0).find_element("css selector", ".camera").click()
    assert page.one("#camera").is_displayed()
    assert page.browser.execute_script("return streams.length") == 0
    page.one("#camera .start").click()
    page.wait(lambda: page.one("#camera .take").is_displayed())
    page.one("#camera .take").click()
    page.seen(0)
    tracks = "return streams.flatMap(s => s.getTracks().map(track => track.readyState))"
    assert page.browser.execute_script(tracks) == ["ended"]


@pytest.mark.parametrize(
    ("screen", "scheme", "ground"),
    [(PHONE, "light", "rgb(244, 246, 248)"), (DESKTOP, "dark", "rgb(16, 22, 29)")],
    ids=["phone", "desktop"],
)
def test_it_fits_and_axe_finds_nothing(page, photos, screen, scheme, ground):
    axe = pytest.importorskip("axe_core_python.selenium").Axe()
    set_screen(page.browser, screen, scheme)
    compared(page, photos.ann, photos.two)
    page.choose(2, photos.ann)
    page.seen(2)
    page.one("#identify").click()
    page.wait(lambda: page.text("#gallery-task [role=alert]"))  # nobody is enrolled
    page.unfold()
    inner, scroll = page.browser.execute_script(
        "return [innerWidth, document.documentElement.scrollWidth]"
    )
    assert inner == screen[0]
    assert scroll <= inner, "the page is wider than the screen"
    assert page.browser.execute_script(GROUND) == ground
    assert violations(axe, page) == []
    page.slot(0).find_element("css selector", ".camera").click()
    assert violations(axe, page) == []


def violations(axe: Any, page: Page) -> list[list[str]]:
    return [[one["id"], one["nodes"][0]["html"]] for one in axe.run(page.browser)["violations"]]


def test_a_server_that_is_gone_comes_back_and_asks_for_its_token(browser, photos):
    set_screen(browser, DESKTOP)
    with ExitStack() as first:
        server = first.enter_context(live_server())
        page = Page(browser, server.url)
        page.choose(0, photos.ann)
        page.seen(0)
    page.choose(1, photos.ann_again)
    assert "does not answer" in page.problem(1)
    with live_server("--token", TOKEN, port=server.port):
        again = page.slot(1).find_element("xpath", ".//button[text()='Try again']")
        again.click()
        page.wait(lambda: page.one("#token").is_displayed())
        page.one("#token-field").send_keys("wrong", Keys.ENTER)
        page.wait(lambda: "does not accept" in page.text("#start"))
        page.one("#token-field").send_keys(TOKEN, Keys.ENTER)
        assert page.verdict() == "same person"
        assert not page.one("#token").is_displayed()
        page.unfold()
        assert TOKEN not in page.text("#curl")
        assert browser.execute_script("return localStorage.length + sessionStorage.length") == 0
        assert browser.get_cookies() == []
