"""The errors and warnings that a caller can act on. Each message names the element at fault and the way out."""

from __future__ import annotations

import sys
import warnings


class PfaffianError(Exception):
    """Root of every error that the library raises on purpose."""


class ModelError(PfaffianError, ValueError):
    """A mechanism, file, array or setting is wrong: which element, what is wrong with it, what to do."""


class RunError(PfaffianError, RuntimeError):
    """A computation could not go on: when, where, why."""


class BuildError(PfaffianError, RuntimeError):
    """A Program could not be traced, printed or compiled."""


class ModelWarning(UserWarning):
    """A file was read, but something in it was changed, ignored or looks wrong: what, and the way out."""


class RunWarning(UserWarning):
    """A run has a result, but not the one that was asked for: which runs stopped or left a limit, and why."""


def notice(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the library."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("pfaffian."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
