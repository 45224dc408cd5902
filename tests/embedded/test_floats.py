"""Laws within limits in single precision: the quadratic program, and flights of the thesis against those in double."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.embedded.controller import controller
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trace import trace
from pfaffian.maths import qp
from pfaffian.viewer.laws import PARTS
from pfaffian.viewer.study import folder, load
from tests.embedded.conftest import compiled, compiled_law, law_of_library, run_written_test
from tests.maths.qp_problems import FAMILIES

EACH = 40


def program(n: int, m: int) -> Program:
    given = [ca.SX.sym(name, *shape) for name, shape in (("H", (n, n)), ("u0", (n, 1)), ("W", (m, n)), ("l", (m, 1)))]
    r = qp.nearest(*given)
    return optimise(trace(ca.Function("qp", given, [r.u, r.status], {"cse": True})))


@pytest.mark.parametrize("size", [(3, 6), (6, 12)])
def test_the_quadratic_program_in_floats(size):
    """It is solved where it is in doubles, to the accuracy of floats; inputs reported as solved satisfy limits as accurately.

    Where floats cannot resolve the distance between rows ("narrow", "contradicting"), only the latter is required.
    """
    n, m = size
    made = program(n, m)
    for family, problems in FAMILIES.items():
        p = problems(np.random.default_rng([n, m, *map(ord, family)]), EACH, n, m)
        flat = [np.ascontiguousarray(x.swapaxes(1, -1).reshape(len(x), -1)).astype(np.float32) for x in p]
        u, status = evaluate(made, flat, np.float32)
        assert u.dtype == np.float32 and np.isin(status, (0, 1, 3)).all(), family
        exact, good = pf.control.solve_qp(*p, backend="numpy"), status[:, 0] == qp.SOLVED
        size_of = np.abs(p.u0).max(axis=1)
        with np.errstate(invalid="ignore"):
            # A row through the origin is judged by the size of the inputs around it.
            terms = np.abs(p.l) + np.einsum("rmn,rn->rm", np.abs(p.W), np.abs(u) + 1e-2 * size_of[:, None])
            over = np.where(np.isfinite(p.l), np.einsum("rmn,rn->rm", p.W, u) - p.l, -1.0) / np.maximum(terms, 1e-300)
        assert over[good].max(initial=0) < 1e-4, family
        if family in ("narrow", "contradicting"):
            continue
        same = good == (exact.status == qp.SOLVED)
        assert same.mean() >= 0.95, family
        both = good & (exact.status == qp.SOLVED)
        off = np.abs(u - exact.u).max(axis=1)[both] / size_of[both]
        assert off.max(initial=0) < 2e-3 and np.median(off) < 1e-5, family


def test_an_expression_detects_its_precision():
    x = ca.SX.sym("x")
    made = optimise(trace(ca.Function("f", [x], [qp.in_floats(x), 1e300 * x, 1 / ca.fmax(x, 1e-300)])))
    for value in (-3.0, 0.0, 1.0, 1e5):
        assert evaluate(made, [np.array([value])])[0] == 0
        floats, *_ = evaluate(made, [np.array([value], np.float32)], np.float32)
        assert floats == 1
    _, large, _ = evaluate(made, [np.array([0.5], np.float32)], np.float32)
    assert np.isfinite(large) and large > 1e38
    assert np.isfinite(evaluate(made, [np.zeros(1, np.float32)], np.float32)[2])


# -- flights ---------------------------------------------------------------------------------------------------------------

LIMITS = np.tile([0.3, 7.85], (4, 1))
NAMES = ("x", "y", "z", "qx", "qy", "qz", "qw")


def within_limits(study):
    pair = control.quadcopter_pair("body", study.POLES, heading=(5.0, 0.8), inertia_ratio=0.1)
    law = control.prototype_tracking([pair], control.sampled(NAMES), approach="body", limits=LIMITS)
    return control.discrete(law, 0.005)


@pytest.mark.usefixtures("measuring")
def test_a_quadcopter_s_law_within_limits_flies_in_floats(gcc, tmp_path):
    """A loop and a flip start off their references, so that limits are active: within 1 mm of double, below 8 kB of stack."""
    study = load("konz-quadcopter", folder(), PARTS)
    m, law, flown = study.mechanism(), within_limits(study), {}
    c = controller(law, m)
    for precision in ("double", "single"):
        made = pf.export(law, m, tmp_path, name=precision, precision=precision)
        if precision == "single":
            assert run_written_test(gcc, tmp_path, precision, "-O1").returncode == 0
        assert made.measured_stack < made.stack < 8000 and made.error < 1e-5
        step = compiled_law(gcc, tmp_path, precision, c, precision, "-O1")
        for name in ("looping", "flip"):
            reference = control.turning_series(study.paths()[name], study.TIMES[name], 0.005)

            def law_in_c(t, q, v, reference=reference, step=step):
                out, status = step({"t": t, "q": q, "v": v, "w": reference[min(round(t / 0.005), len(reference) - 1)]})
                assert status == 0
                return out["u"].astype(float)

            q, v = np.r_[0.5, -0.3, 0.6, 0, 0, 0.6, 0.8], np.zeros(6)
            how = {"duration": study.TIMES[name], "step": 0.0025, "every": 2, "record": ["q", "u"]}
            flown[name, precision] = pf.run(m, q, v, control=control.python_law(law_in_c, 0.005), **how)
    for name in ("looping", "flip"):
        one, other = (flown[name, precision] for precision in ("double", "single"))
        u = one["u"].values
        assert (u <= LIMITS[0, 1] + 1e-3).all() and ((np.abs(u - 0.3) < 1e-3) | (np.abs(u - 7.85) < 1e-3)).any()
        apart = np.abs(one["q"].values[:, :3] - other["q"].values[:, :3]).max()
        assert 0 < apart < 1e-3, (name, apart)


class Flown(NamedTuple):
    """One flight by the agent in C.   step: the agent's function, with its own state.   reference: (samples, n)."""

    step: Callable[[dict[str, np.ndarray]], tuple[dict[str, np.ndarray], int]]
    reference: np.ndarray


def measurements(study, craft, terms, q, v, u, capture):
    """Measurements (flights, n) of the study's sensors without noise: port y of the agent, with the newest capture."""
    here = terms(q, v)
    force = here["pull"].reshape(len(q), -1) + np.einsum("rij,rj->ri", here["B"], u)
    v_dot = np.linalg.solve(here["M"], force[..., None])[..., 0]
    x, y, z, w = q[:, 3:7].T
    up = np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1)
    felt = v_dot[:, :3] + np.cross(v[:, 3:6], v[:, :3]) + study.G * up
    turning = [v[:, 3:6] @ study.ASKEW.T, felt @ study.ASKEW.T + study.OFFSET]
    return np.hstack([*turning, q[:, 7 + craft.tilts :], capture, np.zeros((len(q), 1))])


def fly_in_parallel(study, craft, flights):
    """Fly all flights at once, each by its own agent: return q (instants, flights, nq) and the status of each call.
    Captures have another clock than the agent, and servos act in every step.
    """
    m, n, tilts = craft.plant, len(flights), craft.tilts
    terms = pf.compile_terms(m, {"M": lambda T: T.M, "pull": lambda T: T.f - T.c, "B": lambda T: T.B})
    plant = pf.stepper(m, step=study.STEP, runs=n)
    plant.reset(m.neutral(), np.r_[np.zeros(6 + tilts), [craft.hover] * (m.nv - 6 - tilts)])
    u, capture, seen, statuses = np.zeros((n, m.nu)), np.zeros((n, 8)), [], []
    for k in range(len(flights[0].reference) - 1):
        q, v = plant.q, plant.v
        seen.append(q.copy())
        if k % 20 == 13:  # a period earlier than in the study; the stamp accounts for it
            stamp = (1 + study.DRIFT) * study.PERIOD * k + study.AHEAD
            capture = np.hstack([q[:, :7], np.full((n, 1), stamp)])
        y, tilt = measurements(study, craft, terms, q, v, u, capture), np.zeros((n, tilts))
        for i, one in enumerate(flights):
            given = {"t": k * study.PERIOD, "q": q[i], "v": v[i], "y": y[i], "w": one.reference[k + 1]}
            out, status = one.step(given)
            statuses.append(status)
            u[i, tilts:], tilt[i] = out["u"][tilts:], out["signals"][len(out["signals"]) - tilts :]
        for _ in range(round(study.PERIOD / study.STEP)):
            u[:, :tilts] = 1400 * (tilt - plant.q[:, 7 : 7 + tilts]) - 66 * plant.v[:, 6 : 6 + tilts]
            plant.step(u)
    return np.array(seen), np.reshape(statuses, (-1, n))


@pytest.mark.parametrize("name", ["quadcopter", "tricopter"])
def test_the_whole_agent_flies_in_floats(name, gcc, tmp_path):
    """All flights of Table 5.2 with estimator, limits and force control stay within 1 mm of double. [konz25 5.6]"""
    study = load("konz-flight", folder(), PARTS)
    craft = getattr(study, name)()
    law, flights = study.computer(craft), []
    c, reference = controller(law, craft.plant), {n: x for n, x in study.references(name).items() if n in study.FLIGHTS}
    for precision in ("double", "single"):
        made = pf.export(law, craft.plant, tmp_path, name=precision, precision=precision)
        assert made.stack < 8000
        library = compiled(gcc, tmp_path, precision, "-O1")
        flights += [Flown(law_of_library(library, precision, c, precision), goal) for goal in reference.values()]
    seen, statuses = fly_in_parallel(study, craft, flights)
    one, other = np.split(seen, 2, axis=1)
    # In floats a request a few roundings beyond a limit may be reported as inaccurate; the result is as near as floats allow.
    assert not statuses[:, : len(reference)].any() and np.isin(statuses, (0, 4)).all() and (statuses != 0).sum() <= 3
    for i, (flight, goal) in enumerate(reference.items()):
        off = np.linalg.norm(one[:, i, :3] - goal[: len(one), :3], axis=1)
        assert off.max() < 0.1, (flight, off.max())
        apart = np.abs(one[:, i, :3] - other[:, i, :3]).max()
        assert 0 < apart < 1e-3, (flight, apart)
    turned = 1 - 2 * (one[..., 3] ** 2 + one[..., 4] ** 2)
    assert name == "tricopter" or (turned.min(axis=0)[1:] < -0.99).all()  # upside down
