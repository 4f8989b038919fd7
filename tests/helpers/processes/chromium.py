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


def set_network(browser: Any, offline: bool) -> None:
    """Take the network away, or give it back."""
    browser.execute_cdp_cmd("Network.enable", {})
    speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": offline, **speed})
