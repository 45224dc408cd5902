"""Every kind of closure against another formulation: phi = 0 by hand from poses, or a joint of the tree."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths.closures import CLOSURES as KINDS
from pfaffian.model.joint import KINDS as JOINTS
from pfaffian.model.joint import axis_frame
from tests.random_mechanisms import CLOSURES, Case, closing, matrices, on_velocity, placements, random_forces, random_tree
from tests.tolerance import ALGEBRA, INTEGRATED, SATISFIED, close


def by_hand(c, angle: float):
    """Constraint phi(k) from both poses: dot products of axes, components of the distance. angle: present turn of b in a."""

    def frames(k):
        A, B = k.pose(c.body_a) @ c.placement_a, k.pose(c.body_b) @ c.placement_b
        return [A.R[:, i] for i in range(3)], [B.R[:, i] for i in range(3)], B.p - A.p

    def phi(k):
        (x, y, z), (X, Y, Z), r = frames(k)
        point, plane, tilt = [ca.dot(x, r), ca.dot(y, r)], [ca.dot(z, r)], [ca.dot(x, Z), ca.dot(y, Z)]
        turn = [*tilt, ca.dot(x, Y)]
        turned = ca.atan2(ca.dot(y, X), ca.dot(x, X))
        turned += 2 * np.pi * np.round((angle - np.arctan2(np.sin(angle), np.cos(angle))) / (2 * np.pi))
        screw = [ca.dot(z, r) - c.number * turned]
        rows = {
            "weld": point + plane + turn, "revolute": point + plane + tilt, "prismatic": point + turn,
            "helical": point + screw + tilt, "cylindrical": point + tilt, "planar": plane + tilt, "spherical": point + plane,
            "planar-translation": plane + turn, "translation": turn, "schoenflies": tilt, "planar-helical": screw + tilt,
            "universal": point + plane + [ca.dot(z, Z)], "point-on-line": point, "point-on-plane": plane,
            "distance": [ca.norm_2(r) - c.number],
        }  # fmt: skip
        return ca.vertcat(*rows[c.kind])

    return pf.holonomic(c.name, phi)


@pytest.mark.parametrize("kind", CLOSURES)
@pytest.mark.parametrize("ends", [("world", "b2"), ("b3", "b2")])
def test_against_phi_by_hand(kind, ends):
    random = np.random.default_rng(9)
    m = random_forces(random, random_tree(random, ["free", "spherical", "revolute", "planar"], [-1, 0, 1, 0]))
    q = pf.random_configuration(m, random)
    c = closing("c", kind, *ends, random, placements(m, q))
    one = m.with_(constraints=[c])
    z = matrices(Case(one, q, np.zeros(m.nv), np.zeros(m.nu), 0.0), {"z": lambda T: T.kinematics.q[0], "r": _along(c)})["r"]
    angle = float(z.item() / float(c.number)) if "helical" in kind else 0.0
    other = m.with_(constraints=[by_hand(c, angle)])
    v, u = on_velocity(one, q, random.normal(size=m.nv), 0.0), random.normal(size=m.nu)
    parts = {"v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot, "reaction": lambda T: pf.FORMULATIONS["gauss"](T).reaction,
             "phi": lambda T: T.rows.phi, "eta": lambda T: T.rows.eta}  # fmt: skip
    ours, theirs = (matrices(Case(x, q, v, u, 0.0), parts) for x in (one, other))
    for r, what in ((ours, "closure"), (theirs, "by hand")):
        close(r["phi"], 0 * r["phi"], SATISFIED, f"{what}: phi")
        close(r["eta"], 0 * r["eta"], SATISFIED, f"{what}: eta")
    for what in ("v_dot", "reaction"):
        close(ours[what], theirs[what], 1e5 * ALGEBRA, what)


def _along(c):
    def z(T):
        A, B = (T.kinematics.pose(b) @ X for b, X in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)))
        return ca.dot(A.R[:, 2], B.p - A.p)

    return z


@pytest.mark.parametrize("kind", sorted(set(JOINTS) & set(KINDS) - {"fixed"}))
def test_against_a_joint_of_the_tree(kind):
    """A free body on a closure to a swinging one moves like a body on a joint of this kind."""
    number = {"pitch": 0.2} if KINDS[kind].number else {}
    axis, place = (0.3, -0.5, 0.8), pf.pose((0.4, 0.1, -0.2), rpy=(0.3, 0.2, -0.7))
    rod, box = pf.body("rod", 2.0, (0.3, 0, 0), 0.2), pf.body("box", 1.0, (0.1, -0.2, 0.05), (0.1, 0.12, 0.15))
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    force = pf.wrench("push", "box", value=(1.0, -2.0, 3.0, 0.3, -0.1, 0.2), axes="LOCAL")
    tree = pf.mechanism("tree", [rod, box], [hinge, pf.joint("j", kind, "rod", "box", axis=axis, placement=place, **number)],
                        forces=[force])  # fmt: skip
    axes = {"axis": axis}
    if kind == "universal":  # a joint's axes are x and y of its frame
        axes, place = {"axis": (1, 0, 0), "axis_b": (0, 1, 0)}, place @ axis_frame(axis, "j")
        number["placement_b"] = axis_frame(axis, "j")
    c = pf.closure("c", kind, "rod", "box", **axes, placement_a=place, **number)
    loop = pf.mechanism("loop", [rod, box], [hinge, pf.joint("j", "free", "world", "box")], constraints=[c], forces=[force])
    where = {"box": lambda k: ca.horzcat(k.position("box"), k.rotation("box")), "turns": lambda k: k.twist("box")}
    q, v = tree.neutral(), np.linspace(0.4, -0.7, tree.nv)
    begin = pf.compile_terms(tree, {n: lambda T, f=f: f(T.kinematics) for n, f in where.items()}, backend="numpy")(q, v)
    start = pf.assemble(loop, np.r_[0, begin["box"][:, 0], _quaternion(begin["box"][:, 1:])], backend="numpy").q
    ours = pf.run(
        loop, start, np.r_[v[0], begin["turns"]], duration=0.1, outputs=where, step=2e-3, every=10, backend="interpreter"
    )
    theirs = pf.run(tree, q, v, duration=0.1, outputs=where, step=2e-3, every=10, backend="interpreter")
    close(ours["box"].values, theirs["box"].values, INTEGRATED, "pose of the box")
    close(ours["turns"].values, theirs["turns"].values, INTEGRATED, "its twist")


def _quaternion(R):
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.r_[np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w), w]


def nut(pitch, kind="helical", **more):
    """A nut that falls on a vertical screw."""
    body = pf.body("nut", 1.0, (0, 0, 0), (0.02, 0.02, 0.04))
    c = pf.closure("thread", kind, "world", "nut", pitch=pitch, **more)
    p = [pitch] if isinstance(pitch, pf.Parameter) else []
    return pf.mechanism("nut", [body], [pf.joint("j", "free", "world", "nut")], constraints=[c], parameters=p)


@pytest.mark.parametrize("kind", ["helical", "planar-helical"])
def test_a_nut_screws_through_many_turns(kind):
    """z_ddot = -g m p^2 / (m p^2 + J): 28 turns in 3 s, and the pitch is a parameter."""
    pitch = pf.Parameter("pitch", 0.1, "m")
    r = pf.run(nut(pitch, kind), duration=3.0, step=1e-3, every=100, parameters={"pitch": [0.1, -0.25]}, record="all")
    for i, p in enumerate((0.1, -0.25)):
        a = -9.81 * p * p / (p * p + 0.04)
        close(r["q"].values[i, :, 2], a * r["time"].values ** 2 / 2, 1e-7, "height")
        close(r["v"].values[i, :, 5], a / p * r["time"].values, 1e-7, "spin")
        assert abs(r["q"].values[i, -1, 2] / p) > 2 * np.pi * 10
    close(r["violation"].values, 0 * r["violation"].values, SATISFIED, "phi")


@pytest.mark.parametrize("turned", [2.0, -2.0, 3.0, np.pi])
def test_a_nut_off_its_thread_is_turned_onto_it(turned):
    """It turns by up to half a turn, which a sine of the angle could not resolve."""
    height = 0.1 * (2 * np.pi * 3 + turned)
    a = pf.assemble(nut(0.1), {"j.x": 0.0, "j.y": 0.0, "j.z": height}, backend="numpy")
    close(a.q[2], height, ALGEBRA, "height kept", 1)
    angle = 2 * np.arctan2(a.q[5], a.q[6])
    close([np.cos(angle), np.sin(angle)], [np.cos(turned), np.sin(turned)], SATISFIED, "turned")


@pytest.mark.parametrize("kind", ["weld", "revolute", "cylindrical", "planar", "prismatic", "helical", "schoenflies"])
@pytest.mark.parametrize("off", [0.0, 1e-13, 1e-3])
def test_no_body_is_assembled_upside_down(kind, off):
    """From half a turn about x, exactly or nearly, assembly turns z up again."""
    body = pf.body("box", 1.0, (0, 0, 0), 0.1)
    c = pf.closure("c", kind, "world", "box", **({"pitch": 0.1} if kind == "helical" else {}))
    m = pf.mechanism("box", [body], [pf.joint("j", "free", "world", "box")], constraints=[c])
    half = np.array([1.0, off, 0.0, off])
    a = pf.assemble(m, np.r_[0, 0, 0, half / np.linalg.norm(half)], backend="numpy")
    x, y = a.q[3:5]
    close(1 - 2 * (x * x + y * y), 1.0, SATISFIED, "z of the body up")
    if kind in ("weld", "prismatic"):
        close(abs(a.q[6]), 1.0, SATISFIED, "not turned at all")


def test_a_distance_closure_of_any_length():
    """A ball at a distance from the origin is a pendulum, whose length is a parameter."""
    length = pf.Parameter("length", 0.5, "m")
    ball = pf.body("ball", 1.0, (0, 0, 0), 0.01)
    c = pf.closure("rod", "distance", "world", "ball", length=length)
    m = pf.mechanism("rod", [ball], [pf.joint("j", "free", "world", "ball")], constraints=[c], parameters=[length])
    q = {"j.x": [0.3, 0.6], "j.y": 0.0}
    r = pf.run(m, q, duration=0.3, parameters={"length": [0.5, 1.0]}, step=1e-3, every=300, record="all", backend="interpreter")
    close(np.linalg.norm(r["q"].values[:, -1, :3], axis=1), [0.5, 1.0], SATISFIED, "length kept")
    bob, hinge = pf.body("ball", 1.0, (0, 0, -0.5)), pf.joint("j", "revolute", "world", "ball", axis=(0, -1, 0))
    swing = pf.mechanism("swing", [bob], [hinge])
    z0 = r["q"].values[0, 0, 2]  # above or below, as the start was assembled
    begin = np.arctan2(0.3, -z0)
    one = pf.run(swing, [begin], duration=0.3, backend="interpreter")["q"].values[-1, 0]
    close(r["q"].values[0, -1, :3:2], [0.5 * np.sin(one), -0.5 * np.cos(one)], INTEGRATED, "as a pendulum")


def test_a_universal_closure_between_two_shafts():
    """Hooke's joint connects two shafts at an angle: tan a = cos(angle) tan b."""
    bend = 0.6
    shafts = [pf.body("drive", 1.0, (0, 0, 0), 0.1), pf.body("driven", 1.0, (0, 0, 0), 0.1)]
    joints = [
        pf.joint("a", "revolute", "world", "drive", axis=(1, 0, 0)),
        pf.joint("b", "revolute", "world", "driven", placement=pf.pose(rpy=(0, 0, bend)), axis=(1, 0, 0)),
    ]
    c = pf.closure("cross", "universal", "drive", "driven", axis=(0, 0, 1), axis_b=(0, 1, 0))
    m = pf.mechanism("shafts", shafts, joints, constraints=[c])
    r = pf.run(m, {"a": 0.0}, {"a": 3.0}, duration=3.0, step=1e-2, backend="interpreter")
    a, b = r["q"].values.T
    close(np.sin(a) * np.cos(bend) * np.cos(b), np.cos(a) * np.sin(b), 1e-9, "Hooke", 1)
    assert (r["rank"].values == 1).all() and a[-1] > 8
