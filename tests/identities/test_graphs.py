"""Trees written as graphs, and velocities chosen by the caller: the same Terms, the same motion."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats.text.place import installed
from pfaffian.maths.inertia import moments, pseudo
from tests.graph_twin import graph_twin
from tests.random_mechanisms import closing, placements, random_forces, random_tree
from tests.refused import refusals
from tests.tolerance import DERIVATIVE, INTEGRATED, close

TREES = {
    "chain": (["revolute", "spherical", "prismatic", "revolute"], [-1, 0, 1, 2]),
    "branches": (["free", "revolute", "planar", "revolute", "fixed", "spherical"], [-1, 0, 0, 2, 3, 4]),
    "two roots": (["planar", "prismatic", "revolute", "free"], [-1, 0, -1, 2]),
}
PARTS = {
    "M": lambda T: T.M, "c": lambda T: T.c, "f": lambda T: T.f, "B": lambda T: T.B, "T": lambda T: T.T, "V": lambda T: T.V,
    "A": lambda T: T.A, "b": lambda T: T.b, "phi": lambda T: T.rows.phi, "eta": lambda T: T.rows.eta,
    "rate of A": lambda T: T.A_dot,
}  # fmt: skip


def bare(m: pf.Mechanism) -> pf.Mechanism:
    """The mechanism without armature and joint springs, which edges do not have."""
    return m.with_(joints=[replace(j, armature=0 * j.armature, stiffness=0 * j.stiffness) for j in m.joints])


def tree_of(name: str, seed: int) -> pf.Mechanism:
    random = np.random.default_rng(seed)
    m = random_forces(random, bare(random_tree(random, *TREES[name])))
    q = pf.random_configuration(m, random)
    at = placements(m, q)
    names = [b.name for b in m.bodies]
    loops = [
        closing("weld", "weld", names[0], names[-1], random, at),
        closing("ball", "spherical", "world", names[-1], random, at),
    ]
    rolling = pf.nonholonomic("rolling", lambda k: k.velocity(names[-1], (0.1, 0.2, 0.3))[0] - 0.1 * ca.cos(k.t))
    return m.with_(constraints=[*loops, rolling])


def evaluated(m: pf.Mechanism, q, v, u) -> dict[str, np.ndarray]:
    return pf.compile_terms(m, PARTS, backend="numpy", lanes=1)(q, v, u=u)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_a_tree_written_as_a_graph_has_the_same_terms(name, backwards):
    m = tree_of(name, 3)
    # The seed avoids welds that are off by almost half a turn: there the direction of the residual is ill-conditioned, and
    # 1e-12 cannot be expected.
    twin, random = graph_twin(m, backwards=backwards), np.random.default_rng(18)
    assert twin.m.nv == m.nv and twin.m.nq != m.nq
    for _ in range(3):
        q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
        here, there = evaluated(m, q, v, u), evaluated(twin.m, twin.q(q), v, u)
        for what, x in here.items():
            close(there[what], x, DERIVATIVE, f"{name}: {what}", scale=[1.0, np.abs(x).max(initial=0.0)])


@pytest.mark.parametrize("name", TREES)
def test_a_graph_costs_little_more_than_a_tree(name):
    """Edges that turn or slide about constant axes become links of a tree."""
    m = tree_of(name, 3).with_(constraints=[])
    twin = graph_twin(m).m
    assert pf.symbols(twin).kinematics.rates.plain
    counts = []
    for x in (m, twin):
        T = pf.symbols(x)
        counts.append(ca.Function("terms", [T.q, T.v, T.t], [ca.densify(T.M), T.c]).n_instructions())
    # The tree puts each link into the frame of its joint, whereas a pose that is any function of q leaves it where it is.
    assert counts[1] < 2.5 * counts[0]


@pytest.mark.parametrize("name", TREES)
def test_a_graph_moves_as_the_tree(name):
    m = tree_of(name, 5).with_(constraints=[])
    twin, random = graph_twin(m, backwards=True), np.random.default_rng(9)
    q, v = pf.random_configuration(m, random), 0.5 * random.normal(size=m.nv)
    u = 0.3 * random.normal(size=m.nu)
    body = m.bodies[-1].name
    how = {
        "duration": 0.5,
        "step": 5e-4,
        "every": 100,
        "u": u,
        "outputs": {"tip": lambda k: k.position(body, (0.3, 0.1, -0.2))},
    }
    here, there = pf.run(m, q, v, **how), pf.run(twin.m, twin.q(q), v, **how)
    assert int(there.status) == 0
    close(there.tip.values, here.tip.values, INTEGRATED, "tip")
    close(there.v.values, here.v.values, INTEGRATED, "v")
    close(there.energy.values, here.energy.values, INTEGRATED, "energy")


# -- chosen velocities -------------------------------------------------------------------------------------------------


def chosen(m: pf.Mechanism, seed: int):
    """The mechanism with random velocities that turn with the configuration, and T as a function of q."""
    random = np.random.default_rng(seed)
    A, B = np.eye(m.nv) + 0.3 * random.normal(size=(2, m.nv, m.nv)) / np.sqrt(m.nv), random.normal(size=m.nq)

    def T(k):
        s = ca.sin(ca.dot(ca.DM(B), k.q))
        return ca.SX(A[0]) + 0.2 * s * ca.SX(A[1])

    at = lambda q: A[0] + 0.2 * np.sin(B @ q) * A[1]  # noqa: E731
    return m.with_(velocities=pf.velocities(T, [f"y{i}" for i in range(m.nv)])), at


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_terms_along_chosen_velocities(name, graph):
    """M_y = T^T M T, and so on; c_y differs from T^T c by M_y T^-1 T_dot y."""
    tree, random = tree_of(name, 4), np.random.default_rng(2)
    twin = graph_twin(tree)
    m, q = (twin.m, twin.q(pf.random_configuration(tree, random))) if graph else (tree, pf.random_configuration(tree, random))
    new, T_of = chosen(m, 1)
    T, y, u = T_of(q), random.normal(size=m.nv), random.normal(size=m.nu)
    here, there = evaluated(m, q, T @ y, u), evaluated(new, q, y, u)
    q_dot = pf.compile_terms(m, {"q_dot": lambda t: t.kinematics.q_dot}, backend="numpy", lanes=1)(q, T @ y)["q_dot"].ravel()
    h = 1e-6
    T_dot_y = (T_of(q + h * q_dot) - T_of(q - h * q_dot)) @ y / (2 * h)
    expected = {
        "M": T.T @ here["M"] @ T, "f": T.T @ here["f"], "B": T.T @ here["B"], "T": here["T"], "V": here["V"],
        "A": here["A"] @ T, "phi": here["phi"], "eta": here["eta"],
    }  # fmt: skip
    for what, x in expected.items():
        close(there[what], x, DERIVATIVE, f"{name}: {what}", scale=[1.0, np.abs(x).max(initial=0.0)])
    c = T.T @ (here["c"].ravel() + here["M"] @ T_dot_y)
    close(there["c"].ravel(), c, 1e-8, f"{name}: c by a central difference")
    b = here["b"].ravel() - here["A"] @ T_dot_y
    close(there["b"].ravel(), b, 1e-8, f"{name}: b by a central difference", scale=[1.0, np.abs(b).max(initial=0.0)])


@pytest.mark.parametrize("name", TREES)
def test_the_motion_does_not_depend_on_the_choice(name):
    m, random = tree_of(name, 6).with_(constraints=[]), np.random.default_rng(4)
    new, T = chosen(m, 3)
    q, v = pf.random_configuration(m, random), 0.5 * random.normal(size=m.nv)
    how = {"duration": 0.5, "step": 5e-4, "every": 100}
    here, there = pf.run(m, q, v, **how), pf.run(new, q, np.linalg.solve(T(q), v), **how)
    assert list(there.velocity.values) == [f"y{i}" for i in range(m.nv)]
    close(there.q.values, here.q.values, INTEGRATED, "q")
    v = np.array([T(q) @ y for q, y in zip(there.q.values, there.v.values, strict=True)])
    close(v, here.v.values, INTEGRATED, "T y")


def test_every_formulation_along_chosen_velocities():
    m = tree_of("chain", 7)
    new, _ = chosen(m, 5)
    random = np.random.default_rng(6)
    q, y, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    names = [n for n in pf.FORMULATIONS if n not in ("articulated", "quasi-velocity-innovations")]
    v_dot = pf.compile_terms(new, {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in names}, backend="numpy")(q, y, u)
    for n, x in v_dot.items():
        close(x, v_dot["gauss"], 1e-8, n)
    close(pf.forward_dynamics(new, q, y, u=u, formulation="projection").v_dot, v_dot["gauss"], 1e-8, "by its name")
    for n in ("articulated", "quasi-velocity-innovations"):
        with pytest.raises(pf.ModelError, match="velocities other than the rates of its joints"):
            pf.forward_dynamics(new.with_(constraints=[]), q, y, u=u, formulation=n)
    assert len(names) > 6


def test_a_robot_with_one_joint_in_other_coordinates():
    """The elbow of a UR5 in coordinates with another K: the tangent of half its angle."""
    random = np.random.default_rng(12)
    m = pf.formats.read_urdf(installed("example-robot-data", "ur_description/urdf/ur5_robot.urdf", "tests"))
    j = m.joint("elbow_joint")
    knee = pf.coordinates("knee", ["t"], ["w"], lambda q: (1 + q[0] ** 2) / 2)

    def pose(k):
        t = k.joint("knee")[0]
        c, s = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
        return (
            j.placement
            @ pf.Pose(ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]]), ca.SX.zeros(3, 1))
            @ j.child_placement.inverse()
        )

    joints = [pf.edge("elbow edge", j.parent, j.child, pose) if x is j else x for x in m.joints]
    damping = [pf.forces.dissipation("damper", lambda k: j.damping * ca.sumsqr(k.joint_rate("knee")) / 2)]
    motors = [replace(a, joint="knee") if a.joint == j.name else a for a in m.actuators]
    new = pf.mechanism("UR5", m.bodies, joints, coordinates=[knee], gravity=m.gravity, forces=damping, actuators=motors)
    at, last = m.q_slices[j.name].start, m.nq - 1
    order = [i for i in range(m.nq) if i != at] + [at]
    q, v, u = random.uniform(-1, 1, m.nq), random.normal(size=m.nv), random.normal(size=m.nu)
    q_new = q[order]
    q_new[last] = np.tan(q[at] / 2)
    how = {"duration": 0.5, "step": 1e-3, "every": 100, "u": u}
    here, there = pf.run(m, q, v, **how), pf.run(new, q_new, v[order], **how)
    close(there.v.values, here.v.values[:, order], INTEGRATED, "v")
    close(2 * np.arctan(there.q.values[:, last]), here.q.values[:, at], INTEGRATED, "the elbow")


def test_a_graph_may_start_far_from_its_constraints():
    m = tree_of("branches", 3)
    twin = graph_twin(m.with_(constraints=[m.constraints[1]])).m
    assert np.abs(pf.assemble(twin).residual).max() < 1e-9


def test_a_body_with_a_pseudo_inertia():
    m = bare(random_tree(np.random.default_rng(3), ["free", "revolute"], [-1, 0]))
    bodies = []
    for b in m.bodies:
        mass, h, I = moments(b.mass, b.com, b.inertia)
        bodies.append(pf.body(b.name, pseudo=pseudo(mass, h, I)))
    other = m.with_(bodies=bodies)
    q, v = pf.random_configuration(m, np.random.default_rng(0)), np.ones(m.nv)
    for what in ("M", "c", "V"):
        part = {what: PARTS[what]}
        here, there = (pf.compile_terms(x, part, backend="numpy", lanes=1)(q, v)[what] for x in (m, other))
        close(there, here, DERIVATIVE, what)
    for wrong, words in (
        ({"mass": 1.0, "pseudo": np.eye(4)}, "leave these out"),
        ({"pseudo": np.eye(3)}, "symmetric \\(4, 4\\)"),
        ({"pseudo": np.diag([1.0, 1, 1, 0])}, "no mass"),
        ({"pseudo": np.triu(np.ones((4, 4)))}, "symmetric"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            pf.body("b", **wrong)


def test_coordinates_stay_on_phi():
    random = np.random.default_rng(1)
    m = bare(random_tree(random, ["spherical"], [-1]))
    twin = graph_twin(m)
    q, v = pf.random_configuration(m, random), 3 * random.normal(size=3)
    r = pf.run(twin.m, twin.q(q), v, duration=5.0, step=1e-3, every=50)
    R = r.q.values.reshape(-1, 3, 3)
    assert np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max() < 1e-14


def test_random_configurations_and_starts_are_on_phi():
    twin = graph_twin(bare(random_tree(np.random.default_rng(2), ["planar", "spherical"], [-1, 0]))).m
    q = pf.random_configuration(twin, np.random.default_rng(0))
    a = pf.assemble(twin, q + 1e-3)
    c, s = a.q[..., 2].ravel(), a.q[..., 3].ravel()
    assert np.abs(c**2 + s**2 - 1).max() < 1e-12
    named = pf.assemble(twin, {"j0.c": 0.6})
    close(np.abs(named.q[..., 2:4].ravel()), [0.6, 0.8], 1e-12, "named coordinates stay")
    with pytest.raises(pf.ModelError, match="no q with phi\\(q\\) = 0 that keeps c"):
        pf.assemble(twin, {"j0.c": 1.5})


EDGE = [pf.body("b", 1.0, inertia=(1, 1, 1))]


def made(K=lambda q: 1, phi=None, q=("x",), v=("w",), pose=None, **more):
    how = {"start": more.pop("start", None)}
    edge = pf.edge("e", "world", "b", pose or (lambda k: pf.Pose(ca.SX.eye(3), ca.vertcat(k.q[0], 0, 0))))
    return pf.mechanism("m", EDGE, [edge], coordinates=[pf.coordinates("x", q, v, K, phi=phi, **how)], **more)


WRONG = {
    "K of the wrong size": (lambda: made(lambda q: ca.vertcat(1, 1)), r"coordinates 'x': K must give \(1, 1\)"),
    "K off phi": (
        lambda: made(lambda q: ca.vertcat(1, 0), lambda q: ca.sumsqr(q) - 1, ("c", "s"), start=[0.6, 0.8]),
        "K does not keep phi = 0",
    ),
    "too few velocities": (
        lambda: made(lambda q: ca.vertcat(1, 0), None, ("c", "s")),
        "move in 2 directions, but 1 velocities",
    ),
    "a start off phi": (
        lambda: made(lambda q: ca.vertcat(-q[1], q[0]), lambda q: ca.sumsqr(q) + 1, ("c", "s")),
        "no q with phi",
    ),
    "dependent columns": (lambda: made(lambda q: ca.SX.zeros(1, 1)), "columns of K depend on each other"),
    "no pose": (lambda: pf.symbols(made(pose=lambda k: 1)).M, r"edge 'e': pose must give a Pose"),
    "no rotation": (
        lambda: pf.symbols(made(pose=lambda k: pf.Pose(2 * ca.SX.eye(3), ca.SX.zeros(3, 1)))).M,
        "R is not a rotation",
    ),
    "a pose that asks too much": (lambda: pf.symbols(made(pose=lambda k: k.pose("b"))).M, "edge 'e': pose"),
    "an edge too many": (
        lambda: pf.mechanism("m", EDGE, [pf.joint("j", "free", "world", "b"), pf.edge("e", "world", "b", lambda k: pf.pose())]),
        "has a joint already",
    ),
    "an edge to nowhere": (
        lambda: pf.mechanism("m", EDGE, [pf.joint("j", "free", "world", "b"), pf.edge("e", "b", "c", lambda k: pf.pose())]),
        "there is no body 'c'",
    ),
    "names for velocities": (lambda: made(velocities=pf.velocities(lambda k: 1, ["a", "b"])), "2 names for the 1 velocities"),
    "a singular T": (lambda: pf.symbols(made(velocities=pf.velocities(lambda k: 0, ["a"]))).M, "T is singular"),
    "T of velocities": (
        lambda: pf.symbols(made(velocities=pf.velocities(lambda k: 2 + k.v[0], ["a"]))).M,
        "a function of q alone",
    ),
    "no inertia": (
        lambda: pf.run(made(pose=lambda k: pf.Pose(ca.SX.eye(3), ca.SX.zeros(3, 1))), duration=0.1),
        "moves no inertia",
    ),
    "no function": (lambda: pf.coordinates("x", ["a"], ["b"], 3), "K must be a function"),
    "a name twice": (lambda: pf.coordinates("x", ["a", "a"], ["b"], abs), "used twice"),
    "units": (lambda: pf.coordinates("x", ["a"], ["b"], abs, q_units=["m", "m"]), "one unit, or one for each"),
    "coordinates among joints": (
        lambda: pf.mechanism("m", EDGE, [pf.coordinates("x", ["a"], ["b"], abs)]),
        r"belongs in coordinates=\[...\]",
    ),
}


test_wrong_graphs_are_named = refusals(WRONG)


def test_different_maps_have_different_kernels():
    from pfaffian.terms.equations_digest import digest

    plain = made()
    others = [
        made(lambda q: 2), made(pose=lambda k: pf.Pose(ca.SX.eye(3), ca.vertcat(0, k.q[0], 0))),
        made(velocities=pf.velocities(lambda k: 2, ["a"])), made(velocities=pf.velocities(lambda k: 3, ["a"])),
        made(pose=lambda k: pf.Pose(ca.SX.eye(3), ca.vertcat(ca.sin(k.q[0]), 0, 0))),
    ]  # fmt: skip
    assert len({digest(m) for m in [plain, *others]}) == 6
    assert digest(plain) == digest(made())


def test_laws_tasks_servos_and_figures_accept_a_graph(tmp_path):
    """A task for a hand and a servo on one joint, also with other velocities: inputs and motions are those of the tree."""
    random = np.random.default_rng(21)
    m = pf.actuate_all(bare(random_tree(random, ["revolute", "prismatic", "revolute", "revolute"], [-1, 0, 1, 2])))
    q, tip = pf.random_configuration(m, random), m.bodies[-1].name
    twin = graph_twin(m)
    new, T = chosen(twin.m, 4)
    # The task has as many coordinates as there are velocities, since a law leaves the rest of the motion at rest along v,
    # which depends on the choice of v.
    task = lambda k: ca.vertcat(k.position(tip), k.rotation(tip)[0, 1])  # noqa: E731
    here = pf.compile_terms(m, {"p": lambda T: task(T.kinematics)}, backend="numpy", lanes=1)(q)["p"].ravel()
    law = pf.control.operational_space(task, pf.control.set_point(here + 0.02), stiffness=30.0, damping=8.0, joint_damping=1.0)
    how = {"duration": 0.3, "step": 1e-3, "every": 50, "control": law}
    here = pf.run(m, q, **how)
    for other in (twin.m, new):
        there = pf.run(other, twin.q(q), **how)
        assert int(there.status) == 0
        close(there.u.values, here.u.values, INTEGRATED, "u")
        close(there.energy.values, here.energy.values, INTEGRATED, "energy")
        pf.results.write_netcdf(there, tmp_path / "graph.nc")
        assert pf.results.read_netcdf(tmp_path / "graph.nc").v.equals(there.v)
        assert len(pf.overview(there).axes) > 1
    hold = pf.servo(pf.holonomic("hold", lambda k: k.position(tip)[2] - 0.1 * k.t), ["j0"])
    pushed = [x.with_(constraints=[hold], actuators=[pf.actuator("j0", "j0")]) for x in (m, twin.m, new)]
    start = pf.assemble(m.with_(constraints=[hold.target]), q)
    v = start.v.ravel()
    starts = [(start.q.ravel(), v), (twin.q(start.q.ravel()), v)]
    starts.append((starts[1][0], np.linalg.solve(T(starts[1][0]), v)))
    forces = [
        pf.run(x, *at, duration=0.1, step=1e-3, every=20).servo_force.values for x, at in zip(pushed, starts, strict=True)
    ]
    for found in forces[1:]:
        close(found, forces[0], INTEGRATED, "servo force")
