"""Assemblies stay on the branch of the state from which they come, however far the held coordinates move."""

from __future__ import annotations

import itertools
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from benchmarks.assembly import ankle
from pfaffian.starts import continuation
from pfaffian.starts.branch import UNKNOWN, determinant, sides
from pfaffian.starts.branch import _function as distances
from pfaffian.starts.newton import Fixed, Problem
from pfaffian.viewer import zoo
from tests.folded_quadrilaterals import Quadrilaterals, parameters_of, quadrilateral
from tests.simulate.test_trajectories import four_bar

SAME = 1e-7
"""Difference [rad] of an assembly from the closed form of its branch: the residual of 1e-9, and loops that are nearly flat."""

Y = {"kind": "revolute", "axis": (0, 1, 0)}


def turned(about: str, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array({"x": [[1, 0, 0], [0, c, -s], [0, s, c]], "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]]}[about])


def circle(r: np.ndarray, P: np.ndarray, squared: float) -> list[float]:
    """Both angles about x at which the turned point r has this squared distance from P."""
    c = (r @ r + P @ P - squared) / 2 - r[0] * P[0]
    a, s = r[1] * P[1] + r[2] * P[2], r[1] * P[2] - r[2] * P[1]
    if abs(c) > np.hypot(a, s):
        return []
    middle, half = np.arctan2(s, a), np.arccos(c / np.hypot(a, s))
    return [float(np.angle(np.exp(1j * x))) for x in (middle - half, middle + half)]


# -- a platform on a cardan joint, turned by two cranks with rods --------------------------------------------------------

CRANKS = {
    "right": ((0.02, -0.019, -0.006), (0.026, -0.017, 0.01), 0.24),
    "left": ((0.015, 0.018, -0.003), (0.025, 0.018, 0.007), 0.17),
}
"""Name of a crank -> its tip, the end of its rod on the platform, and its height [m]."""

CENTRE = np.array([0, 0, -0.02])


def platform() -> pf.Mechanism:
    return ankle(CRANKS, CENTRE)


def cranks_at(pitch: float, roll: float) -> dict[str, float] | None:
    """The angles of the cranks on the branch of the neutral state, by the sign that does not change along it."""
    found = {}
    for name, (tip, end, height) in CRANKS.items():
        base = np.array([end[0], 0, height])
        squared = float(((base + tip - end - CENTRE) ** 2).sum())
        P = turned("y", pitch) @ (CENTRE + turned("x", roll) @ end) - base
        both, neutral = circle(np.array(tip), P, squared), circle(np.array(tip), CENTRE + end - base, squared)
        if not both or max(map(abs, both)) > 3:
            return None
        found[name] = both[int(np.argmin(np.abs(neutral)))]
    return found


def test_a_platform_stays_on_the_branch_of_its_neutral_state():
    m, random = platform(), np.random.default_rng(3)
    pitch, roll = random.uniform(-0.7, 0.45, 400), random.uniform(-0.3, 0.3, 400)
    wanted = [cranks_at(*x) for x in zip(pitch, roll, strict=True)]
    within = [i for i, x in enumerate(wanted) if x is not None]
    assert len(within) > 250
    a = pf.assemble(m, {"pitch": pitch[within], "roll": roll[within]})
    for name in CRANKS:
        exact = np.array([wanted[i][name] for i in within])
        assert np.abs(exact).max() > 0.8 and np.abs(a.named[name] - exact).max() < SAME
    assert a.continued.all()
    one = pf.assemble(m, {"pitch": float(pitch[within[7]]), "roll": roll[within[7]]})
    assert (one.q == a.q[7]).all() and one.continued


STEPS = 6
"""Most Newton steps of a pose on its way: the slope at the beginning, and two or three strides with one or two each."""


def test_few_newton_steps_lead_to_a_pose(monkeypatch):
    m, random, count, stepped = platform(), np.random.default_rng(6), [0], continuation._stepped
    q = {"pitch": random.uniform(-0.5, 0.3, 1500), "roll": random.uniform(-0.2, 0.2, 1500)}

    def counted(problem, q):
        count[0] += q.shape[1]
        return stepped(problem, q)

    monkeypatch.setattr(continuation, "_stepped", counted)
    a = pf.assemble(m, q)
    assert 2 < count[0] / 1500 <= STEPS
    alone = pf.assemble(m, {name: x[7] for name, x in q.items()})
    few = pf.assemble(m, {name: x[5:70] for name, x in q.items()})
    assert (alone.q == a.q[7]).all() and (few.q == a.q[5:70]).all()


# -- a spatial four-bar with two balls ---------------------------------------------------------------------------------


def spatial(crank: float = 0.1, rod: float = 1.22, rocker: float = 0.8) -> pf.Mechanism:
    """A crank about z and a rocker about x, whose tips a rod connects."""
    bodies = [
        pf.body("crank", 1.0, com=(crank / 2, 0, 0), inertia=0.02),
        pf.body("rocker", 1.0, com=(0, rocker / 2, 0), inertia=0.05),
    ]
    joints = [pf.joint("crank", "revolute", "world", "crank", axis=(0, 0, 1)),
              pf.joint("rocker", "revolute", "world", "rocker", axis=(1, 0, 0), placement=(0.9, 0, 0.2))]  # fmt: skip
    loop = pf.closure("rod", "distance", "crank", "rocker", placement_a=(crank, 0, 0), placement_b=(0, rocker, 0), length=rod)
    return pf.mechanism("spatial four-bar", bodies, joints, constraints=[loop])


def rockers(angle: float) -> list[float]:
    tip = 0.1 * np.array([np.cos(angle), np.sin(angle), 0]) - [0.9, 0, 0.2]
    return circle(np.array([0, 0.8, 0]), tip, 1.22**2)


@pytest.mark.parametrize("branch", [0, 1])
def test_a_spatial_four_bar_keeps_the_branch_that_a_guess_selects(branch):
    m, angles = spatial(), np.linspace(-3, 3, 61)
    for angle in angles:
        both = rockers(angle)
        begin = rockers(0.4)[branch]
        exact = pf.assemble(m, {"crank": angle}, guess={"rocker": both[branch]})
        assert abs(np.angle(np.exp(1j * (exact.named["rocker"] - both[branch])))) < SAME
        moved = pf.assemble(m, [0.4, begin])
        followed = pf.assemble(m, [angle, moved.q[1]], hold=["crank"])
        assert abs(np.angle(np.exp(1j * (followed.named["rocker"] - both[branch])))) < SAME


@pytest.mark.parametrize("tilt", [0.02, -0.02, 0.002, -0.002])
def test_a_slider_crank_beside_its_dead_centre_stays_on_its_side(tilt):
    crank, rod = 0.3, 0.7
    there = crank * np.cos(tilt) + np.sqrt(rod**2 - (crank * np.sin(tilt)) ** 2)
    tip = {"placement_a": (crank * np.cos(tilt), 0, -crank * np.sin(tilt)), "length": rod}
    m = pf.mechanism(
        "slider-crank",
        [pf.body("crank", 1.0, inertia=0.01), pf.body("slider", 1.0)],
        [pf.joint("crank", parent="world", child="crank", **Y),
         pf.joint("slider", "prismatic", "world", "slider", axis=(1, 0, 0), placement=(there, 0, 0))],
        constraints=[pf.closure("rod", "distance", "crank", "slider", **tip)],
    )  # fmt: skip
    x = np.linspace(there - 1e-4, rod - crank + 0.05, 60)
    a = pf.assemble(m, {"slider": x - there})
    angle = np.arccos((x**2 + crank**2 - rod**2) / (2 * crank * x))
    assert a.continued.all() and np.abs(a.named["crank"] + tilt - np.sign(tilt) * angle).max() < SAME


def test_a_value_beyond_a_singular_configuration_is_told():
    """The crank of a double rocker reaches two separate ranges. From one of them the other is reached by no continuous way."""
    A, ground = 0.8, 1.6
    across = ground - np.exp(1j * A)  # from the tip of a to the foot of c, as a complex number
    inner = np.arccos((0.6**2 + abs(across) ** 2 - 1.3**2) / (2 * 0.6 * abs(across)))
    B = np.angle(across) + inner - A
    D = np.angle(np.exp(1j * A) + 0.6 * np.exp(1j * (A + B)) - ground)
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    bodies = [pf.body(n, 1.0, com=(x / 2, 0, 0), inertia=0.1) for n, x in (("a", 1.0), ("b", 0.6), ("c", 1.3))]
    at = {"A": (0, A), "B": (1.0, B), "D": (ground, D)}
    places = {name: pf.pose((x, 0, 0), rotation=turned("y", -angle)) for name, (x, angle) in at.items()}
    joints = [
        pf.joint("A", parent="world", child="a", placement=places["A"], **hinge),
        pf.joint("B", parent="a", child="b", placement=places["B"], **hinge),
        pf.joint("D", parent="world", child="c", placement=places["D"], **hinge),
    ]
    loop = pf.closure("C", body_a="b", body_b="c", placement_a=(0.6, 0, 0), placement_b=(1.3, 0, 0), **hinge)
    m = pf.mechanism("double rocker", bodies, joints, constraints=[loop])
    assert pf.assemble(m, {"A": -0.45}).continued
    with pytest.warns(pf.RunWarning, match="a singular configuration lies between the given state and the values of A"):
        below = pf.assemble(m, {"A": -1.6})
    assert not below.continued and below.residual < 1e-9


def test_a_screw_keeps_its_whole_turns():
    joints = [pf.joint("nut", "cylindrical", "world", "nut", axis=(0, 0, 1))]
    thread = pf.closure("thread", "helical", "world", "nut", axis=(0, 0, 1), pitch=-0.02)
    m = pf.mechanism("nut", [pf.body("nut", 1.0, inertia=0.1)], joints, constraints=[thread])
    angles = np.array([0.3, 0.7, -1.0, 1.6, -12.0, 40.0]) * 2 * np.pi
    assert np.abs(pf.assemble(m, {"nut.angle": angles}).named["nut.z"] - -0.02 * angles).max() < 1e-12


@pytest.mark.parametrize("cut", ["turn", "slide", "thread"])
def test_a_jack_keeps_its_whole_turns_wherever_it_is_cut_and_whatever_is_held(cut):
    """A nut that turns, a spindle that slides and the thread between them: each coordinate determines the others."""
    joints, ends = [], {"turn": ("world", "nut"), "slide": ("world", "spindle"), "thread": ("nut", "spindle")}
    kinds = {"turn": "revolute", "slide": "prismatic", "thread": "helical"}
    more = {"thread": {"pitch": 0.01}}
    for name in ("slide", "thread", "turn") if cut == "turn" else ("turn", "slide", "thread"):
        parent, child = ends[name] if (cut, name) != ("turn", "thread") else ends[name][::-1]
        axis = (0, 0, 1) if (parent, child) == ends[name] else (0, 0, -1)
        if name != cut:
            joints.append(pf.joint(name, kinds[name], parent, child, axis=axis, **more.get(name, {})))
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("nut", "spindle")]
    closed = pf.closure(cut, kinds[cut], *ends[cut], **more.get(cut, {}))
    m = pf.mechanism("jack", bodies, joints, constraints=[closed])
    angles = np.array([0.3, 0.7, -1.0, 1.6, -12.0, 40.0]) * 2 * np.pi
    by = {"turn": angles, "slide": -0.01 * angles, "thread": -angles}
    for held, values in by.items():
        found = pf.assemble(m, {held: values}).named
        for name, x in found.items():
            assert np.abs(x - by[name]).max() < 1e-11, (held, name)


@pytest.mark.parametrize("name", zoo.machines())
def test_the_start_of_a_file_starts_everything(name):
    m, s = zoo.machine(name)[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pf.RunWarning)
        start = pf.assemble(m, s.start, parameters=s.parameters)
    assert all(start.named[n] == pytest.approx(x, abs=1e-12) for n, x in s.q.items())
    state = pf.stepper(m, backend="interpreter", step=s.step or 1e-3)
    state.reset(s.start, parameters=s.parameters)
    assert (state.q == pf.assemble(m, s.start, parameters=s.parameters).q).all()


def test_determinants_of_sparse_matrices():
    random = np.random.default_rng(4)
    for n in (1, 2, 4, 7):
        for _ in range(4):
            A = np.where(random.random((n, n)) < 0.6, random.normal(size=(n, n)), 0)
            assert float(determinant(ca.sparsify(ca.SX(ca.DM(A))))) == pytest.approx(np.linalg.det(A), abs=1e-9)


# -- on which branch, and how far ---------------------------------------------------------------------------------------


def test_the_index_of_a_branch_is_the_same_for_one_state_for_many_and_among_branches():
    m, angles = spatial(), np.linspace(-3, 3, 41)
    own = [
        {pf.assemble(m, {"crank": a}, guess={"rocker": rockers(a)[branch]}).branch.item() for a in angles} for branch in (0, 1)
    ]
    assert all(len(found) == 1 for found in own) and own[0] != own[1]
    both = pf.assemble(m, {"crank": 0.7}, branches=4)
    for q, index in zip(both.q, both.branch, strict=True):
        branch = int(np.argmin(np.abs(np.exp(1j * q[1]) - np.exp(1j * np.array(rockers(0.7))))))
        assert {index} == own[branch]
    assert (pf.assemble(m, {"crank": angles}).branch == both.branch[both.continued]).all()


def test_each_leg_of_a_platform_has_a_digit_of_the_index():
    """Four pairs of crank angles close one pose. Exactly those assemblies that bend the same cranks have the same index, if the
    rods point the same way."""
    m, seen = platform(), {}
    found = pf.assemble(m, {"pitch": 0.1, "roll": 0.05}, branches=40)
    straight = (np.cos(found.q[:, [m.q_names.index(f"{n} swing") for n in CRANKS]]) > 0).all(axis=1)
    for q, index in zip(found.q[straight], found.branch[straight], strict=True):
        seen.setdefault(tuple(np.round([q[m.q_names.index(n)] for n in CRANKS], 3)), set()).add(int(index))
    assert len(seen) == 4 and all(len(x) == 1 for x in seen.values()) and len(set.union(*seen.values())) == 4


def test_free_motions_and_redundant_rows_have_no_index():
    assert pf.assemble(spatial()).branch == -1
    m, start = zoo.machine("bennett").m, zoo.machine("bennett")[3].start
    assert pf.assemble(m, start).branch == -1


def test_the_distance_is_measured_by_the_mass_matrix_without_what_is_held():
    m = spatial()
    a = pf.assemble(m, {"crank": 0.5})
    change = float(a.q[1])
    assert a.distance == pytest.approx(np.sqrt(pf.mass_matrix(m, a.q)[1, 1]) * abs(change), rel=1e-12)
    free = pf.joint("ship", "free", "world", "ship")
    ball = pf.closure("ball", "spherical", "world", "ship", placement_b=(1, 0, 0))
    m = pf.mechanism("ship", [pf.body("ship", 2.0, inertia=3.0)], [free], constraints=[ball])
    half = np.sin(0.2), np.cos(0.2)
    a = pf.assemble(m, dict(zip(m.q_names[3:], (0, 0, half[0], half[1]), strict=True)), guess={"ship.x": -1})
    moved = np.array([1 - np.cos(0.4), -np.sin(0.4), 0])
    assert a.distance == pytest.approx(np.sqrt(2) * np.linalg.norm(moved), rel=1e-9)


def test_a_nearer_assembly_is_reported_and_not_taken():
    m = four_bar()
    begin = pf.assemble(m, {"A": 0.3}, guess={"B": 0.6, "D": 2.0})
    a = pf.assemble(m, [-1.75, *begin.q[1:]], hold=["A"])
    every = pf.assemble(m, [-1.75, *begin.q[1:]], hold=["A"], branches=3)
    assert a.continued and set(every.branch) == {0, 1} and a.branch == every.branch[1]
    assert a.nearer < a.distance and list(every.continued) == [False, True]
    assert every.distance == pytest.approx([float(a.nearer), float(a.distance)], rel=1e-9)
    assert np.abs(every.q[1] - a.q).max() < SAME and np.isnan(pf.assemble(m, {"A": 0.4}, guess={"B": 0.6, "D": 2.0}).nearer)


def test_other_starts_are_tried_where_nothing_is_held():
    """A chain of hinges along random axes whose last link is welded to where a configuration far from the neutral one has it:
    descents from the neutral state end at a residual that does not fall further."""
    random, n = np.random.default_rng(8), 7
    bodies = [pf.body(f"link {i}", 1.0, com=(0.1, 0, 0), inertia=0.02) for i in range(n)] + [
        pf.body("pendulum", 1.0, (0, 0, -1))
    ]
    joints = [
        pf.joint(f"j{i}", "revolute", f"link {i - 1}" if i else "world", f"link {i}", axis=tuple(axis),
                 placement=(0.3 if i else 0, 0, 0))
        for i, axis in enumerate(random.normal(size=(n, 3)).round(2))
    ]  # fmt: skip
    joints.append(pf.joint("swing", "revolute", "world", "pendulum", axis=(0, 1, 0)))
    tree = pf.mechanism("chain", bodies, joints)
    at = pf.forward_kinematics(tree, [*random.uniform(-2.5, 2.5, n), 0])["link 6"]
    place = pf.pose(tuple(at.position), rotation=at.rotation)
    m = tree.with_(constraints=[pf.closure("weld", "weld", "world", "link 6", placement_a=place)])
    with pytest.warns(pf.RunWarning, match="no way leads from the given state onto the constraints"):
        a = pf.assemble(m)
    assert a.residual < 1e-9 and not a.continued and a.named["swing"] == 0  # no loop depends on it
    with pytest.warns(pf.RunWarning, match="no way leads"):
        many = pf.assemble(m, np.zeros((3, m.nq)))
    assert np.array_equal(many.q[2], a.q)


def test_a_state_is_on_no_side_where_branches_meet_whatever_the_size_of_a_machine():
    """A quadrilateral with all links in line; with its crank turned a little it is on a side, in metres and in micrometres."""
    m = quadrilateral()
    for size in (1.0, 1e-6):
        for turned, known in ((0.0, False), (1e-4, True), (-1e-4, True)):
            lengths = np.array([0.6, 0.5, 0.6, 0.7]) * size
            x = Quadrilaterals(*lengths[:, None], *np.array([[turned], [0.0], [1.0]]))
            p = np.array([list(parameters_of(x)[n]) for n in m.p_names]).T
            fixed = np.eye(m.nv, dtype=bool)[[0]]
            found = sides(Problem(m, p, 0.0, Fixed(fixed, fixed, np.ones(m.nv)), "numpy"), np.zeros((1, m.nq)))
            assert (found[0] != UNKNOWN) == known, (size, turned)


# -- distances of long machines --------------------------------------------------------------------------------------------


def rope(links: int) -> pf.Mechanism:
    """Links on universal joints, one below the other, with unequal moments of inertia."""
    names = ["world", *[f"link {i}" for i in range(links)]]
    bodies = [pf.body(name, 0.2, com=(0.01, 0, -0.05), inertia=(3e-4, 2e-4, 1e-4)) for name in names[1:]]
    below = (0, 0, -0.1)
    joints = [pf.joint(f"to {b}", "universal", a, b, placement=below) for a, b in itertools.pairwise(names)]
    return pf.mechanism("rope", bodies, joints)


def test_the_work_of_a_distance_grows_with_the_links_and_not_with_their_square():
    short, long = (distances(m, (False,) * m.nv).n_instructions() for m in map(rope, (6, 24)))
    assert long < 5 * short


def test_a_distance_is_that_in_the_metric_of_the_mass_matrix():
    m, random = rope(3), np.random.default_rng(2)
    q, given, weight = random.normal(size=m.nq), random.normal(size=m.nq), np.array([1.0, 1, 0, 2, 1, 1])
    _, squared = distances(m, (False, False, True, False, False, False))(q, given, weight, m.p_defaults, 0)
    moved = weight * (q - given)
    assert float(squared) == pytest.approx(moved @ pf.mass_matrix(m, q) @ moved, rel=1e-12)
