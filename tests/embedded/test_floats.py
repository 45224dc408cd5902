"""Laws within limits in single precision: the quadratic program, and the flights of the thesis beside those in double."""

from __future__ import annotations

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
from tests.embedded.conftest import bound, said_by_test
from tests.maths.qp_problems import FAMILIES

EACH = 40


def program(n: int, m: int) -> Program:
    given = [ca.SX.sym(name, *shape) for name, shape in (("H", (n, n)), ("u0", (n, 1)), ("W", (m, n)), ("l", (m, 1)))]
    r = qp.nearest(*given)
    return optimise(trace(ca.Function("qp", given, [r.u, r.status], {"cse": True})))


@pytest.mark.parametrize("size", [(3, 6), (6, 12)])
def test_the_quadratic_program_in_floats(size):
    """Solved where it is in doubles, to what floats have; what it calls solved is within its limits to their digits.

    Where rows miss each other by less than floats tell ("narrow", "contradicting"), only the last holds.
    """
    n, m = size
    made = program(n, m)
    for family, problems in FAMILIES.items():
        p = problems(np.random.default_rng([n, m, *map(ord, family)]), EACH, n, m)
        flat = [np.ascontiguousarray(x.swapaxes(1, -1).reshape(len(x), -1)).astype(np.float32) for x in p]
        u, status = evaluate(made, flat, np.float32)
        assert u.dtype == np.float32 and np.isin(status, (0, 1, 3)).all(), family
        exact, good = pf.solve_qp(*p, backend="numpy"), status[:, 0] == qp.SOLVED
        size_of = np.abs(p.u0).max(axis=1)
        with np.errstate(invalid="ignore"):
            # A row that is met at the origin is judged by what is around it.
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


def test_an_expression_finds_out_how_it_is_computed():
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
    own = control.quadcopter_pair("body", study.POLES, heading=(5.0, 0.8), share=0.1)
    law = control.prototype_tracking([own], control.sampled(NAMES), approach="body", limits=LIMITS)
    return control.discrete(law, 0.005)


def test_a_quadcopter_s_law_within_limits_flies_in_floats(gcc, tmp_path):
    """A looping and a flip from a start beside them, so that limits are met: within 1 mm of the law in double, below 8 kB."""
    study = load("konz-quadcopter", folder(), PARTS)
    m, law, flown = study.mechanism(), within_limits(study), {}
    c = controller(law, m)
    for precision in ("double", "single"):
        made = pf.export(law, m, tmp_path, name=precision, precision=precision)
        if precision == "single":
            assert said_by_test(gcc, tmp_path, precision, "-O1").returncode == 0
        assert made.measured_stack < 8000 and made.error < 1e-5
        step = bound(gcc, tmp_path, precision, c, precision, "-O1")
        for name in ("looping", "flip"):
            wanted = control.turning_series(study.paths()[name], study.TIMES[name], 0.005)

            def asked(t, q, v, wanted=wanted, step=step):
                out, said = step({"t": t, "q": q, "v": v, "w": wanted[min(round(t / 0.005), len(wanted) - 1)]})
                assert said == 0
                return out["u"].astype(float)

            q, v = np.r_[0.5, -0.3, 0.6, 0, 0, 0.6, 0.8], np.zeros(6)
            how = {"duration": study.TIMES[name], "step": 0.0025, "every": 2, "record": ["q", "u"]}
            flown[name, precision] = pf.run(m, q, v, control=control.python_law(asked, 0.005), **how)
    for name in ("looping", "flip"):
        one, other = (flown[name, precision] for precision in ("double", "single"))
        u = one["u"].values
        assert (u <= LIMITS[0, 1] + 1e-3).all() and ((np.abs(u - 0.3) < 1e-3) | (np.abs(u - 7.85) < 1e-3)).any()
        apart = np.abs(one["q"].values[:, :3] - other["q"].values[:, :3]).max()
        assert 0 < apart < 1e-3, (name, apart)


def asked(study, c, step, wanted):
    """The whole agent as a law in Python: its sensors without noise, captures by another clock and the motion it feels."""
    m, kept = study.mechanism(), {"u": np.zeros(4), "capture": np.zeros(8)}
    terms = pf.compile_terms(m, {"M": lambda T: T.M, "pull": lambda T: T.f - T.c, "B": lambda T: T.B}, lanes=1)

    def law(t, q, v):
        k = round(t / study.PERIOD)
        if k % 20 == 13:  # a period before it is taken in the study, which the stamp tells
            kept["capture"] = np.r_[q[:7], (1 + study.DRIFT) * t + study.AHEAD]
        here = terms(q, v)
        v_dot = np.linalg.solve(here["M"], here["pull"] + here["B"] @ kept["u"])
        x, y, z, w = q[3:7]
        up = np.array([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)])
        felt = v_dot[:3] + np.cross(v[3:6], v[:3]) + study.G * up
        seen = {"gyro": study.ASKEW @ v[3:6], "accelerometer": study.ASKEW @ felt + study.OFFSET, "encoder": q[7:11]}
        given = np.concatenate([*seen.values(), kept["capture"], [0.0]])
        out, said = step({"t": t, "q": q, "v": v, "y": given, "w": wanted[min(k + 1, len(wanted) - 1)]})
        assert said == 0
        kept["u"] = out["u"].astype(float)
        return kept["u"]

    return control.python_law(law, study.PERIOD)


def test_the_whole_agent_flies_in_floats(gcc, tmp_path):
    """The first looping of Table 5.2 with estimator, limits and force control: within 1 mm of double all the way."""
    study = load("konz-flight", folder(), PARTS)
    craft, law = study.quadcopter(), study.law()
    c, end = controller(law, study.mechanism()), study.SETTLE + 3.5
    wanted = control.turning_series(study.looping(), end, study.PERIOD, drag=craft.drag / craft.numbers["mass"])
    q, v, flown = craft.plant.neutral(), np.r_[np.zeros(6), np.full(4, craft.hover)], {}
    how = {"duration": end - 0.1, "step": 0.001, "every": 5, "record": ["q"], "parameters": {"noise": 0.0}}
    for precision in ("double", "single"):
        made = pf.export(law, study.mechanism(), tmp_path, name=precision, precision=precision)
        assert precision == "double" or made.measured_stack < 8000
        step = bound(gcc, tmp_path, precision, c, precision, "-O1")
        flown[precision] = pf.run(craft.plant, q, v, control=asked(study, c, step, wanted), **how)["q"].values
    one, other = flown["double"], flown["single"]
    assert np.linalg.norm(one[:, :3] - wanted[: len(one), :3], axis=1).max() < 0.1
    assert (1 - 2 * (one[:, 3] ** 2 + one[:, 4] ** 2)).min() < -0.99  # upside down
    assert 0 < np.abs(one[:, :3] - other[:, :3]).max() < 1e-3
