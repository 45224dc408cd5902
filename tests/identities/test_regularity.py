"""`regularity` depends on the constraints and not on how they are written: neither on frames, nor on order, nor on the
method."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.dynamics.regularity import regularity
from pfaffian.maths import minimum_norm, so3
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import random_configuration
from pfaffian.terms.terms import symbols
from tests.cut_graphs import KINDS as PARTS
from tests.cut_graphs import Graph, Part, body, by_numpy, coupled_wheels, cranks, machine, platform, ring
from tests.linkages import bennett, bricard, goldberg, linkage, sarrus, schatz, start, storeys
from tests.random_mechanisms import allowed, closing, placements, random_pose, random_tree
from tests.tolerance import close

KINDS = [kind for kind in (*SUBGROUPS, "weld") if kind not in ("free", "fixed")]
TREE = ["revolute", "prismatic", "spherical", "cylindrical", "revolute"], [-1, 0, 1, 2, 1]


def regular(m: pf.Mechanism, q: Sequence[float] | np.ndarray) -> float:
    T = symbols(m)
    f = ca.Function("f", [T.q, T.v, T.t, m.p_symbols], [regularity(T)])
    return float(f(q, np.zeros(m.nv), 0, m.p_defaults))


@pytest.mark.parametrize("kind", KINDS)
def test_regularity_depends_neither_on_frames_nor_on_order(kind: str) -> None:
    """Both frames of a closure are moved along the motions that it leaves, on bodies carried by slides and turns."""
    for seed in range(2):
        random = np.random.default_rng(seed)
        tree = random_tree(random, *TREE)
        q = random_configuration(tree, random, 1.0)
        at = placements(tree, q)
        first, second = closing("first", kind, "b0", "b3", random, at), closing("second", "distance", "b4", "b3", random, at)
        reference = regular(tree.with_(constraints=[first, second]), q)
        pitch = {"pitch": first.number} if "helical" in kind else {}
        a, b = (allowed(kind, random, pitch) for _ in range(2))
        moved = replace(first, placement_a=first.placement_a @ a, placement_b=first.placement_b @ b)
        assert 1e-3 < reference < 1
        close(regular(tree.with_(constraints=[second, moved]), q), reference, 1e-8, f"regularity of {kind}, seed {seed}")


def test_a_function_has_the_same_size_wherever_the_frames_of_a_closure_are() -> None:
    """Its typical size is that for random slides as long as the tree, which a closure does not lengthen."""
    random = np.random.default_rng(5)
    tree = random_tree(random, *TREE)
    q = random_configuration(tree, random, 1.0)
    slide = tree.q_names.index("j1")
    bent = pf.holonomic("bent", lambda k: k.q[slide] ** 2 + ca.sin(k.q[0]) - float(q[slide] ** 2 + np.sin(q[0])))
    loop = closing("loop", "cylindrical", "b0", "b3", random, placements(tree, q))
    far = replace(loop, placement_a=loop.placement_a @ pf.pose((0, 0, 40.0)))
    reference, other = (regular(tree.with_(constraints=[c, bent]), q) for c in (loop, far))
    assert 0.1 < reference < 0.9
    close(other, reference, 1e-8, "regularity with the frame 40 m along its axis")


def test_zero_rows_do_not_count() -> None:
    """Three coordinates of a point in a plane leave two rows, which give the result of two coordinates."""
    m, q = storeys(1, np.eye(3)), [0.3, -1.1, 0.4]

    def pin(rows: list[int]) -> pf.Holonomic:
        return pf.holonomic("pin", lambda k: (k.position("right 0", (0, 0, 1.0)) - k.position("beam 0", (1.0, 0, 0)))[rows])

    three, two = (regular(m.with_(constraints=[pin(rows)]), q) for rows in ([0, 1, 2], [0, 2]))
    assert 1e-3 < two < 1
    close(three, two, 1e-9, "regularity of three rows and of two")


def test_regularity_by_orthonormal_rows_and_by_their_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of loops use A A^T, everything else orthonormal rows; both give the same number."""
    R = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    m = storeys(3, R * np.sign(np.linalg.det(R)))
    found = []
    for angle in (0.4, 1.2, 1.5):
        q = pf.assemble(m, {f"{leg} {i}": angle for i in range(3) for leg in ("left", "right")}).q[0]
        for fill in (2.0, -1.0):
            monkeypatch.setattr(minimum_norm, "FILL_ACCEPTED", fill)
            found.append(regular(m, q))
        close(found[-1], found[-2], 1e-9, f"regularity at {angle} rad")
    assert np.ptp(found[::2]) > 0.05


MOST_OPERATIONS_OF_A_ROD = 5_000
"""Bound on the operations for each rod of a net: 1,400 to 3,000, and 100,000 by the six equations of each loop."""

LINKAGES = {
    "Bennett": bennett(1.0, 1.5, np.pi / 6),
    "Goldberg": goldberg(),
    "Sarrus": sarrus(),
    "Bricard": bricard(),
    "Schatz": schatz(),
}


@pytest.mark.parametrize("name", LINKAGES)
def test_any_hinge_of_a_linkage_may_be_cut(name: str) -> None:
    """The rows of one cut differ from those of another, and so does their rank off the constraints."""
    chain, found = LINKAGES[name], []
    for cut in range(len(chain.a)):
        m = linkage(chain, cut)
        angles, _ = start(chain, m)
        found.append(regular(m, [angles[n] for n in m.q_names]))
    assert 0.02 < found[0] < 0.95
    close(found, np.full(len(found), found[0]), 1e-8, f"regularity of {name}, whatever is cut")


def cuts(g: Graph, random: np.random.Generator, count: int) -> list[set[str]]:
    """Random sets of joints whose cutting leaves a tree."""
    found = []
    for _ in range(count):
        reached, tree = {n: {n} for n in ("world", *g.bodies)}, set()
        for name in random.permutation([*g.parts]):
            a, b = reached[g.parts[name].a], reached[g.parts[name].b]
            if a is not b:
                tree.add(str(name))
                both = a | b
                reached |= dict.fromkeys(both, both)
        found.append(set(g.parts) - tree)
    return found


RANDOM = np.random.default_rng(7)
TURNED = np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]
TURNED *= np.sign(np.linalg.det(TURNED))
CORNERS = ("world", "one", "two", "three")
EDGES = dict(
    zip(
        itertools.combinations(CORNERS, 2),
        ("planar", "schoenflies", "spherical", "translation", "schoenflies", "schoenflies"),
        strict=True,
    )
)
GRAPHS = {
    "a tetrahedron": Graph(
        {n: body(RANDOM) for n in CORNERS[1:]},
        {f"{a}-{b}": Part(kind, a, b, random_pose(RANDOM)) for (a, b), kind in EDGES.items()},
    ),
    "a ring": ring([PARTS[i] for i in (0, 2, 5, 3, 6, 1)], RANDOM),
    "a ring with a ball": ring(["revolute", "spherical", "helical", "prismatic", "revolute", "revolute"], RANDOM),
    "a ring with a weld": ring(["revolute", "cylindrical", "fixed", "revolute", "revolute", "prismatic", "revolute"], RANDOM),
    "a ring of planes": ring(["planar-helical", "translation", "planar", "schoenflies"], RANDOM),
    "a Stewart platform": platform([["spherical", "prismatic", "spherical"]] * 6, RANDOM),
    "a delta": platform([["revolute", "spherical", "spherical"]] * 3, RANDOM),
    "cranks in a plane": cranks(4, np.eye(3)),
    "cranks in a turned plane": cranks(3, TURNED),
    "cranks in a moving row": cranks(3, TURNED, (0.4, 0.0)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_any_joints_may_be_cut(name: str) -> None:
    """The frames of the closures are anywhere on what they leave free and their order is random; the result is also that by
    singular values in NumPy."""
    g, random = GRAPHS[name], np.random.default_rng(3)
    reference = by_numpy(g, set(g.parts) - cuts(g, random, 1)[0])
    assert 1e-3 < reference < 0.95
    between = {n for n, part in g.parts.items() if "world" not in (part.a, part.b)}
    star = [between] if len(g.parts) == len(between) + len(g.bodies) else []  # loops that share joints in both directions
    for cut in cuts(g, random, 3) + star:
        for moved in (None, random):
            m = machine(g, cut, moved)
            close(regular(m, m.neutral()), reference, 1e-8, f"regularity of {name}, cut at {sorted(cut)}")


def rods_between_slides(a: Sequence[float], b: Sequence[float], turned: np.ndarray, skipped: Sequence[str] = ()) -> Graph:
    """Particles on two lines that cross at a right angle, at distances a and b from the crossing, each pair joined by a rod:
    Dixon's framework, which moves although all rods but len(a) + len(b) - 1 are too many."""
    slide = {"a": turned, "b": turned @ so3.rotation([0, 1, 0], np.pi / 2).full()}
    where = {f"{line}{i}": turned @ (np.eye(3)[2 if line == "a" else 0] * x)
             for line, xs in (("a", a), ("b", b)) for i, x in enumerate(xs)}  # fmt: skip
    parts = {f"slide {n}": Part("prismatic", "world", n, pf.pose(p, rotation=slide[n[0]])) for n, p in where.items()}
    for first, second in itertools.product(where, where):
        if first[0] == "a" and second[0] == "b" and f"{first}-{second}" not in skipped:
            ends = (pf.pose(where[n], rotation=turned) for n in (first, second))
            parts[f"{first}-{second}"] = Part("distance", first, second, *ends)
    bodies = {n: (pf.pose(p), 1.0, np.zeros(3), 0.2) for n, p in where.items()}
    return Graph(bodies, parts)


NETS = {
    "along the axes": rods_between_slides((0.7, 1.1), (0.9, 1.3, 1.6), np.eye(3)),
    "in a turned plane": rods_between_slides((0.7, 1.1), (0.9, 1.3, -1.6), TURNED),
    "with a rod left out": rods_between_slides((0.7, -1.1, 1.4), (0.9, 1.3, 1.6), TURNED, ["a0-b1"]),
}


@pytest.mark.parametrize("name", NETS)
def test_nets_of_rods(name: str) -> None:
    """By singular values of all six equations of each loop, too, at a small part of the operations that these would take."""
    g = NETS[name]
    m = machine(g, {n for n, part in g.parts.items() if part.kind == "distance"})
    reference = by_numpy(g, {n for n, part in g.parts.items() if part.kind != "distance"})
    assert 0.1 < reference < 0.95
    close(regular(m, m.neutral()), reference, 1e-8, f"regularity of a net {name}")
    T = symbols(m)
    rods = len(m.constraints)
    assert ca.Function("f", [T.q, T.v, T.t, m.p_symbols], [regularity(T)]).n_instructions() < MOST_OPERATIONS_OF_A_ROD * rods


def test_a_net_with_other_loops() -> None:
    """A framework of rods, one particle of which also pushes a planar crank: both share the slide."""
    g = rods_between_slides((0.7, 1.1), (0.9, 1.3), np.eye(3))
    hinge = so3.rotation([1, 0, 0], -np.pi / 2).full()
    g.bodies["crank"] = (pf.pose((0.0, 0, -0.6)), 1.0, np.array([0.1, 0, 0.2]), 0.3)
    g.bodies["rod"] = (pf.pose((0.4, 0, 0.3)), 0.7, np.array([0.0, 0, 0.1]), 0.2)
    g.parts["crank"] = Part("revolute", "world", "crank", pf.pose((0.0, 0, -0.6), rotation=hinge))
    g.parts["pin"] = Part("revolute", "crank", "rod", pf.pose((0.5, 0, -0.2), rotation=hinge))
    g.parts["head"] = Part("revolute", "rod", "a0", pf.pose((0.0, 0, 0.7), rotation=hinge))
    rods = {n for n, part in g.parts.items() if part.kind == "distance"}
    for cut in ("head", "pin", "crank"):
        m = machine(g, rods | {cut})
        close(regular(m, m.neutral()), by_numpy(g, set(g.parts) - rods - {cut}), 1e-8, f"regularity, cut at the {cut}")


def test_near_a_singular_net_regularity_falls_with_the_distance() -> None:
    """Where all particles of a line meet the crossing, their slides change no rod."""
    found = []
    for x in (0.5, 4e-3, 2e-3, 1e-3, 0.0):
        g = rods_between_slides((x, -x), (0.9, 1.3, 1.6), TURNED)
        m = machine(g, {n for n, part in g.parts.items() if part.kind == "distance"})
        found.append(regular(m, m.neutral()))
    assert found[0] > 0.1
    close(found[1:3], [2 * found[2], 2 * found[3]], 1e-3, "in proportion")
    assert found[4] < 1e-5


def crossed() -> pf.Pose:
    """A frame whose z-axis is normal to that of the frame in which it is given."""
    return pf.pose(rpy=(np.pi / 2, 0.4, 0))


PLAIN = {
    "universal": crossed(),
    "point-on-line": pf.pose((0, 0, 0.3), rpy=(0.3, -1.0, 0.7)),
    "point-on-plane": pf.pose((0.2, -0.4, 0), rpy=(-0.8, 0.2, 1.1)),
    "distance": pf.pose((0.3, -0.5, 0.4), rpy=(1.0, 0.2, 0.3)),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_closures_that_form_no_group_of_motions(kind: str) -> None:
    """Between two bodies, in a loop with few freedoms and in one with many, against singular values in NumPy."""
    random = np.random.default_rng(11)
    for kinds in (["revolute", "prismatic", "revolute"], ["spherical", "cylindrical", "revolute", "revolute"]):
        g = ring([*kinds, "revolute"], random)
        name, last = list(g.parts.items())[1]
        g.parts[name] = Part(kind, last.a, last.b, last.at, last.at @ PLAIN[kind])
        m = machine(g, {name})
        close(regular(m, m.neutral()), by_numpy(g, set(g.parts) - {name}), 1e-8, f"regularity of a loop with {kind}")


def test_a_loop_without_mass_is_measured_by_the_distance_of_its_joints() -> None:
    random = np.random.default_rng(3)
    g = ring(["revolute", "prismatic", "revolute", "spherical", "revolute"], random)
    g.bodies.update({n: (X, 0.0, com, 0.0) for n, (X, _, com, _) in g.bodies.items()})
    name, *rest = g.parts
    m = machine(g, {name}, options={n: {"armature": 0.1} for n in rest})
    close(regular(m, m.neutral()), by_numpy(g, set(rest)), 1e-8, "regularity of a loop without mass")


RING = ring(["revolute", "revolute", "cylindrical", "revolute", "revolute", "prismatic", "planar", "revolute"], RANDOM)
FIRST, SECOND, PLANAR, LAST = (list(RING.parts)[i] for i in (0, 1, 6, 7))


def cam(k: pf.Kinematics) -> pf.Pose:
    """A turn, and a displacement, as functions of the first joint's angle."""
    a = k.joint(FIRST)[0]
    turn = ca.vertcat(
        ca.horzcat(ca.cos(2 * a), -ca.sin(2 * a), 0), ca.horzcat(ca.sin(2 * a), ca.cos(2 * a), 0), ca.SX([[0, 0, 1]])
    )
    return pf.Pose(turn, ca.vertcat(0, 0.3 * a, 0.2 * ca.sin(a)))


WAYS = np.array([[1.0, 0.3], [0.2, -1.0], [0.5, 0.4]])
TIED = {
    "a gear": {LAST: {"mimic": pf.mimic({FIRST: -2.0})}},
    "a differential": {LAST: {"mimic": pf.mimic({FIRST: -2.0, SECOND: 0.7})}},
    "a cam": {LAST: {"pose": cam}},
    "a distribution": {PLANAR: {"distribution": WAYS}},
}


@pytest.mark.parametrize("name", TIED)
def test_joints_without_independent_rates(name: str) -> None:
    """Any other joint of their loop may be cut, and the frames of closures may be moved."""
    options, random, found = TIED[name], np.random.default_rng(5), []
    for cut in [n for n in RING.parts if n not in (FIRST, SECOND, LAST, PLANAR)]:
        for moved in (None, random):
            m = machine(RING, {cut}, moved, options)
            found.append(regular(m, m.neutral()))
    assert 1e-3 < found[0] < 0.95
    close(found, np.full(len(found), found[0]), 1e-8, f"regularity with {name}, whatever is cut")
    if name == "a gear":
        close(found[0], by_numpy(RING, set(RING.parts) - {LAST}, (FIRST, LAST, 2.0)), 1e-8, "by singular values")


def test_a_distribution_counts_by_its_span() -> None:
    found = []
    for mixed in (np.eye(2), np.array([[2.0, 5.0], [0.1, -3.0]])):
        m = machine(RING, {SECOND}, None, {PLANAR: {"distribution": WAYS @ mixed}})
        found.append(regular(m, m.neutral()))
    close(found[0], found[1], 1e-9, "regularity for two bases of a distribution")


def test_near_the_dead_centre_of_coupled_wheels_regularity_falls_with_the_angle() -> None:
    """At the dead centre forces along the rod are a second combination of forces without effect, besides one that always
    exists."""
    found = []
    for angle in (0.8, 4e-3, 2e-3, 1e-3):
        g = coupled_wheels(angle)
        here = [regular(m, m.neutral()) for m in (machine(g, set(cut)) for cut in (("pin 0", "pin 2"), ("axle 1", "pin 2")))]
        close(here, np.full(2, by_numpy(g, set(g.parts) - {"pin 0", "axle 1"})), 1e-7, f"regularity at {angle} rad")
        found.append(here[0])
    assert found[0] > 0.1
    close(found[1:3], [2 * found[2], 2 * found[3]], 1e-4, "in proportion")
    m = machine(coupled_wheels(0.0), {"pin 0", "pin 2"})
    assert regular(m, m.neutral()) < 1e-5


@pytest.mark.parametrize("kind", ["revolute", "distance", "universal"])
def test_a_closure_that_is_written_twice_counts_once(kind: str) -> None:
    """Also with its bodies exchanged, and with its frame anywhere on the axis."""
    random = np.random.default_rng(5)
    tree = random_tree(random, *TREE)
    q = random_configuration(tree, random, 1.0)
    c = closing("c", kind, "b0", "b3", random, placements(tree, q))
    ends = {"placement_a": c.placement_b, "placement_b": c.placement_a}
    again = [replace(c, name="again"), replace(c, name="back", body_a="b3", body_b="b0", **ends)]
    if kind == "revolute":
        again.append(replace(c, name="slid", placement_a=c.placement_a @ pf.pose((0, 0, 0.4), rpy=(0, 0, 1.0))))
    reference = regular(tree.with_(constraints=[c]), q)
    assert 1e-3 < reference < 1
    for other in again:
        close(regular(tree.with_(constraints=[c, other]), q), reference, 1e-9, f"{kind} and {other.name!r}")


def test_other_constraints_are_measured_on_the_motions_that_loops_leave() -> None:
    """The height of a beam on equal legs changes less and less as these lie down: regularity is proportional to it,
    whatever is cut."""
    angles = np.array([0.5, 0.1, 0.02])
    for cut in ("top", "foot"):
        m = storeys(1, np.eye(3), cut)
        height = pf.holonomic("height", lambda k: k.position("beam 0", (0.3, 0, 0))[2] - 0.9)
        with_height = m.with_(constraints=[height, *m.constraints])
        signs = {"left 0": 1, "beam 0": -1, "right 0": 1}
        found = [regular(with_height, [signs[n] * x for n in m.q_names]) for x in angles]
        assert found[0] < regular(m, [signs[n] * 0.5 for n in m.q_names])
        close(np.array(found) / found[0], np.sin(angles) / np.sin(angles[0]), 1e-9, f"in proportion, cut at the {cut}")


def test_an_open_loop_does_not_count() -> None:
    """If one of two storeys that share no joint is open, the other one decides; if both are open the result is 1."""
    m, q = storeys(2, TURNED), [0.3, -0.3, 0.3, 0.02, -0.02, 0.02]
    angles = dict(zip(("left 0", "beam 0", "right 0", "left 1", "beam 1", "right 1"), q, strict=True))
    at = [angles[n] for n in m.q_names]
    both = [c for c in m.constraints if isinstance(c, Closure)]

    def with_open(*names: str) -> float:
        shut = [pf.constraints.active_while(c, lambda k: k.q[0] > 10) if c.name in names else c for c in both]
        return regular(m.with_(constraints=shut), at)

    alone = [regular(m.with_(constraints=[c]), at) for c in both]
    close([with_open("loop 1"), with_open("loop 0")], alone, 1e-8, "regularity of the loop that is closed")
    close(with_open(), min(alone), 1e-9, "of both")
    assert with_open("loop 0", "loop 1") == 1.0
