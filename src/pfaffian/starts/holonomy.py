"""Holonomy of a floating machine: how its base moves while the joints follow a path, with closures, at zero momentum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.floating_base import loops, one_joint
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import configurations, parameter_values, unknown
from pfaffian.evaluate.connections import mechanical_connection
from pfaffian.evaluate.single_values import as_whole
from pfaffian.maths import se3
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import scalar, vector
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.starts.newton import Fixed, Problem, fixed_velocities, newton
from pfaffian.starts.start_search import open_row
from pfaffian.terms.connection import pseudo_inverse
from pfaffian.terms.reduced_terms import first_joint, group_of, indices, others
from pfaffian.terms.terms import symbols

GAUSS = 0.5 + np.sqrt(15) / 10 * np.array([-1, 0, 1])
"""Nodes of the quadrature of order six on a step of length 1."""


def holonomy(
    m: Mechanism, path: Callable[[ca.SX], Any], *, steps: int = 200, start: Any = None, parameters: Any = None
) -> np.ndarray:
    """How the base of a floating machine moves while its joints follow a path at zero momentum. [chhabra14 (3.3.37)]

    g_dot = g hat(-A s), integrated by the Magnus series of order six. The speed along the path does not matter. No external
    force acts on the machine.

    Args:
        m: the mechanism; its first joint is that of the base.
        path: smooth function of x in [0, 1] that returns the coordinates of all other joints, in their order, or {coordinate:
            value} of some of them. Closures move the coordinates that are not named; coordinates that neither the path nor the
            closures determine move as little as the closures permit, in the metric of M.
        steps: number of steps into which [0, 1] is divided.
        start: {coordinate: number} or (nq,) array, an initial guess for the coordinates that the path does not name; neutral
            if left out. It selects the branch of a closed chain.
        parameters: {name: value} or a (np,) array, one set; defaults where left out.
    Returns:
        g (steps + 1, 4, 4), poses of the base relative to its initial pose.
    Raises ModelError: the first joint is not a group of motions that carries all bodies; the path fails or has the wrong size;
    a constraint is not a closure between bodies of the machine; the closures do not close at a point of the path.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> g = pf.reduction.holonomy(m, lambda x: [1.0, 2 * np.pi * x], steps=4)  # one turn of the wheel
        >>> round(float(np.degrees(np.arctan2(g[-1, 1, 0], g[-1, 0, 0]))), 3)  # turns the hub back by 360 / 5 degrees
        -72.0
    """
    m = one_joint(loops(as_mechanism(m), "holonomy"), "holonomy")
    group = group_of(first_joint(m))
    assert group is not None
    n = as_whole(steps, "steps")
    if not callable(path):
        raise ModelError(
            f"holonomy: path: a function x -> coordinates is needed, such as lambda x: [x, x**2], got {brief(path)}"
        )
    p = parameter_values(m, parameters)
    q, v = _along(m, _prescribed(m, path), (np.arange(n)[:, None] + GAUSS).ravel() / n, configurations(m, start), p)
    A = mechanical_connection(m, q, parameters=p)
    tau = -np.einsum("rij,rj->ri", A, v[:, others(m, indices(m, (first_joint(m).name,)))]).reshape(n, 3, -1) / n
    S = np.array(ca.DM(group.S))
    g = [np.eye(4)]
    for step in tau @ S.T:
        g.append(g[-1] @ np.array(ca.DM(se3.homogeneous(*se3.exp(ca.DM(_magnus(step)))))))
    return np.array(g)


def _magnus(a: np.ndarray) -> np.ndarray:
    """The twist (6,) whose exponential is the motion of a step to order six, from twists (3, 6) at its nodes.
    [Blanes, Casas, Ros 2000]"""

    def bracket(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Lie bracket with the sign for g_dot = g hat(a), where products are in reverse order."""
        return -np.array(ca.DM(se3.ad(ca.DM(x)) @ ca.DM(y))).ravel()

    b1, b2, b3 = a[1], np.sqrt(15) / 3 * (a[2] - a[0]), 10 / 3 * (a[2] - 2 * a[1] + a[0])
    c1 = bracket(b1, b2)
    c2 = -bracket(b1, 2 * b3 + c1) / 60
    return b1 + b3 / 12 + bracket(-20 * b1 - b3 + c1, b2 + c2) / 240


class _Prescribed(NamedTuple):
    """The coordinates that a path prescribes.

    q: their entries of q.   v: the entries of v that move them.   f: x -> their values and the derivatives of these by x.
    """

    q: list[int]
    v: list[int]
    f: ca.Function


def _prescribed(m: Mechanism, path: Callable[[ca.SX], Any]) -> _Prescribed:
    """The traced path and the entries that it prescribes.

    Raises ModelError: the path fails, has the wrong size, names something that is not a coordinate of a joint, or names only
    some of the coordinates that a joint moves together.
    """
    at, what = ca.SX.sym("x"), "the path"
    base = m.q_slices[first_joint(m).name]
    names = tuple(name for i, name in enumerate(m.q_names) if not base.start <= i < base.stop)
    given = call_for_value(path, what, at)
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise unknown(name, names, f"holonomy: {what}")
        value, names = ca.vertcat(ca.SX(0, 1), *[scalar(x, f"{what}: {n}") for n, x in given.items()]), tuple(given)
    else:
        value = vector(given, len(names), what)
    value = in_symbols(ca.densify(value), what, (at,))
    entries = [m.q_names.index(name) for name in names]
    moving = fixed_velocities(m, np.isin(np.arange(m.nq), entries))
    missing = [m.q_names[i] for i in np.flatnonzero(_rows(m, moving)) if i not in entries]
    if missing:
        raise ModelError(f"holonomy: {what} names a part of a joint: give {', '.join(missing)} as well")
    return _Prescribed(
        entries, np.flatnonzero(moving).tolist(), ca.Function("path", [at], [value, ca.densify(ca.jacobian(value, at))])
    )


def _rows(m: Mechanism, moving: np.ndarray) -> np.ndarray:
    """(nq,) of bool: the entries of q that the velocities marked in `moving` (nv,) change."""
    pattern = np.array(ca.DM(symbols(m).kinematics.kinematic_matrix.sparsity(), 1))
    return np.asarray(pattern[:, moving].any(axis=1))


def _along(m: Mechanism, prescribed: _Prescribed, x: np.ndarray, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (points, nq) with the base at its initial pose, and v (points, nv) per unit of x, at points x (points,) of a path.

    The closures are solved from the solution at the previous point, so that a closed chain stays on its branch.
    """
    T, base = symbols(m), indices(m, (first_joint(m).name,))
    back = ca.Function("back", [T.q, m.p_symbols], [ca.densify(pseudo_inverse(T.kinematics)[prescribed.v, prescribed.q])])
    fixed = np.isin(np.arange(m.nv), [*base, *prescribed.v])[None]
    problem = Problem(m, p, 0.0, Fixed(fixed, fixed, np.ones(m.nv)), "auto")
    q, points = np.array(q), []
    for at in x:
        here, rate = (np.array(y).ravel() for y in prescribed.f(at))
        if not (np.isfinite(here).all() and np.isfinite(rate).all()):
            raise ModelError(
                f"holonomy: the path or its slope is not a number at x = {at:.4g}; give a path smooth on all of [0, 1]"
            )
        q[0, prescribed.q], v = here, np.zeros((1, m.nv))
        v[0, prescribed.v] = np.array(back(q[0], p[0])) @ rate
        if m.ideal:
            state = newton(problem, q, v)
            if not state.satisfied.all():
                raise ModelError(
                    f"holonomy: at x = {at:.4g} of the path the closures of {m.name!r} do not close: {open_row(m, state)[0]}; "
                    "name fewer coordinates, {name: value}, so that the closures move the others, or begin elsewhere: start="
                )
            q, v = np.array(state.q), state.v
        points.append((q[0].copy(), v[0]))
    return np.array([a for a, _ in points]), np.array([b for _, b in points])
