"""Each row of a table of facts beside the engine of its format: python -m tools.compare_files rows sdf|usd

What a row says is read is set in the small file of the table's test, and the file is compared as any other one. Prints the rows
that differ, those that the engine does not read, each with its cause, and totals; a row that differs without a cause counts as
a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.compare_files.report import Row

Text = Callable[[], str]

CAUSES = {"sdf": (), "usd": ()}
"""Format -> (expression for the row's name, why the engine is not right there)."""


def sdf() -> Iterator[tuple[str, str]]:
    """Name of each row that is read, and the text with its value, without what Drake does not read in any model."""
    from tests.formats.test_xml_facts import changed, table

    for r in table("sdf"):
        if r["answer"] == "read" and r["value"]:
            yield f"{r['element']} {r['attribute']}".strip(), changed("sdf", r["element"], r["attribute"], r["value"])


def usd() -> Iterator[tuple[str, str]]:
    """The same for USD; its loop is no part of the articulation, since Newton refuses it there."""
    from tests.formats.test_usd_facts import ROWS, prim_of, stage

    for r in ROWS:
        if r["answer"] == "read":
            text = stage(prim_of(r["schema"], r["property"]), r["line"].replace("\\n", "\n"))
            yield f"{r['schema']} {r['property']}", text


TEXTS = {"sdf": (sdf, ".sdf"), "usd": (usd, ".usda")}


def main(name: str) -> int:
    """Print the comparison of all rows; 1 if one differs without a cause."""
    texts, suffix = TEXTS[name]
    examine, count = import_module(f"tools.compare_files.{name}").examine, Counter[str]()
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"row{suffix}"
        for title, text in texts():
            file.write_text(text, encoding="utf-8")
            row: Row = examine(file)
            causes = [why for expression, why in CAUSES[name] if re.search(expression, title)]
            outcome = "differs with a known cause" if row.outcome == "differs" and causes else row.outcome
            count[outcome] += 1
            print(f"{title:60s} {row.numbers} {outcome}: {'; '.join((*causes, row.why))[:300]}", flush=True)
    print(f"\n{count.total()} rows: " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
    return int(bool(count["differs"]))
