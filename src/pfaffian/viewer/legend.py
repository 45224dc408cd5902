"""The scale of arrows in pictures: which length stands for how many newtons, as a bar and a number in pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.viewer.scene import Scene

SHORTEST, LONGEST = 0.05, 0.14
"""Length of the bar, as a fraction of the picture's height, at the distance of the point that the camera faces."""

NICE = (1.0, 2.0, 5.0)
"""Forces of a scale are these times a power of ten."""

PREFIXES = {-6: "u", -3: "m", 0: "", 3: "k", 6: "M"}

_FONT = {
    "0": "0e11131519110e", "1": "040c040404040e", "2": "0e11010204081f", "3": "1f02040201110e", "4": "02060a121f0202",
    "5": "1f101e0101110e", "6": "0608101e11110e", "7": "1f010204080808", "8": "0e11110e11110e", "9": "0e11110f01020c",
    ".": "00000000000c0c", "N": "11111915131111", "k": "10101214181412", "m": "00001a15151111", "M": "111b1515111111",
    "u": "0000111111131d", " ": "00000000000000",
}  # fmt: skip
"""Character -> its seven rows of five pixels, two hexadecimal digits for each row."""


class ArrowScale(NamedTuple):
    """The scale of the arrows of a layer.   force: [N].   length: of its arrow [m].   words: such as "50 N"."""

    layer: str
    force: float
    length: float
    words: str
    colour: tuple[float, ...]


def arrow_scales(scene: Scene, layers: frozenset[str], height: float) -> list[ArrowScale]:
    """The scale of each of the layers that has arrows.   height: of what the picture shows at the point it faces [m]."""
    found = []
    for layer in (name for name in scene.layers if name in layers):
        arrows = [x for x in scene.moving if x.layer == layer and x.scale > 0]
        if arrows:
            force = nice(LONGEST * height / arrows[0].scale)
            found.append(ArrowScale(layer, force, force * arrows[0].scale, in_newtons(force), arrows[0].colour))
    return found


def nice(most: float) -> float:
    """The largest number of the form (1, 2 or 5) 10^n that does not exceed `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(x * power for x in NICE if x * power <= most * (1 + 1e-12)))


def in_newtons(force: float) -> str:
    """A force with a prefix: 50 N, 2 kN."""
    power = int(np.clip(3 * np.floor(np.log10(force) / 3 + 1e-9), min(PREFIXES), max(PREFIXES)))
    return f"{force / 10.0**power:g} {PREFIXES[power]}N"


def stamped(image: np.ndarray, scales: list[ArrowScale], pixels: float) -> None:
    """Draw the scales into the lower left corner of a picture (height, width, 3).   pixels: for 1 m."""
    height, width, _ = image.shape
    size = max(1, height // 400)
    for i, x in enumerate(scales):
        text = letters(x.words, size)
        left, bottom, bar = 8 * size, height - (8 + 12 * i) * size, round(x.length * pixels)
        if left + bar + 6 * size + text.shape[1] > width or bottom < 10 * size:
            return
        colour = 255 * np.array(x.colour[:3])
        middle = bottom - 4 * size
        image[middle - size : middle + size, left : left + bar] = colour
        for k in range(4 * size):  # the head
            image[middle - k // 2 - 1 : middle + k // 2 + 1, left + bar - k] = colour
        place = image[bottom - text.shape[0] : bottom, left + bar + 5 * size : left + bar + 5 * size + text.shape[1]]
        place[text] = 60


def letters(words: str, size: int) -> np.ndarray:
    """(rows, columns) of bool, the pixels of a text; characters without a picture are left out."""
    shapes = [_letter(c) for c in words if c in _FONT]
    return np.concatenate(shapes, axis=1).repeat(size, axis=0).repeat(size, axis=1)


def _letter(c: str) -> np.ndarray:
    rows = bytes.fromhex(_FONT[c])
    return np.array([[bool(row >> (4 - k) & 1) for k in range(5)] + [False] for row in rows])
