"""Draw the picture of the architecture page from the import contracts of pyproject.toml.

python -m tools.rooms        # writes docs/rooms.svg

Each layer of a contract is a row of boxes, the top one first; rooms of one layer are side by side. If a room has its own
contract, its layers are drawn inside its box. The text of the picture depends only on the contracts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"

Layers = tuple[tuple[str, ...], ...]

WIDTH, EDGE = 1080, 24
LEFT = 84
"""Left edge of the boxes [px]; the arrow is to the left of it."""
ROW, GAP, INNER_ROW, INNER_GAP, TITLE = 40, 10, 28, 6, 30
INNER_SHARE = 2.0
"""Width of a box with layers inside, relative to one without."""
INK, LINE, PAPER, BOX, INNER = "#1b2a3a", "#5b7189", "#ffffff", "#e6eef6", "#f7fafc"
FONT = "font-family='Helvetica, Arial, DejaVu Sans, sans-serif'"


class Box(NamedTuple):
    """Upper left corner and size [px]."""

    x: float
    y: float
    width: float
    height: float


def contracts(text: str) -> dict[str, Layers]:
    """Layers of each package that has a layers contract in this pyproject.toml, the top layer first."""
    found = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return {
        container: tuple(tuple(sorted(room.strip() for room in layer.split("|"))) for layer in contract["layers"])
        for contract in found
        if contract["type"] == "layers"
        for container in contract["containers"]
    }


def rooms(text: str) -> tuple[str, ...]:
    """Names of all rooms of the package, the top layer first."""
    return tuple(room for layer in contracts(text)["pfaffian"] for room in layer)


def picture(text: str) -> str:
    """The SVG text for this pyproject.toml."""
    known = contracts(text)
    outer, inner = known["pfaffian"], {name.removeprefix("pfaffian."): x for name, x in known.items() if "." in name}
    parts: list[str] = []
    y = float(EDGE)
    for layer in outer:
        height = max(_height(inner.get(room)) for room in layer)
        parts += _layer(Box(LEFT, y, WIDTH - LEFT - EDGE, height), layer, inner)
        y += height + GAP
    bottom = y - GAP
    total = bottom + EDGE
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{total:g}' viewBox='0 0 {WIDTH} {total:g}' "
        f"role='img' {FONT} font-size='14' text-anchor='middle'>",
        "<title>The rooms of pfaffian: each may import from those below it</title>",
        f"<rect width='{WIDTH}' height='{total:g}' fill='{PAPER}'/>",
        *_arrow(EDGE, bottom),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _height(layers: Layers | None) -> float:
    return TITLE + len(layers) * (INNER_ROW + INNER_GAP) + INNER_GAP if layers else ROW


def _layer(row: Box, layer: tuple[str, ...], inner: Mapping[str, Layers]) -> list[str]:
    """A row of boxes of equal width; those with layers inside are wider."""
    shares = [INNER_SHARE if room in inner else 1.0 for room in layer]
    unit = (row.width - GAP * (len(layer) - 1)) / sum(shares)
    parts, x = [], row.x
    for room, share in zip(layer, shares, strict=True):
        box = Box(x, row.y, unit * share, row.height)
        parts += _with_layers(box, room, inner[room]) if room in inner else _box(box, room, BOX)
        x += box.width + GAP
    return parts


def _with_layers(box: Box, room: str, layers: Layers) -> list[str]:
    parts, y = _box(box, room, BOX, TITLE), box.y + TITLE
    for layer in layers:
        row = Box(box.x + GAP, y, box.width - 2 * GAP, INNER_ROW)
        width = (row.width - INNER_GAP * (len(layer) - 1)) / len(layer)
        for i, name in enumerate(layer):
            parts += _box(Box(row.x + i * (width + INNER_GAP), y, width, INNER_ROW), name, INNER)
        y += INNER_ROW + INNER_GAP
    return parts


def _box(box: Box, name: str, fill: str, title: float | None = None) -> list[str]:
    """A rectangle with its name in the middle, or in the middle of its uppermost `title` pixels."""
    x, y = box.x + box.width / 2, box.y + (title or box.height) / 2 + 5
    return [
        f"<rect x='{box.x:.1f}' y='{box.y:.1f}' width='{box.width:.1f}' height='{box.height:.1f}' rx='5' "
        f"fill='{fill}' stroke='{LINE}'/>",
        f"<text x='{x:.1f}' y='{y:.1f}' fill='{INK}'>{escape(name)}</text>",
    ]


def _arrow(top: float, bottom: float) -> list[str]:
    x, middle = LEFT - 26, (top + bottom) / 2
    return [
        f"<path d='M {x} {top:g} V {bottom - 12:g}' stroke='{LINE}' stroke-width='2.5' fill='none'/>",
        f"<path d='M {x - 8} {bottom - 14:g} H {x + 8} L {x} {bottom:g} Z' fill='{LINE}'/>",
        f"<text x='{x - 16}' y='{middle:g}' fill='{INK}' transform='rotate(-90 {x - 16} {middle:g})'>may import</text>",
    ]


def main() -> None:
    PICTURE.write_text(picture((ROOT / "pyproject.toml").read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
