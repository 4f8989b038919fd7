"""`Table`, and the renderers that need no page: text, HTML for notebooks, CSV and LaTeX."""

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from facepairs.bundles.rates import Rate
from facepairs.errors import one_line
from facepairs.support.html import html_table
from facepairs.support.words import align_columns


class Cell(NamedTuple):
    """A text for people, the value that rows are sorted by, and the interval of a rate."""

    text: str
    value: str | float | None = None
    interval: tuple[float, float | None] | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is aligned to the right."""
        return isinstance(self.value, int | float)

    @property
    def numbers(self) -> tuple[object, ...]:
        """The value, or the text without one, and both ends of the interval, or ""."""
        return (self.text if self.value is None else self.value, *(self.interval or ("", "")))


EMPTY = Cell("")
LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "<": "$<$", ">": "$>$"}
)


@dataclass(frozen=True)
class Table:
    """A table; printed, as a terminal shows it, and in a notebook, as HTML.

    Examples:
        >>> for table in facepairs.evaluate("scores.csv").tables():
        ...     print(table.to_csv())

    Attributes:
        key: Its name among all tables; those of a verifier end with its number, from 1.
        title: Its heading.
        columns: Headings of the columns; none for a list of facts, of two columns.
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

    def __str__(self) -> str:
        return text_of([self])

    def _repr_html_(self) -> str:
        return html_of([self])

    def to_csv(self) -> str:
        """Return the table as CSV with a header: shares from 0 to 1, not rounded.

        Both ends of an interval are in columns of their own, `NAME low` and `NAME high`; one that
        is not bounded has no high end. A list of facts also has the texts that people see, with
        counts.
        """
        names = list(self.columns) or ["figure", "value", "text"]
        cells = self.rows if self.columns else [[*row, Cell(row[-1].text)] for row in self.rows]
        wide = {place for row in cells for place, cell in enumerate(row) if cell.interval}
        rows: list[list[tuple[object, ...]]] = [
            [(name, f"{name} low", f"{name} high") for name in names],
            *([cell.numbers for cell in row] for row in cells),
        ]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            [
                value
                for place, values in enumerate(row)
                for value in (values if place in wide else values[:1])
            ]
            for row in rows
        )
        return out.getvalue()

    def to_latex(self) -> str:
        """Return the table as LaTeX that needs no package; texts are those that people see."""
        rows = [list(self.columns)] if self.columns else []
        rows += [[cell.text for cell in row] for row in self.rows]
        lines = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
        if self.columns:
            lines.insert(1, r"\hline")
        first = self.rows[0] if self.rows else []
        kinds = "".join("r" if cell.is_number else "l" for cell in first)
        caption = _latex(". ".join(filter(None, [self.heading, self.note])))
        head = [r"\begin{table}", rf"\caption{{{caption}}}", rf"\begin{{tabular}}{{{kinds}}}"]
        tail = [r"\hline", r"\end{tabular}", r"\end{table}", ""]
        return "\n".join([*head, r"\hline", *lines, *tail])


def _latex(text: str) -> str:
    return one_line(text).translate(LATEX)


def table_of(key: str, title: str, rows: Iterable[Mapping[str, object]], note: str = "") -> Table:
    """Return a table of values by their column, see `cell`; columns without any are left out.

    Args:
        key: Its name.
        title: Its heading.
        rows: The same columns in the same order in every row.
        note: A text below the heading.
    """
    made = [{column: cell(value) for column, value in row.items()} for row in rows]
    first = made[0] if made else {}
    columns = [column for column in first if any(row[column] != EMPTY for row in made)]
    return Table(key, title, columns, [[row[column] for column in columns] for row in made], note)


def facts_of(key: str, title: str, facts: Iterable[tuple[str, object]], note: str = "") -> Table:
    """Return a list of labelled values; those that are None are left out."""
    return Table(key, title, (), [[cell(k), cell(v)] for k, v in facts if v is not None], note)


def cell(value: object) -> Cell:
    """Return the cell of a value: of a rate with its interval, a number, a text, or None."""
    if isinstance(value, Cell):
        return value
    if value is None:
        return EMPTY
    if isinstance(value, Rate):
        return Cell(f"{share(value)} ({interval(value)})", value.value, value.interval)
    if isinstance(value, int):
        return Cell(f"{value:,}", value)
    if isinstance(value, float):
        return Cell(f"{value:.4f}", value)
    return Cell(str(value), str(value))


def percent(value: float | None) -> Cell:
    """Return the cell of a share without an interval."""
    return EMPTY if value is None else Cell(f"{100 * value:.2f} %", value)


def share(rate: Rate) -> str:
    """Return a rate as text, in percent; over folds with its standard error."""
    error = rate.standard_error
    return percent(rate.value).text + ("" if error is None else f" ± {100 * error:.2f}")


def interval(rate: Rate) -> str:
    """Return the interval of a rate as text, in percent."""
    return " to ".join(f"{100 * end:.2f}" for end in rate.interval)


def text_of(tables: Iterable[Table]) -> str:
    """Return tables as a terminal shows them."""
    blocks = []
    for table in tables:
        head = [one_line(". ".join(filter(None, [table.heading, table.note])))]
        rows = [list(table.columns)] if table.columns else []
        rows += [[one_line(cell.text) for cell in row] for row in table.rows]
        lines = align_columns(rows)
        blocks.append("\n".join([*head, *lines] if table.columns else lines))
    return "\n\n".join(blocks)


def html_of(tables: Iterable[Table], warnings: Iterable[str] = ()) -> str:
    """Return warnings and tables as a notebook shows them."""
    parts = [html_table(("warning", line) for line in warnings)]
    for table in tables:
        title = f"<p>{html.escape(table.heading)}</p>" if table.columns else ""
        rows = [[cell.text for cell in row] for row in table.rows]
        parts.append(title + html_table(rows, table.columns))
    return "".join(parts)
