"""Messages and progress of long-running work.

The work calls `log`, `progress` and `waiting`. Its caller decides with `showing` where they go; by
default nothing is shown.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

Progress = Callable[[int, int], None]
"""Called with the steps done and in all; both count the same unit, and the former never falls."""


def _ignore(*_: object) -> None:
    """Show nothing."""


def _ignore_phase(phase: str) -> Progress:
    return _ignore


@dataclass(frozen=True)
class _Console:
    log: Callable[[str], None] = _ignore
    progress: Callable[[str], Progress] = _ignore_phase
    waiting: Callable[[str], AbstractContextManager[Any]] = nullcontext


_current = _Console()


@contextmanager
def showing(
    log: Callable[[str], None] = _ignore,
    progress: Callable[[str], Progress] = _ignore_phase,
    waiting: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> Iterator[None]:
    """Show messages and progress while the block runs, in all threads of the process.

    Examples:
        >>> with facepairs.showing(log=print):
        ...     run = facepairs.train("photos", "run")

    Args:
        log: Called with each message, a line of plain text.
        progress: Called with the name of each phase; returns a function that is called with the
            steps done and the steps in all.
        waiting: Called with the name of work without steps, such as a slow import; returns the
            context in which it is done.
    """
    global _current  # noqa: PLW0603 - a context variable would not reach the threads of a pool
    before, _current = _current, _Console(log, progress, waiting)
    try:
        yield
    finally:
        _current = before


def is_shown() -> bool:
    """Return whether a `showing` block shows progress."""
    return _current.progress is not _ignore_phase


def log(line: str) -> None:
    """Show a message: one line of plain text."""
    _current.log(line)


def progress(phase: str) -> Progress:
    """Begin a phase of the work; return a function to call with its steps."""
    return _current.progress(phase)


def waiting(label: str) -> AbstractContextManager[Any]:
    """Return the context for work without steps, such as a slow import."""
    return _current.waiting(label)
