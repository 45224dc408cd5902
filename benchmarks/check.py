"""Check that both sides compute the same numbers before any time is measured."""

from __future__ import annotations

import numpy as np

SAME = 1e-9
"""Tolerance of accelerations, relative to the largest one of the state."""

STATES = 100
"""Number of states at which they are compared."""


class CheckFailed(Exception):
    """The two sides do not compute the same."""


def agree(what: str, ours: np.ndarray, peer: np.ndarray, tolerance: float = SAME) -> float:
    """The largest difference, relative to the largest entry of each state; arrays (states, n). Raises CheckFailed."""
    if ours.shape != peer.shape:
        raise CheckFailed(f"{what}: ours has shape {ours.shape}, the peer's {peer.shape}")
    if not (np.isfinite(ours).all() and np.isfinite(peer).all()):
        raise CheckFailed(f"{what}: not all numbers are finite")
    found = float(np.max(np.abs(ours - peer) / np.abs(peer).max(axis=1, keepdims=True)))
    if not found <= tolerance:
        raise CheckFailed(f"{what}: they differ by {found:.3g} of the largest entry, more than {tolerance:g}")
    return found
