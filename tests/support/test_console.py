"""Messages and progress go where whoever starts the work says, and nowhere without that."""

from facepairs.support import console
from facepairs.support.console import showing
from facepairs.support.parallel import thread_map


def test_what_a_block_tells_goes_to_its_console_from_all_threads() -> None:
    lines: list[str] = []
    steps: list[tuple[str, int, int]] = []
    with showing(lines.append, lambda phase: lambda *at: steps.append((phase, *at))):
        list(thread_map(console.log, ["one", "two"], workers=2))
        console.progress("counting")(1, 2)
        with showing():
            console.log("not shown")
    console.log("not shown")
    console.progress("counting")(2, 2)
    assert sorted(lines) == ["one", "two"]
    assert steps == [("counting", 1, 2)]


def test_after_an_error_the_former_console_is_back() -> None:
    lines: list[str] = []
    try:
        with showing(lines.append):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        console.log("not shown")
    assert lines == []
