"""The warning of the readers."""

from __future__ import annotations

import sys
import warnings


class ModelWarning(UserWarning):
    """A file was read, but something in it was changed, ignored or looks wrong: what, and the way out."""


def notice(message: str) -> None:
    """Warn at the line that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("pfaffian."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ModelWarning, stacklevel=level)
