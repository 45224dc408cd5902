"""Closed chains on a floating base: closures between bodies react on both, and the total momentum is unaffected."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.model.constraint import Constraint
from tests.simulate.machines import about_mass_centre
from tests.tolerance import close

KEEP = {"duration": 0.3, "step": 1e-3, "every": 20, "u": {"motor": 0.1}}


def four_bar(*closures: Constraint) -> pf.Mechanism:
    """A planar four-bar of unequal rods on a hull that turns in space."""
    rod = {"com": (0.1, 0.02, 0), "inertia": np.diag([0.02, 0.03, 0.04])}
    bodies = [pf.body("hull", 5.0, inertia=np.diag([1, 1.2, 1.5])), *[pf.body(n, 1.0, **rod) for n in "abc"]]
    joints = [
        pf.joint("flight", "free", "world", "hull"),
        pf.joint("j1", "revolute", "hull", "a", placement=(0.2, 0, 0)),
        pf.joint("j2", "revolute", "a", "b", placement=(0.3, 0, 0)),
        pf.joint("j3", "revolute", "hull", "c", placement=(0.5, 0, 0)),
    ]
    return pf.mechanism(
        "four-bar", bodies, joints, constraints=closures, actuators=[pf.actuator("motor", "j1")], gravity=(0, 0, 0)
    )


def pin(k: pf.Kinematics) -> object:
    """The two equations of the loop in its plane."""
    return (k.pose("hull").R.T @ (k.position("b", (0.35, 0, 0)) - k.position("c", (0.3, 0, 0))))[:2]


LOOPS = {
    "spherical": pf.coincide("close", "b", (0.35, 0, 0), "c", (0.3, 0, 0)),
    "revolute": pf.closure("close", "revolute", "b", "c", placement_a=(0.35, 0, 0), placement_b=(0.3, 0, 0)),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_rows_across_a_planar_loop_stay_redundant_while_the_hull_turns(kind):
    """The rows have rank 2, and the motion is that of the loop written as two rows; the reduced machine moves alike and
    conserves its momentum."""
    m, plain = four_bar(LOOPS[kind]), four_bar(pf.holonomic("close", pin))
    q = pf.assemble(m, {"j1": 1.0}).q
    v = pf.assemble(m, q, np.random.default_rng(1).normal(size=m.nv) / 2).v
    full, reduced, two = (pf.run(x, q, v, **KEEP) for x in (m, pf.reduce(m), plain))
    for run in (full, reduced, two):
        assert pf.results.causes(run) == ["finished"]
        assert (run["rank"] == 2).all()
    for what in ("q", "v"):
        close(full[what], two[what], 1e-11, what)
        close(reduced[what], full[what], 1e-11, what)
    first_momenta = reduced["momentum"].values[:, :6]
    close(first_momenta, np.tile(about_mass_centre(m, q, v), (len(first_momenta), 1)), 1e-12, "momentum")
    assert float(np.abs(reduced["momentum_drift"]).max()) < 1e-12


def capture(*closures: Constraint, post: bool = False) -> pf.Mechanism:
    """A satellite with an arm of two links, and a tumbling target with a panel; both stand on the world."""
    link = {"com": (0.2, 0.01, 0.02), "inertia": np.diag([0.02, 0.05, 0.04])}
    bodies = [pf.body("target", 3.0, com=(0.02, 0, 0.01), inertia=np.diag([0.3, 0.2, 0.4])), pf.body("panel", 0.5, **link)]
    bodies += [
        pf.body("hull", 9.0, inertia=np.diag([1, 1.2, 1.5])),
        pf.body("upper", 1.0, **link),
        pf.body("lower", 1.0, **link),
    ]
    joints = [
        pf.joint("drift", "free", "world", "target"),
        pf.joint("hinge", "revolute", "target", "panel", axis=(0, 1, 0), placement=(0, 0.2, 0)),
        pf.joint("flight", "free", "world", "hull"),
        pf.joint("shoulder", "revolute", "hull", "upper", placement=(0.4, 0, 0)),
        pf.joint("elbow", "revolute", "upper", "lower", axis=(1, 1, 0), placement=(0.4, 0, 0)),
    ]
    if post:
        bodies.append(pf.body("post", 1.0, inertia=1.0))
        joints.append(pf.joint("ground", "fixed", "world", "post", placement=(0, 0, 2)))
    return pf.mechanism(
        "capture", bodies, joints, constraints=closures, actuators=[pf.actuator("motor", "elbow")], gravity=(0, 0, 0)
    )


AT = {"placement_a": pf.pose((0.4, 0.1, 0), rpy=(0.3, 0, 0.2)), "placement_b": pf.pose((-0.1, 0, 0.3), rpy=(0, 0.7, 0))}
GRASPS = {
    "weld": pf.closure("grasp", "weld", "lower", "target", **AT),
    "weld from the target": pf.closure("grasp", "weld", "target", "lower", **AT),
    "spherical": pf.closure("grasp", "spherical", "lower", "target", **AT),
    "helical from the target": pf.closure("grasp", "helical", "target", "lower", axis=(1, 2, 0), pitch=0.1, **AT),
}


@pytest.mark.parametrize("kind", GRASPS)
def test_a_grasp_as_a_joint_gives_the_same_machine_in_one_tree(kind):
    """The tree without the rows of the grasp is compared by name with the machine that has them; reduced, it conserves its
    momentum."""
    two = capture(GRASPS[kind])
    one = pf.joined(two, "grasp")
    assert [j.name for j in one.joints] == ["flight", "shoulder", "elbow", "grasp", "hinge"] and not one.constraints
    random = np.random.default_rng(3)
    q = dict(zip(one.q_names, pf.random_configuration(one, random), strict=True))
    v = dict(zip(one.v_names, random.normal(size=one.nv) / 2, strict=True))
    as_tree = pf.run(pf.reduce(one), q, v, **KEEP)
    known = {n: x for n, x in q.items() if n in two.q_names}, {n: x for n, x in v.items() if n in two.v_names}
    lead = pf.forward_kinematics(one, as_tree["q"].values[0])["target"]
    twist = pf.jacobian(one, "target", as_tree["q"].values[0], frame="LOCAL") @ as_tree["v"].values[0]
    place = [*lead.position, *Rotation.from_matrix(lead.rotation).as_quat()]
    there = dict(zip([n for n in two.q_names if n.startswith("drift.")], place, strict=True)) | known[0]
    moving = dict(zip([n for n in two.v_names if n.startswith("drift.")], twist, strict=True)) | known[1]
    plain = pf.run(two, there, moving, **KEEP)
    assert pf.results.causes(plain) == pf.results.causes(as_tree) == ["finished"]
    for n in known[0]:
        close(as_tree["q"].sel(coordinate=n), plain["q"].sel(coordinate=n), 1e-9, n)
    parts = pf.momentum(one, as_tree["q"].values, as_tree["v"].values)
    close(parts, np.broadcast_to(parts[0], parts.shape), 1e-12, "momentum of the bodies about the origin")
    assert float(np.abs(as_tree["momentum_drift"]).max()) < 1e-12


def test_closures_that_cannot_become_joints_are_refused():
    weld, ball, rod = (GRASPS["weld"], GRASPS["spherical"], pf.closure("rod", "distance", "lower", "target", length=0.3))
    with pytest.raises(pf.ModelError, match=r"joined: 'capture' has no closure 'gasp'; did you mean 'grasp'"):
        pf.joined(capture(weld), "gasp")
    with pytest.raises(pf.ModelError, match=r"closure 'rod' \(distance\) is not a joint that is always active"):
        pf.joined(capture(rod), "rod")
    with pytest.raises(pf.ModelError, match=r"closure 'grasp' \(spherical, for a while\) is not a joint that is always active"):
        pf.joined(capture(pf.constraints.active_while(ball, lambda k: k.t - 1)), "grasp")
    driven = capture(weld).with_(actuators=[pf.actuator("jet", "drift", component=0)])
    inside = capture(pf.closure("loop", "weld", "lower", "upper"))
    for m, name in ((driven, "grasp"), (inside, "loop")):
        with pytest.raises(pf.ModelError, match="has a free joint on the world without actuator"):
            pf.joined(m, name)


def test_a_closure_to_a_body_fixed_on_the_world_takes_momentum():
    """Otherwise it would count as a closure between bodies, whose reactions leave the first joint alone."""
    m = pf.joined(capture(GRASPS["weld"], post=True), "grasp")
    tied = m.with_(constraints=[pf.coincide("tie", "post", (0, 0, 0.1), "lower", (0.4, 0, 0))])
    with pytest.raises(pf.ModelError, match="closure 'tie' ties 'capture' to 'post', which does not move"):
        pf.reduce(tied)


SIDES = {"left": 0.2, "right": -0.2}
"""Positions of the shoulders across the base [m]; on one axis both would turn as one."""


def test_an_error_about_a_fixed_base_advises_a_floating_one():
    arms = [pf.body(n, 1.0, inertia=1.0) for n in SIDES]
    m = pf.mechanism("robot", arms, [pf.joint(n, "revolute", "world", n, placement=(0, y, 0)) for n, y in SIDES.items()])
    with pytest.raises(pf.ModelError, match=r"by 'left', 'right'; .* let the body that carries them float, .*base='free'"):
        pf.reduction.generalised_jacobian(m, "left")
