"""Derivatives of the motion, against differences along the constraints and against each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import assume, given, settings

import pfaffian as pf
from pfaffian.dynamics.controlforce import ideal_reaction
from pfaffian.errors import ModelError
from tests.graph_twin import graph_twin
from tests.identities.test_graphs import bare
from tests.random_mechanisms import EXTRAS, Case, constrained, loops, of_terms, random_forces, random_tree
from tests.tolerance import close

DIFFERENCES = 1e-7
"""Error of differences of order six with steps from 1e-3 down: 1e-10 on most machines, more next to a singular
configuration."""

SAME = 1e-10
"""Error of products relative to the matrices: the same sums in another order."""

STEPS = (1e-3, 5e-4, 2.5e-4)
PARTS = ("v_dot", "reaction", "multipliers")


def reference(m: pf.Mechanism) -> Callable[..., dict[Any, np.ndarray]]:
    """Function for the motion by its formulation, and the rows."""
    solve = pf.FORMULATIONS["control-force" if m.servos else "gauss"]

    def multipliers(T: pf.Terms) -> ca.SX:
        return pf.constraints.minimum_norm_multipliers(T, ideal_reaction(T, solve(T)))

    return of_terms(
        m,
        {
            "v_dot": lambda T: solve(T).v_dot, "reaction": lambda T: solve(T).reaction, "multipliers": multipliers,
            "A": lambda T: T.A, "K": lambda T: T.kinematics.kinematic_matrix, "phi": lambda T: T.rows.phi,
            "eta": lambda T: T.rows.eta, "level": lambda T: ca.DM(T.rows.level) if T.rows.level else ca.DM(0, 1),
        },
    )  # fmt: skip


class Path:
    """States on the constraints, along a random direction through the state of a case."""

    def __init__(self, case: Case, seed: int = 0) -> None:
        self.case, self.f, random = case, reference(case.m), np.random.default_rng(seed)
        here = self.at(case.q, case.v)
        self.position, self.velocity = here["level"] == 0, here["level"] < 2
        A = here["A"] * self.position
        self.K, self.dq = here["K"], random.normal(size=case.m.nv)
        self.dq = self.dq - np.linalg.pinv(A, rcond=1e-6) @ (A @ self.dq)
        self.dv, self.du, self.dt = random.normal(size=case.m.nv), random.normal(size=case.m.nu), float(random.normal())
        if case.m.constraints:
            self.dt = 0.0  # otherwise constraints that depend on t would change the states

    def at(self, q: np.ndarray, v: np.ndarray, e: float = 0.0) -> dict[Any, np.ndarray]:
        c = self.case
        return self.f(q, v, c.u + e * self.du if e else c.u, c.t + e * self.dt if e else c.t)

    def states(self, e: float) -> tuple[np.ndarray, np.ndarray]:
        q, v = self.case.q + e * (self.K @ self.dq), self.case.v + e * self.dv
        for _ in range(4):
            now = self.at(q, v)
            q = q - (now["K"] @ np.linalg.pinv(now["A"] * self.position, rcond=1e-6) @ now["phi"]).ravel()
        for _ in range(3):
            now = self.at(q, v)
            v = v - (np.linalg.pinv(now["A"] * self.velocity, rcond=1e-6) @ now["eta"]).ravel()
        return q, v

    def stays(self) -> bool:
        """Whether such states exist: rows that agree at one state only leave none nearby."""
        q, v = self.states(STEPS[0])
        now = self.at(q, v)
        return bool(max(np.abs(now["phi"]).max(initial=0.0), np.abs(now["eta"]).max(initial=0.0)) < 1e-9)

    def numbers(self, e: float) -> list[np.ndarray]:
        q, v = self.states(e)
        found = self.at(q, v, e)
        return [v, *[found[name].ravel() for name in PARTS]]

    def slopes(self, numbers: Callable[[float], list[np.ndarray]] | None = None) -> list[np.ndarray]:
        """Derivatives along the path: of v, v_dot, reaction and multipliers, or of other numbers."""
        of = numbers or self.numbers
        table = [[(a - b) / (2 * h) for a, b in zip(of(h), of(-h), strict=True)] for h in STEPS]
        for power in (4, 16):
            table = [[(power * b - a) / (power - 1) for a, b in zip(*two, strict=True)] for two in pairwise(table)]
        return table[0]


def check(case: Case, path: Path | None = None) -> pf.evaluate.derivatives.Derivatives:
    d = pf.derivatives(case.m, case.q, case.v, case.u, t=case.t, backend="numpy")
    path = path or Path(case)
    here = path.at(case.q, case.v)
    dv, *expected = path.slopes()
    for name, value, slope in zip(PARTS, (d.motion.v_dot, d.motion.reaction, d.values), expected, strict=True):
        size = max(1.0, np.abs(here[name]).max(initial=0.0))
        close(value, here[name].ravel(), SAME, name, size)
        x = getattr(d, name)
        close(x.q @ path.dq + x.v @ dv + x.u @ path.du + x.t * path.dt, slope, DIFFERENCES, f"{name} along the motion", size)
    return d


KINDS = tuple(kind for kind in EXTRAS if kind != "squared")  # its row is rounding on the constraints; differences notice it


@settings(max_examples=5)
@given(loops(most=3, kinds_of_more=KINDS))
def test_random_mechanisms_by_differences(case):
    path = Path(case)
    assume(path.stays())
    check(case, path)


@pytest.fixture(scope="module")
def every_kind() -> Case:
    """A case with redundant, nonholonomic and acceleration rows."""
    random = np.random.default_rng(5)
    kinds, extras = ["free", "revolute", "spherical"], ["rolling", "speed", "pushed", "duplicate"]
    return constrained(random, kinds, [-1, 0, 1], ["point-on-plane"], extras)


@pytest.fixture(scope="module")
def found(every_kind) -> pf.evaluate.derivatives.Derivatives:
    """The derivatives of that case, after a comparison with differences."""
    return check(every_kind)


def test_redundant_nonholonomic_and_acceleration_rows_together(found):
    d = found
    assert d.motion.rank < len(d.values) and d.regular  # redundant, but regular
    assert np.abs(d.multipliers.q).max() > 0.1


def servo_case() -> Case:
    bodies = [pf.body("cart", 1.0), pf.body("bob", 0.5, com=(0, 0, -1.0), inertia=0.01)]
    joints = [pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))]
    joints += [pf.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))]
    tip = pf.holonomic("tip", lambda k: k.position("bob", (0, 0, -1.0))[0] - 0.3 * k.t)
    controlled = pf.servo(tip, ["drive"], stiffness=9.0, damping=2.0)
    m = pf.mechanism("crane", bodies, joints, actuators=[pf.actuator("drive", "x")], constraints=[controlled])
    return Case(m, np.array([0.1, 0.4]), np.array([0.2, -0.3]), np.zeros(1), 0.2)


def test_servo_forces():
    case = servo_case()
    d = pf.derivatives(case.m, case.q, case.v, t=case.t, backend="numpy")
    f = reference(case.m)
    for i in range(2):  # no ideal rows, so every direction is allowed
        e = 1e-5 * np.eye(2)[i]
        for name in ("v_dot", "reaction"):
            by_q = (f(case.q + e, case.v, case.u, case.t)[name] - f(case.q - e, case.v, case.u, case.t)[name]) / 2e-5
            by_v = (f(case.q, case.v + e, case.u, case.t)[name] - f(case.q, case.v - e, case.u, case.t)[name]) / 2e-5
            close(getattr(d, name).q[:, i], by_q.ravel(), 1e-8, f"{name} by q", 10.0)
            close(getattr(d, name).v[:, i], by_v.ravel(), 1e-8, f"{name} by v", 10.0)
    later = (f(case.q, case.v, case.u, case.t + 1e-5)["v_dot"] - f(case.q, case.v, case.u, case.t - 1e-5)["v_dot"]) / 2e-5
    close(d.v_dot.t, later.ravel(), 1e-8, "v_dot by t", 10.0)
    assert np.abs(d.v_dot.u).max() < SAME  # the servo compensates the input
    assert d.regular


def test_a_servo_without_authority_has_no_derivative():
    """The motor pushes along an axis that is normal to the path at one of two states."""
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    path = pf.holonomic("path", lambda k: k.q[1] + k.q[0] ** 2 - 0.1 * k.t)
    controlled = pf.servo(path, ["push"], stiffness=9.0, damping=2.0)
    motor = pf.actuator("push", "bead", component=0)
    m = pf.mechanism("bead", [pf.body("bead", mass=1.0)], [plane], actuators=[motor], constraints=[controlled])
    assert pf.derivatives(m, [[0.0, 0.0], [0.5, 0.0]], backend="numpy").regular.tolist() == [False, True]


def test_products_equal_those_with_the_matrices(every_kind, found):
    case, random, d = every_kind, np.random.default_rng(2), found
    m = case.m
    dq, dv, du, dt = random.normal(size=m.nv), random.normal(size=m.nv), random.normal(size=m.nu), 0.7
    forward = pf.calculus.jvp(m, case.q, case.v, case.u, t=case.t, dq=dq, dv=dv, du=du, dt=dt)
    weights = {name: random.normal(size=len(getattr(forward, name))) for name in PARTS}
    back = pf.calculus.vjp(m, case.q, case.v, case.u, t=case.t, **weights)
    for name in PARTS:
        x = getattr(d, name)
        expected = x.q @ dq + x.v @ dv + x.u @ du + x.t * dt
        close(getattr(forward, name), expected, SAME, f"{name} along", np.abs(expected).max())
    for by in ("q", "v", "u", "t"):
        expected = sum(weights[name] @ getattr(getattr(d, name), by) for name in PARTS)
        close(getattr(back, by), expected, SAME, f"back to {by}", np.abs(expected).max())


def pendulum() -> pf.Mechanism:
    """A pendulum with two parameters, in a potential that depends on time."""
    mass, length = pf.Parameter("mass", 2.0, "kg"), pf.Parameter("length", 1.5, "m")
    bob = pf.body("bob", mass=mass, com=(0, 0, -length))
    hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    wind = pf.forces.potential("wind", lambda k: -ca.sin(k.t) * k.position("bob", (0, 0, -1))[0])
    return pf.mechanism(
        "pendulum", [bob], [hinge], parameters=[mass, length], forces=[wind], actuators=[pf.actuator("motor", "hinge")]
    )


def test_parameters_time_and_inputs_of_a_pendulum():
    m, q, u, t = pendulum(), 0.7, 3.0, 0.4
    d = pf.derivatives(m, [q], [0.2], [u], t=t, parameters={"length": 1.2}, backend="numpy")
    M, l = 2.0, 1.2
    push = -np.sin(t) * np.cos(q)  # the point at -1 moves by -cos q
    a = -9.81 / l * np.sin(q) + (u + push) / (M * l**2)
    close(d.motion.v_dot, [a], 1e-12, "v_dot", 10.0)
    close(d.v_dot.q, [[-9.81 / l * np.cos(q) + np.sin(t) * np.sin(q) / (M * l**2)]], 1e-12, "by q", 10.0)
    close(d.v_dot.u, [[1 / (M * l**2)]], 1e-12, "by u")
    close(d.v_dot.t, [-np.cos(t) * np.cos(q) / (M * l**2)], 1e-12, "by t")
    by_mass = -(u + push) / (M**2 * l**2)
    by_length = 9.81 / l**2 * np.sin(q) - 2 * (u + push) / (M * l**3)
    close(d.v_dot.parameters, [[by_mass, by_length]], 1e-12, "by parameters", 10.0)
    forward = pf.calculus.jvp(m, [q], [0.2], [u], t=t, parameters={"length": 1.2}, dp={"mass": 1.0, "length": 2.0})
    close(forward.v_dot, [by_mass + 2 * by_length], 1e-12, "along parameters", 10.0)


def test_a_batch_is_its_states_to_the_bit_on_every_thread_and_backend():
    m = pendulum()
    q, u = np.linspace(-1, 1, 20)[:, None], np.linspace(2, 3, 20)[:, None]
    one = pf.derivatives(m, q, None, u, backend="interpreter")
    two = pf.derivatives(m, q, None, u, backend="interpreter", threads=2)
    last = pf.derivatives(m, q[-1], None, u[-1], backend="numpy")
    assert one.v_dot.q.shape == (20, 1, 1) and one.v_dot.t.shape == (20, 1) and one.regular.shape == (20,)
    for a, b, c in zip(one.v_dot, two.v_dot, last.v_dot, strict=True):
        assert np.array_equal(a, b) and np.array_equal(a[-1], c)


def test_only_requested_derivatives_are_given():
    d = pf.derivatives(pendulum(), [0.3], by=["u"], of=["v_dot"], backend="numpy")
    assert d.v_dot.u is not None and d.v_dot.q is None and d.v_dot.t is None
    assert all(x is None for x in (*d.reaction, *d.multipliers))


def test_singular_states_without_derivative_are_marked():
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    wires = pf.holonomic("wires", lambda k: k.q[0] * k.q[1])
    m = pf.mechanism("crossing", [pf.body("bead", mass=1.0)], [plane], constraints=[wires])
    d = pf.derivatives(m, [[0.0, 0.0], [0.5, 0.0]], backend="numpy")
    assert d.regular.tolist() == [False, True] and d.motion.rank.tolist() == [0, 1]


def test_an_inactive_constraint_is_no_singularity():
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    floor = pf.constraints.active_while(pf.holonomic("floor", lambda k: k.q[1]), lambda k: k.q[0] > 0)
    m = pf.mechanism("ledge", [pf.body("bead", mass=1.0)], [plane], constraints=[floor])
    d = pf.derivatives(m, [[1.0, 0.0], [-1.0, 0.0]], backend="numpy")
    assert d.regular.tolist() == [True, True] and d.motion.rank.tolist() == [1, 0]


def test_inverse_dynamics(every_kind):
    """For a machine with redundant rows and motors on all joints, against differences along its motion."""
    case = every_kind
    m = pf.actuate_all(case.m.with_(actuators=[], forces=[]))
    push = np.random.default_rng(3).normal(size=m.nu)
    a = pf.forward_dynamics(m, case.q, case.v, push, t=case.t).v_dot
    d = pf.calculus.inverse_dynamics_derivatives(m, case.q, case.v, a, t=case.t)
    path = Path(Case(m, case.q, case.v, push, case.t))

    def numbers(e: float) -> list[np.ndarray]:
        q, v = path.states(e)
        b = path.at(q, v, e)["v_dot"].ravel()
        found = pf.inverse_dynamics(m, q, v, b, t=case.t)
        return [v, b, found.u, found.reaction]

    dv, da, *expected = path.slopes(numbers)
    for name, slope in zip(("u", "reaction"), expected, strict=True):
        x = getattr(d, name)
        close(x.q @ path.dq + x.v @ dv + x.a @ da, slope, DIFFERENCES, name, max(1.0, np.abs(slope).max()))


def test_a_graph_has_the_derivatives_of_its_tree():
    """Derivatives along velocities do not depend on the coordinates, here nine entries of a rotation instead of a
    quaternion."""
    random = np.random.default_rng(3)
    m = random_forces(random, bare(random_tree(random, ["planar", "spherical"], [-1, 0])))
    rolling = pf.nonholonomic("rolling", lambda k: k.velocity("b1", (0.1, 0.2, 0.3))[0] - 0.1 * ca.cos(k.t))
    m = m.with_(constraints=[rolling])
    twin = graph_twin(m)
    q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
    here, there = (pf.derivatives(x, at, v, u, by=["q", "v", "u"], backend="numpy") for x, at in ((m, q), (twin.m, twin.q(q))))
    assert twin.m.nq != m.nq
    for name in PARTS:
        for by in ("q", "v", "u"):
            a, b = (getattr(getattr(x, name), by) for x in (here, there))
            close(b, a, 1e-10, f"{name} by {by}", max(1.0, np.abs(a).max()))


def test_refusals():
    m = pendulum()
    with pytest.raises(ModelError, match="by: 'x' is unknown"):
        pf.derivatives(m, [0.0], by=["x"])
    with pytest.raises(ModelError, match="of: 'x' is unknown"):
        pf.derivatives(m, [0.0], of=["x"])
    with pytest.raises(ModelError, match="dq has shape"):
        pf.calculus.jvp(m, [0.0], dq=[1.0, 2.0])
    with pytest.raises(ModelError, match="threads must be a whole number"):
        pf.derivatives(m, [0.0], threads=0)


def test_derivatives_by_the_design_of_an_overconstrained_linkage():
    """Bennett's linkage with longer links or another twist: its loop still closes, and the change of the acceleration is
    the sum of three parts."""
    m, settings = pf.read("zoo:bennett")
    near = pf.assemble(m, settings.q, guess=settings.guess, backend="interpreter").q
    sizes = 4e-3 / 2.0 ** np.arange(3)
    e = np.concatenate([[0.0], sizes, -sizes])

    for i, name in enumerate(m.p_names):
        p = {name: m.p_defaults[i] * (1 + e)}
        q = pf.assemble(m, {m.q_names[0]: near[0]}, guess=dict(zip(m.q_names[1:], near[1:], strict=True)), parameters=p).q
        v = pf.assemble(m, q, v={m.v_names[0]: 1.0}, parameters=p).v
        changes = []
        for x in (q, v, pf.forward_dynamics(m, q, v, parameters=p).v_dot):
            table = list((x[1:4] - x[4:]) / (2 * sizes[:, None]))
            for power in (4, 16):
                table = [(power * b - a) / (power - 1) for a, b in pairwise(table)]
            changes.append(table[0] / m.p_defaults[i])
        d = pf.derivatives(m, q[0], v[0]).v_dot
        close(
            d.parameters[:, i] + d.q @ changes[0] + d.v @ changes[1], changes[2], 1e-8, f"by {name}", np.abs(changes[2]).max()
        )
