"""Concurrent control refuses impossible outputs before a run, and every stopped run names its reason."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import RunWarning
from pfaffian.model.mechanism import random_configuration
from tests.control.test_concurrent import hull, planar_arm, planar_hand, spacecraft

GAINS = {"stiffness": 4.0, "damping": 4.0}
SHORT = {"duration": 0.01, "step": 0.01, "backend": "interpreter"}


def position(body, at=(0, 0, 0), axes=(0, 1, 2)):
    return control.output(body, "position", np.zeros(len(axes)), at=at, axes=axes, **GAINS)


def sleigh(by: str) -> pf.Mechanism:
    """A runner under the body cannot slide sideways: by a constraint, or by the joint's own distribution."""
    runner = np.array([[1.0, 0], [0, 0], [0, 1]]) if by == "joint" else None
    joint = pf.joint("base", "planar", "world", "sleigh", distribution=runner)
    rows = [pf.nonholonomic("runner", lambda k: k.twist("sleigh")[1])] if by == "constraint" else []
    beside = [pf.joint(n, "revolute", "sleigh", n) for n in ("rider", "wheel")]
    bodies = [pf.body(n, 2.0, com=(0.1, 0, 0), inertia=0.5) for n in ("sleigh", "rider", "wheel")]
    m = pf.mechanism("sleigh", bodies, [joint, *beside], constraints=rows, gravity=(0, 0, 0))
    return pf.actuate_all(m)


def crane() -> pf.Mechanism:
    """A cart on a rail with a hook on a hinge: the hook moves in two directions."""
    bodies = [pf.body("cart", 3.0, inertia=1.0), pf.body("hook", 1.0, com=(0, 0, -1), inertia=0.1)]
    joints = [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
              pf.joint("hinge", "revolute", "cart", "hook", axis=(0, 1, 0))]  # fmt: skip
    m = pf.actuate_all(pf.mechanism("crane", bodies, joints))
    return m.with_(actuators=[*m.actuators, pf.actuator("more", "rail")])


def boat() -> pf.Mechanism:
    """A free hull with one of its motors twice."""
    m = hull()
    return m.with_(actuators=[*m.actuators, pf.actuator("more", "flight", component=2)])


DEPENDENT = {
    "a pose and a position of one body": (
        boat, [control.output("hull", "pose", np.eye(4), **GAINS), position("hull", (0.3, 0, 0), (2,))], 7, 6, "hull.z"),
    "two points of one body and its attitude": (
        hull, [position("hull"), position("hull", (0.2, 0.1, 0), (0, 1, 2))], 6, 5, "hull.x (position)"),
    "three ways of a crane": (crane, [position("hook", (0, 0, -1), (0, 2)), position("cart", (0, 0, 0), (0,))], 3, 2, "hook.x"),
    "an axle": (lambda: sleigh("constraint"), [position("sleigh", axes=(0, 1))], 2, 1, "sleigh.y"),
    "an axle of a joint": (lambda: sleigh("joint"), [position("sleigh", axes=(0, 1))], 2, 1, "sleigh.y"),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPENDENT)
def test_outputs_that_never_move_independently_are_refused_before_a_run(name):
    make, outputs, count, rank, one = DEPENDENT[name]
    words = rf"of the {count} coordinates of the outputs only {rank} move independently, at any .* {re.escape(one)}"
    with pytest.raises(pf.ModelError, match=words):
        pf.run(make(), control=control.concurrent(outputs), **SHORT)


def test_a_constraint_is_named_and_a_point_off_the_axle_is_free():
    m = sleigh("constraint")
    with pytest.raises(pf.ModelError, match="at any configuration of 'sleigh', because of 'runner'"):
        pf.run(m, control=control.concurrent([position("sleigh", axes=(0, 1))]), **SHORT)
    for x in (m, sleigh("joint")):
        law = control.concurrent([position("sleigh", (0.3, 0, 0), (0, 1))], rest_damping=1.0)
        assert pf.run(x, control=law, **SHORT).status == 0


def test_a_parameter_that_puts_the_point_on_the_axle_is_refused():
    ahead = pf.Parameter("ahead", 0.3)
    m = sleigh("constraint").with_(parameters=[ahead])
    law = control.concurrent([position("sleigh", (ahead.symbol, 0, 0), (0, 1))], rest_damping=1.0)
    with pytest.raises(pf.ModelError, match=r"parameters of run 1 \(ahead = 0\): concurrent: of the 2 coordinates"):
        pf.run(m, control=law, parameters={"ahead": [0.3, 0.0]}, **SHORT)


def test_redundant_motors_warn_unless_weight_or_damping_is_given():
    """An arm has more motors than its hand has directions, with and without a duplicate motor. A crane whose extra motor is a
    duplicate leaves no motion open and does not warn."""
    for more in ((), ("jb",)):
        with pytest.warns(RunWarning, match=r"drive 1 motion besides the 2 coordinates .* give rest_damping=\.\.\."):
            pf.run(planar_arm(*more), [0.1, 0.7, 0.5], control=control.concurrent([planar_hand()]), **SHORT)
    for options in ({"rest_damping": 1.0}, {"weight": np.ones(3)}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pf.run(planar_arm(), [0.1, 0.7, 0.5], control=control.concurrent([planar_hand()], **options), **SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(crane(), {"hinge": 1.0}, control=control.concurrent([position("hook", (0, 0, -1), (0, 2))]), **SHORT)


STARTS, STEP, REPEATED = 4096, 1e-2, 64
"""Runs of a craft with two arms: number of starts, step [s], and number of starts repeated at a tenth of the step."""


def craft_law() -> control.Control:
    """Outputs are the attitude of the hull and the position of a hand; the other arm has to balance."""
    return control.concurrent([
        control.output("B1", "attitude", np.eye(3), stiffness=(2, 3, 4), damping=(3, 3, 4)),
        control.output("B4", "position", [0.3, 2.5, 0.2], at=HAND, **GAINS),
    ])  # fmt: skip


COORDINATES = ("B1.rx", "B1.ry", "B1.rz", "B4.x", "B4.y", "B4.z")
HAND = (0, 0.4, 0)
BY = np.vstack([s * 1e-6 * np.eye(12)[6:] for s in (1, -1)])
"""Small displacements of the ball and of the three hinges [rad], in both directions."""


def driven(m, q: np.ndarray) -> np.ndarray:
    """(runs, 6, 6) driven matrix, from motor rates to output rates at constant momentum, in NumPy: J [-K11^-1 K1s; 1]."""
    J = np.concatenate(
        [pf.jacobian(m, "B1", q)[:, 3:], pf.jacobian(m, "B4", q, frame="LOCAL_WORLD_ALIGNED", point=HAND)[:, :3]], axis=1
    )
    M = pf.mass_matrix(m, q)
    return J[:, :, 6:] - J[:, :, :6] @ np.linalg.solve(M[:, :6, :6], M[:, :6, 6:])


def straight_on(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """q (runs, 14) after displacements w (runs, 12) of hull, ball and hinges."""
    attitude, ball = Rotation.from_quat(q[:, 3:7]), Rotation.from_quat(q[:, 7:11])
    turned = [(x * Rotation.from_rotvec(y)).as_quat() for x, y in ((attitude, w[:, 3:6]), (ball, w[:, 6:9]))]
    return np.hstack([q[:, :3] + attitude.apply(w[:, :3]), *turned, q[:, 11:] + w[:, 9:]])


@pytest.fixture(scope="module")
def craft():
    """Mechanism, runs of 4096 starts with a step too long near singularities, and some of them at a tenth of the step."""
    m, random = spacecraft(), np.random.default_rng(3)
    q = np.array([random_configuration(m, random) for _ in range(STARTS)])
    q[:, :7] = 0.1 * q[:, :3] @ np.eye(3, 7) + np.eye(7)[6]
    q[:, 3:6] = 0.15 * random.normal(size=(STARTS, 3))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    v = 0.2 * random.normal(size=(STARTS, m.nv))
    given = {"duration": 0.5, "control": craft_law(), "record": ["q", "v", "sigma_min"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coarse = pf.run(m, q, v, step=STEP, every=1, **given)
        fine = pf.run(m, q[:REPEATED], v[:REPEATED], step=STEP / 10, every=10, **given)
    assert sum(" runs stopped: " in str(x.message) for x in caught) == 2
    return m, coarse, fine


WORDS = re.compile(
    r"(?:at t = (\S+) s )?(.+) hardly move, by (\S+) for a unit of (.+), because of (.+?)(, where inputs grow.*)?$"
)


def test_numpy_confirms_the_reasons_of_all_stopped_runs(craft):
    """No reason is divergence alone: each names the outputs and motors of the least singular value of the driven matrix, that
    value, and joint coordinates."""
    m, r, _ = craft
    stopped = np.flatnonzero(r.status.values)
    assert stopped.size > STARTS / 2 and (r.status.values[stopped] == 1).any() and (r.status.values[stopped] != 1).any()
    found = [WORDS.match(x) for x in r.reason.values[stopped]]
    assert all(found) and not r.reason.values[r.status.values == 0].any()
    last = np.isfinite(r.sigma_min.values[stopped]).sum(axis=1) - 1
    at = np.array([k if x[1] is None else round(float(x[1]) / STEP) for x, k in zip(found, last, strict=True)])
    q = r.q.values[stopped, at]
    U, sizes, Vt = np.linalg.svd(driven(m, q))
    assert np.abs(np.array([float(x[3]) for x in found]) / sizes[:, -1] - 1).max() < 0.06  # two digits are printed
    for x, still, idle, here in zip(found, np.abs(U[:, :, -1]), np.abs(Vt[:, -1]), q, strict=True):
        assert still[COORDINATES.index(x[2].split(", ")[0])] > 0.999 * still.max()
        assert idle[m.motor_names.index(x[4].split(", ")[0])] > 0.999 * idle.max()
        for place in x[5].split(", "):
            name, value = place.split(" = ")
            assert abs(float(value) - here[m.q_names.index(name)]) < 1e-3 * max(1, abs(float(value)))
    size = [np.log(np.abs(np.linalg.det(driven(m, straight_on(q, np.tile(w, (len(q), 1))))))) for w in BY]
    slope = np.array(size)[:6] - np.array(size)[6:]
    by_joint = np.vstack([np.linalg.norm(slope[:3], axis=0), np.abs(slope[3:])])
    for x, slopes in zip(found, by_joint.T, strict=True):
        assert slopes[int(x[5][1]) - 2] > 0.99 * slopes.max()
    for x, code in zip(found, r.status.values[stopped], strict=True):
        assert (code == 1) == (x[6] is not None and "take shorter steps" in x[6])


def test_stopped_runs_are_close_to_a_loss_of_rank(craft):
    """Within two steps of their last states, extrapolated, the determinant of the driven matrix changes its sign. At half time
    of the runs that finish it does not."""
    m, r, _ = craft
    went = r.status.values == 0
    last = np.where(went, r.time.size // 2, np.isfinite(r.sigma_min.values).sum(axis=1) - 1)
    every = np.arange(STARTS)
    q, v, before = r.q.values[every, last], r.v.values[every, last], r.v.values[every, np.maximum(last - 1, 0)]
    sign, changed = np.sign(np.linalg.det(driven(m, q))), np.zeros(STARTS, dtype=bool)
    for t in np.linspace(0.25, 2, 8) * STEP:
        for bent in (0, 1):
            there = straight_on(q, t * v + bent * t**2 / 2 * (v - before) / STEP)
            changed |= np.sign(np.linalg.det(driven(m, there))) != sign
    assert changed[r.status.values == 1].all() and changed[~went].mean() > 0.9
    assert went.sum() > 50 and changed[went].mean() < 0.05


def test_a_run_that_jumps_over_a_loss_of_rank_reports_sigma_min(craft):
    """Where a step diverges, the reason states an earlier sigma_min and its time; at a tenth of the step these runs end by loss
    of rank, a little earlier.
    """
    _, coarse, fine = craft
    coarse = coarse.isel(run=slice(REPEATED))
    assert all(fine.reason.values[np.isfinite(fine.stopped.values)])
    jumped = np.flatnonzero(coarse.status.values == 1)
    assert jumped.size
    assert all("lost rank" in pf.results.causes(fine)[i] for i in jumped)
    assert (coarse.stopped.values[jumped] - fine.stopped.values[jumped]).max() < 0.02
    for i in jumped:
        at, _, gain, *_ = WORDS.match(coarse.reason.values[i]).groups()
        assert abs(float(at) - max(coarse.stopped.values[i] - 2 * STEP, 0)) < 1e-9  # two steps before the last good state
        near = coarse.sigma_min.values[i, round(float(at) / STEP)]
        assert abs(float(gain) / near - 1) < 0.06
