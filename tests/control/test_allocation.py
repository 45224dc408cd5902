"""Allocation by reactions and allocation by motions agree; eliminating joints from the task changes nothing."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import acceleration, allocation
from pfaffian.terms.terms import Terms, symbols


def chain(links: int = 9) -> pf.Mechanism:
    """A chain in space with its end on a line; its links of 1 m turn about z, y and x in turn."""
    axes = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    bodies = [pf.body(f"b{i}", 1.0 + 0.1 * i, (0.5, 0.05, 0), (0.02, 0.09, 0.09)) for i in range(links)]
    joints = []
    for i in range(links):
        parent, place = ("world", pf.pose()) if i == 0 else (f"b{i - 1}", pf.pose((1, 0, 0)))
        joints.append(pf.joint(f"j{i}", "revolute", parent, f"b{i}", axis=axes[i % 3], placement=place))
    line = pf.closure("line", "point-on-line", "world", f"b{links - 1}", placement_b=pf.pose((1, 0, 0)))
    return pf.actuate_all(pf.mechanism("chain", bodies, joints, constraints=[line]))


def states(m: pf.Mechanism, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(2)
    return [(pf.random_configuration(m, random), random.normal(size=m.nv)) for _ in range(count)]


@pytest.mark.parametrize("force", [False, True], ids=["motion", "motion and force"])
def test_both_allocations_give_the_same_inputs(force, monkeypatch):
    m = chain()
    m = m.with_(actuators=[a for a in m.actuators if a.name not in ("j2", "j5")])
    T, tau = symbols(m), ca.SX.sym("tau", m.nv)
    weight = ca.SX(ca.DM(np.linspace(0.5, 2, m.nu)))
    prescribed = ((), ca.SX(0, 1))
    if force:
        # Two passive joints under two rows determine all reactions; a single passive joint leaves one of them free.
        m = m.with_(actuators=[a for a in pf.actuate_all(m).actuators if a.name != "j2"])
        T = Terms(m, T.q, T.v, ca.SX.sym("u", m.nu), T.t)
        weight = ca.SX(ca.DM(np.linspace(0.5, 2, m.nu)))
        prescribed = ((1,), ca.SX(3.0))
    a = allocation.allocate(T, tau, weight, *prescribed)
    monkeypatch.setattr(allocation, "_direct", lambda B: None)
    b = allocation.allocate(T, tau, weight, *prescribed)
    f = ca.Function("f", [T.q, T.v, T.t, tau], [a.u, b.u, ca.vertcat(*a[1:3], *b[1:3])])
    random = np.random.default_rng(4)
    for q, v in states(m, 10):
        x, y, faults = (np.array(r) for r in f(q, v, 0, random.normal(size=m.nv)))
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(y).max())
        assert not faults.any()


@pytest.mark.parametrize("chosen", [(), (1,)], ids=["motion", "motion and force"])
def test_allocations_agree_where_every_joint_is_driven(chosen, monkeypatch):
    """One row is written twice, so that two multipliers share it, and the gears have either sign."""
    m = chain()
    m = m.with_(
        constraints=[*m.constraints, pf.holonomic("again", lambda k: k.position("b8", (1, 0, 0))[0])],
        actuators=[pf.actuator(f"m{i}", f"j{i}", gear=(-1.0) ** i * (1 + i)) for i in range(m.nv)],
    )
    T, tau, lam = symbols(m), ca.SX.sym("tau", m.nv), ca.SX.sym("lam", len(chosen))
    weight = ca.SX(ca.DM(np.linspace(0.5, 2, m.nu)))
    a = allocation.allocate(T, tau, weight, chosen, lam)
    monkeypatch.setattr(allocation, "_direct", lambda B: None)
    b = allocation.allocate(T, tau, weight, chosen, lam)
    f = ca.Function("f", [T.q, T.v, T.t, tau, lam], [a.u, b.u, ca.vertcat(*a[1:3], *b[1:3])])
    random = np.random.default_rng(4)
    for q, v in states(m, 10):
        x, y, faults = (np.array(r) for r in f(q, v, 0, random.normal(size=m.nv), random.normal(size=len(chosen))))
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * np.abs(y).max())
        assert not faults.any()


def test_eliminating_joints_from_the_task_changes_nothing(monkeypatch):
    m = chain(12)
    names = [f"j{i}" for i in (0, 2, 3, 5, 6, 8, 9, 11)]
    task = control.stack(control.point("b6", axes=(2,)), control.joints(*names))
    T = symbols(m)

    def accelerations(least: int) -> tuple[np.ndarray, int]:
        monkeypatch.setattr(acceleration, "WORTH_ELIMINATING", least)
        a = acceleration.task_acceleration(T, task, control.set_point([0.1] * 9), ca.SX(0, 1), 20.0, 5.0, 2.0)
        f = ca.Function("f", [T.q, T.v, T.t], [ca.vertcat(a.v_dot, a.infeasible)])
        return np.array([np.array(f(q, v, 0)).ravel() for q, v in states(m, 10)]), f.n_nodes()

    (out, fewer), (within, most) = accelerations(8), accelerations(99)
    np.testing.assert_allclose(out, within, rtol=0, atol=1e-8 * np.abs(within).max())
    assert fewer < 0.8 * most


@pytest.mark.parametrize("count", [4, 12], ids=["few joints", "many joints"])
def test_tasks_that_the_constraints_forbid_are_infeasible(count):
    """Each joint has a task of its own and the end is on a line: at rest, accelerations along the line are feasible, others
    are not. Many such joints are eliminated from the problem, which must not hide a contradiction."""
    m = chain(count)
    names = [f"j{i}" for i in range(count)]
    goal = control.sampled(names)
    T, w = symbols(m), ca.SX.sym("w", len(goal.w_names))
    a = acceleration.task_acceleration(T, control.joints(*names), goal, w, 1.0, 0.0)
    f = ca.Function("f", [T.q, T.v, T.t, w], [T.A, a.v_dot, a.infeasible])

    def pursued(q: np.ndarray, v_dot: np.ndarray) -> list[ca.DM]:
        return f(q, np.zeros(m.nv), 0, np.concatenate([q, np.zeros(count), v_dot]))

    for q, along in states(m, 4):
        A = np.array(pursued(q, along)[0])
        along -= np.linalg.pinv(A, rcond=1e-9) @ (A @ along)
        _, v_dot, infeasible = pursued(q, along)
        assert not float(infeasible)
        np.testing.assert_allclose(np.array(v_dot).ravel(), along, rtol=0, atol=1e-9)
        across = along + 0.1 * np.linalg.pinv(A, rcond=1e-9)[:, 0]
        assert float(pursued(q, across)[2])


def test_sign_changes():
    m = pf.mechanism("mass", [pf.body("b", 1.0)], [pf.joint("z", "prismatic", "world", "b")])
    r = pf.run(m, {"z": 0.0}, {"z": 9.81}, duration=3.0, step=0.01)
    up = pf.results.sign_changes(r, "v", "z")
    np.testing.assert_allclose(up.times, [1.0], atol=1e-9)
    assert up.rising.tolist() == [False]
    with pytest.raises(pf.RunError, match="no entry"):
        pf.results.sign_changes(r, "v", "y")
    with pytest.raises(pf.RunError, match="no 'force'"):
        pf.results.sign_changes(r, "force")
