"""Motions that change no kinetic energy: rover and rotor, rover on a disc, joints that commute, joints alike. [chhabra14 4.4]

The thesis names these machines and gives no numbers; masses and lengths are ours, of the size of a rover on a table. A motion a
acts on one joint and leaves the body-fixed velocities of all bodies but one as they are; whether the kinetic energy notices is
looked at over random states and motions, by nothing but poses and the energy itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

OFF = pf.Parameter("off", 0.0, "m")
"""How far the outer body's mass centre is off the axis of its joint."""

AWAY = 0.15
"""The same where a symmetry is to be broken [m]."""

STATES = 64
TURN = np.linspace(-np.pi, np.pi, 121)


def rover_with_rotor() -> pf.Mechanism:
    """A planar rover, and a joint normal to its plane. A symmetry only if the rotor's mass centre is on its axis, which the
    thesis does not say."""
    bodies = [pf.body("rover", 8.0, com=(0.05, 0, 0), inertia=0.3), pf.body("rotor", 2.0, com=(OFF, 0, 0.1), inertia=0.04)]
    joints = [
        pf.joint("plane", "planar", "world", "rover"),
        pf.joint("spin", "revolute", "rover", "rotor", placement=(0.2, 0.1, 0)),
    ]
    return pf.mechanism("rover with rotor", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def rover_on_disc() -> pf.Mechanism:
    """A planar rover on a disc that turns: only turns about the disc's axis change nothing, of the rover's three motions."""
    bodies = [pf.body("disc", 20.0, inertia=2.5), pf.body("rover", 4.0, com=(OFF, 0, 0), inertia=0.1)]
    joints = [pf.joint("turn", "revolute", "world", "disc"), pf.joint("plane", "planar", "disc", "rover")]
    return pf.mechanism("rover on a disc", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def commuting_joints() -> pf.Mechanism:
    """A slide, and a hinge along it: both move as if the other were not there, wherever the mass centre is."""
    bodies = [pf.body("carriage", 3.0, inertia=0.2), pf.body("arm", 1.0, com=(OFF, 0, 0.2), inertia=0.05)]
    joints = [pf.joint("slide", "prismatic", "world", "carriage"),
              pf.joint("hinge", "revolute", "carriage", "arm", placement=(0.3, 0, 0))]  # fmt: skip
    return pf.mechanism("slide and hinge", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def identical_joints() -> pf.Mechanism:
    """Two planar joints in one plane: the outer body may be moved in the world, but not on the inner one."""
    bodies = [pf.body("inner", 3.0, inertia=0.2), pf.body("outer", 1.0, com=(OFF, 0, 0), inertia=0.05)]
    joints = [pf.joint("first", "planar", "world", "inner"), pf.joint("second", "planar", "inner", "outer")]
    return pf.mechanism("two planar joints", bodies, joints, gravity=(0, 0, 0), parameters=[OFF])


def wheel_on_a_free_body() -> pf.Mechanism:
    """An extremity alike about its axis, on a body that moves any way: turns of it from the inside change nothing. (4.4.32)"""
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
    """Some name one."""
    return rover_with_rotor()


# -- motions ----------------------------------------------------------------------------------------------------------


class Motion(NamedTuple):
    """maker: of the machine.   joint: that is moved.   along: of the turn and the translations of a planar motion, which.
    seen: from the body before, q -> a q with all body-fixed velocities kept, or from the world, where that body alone moves.
    off: where the mass centre is [m].   kept: whether the thesis, with its errata, says that nothing changes.
    """

    maker: Callable[[], pf.Mechanism]
    joint: str
    along: str
    seen: str
    off: float
    kept: bool


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
    """(..., 2) vectors turned by angles (...)."""
    c, s = np.cos(a), np.sin(a)
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)


def product(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Of poses (..., 3) = (x, y, angle) of SE(2)."""
    return np.concatenate([g[..., :2] + rotated(g[..., 2], h[..., :2]), (g[..., 2] + h[..., 2])[..., None]], axis=-1)


def inverse(g: np.ndarray) -> np.ndarray:
    return np.concatenate([rotated(-g[..., 2], -g[..., :2]), -g[..., 2:]], axis=-1)


def carried(g: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Ad of the inverse of g on body twists (..., 3) = (v_x, v_y, w): of a body carried along at pose g."""
    x, y, w = g[..., 0], g[..., 1], v[..., 2]
    return np.concatenate([rotated(-g[..., 2], v[..., :2] + np.stack([-w * y, w * x], axis=-1)), v[..., 2:]], axis=-1)


def moved(m: pf.Mechanism, motion: Motion, q: np.ndarray, v: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v (runs, n) after a motion of that size (runs,) [rad, or m by 0.3 m for each rad]."""
    q, v, own = q.copy(), v.copy(), m.q_slices[motion.joint]
    turn, x = size * ("turn" in motion.along), 0.3 * size * ("x" in motion.along)
    if own.stop - own.start == 1:
        q[:, own] += (turn + x)[:, None]
        return q, v
    a = np.stack([x, 0 * x, turn], axis=-1)
    if motion.seen == "body":
        q[:, own] = product(a, q[:, own])
        return q, v
    before, at = slice(0, 3), q[:, own].copy()
    q[:, own] = product(inverse(q[:, before]), product(a, product(q[:, before], at)))
    v[:, own] += carried(at, v[:, before]) - carried(q[:, own], v[:, before])
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
    kept, broken = figure.subplots(1, 2)
    rounding = "nothing changes: all on each other, but for rounding"
    for ax, which, title, unit in ((kept, True, rounding, 1e-15), (broken, False, "noticed", 1)):
        for name, motion in MOTIONS.items():
            if motion.kept == which:
                ax.plot(result["size"], result["change"].sel(motion=name) / unit, label=name)
        ax.set(xlabel="motion [rad, or 0.3 m]", ylabel=f"change of the kinetic energy, relative [{unit:g}]", title=title)
    kept.set(ylim=(-10, 10))
    return {"energy": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    for name, motion in MOTIONS.items():
        value = float(result["worst"].sel(motion=name))
        if motion.kept:
            yield Claim(f"{name}: relative change of the energy", value, 0, 1e-14, "[chhabra14 4.4]")
        else:
            yield Claim(f"{name}: relative change of the energy", value, 0.1, 0, "[chhabra14 4.4]", "at least")
