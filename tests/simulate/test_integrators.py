"""The purpose of each integrator: the midpoint rule conserves energy, TR-BDF2 steps over stiff springs."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.step.integrators import UNCONVERGED
from studies.integrators import mechanism as elastic_four_bar
from tests.by_scipy import run_adaptive
from tests.graph_twin import graph_twin
from tests.random_mechanisms import random_body, random_pose
from tests.simulate.machines import FOUR_BAR_START, Y, ball_and_plane, flying_pair, four_bar, pendulum, velocity
from tests.tolerance import ALGEBRA, SATISFIED, close

MIDPOINT, STIFF = pf.Scheme(integrator="midpoint"), pf.Scheme(integrator="tr-bdf2")
CONSERVED = 1e-11
"""Energy drift of the midpoint rule after 1e5 steps, relative to the largest part of the energy: as many random roundings."""


def double_pendulum(**changes) -> pf.Mechanism:
    links = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.02) for n in "ab"]
    hinges = [
        pf.joint("A", "revolute", "world", "a", axis=Y),
        pf.joint("B", "revolute", "a", "b", axis=Y, placement=(1, 0, 0)),
    ]
    given = {"actuators": [pf.actuator("mA", "A"), pf.actuator("mB", "B")]} | changes
    return pf.mechanism("double pendulum", links, hinges, **given)


def drift(r) -> float:
    return float(abs(r.energy - r.energy[0]).max() / max(r.kinetic_energy.max(), abs(r.energy[0])))


# -- the midpoint -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "q", "v", "step"),
    [
        (pendulum(), {"pivot": 3.0}, {}, 0.03),
        (double_pendulum(), {"A": -2.0, "B": 1.0}, {}, 0.01),
        (four_bar(), FOUR_BAR_START, {"a": 4.0}, 0.01),
        (ball_and_plane(), None, {}, 0.01),
    ],
    ids=["turning points", "chaos", "redundant rows", "quaternion"],
)
def test_energy_is_conserved_over_1e5_steps(m, q, v, step):
    keep = {"duration": 1e5 * step, "step": step, "every": 1000, "error": False}  # its estimate takes twice the time of the run
    r = pf.run(m, q, v, scheme=MIDPOINT, **keep)
    assert r.status == 0 and drift(r) < CONSERVED
    plain = pf.run(m, q, v, **keep)
    assert drift(plain) > 1e4 * CONSERVED, "RK4 conserves it as well"
    if m.ideal:
        assert float(r.violation.max()) < SATISFIED and float(r.velocity_violation.max()) < SATISFIED


@pytest.mark.parametrize("formulation", ["multipliers", "projection", "quasi-velocity"])
def test_energy_is_conserved_by_every_formulation(formulation):
    """Also by formulations whose correction needs a new factorisation."""
    scheme = pf.Scheme(formulation=formulation, integrator="midpoint")
    r = pf.run(four_bar(), FOUR_BAR_START, {"a": 4.0}, duration=0.5, step=0.01, scheme=scheme, backend="interpreter")
    assert drift(r) < CONSERVED


def test_energy_is_conserved_in_coordinates_that_a_caller_defines():
    """Nine entries of a rotation matrix under six equations conserve it as the quaternions of the tree do, to rounding."""
    random = np.random.default_rng(3)
    bodies = [random_body(random, n) for n in "ab"]
    joints = [
        pf.joint("A", "spherical", "world", "a", placement=random_pose(random)),
        pf.joint("B", "revolute", "a", "b", axis=(0.3, 1, 0.2), placement=random_pose(random)),
    ]
    m = pf.mechanism("tree", bodies, joints)
    twin, q, v = graph_twin(m), pf.random_configuration(m, random), random.normal(size=m.nv)
    keep = {"duration": 0.3, "step": 0.01, "scheme": MIDPOINT, "backend": "interpreter"}
    tree, graph = pf.run(m, q, v, **keep), pf.run(twin.m, twin.q(q), v, **keep)
    assert twin.m.nq > m.nq and drift(tree) < CONSERVED and drift(graph) < CONSERVED
    close(graph.v, tree.v, 2e-3, "v: the errors of both are of order h^2 and differ")


def test_energy_is_conserved_in_positions_and_momenta():
    m = double_pendulum()
    how = {"duration": 1.0, "step": 0.01, "scheme": MIDPOINT, "backend": "interpreter"}
    r, plain = (pf.run(x, {"A": -2.0, "B": 1.0}, **how) for x in (pf.reduction.hamiltonian(m), m))
    assert drift(r) < CONSERVED
    close(r.q, plain.q, 0.02, "q: the errors of both are of order h^2 and differ")
    assert float(abs(r.q - plain.q).max()) > 1e-6


def test_energy_changes_by_the_power_at_the_middle_of_the_step():
    """The power of a damper and a motor at the middle of each step, written out for one joint."""
    h, push, damping = 0.02, 1.5, 0.4
    m = pendulum(damping=damping)
    r = pf.run(m, {"pivot": 1.0}, {"pivot": 2.0}, u=[push], duration=2.0, step=h, scheme=MIDPOINT, backend="interpreter")
    middle = (r.v.values[1:, 0] + r.v.values[:-1, 0]) / 2
    close(np.diff(r.energy), h * (push - damping * middle) * middle, 1e3 * ALGEBRA, "E1 - E0", scale=r.kinetic_energy.max())


def test_rest_stays_rest():
    """In equilibrium the correction of the energy does not turn rounding into motion."""
    m, hanging = double_pendulum(gravity=(3, 0, -9)), np.arctan2(9, 3)
    for start in (0.0, 1e-9):
        r = pf.run(m, {"A": hanging + start}, duration=2.0, step=0.01, scheme=MIDPOINT, backend="interpreter")
        assert r.status == 0
        assert float(abs(r.q[:, 0] - hanging).max()) <= 1.01 * start + 1e-14 and float(abs(r.v).max()) <= 5 * start + 1e-14


@pytest.mark.parametrize(("scheme", "step", "speed"), [(MIDPOINT, 0.02, 20.0), (STIFF, 0.03, 5.0)])
def test_iterations_converge_for_links_that_turn_fast(scheme, step, speed):
    """The link turns by 0.4 rad or 0.15 rad a step, and no iteration matrix contains the effect of its speed."""
    r = pf.run(
        double_pendulum(), {"A": -2.0}, {"B": speed}, duration=20 * step, step=step, scheme=scheme, backend="interpreter"
    )
    assert r.status == 0


def test_a_step_that_is_too_long_stops_the_run():
    with pytest.warns(pf.RunWarning, match="did not converge: take a shorter step"):
        r = pf.run(double_pendulum(), {"A": -2.0}, {"B": 40.0}, duration=1.0, step=0.1, scheme=MIDPOINT, backend="interpreter")
    assert pf.results.causes(r)[0].startswith(UNCONVERGED)


def test_the_midpoint_rule_refuses_constraints_that_activate():
    m = double_pendulum(constraints=[pf.constraints.active_while(pf.holonomic("stop", lambda k: k.q[1]), lambda k: k.t < 1)])
    with pytest.raises(pf.ModelError, match=r"'midpoint' cannot serve 'double pendulum'.*come and go \(stop\).*take 'rk4'"):
        pf.run(m, duration=0.1, scheme=MIDPOINT, backend="interpreter")
    assert pf.run(m, duration=0.1, step=0.01, scheme=STIFF, backend="interpreter").status == 0


# -- stiff springs ------------------------------------------------------------------------------------------------

STIFFEST = 1e8  # N/m


def test_two_masses_on_a_stiff_spring():
    """The slow mode follows the closed form at order two while the fast one (12,000 rad/s) decays; RK4 diverges at these
    steps."""
    masses = [pf.body("a", 1.0), pf.body("b", 2.0)]
    slides = [
        pf.joint("x", "prismatic", "world", "a", axis=(1, 0, 0), stiffness=100.0),
        pf.joint("d", "prismatic", "a", "b", axis=(1, 0, 0), stiffness=STIFFEST),
    ]
    m = pf.mechanism("pair", masses, slides, gravity=(0, 0, 0))
    M, K, x = np.array([[3.0, 2.0], [2.0, 2.0]]), np.diag([100.0, STIFFEST]), np.array([0.1, 0.0])
    squares, modes = np.linalg.eig(np.linalg.solve(M, K))
    slow = int(np.argmin(squares))
    part = np.linalg.solve(modes, x)[slow] * modes[:, slow]
    error = []
    for step in (2e-3, 1e-3, 5e-4):
        r = pf.run(m, {"x": 0.1}, duration=2.0, step=step, scheme=STIFF)
        error.append(np.abs(r.q.values - np.cos(np.sqrt(squares[slow]) * r.time.values)[:, None] * part).max(axis=0))
    assert error[1][0] < 2e-6 and error[1][1] < 1e-6
    close(np.log2(error[0][0] / error[1][0]), 2.0, 0.05, "order")
    close(np.log2(error[1][0] / error[2][0]), 2.0, 0.05, "order")
    with pytest.warns(pf.RunWarning, match="diverged"):
        pf.run(m, {"x": 0.1}, duration=0.1, step=1e-3, backend="interpreter")


def angle_of(r, x="p.x", z="p.z"):
    return np.arctan2(-r.q.sel(coordinate=z), r.q.sel(coordinate=x)).values


def test_a_stiff_direction_that_turns():
    """A bob on a spring of 1e8 N/m in Cartesian coordinates moves as a pendulum, whose rate is a small fraction of the
    10,000 rad/s."""
    bob, hinge = [pf.body("bob", 1.0, inertia=0.01)], [pf.joint("p", "free", "world", "bob")]
    elastic = pf.mechanism("elastic", bob, hinge, forces=[pf.spring("s", "world", "bob", stiffness=STIFFEST, rest=1.0)])
    rigid = pf.mechanism("rigid", [pf.body("bob", 1.0, com=(1, 0, 0))], [pf.joint("a", "revolute", "world", "bob", axis=Y)])
    exact = run_adaptive(rigid, times=np.linspace(0, 2, 201))
    error = []
    for step in (4e-3, 2e-3, 1e-3):
        r = pf.run(elastic, {"p.x": 1.0}, duration=2.0, step=step, every=round(0.02 / step), scheme=STIFF)
        error.append(np.abs(angle_of(r) - exact.q.values[::2, 0]).max())
    assert error[2] < 5e-5 and error[0] / error[1] > 3 and error[1] / error[2] > 3, error


def test_a_stiff_link_in_a_loop():
    q, v = dict(zip("abd", FOUR_BAR_START, strict=True)), {"a": 4.0}
    exact = run_adaptive(elastic_four_bar(0.0), q, v, times=np.linspace(0, 2, 201))
    r = pf.run(elastic_four_bar(STIFFEST), q | {"s": 0.0}, v | {"s": 0.0}, duration=2.0, step=1e-3, every=10, scheme=STIFF)
    assert r.status == 0 and float(r.violation.max()) < SATISFIED
    close(r.q.sel(coordinate=list("abd")), exact.q, 1e-4, "q of the rigid four-bar", scale=1.0)
    assert float(abs(r.q.sel(coordinate="s")).max()) < 2e-6


def test_an_arm_on_a_bushing():
    """The base rests on 1e8 N/m and 1e6 N m/rad with some damping, in all six directions; a pendulum hangs on it."""

    def bushing_energy(k):
        q = k.joint("base")
        return STIFFEST / 2 * ca.sumsqr(q[:3]) + 1e6 / 2 * 4 * ca.sumsqr(q[3:6])

    bodies = [pf.body("base", 2.0, inertia=0.02), pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=0.02)]
    pivot = pf.joint("A", "revolute", "base", "arm", axis=Y, placement=(0.1, 0, 0.05))
    soft = pf.mechanism(
        "on a bushing", bodies, [pf.joint("base", "free", "world", "base", damping=50.0), pivot],
        forces=[pf.forces.potential("bushing", bushing_energy)],
    )  # fmt: skip
    fixed = pf.mechanism("fixed", bodies, [pf.joint("base", "fixed", "world", "base"), pivot])
    exact = run_adaptive(fixed, times=np.linspace(0, 2, 201))
    r = pf.run(soft, duration=2.0, step=1e-3, every=10, scheme=STIFF)
    assert r.status == 0
    close(r.q.sel(coordinate=["A"]), exact.q, 2e-4, "angle of the arm", scale=1.0)


def test_stiff_dampers():
    """Bodies with v' = -c v / m and c h / m from 3 to 300 each stop after a distance of m v / c."""
    rates = 1e3 * np.geomspace(3, 300, 6)
    bodies = [pf.body(f"b{i}", 1.0) for i in range(6)]
    rails = [pf.joint(f"x{i}", "prismatic", "world", f"b{i}", axis=(1, 0, 0), damping=c) for i, c in enumerate(rates)]
    m = pf.mechanism("damped", bodies, rails, gravity=(0, 0, 0))
    r = pf.run(m, None, np.ones(6), duration=0.04, step=1e-3, scheme=STIFF, backend="interpreter")
    assert r.status == 0
    close(r.q.values[-1] * rates, np.ones(6), 1e-6, "distance to rest, relative to m v / c")


# -- both, with all features that a run may have ------------------------------------------------------------------


def integrating(terms, z, w, y):
    off = terms.q - w
    return control.Command(u=-2 * off - 0.5 * terms.v - z, z_dot=off)


LAW = control.Control(integrating, z=(0.0, 0.0), w_names=("A*", "B*"))


def driven():
    return double_pendulum(constraints=[pf.holonomic("driven", lambda k: k.q[0] - 0.5 * ca.sin(3 * k.t))])


def with_servo():
    task = pf.holonomic("tip", lambda k: k.q[1] - 0.2 * ca.cos(2 * k.t))
    return double_pendulum(constraints=[pf.servo(task, ["mB"])])


def skate():
    """A sleigh whose mass centre is ahead of its edge: it has fewer speeds than coordinates."""
    edge = pf.joint("s", "planar", "world", "b", distribution=["vx", "wz"], speeds=["ahead", "turn"])
    return pf.mechanism("sleigh", [pf.body("b", 1.0, com=(0.3, 0, 0), inertia=0.1)], [edge], gravity=(0, 0, 0))


FULL = {  # mechanism and arguments of the run
    "a law that integrates": (double_pendulum(), {"q": {"A": 0.1}, "control": LAW, "u": [0.3, -0.2]}),
    "a driven joint": (driven(), {"u": [0.0, 0.4]}),
    "a servo constraint": (with_servo(), {"u": [0.5, 0.0]}),
    "cut inputs": (
        double_pendulum(actuators=[pf.actuator("mA", "A", limits=(-1, 1)), pf.actuator("mB", "B")]),
        {"q": {"A": 0.1}, "u": [5.0, 0.1]}),
    "a rate to hold": (
        double_pendulum(constraints=[pf.nonholonomic("equal", lambda k: k.v[0] - 0.5 * k.v[1])]), {"u": [1.0, 0.5]}),
    "a force that depends on time": (
        double_pendulum(forces=[pf.forces.potential("tide", lambda k: 2 * ca.sin(k.q[0]) * ca.cos(3 * k.t))]),
        {"q": {"A": 0.1}}),
    "a flight": (flying_pair(), {"v": velocity(flying_pair())}),
    "a skate": (skate(), {"v": [1.0, 2.0]}),
}  # fmt: skip


@pytest.mark.parametrize("integrator", ["midpoint", "tr-bdf2"])
@pytest.mark.parametrize("case", FULL)
def test_it_converges_at_order_two_with(case, integrator):
    """Half the step reduces the error against order 8 to a quarter."""
    m, given = FULL[case]
    scheme = pf.Scheme(integrator=integrator, saturate=case == "cut inputs")
    exact = run_adaptive(m, times=[0, 0.4], tolerance=1e-11, scheme=scheme, **given)
    error = []
    for step in (0.01, 0.005):
        r = pf.run(m, duration=0.4, step=step, scheme=scheme, backend="interpreter", **given)
        assert r.status == 0
        error.append(max(float(abs(r[n][-1] - exact[n][-1]).max()) for n in "qv"))
    assert error[0] > 1e-7 and 3.2 < error[0] / error[1] < 5, error


@pytest.mark.parametrize("integrator", ["midpoint", "tr-bdf2"])
def test_bits_are_equal_by_numpy_and_c_alone_and_in_a_batch(integrator):
    m = ball_and_plane()
    there = pf.assemble(m, None, velocity(m))
    v = np.linspace(0.5, 1, 9)[:, None] * there.v
    keep = {"duration": 0.05, "step": 0.01, "scheme": pf.Scheme(integrator=integrator), "record": ["q", "v"]}
    plain, batch = (pf.run(m, np.tile(there.q, (9, 1)), v, backend=b, **keep) for b in ("numpy", "c"))
    alone = pf.run(m, there.q, v[4], backend="c", **keep)
    for name in ("q", "v"):
        assert np.array_equal(plain[name], batch[name]) and np.array_equal(batch[name][4], alone[name])


@pytest.mark.parametrize("integrator", ["midpoint", "tr-bdf2"])
def test_a_resumed_run_has_the_same_bits(integrator):
    m, scheme = four_bar(), pf.Scheme(integrator=integrator)
    keep = {"step": 0.01, "scheme": scheme, "backend": "interpreter"}
    whole = pf.run(m, FOUR_BAR_START, {"a": 1.0}, duration=0.2, **keep)
    half = pf.run(m, FOUR_BAR_START, {"a": 1.0}, duration=0.1, **keep)
    rest = pf.run(m, half.q.values[-1], half.v.values[-1], start=0.1, duration=0.1, correct_start=False, **keep)
    assert np.array_equal(rest.q[-1], whole.q[-1]) and np.array_equal(rest.v[-1], whole.v[-1])


@pytest.mark.parametrize("integrator", ["midpoint", "tr-bdf2"])
def test_a_law_in_discrete_time(integrator):
    """Its inputs are constant between instants; its fault and that of the integrator are reported as such."""

    def answer(s):
        u = ca.vertcat(-3 * s.terms.q[0] - s.terms.v[0], 0)
        return control.Command(u, faults=ca.vertcat(s.terms.t > 1))

    law = control.discrete(answer, 0.02, faults=("too late",))
    m, keep = double_pendulum(), {"control": law, "backend": "interpreter"}
    exact = pf.run(m, {"A": 0.2}, duration=0.4, step=1e-3, every=400, **keep)
    error = []
    for step in (0.01, 0.005):
        r = pf.run(m, {"A": 0.2}, duration=0.4, step=step, scheme=pf.Scheme(integrator=integrator), **keep)
        error.append(float(abs(r.q[-1] - exact.q[-1]).max()))
    assert 3.2 < error[0] / error[1] < 5, error
    for v, words in ({"B": 0.0}, "too late"), ({"B": 60.0}, UNCONVERGED):
        with pytest.warns(pf.RunWarning, match=words):
            r = pf.run(m, {"A": 0.2}, v, duration=1.2, step=0.02, scheme=pf.Scheme(integrator=integrator), **keep)
        assert pf.results.causes(r)[0].startswith(words)


@pytest.mark.parametrize("integrator", ["midpoint", "tr-bdf2"])
def test_a_singular_start_is_left_along_one_branch(integrator):
    """A flat parallelogram moves along one branch: the first step uses the lost rows."""
    lengths = {"crank": 1.0, "coupler": 2.0, "rocker": 1.0}
    bodies = [pf.body(n, 1.0, com=(l / 2, 0, 0), inertia=0.1) for n, l in lengths.items()]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=Y),
        pf.joint("b", "revolute", "crank", "coupler", axis=Y, placement=(1, 0, 0)),
        pf.joint("d", "revolute", "world", "rocker", axis=Y, placement=(2, 0, 0)),
    ]
    ends = {"placement_a": pf.pose((2, 0, 0)), "placement_b": pf.pose((1, 0, 0))}
    m = pf.mechanism("line", bodies, joints, constraints=[pf.closure("c", "revolute", "coupler", "rocker", axis=Y, **ends)])
    scheme = pf.Scheme(integrator=integrator)
    r = pf.run(m, {}, {"a": 3.0, "b": -3.0, "d": 3.0}, duration=0.2, step=2e-3, scheme=scheme, backend="interpreter")
    exact = pf.run(m, {}, {"a": 3.0, "b": -3.0, "d": 3.0}, duration=0.2, step=2e-4, every=10, backend="interpreter")
    assert r.status == 0 and r.entrance == 1
    close(r.q, exact.q, 1e-4, "q")
