"""All coordinates of a mechanism along given motions of some of them, or of bodies, against closed forms."""

from __future__ import annotations

import ast
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.viewer import zoo
from tests.workspaces import delta_cranks, stewart_legs

CLOSED = 1e-8
"""Difference [rad, m] of an assembly from a closed form: the residual of 1e-9 of a machine of about 1 m, far from singular."""

Y = {"kind": "revolute", "axis": (0, -1, 0)}
TIMES = np.linspace(0, 2, 301)


def four_bar() -> pf.Mechanism:
    """Links a, b and c over a ground of 1.5 m; a turns fully, and b and c are open to one side."""
    bodies = [pf.body(n, 1.0, com=(x / 2, 0, 0), inertia=0.1) for n, x in (("a", 0.5), ("b", 1.2), ("c", 1.1))]
    joints = [
        pf.joint("A", parent="world", child="a", **Y),
        pf.joint("B", parent="a", child="b", placement=(0.5, 0, 0), **Y),
        pf.joint("D", parent="world", child="c", placement=(1.5, 0, 0), **Y),
    ]
    loop = pf.closure("C", body_a="b", body_b="c", placement_a=(1.2, 0, 0), placement_b=(1.1, 0, 0), **Y)
    return pf.mechanism("four-bar", bodies, joints, constraints=[loop])


def rocker(A: np.ndarray) -> np.ndarray:
    """Angle D of the four-bar with its coupler above the ground."""
    across = 1.5 - 0.5 * np.exp(1j * A)
    d = np.abs(across)
    return np.asarray(np.angle(-across) - np.arccos((1.1**2 + d**2 - 1.2**2) / (2 * 1.1 * d)))


ABOVE = {"B": 0.6, "D": 2.0}


def rod() -> pf.Mechanism:
    plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
    return pf.mechanism(
        "pendulum", [pf.body("bob", 1.0)], [plane], constraints=[pf.closure("rod", "distance", "world", "bob", length=1.0)]
    )


# -- branches and closed forms ----------------------------------------------------------------------------------------


def test_a_four_bar_turns_many_times_on_its_branch():
    turns = 12 * np.sin(TIMES) + 0.3
    found = pf.assemble(four_bar(), {"A": turns}, guess=ABOVE, t=TIMES, along=True)
    assert found.reached.all() and not found.lost and not found.passages
    assert np.abs(np.angle(np.exp(1j * (found.named["D"] - rocker(turns))))).max() < CLOSED
    assert np.abs(np.diff(found.q, axis=0)).max() < 1  # angles are continuous
    below = pf.assemble(four_bar(), {"A": turns}, guess={"B": -1.5, "D": -2.5}, t=TIMES, along=True)
    assert below.branch != found.branch and np.abs(np.sin((below.named["D"] - found.named["D"]) / 2)).min() > 0.1


def test_a_delta_robot_follows_a_point():
    m, start = zoo.machine("delta").m, zoo.machine("delta")[3].start
    at = np.stack([0.15 * np.sin(3 * TIMES), 0.2 * np.cos(2 * TIMES) - 0.1, -0.4 + 0.1 * np.sin(5 * TIMES)], axis=1)
    guess = {n: x for n, x in pf.assemble(m, start).named.items() if not n.startswith("plate")}
    found = pf.assemble(m, dict(zip(("plate.x", "plate.y", "plate.z"), at.T, strict=True)), guess=guess, t=TIMES, along=True)
    cranks = np.stack([found.named[f"crank {i}"] for i in (1, 2, 3)], axis=1)
    assert np.abs(cranks - delta_cranks(at)).max() < CLOSED
    body = pf.assemble(m, {("plate", (0, 0, 0)): at}, guess=pf.assemble(m, start).named, t=TIMES, along=True)
    assert np.abs(body.q - found.q).max() < CLOSED and np.abs(body.v - found.v).max() < 100 * CLOSED


@pytest.mark.parametrize("size", [7, 4])
def test_a_platform_follows_a_pose_or_an_attitude_with_quaternions_of_any_sign(size):
    m, start = zoo.machine("stewart").m, pf.assemble(zoo.machine("stewart").m, zoo.machine("stewart")[3].start)
    w = 0.3 * np.stack([np.sin(4 * TIMES), np.cos(3 * TIMES), np.sin(2 * TIMES)], axis=1)
    half = np.linalg.norm(w, axis=1, keepdims=True) / 2
    turn = np.hstack([w * np.sinc(half / np.pi) / 2, np.cos(half)])
    rotation = np.array([np.array(ca.DM(so3.quat_to_matrix(x))) for x in turn])
    at = np.stack([0.2 * np.sin(3 * TIMES), 0.1 * np.cos(TIMES), 0.9 + 0.1 * np.cos(2 * TIMES)], axis=1)
    series = np.hstack([at, turn * np.where(np.arange(len(TIMES)) % 7 == 3, -1, 1)[:, None]])  # -q is the same attitude
    given = {("plate", (0, 0, 0)): series[:, -size:]}
    given |= dict(zip(("plate.x", "plate.y", "plate.z"), at.T, strict=True)) if size == 4 else {}
    found = pf.assemble(m, given, guess={n: x for n, x in start.named.items() if n not in given}, t=TIMES, along=True)
    assert found.reached.all()
    legs = np.stack([found.named[f"leg {i}"] for i in range(1, 7)], axis=1)
    assert np.abs(legs - stewart_legs(at, rotation)).max() < CLOSED
    inner = slice(3, -3)  # v and a are along the axes of the plate
    assert np.abs(np.gradient(found.v, TIMES, axis=0) - found.a)[inner].max() < 200 * TIMES[1] ** 2
    assert (
        np.abs(np.gradient(legs, TIMES, axis=0) - found.v[:, [found.v_names.index(f"leg {i}") for i in range(1, 7)]])[
            inner
        ].max()
        < 50 * TIMES[1] ** 2
    )


def test_ten_thousand_poses_of_a_gripper_stay_on_the_parallelogram():
    m, drive = zoo.machine("gripper").m, np.random.default_rng(7).uniform(-1.5, 1.5, 10_000)
    found = pf.assemble(m, {"drive": drive})
    assert found.continued.all() and len(set(found.branch)) == 1
    for name, sign in (("left inner", 1), ("left pad", -1), ("right inner", 1), ("right pad", -1)):
        assert np.abs(found.named[name] - sign * drive).max() < CLOSED


def test_poses_of_a_delta_robot_are_on_the_branch_of_its_start():
    m, start, random = zoo.machine("delta").m, zoo.machine("delta")[3].start, np.random.default_rng(5)
    at = np.stack([random.uniform(a, b, 1500) for a, b in ((-0.25, 0.25), (-0.25, 0.25), (-0.55, -0.25))], axis=1)
    exact = delta_cranks(at)
    within = np.isfinite(exact).all(axis=1)
    guess = {n: x for n, x in pf.assemble(m, start).named.items() if not n.startswith("plate")}
    found = pf.assemble(m, dict(zip(("plate.x", "plate.y", "plate.z"), at[within].T, strict=True)), guess=guess)
    assert within.sum() > 1000 and len(set(found.branch)) == 1
    assert np.abs(np.stack([found.named[f"crank {i}"] for i in (1, 2, 3)], axis=1) - exact[within]).max() < CLOSED


# -- rates -------------------------------------------------------------------------------------------------------------


def test_rates_of_references_are_exact():
    """x = 0.6 sin 2 t on a rod of 1 m: y = -sqrt(1 - x^2)."""
    x, v, a = 0.6 * np.sin(2 * TIMES), 1.2 * np.cos(2 * TIMES), -2.4 * np.sin(2 * TIMES)
    y = -np.sqrt(1 - x**2)
    vy = -x * v / y
    ay = -(v**2 + x * a + vy**2) / y
    for given in (
        control.function_of_time(lambda t: [0.6 * ca.sin(2 * t)], 1),
        control.Setpoint(x, v, a),
    ):
        found = pf.assemble(rod(), {"bob.x": given}, guess={"bob.y": -1}, t=TIMES, along=True)
        for got, exact in ((found.q, (x, y)), (found.v, (v, vy)), (found.a, (a, ay))):
            assert np.abs(got - np.stack(exact, axis=1)).max() < CLOSED


def test_rates_of_series_are_those_of_their_spline():
    """A cubic polynomial is its own spline."""
    x, v, a = 0.5 - 0.3 * TIMES**3 / 4, -0.9 * TIMES**2 / 4, -1.8 * TIMES / 4
    found = pf.assemble(rod(), {"bob.x": x}, guess={"bob.y": -1}, t=TIMES, along=True)
    exact = pf.assemble(rod(), {"bob.x": control.Setpoint(x, v, a)}, guess={"bob.y": -1}, t=TIMES, along=True)
    assert (
        np.abs(found.v - exact.v).max() < 1e-9 and np.abs(found.a - exact.a).max() < 1e-7
    )  # rounding over the spacing, squared
    free = pf.assemble(rod(), {"bob.x": x}, guess={"bob.y": -1}, along=True)
    assert np.abs(free.q - found.q).max() < CLOSED and np.isnan(free.v).all() and np.isnan(free.a).all()


def test_accelerations_are_those_of_a_driven_machine():
    """The given motion and its accelerations satisfy A v_dot = b, as `complete_acceleration` solves it."""
    m, angle = four_bar(), control.function_of_time(lambda t: [0.3 + 2 * t + ca.sin(3 * t)], 1)
    found = pf.assemble(m, {"A": angle}, guess=ABOVE, t=TIMES, along=True)
    for i in (0, 77, 300):
        a = pf.constraints.complete_acceleration(m, found.q[i], found.v[i], {"A": found.a[i, 0]})
        assert np.abs(a - found.a[i]).max() < 1e-7 * (1 + np.abs(a).max())


def test_constraints_that_move_have_their_own_rates():
    """A bead on a wire that rises: y = x^2 + t^2, x = t."""
    wire = pf.holonomic("wire", lambda k: k.q[1] - k.q[0] ** 2 - k.t**2)
    plane = pf.joint("bead", "planar-translation", "world", "bead", axis=(0, -1, 0))
    m = pf.mechanism("bead", [pf.body("bead", 1.0)], [plane], constraints=[wire])
    found = pf.assemble(m, {"bead.x": TIMES}, t=TIMES, along=True)
    for got, exact in ((found.q, 2 * TIMES**2), (found.v, 4 * TIMES), (found.a, 4 + 0 * TIMES)):
        assert np.abs(got[:, 1] - exact).max() < CLOSED


def arm() -> pf.Mechanism:
    links = [pf.body(f"link {i}", 1.0, com=(0, 0, 0.15), inertia=0.02) for i in range(7)]
    joints = [
        pf.joint(f"j{i}", "revolute", f"link {i - 1}" if i else "world", f"link {i}", axis=(0, i % 2, 1 - i % 2),
                 placement=(0, 0, 0.3 if i else 0))
        for i in range(7)
    ]  # fmt: skip
    return pf.mechanism("arm", links, joints)


def test_an_arm_with_one_joint_too_many_moves_as_slowly_as_possible():
    """The tool's pose leaves one motion free. v is the smallest in the metric of M, and q its integral."""
    m, q = arm(), np.array([0.1, 0.5, -0.2, 0.9, 0.3, 0.7, 0.2])
    hand, tool = pf.forward_kinematics(m, q)["link 6"], np.array([0, 0.05, 0.1])
    at = hand.position + hand.rotation @ tool + 0.1 * np.stack([np.sin(2 * TIMES), 1 - np.cos(2 * TIMES), 0 * TIMES], axis=1)
    pose = np.hstack([at, np.tile(so3.quaternions(hand.rotation[None])[0], (len(TIMES), 1))])
    found = pf.assemble(m, {("link 6", tuple(tool)): pose}, guess=dict(zip(m.q_names, q, strict=True)), t=TIMES, along=True)
    hands = pf.forward_kinematics(m, found.q)["link 6"]
    assert np.abs(hands.position + hands.rotation @ tool - at).max() < CLOSED
    assert np.abs(hands.rotation - hand.rotation).max() < CLOSED
    h = TIMES[1]
    assert np.abs(np.gradient(found.q, h, axis=0)[1:-1] - found.v[1:-1]).max() < 20 * h**2
    assert np.abs(np.gradient(found.v, h, axis=0)[1:-1] - found.a[1:-1]).max() < 100 * h**2
    J = pf.jacobian(m, "link 6", found.q[150], point=tool)
    idle = np.linalg.svd(J)[2][-1]
    assert abs(idle @ pf.mass_matrix(m, found.q[150]) @ found.v[150]) < 1e-9


def test_quaternions_of_any_length_give_the_rates_of_their_attitude():
    """A plate on a ball joint turns about z; its quaternion grows meanwhile."""
    ball = pf.joint("ball", "spherical", "world", "plate")
    m = pf.mechanism("plate", [pf.body("plate", 1.0, inertia=(1, 2, 3)), pf.body("bob", 1.0)], [
        ball, pf.joint("bob", "prismatic", "world", "bob")])  # fmt: skip
    angle, rate, acceleration = 0.5 * np.sin(2 * TIMES), np.cos(2 * TIMES), -2 * np.sin(2 * TIMES)
    s, c, zero = np.sin(angle / 2), np.cos(angle / 2), 0 * TIMES
    q = np.stack([zero, zero, s, c], axis=1)
    q_dot = np.stack([zero, zero, c, -s], axis=1) * rate[:, None] / 2
    q_ddot = np.stack([zero, zero, c, -s], axis=1) * acceleration[:, None] / 2 - q * rate[:, None] ** 2 / 4
    long = (1 + TIMES**2)[:, None]
    grown = q_ddot * long + 4 * TIMES[:, None] * q_dot + 2 * q
    given = control.Setpoint(q * long, q_dot * long + 2 * TIMES[:, None] * q, grown)
    found = pf.assemble(m, {("plate", (0, 0, 0)): given, "bob": 0.0}, t=TIMES, along=True)
    assert np.abs(found.v[:, 2] - rate).max() < CLOSED and np.abs(found.a[:, 2] - acceleration).max() < CLOSED
    assert np.abs(np.abs((found.q[:, :4] * q).sum(axis=1)) - 1).max() < CLOSED


def test_a_screw_keeps_its_whole_turns_along_coarse_samples():
    joints = [pf.joint("nut", "cylindrical", "world", "nut", axis=(0, 0, 1))]
    thread = pf.closure("thread", "helical", "world", "nut", axis=(0, 0, 1), pitch=0.02)
    m = pf.mechanism("nut", [pf.body("nut", 1.0, inertia=0.1)], joints, constraints=[thread])
    for name, other, ratio in (("nut.angle", "nut.z", 0.02), ("nut.z", "nut.angle", 50.0)):
        series = 2.5 * np.arange(40.0) / (1 if ratio < 1 else ratio)
        found = pf.assemble(m, {name: series}, t=np.arange(40.0), along=True)
        assert np.abs(found.named[other] - ratio * series).max() < CLOSED * 50


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["interpreter", "numpy"])
def test_a_trajectory_has_the_same_bits_in_any_batch(backend):
    m, phase = four_bar(), np.linspace(0, 3, 5)
    turns = 2 * np.sin(3 * TIMES[:, None] + phase) + phase
    guess = {n: np.full(5, x) for n, x in ABOVE.items()}
    many = pf.assemble(m, {"A": turns}, guess=guess, t=TIMES, along=True, backend=backend)
    assert many.q.shape == (301, 5, 3) and many.reached.shape == (301, 5) and many.branch.shape == (5,)
    for run in (0, 3):
        one = pf.assemble(m, {"A": turns[:, run]}, guess=ABOVE, t=TIMES, along=True, backend=backend)
        for name in ("q", "v", "a", "residual", "regularity"):
            assert np.array_equal(getattr(one, name), getattr(many, name)[:, run])


def test_an_assembly_has_the_same_bits_in_a_large_batch():
    angles = np.linspace(-3, 3, 1500)
    many = pf.assemble(four_bar(), {"A": angles}, guess=ABOVE)
    for i in (0, 700, 1499):
        one = pf.assemble(four_bar(), {"A": angles[i]}, guess=ABOVE)
        assert np.array_equal(one.q, many.q[i]) and one.distance == many.distance[i] and one.branch == many.branch[i]


# -- what cannot be followed ---------------------------------------------------------------------------------------------


def test_samples_out_of_reach_are_told_and_the_rest_goes_on():
    """The bob's x swings beyond its rod of 1 m, twice."""
    x = 1.2 * np.sin(4 * TIMES)
    with pytest.warns(pf.RunWarning, match="does not reach the samples") as told:
        found = pf.assemble(rod(), {"bob.x": x}, guess={"bob.y": -1}, t=TIMES, along=True)
    within = np.abs(x) <= 1
    assert len(told) == 1 and np.array_equal(found.reached, within) and np.isnan(found.q[~within]).all()
    assert np.abs(found.q[within, 1] + np.sqrt(1 - x[within] ** 2)).max() < 1e-4  # the root at the end of the reach
    edges = np.flatnonzero(np.diff(within))
    first = found.lost[0]
    assert (first.first, first.last) == (edges[0] + 1, edges[1]) and len(found.lost) == (len(edges) + 1) // 2
    assert abs(x[first.worst]) == pytest.approx(1.2, rel=1e-3) and first.residual == pytest.approx((1.2**2 - 1) / 2, rel=1e-2)
    begin = pf.assemble(rod(), {"bob.x": x[20:]}, guess={"bob.y": -1}, t=TIMES[20:], along=True, backend="numpy")
    assert not within[45] and np.array_equal(begin.reached, within[20:])
    assert not pf.assemble(rod(), {"bob.x": x[45:99]}, guess={"bob.y": -1}, t=TIMES[45:99], along=True).reached[0]
    with pytest.raises(pf.RunError, match=r"'bob\.x' = 1\.1"):
        pf.assemble(rod(), {"bob.x": np.linspace(1.1, 1.2, 9)}, guess={"bob.y": -1}, along=True)


def test_a_singular_passage_is_named():
    """A bead on two crossing wires, x y = 0, passes the crossing on the wire y = 0."""
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    m = pf.mechanism(
        "crossing", [pf.body("bead", 1.0)], [plane], constraints=[pf.holonomic("wires", lambda k: k.q[0] * k.q[1])]
    )
    with pytest.warns(pf.RunWarning, match="1 singular passage, the closest at sample 100: .* row 'wires' almost depends"):
        found = pf.assemble(
            m, {"bead.x": np.linspace(-0.5, 0.5, 201)}, guess={"bead.y": 0}, t=np.arange(201) * 0.01, along=True
        )
    (passage,) = found.passages
    assert passage.sample == 100 and passage.time == pytest.approx(1.0) and passage.row == "wires"
    assert found.reached.all() and np.abs(found.q[:, 1]).max() < CLOSED


def test_passages_and_losses_of_a_batch_are_those_of_its_runs_alone():
    """A bead on two crossing wires that end at 0.4 m: two runs cross at other samples, one of them leaves the wires."""
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    rows = [
        pf.holonomic("wires", lambda k: k.q[0] * k.q[1]),
        pf.holonomic("end", lambda k: ca.fmax(k.q[0] - 0.4, 0) ** 2),
    ]
    m = pf.mechanism("crossing", [pf.body("bead", 1.0)], [plane], constraints=rows)
    x = np.stack([np.linspace(-0.5, 0.3, 81), np.linspace(-0.3, 0.5, 81), np.linspace(-0.5, -0.1, 81)], axis=1)
    how = {"guess": {"bead.y": 0}, "t": np.arange(81) * 0.01, "along": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        together = pf.assemble(m, {"bead.x": x}, **how)
        alone = [pf.assemble(m, {"bead.x": x[:, r]}, **how) for r in range(3)]
    assert [(p.run, p.sample) for p in together.passages][:2] == [(0, 50), (1, 30)] and together.lost[0].run == 1
    assert together.passages == tuple(p._replace(run=r) for r in range(3) for p in alone[r].passages)
    assert together.lost == tuple(p._replace(run=r) for r in range(3) for p in alone[r].lost)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": {"A": TIMES, "B": TIMES[1:]}}, "different numbers of samples: 'A' has 301, 'B' has 300"),
        ({"q": {"A": TIMES[1:]}}, "'A' has 300 samples, but t has 301 times"),
        ({"q": {"AA": TIMES}}, "no coordinate or body 'AA'.*'A'"),
        (
            {"q": {"A": np.where(TIMES > 1, TIMES - 2 * np.pi, TIMES)}},
            r"'A' jumps by 6\.27.* rad between .* 150 and 151.*unwrap",
        ),
        ({"q": {"c": TIMES}}, r"\(samples, 7\) both"),
        ({"q": {"A": 0.3}, "t": 0.0}, "no series"),
        ({"q": {"A": [0.3]}, "t": [0.0]}, "two samples or more"),
        ({"t": TIMES[::-1]}, "increasing times"),
        ({"v": {"A": 1.0}}, "takes no v: .*Setpoint"),
        ({"hold": ["B"]}, "takes no hold"),
        ({"branches": 2}, "takes no branches"),
        ({"guess": {"A": 1.0}}, "q names 'A' too"),
        ({"q": None}, "q must be a dict of series"),
        ({"q": {"A": control.set_point([1.0, 2.0])}}, "reference of 1 number"),
        ({"q": {"A": control.set_point([1.0])}, "t": 0.0}, "give t=times"),
        ({"q": {("c", (0, 0, 0)): np.zeros((301, 4))}}, "quaternion is zero"),
    ],
)
def test_a_bad_trajectory_is_refused_with_element_and_way_out(changes, message):
    given = {"q": {"A": TIMES}, "t": TIMES} | changes
    with pytest.raises(pf.ModelError, match=message):
        pf.assemble(four_bar(), **given, along=True)


@pytest.mark.parametrize("how", [{"along": True, "t": [0.0, 1.0]}, {}])
def test_a_guess_without_names_is_refused_with_the_way_out(how):
    """The q of an assembly in place of its `named`."""
    rods = [pf.body(name, 1.0, com=(0.5, 0, 0), inertia=0.1) for name in ("a", "b")]
    joints = [pf.joint(f"turn {b.name}", "revolute", parent, b.name) for b, parent in zip(rods, ("world", "a"), strict=True)]
    m = pf.mechanism("two rods", rods, joints)
    q = {"turn a": [0.1, 0.2] if how else 0.1}
    with pytest.raises(pf.ModelError, match=r"guess: \{name: number\} is needed, such as the \.named of an assembly"):
        pf.assemble(m, q, guess=np.array([0.1, 0.3]), **how)


def test_a_first_sample_on_another_branch_is_told_with_a_guess():
    """A five-bar whose tip is above its feet by the guess, and below them in the motion: only the guess is in the way."""
    bodies = [pf.body(n, 1.0, com=(0.15, 0, 0), inertia=0.01) for n in ("left", "right")]
    joints = [pf.joint(f"at {b.name}", "revolute", "world", b.name, placement=(0.4 * i, 0, 0)) for i, b in enumerate(bodies)]
    joints += [pf.joint("tip", "planar-translation", "world", "tip")]
    rods = [pf.closure(f"rod {b.name}", "distance", b.name, "tip", length=0.5, placement_a=(0.3, 0, 0)) for b in bodies]
    m = pf.mechanism("five-bar", [*bodies, pf.body("tip", 1.0)], joints, constraints=rods)
    x = np.linspace(0.15, 0.25, 5)
    motion = {"tip": np.stack([x, -0.6 + 0 * x, 0 * x], axis=1)}
    above = {"at left": 1.0, "at right": 2.0, "tip.y": 0.6}
    with pytest.raises(pf.RunError, match="does not reach the first sample, which other branches have") as told:
        pf.assemble(m, motion, guess=above, along=True)
    guess = ast.literal_eval(str(told.value).partition("guess=")[2])
    found = pf.assemble(m, motion, guess=guess, along=True)
    assert found.reached.all() and found.q[0] == pytest.approx(np.array(list(guess.values())), abs=1e-3)


def test_nonlinear_rows_are_refused():
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    speed = pf.nonholonomic("speed", lambda k: ca.sumsqr(k.v) - 1)
    m = pf.mechanism("bead", [pf.body("bead", 1.0)], [plane], constraints=[speed])
    with pytest.raises(pf.ModelError, match="'speed' is not affine in v"):
        pf.assemble(m, {"bead.x": TIMES}, t=TIMES, along=True)


def test_nothing_is_told_where_all_is_well():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pf.assemble(four_bar(), {"A": TIMES}, guess=ABOVE, t=TIMES, along=True)
    assert repr(found) == "<Trajectory: 301 samples of A, B, D; 0 singular passages, 0 samples out of reach>"
