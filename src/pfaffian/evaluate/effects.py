"""What changes the momenta of motions, at random states, and the combinations of motions on which nothing has an effect.

A motion x (n,) of candidates has the effect F x, with F (samples, n) for each cause. A plain null space judges all candidates
beside the largest effect. In it a light wheel's spin is nothing but rounding, and any amount of it may be added to a motion of
the hull that carries the wheel. Here each motion is judged beside its own size, one after another: it is without effect alone,
or together with candidates that have one, or it has an effect of its own. A part whose effect is below the bound is left out of
a combination.

An effect is clearly none, or clearly one, if it is far from `ZERO`. Between NONE and SOME the decision is told, and counts as
the cautious one: the momentum may change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths.margins import CLEAR, ZERO, unit_rows
from pfaffian.maths.values import values_at
from pfaffian.terms.force_scale import force_sizes
from pfaffian.terms.generic_states import GenericState, length_at, speed_units
from pfaffian.terms.momentum import changes
from pfaffian.terms.terms import Terms

NONE, SOME = ZERO / CLEAR, ZERO * CLEAR
"""Effects up to NONE of their size count as none, and from SOME as effects; between them a decision is not clear."""

SIMPLER = 3.0
"""Factor by which fewer parts may leave more of an effect that is not none, and are told in place of all."""

CONSTRAINTS = "constraints"
"""Name of the cause that constraints do not allow a motion."""


class Effect(NamedTuple):
    """Effect of one cause on motions.

    rows: (samples, n) the effects.   size: (samples, n) what they are judged beside.
    blurred: (n,) how many times the rounding of the rows lets `size` exceed the size of the motion alone.
    """

    rows: np.ndarray
    size: np.ndarray
    blurred: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """(n,) mean of `size`, 1 where it is zero."""
        size = self.size.sum(axis=0) / max(len(self.size), 1)
        return np.where(size > 0, size, 1.0)

    @property
    def largest(self) -> np.ndarray:
        """(n,) the largest effect on each motion, relative to its size."""
        return np.abs(self.rows).max(axis=0, initial=0.0) / self.sizes

    @property
    def worst(self) -> np.ndarray:
        """(n,) the largest effect on each motion, relative to its size at the same state: for states of different speeds."""
        size = np.where(self.size > 0, self.size, 1.0)
        return (np.abs(self.rows) / size).max(axis=0, initial=0.0)

    def along(self, X: np.ndarray) -> Effect:
        """The effect on combinations X (d, n) of the motions, each of the size of its parts."""
        size = self.size @ np.abs(X).T
        alone = (self.size / self.blurred) @ np.abs(X).T
        total = alone.sum(axis=0)
        blurred = np.divide(size.sum(axis=0), total, out=np.ones_like(total), where=total > 0)
        return Effect(self.rows @ X.T, size, blurred)


class Changes(NamedTuple):
    """Rates of momenta Y^T p of fields Y, by cause.

    causes: "inertia", "weight" and the names of forces.
    unit: (nv,) the rate that counts as 1 for each velocity.
    f: (q, v, t, p) -> rates and their `force_sizes`, both (n, causes); the sizes of inertia without rounding and the squared
    rates (n, 2); Y (nv, n), the constraint rows A (k, nv) and the input matrix B (nv, nu).
    """

    causes: tuple[str, ...]
    unit: np.ndarray
    f: ca.Function


class ChangesAt(NamedTuple):
    """The results of `Changes.f` at a state; samples of several states are stacked in the same order."""

    rates: np.ndarray
    sizes: np.ndarray
    alone: np.ndarray
    Y: np.ndarray
    A: np.ndarray
    B: np.ndarray


class Sampled(NamedTuple):
    """What `Changes` give at states.

    effects: by cause, with CONSTRAINTS last if there are any.   work: that of each input, in the order of `u_names`.
    """

    effects: dict[str, Effect]
    work: list[Effect]


def changes_of(T: Terms, Y: ca.SX, p: np.ndarray | None = None) -> Changes:
    """The rates of the momenta Y^T p, as a function of the state.

    Y: (nv, n) functions of q.   p: (np,) parameters at which the machine's length is taken, the defaults if None.
    """
    m = T.mechanism
    p = m.p_defaults if p is None else p
    by, sizes = changes(T, Y), force_sizes(T, Y, length_at(m, p))
    of_causes, alone = ca.horzcat(*[sizes.by_cause[name] for name in by]), ca.horzcat(sizes.inertia, sizes.squared_rates)
    out = [ca.horzcat(*by.values()), of_causes, alone, Y, T.A, T.B]
    f = ca.Function("changes", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in out])
    return Changes(tuple(by), speed_units(m, p), f)


def sampled(of: Changes, at: Sequence[GenericState], any_speed: bool = False) -> Sampled:
    """The effects at these states, whose velocities are projected onto the constraints first.

    any_speed: whether sizes are those of the bodies' own speeds, and not of rates near 1.
    """
    before = samples = [ChangesAt(*x) for x in values_at(of.f, at)]
    if before[0].A.size:
        samples = [ChangesAt(*x) for x in values_at(of.f, _allowed(of, at, [x.A for x in before]))]
    n = len(samples[0].rates)
    rates, sizes, alone, Y, A, B = ChangesAt(*(np.array(x) for x in zip(*samples, strict=True)))
    effects = {cause: Effect(rates[:, :, i], sizes[:, :, i], np.ones(n)) for i, cause in enumerate(of.causes)}
    # Rounding blurs what inertia changes: the motion of a wheel is computed together with that of the hull that carries it.
    inertia, total = alone[:, :, 0], alone[:, :, 0].sum(axis=0)
    size = effects["inertia"].size
    blurred = np.divide(size.sum(axis=0), total, out=np.ones(n), where=total > 0)
    if any_speed:
        # Constraints may stop a machine at a place, which must not make its sizes vanish: the speeds are those before.
        size = size + inertia * (np.array([x.alone[:, 1] for x in before]) - 1)
    effects["inertia"] = Effect(rates[:, :, of.causes.index("inertia")], size, blurred)
    Y = Y / of.unit[:, None]
    amount = np.linalg.norm(Y, axis=1)

    def along(rows: np.ndarray) -> Effect:
        """The effect of unit rows (samples, k, nv) along the fields."""
        x = np.array([unit_rows(R * of.unit) for R in rows]) @ Y
        return Effect(x.reshape(-1, n), np.repeat(amount, x.shape[1], axis=0), np.ones(n))

    if A.shape[1]:
        effects[CONSTRAINTS] = along(A)
    return Sampled(effects, [along(B[:, None, :, u]) for u in range(B.shape[2])])


def _allowed(of: Changes, at: Sequence[GenericState], rows: Sequence[np.ndarray]) -> list[GenericState]:
    """The states with their velocities projected onto the constraint rows (k, nv) at each."""
    found = []
    for x, A in zip(at, rows, strict=True):
        # Rows may depend on each other: the tolerance keeps LAPACK's rounding from counting as a further row.
        w, A = x.v / of.unit, A * of.unit
        found.append(x._replace(v=of.unit * (w - np.linalg.pinv(A, rcond=ZERO) @ (A @ w))))
    return found


def changing(of: Changes, at: Sequence[GenericState]) -> np.ndarray:
    """(n, causes) how much each cause changes each momentum at these states, relative to its size."""
    found = []
    for x in (sampled(of, at).effects[cause] for cause in of.causes):
        found.append(np.maximum(x.largest, np.where(x.blurred > CLEAR, ZERO, 0.0)))
    return np.array(found).T


def beside(relative: float) -> str:
    """How large an unclear effect is, in words."""
    return f"unclear: {relative:.1e} of its size"


class Unclear(NamedTuple):
    """A combination (n,) of motions whose effect by a cause, `relative` to its size, is neither none nor clearly one.

    For a motion that is too small beside what carries it, `relative` is the rounding of its effect.
    """

    combination: np.ndarray
    cause: str
    relative: float


def without_effect(effects: Mapping[str, Effect], motions: np.ndarray) -> tuple[np.ndarray, list[Unclear]]:
    """Combinations of motions (d, n), as many as there are, on which no cause has an effect; and the unclear ones.

    The rows of motions are in row-reduced form, and so are the results: a motion that is without effect alone stays alone.
    """
    doubtful = list[Unclear]()
    for cause, x in effects.items():
        motions, more = _vanishing(cause, x, motions)
        doubtful += more
    return motions, [x for x in doubtful if not breaks(effects, x.combination)]


def breaks(effects: Mapping[str, Effect], combination: np.ndarray) -> bool:
    """Whether a cause has a clear effect on a combination (n,) of motions."""
    return any(x.along(combination[None]).largest[0] >= SOME for x in effects.values())


def _vanishing(cause: str, effect: Effect, motions: np.ndarray) -> tuple[np.ndarray, list[Unclear]]:
    """The combinations of motions (d, n) on which one cause has no effect, and the unclear ones."""
    at = effect.along(motions)
    sizes, largest, columns = at.sizes, at.largest, at.rows / at.sizes
    basis, found, doubtful = _Basis(len(columns)), dict[int, np.ndarray](), list[Unclear]()
    for i in reversed(range(len(motions))):
        left, parts = basis.split(columns[:, i]) if largest[i] > NONE else (columns[:, i], {})
        x, relative = motions[i].copy(), float(np.abs(left).max(initial=0.0))
        for j, w in parts.items():
            x -= w * sizes[i] / sizes[j] * motions[j]
        if relative > NONE:
            basis.add(i, columns[:, i])
        elif at.blurred[i] <= CLEAR:
            found[i] = x
        if NONE < relative < SOME or (relative <= NONE and i not in found):
            doubtful.append(Unclear(x, cause, max(relative, min(NONE * float(at.blurred[i]), ZERO))))
    return np.array([found[i] for i in sorted(found)]).reshape(-1, motions.shape[1]), doubtful


class _Basis:
    """Independent columns (r,), by index, and orthonormal columns Q that span them."""

    def __init__(self, rows: int) -> None:
        self.columns: dict[int, np.ndarray] = {}
        self.Q = np.zeros((rows, 0))

    def add(self, i: int, column: np.ndarray) -> None:
        """Add a column that is independent of the others."""
        left = self._across(column)
        self.columns[i] = column
        self.Q = np.column_stack([self.Q, left / np.linalg.norm(left)])

    def split(self, column: np.ndarray) -> tuple[np.ndarray, dict[int, float]]:
        """What is left of a column without its best combination of the basis, and the weights of this combination.

        Columns whose part in it is nothing are left out, so that rounding joins no motions of different bodies.
        """
        left = self._across(column)
        if np.abs(left).max() >= SOME or not self.columns:
            return left, {}
        rest = float(np.abs(left).max())
        weights = self._fit(column, list(self.columns))
        fewer = self._fit(column, [j for j, w in weights.items() if abs(w) * np.abs(self.columns[j]).max() > max(NONE, rest)])
        without = column - sum((w * self.columns[j] for j, w in fewer.items()), np.zeros(len(column)))
        return (without, fewer) if np.abs(without).max() <= (NONE if rest <= NONE else SIMPLER * rest) else (left, weights)

    def _fit(self, column: np.ndarray, members: list[int]) -> dict[int, float]:
        """The weights of the best combination of some columns of the basis."""
        if not members:
            return {}
        C = np.column_stack([self.columns[j] for j in members])
        size = np.abs(C).max(axis=0)
        weights = np.linalg.lstsq(C / size, column, rcond=None)[0] / size
        return dict(zip(members, weights.tolist(), strict=True))

    def _across(self, column: np.ndarray) -> np.ndarray:
        """The part of a column perpendicular to the basis."""
        left = column - self.Q @ (self.Q.T @ column)
        return left - self.Q @ (self.Q.T @ left)
