"""What every command prints with: JSON or text on stdout, the rest on stderr."""

import io
import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from facepairs.errors import one_line

OK, NEGATIVE, ERROR, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
LOST_WORKER = 138  # launchers start a process again that ends so: 128 + SIGUSR1, to Kubeflow


def bear_any_name() -> None:
    r"""Let stdout escape what it cannot encode, such as a file name that is no Unicode: `\udcff`.

    In JSON that is the very character, which `os.fsencode` turns back into the name's byte.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_error(kind: str, message: str, as_json: bool) -> None:
    """Print one line on stderr; under `--json` an object on stdout."""
    line = " ".join(message.split())
    if as_json:
        print_json({"error": {"kind": kind, "message": line}})
    else:
        print(f"facepairs: error: {line}", file=sys.stderr)


def say(line: str) -> None:
    """Print a line of progress or warning on stderr; line breaks in names are escaped."""
    print(one_line(line), file=sys.stderr, flush=True)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print label and text in two columns; line breaks and control characters are escaped."""
    listed = [(one_line(label), one_line(text)) for label, text in rows]
    width = max((len(label) for label, _ in listed), default=0)
    for label, text in listed:
        print(f"{label:<{width}}  {text}")


def ticker(label: str) -> Callable[[int, int], None]:
    """Make a progress bar on a terminal's stderr, shown once the work takes two seconds."""
    started = time.monotonic()
    shown = 0.0

    def tick(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        finished = done >= total
        if not sys.stderr.isatty() or now - started < 2 or (now - shown < 0.1 and not finished):
            return
        shown = now
        filled = 24 * done // max(total, 1)
        left = (now - started) * (total - done) / max(done, 1)
        bar = f"{label} [{'=' * filled}{' ' * (24 - filled)}] {done:,}/{total:,}  {left:.0f} s left"
        end = "\r\x1b[2K" if finished else ""
        print(f"\r\x1b[2K{bar}{end}", end="", file=sys.stderr, flush=True)

    return tick
