"""The state of a fit, written to a file after every step, from which a fit that was stopped goes on."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.output.folder import write_file


class FitState(NamedTuple):
    """Where a fit is.   names: of the numbers.   theta: (n,) numbers.   x: (segments, nx) starts.   deviation: (ny,)."""

    names: tuple[str, ...]
    theta: np.ndarray
    x: np.ndarray
    deviation: np.ndarray


def save_state(path: Path, state: FitState) -> None:
    """Write the state, whole or not at all. Raises RunError: the file cannot be written."""
    file = io.BytesIO()
    np.savez(file, names=np.array(state.names), theta=state.theta, x=state.x, deviation=state.deviation)
    write_file(path, file.getvalue())


def saved_state(path: Path, expected: FitState) -> FitState | None:
    """The state in a file, None if there is no file. Raises ModelError: it is not that of such a fit."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            found = FitState(tuple(map(str, file["names"])), file["theta"], file["x"], file["deviation"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        raise ModelError(f"resume: {brief(str(path))} is not the file of a fit; name another one") from None
    same = found.names == expected.names and all(a.shape == b.shape for a, b in zip(found[1:], expected[1:], strict=True))
    if not same or not all(np.isfinite(a).all() for a in found[1:]):
        raise ModelError(f"resume: {brief(str(path))} is of a fit of other numbers or records; delete it, or name another one")
    return found
