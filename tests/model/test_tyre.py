"""A tyre, compared with its formula: longitudinal and lateral slip, power, a steered bicycle, a differential; refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import forces
from tests.refused import refusals
from tests.tolerance import close

R, N, MU, B, C, E = 0.3, 400.0, 0.9, 8.0, 1.4, -0.5


def magic(s: float) -> float:
    return MU * N * np.sin(C * np.arctan(B * s - E * (B * s - np.arctan(B * s))))


def wheel(**more) -> pf.Mechanism:
    bodies = [pf.body("hub", 10.0, inertia=0.1), pf.body("wheel", 5.0, inertia=0.2)]
    joints = [
        pf.joint("hub", "free", "world", "hub", placement=(0, 0, R)),
        pf.joint("spin", "revolute", "hub", "wheel", axis=(0, 1, 0)),
    ]
    law = {"load": N, "friction": MU, "stiffness": B, "shape": C, "curvature": E, "speed": 0.1} | more
    return pf.mechanism("wheel", bodies, joints, forces=[forces.tyre("tyre", "wheel", R, **law)], gravity=(0, 0, 0))


@pytest.mark.parametrize(
    ("vx", "vy", "spin"), [(10, 0, 40.0), (10, 0, 30.0), (10, 1.0, 10 / R), (8, -2, 10), (-5, 0.3, 0), (0, 1, 0)]
)
def test_the_force_agrees_with_the_formula(vx, vy, spin):
    """The force opposes the slip of hub and wheel, acts on the spin with the radius as lever arm, and dissipates energy."""
    m = wheel()
    v = np.array([vx, vy, 0, 0, 0, 0, spin], dtype=float)
    f = pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")(m.neutral(), v)["f"]
    slip = np.array([vx - R * spin, vy])
    F = -magic(np.linalg.norm(slip) / np.hypot(vx, 0.1)) * slip / max(np.linalg.norm(slip), 1e-300)
    close(f[:3], [*F, 0], 1e-6, "force", N)
    close(f[6], -R * F[0], 1e-6, "on the spin", N)
    assert f @ v <= 1e-9


def test_a_small_slip_angle_gives_the_cornering_stiffness():
    angle = 1e-4
    m = wheel(load=lambda k: N * (1 + k.t), speed=1e-3)
    v = {"hub.vx": 10.0, "hub.vy": 10 * angle, "spin": 10 / R}
    f = pf.forward_dynamics(m, {}, v, t=0.5).v_dot[1] * 15.0
    close(f, -1.5 * N * MU * B * C * angle, 1e-4, "side force")


def test_a_bicycle_turns_in_its_steady_circle():
    """Two axles, steer_servo angle d, speed V: the yaw rate is V d / (l + K V^2) for small d, K = m (b / C_f - a / C_r) / l."""
    V, a, b, m0, steer = 10.0, 1.0, 1.4, 1000.0, 0.004
    front, rear = 9.81 * m0 * b / (a + b), 9.81 * m0 * a / (a + b)
    bodies = [
        pf.body("car", m0, inertia=1500.0),
        pf.body("fork", 1e-3, inertia=1e-3),
        *(pf.body(n, 1e-3, inertia=1e-2) for n in "fr"),
    ]
    joints = [
        pf.joint("car", "planar", "world", "car", placement=(0, 0, R)),
        pf.joint("steering", "revolute", "car", "fork", axis=(0, 0, 1), placement=(a, 0, 0)),
        pf.joint("front", "revolute", "fork", "f", axis=(0, 1, 0)),
        pf.joint("rear", "revolute", "car", "r", axis=(0, 1, 0), placement=(-b, 0, 0)),
    ]
    roads = [forces.tyre(n, n, R, load=N, stiffness=k, speed=0.01) for n, N, k in (("f", front, 8.0), ("r", rear, 10.0))]
    lock = pf.servo(pf.holonomic("steer", lambda k: k.joint("steering") - steer), ["motor"])
    m = pf.mechanism("bicycle", bodies, joints, forces=roads, actuators=[pf.actuator("motor", "steering")], constraints=[lock])
    stiff = [N * 1.3 * k for N, k in ((front, 8.0), (rear, 10.0))]
    K = m0 * (b / stiff[0] - a / stiff[1]) / (a + b)
    turn = m.v_names[m.v_slices["car"].start + 2]
    r = pf.run(m, {"steering": steer}, {m.v_names[0]: V, "front": V / R, "rear": V / R}, duration=2.0, step=2e-3, every=100,
               scheme=pf.Scheme(integrator="tr-bdf2"), error_bound=np.inf, backend="interpreter")  # fmt: skip
    speed = np.hypot(*r.v.values[-1, :2])
    close(r.v.sel(velocity=turn)[-1], speed * steer / (a + b + K * speed**2), 0.01, "yaw rate")


def test_a_differential_is_a_joint_that_follows_two():
    """The carrier turns at the mean rate of its wheels, and its torque is divided equally between them."""
    bodies = [pf.body(n, 1.0, inertia=1.0) for n in ("left", "right", "carrier")]
    joints = [pf.joint(n, "revolute", "world", n) for n in ("left", "right")]
    joints.append(pf.joint("carrier", "revolute", "world", "carrier", mimic=pf.mimic({"left": 0.5, "right": 0.5})))
    torque = pf.wrench("engine", "carrier", [0, 0, 0, 0, 0, 6.0])
    m = pf.mechanism("differential", bodies, joints, forces=[torque])
    close(pf.forward_dynamics(m, [0, 0]).v_dot, [2.0, 2.0], 1e-12, "equal accelerations")  # 3 / (1 + 0.25 + 0.25)


def wrong(**given):
    return forces.tyre("t", "wheel", given.pop("radius", R), **{"load": N} | given)


WRONG = {
    "no radius": (lambda: wrong(radius=0.0), "radius"),
    "a negative load": (lambda: wrong(load=-1.0), "force 't': load"),
    "a load in words": (lambda: wrong(load="heavy"), "force 't': load"),
    "a load of two numbers": (lambda: pf.forward_dynamics(wheel(load=lambda k: [1, 2]), {}), "must return one number, got 2"),
    "negative friction": (lambda: wrong(friction=-0.1), "force 't': friction"),
    "no stiffness": (lambda: wrong(stiffness=0.0), "force 't': stiffness 0 must be above zero"),
    "no shape": (lambda: wrong(shape=0.0), "force 't': shape 0 must be above zero"),
    "a curvature beyond 1": (lambda: wrong(curvature=1.5), "curvature must be at most 1, got 1.5"),
    "no speed": (lambda: wrong(speed=0.0), "force 't': speed 0 must be above zero"),
    "no axis": (lambda: wrong(axis=(0, 0, 0)), "axis"),
    "a road given by a number": (lambda: wrong(plane=3), "force 't': plane: a plane is needed, got 3"),
}  # fmt: skip


test_wrong_tyres_are_named = refusals(WRONG)
