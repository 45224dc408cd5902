"""A five-bar linkage under nonlinear model predictive control: 100 times a second ipopt plans 0.2 s ahead.

The linkage has two motors and a closed loop, and is not reduced to independent coordinates: the plan is in all of x = [q; v],
and it predicts with the step of `run`, which includes the correction onto the closure. CasADi takes the step's derivatives from
the library. The cost is quadratic in the plan, so the Hessian of the cost alone is used (Gauss-Newton). Each solve starts from
the previous plan. The machine itself is simulated with steps that are twenty times shorter than those of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

AHEAD, STEP, FINE = 10, 0.02, 0.001
"""Number of steps of the plan, their length [s], and the length of the machine's steps [s]."""
EVERY, SOLVES = 10, 40
"""Steps of the machine from one solve to the next, and number of solves."""
LIMIT = 20.0
"""Largest torque [N m]."""
START, GOAL = (1.76, -0.95, 1.22, 1.05), (1.94, -1.44, 1.0, 1.53)
"""Guesses of the joint angles [rad]."""
WEIGHTS = np.array([100.0, 0.0, 100.0, 0.0, 1.0, 0.0, 1.0, 0.0])
"""Weights of x in the cost, nonzero for the two motors; torques have the weight 1e-3."""


def mechanism() -> pf.Mechanism:
    bodies = [pf.body(name, 1.0, com=(0.25, 0, 0), inertia=0.05) for name in ("a", "b", "c", "d")]
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    joints = [
        pf.joint("left", parent="world", child="a", **hinge),
        pf.joint("left elbow", parent="a", child="b", placement=(0.5, 0, 0), **hinge),
        pf.joint("right", parent="world", child="c", placement=(0.4, 0, 0), **hinge),
        pf.joint("right elbow", parent="c", child="d", placement=(0.5, 0, 0), **hinge),
    ]
    tip = pf.closure("tip", "spherical", "b", "d", placement_a=(0.5, 0, 0), placement_b=(0.5, 0, 0))
    motors = [pf.actuator(name, name, limits=(-LIMIT, LIMIT)) for name in ("left", "right")]
    return pf.mechanism("five-bar", bodies, joints, constraints=[tip], actuators=motors)


def solver(m: pf.Mechanism, backend: str = "auto") -> ca.Function:
    """Solver from (initial plan x0, p = [current x; goal]) to the plan [u; x], column by column; backend: see
    `casadi_function`."""
    n, now, goal = m.nq + m.nv, ca.MX.sym("now", m.nq + m.nv), ca.MX.sym("goal", m.nq)
    u, x = ca.MX.sym("u", m.nu, AHEAD), ca.MX.sym("x", n, AHEAD)
    before = ca.horzcat(now, x[:, :-1])
    times = ca.DM.zeros(1, AHEAD), ca.DM(0, AHEAD)
    step = pf.casadi_function(m, "step", step=STEP, hessian=False, backend=backend)
    gaps = ca.vec(x - step.map(AHEAD)(before, u, times[1], times[0]))
    A, B, _, _ = step.jacobian().map(AHEAD)(before, u, times[1], times[0], ca.DM(n, AHEAD))
    by_x = [ca.horzcat(ca.MX(n, n * (k - 1)), A[:, n * k : n * (k + 1)], ca.MX(n, n * (AHEAD - k))) for k in range(1, AHEAD)]
    by_u = ca.diagcat(*[-B[:, m.nu * k : m.nu * (k + 1)] for k in range(AHEAD)])
    J = ca.horzcat(by_u, ca.MX.eye(n * AHEAD) - ca.vertcat(ca.MX(n, n * AHEAD), *by_x))
    off = x - ca.repmat(ca.vertcat(goal, ca.DM.zeros(m.nv)), 1, AHEAD)
    importance = ca.repmat(ca.DM(WEIGHTS), 1, AHEAD)
    importance[:, -1] *= 5
    cost = ca.sum1(ca.vec(importance * off**2)) / 2 + 1e-3 * ca.sumsqr(u) / 2
    plan, p = ca.veccat(u, x), ca.vertcat(now, goal)
    H = ca.triu(ca.hessian(cost, plan)[0])
    f, g = ca.MX.sym("f"), ca.MX.sym("g", gaps.numel())
    derivatives = {
        "jac_g": ca.Function("nlp_jac_g", [plan, p], [gaps, J], ["x", "p"], ["g", "jac_g_x"]),
        "hess_lag": ca.Function("nlp_hess_l", [plan, p, f, g], [f * H], ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"]),
    }
    quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
    near = {"ipopt.warm_start_init_point": "yes", "ipopt.warm_start_bound_push": 1e-3, "ipopt.warm_start_mult_bound_push": 1e-3}
    how = {"ipopt.tol": 1e-3, "ipopt.mu_strategy": "adaptive"}
    return ca.nlpsol("plan", "ipopt", {"x": plan, "f": cost, "g": gaps, "p": p}, {**quiet, **near, **how, **derivatives})


def run() -> xr.Dataset:
    m = mechanism()
    (start, _), (goal, _) = (tuple(np.ravel(x) for x in pf.assemble(m, guess)[:2]) for guess in (START, GOAL))
    solve, machine = solver(m), pf.stepper(m, step=FINE)
    machine.reset(start)
    bounds = np.concatenate([np.full(m.nu * AHEAD, LIMIT), np.full(2 * m.nq * AHEAD, np.inf)])
    found = {"x": np.concatenate([np.zeros(m.nu * AHEAD), np.tile(np.concatenate([start, 0 * start]), AHEAD)])}
    found |= {"lam_x": 0, "lam_g": 0}
    rows = []
    for _ in range(SOLVES):
        now = np.concatenate([machine.q, machine.v, goal])
        guess = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}
        found = solve(**guess, p=now, lbx=-bounds, ubx=bounds, lbg=0, ubg=0)
        u = np.array(found["x"]).ravel()[: m.nu]
        rows.append([*machine.q, *u, solve.stats()["iter_count"], solve.stats()["success"]])
        machine.step(u, steps=EVERY)
    table = np.array(rows)
    on = pf.casadi_function(m, "constraints", backend="casadi")(q=machine.q, v=machine.v)
    return xr.Dataset(
        {
            "q": (("time", "joint"), table[:, :4]), "u": (("time", "input"), table[:, 4:6]),
            "iterations": ("time", table[:, 6]), "success": ("time", table[:, 7]),
            "goal": ("joint", goal), "end": ("joint", machine.q), "off": float(ca.norm_inf(on["phi"])),
        },
        coords={"time": FINE * EVERY * np.arange(SOLVES), "joint": list(m.q_names), "input": list(m.u_names)},
    )  # fmt: skip


def figures(result: xr.Dataset) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.2)
    angles, count = figure.subplots(1, 2)
    for name in ("left", "right"):
        (line,) = angles.plot(result["time"], result["q"].sel(joint=name), label=name)
        angles.axhline(float(result["goal"].sel(joint=name)), linestyle=":", color=line.get_color())
    angles.set(xlabel="time [s]", ylabel="angle [rad]", title="motors and their goals")
    angles.legend()
    count.step(result["time"], result["iterations"], where="post")
    count.set(xlabel="time [s]", ylabel="iterations of a solve", ylim=(0, None))
    return {"five_bar": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    yield Claim("share of solves that converge", float(result["success"].mean()), 1, 0, "ipopt")
    yield Claim("most iterations of a solve", float(result["iterations"].max()), 10, relation="at most", source="100 Hz")
    motors = ["left", "right"]
    left = float(np.abs(result["end"] - result["goal"]).sel(joint=motors).max())
    yield Claim("the motors' distance from their goals after 0.4 s [rad]", left, 0.02, relation="at most", source="ours")
    yield Claim("|phi| at the end [m]", float(result["off"]), 1e-9, relation="at most", source="ours")
    yield Claim("largest torque [N m]", float(np.abs(result["u"]).max()), LIMIT + 1e-6, relation="at most", source="its limit")
