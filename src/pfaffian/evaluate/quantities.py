"""Single quantities at one state or a batch: poses, Jacobians, momentum, energy, mass matrix, bias force.

q and v are (n,) or (runs, n) arrays or {name: number or (runs,)}; None means the neutral configuration, and rest. parameters:
{name: value} or an array, defaults if None. t [s] matters only if a potential or kinetic energy depends on it. Constraints are
ignored: the state is not checked against them. Each quantity is compiled at its first call and reused afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.compiled import Quantity, evaluate
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths import so3
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.terms import recursions as inertia
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms


@dataclass(frozen=True, eq=False)
class BodyPose:
    """Pose of a body's frame in the world: x_world = rotation x_body + position.

    position: (..., 3) [m].   rotation: (..., 3, 3).
    """

    position: np.ndarray
    rotation: np.ndarray

    @property
    def quaternion(self) -> np.ndarray:
        """(..., 4) unit quaternion (x, y, z, w) with w >= 0."""
        return so3.quaternions(self.rotation)


class Energy(NamedTuple):
    """Result of `energy`.

    kinetic, potential: (...) [J]. The energy of weight is zero at the height of the world's origin, that of springs at rest,
    that of potentials where their functions define it.
    """

    kinetic: np.ndarray
    potential: np.ndarray


def forward_kinematics(m: Mechanism, q: Any = None, *, bodies: Sequence[str] | None = None, parameters: Any = None
) -> dict[str, BodyPose]:  # fmt: skip
    """Poses of bodies in the world at one configuration or many.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        bodies: names of the bodies, in the order of the result; all of them if None.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        {body: BodyPose}, with `position` (..., 3) [m], `rotation` (..., 3, 3) and `quaternion` (..., 4), (x, y, z, w); with an
        axis of runs if several were given.
    Raises ModelError: unknown names, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> hinge = pf.joint("hinge", "revolute", "world", "bob", placement=(0, 0, 3), axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [bob], [hinge])
        >>> pf.forward_kinematics(m, {"hinge": 0.5})["bob"].position
        array([0., 0., 3.])
    """
    as_mechanism(m)
    names = tuple(b.name for b in m.bodies) if bodies is None else tuple(_body(m, b) for b in as_names(bodies, "bodies"))
    if not names:
        return {}
    return poses(m, names, q, parameters, "auto")


def poses(m: Mechanism, names: tuple[str, ...], q: Any, parameters: Any, backend: Backend) -> dict[str, BodyPose]:
    """`forward_kinematics` of bodies that exist, on this backend."""
    G = _ask(m, "poses", names, q, parameters=parameters, backend=backend)
    return {n: BodyPose(G[..., 4 * i + 3], G[..., 4 * i : 4 * i + 3]) for i, n in enumerate(names)}


def jacobian(
    m: Mechanism, body: str, q: Any = None, *, frame: str = "LOCAL", point: Any = (0, 0, 0), parameters: Any = None
) -> np.ndarray:
    """Jacobian of a body: the twist of its frame at a point is [velocity; angular velocity] = J v.

    Args:
        m: the mechanism.
        body: name of the body.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        frame: LOCAL (the body's axes), WORLD (the spatial twist, at the world's origin) or LOCAL_WORLD_ALIGNED (the world's
            axes), as in Pinocchio.
        point: (3,) in the body's frame [m]; WORLD does not depend on it.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J (..., 6, nv) [m, rad per unit of v]; with an axis of runs if several were given.
    Raises ModelError: unknown names or frame, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.jacobian(m, "bob", {"hinge": 0.0}, point=(0, 0, -1)).ravel()  # turning about y moves the bob along -x
        array([-1., 0., 0., 0., 1., 0.])
    """
    as_mechanism(m)
    check_frame(frame)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return _ask(m, "jacobian", (_body(m, body), frame, *at.tolist()), q, parameters=parameters)


def mass_centre(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Mass centre of all moving bodies.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., 3) along the world's axes [m]; with an axis of runs if several were given.
    Raises ModelError: no moving body has a mass; unknown names, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> float(pf.mass_centre(m, {"hinge": 0.0})[2])
        -1.0
    """
    return _ask(m, "mass centre", (), q, parameters=parameters)[..., 0]


def momentum(m: Mechanism, q: Any = None, v: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Momentum of the bodies, [linear; angular about the world's origin], without armature and added kinetic energies.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., 6) along the world's axes [kg m/s, kg m^2/s]; with an axis of runs if several were given.
    Raises ModelError: unknown names, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.momentum(m, {"hinge": 0.0}, {"hinge": 3.0})  # 2 kg at 3 m/s, 1 m below the origin
        array([-6., 0., 0., 0., 6., 0.])
    """
    return _ask(m, "momentum", (), q, v, parameters=parameters)[..., 0]


class InOtherState(Protocol):
    """A System, that is a mechanism whose state is not [q; v]."""

    @property
    def mechanism(self) -> Mechanism: ...


def energy(m: Mechanism | InOtherState, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> Energy:
    """Kinetic energy, armature included, and potential energy of weight, springs and potentials.

    Args:
        m: the mechanism, or a System such as `pf.reduce` returns; q and v are those of the mechanism in either case.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        t: time [s], for energies that depend on it.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple `kinetic`, `potential`, each (...) [J]; the energy of weight is zero at the height of the world's origin,
        that of springs at rest.
    Raises ModelError: unknown names, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> E = pf.energy(m, {"hinge": 0.0}, {"hinge": 3.0})
        >>> print(E.kinetic, E.potential.round(2))  # 2 kg * (3 m/s)^2 / 2, and 1 m below the origin
        9.0 -19.62
    """
    m = m if isinstance(m, Mechanism) else as_mechanism(getattr(m, "mechanism", m))
    both = _ask(m, "energy", (), q, v, t=t, parameters=parameters)
    return Energy(both[..., 0, 0], both[..., 1, 0])


def mass_matrix(m: Mechanism, q: Any = None, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """Mass matrix M of a mechanism, armature included: kinetic energy is v^T M v / 2.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        t: time [s], for kinetic energies that depend on it.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        M (..., nv, nv) [kg, kg m, kg m^2]; with an axis of runs if several were given.
    Raises ModelError: unknown names, wrong shapes.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.mass_matrix(m)  # 2 kg at 1 m
        array([[2.]])
    """
    return _ask(m, "mass matrix", (), q, t=t, parameters=parameters)


def bias_force(m: Mechanism, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """Bias force c: Coriolis, centrifugal and gravity force, as in M v_dot + c = f + B u + reaction.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        t: time [s], for kinetic energies that depend on it.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        c (..., nv) [N, N m]; with an axis of runs if several were given.
    Raises ModelError: unknown names, wrong shapes.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.bias_force(m, {"hinge": np.pi / 2}).round(2)  # 2 kg held out horizontally by 1 m
        array([19.62])
    """
    return _ask(m, "bias force", (), q, v, t=t, parameters=parameters)[..., 0]


def _poses(T: Terms, *bodies: str) -> ca.SX:
    """(3, 4 n) the matrices [R p] of n bodies side by side."""
    return ca.horzcat(*[ca.horzcat(T.kinematics.rotation(b), T.kinematics.position(b)) for b in bodies])


_QUANTITIES: dict[str, tuple[Callable[..., ca.SX], Callable[[Mechanism, tuple[Any, ...]], tuple[int, int]]]] = {
    "poses": (_poses, lambda m, bodies: (3, 4 * len(bodies))),
    "jacobian": (lambda T, body, frame, *at: T.kinematics.jacobian(body, frame, at), lambda m, _: (6, m.nv)),
    "mass centre": (lambda T: inertia.mass_centre(T.kinematics), lambda m, _: (3, 1)),
    "momentum": (lambda T: inertia.momentum(T.kinematics), lambda m, _: (6, 1)),
    "energy": (lambda T: ca.vertcat(T.T, T.V), lambda m, _: (2, 1)),
    "mass matrix": (lambda T: T.M, lambda m, _: (m.nv, m.nv)),
    "bias force": (lambda T: T.c, lambda m, _: (m.nv, 1)),
}
"""Quantity -> function of Terms and further arguments that returns its expression, and function that returns its shape."""


def _ask(
    m: Mechanism,
    what: str,
    arguments: tuple[Any, ...],
    q: Any,
    v: Any = None,
    *,
    t: float = 0.0,
    parameters: Any,
    backend: Backend = "auto",
) -> np.ndarray:
    """Evaluate an entry of _QUANTITIES: (..., rows, columns)."""
    f, shape = _QUANTITIES[what]
    of = Quantity(what, f, arguments, shape(as_mechanism(m), arguments))
    return evaluate(m, of, q, v, t=t, parameters=parameters, backend=backend)


def _body(m: Mechanism, name: str) -> str:
    """The name of a body or of the world. Raises ModelError: there is no such body."""
    return name if name == WORLD else m.body(name).name
