"""Progress is a bar in a terminal, a line now and then in a log file, and nothing with --json."""

import contextlib
import io
import sys

import pytest

from facepairs.cli.shared import output
from facepairs.cli.shared.output import ERASE_LINE, log, print_error, showing_on_stderr
from facepairs.support import console

SHOW_CURSOR = "\x1b[?25h"


class Stream(io.StringIO):
    """A stderr that is a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal
        self.flushed = ""

    def flush(self) -> None:
        self.flushed = self.getvalue()

    def isatty(self) -> bool:
        return self.terminal


class Clock:
    """A clock that goes on by a step whenever it is read."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.seconds = 0.0
        self.step_s = step_s

    def monotonic(self) -> float:
        self.seconds += self.step_s
        return self.seconds


def count(label: str, steps: int) -> None:
    update = console.progress(label)
    for done in range(1, steps + 1):
        update(done, steps)


def shown(
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    steps: int,
    as_json: bool = False,
    step_s: float = 1.0,
):
    """Return what a phase of so many steps prints."""
    monkeypatch.setattr(output, "time", Clock(step_s))
    monkeypatch.setattr(sys, "stderr", Stream(terminal))
    with showing_on_stderr(as_json):
        count("counting [all]", steps)
    return sys.stderr.getvalue()


@pytest.mark.parametrize(("step_s", "first"), [(1, 3), (0.7, 3), (0.3, 7)])
def test_in_a_terminal_it_is_a_bar_that_goes_at_the_end(monkeypatch, step_s, first):
    text = shown(monkeypatch, True, 10, step_s=step_s)
    assert "counting [all] " in text
    assert f"{first}/10" in text
    assert f"{first - 1}/10" not in text  # it takes two seconds until it is shown
    assert "\n" not in text
    assert text.rstrip("\r").endswith((ERASE_LINE, SHOW_CURSOR))


def test_one_bar_is_shown_at_a_time_and_none_of_a_short_phase(monkeypatch):
    monkeypatch.setattr(output, "time", Clock())
    monkeypatch.setattr(sys, "stderr", Stream(True))
    with showing_on_stderr():
        for label, steps in (("counting", 10), ("short", 1), ("again", 10)):
            count(label, steps)
    text = sys.stderr.getvalue()
    assert ("short" in text, "again" in text) == (False, True)
    assert "\n" not in text  # no bar below another


def test_messages_and_results_go_past_the_bar(monkeypatch, capsys):
    monkeypatch.setattr(output, "time", Clock())
    monkeypatch.setattr(sys, "stderr", Stream(True))
    with showing_on_stderr():
        count("counting", 10)
        log("long " * 60)
        print("result " * 60)
    assert f"{ERASE_LINE}{'long ' * 60}\n" in sys.stderr.getvalue()
    assert capsys.readouterr().out == "result " * 60 + "\n"


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
        assert sys.stderr.flushed == text.removesuffix(ERASE_LINE)
        raise KeyboardInterrupt
    assert sys.stderr.getvalue() == sys.stderr.flushed == text


def test_a_message_takes_the_place_of_the_bar(monkeypatch):
    for terminal, begin in ((True, ERASE_LINE), (False, "")):
        monkeypatch.setattr(sys, "stderr", Stream(terminal))
        log("one\ntwo")
        print_error("data", "three\n four", False)
        assert sys.stderr.getvalue() == (f"{begin}one\\ntwo\n{begin}facepairs: error: three four\n")


def test_in_a_log_file_it_is_a_line_every_30_seconds(monkeypatch):
    assert shown(monkeypatch, False, 90).splitlines() == [
        "counting [all] 30/90",
        "counting [all] 60/90",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_short_phase_prints_nothing_and_json_has_no_progress(monkeypatch, terminal):
    assert shown(monkeypatch, terminal, 3) == ""
    assert shown(monkeypatch, terminal, 100, as_json=True) == ""
