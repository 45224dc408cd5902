"""A quadcopter carries a load on a cable: one prototype of both damps the swing and moves the load along a path. [konz25 4.8]

The machine has eight degrees of freedom and four inputs. The law is the Gauss-optimal one within limits (4.63), by the body
approach; its prototype has a pair for the quadcopter and one for the load, both relative to the world. In a plane through the
cable the matching conditions (4.62) of M x'' + K x = b u, x = (sideways, tilt, swing), are satisfied by

    quadcopter: d at h, k at h, moment m g (h - s), as without a load (4.147); mass m1 at s m / m1, Theta = m s h - m^2 s^2 / m1
    load: m2 = m (1 - s / h) m_l' / (m_q + m_l) hanging at l below the pivot, and the moment m2 g l of this pendulum
    m1 = m - m2,    l = J / (m_l L),  m_l' = m_l L / l: the point mass that swings like the load, whose J is about the pivot

for any h > s > 0, k and d. This is derived here, and compared with `matched_placement`, which satisfies the conditions for any
six poles but then needs a relative pair that is not positive. At a set point the matching force is zero for any swing, not only
for small ones, as long as the heading has no error. (The quadcopter's pair without the load's has the same poles but a matching
force of up to 0.8 N.) h, s, k and d were found by moving the slowest pole to the left, and rounded. The point at l below the
pivot is a flat output that must be smooth six times: y'' + g gives the direction of the cable, the force on both bodies the
attitude.

For comparison the law of a quadcopter without a load flies the same path, with poles at -8: its prototype does not contain the
load and lets it swing. Quadcopter and propellers are those of Table 5.1; load (0.3 kg, 0.8 m), path and gains are ours: the
thesis has no such flight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

QUAD, LARGEST, G = pf.multicopters.QUADCOPTER, 7.85, 9.81
LOAD, CABLE = 0.3, 0.8
"""Mass of the load [kg], and distance of its mass centre from the pivot in the quadcopter's mass centre [m]."""
BOB = (2e-4, 2e-4, 1e-6)
"""Inertia of the load about its mass centre [kg m^2]."""
TOTAL = QUAD["mass"] + LOAD
SWINGING = (LOAD * CABLE**2 + BOB[0]) / (LOAD * CABLE)
"""l, distance from the pivot to the equivalent point mass [m]."""
H, S, K, D = 0.63, 0.19, 4.6, 3.3
"""Prototype of 1 kg: h, s [m], k [N/m], d [N s/m]."""
HEADING, TURNING = (3.0, 0.8), 0.02
"""Heading: w0 [rad/s] and zeta; and the prototype's inertia about z [kg m^2]."""
WAIT, FLIGHT, REST = 5.0, 12.0, 2.0
"""Durations of hover, flight along the path, and hover [s]."""
STEP, EVERY = 5e-3, 2


def load_share() -> float:
    """Mass m2 of the load's pair in the prototype of 1 kg [kg]."""
    return (1 - S / H) * LOAD * CABLE / SWINGING / TOTAL


def quadcopter() -> pf.Mechanism:
    return pf.multicopters.thrust_multicopter(
        "quadcopter with a load", QUAD["azimuths"], QUAD["spins"], mass=QUAD["mass"], inertia=(17.9e-3, 17.9e-3, 30.7e-3),
        arm=QUAD["arm"], thrust=QUAD["thrust"], torque=QUAD["torque"], limits=(0.0, LARGEST),
    )  # fmt: skip


def load() -> pf.Body:
    """The load; its frame is at the pivot, with z upwards along the cable."""
    return pf.body("load", LOAD, com=(0, 0, -CABLE), inertia=BOB)


def mechanism() -> pf.Mechanism:
    """The machine with the load on a universal joint."""
    m = quadcopter()
    cable = pf.joint("cable", "universal", "body", "load")
    return m.with_(bodies=(*m.bodies, load()), joints=(*m.joints, cable))


def by_closure() -> pf.Mechanism:
    """The machine as two free bodies with the joint as a closure."""
    m = quadcopter()
    cable = pf.closure("cable", "universal", "body", "load", axis=(1, 0, 0), axis_b=(0, 1, 0))
    free = pf.joint("load", "free", "world", "load")
    return m.with_(bodies=(*m.bodies, load()), joints=(*m.joints, free), constraints=(cable,))


# -- law -------------------------------------------------------------------------------------------------------------------


def pairs() -> list[control.Pair]:
    pm, m2, (w0, zeta) = pf.forces.pseudo_matrix, load_share(), HEADING
    m1 = 1 - m2
    tilt = S * H - S**2 / m1
    spin = np.array([0, 0, 2 * TURNING * zeta * w0])
    swing = m2 * G * SWINGING
    return [
        control.pair(
            "body",
            inertia=pm(m1, (0, 0, S / m1), (tilt, tilt, TURNING)),
            damping=pm(D, (0, 0, H), spin),
            stiffness=pm(K, (0, 0, H), (G * (H - S), G * (H - S), TURNING * w0**2)),
        ),
        control.pair("load", inertia=pm(m2, (0, 0, -SWINGING)), stiffness=pm(0, moments=(swing, swing, 0))),
    ]


def alone() -> list[control.Pair]:
    """Prototype of a stiffly hovering quadcopter without a load, with poles at -8."""
    return [
        control.quadcopter_pair("body", [-8, -8, -8 * np.exp(0.4j), -8 * np.exp(-0.4j)], heading=HEADING, inertia_ratio=0.1)
    ]


def in_a_plane() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, K and b of the machine in (sideways, tilt, swing) about hover."""
    J = LOAD * CABLE * SWINGING
    M = np.array([[TOTAL, 0, -LOAD * CABLE], [0, 17.9e-3, 0], [-LOAD * CABLE, 0, J]])
    return M, np.array([[0, -TOTAL * G, 0], [0, 0, 0], [0, 0, LOAD * G * CABLE]]), np.array([0.0, 1.0, 0.0])


def prototype_in_a_plane() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m2 = load_share()
    hang = m2 * SWINGING
    Mbar = np.array([[1, S, -hang], [S, S * H, 0], [-hang, 0, hang * SWINGING]])
    Kbar = K * np.outer([1, H, 0], [1, H, 0]) + np.diag([0, G * (H - S), hang * G])
    return Mbar, D * np.outer([1, H, 0], [1, H, 0]), Kbar


def path(t: ca.SX) -> ca.SX:
    """Path of the flat output: a horizontal figure of eight that rises and descends, from rest to rest, smooth at least six
    times."""
    a = control.rest_to_rest([0.0], [2 * np.pi], FLIGHT, begin=WAIT, smooth=6)(t)
    return ca.vertcat(1.5 * ca.sin(a), 0.4 * ca.sin(2 * a), 0.4 * (1 - ca.cos(a)))


def along_path(t: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Position, attitude (x, y, z, w) and upward direction of the cable from the flat output."""
    s = ca.SX.sym("s")
    y = path(s)
    pull = ca.jacobian(ca.jacobian(y, s), s) + ca.DM([0, 0, G])
    up = pull / ca.norm_2(pull)
    r = y + SWINGING * up
    centre = ca.Function("centre", [s], [r - LOAD * CABLE / TOTAL * up])
    attitude = control.quadcopter_reference(lambda x: centre(x)).at(s, ca.SX(0, 1)).value[3:]
    return tuple(ca.Function("along", [s], [r, attitude, up])(t))


def turned_back(q: ca.SX, n: ca.SX) -> ca.SX:
    """Vector R(q)^T n."""
    v, w = -q[:3], q[3]
    return n + 2 * w * ca.cross(v, n) + 2 * ca.cross(v, ca.cross(v, n))


def reference() -> control.Reference:
    """Reference of the machine with a universal joint."""

    def place(t: ca.SX) -> ca.SX:
        r, q, up = along_path(t)
        n = turned_back(q, up)
        return ca.vertcat(r, q, ca.atan2(-n[1], n[2]), ca.asin(n[0]))

    return control.function_of_time(place, 9)


def reference_by_closure() -> control.Reference:
    """Reference of the two free bodies: the load's attitude is the quadcopter's, then turned about x and about y."""

    def place(t: ca.SX) -> ca.SX:
        r, q, up = along_path(t)
        n = turned_back(q, up)
        a, b = ca.atan2(-n[1], n[2]) / 2, ca.asin(n[0]) / 2
        about_x, about_y = ca.vertcat(ca.sin(a), 0, 0, ca.cos(a)), ca.vertcat(0, ca.sin(b), 0, ca.cos(b))
        return ca.vertcat(r, q, r, product(product(q, about_x), about_y))

    return control.function_of_time(place, 14)


def product(a: ca.SX, b: ca.SX) -> ca.SX:
    """Product of quaternions (x, y, z, w)."""
    return ca.vertcat(a[3] * b[:3] + b[3] * a[:3] + ca.cross(a[:3], b[:3]), a[3] * b[3] - ca.dot(a[:3], b[:3]))


# -- runs ------------------------------------------------------------------------------------------------------------------

OUTPUTS = {
    "carried": lambda k: k.position("load", (0, 0, -SWINGING)),
    "wanted": lambda k: path(k.t),
    "swing": lambda k: ca.acos(k.rotation("load")[2, 2]) * 180 / np.pi,
}


def run() -> dict[str, xr.Dataset]:
    m = mechanism()
    rest = np.r_[0, 0, SWINGING, 0, 0, 0, 1, 0, 0]
    swung = rest + np.r_[0.3, -0.2, 0.2, 0, 0, 0, 0, 0.5, 0.5]
    how = {"step": STEP, "every": EVERY, "outputs": OUTPUTS}
    coupled = control.prototype_tracking(pairs(), reference(), approach="body", limits="actuators")
    ignoring = control.prototype_tracking(alone(), reference(), approach="body", limits="actuators")
    whole = WAIT + FLIGHT + REST
    results = {
        "both": pf.run(m, swung, duration=whole, control=coupled, **how),
        "quadcopter alone": pf.run(m, swung, duration=whole, control=ignoring, **how),
        "from the path": pf.run(m, rest, start=WAIT, duration=FLIGHT, control=coupled, **how),
    }
    law = control.prototype_tracking(pairs(), reference_by_closure(), approach="body", limits="actuators")
    a, b = 0.25, 0.25
    turn = product(ca.DM([np.sin(a), 0, 0, np.cos(a)]), ca.DM([0, np.sin(b), 0, np.cos(b)]))
    apart = np.r_[swung[:7], swung[:3], np.array(turn).ravel()]
    results["closure"] = pf.run(by_closure(), apart, duration=WAIT + 0.6 * FLIGHT, control=law, **how)
    return results


def off(r: xr.Dataset) -> np.ndarray:
    """Distance of the load from its reference over time [m]."""
    return np.linalg.norm(r["carried"].values - r["wanted"].values, axis=1)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(9.8, 6.4)
    (above, side), (error, swing) = figure.subplots(2, 2)
    r = result["both"]
    for ax, (i, j), names in ((above, (0, 1), "xy"), (side, (0, 2), "xz")):
        ax.plot(r["wanted"][:, i], r["wanted"][:, j], color="0.75", linestyle="-", linewidth=3, label="load, reference")
        ax.plot(r["carried"][:, i], r["carried"][:, j], label="load")
        ax.plot(r["q"][:, i], r["q"][:, j], linestyle="--", label="quadcopter")
        ax.set(xlabel=f"{names[0]} [m]", ylabel=f"{names[1]} [m]", aspect="equal")
    flying = slice(round(WAIT / STEP / EVERY), round((WAIT + FLIGHT) / STEP / EVERY), 25)
    for down, up in zip(r["carried"].values[flying], r["q"].values[flying], strict=True):
        side.plot([down[0], up[0]], [down[2], up[2]], color="0.5", linestyle="-", linewidth=0.7)
    above.set(title="from above")
    side.set(title="from the side, with the cable")
    for name, colour in (("both", "C0"), ("quadcopter alone", "C1")):
        error.semilogy(result[name]["time"], np.maximum(off(result[name]), 1e-9), color=colour, label=f"prototype of {name}")
        swing.plot(result[name]["time"], result[name]["swing"], color=colour)
    path_only = result["from the path"]
    error.semilogy(path_only["time"], np.maximum(off(path_only), 1e-9), color="C2", label="started on the path")
    error.set(xlabel="time [s]", ylabel="distance of the load from its path [m]", title="5 s of hover, the flight, hover")
    swing.set(xlabel="time [s]", ylabel="angle between cable and vertical [degrees]", title="swing")
    for ax in (above, error):
        ax.legend()
    return {"flight": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    prototype, N = prototype_in_a_plane(), np.linalg.inv(prototype_in_a_plane()[0])
    closed = np.block([[np.zeros((3, 3)), np.eye(3)], [-N @ prototype[2], -N @ prototype[1]]])
    poles = np.linalg.eigvals(closed)
    general = control.matched_placement(*in_a_plane(), poles)
    for name, have, expected in zip(("inertia", "damping", "stiffness"), prototype, general, strict=True):
        error = np.abs(have - expected).max() / np.abs(expected).max()
        yield Claim(f"{name} of the prototype minus the general rule, relative", error, 0, 1e-9, "[konz25 (4.62)]")
    m, q = mechanism(), np.r_[np.zeros(6), 1, 0, 0]
    hover = control.prototype_tracking(pairs(), control.set_point(q), approach="body")
    found = np.poly(pf.linearise(m, q, np.zeros(8), control=hover).eigenvalues).real
    planes = np.polymul(np.poly(poles).real, np.poly(poles).real)
    expected = np.polymul(planes, np.polymul([1, D, K], [1, 2 * HEADING[1] * HEADING[0], HEADING[0] ** 2]))
    error = np.abs(found - expected).max() / np.abs(expected).max()
    yield Claim("polynomial of the closed loop about hover minus the prototype's, relative", error, 0, 1e-8, "[konz25 (4.48)]")
    yield Claim("slowest pole [1/s]", poles.real.max(), -1.53, 0.01)

    for name, r in result.items():
        yield Claim(f"{name}: run ended early", float(r["status"] != 0), 0)
        beyond = float(-r["limit_slack"].values.min())
        yield Claim(f"{name}: thrusts beyond their limits [N]", beyond, 0, 1e-12, "[konz25 (4.63)]", "at most")
    both, alone_, on = result["both"], result["quadcopter alone"], result["from the path"]
    waiting = slice(0, round(WAIT / STEP / EVERY))
    late = slice(round(0.7 * WAIT / STEP / EVERY), waiting.stop)
    yield Claim("swing at the start [degrees]", float(both["swing"][0]), 39.6, 0.1)
    yield Claim("swing from 3.5 to 5 s [degrees]", float(both["swing"].values[late].max()), 4, 0, "", "at most")
    left = float(alone_["swing"].values[late].max())
    yield Claim("swing from 3.5 to 5 s, quadcopter alone [degrees]", left, 10, 0, "it ignores the load", "at least")
    yield Claim("error of the load after 5 s [m]", off(both)[waiting.stop], 1e-3, 0, "", "at most")
    yield Claim("error of the load at the end [m]", off(both)[-1], 1e-6, 0, "", "at most")
    rise = float(both["prototype_power"].values[waiting].max())
    yield Claim("largest rate of the prototype's energy in hover [W]", rise, 0, 1e-9, "[konz25 (4.23)]", "at most")
    force = float(np.abs(both["matching_force"]).max())
    yield Claim("matching force, swing and flight [N]", force, 0, 1e-3, "[konz25 (4.62)]", "at most")
    force = float(np.abs(alone_["matching_force"]).max())
    yield Claim("matching force, quadcopter alone [N]", force, 1, 0, "", "at least")
    yield Claim("started on the path: largest error of the load [m]", off(on).max(), 0, 1e-6, "[konz25 (4.60)]", "at most")
    yield Claim("started on the path: largest swing [degrees]", float(on["swing"].max()), 15, 0, "it is a flight", "at least")
    n = result["closure"].sizes["time"]
    apart = float(np.abs(result["closure"]["carried"].values - both["carried"].values[:n]).max())
    yield Claim(
        "difference between load on a joint and on a closure, swing and flight [m]",
        apart,
        0,
        1e-8,
        "two formulations",
        "at most",
    )
