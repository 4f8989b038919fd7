"""Progress is a bar in a terminal, a line now and then in a log file, and nothing with --json."""

import contextlib
import io
import sys

import pytest

from facepairs.cli.shared import output as progress
from facepairs.cli.shared.output import ERASE_LINE, log, print_error, showing_on_stderr
from facepairs.support import console

SHOW_CURSOR = "\x1b[?25h"


class Stream(io.StringIO):
    """A stderr that is a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Clock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def shown(monkeypatch: pytest.MonkeyPatch, terminal: bool, steps: int, as_json: bool = False):
    """Return what a phase of so many seconds prints."""
    monkeypatch.setattr(progress, "time", Clock())
    monkeypatch.setattr(sys, "stderr", Stream(terminal))
    with showing_on_stderr(as_json):
        update = console.progress("counting")
        for done in range(1, steps + 1):
            update(done, steps)
    return sys.stderr.getvalue()


def test_in_a_terminal_it_is_a_bar_that_goes_at_the_end(monkeypatch):
    text = shown(monkeypatch, True, 10)
    assert "counting " in text
    assert "3/10" in text
    assert "2/10" not in text  # it takes two seconds until it is shown
    assert "\n" not in text
    assert text.rstrip("\r").endswith((ERASE_LINE, SHOW_CURSOR))


def test_a_short_phase_after_a_long_one_has_no_bar(monkeypatch):
    monkeypatch.setattr(progress, "time", Clock())
    monkeypatch.setattr(sys, "stderr", Stream(True))
    with showing_on_stderr():
        for label, steps in (("counting", 10), ("short", 1)):
            update = console.progress(label)
            for done in range(1, steps + 1):
                update(done, steps)
    assert "short" not in sys.stderr.getvalue()


@pytest.mark.parametrize(
    ("terminal", "text"),
    [(True, f"{ERASE_LINE}starting …{ERASE_LINE}"), (False, "")],
)
def test_in_a_terminal_what_is_waited_for_is_named_until_it_is_there(monkeypatch, terminal, text):
    monkeypatch.setattr(sys, "stderr", Stream(terminal))
    with (
        contextlib.suppress(KeyboardInterrupt),
        showing_on_stderr(),
        console.waiting("starting"),
    ):
        raise KeyboardInterrupt
    assert sys.stderr.getvalue() == text


def test_a_message_takes_the_place_of_the_bar(monkeypatch):
    for terminal, begin in ((True, ERASE_LINE), (False, "")):
        monkeypatch.setattr(sys, "stderr", Stream(terminal))
        log("one\ntwo")
        print_error("data", "three\n four", False)
        assert sys.stderr.getvalue() == (f"{begin}one\\ntwo\n{begin}facepairs: error: three four\n")


def test_in_a_log_file_it_is_a_line_every_30_seconds(monkeypatch):
    assert shown(monkeypatch, False, 100).splitlines() == [
        "counting 30/100",
        "counting 60/100",
        "counting 90/100",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_short_phase_prints_nothing_and_json_has_no_progress(monkeypatch, terminal):
    assert shown(monkeypatch, terminal, 1) == ""
    assert shown(monkeypatch, terminal, 100, as_json=True) == ""
