"""A machine with a floating base, as numbers: generalised Jacobian, reaction null space, and how far the arms turn the base.

q and v are (n,) or (runs, n) arrays or {name: number}; None is neutral, and at rest. parameters: {name: value} or an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_whole
from pfaffian.evaluate.compiled import Quantity
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
"""Nodes of the quadrature of order six on a step of length 1."""


def generalised_jacobian(
    m: Mechanism, body: str, q: Any = None, *, frame: str = "LOCAL", point: Any = (0, 0, 0), parameters: Any = None
) -> np.ndarray:
    """Generalised Jacobian of a body of a machine that floats: without momentum its twist is J_g s. [Umetani and Yoshida 1989]

    J_g = J_s - J_b A, s being the velocities of all joints but the base's and A the mechanical connection. With momentum
    `momentum_twist` is added.

    Args:
        m: the mechanism; its first joint is that of the base.
        body: its name.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; what is left out is neutral.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes).
        point: (3,) in the body's frame [m].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J_g (..., 6, n) [m or rad per unit of s]; the axis of runs is there if several were given.
    Raises ModelError: no first joint that is a group; unknown names or frame, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> J = pf.reduction.generalised_jacobian(m, "wheel", {"boom": 1.0})
        >>> J[5].round(3)  # a wheel that turns by 1 against the hub turns by 1 - 1 / 5 in space
        array([0. , 0.8])
    """
    return of_first_joint(m, Quantity("generalised jacobian", _jacobian, _of_body(m, body, frame, point)), q, None, parameters)


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
    """What the momentum of all that moves adds to the twist J_g s of a body of a machine that floats.

    It is J_b K11^-1 mu_b, mu_b being the momentum of the first joint in the body and K11 its block of the mass matrix.

    Args:
        m: the mechanism; its first joint is that of the base.
        body: its name.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; what is left out is neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; what is left out is zero.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes).
        point: (3,) in the body's frame [m].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., 6) [m/s, rad/s]; the axis of runs is there if several were given.
    Raises ModelError: no first joint that is a group; unknown names or frame, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> V = pf.reduction.momentum_twist(m, "hub", {"boom": 1.0}, {"turn": 2.0, "spin": 1.0})
        >>> round(float(V[5]), 3)  # a momentum of 11 N m s on 5 kg m^2
        2.2
    """
    return of_first_joint(m, Quantity("momentum twist", _drift, _of_body(m, body, frame, point)), q, v, parameters)[..., 0]


def reaction_null_space(m: Mechanism, q: Any = None, *, keep: str = "pose", parameters: Any = None) -> np.ndarray:
    """Projector onto the joint velocities that leave a floating base at rest, A s = 0. [Nenchev, Umetani, Yoshida 1992]

    Its trace is the number of such motions; `pf.constraints.transport_basis(P)` gives a basis along a run.

    Args:
        m: the mechanism; its first joint is that of the base.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; what is left out is neutral.
        keep: pose, or attitude: then only the rows of A that turn the base count, the linear part being eliminated.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        P (..., n, n), orthogonal, on the velocities s of all joints but the base's; the axis of runs is there if several were
        given.
    Raises ModelError: no first joint that is a group; another word for keep; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> pf.reduction.reaction_null_space(m)  # the boom does not turn the hub, the wheel does
        array([[1., 0.], [0., 0.]])
    """
    # n^2 numbers from r n: computed here, because their kernel for a machine of 100 joints would compile for long.
    Q = of_first_joint(m, Quantity("reacting", _reacting, (keep,)), q, None, parameters)
    return np.eye(Q.shape[-1]) - Q.swapaxes(-1, -2) @ Q


def holonomy(m: Mechanism, path: Callable[[ca.SX], Any], *, steps: int = 200, parameters: Any = None) -> np.ndarray:
    """How the base of a floating machine moves while its joints follow a path without momentum. [chhabra14 (3.3.37)]

    g_dot = g hat(-A s) by Magnus' series of order six; the speed along the path does not matter. Nothing outside the machine
    pushes.

    Args:
        m: the mechanism; its first joint is that of the base.
        path: smooth function of x in [0, 1] that returns the coordinates of all other joints, in their order.
        steps: number of steps that [0, 1] is divided into.
        parameters: {name: value} or a (np,) array, one set; defaults where left out.
    Returns:
        g (steps + 1, 4, 4), poses of the base seen from its start.
    Raises ModelError: no first joint that is a group; a path of another size, or one that fails.

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
    """(6,) from twists (3, 6) at the nodes: its exponential is the motion, to order six. [Blanes, Casas, Ros 2000]"""

    def bracket(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Bracket for g_dot = g hat(a), where the order of products is reversed."""
        return -np.array(ca.DM(se3.ad(ca.DM(x)) @ ca.DM(y))).ravel()

    b1, b2, b3 = a[1], np.sqrt(15) / 3 * (a[2] - a[0]), 10 / 3 * (a[2] - 2 * a[1] + a[0])
    c1 = bracket(b1, b2)
    c2 = -bracket(b1, 2 * b3 + c1) / 60
    return b1 + b3 / 12 + bracket(-20 * b1 - b3 + c1, b2 + c2) / 240


def _along(m: Mechanism, base: str, path: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q (runs, nq) with the base at its start, and s (runs, n) per unit of x, at x (runs,)."""
    base_entries = m.q_slices[base]
    places = [i for i in range(m.nq) if not base_entries.start <= i < base_entries.stop]
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
    """Arguments of a kernel that belongs to a body. Raises ModelError: unknown names or frame, wrong shapes."""
    as_mechanism(m)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return (body if body == WORLD else m.body(body).name, check_frame(frame), *at.tolist())
