"""Theo Jansen's leg, redesigned by gradients: its foot is to move in a straighter line with strides that are no shorter.

The ten lengths of the links are parameters. At 36 angles of the crank the other angles are also unknowns, and the loop closures
are constraints of the optimisation: `casadi_function` passes them to CasADi, whose derivatives ipopt uses. The cost is the
variance of the foot's height while it is on the ground, 160 degrees of a turn. The stride is at least Jansen's, the lift at
least nine tenths of Jansen's, and no length changes by more than a tenth. Ground, bounds and weights are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

LENGTHS = {"b": 41.5, "c": 39.3, "d": 40.1, "e": 55.8, "f": 39.4, "g": 36.7, "h": 65.7, "i": 49.0, "j": 50.0, "k": 61.9}
"""Jansen's numbers [cm]."""
CRANK, PIVOT = 15.0, (-38.0, -7.8, 0.0)
"""Length of the crank, and position of the pivot of b and c in the frame [cm]."""
GUESS = {"j": 2.466, "k": -2.315, "bde": 1.227, "c": -1.286, "f": -2.392, "ghi": -2.352}
"""Guesses of the other angles at crank angle zero [rad]."""
ON_GROUND, IN_AIR = np.radians(np.linspace(280, 440, 18)), np.radians(np.linspace(450, 630, 18))
CHANGE, LIFT = 0.1, 0.9
"""Largest relative change of a length, and smallest lift relative to Jansen's."""


def corner(first: Any, side: Any, other: Any) -> tuple[Any, Any]:
    """Intersection, left of a bar along x, of circles with radii `side` and `other` around its ends."""
    x = (first**2 + side**2 - other**2) / (2 * first)
    return x, (side**2 - x**2) ** 0.5


def mechanism() -> pf.Mechanism:
    """The leg with its lengths as parameters; the masses of the links do not matter."""
    p = {name: pf.Parameter(name, value, "cm") for name, value in LENGTHS.items()}
    bodies = [pf.body(name, 1.0, inertia=1.0) for name in ("crank", *GUESS)]
    top = corner(*[ca.SX(p[n].symbol) for n in "bde"])

    def hinge(name: str, parent: str, at: Any) -> pf.Joint:
        return pf.joint(name, "revolute", parent, name, placement=tuple(at))

    joints = [hinge("crank", "world", (0, 0, 0)), hinge("j", "crank", (CRANK, 0, 0)), hinge("k", "crank", (CRANK, 0, 0)),
              hinge("bde", "world", PIVOT), hinge("c", "world", PIVOT), hinge("f", "bde", (*top, 0)),
              hinge("ghi", "c", (p["c"], 0, 0))]  # fmt: skip
    loops = [("J1", "j", "bde", "j", "b"), ("J2", "k", "c", "k", "c"), ("F", "f", "ghi", "f", "g")]
    closures = [
        pf.closure(name, "revolute", a, b, placement_a=(p[x], 0, 0), placement_b=(p[y], 0, 0)) for name, a, b, x, y in loops
    ]
    return pf.mechanism("leg", bodies, joints, constraints=closures, parameters=list(p.values()), gravity=(0, -981.0, 0))


def foot(m: pf.Mechanism) -> ca.Function:
    """Function (q, p) -> (2,) position of the foot [cm]."""
    T = pf.symbols(m)
    x, y = corner(*[m.p_symbols[m.p_names.index(n)] for n in "gih"])
    return ca.Function("foot", [T.q, m.p_symbols], [T.kinematics.position("ghi", ca.vertcat(x, y, 0))[:2]])


def turned(m: pf.Mechanism, angles: np.ndarray, lengths: Any = None) -> np.ndarray:
    """(angles, nq) configurations at these increasing crank angles, each assembled from the previous one."""
    found = [pf.assemble(m, [0.0, *GUESS.values()], hold=["crank"], parameters=lengths).q]
    for angle in [*np.arange(0.1, angles[0], 0.1), *angles]:
        found.append(pf.assemble(m, [angle, *found[-1][1:]], hold=["crank"], parameters=lengths).q)
    return np.array(found[-len(angles) :])


def designed(m: pf.Mechanism) -> tuple[dict[str, float], int]:
    """Optimal lengths [cm], and ipopt's number of iterations."""
    angles = np.concatenate([ON_GROUND, IN_AIR])
    start, where, phi = turned(m, angles), foot(m), pf.casadi_function(m, "constraints", backend="casadi")
    p, others = ca.MX.sym("p", len(LENGTHS)), ca.MX.sym("q", m.nq - 1, len(angles))
    q = ca.vertcat(ca.DM(angles).T, others)
    at, known = where.map(len(angles))(q, ca.repmat(p, 1, len(angles))), np.array(where.map(len(angles))(start.T, m.p_defaults))
    ground, n = at[:, : len(ON_GROUND)], len(ON_GROUND)
    stride = at[0, n - 1] - at[0, 0]
    most = (ca.mmax(at[1, n:]) - ca.sum2(ground[1, :]) / n) - LIFT * (known[1, n:].max() - known[1, :n].mean())
    closed = [phi(q[:, i], ca.DM.zeros(m.nv), p, 0)[0] for i in range(len(angles))]
    rows = [i for i in range(closed[0].shape[0]) if np.any(np.array(_by_q(m)(start[0], m.p_defaults))[i])]
    cost = ca.sumsqr(ground[1, :] - ca.sum2(ground[1, :]) / n) / n
    nlp = {"x": ca.vertcat(p, ca.vec(others)), "f": cost, "g": ca.vertcat(*[c[rows] for c in closed], stride, most)}
    solver = ca.nlpsol("design", "ipopt", nlp, {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes"})
    first, free = np.array(list(LENGTHS.values())), np.full((m.nq - 1) * len(angles), np.inf)
    shut = len(rows) * len(angles)
    found = solver(
        x0=np.concatenate([first, start[:, 1:].ravel()]),
        lbx=np.concatenate([first * (1 - CHANGE), -free]), ubx=np.concatenate([first * (1 + CHANGE), free]),
        lbg=np.concatenate([np.zeros(shut), [known[0, n - 1] - known[0, 0], 0]]),
        ubg=np.concatenate([np.zeros(shut), [np.inf] * 2]),
    )  # fmt: skip
    assert solver.stats()["success"]
    return dict(zip(LENGTHS, np.array(found["x"]).ravel()[: len(LENGTHS)].tolist(), strict=True)), solver.stats()["iter_count"]


def _by_q(m: pf.Mechanism) -> ca.Function:
    """Function (q, p) -> derivative of the constraints by q; its zero rows, normal to the plane, are left out of the
    problem."""
    q, p = ca.MX.sym("q", m.nq), ca.MX.sym("p", len(LENGTHS))
    return ca.Function(
        "by_q", [q, p], [ca.jacobian(pf.casadi_function(m, "constraints", backend="casadi")(q, ca.DM.zeros(m.nv), p, 0)[0], q)]
    )


def run() -> dict[str, Any]:
    m = mechanism()
    lengths, iterations = designed(m)
    first, last = ON_GROUND[[0, -1]]
    angles = np.concatenate([np.linspace(first, last, 81), np.linspace(last, first + 2 * np.pi, 101)[1:]])
    paths = {}
    for name, given in (("Jansen", LENGTHS), ("designed", lengths)):
        q = turned(m, angles, given)
        paths[name] = np.array([np.array(foot(m)(x, list(given.values()))).ravel() for x in q])
    return {"angles": angles, "paths": paths, "lengths": lengths, "iterations": iterations}


def by_circles(angle: float, lengths: dict[str, float]) -> np.ndarray:
    """(2,) position of the foot by intersecting circles [cm]."""

    def meet(a: np.ndarray, b: np.ndarray, from_a: float, from_b: float) -> np.ndarray:
        """The intersection on the left of the line from a to b."""
        way = b - a
        x, y = corner(np.hypot(*way), from_a, from_b)
        along = way / np.hypot(*way)
        return a + x * along + y * np.array([-along[1], along[0]])

    l, pin, pivot = lengths, CRANK * np.array([np.cos(angle), np.sin(angle)]), np.array(PIVOT[:2])
    top, low = meet(pivot, pin, l["b"], l["j"]), meet(pin, pivot, l["k"], l["c"])
    knee = meet(low, meet(pivot, top, l["d"], l["e"]), l["g"], l["f"])
    return meet(low, knee, l["i"], l["h"])


def figures(result: dict[str, Any]) -> dict[str, Any]:
    fig = blank_figure(7.2, 4.0)
    ax = fig.subplots()
    for name, path in result["paths"].items():
        ax.plot(path[:, 0], path[:, 1], label=name)
    ax.set(xlabel="foot, forwards [cm]", ylabel="foot, up [cm]", aspect="equal")
    ax.legend()
    return {"foot": fig}


def claims(result: dict[str, Any]) -> Iterator[Claim]:
    ground = result["angles"] <= ON_GROUND[-1]
    before, after = (result["paths"][name] for name in ("Jansen", "designed"))
    feet = [np.array([by_circles(a, lengths) for a in result["angles"]]) for lengths in (LENGTHS, result["lengths"])]
    source = "intersecting circles"
    yield Claim("error of the foot, Jansen's leg [cm]", float(np.abs(feet[0] - before).max()), 0.0, 1e-8, source)
    yield Claim("error of the foot, designed leg [cm]", float(np.abs(feet[1] - after).max()), 0.0, 1e-8, source)
    height = [float(np.ptp(path[ground, 1])) for path in feet]
    yield Claim("variation of height on the ground, relative to Jansen's", height[1] / height[0], 0.15, 0.0, source, "at most")
    stride = [float(np.ptp(path[ground, 0])) for path in feet]
    yield Claim("stride, compared with Jansen's [cm]", stride[1], stride[0], 1e-5, source, "at least")
    lift = [float(path[~ground, 1].max() - path[ground, 1].mean()) for path in feet]
    yield Claim("lift, compared with Jansen's [cm]", lift[1], LIFT * lift[0], 0.05, source, "at least")
    change = max(abs(result["lengths"][n] / x - 1) for n, x in LENGTHS.items())
    yield Claim("largest relative change of a length", change, CHANGE, 1e-7, relation="at most")
