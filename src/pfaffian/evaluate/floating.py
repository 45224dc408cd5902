"""A machine with a floating base, as numbers: generalised Jacobian and reaction null space.

Closures between its bodies take part in them: joint velocities are first put onto the closures, by the shortest change in the
metric of M.

q and v are (n,) or (runs, n) arrays or {name: number}; None is neutral, and at rest. parameters: {name: value} or an array.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.dynamics.floating import FloatingBase, loops
from pfaffian.errors import ModelError
from pfaffian.evaluate.compiled import Quantity
from pfaffian.evaluate.connections import of_carrier
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms


def generalised_jacobian(
    m: Mechanism, body: str, q: Any = None, *, frame: str = "LOCAL", point: Any = (0, 0, 0), parameters: Any = None
) -> np.ndarray:
    """Generalised Jacobian of a body of a machine that floats: without momentum its twist is J_g s. [Umetani and Yoshida 1989]

    J_g = J_s - J_b A, s being the velocities of all joints but the base's and A the mechanical connection. With momentum
    `momentum_twist` is added. Closures between bodies take part: J_g = J_s P - J_b A P, P s being the s that they permit which
    is nearest in the metric of M.

    Args:
        m: the mechanism; its first joint, or those that carry all together, are that of the base.
        body: its name.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes).
        point: (3,) in the body's frame [m].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J_g (..., 6, n) [m or rad per unit of s]; with an axis of runs if several were given.
    Raises ModelError: nothing that carries all; a constraint that is no closure between bodies of the machine; unknown
    names or frame, wrong shapes.

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
    what = Quantity("generalised jacobian", _jacobian, _of_body(m, body, frame, point), constrained=True)
    return of_carrier(loops(m, "generalised_jacobian"), what, q, None, parameters)


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
        m: the mechanism; its first joint, or those that carry all together, are that of the base.
        body: its name.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes).
        point: (3,) in the body's frame [m].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., 6) [m/s, rad/s]; with an axis of runs if several were given.
    Raises ModelError: nothing that carries all; a constraint that is no closure between bodies of the machine; unknown
    names or frame, wrong shapes.

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
    what = Quantity("momentum twist", _drift, _of_body(m, body, frame, point))
    return of_carrier(loops(m, "momentum_twist"), what, q, v, parameters)[..., 0]


def reaction_null_space(m: Mechanism, q: Any = None, *, keep: str = "pose", parameters: Any = None) -> np.ndarray:
    """Projector onto the joint velocities that leave a floating base at rest, A s = 0. [Nenchev, Umetani, Yoshida 1992]

    Its trace is the number of such motions; `pf.constraints.transport_basis(P)` gives a basis along a run. In a closed chain
    only motions that the closures permit are among them.

    Args:
        m: the mechanism; its first joint, or those that carry all together, are that of the base.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        keep: pose, or attitude: then only the rows of A that turn the base count, the linear part being eliminated.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        P (..., n, n), orthogonal, on the velocities s of all joints but the base's; with an axis of runs if several were
        given.
    Raises ModelError: nothing that carries all; a constraint that is no closure between bodies of the machine; another
    word for keep; wrong names, shapes or numbers.

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
    what = Quantity("reacting", _reacting, (keep,), constrained=True)
    Q = of_carrier(loops(as_mechanism(m), "reaction_null_space"), what, q, None, parameters)
    return np.eye(Q.shape[-1]) - Q.swapaxes(-1, -2) @ Q


def _jacobian(T: Terms, joint: str, *at: Any) -> ca.SX:
    return FloatingBase(T, joint).jacobian(at[0], at[1], at[2:])


def _drift(T: Terms, joint: str, *at: Any) -> ca.SX:
    return FloatingBase(T, joint).momentum_twist(at[0], at[1], at[2:])


def _reacting(T: Terms, joint: str, keep: str) -> ca.SX:
    return FloatingBase(T, joint).reacting(keep)


def _of_body(m: Mechanism, body: str, frame: str, point: Any) -> tuple[Any, ...]:
    """Arguments of a kernel that belongs to a body. Raises ModelError: unknown names or frame, wrong shapes."""
    as_mechanism(m)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return (body if body == WORLD else m.body(body).name, check_frame(frame), *at.tolist())
