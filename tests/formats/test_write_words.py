"""What a written file cannot say is named, and what it says is read back: limits of motors, efforts, names that clash."""

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning


def body(name, mass=2.0):
    return pf.body(name, mass, (0.1, 0.2, 0.05), (0.2, 0.1, 0.25))


def arm(kind="revolute", actuators=(), **given):
    return pf.mechanism("arm", [body("b")], [pf.joint("j", kind, "world", "b", **given)], actuators=actuators)


def again(m, path):
    """The mechanism that is read from the file that is written, and the words of the writer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = pf.write(m, path)[-1]
    with warnings.catch_warnings(action="ignore"):
        found, _ = pf.read(file)
    return found, [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]


@pytest.mark.parametrize("suffix", [".xml", ".urdf", ".yaml"])
@pytest.mark.parametrize("gear", [1.0, -4.0])
def test_a_motor_keeps_the_limits_that_the_effort_of_its_joint_leaves(suffix, gear, tmp_path):
    m = arm(effort=3.0, actuators=[pf.actuator("t", "j", gear=gear, limits=(-1, np.inf))])
    found, words = again(m, tmp_path / f"m{suffix}")
    assert found.u_limits.tolist() == m.u_limits.tolist() == [[-1, 3]] and words == []


@pytest.mark.parametrize(
    ("limits", "words"),
    [((0, np.inf), "the one-sided limit of actuator 't'"), ((0.5, 0.5), "the limits of actuator 't', which leave no width")],
)
@pytest.mark.parametrize("thruster", [False, True])
def test_limits_of_inputs_that_mjcf_does_not_have_are_named(limits, words, thruster, tmp_path):
    made = pf.forces.thruster("t", "b", axis=(0, 0, 1), limits=limits) if thruster else pf.actuator("t", "j", limits=limits)
    _, told = again(arm(actuators=[made]), tmp_path / "m.xml")
    assert told == [f"MJCF cannot represent: {words}"]


def test_limits_without_width_are_named_at_joints_and_loops(tmp_path):
    bodies = [pf.body(n, 1.0, (0.5, 0, 0), (0.1, 0.2, 0.2)) for n in "abc"]
    places = {"placement_a": (1.2, 0, 0), "placement_b": (1, 0, 0)}
    pin = pf.closure("z", "revolute", "b", "c", **places, axis=(0, 1, 0), limits=(1, 1))
    m = pf.mechanism(
        "bars",
        bodies,
        [
            pf.joint("p", "revolute", "world", "a", axis=(0, 1, 0), limits=(0.3, 0.3)),
            pf.joint("q", "revolute", "a", "b", axis=(0, 1, 0), placement=(1, 0, 0)),
            pf.joint("r", "revolute", "world", "c", axis=(0, 1, 0), placement=(0.5, 0, 0)),
        ],
        constraints=[pin],
    )
    (told,) = again(m, tmp_path / "m.xml")[1]
    assert "the limits of joint 'p', which leave no width" in told and "the limits of constraint 'z', which leave no" in told


@pytest.mark.parametrize(("kind", "suffix"), [("free", ".urdf"), ("planar", ".urdf"), ("free", ".xml"), ("spherical", ".xml")])
def test_efforts_that_a_format_does_not_have_are_named(kind, suffix, tmp_path):
    (told,) = again(arm(kind, effort=2.0), tmp_path / f"m{suffix}")[1]
    assert "the effort of joint 'j'" in told


def clash(name):
    turned = pf.pose(rpy=(0.1, 0.2, 0.3))
    two = [body("b"), body("j frame" if name == "body" else "c")]
    if name == "site":
        pin = pf.closure("z", "spherical", "world", "b", placement_a=(0.1, 0, 0), placement_b=(0.1, 0, 0))
        spring = pf.spring("z", "world", "b", point_a=(1, 0, 0), stiffness=3.0, rest=0.1)
        return pf.mechanism("m", two[:1], [pf.joint("j", "revolute", "world", "b")], constraints=[pin], forces=[spring])
    if name == "connect|joint":
        pin = pf.closure("k follows", "spherical", "world", "b", placement_a=(0.1, 0, 0), placement_b=(0.1, 0, 0))
        joints = [pf.joint("j", "revolute", "world", "b"), pf.joint("k", "revolute", "b", "c", mimic=pf.mimic({"j": 2.0}))]
        return pf.mechanism("m", two, joints, constraints=[pin])
    kind, child = ("spherical", turned) if name == "body" else ("planar", None)
    first = pf.joint("j", kind, "world", "b", **({"child_placement": child} if child else {}))
    return pf.mechanism("m", two, [first, pf.joint("j.x", "revolute", "b", two[1].name)])


@pytest.mark.parametrize("name", ["body", "joint", "site", "connect|joint"])
def test_names_that_the_writer_makes_of_others_must_be_free(name, tmp_path):
    with pytest.raises(
        ModelError, match=rf"two elements <({name})> of the MJCF file would be called '(j frame|j\.x|z a|z b|k follows)'"
    ):
        pf.write(clash(name), tmp_path / "m.xml")
    assert not (tmp_path / "m.xml").exists()


def test_a_slider_without_limits_is_named_in_urdf(tmp_path):
    """The format requires them, and urdfdom refuses a file without."""
    for limits, named in (((-np.inf, np.inf), True), ((-1, 1), False)):
        slide = pf.joint("s", "prismatic", "world", "b", axis=(1, 0, 0), limits=limits)
        m = pf.mechanism("cart", [pf.body("b", 1.0, (0, 0, 0), 0.1)], [slide])
        found, told = again(m, tmp_path / "m.urdf")
        assert ["joint 's' has no limits, which the format requires" in " ".join(told)] == [named]
        assert found.joint("s").limits == m.joint("s").limits
