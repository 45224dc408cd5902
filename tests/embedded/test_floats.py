"""Laws within limits in single precision: the quadratic program, and flights of the thesis against those in double."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command
from pfaffian.control.prototype_tracking_law import SMALL_BESIDE_ROOT
from pfaffian.embedded.controller import Calls, call, controller, random_inputs
from pfaffian.errors import ModelError
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trace import trace
from pfaffian.maths import qp
from pfaffian.maths.precision import building_for, for_floats
from pfaffian.viewer.laws import PARTS
from pfaffian.viewer.run_study import folder, load
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
        exact, good = pf.analysis.solve_qp(*p, backend="numpy"), status[:, 0] == qp.SOLVED
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


# -- redundant inputs ------------------------------------------------------------------------------------------------------

pm = pf.forces.pseudo_matrix
DRAWS = 300
NEAR = 3e-4
"""Largest error of inputs in floats, relative to the largest: 5000 roundings. Inputs that are nearly equally good are farther
apart, so machines of this file have none such among their draws, except that of the test about costs."""


def raft(low, high, *, angles=(1.5, 3.1, 4.6, 6.6), mass=4.0, inertia=0.3, centre=(0, 0, 0)):
    """A raft pushed by four thrusters, one more than its motions, and the law that brings it to the origin within limits.

    centre: that of the prototype's mass.
    """
    low, high = np.broadcast_to(low, len(angles)), np.broadcast_to(high, len(angles))
    motors = []
    for i, a in enumerate(angles):
        at, axis = (0.4 * np.cos(1.7 * i), 0.3 * np.sin(1.7 * i), 0), (np.cos(a), np.sin(a), 0)
        motors.append(pf.forces.thruster(f"push {i}", "raft", axis=axis, point=at, limits=(low[i], high[i])))
    joint = pf.joint("water", "planar", "world", "raft")
    m = pf.mechanism("raft", [pf.body("raft", mass, inertia=inertia)], [joint], actuators=motors, gravity=(0, 0, 0))
    weights = {"inertia": pm(mass, centre, inertia), "damping": pm(1.5 * mass, centre, 1.6 * inertia)}
    pair = control.pair("raft", stiffness=pm(2 * mass, centre, 2.6 * inertia), **weights)
    return m, [pair], control.prototype_tracking([pair], control.set_point([0.0, 0, 0]), limits="actuators")


class Compared(NamedTuple):
    """Calls of a law in doubles and in floats.   sound: (calls,) whether the law in doubles succeeds."""

    exact: Calls
    floats: Calls
    sound: np.ndarray


def compared(m, law, calls=DRAWS):
    c = controller(law, m)
    inputs = random_inputs(c, m, calls, np.random.default_rng(7))
    exact, floats = call(c, inputs), call(controller(law, m, precision="single"), inputs, np.float32)
    return Compared(exact, floats, ~exact.failed)


UNEVEN = {"low": [-0.01, -100.0, -3.0, -3.0], "high": [0.01, 100.0, 3.0, 3.0]}


@pytest.mark.parametrize(
    "how",
    [
        {"low": -1.5, "high": 6.0},
        {"low": [-1.5, -1.5, -1.5, 2.0], "high": [6.0, 6.0, 6.0, 2.0]},  # the last input has one value
        {"low": 0.0, "high": np.inf},
        UNEVEN,
        {"low": -1.5e-6, "high": 6e-6, "mass": 4e-6, "inertia": 3e-7},
        {"low": -1.5e6, "high": 6e6, "mass": 4e6, "inertia": 3e5},
        {"low": -1.5, "high": 6.0, "inertia": 1e-3},
        {"low": -1.5, "high": 6.0, "centre": (0.1, 0.2, 0)},
        {"low": -0.01, "high": 0.01},
    ],
    ids=["plain", "equal", "one-sided", "uneven", "small", "large", "easily turned", "off centre", "tight"],
)
def test_redundant_inputs_within_limits_in_floats(how):
    """They are those in doubles, wherever the latter exist; limits are met to the digits of floats."""
    m, _, law = raft(**how)
    exact, floats, sound = compared(m, law)
    assert sound.mean() > 0.9 and not floats.failed[sound].any()
    u, found = exact.outputs["u"][sound], floats.outputs["u"][sound]
    size = np.abs(u).max()
    assert 0 < np.abs(found - u).max() < NEAR * size
    assert (found < np.array(how["high"]) + qp.WITHIN * size).all() and (found > np.array(how["low"]) - qp.WITHIN * size).all()
    assert (np.minimum(u - how["low"], how["high"] - u) < qp.WITHIN * size).any()  # limits are reached


def test_the_cost_of_inputs_in_floats():
    """Where other inputs are nearly as good, those in floats may be far away: their motion is as near to the prototype's.

    The costs differ by the weight of small inputs, and by roundings of the cost and of the inputs.
    """
    m, pairs, law = raft(-1.5, 6.0, angles=(1.0, 1.2, 4.0, 4.3), inertia=1e-3)
    exact, floats, sound = compared(m, law, 1000)
    assert sound.all() and not floats.failed.any()
    free = call(controller(control.prototype_tracking(pairs, control.set_point([0.0, 0, 0])), m), exact.inputs).outputs["u"]
    S = np.array([pf.forward_dynamics(m, m.neutral(), u=row).v_dot for row in np.eye(4)]).T
    H = S.T @ np.diag([4.0, 4.0, 1e-3]) @ S
    cost = [np.einsum("ri,ij,rj->r", c.outputs["u"] - free, H, c.outputs["u"] - free) / 2 for c in (exact, floats)]
    way, rounded = (np.trace(H) * (x**2).sum(axis=1) for x in (exact.outputs["u"] - free, 1e-6 * exact.outputs["u"]))
    assert (np.abs(cost[1] - cost[0]) < SMALL_BESIDE_ROOT * way + 1e-5 * cost[0] + rounded).all()


@pytest.mark.parametrize("spread", [10.0, 1e3])
def test_answers_by_a_root_are_checked(spread):
    """Inputs of very different weight: near the limits they are accurate; far beyond them floats may fail, but what is reported
    as solved satisfies the limits to the digits of the way.
    """
    n, m, random = 4, 6, np.random.default_rng(5)
    given = [ca.SX.sym(name, *shape) for name, shape in (("R", (n, n)), ("u0", (n, 1)), ("W", (m, n)), ("l", (m, 1)))]
    with building_for("single"):
        r = qp.nearest_by_root(*given)
    made = optimise(trace(ca.Function("by_root", given, [r.u, r.status], {"cse": True})))
    left, right = np.linalg.qr(random.normal(size=(2, 200, n, n)))[0]
    R = np.geomspace(1, 1 / spread, n) * left @ right
    start, W, l = random.normal(size=(200, n)), random.normal(size=(200, m, n)), random.uniform(0.1, 1, size=(200, m))
    for far in (1.0, 1e4):
        u0 = far * start
        flat = [np.float32(x.swapaxes(1, -1).reshape(200, -1)) for x in (R, u0, W, l)]
        u, status = evaluate(made, flat, np.float32)
        solved, over = status[:, 0] == qp.SOLVED, np.einsum("rmn,rn->rm", W, u) - l
        terms, way = (np.einsum("rmn,rn->rm", np.abs(W), np.abs(x)) for x in (u, u0))
        assert (over < qp.WITHIN * (terms + l + (far > 1) * way))[solved].all()
        if far > 1:
            assert solved.mean() > 0.9
            continue
        exact = pf.analysis.solve_qp(R.swapaxes(1, 2) @ R, u0, W, l, backend="numpy").u
        cost, least = ((np.einsum("rij,rj->ri", R, x - u0) ** 2).sum(axis=1) for x in (u, exact))
        assert solved.all() and (np.abs(cost - least) < 1e-5 * (1 + least)).all()


def test_an_export_in_floats_leaves_the_law_in_doubles_as_it_is():
    m, _, law = raft(-1.5, 6.0)
    before, floats, after = (controller(law, m, precision=p).programs[0] for p in ("double", "single", "double"))
    assert before == after != floats and not for_floats()


def test_the_law_of_a_raft_in_c(gcc, tmp_path):
    m, _, law = raft(-1.5, 6.0)
    made = pf.export(law, m, tmp_path, name="raft", precision="single", draws=DRAWS)
    assert made.draws == DRAWS and made.failing == 0 and made.error < NEAR
    assert "In float: 300 calls" in made.files[0].read_text()
    for flags in ("-O0", "-O2"):
        done = run_written_test(gcc, tmp_path, "raft", flags)
        assert done.returncode == 0, done.stdout


def test_a_quadcopter_is_exported_by_its_largest_error(tmp_path):
    """With random states far from the reference, 1 call in 3000 failed in floats alone."""
    study = load("konz-quadcopter", folder(), PARTS)
    made = pf.export(within_limits(study), study.mechanism(), tmp_path, precision="single", draws=3000)
    assert made.failing == 0 and 0 < made.error < 1e-3


def test_errors_in_floats_are_reported_and_bounded(tmp_path):
    """They are those over the draws that are named, and rare failures are told."""
    rail = pf.joint("rail", "prismatic", "world", "cart")
    m = pf.mechanism("cart", [pf.body("cart", 1.0)], [rail], actuators=[pf.actuator("motor", "rail")])

    def cancelling(s):
        """About q^2 / 20, whose digits below those of 10 are lost; fails in floats where q > 20."""
        q = s.terms.q
        fine = 1 + 1e-12 * (1 + q**2) <= 1
        return Command(ca.sqrt(q**2 + 100) - 10, faults=fine * (q > 20))

    law = control.discrete(cancelling, 0.01, faults=["too coarse"])
    one = lambda x: {"q": np.reshape(x, (-1, 1))}  # noqa: E731
    near, far = (
        pf.export(law, m, tmp_path, name=name, precision="single", draws=one(x))
        for name, x in (("near", [0.0, 7.5]), ("far", np.r_[np.linspace(0.01, 1.0, 40), 30.0]))
    )
    assert (near.error, near.failing, near.draws) == (0.0, 0.0, 2)
    assert 1e-6 < far.error < 1e-4 and far.failing == 1 / 41 and far.draws == 41
    assert "2.4% of them fail in float alone" in far.files[0].read_text()
    for given, message in (
        ({"draws": one([30.0, 0.5])}, r"the law fails in floats but not in doubles \(too coarse\) in 50% of 2 draws"),
        ({"draws": one([0.01, 0.3]), "largest_error": 1e-7}, "in floats, u differs from doubles by .* over 2 draws"),
        ({"draws": 0}, "draws must be a whole number from 1"),
        ({"draws": {"q": np.zeros((0, 1))}}, "draws: at least one call is needed"),
        ({"draws": {"v": [[1.0]]}}, "draws: the ports q are needed"),
        ({"largest_error": "small"}, "largest_error: 'small' is not a number"),
    ):
        with pytest.raises(ModelError, match=message):
            pf.export(law, m, tmp_path, name="refused", precision="single", **given)


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
    flyers = importlib.import_module("._konz_flyers", study.__package__)
    study = SimpleNamespace(**{**vars(flyers), **vars(study)})
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
