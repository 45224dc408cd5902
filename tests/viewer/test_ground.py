"""Where machines touch their surroundings: the ground is where contacts are, feet are drawn, missing meshes become rods."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer.build import scene
from pfaffian.viewer.legend import in_newtons, letters, nice
from pfaffian.viewer.scene import state_of


def _hopper(height: float = 0.25) -> pf.Mechanism:
    trunk, shin = pf.body("trunk", 4.0, inertia=0.1), pf.body("shin", 1.0, com=(0, 0, -0.2), inertia=0.01)
    joints = [pf.joint("rail", "prismatic", "world", "trunk"), pf.joint("knee", "revolute", "trunk", "shin", axis=(0, 1, 0))]
    ground = pf.pose((0, 0, height))
    foot = pf.forces.contact("foot", "shin", shape_a=(0, 0, -0.4), shape_b=ground, stiffness=1e5, friction=0.8)
    return pf.mechanism("hopper", [trunk, shin], joints, forces=[foot])


def test_the_ground_is_the_plane_of_a_contact_and_not_below_the_motion():
    made = scene(_hopper(), state_of(_hopper(), [1.0, 0.2]))
    assert made.floor is not None and made.floor.real
    np.testing.assert_allclose(made.floor.point, [0, 0, 0.25])


def test_a_ground_is_drawn_without_gravity_too():
    m = _hopper().with_(gravity=(0, 0, 0))
    made = scene(m, state_of(m))
    assert made.floor is not None and made.layers["floor"]


def test_a_contact_point_is_a_foot_that_a_rod_reaches():
    made = scene(_hopper(), state_of(_hopper()))
    (foot,) = [p for p in made.parts if p.layer == "contacts"]
    assert foot.name == "foot" and made.bodies[foot.body] == "shin"
    np.testing.assert_allclose(foot.solid.vertices.mean(axis=0), [0, 0, -0.4], atol=1e-3)
    rod = [p.solid.vertices for p in made.parts if p.name == "shin" and p.layer == "shapes"]
    assert min(x[:, 2].min() for x in rod) < -0.39


def test_a_body_without_its_mesh_is_a_rod_between_its_joints():
    mesh = pf.shape("mesh", file="missing.stl")
    bodies = [pf.body(n, 1.0, com=(0.1, 0.3, 0), inertia=(0.5, 0.1, 0.4), shape=[mesh, mesh]) for n in ("arm", "hand")]
    elbow = pf.joint("elbow", "revolute", "arm", "hand", placement=(0.8, 0, 0))
    m = pf.mechanism("arm", bodies, [pf.joint("base", "revolute", "world", "arm"), elbow])
    with pytest.warns(pf.ModelWarning, match="rods between their joints"):
        made = scene(m, state_of(m))
    (rod,) = [p for p in made.parts if p.name == "arm" and p.layer == "shapes"]
    spread = np.ptp(rod.solid.vertices, axis=0)
    assert abs(spread[0] - 0.8) < 0.05 and spread[1] < 0.1


def test_arrows_have_a_scale_with_a_round_number_of_newtons():
    assert [nice(x) for x in (0.99, 1.0, 4.9, 73.0, 2100.0)] == [0.5, 1.0, 2.0, 50.0, 2000.0]
    assert [in_newtons(x) for x in (5e-3, 0.5, 20.0, 5000.0)] == ["5 mN", "500 mN", "20 N", "5 kN"]
    assert letters("50 N", 2).shape == (14, 48)
