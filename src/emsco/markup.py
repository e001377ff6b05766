"""Small tables for people: as text that fits a line, and as HTML for notebooks, light or dark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from shutil import get_terminal_size
from textwrap import wrap

from emsco.exceptions import printable

_GAP = "  "
_LEAST_ROOM = 12  # characters of the column that gives way
_BELOW = 50  # characters; if a last column of words has fewer, its words go below the figures
_INDENT = 4
_CELL = "padding:.15em .6em;vertical-align:top;text-align:"  # no colours: those of the notebook, light or dark, hold


def line_width(width: int | None = None) -> int:
    """Return a number of characters per line; None: that of the terminal, or 110 without one."""
    return get_terminal_size((110, 24)).columns if width is None else width


@dataclass(frozen=True)
class Sheet:
    """A table of short texts.

    Attributes
    ----------
    head : tuple of str
    rows : tuple of tuple of str
        A cell may have several lines.
    left : tuple of int
        Columns of words, to be aligned to the left. The last of them gives way if a line is too long.
    marked : tuple of int
        Rows to be set in bold.
    notes : tuple of str
        Sentences below.
    most_lines : int or None
        Lines of a wrapped text; the rest is cut. None: nothing is cut.

    Examples
    --------
    >>> sheet = Sheet(("cost", "buys"), (("1.00", "age"), ("10.50", "blood | sex")), left=(1,), notes=("2 points.",))
    >>> print(sheet.to_text(80))
     cost  buys
     1.00  age
    10.50  blood | sex
    2 points.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = ()
    marked: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    most_lines: int | None = 2

    @property
    def width(self) -> int:
        """Characters of its longest line, if there is room for all."""
        return sum(self._widths()) + len(_GAP) * (len(self.head) - 1)

    def _widths(self) -> list[int]:
        columns = zip(self.head, *self.rows, strict=True)
        return [max(len(line) for cell in column for line in printable(cell).split("\n")) for column in columns]

    def to_text(self, width: int | None = None) -> str:
        """Return the table as lines of at most so many characters; None: as many as the terminal has."""
        width = line_width(width)
        cells = [[printable(cell).split("\n") for cell in row] for row in (self.head, *self.rows)]
        widths = self._widths()
        flexible = self.left[-1] if self.left else 0
        room = width - sum(widths) + widths[flexible] - len(_GAP) * (len(widths) - 1)
        below = flexible == len(widths) - 1 > 0 and room < min(widths[flexible], _BELOW)
        if below:
            lines = self._with_words_below(cells, widths[:-1], width)
        else:
            if self.left:
                widths[flexible] = min(widths[flexible], max(room, _LEAST_ROOM))
                for row in cells:
                    row[flexible] = [part for line in row[flexible] for part in self._fitted(line, widths[flexible])]
            lines = [line for row in cells for line in self._lines(row, widths)]
        for note in self.notes:
            lines += wrap(printable(note), width)
        return "\n".join(lines)

    def _with_words_below(self, cells: list[list[list[str]]], widths: Sequence[int], width: int) -> list[str]:
        """Return lines with the last column, indented, below the others; its head needs no line of its own."""
        lines: list[str] = []
        for k, row in enumerate(cells):
            lines += self._lines(row[:-1], widths)
            words = [part for line in row[-1] for part in self._fitted(line, width - _INDENT)] if k else []
            lines += [" " * _INDENT + part for part in words]
        return lines

    def _lines(self, row: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterable[str]:
        for k in range(max(map(len, row))):
            parts = [cell[k] if k < len(cell) else "" for cell in row]
            yield _GAP.join(self._aligned(parts, widths)).rstrip()

    def _fitted(self, line: str, width: int) -> list[str]:
        """Return a text as lines of at most so many characters."""
        lines, most = wrap(line, width) or [""], self.most_lines
        if most is not None and len(lines) > most:
            lines = [*lines[: most - 1], lines[most - 1][: width - 3].rstrip() + "..."]
        return lines

    def _aligned(self, parts: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
        for c, (part, width) in enumerate(zip(parts, widths, strict=True)):
            yield part.ljust(width) if c in self.left else part.rjust(width)

    def to_html(self, title: str = "") -> str:
        """Return the table as HTML, everything escaped, without scripts, colours and outside resources."""
        head = "".join(
            f'<th style="{_CELL}{self._side(c)};border-bottom:1px solid currentColor">{_escaped(cell)}</th>'
            for c, cell in enumerate(self.head)
        )
        rows = "".join(
            ('<tr style="font-weight:bold">' if i in self.marked else "<tr>")
            + "".join(f'<td style="{_CELL}{self._side(c)}">{_escaped(cell)}</td>' for c, cell in enumerate(row))
            + "</tr>"
            for i, row in enumerate(self.rows)
        )
        top = f'<thead><tr style="background:none">{head}</tr></thead>' if any(self.head) else ""
        caption = f"<p><b>{_escaped(title)}</b></p>" if title else ""
        notes = f'<p style="opacity:.8">{"<br>".join(map(_escaped, self.notes))}</p>' if self.notes else ""
        table = f'<table style="border-collapse:collapse">{top}<tbody>{rows}</tbody></table>' if self.rows else ""
        return f'<div style="overflow-x:auto">{caption}{table}{notes}</div>'

    def _side(self, column: int) -> str:
        return "left" if column in self.left else "right"


def facts_sheet(facts: Iterable[tuple[str, str]]) -> Sheet:
    """Return names and values as a table without a head."""
    return Sheet(("", ""), tuple(facts), left=(0, 1))


def _escaped(text: str) -> str:
    return escape(printable(text)).replace("\n", "<br>")
