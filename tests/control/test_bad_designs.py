"""Impossible designs of tracking laws: each has its own error or fault, which names the element and the way out."""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.control.test_prototype import PLANAR, hovering, pm, pvtol

HERE = control.set_point([0.0, 0, 0])
BOUND = np.diag([1.0, 1, 1, -1])
"""Symmetric matrix that is not a pseudo-matrix of weights."""


def flown(pairs, m=PLANAR, reference=HERE, **how):
    """Run the law and raise the error that refuses the run, or its final warnings as a StoppedError."""
    law = control.prototype_tracking(pairs, reference, **how)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        r = pf.run(m, duration=0.05, control=law)
    assert int(r["status"]) != 0
    raise StoppedError("; ".join(str(w.message) for w in messages))


class StoppedError(Exception):
    """A run that ended with a fault."""


def chain() -> pf.Mechanism:
    bodies = [pf.body(n, 1.0, com=(0.2, 0, 0), inertia=0.1) for n in ("a", "b")]
    joints = [pf.joint("p", "revolute", "world", "a"), pf.joint("q", "revolute", "a", "b", placement=(0.4, 0, 0))]
    return pf.actuate_all(pf.mechanism("chain", bodies, joints))


def steered(task: control.Task) -> None:
    law = control.operational_space(task, control.set_point([0.0, 0.0]), stiffness=1.0, damping=1.0)
    pf.run(chain(), duration=0.01, control=law)


def upright_flight() -> None:
    y = control.rest_to_rest([0, 0], [1.0, 0.5], 3.0)
    pf.analysis.feasibility(pvtol(), control.function_of_time(lambda t: ca.vertcat(y(t), 0), 3), np.linspace(0, 3, 31)).check()


def falling(t: ca.SX) -> ca.SX:
    """Upwards at 5 m/s, and in free fall after one second."""
    return ca.vertcat(0, 0, 5 * t - ca.if_else(t > 1, 9.81 / 2 * (t - 1) ** 2, 0))


SPRING = ("s", "world", "b")
BAD = {  # design -> (call, error, pattern: the element at fault, then the way out)
    "a spring that pushes": (lambda: pf.forces.pose_spring(*SPRING, BOUND), pf.ModelError, r"stiffness.*positive semidefinite"),
    "a damper that drives": (lambda: pf.forces.pose_damper(*SPRING, BOUND), pf.ModelError, r"damping.*positive semidefinite"),
    "an added mass below zero": (
        lambda: pf.forces.pose_inertia(*SPRING, BOUND),
        pf.ModelError,
        r"inertia.*positive semidefinite",
    ),
    "a weight below zero": (lambda: pm(-1.0), pf.ModelError, r"pseudo_matrix: weight.*-1"),
    "a body of such": (lambda: PLANAR.with_(bodies=[pf.body("b", pseudo=BOUND)]), pf.ModelError, r"body 'b'.*mass"),
    "inertia of pairs together": (
        lambda: flown([control.pair("b", inertia=BOUND)]),
        pf.ModelError,
        r"inertia is negative, -1, along a motion of j\.v[xy].*give it more",
    ),
    "damping of pairs together": (
        lambda: flown([control.pair("b", inertia=pm(1, moments=1), damping=BOUND)]),
        pf.ModelError,
        r"damping is negative.*give it more",
    ),
    "stiffness of pairs together": (
        lambda: flown([control.pair("b", inertia=pm(1, moments=1), stiffness=BOUND)]),
        pf.ModelError,
        r"stiffness is negative.*give it more",
    ),
    "no inertia, of one body": (
        lambda: flown([control.pair("b", inertia=pm(0, moments=1.0))]),
        StoppedError,
        r"no inertia against.*j\.v[xy]",
    ),
    "no inertia, of a link": (
        lambda: flown([control.pair("a", inertia=pm(0, moments=1.0))], chain(), control.set_point([0.0, 0.0])),
        StoppedError,
        r"no inertia against.*motion of q",
    ),
    "no inertia, asked before": (
        lambda: pf.analysis.matching(chain(), [control.pair("a", inertia=pm(0, moments=1.0))]),
        pf.ModelError,
        r"no inertia against q.*more Mbar'",
    ),
    "a set point that nothing holds": (
        lambda: pf.analysis.matching(pvtol(), hovering(), [0, 0, 0.4]),
        pf.ModelError,
        r"hold this set point.*j\.wz, j\.vx; take another",
    ),
    "an infeasible reference": (upright_flight, pf.ModelError, r"infeasible: at t = [0-9.]+ s no input.*j\.[vw].*flat output"),
    "limits that exclude every input": (
        lambda: flown(hovering(), pvtol(), limits=([[1.0, 0], [-1.0, 0]], [1.0, -2.0])),
        StoppedError,
        r"no input is within the limits.*widen them.*rows 0, 1 contradict each other; they limit right",
    ),
    "free fall": (lambda: control.check_thrust(falling, 2.0), pf.ModelError, r"free fall"),
    "free fall of a turning series": (lambda: control.turning_series(falling, 2.0, 0.01), pf.ModelError, r"free fall"),
    "unstable poles": (
        lambda: control.hover_placement([1, -2, -3, -4]),
        pf.ModelError,
        r"cannot be placed unless every coeff",
    ),
    "poles without a prototype": (
        lambda: control.hover_placement([0.1 + 3j, 0.1 - 3j, -8, -9]),
        pf.ModelError,
        r"cannot be placed unless",
    ),
    "poles of two masses": (
        lambda: control.two_mass_placement([-2] * 4, ratio=5.0, coupling=-1.0),
        pf.ModelError,
        r"coupling has the sign of varpi p3 - p1 = 8",
    ),
    "poles of a bicopter": (
        lambda: control.quadcopter_pair("b", [-3] * 4, heading=(1.0, 1.0), coupling_length=(5.0, 0.0)),
        pf.ModelError,
        r"s > eps_x, but s = ",
    ),
    "a task of which no motion changes a coordinate": (
        lambda: steered(control.stack(control.joints("p"), lambda k: ca.SX(2.0))),
        pf.ModelError,
        r"coordinate 1 does not depend on the configuration",
    ),
    "a stack of something that is no task": (
        lambda: control.stack(control.joints("p"), "q"),
        pf.ModelError,
        r"stack takes tasks, functions of the kinematics, got 'q'",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_design_is_refused_or_stopped_with_a_way_out(what):
    call, error, words = BAD[what]
    with pytest.raises(error, match=words):
        call()
