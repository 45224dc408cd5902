"""Components of a momentum that gravity leaves alone, across it or about it, each a number of its own in the state.

Where gravity is no axis of the first joint, all entries of its momentum change, and what is conserved is a combination c = C mu
of them: the momentum along a level direction, say. Left to the entries, it is as exact as they are, and they grow as long as
the machine falls. Here c is a part of the state, whose rate is nothing, and after each step mu is moved by the least that gives
it that c. [chhabra14 thm. 3.3.3 for a subgroup]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import other_values
from pfaffian.evaluate.symmetry import NOTHING, Symmetry
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.system import StatePart, System
from pfaffian.terms.terms import Terms, symbols

SMALL = 1e-9
"""Part of a unit direction that is none."""


class _Beside(NamedTuple):
    """system: whose momenta begin at `begin` in its state.   C: rows of unit length over these."""

    system: System
    begin: int
    C: tuple[tuple[float, ...], ...]

    @property
    def rows(self) -> ca.DM:
        return ca.DM(self.C)

    @property
    def at(self) -> slice:
        return slice(self.begin, self.begin + len(self.C[0]))

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The state of the system, and the constants."""
        return x[: self.system.nx, 0], x[self.system.nx :, 0]


def constants_beside(system: System, found: Symmetry, first: Joint, turns_about_centre: bool) -> System:
    """A system whose state begins with q and the momentum of the first joint, with the components of that which nothing changes
    beside it, where there are some along none of its axes; the system itself where not.

    turns_about_centre: whether the momentum is that about the mass centre: only slides are combined then.
    """
    C = _conserved(found, first, turns_about_centre)
    if not C.size:
        return system
    m = system.mechanism
    r = _Beside(system, m.nq, tuple(tuple(row) for row in C.tolist()))
    slides = len(first.parts[0].subgroup.along)
    names = tuple(_in_words(row, m.v_names[m.v_slices[first.name]]) for row in C)
    units = tuple("N s" if np.abs(row[:slides]).max(initial=0.0) > SMALL else "N m s" for row in C)
    return replace(
        system,
        parts=(*system.parts, StatePart("constant", names, units)),
        enter=partial(_enter, r),
        show=lambda x, t: system.show(r.split(x)[0], t),
        rate=lambda T, motion, x: ca.vertcat(system.rate(T, motion, r.split(x)[0]), ca.SX(len(C), 1)),
        project=partial(_project, r),
        signals=None if system.signals is None else partial(_signals, r),
        about=(*system.about, f"conserved beside them, each as a number of its own: {'; '.join(names)}"),
        check=partial(_check, r, names),
    )


def _conserved(found: Symmetry, first: Joint, turns_about_centre: bool) -> np.ndarray:
    """C (n, k) rows of unit length across each other; none where each row is an axis, or an input pushes along some."""
    group = first.parts[0].subgroup
    rows = found.basis[list(group.axes)].T
    driven = any(x.joint == first.name for motions in found.driven.values() for x in motions)
    if driven or not rows.size:
        return np.zeros((0, group.nv))
    if turns_about_centre:
        turns = rows[:, len(group.along) :]
        rows = rows - turns @ np.linalg.pinv(turns, rcond=SMALL) @ rows
    span = np.linalg.pinv(rows, rcond=SMALL) @ rows
    alone = np.abs(np.diag(span) - 1) < SMALL
    C = list[np.ndarray]()
    for axis in np.flatnonzero(~alone):
        left = span[axis] - sum((c * c[axis] for c in C), np.zeros(group.nv))
        if np.linalg.norm(left) > SMALL:
            C.append(np.where(np.abs(left) > SMALL, left, 0.0) / np.linalg.norm(left))
    return np.array(C).reshape(-1, group.nv)


def _in_words(row: np.ndarray, names: Sequence[str]) -> str:
    terms = [f"{x:+.3g} {name}" for x, name in zip(row, names, strict=True) if x]
    return " ".join(terms).removeprefix("+")


def _enter(r: _Beside, T: Terms) -> ca.SX:
    x = ca.SX(r.system.enter(T))
    return ca.vertcat(x, r.rows @ x[r.at, 0])


def _project(r: _Beside, x: ca.SX, t: ca.SX) -> ca.SX:
    x, c = r.split(x)
    x = ca.SX(x if r.system.project is None else r.system.project(x, t))
    x[r.at, 0] += r.rows.T @ (c - r.rows @ x[r.at, 0])
    return ca.vertcat(x, c)


def _signals(r: _Beside, T: Terms, motion: Motion, x: ca.SX) -> Any:
    assert r.system.signals is not None
    return r.system.signals(T, motion, r.split(x)[0])


def _check(r: _Beside, names: Sequence[str], p: np.ndarray) -> None:
    """Raise ModelError where parameters (runs, np) change the components."""
    if r.system.check is not None:
        r.system.check(p)
    m = r.system.mechanism
    for words, at, _ in other_values(m, p):
        for state in at:
            change = np.array(_rates(m, r)(*state)).ravel()
            by = np.abs(np.array(r.C) @ change)
            if (by > NOTHING * np.linalg.norm(change)).any():
                raise ModelError(
                    f"{words}the momentum {names[int(np.argmax(by))]} of {m.name!r} is not conserved, which near the defaults "
                    "it is; reduce a mechanism that has these as its defaults, or run it as it is"
                )


def _rates(m: Mechanism, r: _Beside) -> ca.Function:
    """(q, v, t, p) -> rate of the momenta that C combines, without inputs."""
    T = symbols(m)
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    rate = r.system.rate(idle, Motion(ca.SX(m.nv, 1), ca.SX(m.nv, 1), ca.SX(1)), r.system.enter(idle))
    return ca.Function("rates", [T.q, T.v, T.t, m.p_symbols], [ca.densify(rate[r.at, 0])])
