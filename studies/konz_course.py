"""References made on the way, and as fast as a machine permits: a hexarotor and an arm, not of the thesis. [konz25 5.5]

The hexarotor is told goals (x, y, z, heading) while it flies, as by a pilot who points at places: its agent makes the course of
degree nine from the flat output and four derivatives of now to rest at the goal, and a new one whenever the goal changes. It
begins at 2 m/s, and no goal but the last is reached. The course is held against linear equations for its coefficients, solved
in NumPy.

The arm has two links in a horizontal plane and motors of 6 to 9 and 2 N m. Its path from rest to rest takes the shortest time
in which both stay within their limits; moments by Lagrange's equations of two links are held against them. A tenth faster,
within the same limits, it no longer follows.

All numbers are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command, Course
from pfaffian.study import Claim, blank_figure

PERIOD, STEP, LENGTH = 0.005, 0.0025, 1.6
"""Of the agent, of the integrator, and of a course [s]."""
START = np.zeros((4, 5))
START[0, 1] = 2.0
"""x, y, z [m], heading [rad] and four derivatives of each at the beginning."""
GOALS = ((1.5, 1.0, 0.5, 0.8), (0.0, -1.0, 0.2, -0.4), (-0.5, 0.5, 1.0, 1.5))
CHANGES = (0.0, 1.0, 1.9)
"""When they are said [s]."""
DURATION = 3.9
LINKS, MASSES, TURNS = (0.5, 0.4), (3.0, 2.0), (0.08, 0.05)
"""Lengths [m], masses [kg] and inertias about the middle [kg m^2] of the arm."""
BEGIN, END = np.array([0.2, 0.9]), np.array([1.4, -0.6])
MOTORS = ((-6.0, 9.0), (-2.0, 2.0))
"""Least and largest moments [N m]."""


def mechanism() -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        "hexarotor", np.arange(6) * np.pi / 3, [1, -1] * 3, mass=2.4, inertia=(0.05, 0.05, 0.09), arm=0.35, thrust=2e-5,
        torque=4e-7,
    )  # fmt: skip


def agent() -> control.Control:
    """Goals come as inputs of the run; the course to them makes the reference of each instant."""
    own = control.quadcopter_pair("body", [-9.0] * 4, heading=(8.0, 1.0), inertia_ratio=0.1)
    names = ("x", "y", "z", "heading")

    def step(s: control.Sample) -> Command:
        of = Course(ca.reshape(s["start"], 4, 5), s["end"], s["length"], s["elapsed"])
        later, now = control.course_step(of, ca.vertcat(*[s[n] for n in names]), LENGTH, PERIOD)
        place = control.taylor(now)
        here = control.quadcopter_reference(lambda t: place(t)[:3], lambda t: place(t)[3]).at(ca.SX(0), ca.SX(0, 1))
        law = control.prototype_tracking([own], control.sampled([f"r{i}" for i in range(7)]), approach="body")
        said = law.law(s.terms, ca.SX(0, 1), ca.vertcat(*here), ca.SX(0, 1))
        d_next = {"start": ca.vec(later.start), "end": later.end, "length": later.duration, "elapsed": later.elapsed}
        return Command(said.u, faults=said.faults, signals={"now": ca.vec(now)}, d_next=d_next)

    state = {"start": START.ravel("F"), "end": START[:, 0], "length": LENGTH, "elapsed": 0.0}
    return control.discrete(step, PERIOD, state=state, inputs=names, faults=["no inertia", "no attitude"])


def arm() -> pf.Mechanism:
    bodies = [
        pf.body(n, m, com=(x / 2, 0, 0), inertia=i) for n, m, x, i in zip(("upper", "lower"), MASSES, LINKS, TURNS, strict=True)
    ]
    joints = [pf.joint("shoulder", "revolute", "world", "upper")]
    joints.append(pf.joint("elbow", "revolute", "upper", "lower", placement=(LINKS[0], 0, 0)))
    motors = [pf.actuator(f"motor {j.name}", j.name, limits=limits) for j, limits in zip(joints, MOTORS, strict=True)]
    return pf.mechanism("arm", bodies, joints, gravity=(0, 0, 0), actuators=motors)


def moved(T: float) -> control.Reference:
    return control.function_of_time(control.rest_to_rest(BEGIN, END, T), 2)


def run() -> dict[str, xr.Dataset]:
    goals = np.repeat(GOALS, np.diff([*(round(t / PERIOD) for t in CHANGES), round(DURATION / PERIOD)]), axis=0)
    speed = START[:3, 1]
    flown = pf.run(
        mechanism(), np.r_[START[:3, 0], 0, 0, 0, 1.0], np.r_[speed, np.zeros(3)], duration=DURATION, step=STEP, every=2,
        control=agent(), u=goals, u_step=PERIOD, record="all",
    )  # fmt: skip
    flown["goal"] = (("time", "flat"), np.vstack([goals, goals[-1:]]))
    T = control.least_time(moved, {"input": "actuators"}, mechanism=arm())
    stiff = [
        control.pair(body, seen_from=seen, **{n: pf.forces.pseudo_matrix(0, moments=(0, 0, x)) for n, x in FIRM.items()})
        for body, seen in (("upper", "world"), ("lower", "upper"))
    ]
    results = {"hexarotor": flown}
    for name, part in (("arm, shortest time", 1.0), ("arm, a tenth faster", 0.9)):
        law = control.prototype_tracking(stiff, moved(part * T), limits="actuators")
        r = pf.run(arm(), BEGIN, duration=part * T, step=T / 1000, every=2, control=law, error_bound=np.inf)
        r["shortest"] = T
        results[name] = r
    return results


FIRM = {"inertia": 1.0, "damping": 20.0, "stiffness": 100.0}
"""Of both joints of the arm's prototype [kg m^2], [N m s], [N m]."""


def by_equations(start: np.ndarray, end: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(times, 4, 5) the course from linear equations for the coefficients of its polynomials."""
    row = lambda t, d: [factorial(j) / factorial(j - d) * t ** (j - d) if j >= d else 0.0 for j in range(10)]  # noqa: E731
    A = np.array([row(at, d) for at in (0.0, LENGTH) for d in range(5)])
    c = np.linalg.solve(A, np.vstack([start.T, end, np.zeros((4, len(end)))]))
    return np.array([[row(at, d) for d in range(5)] for at in np.minimum(t, LENGTH)]).transpose(0, 1, 2) @ c


def course(r: xr.Dataset) -> np.ndarray:
    """(times, 5, 4) derivatives of the flat output that the agent made."""
    return r["now"].values.reshape(-1, 5, 4)


def expected(r: xr.Dataset) -> np.ndarray:
    """The same by equations, each course from where the one before was."""
    ends, start, parts = [*CHANGES[1:], DURATION], START, []
    for goal, begin, end in zip(GOALS, CHANGES, ends, strict=True):
        n = round((end - begin) / PERIOD)
        one = by_equations(start, np.array(goal), PERIOD * np.arange(n + 1))
        parts, start = [*parts, one[:-1]], one[-1].T
    return np.concatenate([*parts, start.T[None]])


def moments(T: float) -> np.ndarray:
    """(n, 2) of the arm on its way in T, by Lagrange's equations."""
    s = np.linspace(0, 1, 501)[:, None]
    p = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    q, v, a = (BEGIN * (d == 0) + (END - BEGIN) * p.deriv(d)(s) / T**d for d in range(3))
    (l, _), (c1, c2) = LINKS, (LINKS[0] / 2, LINKS[1] / 2)
    (m1, m2), (i1, i2), k = MASSES, TURNS, MASSES[1] * l * c2
    cos, sin = np.cos(q[:, 1]), np.sin(q[:, 1])
    M11, M12, M22 = i1 + m1 * c1**2 + i2 + m2 * (l**2 + c2**2) + 2 * k * cos, i2 + m2 * c2**2 + k * cos, i2 + m2 * c2**2
    first = M11 * a[:, 0] + M12 * a[:, 1] - k * sin * (2 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
    return np.column_stack([first, M12 * a[:, 0] + M22 * a[:, 1] + k * sin * v[:, 0] ** 2])


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.5, 6.4)
    (above, speed), (angles, torque) = figure.subplots(2, 2)
    r = result["hexarotor"]
    now, q = course(r), r["q"].values
    above.plot(now[:, 0, 0], now[:, 0, 1], color="0.7", linestyle="-", linewidth=4, label="course")
    above.plot(q[:, 0], q[:, 1], label="flight")
    above.plot(*np.array(GOALS)[:, :2].T, "x", color="0.3", label="goals")
    above.set(title="hexarotor from above", xlabel="x [m]", ylabel="y [m]", aspect="equal")
    for i, name in enumerate("xyz"):
        speed.plot(r["time"], now[:, 1, i], label=name)
    for t in CHANGES[1:]:
        speed.axvline(t, color="0.3", linestyle=":", linewidth=1)
    speed.set(title="its course; goals change at the dots", xlabel="time [s]", ylabel="speed [m/s]")
    for (name, r), line in zip(list(result.items())[1:], ("-", "--"), strict=True):
        for i, joint in enumerate(("shoulder", "elbow")):
            angles.plot(r["time"], r["q"][:, i], line, color=f"C{i}", label=f"{joint}, {name.removeprefix('arm, ')}")
            torque.plot(r["time"], r["u"][:, i], line, color=f"C{i}")
    for i, limits in enumerate(MOTORS):
        for bound in limits:
            torque.axhline(bound, color=f"C{i}", linestyle=":", linewidth=1)
    angles.set(title="arm", xlabel="time [s]", ylabel="angle [rad]")
    torque.set(title="its motors, limits dotted", xlabel="time [s]", ylabel="moment [N m]")
    for axes in (above, speed, angles):
        axes.legend()
    return {"courses": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name, r in result.items():
        yield Claim(f"{name}: run ended early", float(r["status"] != 0), 0)
    r = result["hexarotor"]
    now, q = course(r), r["q"].values
    off = np.abs(now - expected(r)).max(axis=(0, 2))
    for d, found in enumerate(off):
        yield Claim(f"hexarotor: derivative {d} of its course, off the polynomials", found, 0, 1e-7, "linear equations")
    yield Claim("hexarotor: largest error of position [mm]", 1e3 * np.linalg.norm(q[:, :3] - now[:, 0, :3], axis=1).max(), *OFF)
    yield Claim("hexarotor: off its last goal [mm]", 1e3 * np.linalg.norm(q[-1, :3] - GOALS[-1][:3]), 0, 1.0, "ours")
    x = Rotation.from_quat(q[-1, 3:]).as_matrix()[:, 0]
    yield Claim("hexarotor: heading at last [rad]", np.arctan2(x[1], x[0]), GOALS[-1][3], 2e-3, "its goal")
    for goal, t in zip(GOALS, CHANGES[1:], strict=False):
        short = np.linalg.norm(q[round(t / PERIOD), :3] - goal[:3])
        yield Claim(
            f"hexarotor: off its goal as the next one comes, after {t:g} s [m]", short, 0.2, 0, "in mid-flight", "at least"
        )
    r = result["arm, shortest time"]
    T, u = float(r["shortest"]), r["u"].values
    low, high = np.array(MOTORS).T
    used = np.maximum(moments(T) / high, moments(T) / low).max()
    yield Claim("arm: part of its motors that Lagrange's equations ask for", used, 1, 1e-4, "two links")
    yield Claim("arm: part of its motors in the run", np.maximum(u / high, u / low).max(), 1, 1e-4, "the limit is met")
    yield Claim("arm: off the end of its path [rad]", np.abs(r["q"].values[-1] - END).max(), 0, 1e-6, "exact reference")
    hasty = result["arm, a tenth faster"]
    u = hasty["u"].values
    yield Claim("arm, a tenth faster: part of its motors", np.maximum(u / high, u / low).max(), 1, 1e-9, "limits are kept")
    yield Claim(
        "arm, a tenth faster: off the end [rad]", np.abs(hasty["q"].values[-1] - END).max(), 1e-3, 0, "ours", "at least"
    )


OFF = (1.70, 0.03, "ours")
"""Largest error [mm] of a law that is asked every 5 ms."""
