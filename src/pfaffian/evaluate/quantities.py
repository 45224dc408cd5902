"""One call for one quantity: where bodies are, how they move, what they weigh, at one state or a batch.

q and v are (n,) or (runs, n) arrays or {name: number or (runs,)}; None is neutral, and at rest. parameters: {name: value} or an
array, defaults if None. t [s] matters where a potential or kinetic energy depends on it. Nothing here asks
whether the state meets the constraints. Compiled at the first call, and found again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.evaluate.compiled import ask
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import floats
from pfaffian.terms import inertia
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms


@dataclass(frozen=True, eq=False)
class BodyPose:
    """Frame of a body in the world: x_world = rotation x_body + position.

    position: (..., 3) [m].   rotation: (..., 3, 3).
    """

    position: np.ndarray
    rotation: np.ndarray

    @property
    def quaternion(self) -> np.ndarray:
        """(..., 4) unit quaternion (x, y, z, w) with w >= 0."""
        from scipy.spatial.transform import Rotation  # a third of a second to import, and only this needs it

        turned = Rotation.from_matrix(self.rotation.reshape(-1, 3, 3)).as_quat(canonical=True)
        return turned.reshape(*self.rotation.shape[:-2], 4)


class Energy(NamedTuple):
    """kinetic, potential: (...) [J]; weight counts from the world's origin, springs from rest, potentials as they say."""

    kinetic: np.ndarray
    potential: np.ndarray


def forward_kinematics(m: Mechanism, q: Any = None, *, bodies: Sequence[str] | None = None, parameters: Any = None
) -> dict[str, BodyPose]:  # fmt: skip
    """Name -> BodyPose of the named bodies (all if None) at q.

    Args:
        m: the mechanism.   q, parameters: as said above.   bodies: names, in the order of the answer.
    Raises ModelError: unknown names, wrong shapes.
    """
    as_mechanism(m)
    names = tuple(b.name for b in m.bodies) if bodies is None else tuple(_body(m, b) for b in as_names(bodies, "bodies"))
    if not names:
        return {}
    G = _ask(m, "poses", names, q, parameters=parameters)
    return {n: BodyPose(G[..., 4 * i + 3], G[..., 4 * i : 4 * i + 3]) for i, n in enumerate(names)}


def jacobian(
    m: Mechanism, body: str, q: Any = None, *, frame: str = "LOCAL", point: Any = (0, 0, 0), parameters: Any = None
) -> np.ndarray:
    """J (..., 6, nv) with [velocity; angular velocity] = J v of the frame at `point` of a body. [m, rad per unit of v]

    Args:
        m: the mechanism.   body: name.   q, parameters: as said above.   point: (3,) in the body [m].
        frame: LOCAL (the body's axes), WORLD (the twist seen from the world's origin) or LOCAL_WORLD_ALIGNED, as Pinocchio's.
    Raises ModelError: unknown names or frame, wrong shapes.
    """
    as_mechanism(m)
    check_frame(frame)
    at = floats(point, "point")
    if at.shape != (3,):
        raise ModelError(f"point has shape {at.shape}: (3,) is needed")
    return _ask(m, "jacobian", (_body(m, body), frame, *at.tolist()), q, parameters=parameters)


def mass_centre(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """(..., 3) mass centre of all that moves, world axes [m].   m: the mechanism.   q, parameters: as said above."""
    return _ask(m, "mass centre", (), q, parameters=parameters)[..., 0]


def momentum(m: Mechanism, q: Any = None, v: Any = None, *, parameters: Any = None) -> np.ndarray:
    """(..., 6) momentum [linear; angular about the world's origin], world axes [kg m/s, kg m^2/s], of the bodies alone.

    m: the mechanism.   q, v, parameters: as said above.
    """
    return _ask(m, "momentum", (), q, v, parameters=parameters)[..., 0]


def energy(m: Mechanism, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> Energy:
    """Kinetic energy (armature included) and potential energy of weight, springs and potentials [J].

    m: the mechanism.   q, v, parameters: as said above.   t: [s].
    """
    both = _ask(m, "energy", (), q, v, t=t, parameters=parameters)
    return Energy(both[..., 0, 0], both[..., 1, 0])


def mass_matrix(m: Mechanism, q: Any = None, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """M (..., nv, nv), armature included [kg, kg m, kg m^2].   m: the mechanism.   q, parameters: as said above.   t: [s]."""
    return _ask(m, "mass matrix", (), q, t=t, parameters=parameters)


def bias_force(m: Mechanism, q: Any = None, v: Any = None, *, t: float = 0.0, parameters: Any = None) -> np.ndarray:
    """c (..., nv): Coriolis, centrifugal and gravity force, M v_dot + c = f + B u + reaction [N, N m].

    m: the mechanism.   q, v, parameters: as said above.   t: [s].
    """
    return _ask(m, "bias force", (), q, v, t=t, parameters=parameters)[..., 0]


def _poses(T: Terms, *bodies: str) -> ca.SX:
    return ca.horzcat(*[ca.horzcat(T.kinematics.rotation(b), T.kinematics.position(b)) for b in bodies])


_QUANTITIES: dict[str, tuple[Callable[..., ca.SX], Callable[[Mechanism, tuple], tuple[int, int]]]] = {
    "poses": (_poses, lambda m, bodies: (3, 4 * len(bodies))),
    "jacobian": (lambda T, body, frame, *at: T.kinematics.jacobian(body, frame, at), lambda m, _: (6, m.nv)),
    "mass centre": (lambda T: inertia.mass_centre(T.kinematics), lambda m, _: (3, 1)),
    "momentum": (lambda T: inertia.momentum(T.kinematics), lambda m, _: (6, 1)),
    "energy": (lambda T: ca.vertcat(T.T, T.V), lambda m, _: (2, 1)),
    "mass matrix": (lambda T: T.M, lambda m, _: (m.nv, m.nv)),
    "bias force": (lambda T: T.c, lambda m, _: (m.nv, 1)),
}
"""Quantity -> what it is of Terms and further arguments, and its shape."""


def _ask(m: Mechanism, what: str, arguments: tuple, q: Any, v: Any = None, *, t: float = 0.0, parameters: Any) -> np.ndarray:
    """(..., rows, columns)."""
    f, shape = _QUANTITIES[what]
    return ask(m, what, f, arguments, q, v, t=t, parameters=parameters, shape=shape(as_mechanism(m), arguments))


def _body(m: Mechanism, name: str) -> str:
    return name if name == WORLD else m.body(name).name
