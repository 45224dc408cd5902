"""A smooth basis of the null space along a recorded motion, for equations written in such a basis. [aghili08]"""

from __future__ import annotations

from typing import Any

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths.span import basis
from pfaffian.model.number import floats

PROJECTOR = 1e-6
"""Largest entry of P P - P and of P - P^T of a projector P."""

TURN = 0.5
"""Cosine of the largest angle by which the null space may turn between two samples: 60 degrees."""


def transport_basis(P: Any, start: Any = None) -> np.ndarray:
    """A smooth basis V2 of the null space along a recorded motion, V2 V2^T = P at each sample. [aghili08 (10)]

    The basis is parallel-transported, V2_dot = P_dot V2, so that V2^T V2_dot = 0 and it turns no more than P. This is the rate
    equation V_dot = -Omega V for which Gamma_r = V2^T Gamma V2. A basis by SVD at each sample would also be orthonormal, but
    jumps. From one sample to the next, V2 becomes the orthonormal matrix nearest to P(t + h) V2(t), which has no drift and is
    accurate to second order in h.

    Args:
        P: (times, n, n) orthogonal projectors, such as `reduced_quasi_velocity(T, ...).P` along a run.
        start: (n, k) orthonormal basis at the first sample; if None, the basis whose directions are nearest to single
            coordinates.
    Returns:
        V2 (times, n, k).
    Raises ModelError: P are not projectors; between two samples the null space turns by more than 60 degrees or loses a
    dimension; start is not a basis of the first null space.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> angle = np.linspace(0, np.pi / 2, 20)
        >>> along = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :, None]
        >>> pf.constraints.transport_basis(along @ along.swapaxes(1, 2))[-1].round(3)  # from (1, 0) turned to (0, 1)
        array([[0.], [1.]])
    """
    P = floats(P, "P")
    if P.ndim != 3 or P.shape[1] != P.shape[2] or not len(P):
        raise ModelError(f"P has shape {P.shape}: projectors (times, n, n) are needed")
    if max(np.abs(P - np.swapaxes(P, 1, 2)).max(), np.abs(P @ P - P).max()) > PROJECTOR:
        raise ModelError("P is not an orthogonal projector at every sample: P = P^T and P P = P are needed")
    V = np.empty((len(P), P.shape[1], round(np.trace(P[0]))))
    V[0] = basis(P[0]) if start is None else _basis(start, P[0])
    for i in range(1, len(P)):
        U, s, Wt = np.linalg.svd(P[i] @ V[i - 1], full_matrices=False)
        if s.size and s[-1] < TURN:
            raise ModelError(f"the null space turns too far, or loses a dimension, before sample {i}: record more often")
        V[i] = U @ Wt
    return V


def _basis(start: Any, P: np.ndarray) -> np.ndarray:
    """A caller's orthonormal basis of the range of P, checked."""
    V = floats(start, "start")
    if V.ndim != 2 or V.shape != (len(P), round(np.trace(P))) or np.abs(V @ V.T - P).max() > PROJECTOR:
        raise ModelError(f"start of shape {V.shape} is not an orthonormal basis of the first null space: V V^T = P is needed")
    return V
