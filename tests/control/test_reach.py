"""What outputs of concurrent control cannot do is said before a run, and why a run ended is said whatever ended it."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

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
    """A runner under the body does not slide across: as a constraint, or as speeds of the joint itself."""
    runner = np.array([[1.0, 0], [0, 0], [0, 1]]) if by == "joint" else None
    joint = pf.joint("base", "planar", "world", "sleigh", distribution=runner)
    held = [pf.nonholonomic("runner", lambda k: k.twist("sleigh")[1])] if by == "constraint" else []
    beside = [pf.joint(n, "revolute", "sleigh", n) for n in ("rider", "wheel")]
    bodies = [pf.body(n, 2.0, com=(0.1, 0, 0), inertia=0.5) for n in ("sleigh", "rider", "wheel")]
    m = pf.mechanism("sleigh", bodies, [joint, *beside], constraints=held, gravity=(0, 0, 0))
    return pf.actuate_all(m)


def crane() -> pf.Mechanism:
    """A cart on a rail with a hook on a hinge: the hook goes two ways."""
    bodies = [pf.body("cart", 3.0, inertia=1.0), pf.body("hook", 1.0, com=(0, 0, -1), inertia=0.1)]
    joints = [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
              pf.joint("hinge", "revolute", "cart", "hook", axis=(0, 1, 0))]  # fmt: skip
    m = pf.actuate_all(pf.mechanism("crane", bodies, joints))
    return m.with_(actuators=[*m.actuators, pf.actuator("more", "rail")])


def boat() -> pf.Mechanism:
    """A free hull, one motor of which is there twice."""
    m = hull()
    return m.with_(actuators=[*m.actuators, pf.actuator("more", "flight", component=2)])


TOGETHER = {
    "a pose and a position of one body": (
        boat, [control.output("hull", "pose", np.eye(4), **GAINS), position("hull", (0.3, 0, 0), (2,))], 7, 6, "hull.z"),
    "two points of one body and its attitude": (
        hull, [position("hull"), position("hull", (0.2, 0.1, 0), (0, 1, 2))], 6, 5, "hull.x (position)"),
    "three ways of a crane": (crane, [position("hook", (0, 0, -1), (0, 2)), position("cart", (0, 0, 0), (0,))], 3, 2, "hook.x"),
    "an axle": (lambda: sleigh("constraint"), [position("sleigh", axes=(0, 1))], 2, 1, "sleigh.y"),
    "an axle of a joint": (lambda: sleigh("joint"), [position("sleigh", axes=(0, 1))], 2, 1, "sleigh.y"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOGETHER)
def test_outputs_that_never_move_independently_are_refused_before_a_run(name):
    make, outputs, count, rank, one = TOGETHER[name]
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


def test_a_length_of_a_run_that_puts_the_point_on_the_axle_is_refused():
    ahead = pf.Parameter("ahead", 0.3)
    m = sleigh("constraint").with_(parameters=[ahead])
    law = control.concurrent([position("sleigh", (ahead.symbol, 0, 0), (0, 1))], rest_damping=1.0)
    with pytest.raises(pf.ModelError, match=r"parameters of run 1 \(ahead = 0\): concurrent: of the 2 coordinates"):
        pf.run(m, control=law, parameters={"ahead": [0.3, 0.0]}, **SHORT)


def test_motors_to_spare_are_spoken_of_unless_something_is_said_of_them():
    """Two more motors of an arm whose hand goes two ways, and one that moves what another does and so leaves nothing open."""
    for more in ((), ("jb",)):
        with pytest.warns(RunWarning, match=r"drive 1 motion beside the 2 coordinates .* give rest_damping=\.\.\."):
            pf.run(planar_arm(*more), [0.1, 0.7, 0.5], control=control.concurrent([planar_hand()]), **SHORT)
    for said in ({"rest_damping": 1.0}, {"weight": np.ones(3)}):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pf.run(planar_arm(), [0.1, 0.7, 0.5], control=control.concurrent([planar_hand()], **said), **SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(crane(), {"hinge": 1.0}, control=control.concurrent([position("hook", (0, 0, -1), (0, 2))]), **SHORT)


def test_a_run_that_jumps_over_a_loss_of_rank_says_how_near_it_was():
    """64 starts of a craft with two arms, at steps too long near singular places: all stop, each with its reason.

    Where a step diverges the reason repeats sigma_min of that time; at a tenth of the step these runs end by loss of rank, a
    little earlier.
    """
    m, random = spacecraft(), np.random.default_rng(3)
    q = np.array([random_configuration(m, random) for _ in range(64)])
    q[:, :7] = 0.1 * q[:, :3] @ np.eye(3, 7) + np.eye(7)[6]
    q[:, 3:6] = 0.15 * random.normal(size=(64, 3))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    v = 0.2 * random.normal(size=(64, m.nv))
    law = control.concurrent([
        control.output("B1", "attitude", np.eye(3), stiffness=(2, 3, 4), damping=(3, 3, 4)),
        control.output("B4", "position", [0.3, 2.5, 0.2], at=(0, 0.4, 0), **GAINS),
    ])  # fmt: skip
    given = {"duration": 0.5, "control": law, "record": ["q", "sigma_min"]}
    with pytest.warns(RunWarning, match=r"\d+ of 64 runs stopped"):
        coarse, fine = (pf.run(m, q, v, step=h, every=every, **given) for h, every in ((1e-2, 1), (1e-3, 10)))
    for r in (coarse, fine):
        assert all(reason for reason, stopped in zip(r.reason.values, r.stopped.values, strict=True) if np.isfinite(stopped))
    jumped = np.flatnonzero(coarse.status.values == 1)
    assert jumped.size
    assert all("lost rank" in pf.results.causes(fine)[i] for i in jumped)
    assert (coarse.stopped.values[jumped] - fine.stopped.values[jumped]).max() < 0.02
    for i in jumped:
        words = r"at t = (\S+) s .* hardly move, by (\S+) for a unit of .* take shorter steps"
        at, gain = re.match(words, coarse.reason.values[i]).groups()
        assert abs(float(at) - max(coarse.stopped.values[i] - 0.02, 0)) < 1e-9  # two steps before the last good state
        near = coarse.sigma_min.values[i, round(float(at) / 1e-2)]
        assert abs(float(gain) / near - 1) < 0.06
