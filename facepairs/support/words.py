"""Wording and text tables that many messages share."""

import shlex
from collections.abc import Sequence


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 image`, `1,200 images`, `2 people`.

    Args:
        number: How many.
        one: The noun in the singular.
        many: The noun in the plural, where that is not the singular with an s.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """Replace bytes that are not UTF-8 with backslash escapes, so that the output is UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def command_line(*words: object) -> str:
    """Return a facepairs command line, quoted for a shell."""
    return shlex.join(["facepairs", *map(str, words)])


def format_duration(seconds: float) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`; negative ones as `0:00`."""
    minutes, second = divmod(round(max(seconds, 0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def align_columns(rows: Sequence[Sequence[str]], right: bool = False) -> list[str]:
    """Return the rows as lines with aligned columns.

    Args:
        rows: The header, or the first row, and the others. A row that is shorter than the first one
            ends with a text, such as the reason why it has no figures; it widens no column.
        right: Align all columns but the first to the right.
    """
    columns = len(rows[0]) if rows else 0
    widths = [
        max(len(row[column]) for row in rows if column == 0 or len(row) == columns)
        for column in range(columns)
    ]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *row[1:]]
        if len(row) == columns:
            justify = str.rjust if right else str.ljust
            cells[1:] = map(justify, row[1:], widths[1:])
        lines.append("  ".join(cells).rstrip())
    return lines
