"""A machine that several joints carry together, at one value of its total momentum, which the state does not contain.

The momentum of all bodies along their common motions is a constant, mu about the origin of the world. The momenta of the base
in the state of `pf.reduce` follow from mu and q. They are relative to a frame that moves with the mass centre, and their turns
are about a point of the base, so that

    pi_turn = mu_turn - w . (point x P) - Y_turn^T M e V,        P = mu along the slides,   V = P / mass,

where Y_turn are the turns about that point with the angular velocity w, and e V is a translation of the machine with V.
[chhabra14 section 3.3, for one first joint; terms/common_motion.py makes one of several]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.effects import NONE, changes_of, changing
from pfaffian.evaluate.reduction_plan import in_words, other_values
from pfaffian.evaluate.symmetry import symmetries
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.reduced_state import ReducedState
from pfaffian.states.variables import normalised
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.momentum import weight
from pfaffian.terms.reduced_terms import translation_of_all
from pfaffian.terms.terms import Terms, symbols


def checked_momentum(m: Mechanism, common: CommonMotion, momentum: Any) -> tuple[float, ...]:
    """The given momentum (k,) along the common motions. Raises ModelError: it has the wrong size, or is not conserved."""
    mu = floats(momentum, f"momentum of {m.name!r}")
    if mu.shape != (len(common.twists),):
        needed = ", ".join(common.names)
        raise ModelError(f"momentum: {len(common.twists)} numbers are needed for {m.name!r} ({needed}), got {mu.size}")
    found = symmetries(m)
    broken_motions = [x for x, _ in found.broken if x.joint == found.joint]
    pushing = [name for name, along in found.driven.items() if any(x.joint == found.joint for x in along)]
    if broken_motions or pushing:
        broken = "; ".join(f"{x.label}: {', '.join(why)}" for x, why in found.broken if x in broken_motions)
        why = f"input {pushing[0]!r} changes it" if pushing else broken
        raise ModelError(
            f"reduce: the momentum of {m.name!r} is not conserved ({why}); leave momentum out: the state "
            "then contains it as it changes"
        )
    return tuple(mu.tolist())


def at_momentum(reduced: ReducedState, common: CommonMotion, momentum: tuple[float, ...]) -> AtOneMomentum:
    """The reduced system of several joints at one momentum, with the state [q; other momenta].   momentum: (k,), checked."""
    m = reduced.mechanism
    group = common.entries(symbols(m).kinematics.tree)
    rest = [i for i in range(m.nv) if i not in group]
    q, pi = reduced.parts
    left = StatePart(pi.name, tuple(pi.names[i] for i in rest), tuple(pi.units[i] for i in rest))
    value = f"{', '.join(common.names)} about the origin is {', '.join(f'{x:.6g}' for x in momentum)}"
    return AtOneMomentum(
        mechanism=m,
        parts=tuple(part for part in (q, left) if part.names),
        named=reduced.named,
        about=(*reduced.about, f"the momentum of {value} in every run: start with it or run reduce(m)"),
        ends=reduced.ends,
        holds=reduced.holds,
        reduced=reduced,
        common=common,
        momentum=momentum,
        group=group,
        rest=rest,
    )


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AtOneMomentum(AbstractSystem):
    """[q; pi] of the `reduced` system without the momenta of its base.

    common: the motions of the base, with the given `momentum`.   group, rest: entries of v of the base, and the others.
    """

    reduced: ReducedState
    common: CommonMotion
    momentum: tuple[float, ...]
    group: list[int]
    rest: list[int]
    name: str = "[q; reduced momentum] at one momentum"

    def enter(self, T: Terms) -> ca.SX:
        """[q; the other momenta]."""
        return ca.SX(self.reduced.enter(T))[self.remaining, 0]

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        return self.reduced.show(self.full(x), t)

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[q_dot; rates of the other momenta]."""
        return ca.SX(self.reduced.rate(T, motion, self.full(x)))[self.remaining, 0]

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x with quaternions of unit length."""
        nq = self.mechanism.nq
        return ca.vertcat(normalised(self.mechanism, x[:nq, 0]), x[nq:, 0])

    def inside(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """That of the reduced system, which depends on q alone."""
        return self.reduced.inside(x, t)

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """Those of the reduced system."""
        return self.reduced.signals(T, motion, self.full(x))

    def inertia(self, T: Terms) -> ca.SX:
        """That of the reduced system."""
        return self.reduced.inertia(T)

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if the momentum is not conserved at parameters (runs, np), although it is near the defaults."""
        self.reduced.check(p)
        m = self.mechanism
        T = symbols(m)
        pushes = changes_of(T, self.common.fields(T.kinematics))
        for words, at, _ in other_values(m, p):
            by = [in_words(cause) for cause, x in zip(pushes.causes, changing(pushes, at).T, strict=True) if (x > NONE).any()]
            if by:
                raise ModelError(
                    f"{words}the momentum of {reprs.listed(self.common.joints)} of {m.name!r} is not conserved: "
                    f"{', '.join(by)} changes it, although it does not near the defaults; run reduce(m) without momentum"
                )

    def identity(self) -> str:
        """The reduced system, and the momentum."""
        return f"{self.reduced.key} at {self.momentum}"

    def changed(self) -> bool:
        """That of the reduced system."""
        return self.reduced.changed()

    @property
    def remaining(self) -> list[int]:
        """The entries of the reduced state that this state contains."""
        nq = self.mechanism.nq
        return [*range(nq), *(nq + i for i in self.rest)]

    def full(self, x: ca.SX) -> ca.SX:
        """The reduced state of x."""
        m = self.mechanism
        out = ca.SX(m.nq + m.nv, 1)
        out[self.remaining, 0] = x
        still = Terms(m, x[: m.nq, 0], ca.SX(m.nv, 1), ca.SX(m.nu, 1), ca.SX(0))
        out[[m.nq + i for i in self.group], 0] = _base_momenta(still, self.common, self.momentum)
        return out


def _base_momenta(T: Terms, common: CommonMotion, momentum: Sequence[float]) -> ca.SX:
    """(k, 1) the momenta of the base in the state of the reduced system at T.q, for a momentum about the origin."""
    k, n, mu = T.kinematics, common.slides, np.array(momentum)
    frame = translation_of_all(k, common)
    if frame is None:
        return ca.SX(ca.DM(mu))
    P, w = ca.DM(common.basis[:3, :n] @ mu[:n]), ca.DM(common.basis[3:, n:])
    turns = common.fields(k, along_base=True)[:, n:]
    about = w.T @ ca.cross(common.point(k, along_base=True), P)
    return ca.vertcat(ca.DM(mu[:n]), ca.DM(mu[n:]) - about - turns.T @ weight(k, P / frame.mass))
