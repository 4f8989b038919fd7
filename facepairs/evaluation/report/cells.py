"""Cells and tables: what people read, and the plain values that sort and go into CSV files."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from facepairs.support.words import align_columns

Value = str | int | float | None


class Cell(NamedTuple):
    """A text for people, and what it says: a value, the two bounds of an interval, or both."""

    text: str
    value: Value
    bounds: Sequence[float] | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return isinstance(self.sorts_by, int | float)

    @property
    def sorts_by(self) -> Value:
        """What rows are sorted by: the value; of a mere interval, its lower bound."""
        return self.bounds[0] if self.value is None and self.bounds else self.value


class Table(NamedTuple):
    """A table; `key` names files and elements, `note` stands above it."""

    key: str
    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


EMPTY = Cell("", None)


def make_table(
    key: str, title: str, note: str, columns: Sequence[str], rows: Iterable[Iterable[object]]
) -> Table:
    """Return a table.

    Args:
        key: Name of the table in file names and links.
        title: Its heading.
        note: A text below it, or "".
        columns: Headings of the columns.
        rows: Values of each row: a `Cell`, a whole number, a text, or None for an empty cell.
    """
    return Table(key, title, note, columns, [list(map(_cell, row)) for row in rows])


def _cell(entry: object) -> Cell:
    if entry is None:
        return EMPTY
    if isinstance(entry, Cell):
        return entry
    return Cell(f"{entry:,}", entry) if isinstance(entry, int) else Cell(str(entry), str(entry))


def rate(value: float | None, missing: str = "") -> Cell:
    """Return a share in percent."""
    return Cell(missing, None) if value is None else Cell(percent(value), value)


def number(value: float | None) -> Cell:
    """Return a number with four digits."""
    return EMPTY if value is None else Cell(f"{value:.4f}", value)


def interval(bounds: Sequence[float] | None, scale: int = 100) -> Cell:
    """Return an interval, of shares in percent or with scale 1 as it is."""
    if bounds is None:
        return EMPTY
    low, high = bounds
    digits = 2 if scale == 100 else 4
    return Cell(f"{scale * low:.{digits}f} to {scale * high:.{digits}f}", None, bounds)


def p_value(value: float) -> Cell:
    """Return a p-value; one below .0001 becomes "< .0001"."""
    return Cell("< .0001" if value < 1e-4 else f"{value:.4f}", value)


def percent(value: float) -> str:
    """Return a share as text, in percent with two digits."""
    return f"{100 * value:.2f} %"


def lines_of(table: Table) -> list[str]:
    """Return a table as lines of text with aligned columns."""
    return align_columns([table.columns, *([cell.text for cell in row] for row in table.rows)])
