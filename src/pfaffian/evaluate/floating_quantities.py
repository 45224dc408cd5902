"""Numerical quantities of a machine with a floating base: generalised Jacobian and reaction null space.

They respect closures between bodies: joint velocities are first projected onto the closures, by the shortest change in the
metric of M.

q and v are (n,) or (runs, n) arrays or {name: number}; None means neutral for q and rest for v. parameters: {name: value} or an
array.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.dynamics.floating_base import FloatingBase, loops
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
    """Generalised Jacobian of a body of a floating machine: at zero momentum its twist is J_g s. [Umetani and Yoshida 1989]

    J_g = J_s - J_b A, where s are the velocities of all joints but the base's and A is the mechanical connection. If there is
    momentum, `momentum_twist` is added. With closures between bodies J_g = J_s P - J_b A P, where P s is the permitted velocity
    nearest to s in the metric of M.

    Args:
        m: the mechanism. The base is the body on its first joint, or on the joints that carry the machine together.
        body: name of the body.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes).
        point: (3,) in the body's frame [m].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J_g (..., 6, n) [m or rad per unit of s]; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; a constraint is not a closure between its bodies; unknown names or
    frame, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> J = pf.reduction.generalised_jacobian(m, "wheel")
        >>> J[5].round(3)  # a wheel that turns by 1 against the hub turns by 1 - 1 / 5 in space
        array([0.8])
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
    """Twist of a body of a floating machine due to the momentum of the machine, in addition to J_g s.

    It is J_b K11^-1 mu_b, where mu_b is the first joint's momentum in body axes and K11 its block of the mass matrix.

    Args:
        m, body, q, frame, point, parameters: as in `generalised_jacobian`, which raises the same errors.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
    Returns:
        (..., 6) [m/s, rad/s]; with an axis of runs if several were given.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> V = pf.reduction.momentum_twist(m, "hub", [0.0, 0.0], {"turn": 2.0, "spin": 1.0})
        >>> round(float(V[5]), 3)  # a momentum of 11 N m s on 5 kg m^2
        2.2
    """
    what = Quantity("momentum twist", _momentum_twist, _of_body(m, body, frame, point))
    return of_carrier(loops(m, "momentum_twist"), what, q, v, parameters)[..., 0]


def reaction_null_space(m: Mechanism, q: Any = None, *, keep: str = "pose", parameters: Any = None) -> np.ndarray:
    """Projector onto the joint velocities that leave a floating base at rest, A s = 0. [Nenchev, Umetani, Yoshida 1992]

    Its trace is the number of independent motions of this kind; `pf.constraints.transport_basis(P)` gives a basis along a run.
    In a closed chain, the projector contains only motions that the closures permit.

    Args:
        m: the mechanism. The base is the body on its first joint, or on the joints that carry the machine together.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        keep: "pose" (default), or "attitude", which leaves only the rotation of the base at rest: the linear part of A is
            eliminated.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        P (..., n, n), orthogonal, on the velocities s of all joints but the base's; with an axis of runs if several were
        given.
    Raises ModelError: no joints carry the whole machine; a constraint is not a closure between its bodies; an unknown word for
    keep; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("hub", 3.0, inertia=3.0), *(pf.body(n, 1.0, inertia=1.0) for n in "ab")]
        >>> spins = [pf.joint(f"spin {n}", "revolute", "hub", n) for n in "ab"]
        >>> m = pf.mechanism("satellite", bodies, [pf.joint("turn", "revolute", "world", "hub"), *spins])
        >>> pf.reduction.reaction_null_space(m).round(3)  # wheels that turn against each other do not turn the hub
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
    """
    # The kernel returns only r rows. P is formed here: a kernel of its n^2 entries would take long to compile for 100 joints.
    what = Quantity("reacting", _reacting, (keep,), constrained=True)
    Q = of_carrier(loops(as_mechanism(m), "reaction_null_space"), what, q, None, parameters)
    return np.eye(Q.shape[-1]) - Q.swapaxes(-1, -2) @ Q


def _jacobian(T: Terms, joint: str, *at: Any) -> ca.SX:
    """J_g (6, n).   at: body, frame and the three coordinates of the point."""
    return FloatingBase(T, joint).jacobian(at[0], at[1], at[2:])


def _momentum_twist(T: Terms, joint: str, *at: Any) -> ca.SX:
    """J_b K11^-1 mu_b (6, 1).   at: body, frame and the three coordinates of the point."""
    return FloatingBase(T, joint).momentum_twist(at[0], at[1], at[2:])


def _reacting(T: Terms, joint: str, keep: str) -> ca.SX:
    """Q (r, n): rows orthogonal to the motions that leave the base at rest."""
    return FloatingBase(T, joint).reacting(keep)


def _of_body(m: Mechanism, body: str, frame: str, point: Any) -> tuple[Any, ...]:
    """Checked arguments of a quantity of a body: name, frame, point. Raises ModelError: unknown names, a wrong shape."""
    as_mechanism(m)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return (body if body == WORLD else m.body(body).name, check_frame(frame), *at.tolist())
