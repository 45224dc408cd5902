"""Designed error dynamics of the laws on random mechanisms: redundant, driven and rolling rows, a motor on each joint."""

from __future__ import annotations

import casadi as ca
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pfaffian as pf
from pfaffian import control
from pfaffian.states.system import as_system
from pfaffian.terms.pfaffian import row_names
from tests.control.test_projection import null, well_posed
from tests.control.test_wrenches import Loop, at, close_loop
from tests.random_mechanisms import Case, constrained, matrices
from tests.simulations import simulation
from tests.tolerance import ALGEBRA, close

SOLVES = 1e4
"""Factor for the rounding of several solves: law and plant each factor M, orthonormalise rows and solve for the inputs."""

TASK_CLEAR = 0.05
"""Smallest allowed singular value of the task within the free motions, in the metric of M."""

FORCE = control.set_point([2.0])
CLOSED = ("spherical", "point-on-line", "point-on-plane")


@st.composite
def machines(draw: st.DrawFn, extras: tuple[str, ...] = ("duplicate", "driven", "rolling"), most: int = 5) -> Case:
    """Cases of three to `most` one-dof joints, each with a motor, one closure, further rows, springs, dampers and wrenches."""
    kinds = draw(st.lists(st.sampled_from(("revolute", "prismatic")), min_size=3, max_size=most))
    parents = [draw(st.integers(-1, i - 1)) for i in range(len(kinds))]
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    more = draw(st.lists(st.sampled_from(extras), max_size=2)) if extras else []
    return constrained(random, kinds, parents, [draw(st.sampled_from(CLOSED))], more)


def task_of(case: Case) -> tuple[control.Task, int, float]:
    """Task of one or two combinations of the joints' coordinates, its size, and a condition number of the whole problem."""
    known = well_posed(case)
    N = null(known["A"])
    N = N @ np.linalg.inv(np.linalg.cholesky(N.T @ known["M"] @ N)).T
    k = min(N.shape[1], 2)
    assume(k)
    C = np.random.default_rng(17).normal(size=(k, case.m.nq))
    s = np.linalg.svd(C @ N, compute_uv=False)
    assume(s[-1] > TASK_CLEAR)
    return (lambda m: ca.DM(C) @ m.q), k, np.linalg.cond(known["M"]) * (s[0] / s[-1]) ** 2 * (1 + np.abs(known["b"]).max())


def moving(k: int) -> control.Reference:
    return control.function_of_time(lambda t: [ca.sin((2 + i) * t + i) for i in range(k)], k)


def linear(loop: Loop, case: Case, G_P: list, G_D: list) -> tuple[np.ndarray, np.ndarray, float]:
    """e_ddot, its designed value -G_D e_dot - G_P e, and the size of the numbers that they are computed from."""
    e, e_dot = (loop.command.signals[n] for n in ("task_error", "task_error_rate"))
    here = at(case, loop, loop.rate(e_dot), e, e_dot, loop.v_dot, loop.command.u, loop.command.faults)
    found, e, e_dot, v_dot, u, faults = here
    assert not faults.any()
    return found, -(np.array(G_D) * e_dot + np.array(G_P) * e), 1 + np.abs(v_dot).max() + np.abs(u).max()


@given(case=machines())
@settings(max_examples=8)
def test_projected_law_gives_the_designed_error(case):
    """e_ddot + G_D e_dot + G_P e = 0, whatever the mechanism and its constraints. [aghili05 (44)]"""
    task, k, cond = task_of(case)
    G_P, G_D = [30.0, 70.0][:k], [9.0, 14.0][:k]
    loop = close_loop(case.m, control.projected(task, moving(k), stiffness=G_P, damping=G_D, rest_damping=2.0))
    found, expected, size = linear(loop, case, G_P, G_D)
    close(found, expected, ALGEBRA * cond * SOLVES, "e_ddot", size)


@given(case=machines(extras=("driven",), most=4))
@settings(max_examples=6)
def test_hybrid_law_gives_the_designed_error_and_force(case):
    """The error is as designed, and without gains of the force loop the multiplier is the desired one. [aghili05 (52)]"""
    task, k, cond = task_of(case)
    G_P, G_D, rows = [30.0, 70.0][:k], [9.0, 14.0][:k], row_names(pf.symbols(case.m).kinematics)
    A = matrices(case, {"A": lambda T: T.A})["A"]
    assume(np.linalg.svd(A, compute_uv=False).min() > TASK_CLEAR)  # redundant rows share a force
    law = control.hybrid_force(task, moving(k), FORCE, rows[:1], stiffness=G_P, damping=G_D, rest_damping=2.0)
    loop = close_loop(case.m, law)
    found, expected, size = linear(loop, case, G_P, G_D)
    close(found, expected, ALGEBRA * cond * SOLVES, "e_ddot", size)
    (reaction,) = at(case, loop, loop.reaction)
    lam = np.linalg.lstsq(A.T, reaction, rcond=1e-9)[0]
    close(lam[0], 2.0, ALGEBRA * cond * SOLVES, "multiplier", size)


def test_force_loop_has_the_designed_error():
    """(1 + G_F) e_f_dot + G_I e_f = 0: e_f = -G_I z / (1 + G_F) and z_dot = e_f, at any z. [aghili05 (50)]"""
    random, G_F, G_I = np.random.default_rng(6), 1.5, 6.0
    case = constrained(random, ["revolute", "prismatic", "revolute"], [-1, 0, 1], ["point-on-plane"], [])
    gains = {"stiffness": 30.0, "damping": 9.0, "rest_damping": 2.0, "force_gain": G_F, "integral_gain": G_I}
    row = row_names(pf.symbols(case.m).kinematics)[:1]
    system = simulation(
        as_system(case.m), pf.Scheme(), control.hybrid_force(control.joints("j0"), moving(1), FORCE, row, **gains)
    )
    ends = np.cumsum(list(system.traced.sizes.values()))
    at_force = ends[list(system.traced.sizes).index("force_error")] - 1
    for z in (0.0, 0.8):
        x, w = np.concatenate([case.q, case.v, [z]]), np.zeros(len(system.w_names))
        rate = np.array(system.traced.rhs(x, w, ca.DM(0, 1), case.t)[0]).ravel()
        e_f = np.array(system.traced.observe(x, w, ca.DM(0, 1), case.t)).ravel()[at_force]
        close(e_f, -G_I * z / (1 + G_F), ALGEBRA * SOLVES, "force error", 10.0)
        close(rate[-1], e_f, ALGEBRA, "what the integral gathers", 1.0)


@given(case=machines())
@settings(max_examples=8)
def test_tracking_law_bounds_its_error(case):
    """eps^T eps_dot = -eps^T K_d eps, Gamma_r being skew: |eps| falls at least as exp(-min K_d t). [aghili08 (42) (43)]"""
    known = well_posed(case)
    K_d = np.linspace(2.0, 9.0, case.m.nv)
    law = control.tracking(moving(case.m.nq), velocity_gain=list(K_d), position_gain=5.0)
    loop = close_loop(case.m, law)
    eps = loop.command.signals["eps"]
    half_rate, eps, v_dot, faults = at(case, loop, ca.dot(eps, loop.rate(eps)), eps, loop.v_dot, loop.command.faults)
    assert not faults.any()
    size = (1 + np.abs(v_dot).max()) * (1 + np.abs(eps).max()) * np.sqrt(np.abs(known["M"]).max() * case.m.nv)
    close(half_rate, [-(K_d * eps) @ eps], ALGEBRA * np.linalg.cond(known["M"]) * SOLVES, "eps eps_dot", size)
    assert half_rate[0] <= -2.0 * eps @ eps + ALGEBRA * np.linalg.cond(known["M"]) * SOLVES * size


@given(case=machines(extras=("duplicate",), most=3))
@settings(max_examples=3)
def test_tracking_error_keeps_its_bound_in_a_run(case):
    """Over twenty steps: |eps(t)| <= |eps(0)| exp(-min K_d t). [aghili08 (43)]"""
    well_posed(case)
    K_d = np.linspace(8.0, 20.0, case.m.nv)
    law = control.tracking(moving(case.m.nq), velocity_gain=list(K_d), position_gain=5.0)
    r = pf.run(case.m, case.q, case.v, duration=0.02, step=1e-3, start=case.t, control=law, backend="interpreter")
    assume(int(r.status) == 0)
    eps = np.linalg.norm(r.eps.values, axis=1)
    bound = eps[0] * np.exp(-8.0 * (r.time.values - case.t))
    assert (eps <= bound * (1 + 1e-6) + 1e-9).all()
    assert (eps >= eps[0] * np.exp(-20.0 * (r.time.values - case.t)) * (1 - 1e-6) - 1e-9).all()
