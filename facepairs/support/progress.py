"""Callback types for progress and messages, declared once for the whole package."""

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]
"""Called as `progress(done, total)`; both count the same unit, and `done` never falls."""

MessageCallback = Callable[[str], None]
"""Called as `log(line)` with one line of plain text for the person who waits."""

ProgressFactory = Callable[[str], ProgressCallback]
"""Called as `display(label)`; returns the callback of one named phase of the work."""


def ignore_progress(done: int, total: int) -> None:
    """Discard a progress report."""


def ignore_message(line: str) -> None:
    """Discard a message."""
