"""Wrong input gets an error that names the element and the way out."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf

BOB = pf.body("bob", 1.0, com=(1.0, 0, 0))
PIVOT = pf.joint("pivot", "revolute", "world", "bob", axis=(0, 1, 0))


def test_a_joint_without_inertia():
    m = pf.mechanism("spindle", [pf.body("needle", 1.0)], [pf.joint("axle", "revolute", "world", "needle")])
    for run in (lambda: pf.run(m, duration=0.1), lambda: pf.forward_dynamics(m, [0.0], formulation="gauss")):
        with pytest.raises(pf.ModelError, match=r"joint 'axle' moves no inertia.*armature"):
            run()


def test_a_joint_whose_motion_others_have_already():
    """Four slides carry one body; of those along x, the outer one has it all."""
    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "again": (1, 0, 0)}
    bodies = [pf.body(name) for name in list(axes)[:-1]] + [pf.body("again", 1.0)]
    at = ["world", *axes]
    joints = [pf.joint(n, "prismatic", at[i], n, axis=axis) for i, (n, axis) in enumerate(axes.items())]
    with pytest.raises(pf.ModelError, match=r"joint 'x' moves no inertia.*joints beyond it move the same way.*armature"):
        pf.run(pf.mechanism("gantry", bodies, joints), duration=0.1)


def test_parameters_that_no_body_can_have():
    mass = pf.Parameter("mass", 1.0, "kg")
    bob = pf.body("bob", mass, com=(1.0, 0, 0), inertia=(0, 1, 1))
    m = pf.mechanism("pendulum", [bob], [PIVOT], parameters=[mass])
    with pytest.raises(pf.ModelError, match=r"body 'bob' in run 1 \(mass = -2\): the mass is negative"):
        pf.run(m, duration=0.1, parameters={"mass": [1.0, -2.0, 3.0]})
    assert pf.results.causes(pf.run(m, duration=0.1, parameters={"mass": np.linspace(1, 2, 50)})) == ["finished"] * 50


@pytest.mark.parametrize("what", ["constraints", "forces", "actuators"])
def test_a_part_that_is_none(what):
    with pytest.raises(pf.ModelError, match=f"{what}: 'thing' does not belong here; make each item by"):
        pf.mechanism("pendulum", [BOB], [PIVOT], **{what: ["thing"]})


def test_a_position_serves_as_a_placement():
    a = pf.joint("j", "revolute", "world", "bob", placement=(1, 2, 3))
    assert np.array_equal(np.array(ca.DM(a.placement.p)).ravel(), [1, 2, 3])
    with pytest.raises(pf.ModelError, match=r"joint 'j': placement.*position"):
        pf.joint("j", "revolute", "world", "bob", placement="here")
    with pytest.raises(pf.ModelError, match=r"constraint 'c': placement.*position"):
        pf.closure("c", "weld", "bob", "world", placement_a=(1, 2))
