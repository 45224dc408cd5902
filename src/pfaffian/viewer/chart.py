"""A matplotlib Figure that a notebook displays in the library's style."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from pfaffian.viewer.drawing import matplotlib, style

Figure: Any = matplotlib("figure").Figure


class Chart(Figure):
    """A figure that a notebook displays if it is the last value of a cell, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        return png(self, 100)


def png(figure: Any, dpi: int) -> bytes:
    """A figure as the bytes of a PNG file."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dpi)
    return drawn.getvalue()
