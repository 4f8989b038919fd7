"""What long work tells the person who waits: messages, and the progress of its phases.

Work calls `log` and `progress`, and passes nothing on. Whoever starts it says with `showing` where
they go; without that, nothing is shown.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from facepairs.support.progress import (
    MessageCallback,
    ProgressCallback,
    ProgressFactory,
    ignore_message,
    ignore_phases,
)


@dataclass(frozen=True)
class Console:
    """Where messages and progress go.

    Attributes:
        log: Called with each message, a line of plain text.
        progress: Called with the name of each phase; returns what is called with the steps done
            and in all.
    """

    log: MessageCallback = ignore_message
    progress: ProgressFactory = ignore_phases


_current = Console()


@contextmanager
def showing(console: Console) -> Iterator[None]:
    """Show on this console what work tells during the block, in all threads of the process."""
    global _current  # noqa: PLW0603 - a context variable would not reach the threads of a pool
    before, _current = _current, console
    try:
        yield
    finally:
        _current = before


def log(line: str) -> None:
    """Show a message: one line of plain text."""
    _current.log(line)


def progress(phase: str) -> ProgressCallback:
    """Begin a phase of the work.

    Returns:
        Call it with the steps done and in all; both count the same unit, the former never falls.
    """
    return _current.progress(phase)
