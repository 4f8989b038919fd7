"""The page of examples/browser verifies two photos in the browser, as `verify` does."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from drawn.scenes import drawn_faces
from processes.chromium import open_chromium
from processes.command_line import in_process

from facepairs.photos import yunet
from facepairs.verification.verifier import Verifier

ROOT = Path(__file__).parents[1]
TOLERANCE = 0.02  # browsers decode and scale photos in their own way


@pytest.fixture
def site(tmp_path):
    """A copy of the example with its packages, served on this machine; skips without npm."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("needs npm: install Node.js")
    folder = tmp_path / "browser"
    left_out = shutil.ignore_patterns("node_modules", "model")
    shutil.copytree(ROOT / "examples" / "browser", folder, ignore=left_out)
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run(install, cwd=folder, check=True, capture_output=True)
    serve = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        serve, cwd=folder, stdout=subprocess.PIPE, stderr=quiet, text=True
    ) as server:
        port = re.search(r"port (\d+)", server.stdout.readline()).group(1)
        yield folder, f"http://127.0.0.1:{port}/"
        server.kill()


def compare(browser, *photos):
    """Choose the photos in the page and return the words of its verdict and the score."""
    from selenium.webdriver.support.ui import WebDriverWait

    def words(_):
        text = browser.find_element("id", "verdict").text
        return "" if text.startswith(("Loading", "Choose", "Comparing")) else text

    WebDriverWait(browser, 120).until(lambda _: browser.find_element("id", "left").is_enabled())
    for name, photo in zip(("left", "right"), photos, strict=True):
        browser.find_element("id", name).send_keys(str(photo))
    text = WebDriverWait(browser, 120).until(words)
    score = browser.find_element("id", "verdict").get_attribute("data-score")
    return text, float(score) if score else None


@pytest.mark.slow
def test_the_browser_gives_the_scores_of_verify(site, tmp_path):
    folder, url = site
    out = folder / "model"
    in_process("export", "default", "--out", out, check=0)
    shutil.copy(Path(yunet.__file__).with_name(yunet.FILE), out)
    photos = drawn_faces(tmp_path / "drawn", people=3)
    verifier = Verifier.load()
    with open_chromium(tmp_path / "profile") as browser:
        for left, right in ((photos[0], photos[1]), (photos[0], photos[2]), (photos[3], photos[5])):
            browser.get(url)
            text, score = compare(browser, left, right)
            own = verifier.verify(left, right)
            assert score == pytest.approx(own.score, abs=TOLERANCE), text
            if abs(own.score - own.threshold) > TOLERANCE:
                assert text.startswith("same person" if own.same else "not confirmed")
            assert own.point.describe() in text
        script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        assert all(name.startswith(url) for name in browser.execute_script(script))
