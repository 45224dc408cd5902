"""Each row of a table of facts beside the engine of its format: python -m tools.compare_files rows sdf|usd

What a row says is read is set in the small file of the table's test, and the file is compared as any other one. Prints the rows
that differ, those that the engine does not read, each with its cause, and totals; a row that differs without a cause counts as
a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.compare_files.trees import UNIVERSAL

Causes = tuple[tuple[str, str], ...]

CAUSES: dict[str, Causes] = {
    "sdf": (("axis2/(dynamics|limit)", UNIVERSAL),),
    "usd": (
        ("newton:inertia", "usd-core does not know Newton's properties"),
        ("MeshCollisionAPI physics:approximation", "Newton weighs a mesh itself, whatever shape approximates it"),
    ),
}
"""Format -> (expression for the row's name, why the engine is not right there)."""

UNREAD: dict[str, Causes] = {
    "sdf": (
        ("mimic", "Drake does not read <mimic>: findings/drake-sdf-mimic.sh"),
        ("gearbox", "Drake does not read gearboxes"),
        ("gravity|physics", "Drake does not read gravity and steps of a world, nor gravity of links"),
        ("axis2/xyz expressed_in", "Drake refuses axes that are not orthogonal"),
    ),
    "usd": (),
}
"""Format -> (expression, why the row compares no more than the rest of the file)."""


def sdf() -> Iterator[tuple[str, str]]:
    """Name of each row that is read, and the text with its value, without what Drake does not read in any model."""
    from tests.formats.test_xml_facts import changed, table

    for r in table("sdf"):
        if r["answer"] == "read" and r["value"]:
            text = changed("sdf", r["element"], r["attribute"], r["value"])
            yield (
                f"{r['element']} {r['attribute']}".strip(),
                text.replace("</spring_reference>", f"</spring_reference>{SPRING}"),
            )


def usd() -> Iterator[tuple[str, str]]:
    """The same for USD, with what Newton and the rows need beside the value."""
    from tests.formats.test_usd_facts import ROWS, prim_of, stage

    for r in ROWS:
        if r["answer"] == "read":
            text = stage(prim_of(r["schema"], r["property"]), r["line"].replace("\\n", "\n"))
            for line, more in NEEDED.items():
                text = text.replace(line, more)
            yield f"{r['schema']} {r['property']}", text


SPRING = "<spring_stiffness>2</spring_stiffness>"
"""What a rest length acts by."""

TARGET = "float drive:angular:physics:targetPosition"
NEEDED = {
    "float physics:minDistance": "bool physics:excludeFromArticulation = 1\nfloat physics:minDistance",
    TARGET: f"float drive:angular:physics:stiffness = 2\n{TARGET}",
    'Xform "h" (prepend apiSchemas = [': 'Xform "h" (prepend apiSchemas = ["PhysicsArticulationRootAPI", ',
}
"""Text -> the text with what a loop, a target of a drive and a body on its own need."""

TEXTS = {"sdf": (sdf, ".sdf"), "usd": (usd, ".usda")}


def main(name: str) -> int:
    """Print the comparison of all rows; 1 if one differs without a cause."""
    texts, suffix = TEXTS[name]
    examine, count = import_module(f"tools.compare_files.{name}").examine, Counter[str]()
    with TemporaryDirectory() as folder:
        for i, (title, text) in enumerate(texts()):
            file = Path(folder) / f"row{i}{suffix}"  # OpenUSD keeps what it has read of a path
            file.write_text(text, encoding="utf-8")
            row = examine(file)
            unread, causes = ([why for expression, why in x[name] if re.search(expression, title)] for x in (UNREAD, CAUSES))
            known = "differs with a known cause" if row.outcome == "differs" and causes else row.outcome
            outcome = "not read by the engine" if unread and row.outcome != "differs" else known
            count[outcome] += 1
            print(f"{title:60s} {row.numbers} {outcome}: {'; '.join((*unread, *causes, row.why))[:300]}", flush=True)
    print(f"\n{count.total()} rows: " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
    return int(bool(count["differs"]))
