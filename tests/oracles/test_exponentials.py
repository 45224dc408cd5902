"""Products of exponentials against recursions, literal matrix exponentials, quadrature and differences. [chhabra14 ch. 2]"""

from __future__ import annotations

from functools import cache, partial
from importlib.metadata import distribution

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import pfaffian as pf
from pfaffian import kernel
from pfaffian.evaluate.quantities import BodyPose
from pfaffian.maths import se3
from pfaffian.maths.subgroups import SUBGROUPS
from tests.matrices import number
from tests.random_mechanisms import random_tree
from tests.tolerance import ALGEBRA, CENTRAL, close

KINDS = [*SUBGROUPS, "universal"]
SHAPES = {
    "every kind, one chain": (KINDS, [*range(-1, len(KINDS) - 1)]),
    "two joints on the world": (["free", "planar", "revolute", "spherical", "helical"], [-1, -1, 0, 1, 3]),
    "one body, three branches": (["schoenflies", "spherical", "planar-helical", "universal", "cylindrical"], [-1, 0, 0, 0, 2]),
}
RATE = [[1.0, 0], [0.3, 0], [0, 1]]
"""Distribution of a planar joint that slides askew, without slip across that direction."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Evaluate with NumPy, to the same numbers, so that no compiler is needed."""
    monkeypatch.setattr(kernel, "compile", partial(kernel.compile, backend="numpy"))


@cache
def tree(shape: str) -> tuple[pf.Mechanism, np.ndarray]:
    random = np.random.default_rng(len(shape))
    m = random_tree(random, *SHAPES[shape])
    return m, screws(m, random)


def screws(m: pf.Mechanism, random: np.random.Generator, runs: int = 3) -> np.ndarray:
    """Random screw parameters (runs, n) with turns of at most 2.6 rad about any axis, where the logarithm is unique."""
    return random.uniform(-1.5, 1.5, (runs, pf.screws.exponentials(m).s.numel()))


def homogeneous(X: BodyPose, run: int = 0) -> np.ndarray:
    R, p = (X.rotation, X.position) if X.position.ndim == 1 else (X.rotation[run], X.position[run])
    return np.vstack([np.column_stack([R, p]), [0, 0, 0, 1]])


def check_against_recursions(m: pf.Mechanism, s: np.ndarray, bodies: list[str]) -> None:
    """Compare poses and Jacobians in s with those in q and v, and s with itself after the map to q and back."""
    q, rates = pf.screws.screw_to_chart(m, s), pf.screws.screw_rates(m, s)
    close(pf.screws.chart_to_screw(m, q), s, 8 * ALGEBRA, "screw parameters there and back", 1)
    ours, theirs = pf.screws.product_of_exponentials(m, s, bodies=bodies), pf.forward_kinematics(m, q, bodies=bodies)
    for b in bodies:
        close(ours[b].position, theirs[b].position, 8 * ALGEBRA, f"position of {b}", 1)
        close(ours[b].rotation, theirs[b].rotation, 8 * ALGEBRA, f"rotation of {b}", 1)
        for frame, named in (("world", "WORLD"), (b, "LOCAL")):
            J = pf.screws.screw_jacobian(m, b, s, frame=frame) @ rates.of_v
            close(J, pf.jacobian(m, b, q, frame=named), 32 * ALGEBRA, f"Jacobian of {b}, {named}", 1)
    K = np.array([number(K_at(m)(at)) for at in q])
    close(rates.Z @ rates.of_v, K, 8 * ALGEBRA, "Z and the kinematic matrix", 1)


@cache
def K_at(m: pf.Mechanism) -> ca.Function:
    k = pf.symbols(m).kinematics
    return ca.Function("K", [k.q], [k.kinematic_matrix])


@pytest.mark.parametrize("shape", SHAPES)
def test_recursions_agree(shape):
    m, s = tree(shape)
    check_against_recursions(m, s, [b.name for b in m.bodies])


def test_turns_beyond_half_a_turn():
    """Screw parameters count full turns where motions commute; elsewhere they are those of the same pose."""
    m, _ = _arm(["planar", "spherical", "cylindrical"])
    q = np.array([0.3, -0.2, 4.0, 0, 0, np.sin(2), np.cos(2), 0.1, 9.0])
    s = pf.screws.chart_to_screw(m, q)
    close(s[[2, 5, 7]], [4 - 2 * np.pi, 4 - 2 * np.pi, 9], 8 * ALGEBRA, "turns", 1)
    ours, theirs = pf.screws.product_of_exponentials(m, s)["b2"], pf.forward_kinematics(m, q)["b2"]
    close(homogeneous(ours), homogeneous(theirs), 8 * ALGEBRA, "pose", 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_literal_product(shape):
    """exp(hat(tau s)) by SciPy and Omega by quadrature; only the home comes from the library."""
    m, s = tree(shape)
    found = pf.screws.exponentials(m)
    x, w = np.polynomial.legendre.leggauss(24)
    poses = {"world": np.eye(4)}
    jacobians = {"world": np.zeros((6, len(s[0])))}
    home = pf.screws.home(m)
    begin = 0
    for j in m.joints:
        tau = home.twists[j.name] if j.moves else np.zeros((6, 0))
        factors = [tau] if j.kind.name != "universal" else [tau[:, :1], tau[:, 1:]]
        G, J = poses[j.parent], jacobians[j.parent].copy()
        for t in factors:
            part = s[0, begin : begin + t.shape[1]]
            xi = t @ part
            Omega = sum(wi / 2 * expm((xi_ + 1) / 2 * number(se3.ad(xi))) for xi_, wi in zip(x, w, strict=True))
            J[:, begin : begin + t.shape[1]] = number(se3.Ad(G[:3, :3], G[:3, 3])) @ Omega @ t
            G = G @ expm(number(se3.hat(xi)))
            begin += t.shape[1]
        poses[j.child], jacobians[j.child] = G, J
    for b in m.bodies:
        X = pf.screws.product_of_exponentials(m, s[0])[b.name]
        close(homogeneous(X), poses[b.name] @ homogeneous(home.poses[b.name]), 64 * ALGEBRA, f"pose of {b.name}", 1)
        close(pf.screws.screw_jacobian(m, b.name, s[0]), jacobians[b.name], 64 * ALGEBRA, f"Jacobian of {b.name}", 1)
    assert begin == found.s.numel() == len(found.s_names) == len(found.s_units) == len(set(found.s_names))


def test_relative_jacobians_by_differences():
    """Twist of a body as seen from another, in the frame of a third. [chhabra14 (2.3.11), (2.3.12)]"""
    m, s = tree("one body, three branches")
    h, random = 1e-5, np.random.default_rng(3)
    for body, seen, frame in [("b4", "b0", "world"), ("b4", "b1", "b3"), ("b0", "b3", "b0"), ("b1", "world", "b4")]:
        J = pf.screws.screw_jacobian(m, body, s[0], relative_to=seen, frame=frame)
        d = random.normal(size=s.shape[1])
        G = {}
        for step in (-h, 0, h):
            X = pf.screws.product_of_exponentials(m, s[0] + step * d, bodies=[body, seen, "world"])
            G[step] = np.linalg.inv(homogeneous(X[seen])) @ homogeneous(X[body])
        of_seen = number(se3.vee((G[h] - G[-h]) / (2 * h) @ np.linalg.inv(G[0])))  # in the frame of the observing body
        at = pf.screws.product_of_exponentials(m, s[0], bodies=[seen, frame])
        here = np.linalg.inv(homogeneous(at[frame])) @ homogeneous(at[seen])
        close((J @ d)[:, None], number(se3.Ad(here[:3, :3], here[:3, 3]) @ of_seen), CENTRAL, f"{body} seen from {seen}", 1)


def test_columns_of_joints_before_both_bodies_vanish():
    m, s = tree("one body, three branches")
    J = pf.screws.screw_jacobian(m, "b4", s[0], relative_to="b2")
    of_last_joint = [n.startswith("j4") for n in pf.screws.exponentials(m).s_names]
    assert not J[:, ~np.array(of_last_joint)].any() and J[:, of_last_joint].any()
    assert (
        not pf.screws.screw_jacobian(m, "b4", s[0], relative_to="b4").any()
        and not pf.screws.screw_jacobian(m, "world", s[0]).any()
    )


def test_brocketts_formula():
    """For joints with one coordinate the twist at home is (p x z; z) or (z; 0), moved by the joints before it, exactly."""
    m, s = _arm(["revolute", "prismatic", "revolute", "revolute"])
    home, rates = pf.screws.home(m), pf.screws.screw_rates(m, s)
    G, J = np.eye(4), []
    for i, j in enumerate(m.joints):
        X = home.poses[j.child]
        z, p = X.rotation[:, 2], X.position
        tau = np.r_[z, 0, 0, 0] if j.kind.name == "prismatic" else np.r_[np.cross(p, z), z]
        close(home.twists[j.name][:, 0], tau, 4 * ALGEBRA, f"twist of {j.name}", 1)
        J.append(number(se3.Ad(G[:3, :3], G[:3, 3])) @ tau)
        G = G @ expm(number(se3.hat(tau * s[i])))
    close(pf.screws.screw_jacobian(m, "b3", s), np.array(J).T, 16 * ALGEBRA, "Jacobian", 1)
    for x in rates:
        assert (x == np.eye(4)).all()  # exactly, since nothing is computed
    assert (pf.screws.screw_to_chart(m, 9 * s) == 9 * s).all() and (pf.screws.chart_to_screw(m, 9 * s) == 9 * s).all()


def _arm(kinds: list[str]) -> tuple[pf.Mechanism, np.ndarray]:
    random = np.random.default_rng(8)
    bodies = [pf.body(f"b{i}", 1.0, inertia=0.1) for i in range(len(kinds))]
    above = ["world", *(f"b{i}" for i in range(len(kinds)))]
    at = [pf.pose(random.normal(size=3), rpy=random.normal(size=3)) for _ in kinds]
    joints = [pf.joint(f"j{i}", k, above[i], f"b{i}", placement=at[i]) for i, k in enumerate(kinds)]
    return pf.mechanism("arm", bodies, joints), random.normal(size=len(kinds))


def test_speeds_of_a_distribution():
    """s_dot = Sigma v_bar: J Sigma is the Jacobian in v; joints without a distribution keep s_dot. [(2.3.13)]"""
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("base", "arm")]
    at = pf.pose((0.1, 0.2, 0.3), rpy=(0.4, -0.5, 0.6))
    joints = [
        pf.joint("skate", "planar", "world", "base", placement=at, distribution=RATE),
        pf.joint("hinge", "spherical", "base", "arm", placement=at),
    ]
    m = pf.mechanism("askew", bodies, joints)
    s = np.array([0.4, -0.7, 1.9, 0.3, 0.2, -0.9])
    rates = pf.screws.screw_rates(m, s)
    assert rates.Sigma.shape == (6, 5) and rates.of_v.shape == (6, 5)
    check_against_recursions(m, s[None], ["base", "arm"])
    mix = np.array([[0.2, -1, 0.3], [0.5, 0.1, 2], [1, 1, -1]])
    modified = pf.screws.screw_jacobian(m, "arm", s, modified=True)
    close(
        modified[:, :2], pf.jacobian(m, "arm", pf.screws.screw_to_chart(m, s), frame="WORLD")[:, :2], 8 * ALGEBRA, "modified", 1
    )
    close(modified[:, 2:] @ mix, pf.screws.screw_jacobian(m, "arm", s)[:, 3:] @ mix, 8 * ALGEBRA, "as they are", 1)
    slip = pf.screws.screw_jacobian(m, "base", s, frame="base", modified=True)
    close(slip[1], 0.3 * slip[0], 8 * ALGEBRA, "no slip across", 1)


def test_mimic_joints_and_parameters():
    """A finger with ratios, offsets and lengths, some of them parameters: home is the chain at q = 0."""
    l, r = pf.Parameter("l", 0.5, "m"), pf.Parameter("r", -0.8)
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("a", "b", "c")]
    joints = [
        pf.joint("one", "revolute", "world", "a", axis=(0, 1, 0)),
        pf.joint("two", "revolute", "a", "b", axis=(0, 1, 0), placement=(l, 0, 0), mimic=pf.mimic({"one": r}, 0.3)),
        pf.joint(
            "three", "helical", "b", "c", pitch=0.2 * l, placement=(l, 0, 0), mimic=pf.mimic({"two": 0.5, "one": 1}, -0.1)
        ),
    ]
    m = pf.mechanism("finger", bodies, joints, parameters=[l, r])
    s = np.array([[0.7], [-1.2]])
    for parameters in (None, {"l": 0.9, "r": 0.4}):
        ours, theirs = (f(m, s, parameters=parameters) for f in (pf.screws.product_of_exponentials, pf.forward_kinematics))
        J, K = (f(m, "c", s, parameters=parameters, **at) for f, at in (
            (pf.screws.screw_jacobian, {}), (pf.jacobian, {"frame": "WORLD"})))  # fmt: skip
        close(ours["c"].position, theirs["c"].position, 8 * ALGEBRA, "position", 1)
        close(ours["c"].rotation, theirs["c"].rotation, 8 * ALGEBRA, "rotation", 1)
        close(J, K, 8 * ALGEBRA, "Jacobian", 1)
    assert pf.screws.home(m).twists["three"].shape == (6, 1)
    assert pf.screws.screw_jacobian(m, "c", [0.1], parameters={"l": [0.1, 0.2, 0.3]}).shape == (3, 6, 1)


@pytest.mark.filterwarnings("ignore::pfaffian.ModelWarning")
@pytest.mark.parametrize(("file", "base"), [("ur5_robot", "fixed"), ("panda", "fixed"), ("talos_reduced", "free")])
def test_robots(file, base):
    """Robots from their files, at the ends of their branches."""
    (path,) = (f.locate() for f in distribution("example-robot-data").files or () if f.name == f"{file}.urdf")
    m = pf.formats.read_urdf(str(path), base=base)
    check_against_recursions(m, screws(m, np.random.default_rng(1), 2), list(pf.calculus.graph_matrices(m).extremities[:4]))


def test_graph_of_four_bodies():
    """[chhabra14 (3.3.29)]"""
    m = random_tree(np.random.default_rng(0), ["revolute"] * 4, [-1, 0, 0, 2])
    g = pf.calculus.graph_matrices(m)
    assert g.bodies == ("world", "b0", "b1", "b2", "b3") and g.joints == ("j0", "j1", "j2", "j3")
    assert g.GM.tolist() == [[-1, 1, 0, 0, 0], [0, -1, 1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, -1, 1]]
    assert g.Ph.tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    assert list(g.neighbours.values()) == [1, 3, 1, 2, 1] and g.extremities == ("b1", "b3")


@pytest.mark.parametrize("shape", SHAPES)
def test_matrices_of_the_graph(shape):
    """Cor. 3.3.1 and 3.3.2 as proved: Ph inverts GM, GM 1 = 0, and Ph GM contains only the world and the body."""
    m, _ = tree(shape)
    g = pf.calculus.graph_matrices(m)
    n = len(m.joints)
    assert (g.Ph @ g.GM[:, 1:] == np.eye(n)).all() and not g.GM.sum(axis=1).any()
    assert (g.Ph @ g.GM == np.column_stack([-np.ones(n), np.eye(n)])).all()
    beside = {frozenset((j.parent, j.child)) for j in m.joints}
    G = g.GM.T @ g.GM
    assert {frozenset((g.bodies[i], g.bodies[k])) for i, k in zip(*np.nonzero(np.triu(G, 1)), strict=True)} == beside
    assert (np.diag(G) == list(g.neighbours.values())).all()


def test_motions_without_a_logarithm_are_refused():
    """A planar-helical motion by a full turn beside its axis; the error names the joint and the run."""
    bodies, p = [pf.body(n, 1.0, inertia=0.1) for n in ("a", "b")], pf.Parameter("p", 0.2)
    joints = [pf.joint("slide", "prismatic", "world", "a"), pf.joint("screw", "planar-helical", "a", "b", pitch=p)]
    m = pf.mechanism("press", bodies, joints, parameters=[p])
    good, bad = [0.5, 0.1, 0.2, 1.0], [0.5, 0.1, 0.2, 2 * np.pi]
    with pytest.raises(pf.ModelError, match="joint 'screw' in run 1: log: a planar-helical motion by 1 full turn"):
        pf.screws.chart_to_screw(m, [good, bad])
    with pytest.raises(pf.ModelError, match="joint 'screw': log"):
        pf.screws.chart_to_screw(m, bad)
    s = pf.screws.chart_to_screw(m, [good, good], parameters={"p": [0.2, 0.4]})
    close(s[0], s[1], 8 * ALGEBRA, "the turn is the same at any pitch", 1)
    # A pitch that is an expression of a parameter.
    twice = m.with_(joints=[joints[0], pf.joint("screw", "planar-helical", "a", "b", pitch=2 * p)])
    s = pf.screws.chart_to_screw(twice, [0.5, 0.1, 0.2, 9.0], parameters={"p": 0.3})
    close(pf.screws.screw_to_chart(twice, s, parameters={"p": 0.3}), [0.5, 0.1, 0.2, 9.0], 8 * ALGEBRA, "there and back", 1)


def test_mechanisms_that_are_no_open_chain_are_refused():
    m, s = _arm(["revolute"] * 3)
    loop = pf.closure("shut", "revolute", "world", "b2", placement_a=(1, 0, 0))
    tied = pf.holonomic("tied", lambda k: k.q[0] - k.q[1])
    rolls = pf.nonholonomic("rolls", lambda k: k.v[0] - k.v[1])
    assert pf.screws.product_of_exponentials(m.with_(constraints=[rolls]), s)  # restricts no position
    for refused, said in (
        (m.with_(constraints=[rolls, loop]), "closure 'shut' from 'world' to 'b2' closes the chain.*open it by m.with_"),
        (m.with_(constraints=[tied]), "constraint 'tied' closes the chain.*open it"),
    ):
        for ask in (
            pf.screws.exponentials,
            pf.calculus.graph_matrices,
            pf.screws.home,
            pf.screws.chart_to_screw,
            pf.screws.product_of_exponentials,
        ):
            with pytest.raises(pf.ModelError, match=said):
                ask(refused)
    box = pf.body("box", 1.0, inertia=1.0)
    z = pf.coordinates("z", ["z"], ["m"], K=lambda q: [[1]])
    lifted = pf.mechanism("lift", [box], [pf.edge("e", "world", "box", lambda k: pf.pose((0, 0, k.q[0])))], coordinates=[z])
    beside = pf.mechanism("beside", [box], [pf.joint("j", "revolute", "world", "box")], coordinates=[z])
    for refused, said in ((lifted, "edge 'e' is a function of q"), (beside, "coordinates 'z' belong to no joint")):
        with pytest.raises(pf.ModelError, match=said):
            pf.screws.exponentials(refused)
    assert pf.calculus.graph_matrices(lifted).GM.tolist() == [[-1, 1]]


def test_the_key_contains_all_numbers_of_joints():
    """Kernels of mechanisms that differ in a distribution or a pitch are different."""

    def of(**numbers):
        bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("a", "b")]
        given = {"kind": "planar", "distribution": [[1.0], [0], [1]]} | numbers
        joints = [pf.joint("j", parent="world", child="a", **given), pf.joint("k", "revolute", "a", "b", placement=(1, 0, 0))]
        return pf.mechanism("m", bodies, joints)

    first, second = of(), of(distribution=[[1.0], [0], [2]])
    assert not np.array_equal(
        pf.screws.screw_rates(first, {"j.angle": 1}).Sigma, pf.screws.screw_rates(second, {"j.angle": 1}).Sigma
    )
    first, second = (of(kind="planar-helical", distribution=None, pitch=p) for p in (0.1, 0.2))
    assert not np.array_equal(pf.screws.home(first).twists["j"], pf.screws.home(second).twists["j"])


def test_runs_by_name():
    m, _ = _arm(["revolute"] * 2)
    for f in (pf.screws.chart_to_screw, pf.screws.screw_to_chart):
        assert f(m, {"j1": [0.1, 0.2]}).tolist() == [[0, 0.1], [0, 0.2]] and f(m, {"j1": 0.1}).tolist() == [0, 0.1]
        assert f(m, [[0.3, 0.1]]).tolist() == [[0.3, 0.1]]


def test_wrong_arguments():
    m, _ = _arm(["revolute"] * 2)
    for ask, message in (
        (lambda: pf.screws.product_of_exponentials(m, [1.0]), r"s has shape \(1,\)"),
        (lambda: pf.screws.product_of_exponentials(m, {"j9": 1.0}), "s: there is no 'j9'"),
        (lambda: pf.screws.product_of_exponentials(m, bodies=["b9"]), "no body 'b9'"),
        (lambda: pf.screws.screw_jacobian(m, "b9"), "no body 'b9'"),
        (lambda: pf.screws.screw_jacobian(m, "b0", relative_to="b9"), "no body 'b9'"),
        (lambda: pf.screws.screw_jacobian(m, "b0", frame="LOCAL"), "no body 'LOCAL'"),
        (lambda: pf.screws.screw_jacobian(m, "b0", modified=1), "modified must be True or False"),
        (lambda: pf.screws.exponentials(m, ca.SX.sym("s", 3)), r"s must be expressions .* \(2, 1\)"),
        (lambda: pf.screws.exponentials(m, [0, 0]), r"s must be expressions .* \(2, 1\)"),
        (lambda: pf.screws.exponentials("robot.urdf"), "a Mechanism is needed"),
        (lambda: pf.calculus.graph_matrices(None), "a Mechanism is needed"),
        (lambda: pf.screws.exponentials(m).twists("j9"), "no joint 'j9'"),
        (lambda: pf.screws.product_of_exponentials(m, bodies="b0"), "bodies: a list of names is needed"),
        (lambda: pf.screws.chart_to_screw(m, {"j0": [1, 2, 3]}, parameters=np.zeros((2, 0))), "q has 3, parameters has 2"),
        (lambda: pf.screws.screw_to_chart(m, {"j0": [1, 2, 3]}, parameters=np.zeros((2, 0))), "s has 3, parameters has 2"),
    ):
        with pytest.raises(pf.ModelError, match=message):
            ask()
