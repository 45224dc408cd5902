"""A machine whose base floats, as numbers: generalised Jacobian, reaction null space, and how far arms turn the base.

q and v are (n,) or (runs, n) arrays or {name: number}; None is neutral, and at rest. parameters: {name: value} or an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_whole
from pfaffian.evaluate.connections import mechanical_connection, of_first_joint
from pfaffian.maths import se3
from pfaffian.model.body import WORLD
from pfaffian.model.caller import answer, checked
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats, vector
from pfaffian.terms.floating import FloatingBase
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.reduction import first_joint, group_of, indices, others
from pfaffian.terms.terms import Terms, symbols

GAUSS = 0.5 + np.sqrt(15) / 10 * np.array([-1, 0, 1])
"""Nodes of the quadrature of order six in a step of length 1."""


def generalised_jacobian(
    m: Mechanism, body: str, q: Any = None, *, frame: str = "LOCAL", point: Any = (0, 0, 0), parameters: Any = None
) -> np.ndarray:
    """J_g (..., 6, n) = J_s - J_b A: twist J_g s of a body of a floating machine without momentum, by the joints' velocities s.

    With momentum `momentum_twist` is added. [Umetani and Yoshida 1989]

    m: the mechanism; its first joint is that of the base.   body: name.   q, parameters: as said above.
    frame, point: as in `jacobian`.   Unit: m or rad per unit of s.
    Raises ModelError: no first joint that is a group; unknown names or frame, wrong shapes.
    """
    return of_first_joint(m, "generalised jacobian", _jacobian, _of_body(m, body, frame, point), q, None, parameters)


def momentum_twist(
    m: Mechanism,
    body: str,
    q: Any = None,
    v: Any = None,
    *,
    frame: str = "LOCAL",
    point: Any = (0, 0, 0),
    parameters: Any = None,
) -> np.ndarray:
    """J_b K11^-1 mu_b (..., 6): what the momentum of all that moves adds to J_g s. [m/s, rad/s]

    m: the mechanism.   body: name.   q, v, parameters: as said above.   frame, point: as in `jacobian`.
    Raises ModelError: as `generalised_jacobian`.
    """
    return of_first_joint(m, "momentum twist", _drift, _of_body(m, body, frame, point), q, v, parameters)[..., 0]


def reaction_null_space(m: Mechanism, q: Any = None, *, keep: str = "pose", parameters: Any = None) -> np.ndarray:
    """P (..., n, n): orthogonal projector onto the velocities s of the joints with A s = 0, which leave the base at rest.

    Its trace is the number of such motions; `transport_basis(P)` gives a basis along a run. [Nenchev, Umetani, Yoshida 1992]

    m: the mechanism.   q, parameters: as said above.
    keep: pose, or attitude: then A has its turning rows only, the linear part being eliminated.
    Raises ModelError: as `generalised_jacobian`; another word for keep.
    """
    # n^2 numbers of r n: made here, a machine of 100 joints would wait for a kernel of them.
    Q = of_first_joint(m, "reacting", _reacting, (keep,), q, None, parameters)
    return np.eye(Q.shape[-1]) - Q.swapaxes(-1, -2) @ Q


def holonomy(m: Mechanism, path: Callable[[ca.SX], Any], *, steps: int = 200, parameters: Any = None) -> np.ndarray:
    """g (steps + 1, 4, 4): how the base has moved while the joints went along a path without momentum, seen from its start.

    g_dot = g hat(-A s), by Magnus' series of order six; how fast the path is run through does not matter. Nothing from outside
    pushes. [chhabra14 (3.3.37)]

    Args:
        m: the mechanism; its first joint is that of the base.
        path: x in [0, 1] -> coordinates of all other joints, in their order, of any smooth function.
        steps: into which [0, 1] is divided.   parameters: as said above, one set.
    Raises ModelError: no first joint that is a group; a path of another size, or that fails.
    """
    joint = first_joint(as_mechanism(m))
    group = group_of(joint)
    assert group is not None
    n = as_whole(steps, "steps")
    if not callable(path):
        raise ModelError(
            f"holonomy: path: a function x -> coordinates is needed, such as lambda x: [x, x**2], got {brief(path)}"
        )
    x = (np.arange(n)[:, None] + GAUSS).ravel() / n
    q, s = _along(m, joint.name, path, x)
    A = mechanical_connection(m, q, parameters=parameters)
    tau = -np.einsum("rij,rj->ri", A, s).reshape(n, 3, -1) / n
    S = np.array(ca.DM(group.S))
    g = [np.eye(4)]
    for step in tau @ S.T:
        g.append(g[-1] @ np.array(ca.DM(se3.homogeneous(*se3.exp(ca.DM(_magnus(step)))))))
    return np.array(g)


def _magnus(a: np.ndarray) -> np.ndarray:
    """(6,) of twists (3, 6) at the nodes: exp of it is the motion, to order six. [Blanes, Casas, Ros 2000]"""

    def bracket(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of g_dot = g hat(a): the order of products is turned round."""
        return -np.array(ca.DM(se3.ad(ca.DM(x)) @ ca.DM(y))).ravel()

    b1, b2, b3 = a[1], np.sqrt(15) / 3 * (a[2] - a[0]), 10 / 3 * (a[2] - 2 * a[1] + a[0])
    c1 = bracket(b1, b2)
    c2 = -bracket(b1, 2 * b3 + c1) / 60
    return b1 + b3 / 12 + bracket(-20 * b1 - b3 + c1, b2 + c2) / 240


def _along(m: Mechanism, base: str, path: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (runs, nq) with the base at its start, and s (runs, n) by the length of the path, at x (runs,)."""
    own = m.q_slices[base]
    places = [i for i in range(m.nq) if not own.start <= i < own.stop]
    rest = others(m, indices(m, (base,)))
    at, what = ca.SX.sym("x"), "the path"
    value = vector(answer(path, what, at), len(places), what)
    value = checked(ca.densify(value), what, (at,))
    T = symbols(m)
    f = ca.Function("path", [at], [value, ca.densify(ca.jacobian(value, at))])
    K_of = ca.Function("K", [T.q, m.p_symbols], [ca.densify(T.kinematics.kinematic_matrix[places, rest])])
    q, s = np.tile(m.neutral(), (len(x), 1)), np.empty((len(x), len(rest)))
    for i, at_x in enumerate(x):
        here, rate = (np.array(y).ravel() for y in f(at_x))
        if not (np.isfinite(here).all() and np.isfinite(rate).all()):
            raise ModelError(
                f"holonomy: the path or its slope is no number at x = {at_x:.4g}; give one smooth over all of [0, 1]"
            )
        q[i, places] = here
        s[i] = np.linalg.lstsq(np.array(K_of(q[i], m.p_defaults)), rate, rcond=None)[0]
    return q, s


def _jacobian(T: Terms, joint: str, *at: Any) -> ca.SX:
    return FloatingBase(T, joint).jacobian(at[0], at[1], at[2:])


def _drift(T: Terms, joint: str, *at: Any) -> ca.SX:
    return FloatingBase(T, joint).momentum_twist(at[0], at[1], at[2:])


def _reacting(T: Terms, joint: str, keep: str) -> ca.SX:
    return FloatingBase(T, joint).reacting(keep)


def _of_body(m: Mechanism, body: str, frame: str, point: Any) -> tuple:
    """What makes a kernel of a body. Raises ModelError: unknown names or frame, wrong shapes."""
    as_mechanism(m)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return (body if body == WORLD else m.body(body).name, check_frame(frame), *at.tolist())
