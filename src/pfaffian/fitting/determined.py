"""What the records determine: combinations of numbers that cannot be told apart, covariance and intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.control.identified_parameters import QUANTILE
from pfaffian.fitting.linear_step import WithoutStarts

BLIND = 1e-7
"""A combination counts as not determined at all if it changes the residuals less than this fraction of the best one."""

SMALLEST = 1e-3
"""A number below this part of its default, or of one unit if that is zero, counts as one of this size in comparisons."""

SMALL = 0.05
"""Entries of a combination below this fraction of its largest one are not named."""

INSIDE = 0.95
"""Part of the estimates within their interval."""

MANY = 20
"""Segments for each number from which on the scatter between them gives the whole covariance."""


class Uncertainty(NamedTuple):
    """covariance: (n, n), infinite for what is not determined.   half_width: (n,) of the 95 % interval.
    correlated: factor by which correlation of the residuals has enlarged the variances, on average."""

    covariance: np.ndarray
    half_width: np.ndarray
    correlated: float


def typical(theta: np.ndarray, default: np.ndarray) -> np.ndarray:
    """(n,) sizes to which changes of numbers are compared: their own, or a small part of their defaults where they vanish."""
    return np.maximum(np.abs(theta), SMALLEST * np.where(default != 0, np.abs(default), 1.0))


def blind(R: np.ndarray, theta: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(n, k) orthonormal changes of theta / size that the residuals do not show.   R: (rows, n) the reduced Jacobian.

    size: (n,) at least |theta|, so that a number that is zero is not taken for one without effect.
    """
    scaled = np.linalg.qr(R * size, mode="r")
    _, s, Vt = np.linalg.svd(np.atleast_2d(scaled), full_matrices=True)
    s = np.append(s, np.zeros(len(theta) - len(s)))
    return Vt[s <= BLIND * _largest(np.linalg.norm(R, axis=0), theta)].T


def _largest(columns: np.ndarray, theta: np.ndarray) -> float:
    """The largest effect of a number on the residuals, from the lengths of their columns."""
    return max(float((columns * np.abs(theta)).max(initial=0.0)), np.finfo(float).tiny)


def named(directions: np.ndarray, names: tuple[str, ...], size: np.ndarray, driven: bool) -> list[str]:
    """A sentence for each group of numbers that depend on each other along the blind directions.

    driven: whether a record has inputs that change.
    """
    left, found = [i for i in range(len(names)) if directions.shape[1] and (np.abs(directions[i]) > SMALL).any()], list[str]()
    coupled = np.abs(directions @ directions.T) > SMALL**2
    while left:
        group, added = [left[0]], [left[0]]
        while added:
            added = [j for j in left if j not in group and coupled[j, added].any()]
            group += added
        left = [i for i in left if i not in group]
        more = (
            ""
            if driven or len(group) == 1
            else "; no record has an input, so the scale of masses and forces is missing: a record with known forces tells it"
        )
        found.append(_sentence(directions, sorted(group), names, size) + more)
    return found


def _sentence(directions: np.ndarray, group: list[int], names: tuple[str, ...], size: np.ndarray) -> str:
    """What cannot be told about a group, and the way out."""
    if len(group) == 1:
        return f"the records do not depend on {names[group[0]]!r}: excite it, or leave it out"
    who = ", ".join(repr(names[i]) for i in group)
    lines = np.linalg.svd(directions[group])[0][:, : np.linalg.matrix_rank(directions[group], tol=SMALL)]
    if lines.shape[1] > 1:
        return f"the records do not determine {lines.shape[1]} of {who}: leave {lines.shape[1]} of them out"
    line = lines[:, 0] / np.abs(lines[:, 0]).max()
    line = line * np.sign(line[np.argmax(np.abs(line))])
    if np.allclose(line, 1.0, atol=SMALL):
        return f"the records determine {who} only up to a common factor, their scale is missing: leave one of them out"
    terms = " ".join(f"{x * size[i]:+.3g} in {names[i]!r}" for i, x in zip(group, line, strict=True))
    return f"the records do not tell {who} apart, a change of {terms} changes nothing: leave one of them out"


def uncertainty(part: WithoutStarts, theta: np.ndarray, size: np.ndarray, prior: np.ndarray) -> Uncertainty:
    """The covariance of theta, with residuals that are correlated within a segment but not between segments.

        H^-1 (sum g g^T) H^-1,   g the gradient of a segment, H = sum of R^T R

    With few segments that sum is poor; then the usual covariance H^-1 is enlarged by one factor where it is larger than chance
    explains: the trace of H^-1/2 (sum g g^T) H^-1/2 over that of white residuals. This one is below n, since gradients are
    small at a minimum, most where a segment has much of the information. The factor is an estimated variance, so intervals are
    then those of Student's distribution.
    """
    n, count = len(theta), len(part.starts)
    R = part.R.reshape(count, -1, n) * size
    each = np.einsum("sri,srj->sij", R, R)
    s, V = np.linalg.eigh(each.sum(axis=0) + np.diag((size / prior[:, 1]) ** 2))
    seen = s > (BLIND * _largest(np.linalg.norm(part.R, axis=0), theta)) ** 2
    root = V[:, seen] / np.sqrt(s[seen])
    g = np.einsum("sri,sr->si", R, part.rhs.reshape(count, -1)) @ root
    g = g - g.mean(axis=0)
    white, freedom = _of_white_residuals(root.T @ each @ root)
    ratio = float((g**2).sum() / white) if freedom >= 1 else 1.0
    enlarged = ratio > 1 + 2 * np.sqrt(2 / max(freedom, 1))
    if count >= MANY * n and enlarged:
        core = g.T @ g * (count / (count - 1))
    else:
        core = np.eye(g.shape[1]) * (ratio if enlarged else 1.0)
    covariance = root @ core @ root.T * np.outer(size, size)
    lost = (np.abs(V[:, ~seen]) > SMALL).any(axis=1) if not seen.all() else np.zeros(n, bool)
    covariance[lost, lost] = np.inf
    quantile = students(freedom) if enlarged else QUANTILE
    return Uncertainty(covariance, quantile * np.sqrt(np.diag(covariance)), max(ratio, 1.0))


def students(freedom: float) -> float:
    """Half the width of the 95 % interval of Student's distribution, in standard deviations.

    With t = sqrt(n) tan(a) for n degrees of freedom, the density of the angle a is that of cos(a)^(n - 1).
    """
    angle = np.linspace(0, np.pi / 2, 100_001)
    density = np.cos(angle) ** (freedom - 1)
    within = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return float(np.sqrt(freedom) * np.tan(np.interp(INSIDE, within / within[-1], angle)))


def _of_white_residuals(A: np.ndarray) -> tuple[float, float]:
    """The mean of the sum of squared gradients H^-1/2 g of white residuals, and how many independent numbers scatter as it.

    A: (segments, k, k) the parts H^-1/2 R_i^T R_i H^-1/2 of the information. Two gradients at a minimum have the covariance
    C_ij = A_i delta_ij - A_i A_j, the sum of their squares the mean sum tr C_ii and the variance 2 sum tr C_ij C_ij^T.
    """
    squares, total = A @ A, (A @ A).sum(axis=0)
    white = float(np.trace(A.sum(axis=0) - total))
    scatter = float((total**2).sum() + (A**2).sum() - 2 * (squares * A).sum())
    return white, white**2 / scatter if scatter > 0 else 0.0
