"""A wheeled mobile manipulator of a real URDF, reduced: Tiago on a base that rolls. [chhabra14 sections 2.1, 4.3]"""

from __future__ import annotations

import warnings
from dataclasses import replace

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.errors import ModelWarning
from pfaffian.evaluate.reduction_plan import plan
from pfaffian.formats.text.place import installed
from tests.by_scipy import run_adaptive
from tests.tolerance import close

RADIUS, HALF = 0.0985, 0.2022
"""Radius of a wheel, and distance of a wheel from the middle, in the file [m]."""
SAME = 1e-9
"""Tolerance of states and energy [J] after 0.15 s, in which light joints turn by 1 rad and reach 20 rad/s."""
FILE = 1e-11
"""Tolerance of wheels by hand: right angles in the file have twelve digits."""
WHEELS = {"left": "wheel_left_joint", "right": "wheel_right_joint"}
ARM = (0.6, -0.4, -1.2, 1.3, 0.4, -0.5, 0.7)
RUN = {"times": np.linspace(0, 0.15, 4), "tolerance": 1e-12}


def tiago(distribution=None, locked=(), **changes) -> pf.Mechanism:
    """Tiago on a planar joint, not a free one; head and last wrist, of almost no inertia, are locked, and so are `locked`."""
    locked = {"head_1_joint", "head_2_joint", "arm_7_joint", *locked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m = pf.formats.read_urdf(
            installed("example-robot-data", "tiago_description/robots/tiago_no_hand.urdf", "mobile"), base="free"
        )
    base = pf.joint("base", "planar", "world", "base_footprint", distribution=distribution)
    joints = [base if j.nv == 6 else pf.locked(j) if j.name in locked else j for j in m.joints]
    joints = [replace(j, damping=ca.SX(0)) for j in joints]
    motors = [a for a in m.actuators if next(j for j in joints if j.name == a.joint).nv]
    return m.with_(joints=joints, actuators=motors, **changes)


def on_wheels(**changes) -> pf.Mechanism:
    """Tiago whose two wheels do not slip; both prevent the same sideways motion, so that one of the four rows is redundant."""
    rolling = [pf.rolling.wheel(n, f"wheel_{n}_link", RADIUS) for n in WHEELS]
    return tiago(constraints=rolling, **changes)


def rolling_start(m: pf.Mechanism, forward=0.4, turn=0.3):
    """q and v of a rolling base with a moving arm."""
    q, v = m.neutral(), np.zeros(m.nv)
    entries = {"torso_lift_joint": (0.1, 0.05)} | {f"arm_{i + 1}_joint": (ARM[i], 0.3 * (-1) ** i) for i in range(7)}
    if m.constraints:
        v[m.v_slices["base"]] = forward, 0, turn
        for name, s in (("left", -1), ("right", 1)):
            entries[WHEELS[name]] = 0.1, (forward + s * HALF * turn) / RADIUS
    else:
        v[m.v_slices["base"]] = forward, turn
    q[m.q_slices["base"]] = 0.3, -0.2, 0.5
    for name, (at, rate) in entries.items():
        if m.joint(name).nv:
            q[m.q_slices[name]], v[m.v_slices[name]] = at, rate
    return q, v


def same(m, q, v, **more):
    plain, other = run_adaptive(m, q, v, **RUN | more), run_adaptive(pf.reduce(m), q, v, **RUN | more)
    for name in ("q", "v", "energy"):
        close(other[name], plain[name], SAME, name)
    return other


def torques(m: pf.Mechanism) -> np.ndarray:
    """Torques of all motors, as large as each joint bears."""
    bears = {WHEELS["left"]: 0.8, WHEELS["right"]: 0.5, "torso_lift_joint": 300.0, "arm_1_joint": 3.0, "arm_2_joint": -8.0,
             "arm_3_joint": 1.0, "arm_4_joint": 3.0, "arm_5_joint": 0.02, "arm_6_joint": 0.05}  # fmt: skip
    return np.array([bears[a.joint] for a in m.actuators])


def test_tiago_on_two_wheels_by_chaplygin():
    """The group SE(2) is found, the position of the base does not matter, and wheels roll by construction.

    The motions that two wheels leave do not change with the shape; lifts that do are in simulate/test_reduced_chains.
    """
    m = on_wheels()
    assert m.nv == 12
    found = plan(m, None)
    assert found.group == (0, 1, 2) and not found.closed
    q, v = rolling_start(m)
    r = same(m, q, v, u=torques(m))
    assert float(r.velocity_violation.max()) < 1e-13
    # By hand: x forward at the middle of the axle, both wheels about y.
    rates = {n: r.v.values[:, m.v_slices[j].start] for n, j in WHEELS.items()}
    x, y, w = r.v.values[:, :3].T
    close(x, RADIUS * (rates["right"] + rates["left"]) / 2, FILE, "forward")
    close(y, 0 * y, FILE, "sideways")
    close(w, RADIUS * (rates["right"] - rates["left"]) / (2 * HALF), FILE, "turn")


def test_tiago_on_a_base_that_goes_forward_and_turns():
    """With a distribution on the base, its two momenta remain, in a momentum equation; its position drops out."""
    m = tiago(distribution=("vx", "wz"), locked=WHEELS.values())
    assert (m.nq, m.nv) == (10, 9) and plan(m, None).group == ()
    q, v = rolling_start(m)
    r = same(m, q, v, u=torques(m))
    assert r.momentum.shape[1] == 9 and np.ptp(r.momentum.values[:, 0]) > 1e-3
    # Elsewhere on the floor, shape and momenta are the same to rounding.
    away = q.copy()
    away[:3] = -2, 1, 2.5
    other = run_adaptive(pf.reduce(m), away, v, **RUN, u=torques(m))
    close(other.momentum, r.momentum, 1e-11, "momentum elsewhere")
    close(other.q[:, 3:], r.q[:, 3:], 1e-12, "shape elsewhere")


def test_on_a_slope_the_place_does_not_matter():
    """Two wheels leave the base two motions, and gravity along the slope changes their momenta wherever it stands."""
    m = on_wheels(gravity=(0.5, 0, -9.81))
    q, v = rolling_start(m)
    r = same(m, q, v, u=torques(m))
    away = q.copy()
    away[:2] = -2, 1
    close(run_adaptive(pf.reduce(m), away, v, **RUN, u=torques(m)).momentum, r.momentum, 1e-11, "momentum elsewhere")
