"""What bodies on several first joints share: total momentum against NumPy, connection, locked inertia, and states without
the momentum."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.maths import se3
from pfaffian.reduction import locked_inertia, mechanical_connection, momentum_map, shape_inertia
from tests.random_mechanisms import random_body
from tests.simulate.machines import summed
from tests.simulate.test_reduced_rates import checked_signals
from tests.simulate.test_reduction import machine
from tests.tolerance import DERIVATIVE, close

KEEP = {"duration": 0.1, "step": 5e-4, "every": 50, "backend": "interpreter"}
UPRIGHT = pf.pose((0.3, 0, 0.1), rpy=(np.pi / 2, 0, 0))
SLOPE = pf.pose((0.2, 0.3, 0.1), rpy=(0.3, -0.4, 0.2))


def pair(kinds, places=(0, 0), *, seed=1, **more):
    """Two bodies on joints of these kinds to the world, and a damped spring between them."""
    random = np.random.default_rng(seed)
    bodies = [random_body(random, name) for name in ("one", "other")]
    joints = [
        pf.joint(f"on {b.name}", kind, "world", b.name, placement=at or (0, 0, 0))
        for b, kind, at in zip(bodies, kinds, places, strict=True)
    ]
    ends = {f"point_{x}": random.uniform(-0.5, 0.5, 3) for x in "ab"}
    link = pf.spring("link", "one", "other", **ends, stiffness=30.0, rest=0.1, damping=0.3)
    return machine(bodies, joints, **{"forces": [link]} | more)


GRIP = pf.coincide("grip", "one", (0.2, 0.1, 0), "other", (0, 0.3, 0.1))
MACHINES = {
    "satellites on a spring": pair(["free", "free"]),
    "satellites that hold each other": pair(["free", "free"], forces=[], constraints=[GRIP]),
    "carts on one rail": pair(["prismatic", "prismatic"]),
    "a slope": pair(["planar", "planar"], (SLOPE, SLOPE)),
    "planes across": pair(["planar", "planar"], (0, UPRIGHT)),
    "a plane and a ball": pair(["planar", "spherical"]),
    "a ball on a slope's normal": pair(["spherical", "cylindrical"], (SLOPE, SLOPE)),
}
SHARED = {"planes across": 1, "a plane and a ball": 1, "a ball on a slope's normal": 1}
"""Machines in which no single joint moves as the whole does, and the number of motions that their joints share."""


def start(m, seed=3):
    random = np.random.default_rng(seed)
    there = pf.assemble(m, pf.random_configuration(m, random), random.normal(size=m.nv))
    return np.asarray(there.q), np.asarray(there.v)


def of_bodies(m, q, v):
    """Total momentum, and its moment about the origin; `summed` gives it about the mass centre."""
    P, L = summed(m, q, v)
    place, mass, at = pf.forward_kinematics(m, q), 0.0, np.zeros(3)
    for b in m.bodies:
        body_mass, com = float(b.mass), np.array(ca.DM(b.com)).ravel()
        mass, at = mass + body_mass, at + body_mass * (place[b.name].position + place[b.name].rotation @ com)
    return np.r_[P, L + np.cross(at / mass, P)]


def carried(m, q, basis):
    """(nv, k) velocities at which everything moves along twists of the world, by Jacobians of the bodies."""
    Y = np.zeros((m.nv, basis.shape[1]))
    for j in m.joints:
        J = pf.jacobian(m, j.child, q, frame="WORLD")[:, m.v_slices[j.name]]
        Y[m.v_slices[j.name]] = np.linalg.lstsq(J, basis, rcond=None)[0]
    return Y


@pytest.mark.parametrize("name", MACHINES)
def test_momentum_and_energy_split_by_the_connection(name):
    """J = I (w + A s), T = s^T M^ s / 2 + J^T I^-1 J / 2 with v = Y w + E s within closures. [chhabra14 (3.3.37), (3.3.42)]"""
    m = MACHINES[name]
    q, v = start(m)
    basis, J = pf.reduction.symmetry(m).basis, momentum_map(m, q, v)
    close(J, basis.T @ of_bodies(m, q, v), 1e-12, "momentum of the bodies", scale=1.0)
    Y, I = carried(m, q, basis), locked_inertia(m, q)
    M = pf.mass_matrix(m, q)
    close(I, Y.T @ M @ Y, 1e-12, "locked inertia", scale=1.0)
    if name in SHARED:
        return
    first = next(j for j in m.joints if j.nv == basis.shape[1])
    base = list(range(m.nv))[m.v_slices[first.name]]
    rest = [i for i in range(m.nv) if i not in base]
    w = np.linalg.solve(Y[base], v[base])
    s = (v - Y @ w)[rest]
    close(J, I @ (w + mechanical_connection(m, q) @ s), 1e-11, "connection", scale=1.0)
    energy = (s @ shape_inertia(m, q) @ s + J @ np.linalg.solve(I, J)) / 2
    close(energy, v @ M @ v / 2, 1e-11, "energy", scale=1.0)


@pytest.mark.parametrize("name", MACHINES)
def test_states_with_and_without_the_momentum_move_as_the_full_machine(name):
    m = MACHINES[name]
    q, v = start(m)
    J = momentum_map(m, q, v)
    plain = pf.run(m, q, v, **KEEP)
    for system in (pf.reduce(m), pf.reduce(m, momentum=J)):
        signals = checked_signals(system, q, v, [])
        close(signals["momentum_drift"], 0 * signals["momentum_drift"], 100 * DERIVATIVE, "drift", scale=1.0)
        run = pf.run(system, q, v, **KEEP)
        close(run.q, plain.q, 1e-9, "q")
        found = momentum_map(m, run.q.values, run.v.values)
        close(found, np.tile(J, (len(run.q), 1)), 1e-12, "momentum", scale=1 + np.abs(J).max())
    assert "momentum" not in run or run["momentum"].shape[-1] == m.nv - len(J)
    assert f"{J[0]:.6g}" in str(system)


def as_one_tree(constraints=()):
    """Two satellites, the second on the first by a free joint; and the same on two joints to the world."""
    two = pair(["free", "free"], forces=[], constraints=list(constraints))
    chain = [two.joints[0], pf.joint("on other", "free", "one", "other")]
    return two.with_(joints=chain), two


def in_series(m):
    """The machine with a translation and a ball joint instead of the first joint, and a massless body between them."""
    slide, ball = pf.joint("slide", "translation", "world", "carriage"), pf.joint("ball", "spherical", "carriage", "one")
    return m.with_(bodies=[pf.body("carriage"), *m.bodies], joints=[slide, ball, *m.joints[1:]])


def twins(case):
    """The tree on one free joint and its q, v; the machine on several joints and its q, v; and the adjoint of the base's
    pose."""
    tree, two = as_one_tree([GRIP] if case == "that hold each other" else [])
    q, v = start(tree)
    at = pf.forward_kinematics(tree, q)
    Ad, R = ad_of(at["one"]), at["one"].rotation
    if case == "in turn":
        m = in_series(tree)
        # The slide's velocity is along the world's axes.
        return tree, q, v, m, q, np.r_[R @ v[:3], v[3:]], Ad
    other = at["other"]
    there = np.r_[q[:7], other.position, Rotation.from_matrix(other.rotation).as_quat()]
    return tree, q, v, two, there, np.r_[v[:6], pf.jacobian(tree, "other", q) @ v], Ad


@pytest.mark.parametrize("case", ["on no spring", "that hold each other", "in turn"])
def test_satellites_on_several_joints_equal_one_tree(case):
    """A tree on one free joint is the same machine: connections and curvatures are those of its base, seen from the world,
    and joints have the same effect on bodies. [chhabra14 (3.2.24), theorem 3.2.7]"""
    tree, q, v, m, there, v_there, Ad = twins(case)
    close(momentum_map(m, there, v_there), momentum_map(tree, q, v), 1e-12, "J", scale=1.0)
    close(locked_inertia(m, there), locked_inertia(tree, q), 1e-12, "I")
    close(mechanical_connection(m, there), Ad @ mechanical_connection(tree, q), 1e-10, "A", scale=1.0)
    close(shape_inertia(m, there), shape_inertia(tree, q), 1e-10, "M^", scale=1.0)
    B = pf.reduction.connection_curvature(tree, q)
    assert np.abs(B).max() > 0.01
    close(pf.reduction.connection_curvature(m, there), B @ Ad.T, 1e-9, "B", scale=1.0)
    for mu in (np.arange(1.0, 7.0), np.r_[0, 0, 0, 1.0, 2.0, 3.0]):
        close(pf.reduction.isotropy_inertia(m, mu, there), pf.reduction.isotropy_inertia(tree, mu, q), 1e-11, "I^mu", scale=1.0)
        along = pf.reduction.isotropy_connection(m, mu, there) @ v_there
        close(along, pf.reduction.isotropy_connection(tree, mu, q) @ v, 1e-11, "A^mu v", scale=1.0)
    for body in ("one", "other"):
        how = {"frame": "LOCAL_WORLD_ALIGNED", "point": (0.1, 0.2, 0.3)}
        for f in (pf.reduction.generalised_jacobian, lambda *a, **b: pf.reduction.momentum_twist(*a[:2], *a[2], **b)):
            at = (there, q) if f is pf.reduction.generalised_jacobian else ((there, v_there), (q, v))
            close(f(m, body, at[0], **how), f(tree, body, at[1], **how), 1e-10, body, scale=1.0)
    for keep in ("pose", "attitude"):
        found = pf.reduction.reaction_null_space(m, there, keep=keep)
        close(found, pf.reduction.reaction_null_space(tree, q, keep=keep), 1e-9, keep, scale=1.0)
    T = pf.symbols(m)
    given = np.arange(1.0, 7.0)
    by_momentum = ca.Function("told", [T.q], [pf.reduction.floating_base(T).momentum_twist("other", momentum=given)])(there)
    carried = np.linalg.solve(locked_inertia(m, there), given)
    seen = np.linalg.solve(ad_of(pf.forward_kinematics(m, there)["other"]), carried)
    close(np.array(by_momentum).ravel(), seen, 1e-11, "by mu", scale=1.0)


def ad_of(pose):
    return np.array(ca.DM(se3.Ad(ca.DM(pose.rotation), ca.DM(pose.position))))


@pytest.mark.parametrize("case", ["side by side", "in turn"])
def test_functions_for_one_joint_are_refused_for_several_by_name(case):
    m = pair(["free", "free"]) if case == "side by side" else in_series(as_one_tree()[0])
    names = "'on one', 'on other'" if case == "side by side" else "'slide', 'ball'"
    words = f"{names} carry .* together.* let one joint, .* carry all"
    with pytest.raises(pf.ModelError, match=f"reduced_two_form: {words}"):
        pf.reduction.reduced_two_form(m, np.ones(6))
    with pytest.raises(pf.ModelError, match=f"holonomy: {words}"):
        pf.reduction.holonomy(m, lambda x: [x] * 7)
    with pytest.raises(pf.ModelError, match=r"6 numbers are needed .* got 2"):
        pf.reduction.isotropy_inertia(m, [1.0, 2.0])


def test_two_carts_on_a_spring_are_an_oscillator():
    """Masses that drift together, with m1 m2 / (m1 + m2) on the spring between them, against the closed form."""
    m1, m2, k = 3.0, 1.0, 40.0
    bodies, axis = [pf.body("front", m1), pf.body("back", m2)], (1, 0, 0)
    rails = [pf.joint(f"{b.name} rail", "prismatic", "world", b.name, axis=axis) for b in bodies]
    spring = pf.forces.potential("spring", lambda at: k * (at.q[1] - at.q[0]) ** 2 / 2)
    m = pf.mechanism("carts", bodies, rails, forces=[spring], gravity=(0, 0, 0))
    q, v = [0.0, 0.3], [0.5, -0.2]
    assert momentum_map(m, q, v) == pytest.approx([m1 * 0.5 - m2 * 0.2], rel=1e-15)
    assert mechanical_connection(m) == pytest.approx(m2 / (m1 + m2)) and locked_inertia(m) == pytest.approx(m1 + m2)
    assert shape_inertia(m) == pytest.approx(m1 * m2 / (m1 + m2))
    run = pf.run(pf.reduce(m, momentum=[m1 * 0.5 - m2 * 0.2]), q, v, duration=2.0, step=1e-3, every=100)
    t = run.time.values
    n = np.sqrt(k * (m1 + m2) / (m1 * m2))
    apart = 0.3 * np.cos(n * t) - 0.7 / n * np.sin(n * t)
    centre = (m2 * 0.3 + (m1 * 0.5 - m2 * 0.2) * t) / (m1 + m2)
    close(run.q.values, np.stack([centre - m2 / (m1 + m2) * apart, centre + m1 / (m1 + m2) * apart], axis=1), 1e-9, "carts")


@pytest.mark.parametrize("name, shared", SHARED.items())
def test_joints_that_share_a_part_of_their_motion(name, shared):
    """An input along the shared motion changes the momentum; a spring to the ground breaks the symmetry."""
    m = MACHINES[name]
    s = pf.reduction.symmetry(m)
    assert s.basis.shape == (6, shared)
    system = pf.reduce(m)
    assert "in the world" in str(system) and "taken as one that carries all" in str(system)
    (q, v), u = start(m), np.arange(1.0, 7.0)
    pushed = m.with_(forces=[*m.forces, pf.wrench("jet", "other", point=(0.1, 0.2, 0.3), axes="LOCAL")])
    T = pf.symbols(pushed)
    force = np.array(ca.Function("force", [T.q, pushed.p_symbols], [T.B @ u])(q, pushed.p_defaults)).ravel()
    changed = checked_signals(pf.reduce(pushed), q, v, u)
    entry = [i for i, name in enumerate(system.parts[1].names) if name.startswith("all.")]
    close(changed["rate"][m.nq :][entry], carried(m, q, s.basis).T @ force, 1e-11, "rate of the momentum", scale=1.0)
    tether = pf.spring("tether", "world", "one", point_a=(0.5, 0.4, 0.3), point_b=(0.1, 0.2, 0.1), stiffness=3.0)
    with pytest.raises(pf.ModelError, match=r"no motion of joints .* leaves .* as it is .*tether"):
        pf.reduce(m.with_(forces=[*m.forces, tether]))


def test_one_momentum_is_refused_with_gravity_inputs_and_parameters_that_change_it():
    m = MACHINES["satellites on a spring"]
    with pytest.raises(pf.ModelError, match=r"6 numbers are needed .*all\.vx, .*got 3"):
        pf.reduce(m, momentum=[0, 0, 0])
    jet = pf.wrench("jet", "one", point=(0.1, 0.2, 0.3), axes="LOCAL")
    for changed, why in ((m.with_(gravity=(0, 0, -1)), "gravity"), (m.with_(forces=[*m.forces, jet]), "jet")):
        with pytest.raises(pf.ModelError, match=f"is not conserved .*{why}.*leave momentum out"):
            pf.reduce(changed, momentum=np.zeros(6))
    pull = pf.Parameter("pull", 0.0, "N/m")
    tether = pf.spring("tether", "world", "one", point_a=(0.5, 0.4, 0.3), point_b=(0.1, 0.2, 0.1), stiffness=pull)
    tethered = m.with_(forces=[*m.forces, tether], parameters=[pull])
    with pytest.raises(pf.ModelError, match="not conserved"):
        pf.run(pf.reduce(tethered, momentum=np.zeros(6)), *start(m), parameters={"pull": 3.0}, **KEEP)
