"""Reaction wrenches: balance of every body, forces within joints, Pinocchio, MuJoCo, known answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given, settings

import pfaffian as pf
from pfaffian.dynamics.reaction import reaction_wrenches
from pfaffian.evaluate import reactions
from pfaffian.simulate.step.reaction_output import COMPONENTS
from pfaffian.terms.recursions import mass_centre
from tests.oracles.pinocchio_twin import twin_of
from tests.oracles.test_mujoco import ARM, ours, to_mujoco
from tests.oracles.test_pinocchio_loops import their_contact
from tests.random_mechanisms import (
    EXTRAS,
    Case,
    closing,
    loops,
    matrices,
    on_velocity,
    placements,
    random_forces,
    random_pose,
    random_tree,
)  # fmt: skip
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import PEER, PEER_CONSTRAINED, close

BALANCE = 1e-11
"""Tolerance of a sum of some ten wrenches against a rate of momentum: rounding of the largest one, times lever arms."""

IDENTITY = 1e-8
"""Tolerance where multipliers go through a rank decision with conditions up to 1e4."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Evaluate with NumPy, to the same numbers, so that no compiler is needed."""
    original = reactions.kernel.compile
    monkeypatch.setattr(reactions.kernel, "compile", lambda f, **how: original(f, **how | {"backend": "numpy", "lanes": 1}))


# -- every body in balance --------------------------------------------------------------------------------------------

X1, X2 = np.array([0.2, -0.1, 0.3]), np.array([-0.1, 0.2, 0.1])


def functions(at: dict) -> list:
    """A constraint for each way in which a function can constrain bodies, all satisfied at the placement."""
    (Ra, pa), (Rb, pb) = at["b1"], at["b3"]
    line, angle = (Ra @ X1 + pa) - (Rb @ X2 + pb), Ra[:, 0] @ Rb[:, 1]
    return [
        pf.holonomic("rod", lambda k: ca.sumsqr(k.position("b1", X1) - k.position("b3", X2)) - line @ line),
        pf.holonomic("angle", lambda k: ca.dot(k.rotation("b1")[:, 0], k.pose("b3").R[:, 1]) - angle),
        pf.nonholonomic("skate", lambda k: ca.dot(k.rotation("b2")[:, 1], k.velocity("b2", X1)) - 0.1),
        pf.nonholonomic("turn", lambda k: k.twist("b3")[4] + k.twist("b3", "WORLD")[5] + k.joint_rate("j4")),
        pf.holonomic("gear", lambda k: k.joint("j4")[0] - k.t),
    ]


def reactions_by_hand(G: dict, lam: dict) -> dict[str, list]:
    """Reactions (force, moment, point) of the constraints of `functions` on each body, from their geometry."""
    (Ra, pa), (R2, p2), (Rb, pb) = G["b1"], G["b2"], G["b3"]
    xa, xb, axis = Ra @ X1 + pa, Rb @ X2 + pb, np.cross(Ra[:, 0], Rb[:, 1])
    zero, z = np.zeros(3), np.array([0, 0, 1.0])
    return {
        "b1": [(2 * lam["rod"] * (xa - xb), zero, xa), (zero, lam["angle"] * axis, xa)],
        "b2": [(lam["skate"] * R2[:, 1], zero, R2 @ X1 + p2)],
        "b3": [(-2 * lam["rod"] * (xa - xb), lam["turn"] * (Rb[:, 1] + z) - lam["angle"] * axis, xb)],
    }


def full(seed: int) -> Case:
    """Case with many kinds of joints, fixed ones inside and on the world, closures, functions, every kind of force."""
    random = np.random.default_rng(seed)
    kinds = ["free", "revolute", "spherical", "fixed", "revolute", "planar", "fixed"]
    m = random_forces(random, random_tree(random, kinds, [-1, 0, 1, 2, 3, 0, -1]))
    m = m.with_(forces=[*m.forces, pf.wrench("load", "b3", point=X1, axes="WORLD", value=random.normal(size=6))])
    q, t = pf.random_configuration(m, random), 0.0
    q[m.q_slices["j4"]] = t
    at = placements(m, q)
    loop = [closing("loop", "spherical", "b5", "b4", random, at), closing("line", "point-on-line", "b6", "b2", random, at)]
    m = m.with_(constraints=[*loop, *functions(at)])
    return Case(m, q, on_velocity(m, q, random.normal(size=m.nv), t), random.normal(size=m.nu), t)


def momentum_rates(T: pf.Terms, v_dot: ca.SX) -> ca.SX:
    """Rates (6, bodies) of each body's momentum about the world's origin: derivatives of m v and of the angular momentum."""
    k, columns = T.kinematics, []
    for b in T.mechanism.bodies:
        R, w = k.rotation(b.name), k.twist(b.name, "WORLD")[3:]
        p = b.mass * k.velocity(b.name, b.com)
        h = ca.vertcat(p, ca.cross(k.position(b.name, b.com), p) + R @ b.inertia @ R.T @ w)
        columns.append(ca.jtimes(h, T.q, k.q_dot) + ca.jtimes(h, T.v, v_dot))
    return ca.horzcat(*columns)


@pytest.mark.parametrize("seed", range(2))
def test_every_body_is_in_balance(seed):
    case = full(seed)
    m, names = case.m, [j.name for j in case.m.joints] + ["loop", "line"]

    def answers(T: pf.Terms) -> ca.SX:
        motion = pf.FORMULATIONS["gauss"](T)
        found = reaction_wrenches(T, motion, names, "WORLD")
        return ca.horzcat(*[found[n].wrench for n in names], momentum_rates(T, motion.v_dot))

    got = matrices(case, {"all": answers, "A": lambda T: T.A, "reaction": lambda T: pf.FORMULATIONS["gauss"](T).reaction})
    W = dict(zip(names, got["all"].T, strict=False))
    rates = dict(zip([b.name for b in m.bodies], got["all"].T[len(names) :], strict=True))
    lam = np.linalg.lstsq(got["A"].T, got["reaction"].ravel(), rcond=1e-9)[0][-5:]
    sums = {b.name: np.zeros(6) for b in m.bodies} | {"world": np.zeros(6)}
    for j in m.joints:
        sums[j.child] += W[j.name]
        sums[j.parent] -= W[j.name]
    for c in m.constraints[:2]:
        sums[c.body_b] += W[c.name]
        sums[c.body_a] -= W[c.name]
    G = placements(m, case.q)
    speeds = {n: matrices(case, {"v": lambda T, n=n: T.kinematics.twist(n, "WORLD")})["v"].ravel() for n in G}
    by_functions = reactions_by_hand(G, dict(zip(("rod", "angle", "skate", "turn", "gear"), lam, strict=True)))
    for name in sums:
        for f, n, x in by_functions.get(name, []) + pushes(case, name, G, speeds):
            sums[name] += [*f, *(n + np.cross(x, f))]
    scale = max(np.abs(list(W.values())).max(), 1)
    for b in m.bodies:
        close(sums[b.name], rates[b.name], BALANCE, f"balance of {b.name}", scale)


def pushes(case: Case, name: str, G: dict, speeds: dict) -> list:
    """Weight, springs and wrenches on a body as (force, moment, point), computed independently."""
    m, (R, p), found = case.m, G[name], []
    value = lambda x: m.value(x).ravel()  # noqa: E731
    if name != "world":
        b = m.body(name)
        found.append((value(b.mass) * value(m.gravity), np.zeros(3), R @ value(b.com) + p))
    for f in m.forces:
        if f.name == "spring":
            ends = [G[n][0] @ value(x) + G[n][1] for n, x in ((f.body_a, f.point_a), (f.body_b, f.point_b))]
            rates = [speeds[n][:3] + np.cross(speeds[n][3:], x) for n, x in zip((f.body_a, f.body_b), ends, strict=True)]
            line, length = ends[1] - ends[0], np.linalg.norm(ends[1] - ends[0])
            along = line / length
            pull = (value(f.stiffness) * (length - value(f.rest)) + value(f.damping) * along @ (rates[1] - rates[0])) * along
            found += [(s * pull, np.zeros(3), x) for s, n, x in ((1, f.body_a, ends[0]), (-1, f.body_b, ends[1])) if n == name]
        elif f.body == name:
            w = case.u[[m.u_names.index(f"{f.name}.{c}") for c in COMPONENTS]] if f.value is None else value(f.value)
            turned = R if f.axes == "LOCAL" else np.eye(3)
            found.append((turned @ w[:3], turned @ w[3:], R @ value(f.point) + p))
    return found


# -- along the joints' motion -----------------------------------------------------------------------------------------


def along_motion(T: pf.Terms, servo_inputs: ca.SX | None = None) -> ca.SX:
    """S^T of each joint's wrench less the forces of actuators, springs, dampers and armature (nv), and a size of wrenches."""
    m = T.mechanism
    motion = pf.FORMULATIONS["control-force" if m.servos else "gauss"](T)
    moving = [j for j in m.joints if j.nv]
    found = reaction_wrenches(T, motion, [j.name for j in moving])
    given = T.B[:, : len(m.actuators)] @ (T.u[: len(m.actuators)] + (0 if servo_inputs is None else servo_inputs))
    left = []
    for j in moving:
        v = m.v_slices[j.name]
        applied = given[v] - j.damping @ T.v[v] - j.armature * motion.v_dot[v]
        e, E = j.displacement(T.q[m.q_slices[j.name]])
        applied -= E.T @ (j.stiffness @ e)
        left.append(j.parts[-1].S.T @ found[j.name].wrench - applied)
    return ca.horzcat(ca.vertcat(*left), ca.repmat(ca.norm_inf(ca.vertcat(*[found[j.name].wrench for j in moving])), m.nv, 1))


@settings(max_examples=8)
@given(loops(4, tuple(k for k in EXTRAS if k != "pushed")))  # its force on single bodies cannot be determined
def test_the_part_along_the_motion_is_what_acts_within_the_joint(case):
    left = matrices(case, {"left": along_motion})["left"]
    assume(np.isfinite(left).all() and left[0, 1] < 1e6)
    close(left[:, 0], np.zeros(len(left)), IDENTITY, "along the motion", left[0, 1] + 1)


def test_a_row_of_joint_coordinates_acts_within_the_joints():
    """A gear's multiplier appears along the axes of its joints, and nowhere else."""
    m = full(0).m
    case = full(0)
    lam = matrices(case, {"l": lambda T: pf.constraints.minimum_norm_multipliers(T, pf.FORMULATIONS["gauss"](T).reaction)})[
        "l"
    ].ravel()
    left = matrices(case, {"left": along_motion})["left"][:, 0]
    expected = np.zeros(m.nv)
    expected[m.v_slices["j4"]] = lam[-1] + lam[-2]  # the gear's row, and the rate of the joint in the row of `turn`
    close(left, expected, BALANCE, "forces within joints", np.abs(lam).max() + 100)


def test_servo_forces_along_inputs():
    """Of a servo constraint's forces, that of an actuator appears in its joint, and that of a wrench acts on the body."""
    random = np.random.default_rng(3)
    m = random_forces(random, random_tree(random, ["revolute", "spherical", "revolute"], [-1, 0, 1]))
    hold = pf.holonomic("hold", lambda k: ca.vertcat(k.joint("j2")[0] - 0.2 * k.t, k.position("b2")[2] - 0.1))
    wall = pf.holonomic("wall", lambda k: k.position("b1", X1)[0])
    m = m.with_(constraints=[wall, pf.servo(hold, ["motor j2", "hand.fz"])])
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu), 0.3)

    def mu(T: pf.Terms) -> ca.SX:
        from pfaffian.dynamics.controlforce import control_force

        return control_force(T).mu

    def wall_force(T: pf.Terms) -> ca.SX:
        left = T.M @ pf.FORMULATIONS["control-force"](T).v_dot - T.force - T.servo.Z.T @ mu(T)
        return (T.A @ left) / (T.A @ T.A.T)

    def total(T: pf.Terms) -> ca.SX:
        x = mu(T)
        motion = pf.FORMULATIONS["control-force"](T)
        root = reaction_wrenches(T, motion, ["j0"], "WORLD")["j0"].wrench
        return root[:3] + ca.vertcat(wall_force(T), 0, x[1]) - ca.sum2(momentum_rates(T, motion.v_dot)[:3, :])

    left = matrices(case, {"left": lambda T: along_motion(T, ca.vertcat(0, 0, mu(T)[0]))})["left"]
    close(left[:, 0], np.zeros(m.nv), IDENTITY, "along the motion", left[0, 1])
    G, speeds = placements(m, case.q), {}
    speeds = {n: matrices(case, {"v": lambda T, n=n: T.kinematics.twist(n, "WORLD")})["v"].ravel() for n in G}
    others = sum(f for n in G if n != "world" for f, _, _ in pushes(case, n, G, speeds))
    close(matrices(case, {"x": total})["x"].ravel(), -others, IDENTITY, "sum of forces", left[0, 1])
    run = pf.run(m, case.q, case.v, duration=0.0, start=case.t, u=case.u, correct_start=False, backend="interpreter")
    lam = matrices(case, {"x": wall_force})["x"].ravel()
    close(run["multiplier"].values[0], lam, IDENTITY, "the wall's multiplier alone", left[0, 1])


# -- other engines ----------------------------------------------------------------------------------------------------


def test_a_tree_agrees_with_pinocchio():
    random = np.random.default_rng(4)
    m = random_tree(random, ["free", "revolute", "fixed", "spherical", "planar", "prismatic"], [-1, 0, 1, 2, 1, 3])
    w = twin_of(m)
    q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
    moving = [j.name for j in m.joints if j.nv]
    v_dot = pf.forward_dynamics(m, q, v).v_dot
    pin.rnea(w.model, w.data, w.q(q), w.v(v), w.v(v_dot))
    found = pf.reaction_wrench(m, moving, q, v)
    assert list(found) == moving
    theirs = {n: w.data.f[w.model.getJointId(n)].vector for n in moving}
    scale = max(np.abs(f).max() for f in theirs.values())
    for n in moving:
        close(found[n].wrench, theirs[n], PEER, f"wrench of {n}", scale)
        assert found[n].unique.dtype == bool and found[n].unique.all()


def test_a_weld_agrees_with_pinocchio():
    """The last body welded to the world: the closure's wrench is Pinocchio's contact force."""
    random = np.random.default_rng(8)
    m = random_tree(random, ["revolute"] * 7, [-1, 0, 1, 2, 3, 4, 5])
    w = twin_of(m)
    q = pf.random_configuration(m, random)
    X = random_pose(random)
    R, p = placements(m, q)["b6"]
    B = pf.pose(R @ m.value(X.p).ravel() + p, rotation=R @ m.value(X.R))
    m = m.with_(constraints=[pf.closure("weld", "weld", "world", "b6", placement_a=B, placement_b=X)])
    v = on_velocity(m, q, random.normal(size=7), 0.0)
    contacts, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    contacts.append(their_contact(w, m.constraints[0]))
    data.append(contacts[0].createData())
    pin.initConstraintDynamics(w.model, w.data, contacts, data)
    f = matrices(Case(m, q, v, np.zeros(0), 0.0), {"f": lambda T: T.f})["f"].ravel()
    accuracy = pin.ProximalSettings(1e-14, 1e-14, 1e-10, 50)
    pin.constraintDynamics(w.model, w.data, w.q(q), w.v(v), w.v(f), contacts, data, accuracy)
    theirs = -data[0].contact_force.vector  # Pinocchio's force is on the first body, the world
    close(pf.reaction_wrench(m, "weld", q, v).wrench, theirs, PEER_CONSTRAINED, "wrench of the weld")


def sensed() -> str:
    """XML of MuJoCo's arm with force and torque sensors at the joints, without the tendon, which its inverse dynamics omit."""
    xml = ARM[: ARM.index("<tendon>")] + ARM[ARM.index("</tendon>") + 9 :]
    site = '<site name="{0}" pos="0 0 0" {1}/>'
    for body, axes in (("upper", 'quat="0.948683298 0 0.316227766 0"'), ("slide", ""), ("hand", "")):
        at = xml.index("<inertial", xml.index(f'<body name="{body}"'))
        xml = xml[:at] + site.format(f"at {body}", axes) + xml[at:]
    sensors = "".join(f'<force site="at {b}"/><torque site="at {b}"/>' for b in ("upper", "slide", "hand"))
    return xml.replace("</mujoco>", f"<sensor>{sensors}</sensor></mujoco>")


@pytest.mark.parametrize("seed", range(2))
def test_an_arm_under_wrenches_agrees_with_mujoco(seed):
    m = ours()
    m = m.with_(forces=m.forces[1:])
    model, random = mujoco.MjModel.from_xml_string(sensed()), np.random.default_rng(seed)
    data = mujoco.MjData(model)
    q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    R = pf.forward_kinematics(m, q, bodies=["drone"])["drone"].rotation
    data.qpos, data.qvel, data.ctrl = *to_mujoco(q, v, R), u[:2]
    data.xfrc_applied[1:] = u[2:].reshape(4, 6)
    mujoco.mj_forward(model, data)
    G = pf.forward_kinematics(m, q)
    found = pf.reaction_wrench(m, ["shoulder", "rail", "wrist"], q, v, u, frame="LOCAL_WORLD_ALIGNED")
    for i, (joint, body) in enumerate((("shoulder", "upper"), ("rail", "slide"), ("wrist", "hand"))):
        turn = data.site(f"at {body}").xmat.reshape(3, 3)
        np.testing.assert_allclose(data.site(f"at {body}").xpos, G[body].position, atol=1e-9)
        theirs = [*(turn @ data.sensordata[6 * i : 6 * i + 3]), *(turn @ data.sensordata[6 * i + 3 : 6 * i + 6])]
        close(found[joint].wrench, theirs, PEER, f"wrench of {joint}", np.abs(found["shoulder"].wrench).max())


# -- known answers ----------------------------------------------------------------------------------------------------


def hanging() -> pf.Mechanism:
    """A bar of 2 kg hangs from a hinge at (0, 0, 1); a lamp of 3 kg is bolted to its end."""
    bodies = [pf.body("bar", 2.0, com=(0, 0, -0.5), inertia=0.1), pf.body("lamp", 3.0, com=(0.1, 0, 0), inertia=0.01)]
    joints = [
        pf.joint("hinge", "revolute", "world", "bar", axis=(0, 1, 0), placement=(0, 0, 1)),
        pf.joint("bolt", "fixed", "bar", "lamp", placement=pf.pose((0, 0, -1), rpy=(0, 0, np.pi / 2)),
                 child_placement=(0.2, 0, 0)),
    ]  # fmt: skip
    return pf.mechanism("hanging", bodies, joints, gravity=(0, 0, -10.0))


def test_signs_points_and_axes():
    """At rest the parent holds the child up; moments are about the joint's frame on the child."""
    m = hanging()
    found = pf.reaction_wrench(m, ["hinge", "bolt"], frame="LOCAL_WORLD_ALIGNED")
    np.testing.assert_allclose(found["hinge"].wrench[:3], [0, 0, 50], atol=1e-12)
    # The lamp's frame is turned by 90 degrees about z, 0.2 m before the bolt: its mass is at y = -0.1 m from the bolt.
    np.testing.assert_allclose(found["bolt"].wrench, [0, 0, 30, -0.1 * 30, 0, 0], atol=1e-12)
    np.testing.assert_allclose(pf.reaction_wrench(m, "bolt").wrench, [0, 0, 30, 0, 3, 0], atol=1e-12)
    world = pf.reaction_wrench(m, "bolt", frame="WORLD").wrench
    np.testing.assert_allclose(world, [0, 0, 30, -3, 0, 0], atol=1e-12)  # the bolt is on the z axis
    turned = pf.reaction_wrench(m, "hinge", frame="LOCAL").wrench  # its z is the y axis, its y points down
    np.testing.assert_allclose(turned, [0, -50, 0, -3, 0, 0], atol=1e-12)
    centrifugal = pf.reaction_wrench(m, "hinge", v=[2.0], frame="LOCAL_WORLD_ALIGNED").wrench
    np.testing.assert_allclose(centrifugal[2], 50 + 4 * (2 * 0.5 + 3 * 1), rtol=1e-12)


def test_a_joint_carries_the_weight_given_by_parameters():
    mass = pf.Parameter("mass", 1.0, "kg")
    m = pf.mechanism(
        "bob", [pf.body("bob", mass)], [pf.joint("j", "prismatic", "world", "bob", axis=(1, 0, 0))], parameters=[mass]
    )
    wrenches = pf.reaction_wrench(m, "j", parameters={"mass": [0.5, 3.0]}, frame="LOCAL_WORLD_ALIGNED").wrench
    close(wrenches[:, 2], 9.81 * np.array([0.5, 3.0]), BALANCE, "weight")


def test_a_redundant_hinge_marks_components_that_are_not_unique():
    """The hinge's five rows have rank two: out of the four-bar's plane the motion does not determine its reactions."""
    m = four_bar()
    q, v = started(m)
    found = pf.reaction_wrench(m, ["a", "d", "c"], q, v)
    for n in found:
        assert found[n].unique.tolist() == [True, True, False, False, False, True], n
        assert np.isfinite(found[n].wrench).all()
    point = m.with_(constraints=[four_bar("spherical").constraints[0]])
    same = pf.reaction_wrench(point, "c", q, v)
    np.testing.assert_allclose(same.wrench[:2], found["c"].wrench[:2], rtol=1e-10)


def test_a_closure_to_the_world_and_an_inactive_constraint():
    bob = pf.body("bob", 2.0, inertia=1.0)
    pin = pf.closure("pin", "spherical", "bob", "world")
    free = pf.joint("free", "free", "world", "bob")
    m = pf.mechanism("bob", [bob], [free], constraints=[pin], gravity=(0, 0, -10.0))
    np.testing.assert_allclose(pf.reaction_wrench(m, "pin").wrench, [0, 0, -20, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(pf.reaction_wrench(m, "free").wrench, np.zeros(6), atol=1e-12)
    off = m.with_(constraints=[pf.constraints.active_while(pin, lambda k: k.t > 1)])
    found = pf.reaction_wrench(off, "pin")
    assert not found.wrench.any() and found.unique.all()
    np.testing.assert_allclose(pf.reaction_wrench(off, "pin", t=2.0).wrench, [0, 0, -20, 0, 0, 0], atol=1e-12)
    moved = pf.reaction_wrench(m.with_(constraints=[pf.closure("pin", "spherical", "bob", "world", placement_a=(1, 0, 0),
        placement_b=(1, 0, 0))]), "pin", frame="WORLD")  # fmt: skip
    np.testing.assert_allclose(moved.wrench[3:], np.cross([1, 0, 0], moved.wrench[:3]), atol=1e-12)
    assert abs(moved.wrench[2]) > 1


def started(m: pf.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """q and v of a turning four-bar on its constraints."""
    r = pf.run(m, FOUR_BAR_START, {"a": 1.0}, duration=0.0, backend="interpreter").isel(time=0)
    return r["q"].values, r["v"].values


# -- in a run ---------------------------------------------------------------------------------------------------------


def test_a_run_records_reaction_wrenches():
    m = four_bar()
    outputs = {
        "pin": pf.reaction("c"),
        "crank": pf.reaction("a", "WORLD"),
        "known": pf.reaction("c", unique=True),
        "a": pf.of_motion(lambda T, motion: motion.v_dot),
        "tip": lambda k: k.position("coupler"),
    }
    r = pf.run(m, FOUR_BAR_START, duration=0.02, every=10, u={"motor": 2.0}, outputs=outputs, backend="interpreter")
    assert r["pin"].dims == ("time", "wrench_component") and r["pin"].attrs["units"] == "N, N m"
    assert r["wrench_component"].values.tolist() == ["fx", "fy", "fz", "nx", "ny", "nz"]
    assert r["known"].attrs["units"] == "1" and r["known"].isel(time=0).values.tolist() == [1, 1, 0, 0, 0, 1]
    q, v = r["q"].values, r["v"].values
    found = pf.reaction_wrench(m, ["c"], q, v, {"motor": 2.0})["c"]
    np.testing.assert_allclose(r["pin"].values, found.wrench, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        r["crank"], pf.reaction_wrench(m, "a", q, v, {"motor": 2.0}, frame="WORLD").wrench, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(r["a"], pf.forward_dynamics(m, q, v, {"motor": 2.0}).v_dot, rtol=1e-9)
    assert r["tip"].shape == (3, 3)
    assert pf.reaction("c") == pf.reaction("c") != pf.reaction("c", "WORLD")
    assert hash(pf.reaction("c")) == hash(pf.reaction("c"))


# -- what cannot be determined ---------------------------------------------------------------------------------------


@cache
def undecided() -> pf.Mechanism:
    """Two arms on the world, whose constraint on the second arm's tip in z reads `link_pose` and so hides its body."""
    bodies = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.1) for n in ("one", "two")]
    joints = [pf.joint(f"j {n}", "revolute", "world", n, axis=(0, 1, 0)) for n in ("one", "two")]
    m = pf.mechanism("arms", bodies, joints)
    return m.with_(constraints=[pf.holonomic("tip", lambda k: k.link_pose(1).p[2] + k.link_pose(1).R[2, 0])])


def test_a_function_that_hides_its_bodies_is_named_where_it_matters():
    m = undecided()
    said = r"constraint 'tip': its function uses 'link_pose' of the kinematics.*write it in terms of joint"
    with pytest.raises(pf.ModelError, match=said):
        pf.reaction_wrench(m, "j two")
    np.testing.assert_allclose(pf.reaction_wrench(m, "j one", frame="WORLD").wrench[1], 0, atol=1e-12)
    whole = m.with_(constraints=[pf.holonomic("centre", lambda k: mass_centre(k)[2])])
    with pytest.raises(pf.ModelError, match=r"constraint 'centre': its function uses 'tree' of the kinematics"):
        pf.reaction_wrench(whole, "j one")


def test_errors():
    m = four_bar().with_(constraints=[*four_bar().constraints, pf.holonomic("phi", lambda k: 0 * k.q[0])])
    start, _ = started(four_bar())
    for ask, message in (
        (lambda: pf.reaction_wrench(m, "e", start), "no joint or closure 'e'; it has a, b, d, c"),
        (lambda: pf.reaction_wrench(m, "phi", start), "constraint 'phi' is not a closure.*`multiplier`"),
        (lambda: pf.reaction_wrench(m, "a", start, frame="BODY"), "frame 'BODY' is unknown"),
        (lambda: pf.reaction("c", "BODY"), "frame 'BODY' is unknown"),
        (lambda: pf.reaction_wrench(four_bar(), "c", {"a": 0.1}), "off the constraints: row 'c.v"),
        (
            lambda: pf.run(m, start, duration=0.01, outputs={"q": pf.reaction("c")}, backend="interpreter"),
            "signal of that name",
        ),
    ):
        with pytest.raises(pf.ModelError, match=message):
            ask()
    bars = four_bar().with_(constraints=[])
    target = pf.holonomic("hold", lambda k: k.joint("a"))
    served = bars.with_(constraints=[pf.servo(target, lambda k: ca.DM([[1, 0, 0]]))])
    with pytest.raises(pf.ModelError, match=r"servo constraint 'hold': its directions are a function.*name inputs"):
        pf.reaction_wrench(served, "a")
    with pytest.raises(pf.ModelError, match=r"'hold' is not a closure.*servo_force"):
        pf.reaction_wrench(bars.with_(constraints=[pf.servo(target, ["motor"])]), "hold")
    twice = four_bar().with_(constraints=[replace(four_bar().constraints[0], name="a")])
    with pytest.raises(pf.ModelError, match="'a' is a joint and a closure"):
        pf.reaction_wrench(twice, "a", start)


@pytest.mark.parametrize("ends", [("a", "b"), ("world", "b"), ("a", "world")], ids=" to ".join)
def test_a_potential_of_a_line_acts_on_both_bodies_as_a_spring_does(ends):
    """The bodies on which a potential acts are found by moving each of them alone."""
    points = (0.1, -0.2, 0.3), (-0.3, 0.1, 0.2)

    def energy(k):
        return 40.0 * (ca.norm_2(k.line(*ends, *points)) - 0.7) ** 2 / 2

    bodies = [pf.body("a", 2.0, (0.1, 0, 0.2), 0.1), pf.body("b", 1.0, (0, 0.3, 0), 0.2)]
    joints = [
        pf.joint("A", "spherical", "world", "a"),
        pf.joint("B", "universal", "world", "b", placement=pf.pose((1, 0.5, 0), rpy=(0.1, 0.2, 0.3))),
    ]
    forces = {
        "spring": pf.spring("s", *ends, point_a=points[0], point_b=points[1], stiffness=40.0, rest=0.7),
        "potential": pf.forces.potential("s", energy),
    }
    found = {}
    for name, force in forces.items():
        m, random = pf.mechanism("pair", bodies, joints, forces=[force]), np.random.default_rng(3)
        q, v = pf.random_configuration(m, random), random.normal(size=m.nv)
        reactions = pf.reaction_wrench(m, ["A", "B"], q, v)
        found[name] = np.concatenate([reactions[j].wrench for j in "AB"])
    close(found["potential"], found["spring"], PEER, "reactions")
