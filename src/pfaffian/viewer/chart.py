"""A matplotlib Figure that shows itself in a notebook, in the library's style."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from matplotlib.figure import Figure

from pfaffian.viewer.drawing import style


class Chart(Figure):
    """What is returned as the last value of a notebook's cell is shown, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        return png(self, 100)


def png(figure: Figure, dpi: int) -> bytes:
    """A figure as the bytes of a PNG file."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dpi)
    return drawn.getvalue()


def pixels_png(pixels: np.ndarray) -> bytes:
    """Pixels (height, width, 3) uint8 as the bytes of a PNG file."""
    from matplotlib.image import imsave

    made = BytesIO()
    imsave(made, pixels, format="png")
    return made.getvalue()
