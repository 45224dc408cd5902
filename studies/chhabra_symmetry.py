"""Motions that preserve the kinetic energy: rover with rotor, rover on a disc, commuting and identical joints. [chhabra14 4.4]

The thesis names these machines and gives no numbers; masses and lengths are ours, of the size of a rover on a table. A motion a
acts on one joint and leaves the body-fixed velocities of all bodies but one unchanged. Whether it changes the kinetic energy is
checked at random states and motions, using only poses and the energy itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

OFF = pf.Parameter("off", 0.0, "m")
"""Distance of the outer body's mass centre from the axis of its joint [m], a parameter."""

AWAY = 0.15
"""Distance of the mass centre from the axis where the symmetry is to be broken [m]."""

STATES = 64
TURN = np.linspace(-np.pi, np.pi, 121)


def rover_with_rotor() -> pf.Mechanism:
    """A planar rover with a rotor about the plane's normal: a symmetry only if the rotor's mass centre is on its axis, which
    the thesis does not require."""
    bodies = [pf.body("rover", 8.0, com=(0.05, 0, 0), inertia=0.3), pf.body("rotor", 2.0, com=(OFF, 0, 0.1), inertia=0.04)]
    joints = [
        pf.joint("plane", "planar", "world", "rover"),
        pf.joint("spin", "revolute", "rover", "rotor", placement=(0.2, 0.1, 0)),
    ]
    return pf.mechanism("rover with rotor", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def rover_on_disc() -> pf.Mechanism:
    """A planar rover on a turning disc: of the rover's three motions only the rotation about the disc's axis is a symmetry."""
    bodies = [pf.body("disc", 20.0, inertia=2.5), pf.body("rover", 4.0, com=(OFF, 0, 0), inertia=0.1)]
    joints = [pf.joint("turn", "revolute", "world", "disc"), pf.joint("plane", "planar", "disc", "rover")]
    return pf.mechanism("rover on a disc", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def commuting_joints() -> pf.Mechanism:
    """A slide, and a hinge along it: the two motions are independent wherever the mass centre is."""
    bodies = [pf.body("carriage", 3.0, inertia=0.2), pf.body("arm", 1.0, com=(OFF, 0, 0.2), inertia=0.05)]
    joints = [pf.joint("slide", "prismatic", "world", "carriage"),
              pf.joint("hinge", "revolute", "carriage", "arm", placement=(0.3, 0, 0))]  # fmt: skip
    return pf.mechanism("slide and hinge", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def identical_joints() -> pf.Mechanism:
    """Two planar joints in one plane: moving the outer body in the world is a symmetry, moving it on the inner one is not."""
    bodies = [pf.body("inner", 3.0, inertia=0.2), pf.body("outer", 1.0, com=(OFF, 0, 0), inertia=0.05)]
    joints = [pf.joint("first", "planar", "world", "inner"), pf.joint("second", "planar", "inner", "outer")]
    return pf.mechanism("two planar joints", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def wheel_on_a_free_body() -> pf.Mechanism:
    """An axisymmetric wheel on a free body: a rotation of the wheel about its axis is a symmetry. (4.4.32)"""
    bodies = [
        pf.body("base", 10.0, com=(0.1, -0.05, 0.02), inertia=(0.5, 0.6, 0.7)),
        pf.body("wheel", 1.5, com=(OFF, 0, 0.05), inertia=(0.02, 0.02, 0.035)),
    ]
    joints = [
        pf.joint("free", "free", "world", "base"),
        pf.joint("axle", "revolute", "base", "wheel", placement=pf.pose((0.2, 0.1, 0), rpy=(0.5, 0.3, 0))),
    ]
    return pf.mechanism("wheel on a free body", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def mechanism() -> pf.Mechanism:
    """The first of these machines, for callers that expect one per study."""
    return rover_with_rotor()


# -- motions ----------------------------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """A motion of one joint of a machine, and whether it should preserve the energy.

    maker: function that makes the machine.   joint: the joint that is moved.
    along: which of the rotation ("turn") and translation ("x") the motion has.
    seen: "body", relative to the parent body, q -> a q with all body-fixed velocities unchanged; or "world", where the outer
    body alone moves.
    off: distance of the mass centre from the axis [m].
    symmetric: whether the energy is unchanged by the thesis with its errata.
    """

    maker: Callable[[], pf.Mechanism]
    joint: str
    along: str
    seen: str
    off: float
    symmetric: bool


MOTIONS = {
    "rotor turned on the rover": Motion(rover_with_rotor, "spin", "turn", "body", 0.0, True),
    "rotor off its axis": Motion(rover_with_rotor, "spin", "turn", "body", AWAY, False),
    "rover turned on the disc": Motion(rover_on_disc, "plane", "turn", "body", AWAY, True),
    "rover moved along the disc": Motion(rover_on_disc, "plane", "x", "body", 0.0, False),
    "arm turned on the slide": Motion(commuting_joints, "hinge", "turn", "body", AWAY, True),
    "slide moved": Motion(commuting_joints, "slide", "x", "body", AWAY, True),
    "outer moved in the world": Motion(identical_joints, "second", "turn and x", "world", AWAY, True),
    "outer moved on the inner": Motion(identical_joints, "second", "turn and x", "body", AWAY, False),
    "wheel turned on a free body": Motion(wheel_on_a_free_body, "axle", "turn", "body", 0.0, True),
    "wheel off its axis": Motion(wheel_on_a_free_body, "axle", "turn", "body", AWAY, False),
}


def rotated(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(..., 2) vectors rotated by angles (...)."""
    c, s = np.cos(a), np.sin(a)
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)


def product(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Product of poses (..., 3) = (x, y, angle) of SE(2)."""
    return np.concatenate([g[..., :2] + rotated(g[..., 2], h[..., :2]), (g[..., 2] + h[..., 2])[..., None]], axis=-1)


def inverse(g: np.ndarray) -> np.ndarray:
    return np.concatenate([rotated(-g[..., 2], -g[..., :2]), -g[..., 2:]], axis=-1)


def carried(g: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Ad(g^-1) v of body twists (..., 3) = (v_x, v_y, w): the twist of a body fixed to the moving one at pose g."""
    x, y, w = g[..., 0], g[..., 1], v[..., 2]
    return np.concatenate([rotated(-g[..., 2], v[..., :2] + np.stack([-w * y, w * x], axis=-1)), v[..., 2:]], axis=-1)


def moved(m: pf.Mechanism, motion: Motion, q: np.ndarray, v: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v (runs, n) after a motion of this size (runs,) [rad; translations are 0.3 m for each rad]."""
    q, v, joint_slice = q.copy(), v.copy(), m.q_slices[motion.joint]
    turn, x = size * ("turn" in motion.along), 0.3 * size * ("x" in motion.along)
    if joint_slice.stop - joint_slice.start == 1:
        q[:, joint_slice] += (turn + x)[:, None]
        return q, v
    a = np.stack([x, 0 * x, turn], axis=-1)
    if motion.seen == "body":
        q[:, joint_slice] = product(a, q[:, joint_slice])
        return q, v
    before, at = slice(0, 3), q[:, joint_slice].copy()
    q[:, joint_slice] = product(inverse(q[:, before]), product(a, product(q[:, before], at)))
    v[:, joint_slice] += carried(at, v[:, before]) - carried(q[:, joint_slice], v[:, before])
    return q, v


def run() -> xr.Dataset:
    random = np.random.default_rng(3)
    curves, worst = [], []
    for motion in MOTIONS.values():
        m = motion.maker()
        q = np.array([pf.random_configuration(m, random) for _ in range(STATES)])
        v = random.normal(size=(STATES, m.nv))

        def energy(q: np.ndarray, v: np.ndarray, m: pf.Mechanism = m, off: float = motion.off) -> np.ndarray:
            return pf.energy(m, q, v, parameters={"off": off}).kinetic

        T = energy(q, v)
        sizes = random.uniform(-np.pi, np.pi, STATES)
        worst.append(np.abs(energy(*moved(m, motion, q, v, sizes)) / T - 1).max())
        along = moved(m, motion, np.tile(q[0], (len(TURN), 1)), np.tile(v[0], (len(TURN), 1)), TURN)
        curves.append(energy(*along) / T[0] - 1)
    return xr.Dataset(
        {"change": (("motion", "size"), np.array(curves)), "worst": ("motion", np.array(worst))},
        coords={"motion": list(MOTIONS), "size": TURN},
    )


def figures(result: xr.Dataset) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.4)
    unchanged, broken = figure.subplots(1, 2)
    rounding = "unchanged: all curves coincide up to rounding"
    for ax, which, title, unit in ((unchanged, True, rounding, 1e-15), (broken, False, "changed", 1)):
        for name, motion in MOTIONS.items():
            if motion.symmetric == which:
                ax.plot(result["size"], result["change"].sel(motion=name) / unit, label=name)
        ax.set(xlabel="motion [rad, or 0.3 m]", ylabel=f"change of the kinetic energy, relative [{unit:g}]", title=title)
    unchanged.set(ylim=(-10, 10))
    return {"energy": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    for name, motion in MOTIONS.items():
        value = float(result["worst"].sel(motion=name))
        if motion.symmetric:
            yield Claim(f"{name}: relative change of the energy", value, 0, 1e-14, "[chhabra14 4.4]")
        else:
            yield Claim(f"{name}: relative change of the energy", value, 0.1, 0, "[chhabra14 4.4]", "at least")
