"""Filter of position and attitude: late fixes, the ring buffer of samples, and the closed loop. [konz25 5.4.3 - 5.4.5]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, estimation
from tests.refused import refusals
from tests.tolerance import close

T, G = 0.005, 9.81
UP = np.array([0, 0, 1.0])


def filtering(n, gains=(1.0, 0.575, -0.025)):
    """Function (memory, a_M, w, position, q, delay, fresh) -> (estimate, next memory), with a buffer of n samples."""
    sizes = (13, estimation.SAMPLE_SIZE * n, 2, 3, 3, 3, 4, 1, 1)
    x = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    now = estimation.fix_step(estimation.FlightMemory(*x[:3]), estimation.Fix(*x[5:]), T, gains)
    f = ca.Function("f", x, [*now.flight, now.q, *estimation.imu_step(now, x[3], x[4], T)])
    return lambda *a: [np.array(y).ravel() for y in f(*a)]


NO_FIX = (np.zeros(3), [0, 0, 0, 1.0], 0.0, 0.0)


class Flown:
    """A motion that the filter's steps describe exactly: accelerations and rates are constant over each period."""

    def __init__(self, seconds, seed, turning, tilted=False):
        random = np.random.default_rng(seed)
        n = round(seconds / T) + 1
        self.a = 2.0 * random.normal(size=(n, 3)) + G * UP
        self.w = turning * random.normal(size=(n, 3))
        tilt = np.array([0.1, -0.3, 0.5, np.sqrt(0.65)]) if tilted else np.array([0.0, 0, 0, 1])
        self.x = [(np.array([0.3, -0.1, 0.8]), np.array([0.5, -0.4, 0.2]), tilt)]
        for k in range(n - 1):
            self.x.append(self.at_in(k, T))

    def at_in(self, k, h):
        r, v, q = self.x[k]
        turned = q + h * quat_rate(q) @ self.w[k] - h / T * (q @ q - 1) / 2 * q
        bend = matrix((q + turned) / 2) @ self.a[k] - G * UP
        return r + h * v + h**2 / 2 * bend, v + h * bend, turned

    def at(self, t):
        k = int(np.floor(t / T + 1e-9))
        return self.at_in(k, t - k * T) if t - k * T > 1e-12 else self.x[k]


def matrix(q):
    x, y, z, w = q
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def quat_rate(q):
    x, y, z, w = q / 2
    return np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])


def filtered(flown, seconds, n, delays, bias=(0, 0, 0), every=20, known=False, start=None):
    """Estimates (r, v, a_B, q) at all samples; a fix arrives every `every` samples, with each of `delays` [s] in turn."""
    f = filtering(n)
    r, _, q = flown.x[0]
    x = list(estimation.flight_memory(start if start is not None else r, q, n, known=known))
    found = []
    for k in range(round(seconds / T)):
        fix = NO_FIX
        delay = delays[k // every % len(delays)]
        if k % every == 0 and k * T > delay:
            r, _, q = flown.at(k * T - delay)
            fix = (r, q, delay, 1.0)
        *estimate, a, b, c = f(*x, flown.a[k] + bias, flown.w[k], *fix)
        found.append(estimate)
        x = [a, b, c]
    return [np.array(y) for y in zip(*found, strict=True)]


DELAYS = [((0.034,), 0.0), ((0.0,), 1.5), ((T,), 1.5), ((0.021, 0.049, 0.034, 0.01), 0.0), ((0.13, 0.16), 1.5)]
"""Delays [s], and the scale of the turning rates [rad/s]: between samples a held attitude is exact only without turning."""


@pytest.mark.parametrize(("delays", "turning"), DELAYS)
def test_delays_do_not_matter_on_exact_data(delays, turning):
    """After two fixes the estimate is exact, however late and irregularly fixes arrive, even later than the next one."""
    seconds = 1.2
    flown = Flown(seconds, 3, turning, tilted=True)
    r, v, a_B, q = filtered(flown, seconds, 40, delays, start=[9.0, 9.0, 9.0])
    begin = 20 * (2 if max(delays) < 0.1 else 3)
    want = [np.array([x[i] for x in flown.x[begin : len(r)]]) for i in range(3)]
    close(r[begin:], want[0], 1e-10, "position")
    close(v[begin:], want[1], 1e-10, "velocity")
    close(q[begin:], want[2], 1e-12, "attitude")
    assert np.abs(a_B[begin:]).max() < 1e-9
    assert np.abs(r[:20] - want[0][0]).max() > 5, "no estimate before the first fix"


def recursion(e):
    """Residual of (5.65) for errors e (n, ...) at the fixes with poles {0, 0.5, 0.9}: z^3 - 1.4 z^2 + 0.45 z."""
    return e[3:] - 1.4 * e[2:-1] + 0.45 * e[1:-2]


def test_a_bias_is_found_exactly():
    """The errors of velocity and bias follow the poles from fix to fix until they vanish."""
    b = np.array([0.3, -0.2, 0.1])
    flown = Flown(30.0, 4, 0.0, tilted=True)
    _, v, a_B, _ = filtered(flown, 30.0, 1, (0.0,), bias=b, known=True)
    e_v = np.array([v[k] - flown.x[k][1] for k in range(20, len(v), 20)])
    e_b = a_B[20::20] - b
    assert np.abs(recursion(e_v)).max() < 1e-11 and np.abs(recursion(e_b)).max() < 1e-10
    assert np.abs(e_b[0]).max() > 0.29 and 0.85 < np.linalg.norm(e_b[40]) / np.linalg.norm(e_b[39]) < 0.95
    late, v, a_B, _ = filtered(flown, 30.0, 8, (0.034,), bias=b)
    close(a_B[-1], b, 1e-8, "bias")
    close(late[-1], flown.x[len(v) - 1][0], 1e-9, "position, 34 ms late")
    close(v[-1], flown.x[len(v) - 1][1], 1e-9, "velocity")


def test_useless_fixes_are_ignored():
    flown = Flown(1.0, 5, 0.0)
    whole = filtered(flown, 0.5, 8, (0.034,), known=True)
    f = filtering(8)
    x = list(estimation.flight_memory(*flown.x[0][::2], 8, known=True))
    for k in range(100):
        r, _, q = flown.at(max(k * T - 0.034, 0))
        fix = (r, q, 0.034, 1.0) if k % 20 == 0 and k else (r + 5.0, q, 0.041, 1.0) if k in (40, 61) else NO_FIX
        if k == 30:
            fix = (r, q, 0.04, 1.0)
        *estimate, a, b, c = f(*x, flown.a[k], flown.w[k], *fix)
        x = [a, b, c]
        np.testing.assert_array_equal(estimate[0], whole[0][k])


def body():
    free = pf.joint("free", "free", "world", "body")
    return pf.actuate_all(pf.mechanism("body", [pf.body("body", 1.2, inertia=0.02)], [free]))


LATE = 0.035
TILT = np.array([0.1, -0.3, 0.5, np.sqrt(0.65)])
R_TILT = Rotation.from_quat(TILT).as_matrix()
BIAS = np.array([0.2, -0.3, 0.1])


def flying(s):
    """Law that holds a position by the estimate; forces act one period late, and the accelerometer measures those in force."""
    place = s["place"]
    memory = estimation.FlightMemory(*(s[name] for name in estimation.FlightMemory._fields))
    arrived = ca.logic_and(s["tick"] == 0, s.terms.t > T)
    memory = estimation.fix_step(memory, estimation.Fix(place[:3], place[3:], LATE, arrived), T)
    r, v, _ = memory.flight
    wish = ca.DM([0, 0, G]) - 4.0 * (r - ca.DM([0.5, 0, 1])) - 3.0 * v
    force = 1.2 * (ca.DM(R_TILT.T) @ wish)
    after = estimation.imu_step(memory, s["force"] / 1.2 + ca.DM(BIAS), ca.DM.zeros(3), T)
    d_next = {**after._asdict(), "force": force, "tick": ca.if_else(s["tick"] > 18, 0, s["tick"] + 1)}
    return Command(
        ca.vertcat(force, 0, 0, 0), signals={"place seen": r, "speed seen": v, "bias": memory.flight.a_B}, d_next=d_next
    )


def test_the_filter_serves_in_a_sampled_loop():
    """Errors follow the poles from fix to fix, whatever the law does with the estimate, and the bias is found."""
    r0, hold = np.array([0.1, 0.2, 0.3]), 1.2 * G * R_TILT.T @ UP
    start = estimation.flight_memory(r0 + [0.02, 0, -0.01], TILT, 8, known=True)
    measure = {"place": control.sensor(lambda k: k.q, period=0.1, phase=0.1 - LATE)}
    law = control.discrete(
        flying, T, latency=1, state={**start._asdict(), "force": hold, "tick": 0.0}, measure=measure, start=[*hold, 0, 0, 0]
    )
    q = np.concatenate([r0, TILT])
    run = pf.run(body(), q, np.array([0.1, 0, -0.1, 0, 0, 0]), duration=6.0, step=T, control=law, backend="interpreter")
    assert int(run.status) == 0
    at = np.arange(20, 1180, 20)
    seen = {name: run[name].values[at + 1] for name in ("place seen", "speed seen", "bias")}  # delivered one period later
    e_r, e_b = seen["place seen"] - run.q.values[at, :3], seen["bias"] - BIAS
    e_v = seen["speed seen"] - run.v.values[at, :3] @ R_TILT.T
    for e in (e_r, e_v, e_b):
        assert np.abs(recursion(e)).max() < 1e-11 and np.abs(e[0]).max() > 1e-3
        assert np.abs(e[-1]).max() < 0.02 * np.abs(e[:3]).max()


def test_an_accelerometer_measures_all_but_gravity():
    """On the hand of an arm with moments at its joints and a wall, against the derivative of the hand's velocity."""
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0, 0), 0.1) for i in range(2)]
    joints = [pf.joint(f"j{i}", "revolute", "b0" if i else "world", f"b{i}", axis=(0, 1, 0.3 * i), placement=(i, 0, 0))
              for i in range(2)]  # fmt: skip
    wall = pf.holonomic("wall", lambda k: k.position("b1", (1, 0, 0))[0])
    m, point = pf.actuate_all(pf.mechanism("arm", bodies, joints, constraints=[wall])), (0.3, 0.1, -0.2)

    def felt(T, motion):
        k = T.kinematics
        v = k.velocity("b1", point)
        a = ca.jtimes(v, k.q, k.q_dot) + ca.jtimes(v, k.v, motion.v_dot)
        return k.rotation("b1").T @ (a + ca.DM([0, 0, G]))

    def law(s):
        signals = {"measured": estimation.accelerometer(s, "b1", point), "world": estimation.accelerometer(s, "world")}
        return Command(ca.DM([2.0, -0.5]), signals=signals)

    law = control.discrete(law, T, start=[2.0, -0.5])
    run = pf.run(
        m,
        {"j0": 0.7},
        {"j0": 0.2},
        duration=0.1,
        step=T,
        control=law,
        outputs={"felt": pf.of_motion(felt)},
        backend="interpreter",
    )
    close(run.measured.values, run.felt.values, 1e-12, "at all instants")
    close(run.world.values[0], G * UP, 1e-15, "of the world")
    assert np.ptp(run.felt.values, axis=0).min() > 1e-3


def test_the_clock_offset_and_each_delay_are_found():
    random = np.random.default_rng(8)
    delays = 0.034 + 0.008 * random.uniform(-1, 1, size=4000)
    offset, found = None, []
    for k, delay in enumerate(delays):
        stamped = 0.1 * k - 17.3
        received = 0.1 * k + delay
        offset, seen = estimation.clock_step(received - stamped - 0.034 if offset is None else offset, received, stamped)
        found.append(seen)
    assert abs(offset - 17.3) < 3 * 0.008 / np.sqrt(3) * np.sqrt(0.01 / 1.99)
    off = np.array(found) - delays
    assert np.ptp(off) < 0.012 and np.abs(off[1000:]).max() < 2e-3 and np.corrcoef(found[1000:], delays[1000:])[0, 1] > 0.98
    x = [ca.SX.sym(n) for n in ("offset", "received", "stamped")]
    f = ca.Function("f", x, list(estimation.clock_step(*x)))
    close(
        [float(y) for y in f(2.0, 7.0, 4.0)],
        [0.99 * 2 + 0.01 * (3 - 0.034), 3 - (0.99 * 2 + 0.01 * (3 - 0.034))],
        1e-15,
        "(5.53)",
    )


WRONG = {
    "shapes": (lambda: estimation.flight_memory([0, 0], TILT), "are needed"),
    "a quaternion": (lambda: estimation.flight_memory([0, 0, 0], [0, 0, 0, 2.0]), "of length one"),
    "no samples": (lambda: estimation.flight_memory([0, 0, 0], TILT, 0), "samples must be a whole number"),
}


test_wrong_starts_are_named = refusals(WRONG)
