"""Multicopters, compared with the equations of [konz25 5.2] written by hand."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pfaffian as pf
from tests.matrices import hat
from tests.tolerance import close

EXACT = 1e-12
"""Rounding error of a few hundred operations with some cancellation."""

NONE = {"drag": (0, 0), "turning_drag": (0, 0), "bias": np.zeros(6), "friction": 0.0}


def directions(phi, theta):
    """The direction vectors H1 to H4 of each arm, as columns (3, n), for azimuths phi and tilt angles theta."""
    c, s, ct, st, o = np.cos(phi), np.sin(phi), np.cos(theta), np.sin(theta), 0 * np.asarray(theta)
    return [np.array(h) for h in ([c, s, o], [c * st, s * st, o], [s * st, -c * st, ct], [s * ct, -c * ct, -st])]


def numbers(x):
    Ixx, Iyy, Izz, Ixy, Ixz, Iyz = x["inertia"]
    return np.array(x["com"]), np.array([[Ixx, Ixy, Ixz], [Ixy, Iyy, Iyz], [Ixz, Iyz, Izz]]), np.array(x["spins"])


def by_hand(x, R, theta, xi):
    """M, c and the applied force of [konz25 (5.5)-(5.9)]: weight, drag, propellers, biases and friction."""
    (s, I, eps), phi, n = numbers(x), np.array(x["azimuths"]), len(x["spins"])
    H1, H2, H3, H4 = directions(phi, theta)
    m, P, (total, coupled), E = x["mass"], x["rotor"], x["tilt"] or (0.0, 0.0), np.diag(eps)
    O, one = np.zeros((3, n)), np.eye(n)
    M = np.block([
        [m * np.eye(3), m * hat(s).T, O, O],
        [m * hat(s), I, coupled * H1, P * H3 @ E],
        [O.T, coupled * H1.T, total * one, 0 * one],
        [O.T, P * E @ H3.T, 0 * one, P * one],
    ])  # fmt: skip
    v, w, rate, spin = xi[:3], xi[3:6], xi[6 : 6 + n], xi[6 + n :]
    p_v, p_w = m * (v - hat(s) @ w), (M @ xi)[3:6]
    c = np.concatenate([
        np.cross(w, p_v),
        np.cross(v, p_v) + np.cross(w, p_w) + P * H4 @ (rate * eps * spin),
        -P * (eps * (H4.T @ w)) * spin,
        P * (eps * (H4.T @ w)) * rate,
    ])  # fmt: skip
    (d_x, d_z), l, (u_x, u_z) = x["drag"], hat([0, 0, x["drag_height"]]), x["turning_drag"]
    D = np.diag([d_x, d_x, d_z])
    f = -np.block([[D, D @ l.T], [l @ D, np.diag([u_x, u_x, u_z])]]) @ xi[:6] + x["bias"]
    fall = R.T @ [0, 0, -9.81]
    f += np.concatenate([m * fall, m * hat(s) @ fall])
    push, turn, kF, kT = H3, x["arm"] * H4 + x["height"] * H2, x["thrust"], x["torque"]
    f += np.vstack([kF * push, kF * turn - kT * H3 @ E]) @ spin**2
    return M, c, np.concatenate([f, 0 * rate, -kT * spin**2 - x["friction"]])


def state(m, random, tilting):
    q = pf.random_configuration(m, random)
    n = (m.nv - 6) // (2 if tilting else 1)
    q[7 : 7 + n if tilting else 7] = random.uniform(-1, 1, n if tilting else 0)
    v = np.concatenate([random.normal(size=6), random.normal(size=n if tilting else 0), random.uniform(300, 600, n)])
    K = pf.forward_kinematics(m, q, bodies=["body"])["body"].rotation
    return q, v, np.array(K), (q[7 : 7 + n] if tilting else np.zeros(n)), n


def random_machine(random):
    n = 5
    return {
        "azimuths": random.uniform(0, 6, n), "spins": random.choice([-1, 1], n),
        "mass": 1.3, "com": 0.02 * random.normal(size=3), "inertia": (0.05, 0.06, 0.08, 1e-3, -2e-3, 3e-3),
        "arm": 0.3, "height": 0.02, "tilt": (0.4, 1e-3), "rotor": 4e-5, "thrust": 1.4e-5, "torque": 2.5e-7, "friction": 4e-3,
        "drag": (0.2, 0.4), "drag_height": 0.05, "turning_drag": (0.02, 0.03), "bias": random.normal(size=6),
    }  # fmt: skip


def leaning_machine(random):
    """Eight propellers on four arms, in pairs one above the other, each leaning about its arm by a different angle."""
    x = random_machine(random) | {"azimuths": np.repeat(random.uniform(0, 6, 4), 2), "spins": [1, -1, -1, 1] * 2}
    return x | {"tilt": None, "leans": random.uniform(-0.6, 0.6, 8), "height": np.tile([0.05, -0.03], 4)}


@pytest.mark.parametrize("which", ["tricopter", "quadcopter", "random", "leaning"])
def test_the_equations_agree_with_the_thesis(which):
    random = np.random.default_rng(4)
    made = {"random": random_machine(random), "leaning": leaning_machine(random)}
    x = ({"tricopter": pf.multicopters.TRICOPTER, "quadcopter": pf.multicopters.QUADCOPTER} | made)[which]
    m, tilting = pf.multicopters.multicopter(which, **x), x["tilt"] is not None
    bare = pf.multicopters.multicopter(which, **{**x, **NONE, "gravity": 0.0})
    found = pf.compile_terms(bare, {"M": lambda T: T.M, "c": lambda T: T.c}, backend="numpy", lanes=1)
    assert not pf.formats.unphysical(m)
    for _ in range(4):
        q, v, R, theta, n = state(m, random, tilting)
        theta = np.array(x.get("leans", theta))
        xi = v if tilting else np.concatenate([v[:6], np.zeros(n), v[6:]])
        M, c, f = by_hand(x, R, theta, xi)
        keep = np.arange(6 + 2 * n) if tilting else np.r_[0:6, 6 + n : 6 + 2 * n]
        M, c, f = M[np.ix_(keep, keep)], c[keep], f[keep]
        have = found(q, v)
        close(have["M"], M, EXACT, "M")
        close(have["c"], c, EXACT, "c")
        u = random.normal(size=m.nu)
        expected = np.linalg.solve(M, f + np.r_[np.zeros(6), u] - c)
        got = pf.forward_dynamics(m, q, v, u=u)
        scale = np.abs(np.linalg.inv(M)) @ (np.abs(f) + np.abs(c))
        close(got.v_dot, expected, EXACT, "v_dot", scale.max())


def effect(m):
    """The input matrix B (6, nu) of the body."""
    q = np.zeros(m.nq)
    q[6] = 1
    return pf.compile_terms(m, {"B": lambda T: T.B}, backend="numpy", lanes=1)(q, np.zeros(m.nv))["B"]


SIMPLE = ("azimuths", "spins", "mass", "arm", "height", "thrust", "torque", "drag")


def simple(x, **changes):
    return pf.multicopters.thrust_multicopter("simple", **{k: x[k] for k in SIMPLE} | {"inertia": x["inertia"][:3]} | changes)


def test_input_matrix_of_the_tricopter():
    """The input matrix of [konz25 (5.16c)], with its fifth column corrected."""
    l, h, k, r = 0.240, -6e-3, 2.45e-7 / 1.44e-5, np.sqrt(3)
    B = [
        [0, 0, 0, r / 2, 0, -r / 2],
        [0, 0, 0, -1 / 2, 1, -1 / 2],
        [1, 1, 1, 0, 0, 0],
        [r * l / 2, 0, -r * l / 2, h / 2 + r * k / 2, -h, h / 2 + r * k / 2],
        [-l / 2, l, -l / 2, r * h / 2 - k / 2, -k, k / 2 - r * h / 2],
        [k, -k, -k, -l, -l, -l],
    ]
    m = simple(pf.multicopters.TRICOPTER, tilting=True)
    close(effect(m), B, EXACT, "B")
    theta, F = np.array([0.3, -0.5, 0.2]), np.array([3.0, 4.0, 5.0])
    _, H2, H3, H4 = directions(np.array(pf.multicopters.TRICOPTER["azimuths"]), theta)
    whole = np.vstack([H3, l * H4 + h * H2 - k * H3 * pf.multicopters.TRICOPTER["spins"]]) @ F
    close(effect(m) @ np.r_[F * np.cos(theta), F * np.sin(theta)], whole, EXACT, "thrusts of tilting arms")


def test_input_matrix_of_the_quadcopter():
    l, k = 0.240, 2.45e-7 / 1.44e-5
    B = [[0] * 4, [0] * 4, [1] * 4, [0, l, 0, -l], [-l, 0, l, 0], [-k, k, -k, k]]
    close(effect(simple(pf.multicopters.QUADCOPTER)), B, EXACT, "B")


def test_input_matrix_of_leaning_propellers():
    """The columns H3 and r x H3 - kappa eps H3 of [konz25 (5.9)], with a different height for each propeller."""
    x = leaning_machine(np.random.default_rng(8))
    _, H2, H3, H4 = directions(x["azimuths"], x["leans"])
    moments = x["arm"] * H4 + np.array(x["height"]) * H2 - x["torque"] / x["thrust"] * H3 * x["spins"]
    close(effect(simple(x, leans=x["leans"])), np.vstack([H3, moments]), EXACT, "B")


def test_drag_of_the_simplified_machine_is_isotropic():
    m = simple(pf.multicopters.QUADCOPTER, gravity=0.0)
    v = [1.0, -2.0, 3.0, 0, 0, 0]
    got = pf.forward_dynamics(m, [0, 0, 0, 0, 0, 0, 1.0], v, u=np.zeros(4))
    close(got.v_dot[:3], -(2 * 0.30 + 0.36) / 3 / 1.001 * np.array(v[:3]), EXACT, "drag")


@pytest.mark.parametrize(("which", "varpi"), [("tricopter", 533.0), ("quadcopter", 412.9)])
def test_hover(which, varpi):
    """Propeller speeds at hover, computed from Table 5.1. With them, the machine without biases stays at rest."""
    x = {"tricopter": pf.multicopters.TRICOPTER, "quadcopter": pf.multicopters.QUADCOPTER}[which]
    n = len(x["spins"])
    speed = np.sqrt(x["mass"] * 9.81 / (n * x["thrust"]))
    close(speed, varpi, 1e-4, "speed")
    if which == "quadcopter":
        current = (x["torque"] * speed**2 + x["friction"]) / 0.0105
        close(current, 4.45, 1e-3, "current")
        m = pf.multicopters.multicopter(which, **{**x, "com": (0, 0, 0), "bias": np.zeros(6)})
        q, v = np.zeros(m.nq), np.r_[np.zeros(6), np.full(4, speed)]
        q[6] = 1
        got = pf.forward_dynamics(m, q, v, u=np.full(4, 0.0105 * current))
        assert np.abs(got.v_dot).max() < 1e-10


def fall(m, q, v, **parameters):
    return pf.forward_dynamics(m, q, v, u=np.zeros(m.nu), parameters=parameters).v_dot


def test_numbers_may_be_parameters():
    mass = pf.Parameter("mass", 1.001, "kg")
    m = pf.multicopters.multicopter("quadcopter", **{**pf.multicopters.QUADCOPTER, "mass": mass, "parameters": [mass]})
    q, v = np.r_[np.zeros(6), 1.0, np.zeros(4)], np.zeros(10)
    plain, heavy = (
        pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER),
        {**pf.multicopters.QUADCOPTER, "mass": 2.0},
    )
    close(fall(m, q, v), fall(plain, q, v), EXACT, "default mass")
    close(fall(m, q, v, mass=2.0), fall(pf.multicopters.multicopter("heavy", **heavy), q, v), EXACT, "heavy")


WRONG = {
    "no arms": ({"azimuths": [], "spins": []}, "an azimuth and a spin are needed for each arm"),
    "a spin too many": ({"spins": [1, -1, 1, -1, 1]}, "an azimuth and a spin are needed for each arm"),
    "a spin of -2": ({"spins": [1, -1, 1, -2]}, "spins must be 1"),
    "drag of one number": ({"drag": (1,)}, "drag: 2 numbers"),
    "heights of three": ({"height": (1, 2, 3)}, "height: 4 numbers"),
    "leans of three": ({"leans": (0.1, 0.2, 0.3)}, "an angle is needed for each of 4 arms"),
    "leans of arms that tilt": ({"leans": (0.1,) * 4, "tilt": (0.4, 1e-3)}, "leans are for arms that do not tilt"),
    "bias of three": ({"bias": (1, 2, 3)}, "bias: 6 numbers"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_numbers_are_named(case):
    given, words = WRONG[case]
    with pytest.raises(pf.ModelError, match=words):
        pf.multicopters.multicopter("quadcopter", **{**pf.multicopters.QUADCOPTER, **given})


def test_equal_and_pickled_by_content():
    m, same = (pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER) for _ in range(2))
    other = pf.multicopters.multicopter("quadcopter", **{**pf.multicopters.QUADCOPTER, "drag": (0.31, 0.36)})
    assert m == same == pickle.loads(pickle.dumps(m)) and m != other
