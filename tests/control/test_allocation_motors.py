"""Redundant motors: drones, boats and arms use the smallest inputs. Motors count by the motions that they drive."""

from __future__ import annotations

from functools import cache
from itertools import product

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.allocation import allocate
from pfaffian.control.motors import accelerations, limit_rows, motors_are_redundant
from pfaffian.control.prototype import prototype_terms, reference_motion
from pfaffian.control.prototype_tracking_law import _within
from pfaffian.maths.qp import INACCURATE, SLIGHT, SOLVED
from tests.tolerance import close

G = 9.81
POLES = [-8.0, -8.0, -8 * np.exp(0.4j), -8 * np.exp(-0.4j)]
QUAD = pf.multicopters.QUADCOPTER
LEVEL = [0, 0, 0, 0, 0, 0, 1.0]
LOAD = pf.body("load", 0.4, com=(0, 0, -0.8), inertia=(2e-4, 2e-4, 1e-6))
pm = pf.forces.pseudo_matrix


def copter(azimuths, spins, limits=(0.0, 9.0)) -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        "drone", azimuths, spins, mass=2.4, inertia=(0.0179, 0.0179, 0.0307), arm=QUAD["arm"], thrust=QUAD["thrust"],
        torque=QUAD["torque"], limits=limits,
    )  # fmt: skip


def around(n: int) -> pf.Mechanism:
    return copter(2 * np.pi * np.arange(n) / n, [(-1) ** i for i in range(n)])


def tilted(n: int) -> pf.Mechanism:
    """Propellers that lean to alternate sides: six of them drive all six motions."""
    m = around(n)
    lean = [0.4 * (-1) ** i for i in range(n)]
    thrusters = []
    for i, a in enumerate(2 * np.pi * np.arange(n) / n):
        axis = (np.sin(lean[i]) * np.sin(a), -np.sin(lean[i]) * np.cos(a), np.cos(lean[i]))
        point = (0.24 * np.cos(a), 0.24 * np.sin(a), 0)
        thrusters.append(
            pf.forces.thruster(f"t{i}", "body", axis=axis, point=point, torque=0.017 * (-1) ** i, limits=(-9.0, 9.0))
        )
    return m.with_(actuators=thrusters)


def loaded(m: pf.Mechanism) -> pf.Mechanism:
    return m.with_(bodies=(*m.bodies, LOAD), joints=(*m.joints, pf.joint("cable", "universal", "body", "load")))


def hung(m: pf.Mechanism) -> pf.Mechanism:
    """The machine with the load as a free body that a universal closure attaches."""
    cable = pf.closure("cable", "universal", "body", "load", axis=(1, 0, 0), axis_b=(0, 1, 0))
    free = pf.joint("load", "free", "world", "load")
    return m.with_(bodies=(*m.bodies, LOAD), joints=(*m.joints, free), constraints=(cable,))


def boat(n: int) -> pf.Mechanism:
    """A hull on the water with n thrusters at its corners."""
    places = [(1.0, 0.4, 0.5), (1.0, -0.4, -0.5), (-1.0, 0.5, 0.1), (-1.0, -0.5, 2.0)][:n]
    thrusters = [
        pf.forces.thruster(f"t{i}", "hull", axis=(np.cos(a), np.sin(a), 0), point=(x, y, 0), limits=(-60.0, 60.0))
        for i, (x, y, a) in enumerate(places)
    ]
    hull = pf.body("hull", 40.0, com=(0.1, 0, 0), inertia=9.0)
    return pf.mechanism("boat", [hull], [pf.joint("water", "planar", "world", "hull")], actuators=thrusters, gravity=(0, 0, 0))


def arm() -> pf.Mechanism:
    """Two joints: two motors of different gears on the first, one motor on the second."""
    bodies = [pf.body("upper", 2.0, (0.3, 0, 0), (0.01, 0.05, 0.05)), pf.body("lower", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))]
    joints = [
        pf.joint("shoulder", "revolute", "world", "upper", axis=(0, -1, 0)),
        pf.joint("elbow", "revolute", "upper", "lower", axis=(0, -1, 0), placement=pf.pose((0.6, 0, 0))),
    ]
    motors = [pf.actuator("a", "shoulder"), pf.actuator("b", "shoulder", gear=3.0), pf.actuator("c", "elbow", gear=2.0)]
    return pf.mechanism("arm", bodies, joints, actuators=motors)


DRONES = {
    "four": (around(4), False),
    "five": (around(5), True),
    "six": (around(6), True),
    "eight": (around(8), True),
    "twelve": (around(12), True),
    "coaxial": (copter(np.repeat(np.pi / 2 * np.arange(4), 2), [1, -1, -1, 1, 1, -1, -1, 1]), True),
    "tilted, six": (tilted(6), False),
    "tilted, eight": (tilted(8), True),
    "six with a load": (loaded(around(6)), True),
    "eight with a load": (loaded(around(8)), True),
    "eight with a hung load": (hung(around(8)), True),
    "boat of three": (boat(3), False),
    "boat of four": (boat(4), True),
    "arm": (arm(), True),
}


def pairs(m: pf.Mechanism) -> list[control.Pair]:
    if any(j.name == "body" for j in m.joints):
        body = [control.quadcopter_pair("body", POLES, heading=(5.0, 0.8), inertia_ratio=0.1)]
        return body + [control.pair(b.name, inertia=pm(0.3, (0, 0, -0.8), 0.01)) for b in m.bodies if b.name == "load"]
    return [control.pair(b.name, inertia=pm(2, (0.1, 0, 0), 0.5), damping=pm(9, moments=2), stiffness=pm(20, moments=4))
            for b in m.bodies]  # fmt: skip


@cache
def system(name: str, limits: str | None):
    """Function of (q, v, t, p) that returns u, the law's faults, S, Mbar and Mbar a + bbar."""
    m = DRONES[name][0]
    T, none = pf.symbols(m), ca.SX(0, 1)
    terms, goal = pf.Terms(m, T.q, T.v, ca.SX.zeros(m.nu, 1), T.t), control.set_point(m.neutral())
    law = control.prototype_tracking(pairs(m), goal, approach="body", limits=limits)
    x = law.law(terms, none, none, ca.SX.zeros(m.nv, 1))
    P = prototype_terms(terms.kinematics, reference_motion(terms, goal, none), pairs(m), "body", None)
    a, S = accelerations(terms)
    return ca.Function("law", [T.q, T.v, T.t, m.p_symbols], [x.u, x.faults, S, P.M, P.M @ a + P.b])


def at(name: str, limits: str | None, q, v) -> list[np.ndarray]:
    u, faults, S, M, force = (np.array(x) for x in system(name, limits)(q, v, 0.0, DRONES[name][0].p_defaults))
    return [u.ravel(), faults.ravel(), S, M, force.ravel()]


def smallest(S: np.ndarray, M: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Shortest of all u that minimise |S u + M^-1 force| in the metric of M, by NumPy's pseudoinverse."""
    C = np.linalg.cholesky(M)
    return -np.linalg.pinv(C.T @ S, rcond=1e-7) @ np.linalg.solve(C, force)


def states(m: pf.Mechanism, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random states (q, v) on the constraints, near the neutral configuration."""
    random, found = np.random.default_rng(8), []
    for _ in range(count):
        q = m.neutral()
        for j in m.joints:
            q[m.q_slices[j.name]] += random.uniform(-0.3, 0.3, len(q[m.q_slices[j.name]]))
            if j.kind.name == "free":
                q[m.q_slices[j.name]][3:] /= np.linalg.norm(q[m.q_slices[j.name]][3:])
        v = 0.3 * random.normal(size=m.nv)
        found.append((pf.assemble(m, q).q, v) if m.constraints else (q, v))
    return found


@pytest.mark.parametrize("name", DRONES)
def test_inputs_are_the_smallest_that_give_the_motion(name):
    m, spare = DRONES[name]
    assert motors_are_redundant(m) is spare
    for q, v in states(m, 4):
        u, faults, S, M, force = at(name, None, q, v)
        assert not faults.any()
        close(u, smallest(S, M, force), 1e-9, "the smallest inputs")


@pytest.mark.parametrize(("name", "each"), [("six", 2.4 * G / 6), ("twelve", 2.4 * G / 12), ("eight with a load", 2.8 * G / 8)])
def test_propellers_on_a_circle_hover_with_equal_thrusts(name, each):
    for limits in (None, "actuators"):
        u, faults, *_ = at(name, limits, DRONES[name][0].neutral(), np.zeros(DRONES[name][0].nv))
        assert not faults.any()
        close(u, np.full(len(u), each), 1e-7, "thrusts")


# -- limits ---------------------------------------------------------------------------------------------------------------


def nearest_first(S, M, force, low, high) -> np.ndarray:
    """Shortest of all u within limits that minimise |S u + M^-1 force|: the best over all faces of the box."""
    H, g, found = S.T @ M @ S, S.T @ force, []
    for side in product((-1, 0, 1), repeat=len(g)):
        side = np.array(side)
        free, u = side == 0, np.where(side < 0, low, np.where(side > 0, high, 0.0))
        u[free] = np.linalg.pinv(H[np.ix_(free, free)], rcond=1e-10) @ -(g + H @ u)[free]
        if (u >= low - 1e-9).all() and (u <= high + 1e-9).all():
            found.append((u @ H @ u / 2 + g @ u, np.linalg.norm(u), u))
    best = min(cost for cost, *_ in found)
    return min((x for x in found if x[0] <= best + 1e-11 * abs(best)), key=lambda x: x[1])[2]


@pytest.mark.parametrize("name", ["five", "six", "boat of four", "tilted, six"])
def test_within_limits_the_motion_comes_first_and_small_inputs_second(name):
    m, limited = DRONES[name][0], 0
    low, high = m.u_limits.T
    for q, v in states(m, 6):
        u, faults, *of = at(name, "actuators", q, 3 * v)
        best = nearest_first(*of, low, high)
        assert not faults.any()
        limited += ((best == low) | (best == high)).any()
        close(u, best, 1e-5, "inputs")
        slope, allowed = _slope(*of, u, low, high)
        close(slope, allowed, 1e-11, "slope of the missed motion", np.abs(of[0].T @ of[2]).max())
    assert limited >= 2


def _slope(S, M, force, u, low, high) -> tuple[np.ndarray, np.ndarray]:
    """Slope S^T (M S u + force) of |S u + M^-1 force|^2 / 2, and the part of it that active limits balance."""
    slope = S.T @ (M @ S @ u + force)
    down, up = (np.abs(u - x) <= 1e-9 * np.abs(high).max() for x in (low, high))
    return slope, np.where(down, np.maximum(slope, 0), np.where(up, np.minimum(slope, 0), 0.0))


def test_inputs_reported_as_solved_satisfy_every_limit():
    """Redundant motors whose desired inputs are far beyond their limits: an answer reported as solved satisfies each row."""
    H, u0, l, sides = ca.SX.sym("H", 4, 4), ca.SX.sym("u0", 4), ca.SX.sym("l", 8), np.vstack([np.eye(4), -np.eye(4)])
    found = _within(H, u0, ca.SX(sides), l, redundant=True)
    solve = ca.Function("solve", [H, u0, l], [found.u, found.status])
    random, count = np.random.default_rng(0), 1500
    A = random.integers(-2, 3, size=(count, 2, 4)).astype(float)
    A[~A.any((1, 2))] = 1
    desired = random.normal(size=(4, count)) * 10.0 ** random.uniform(4, 6, count)
    limits = np.abs(random.normal(size=(8, count)))
    metric = np.hstack(list(A.transpose(0, 2, 1) @ A))
    u, status = (np.array(x) for x in solve.map(count)(metric, desired, limits))
    solved = status.ravel() == SOLVED
    assert solved.sum() > 0.9 * count and set(status[0, ~solved]) <= {INACCURATE}
    size = limits + np.abs(sides) @ np.abs(u) + SLIGHT * limits.max(axis=0)
    assert ((sides @ u - limits) / size)[:, solved].max() < 3e-11


def test_six_propellers_fly_within_their_limits():
    m = DRONES["six"][0]
    law = control.prototype_tracking(pairs(m), control.set_point(LEVEL), approach="body", limits="actuators")
    r = pf.run(
        m, [0.5, -0.3, -0.4, 0.1, 0.05, 0, np.sqrt(1 - 0.0125)], duration=0.2, step=5e-3, control=law, backend="interpreter"
    )
    assert int(r.status) == 0 and r.limit_active.values.any()
    assert r.u.values.min() > -1e-9 and r.u.values.max() < 9 + 1e-9


def test_limit_rows_of_the_actuators():
    """low <= u <= high for each input, with limits of either sign; a single row where the other limit is infinite."""
    limits = [(-2.0, 5.0), (1.0, np.inf), (-np.inf, -3.0)]
    m = boat(3)
    m = m.with_(actuators=[pf.forces.thruster(f"t{i}", "hull", axis=(1, 0, 0), limits=x) for i, x in enumerate(limits)])
    W, l = (np.array(ca.DM(x)) for x in limit_rows(m, "actuators"))
    for u in product([-4.0, -3.0, -2.0, 0.0, 1.0, 5.0, 6.0], repeat=3):
        inside = all(low <= x <= high for x, (low, high) in zip(u, limits, strict=True))
        assert (W @ u <= l.ravel()).all() == inside


# -- other laws -----------------------------------------------------------------------------------------------------------


def inputs(m: pf.Mechanism, law: control.Control, q, v) -> np.ndarray:
    T, none = pf.symbols(m), ca.SX(0, 1)
    x = law.law(pf.Terms(m, T.q, T.v, ca.SX.zeros(m.nu, 1), T.t), none, none, ca.SX.zeros(m.nv, 1))
    u, faults = (np.array(y).ravel() for y in ca.Function("u", [T.q, T.v, T.t], [x.u, x.faults])(q, v, 0.0))
    assert not faults.any()
    return u


@pytest.mark.parametrize("name", ["arm", "boat of four", "tilted, eight"])
@pytest.mark.parametrize("weight", [False, True], ids=["equal", "weighted"])
def test_projected_and_inverse_dynamics_distribute_by_the_pseudoinverse(name, weight):
    """u = R^-1/2 (B R^-1/2)^+ tau."""
    m = DRONES[name][0]
    R = np.linspace(0.5, 2.0, m.nu) if weight else np.ones(m.nu)
    letters = pf.compile_terms(m, {"B": lambda T: T.B, "M": lambda T: T.M, "free": lambda T: T.c - T.f}, backend="numpy")
    for q, v in states(m, 2):
        x, a = letters(q, v), np.linspace(-1, 1, m.nv)
        share = np.diag(R**-0.5) @ np.linalg.pinv(x["B"] @ np.diag(R**-0.5), rcond=1e-9)
        close(pf.inverse_dynamics(m, q, v, a, weight=R).u, share @ (x["M"] @ a + x["free"]), 1e-9, "inverse dynamics")
        if name == "arm":  # the machine with v = q_dot
            law = control.projected(control.whole(m), control.set_point(np.zeros(m.nq)), stiffness=9.0, damping=6.0, weight=R)
            close(inputs(m, law, q, v), share @ (x["M"] @ (-9 * q - 6 * v) + x["free"]), 1e-9, "projected")


def test_a_nearly_stretched_arm_on_a_wall_is_not_uncontrollable():
    """Within 1e-5 of the stretched arm the wall's row is left out for a moment, and one motor has two free motions. Only the
    exactly stretched arm is uncontrollable."""
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0, 0), 0.1) for i in range(2)]
    joints = [pf.joint("j0", "revolute", "world", "b0", axis=(0, 0, 1)),
              pf.joint("j1", "revolute", "b0", "b1", axis=(0, 0, 1), placement=pf.pose((1, 0, 0)))]  # fmt: skip
    wall = pf.holonomic("wall", lambda k: k.position("b1", (1, 0, 0))[0] - 2.0)
    m = pf.mechanism("arm", bodies, joints, constraints=[wall], actuators=[pf.actuator("motor", "j0")], gravity=(0, 0, 0))
    T = pf.symbols(m)
    x = allocate(T, ca.SX([1.0, 0.5]), ca.SX.ones(1, 1))
    lost = ca.Function("lost", [T.q, T.v, T.t], [x.uncontrollable])
    for bend, expected_fault in ((0.3, 0.0), (1e-6, 0.0), (0.0, 1.0)):
        assert float(lost([bend / 2, -bend], [0, 0], 0.0)) == expected_fault, bend
