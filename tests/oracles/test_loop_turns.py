"""A run counts the turns of a closure that the tree does not tell, and along a motion its angles go on over whole turns."""

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import ALGEBRA, INTEGRATED, close

LENGTHS, TWIST = (0.8, 1.1), 0.7
"""Of a Bennett linkage: opposite links are equal, sin(twist) / length of all is equal, and opposite hinges turn alike."""

RUN = {"step": 1e-3, "every": 20, "backend": "interpreter", "error_bound": np.inf, "error": False}


def bennett(on: str = "", parameters=(), **spring) -> pf.Mechanism:
    """The linkage with hinge 4 as its closure, and a spring on one of its hinges."""
    (a, b), alpha = LENGTHS, TWIST
    beta = np.arcsin(b / a * np.sin(alpha))
    placed = {"hinge 2": (a, alpha), "hinge 3": (b, beta)}
    carried = {name: spring if name == on else {} for name in ("hinge 1", "hinge 2", "hinge 3", "hinge 4")}
    bodies = [pf.body(f"link {i}", 1.0, com=(l / 2, 0, 0), inertia=0.1) for i, l in ((1, a), (2, b), (3, a))]
    ends = ("world", "link 1", "link 2", "link 3")
    joints = [
        pf.joint(name, "revolute", *pair, placement=_link(*placed.get(name, (0.0, 0.0))), **carried[name])
        for name, *pair in zip(("hinge 1", "hinge 2", "hinge 3"), ends[:3], ends[1:], strict=True)
    ]
    ends = {"placement_a": _link(a, alpha), "placement_b": _link(-b, -beta)}
    closed = pf.closure("hinge 4", "revolute", "link 3", "world", **ends, **carried["hinge 4"])
    return pf.mechanism("Bennett", bodies, joints, constraints=[closed], parameters=parameters)


def _link(length: float, twist: float) -> pf.Pose:
    return pf.pose((length, 0, 0), rpy=(twist, 0, 0))


def spun(speed: float = 24.0) -> pf.Mechanism:
    """The linkage's start."""
    return pf.assemble(bennett(), {"hinge 1": 0.4}, {"hinge 1": speed}, guess={"hinge 2": 2.6, "hinge 3": 0.4})


def opposite(at) -> tuple[float, float, float]:
    """Angle of hinge 2, that of hinge 4 near it or its opposite, and the sign with which both turn together."""
    way = pf.assemble(bennett(), {"hinge 1": [0.4, 0.41]}, guess={"hinge 2": at.q[1], "hinge 3": at.q[2]}, along=True)
    h2, h4 = way.named["hinge 2"], way.loop["hinge 4"]
    return h2[0], h4[0], float(np.sign(np.diff(h2)[0] * np.diff(h4)[0]))


def test_a_spring_at_a_closing_hinge_winds_up_like_one_at_the_opposite_hinge():
    at = spun()
    rest2, rest4, sign = opposite(at)
    spring = {"stiffness": 0.5, "damping": 0.02}
    tree, closed = bennett("hinge 2", rest=rest2, **spring), bennett("hinge 4", rest=rest4, **spring)
    expected = pf.run(tree, at.q, at.v, duration=2.0, **RUN)
    wound = expected["q"].sel(coordinate="hinge 2").values - rest2
    assert np.abs(wound).max() > 3 * 2 * np.pi
    found = pf.run(closed, at.q, at.v, duration=2.0, **RUN)
    close(found["loop"].values.ravel() - rest4, sign * wound, 10 * INTEGRATED, "angle of the closing hinge")
    close(found["energy"].values, expected["energy"].values, 10 * INTEGRATED, "energy", float(expected["energy"].max()))
    assert set(found.data_vars) - set(expected.data_vars) == {"loop", "loop_rate"}
    # The same bits in a batch, in a run that goes on from another, and in a stepper.
    batch = pf.run(closed, np.tile(at.q, (3, 1)), np.array([at.v, -at.v, at.v / 2]), duration=2.0, **RUN)
    assert (batch["loop"].values[0] == found["loop"].values).all()
    half = pf.run(closed, at.q, at.v, duration=1.0, **RUN)
    whole = pf.run(closed, start_from=half, duration=1.0, **RUN)
    assert (whole["loop"].values[-1] == found["loop"].values[-1]).all()
    s = pf.stepper(closed, step=RUN["step"], record=["loop"], backend="interpreter")
    s.reset(at.q, at.v)
    s.step(steps=2000)
    assert (s.observe()["loop"] == found["loop"].values[-1]).all()
    most = pf.run(closed, at.q, at.v, duration=2.0, **(RUN | {"every": 1}), record={"top": pf.statistics.maximum("loop")})
    assert float(most["top"].max()) >= found["loop"].values.max() > rest4 + (6 * np.pi if sign > 0 else 0)


def test_angles_of_closures_go_on_along_a_motion():
    at, m = spun(), bennett()
    t = np.linspace(0.0, 3.0, 91)
    ways = 0.4 + 2 * np.pi * np.array([t, -t]).T
    there = pf.assemble(m, {"hinge 1": ways}, t=t, along=True, guess={"hinge 2": at.q[1], "hinge 3": at.q[2]})
    turned, tree = np.diff(there.loop["hinge 4"], axis=0), np.diff(there.named["hinge 2"], axis=0)
    close(turned, opposite(at)[2] * tree, 1e3 * ALGEBRA, "rate of opposite hinges")
    close(np.abs(turned.sum(axis=0)), [6 * np.pi] * 2, 1e3 * ALGEBRA, "three turns")
    # Samples between which a hinge makes more than half a turn are told apart by its rates.
    coarse = np.linspace(0.0, 3.0, 19)
    rough = pf.assemble(
        m, {"hinge 1": 0.4 + 2 * np.pi * coarse}, t=coarse, along=True, guess={"hinge 2": at.q[1], "hinge 3": at.q[2]}
    )
    steps = np.diff(rough.loop["hinge 4"])
    assert np.abs(steps).max() > np.pi
    close(np.abs(steps.sum()), 6 * np.pi, 1e3 * ALGEBRA, "three turns in coarse samples")
    held = 0.3 + 2 * np.pi * t  # the coordinate of a closure that is held keeps the turns that it was given
    back = pf.assemble(m, {"hinge 4": held}, t=t, along=True, guess=at.named)
    close(back.loop["hinge 4"], held, ALGEBRA, "given angle")


SPINNING = {
    "revolute": {"axis": (0, 0, 1)},
    "cylindrical": {"axis": (0, 0, 1)},
    "universal": {"axis": (0, 0, 1), "axis_b": (1, 0, 0)},
}


@pytest.mark.parametrize("kind", SPINNING)
def test_every_angle_of_a_closure_is_counted(kind):
    """A body on a ball joint, which knows no turns, held by a closure with a spring, beside the same joint in the tree."""
    axes, angles = SPINNING[kind], 2 if kind == "universal" else 1
    slides = int(kind == "cylindrical")
    spring = {"stiffness": np.diag([1.0] * slides + [0.02] * angles), "damping": 0.001}
    body, speed = pf.body("top", 1.0, inertia=(0.02, 0.03, 0.04)), [0.0] * slides + [15.0, 3.0][:angles]
    if kind == "universal":
        cross = pf.body("cross", 0.0)
        parts = [pf.joint(f"turn {i}", "revolute", *ends, axis=axis, stiffness=0.02, damping=0.001)
                 for i, (*ends, axis) in enumerate((("world", "cross", (0, 0, 1)), ("cross", "top", (1, 0, 0))))]  # fmt: skip
        tree = pf.mechanism("tree", [cross, body], parts, gravity=(0, 0, 0))
    else:
        tree = pf.mechanism("tree", [body], [pf.joint("turn", kind, "world", "top", **axes, **spring)], gravity=(0, 0, 0))
    expected = pf.run(tree, v=speed, duration=1.5, **RUN)["q"].values
    assert np.abs(expected).max() > 2 * np.pi
    ball = pf.joint("ball", "spherical", "world", "top")
    held = pf.closure("C", kind, "world", "top", **axes, **spring)
    closed = pf.mechanism("closed", [body], [ball], constraints=[held], gravity=(0, 0, 0))
    w = {"ball.wz": speed[slides]} | ({"ball.wx": speed[1]} if angles == 2 else {})
    found = pf.run(closed, v=w, duration=1.5, **RUN)["loop"].values
    close(found, expected, INTEGRATED, "angles", np.abs(expected).max())


def test_turns_are_counted_for_who_reads_them_and_nobody_else():
    at, m = spun(), bennett()
    law = pf.control.discrete(lambda s: pf.control.Command(-0.1 * s.terms.kinematics.joint("hinge 4")), 0.01)
    read = {"outputs": {"angle": lambda k: k.joint("hinge 4")}}
    found = pf.run(m, at.q, at.v, duration=1.0, **RUN, **read)
    assert np.ptp(found["angle"].values) > 2 * np.pi
    assert np.abs(np.diff(found["angle"].values.ravel())).max() < np.pi
    assert found["end_state"].shape[-1] > m.nq + m.nv
    plain = pf.run(m, at.q, at.v, duration=1.0, **RUN, outputs={"angle": lambda k: k.joint("hinge 2")})
    assert plain["end_state"].shape[-1] == m.nq + m.nv
    driven = m.with_(actuators=[pf.actuator("motor", "hinge 1")])
    torque = pf.run(driven, at.q, at.v, duration=1.0, control=law, **RUN, **read)
    assert np.abs(np.diff(torque["u"].values.ravel())).max() < 0.1 * np.pi
    assert np.ptp(torque["u"].values) > 0.2 * np.pi


def test_a_run_begins_at_the_turn_at_which_a_closure_is_held():
    stiff = pf.Parameter("stiff", 0.5)
    held = pf.closure("C", "revolute", "world", "top", stiffness=stiff)
    ball, body = pf.joint("ball", "spherical", "world", "top"), pf.body("top", 1.0, inertia=(0.02, 0.03, 0.04))
    m = pf.mechanism("closed", [body], [ball], constraints=[held], parameters=[stiff])
    for given in ({"stiff": 2.0}, [2.0]):  # what counts is none of the caller's parameters
        r = pf.run(m, {"C": 9.0}, parameters=given, duration=0.1, **RUN)
        close(r["loop"][0], [9.0], ALGEBRA, "angle at the start")
        close(r["energy"][0] - r["kinetic_energy"][0], 81.0, 10 * ALGEBRA, "energy of the spring")
        assert r["parameter"].values.tolist() == ["stiff"]
    with pytest.raises(pf.errors.ModelError, match=r"no 'turns of C 0'.*stiff"):
        pf.run(m, parameters={"turns of C 0": 1.0}, duration=0.1)
