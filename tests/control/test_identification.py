"""Identified parameters of machines, from synthetic measurements with known true values. [konz25 5.2.3]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.signal import savgol_filter

import pfaffian as pf
from pfaffian import identification as found_by
from pfaffian.control.identified_parameters import QUANTILE, LinearEquations, least_squares
from tests.refused import refusals
from tests.tolerance import close

P = np.array([2.45e-7 / 3.6e-5, 0.0105 / 3.6e-5, 0.005 / 3.6e-5])


def inside(estimates, truth):
    """Fraction of the estimates whose interval contains the true value, for each parameter."""
    return np.mean([np.abs(e.value - truth) < e.half_width for e in estimates], axis=0)


def test_intervals_contain_the_truth_as_often_as_stated():
    random, x = np.random.default_rng(3), np.array([2.0, -1.0, 0.5])
    A = random.normal(size=(60, 3))
    often = inside([least_squares(LinearEquations(A, A @ x + 0.1 * random.normal(size=60))) for _ in range(2000)], x)
    assert np.abs(often - 0.95).max() < 0.02
    exact = least_squares(LinearEquations(A, A @ x))
    close(exact.value, x, 1e-13, "without noise")
    b = A @ x + random.normal(size=60)
    e = least_squares(LinearEquations(A, b))
    close(e.value, np.linalg.lstsq(A, b, rcond=None)[0], 1e-12, "as NumPy")
    left = A @ e.value - b
    close(e.covariance, left @ left / 57 * np.linalg.inv(A.T @ A), 1e-12, "covariance")
    close(e.deviation, [np.sqrt(left @ left / 57)], 1e-13, "deviation")


def test_rows_of_different_kinds_are_weighted():
    """Rows with errors of 1 beside rows with errors of 1e-3: the estimate is as accurate as the better rows allow."""
    random, x, sizes = np.random.default_rng(4), np.array([2.0, -1.0]), np.array([1.0, 1e-3])
    A = random.normal(size=(80, 2, 2))
    estimates = [least_squares(LinearEquations(A, A @ x + sizes * random.normal(size=(80, 2)))) for _ in range(800)]
    assert np.abs(inside(estimates, x) - 0.95).max() < 0.03
    spread = np.std([e.value for e in estimates], axis=0)
    best = np.sqrt(np.diag(np.linalg.inv(np.einsum("nrk,nrl,r->kl", A, A, sizes**-2))))
    close(spread, best, 0.1, "spread")
    close(np.mean([e.deviation for e in estimates], axis=0), sizes, 0.02, "deviations")


def test_intervals_of_correlated_errors():
    """Errors are a sliding mean of independent ones, on a slow signal: intervals are right only if `correlated` is given."""
    random, x, n, m = np.random.default_rng(5), np.array([1.5, 0.4]), 2000, 11
    t = np.arange(n) * 0.01
    A = np.column_stack([np.sin(2 * t), np.cos(0.7 * t)])
    noisy = [A @ x + np.convolve(random.normal(size=n + m - 1), np.full(m, 0.1), "valid") for _ in range(400)]
    without = inside([least_squares(LinearEquations(A, b)) for b in noisy], x)
    found = [least_squares(LinearEquations(A, b), correlated=6 * m) for b in noisy]
    assert without.max() < 0.6 and np.abs(inside(found, x) - 0.95).max() < 0.06
    spread = QUANTILE * np.std([e.value for e in found], axis=0)
    close(np.mean([e.half_width for e in found], axis=0), spread, 0.15, "half-widths")


def noisy_line(random, n, noise):
    """Two noisy measurements of a column of unit size, and b, which is 3 times that column plus noise."""
    a = random.normal(size=n)
    return [(a + noise * random.normal(size=n))[:, None] for _ in range(2)], 3 * a + 0.1 * random.normal(size=n)


def test_noise_in_the_rows_biases_unless_instruments_are_given():
    """Noise leaves the fraction signal^2 / (signal^2 + noise^2), however many rows there are, and the interval misses it."""
    random = np.random.default_rng(6)
    plain, with_instruments = [], []
    for _ in range(400):
        (a, other), b = noisy_line(random, 500, 0.5)
        plain.append(least_squares(LinearEquations(a, b)))
        with_instruments.append(least_squares(LinearEquations(a, b), instruments=LinearEquations(other, b)))
    close(np.mean([e.value for e in plain]), 3 / 1.25, 0.01, "biased value")
    assert inside(plain, 3)[0] == 0 and abs(inside(with_instruments, 3)[0] - 0.95) < 0.03
    close(np.mean([e.value for e in with_instruments]), 3, 0.01, "with instruments")


def test_derivatives_are_savitzky_and_golay_s():
    random, T = np.random.default_rng(7), 0.01
    x = random.normal(size=(60, 2))
    for i, d in enumerate(found_by.smoothed(x, T, 11)):
        close(d, savgol_filter(x, 11, 3, deriv=i, delta=T, axis=0)[5:-5], 1e-12, f"derivative {i}")
    close(found_by.smoothed(x, T, 7, 2)[2], savgol_filter(x, 7, 2, deriv=2, delta=T, axis=0)[3:-3], 1e-12, "of order two")
    t = np.arange(60) * T
    close(found_by.smoothed(t**3, T, 7)[1], 3 * t[3:-3] ** 2, 1e-11, "of its own order exactly")


def test_a_propeller_on_its_bench():
    """The current has steps and waves; the exact rates of the speed get noise."""
    random = np.random.default_rng(1)
    t = np.arange(0, 20, 0.005)
    i = 4 + 2 * np.sin(0.9 * t) + np.sign(np.sin(2.3 * t))
    w = solve_ivp(lambda s, w: P[1] * np.interp(s, t, i) - P[2] - P[0] * w**2, (0, 20), [300.0], t_eval=t, rtol=1e-8).y[0]
    rate = P[1] * i - P[2] - P[0] * w**2
    e = least_squares(found_by.propeller_bench(w, rate + 20 * random.normal(size=t.size), i))
    assert (np.abs(e.value - P) < 1.5 * e.half_width).all() and (e.half_width < 0.02 * P).all()
    close(least_squares(found_by.propeller_bench(w, rate, i)).value, P, 1e-9, "without noise")
    close(least_squares(found_by.thrust_scale(w, 1.44e-5 * w**2)).value, [1.44e-5], 1e-14, "kF")


def test_a_servo_on_its_bench():
    p, t = np.array([1400 / 0.9, 66 / 0.9]), np.arange(0, 4, 0.01)
    goal = 0.4 * np.sin(3 * t) + 0.2 * np.sign(np.sin(2 * t))
    a, a1 = np.sin(2 * t), 2 * np.cos(2 * t)
    e = least_squares(found_by.servo_bench(a, a1, p[0] * (goal - a) - p[1] * a1, goal))
    close(e.value, p, 1e-11, "(p0, p1)")


PENDULUM = {"mass": 1.001, "distance": 0.4, "length": 1.5}
INERTIA, DAMPING = 0.0307, 2e-3


def swinging(inertia, damping, t, start=0.8):
    """Angle, rate and acceleration of a body that hangs on two strings."""
    m, d, h, g = *PENDULUM.values(), 9.81

    def bend(a, rate):
        return -(damping * rate + m * g * d**2 * np.sin(a) / (4 * np.sqrt(h**2 - d**2 / 2 * (1 - np.cos(a))))) / inertia

    a, rate = solve_ivp(lambda s, x: [x[1], bend(*x)], (t[0], t[-1]), [start, 0.0], t_eval=t, rtol=1e-10, atol=1e-12).y
    return a, rate, bend(a, rate)


def test_a_body_on_two_strings():
    """Inertia and damping without noise, and T38: the frequency of small turns."""
    t = np.arange(0, 30, 0.01)
    a, rate, bend = swinging(INERTIA, DAMPING, t)
    bench = found_by.bifilar_pendulum(a, rate, bend, **PENDULUM)
    assert bench.names == ("Theta", "Upsilon")
    close(least_squares(bench).value, [INERTIA, DAMPING], 1e-12, "without noise")
    small, _, _ = swinging(INERTIA, 0.0, t, start=1e-3)
    passages = t[:-1][(small[:-1] > 0) & (small[1:] <= 0)]
    m, d, h = PENDULUM.values()
    close(
        2 * np.pi * (len(passages) - 1) / (passages[-1] - passages[0]),
        np.sqrt(m * 9.81 * d**2 / (4 * h * INERTIA)),
        1e-3,
        "T38",
    )
    a, rate, bend = swinging(INERTIA, DAMPING, t, start=0.1)
    short = found_by.bifilar_pendulum(a, rate, bend, mass=1.0, distance=0.4, length=0.5)
    assert np.abs(least_squares(short).value[0]) > INERTIA, "shorter strings pull harder"
    with pytest.raises(pf.ModelError, match="cannot turn so far"):
        found_by.bifilar_pendulum([3.1] * 5, [0.0] * 5, [0.0] * 5, mass=1.0, distance=0.5, length=0.1)


def test_noisy_accelerations_bias_the_inertia_of_a_pendulum():
    """The inertia is too small by the share of the noise; a longer window removes most of it, a simulated instrument all."""
    random, T = np.random.default_rng(2), 0.01
    t = np.arange(0, 30, T)
    a, rate, bend = swinging(INERTIA, DAMPING, t)
    found, windows, noise = {"short": [], "long": [], "simulated": []}, {"short": 5, "long": 31}, 0.05
    like = None
    for _ in range(15):
        gyro = rate + noise * random.normal(size=t.size)
        for name, window in windows.items():
            _, a2, _ = found_by.smoothed(gyro, T, window)
            inner = slice(window // 2, -(window // 2))
            rows = found_by.bifilar_pendulum(a[inner], gyro[inner], a2, **PENDULUM)
            found[name].append(least_squares(rows, correlated=4 * window))
            if name == "short":
                guess = found[name][-1].value
                if like is None:  # simulated with the estimated inertia, 20 % too small
                    like = found_by.bifilar_pendulum(*(x[inner] for x in swinging(*guess, t)), **PENDULUM)
                found["simulated"].append(least_squares(rows, instruments=like, correlated=4 * window))
    mean = {name: np.mean([e.value[0] for e in x]) for name, x in found.items()}
    for name, window in windows.items():
        fit = np.linalg.pinv(np.vander(np.arange(window) - window // 2, 4, increasing=True))[1] / T
        left = 1 / (1 + noise**2 * (fit**2).sum() / (bend**2).mean())
        close(mean[name], INERTIA * left, 5e-3, f"biased by the {name} window, {left:.3f}")
    assert mean["short"] < 0.9 * INERTIA and inside(found["short"], [INERTIA, DAMPING])[0] == 0
    assert mean["long"] > 0.99 * INERTIA
    close(mean["simulated"], INERTIA, 0.02, "with instruments")
    assert inside(found["simulated"], [INERTIA, DAMPING])[0] >= 0.8


def flown(n, seed):
    """(machine, q, v, v_dot) of the whole quadcopter at random states, v_dot by its forward dynamics."""
    random, m = np.random.default_rng(seed), pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
    q = np.array([pf.random_configuration(m, random) for _ in range(n)])
    v = np.column_stack([3 * random.normal(size=(n, 6)), random.uniform(300, 600, (n, 4))])
    return m, q, v, pf.forward_dynamics(m, q, v, u=0.05 + 0.1 * random.normal(size=(n, 4))).v_dot


def quadcopter_numbers():
    x = pf.multicopters.QUADCOPTER
    (d_x, d_z), l = x["drag"], x["drag_height"]
    return np.r_[x["mass"] * np.array(x["com"]), x["inertia"], d_x, d_z, d_x * l, x["turning_drag"], x["bias"]]


def test_a_flight_of_the_quadcopter():
    random, x, truth = np.random.default_rng(5), pf.multicopters.QUADCOPTER, quadcopter_numbers()
    m, q, v, bend = flown(400, 5)
    numbers = {name: x[name] for name in ("azimuths", "spins", "arm", "rotor", "thrust", "torque")}
    wrench = found_by.propeller_wrench(v[:, 6:], bend[:, 6:], v[:, 3:6], **numbers)
    up = pf.forward_kinematics(m, q, bodies=["body"])["body"].rotation[:, 2, :]
    state = (v[:, :3], v[:, 3:6], bend[:, :3], bend[:, 3:6], up)
    close(least_squares(found_by.flight(*state, wrench, mass=x["mass"])).value, truth, 1e-9, "without noise")
    sizes = np.array([0.3, 0.3, 0.3, 0.01, 0.01, 0.01])
    estimates = [
        least_squares(found_by.flight(*state, wrench + sizes * random.normal(size=wrench.shape), mass=x["mass"]))
        for _ in range(16)
    ]
    assert abs(inside(estimates, truth).mean() - 0.95) < 0.04
    close(np.mean([e.deviation for e in estimates], axis=0), sizes, 0.1, "deviations")
    still = [np.tile(y[:1], (400, 1)) for y in (*state, wrench)]
    with pytest.raises(pf.ModelError, match=r"do not tell .* apart"):
        least_squares(found_by.flight(*still, mass=x["mass"]))


def tilting_numbers(name):
    """Parameters of the tricopter of table 5.1, or of another craft with four arms."""
    if name == "tricopter":
        return dict(pf.multicopters.TRICOPTER)
    return {
        "azimuths": [0.4, 1.8, 3.5, 5.0], "spins": [1, -1, 1, -1], "mass": 2.3, "com": (0.01, -0.02, 0.015),
        "inertia": (0.05, 0.06, 0.09, 1e-3, -3e-3, 2e-3), "arm": 0.35, "height": 0.03, "tilt": (0.5, 4e-3), "rotor": 8e-5,
        "thrust": 1.9e-5, "torque": 3.5e-7, "drag": (0.4, 0.6), "drag_height": 0.02, "turning_drag": (0.02, 0.03),
        "bias": (0.3, -0.2, 0.1, 0.02, 0.03, -0.01),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["tricopter", "four arms"])
def test_a_flight_of_a_craft_with_tilting_arms(name):
    """All twenty parameters, among them the height of the mass centre, from accelerations of the whole machine."""
    x, random = tilting_numbers(name), np.random.default_rng(8)
    m, n = pf.multicopters.multicopter(name, **x), len(x["spins"])
    q = np.array([pf.random_configuration(m, random) for _ in range(300)])
    q[:, 7 : 7 + n] = random.uniform(-0.8, 0.8, (300, n))
    v = np.column_stack(
        [2 * random.normal(size=(300, 6)), 3 * random.normal(size=(300, n)), random.uniform(300, 700, (300, n))]
    )
    u = np.column_stack([200 * random.normal(size=(300, n)), 0.1 * random.normal(size=(300, n))])
    bend = pf.forward_dynamics(m, q, v, u=u).v_dot
    numbers = {k: x[k] for k in ("azimuths", "spins", "arm", "height", "rotor", "thrust", "torque")}
    tilts = np.stack([q[:, 7 : 7 + n], v[:, 6 : 6 + n], bend[:, 6 : 6 + n]])
    wrench = found_by.propeller_wrench(
        v[:, 6 + n :], bend[:, 6 + n :], v[:, 3:6], tilts=tilts, tilt_inertia=x["tilt"][1], **numbers
    )
    up = pf.forward_kinematics(m, q, bodies=["body"])["body"].rotation[:, 2, :]
    rows = found_by.flight(v[:, :3], v[:, 3:6], bend[:, :3], bend[:, 3:6], up, wrench, mass=x["mass"])
    (d_x, d_z), l = x["drag"], x["drag_height"]
    truth = np.r_[x["mass"] * np.array(x["com"]), x["inertia"], d_x, d_z, d_x * l, x["turning_drag"], x["bias"]]
    close(least_squares(rows).value, truth, 1e-8, "all numbers", 0.1)


def test_wrench_of_leaning_propellers():
    """Wrench of eight leaning propellers, against the rate of the body's momentum from forward dynamics without gravity."""
    random = np.random.default_rng(12)
    x = {"azimuths": np.arange(8) * np.pi / 4, "spins": [1, -1] * 4, "arm": 0.4, "rotor": 5e-5, "thrust": 1.5e-5,
         "torque": 3e-7, "leans": random.uniform(-0.5, 0.5, 8), "height": np.tile([0.03, -0.02], 4)}  # fmt: skip
    m = pf.multicopters.multicopter("eight", **x, mass=3.0, inertia=(0.1, 0.12, 0.2), gravity=0.0)
    q, v = np.r_[np.zeros(6), 1.0, np.zeros(8)], np.r_[random.normal(size=6), random.uniform(300, 600, 8)]
    bend = pf.forward_dynamics(m, q, v, u=0.1 * random.normal(size=8)).v_dot
    numbers = {k: y for k, y in x.items() if k != "leans"}
    f = found_by.propeller_wrench(v[None, 6:], bend[None, 6:], v[None, 3:6], tilts=x["leans"], **numbers)[0]
    I, w = np.diag([0.1, 0.12, 0.2]), v[3:6]
    close(f[:3], 3.0 * (bend[:3] + np.cross(w, v[:3])), 1e-10, "force", 10.0)
    close(f[3:], I @ bend[3:6] + np.cross(w, I @ w), 1e-10, "moment", 1.0)


def test_every_number_that_cannot_be_found_is_named():
    """It is named alone if its column is zero and with others if columns depend on each other; the rest is not named."""
    random = np.random.default_rng(3)
    a, b, c, d = random.normal(size=(4, 50))
    A = np.column_stack([a, 0 * a, b, a + b, c, 0 * a, d, 1e-3 * c])
    with pytest.raises(pf.ModelError) as caught:
        least_squares(LinearEquations(A, a, tuple("klmnopqr")))
    text = str(caught.value)
    assert "do not depend on l, p;" in text and "do not tell k, m, n apart" in text and "do not tell o, r apart" in text
    assert " q" not in text
    x = pf.multicopters.QUADCOPTER
    still = [np.tile(random.normal(size=(1, k)), (40, 1)) for k in (3, 3, 3, 3, 3, 6)]
    still[0] = still[1] = still[2] = still[3] = np.zeros((40, 3))
    with pytest.raises(pf.ModelError) as caught:
        least_squares(found_by.flight(*still, mass=x["mass"]))
    hovering = {"Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "d_x", "d_z", "d_x l_z", "Ups_x", "Ups_z"}
    alone = set(str(caught.value).split("do not depend on ")[1].split(";")[0].split(", "))
    assert alone == hovering


def test_turning_drag_is_about_the_origin():
    """Drag acts at l, with a turning drag there: about the origin the turning drag is larger by d_x l_z^2, not d_z l_z^2."""
    d, l, turning = np.diag([0.30, 0.30, 0.36]), np.array([0, 0, 0.12]), np.diag([2e-3, 2e-3, 10e-3])
    random, m = np.random.default_rng(9), 1.001

    def at_l(k):
        force = -ca.DM(d) @ (k.rotation("body").T @ k.velocity("body", l))
        return ca.vertcat(force, ca.cross(ca.DM(l), force) - ca.DM(turning) @ k.twist("body")[3:])

    body = pf.body("body", m, inertia=(17.9e-3, 18.0e-3, 30.7e-3))
    joints = [pf.joint("body", "free", "world", "body")]
    machine = pf.mechanism("m", [body], joints, forces=[pf.wrench("drag", "body", at_l, axes="LOCAL")])
    q = np.array([pf.random_configuration(machine, random) for _ in range(60)])
    v = random.normal(size=(60, 6))
    bend = pf.forward_dynamics(machine, q, v, np.zeros((60, 0))).v_dot
    up = pf.forward_kinematics(machine, q, bodies=["body"])["body"].rotation[:, 2, :]
    rows = found_by.flight(v[:, :3], v[:, 3:], bend[:, :3], bend[:, 3:], up, np.zeros((60, 6)), mass=m)
    found = dict(zip(found_by.FLIGHT, least_squares(rows).value, strict=True))
    close(found["Ups_x"], 2e-3 + 0.30 * 0.12**2, 1e-9, "Ups_x about the origin")
    close([found["Ups_z"], found["d_x l_z"]], [10e-3, 0.30 * 0.12], 1e-9, "the others")


A3 = np.arange(24.0).reshape(4, 2, 3)
WRONG = {
    "shapes": (lambda: least_squares(LinearEquations([1.0, 2.0], [1.0, 2.0])), r"A \(n, r, k\)"),
    "names": (lambda: least_squares(LinearEquations(np.eye(3)[:, :2], [1, 2, 3], ("a",))), "2 names"),
    "rows": (lambda: least_squares(LinearEquations([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])), "more than 2 rows"),
    "alike": (
        lambda: least_squares(LinearEquations([[1, 1, 0], [2, 2, 0], [3, 3, 1], [4, 4, 5]], range(4), tuple("abc"))),
        "tell a, b apart",
    ),
    "instruments": (
        lambda: least_squares(LinearEquations(A3, np.zeros((4, 2))), instruments=LinearEquations(A3[:3], None)),
        r"of the shape of A, \(4, 2, 3\)",
    ),
    "correlated": (lambda: least_squares(LinearEquations(A3, np.zeros((4, 2))), correlated=5), "from 1 to 4"),
    "a window": (lambda: found_by.smoothed(np.zeros(9), 0.1, 4), "odd window"),
    "a long window": (lambda: found_by.smoothed(np.zeros(9), 0.1, 11), "up to the 9 samples"),
    "signals": (lambda: found_by.propeller_bench([1.0, 2.0], [1.0, 2.0], [1.0]), r"of one length are needed.*current \(1,\)"),
    "a scale": (lambda: found_by.thrust_scale([1.0, 2.0], [1.0]), r"^thrust_scale: arrays .*thrust \(1,\)"),
    "a flight": (lambda: found_by.flight(*[np.zeros((4, 3))] * 5, np.zeros((4, 3)), mass=1.0), r"wrench \(n, 6\)"),
    "propellers": (
        lambda: found_by.propeller_wrench(
            np.zeros((4, 3)), np.zeros((4, 3)), np.zeros((4, 3)), [0, 1], [1, 1], arm=1, rotor=1, thrust=1, torque=1
        ),
        r"\(n, rho\)",
    ),
}


test_wrong_measurements_are_named = refusals(WRONG)


def test_parameters_are_named():
    x = np.ones(4)
    assert found_by.thrust_scale(x, x).names == ("kF",)
    assert found_by.propeller_bench(x, x, x).names == ("p1", "p2", "p3")
