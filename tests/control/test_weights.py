"""Freedom that a task leaves: inputs of least weighted norm, and damping of the motion left open."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import nnls

import pfaffian as pf
from pfaffian import control
from pfaffian.control import allocation
from tests.control.test_projection import null
from tests.control.test_wrenches import DESIGNED, at, close_loop, wave
from tests.random_mechanisms import Case, closing, on_velocity, placements, random_tree
from tests.tolerance import close

R = [0.3, 2.0, 1.0, 4.0]
TASK, GAINS = control.joints("j0", "j1"), {"stiffness": 50.0, "damping": 9.0}
QUASI = {"velocity_gain": 4.0, "position_gain": 30.0}
ROW = "line.vx"
PULL = control.set_point([2.0])


@cache
def chain() -> Case:
    """Four driven joints, the tip on a line: two rows, two free motions, two inputs to spare."""
    random = np.random.default_rng(8)
    m = pf.actuate_all(random_tree(random, ["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2]))
    q = pf.random_configuration(m, random)
    m = m.with_(constraints=[closing("line", "point-on-line", "world", "b3", random, placements(m, q))])
    return Case(m, q, on_velocity(m, q, random.normal(size=4), 0.3), np.zeros(4), 0.3)


LAWS = {
    "projected": lambda R: control.projected(TASK, wave(2), **GAINS, weight=R),
    "hybrid": lambda R: control.hybrid_force(TASK, wave(2), PULL, [ROW], **GAINS, weight=R),
    "tracking": lambda R: control.tracking(wave(4), **QUASI, weight=R),
    "regulation": lambda R: control.regulation(control.set_point([0.1, 0.2, 0.3, 0.4]), **QUASI, weight=R),
    "tracking with force": lambda R: control.tracking(wave(4), **QUASI, force=PULL, rows=[ROW], weight=R),
    "regulation with force": lambda R: control.regulation(
        control.set_point([0.1, 0.2, 0.3, 0.4]), **QUASI, force=PULL, rows=[ROW], weight=R
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_inputs_are_the_least_by_weight(name):
    """R u is orthogonal to every change of u that changes neither motion nor controlled multiplier. (46) (60)"""
    case, found = chain(), {}
    for given in (R, None):
        loop = close_loop(case.m, LAWS[name](given))
        u, A, B, v_dot, faults = at(
            case, loop, loop.command.u, ca.vec(loop.T.A), ca.vec(loop.T.B), loop.v_dot, loop.command.faults
        )
        assert not faults.any()
        A, B = A.reshape(2, 4, order="F"), B.reshape(4, 4, order="F")
        left = A[1:] if name == "hybrid" or "force" in name else A
        idle = np.linalg.solve(B, left.T)
        slope = idle.T @ (np.array(given or np.ones(4)) * u)
        close(slope, 0 * slope, DESIGNED, f"gradient along idle inputs, {name}", np.abs(idle).max() * np.abs(u).max())
        found[given is None] = u, v_dot
    close(found[True][1], found[False][1], DESIGNED, "the weight moves nothing")
    assert np.abs(found[True][0] - found[False][0]).max() > 0.01 * np.abs(found[True][0]).max()


def test_motion_left_open_is_damped_in_the_metric_of_inertia():
    """Where neither constraints nor task act, N^T (M (v_dot + d v) + c_v) = 0 for projected and hybrid, the accelerations of
    all masses, c_v without gravity; operational space, which serves trees, leaves out c_v."""
    case, d, task = chain(), 3.0, control.joints("j1")
    rest = Case(case.m.with_(constraints=[]), case.q, case.v, case.u, case.t)
    gains = {"stiffness": 50.0, "damping": 9.0}
    for c, by_mass, law in (
        (case, 1, control.projected(task, wave(1), **gains, rest_damping=d)),
        (case, 1, control.hybrid_force(task, wave(1), PULL, [ROW], **gains, rest_damping=d)),
        (rest, 0, control.operational_space(task, wave(1), **gains, joint_damping=d)),
    ):
        loop = close_loop(c.m, law)
        A, M, turning, v_dot = at(c, loop, ca.vec(loop.T.A), ca.vec(loop.T.M), loop.T.velocity_force, loop.v_dot)
        J = np.eye(4)[1:2]
        N = null(np.vstack([A.reshape(-1, 4, order="F"), J]))
        slope = N.T @ (M.reshape(4, 4) @ (v_dot + d * c.v) + by_mass * turning)
        assert N.shape[1] == 4 - 1 - len(A) // 4
        close(
            slope,
            0 * slope,
            DESIGNED,
            "M (v_dot + d v) + c_v along the motion left open",
            np.abs(M).max() * np.abs(v_dot).max(),
        )
        e_ddot, e_dot, e = at(
            c,
            loop,
            loop.rate(loop.command.signals["task_error_rate"]),
            *[loop.command.signals[n] for n in ("task_error_rate", "task_error")],
        )
        close(e_ddot, -50.0 * e - 9.0 * e_dot, DESIGNED, "the task", 1 + np.abs(e_ddot).max())


def test_integral_and_gain_of_the_force_loop():
    """The commanded force is lambda_d + G_F e + G_I z with e = lambda_d - lambda: (G_F + 1) e_dot + G_I e = 0. (51)"""
    case, z, G_F, G_I = chain(), 0.7, 2.0, 20.0
    law = control.hybrid_force(TASK, wave(2), PULL, [ROW], **GAINS, force_gain=G_F, integral_gain=G_I, integral_start=[z])
    r = pf.run(case.m, case.q, case.v, duration=0.03, step=1e-3, start=case.t, control=law, backend="interpreter")
    assert int(r.status) == 0, pf.results.causes(r)
    e = r.force_error.values.ravel()
    # e = (lambda_d - lambda) and lambda = lambda_d + G_F e + G_I z: e = -G_I z / (1 + G_F).
    close(e[0], -G_I * z / (1 + G_F), DESIGNED, "force error at the start")
    close(e, e[0] * np.exp(-G_I / (1 + G_F) * (r.time.values - case.t)), 1e-8, "force error", abs(e[0]))
    close(r.multiplier.sel(row=ROW).values, 2.0 - e, DESIGNED, "multiplier")


@pytest.mark.parametrize("cut", [(0.8, None), (0.8, 0.5), (0.95, 0.0)])
@pytest.mark.parametrize("direct", [True, False], ids=["by reaction", "by motion"])
def test_inputs_within_limits_are_the_least_of_those_with_the_motion(cut, direct, monkeypatch):
    """R u + y is orthogonal to every change of u that moves nothing, with y >= 0 outwards at active limits."""
    case = chain()
    if not direct:
        monkeypatch.setattr(allocation, "_direct", lambda B: None)
    free = within(case, None)
    first, second = np.argsort(-np.abs(free.u))[:2]
    limits = np.tile([-np.inf, np.inf], (4, 1))
    for i, part in zip((first, second), cut, strict=True):
        if part is not None:
            limits[i, int(free.u[i] > 0)] = part * free.u[i]
    limited = within(case, limits)
    assert not free.faults.any() and not limited.faults.any()
    size = np.abs(free.u).max()
    close(limited.v_dot, free.v_dot, 1e-9, "the motion")
    assert (limited.u >= limits[:, 0] - 1e-12 * size).all() and (limited.u <= limits[:, 1] + 1e-12 * size).all()
    high, low = (np.isclose(limited.u, x, rtol=1e-9).astype(float) for x in limits.T[::-1])
    at_limit = np.hstack([np.diag(high), -np.diag(low)])
    assert at_limit.any()
    _, left = nnls(limited.idle.T @ at_limit, -limited.idle.T @ (np.array(R) * limited.u))
    assert left <= 1e-9 * np.abs(limited.idle.T).max() * size
    assert (np.array(R) * limited.u**2).sum() > (np.array(R) * free.u**2).sum()


class Inputs(NamedTuple):
    u: np.ndarray
    v_dot: np.ndarray
    faults: np.ndarray
    idle: np.ndarray


def within(case: Case, limits: np.ndarray | None) -> Inputs:
    """Inputs of the law at the state of the case, and changes of inputs (4, 2) that move nothing."""
    loop = close_loop(case.m, control.projected(TASK, wave(2), **GAINS, weight=R, limits=limits))
    values = (loop.command.u, loop.v_dot, loop.command.faults, ca.vec(loop.T.A), ca.vec(loop.T.B))
    u, v_dot, faults, A, B = at(case, loop, *values)
    return Inputs(u, v_dot, faults, np.linalg.solve(B.reshape(4, 4, order="F"), A.reshape(2, 4, order="F").T))


def test_limits_declared_by_the_actuators():
    case = chain()
    half = np.abs(within(case, None).u).max() / 2
    limited = case.m.with_(actuators=[replace(a, limits=(-2 * half, half)) for a in case.m.actuators])
    given = within(case, [(-2 * half, half)] * 4).u
    assert np.array_equal(within(replace(case, m=limited), "actuators").u, given)
    assert not np.array_equal(given, within(case, None).u)


def test_limits_that_are_not_reached_change_no_bit():
    case = chain()
    assert np.array_equal(within(case, [(-1e6, 1e6)] * 4).u, within(case, None).u)


def test_a_motion_beyond_all_limits_is_a_fault():
    case = chain()
    u = np.abs(within(case, None).u).max()
    assert within(case, [(-u / 100, u / 100)] * 4).faults.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "limits, message",
    [
        ([(0, 1)], 'give "actuators" for their declared limits, or .low, high. for each of 4 actuators'),
        ([(1, -1)] * 4, "limits of j0 .*wrong way round"),
        (3.0, "each of 4 actuators"),
        ([(-np.inf, np.inf)] * 4, "none of them is finite"),
    ],
)
def test_wrong_limits_are_named(limits, message):
    with pytest.raises(pf.ModelError, match=message):
        within(chain(), limits)
