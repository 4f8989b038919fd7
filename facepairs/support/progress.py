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


def ignore_phases(label: str) -> ProgressCallback:
    """Return a callback that discards the progress of a phase; the silent `ProgressFactory`."""
    return ignore_progress


def ignore_message(line: str) -> None:
    """Discard a message."""


def format_duration(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`; negative ones as `0:00`."""
    minutes, second = divmod(round(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def format_bar(done: int, total: int, width: int = 24) -> str:
    """Return a text bar of the share done, such as `[======      ]`.

    Args:
        done: Steps done.
        total: All steps.
        width: Characters between the brackets.
    """
    filled = width * done // max(total, 1)
    return f"[{'=' * filled}{' ' * (width - filled)}]"
