"""Reduction: the reduced machine moves as the full one, and conserved momenta stay the same to the last bit.

Random trees over 10 s are in test_reduced_chains.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.evaluate.reduction_plan import plan
from pfaffian.maths import se3
from pfaffian.maths.subgroups import SUBGROUPS
from studies import chhabra_constants as carrier
from studies import chhabra_reduction as study
from studies.chhabra_reduction import ROVER_START, rover
from tests.tolerance import ALGEBRA, close

KEEP = {"duration": 0.05, "step": 1e-3, "every": 10, "backend": "interpreter"}
SAME = 1e-9
"""Difference between two states of one machine after 0.05 s of RK4 at 1 ms."""


def satellite(gravity=(0, 0, 0), **changes) -> pf.Mechanism:
    """A free hull with an arm of two hinges."""
    bodies = [
        pf.body("hull", 3.0, com=(0.1, 0, 0.05), inertia=(0.3, 0.4, 0.5)),
        pf.body("left", 0.7, com=(0.4, 0, 0), inertia=(0.01, 0.03, 0.02)),
        pf.body("right", 0.5, com=(0, 0.3, 0.1), inertia=(0.02, 0.01, 0.03)),
    ]
    joints = [
        pf.joint("flight", "free", "world", "hull"),
        pf.joint("l", "revolute", "hull", "left", axis=(0, 0, 1), placement=(0.2, 0.1, 0)),
        pf.joint("r", "revolute", "left", "right", axis=(1, 0, 0.2), placement=(0.5, 0, 0)),
    ]
    motors = [pf.actuator("ml", "l"), pf.actuator("mr", "r")]
    given = {"bodies": bodies, "joints": joints, "actuators": motors, "gravity": gravity}
    return pf.mechanism("satellite", **given | changes)


def same(m, q, v, **more):
    """The result of the reduced machine, after a check that it moves as the full one."""
    plain, other = pf.run(m, q, v, **KEEP | more), pf.run(pf.reduce(m), q, v, **KEEP | more)
    for name in ("q", "v", "energy"):
        close(other[name], plain[name], SAME, name)
    return other


def start(m, seed=0):
    random = np.random.default_rng(seed)
    return pf.random_configuration(m, random), random.normal(size=m.nv)


def test_all_momentum_of_a_free_machine_is_conserved_to_the_bit():
    m = satellite()
    r = same(m, *start(m), u=[0.2, -0.3])
    conserved_part = r.momentum.values[:, :6]
    assert np.array_equal(conserved_part, np.tile(conserved_part[0], (len(conserved_part), 1)))
    assert float(np.abs(r.momentum_drift).max()) < 1e3 * ALGEBRA
    assert list(r.momentum_entry.values) == list(m.v_names) and list(r.momentum_unit.values[[0, 3]]) == ["N s", "N m s"]
    # It is the momentum of the bodies along the world's axes, about the mass centre.
    q, v = r.q.values[0], r.v.values[0]
    momentum = pf.momentum(m, q, v)
    momentum[3:] -= np.cross(pf.mass_centre(m, q), momentum[:3])
    close(conserved_part[0], momentum, 10 * ALGEBRA, "momentum")


def test_gravity_conserves_the_momenta_across_it():
    m = satellite((0, 0, -9.81))
    r = same(m, *start(m))
    for i in (0, 1, 5):  # two translations and the turn about the vertical
        assert np.ptp(r.momentum.values[:, i]) < 1e-11, m.v_names[i]
    assert (np.ptp(r.momentum.values[:, 2:5], axis=0) > 0.1).any()
    weight = 9.81 * 4.2
    close(r.momentum.values[-1, 2] - r.momentum.values[0, 2], -weight * 0.05, 1e-12, "impulse of weight")


def lift(base: str, kind: str) -> pf.Mechanism:
    """A truck on the floor or on a rail, with a balanced drum that climbs a post as it may turn."""
    truck, drum = pf.body("truck", 2.0, com=(0.1, 0, 0), inertia=0.3), pf.body("drum", 0.5, inertia=0.01)
    axis = {"axis": (1, 0, 0)} if base == "prismatic" else {}
    joints = [
        pf.joint("base", base, "world", "truck", **axis),
        pf.joint("post", kind, "truck", "drum", placement=(0.3, 0.1, 0)),
    ]
    return pf.mechanism("lift", [truck, drum], joints)


@pytest.mark.parametrize(
    ("base", "kind"), [("planar", "prismatic"), ("prismatic", "cylindrical"), ("translation", "prismatic")]
)
def test_weight_across_the_slides_of_the_base_moves_what_it_carries(base, kind):
    """The momentum along the post is conserved while no force acts along it, but weight does; the floor does not fall."""
    m = lift(base, kind)
    along = same(m, *start(m)).momentum.sel(momentum_entry="post.vz" if kind == "cylindrical" else "post").values
    close(along[-1] - along[0], -9.81 * 0.5 * 0.05, 1e-12, "impulse of weight")


def test_outside_forces_change_the_momentum_by_their_impulse():
    m = satellite(forces=[pf.wrench("jet", "right", axes="WORLD")])
    r = same(m, *start(m), u={"jet.fx": 0.7})
    close(r.momentum.values[-1, :3] - r.momentum.values[0, :3], [0.035, 0, 0], 1e-12, "impulse")


def test_a_closed_chain_is_reduced_with_its_closure_as_a_force():
    m = satellite()
    arm = pf.body("brace", 0.3, com=(0.1, 0, 0), inertia=0.01)
    hinge = pf.joint("b", "spherical", "hull", "brace", placement=(-0.2, 0.1, 0))
    m = m.with_(bodies=[*m.bodies, arm], joints=[*m.joints, hinge])
    m = m.with_(constraints=[pf.coincide("tip", "brace", (0.4, 0, 0), "right", (0.1, 0.3, 0))], actuators=[])
    there = pf.assemble(m, None, np.r_[0.3, -0.1, 0.2, 0.4, 0.1, -0.2, np.full(m.nv - 6, 0.3)])
    r = same(m, there.q, there.v)
    # The state is projected onto the closure by way of (q, v).
    assert np.ptp(r.momentum.values[:, :6], axis=0).max() < 1e-12 and float(r.violation.max()) < 1e-9
    with pytest.raises(pf.ModelError, match="closure 'tie' ties 'satellite' to 'world', which does not move"):
        pf.reduce(m.with_(constraints=[pf.coincide("tie", "world", (0, 0, 0), "right", (0, 0, 0))]))


def test_chaplygin_on_a_rover():
    """The group is found, both ways to request it have one digest, and the motion is the same; the study
    `chhabra-reduction` claims its numbers."""
    m = rover()
    assert plan(m, None).group == (0, 1, 2) and plan(m, ("base",)) == plan(m, None)
    assert pf.reduce(m, by="base").digest == pf.reduce(m).digest
    other = same(m, *ROVER_START, step=5e-4, every=100)
    assert float(other.velocity_violation.max()) < 1e-13  # by construction, without any correction


def test_wheels_that_the_other_rows_fix_are_found():
    """The rows of a car fix one velocity more than its pose has, that of a wheel; its post conserves its momentum."""
    m = study.car()
    assert plan(m, None)[:5] == ((0, 1, 2, m.v_names.index("psi2")), (3, 4, 6, 7), (), (m.v_names.index("phi1"),), False)


def test_a_post_with_a_balanced_load_conserves_its_momentum():
    """Chaplygin's reduction and a second step: nothing drives the post of a rover, and all that it carries is balanced
    about its axis."""
    m = rover()
    spin = pf.joint("spin", "revolute", "rover", "post", placement=(0.25, 0, 0))
    post = pf.body("post", 1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.01))
    m = m.with_(bodies=[*m.bodies[:3], post], joints=[*m.joints[:3], spin])
    assert plan(m, None).conserved == (5,)
    q, v = np.r_[0, 0, 0, 0, 0, 0.3], np.r_[0.35, 0, 0.2, 3, 4, 0.5]
    r = same(m, q, v)
    # The momentum of the post alone, about an axis that moves with the rover.
    close(r.momentum.sel(momentum_entry="spin"), np.full(len(r.time), 0.01 * (v[2] + v[5])), ALGEBRA, "of the post at 0")
    full = pf.run(m, q, v, **KEEP)
    w, spun = full.v.values[:, [2, 5]].T
    close(0.01 * (w + spun), r.momentum.sel(momentum_entry="spin"), SAME, "momentum of the post")
    assert np.ptp(spun) > 1e-3, "the spin of the post is not constant"


def rolling_rover():
    c, b = study.ROVER["axle"], study.ROVER["radius"]
    ways = [np.r_[b / 2, 0, -b / (2 * c), 1, 0, 0, 0, 0], np.r_[b / 2, 0, b / (2 * c), 0, 1, 0, 0, 0]]
    return rover(), ROVER_START, [lambda q, way=way: way for way in ways], ["psi1", "psi2"]


def rolling_car():
    def way(q):
        out = np.zeros(8)
        out[[0, 1, 2, 6]] = -np.array(ca.DM(study.car_connection(ca.SX(q[3]))))[:, 1]
        out[5] = 1
        return out

    return study.car(), study.car_start(), [way], ["psi2"]


@pytest.mark.parametrize("make", [rolling_rover, rolling_car])
def test_momentum_along_motions_that_wheels_and_symmetry_allow(make):
    """d/dt <p_b, s> = <p_b, [xi, s] + Ds q_dot> for the motions s of the group that the wheels allow, on a planar base: the
    nonholonomic momentum equation. [chhabra14 prop. 4.2.15] So it changes, although nothing depends on the wheels."""
    m, (q, v), ways, names = make()
    more = {"by": ["base", "psi3"]} if len(names) == 1 else {}
    r = pf.run(pf.reduce(m, **more), q, v, duration=0.06, step=1e-4, every=10, backend="c")
    q, v, p, h = r.q.values, r.v.values, study.momenta(m, r), 1e-6
    for way, name in zip(ways, names, strict=True):
        conserved_part = r.momentum.sel(momentum_entry=name).values
        close(
            conserved_part, np.array([a @ way(b) for a, b in zip(p, q, strict=True)]), 1e2 * ALGEBRA, "momentum along the way"
        )
        rate = []
        for a, b, y in zip(p, q, v, strict=True):
            s = way(b)
            turning = np.zeros(m.nv)
            turning[:2] = [y[1] * s[2] - y[2] * s[1], y[2] * s[0] - y[0] * s[2]]
            b_dot = np.r_[0, 0, 0, y[3:]]  # none of these motions depends on the place of the base
            rate.append(a @ (turning + (way(b + h * b_dot) - way(b - h * b_dot)) / (2 * h)))
        rate = np.array(rate)
        close(study.along_time(r, conserved_part), rate[3:-3], 1e-7, f"rate of {name}")
        assert np.abs(rate).max() > 1e-3 * np.abs(conserved_part).max()


# -- constants of motion along given fields ---------------------------------------------------------------------


def test_a_given_constant_of_motion_is_conserved_and_the_motion_is_that_of_the_full_machine():
    m = carrier.mechanism()
    q, v = carrier.rover_start()
    plain = pf.run(m, q, v, **KEEP)
    for given in ({"psi1": carrier.FIELDS["psi1"]}, {"psi2": carrier.FIELDS["psi2"]}, carrier.FIELDS):
        r = pf.run(pf.reduce(m, along=given), q, v, **KEEP)
        for name in ("q", "v", "energy"):
            close(r[name], plain[name], SAME, name)
        for i, name in enumerate(("psi1", "psi2")):
            assert (np.ptp(r.momentum.sel(momentum_entry=name).values) == 0) == (name in given), i
    # Where a constant is almost zero, rounding in its rate would show.
    M, b, tread = pf.mass_matrix(m, q), carrier.ROVER["b"], carrier.ROVER["c"] / carrier.ROVER["b"]
    ways = np.array([[1, 0, 0, 1 / b, 1 / b, 0], [0, 0, 1, -tread, tread, 0]])
    for i, name in enumerate(("psi1", "psi2")):
        h = np.array(ca.DM(carrier.shares(ca.DM(q[5]))))[i] @ (ways @ M @ ways.T)
        still = np.array([-h[1], h[0]]) / np.linalg.norm(h) @ ways + [0, 0, 0, 0, 0, -0.3]
        r = pf.run(pf.reduce(m, along={name: carrier.FIELDS[name]}), q, still, **KEEP)
        conserved_part = r.momentum.sel(momentum_entry=name).values
        assert np.abs(conserved_part).max() < 1e-14 and np.ptp(conserved_part) == 0, name
    r = pf.run(pf.reduce(m, along=carrier.FIELDS), q, v, **KEEP)
    # Another field gives another kernel: the momentum in the state is along that field.
    both = pf.run(pf.reduce(m, along={"psi1": carrier.FIELDS["psi2"]}), q, v, **KEEP)
    close(both.momentum[0, 0], r.momentum[0, 1], ALGEBRA, "along the other field")


def ahead(k):
    b = carrier.ROVER["b"]
    return [1, 0, 0, 1 / b, 1 / b, 0]


NO_CONSTANTS = {
    "not conserved": (
        carrier.mechanism, {"psi1": ahead}, "no constant of 'rover with a load': the inertia of what moves changes it"
    ),
    "mass centre ahead": (lambda: carrier.mechanism(0.05), carrier.FIELDS, "the inertia of what moves changes it"),
    "a spring": (carrier.mechanism, {"slide": lambda k: [0, 0, 0, 0, 0, 1]}, "spring or damper of joint 'slide'"),
    "slips": (carrier.mechanism, {"psi1": lambda k: [1, 0, 0, 0, 0, 0]}, "constraints of 'rover with a load' do not allow"),
    "moves another": (carrier.mechanism, {"slide": carrier.FIELDS["psi1"]}, "does not move 'slide'"),
    "too short": (carrier.mechanism, {"psi1": lambda k: [1, 0]}, "a field of 6 velocities is needed, .* got 2"),
    "no such": (carrier.mechanism, {"psi3": ahead}, "has no velocity 'psi3': did you mean"),
    "of velocities": (carrier.mechanism, {"psi1": lambda k: k.v}, "depends on velocities"),
    "the group's own": (carrier.mechanism, {"base.vx": ahead}, "not among the free ones of .*; choose one of psi1, psi2"),
    "a symmetry already": (lambda: satellite(), {"flight.vx": lambda k: np.eye(8)[0]}, "choose one of l, r$"),
    "no function": (carrier.mechanism, {"psi1": [1, 0]}, "function of Kinematics"),
    "with a chart": (lambda: satellite(), {"momentum": [0] * 6, "along": {"l": ahead}}, "momentum= is for a machine"),
}  # fmt: skip


@pytest.mark.parametrize("make, given, words", NO_CONSTANTS.values(), ids=NO_CONSTANTS)
def test_a_field_without_conserved_momentum_is_refused_with_the_reason(make, given, words):
    with pytest.raises(pf.ModelError, match=words):
        pf.reduce(make(), **given if "along" in given else {"along": given})


def test_a_ball_on_a_rover_turns_as_without_the_rover():
    """A second step by a group that does not commute, on the child's side: a ball with three equal inertias conserves its
    momentum in its own axes, and the rover feels only its mass."""
    m = rover()
    ball = pf.joint("ball", "spherical", "rover", "post", placement=(0.25, 0.1, 0.05))
    m = m.with_(bodies=[*m.bodies[:3], pf.body("post", 1.0, inertia=0.02)], joints=[*m.joints[:3], ball])
    assert plan(m, None).conserved == (5, 6, 7)
    turned = np.r_[0.1, 0.5, -0.2, 0.3]
    q, v = np.r_[0, 0, 0, 0, 0, turned / np.linalg.norm(turned)], np.r_[0.35, 0, 0.2, 3, 4, 0.5, -2.0, 1.0]
    r = same(m, q, v)
    # The drift compares the momentum in the state with that of the body, from q and v.
    assert r.momentum_drift_entry.values.tolist() == list(m.v_names[5:])
    assert float(np.abs(r.momentum_drift).max()) < 1e2 * ALGEBRA
    # In the ball's axes it is 0.02 times the angular velocity in space, which includes the rover's turn about z.
    spin = [so3_of(x[5:]).T @ [0, 0, y[2]] + y[5:] for x, y in zip(r.q.values, r.v.values, strict=True)]
    close(np.array(spin) * 0.02, r.momentum.values[:, 2:], 1e2 * ALGEBRA, "momentum of the ball")
    bare = m.with_(bodies=[*m.bodies[:3], pf.body("post", 1.0, inertia=0)], joints=[*m.joints[:3], pf.locked(ball)])
    other = pf.run(bare, q[:5], v[:5], **KEEP)
    close(r.q[:, :5], other.q, SAME, "rover")


def so3_of(x):
    return np.array(ca.DM(SUBGROUPS["spherical"].motion(ca.DM(x))[0]))


# -- the space of one momentum ----------------------------------------------------------------------------------


def at_one_momentum(m, q, v, mu=None, **more):
    mu = pf.reduction.momentum_map(m, q, v) if mu is None else mu
    plain, other = pf.run(m, q, v, **KEEP | more), pf.run(pf.reduce(m, momentum=mu), q, v, **KEEP | more)
    for name in ("q", "v", "energy"):
        close(other[name], plain[name], SAME, name)
    assert float(np.abs(other.momentum_drift).max()) < 1e-10
    return other


@pytest.mark.parametrize("v, size", [([0, 0, 0, 1, 2, 3], 6), (np.zeros(6), 0)], ids=["no linear momentum", "none"])
def test_special_momenta(v, size):
    m = pf.mechanism("top", [pf.body("b", 2.0, inertia=(0.1, 0.2, 0.25)), pf.body("c", 1.0, inertia=(0.1, 0.1, 0.2))],
                     [pf.joint("f", "free", "world", "b"), pf.joint("h", "revolute", "b", "c", axis=(0, 1, 0))],
                     gravity=(0, 0, 0))  # fmt: skip
    v = [*v, 0.7] if np.any(v) else np.r_[-0.7 * pf.reduction.mechanical_connection(m)[:, 0], 0.7]
    r = at_one_momentum(m, None, v, None if size else np.zeros(6))
    assert (r.orbit.shape[1] if "orbit" in r else 0) == size


def test_a_body_that_tumbles_end_over_end_stays_on_the_orbit():
    """It tumbles about y with its linear momentum along x, so that the axis of the momentum goes all the way round in the
    body's frame."""
    m = satellite(actuators=[])
    q, v = m.neutral(), np.r_[0, 0, 2.0, 0, 4.0, 0, 0.1, 0.1]
    r = at_one_momentum(m, q, v, duration=1.7, backend="c")
    f, n = r.orbit.values[:, :3], r.orbit.values[:, 3:]
    mu = pf.reduction.momentum_map(m, q, v)
    close(np.linalg.norm(f, axis=1), np.full(len(f), np.linalg.norm(mu[:3])), 1e2 * ALGEBRA, "length")
    close((f * n).sum(1), np.full(len(f), mu[:3] @ mu[3:]), 1e3 * ALGEBRA, "turn about its line", scale=np.abs(mu).max() ** 2)
    assert np.ptp(np.unwrap(np.arctan2(f[:, 2], f[:, 0]))) > 2 * np.pi


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("slides", [True, False], ids=["linear", "angular"])
def test_every_momentum_is_accepted_at_the_home_attitude(axis, slides):
    """Momenta along each axis: charts of angles have a pole at one of them."""
    m = satellite(actuators=[])
    mu = np.eye(6)[axis if slides else 3 + axis]
    unit = np.array([pf.reduction.momentum_map(m, None, e) for e in np.eye(m.nv)[:6]]).T
    v = np.r_[np.linalg.solve(unit, mu), 0, 0]
    at_one_momentum(m, None, v, mu, duration=0.05)


def test_signals_of_a_reduced_state_have_names_and_units():
    m = satellite()
    for system in (pf.reduce(m), pf.reduce(m.with_(actuators=[]), momentum=pf.reduction.momentum_map(m, *start(m)))):
        r = pf.run(system, *start(m), **KEEP)
        assert r.momentum_drift_entry.values.tolist() == list(m.v_names[:6])
        assert r.momentum_drift_unit.values.tolist() == ["N s"] * 3 + ["N m s"] * 3
        assert r.shape_momentum_entry.values.tolist() == list(m.v_names[6:])
        assert r.shape_momentum_unit.values.tolist() == ["N m s"] * 2


@pytest.mark.parametrize("base", ["free", "spherical", "planar", "schoenflies"])
def test_the_space_of_one_momentum_costs_no_more_than_all_momenta(base):
    """Operations of a step of RK4 on the orbit of one momentum, compared with those of `reduce(m)`."""
    from tests.simulate.test_reduced_rates import machine

    m = satellite(actuators=[]) if base == "free" else machine(np.random.default_rng(3), base)
    mu = np.arange(1.0, m.joints[0].nv + 1)
    all_momenta, one = (pf.stepper(x, backend="numpy").operations["step"] for x in (pf.reduce(m), pf.reduce(m, momentum=mu)))
    assert one < 1.05 * all_momenta


def test_operations_of_the_spacecraft_of_the_thesis():
    m = study.mechanism()
    full, one = (pf.stepper(x, backend="numpy").operations["step"] for x in (m, pf.reduce(m, momentum=study.MU)))
    assert one < 0.85 * full and one < 4800


def test_a_start_with_another_momentum_is_refused():
    m = satellite()
    with pytest.raises(pf.ModelError, match="show does not undo enter: v"):
        pf.run(pf.reduce(m, momentum=[1, 0, 0, 0, 0, 2]), *start(m), **KEEP)


# -- connection, inertia and curvature --------------------------------------------------------------------------


def test_connection_locked_inertia_and_energy():
    """A(xi_Q) = xi, A = I^-1 J, J of horizontal velocities is 0, and T splits into blocks. [chhabra14 (3.3.35)-(3.3.42)]"""
    m = satellite()
    q, v = start(m, 5)
    A, I, J = pf.reduction.mechanical_connection(m, q), pf.reduction.locked_inertia(m, q), pf.reduction.momentum_map(m, q, v)
    close(J, pf.momentum(m, q, v), ALGEBRA, "J")
    M = pf.mass_matrix(m, q)
    close(A, np.linalg.solve(M[:6, :6], M[:6, 6:]), 10 * ALGEBRA, "A")
    close(pf.reduction.momentum_map(m, q, np.r_[-A @ v[6:], v[6:]]), np.zeros(6), 1e2 * ALGEBRA, "J of horizontal velocities")
    # With all other joints locked it would move by I^-1 J, as seen from the world: Ad_g (tau + A s).
    g = np.array(ca.DM(se3.Ad(*SUBGROUPS["free"].motion(ca.DM(q[:7])))))
    close(np.linalg.solve(I, J), g @ (v[:6] + A @ v[6:]), 1e3 * ALGEBRA, "A = I^-1 J")
    s, mu_b = v[6:], g.T @ J
    split = s @ pf.reduction.shape_inertia(m, q) @ s / 2 + mu_b @ np.linalg.solve(M[:6, :6], mu_b) / 2
    close(split, v @ M @ v / 2, 10 * ALGEBRA, "T")


def test_curvature_is_the_displacement_by_a_small_loop_of_the_shape():
    """Without momentum, after a square of the two hinges, the hull has moved by minus the curvature times the area."""
    m = satellite()
    s0, h = np.array([0.3, -0.4]), 2e-3
    B = pf.reduction.connection_curvature(m, np.r_[0, 0, 0, 0, 0, 0, 1, s0])
    close(B, -np.swapaxes(B, 0, 1), ALGEBRA, "skew")
    sides = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]) * h
    corner = np.vstack([[-h / 2, -h / 2], [h / 2, -h / 2], [h / 2, h / 2], [-h / 2, h / 2]])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    g = np.eye(4)
    for begin, side in zip(corner, sides, strict=True):
        # Magnus' expansion to second order suffices, since the sides are short.
        A = [
            pf.reduction.mechanical_connection(m, np.r_[0, 0, 0, 0, 0, 0, 1, s0 + begin + side * (x + 1) / 2]) @ side
            for x in nodes
        ]
        step = -sum(w / 2 * a for w, a in zip(weights, A, strict=True))
        R, p = se3.exp(ca.DM(step))
        g = g @ np.array(ca.DM(se3.homogeneous(R, p)))
    moved = np.array(ca.DM(se3.log(ca.DM(g[:3, :3]), ca.DM(g[:3, 3])))).ravel()
    close(moved / h**2, -B[0, 1], 2e-3, "holonomy by area")


def uneven(k):
    """Constraints of wheels whose radius seems to depend on the place on the floor."""
    v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
    r = 0.1 + 0.03 * ca.sin(k.joint("base")[0])
    return ca.vertcat(v_y, v_x - w - r * k.joint_rate("psi1"), v_x + w - r * k.joint_rate("psi2"))


REFUSED = {
    "on springs": (
        lambda: satellite(joints=[pf.joint("flight", "free", "world", "hull", stiffness=1.0), *satellite().joints[1:]]),
        r"no motion of joint 'flight' .*moving along x of 'flight': spring or damper of joint 'flight'"),
    "rails across each other": (
        lambda: machine([pf.body(n, 1, inertia=1) for n in "ab"],
                        [pf.joint("x", "prismatic", "world", "a", axis=(1, 0, 0)), pf.joint("y", "prismatic", "world", "b")]),
        r"stands on the world by x, y, and none of these moves as all do together \(none\): run the mechanism as it is"),
    "one momentum of two on the world, too short": (
        lambda: (satellite(bodies=[*satellite().bodies, pf.body("x", 1, inertia=1)],
                           joints=[*satellite().joints, pf.joint("other", "free", "world", "x")]), {"momentum": [0] * 5}),
        r"6 numbers are needed for 'satellite' \(all\.vx, .*all\.wz\), got 5"),
    "universal": (
        lambda: satellite(joints=[pf.joint("flight", "universal", "world", "hull"), *satellite().joints[1:]]),
        r"joint 'flight' of 'satellite' permits no group of motions \(universal\)"),
    "on a tether": (
        lambda: rover().with_(forces=[pf.spring("tether", "world", "rover", point_a=(3, 0, 0), stiffness=5.0)]),
        r"spring 'tether' of 'rover' depends on where 'base' is"),
    "a constraint on a coordinate": (
        lambda: satellite(constraints=[pf.holonomic("hold", lambda k: k.q[0])]),
        r"constraint 'hold' of 'satellite' depends on where 'flight' is, and so takes momentum"),
    "active for a while": (
        lambda: satellite(constraints=[pf.constraints.active_while(
            pf.coincide("tie", "hull", (0.5, 0, 0), "right", (0, 0, 0)), lambda k: k.t > 1)]),
        r"constraint 'tie' of 'satellite' is neither a constraint between bodies nor .* on velocities, or not always active"),
    "wheels active for a while": (
        lambda: rover().with_(constraints=[pf.constraints.active_while(c, lambda k: k.t > 1) for c in rover().constraints]),
        r"constraint on velocities, or not always active; a reduction by joint 'base' cannot take it"),
    "pushed along": (
        lambda: rover().with_(constraints=[pf.nonholonomic("c", lambda k: k.joint_rate("base") - 1)]),
        "not linear in velocities"),
    "a momentum that changes": (
        lambda: (satellite((0, 0, -9.81)), {"momentum": [0] * 6}), r"is not conserved \(moving along z of 'flight': gravity"),
    "a momentum that is driven": (
        lambda: (satellite(forces=[pf.wrench("jet", "hull")]), {"momentum": [0] * 6}), r"input 'jet.fx' changes it"),
    "wheels that depend on the place": (
        lambda: rover().with_(constraints=[pf.nonholonomic("c", uneven)]),
        r"no group from the others: the permitted motion of 'rover' depends on where 'base' is: no symmetry\. Name"),
    "velocities chosen": (
        lambda: satellite(velocities=pf.velocities(lambda k: ca.SX.eye(8), [f"y{i}" for i in range(8)])),
        "'satellite' has coordinates, velocities or kinetic energies of its own"),
    "kinetic energy given": (
        lambda: satellite(forces=[pf.forces.kinetic_energy("rotor", lambda k: k.v[6] ** 2)]),
        "'satellite' has coordinates, velocities or kinetic energies of its own"),
    "coordinates chosen": (
        lambda: satellite(coordinates=[pf.coordinates("x", ["a"], ["b"], lambda q: 1)]),
        "'satellite' has coordinates, velocities or kinetic energies of its own"),
    "one momentum under constraints": (
        lambda: (rover(), {"momentum": [0] * 3}), "'rover' has constraints; the space of one momentum"),
    "one momentum on a base that rolls": (
        lambda: (sleigh(), {"momentum": [0] * 2}), "'machine' has constraints; the space of one momentum"),
    "too few": (lambda: (satellite(), {"momentum": [0] * 3}), "6 numbers are needed for joint 'flight', got 3"),
}  # fmt: skip


@pytest.mark.parametrize("make, words", REFUSED.values(), ids=REFUSED)
def test_machines_that_cannot_be_reduced_are_refused(make, words):
    with pytest.raises(pf.ModelError, match=words):
        made = make()
        machine, more = made if isinstance(made, tuple) else (made, {})
        pf.reduce(machine, **more)


# -- symmetry ---------------------------------------------------------------------------------------------------


def further(s):
    return [" and ".join(x.label for _, x in parts) for parts in s.further]


def causes(s):
    return {motion.label: " ".join(why) for motion, why in s.broken}


def machine(bodies, joints, **more):
    return pf.mechanism("machine", bodies, joints, **{"gravity": (0, 0, 0)} | more)


OFF = pf.Parameter("off", 0.0, "m")
HULL = pf.body("hull", 8.0, com=(0.05, 0, 0), inertia=(0.3, 0.4, 0.5))
ROTOR = machine(
    [HULL, pf.body("rotor", 2.0, com=(OFF, 0, 0.1), inertia=(1, 1, 2))],
    [pf.joint("base", "planar", "world", "hull"), pf.joint("spin", "revolute", "hull", "rotor", placement=(0.2, 0.1, 0))],
    parameters=[OFF],
)
SPIN = "turning about z of 'spin'"


def test_a_rotor_is_a_symmetry_while_its_mass_is_on_the_axis():
    """[chhabra14 4.4] with its errata. A symmetry must hold for any value of a parameter unless one is given."""
    s = pf.reduction.symmetry(ROTOR, parameters={"off": 0.0})
    assert s.group == "SE(2)" and further(s)[1:] == [SPIN]
    # The whole machine also turns, on the child's side, about the common mass centre.
    ((x, *_), (y, *_), (turn, _)) = s.further[0]
    close([x, y, turn], [(2 * 0.1) / 10, -(8 * 0.05 + 2 * 0.2) / 10, 1], 1e3 * ALGEBRA, "weights")
    s = pf.reduction.symmetry(ROTOR, parameters={"off": 0.2})
    assert not s.further and causes(s)[SPIN] == "the centre of mass of 'rotor' lies 0.2 m off the axis"
    s = pf.reduction.symmetry(ROTOR)
    assert not s.further and causes(s)[SPIN] == "the inertia of 'rotor' with other parameters"
    # A momentum that parameters of a run may break does not count as conserved.
    q, v = np.r_[0, 0, 0, 0], np.r_[0.1, 0.2, 1.0, 2.0]
    r = same(ROTOR, q, v, parameters={"off": 0.3})
    assert np.ptp(r.momentum.values[:, 3]) > 1e-3


def test_gravity_springs_and_motors_are_named():
    m = satellite((0, 0, -9.81), forces=[pf.spring("tether", "world", "hull", point_a=(0, 0, 2), stiffness=3.0)])
    s = pf.reduction.symmetry(m)
    assert s.group == "SO(2)"
    report = causes(s)
    assert "spring 'tether'" in report["moving along x of 'flight'"] and "gravity" not in report["moving along x of 'flight'"]
    assert "gravity" in report["moving along z of 'flight'"] and "spring 'tether'" in report["moving along z of 'flight'"]
    driven = pf.reduction.symmetry(satellite(actuators=[pf.forces.thruster("jet", "hull", axis=(1, 0, 0))])).driven
    assert list(driven) == ["jet"] and "moving along x of 'flight'" in [x.label for x in driven["jet"]]
    assert "SE(2) by 'flight'" in repr(pf.reduction.symmetry(satellite((0, 0, -9.81))))


def test_a_rover_on_a_disc_may_be_moved_in_the_world():
    """On the disc only turns about its axis are symmetries of the whole; relative to the world the rover may be moved in
    any way."""
    disc, cart = pf.body("disc", 20.0, inertia=2.5), pf.body("cart", 4.0, com=(0.15, 0, 0), inertia=0.1)
    s = pf.reduction.symmetry(
        machine([disc, cart], [pf.joint("turn", "revolute", "world", "disc"), pf.joint("plane", "planar", "disc", "cart")])
    )
    assert s.group == "SO(2)" and "turning about z of 'plane'" in further(s)
    assert {"moving along x of the world by 'plane'", "moving along y of the world by 'plane'"} <= set(further(s))
    assert "moving along x of 'plane'" in causes(s)


def test_slides_commute_and_balls_turn_on_the_child_side():
    box, arm = pf.body("box", 3.0, inertia=0.2), pf.body("arm", 1.0, com=(0.2, 0, 0), inertia=0.05)
    slide, hinge = pf.joint("slide", "prismatic", "world", "box"), pf.joint("hinge", "revolute", "box", "arm")
    s = pf.reduction.symmetry(machine([box, arm], [slide, hinge]))
    assert s.group == "R" and further(s) == ["turning about z of 'hinge'"]
    ball = pf.joint("ball", "spherical", "box", "ball", placement=(0.1, 0, 0))
    bodies = [box, pf.body("ball", 1.0, inertia=0.05)]
    s = pf.reduction.symmetry(machine(bodies, [pf.joint("fly", "free", "world", "box"), ball]))
    inside = [f"turning about {axis} of 'ball' from the child's side" for axis in "xyz"]
    assert s.group == "SE(3)" and further(s)[1:] == inside
    # The box is symmetric about the line through both centres: it may turn about it while the ball does not.
    assert further(s)[0] == "turning about x of 'fly' from the child's side and turning about x of 'ball'"
    close([w for w, _ in s.further[0]], [1, -1], 1e3 * ALGEBRA, "weights")


def test_a_gyroscope_conserves_its_momentum_in_space():
    """A second group that is not abelian: a body on a ball joint at its mass centre, on a carriage that does not turn."""
    bodies = [pf.body("cart", 3.0, inertia=0.2), pf.body("gyro", 1.0, inertia=(0.1, 0.2, 0.25)),
              pf.body("arm", 0.5, com=(0.2, 0, 0), inertia=0.01)]  # fmt: skip
    joints = [pf.joint("slide", "translation", "world", "cart"),
              pf.joint("gyro", "spherical", "cart", "gyro", placement=(0.1, 0.2, 0)),
              pf.joint("arm", "revolute", "cart", "arm")]  # fmt: skip
    m = machine(bodies, joints)
    assert plan(m, None).spatial == ("slide", "gyro")
    r = same(m, *start(m))
    assert (np.ptp(r.momentum.values[:, :6], axis=0) == 0).all() and np.ptp(r.v.values[:, 3:6], axis=0).min() > 1e-4


def sleigh():
    bodies = [pf.body("sleigh", 3.0, com=(0.1, 0, 0), inertia=0.2), pf.body("arm", 0.5, com=(0.2, 0, 0), inertia=0.01)]
    speeds = {"distribution": [[1, 0], [0, 0], [0, 1]], "speeds": ["ahead", "turn"]}
    joints = [pf.joint("base", "planar", "world", "sleigh", **speeds),
              pf.joint("arm", "revolute", "sleigh", "arm", placement=(0.2, 0, 0))]  # fmt: skip
    return machine(bodies, joints)


def test_a_base_that_rolls_is_reduced_by_its_place():
    """The momentum equation of a joint with a distribution: no momentum is conserved, but nothing depends on the place.
    [chhabra14 4.2.15]"""
    m = sleigh()
    r = same(m, *start(m))
    assert list(r.momentum_entry.values) == ["base.ahead", "base.turn", "arm"] and np.ptp(r.momentum.values[:, 0]) > 1e-4
    with pytest.raises(pf.ModelError, match="gravity of 'machine' depends on where 'base' is"):
        pf.reduce(m.with_(gravity=(1, 0, 0)))


def test_a_system_describes_its_reduction():
    """It lists the velocities that the constraints fix, what is conserved and what breaks a symmetry; a result contains the
    same text."""
    report = str(pf.reduce(rover()))
    assert "the constraints fix the velocities of base by the others: psi1, psi2, phi1, phi2, phi3" in report
    assert "closures" not in report and "spatial" not in report
    falling = pf.reduce(satellite().with_(gravity=(0, 0, -9.81)))
    report = str(falling)
    assert "momenta of joint 'flight' are spatial, about the mass centre" in report
    assert "no symmetry by moving along z of 'flight': gravity, [ 0.    0.   -9.81] m/s^2" in report
    assert "moving along x" not in report
    assert "<pre>" in falling._repr_html_() and "&#x27;flight&#x27; are spatial" in falling._repr_html_()
    free = [f"flight.{x}" for x in ("vx", "vy", "vz", "wx", "wy", "wz")]
    spatial = (
        "momenta of joint 'flight' are spatial, about the mass centre; "
        "those of other joints are relative to a frame that moves with it"
    )
    conserved_part, changed = (
        f"conserved while no force acts along them: {', '.join(free)}",
        "changed by the motion itself: l, r",
    )
    stands = [f"no symmetry by {way} of 'flight': gravity" for way in ("moving along z", "turning about x", "turning about y")]
    assert list(pf.reduce(satellite()).about) == [spatial, conserved_part, changed]
    assert [line.split(", [")[0] for line in falling.about] == [spatial, conserved_part, changed, *stands]
    none = "conserved while no force acts along them: none"
    assert list(pf.reduce(sleigh()).about) == [none, "changed by the motion itself: base.ahead, base.turn, arm"]
    result = pf.run(falling, duration=2e-3, backend="interpreter")
    assert result.attrs["state_about"].splitlines() == list(falling.about)
    assert "state_about" not in pf.run(satellite(), duration=2e-3, backend="interpreter").attrs
    chart = pf.reduce(satellite(), momentum=[0, 0, 0.1, 0, 0, 0.2])
    assert "is 0, 0, 0.1, 0, 0, 0.2 in every run" in str(chart)
    with pytest.raises(
        pf.ModelError, match=r"came back as .* is 0, 0, 0.1, 0, 0, 0.2 in every run: start with it or run reduce"
    ):
        pf.run(chart, duration=2e-3, backend="interpreter")
    with pytest.raises(pf.ModelError, match=r"a Mechanism is needed.*; take its \.mechanism"):
        pf.mass_matrix(falling)
    assert len({pf.reduction.symmetry(satellite()), pf.reduction.symmetry(satellite())}) == 1
