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
from dataclasses import replace
from typing import Any

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
from pfaffian.states.system import StatePart, System
from pfaffian.states.variables import normalise
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


def at_momentum(system: System, common: CommonMotion, momentum: Sequence[float]) -> System:
    """The reduced system of several joints at one momentum, with the state [q; other momenta].   momentum: (k,), checked."""
    m = system.mechanism
    group = common.entries(symbols(m).kinematics.tree)
    rest = [i for i in range(m.nv) if i not in group]
    remaining = [*range(m.nq), *(m.nq + i for i in rest)]
    q, pi = system.parts

    def full(x: ca.SX) -> ca.SX:
        out = ca.SX(m.nq + m.nv, 1)
        out[remaining, 0] = x
        out[[m.nq + i for i in group], 0] = _base_momenta(
            Terms(m, x[: m.nq, 0], ca.SX(m.nv, 1), ca.SX(m.nu, 1), ca.SX(0)), common, momentum
        )
        return out

    def rate(T: Terms, motion: Motion, x: ca.SX) -> Any:
        return ca.SX(system.rate(T, motion, full(x)))[remaining, 0]

    assert system.signals is not None
    signals = system.signals
    return replace(
        system,
        name="[q; reduced momentum] at one momentum",
        parts=tuple(x for x in (q, StatePart(pi.name, _of(pi.names, rest), _of(pi.units, rest))) if x.names),
        enter=lambda T: ca.SX(system.enter(T))[remaining, 0],
        show=lambda x, t: system.show(full(x), t),
        rate=rate,
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
        signals=lambda T, motion, x: signals(T, motion, full(x)),
        about=(*system.about, f"the momentum of {', '.join(common.names)} about the origin is "
               f"{', '.join(f'{x:.6g}' for x in momentum)} in every run: start with it or run reduce(m)"),
        check=lambda p: _check_values(system, common, p),
        uncorrected=(),
    )  # fmt: skip


def _of(names: Sequence[str], entries: Sequence[int]) -> tuple[str, ...]:
    """Some of the names."""
    return tuple(names[i] for i in entries)


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


def _check_values(system: System, common: CommonMotion, p: np.ndarray) -> None:
    """Raise ModelError if the momentum is not conserved at parameters (runs, np), although it is near the defaults."""
    m = system.mechanism
    if system.check:
        system.check(p)
    T = symbols(m)
    pushes = changes_of(T, common.fields(T.kinematics))
    for words, at, _ in other_values(m, p):
        by = [in_words(cause) for cause, x in zip(pushes.causes, changing(pushes, at).T, strict=True) if (x > NONE).any()]
        if by:
            raise ModelError(
                f"{words}the momentum of {reprs.listed(common.joints)} of {m.name!r} is not conserved: {', '.join(by)} "
                "changes it, although it does not near the defaults; run reduce(m) without momentum"
            )
