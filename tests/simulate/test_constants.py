"""Components of momentum that gravity does not change, on a tilted first joint: they stay constant throughout a run.

The reference sums the bodies in NumPy: a linear momentum along level directions, an angular momentum about the vertical.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.tolerance import EPS, close

ASKEW = pf.pose((0.2, 0.1, 0.3), rpy=(0.4, -0.3, 0.7))
DOWN = np.array([0, 0, -9.81])
LONG = {"duration": 50.0, "step": 2e-3, "every": 2500, "u": {"elbow": 0.1}}
LEVEL = {"free": 2, "planar-helical": 1, "planar": 1}
"""Number of level directions along which these joints slide; a spherical joint turns about one vertical axis."""


def falling(kind: str, place=ASKEW, **more) -> pf.Mechanism:
    """A hull with a sprung arm and a rotor, no axis of which is aligned with another."""
    pitch = {"pitch": 0.3} if kind == "planar-helical" else {}
    bodies = [
        pf.body("hull", 3.0, com=(0.05, 0.02, 0.3), inertia=np.diag([0.3, 0.4, 0.5])),
        pf.body("arm", 1.0, com=(0.2, 0.05, 0), inertia=np.diag([0.02, 0.03, 0.04])),
        pf.body("rotor", 0.5, inertia=np.diag([0.01, 0.01, 0.02])),
    ]
    joints = [
        pf.joint("base", kind, "world", "hull", placement=place, **pitch),
        pf.joint("elbow", "revolute", "hull", "arm", axis=(0, 1, 0), placement=(0.1, 0, 0.2), stiffness=2.0),
        pf.joint("spin", "revolute", "hull", "rotor", placement=pf.pose((0, 0.1, 0.1), rpy=(0.3, 0.5, 0.1))),
    ]
    motors = [pf.actuator("elbow", "elbow"), *more.pop("actuators", ())]
    return pf.mechanism("falling", bodies, joints, actuators=motors, gravity=tuple(DOWN), **more)


def started(m: pf.Mechanism):
    v = np.linspace(0.5, -0.7, m.nv)
    v[-1] = 20.0
    return m.neutral(), v


def of_bodies(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Momentum of all bodies, and its moment about the joint's place, in world axes."""
    p, L = np.zeros(3), np.zeros(3)
    for b in m.bodies:
        pose, twist = pf.forward_kinematics(m, q)[b.name], pf.jacobian(m, b.name, q, frame="LOCAL") @ v
        mass, com, I = (np.array(ca.DM(x)) for x in (b.mass, b.com, b.inertia))
        c, w = com.ravel(), twist[3:]
        h = mass.item() * (twist[:3] + np.cross(w, c))
        R = pose.rotation
        p += R @ h
        L += np.cross(pose.position + R @ c - [0.2, 0.1, 0.3], R @ h) + R @ I @ w
    return p, L


def direction(kind: str) -> np.ndarray:
    """The first level direction, or the vertical axis, in the world: the one nearest to the joint's x axis."""
    axes, down = np.array(ca.DM(ASKEW.R)), DOWN / np.linalg.norm(DOWN)
    across = np.cross(axes[:, 2], down)
    d = {1: across, 2: axes[:, 0] - (axes[:, 0] @ down) * down}.get(LEVEL.get(kind, 0), down)
    return d / np.linalg.norm(d) * np.sign(d @ axes[:, 0])


@pytest.mark.parametrize("kind", [*LEVEL, "spherical"])
def test_constants_stay_the_same_over_50_s(kind):
    m, d = falling(kind), direction(kind)
    q, v = started(m)
    r = pf.run(pf.reduce(m), q, v, **LONG)
    constant, size = r.constant.values, np.abs(r.momentum.values).max()
    assert (constant == constant[0]).all() and constant.shape[1] == LEVEL.get(kind, 1)
    which = 1 if kind == "spherical" else 0
    close(constant[0, 0], d @ of_bodies(m, q, v)[which], 64 * EPS, "at the start", scale=size)
    for i in (len(r.time) // 2, -1):
        here = of_bodies(m, r.q.values[i], r.v.values[i])[which]
        close(d @ here, constant[0, 0], 64 * EPS, "that of bodies", scale=max(size, np.linalg.norm(here)))
    assert r.attrs["state_about"].count("also conserved") == 1


@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_the_reduced_machine_moves_as_the_full_one(kind):
    m = falling(kind)
    q, v = started(m)
    times = {"times": [0, 0.5, 1.0], "tolerance": 1e-12, "u": {"elbow": 0.1}}
    plain, r = run_adaptive(m, q, v, **times), run_adaptive(pf.reduce(m), q, v, **times)
    for name in ("q", "v"):
        close(r[name], plain[name], 1e-9, name, scale=1.0)


def test_constants_exist_only_off_the_joints_axes_and_without_forces_along_them():
    jet = pf.forces.thruster("jet", "hull", axis=(1, 0, 0))
    for m in (falling("free", place=(0, 0, 1)), falling("free", actuators=[jet])):
        assert [part.name for part in pf.reduce(m).parts] == ["q", "momentum"]
    wind = pf.Parameter("wind", 0.0, "N")
    blows = pf.forces.generalised_force("wind", lambda k: ca.fmax(wind - 5, 0) * k.jacobian("hull")[0, :].T)
    m = falling("free", parameters=[wind], forces=[blows])
    system = pf.reduce(m)
    assert [part.name for part in system.parts] == ["q", "momentum", "constant"]
    q, v = started(m)
    calm = pf.run(system, q, v, duration=0.01, step=0.01, parameters={"wind": 4.0}, backend="interpreter")
    assert float(np.ptp(calm.constant.values, axis=0).max()) == 0
    with pytest.raises(pf.ModelError, match=r"wind.* is not conserved, although it is near the defaults"):
        pf.run(system, q, v, duration=0.01, step=0.01, parameters={"wind": 8.0}, backend="interpreter")
