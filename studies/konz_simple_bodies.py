"""Tracking of a slide, orientations, planar and free bodies: three approaches, with explicit forces. [konz25 4.7]

The machines are a prismatic joint (all approaches are identical), a revolute joint, an orientation, a planar and a free body.
Their forces are entered as printed in the thesis (corrected, see errata) and compared with the general law. From the thesis:
all numbers of the planar body that starts 1 m from a reference which turns on the spot (fig. 4.8). All other numbers are ours.
The revolute joint moves in `konz-joints`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

pm = pf.forces.pseudo_matrix
TH, UPS, PI = 1.0, 6.0, 25.0
"""Inertia, damping and stiffness of the prototype of a revolute joint [kg m^2, N m s, N m]."""
SMALL = 1e-6
MASS, SPRING, DAMPER = 2.5, 9.0, 4.0
"""Prototype of the prismatic joint [kg, N/m, N s/m]; its machine has 1.5 kg."""


# -- machines -------------------------------------------------------------------------------------------------------------


def mechanism() -> pf.Mechanism:
    """A planar body. [konz25 4.7.4, 4.7.5]"""
    return on_a_joint("planar", 1.0, inertia=0.3)


def on_a_joint(kind: str, mass: float = 1.0, **body: Any) -> pf.Mechanism:
    """One body on a joint of this kind, with a motor for each degree of freedom."""
    axis = {"axis": (1, 0, 0)} if kind == "prismatic" else {}
    joint = pf.joint("j", kind, "world", "body", **axis)
    return pf.actuate_all(pf.mechanism(kind, [pf.body("body", mass, **body)], [joint], gravity=(0, 0, 0)))


# -- references -----------------------------------------------------------------------------------------------------------


def turning_on_the_spot() -> control.Reference:
    """Reference r_R = 0, alpha_R = pi t. [konz25 4.7.5]"""
    return control.function_of_time(lambda t: [0, 0, np.pi * t], 3)


def tumbling() -> control.Reference:
    """Reference quaternion that turns about all axes."""
    return control.function_of_time(lambda t: so3.quat_exp(ca.vertcat(ca.sin(t), 0.5 * ca.cos(2 * t), 0.8 * t)), 4)


# -- laws -----------------------------------------------------------------------------------------------------------------


def sliding() -> list[control.Pair]:
    return [control.pair("body", inertia=pm(MASS), damping=pm(DAMPER), stiffness=pm(SPRING))]


def turning() -> list[control.Pair]:
    return [control.pair("body", inertia=pm(0, moments=TH), damping=pm(0, moments=UPS), stiffness=pm(0, moments=PI))]


def oriented() -> list[control.Pair]:
    moments = ((0.3, 0.5, 0.4), (1.2, 2.0, 1.5), (2.0, 4.0, 3.0))
    inertia, damping, stiffness = (pm(0, moments=x) for x in moments)
    return [control.pair("body", inertia=inertia, damping=damping, stiffness=stiffness)]


def off_centre() -> list[control.Pair]:
    """Prototype of a planar body with different centres s, l, h."""
    centres = ((0.2, -0.1, 0), (0.05, 0.15, 0), (-0.1, 0.3, 0))
    inertia, damping, stiffness = (pm(w, c, x) for w, c, x in zip((1.5, 4.0, 7.0), centres, (0.4, 0.8, 1.1), strict=True))
    return [control.pair("body", inertia=inertia, damping=damping, stiffness=stiffness)]


def any_body() -> list[control.Pair]:
    """Prototype of a free body, 30 generic numbers."""
    random = np.random.default_rng(42)
    three = (np.cov(random.normal(size=(4, 9))) for _ in range(3))
    return [control.pair("body", **dict(zip(("inertia", "damping", "stiffness"), three, strict=True)))]


def decoupled() -> list[control.Pair]:
    """Prototype with mass 1, damping 4, stiffness 4 and all centres at the origin. [konz25 4.7.5]"""
    return [control.pair("body", inertia=pm(1, moments=0.1), damping=pm(4, moments=0.5), stiffness=pm(4, moments=2.0))]


# -- the thesis's forces ----------------------------------------------------------------------------------------------------

Formulas = Callable[[pf.Kinematics, control.ReferenceMotion, ca.SX], dict[str, ca.SX]]
"""Forces of the thesis: (k, goal, v_dot) -> f^M + f^D + f^K of each approach."""


def of_a_joint(k: pf.Kinematics, goal: control.ReferenceMotion, v_dot: ca.SX) -> dict[str, ca.SX]:
    """Revolute joint: (4.76) for particles, and Theta E'' + Upsilon E' + Pi sin E for the other two approaches."""
    E, w, w_R, a_R = k.q - goal.k.q, k.v, goal.k.v, goal.v_dot
    s, c = ca.sin(E), ca.cos(E)
    both = TH * (v_dot - a_R) + UPS * (w - w_R) + PI * s
    return {"particle": TH * (v_dot - a_R * c - w_R**2 * s) + UPS * (w - w_R * c) + PI * s, "body": both, "energy": both}


def of_an_orientation(k: pf.Kinematics, goal: control.ReferenceMotion, v_dot: ca.SX) -> dict[str, ca.SX]:
    """Orientation: (4.81)-(4.85)."""
    (pair,) = oriented()
    Th, Ups, Pi = (ca.SX(x[:3, :3]) for x in (pair.inertia, pair.damping, pair.stiffness))  # Wed of each
    I, D = so3.Vee(Th), so3.Vee(Ups)
    R_E, w, w_R, a_R = goal.k.pose("body").R.T @ k.pose("body").R, k.v, goal.k.v, goal.v_dot
    back = R_E.T
    w_E = w - back @ w_R
    rate = v_dot - back @ a_R + ca.cross(w_E, back @ w_R)
    pull = so3.vee2(Pi @ R_E)
    points = I @ v_dot - so3.Vee(back @ Th) @ back @ a_R + ca.cross(w, I @ w) + so3.vee2(Th @ so3.hat(w_R) @ so3.hat(w_R) @ R_E)
    return {
        "particle": points + D @ w - so3.Vee(back @ Ups) @ back @ w_R + pull,
        "body": I @ rate + ca.cross(w_E, I @ w_E) + D @ w_E + pull,
        "energy": I @ rate + ca.cross(Th @ w, w_E) + D @ w_E + pull,
    }


def of_a_planar_body(k: pf.Kinematics, goal: control.ReferenceMotion, v_dot: ca.SX) -> dict[str, ca.SX]:
    """Planar body: (4.91)-(4.96), corrected."""
    (pair,) = off_centre()
    (m, s, Th), (d, l, Ups), (c, h, Pi) = (planar_numbers(x) for x in (pair.inertia, pair.damping, pair.stiffness))
    x, v, v_R, a_R = apart(k, goal), k.v, goal.k.v, goal.v_dot
    carried_v = by_twists(k, goal) @ v_R
    xi_E = v - carried_v
    # xi_E' = v_dot - Q v_R_dot - Q_dot v_R, and Q_dot v_R = -ad(xi_E) Q v_R.
    bracket = ca.vertcat(xi_E[1] * carried_v[2] - xi_E[2] * carried_v[1], xi_E[2] * carried_v[0] - xi_E[0] * carried_v[2], 0)
    gone = v_dot - by_twists(k, goal) @ a_R + bracket
    pull = ca.vertcat(
        c * (x.c * x.dx + x.s * x.dy + h[0] * (1 - x.cE) - h[1] * x.sE),
        c * (-x.s * x.dx + x.c * x.dy + h[0] * x.sE + h[1] * (1 - x.cE)),
        c * ((h[0] * x.c - h[1] * x.s) * x.dy - (h[1] * x.c + h[0] * x.s) * x.dx) + Pi * x.sE,
    )
    turned = spinning(v_R, m, s)
    reference = ca.vertcat(
        turned[0] * x.cE + turned[1] * x.sE,
        -turned[0] * x.sE + turned[1] * x.cE,
        turned[2] * x.cE + m * (s[0] * v_R[1] - s[1] * v_R[0]) * v_R[2] * x.sE + Th * x.sE * v_R[2] ** 2,
    )
    I, D = planar(m, s, Th), planar(d, l, Ups)
    points = I @ v_dot + spinning(v, m, s) - carried(m, s, Th, x) @ a_R - reference + D @ v - carried(d, l, Ups, x) @ v_R

    def spin(w: ca.SX) -> ca.SX:
        return ca.SX(ca.blockcat([[0, -m * w, -m * s[0] * w], [m * w, 0, -m * s[1] * w], [m * s[0] * w, m * s[1] * w, 0]]))

    return {
        "particle": points + pull,
        "body": I @ gone + spin(xi_E[2]) @ xi_E + D @ xi_E + pull,
        "energy": I @ gone + spin(v[2]) @ xi_E + D @ xi_E + pull,
    }


def spinning(v: ca.SX, m: ca.SX, s: ca.SX) -> ca.SX:
    """Vector c of (4.89)."""
    return ca.vertcat(-m * (v[1] + s[0] * v[2]) * v[2], m * (v[0] - s[1] * v[2]) * v[2], m * (s[0] * v[0] + s[1] * v[1]) * v[2])


def planar_numbers(X: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Weight, centre and moment about z through the origin from a pseudo-matrix."""
    return X[3, 3], X[:2, 3] / X[3, 3], X[0, 0] + X[1, 1]


def planar(q: ca.SX, c: ca.SX, moment: ca.SX) -> ca.SX:
    """(3, 3) planar matrix of a weight q at its centre c, with its moment about the origin. (4.89)"""
    return ca.SX(ca.blockcat([[q, 0, -q * c[1]], [0, q, q * c[0]], [-q * c[1], q * c[0], moment]]))


class Apart(NamedTuple):
    """Error of a planar body: cosine and sine c, s of its angle and cE, sE of the error's angle; dx, dy along the world [m]."""

    c: ca.SX
    s: ca.SX
    cE: ca.SX
    sE: ca.SX
    dx: ca.SX
    dy: ca.SX


def apart(k: pf.Kinematics, goal: control.ReferenceMotion) -> Apart:
    dx, dy, E = ca.vertsplit(k.q - goal.k.q)
    return Apart(ca.cos(k.q[2]), ca.sin(k.q[2]), ca.cos(E), ca.sin(E), dx, dy)


def carried(q: ca.SX, c: ca.SX, moment: ca.SX, x: Apart) -> ca.SX:
    """Matrix of (4.95) for the reference."""
    return ca.SX(ca.blockcat([
        [q * x.cE, q * x.sE, q * (c[0] * x.sE - c[1] * x.cE)],
        [-q * x.sE, q * x.cE, q * (c[0] * x.cE + c[1] * x.sE)],
        [-q * (c[0] * x.sE + c[1] * x.cE), q * (c[0] * x.cE - c[1] * x.sE), moment * x.cE],
    ]))  # fmt: skip


def by_twists(k: pf.Kinematics, goal: control.ReferenceMotion) -> ca.SX:
    """Transport map Q of (4.93)."""
    x = apart(k, goal)
    return ca.SX(ca.blockcat([[x.cE, x.sE, x.s * x.dx - x.c * x.dy], [-x.sE, x.cE, x.c * x.dx + x.s * x.dy], [0, 0, 1]]))


def by_centres(k: pf.Kinematics, goal: control.ReferenceMotion) -> ca.SX:
    """Alternative transport map Q of (4.94)."""
    x, (_, h, _) = apart(k, goal), planar_numbers(off_centre()[0].stiffness)
    last = [h[0] * x.sE - h[1] * (x.cE - 1), h[0] * (x.cE - 1) + h[1] * x.sE]
    return ca.SX(ca.blockcat([[x.cE, x.sE, last[0]], [-x.sE, x.cE, last[1]], [0, 0, 1]]))


def of_a_free_body(k: pf.Kinematics, goal: control.ReferenceMotion, v_dot: ca.SX) -> dict[str, ca.SX]:
    """Free body: (4.15), (4.22), (4.44), corrected."""
    (pair,) = any_body()
    M, D = se3.Vee(pair.inertia), se3.Vee(pair.damping)
    m, s, Th = pair.inertia[3, 3], so3.hat(pair.inertia[:3, 3] / pair.inertia[3, 3]), pair.inertia[:3, :3]
    d, l, Ups = pair.damping[3, 3], so3.hat(pair.damping[:3, 3] / pair.damping[3, 3]), pair.damping[:3, :3]
    c, h, Pi = pair.stiffness[3, 3], pair.stiffness[:3, 3] / pair.stiffness[3, 3], pair.stiffness[:3, :3]
    G, G_R, v, v_R, a_R = k.pose("body"), goal.k.pose("body"), k.v, goal.k.v, goal.v_dot
    R, r = G_R.R.T @ G.R, G_R.R.T @ (G.p - G_R.p)
    B, w, w_R, I = R.T, so3.hat(v[3:]), so3.hat(v_R[3:]), ca.SX.eye(3)
    C = ca.SX(ca.blockcat([[m * w, -m * w @ s], [m * s @ w, so3.hat(Th @ v[3:])]]))
    pull = ca.vertcat(c * B @ (r + (R - I) @ h), c * ca.cross(h, B @ r) + so3.vee2(Pi @ (R - I)))
    seen = ca.SX(ca.blockcat([[d * B, d * B @ l.T], [d * l @ B, so3.Vee(B @ Ups) @ B]]))
    moved = ca.SX(ca.blockcat([[m * B, m * B @ s.T], [m * s @ B, so3.Vee(B @ Th) @ B]]))
    bent = ca.SX(ca.blockcat([[m * B @ w_R, -m * B @ w_R @ s], [m * s @ B @ w_R, so3.Vee(B @ w_R @ Th) @ B]]))
    points = M @ v_dot + C @ v - moved @ a_R - bent @ v_R + D @ v - seen @ v_R + pull
    carry = se3.Ad_inv(R, r)
    xi_E = v - carry @ v_R
    gone = v_dot - carry @ a_R + se3.ad(xi_E) @ carry @ v_R
    return {
        "particle": points,
        "body": M @ gone - se3.ad_transpose(xi_E, M @ xi_E) + D @ xi_E + pull,
        "energy": M @ gone + C @ xi_E + D @ xi_E + pull,
    }


CASES: dict[str, tuple[str, Callable[[], list[control.Pair]], Formulas, str]] = {
    "revolute": ("revolute", turning, of_a_joint, "[konz25 (4.76)-(4.79)]"),
    "orientation": ("spherical", oriented, of_an_orientation, "[konz25 (4.81)-(4.85)]"),
    "planar body": ("planar", off_centre, of_a_planar_body, "[konz25 (4.91)-(4.96)], corrected"),
    "free body": ("free", any_body, of_a_free_body, "[konz25 (4.15), (4.22), (4.44)], corrected"),
}


def forces_apart() -> xr.Dataset:
    """Largest difference of Mbar v_dot + bbar between the law and the thesis over random states, relative to the largest
    force."""
    found = np.array([[_apart(*CASES[name][:3], approach) for approach in control.APPROACHES] for name in CASES])
    return xr.Dataset({"apart": (("case", "approach"), found)}, {"case": list(CASES), "approach": list(control.APPROACHES)})


def _apart(kind: str, pairs: Callable[[], list[control.Pair]], formulas: Formulas, approach: str) -> float:
    def both(k: pf.Kinematics, goal: control.ReferenceMotion, v_dot: ca.SX) -> ca.SX:
        P = control.prototype_terms(k, goal, pairs(), approach, None)
        return ca.horzcat(P.M @ v_dot + P.b, formulas(k, goal, v_dot)[approach])

    x = at_random(on_a_joint(kind), both)
    return float(np.abs(x[..., 0] - x[..., 1]).max() / np.abs(x).max())


def at_random(
    m: pf.Mechanism, f: Callable[[pf.Kinematics, control.ReferenceMotion, ca.SX], ca.SX], many: int = 20
) -> np.ndarray:
    """(many, ...) of f(k, goal, v_dot) at random states of motion and reference."""
    random, sizes = np.random.default_rng(47), (m.nq, m.nv, m.nq, m.nv, m.nv, m.nv)
    s = [ca.SX.sym(f"s{i}", n) for i, n in enumerate(sizes)]
    t = ca.SX.sym("t")
    k, k_R = pf.Kinematics(m, s[0], s[1], t), pf.Kinematics(m, s[2], s[3], t)
    g = ca.Function("f", [*s, t, m.p_symbols], [ca.densify(f(k, control.ReferenceMotion(k_R, s[4]), s[5]))])
    at = [
        [pf.random_configuration(m, random) if i in (0, 2) else random.normal(size=n) for i, n in enumerate(sizes)]
        for _ in range(many)
    ]
    return np.array([np.array(g(*x, 0.0, m.p_defaults)) for x in at])


def maps_apart() -> xr.Dataset:
    """Errors of the transport maps of a planar body in (4.30)."""
    m, pairs = on_a_joint("planar"), off_centre()
    off = {
        "(4.93)": at_random(m, lambda k, goal, a: control.transport_error(k, goal.k, pairs, by_twists(k, goal))),
        "(4.94)": at_random(m, lambda k, goal, a: control.transport_error(k, goal.k, pairs, by_centres(k, goal))),
    }
    return xr.Dataset({"off": ("map", [np.abs(x).max() for x in off.values()])}, {"map": list(off)})


# -- runs -----------------------------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    results = {"forces": forces_apart(), "maps": maps_apart()}
    for a in control.APPROACHES:
        law = control.prototype_tracking(sliding(), control.function_of_time(lambda t: ca.sin(2 * t), 1), approach=a)
        short = {"duration": 1.0, "step": 0.01, "backend": "numpy"}
        results[f"prismatic {a}"] = pf.run(on_a_joint("prismatic", 1.5), [0.7], [-1.0], control=law, **short)
        law = control.prototype_tracking(decoupled(), turning_on_the_spot(), approach=a)
        results[f"planar {a}"] = pf.run(mechanism(), [0, 1, 0], [0, 0, 0], duration=3.0, step=1e-3, every=10, control=law)
        law = control.prototype_tracking(oriented(), tumbling(), approach=a)
        starts = [[0.9, 0.1, -0.3, np.sqrt(1 - 0.91)], near(tumbling(), SMALL)[0]]
        rates = [[0.0, 0, 0], near(tumbling(), SMALL)[1]]
        body = on_a_joint("spherical", inertia=(0.02, 0.03, 0.04))
        how = {"duration": 4.0, "step": 2e-3, "every": 10, "record": ["q", "v", "prototype_energy"]}
        results[f"orientation {a}"] = pf.run(body, starts, rates, control=law, **how)
    return results


def near(reference: control.Reference, off: float) -> tuple[np.ndarray, np.ndarray]:
    """Quaternion and angular velocity of a reference at t = 0, turned by `off` [rad] about (1, 2, 2) / 3 of the body."""
    x = reference.at(ca.SX(0.0), ca.SX(0, 1))
    q, rate = (ca.DM(ca.evalf(y)) for y in (x.value, x.rate))
    w = 2 * so3.quat_mul(so3.quat_conj(q), rate)[:3]
    turn = so3.quat_exp(off * AXIS)
    return np.array(so3.quat_mul(q, turn)).ravel(), np.array(so3.quat_to_matrix(turn).T @ w).ravel()


AXIS = ca.DM([1, 2, 2]) / 3


# -- figures --------------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"planar": planar_figure(result), "orientation": other_figure(result)}


def errors(r: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(time, 2) errors r - r_R along the world's axes, and along the reference's."""
    e, t = r["q"].values[:, :2], r["time"].values
    c, s = np.cos(np.pi * t), np.sin(np.pi * t)
    return e, np.stack([c * e[:, 0] + s * e[:, 1], c * e[:, 1] - s * e[:, 0]], axis=1)


def translation_energy(r: xr.Dataset, approach: str) -> np.ndarray:
    """W_r of (4.99): from the error along the world's axes for particles, along the reference's axes otherwise."""
    e, seen = errors(r)
    a, v, t = r["q"].values[:, 2], r["v"].values, r["time"].values
    rate = np.stack([np.cos(a) * v[:, 0] - np.sin(a) * v[:, 1], np.sin(a) * v[:, 0] + np.cos(a) * v[:, 1]], axis=1)
    if approach != "particle":
        e = seen
        c, s = np.cos(np.pi * t), np.sin(np.pi * t)
        rate = np.stack([c * rate[:, 0] + s * rate[:, 1], c * rate[:, 1] - s * rate[:, 0]], axis=1)
        rate = rate - np.pi * np.stack([-seen[:, 1], seen[:, 0]], axis=1)
    return 2 * (e**2).sum(1) + (rate**2).sum(1) / 2


def planar_figure(result: dict[str, xr.Dataset]) -> Any:
    """Figure like fig. 4.8 of the thesis."""
    figure = blank_figure(8.5, 6.4)
    (world, body), (energy, off) = figure.subplots(2, 2)
    for a in control.APPROACHES:
        r = result[f"planar {a}"]
        e, seen = errors(r)
        world.plot(*e.T, label=a)
        body.plot(*seen.T)
        energy.semilogy(r["time"], translation_energy(r, a))
        off.plot(r["time"], np.linalg.norm(e, axis=1))
    world.set(xlabel="x [m]", ylabel="y [m]", title="in the world", aspect="equal")
    body.set(xlabel="x [m]", ylabel="y [m]", title="seen from the reference", aspect="equal")
    energy.set(xlabel="time [s]", ylabel="energy of the translation [J]")
    off.set(xlabel="time [s]", ylabel="distance from the reference [m]")
    world.legend(loc="best")
    return figure


def turned_off(r: xr.Dataset, run: int) -> np.ndarray:
    """(time,) angle between the attitude and the reference [rad]."""
    t = ca.SX.sym("t")
    f = ca.Function("q_R", [t], [tumbling().at(t, ca.SX(0, 1)).value])
    goal = np.array([np.array(f(x)).ravel() for x in r["time"].values])
    return 2 * np.arccos(np.minimum(1, np.abs((goal * r["q"].values[run]).sum(1))))


def other_figure(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(6.5, 3.2)
    turned, energy = figure.subplots(1, 2)
    for a in control.APPROACHES:
        r = result[f"orientation {a}"]
        turned.plot(r["time"], np.degrees(turned_off(r, 0)), label=a)
        energy.semilogy(r["time"], np.maximum(r["prototype_energy"].values[0], 1e-9))
    turned.set(xlabel="time [s]", ylabel="angle from the reference [deg]", title="orientation")
    energy.set(xlabel="time [s]", ylabel="energy of the error [J]", title="orientation")
    turned.legend(loc="best")
    return figure


# -- claims ---------------------------------------------------------------------------------------------------------------

GOLDEN = {  # e at 0.5, 1, 2, 3 s, and W_r at 0 and these times [konz25 fig. 4.8, numbers computed apart]
    "particle": ([(0, 0.735759), (0, 0.406006), (0, 0.091578), (0, 0.017351)], (2.0, 1.353353, 0.476207, 0.027508, 0.001045)),
    "body": ([(-0.735759, 0.577864), (-0.425168, -0.406006), (0.115081, 0.091578), (-0.023362, -0.017351)],
             (6.934802, 2.021206, 0.928127, 0.068894, 0.002894)),
    "energy": ([(-0.504518, 0.371566), (-0.094439, -0.362186), (-0.077704, 0.218092), (0.107514, -0.081774)],
               (6.934802, 1.212096, 0.351324, 0.124162, 0.042135)),
}  # fmt: skip
ROOTS = np.array([-0.5366 + 0.5760j, -0.5366 - 0.5760j, -3.4634 + 3.7176j, -3.4634 - 3.7176j])
"""Characteristic roots of the translation by the energy approach [1/s]. [konz25 4.7.5, computed apart]"""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name in CASES:
        for a in control.APPROACHES:
            off = float(result["forces"].apart.sel(case=name, approach=a))
            yield Claim(f"{name} by {a}: law minus the formulas, relative to the force", off, 0, 1e-12, CASES[name][3])
    for name in result["maps"]["map"].values:
        yield Claim(
            f"planar body: error of map {name} in (4.30)", float(result["maps"].off.sel(map=name)), 0, 1e-10, "[konz25 (4.30)]"
        )
    yield from _of_the_sliding_joint(result)
    yield from _of_the_planar_body(result)
    yield from _of_the_orientation(result)


def _of_the_sliding_joint(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for a in control.APPROACHES:
        r = result[f"prismatic {a}"]
        t = r["time"].values
        e, rate = r["q"].values[:, 0] - np.sin(2 * t), r["v"].values[:, 0] - 2 * np.cos(2 * t)
        F = 1.5 * (-4 * np.sin(2 * t) - DAMPER / MASS * rate - SPRING / MASS * e)
        yield Claim(
            f"prismatic by {a}: force minus the formula [N]", np.abs(r["u"].values[:, 0] - F).max(), 0, 1e-12, "[konz25 (4.72)]"
        )


def _of_the_planar_body(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for a in control.APPROACHES:
        r = result[f"planar {a}"]
        at = [int(np.argmin(np.abs(r["time"].values - t))) for t in (0, 0.5, 1, 2, 3)]
        e, energy = r["q"].values[at[1:], :2], translation_energy(r, a)[at]
        yield Claim(
            f"planar body by {a}: position minus the table [m]", np.abs(e - GOLDEN[a][0]).max(), 0, 7e-7, "[konz25 fig. 4.8]"
        )
        yield Claim(
            f"planar body by {a}: energy minus the table [J]", np.abs(energy - GOLDEN[a][1]).max(), 0, 1e-6, "[konz25 (4.99)]"
        )
        if a != "particle":
            rise = float(r["prototype_power"].max())
            yield Claim(
                f"planar body by {a}: largest power of its error [W]", rise, 0, 1e-12, "[konz25 (4.23), (4.32)]", "at most"
            )
    t = result["planar particle"]["time"].values
    e, _ = errors(result["planar particle"])
    yield Claim(
        "planar body by particle: deviation from a straight path [m]", np.abs(e[:, 0]).max(), 0, 1e-9, "[konz25 (4.98)]"
    )
    yield Claim(
        "planar body by particle: e minus (1 + 2 t) exp(-2 t) [m]",
        np.abs(e[:, 1] - (1 + 2 * t) * np.exp(-2 * t)).max(),
        0,
        1e-9,
        "[konz25 (4.98)]",
    )
    z = errors(result["planar energy"])[1] @ [1, 1j]
    s = np.roots([1, 4 + 1j * np.pi, 4])
    A = np.linalg.solve([[1, 1], s], [1j, np.pi])
    yield Claim(
        "planar body by energy: r_E minus its closed form [m]",
        np.abs(z - np.exp(np.outer(t, s)) @ A).max(),
        0,
        1e-9,
        "[konz25 (4.98)]",
    )
    four = np.sort_complex(np.concatenate([s, s.conj()]))
    yield Claim(
        "planar body by energy: error of the roots [1/s]",
        np.abs(four - np.sort_complex(ROOTS)).max(),
        0,
        1e-4,
        "[konz25 4.7.5]",
    )


def _of_the_orientation(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["orientation body"]
    t = ca.SX.sym("t")
    goal = tumbling().at(t, ca.SX(0, 1)).value
    f = ca.Function("e", [t, (q := ca.SX.sym("q", 4))], [so3.quat_log(so3.quat_mul(so3.quat_conj(goal), q))])
    e = np.array([np.array(f(*x)).ravel() for x in zip(r["time"].values, r["q"].values[1], strict=True)])
    (pair,) = oriented()
    parts = (pair.inertia, pair.damping, pair.stiffness)
    moments = np.array([np.diag(np.array(ca.evalf(so3.Vee(x[:3, :3])))) for x in parts])
    start = SMALL * np.array(AXIS).ravel()
    expected = np.zeros_like(e)
    for i, (I, d, k) in enumerate(moments.T):
        s = np.roots([I, d, k]).astype(complex)
        A = np.linalg.solve([[1, 1], s], [start[i], 0])
        expected[:, i] = (np.exp(np.outer(r["time"].values, s)) @ A).real
    off = np.abs(e - expected).max() / SMALL
    yield Claim("orientation by body: small error minus the linear solution", off, 0, 1e-5, "[konz25 (4.86)]")
    for a in control.APPROACHES:
        last = float(turned_off(result[f"orientation {a}"], 0)[-1])
        yield Claim(f"orientation by {a}: error at the end [rad]", last, 0, 0.02, "ours", "at most")
