"""`Table` and its cells, and the two renderers that need no page: text and HTML for notebooks."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from facepairs.bundles.rates import Rate
from facepairs.errors import one_line
from facepairs.support.html import html_table
from facepairs.support.words import align_columns

Bounds = tuple[float, float]
FACTS = ("what", "value")
"""Columns of a table that lists facts: it is shown without headings."""


class Cell(NamedTuple):
    """A text for people, and the value that rows are sorted by."""

    text: str
    value: str | float | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return isinstance(self.value, int | float)


EMPTY = Cell("")


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        key: Its name among all tables; those of a verifier end with its number, from 1.
        title: Its heading.
        columns: Headings of the columns.
        rows: Cells of each row.
        note: A text below the heading, or "".
        verifier: Whose figures it has, where several verifiers are compared.
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    verifier: str = ""

    @property
    def heading(self) -> str:
        """The title, with the name of the verifier where there are several."""
        return f"{self.verifier}: {self.title}" if self.verifier else self.title

    @property
    def is_facts(self) -> bool:
        """Whether it lists facts."""
        return self.columns == FACTS


def cells(rows: Iterable[Iterable[object]]) -> list[list[Cell]]:
    """Return rows of cells; of a whole number, of a text, and of None for an empty cell."""
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: object) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, int):
        return Cell(f"{value:,}", value)
    return EMPTY if value is None else Cell(str(value), str(value))


def percent(value: float) -> str:
    """Return a share as text, in percent with two digits."""
    return f"{100 * value:.2f} %"


def interval(bounds: Bounds, scale: int = 100) -> str:
    """Return an interval as text, of shares in percent or with scale 1 as it is."""
    digits = 2 if scale == 100 else 4
    return " to ".join(f"{scale * bound:.{digits}f}" for bound in bounds)


def share(rate: Rate | None) -> Cell:
    """Return a cell of a rate in percent, with its interval in parentheses."""
    if rate is None:
        return EMPTY
    return Cell(f"{percent(rate.value)} ({interval(rate.interval)})", rate.value)


def number(value: float | None, bounds: Bounds | None = None) -> Cell:
    """Return a cell of a number with four digits, with its interval if it has one."""
    if value is None:
        return EMPTY
    return Cell(f"{value:.4f}" + (f" ({interval(bounds, 1)})" if bounds else ""), value)


def text_of(tables: Iterable[Table]) -> str:
    """Return tables as a terminal shows them."""
    blocks = []
    for table in tables:
        lines = [] if table.is_facts else [one_line(table.heading)]
        rows = [] if table.is_facts else [list(table.columns)]
        rows += [[one_line(cell.text) for cell in row] for row in table.rows]
        blocks.append("\n".join(lines + align_columns(rows)))
    return "\n\n".join(blocks)


def html_of(tables: Iterable[Table], warnings: Iterable[str] = ()) -> str:
    """Return warnings and tables as a notebook shows them."""
    parts = [html_table(("warning", line) for line in warnings)]
    for table in tables:
        title = "" if table.is_facts else f"<p>{html.escape(table.heading)}</p>"
        rows = [[cell.text for cell in row] for row in table.rows]
        parts.append(title + html_table(rows, () if table.is_facts else table.columns))
    return "".join(parts)
