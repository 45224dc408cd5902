"""What counts as zero, beside the sizes that occur, and how clear that is: entries that vanish, and the rank of a matrix.

Nothing is judged beside a fixed number, so units decide nothing. Every decision has a margin, the factor by which the quantity
nearest to the bound is away from it. Where this factor is small, parts of very different size decide, and not the structure of
a machine; `tell` in `terms/generic_states.py` says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.maths.span import complement

ZERO = 1e-9
"""A quantity counts as zero up to this fraction of its size."""

CLEAR = 30.0
"""A decision is clear if the quantity nearest to ZERO is away from it by at least this factor."""

EQUAL = 1e-6
"""Sizes that differ by less than this fraction are equal where the largest is chosen."""

ROUNDING = 1e-13
"""An entry of a matrix below this fraction of its size is rounding."""

SWEEPS = 8
"""Number of times that the rows and the columns of a matrix are scaled to unit length, before its rank is decided."""


class Decision(NamedTuple):
    """A decision at random states.

    answer: what was decided.   nearest: of all relative sizes that decided it, the one nearest to the bound; 0 if all are zero.
    bound: the size up to which they count as zero.
    """

    answer: Any
    nearest: float
    bound: float = ZERO

    @property
    def margin(self) -> float:
        """The factor by which the nearest quantity is away from the bound."""
        return max(self.nearest / self.bound, self.bound / self.nearest) if self.nearest > 0 else np.inf


def parted(answer: Any, relative: np.ndarray, bound: float) -> Decision:
    """A decision of which relative sizes count as zero, those up to a bound: clear if the others are far from the bound and a
    wide gap parts the two.

    It is for sizes that depend on how well a state satisfies constraints: near a singular one, some that are zero elsewhere are
    about the square root of rounding.
    """
    below, above = float(relative[relative <= bound].max(initial=0.0)), relative[relative > bound]
    gap = Decision(answer, below, float(np.sqrt(below * above.min(initial=1.0))))
    return min(gap, Decision(answer, closest(above, bound), bound), key=lambda x: x.margin)


def exceeding(relative: np.ndarray, bound: float = ZERO) -> Decision:
    """Which relative sizes are above a bound: answer, booleans of the same shape."""
    return Decision(relative > bound, closest(relative, bound), bound)


def vanishing(x: np.ndarray, size: Any, bound: float = ZERO) -> Decision:
    """Which entries of x (states, ...) are zero at all states: answer (...) of bool.

    size: what each entry is judged beside, an array or number that fits x.
    """
    size = np.broadcast_to(size, x.shape)
    relative = np.divide(np.abs(x), size, out=np.where(x == 0, 0.0, np.inf), where=size > 0).max(axis=0)
    return Decision(relative <= bound, closest(relative, bound), bound)


def span(x: np.ndarray, bound: float = ZERO) -> Decision:
    """The dimension of the space that columns (n, k) of comparable entries span: answer, an int."""
    relative = singular_values(x)
    return Decision(int((relative > bound).sum()), closest(relative, bound), bound)


def free(rows: np.ndarray, bound: float = ZERO) -> Decision:
    """The motions that rows (k, n) leave free: answer (n, d), orthonormal columns, the same on every machine.

    Rows are scaled to unit length first. Combinations of them up to a bound count as zero.
    """
    rows = unit_rows(rows)
    return Decision(complement(rows, bound), closest(singular_values(rows), bound), bound)


def singular_values(x: np.ndarray) -> np.ndarray:
    """The singular values of a matrix relative to the largest one; zeros if all vanish."""
    sizes = np.linalg.svd(x, compute_uv=False) if x.size else np.zeros(0)
    return sizes / sizes[0] if sizes.any() else sizes


def largest(x: np.ndarray) -> int:
    """The index of the largest of some numbers x (n,) >= 0; of equal ones the first, so that rounding does not choose."""
    return int(np.argmax(x >= (1 - EQUAL) * x.max()))


def rank(x: np.ndarray, size: np.ndarray | None = None) -> Decision:
    """The rank that matrices x (states, rows, columns) have almost everywhere: answer, an int.

    Rows and columns are scaled to unit length first, so that their units, and sizes of parts that they belong to, do not
    matter.

    size: what the rounding of each entry is judged beside, an array that fits x; the largest entry of its row or column if not
        given.
    """
    if size is not None:
        x = np.where(np.abs(x) > ROUNDING * size, x, 0.0)
    relative = [singular_values(equilibrated(one)) for one in x]
    ranks = [int((s > ZERO).sum()) for s in relative]
    largest = max(ranks)
    return Decision(largest, closest(np.concatenate([s for s, k in zip(relative, ranks, strict=True) if k == largest])))


def null_space(rows: np.ndarray) -> Decision:
    """The null space of many rows (r, n) whose lengths are about 1 or count as zero: answer (d, n), orthonormal rows.

    They depend on rounding; `reduced` in `maths/span.py` makes them unique.
    """
    _, sizes, V = np.linalg.svd(np.linalg.qr(rows, mode="r"))
    relative = sizes / np.sqrt(len(rows))
    return Decision(V[int((relative > ZERO).sum()) :], closest(relative))


def equilibrated(x: np.ndarray) -> np.ndarray:
    """A matrix with rows and columns of about unit length, without entries that are rounding beside others."""
    if not x.size:
        return x
    largest = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.abs(x).max(axis=0, keepdims=True))
    x = np.where(np.abs(x) > ROUNDING * largest, x, 0.0)
    for _ in range(SWEEPS):
        x = unit_rows(unit_rows(x).T).T
    return x


def unit_rows(x: np.ndarray) -> np.ndarray:
    """A matrix with each row scaled to unit length; rows of zeros stay as they are."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def closest(relative: np.ndarray, bound: float = ZERO) -> float:
    """The relative size closest to a bound; 0 if all are zero."""
    found = relative[(relative > 0) & np.isfinite(relative)]
    return float(found[np.argmin(np.abs(np.log(found / bound)))]) if found.size else 0.0
