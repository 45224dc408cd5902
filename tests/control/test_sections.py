"""The law on the quotient of a group by a subgroup: sections chi of the reduced space. [chhabra14 (5.3.22)-(5.3.28)]"""

from __future__ import annotations

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian import control
from pfaffian.control.concurrent_law import decoupling
from pfaffian.maths import se3, so3
from tests.tolerance import close


def sled() -> pf.Mechanism:
    """A base on a knife edge with an arm of two hinges; motors push it forward, turn it, and act at the hinges."""
    bodies = [pf.body("base", 5.0, com=(0.1, 0.05, 0), inertia=0.3)]
    bodies += [pf.body(n, 1.0, com=(0.2, 0.05, 0), inertia=0.05) for n in ("upper", "lower")]
    joints = [
        pf.joint("plane", "planar", "world", "base"),
        pf.joint("shoulder", "revolute", "base", "upper", placement=(0.2, 0.1, 0)),
        pf.joint("elbow", "revolute", "upper", "lower", placement=(0.4, 0, 0)),
    ]
    motors = [pf.actuator("push", "plane", component=0), pf.actuator("steer", "plane", component=2)]
    motors += [pf.actuator(n, n) for n in ("shoulder", "elbow")]
    edge = pf.nonholonomic("edge", lambda k: k.joint_rate("plane")[1])
    return pf.mechanism("sled", bodies, joints, actuators=motors, constraints=[edge], gravity=(0, 0, 0))


OUTPUTS = [
    control.output("base", "position", (0, 0), at=(0.3, 0.1, 0), axes=(0, 1), stiffness=1, damping=1),
    control.output("lower", "position", (0, 0), at=(0.3, 0, 0), axes=(0, 1), stiffness=1, damping=1),
]


def test_quotient_by_translations_along_y():
    """SE(2) = G chi: G are the translations along y, chi(x, theta) = (x, 0, theta). The edge gives y_dot = tan(theta) x_dot,

    tau_1 = -Ad(chi^-1) A^ q_1_dot + chi^-1 T chi q_1_dot,    D = I [tau_1 / q_1_dot, 0; 0, 1] M^^-1,    (5.3.23), (5.3.27)

    where the forces belong to x and theta: a forward push is a push along x times 1 / cos(theta).
    """
    m, random = sled(), np.random.default_rng(6)
    f = pf.compile_terms(m, {"D": lambda T: decoupling(T, OUTPUTS).D}, backend="numpy", lanes=1)
    plane = [0, 1, 5]
    for _ in range(4):
        x, y, a, b, c = random.uniform(-1, 1, 5)
        R, p = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]), np.array([x, 0, 0])
        back = np.array(ca.DM(se3.Ad_inv(ca.DM(R), ca.DM(p))))
        A, along_y = np.array([[-np.tan(a), 0]]), np.eye(6)[:, [1]]
        turned = np.column_stack([np.r_[R.T[:, 0], np.zeros(3)], np.eye(6)[:, 5]])  # chi^-1 T chi of x and theta
        tau = (-back @ along_y @ A + turned)[plane]
        close(tau[1], [0, 0], 1e-15, "across the edge", 1)
        lift = np.block([[tau, np.zeros((3, 2))], [np.zeros((2, 2)), np.eye(2)]])
        q = np.array([x, y, a, b, c])
        M = lift.T @ pf.mass_matrix(m, q) @ lift
        J = [
            pf.jacobian(m, n, q, frame="LOCAL_WORLD_ALIGNED", point=at)[:2]
            for n, at in (("base", (0.3, 0.1, 0)), ("lower", (0.3, 0, 0)))
        ]
        D = np.vstack(J) @ lift @ np.linalg.inv(M) @ np.diag([1 / np.cos(a), 1, 1, 1])
        close(f(q, np.zeros(5))["D"], D, 1e-13, "D")


def rotors() -> pf.Mechanism:
    """A free hull with three unbalanced rotors."""
    bodies, joints = (
        [pf.body("hull", 8.0, com=(0.05, 0, 0.02), inertia=(0.5, 0.6, 0.7))],
        [pf.joint("flight", "free", "world", "hull")],
    )
    for i, name in enumerate("xyz"):
        bodies.append(pf.body(name, 1.0, com=(0.03, 0.05, 0.02), inertia=(0.02, 0.03, 0.04)))
        joints.append(
            pf.joint(f"r{name}", "revolute", "hull", name, axis=tuple(np.eye(3)[i]), placement=tuple(0.3 * np.eye(3)[i]))
        )
    return pf.mechanism(
        "rotors", bodies, joints, actuators=[pf.actuator(j.name, j.name) for j in joints[1:]], gravity=(0, 0, 0)
    )


def test_a_law_in_the_chart_of_an_orbit():
    """Three rotors control the attitude at momentum. In the reduced space of that momentum, with the place on the orbit by a
    section, motion and u are those of the whole machine, and V_L falls at its rate."""
    m, momentum = rotors(), np.array([1.0, -0.5, 0.8, 0.6, 0.4, -0.7])
    q = m.neutral()
    q[3:7] = np.array(so3.quat_exp(ca.DM([0.2, -0.3, 0.4]))).ravel()
    q[7:] = 0.3, -0.5, 0.9
    unit = np.array([pf.reduction.momentum_map(m, q, x) for x in np.eye(m.nv)[:6]]).T
    v = np.zeros(m.nv)
    v[6:] = 0.5, -0.4, 0.3
    v[:6] = np.linalg.solve(unit, momentum - pf.reduction.momentum_map(m, q, v))
    goal = control.output(
        "hull", "attitude", lambda t: so3.exp(ca.vertcat(0.1 * ca.sin(t), -0.2, 0.3)), stiffness=(3, 4, 5), damping=3
    )
    law, how = control.concurrent([goal]), {"duration": 0.2, "step": 1e-3, "every": 1}
    whole = pf.run(m, q, v, control=law, **how)
    chart = pf.run(pf.reduce(m, momentum=momentum), q, v, control=law, **how)
    close(chart.u, whole.u, 1e-9, "u")
    close(chart.q, whole.q, 1e-10, "q")
    V = chart.lyapunov.values
    close((V[:-4] - 8 * V[1:-3] + 8 * V[3:-1] - V[4:]) / 12e-3, chart.lyapunov_rate[2:-2], 1e-8, "its rate")
