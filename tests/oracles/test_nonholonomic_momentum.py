"""Momenta along directions that turn with the shape, against momentum equations by hand. [chhabra14 prop. 4.2.15]

With V the first body's twist in its own axes, mu = d T / d V and zeta(s) a motion of that body alone that the wheels allow,

    d/dt <mu, zeta> = <mu, zeta' s_dot + [V, zeta]>,      [V, zeta] = (w1 J v2 - w2 J v1, 0),

which is the momentum equation of [bloch96], for the snakeboard as printed there and for the roller racer derived the same way.
SciPy integrates this equation; the unreduced machines move by multipliers.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.evaluate.directions_at_states import moves
from tests.by_scipy import run_adaptive
from tests.simulate.test_reduced_rates import checked_signals
from tests.tolerance import close
from tests.wheeled_boards import BASES, MACHINES, THIN, blade, roller_racer, snakeboard, truck

SAME = 1e-9
"""Tolerance of motions over 1.5 s, each integrated to 1e-12."""
TIMES = np.linspace(0, 1.5, 4)
BEGIN = {
    "snakeboard": ({"rotor": 0.2, "back": 0.4, "front": -0.3}, {"rotor": 1.0, "back": -0.5, "front": 3.0}, (0.5, 0.2, -0.3)),
    "roller racer": ({"hinge": 0.5}, {"hinge": -2.0}, (0.3,)),
    "sleigh": ({"steer": 0.3, "lean": 0.1, "swing": 0.7}, {"steer": 2.0, "lean": 0.4, "swing": -1.0}, (0.5, -0.4, 0.3)),
    "trailer": ({"steer": 0.0, "hitch": 0.0}, {"steer": 0.6}, (0.2,)),
}
"""Shape, some rates of it and inputs. The front wheels of the board turn across it; the trailer begins straight behind the car,
where the velocities of the car do not follow from those of its joints."""


def start(name, base, forward=0.8):
    """Machine, q, v and u at the same start on any base: heading 1.3 rad, forward at this speed as far as wheels allow."""
    m = MACHINES[name](base)
    shape, rates, u = BEGIN[name]
    place = {"planar": (0.3, -0.2, 1.3), "free": (0.3, -0.2, 0, *Rotation.from_euler("z", 1.3).as_quat())}
    q = dict(zip(m.q_names, place.get(base, (0.3, -0.2, 1.3)), strict=False)) | shape
    turns = {"sleigh": 0.4}.get(name, 0.0)
    first = MACHINES[name]("planar")
    guess = [forward, 0, turns, *(rates.get(j.name, 0.0) for j in first.joints[1:])]
    v0 = pf.assemble(first, [0, 0, 0, *shape.values()], guess, weight={j.name: 1e6 for j in first.joints[1:]}).v
    c, s = np.cos(1.3), np.sin(1.3)
    twist = {"planar": v0[:3], "free": [*v0[:2], 0, 0, 0, v0[2]]}.get(
        base, [c * v0[0] - s * v0[1], s * v0[0] + c * v0[1], v0[2]]
    )
    return m, [q[n] for n in m.q_names], [*twist, *v0[3:]], u


def accurate(machine, q, v, u, **more):
    return run_adaptive(machine, q, v, u=u, times=TIMES, tolerance=1e-12, **more)


def moved(m, r):
    """Positions and axes of the bodies with mass, in order."""
    names = [b.name for b in m.bodies if not b.name.startswith("slide")]
    poses = pf.forward_kinematics(m, r.q.values)
    return np.array([np.hstack([poses[n].position, poses[n].rotation.reshape(len(r.time), 9)]) for n in names])


@lru_cache
def unreduced(name):
    m, q, v, u = start(name, "planar")
    r = accurate(m, q, v, u)
    return moved(m, r), r.energy.values


@pytest.mark.parametrize("name, base", [x for x in product(MACHINES, BASES) if x != ("sleigh", "free")])
def test_full_and_reduced_are_one_machine(name, base):
    """Whatever joints carry the first body, the reduced machine moves as the full one does by multipliers."""
    m, q, v, u = start(name, base)
    r = accurate(pf.reduce(m), q, v, u)
    poses, energy = unreduced(name)
    close(moved(m, r), poses, SAME, "poses", scale=1.0)
    close(r.energy.values, energy, SAME, "energy", scale=1.0)
    assert np.abs(r.velocity_violation.values).max() < 1e-12 and np.ptp(poses[0, :, :2], axis=0).max() > 0.3


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", MACHINES)
def test_momenta_change_at_the_rates_of_the_full_machine(name, base):
    """At a random shape the rate of the state is its derivative along the motion by multipliers."""
    m = MACHINES[name](base)
    random = np.random.default_rng([12, *map(ord, name)])
    shape = {j.name: random.uniform(-3, 3) for j in m.joints if j.name in BEGIN[name][0]}
    at = pf.assemble(m, shape, random.normal(size=m.nv))
    system = pf.reduce(m)
    checked_signals(system, at.q, at.v, random.normal(size=m.nu))
    assert system.parts[1].names[0] == f"{m.bodies[2].name if base == 'slides and hinge' else 'ground'}.vx"


def floor_of_rows() -> pf.Mechanism:
    """The roller racer on a free joint, with its floor as three rows of positions instead of a closure."""
    m = MACHINES["roller racer"]("free")
    rows = pf.holonomic("floor", lambda k: ca.vertcat(k.position("seat")[2], k.rotation("seat")[2, :2].T))
    return m.with_(constraints=[rows, *m.constraints[1:]])


@pytest.mark.parametrize("make, shapes", [(truck, ({}, {"steer": 0.3, "hitch": 0.5})), (floor_of_rows, ({"hinge": 0.5},))])
def test_rows_that_follow_from_others_and_rows_of_positions(make, shapes):
    """Also straight ahead, where the truck's wheels determine its speed and its joints do not."""
    m, random = make(), np.random.default_rng(8)
    for shape in shapes:
        at = pf.assemble(m, shape, random.normal(size=m.nv))
        checked_signals(pf.reduce(m), at.q, at.v, random.normal(size=m.nu))
        assert np.abs(at.v[0]) > 1e-3


# -- momentum equations by hand -----------------------------------------------------------------------------------------


def bracket(a, b):
    """[a, b] of planar twists (vx, vy, w)."""
    return ca.vertcat(-a[2] * b[1] + b[2] * a[1], a[2] * b[0] - b[2] * a[0], 0)


def by_hand(s, energy, zeta, lift, torques):
    """Functions x -> x_dot, x -> zeta and (V, x) -> p for x = [place, s, s_dot, p], p = <mu, zeta>.

    energy(V, s_dot): kinetic, at s.   lift (3, n): V = zeta c + lift s_dot.   The momenta <(mu, p_s), (lift_i, e_i)> change as
    p does, by d T / d s_i, and by the torques; they are linear in the rates of the shape, which follow from them.
    """
    n = s.numel()
    place, s_dot, p, W = ca.SX.sym("place", 3), ca.SX.sym("s_dot", n), ca.SX.sym("p"), ca.SX.sym("W", 3)
    T = energy(W, s_dot)
    mu = ca.gradient(T, W)
    at_rest = ca.substitute(mu, s_dot, ca.SX.zeros(n, 1))
    c = (p - ca.dot(ca.substitute(mu, W, lift @ s_dot), zeta)) / ca.dot(ca.substitute(at_rest, W, zeta), zeta)
    V = zeta * c + lift @ s_dot

    def now(x):
        return ca.substitute(x, W, V)

    def carried(field):
        return ca.dot(now(mu), ca.jacobian(field, s) @ s_dot + bracket(V, field))

    p_dot = carried(zeta)
    pi = now(lift.T @ mu + ca.gradient(T, s_dot))
    pi_dot = ca.vertcat(*[carried(lift[:, i]) for i in range(n)]) + now(ca.gradient(T, s)) + ca.vertcat(*torques)
    s_ddot = ca.solve(ca.jacobian(pi, s_dot), pi_dot - ca.jacobian(pi, s) @ s_dot - ca.jacobian(pi, p) * p_dot)
    R = ca.blockcat([[ca.cos(place[2]), -ca.sin(place[2])], [ca.sin(place[2]), ca.cos(place[2])]])
    x = ca.vertcat(place, s, s_dot, p)
    rate = ca.vertcat(R @ V[:2], V[2], s_dot, s_ddot, p_dot)
    return (ca.Function("rate", [x], [rate]), ca.Function("zeta", [x], [zeta]), ca.Function("p", [W, x], [ca.dot(mu, zeta)]))


def snakeboard_by_hand(torques):
    """zeta = (-2 r cos b cos f, -r sin(b + f), sin(b - f)) for wheels at b behind and f in front."""
    s, r = ca.SX.sym("s", 3), 0.35
    b, f = s[1], s[2]
    zeta = ca.vertcat(-2 * r * ca.cos(b) * ca.cos(f), -r * ca.sin(b + f), ca.sin(b - f))

    def energy(V, s_dot):
        """Rotor and wheels turn with the board."""
        T = 6.0 * ca.sumsqr(V[:2]) + 0.3 * V[2] ** 2
        for i, (inertia, at) in enumerate([(0.4, 0.0), (0.05, -r), (0.05, r)]):
            T += THIN * (V[0] ** 2 + (V[1] + at * V[2]) ** 2) + inertia * (V[2] + s_dot[i]) ** 2
        return T / 2

    return by_hand(s, energy, zeta, ca.SX.zeros(3, 3), torques)


def roller_racer_by_hand(torques, front=0.3, back=0.5):
    """Axles require V_y = 0 and (back cos a + front) w = V_x sin a - front a_dot: zeta = (front + back cos a, 0, sin a)."""
    a = ca.SX.sym("a")
    zeta = ca.vertcat(front + back * ca.cos(a), 0, ca.sin(a))
    lift = front / (zeta[0] ** 2 + zeta[2] ** 2) * ca.vertcat(zeta[2], 0, -zeta[0])

    def energy(V, a_dot):
        turn = V[2] + a_dot
        bar = V[:2] + ca.vertcat(0, back * V[2]) + 0.05 * turn * ca.vertcat(-ca.sin(a), ca.cos(a))
        seat = V[:2] + ca.vertcat(0, 0.1 * V[2])
        return (4.0 * ca.sumsqr(seat) + 0.2 * V[2] ** 2 + ca.sumsqr(bar) + 0.1 * turn**2) / 2

    return by_hand(a, energy, zeta, lift, torques)


@pytest.mark.parametrize("name, hand", [("snakeboard", snakeboard_by_hand), ("roller racer", roller_racer_by_hand)])
def test_motions_by_a_momentum_equation(name, hand):
    """Position, shape and momentum, which the state has along zeta at unit length, with turns times a length of the blades."""
    m, q, v, u = start(name, "planar")
    rate, zeta, momentum = hand(u)
    r = accurate(pf.reduce(m), q, v, u)
    n = len(q) - 3
    begin = np.r_[q, v[3:], 0.0]
    begin[-1] = float(momentum(v[:3], begin))
    found = solve_ivp(
        lambda t, x: np.array(rate(x)).ravel(), (0, TIMES[-1]), begin, "DOP853", TIMES, rtol=1e-12, atol=1e-13
    ).y.T
    close(r.q.values, found[:, : 3 + n], SAME, "place and shape", scale=1.0)
    close(r.v.values[:, 3:], found[:, 3 + n : -1], SAME, "rates of the shape", scale=1.0)
    field = np.array([zeta(x) for x in found])[:, :, 0]
    unit = np.hypot(np.linalg.norm(field[:, :2], axis=1), moves(m).along.length * field[:, 2])
    side = np.sign(field[0, 0])
    close(side * r.momentum.values[:, 0], found[:, -1] / unit, SAME, "momentum", scale=1.0)
    assert np.ptp(found[:, -1]) > 0.1


def test_the_snakeboard_of_bloch_krishnaprasad_marsden_and_murray():
    """Wheels are steered against each other by phi; m r^2 is the whole inertia. Along zeta = (-2 r cos^2 phi, 0, sin 2 phi)

    p_dot = 2 J_r cos^2 phi phi_dot psi_dot - tan phi phi_dot p.    [bloch96]
    """
    r, m = 0.35, snakeboard("planar", 6.0 * 0.35**2 - 0.4 - 2 * 0.05, linked=True)
    random, length = np.random.default_rng(5), moves(m).along.length
    for phi in (0.3, -1.2, 2.0, 3.5):
        psi_dot, phi_dot, c = random.normal(size=3)
        zeta, turned = (
            np.array([-2 * r * np.cos(phi) ** 2, 0, np.sin(2 * phi)]),
            np.array([2 * r * np.sin(2 * phi), 0, 2 * np.cos(2 * phi)]),
        )
        q, v = np.r_[random.normal(size=3), 0.4, phi], np.r_[c * zeta, psi_dot, phi_dot]
        checked = checked_signals(pf.reduce(m), q, v, random.normal(size=2))
        # <mu, zeta> and its rate as printed, then along zeta at unit length, as in the state.
        p = c * 4 * 6.0 * r**2 * np.cos(phi) ** 2 + 0.4 * psi_dot * np.sin(2 * phi)
        p_dot = (2 * 0.4 * np.cos(phi) ** 2 * psi_dot - np.tan(phi) * p) * phi_dot
        by = np.diag([1, 1, length**2])
        size = np.sqrt(zeta @ by @ zeta)
        p_dot = p_dot / size - p * (zeta @ by @ turned) * phi_dot / size**3
        close(np.abs(checked["x"][m.nq]), np.abs(p) / size, 1e-9, "momentum", scale=1.0)
        close(np.sign(p * checked["x"][m.nq]) * checked["rate"][m.nq], p_dot, 1e-9, "its rate", scale=1.0)


# -- singular directions and broken symmetries --------------------------------------------------------------------------


def test_a_run_stops_where_both_wheels_stand_across_the_board():
    """Both then prevent the same motion, the board may turn and slide sideways, and the momentum's direction has no limit."""
    m = snakeboard("planar")
    system = pf.reduce(m)
    across = {"back": np.pi / 2, "front": np.pi / 2}
    begin = pf.assemble(m, dict.fromkeys(across, 1.5), dict.fromkeys(across, 1.0))
    with pytest.warns(pf.RunWarning, match="are about to depend on each other here"):
        r = pf.run(system, begin.q, begin.v, duration=0.1, step=1e-3, backend="interpreter")
    assert 0.03 < float(r.stopped) < 0.0708
    with pytest.raises(pf.ModelError, match=r"start: rows of constraints .* are about to depend on each other here"):
        pf.run(system, pf.assemble(m, across).q, duration=0.1, step=0.1, backend="interpreter")


def test_a_group_that_constraints_do_not_always_fix_is_refused():
    """Behind a car that drives straight the joints are at rest and do not determine its speed."""
    with pytest.raises(pf.ModelError, match="by: in some shapes the constraints of 'trailer' do not determine the"):
        pf.reduce(MACHINES["trailer"]("planar"), by="ground")


@pytest.mark.parametrize("base", BASES)
def test_a_slope_leaves_the_slides(base):
    """On a slope the heading matters, and the place does not: whatever joints carry the first body, the same reduction."""
    m, q, v, u = start("roller racer", base)
    down = m.with_(gravity=(1.5, -2.0, -9.3))
    system = pf.reduce(down)
    assert len(system.parts[1].names) == 2 and "moves along its slides alone" in str(system)
    r = accurate(system, q, v, u)
    planar, *begin = start("roller racer", "planar")
    full = accurate(planar.with_(gravity=(1.5, -2.0, -9.3)), *begin)
    close(moved(m, r), moved(planar, full), SAME, "poses", scale=1.0)
    close(r.energy.values, full.energy.values, SAME, "energy", scale=1.0)
    assert np.ptp(full.q.values[:, :2], axis=0).max() > 0.5


def in_two_joints(m: pf.Mechanism) -> pf.Mechanism:
    """A machine whose first joint, a free one, is written as a translation and a ball."""
    free, *others = m.joints
    joints = [pf.joint("slides", "translation", "world", "carriage"), pf.joint("turns", "spherical", "carriage", free.child)]
    return m.with_(bodies=[pf.body("carriage"), *m.bodies], joints=[*joints, *others])


def tipping_sleigh() -> pf.Mechanism:
    """A hull in space with a rotor off its middle, whose blade does not move across itself."""
    bodies = [pf.body("hull", 4.0, com=(0.1, 0, 0), inertia=(0.2, 0.3, 0.4)), pf.body("rotor", 0.3, inertia=0.02)]
    spin = pf.joint("spin", "revolute", "hull", "rotor", axis=(0, 1, 0), placement=(0.2, 0, 0.1))
    return pf.mechanism("sleigh", bodies, [pf.joint("base", "free", "world", "hull"), spin], constraints=[blade("hull")])


TIPPING = {"coin": lambda: pf.read("zoo:coin")[0], "sleigh": tipping_sleigh}
"""Machines whose constraints depend on how far they lean."""

AT_ONCE = 1e-8
"""Difference of two runs over 20 ms, by steps of an error of 1e-10 and of poses on the contact to 1e-10."""


@pytest.mark.parametrize("name", TIPPING)
def test_what_tips_over_is_reduced_by_its_slides(name):
    """The rows depend on the attitude, not on the place: whatever joints carry the body, the momenta of the same motions."""
    m, sizes = TIPPING[name](), []
    leaning = np.r_[0, 0, 0.1, 0.3, 0, 0, 0.95, np.zeros(m.nq - 7)]
    q = pf.assemble(m, leaning, backend="numpy").q
    for machine in (m, in_two_joints(m)):
        there = pf.assemble(machine, q, np.linspace(0.2, 0.6, m.nv), backend="numpy")
        keep = {"duration": 0.02, "step": 2e-4, "every": 20, "backend": "interpreter"}
        full, system = pf.run(machine, there.q, there.v, **keep), pf.reduce(machine)
        close(pf.run(system, there.q, there.v, **keep).q, full.q, AT_ONCE, "q", scale=1.0)
        assert "moves along its slides alone" in str(system)
        sizes.append(len(system.parts[1].names))
    assert sizes[0] == sizes[1] < m.nv


@pytest.mark.parametrize("base", BASES)
def test_a_hill_under_blades_breaks_the_symmetry(base):
    """A tether to the world depends on the place, which no reduction leaves out."""
    first = MACHINES["roller racer"](base)
    tether = pf.spring("tether", "world", "seat", point_a=(3, 1, 0), stiffness=2.0)
    with pytest.raises(pf.ModelError, match="spring 'tether' of 'roller racer' depends on where"):
        pf.reduce(first.with_(forces=[tether]))


@pytest.mark.parametrize("base", BASES[::2])
def test_a_parameter_of_a_run_may_change_a_machine_on_the_floor(base):
    """A longer bar leaves the symmetry; the run is that of a machine built with this bar."""
    front = pf.Parameter("front", 0.3, "m")
    m, fixed = roller_racer(base, front), roller_racer(base, 0.45)
    begin = pf.assemble(fixed, {"hinge": 0.5}, {"hinge": 1.0})
    short = {"duration": 0.05, "step": 0.01, "backend": "interpreter", "u": [0.3]}
    a = pf.run(pf.reduce(m), begin.q, begin.v, parameters={"front": 0.45}, **short)
    close(a.q, pf.run(fixed, begin.q, begin.v, **short).q, 1e-8, "q", scale=1.0)


def test_fields_of_the_caller_beside_directions():
    """The rotor's momentum along a given field is conserved; a field that the wheels do not allow is refused."""
    m, q, v, _ = start("snakeboard", "slides and hinge")
    spin = {"rotor": lambda k: ca.vertcat(0, 0, 0, 2, 0, 0)}
    short = {"duration": 0.05, "step": 0.01, "backend": "interpreter"}
    r, full = (pf.run(x, q, v, **short) for x in (pf.reduce(m, along=spin), m))
    p = 2 * np.einsum("tj,tj->t", pf.mass_matrix(m, full.q.values)[:, 3], full.v.values)  # of the rotor in the full machine
    close(r.momentum.sel(momentum_entry="rotor"), p, SAME, "momentum")
    assert p[0] > 0.1 and np.ptp(full.v.sel(velocity="rotor").values) > 1e-3, "the rotor's speed changes"
    with pytest.raises(pf.ModelError, match="the constraints of 'snakeboard' do not allow that motion"):
        pf.reduce(m, along={"board.vx": lambda k: ca.vertcat(1, 0, 0, 0, 0, 0)})
    with pytest.raises(pf.ModelError, match="no velocity 'x'"):
        pf.reduce(m, along={"x": lambda k: ca.vertcat(1, 0, 0, 0, 0, 0)})
