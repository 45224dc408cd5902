"""A joint that closes a loop is a joint: with what it carries, the motion is that of the same machine cut elsewhere."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.model.joint import KINDS
from pfaffian.terms.loop_joints import closure_frames, half_turn_sides, loop_wrench_rows, relative_twist
from tests.loops_cut_anywhere import FOUR_BAR, PARALLELOGRAM, linkage, same_state
from tests.tolerance import ALGEBRA, INTEGRATED, PEER_CONSTRAINED, close

CUTS = tuple(FOUR_BAR)
SAME = 1e-12
"""Two cuts of one loop: the rounding of a machine with four bodies, far above ALGEBRA for its mass matrix."""

CARRIED = {"stiffness": 2.0, "rest": 0.3, "damping": 3.0, "armature": 0.2}


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


def test_friction_of_a_closure_is_that_of_a_joint():
    """The law of `joint_friction`, wherever the loop is cut, and in both motions of a cylindrical closure."""
    seal = pf.forces.joint_friction("seal", "C", 0.7)
    own = linkage(FOUR_BAR, "C", {"C": {"friction": 0.7}})
    other = linkage(FOUR_BAR, "D", forces=[seal])
    a, b = (accelerations(m, "A", 0.4, 2.0)["A"] for m in (own, other))
    close(a, b, SAME, "acceleration of the crank")
    nut = pf.closure("nut", "cylindrical", "world", "b", friction=(2.0, 0.3))
    m = pf.mechanism("nut", [pf.body("b", mass=1.0, inertia=0.1)], [pf.joint("base", "free", "world", "b")], constraints=[nut],
                     gravity=(0, 0, 0))  # fmt: skip
    v = {"base.vz": 1.0, "base.wz": -2.0}
    found = pf.forward_dynamics(m, m.neutral(), v).v_dot[[2, 5]]
    law = [x * s / np.sqrt(s**2 + 1e-6) for x, s in ((2.0, 1.0), (0.3, -2.0))]
    close(found, [-law[0] / 1.0, -law[1] / 0.1], SAME, "slide and turn")


def test_inverse_dynamics_takes_a_motor_where_the_loop_is_cut():
    found = []
    for cut in ("C", "D"):
        m = linkage(FOUR_BAR, cut)
        at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
        found.append(pf.inverse_dynamics(m, at.q, at.v, {"A": 1.0}, actuated=["C"], complete=True).u)
    close(found[0], found[1], SAME, "moment of the motor")


TWO_BODIES = [pf.body(n, mass=2.0, com=(0.1, -0.2, 0.3), inertia=(0.3, 0.2, 0.4)) for n in ("arm", "tool")]


def pair(kind: str, closed: bool) -> pf.Mechanism:
    """A tool on an arm by a joint of this kind: in the tree, or as the closure of a loop with a free joint."""
    k = KINDS[kind].nv
    stiffness = np.diag(np.arange(1.0, k + 1)) + 0.2 * (np.ones((k, k)) - np.eye(k)) * (kind != "spherical" and k < 4)
    carried = {"stiffness": stiffness, "damping": np.arange(1.0, k + 1) / 3, "armature": np.arange(k, 0.0, -1) / 2}
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
    through = pf.compile_terms(loop, {"rate": _rate_by_wrenches}, backend="numpy")(q_loop, v_loop)["rate"]
    close(through, theirs["rate"], 1e4 * ALGEBRA, "rate by the wrenches of unit forces")
    u = [0.8]
    a, b = pf.forward_dynamics(loop, q_loop, v_loop, u=u), pf.forward_dynamics(tree, q, v, u=u)
    close(a.v_dot[0], b.v_dot[0], PEER_CONSTRAINED, "acceleration of the arm")


def _rate_by_wrenches(T):
    """The power of unit forces along the motions of the closure, through the twist of its ends relative to each other."""
    k, (c,) = T.kinematics, T.mechanism.constraints
    A, _, _, J = relative_twist(k, closure_frames(k, c))
    return loop_wrench_rows(k, c) @ ca.diagcat(A, A) @ J @ T.v


def test_half_a_turn_has_a_sign_only_near_it():
    """So that an event is where the angle of a closure leaves what a state tells, and not where it passes `near`."""
    grip = pf.closure("grip", "revolute", "world", "tool", stiffness=1.0)
    m = pf.mechanism("m", TWO_BODIES[1:], [pf.joint("free", "free", "world", "tool")], constraints=[grip])
    angles = np.array([-3.1, -1.6, -0.1, 0.1, 1.6, 3.1])
    q = np.zeros((6, 7))
    q[:, 5], q[:, 6] = np.sin(angles / 2), np.cos(angles / 2)
    found = pf.compile_terms(m, {"side": lambda T: half_turn_sides(T.kinematics)}, backend="numpy")(q)["side"]
    close(found.ravel(), angles * (np.abs(angles) > 1), 10 * ALGEBRA, "side")


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


@pytest.mark.parametrize("frame", ["LOCAL", "WORLD"])
def test_the_wrench_through_a_closure_is_that_through_the_joint(frame):
    """With what it carries; so are those through the other joints of the loop, which statics determines."""
    spatial = {
        n: h._replace(kind="spherical" if n == "B" else "cylindrical" if n == "C" else h.kind) for n, h in FOUR_BAR.items()
    }
    carried = {"C": {"stiffness": [2.0, 3.0], "damping": [0.3, 0.5], "armature": [0.4, 0.2]}}
    forces = [
        pf.forces.generalised_force("push", lambda k: -0.3 * k.joint_rate("C"), joint="C"),
        pf.forces.potential("spring", lambda k: ca.sumsqr(k.joint("C") - 0.1)),
        pf.forces.dissipation("oil", lambda k: ca.sumsqr(k.joint_rate("C")) / 5),
    ]
    motors = [pf.actuator("motor", "C", component=1, gear=2.0)]
    found = []
    for cut in ("D", "C"):
        m = linkage(spatial, cut, carried, forces=forces, actuators=motors)
        at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
        found.append(pf.reaction_wrench(m, list("ABCD"), at.q, at.v, u=[0.7], frame=frame))
    for n in "ABCD":
        close(found[1][n].wrench, found[0][n].wrench, 1e4 * ALGEBRA, n, max(np.abs(x.wrench).max() for x in found[0].values()))


def _rssr(cut: str, near: pf.Parameter | None = None) -> pf.Mechanism:
    """A crank about z that drives a rocker about x by a rod between two ball joints; the crank's hinge has a spring."""
    bodies = [
        pf.body("crank", mass=1.0, com=(0.1, 0, 0), inertia=(0.02, 0.02, 0.03)),
        pf.body("rod", mass=0.5, com=(0.3, 0, 0), inertia=(0.002, 0.04, 0.04)),
        pf.body("rocker", mass=1.0, com=(0, 0.2, 0), inertia=(0.02, 0.02, 0.03)),
    ]
    carried = {"axis": (0, 0, 1), "stiffness": 0.02, "damping": 0.01}
    rock = pf.joint("rock", "revolute", "world", "rocker", placement=(0.3, 0, 0.2), axis=(1, 0, 0))
    length = float(np.sqrt(0.45))
    if cut == "turn":
        end = pf.joint("S2", "spherical", "rocker", "rod", placement=(0, 0.5, 0), child_placement=(length, 0, 0))
        joints = [rock, end, pf.joint("S1", "spherical", "rod", "crank", child_placement=(0.1, 0, 0))]
        closed = pf.closure("turn", "revolute", "world", "crank", near=near, **carried)
    else:
        turn = pf.joint("turn", "revolute", "world", "crank", **carried)
        joints = [turn, pf.joint("S1", "spherical", "crank", "rod", placement=(0.1, 0, 0)), rock]
        closed = pf.closure("S2", "spherical", "rocker", "rod", placement_a=(0, 0.5, 0), placement_b=(length, 0, 0))
    return pf.mechanism("RSSR", bodies, joints, constraints=[closed], parameters=[near] if near else [])


def test_a_closure_in_space_counts_its_turns_by_a_parameter():
    tree = _rssr("S2")
    at = pf.assemble(tree, {"turn": 0.0}, v={"turn": 9.0})
    runs = {"duration": 1.0, "step": 1e-3, "every": 100, "backend": "interpreter", "error_bound": np.inf}
    expected = pf.run(tree, at.q, at.v, **runs)["q"].sel(coordinate="turn").values
    assert expected.max() > 2 * np.pi
    counting = _rssr("turn", pf.Parameter("turns", 0.0))
    q, v = same_state(tree, counting, at.q, at.v)
    found = pf.run(counting, q, v, **runs)
    close(found["loop"].values.ravel(), expected, INTEGRATED, "angle of the crank")
    # Without it, a run counts by itself.
    itself = pf.run(_rssr("turn"), q, v, **runs)
    close(itself["loop"].values.ravel(), expected, INTEGRATED, "angle of the crank")


def test_runs_to_an_accuracy_count_the_turns_of_a_closure():
    tree, counting = _rssr("S2"), _rssr("turn", pf.Parameter("turns", 0.0))
    at = pf.assemble(tree, {"turn": 0.0}, v={"turn": 9.0})
    q, v = same_state(tree, counting, at.q, at.v)
    to = {"accuracy": 1e-8, "times": np.linspace(0, 1, 11), "backend": "interpreter"}
    expected = pf.run(tree, at.q, at.v, **to)["q"].sel(coordinate="turn").values.ravel()
    assert expected.max() > 2 * np.pi
    found = pf.run(counting, q, v, record=["loop"], **to)
    close(found["loop"].values.ravel(), expected, 10 * to["accuracy"], "angle of the crank")
    many = pf.run(counting, np.array([q, q]), np.array([-v, v]), record=["loop"], **to)
    assert (many["loop"].values[1] == found["loop"].values).all()
    assert many["loop"].values[0].min() < -2 * np.pi
    # A law that is sampled has its own discrete state beside the turns.
    law = control.discrete(lambda s: control.Command(0.05 * s.terms.kinematics.joint("turn")), 0.3)
    slower = []
    for m, state in ((tree, (at.q, at.v)), (counting, (q, v))):
        driven = m.with_(actuators=[pf.actuator("motor", "turn")])
        slower.append(pf.run(driven, *state, control=law, outputs={"angle": lambda k: k.joint("turn")}, **to)["angle"].values)
    close(slower[1], slower[0], 10 * to["accuracy"], "angle under a law")
    assert np.abs(slower[0].ravel() - expected).max() > 0.1


def test_limits_of_a_closure_are_reported():
    m = linkage(FOUR_BAR, "D", {"D": {"limits": (0.0, 1.5)}})
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    angle = float(pf.compile_terms(m, {"D": lambda T: T.kinematics.joint("D")}, backend="numpy")(at.q)["D"])
    held = linkage(FOUR_BAR, "D", {"D": {"limits": (angle - 0.1, angle + 0.1)}})
    with pytest.warns(pf.errors.RunWarning, match="closure 'D' is outside from t = "):
        r = pf.run(held, at.q, at.v, duration=0.3, step=1e-3, backend="interpreter")
    beyond = np.abs(r["loop"].values.ravel() - angle).max() - 0.1
    close(r["loop_excess"].values, [beyond], ALGEBRA, "excess")
    shut = linkage(FOUR_BAR, "D", {"D": {"limits": (angle + 0.1, angle + 0.2)}})
    for start in (pf.run, lambda *x, **given: pf.stepper(x[0], step=1e-3).reset(*x[1:])):
        with pytest.raises(pf.errors.RunError, match=r"closure 'D' starts at .* outside its limits"):
            start(shut, at.q, at.v, duration=0.1)
    with pytest.raises(pf.errors.RunError, match=r"closure 'D' starts at .* outside its limits"):
        pf.run(shut, at.q, at.v, duration=0.1, accuracy=1e-6)


def bad(words, **fields):
    return pytest.param(fields, words, id=words[:30])


ENDS = {"name": "C", "kind": "revolute", "body_a": "coupler", "body_b": "rocker"}


@pytest.mark.parametrize(("given", "words"), [
    bad("a weld closure leaves no motion free", kind="weld", damping=1.0),
    bad("a fixed closure leaves no motion free", kind="fixed", limits=(-1, 1)),
    bad("a distance closure has no coordinates", kind="distance", length=1.0, stiffness=2.0),
    bad("a point-on-line closure has no coordinates", kind="point-on-line", effort=2.0),
    bad("are the wrong way round", limits=(1, -1)),
    bad("effort -1.0 must be zero or positive", effort=-1.0),
    bad("friction must not be negative|friction.*below zero", friction=-1.0),
    bad("one number, or one for each of 2 motions", kind="cylindrical", friction=(1.0, 2.0, 3.0)),
    bad("must be symmetric", kind="cylindrical", stiffness=[[1.0, 2.0], [0.0, 1.0]]),
    bad("takes no limits", kind="spherical", limits=(-1, 1)),
    bad("leaves no number of turns open; leave out near", kind="helical", pitch=0.1, near=0.0),
])  # fmt: skip
def test_what_a_closure_cannot_carry_is_refused(given, words):
    with pytest.raises(pf.errors.ModelError, match=words) as error:
        pf.closure(**(ENDS | given))
    assert "'C'" in str(error.value)


def test_forces_along_closures_that_do_not_exist_are_refused():
    def made(**fields):
        return linkage(FOUR_BAR, "C", **fields)

    with pytest.raises(pf.errors.ModelError, match="actuator 'motor': there is no joint 'c'; there are A, B, D, C"):
        made(actuators=[pf.actuator("motor", "c")])
    with pytest.raises(pf.errors.ModelError, match="force 'seal': there is no joint 'c'; there are A, B, D, C"):
        made(forces=[pf.forces.joint_friction("seal", "c", 1.0)])
    with pytest.raises(pf.errors.ModelError, match="has 1 velocities, none numbered 1"):
        made(actuators=[pf.actuator("motor", "C", component=1)])
    weld = pf.closure("W", "weld", "coupler", "rocker", placement_a=(0.8, 0, 0), placement_b=(0, 0, 0.6))
    with pytest.raises(pf.errors.ModelError, match="actuator 'motor': 'W' is a weld closure, which has no coordinates"):
        made().with_(constraints=[weld], actuators=[pf.actuator("motor", "W")])
    again = pf.closure("A", "revolute", "world", "crank", axis=(0, 1, 0), damping=1.0)
    with pytest.raises(pf.errors.ModelError, match="constraint 'A' carries forces, so it needs a name that no joint has"):
        made().with_(constraints=[again])


@pytest.mark.parametrize("carried", [{"damping": 0.5}, {"friction": 0.2}], ids=str)
def test_what_a_closure_dissipates_is_no_error_of_the_energy(carried):
    m = linkage(FOUR_BAR, "C", {"C": carried})
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    r = pf.run(m, at.q, at.v, duration=0.5, step=1e-3, every=100, backend="interpreter")
    lost = float(r["energy"][0] - r["energy"][-1])
    assert lost > 0.05 and abs(float(r["energy_error"])) < 1e-6 * lost
