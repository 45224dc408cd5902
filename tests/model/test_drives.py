"""Gears with play, belts, cables and gusts: balances, power, closed forms and refusals."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import forces
from tests.matrices import number
from tests.refused import refusals
from tests.tolerance import close

C = pf.Parameter("c", 0.0)
STIFF = pf.Scheme(integrator="tr-bdf2", iterations=16)
QUIET = {"error_bound": np.inf, "backend": "interpreter"}


def drive(*parts, **more) -> pf.Mechanism:
    wheels = [pf.body("motor", 1.0, inertia=0.5), pf.body("wheel", 1.0, inertia=2.0)]
    joints = [pf.joint(n, "revolute", "world", n) for n in ("motor", "wheel")]
    return pf.mechanism("drive", wheels, joints, forces=parts, parameters=[C], **more)


def geared(**given):
    return drive(
        forces.gear("gear", "wheel", "motor", **{"ratio": -0.5, "stiffness": 80.0, "backlash": 0.06, "damping": C} | given)
    )


@pytest.mark.parametrize("motor", [-0.3, -0.01, 0.05, 0.3])
@pytest.mark.parametrize("speed", [-0.7, 0.4, 9.0])
def test_teeth_push_according_to_their_depth_and_its_rate(motor, speed):
    """The torque on the wheel is k x^n (1 + max(-1, c x_dot)) against x; that on the motor is -ratio times as large."""
    x, x_dot, n, c = 0.02 + 0.5 * motor, 0.3 + 0.5 * speed, 1.5, 2.0
    side = np.sign(x)
    depth = max(0, abs(x) - 0.03)
    torque = -side * 80 * depth**n * (1 + max(-1, c * side * x_dot))
    found = pf.forward_dynamics(geared(exponent=n), [motor, 0.02], [speed, 0.3], parameters={"c": c}).v_dot * [0.5, 2.0]
    close(found, [0.5 * torque, torque], 1e-9, "torques", 1)


def test_a_gear_with_play_exchanges_momentum():
    """After an elastic impact through the play, the speeds are those of two masses, with inertias reduced by the ratio."""
    m = geared(backlash=0.1, stiffness=2e4)
    r = pf.run(m, v={"motor": 1.0}, duration=0.2, step=2e-4, **QUIET)
    a, b = 0.5, 2.0 * 0.25  # inertia at the motor
    close(r.v[-1], [(a - b) / (a + b), -0.5 * 2 * a / (a + b)], 1e-4, "speeds after", 1)


def test_a_belt_swings_at_its_frequency():
    r, s, k = 0.2, 0.1, 1000.0
    near = pf.linearise(drive(forces.belt("belt", "wheel", "motor", radii=(r, s), stiffness=k, damping=3.0)))
    rate = r**2 / 2.0 + s**2 / 0.5
    close(np.sort(near.frequencies)[-1], np.sqrt(k * rate), 1e-9, "frequency")
    close(np.sort(near.dampings)[-1], 3.0 * rate / 2 / np.sqrt(k * rate), 1e-9, "damping")


def test_a_load_on_a_cable_falls_freely_until_it_is_taut():
    fall = pf.joint("fall", "prismatic", "world", "load")
    rope = forces.cable("rope", "world", "load", length=1.0, point_b=(0, 0, 0.1), stiffness=1e5, damping=C)
    m = pf.mechanism("load", [pf.body("load", 2.0)], [fall], forces=[rope], parameters=[C])
    free = pf.run(m, [-0.5], duration=0.3, **QUIET)
    close(free.q[-1], [-0.5 - 9.81 * 0.09 / 2], 1e-12, "falls")
    r = pf.run(m, [-0.5], duration=1.5, scheme=STIFF, parameters={"c": 3.0}, **QUIET)
    close(r.q[-1], [-1.1 - 2 * 9.81 / 1e5], 1e-5, "hangs")
    assert np.diff(r.energy.values.ravel()).max() < 1e-5 * 12 and float(r.q.max()) <= -0.5  # times 12 J from the fall
    assert float(r.v.max()) > 0.05, "it goes slack and rises again"


def test_two_drones_carry_a_load_by_cables():
    """Each drone lifts its weight and half of the load, and they hover with taut cables; one nearer to it has a slack cable."""
    apart, high, k = 0.6, 0.8, 2e4
    bodies = [pf.body("load", 1.0, inertia=0.01), *(pf.body(n, 0.5, inertia=0.005) for n in ("left", "right"))]
    joints = [pf.joint(n, "free", "world", n) for n in ("load", "left", "right")]
    length = float(np.hypot(apart, high))
    stretch = 9.81 / 2 * length / high / k
    given = {"length": length - stretch, "stiffness": k, "damping": 1.0}
    ropes = [forces.cable(f"{n} rope", n, "load", point_b=(x, 0, 0), **given) for n, x in (("left", -0.0), ("right", 0.0))]
    push = 9.81 / 2 * apart / high
    thrust = [pf.wrench(f"{n} thrust", n, [side * push, 0, 9.81, 0, 0, 0]) for n, side in (("left", -1), ("right", 1))]
    m = pf.mechanism("two drones", bodies, joints, forces=[*ropes, *thrust])
    q = {"left.x": -apart, "left.z": high, "right.x": apart, "right.z": high}
    close(pf.forward_dynamics(m, q).v_dot, np.zeros(18), 1e-9, "hovers", 1)
    slack = pf.forward_dynamics(m, q | {"left.x": -apart + 0.2}).v_dot
    close(slack[m.v_slices["left"]][:3], [-push / 0.5, 0, 9.81], 1e-9, "without a taut rope", 10)


def test_a_gust_has_the_variance_and_correlation_of_dryden():
    """The variance, half the sum of the squared amplitudes, is sigma^2; the mean correlation over seeds is exp(-t V / L)."""
    sigma, L, V = np.array([1.5, 1.0, 0.5]), np.array([100.0, 50.0, 20.0]), 8.0
    lags, found = np.array([0.5, 2.0, 5.0]), []
    for seed in range(30):
        g = forces.gust((1, 2, 3), intensity=sigma, length=L, speed=V, seed=seed)
        amplitude, omega = number(g.amplitude), number(g.omega)
        close((amplitude**2).sum(axis=1) / 2, sigma**2, 1e-12, "variance")
        found.append((amplitude[:, :, None] ** 2 / 2 * np.cos(omega[:, :, None] * lags)).sum(axis=1) / sigma[:, None] ** 2)
    close(np.mean(found, axis=0), np.exp(-lags * V / L[:, None]), 0.03, "correlation", 1)
    one, other, same = (forces.gust(intensity=1.0, seed=s) for s in (1, 2, 1))
    assert one == same and one != other


def test_a_gust_moves_a_ball_by_its_drag():
    """The force at time t is the drag of the wind that the gust has at t."""
    wind = forces.gust((3, 0, 0), intensity=(1.0, 0.0, 0.0), seed=4)
    air = forces.drag("air", "ball", 0.2, density=1.0, wind=wind)
    m = pf.mechanism(
        "ball", [pf.body("ball", 1.0, inertia=0.1)], [pf.joint("j", "free", "world", "ball")], forces=[air], gravity=(0, 0, 0)
    )
    amplitude, omega, phase = (number(x) for x in (wind.amplitude, wind.omega, wind.phase))
    wind_x = 3 + (amplitude[0] * np.cos(omega[0] * 0.7 + phase[0])).sum()
    close(pf.forward_dynamics(m, {}, t=0.7).v_dot[:3], [0.1 * abs(wind_x) * wind_x, 0, 0], 1e-9, "force", 1)


def test_each_run_of_a_batch_has_its_own_gust():
    """4096 winds in one call: the variance and correlation of Dryden over the runs, and no two runs alike."""
    wind, sigma, L, V = pf.Parameter("wind", 0), 1.5, 40.0, 8.0
    g = forces.gust((5, 0, 0), intensity=sigma, length=L, speed=V, seed=wind)
    m = pf.mechanism("ball", [pf.body("ball", 1.0)], [pf.joint("j", "translation", "world", "ball")], parameters=[wind])
    at = pf.compile_terms(m, {"wind": lambda T: g(T.kinematics)}, backend="interpreter")
    x, y = (at(t=t, parameters={"wind": np.arange(4096)})["wind"] - [5, 0, 0] for t in (3.0, 5.0))
    assert len(np.unique(x[:, 0])) == 4096
    few = 6 / np.sqrt(4096)  # six standard errors of a mean over the runs
    close(x.mean(axis=0), np.zeros(3), few * sigma, "mean", 1)
    close((x**2).mean(axis=0), np.full(3, sigma**2), 2 * few * sigma**2, "variance", 1)
    close((x * y).mean(axis=0), np.full(3, sigma**2 * np.exp(-2.0 * V / L)), 2 * few * sigma**2, "correlation", 1)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        close(np.mean(x[:, i] * x[:, j]), 0, few * sigma**2, "axes", 1)
    neighbours = np.mean(x[1:] * x[:-1], axis=0)
    close(neighbours, np.zeros(3), 2 * few * sigma**2, "neighbours", 1)


def test_a_seed_gives_the_same_wind_as_a_number_and_as_a_parameter():
    """A run of a batch is repeated alone by its number."""
    wind, how = pf.Parameter("wind", 2), {"intensity": (1.0, 2.0, 0.5), "length": 30.0, "speed": 4.0}
    of_runs, alone = forces.gust((5, 0, 0), seed=wind, **how), [forces.gust((5, 0, 0), seed=n, **how) for n in (0, 1, 12345)]
    m = pf.mechanism("ball", [pf.body("ball", 1.0)], [pf.joint("j", "translation", "world", "ball")], parameters=[wind])
    parts = {"runs": lambda T: of_runs(T.kinematics)} | {str(i): partial(_wind_of, g) for i, g in enumerate(alone)}
    found = pf.compile_terms(m, parts, backend="numpy")(t=3.0, parameters={"wind": [0, 1, 12345]})
    for i in range(3):
        close(found[str(i)][i], found["runs"][i], 1e-10, f"wind of the seed {i}", 1)


def _wind_of(gust, T):
    return gust(T.kinematics)


def wrong_gear(**given):
    return forces.gear("g", "wheel", "motor", **{"ratio": 1.0, "stiffness": 1.0} | given)


def wrong_cable(**given):
    return forces.cable("c", "world", given.pop("b", "wheel"), **{"length": 1.0, "stiffness": 1.0} | given)


def wrong_belt(**given):
    return forces.belt("b", "wheel", "motor", **{"radii": (1, 1), "stiffness": 1.0} | given)


WRONG = {
    "a gear between one joint": (lambda: forces.gear("g", "a", "a", ratio=1.0, stiffness=1.0), "both ends are on 'a'"),
    "a gear on a number": (lambda: forces.gear("g", 1, "a", ratio=1.0, stiffness=1.0), "a joint is given by its name"),
    "a gear without stiffness": (lambda: wrong_gear(stiffness=0.0), "force 'g': stiffness 0 must be above zero"),
    "negative play": (lambda: wrong_gear(backlash=-0.1), "force 'g': backlash"),
    "a ratio in words": (lambda: wrong_gear(ratio="two"), "force 'g': ratio"),
    "a gear with negative damping": (lambda: wrong_gear(damping=-1.0), "force 'g': damping"),
    "an unknown wheel": (lambda: pf.forward_dynamics(drive(forces.belt("b", "x", "y", radii=(1, 1), stiffness=1)), {}), "'x'"),
    "a free joint": (lambda: pf.forward_dynamics(pf.mechanism("m", [pf.body(n, 1.0, inertia=1.0) for n in "ab"], [
        pf.joint("a", "free", "world", "a"), pf.joint("b", "revolute", "world", "b")],
        forces=[forces.gear("g", "a", "b", ratio=1.0, stiffness=1.0)]), {}), "joint 'a' has 7 coordinates"),
    "no length": (lambda: wrong_cable(length=0.0), "force 'c': length 0 must be above zero"),
    "a cable from world to world": (lambda: wrong_cable(b="world"), "both ends are on 'world'"),
    "a cable to an unknown body": (lambda: drive(wrong_cable(b="hook")), "there is no body 'hook'"),
    "a point of two numbers": (lambda: wrong_cable(point_a=(0, 0)), "force 'c': point_a"),
    "one radius": (lambda: wrong_belt(radii=0.1), "radii must be two"),
    "a zero radius": (lambda: wrong_belt(radii=(0.1, 0.0)), "force 'b': radii 0 must be above zero"),
    "a belt with negative damping": (lambda: wrong_belt(damping=-1.0), "force 'b': damping"),
    "a gust of negative intensity": (lambda: forces.gust(intensity=-1.0), "intensity must not be below zero"),
    "a gust of zero length": (lambda: forces.gust(intensity=1.0, length=0.0), "gust: length must be above zero, got 0.0"),
    "a gust of two intensities": (lambda: forces.gust(intensity=(1.0, 2.0)), "gust: intensity: one number or three"),
    "an intensity in words": (lambda: forces.gust(intensity="strong"), "gust: intensity: one number or three"),
    "a seed in words": (lambda: forces.gust(intensity=1.0, seed="a"), "seed must be a whole number"),
}  # fmt: skip


test_wrong_drives_are_named = refusals(WRONG)
