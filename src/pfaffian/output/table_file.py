"""Tables as files: comma-separated values, or a sheet that spreadsheet programs open."""

from __future__ import annotations

import csv
import io
import math
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from pfaffian.errors import ModelError
from pfaffian.output.plain import LONGEST, text
from pfaffian.output.whole_file import write_whole

Cell = str | float

_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml."

_AROUND = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_KINDS}sheet.main+xml"/>'
    f'<Override PartName="/xl/sheet.xml" ContentType="{_KINDS}worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="table" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/worksheet" Target="sheet.xml"/></Relationships>',
}
"""The files of a workbook beside its sheet. [ECMA-376]"""

MOST_ROWS = 2**20
"""Rows that spreadsheet programs open."""


def write_table(path: Path, rows: Iterable[Sequence[Cell]]) -> None:
    """Write rows of texts and numbers as .csv or .xlsx, by the ending of the path.

    In a sheet a text is never taken for a formula, and a number that is not finite is an empty cell.

    Raises ModelError: another ending; too many rows for a sheet.   Raises OSError: the file cannot be written.
    """
    write = {".csv": _csv, ".xlsx": _workbook}.get(path.suffix.lower())
    if write is None:
        raise ModelError(f"{text(path.name, LONGEST)!r}: the name of a table ends in .csv or .xlsx")
    write_whole(path, write(rows))


def _csv(rows: Iterable[Sequence[Cell]]) -> bytes:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows([[x if isinstance(x, str) else repr(x) for x in row] for row in rows])
    return lines.getvalue().encode()


def _workbook(rows: Iterable[Sequence[Cell]]) -> bytes:
    """A workbook with one sheet; the same bytes for the same rows."""
    lines = [f"<row>{''.join(map(_cell, row))}</row>" for row in rows]
    if len(lines) > MOST_ROWS:
        raise ModelError(f"a table of {len(lines)} rows: a sheet has {MOST_ROWS} at most; write .csv")
    sheet = f'<worksheet xmlns="{_SHEETS}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {**_AROUND, "xl/sheet.xml": sheet}.items():
            entry = zipfile.ZipInfo(name)  # of 1980, not of now
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return made.getvalue()


def _cell(x: Cell) -> str:
    if isinstance(x, str):
        return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text(x))}</t></is></c>'
    return f"<c><v>{x!r}</v></c>" if math.isfinite(x) else "<c/>"
