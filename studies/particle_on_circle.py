"""A particle on a circle: the projector, the centripetal acceleration, the split of the force. [aghili05 (33)-(37), Fig. 2]

A particle of mass m on a circle of radius rho, Phi = |q| - rho = 0, in Cartesian coordinates q. With e_par = (-sin, cos) and
e_perp = (cos, sin) the projector is P = e_par e_par^T, the constraint alone gives the acceleration -rho theta_dot^2 e_perp, and
force and motion decouple. The paper gives no numbers.

Ours: m = 0.5 kg, rho = 2 m, q = 0 at the centre. Under gravity in the plane the particle is a pendulum, which swings with an
amplitude of 150 degrees for 20 s; period and energy are known in closed form. A second run has the constraint row twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.special import ellipk

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

MASS, RHO, G = 0.5, 2.0, 9.81
AMPLITUDE = np.radians(150)
DURATION = 20.0


def mechanism(rows: int = 1) -> pf.Mechanism:
    """A particle that moves along y and z of the world, constrained to the circle by one row or by several equal rows."""

    def phi(k: pf.Kinematics) -> ca.SX:
        return ca.norm_2(k.position("particle")[1:]) - RHO

    return pf.mechanism(
        "particle",
        [pf.body("carrier", 0.0), pf.body("particle", MASS)],
        [
            pf.joint("q1", "prismatic", "world", "carrier", axis=(0, 1, 0)),
            pf.joint("q2", "prismatic", "carrier", "particle", axis=(0, 0, 1)),
        ],
        constraints=[pf.holonomic(f"circle {i}", phi) for i in range(rows)],
        actuators=[pf.actuator("f1", "q1"), pf.actuator("f2", "q2")],
        gravity=(0, 0, -G),
    )


def directions(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(states, 2) unit vectors along the circle and outwards."""
    return np.column_stack([-np.sin(theta), np.cos(theta)]), np.column_stack([np.cos(theta), np.sin(theta)])


def run() -> dict[str, xr.Dataset]:
    start = -np.pi / 2 + AMPLITUDE
    q = RHO * np.array([np.cos(start), np.sin(start)])
    once, twice = (pf.run(mechanism(n), q, duration=DURATION) for n in (1, 2))
    return {"once": once, "twice": twice, "states": states()}


def states() -> xr.Dataset:
    """P, the acceleration and the forces of random states on the circle."""
    random = np.random.default_rng(33)
    theta, rate, f = random.uniform(-np.pi, np.pi, 200), random.normal(size=200) * 3, random.normal(size=(200, 2)) * 5
    along, out = directions(theta)
    m = mechanism()
    quantities = {
        "P": lambda T: pf.constraints.projector(T).P,
        "particular": lambda T: pf.constraints.projector(T).particular,
        "measure": lambda T: pf.constraints.coupling(T).measure,
        "coupled": lambda T: pf.constraints.coupling(T).coupled,
        "direct": lambda T: pf.constraints.coupling(T).direct,
        "c": lambda T: T.c,
    }
    q, v = RHO * out, RHO * rate[:, None] * along
    found = pf.compile_terms(m, quantities)(q, v, f)
    motion = pf.forward_dynamics(m, q, v, f)
    return xr.Dataset(
        {
            "theta": ("state", theta),
            "rate": ("state", rate),
            "f": (("state", "axis"), f),
            "P": (("state", "axis", "column"), found["P"]),
            **{name: (("state", "axis"), found[name]) for name in ("particular", "direct", "coupled", "c")},
            "measure": ("state", found["measure"]),
            "acceleration": (("state", "axis"), motion.v_dot),
            "reaction": (("state", "axis"), motion.reaction),
        }
    )


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.2)
    path, force = figure.subplots(1, 2, width_ratios=(1, 2))
    r = result["once"].sel(time=slice(0, 8))
    q, f = r["q"].values, r["reaction"].values
    path.plot(q[:, 0], q[:, 1])
    records = slice(None, None, 210)
    path.quiver(*q[records].T, *f[records].T, angles="xy", scale_units="xy", scale=25, width=0.008, color="#D55E00")
    path.set(xlabel="q1 [m]", ylabel="q2 [m]", aspect="equal", title="arrows: reaction")
    path.margins(0.2)
    e_perp = q / RHO
    weight = np.array([0.0, -MASS * G])
    force.plot(r["time"], np.sum(f * e_perp, axis=1), label="reaction, outwards")
    speed = np.sum(r["v"].values ** 2, axis=1)
    force.plot(r["time"], -MASS * speed / RHO, "--", label="part for the centripetal acceleration")
    force.plot(r["time"], -e_perp @ weight, ":", label="part against gravity")
    force.set(xlabel="time [s]", ylabel="force [N]")
    return {"particle": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    s = result["states"]
    along, out = directions(s["theta"].values)
    printed = along[:, :, None] * along[:, None, :]
    yield Claim("|P - e_par e_par^T|", _largest(s["P"] - printed), 0, 1e-14, "[aghili05 (33)]")
    centripetal = -RHO * s["rate"].values[:, None] ** 2 * out
    scale = _largest(centripetal)
    off = _largest(s["particular"] - centripetal) / scale
    yield Claim("C q_dot plus rho theta_dot^2 e_perp, relative", off, 0, 1e-14, "[aghili05 (35)]")
    f = s["f"].values - s["c"].values
    f_par, f_perp = along * np.sum(f * along, axis=1)[:, None], out * np.sum(f * out, axis=1)[:, None]
    off = _largest(s["acceleration"] - f_par / MASS - centripetal) / scale
    yield Claim("acceleration minus (f_par / m - rho theta_dot^2 e_perp), relative", off, 0, 1e-14, "[aghili05 (36)]")
    off = _largest(s["reaction"] + f_perp - MASS * centripetal) / scale
    yield Claim("reaction plus (f_perp + m rho theta_dot^2 e_perp), relative", off, 0, 1e-14, "[aghili05 (37)]")
    yield Claim("coupling of f_par into the reaction, |mu P|", _largest(s["measure"]), 0, 1e-14, "[aghili05 (80)]")
    off = max(_largest(s["direct"] + f_perp), _largest(s["coupled"] - MASS * centripetal)) / scale
    yield Claim("direct and coupled part of the reaction: error, relative", off, 0, 1e-14, "[aghili05 (32)]")
    yield from _pendulum(result["once"], result["twice"])


def _pendulum(once: xr.Dataset, twice: xr.Dataset) -> Iterator[Claim]:
    source = "pendulum, closed form"
    yield Claim("|phi| [m]", _largest(once["violation"]), 1e-10, relation="at most", source=source)
    drift = _largest(once["energy"] - once["energy"][0]) / (2 * MASS * G * RHO)
    yield Claim("energy over 20 s, relative to 2 m g rho", drift, 0, 1e-9, source)
    period = 4 * np.sqrt(RHO / G) * ellipk(np.sin(AMPLITUDE / 2) ** 2)
    yield Claim("period [s]", _period(once), period, 1e-8, source)
    v2 = np.sum(once["v"].values ** 2, axis=1)
    outwards = np.sum(once["reaction"].values * once["q"].values, axis=1) / RHO
    expected = -MASS * v2 / RHO + MASS * G * once["q"].values[:, 1] / RHO
    yield Claim("error of the reaction along the run [N]", _largest(outwards - expected), 0, 1e-8, "[aghili05 (37)]")
    for name, r in (("once", once), ("twice", twice)):
        yield Claim(f"row written {name}: rank", _largest(r["rank"]), 1, 0, "[aghili05 Remark 4]")
    apart = max(_largest(once[x] - twice[x]) for x in ("q", "v", "reaction"))
    yield Claim("row written twice: difference of motion and reaction", apart, 0, 1e-10, "[aghili05 Remark 4]")
    half = _largest(twice["multiplier"] - once["multiplier"].values / 2)
    yield Claim("row written twice: multipliers minus half of the single one [N]", half, 0, 1e-10, "[aghili05 Remark 4]")


def _period(r: xr.Dataset) -> float:
    """Mean time between passages through the lowest point in the same direction [s], by cubic interpolation."""
    from scipy.interpolate import CubicHermiteSpline

    t, x, v = r["time"].values, r["q"].values[:, 0], r["v"].values[:, 0]
    roots = CubicHermiteSpline(t, x, v).roots(extrapolate=False)
    low = roots[np.interp(roots, t, r["q"].values[:, 1]) < 0]
    return float(np.mean(low[2:] - low[:-2]))


def _largest(x: xr.DataArray | np.ndarray) -> float:
    return float(np.abs(x).max())
