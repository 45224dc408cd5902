"""Every robot of example-robot-data, compared with what Pinocchio reads from the same file; and the example models."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import RunSettings, read_urdf
from pfaffian.formats.read import read
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import symbols
from pfaffian.viewer import zoo
from tests.tolerance import close

pin = pytest.importorskip("pinocchio")
try:
    _FILES = distribution("example-robot-data").files or []
except PackageNotFoundError:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)
ROBOTS = sorted(Path(str(f.locate())) for f in _FILES if f.suffix == ".urdf")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))

NOT_EXPANDED = {"ur3.urdf"}  # xacro source without a link, which Pinocchio refuses too
NO_JOINT = {"quadrotor_base.urdf", "iris_simple.urdf"}  # one rigid body, which moves only on a free base
MASSLESS = {  # number of finger joints that move no mass: Pinocchio reads them, but its dynamics divides by zero
    "romeo.urdf": 24,
    "romeo_laas_small.urdf": 2,
}
CLOSED = 1e-12  # residual that the example files promise


def quietly(path: Path, **options) -> Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_urdf(path, **options)


def moving_mass(m: Mechanism) -> float:
    moving: set[str] = set()
    for j in m.joints:
        if j.nv or j.parent in moving:
            moving.add(j.child)
    return sum(m.value(m.body(name).mass).item() for name in moving)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("path", ROBOTS, ids=lambda p: f"{p.parts[-3]}/{p.stem}")
def test_same_robot_as_pinocchio(path, base):
    if path.name in NOT_EXPANDED or (base == "fixed" and path.name in NO_JOINT):
        with pytest.raises(ModelError, match=r"xacro|base='free'"):
            quietly(path, base=base)
        return
    theirs = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if base == "free" else []))
    ours = quietly(path, base=base)
    names = [j.name for j in ours.joints if j.nv]
    assert len(set(theirs.names[1:]) - set(names)) == MASSLESS.get(path.name, 0)
    assert set(names) <= set(theirs.names[1:])
    assert ours.nv == theirs.nv - MASSLESS.get(path.name, 0)
    assert moving_mass(ours) == pytest.approx(sum(i.mass for i in theirs.inertias[1:]), rel=1e-12)
    assert len(ours.actuators) == sum(j.nv == 1 for j in ours.joints)


def test_massless_joints_are_named():
    path = next(p for p in ROBOTS if p.name == "romeo.urdf")
    with pytest.warns(ModelWarning, match="move no mass are locked at zero: 'LFinger12'"):
        m = read_urdf(path)
    assert m.joint("LFinger12").nv == 0
    with pytest.raises(ModelError, match=r"line \d+: <joint> 'LHand': this joint moves no mass"):
        read_urdf(path, strict=True)


def test_unphysical_bodies_are_named():
    path = next(p for p in ROBOTS if p.name == "tiago.urdf")
    with pytest.warns(ModelWarning, match="inertias that no body can have are used as they are: 'base_antenna_left_link'"):
        assert read_urdf(path).lenient
    with pytest.raises(ModelError, match=r"line \d+: <link> 'base_antenna_left_link': a principal moment"):
        read_urdf(path, strict=True)


def closures(m: Mechanism, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    t = symbols(m)
    return np.array(ca.Function("phi", [t.q, t.t, m.p_symbols], [t.rows.phi])(q, 0, p))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_start_closed(path):
    """Coordinates that the file gives keep their values."""
    m, settings = read(path)
    at = zoo.start(m, settings).q
    assert {name: at[name] for name in settings.q} == settings.q
    assert np.abs(closures(m, np.array(list(at.values())), settings.arrays(m).p)).max(initial=0.0) < CLOSED


def placed(robot: str, settings: RunSettings):
    """A function from the name of a frame to its placement by Pinocchio, at the start of the run."""
    path = next(p for p in ROBOTS if p.name == robot)
    model = pin.buildModelFromUrdf(str(path))
    data, q = model.createData(), pin.neutral(model)
    for name, value in settings.start.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    pin.framesForwardKinematics(model, data, q)
    return lambda frame: data.oMf[model.getFrameId(frame)]


def test_panda_is_welded_at_the_pose_of_its_hand():
    m, settings = read(next(p for p in EXAMPLES if p.stem == "panda_welded"))
    hand, weld = placed("panda.urdf", settings)("panda_hand"), m.constraints[-1]
    assert np.abs(m.value(weld.placement_a.R) - hand.rotation).max() < CLOSED
    assert np.abs(m.value(weld.placement_a.p).ravel() - hand.translation).max() < CLOSED
    assert np.abs(m.value(weld.placement_b.R) - np.eye(3)).max() == 0


def test_the_bar_fits_between_the_hands_of_baxter():
    m, settings = read(next(p for p in EXAMPLES if p.stem == "baxter_bar"))
    at = placed("baxter.urdf", settings)
    gap = at("left_hand_link").actInv(at("right_hand_link"))
    assert np.abs(gap.rotation - np.eye(3)).max() < CLOSED
    assert np.abs(gap.translation - [0, -0.5, 0]).max() < CLOSED
    assert m.joint("left grip").nv == 0


CASSIE = {
    "cassie": (16, "free"), "cassie_v2": (4, "free"), "cassie_simple": (4, "prismatic"), "cassie_reduced": (4, "prismatic"),
    "cassie_wo_gearbox_spring": (4, "prismatic"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASSIE)
def test_every_cassie_opens_with_closed_loops(name):
    """Four loops, or six loops and ten gearboxes. They are closed at the poses of the file, in spite of rounded numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m, settings = pf.read(pf.formats.installed("example-robot-data", f"robots/{name}.sdf"))
    count, kind = CASSIE[name]
    assert (len(m.constraints), m.joints[0].kind.name) == (count, kind)
    at = pf.forward_kinematics(m, settings.arrays(m).q)
    closures = [c for c in m.constraints if isinstance(c, Closure)]
    for c in closures:
        ends = [at[b].rotation @ m.value(X.p).ravel() + at[b].position if b != "world" else m.value(X.p).ravel()
                for b, X in ((c.body_a, c.placement_a), (c.body_b, c.placement_b))]  # fmt: skip
        close(ends[0], ends[1], CLOSED, c.name, 1.0)
    assert len(closures) == (6 if name == "cassie" else 4)
