"""SDF files beside Drake, which reads them by libsdformat: mass matrices, accelerations, limits of trees.

Drake reads neither <mimic> nor loops closed by joints; files with them are not compared.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

import pfaffian as pf
from tools.compare_files.report import Row
from tools.compare_files.trees import bare, compared, drake

SUFFIXES = (".sdf", ".world")
"""Of files in this format."""

ROUNDED = 1e-8
"""Relative difference that counts as equal: Drake turns tensors to unit inertias and back."""


def examine(path: Path) -> Row:
    """Open a file and compare it. A model that floats is welded at its root."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            m, _ = pf.formats.read_sdf(path, base="fixed", friction="none")
        except pf.PfaffianError as error:
            return Row(refused=str(error))
    row = Row(nv=m.nv, left_out="; ".join(str(w.message) for w in caught), same=ROUNDED)
    if m.constraints or any(j.mimic or j.nv > 1 for j in m.joints):
        return replace(row, error="loops, followers and joints with several velocities are not compared")
    welded = [j.child for j in m.joints if j.parent == "world" and not j.moves]
    try:
        engine = drake(path.read_text(), "sdf", welded[0] if welded and "root_joint" in {j.name for j in m.joints} else None)
        return replace(row, differences=compared(bare(m).with_(gravity=(0, 0, -9.81)), engine, "Drake"))
    except ImportError:
        return replace(row, error="Drake is not installed: pip install drake")
    except (ValueError, RuntimeError, IndexError, np.linalg.LinAlgError, pf.PfaffianError) as error:
        return replace(row, error=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
