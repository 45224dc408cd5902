"""Find the constraint rows that depend on each other where a mechanism moves, at configurations on its constraints.

The loop of a four-bar, modelled in space, has five rows of rank two. Those of Bennett's linkage have rank two on the
constraints and rank three off them. Rows that take part in a vanishing combination are orthonormalised as one group, in which
the row with the largest remainder comes next (`maths.linear.orthogonalise`). All other rows are processed in their given
order, at no extra cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths.linear import connected
from pfaffian.model.mechanism import Mechanism, check_configuration, random_configuration

SAMPLES = 3
"""Number of configurations on the constraints that decide; the rank at a random one is the rank almost everywhere."""

TRIES = 24
"""Number of starting points in the search for these configurations; after the first few they are near one that was found. If no
configuration is found, all rows count as dependent on each other.
"""

ITERATIONS = 60
CONVERGED = 1e-8
"""Residual, relative to a row's typical length, at which a configuration counts as on the constraints."""

DAMPING = 1e-12
"""Lower bound of the damping of a step, relative to squared singular values."""

DEPENDENT = 1e-6
"""Singular values, and parts of rows in a vanishing combination, count as zero below this.

It is above ZERO of `maths/margins.py` because the configurations satisfy the constraints to rounding, and files give axes with
five digits. A close decision is told by runs, not here: they count rows of no group in full, and tell which rows of a group
they leave out although these are not exactly dependent (`simulate/record/near_dependent_rows.py`).
"""

ROUNDED, PLAIN = 1e-10, 1e-3
"""A rank is plain where no singular value lies between these. Steps that end near a singular configuration leave some of about
the square root of rounding, and there rows depend on each other that do so nowhere else.
"""

STRIDE = 0.5
"""Largest change of a coordinate in one iteration [rad, machine lengths]."""


class RowSample(NamedTuple):
    """Rows at a configuration: A (m, nv), phi (m,), K (nq, nv), for velocities in rad/s or machine lengths per second."""

    A: np.ndarray
    phi: np.ndarray
    K: np.ndarray


class _ExaminedRank(NamedTuple):
    """What a configuration tells.   rank: of the rows.   plain: whether it is so without doubt, see PLAIN.
    shared: (m, m) whether two rows take part in one vanishing combination."""

    rank: int
    plain: bool
    shared: np.ndarray


def dependent_rows(
    m: Mechanism, sample: Callable[[np.ndarray], RowSample], lengths: np.ndarray, long: float
) -> tuple[list[list[int]], list[np.ndarray]]:
    """Groups of two or more rows that depend on each other, and the configurations (nq,) on the constraints that were examined.

    A row that is in no group is independent of all others. A configuration near a singular one does not decide: its rank is not
    plain, and lower than at another where it is.

    sample: function that returns the rows at q (nq,).   lengths: (m, 1) typical length of each row.
    long: the machine's length [m].
    """
    random = np.random.default_rng(22)
    decisions, places = list[_ExaminedRank](), list[np.ndarray]()
    last = None
    for attempt in range(TRIES):
        begin = m.neutral() if attempt == 1 else random_configuration(m, random, long)
        if last is not None and attempt >= SAMPLES:
            begin = moved(m, last, random)
        q = settled(m, sample, lengths, begin)
        if q is None:
            continue
        here = sample(q)
        U, s, V = np.linalg.svd(here.A / lengths)
        rank = int((s > DEPENDENT * s.max(initial=1.0)).sum())
        if rank == m.nv:
            continue  # the machine cannot move in this assembly
        last = q, here.K @ V[rank:].T
        Z = U[:, rank:]
        plain = not ((s > ROUNDED * s.max(initial=1.0)) & (s < PLAIN * s.max(initial=1.0))).any()
        decisions.append(_ExaminedRank(rank, plain, np.abs(Z @ Z.T) > DEPENDENT))
        places.append(q)
        if len(places) == SAMPLES:
            break
    most = max((x.rank for x in decisions if x.plain), default=0)
    deciding = [x.shared for x in decisions if x.plain or x.rank >= most]
    shared = np.any(deciding, axis=0) if deciding else np.ones((len(lengths), len(lengths)), dtype=bool)
    supports = [{int(i) for i in np.flatnonzero(row)} for row in shared]
    return [part for part in connected(supports) if len(part) > 1], places


def moved(m: Mechanism, last: tuple[np.ndarray, np.ndarray], random: np.random.Generator) -> np.ndarray:
    """A configuration (nq,) at some distance from q along a random motion that the constraints permit.

    It is the starting point of the next search where random ones fail, as in long chains of loops.

    last: q (nq,), and the coordinate rates (nq, k) of these motions.
    """
    q, along = last
    x = along @ random.normal(size=along.shape[1])
    try:
        return check_configuration(m, (q + x * STRIDE / np.abs(x).max(initial=1e-300))[None])[0]
    except ModelError:
        return q


def settled(m: Mechanism, sample: Callable[[np.ndarray], RowSample], lengths: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """The configuration (nq,) on phi = 0 that damped Newton steps reach from q, None if they do not converge.

    The damping decreases with the residual, so that rows may lose rank on the way and at the end. The steps go on until
    rounding stops them: rows that depend on each other on the constraints do so up to the residual.
    """
    closest, least = None, CONVERGED
    for _ in range(ITERATIONS):
        A, phi, K = sample(q)
        A, phi = A / lengths, phi / lengths[:, 0]
        off = float(np.linalg.norm(phi))
        if not (np.isfinite(off) and np.isfinite(A).all()):
            return closest
        if off < least:
            closest, least = q, off
        elif closest is not None:
            return closest
        x = A.T @ np.linalg.solve(A @ A.T + (min(off, 1.0) ** 2 + DAMPING) * np.eye(len(A)), phi)
        try:
            q = check_configuration(m, (q - K @ x * min(1.0, STRIDE / np.abs(x).max(initial=1e-300)))[None])[0]
        except ModelError:
            return closest
    return closest
