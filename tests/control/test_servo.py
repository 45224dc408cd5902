"""Servo constraints and the directions of their control forces. [ider]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics.controlforce import control_force
from pfaffian.evaluate.realisability import realisability
from tests.by_scipy import run_adaptive
from tests.random_mechanisms import Case as State
from tests.random_mechanisms import matrices, on_velocity, random_tree
from tests.tolerance import ALGEBRA, close

LARGEST_ERROR = 1e-3
"""Error [m] of a servo constraint just before it becomes unrealisable, at 30 rad/s in steps of 1 ms."""

ROLLOUT = 1e-8
"""Tolerance of RK4 at the steps used here, against RK4 with another formulation."""


def point(body: str, i: int, where=(0.3, 0.2, 0.1)):
    return lambda k: k.position(body, where)[i]


def driven(body: str, i: int, here: float = 0.0):
    return lambda k: k.position(body, (0.3, 0.2, 0.1))[i] - here - 0.1 * ca.sin(2 * k.t)


@st.composite
def mixed(draw: st.DrawFn) -> State:
    """A tree with geometric constraints on one body and servo constraints on another, along random directions."""
    kinds = draw(st.lists(st.sampled_from(("revolute", "prismatic", "spherical", "free")), min_size=3, max_size=4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = random_tree(random, kinds, [-1, *(draw(st.integers(0, i - 1)) for i in range(1, len(kinds)))])
    geometrical = [pf.holonomic(f"guide {i}", point("b1", 0)) for i in range(draw(st.integers(0, 2)))]
    count = draw(st.integers(1, 2))
    Z = random.normal(size=(count, m.nv))
    target = pf.holonomic("wish", lambda k: ca.vertcat(*[driven(f"b{len(kinds) - 1}", i)(k) for i in range(count)]))
    m = m.with_(constraints=[*geometrical, pf.servo(target, lambda k: ca.SX(ca.DM(Z)), stiffness=9.0, damping=5.0)])
    q = pf.random_configuration(m, random)
    return State(m, q, on_velocity(m, q, random.normal(size=m.nv), 0.2), np.zeros(m.nu), 0.2)


TERMS = {
    "M": lambda T: T.M,
    "force": lambda T: T.force,
    "B_G": lambda T: T.A,
    "h_G": lambda T: T.b,
    "B_K": lambda T: T.servo.A,
    "h_K": lambda T: T.servo.b,
    "A": lambda T: T.servo.Z,
    "v_dot": lambda T: control_force(T).motion.v_dot,
    "reaction": lambda T: control_force(T).motion.reaction,
    "mu": lambda T: control_force(T).mu,
    "realisable": lambda T: control_force(T).realisable,
}


@given(case=mixed())
@settings(max_examples=40)
def test_saddle_equation(case):
    """[M Z^T; B 0] [v_dot; -nu] = [f - c; h] and the reduced form, by NumPy. (17) (18) (19)"""
    r = matrices(case, TERMS)
    once = slice(0, min(1, len(r["B_G"])))  # redundant guides count once
    B, h = np.vstack([r["B_G"][once], r["B_K"]]), np.vstack([r["h_G"][once], r["h_K"]])
    Z, M, n = np.vstack([r["B_G"][once], r["A"]]), r["M"], len(r["M"])
    c = len(B)
    assume(n > c)
    saddle = np.block([[M, Z.T], [B, np.zeros((c, c))]])
    cond = np.linalg.cond(saddle)
    assume(cond < 1e5)
    assert r["realisable"] == 1
    solved = np.linalg.solve(saddle, np.vstack([r["force"], h]))
    v_dot, nu = solved[:n], solved[n:]
    size = 1 + np.abs(v_dot).max()
    close(r["v_dot"], v_dot, ALGEBRA * cond, "v_dot (17)", scale=size)
    close(r["mu"], -nu[len(B) - len(r["B_K"]) :], ALGEBRA * cond, "mu (17)", scale=1 + np.abs(nu).max())
    close(r["reaction"], -Z.T @ nu, ALGEBRA * cond, "A^T lambda + Z^T mu", scale=1 + np.abs(M).max() * size)
    _, _, Vt = np.linalg.svd(Z)
    C = Vt[c:].T
    reduced = np.linalg.solve(np.vstack([C.T @ M, B]), np.vstack([C.T @ r["force"], h]))
    close(r["v_dot"], reduced, ALGEBRA * cond, "v_dot (18)", scale=size)
    by_reduced = np.linalg.solve(Z @ Z.T, Z @ (r["force"] - M @ reduced))
    close(nu, by_reduced, ALGEBRA * cond, "nu (19)", scale=1 + np.abs(M).max() * size)


def arm(*constraints, links: int = 3) -> pf.Mechanism:
    """Planar arm of unit links in the x-y plane without gravity, with a motor on each joint."""
    bodies = [pf.body(f"l{i}", 2.0 - 0.4 * i, (0.5, 0, 0), 0.2) for i in range(links)]
    joints = [
        pf.joint(f"j{i}", "revolute", "world" if not i else f"l{i - 1}", f"l{i}", placement=pf.pose((1.0 if i else 0.0, 0, 0)))
        for i in range(links)
    ]
    motors = [pf.actuator(f"m{i}", f"j{i}") for i in range(links)]
    return pf.mechanism("arm", bodies, joints, constraints=constraints, actuators=motors, gravity=(0, 0, 0))


Q0, V0 = np.array([1.0, -0.3, -1.4]), np.array([0.2, -0.3, 0.4])


def tip(q: np.ndarray) -> np.ndarray:
    s = np.cumsum(q)
    return np.array([np.cos(s).sum(), np.sin(s).sum()])


def path(v: float = -0.5):
    x, y = tip(Q0)
    return pf.holonomic("path", lambda k: k.position("l2", (1, 0, 0))[:2] - ca.vertcat(x + v * k.t, y))


def on_path(v: float = -0.5) -> np.ndarray:
    """Velocity with which the tip starts along the path."""
    s = np.cumsum(Q0)
    J = np.array([[-np.sin(s[i:]).sum() for i in range(3)], [np.cos(s[i:]).sum() for i in range(3)]])
    return V0 + np.linalg.pinv(J) @ (np.array([v, 0]) - J @ V0)


@pytest.mark.parametrize("mixing", [np.eye(2), np.array([[2.0, 1.0], [-1.0, 3.0]])])
def test_directions_along_the_rows_give_the_ideal_motion(mixing):
    """A combines rows of B^K: the motion is the conventional one and Z^T mu the reaction of an ideal constraint; mu differs."""
    target = path()
    rows = lambda k: ca.SX(ca.DM(mixing)) @ ca.jacobian(target.phi(k), k.q)  # noqa: E731
    ideal = pf.run(arm(target), Q0, on_path(), duration=1.0, step=1e-3, scheme=pf.Scheme(corrections=0))
    by_servo = pf.run(arm(pf.servo(target, rows, stiffness=0, damping=0)), Q0, on_path(), duration=1.0, step=1e-3)
    close(by_servo.q.values, ideal.q.values, ROLLOUT, "q of the ideal motion")
    pushed = np.array([_rows(q, mixing).T @ mu for q, mu in zip(by_servo.q.values, by_servo.servo_force.values, strict=True)])
    close(pushed, ideal.reaction.values, ROLLOUT, "Z^T mu = A^T lambda")


def _rows(q: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    s = np.cumsum(q)
    return mixing @ np.array([[-np.sin(s[i:]).sum() for i in range(3)], [np.cos(s[i:]).sum() for i in range(3)]])


def test_as_many_constraints_as_coordinates():
    """n = c: whatever the directions, the constraints determine the motion, and the total force is the ideal one."""
    x, y = tip(Q0)
    whole = pf.holonomic("pose", lambda k: ca.vertcat(k.position("l2", (1, 0, 0))[:2] - ca.vertcat(x - 0.5 * k.t, y),
                                                      ca.sum1(k.q) - Q0.sum() - 0.2 * k.t))  # fmt: skip
    s = np.cumsum(Q0)
    J = np.vstack([_rows(Q0, np.eye(2)), np.ones(3)])
    v = np.linalg.solve(J, [-0.5, 0, 0.2])
    assert len(s) == 3
    ideal = pf.run(arm(whole), Q0, v, duration=0.5, step=1e-3, scheme=pf.Scheme(corrections=0))
    by_servo = pf.run(arm(pf.servo(whole, ["m0", "m1", "m2"], stiffness=0, damping=0)), Q0, v, duration=0.5, step=1e-3)
    close(by_servo.q.values, ideal.q.values, ROLLOUT, "q")
    close(by_servo.servo_force.values, ideal.reaction.values, ROLLOUT, "moments")


def test_servo_as_a_control_law():
    """The law moves a plain mechanism as the servo constraint does, with the same forces as inputs."""
    target = pf.servo(path(), ["m1", "m2"])
    by_servo = pf.run(arm(target), Q0, on_path(), duration=1.0, step=1e-3)
    law = pf.run(arm(), Q0, on_path(), duration=1.0, step=1e-3, control=control.servo_control(target))
    assert law.status == 0, pf.results.causes(law)
    close(law.q.values, by_servo.q.values, ROLLOUT, "q")
    close(law.u.values[:, 1:], by_servo.servo_force.values, ROLLOUT, "moments")
    assert (law.u.values[:, 0] == 0).all()


def test_servo_law_together_with_a_servo_constraint():
    """A law for one servo constraint on a mechanism with another one: each has a force of its own."""
    x, y = tip(Q0)
    along = pf.servo(pf.holonomic("along", lambda k: k.position("l2", (1, 0, 0))[0] - x + 0.5 * k.t), ["m1"])
    level = pf.servo(pf.holonomic("level", lambda k: k.position("l2", (1, 0, 0))[1] - y), ["m2"])
    both = pf.run(arm(along, level), Q0, on_path(), duration=0.5, step=1e-3)
    law = pf.run(arm(along), Q0, on_path(), duration=0.5, step=1e-3, control=control.servo_control(level))
    assert law.status == 0, pf.results.causes(law)
    close(law.q.values, both.q.values, ROLLOUT, "q")
    close(law.u.values[:, 2], both.servo_force.values[:, 1], ROLLOUT, "moment of the law")


def test_errors_stay_bounded_and_a_wrong_start_is_pulled_in():
    """Position and velocity errors on a periodic path decay at the rate of the gains and do not drift in 20 s."""
    x, y = tip(Q0)

    def around(t):
        return ca.vertcat(x - 0.2 * ca.sin(t), y + 0.2 * (1 - ca.cos(t)))

    circle = pf.holonomic("circle", lambda k: k.position("l2", (1, 0, 0))[:2] - around(k.t))
    servo = pf.servo(circle, lambda k: ca.jacobian(circle.phi(k), k.q))
    r = pf.run(arm(servo), Q0 + [0.02, 0, 0], np.zeros(3), duration=20.0, step=2e-3, every=10)
    assert r.status == 0, pf.results.causes(r)
    off, rate = np.abs(r.servo_error.values).max(-1), np.abs(r.servo_rate.values).max(-1)
    assert off[0] > 5e-3
    assert off[r.time > 2].max() < 1e-8
    assert rate[r.time > 2].max() < 1e-7


# Unrealisable directions.


def test_unrealisable_at_the_start():
    """Two servo constraints share one motor: the run stops at once and names the elements at fault."""
    angle = pf.holonomic("angle", lambda k: k.q[2] - Q0[2])
    path_x = pf.holonomic("x", lambda k: k.position("l2", (1, 0, 0))[0] - tip(Q0)[0])
    m = arm(pf.servo(angle, ["m2"]), pf.servo(path_x, ["m2"]))
    r = pf.run(m, Q0, duration=0.1, step=1e-3)
    assert r.status >= 2 and r.stopped == 0
    (cause,) = pf.results.causes(r)
    assert "servo constraint not realisable" in cause and "m2" in cause and "angle" in cause and "at t = 0 s" in cause
    found = realisability(m, Q0)
    assert not found.realisable and found.rank == 1 and found.smallest < 1e-12
    assert set(found.directions) == {"m2"}
    assert "not realisable: rank 1 of 2" in str(found) and "'m2'" in str(found)


def test_names_of_the_motion_and_the_direction_at_fault():
    """Of three motions and three directions only those at fault are named."""
    wishes = pf.holonomic("wish", lambda k: ca.vertcat(k.q[0], k.q[1], k.q[2]) - Q0)
    slack = lambda k: ca.SX(ca.DM([[1, 0, 0], [0, 1, 0], [1e-7, 0, 0]]))  # noqa: E731
    heavy = pf.servo(wishes, slack)
    found = realisability(arm(heavy), Q0)
    assert not found.realisable and found.rank == 2
    assert max(found.directions, key=found.directions.get) in ("direction 0 of wish", "direction 2 of wish")
    assert found.directions["direction 1 of wish"] < 1e-6
    fine = realisability(arm(pf.servo(path(), ["m1", "m2"])), Q0)
    assert fine.realisable and fine.rank == fine.size == 2 and fine.smallest > 0.01
    assert str(fine).startswith("realisable: rank 2")
    with pytest.raises(pf.ModelError, match="no servo constraints"):
        realisability(arm(), Q0)


def test_shares_are_those_of_the_motion_that_is_hardest_to_produce():
    """With unit masses G has known singular vectors; a direction that is used twice counts once, with its whole share."""
    m = pf.mechanism(
        "slides", [pf.body(f"p{i}", 1.0) for i in range(2)],
        [pf.joint(f"x{i}", "prismatic", "world", f"p{i}", axis=(1, 0, 0)) for i in range(2)], gravity=(0, 0, 0),
        actuators=[pf.actuator("push", "x0")])  # fmt: skip
    Z = np.array([[0.8, 0.6], [0.6, 0.8]])  # symmetric: the weakest motion is x0 = -x1, by 0.2
    wish = pf.holonomic("wish", lambda k: ca.vertcat(k.q[0], k.q[1]))
    found = realisability(m.with_(constraints=[pf.servo(wish, lambda k: ca.SX(ca.DM(Z)))]))
    close(found.smallest, 0.2, ALGEBRA, "smallest singular value")
    for shares in (found.rows, found.directions):
        close(list(shares.values()), np.sqrt([0.5, 0.5]), ALGEBRA, "equal shares")
    assert str(found).endswith("weakest effect is that of 'direction 0 of wish', 'direction 1 of wish' on 'wish.0', 'wish.1'")
    near = ca.DM([[1, 0], [np.cos(np.pi / 6), np.sin(np.pi / 6)]])  # the second motion by two directions 30 degrees apart
    lean = realisability(m.with_(constraints=[pf.servo(wish, lambda k: ca.SX(near))]))
    close(lean.smallest, np.sqrt(1 - np.cos(np.pi / 6)), ALGEBRA, "of unit columns")
    close(list(lean.rows.values()), [np.sin(np.pi / 12), np.cos(np.pi / 12)], ALGEBRA, "mostly the second")
    single = [pf.servo(pf.holonomic(f"x{i}", lambda k, i=i: k.q[i]), ["push"]) for i in range(2)]
    twice = realisability(m.with_(constraints=single))
    assert not twice.realisable and twice.rank == 1 and list(twice.directions) == ["push"]
    close([*twice.rows.values(), twice.directions["push"]], [0, 1, 1], ALGEBRA, "of a push on x0 alone")


def stretched(q1: np.ndarray) -> np.ndarray:
    """Starts with the last joint at the angles q1: at 0 the last two links are in line."""
    return np.column_stack([np.full_like(q1, 0.5), np.full_like(q1, 0.8), q1])


def test_unrealisable_in_one_run_of_a_batch():
    """A stretched arm cannot pull its tip in by its last two motors; its neighbours in the batch go on."""
    still = pf.holonomic("reach", lambda k: ca.vertcat(k.position("l2", (1, 0, 0))[:2] - k.position("l0", (1, 0, 0))[:2]))
    m = arm(pf.servo(still, ["m1", "m2"], stiffness=0, damping=20))
    starts = stretched(np.array([0.7, 0.0, -0.9]))
    r = pf.run(m, starts, duration=0.2, step=1e-3)
    assert r.status.values.tolist() == [0, r.status.values[1], 0] and r.status.values[1] >= 2
    assert "not realisable" in pf.results.causes(r)[1] and r.stopped.values[1] == 0
    assert np.isfinite(r.q.values[[0, 2]]).all()
    alone = pf.run(m, starts[0], duration=0.2, step=1e-3)
    assert (alone.q.values == r.q.values[0]).all()


def run_by(integrator: str, m: pf.Mechanism, q: np.ndarray, v: np.ndarray, **law):
    if integrator == "DOP853":
        return run_adaptive(m, q, v, times=np.linspace(0, 3, 301), **law)
    return pf.run(m, q, v, duration=3.0, step=1e-3, scheme=pf.Scheme(integrator=integrator), **law)


@pytest.mark.parametrize("integrator", ["rk4", "euler", "DOP853"])
@pytest.mark.parametrize("as_law", [False, True])
@pytest.mark.parametrize("motors", [["m0", "m1"], ["m1", "m2"]])
def test_a_run_stops_where_the_servo_constraint_becomes_unrealisable(integrator, as_law, motors):
    """Driven into the stretched configuration the run stops there, names the cause, and takes no step unconstrained."""
    x, y = tip(np.array([0.5, 0.8, 0.7]))
    c, s = x / np.hypot(x, y), y / np.hypot(x, y)
    out = pf.holonomic("out", lambda k: k.position("l2", (1, 0, 0))[:2] - ca.vertcat(x + c * k.t, y + s * k.t))
    q = np.array([0.5, 0.8, 0.7])
    v = np.linalg.pinv(_rows(q, np.eye(2))) @ [c, s]
    wish = pf.servo(out, motors)
    r = run_by(integrator, arm(), q, v, control=control.servo_control(wish)) if as_law else run_by(integrator, arm(wish), q, v)
    assert "servo constraint not realisable" in pf.results.causes(r)[0]
    assert 0.04 < float(r.stopped) < 3.0 - np.hypot(x, y)
    before = r.time < r.stopped
    assert np.isfinite(r.q.values[before]).all()
    assert np.abs(r["task_error" if as_law else "servo_error"].values[before]).max() < LARGEST_ERROR


def test_divergence_of_another_rod_is_not_blamed_on_the_servo():
    """A pendulum with negative damping diverges; the servo constraint on the other rod holds to the end and is not at fault."""
    rods = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.1) for n in ("held", "wild")]
    joints = [pf.joint(n, "revolute", "world", n, damping=d) for n, d in (("held", 0.0), ("wild", -50.0))]
    wish = pf.servo(pf.holonomic("angle", lambda k: k.q[0]), ["m"])
    m = pf.mechanism("two rods", rods, joints, constraints=[wish], actuators=[pf.actuator("m", "held")])
    r = pf.run(m, v={"wild": 1.0}, duration=10.0, step=1e-3, backend="interpreter", every=100)
    assert "diverged" in pf.results.causes(r)[0]


def test_units_of_the_directions_do_not_matter():
    """Motors with gears a million apart hold the same motion: directions count by their effect, not by their numbers."""
    wish = path()
    same = [pf.actuator(n, f"j{i}", gear=g) for i, (n, g) in enumerate([("m0", 1.0), ("m1", 1e-3), ("m2", 1e3)])]
    plain, geared = arm(pf.servo(wish, ["m1", "m2"])), arm().with_(actuators=same, constraints=[pf.servo(wish, ["m1", "m2"])])
    a, b = (pf.run(m, Q0, on_path(), duration=0.5, step=1e-3) for m in (plain, geared))
    assert b.status == 0, pf.results.causes(b)
    close(b.q.values, a.q.values, ROLLOUT, "q")
    close(b.servo_force.values * [1e-3, 1e3], a.servo_force.values, ROLLOUT, "moments")
    close(realisability(geared, Q0).smallest, realisability(plain, Q0).smallest, ALGEBRA, "smallest singular value")


def test_servo_refuses_a_target_that_is_not_always_active():
    with pytest.raises(pf.ModelError, match="is always active"):
        pf.servo(pf.constraints.active_while(path(), lambda k: k.t < 1), ["m1", "m2"])


# Mixed geometric and servo constraints.


def slider_crank(*more) -> pf.Mechanism:
    """Crank, rod, and a slider on its own joint along x; a geometric constraint pins the rod's end to the slider."""
    return pf.mechanism(
        "slider-crank",
        [pf.body("crank", 1.0, (0.2, 0, 0), 0.02), pf.body("rod", 1.5, (0.5, 0, 0), 0.15), pf.body("slider", 2.0)],
        [
            pf.joint("crank", "revolute", "world", "crank"),
            pf.joint("rod", "revolute", "crank", "rod", placement=pf.pose((0.4, 0, 0))),
            pf.joint("slider", "prismatic", "world", "slider", axis=(1, 0, 0)),
        ],
        constraints=[pf.holonomic("pin", lambda k: (k.position("rod", (1, 0, 0)) - k.position("slider"))[:2]), *more],
        actuators=[pf.actuator("push", "slider"), pf.actuator("crank motor", "crank")],
        gravity=(0, -9.81, 0),
    )  # fmt: skip


def closed(angle: float) -> np.ndarray:
    rod = np.arcsin(-0.4 * np.sin(angle))
    return np.array([angle, rod - angle, 0.4 * np.cos(angle) + np.cos(rod)])


def turning(k):
    """Residual of the crank's angle, which goes back and forth between 60 and 120 degrees, starting at rest."""
    return k.joint("crank") - np.pi / 2 + np.pi / 6 * ca.cos(2 * k.t)


def test_crank_prescribed_through_a_distant_slider():
    """A push on the slider controls the crank's motion.

    The push is tangent to the surface of its own constraint, e_slider . grad(crank angle) = 0, and acts through the
    mechanism; the reaction of the pin stays ideal.
    """
    by_push, by_motor = (slider_crank(pf.servo(pf.holonomic("turning", turning), [n])) for n in ("push", "crank motor"))
    x = pf.compile_terms(by_push, {"A": lambda T: T.servo.A, "Z": lambda T: T.servo.Z}, backend="numpy", lanes=1)(closed(1.0))
    assert float(x["A"].ravel() @ x["Z"].ravel()) == 0
    r, motor = (pf.run(m, closed(np.pi / 3), duration=3.0, step=1e-3, every=10) for m in (by_push, by_motor))
    assert r.status == 0, pf.results.causes(r)
    close(r.q.values[:, 0], np.pi / 2 - np.pi / 6 * np.cos(2 * r.time.values), ROLLOUT, "the crank follows")
    assert r.violation.max() < 1e-9
    assert np.abs(r.servo_rate.values).max() < 1e-7
    assert np.abs(r.servo_force.values).max() > 5
    close(r.q.values, motor.q.values, ROLLOUT, "one dof: the same motion as by the crank's own motor")


def test_inertia_coupling_alone():
    """In an open chain the last joint's motor controls the first joint's angle: only inertia couples them."""
    wish = pf.holonomic("first", lambda k: k.q[0] - Q0[0] - 0.1 * (1 - ca.cos(3 * k.t)))
    m = arm(pf.servo(wish, ["m2"]))
    r = pf.run(m, Q0, duration=0.5, step=5e-4, every=10)
    assert r.status == 0, pf.results.causes(r)
    close(r.q.values[:, 0], Q0[0] + 0.1 * (1 - np.cos(3 * r.time.values)), ROLLOUT, "the first joint follows")
    assert 0 < realisability(m, Q0).smallest < 1


def test_push_at_the_dead_centre_is_not_realisable():
    """At a dead centre the push cannot turn the crank; the message names both."""
    m = slider_crank(pf.servo(pf.holonomic("turning", turning), ["push"]))
    found = realisability(m, closed(0.0))
    assert not found.realisable and found.smallest < 1e-12
    assert "'turning'" in str(found) and "'push'" in str(found)
    assert realisability(m, closed(np.pi / 3)).realisable
    r = pf.run(m, closed(0.0), duration=0.01, step=1e-3)
    assert r.status >= 2 and "push" in pf.results.causes(r)[0] and "turning" in pf.results.causes(r)[0]
