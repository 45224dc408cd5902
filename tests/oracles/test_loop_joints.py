"""A joint that closes a loop is a joint: with what it carries, the motion is that of the same machine cut elsewhere."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.model.joint import KINDS
from tests.loops_cut_anywhere import FOUR_BAR, PARALLELOGRAM, linkage
from tests.tolerance import ALGEBRA, INTEGRATED, PEER_CONSTRAINED, close

CUTS = tuple(FOUR_BAR)
SAME = 1e-12
"""Two cuts of one loop: the rounding of a machine with four bodies, far above ALGEBRA for its mass matrix."""

CARRIED = {"stiffness": 2.0, "rest": 0.3, "damping": 3.0}


def accelerations(m: pf.Mechanism, by: str, angle: float, speed: float, u: float = 0.0) -> dict[str, float]:
    """Accelerations of the joints in the tree, by name, at an angle and a speed of one of them."""
    at = pf.assemble(m, {by: angle}, v={by: speed})
    found = pf.forward_dynamics(m, at.q, at.v, u=np.full(m.nu, u))
    return dict(zip(m.v_names, found.v_dot.tolist(), strict=True))


def test_a_damper_where_the_loop_is_cut():
    m = linkage(PARALLELOGRAM, "C", {"C": {"damping": 3.0}}, gravity=(0, 0, 0))
    # Crank and rocker turn with w and the hinge C turns by -w: I w_dot = -3 w, I the inertia about the crank's axis.
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    I = pf.mass_matrix(m, at.q)
    along = at.v / 2.0
    w_dot = -3.0 * 2.0 / float(along @ I @ along)
    close(pf.forward_dynamics(m, at.q, at.v).v_dot[0], w_dot, 1e2 * ALGEBRA, "acceleration of the crank")


@pytest.mark.parametrize("on", CUTS)
@pytest.mark.parametrize("hinges", [FOUR_BAR, PARALLELOGRAM], ids=["four-bar", "parallelogram"])
def test_the_motion_is_the_same_wherever_the_loop_is_cut(hinges, on):
    friction = pf.forces.joint_friction("seal", on, 0.5, smooth=0.1)
    motor = pf.actuator("motor", on, gear=2.0)
    found, energies = [], []
    for cut in CUTS:
        m = linkage(hinges, cut, {on: CARRIED}, forces=[friction], actuators=[motor])
        by = "D" if cut == "A" else "A"
        crank = pf.assemble(linkage(hinges, "C"), {"A": 0.4}, v={"A": 2.0})
        q, v = crank.named, dict(zip(crank.q_names, crank.v, strict=True))
        found.append(accelerations(m, by, q[by], v[by], u=0.7))
        energies.append(float(pf.energy(m, pf.assemble(m, {by: q[by]}).q).potential))
    size = max(map(abs, found[0].values()))
    for other, cut in zip(found, CUTS, strict=True):
        shared = sorted(set(other) & set(found[0]))
        close([other[n] for n in shared], [found[0][n] for n in shared], SAME, f"cut at {cut}", size)
    close(energies, np.full(4, energies[0]), SAME, "energy")


TWO_BODIES = [pf.body(n, mass=2.0, com=(0.1, -0.2, 0.3), inertia=(0.3, 0.2, 0.4)) for n in ("arm", "tool")]


def pair(kind: str, closed: bool) -> pf.Mechanism:
    """A tool on an arm by a joint of this kind: in the tree, or as the closure of a loop with a free joint."""
    k = KINDS[kind].nv
    stiffness = np.diag(np.arange(1.0, k + 1)) + 0.2 * (np.ones((k, k)) - np.eye(k)) * (kind != "spherical" and k < 4)
    carried = {"stiffness": stiffness, "damping": np.arange(1.0, k + 1) / 3}
    if not KINDS[kind].quaternion:
        carried["rest"] = list(np.linspace(0.2, 0.4, k)) if k > 1 else 0.2
    frames = {"at": pf.pose((0.1, 0.2, 0.3), rotation=np.eye(3)[[1, 2, 0]]), "there": pf.pose((-0.2, 0.1, 0.0))}
    more = {"pitch": 0.1} if "helical" in kind else {}
    base = pf.joint("base", "revolute", "world", "arm", axis=(1, 0, 0))
    motor = pf.actuator("motor", "grip", component=k - 1)
    push = pf.forces.generalised_force("push", lambda k: 0.3 * k.joint_rate("grip"), joint="grip")
    spring = pf.forces.potential("spring", lambda k: ca.sumsqr(k.joint("grip")[:2]) / 2)
    forces = [push] if KINDS[kind].quaternion else [push, spring]
    if not closed:
        grip = pf.joint("grip", kind, "arm", "tool", placement=frames["at"], child_placement=frames["there"], **carried, **more)
        return pf.mechanism("pair", TWO_BODIES, [base, grip], forces=forces, actuators=[motor])
    more |= {"axis": (1, 0, 0), "axis_b": (0, 1, 0)} if kind == "universal" else {}
    grip = pf.closure("grip", kind, "arm", "tool", placement_a=frames["at"], placement_b=frames["there"], **carried, **more)
    free = pf.joint("free", "free", "world", "tool")
    return pf.mechanism("pair", TWO_BODIES, [base, free], constraints=[grip], forces=forces, actuators=[motor])


@pytest.mark.parametrize("kind", [n for n in KINDS if n not in ("fixed", "free")])
def test_every_kind_carries_what_a_joint_of_the_tree_carries(kind):
    random = np.random.default_rng(3)
    tree, loop = pair(kind, False), pair(kind, True)
    q = np.array(pf.random_configuration(tree, random, 0.5))
    q[1:] *= 1.0 if KINDS[kind].quaternion else 0.7  # angles within half a turn of their rest
    v = random.normal(size=tree.nv)
    # The state of the loop: the pose and the twist of the tool in the tree.
    poses = {"q": lambda T: ca.vertcat(*_chart(T.kinematics.pose("tool"))), "v": lambda T: T.kinematics.twist("tool")}
    at = pf.compile_terms(tree, poses, backend="numpy")(q, v)
    q_loop, v_loop = np.concatenate([q[:1], at["q"]]), np.concatenate([v[:1], at["v"]])
    names = {"grip": lambda T: T.kinematics.joint("grip"), "rate": lambda T: T.kinematics.joint_rate("grip"),
             "power": lambda T: ca.vertcat(T.v.T @ T.f, T.v.T @ T.B), "V": lambda T: T.V}  # fmt: skip
    ours, theirs = (pf.compile_terms(m, names, backend="numpy")(*x) for m, x in ((loop, (q_loop, v_loop)), (tree, (q, v))))
    sign = 1.0
    if KINDS[kind].quaternion:
        sign = np.sign(ours["grip"][-1] * theirs["grip"][-1])
    close(ours["grip"], sign * theirs["grip"], 1e3 * ALGEBRA, "coordinates")
    for what in ("rate", "power", "V"):
        close(ours[what], theirs[what], 1e4 * ALGEBRA, what)
    u = [0.8]
    a, b = pf.forward_dynamics(loop, q_loop, v_loop, u=u), pf.forward_dynamics(tree, q, v, u=u)
    close(a.v_dot[0], b.v_dot[0], PEER_CONSTRAINED, "acceleration of the arm")


def _chart(G):
    """Position and quaternion of a pose."""
    return G.p, ca.SX(so3.matrix_to_quat(G.R))


def test_the_angle_of_a_closure_counts_its_turns_in_a_plane():
    """The crank of a slider-crank turns thrice; the hinge at its end, where the loop is cut, turns as often."""
    crank = {"A": {"damping": 0.1}}
    m = linkage(FOUR_BAR, "B", {"B": {"stiffness": 1e-3}, **crank}, gravity=(0, 0, 0))
    other = linkage(FOUR_BAR, "C", {"B": {"stiffness": 1e-3}, **crank}, gravity=(0, 0, 0))
    angle = {"B": lambda k: k.joint("B")}
    runs = []
    for x in (m, other):
        at = pf.assemble(x, {"A": 0.4}, v={"A": 15.0})
        runs.append(pf.run(x, at.q, at.v, duration=1.5, every=500, step=1e-3, outputs=angle, backend="interpreter"))
    one, two = (r["B"].values.ravel() for r in runs)
    assert np.abs(one[-1] - one[0]) > 4 * np.pi
    close(one, two, INTEGRATED, "angle over turns")
