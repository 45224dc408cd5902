"""Linearised motion against finite differences on the manifold, closed forms, Pinocchio, and designed error dynamics."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import Phase, assume, given, settings
from scipy.optimize import fsolve, minimize_scalar
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.analysis.linearised import Linearised
from tests.oracles.pinocchio_twin import twin_of
from tests.other_lapack import mix
from tests.random_mechanisms import Case, loops, on_velocity, random_forces, random_tree
from tests.simulate.machines import FOUR_BAR_START, Y, four_bar, pendulum
from tests.tolerance import PEER, close

STEP = 1e-5
DIFFERENCE = 3e-6
"""Tolerance of central differences at that step, for accelerations after a rank decision with conditions up to 1e3."""

EXACT = 1e-9
"""Tolerance of closed forms: eigenvalues of small matrices."""


# -- finite differences on the manifold -------------------------------------------------------------------------------


class Manifold:
    """States of a mechanism in the coordinates of a linearisation, put onto the constraints by NumPy's pseudoinverse."""

    def __init__(self, case: Case, L: Linearised) -> None:
        self.case, self.L = case, L
        parts = {
            "K": lambda T: T.kinematics.kinematic_matrix, "M": lambda T: T.M, "A": lambda T: T.A, "phi": lambda T: T.rows.phi,
            "eta": lambda T: T.rows.eta, "q_dot": lambda T: T.kinematics.q_dot,
            "v_dot": lambda T: pf.FORMULATIONS["control-force" if case.m.servos else "gauss"](T).v_dot,
            "whole": lambda T: ca.DM([[float(i == 0)] for i in T.rows.level] or ca.DM(0, 1)),
        }  # fmt: skip
        self.f = pf.compile_terms(case.m, parts, backend="numpy", lanes=1)
        here = {name: x[0] for name, x in self.at(case.q, case.v).items()}
        n = sum(s.startswith("d") for s in L.states)
        self.to_d = (np.linalg.pinv(here["K"]) @ L.dq[:, :n]).T @ here["M"] @ np.linalg.pinv(here["K"])
        self.to_s = L.dv[:, n : n + sum(s.startswith("s") for s in L.states)].T @ here["M"]

    def at(self, q: np.ndarray, v: np.ndarray, u: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Values of all parts at states (k, n), each as (k, rows, columns)."""
        return self.f.matrices(np.atleast_2d(q), np.atleast_2d(v), self.case.u if u is None else u, t=self.case.t)

    def rates(self, x: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
        """x_dot (k, n) at the states of x (k, n)."""
        q, v = self.case.q + x @ self.L.dq.T, self.case.v + x @ self.L.dv.T
        for _ in range(3):
            now = self.at(q, v)
            q = q - (now["K"] @ np.linalg.pinv(now["A"] * now["whole"], rcond=1e-6) @ now["phi"])[..., 0]
        now = self.at(q, v)
        v = v - (np.linalg.pinv(now["A"], rcond=1e-6) @ now["eta"])[..., 0]
        now = self.at(q, v, u)
        return np.hstack([(self.to_d @ now["q_dot"])[..., 0], (self.to_s @ now["v_dot"])[..., 0]])


def check_by_differences(case: Case) -> Linearised:
    L = pf.linearise(case.m, case.q, case.v, case.u, t=case.t)
    on, n, nu = Manifold(case, L), len(L.A), case.m.nu
    both = on.rates(STEP * np.vstack([np.zeros((1, n)), np.eye(n), -np.eye(n)]))
    A = (both[1 : n + 1] - both[n + 1 :]).T / (2 * STEP)
    close(L.A, A, DIFFERENCE, "A by differences", max(np.abs(A).max(initial=0), 1.0))
    pushed = on.rates(np.zeros((2 * nu, n)), case.u + np.vstack([np.eye(nu), -np.eye(nu)]))
    B = (pushed[:nu] - pushed[nu:]).T / 2
    close(L.B, B, DIFFERENCE, "B by differences", max(np.abs(B).max(initial=0), 1.0))
    close(L.drift, both[0], EXACT, "drift", max(np.abs(L.drift).max(initial=0), 1.0))
    check_parts(L, on.at(case.q, case.v)["M"][0])
    return L


def check_parts(L: Linearised, M: np.ndarray) -> None:
    """Compare the participation of each velocity in a mode: v_i (M v)_i, summed over two instants a quarter period apart."""
    for part, value, w in zip(L.participation.T, L.eigenvalues, L.vectors.T, strict=True):
        moved = L.dv @ w
        if value != 0 and np.abs(moved).max() > 1e-6:
            energy = sum(x * (M @ x) for x in (moved.real, moved.imag))
            close(part, energy / energy.sum(), 1e-7, "parts in a mode", 1.0)


def same(found: np.ndarray, expected: np.ndarray, tolerance: float, what: str) -> None:
    """Compare complex numbers by `close`, with conjugates in any order."""
    found, expected = np.sort_complex(found), np.sort_complex(expected)
    close(np.stack([found.real, found.imag]), np.stack([expected.real, expected.imag]), tolerance, what)


def clear(case: Case) -> bool:
    """Whether a case is far from singular and not stiff, so that differences are accurate; vanishing rows do not count."""
    parts = {"A": lambda T: T.A, "v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot, "M": lambda T: T.M}
    x = pf.compile_terms(case.m, parts, backend="numpy", lanes=1)(case.q, case.v, case.u, t=case.t)
    A = np.atleast_2d(x["A"])
    lengths = np.linalg.norm(A, axis=1)
    s = np.linalg.svd(A[lengths > 1e-6] / lengths[lengths > 1e-6, None], compute_uv=False)
    fair = ((s > 0.05) | (s < 1e-8)).all() and ((lengths > 0.05) | (lengths < 1e-8)).all()
    return bool(fair and np.abs(x["v_dot"]).max() < 300 and np.linalg.cond(np.atleast_2d(x["M"])) < 1e3)


@settings(max_examples=4, phases=(Phase.explicit, Phase.generate))  # shrinking a failure would take minutes
@given(loops(most=3))
def test_random_mechanisms_by_differences(case):
    assume(clear(case))
    check_by_differences(case)


def test_every_kind_of_row_at_once():
    """With quaternions, a row written twice, a driven and a rolling row, in motion: fewer speeds than displacements."""
    random = np.random.default_rng(11)
    m = random_forces(random, random_tree(random, ["free", "spherical", "revolute"], [-1, 0, 1]))
    q = pf.random_configuration(m, random)
    X = pf.forward_kinematics(m, q)["b2"].position
    roll = pf.nonholonomic("roll", lambda k: ca.dot(k.rotation("b0")[:, 0], k.velocity("b0")) - 0.2 * k.q[0])
    drive = pf.holonomic("drive", lambda k: ca.sumsqr(k.position("b2")) - X @ X - ca.sin(k.t))
    m = m.with_(constraints=[drive, roll, pf.holonomic("again", drive.phi)])
    case = Case(m, q, on_velocity(m, q, random.normal(size=m.nv), 0.0), random.normal(size=m.nu), 0.0)
    L = check_by_differences(case)
    assert [s[0] for s in L.states] == ["d"] * 9 + ["s"] * 8
    assert L.units == ("kg^0.5 m",) * 9 + ("kg^0.5 m/s",) * 8
    assert not L.equilibrium and "no equilibrium" in str(L)
    np.testing.assert_allclose(np.linalg.pinv(L.dq[:, :9]) @ L.dq[:, :9], np.eye(9), atol=1e-12)


def test_servo_constraints_by_differences():
    """Errors of servo constraints follow the designed dynamics, whatever else the mechanism does."""
    random = np.random.default_rng(2)
    m = random_forces(random, random_tree(random, ["revolute", "revolute", "prismatic"], [-1, 0, 1]))
    q = np.array([1.0, 0.4, 0.2])
    here = pf.forward_kinematics(m, q)["b2"].position[0]
    wall = pf.holonomic("wall", lambda k: k.position("b2")[0] - here)
    target = pf.holonomic("hold", lambda k: k.joint("j2") - 0.5 * k.joint("j1") - 0.1)
    m = m.with_(constraints=[wall, pf.servo(target, ["motor j0"], stiffness=30.0, damping=4.0)])
    case = Case(m, q, on_velocity(m, q, np.array([0.2, 0.5, -0.3]), 0.0), random.normal(size=m.nu), 0.0)
    L = check_by_differences(case)
    motor = L.B[:, m.u_names.index("motor j0")]
    assert len(L.A) == 4 and np.abs(motor).max() < EXACT * np.abs(L.B).max()  # the servo force cancels the motor
    # Without the wall displacements are straight, and in any configuration the error is one of them.
    free = pf.linearise(m.with_(constraints=m.constraints[1:]), q, case.v, case.u)
    found = [np.abs(free.eigenvalues - e).min() for e in np.roots([1, 4, 30])]
    close(found, [0, 0], 1e-8, "designed error dynamics", 1.0)


# -- closed forms -----------------------------------------------------------------------------------------------------


def test_a_pendulum():
    m = pendulum(length=2.0, damping=0.3)
    L = pf.linearise(m)
    close(L.A, [[0, 1], [-9.81 / 2, -0.3 / 4]], EXACT, "A")
    close(L.B, [[0], [1 / 2]], EXACT, "B: torque over the root of the inertia")
    close(L.frequencies, [np.sqrt(9.81 / 2)] * 2, EXACT, "frequency")
    close(L.dampings, [0.3 / 4 / 2 / np.sqrt(9.81 / 2)] * 2, EXACT, "damping ratio")
    close(L.dq, [[0.5, 0]], EXACT, "a unit of displacement in radians")
    close(L.dv, [[0, 0.5]], EXACT, "a unit of speed")
    assert np.abs(L.A @ L.vectors - L.vectors * L.eigenvalues).max() < EXACT
    assert (L.states, L.inputs, L.input_units) == (("d0", "s0"), ("motor",), ("N m",))
    assert L.equilibrium and "at an equilibrium" in str(L) and "damping   0.0169" in str(L)
    up = pf.linearise(m, [np.pi])
    assert up.equilibrium and up.eigenvalues[0] > 0 > up.eigenvalues[1] and up.dampings.tolist() == [-1, 1]
    same(up.eigenvalues, np.roots([1, 0.075, -9.81 / 2]), EXACT, "upright")
    assert not pf.linearise(m, [0.3]).equilibrium
    assert pf.linearise(m, [0.3], u={"motor": 2 * 9.81 * np.sin(0.3)}).equilibrium
    assert not pf.linearise(m, v=[1e-3]).equilibrium
    close(pf.linearise(m, [0.3], [0.7]).drift, [1.4, -9.81 * np.sin(0.3) - 0.3 * 0.7 / 2], EXACT, "drift")


def test_modes_of_a_floating_body_neither_grow_nor_decay():
    """A free body without gravity has twelve zero eigenvalues, which rounding would split."""
    hull = pf.body("hull", 2.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    m = pf.mechanism("hull", [hull], [pf.joint("free", "free", "world", "hull")], gravity=(0, 0, 0))
    L = pf.linearise(m)
    assert L.equilibrium and not L.eigenvalues.any() and not L.dampings.any() and len(L.A) == 12
    swings = pf.linearise(pendulum())
    assert not np.signbit(swings.dampings).any() and "-0.0000" not in str(swings), "a damping of zero has no sign"
    tilt = np.array([0.3, -0.5, 0.7])  # a turntable about the direction of gravity, up to rounding
    table = pf.joint("table", "revolute", "world", "hull", axis=tilt, placement=pf.pose((0.3, 0.1, 0.2), rpy=(0.1, 0.2, 0.3)))
    weight = -9.81 * Rotation.from_euler("xyz", (0.1, 0.2, 0.3)).as_matrix() @ tilt / np.linalg.norm(tilt)
    spun = pf.linearise(pf.mechanism("table", [hull], [table], gravity=weight), [0.7])
    assert 0 < np.abs(spun.A[1, 0]) < 1e-14 and not spun.eigenvalues.any()
    turning = pf.linearise(m, v={"free.wx": 1.0})
    assert not turning.equilibrium and np.abs(turning.eigenvalues).max() > 0.1


def test_a_parameter_and_time():
    l = pf.Parameter("l", 1.0, "m")
    bob = pf.body("bob", 1.0, com=(0, 0, -l))
    m = pf.mechanism("p", [bob], [pf.joint("j", "revolute", "world", "bob", axis=Y)], parameters=[l])
    close(pf.linearise(m, parameters={"l": 4.0}).frequencies, [np.sqrt(9.81 / 4)] * 2, EXACT, "a longer one")
    driven = m.with_(constraints=[pf.holonomic("drive", lambda k: k.joint("j") - k.t)])
    L = pf.linearise(driven, [0.5], [1.0], t=0.5)
    assert L.A.shape == (0, 0) and L.eigenvalues.shape == (0,) and L.equilibrium


def test_a_four_bar_by_its_one_coordinate():
    """At rest at its lowest point: frequency from curvature of the potential and inertia along the crank's angle."""
    m = four_bar().with_(actuators=[])

    def closing(angle: float, x: np.ndarray) -> list:
        end = angle + x[0]
        return [0.3 * np.cos(angle) + 0.8 * np.cos(end) - 0.9 - 0.7 * np.cos(x[1]),
                0.3 * np.sin(angle) + 0.8 * np.sin(end) - 0.7 * np.sin(x[1])]  # fmt: skip

    def along(angle: float) -> np.ndarray:
        """The configuration with the crank at an angle, on the hanging branch."""
        return np.array([angle, *fsolve(lambda x: closing(angle, x), [-0.5, 2.0], xtol=1e-12)])

    def potential(angle: float) -> float:
        q = along(angle)
        x = [1.3 * 0.15 * -np.sin(angle), 1.7 * -np.sin(q[2]) * 0.35]
        return 9.81 * (sum(x) + 1.8 * (-0.3 * np.sin(angle) - 0.4 * np.sin(angle + q[1])))

    q = along(minimize_scalar(potential, bracket=(1.0, 1.5), tol=1e-12).x)
    h, a = 1e-3, q[0]
    V = pf.energy(m, np.array([along(a + s * h) for s in (-2, -1, 0, 1, 2)])).potential
    slope = (V @ [1, -8, 0, 8, -1]) / (12 * h)
    bend = V @ [-1, 16, -30, 16, -1] / (12 * h * h)
    rates = (along(a + h) - along(a - h)) / (2 * h)
    inertia = rates @ pf.mass_matrix(m, q) @ rates
    assert abs(slope) < 1e-6
    L = pf.linearise(m, along(a))
    assert L.equilibrium and len(L.A) == 2
    close(L.frequencies, [np.sqrt(bend / inertia)] * 2, 1e-5, "frequency of the four-bar")
    twice = m.with_(
        constraints=[
            *m.constraints,
            *[type(c)("again", *list(vars(c).values())[1:7]) for c in four_bar("spherical").constraints],
        ]
    )
    close(np.sort(pf.linearise(twice, along(a)).frequencies), L.frequencies, 1e-9, "redundant rows change nothing")


def test_a_sleigh():
    """Chaplygin's sleigh goes straight ahead: turning decays at m a u / (I + m a^2). Three displacements, two speeds."""
    mass, a, I, u = 3.0, 0.4, 0.5, 2.0
    sled = pf.body("sled", mass, com=(a, 0, 0), inertia=I)
    blade = pf.nonholonomic("blade", lambda k: k.joint_rate("plane")[1])
    m = pf.mechanism("sleigh", [sled], [pf.joint("plane", "planar", "world", "sled")], constraints=[blade])
    for sign in (1, -1):
        L = pf.linearise(m, v=[sign * u, 0, 0])
        assert L.states == ("d0", "d1", "d2", "s0", "s1")
        expected = -sign * mass * a * u / (I + mass * a * a)
        assert np.abs(L.eigenvalues - expected).min() < EXACT
        assert not L.equilibrium
        close(L.drift[3:], [0, 0], EXACT, "a steady motion", 1.0)
        close(np.linalg.norm(L.drift[:3]), np.sqrt(mass) * u, EXACT, "speed ahead")


# -- repeated eigenvalues ---------------------------------------------------------------------------------------------


def hull_with_wheels(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """A floating hull with four wheels that spin freely and a mast on a spring, in units of length and mass."""
    L, M = length, mass
    bodies = [pf.body("hull", 50 * M, com=(0, 0, 0.1 * L), inertia=(3 * M * L * L, 4 * M * L * L, 5 * M * L * L))]
    joints = [pf.joint("float", "free", "world", "hull")]
    for i, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        bodies.append(pf.body(f"wheel {i}", 2 * M, inertia=(0.02 * M * L * L, 0.04 * M * L * L, 0.02 * M * L * L)))
        joints.append(pf.joint(f"hub {i}", "revolute", "hull", f"wheel {i}", axis=Y, placement=(x * L, y * L, 0)))
    bodies.append(pf.body("mast", M, com=(0, 0, L), inertia=0.1 * M * L * L))
    joints.append(pf.joint("foot", "revolute", "hull", "mast", axis=(1, 0, 0), stiffness=20 * M * L * L))
    return pf.mechanism("hull with wheels", bodies, joints, gravity=(0, 0, 0))


def ball_on_a_floor(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """A ball that rolls without slip: five displacements, three speeds."""
    r, M = 0.3 * length, mass
    ball = pf.body("ball", 2 * M, inertia=0.05 * M * length**2)

    def slip(k):
        return (k.velocity("ball") + ca.cross(k.rotation("ball") @ k.twist("ball")[3:], ca.vertcat(0, 0, -r)))[:2]

    rows = [pf.holonomic("floor", lambda k: k.position("ball")[2] - r), pf.nonholonomic("roll", slip)]
    joint = pf.joint("ball", "free", "world", "ball", placement=(0, 0, r))
    return pf.mechanism("ball", [ball], [joint], constraints=rows, gravity=(0, 0, -9.81 * length))


def ring(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """A floating square of four links with parallel hinges, overconstrained, whose closure is written twice."""
    L, M = length, mass
    inertia = (0.01 * M * L * L, 0.1 * M * L * L, 0.1 * M * L * L)
    bodies = [pf.body(f"link {i}", M, com=(L / 2, 0, 0), inertia=inertia) for i in range(4)]
    turn = pf.pose((L, 0, 0), rpy=(0, np.pi / 2, 0))
    joints = [pf.joint("base", "free", "world", "link 0")]
    joints += [pf.joint(f"h{i}", "revolute", f"link {i - 1}", f"link {i}", axis=Y, placement=turn) for i in (1, 2, 3)]
    rows = [pf.closure(f"c{k}", "revolute", "link 3", "link 0", axis=Y, placement_a=(L, 0, 0)) for k in (0, 1)]
    return pf.mechanism("ring", bodies, joints, constraints=rows, gravity=(0, 0, 0))


def spherical_pendulum(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    bob = pf.body("bob", mass, com=(0, 0, -length), inertia=0.1 * mass * length**2)
    joint = pf.joint("ball", "spherical", "world", "bob", damping=0.2 * mass * length**2)
    return pf.mechanism("spherical pendulum", [bob], [joint], gravity=(0, 0, -9.81 * length))


def critical(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """Two boxes with critical damping, two chains of two at -2 1/s, and one that is free to slide."""
    rails = [pf.joint(f"x{i}", "prismatic", "world", f"b{i}", stiffness=4 * mass, damping=4 * mass) for i in range(2)]
    bodies = [pf.body(f"b{i}", mass) for i in range(3)]
    free = pf.joint("x2", "prismatic", "world", "b2", axis=(1, 0, 0))
    return pf.mechanism("boxes", bodies, [*rails, free], gravity=(0, 0, 0))


def flier(length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """A flier in hover that carries a bar by four rods: a tilt accelerates it sideways, so x and y are ends of chains of four.
    LAPACK splits them into growing rates of 2e-4 1/s and gives parallel vectors for the others."""
    L, M = length, mass
    bodies = [pf.body("body", 2 * M, inertia=(0.02 * M * L * L, 0.03 * M * L * L, 0.04 * M * L * L)),
              pf.body("bar", 0.9 * M, inertia=(0.001 * M * L * L, 0.02 * M * L * L, 0.02 * M * L * L))]  # fmt: skip
    joints = [pf.joint(b.name, "free", "world", b.name, placement=(0, 0, z)) for b, z in zip(bodies, (0, -L), strict=True)]
    rods = [
        pf.closure(f"rod {x} {y}", "distance", "body", "bar", placement_a=(0.3 * x * L, 0.3 * y * L, 0),
                   placement_b=(0.5 * x * L, 0, 0), length=L * np.sqrt(0.2**2 + 0.3**2 + 1))
        for x in (1, -1) for y in (1, -1)
    ]  # fmt: skip
    lift = pf.wrench("lift", "body", lambda k: [0, 0, 2.9 * M * 9.81 * L, 0, 0, 0], axes="LOCAL")
    return pf.mechanism("flier", bodies, joints, constraints=rods, forces=[lift], gravity=(0, 0, -9.81 * L))


REPEATED = {
    hull_with_wheels: [(6, 4, (2,) * 10), (0, 0, (1,)), (0, 0, (1,))],
    ball_on_a_floor: [(5, 0, (2, 2, 2, 1, 1))],
    ring: [(6, 1, (2,) * 7)],
    flier: [(4, 1, (4, 4, 2, 2, 2)), (0, 0, (1,)), (0, 0, (1,))],
    spherical_pendulum: [(1, 0, (1,)), (0, 0, (1, 1)), (0, 0, (1, 1)), (0, 0, (1,))],
    critical: [(0, 1, (2,)), (0, 0, (2, 2))],
}
"""Machine -> rigid motions, other free motions and chains of each different eigenvalue."""


@pytest.mark.parametrize("make", REPEATED, ids=lambda make: make.__name__)
def test_repeated_eigenvalues_in_any_unit(make):
    """Rigid motions drift: a displacement costs nothing, and a speed changes it, so that they come in chains of two. The spins
    of a ball about its contact and about the direction in which it does not roll are displacements without a speed."""
    L = pf.linearise(make())
    assert [(x.rigid, x.free, x.chains) for x in L.modes] == REPEATED[make] and L.clear
    assert (L.eigenvalues[: sum(REPEATED[make][0][2])] == 0).all()
    for x in L.modes:
        E = x.vectors[:, : len(x.chains)]
        assert np.abs(L.A @ E - x.value * E).max() < EXACT and np.linalg.svd(E, compute_uv=False).min() > 1 - EXACT
        spanned = x.vectors @ (x.vectors.conj().T @ L.A @ x.vectors)
        assert np.abs(L.A @ x.vectors - spanned).max() < EXACT, "an invariant subspace"
        assert (f"{x.count}-fold" in x.words) == (x.count > 1) and ("defective" in x.words) == x.defective
    np.testing.assert_allclose(L.participation.sum(axis=0), 1, rtol=EXACT)
    for length, mass in ((1e-6, 1.0), (1e6, 1e-6)):
        other = pf.linearise(make(length, mass))
        assert [x.words for x in other.modes] == [x.words for x in L.modes] and other.clear and other.equilibrium
        close(np.abs(other.eigenvalues - L.eigenvalues), 0 * L.frequencies, EXACT, "eigenvalues", 1.0)
        close(other.participation, L.participation, EXACT, "parts", 1.0)
        close(np.abs(other.vectors - L.vectors), np.zeros(L.A.shape), 1e-8, "vectors", 1.0)


@pytest.mark.parametrize("make", REPEATED, ids=lambda make: make.__name__)
def test_modes_do_not_depend_on_the_basis_of_lapack(make, monkeypatch):
    m = make()
    L = pf.linearise(m)
    expected, text = (L.eigenvalues, L.vectors, L.participation), str(L)
    mix(monkeypatch)
    other = replace(L)  # without what it has computed
    for x, y in zip((other.eigenvalues, other.vectors, other.participation), expected, strict=True):
        close(np.abs(x - y), np.zeros(y.shape), 1e-8, "modes", 1.0)
    assert str(pf.linearise(m)).replace("-0i", "+0i") == text.replace("-0i", "+0i")


def test_rigid_motions_of_a_floating_chain_share_by_their_subspace():
    """The shares of six rigid motions follow from the 6 x 6 inertia of the whole machine; each column is the whole subspace."""
    random = np.random.default_rng(3)
    tree = random_tree(random, ["free", "revolute", "spherical"], [-1, 0, 1])
    stiff = [replace(j, stiffness=ca.SX(50.0), rest=ca.SX(0), damping=ca.SX(0)) for j in tree.joints[1:2]]
    stiff += [replace(tree.joints[2], stiffness=ca.SX(0), damping=ca.SX(0))]
    free = replace(tree.joints[0], stiffness=ca.SX(0), damping=ca.SX(0))
    m = tree.with_(joints=[free, *stiff], gravity=(0, 0, 0))
    L = pf.linearise(m)
    mode = L.modes[0]
    assert (mode.value, mode.rigid, mode.free, mode.chains) == (0, 6, 3, (2,) * 9)
    M = pf.mass_matrix(m)
    still = np.eye(m.nv)[:, [i for i, name in enumerate(m.v_names) if name != "j1"]]  # the spring holds j1 alone
    Q = still @ np.linalg.inv(np.linalg.cholesky(still.T @ M @ still)).T
    close(mode.share, (Q * (M @ Q)).sum(axis=1) / 9, EXACT, "the mean over a basis of the subspace")
    for column in L.participation.T[:18]:
        close(column, mode.share, 0.0, "each column")
    assert f"18-fold, {mode.rigid} rigid motions, {mode.free} free motions, defective: 9 chains of 2" in str(L)


def test_a_slow_motion_beside_a_stiff_spring_is_not_zero():
    """A pendulum of 5 rad/s on a foundation of 1e5 rad/s; and a law's states in units of their own."""
    base, bob = pf.body("base", 100.0), pf.body("bob", 1e-3, com=(0, 0, -9.81 / 25))
    joints = [pf.joint("bed", "prismatic", "world", "base", axis=(1, 0, 0), stiffness=100.0 * 1e10),
              pf.joint("hinge", "revolute", "base", "bob", axis=Y)]  # fmt: skip
    L = pf.linearise(pf.mechanism("pendulum on a bed", [base, bob], joints))
    close(L.frequencies[:2], [5, 5], 1e-6, "slow")
    assert L.modes[0].words == "" and L.clear

    def with_filter(size: float) -> Linearised:
        def law(T, z, w, y):
            return control.Command(-z / size - T.v[0], size * T.q[0] - 0.5 * z)

        return pf.linearise(pendulum(length=9.81), control=control.Control(law, z=(0.0,)))

    for size in (1e-9, 1e9):
        same(with_filter(size).eigenvalues, with_filter(1.0).eigenvalues, EXACT, "a law's state in another unit")
        assert with_filter(size).clear


def test_a_rate_that_rounding_may_hide_is_told():
    """Squares of rates below about 1e-13 of the largest cannot be told from the rounding of A."""
    for rate, clear in ((1.0, True), (0.04, False), (0.02, False), (0.0, True)):
        bodies = [pf.body("slow", 1.0), pf.body("fast", 1.0)]
        springs = {"slow": rate**2, "fast": 1e10}
        joints = [pf.joint(name, "prismatic", "world", name, stiffness=k) for name, k in springs.items()]
        near = pf.linearise(pf.mechanism("two", bodies, joints, gravity=(0, 0, 0)))
        assert near.clear is clear and ("unclear: rounding hides" in str(near)) is not clear
        assert (near.eigenvalues[:2] == 0).all() == (rate**2 < 1e-13 * 1e10)


def test_a_state_in_motion_is_no_equilibrium_in_any_unit():
    for length in (1e-6, 1.0, 1e6):
        slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        joints = [slide, pf.joint("hinge", "revolute", "box", "rod", axis=Y)]
        bodies = [pf.body("box", 1.0), pf.body("rod", 1.0, com=(0, 0, -length))]
        m = pf.mechanism("box", bodies, joints, gravity=(0, 0, 0))
        assert pf.linearise(m).equilibrium and not pf.linearise(m, v={"x": 1e-3 * length}).equilibrium
        assert pf.linearise(m, v={"x": 1e-8 * length}).equilibrium


# -- other engines ----------------------------------------------------------------------------------------------------


def test_a_steady_motion_is_told_from_a_passing_instant():
    """A bob that circles at its angle keeps its rates; one that passes its lowest point has none but changes them."""
    shaft, arm = pf.joint("phi", "revolute", "world", "shaft"), pf.joint("theta", "revolute", "shaft", "bob", axis=(0, -1, 0))
    m = pf.mechanism("circling", [pf.body("shaft", 1.0, inertia=0.1), pf.body("bob", 1.0, com=(0, 0, -0.5))], [shaft, arm])
    circling = pf.linearise(m, {"theta": np.arccos(9.81 / 0.5 / 36)}, {"phi": 6.0})
    assert "in steady motion" in str(circling) and not circling.equilibrium
    for state in (({}, {"theta": 1.0}), ({"theta": 0.3}, {"phi": 6.0})):
        assert "no equilibrium: drifts" in str(pf.linearise(m, *state))


def test_a_tree_agrees_with_pinocchio():
    """Derivatives of Pinocchio's articulated-body algorithm, in the coordinates of x."""
    random = np.random.default_rng(6)
    kinds = ["revolute", "prismatic", "revolute", "revolute"]
    tree = random_tree(random, kinds, [-1, 0, 0, 2])
    nothing = dict.fromkeys(("stiffness", "rest", "damping"), ca.SX(0))  # Pinocchio's algorithm has none
    plain = tree.with_(joints=[replace(j, **nothing) for j in tree.joints])
    m, w = pf.actuate_all(plain), twin_of(plain)
    q, v, u = pf.random_configuration(m, random), random.normal(size=4), random.normal(size=4)
    pin.computeABADerivatives(w.model, w.data, w.q(q), w.v(v), w.v(u))
    turned = np.ix_(w.order, w.order)
    L = pf.linearise(m, q, v, u)
    Z = L.dv[:, 4:]
    close(Z @ L.A[4:, :4] @ np.linalg.inv(L.dq[:, :4]), w.data.ddq_dq[turned], PEER, "d v_dot / d q")
    close(Z @ L.A[4:, 4:] @ np.linalg.inv(Z), w.data.ddq_dv[turned], PEER, "d v_dot / d v")
    M = np.triu(w.data.Minv) + np.triu(w.data.Minv, 1).T
    close(Z @ L.B[4:], M[turned], PEER, "d v_dot / d u")
    close(L.A[:4, 4:], np.eye(4), EXACT, "displacements follow speeds")


# -- under a law ------------------------------------------------------------------------------------------------------


def test_a_law_gives_its_designed_eigenvalues():
    """e_ddot + G_D e_dot + G_P e = 0; the inputs are those of the law and a wrench from outside."""
    m = four_bar().with_(forces=[pf.wrench("push", "coupler")])
    start = pf.run(m, FOUR_BAR_START, duration=0.0, backend="interpreter")["q"].values[0]
    law = control.projected(control.joints("a"), control.set_point([start[0]]), stiffness=40.0, damping=6.0)
    L = pf.linearise(m, start, control=law)
    same(L.eigenvalues, np.roots([1, 6, 40]), 1e-8, "designed")
    assert L.equilibrium and L.inputs == m.wrench_names and L.B.shape == (2, 6)
    assert L.input_units == ("N", "N", "N", "N m", "N m", "N m")
    assert np.abs(L.B[1, [0, 2, 4]]).min() > 1e-3 and np.abs(L.B[:, [1, 3, 5]]).max() < 1e-12
    followed = control.projected(control.joints("a"), control.sampled(["a"]), stiffness=40.0, damping=6.0)
    F = pf.linearise(m, start, u={"a": start[0]}, control=followed)
    assert F.inputs == ("a", "a'", "a''", *m.wrench_names) and F.input_units[:3] == ("1", "1", "1")
    close(F.B[1, :3] / F.B[1, 2], [40, 6, 1], 1e-8, "effect of the reference")
    assert pf.linearise(m, start, u={"a": start[0], "push.fz": 1.0}, control=followed).equilibrium is False


def test_integrals_of_a_law_are_states():
    """A mass on a rail under a PID law: the closed loop has the roots of its polynomial of third degree."""
    mass = pf.body("b", 2.0)
    m = pf.mechanism(
        "mass", [mass], [pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))], actuators=[pf.actuator("f", "x")]
    )

    def law(terms, z, w, reaction):
        x, v = terms.q[0], terms.v[0]
        return control.Command(2.0 * (-11 * x - 6 * v - 6 * z), x)

    L = pf.linearise(m, control=control.Control(law, z=(0.0,)))
    assert L.states == ("d0", "s0", "z0") and L.units[2] == "1" and L.equilibrium
    same(L.eigenvalues, np.array([-1, -2, -3]), EXACT, "roots of (s + 1)(s + 2)(s + 3)")
    off = pf.linearise(m, control=control.Control(law, z=(0.0,)), z=[0.5])
    close(off.drift, [0, -6 * 0.5 * np.sqrt(2), 0], EXACT, "drift by the integral")
    moved = pf.linearise(m, [0.25], control=control.Control(law, z=(-0.25 * 11 / 6,)))
    close(moved.drift, [0, 0, 0.25], EXACT, "drift of the integral", 1.0)
    assert not moved.equilibrium
    np.testing.assert_allclose(L.participation, 1, rtol=EXACT)
    alone = pf.linearise(m, control=control.Control(lambda T, z, w, y: control.Command(-T.q[0] - T.v[0], -z), z=(0.0,)))
    assert sorted(alone.participation[0]) == [0, 1, 1] and "the law alone" in str(alone)


def test_errors():
    m = four_bar()
    with pytest.raises(pf.ModelError, match=r"off the constraints: row 'c\.v"):
        pf.linearise(m, {"a": 0.1})
    with pytest.raises(pf.ModelError, match="control: a control law is needed, got 3"):
        pf.linearise(m, control=3)
    with pytest.raises(pf.ModelError, match="one state at a time"):
        pf.linearise(pendulum(), [[0.1], [0.2]])
    held = control.projected(control.joints("pivot"), control.set_point([0.1]), stiffness=4.0, damping=2.0)
    with pytest.raises(pf.ModelError, match="u, inputs of the law: there are none, so leave them out"):
        pf.linearise(pf.actuate_all(pendulum()), u=[0.0], control=held)
    with pytest.raises(pf.ModelError, match=r"z has shape \(1,\): \(0,\) is needed"):
        pf.linearise(pendulum(), z=[1.0])
    slack = pendulum().with_(
        forces=[pf.spring("s", "world", "bob", stiffness=1.0, rest=0.5, point_a=(0, 0, -1), point_b=(0, 0, -1))]
    )
    with pytest.raises(pf.ModelError, match="no derivative here"):
        pf.linearise(slack)


def test_the_printed_text_has_frequency_damping_and_participation():
    """Two equal masses on three equal springs each take half of both modes, with frequencies 1 and sqrt(3) times sqrt(k/m)."""
    k, mass = 8.0, 2.0
    bodies = [pf.body(n, mass) for n in "ab"]
    rails = [pf.joint(f"rail {n}", "prismatic", "world", n, axis=(1, 0, 0), stiffness=k) for n in "ab"]
    link = pf.forces.potential("link", lambda kin: k * (kin.q[0] - kin.q[1]) ** 2 / 2)
    near = pf.linearise(pf.mechanism("two", bodies, rails, forces=[link]))
    np.testing.assert_allclose(near.hertz, np.repeat([2, 2 * np.sqrt(3)], 2) / (2 * np.pi), rtol=EXACT)
    np.testing.assert_allclose(near.participation, 0.5, rtol=EXACT)
    shapes = near.dq @ near.vectors
    assert np.abs(shapes.imag).max() < EXACT, "without damping shapes are real"
    close((shapes[1] / shapes[0]).real, [1, 1, -1, -1], EXACT, "together, and against each other")
    words = str(near).splitlines()
    assert all("rail a 50 %" in line and "rail b 50 %" in line and "damping" in line for line in words[1:])
    assert "0.31831 Hz" in words[1]
