"""The warning of the readers."""

from __future__ import annotations

import warnings


class ModelWarning(UserWarning):
    """A file was read, but something in it was changed, ignored or looks wrong: what, and the way out."""


def notice(message: str, level: int = 3) -> None:
    """Warn as the caller of the public reader."""
    warnings.warn(message, ModelWarning, stacklevel=level + 1)
