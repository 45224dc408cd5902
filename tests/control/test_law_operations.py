"""Operations of laws: of a time step that contains the law, and of the terms of a geometric task.

The bounds are the present counts plus a few per cent; counts do not depend on the computer.
"""

import warnings
from functools import cache

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.task import Task, task_terms
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from studies import two_pandas

READY = np.array([0.4, -1.2, 1.4, -0.5, 0.6, 0.3])
MOTION = {"stiffness": 100.0, "damping": 20.0}
TOOL = "wrist_3_link"
PER_SAMPLE = 5
"""Number of steps of 1 ms in one period of a law at 200 Hz."""


@cache
def ur5() -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.formats.read_urdf(pf.formats.installed("example-robot-data", "ur_description/urdf/ur5_robot.urdf", "tests"))
    return pf.actuate_all(m)


@cache
def pandas() -> pf.Mechanism:
    return two_pandas.mechanism()


def step(m: pf.Mechanism, law: control.Control | None) -> int:
    """Operations of one step of RK4."""
    return pf.stepper(m, control=law, backend="numpy").operations["step"]


def of_task(m: pf.Mechanism, task: Task) -> int:
    """Operations of the task's theta, rate, J and drift."""
    T = pf.symbols(m)
    parts = [ca.densify(x) for x in task_terms(T, task)]
    return optimise(trace(ca.Function("task", [T.q, T.v, T.t, m.p_symbols], parts, {"cse": True}))).n_ops


@cache
def laws() -> dict[str, control.Control]:
    joints, goal = control.joints(*(j.name for j in ur5().joints if j.nv)), control.set_point(READY)
    X = pf.forward_kinematics(ur5(), READY)[TOOL]
    there = control.set_point([*X.position, 0, 0, 0])
    weight = {"inertia": (1.0, 0.1), "damping": (20.0, 2.0), "stiffness": (100.0, 10.0)}
    soft = {name: pf.forces.pseudo_matrix(x, (0, 0, 0.1), (y, y, y)) for name, (x, y) in weight.items()}
    return {
        "computed torque": control.computed_torque(joints, goal, **MOTION),
        "operational space": control.operational_space(control.pose(TOOL, X.rotation), there, **MOTION),
        "projected": control.projected(joints, goal, **MOTION),
        "prototype": control.prototype_tracking([control.pair(TOOL, **soft)], goal, approach="particle"),
    }


@pytest.mark.parametrize(("machine", "body", "most"), [(ur5, TOOL, 700), (pandas, "box", 900)], ids=["UR5", "two Pandas"])
def test_a_pose_task_is_geometry(machine, body, most):
    """Differentiating its coordinates took 2700 and 5100 operations."""
    assert of_task(machine(), control.pose(body)) <= most


@pytest.mark.parametrize(
    ("law", "most"), [("computed torque", 2200), ("operational space", 7400), ("projected", 4700), ("prototype", 14500)]
)
def test_an_arm_under_a_law(law, most):
    """The plant, 3700 alone, shares the factor of M with the law. Before, operational space took 20,800 and the others 5,900 to
    17,000."""
    assert step(ur5(), laws()[law]) <= most


def test_a_sampled_law_adds_at_most_a_fifth_to_the_plant():
    law = control.discrete(laws()["operational space"], PER_SAMPLE * 1e-3)
    s = pf.stepper(ur5(), control=law, backend="numpy")
    (sampler,) = s._rollout.samplers
    assert s.operations["step"] + sampler.n_ops / PER_SAMPLE <= 1.2 * step(ur5(), None)


def test_two_arms_under_a_force_loop_cost_at_most_2_5_plants():
    """Before, it took 5.3 times the plant: rows were factorised four times, the reaction solved for each measured number."""
    law = two_pandas.law(pandas(), pandas().parameters[0].symbol)
    plant, driven = step(pandas(), None), step(pandas(), law)
    assert plant <= 31_200 and driven <= 2.5 * plant and driven <= 69_500


def test_signals_that_are_not_recorded_cost_nothing():
    law = laws()["computed torque"]

    def expensive(terms, z, w, y):
        command = law.law(terms, z, w, y)
        return command._replace(signals={"dear": ca.sum1(ca.sin(terms.M @ terms.M @ terms.C @ terms.v))})

    assert step(ur5(), control.Control(expensive, faults=law.faults)) == step(ur5(), law)


def test_terms_under_other_inputs_share_what_does_not_depend_on_them():
    rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
    T = pf.symbols(m)
    assert not T.built("M") and T.force.shape == T.c.shape and T.M.shape == (1, 1)
    pushed = T.under(ca.SX(5.0))
    assert pushed.built("M") and pushed.M is T.M and pushed.kinematics is T.kinematics
    assert float(pushed.force) == float(pushed.generalised_input) == 5.0
