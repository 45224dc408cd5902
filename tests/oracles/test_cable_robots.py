"""Three cable robots beside SciPy: tensions within limits, nearest to a wish, and proofs that there are none."""

from __future__ import annotations

from itertools import product

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import pfaffian as pf
from pfaffian.errors import ModelError, RunError
from tests.tolerance import ALGEBRA, close

F = pf.forces
BY_SLSQP = 1e-6
"""Error of SciPy's sequential quadratic programs on problems of this size, relative to the largest tension."""


def planar() -> pf.Mechanism:
    """A plate in a vertical plane on four cables."""
    corners, anchors = [(-0.05, -0.03), (0.05, -0.03), (0.05, 0.03), (-0.05, 0.03)], [(0, 0), (1, 0), (1, 1), (0, 1)]
    ropes = [F.path([("world", (x, 0, z)), ("plate", (a, 0, b))]) for (x, z), (a, b) in zip(anchors, corners, strict=True)]
    winches = [F.winch(f"w{i}", rope, limits=(2, 80)) for i, rope in enumerate(ropes)]
    plane = pf.joint("p", "planar", "world", "plate", axis=(0, -1, 0), placement=(0.5, 0, 0.5))
    return pf.mechanism("planar", [pf.body("plate", 1.0, inertia=0.01)], [plane], actuators=winches)


def spatial() -> pf.Mechanism:
    """A box on eight cables from the corners of a room, crossed so that they hold it in every direction."""
    winches = []
    for i, (x, y, z) in enumerate(product((-1, 1), repeat=3)):
        rope = F.path([("world", (2 * x, 1.5 * y, 1 + z)), ("box", (0.1 * x, -0.15 * y, -0.2 * z))])
        winches.append(F.winch(f"w{i}", rope, limits=(5, 400)))
    free = pf.joint("free", "free", "world", "box", placement=(0, 0, 1))
    return pf.mechanism("spatial", [pf.body("box", 5.0, inertia=(0.1, 0.12, 0.14))], [free], actuators=winches)


def with_pulleys() -> pf.Mechanism:
    """A load in a vertical plane on three cables over pulleys at the ends of arms that swivel."""
    bodies, joints, winches = [pf.body("load", 2.0)], [], []
    joints.append(pf.joint("p", "planar-translation", "world", "load", axis=(0, -1, 0), placement=(0, 0, 1)))
    for i, (x, z) in enumerate([(-1, 2), (1, 2), (0.2, 0)]):
        bodies.append(pf.body(f"arm{i}", 0.2, com=(0.1, 0, 0), inertia=0.001))
        joints.append(pf.joint(f"swivel{i}", "revolute", "world", f"arm{i}", axis=(0, 1, 0), placement=(x, 0, z)))
        turn = F.pulley(f"arm{i}", 0.05, axis=(0, 1 if x < 0 else -1, 0), centre=(0.1, 0, 0))
        rope = F.path([("world", (x, 0, z + 0.5 if z else -0.5)), turn, ("load", (0, 0, 0))])
        winches.append(F.winch(f"w{i}", rope, limits=(1, 200)))
    winches += [pf.actuator(f"hold{i}", f"swivel{i}", limits=(-50, 50)) for i in range(3)]
    return pf.mechanism("with pulleys", bodies, joints, actuators=winches)


ROBOTS = {"planar": (planar, 3), "spatial": (spatial, 60), "with pulleys": (with_pulleys, 60)}
"""Each with the size of accelerations, at which it can follow some and not others [m/s^2, rad/s^2]."""


def poses(m: pf.Mechanism, count: int, within: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    q = np.array([m.neutral()] * count)
    free = [i for i in range(m.nq) if not any(i in range(s.start, s.stop) for s in m.quaternions.values())]
    q[:, free] += within * random.uniform(-1, 1, (count, len(free)))
    return q, within * random.normal(size=(count, m.nv)), random.normal(size=(count, m.nv))


def demands(m: pf.Mechanism, q, v, a) -> tuple[np.ndarray, np.ndarray]:
    """B (runs, nv, nu) and the force (runs, nv) that the inputs must give."""
    T = pf.symbols(m)
    x = ca.SX.sym("a", m.nv)
    f = ca.Function("f", [T.q, T.v, x, T.t, m.p_symbols], [ca.densify(T.B), ca.densify(T.M @ x + T.c - T.f)])
    found = [f(*row, 0.0, []) for row in zip(q, v, a, strict=True)]
    return np.array([np.array(B) for B, _ in found]), np.array([np.array(t).ravel() for _, t in found])


def by_scipy(B, tau, limits, wish) -> np.ndarray:
    """The tensions nearest to a wish."""
    least, *_ = np.linalg.lstsq(B, tau, rcond=None)
    N = np.linalg.svd(B)[2][np.linalg.matrix_rank(B) :].T
    rows = [{"type": "ineq", "fun": lambda y: np.r_[least + N @ y - limits[:, 0], limits[:, 1] - least - N @ y]}]
    found = minimize(lambda y: np.sum((least + N @ y - wish) ** 2), np.zeros(N.shape[1]), constraints=rows, tol=1e-12)
    return least + N @ found.x


@pytest.mark.parametrize("name", ROBOTS)
def test_tensions_are_those_of_scipy_and_proofs_hold(name):
    make, size = ROBOTS[name]
    m = make()
    q, v, a = poses(m, 60, 0.2)
    a, wish = size * a, np.linspace(20, 40, m.nu)
    B, tau = demands(m, q, v, a)
    limits = m.u_limits
    found = pf.inverse_dynamics(m, q, v, a, limits="actuators", wish=wish, beyond="nan")
    some = np.isfinite(found.u).all(axis=1)
    compared = 0
    for i in range(len(q)):
        bounds = [tuple(pair) for pair in limits]
        exists = linprog(np.zeros(m.nu), A_eq=B[i], b_eq=tau[i], bounds=bounds).status == 0
        assert exists == some[i], f"pose {i}"
        if not some[i]:
            c = found.proof[i]
            most = np.where(c > 0, c * limits[:, 1], np.where(c < 0, c * limits[:, 0], 0)).sum()
            needed = c @ np.linalg.lstsq(B[i], tau[i], rcond=None)[0]
            null = np.linalg.svd(B[i])[2][np.linalg.matrix_rank(B[i]) :]
            assert needed > most, f"proof at pose {i}"
            if null.size:
                close(null @ c, np.zeros(len(null)), 1e4 * ALGEBRA, f"proof at pose {i}", np.abs(c).max())
            continue
        u = found.u[i]
        close(B[i] @ u, tau[i], 1e4 * ALGEBRA, f"motion at pose {i}", np.abs(B[i]).sum() * np.abs(u).max())
        assert (u >= limits[:, 0]).all() and (u <= limits[:, 1]).all()
        if compared < 8:
            close(u, by_scipy(B[i], tau[i], limits, wish), BY_SLSQP, f"tensions at pose {i}")
            compared += 1
    assert compared > 3 and not some.all(), "some poses can be held and others cannot"


def test_a_wish_without_limits_is_followed_as_far_as_the_motion_allows():
    m = spatial()
    q, v, a = poses(m, 5)
    B, tau = demands(m, q, v, a)
    wish = {"w0": 100.0, "w5": 30.0}
    u = pf.inverse_dynamics(m, q, v, a, wish=wish, limits=[(-1e6, 1e6)] * 8).u
    wished = np.array([wish.get(n, 0.0) for n in m.u_names])
    for i in range(5):
        least = np.linalg.lstsq(B[i], tau[i] - B[i] @ wished, rcond=None)[0]
        close(u[i], wished + least, 1e5 * ALGEBRA, "nearest to the wish")


def test_where_no_tension_does_the_error_gives_the_proof():
    m = planar()
    with pytest.raises(
        RunError, match=r"no inputs within the limits.*proof: .* w\d .* for all inputs that do, at most .* within"
    ):
        pf.inverse_dynamics(m, m.neutral(), np.zeros(3), [0, 200.0, 0], limits="actuators")
    with pytest.raises(RunError, match=r"\(run 1\)"):
        pf.inverse_dynamics(m, m.neutral(), np.zeros(3), [[0, 0, 0], [0, 200.0, 0]], limits="actuators")
    with pytest.raises(ModelError, match="beyond"):
        pf.inverse_dynamics(m, m.neutral(), np.zeros(3), np.zeros(3), limits="actuators", beyond="ignore")
    with pytest.raises(ModelError, match="none of them is finite"):
        free = m.with_(actuators=[F.winch(w.name, w.path, limits=(-np.inf, np.inf)) for w in m.actuators])
        pf.inverse_dynamics(free, m.neutral(), np.zeros(3), np.zeros(3), limits="actuators")


def test_a_machine_without_spare_inputs_has_a_proof_too():
    rod, hinge = pf.body("rod", 2.0, com=(1, 0, 0), inertia=0.1), pf.joint("h", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("arm", [rod], [hinge], actuators=[pf.actuator("t", "h", gear=2.0, limits=(-5, 5))])
    with pytest.raises(RunError, match=r"proof: - 1 t is 9\.81 for all inputs that do, at most 5 within"):
        pf.inverse_dynamics(m, [0.0], [0.0], [0.0], limits="actuators")
    lifted = pf.inverse_dynamics(m, [1.2], [0.0], [0.0], limits="actuators")
    close(lifted.u, [-9.81 * np.cos(1.2)], ALGEBRA, "torque") and lifted
    assert not lifted.proof.any()
