"""A real headless Chromium for tests; skips with a message where it is missing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    "--hide-scrollbars",
)
PHONE, DESKTOP = (390, 844, True), (1280, 900, False)


@contextmanager
def open_chromium(profile: Path, *arguments: str) -> Iterator[Any]:
    """Open a browser with a profile of its own; its console is kept."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs a browser: install chromium and chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, *arguments, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    found = webdriver.Chrome(options=options, service=service)
    try:
        yield found
    finally:
        found.quit()


def set_screen(browser: Any, screen: tuple[int, int, bool], scheme: str = "light") -> None:
    """Pretend that the screen is PHONE or DESKTOP, and that the user prefers a colour scheme."""
    width, height, mobile = screen
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def set_network(browser: Any, offline: bool = False, latency_ms: int = 0) -> None:
    """Take the network away, or make it slow."""
    browser.execute_cdp_cmd("Network.enable", {})
    conditions = {"offline": offline, "latency": latency_ms}
    speed = {"downloadThroughput": 0, "uploadThroughput": 0} if offline else {
        "downloadThroughput": -1, "uploadThroughput": -1}  # fmt: skip
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**conditions, **speed})
