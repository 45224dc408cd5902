"""Symbolic matrices of the thesis's three machines: spacecraft, rover, car with a crane. [chhabra14 3.4, 4.6]

Each machine is described twice: as a Mechanism with symbolic lengths, masses and inertias, and by the printed formulas of the
thesis: relative poses q_j, bases S_j, positions of mass centres. Kinetic energy, connections, two-forms and reduced equations
of both are compared at random states and parameter values; the figures show the library's matrices, in symbols where SymPy is
installed. The spacecraft's motion is also integrated by the sixteen printed equations of its reduced space. Parameter values
are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import linear, se3, subgroups
from pfaffian.study import Claim, blank_figure

from ._chhabra_printed import (
    CAR,
    MU,
    RATES,
    ROVER,
    ROVER_START,
    SPACECRAFT,
    START,
    STATES,
    Letter,
    base_rates,
    basis_of_pose,
    body_momentum,
    car,
    car_bend,
    car_curvature,
    car_inertia,
    car_lift,
    carried_section,
    column,
    connection_of_isotropy,
    fitted,
    orbit_form,
    printed_car,
    printed_form,
    printed_inertia,
    printed_rover,
    printed_spacecraft,
    rotation,
    rover,
    rover_curvature,
    rover_lift,
    section,
    sixteen,
    spacecraft,
    split_tangent,
    unknowns,
)

# -- as mechanisms ------------------------------------------------------------------------------------------------------


def mechanism() -> pf.Mechanism:
    """The spacecraft."""
    return spacecraft()


# -- comparison ---------------------------------------------------------------------------------------------------------


def value(x: Any, at: ca.SX | None = None, number: Any = ()) -> np.ndarray:
    """Value of the expression x where its symbols `at` have the values `number`."""
    return np.array(ca.Function("x", [ca.SX(0, 1) if at is None else at], [ca.densify(ca.SX(x))])(number))


def off(a: Any, b: Any) -> float:
    """Largest difference, relative to the largest entry of b."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / max(1e-300, np.abs(np.asarray(b)).max()))


def varied(letters: Mapping[str, float], random: np.random.Generator) -> dict[str, float]:
    return {n: x * random.uniform(0.8, 1.25) for n, x in letters.items()}


def spacecraft_off() -> dict[str, float]:
    """By name: largest relative difference between a quantity and its printed formula over the random states."""
    m, n, random = spacecraft(), unknowns(SPACECRAFT), np.random.default_rng(2)
    mu1, mu2 = ca.SX.sym("mu1"), ca.SX.sym("mu2")
    o, q, x, yh = ca.SX.sym("o", 4), ca.SX.sym("q", 6), ca.SX.sym("x", 6), ca.SX.sym("yh", 2)
    joints = printed_spacecraft(n, q)
    M = printed_inertia(joints)
    A = linear.solve_definite(M[:6, :6], M[:6, 6:])
    R, p = section(o)
    carried = ca.horzcat(*[_twist(R, p, o[i], left=True) for i in range(4)])
    mu = column(0, mu1, 0, mu2, 0, 0)
    base = rotation("Y", x[4]) @ rotation("X", x[3]) @ rotation("Z", x[5])
    base_twists = ca.horzcat(*[_twist(base, x[:3], x[i]) for i in range(6)])
    h = fitted(mu2 / mu1, yh[0], yh[1], o)
    place = ca.vertcat(h[1] + h[0] @ p, o[2], yh[1], o[3])
    alone = printed_form(mu1, mu2, o, q, A)
    along = column(0, 1, 0, 0, 0, 0), column(mu2 / mu1, 0, 0, 0, 1, 0)
    between = connection_of_isotropy(mu1, mu2, o, M)
    motions = ca.horzcat(*along) @ between
    theta = ca.vertcat(
        ca.horzcat(*[_twist(R, p, o[i]) for i in range(4)]).T @ body_momentum(mu1, mu2, o), A.T @ body_momentum(mu1, mu2, o)
    )
    slopes = ca.jacobian(theta, ca.vertcat(o, q))
    sx, cx, sz, cz = ca.sin(x[3]), ca.cos(x[3]), ca.sin(x[5]), ca.cos(x[5])
    back = ca.diagcat(base, ca.blockcat([[cz, -sz, 0], [sz / cx, cz / cx, 0], [sz * sx / cx, cz * sx / cx, 1]]))
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "basis of the base": (base_twists, base_rates(x)),
        "its inverse, in the horizontal lift": (back @ base_rates(x), ca.SX.eye(6)),
        "T chi chi^-1": (carried, carried_section(o)),
        "mu_b": (se3.Ad(R, p).T @ mu, body_momentum(mu1, mu2, o)),
        "T chi~": (ca.jacobian(place, ca.vertcat(yh, o)), split_tangent(mu2 / mu1, yh[1], o)),
        "mu under its isotropy group": (se3.Ad(*h).T @ mu, mu),
        "Xi_mu by theta": (slopes.T - slopes, alone),
        "Xi_mu with A^mu": (printed_form(mu1, mu2, o, q, A, motions), alone),
        "Xi_mu of the orbit": (alone[:4, :4], orbit_form(mu1, o)),
        "Pfaffian of the orbit": (pfaffian(alone[:4, :4]), -(mu1**2) * ca.cos(o[2])),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f",
        [*n.values(), mu1, mu2, o, q, x, yh],
        [M, motions, se3.Ad(base, x[:3]) @ ca.horzcat(base_rates(x), A), *both],
        {"cse": True},
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, momentum = varied(SPACECRAFT, random), varied(MU, random)
        at = [random.uniform(-1, 1, k) for k in (4, 6, 6, 2)]
        M_at, motions_at, connection, *values = (np.array(y) for y in f(*L.values(), *momentum.values(), *at))
        # The library's base is placed at the pose of the section.
        pose = np.array(ca.DM(value(rotation("X", o[2]) @ rotation("Z", o[3]), o, at[0])))
        here = np.r_[at[0][0], 0, at[0][1], _quaternion(pose), at[1]]
        there = np.r_[at[2][:3], _quaternion(value(base, x, at[2])), at[1]]
        numbers = [0, momentum["mu1"], 0, momentum["mu2"], 0, 0]
        v = np.block(
            [
                [value(ca.horzcat(*[_twist(R, p, o[i]) for i in range(4)]), o, at[0]), np.zeros((6, 6))],
                [np.zeros((6, 4)), np.eye(6)],
            ]
        )
        connection_at = (
            subgroups.isotropy(np.eye(6), numbers) @ pf.reduction.isotropy_connection(m, numbers, here, parameters=L) @ v
        )
        rates = np.block([[value(base_rates(x), x, at[2]), np.zeros((6, 6))], [np.zeros((6, 6)), np.eye(6)]])
        A_q = np.linalg.solve(
            pf.reduction.locked_inertia(m, there, parameters=L),
            np.column_stack([pf.reduction.momentum_map(m, there, e, parameters=L) for e in rates.T]),
        )
        here_too = {
            "K": off(pf.mass_matrix(m, here, parameters=L), M_at),
            "A~ of the isotropy group": off(connection_at, motions_at),
            "A_q": off(A_q, connection),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here_too.items()}
    return found


def pfaffian(X: ca.SX) -> ca.SX:
    """Pfaffian of a skew (4, 4) matrix."""
    return X[0, 1] * X[2, 3] - X[0, 2] * X[1, 3] + X[0, 3] * X[1, 2]


def _twist(R: ca.SX, p: ca.SX, by: ca.SX, left: bool = False) -> ca.SX:
    """(6, 1) twist H^-1 dH, or dH H^-1 if `left`, of the pose H = (R, p) by the symbol `by`."""
    D, v = ca.reshape(ca.jacobian(ca.vec(R), by), 3, 3), ca.jacobian(p, by)
    W = D @ R.T if left else R.T @ D
    w = ca.vertcat(W[2, 1], W[0, 2], W[1, 0])
    return ca.vertcat(v - ca.cross(w, p) if left else R.T @ v, w)


def _quaternion(R: np.ndarray) -> np.ndarray:
    """Quaternion (x, y, z, w) of a rotation by less than half a turn."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.r_[np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w), w]


def rover_off() -> dict[str, float]:
    m, n, random = rover(), unknowns(ROVER), np.random.default_rng(3)
    q, p, theta = ca.SX.sym("q", 5), ca.SX.sym("p", 5), ca.SX.sym("theta")
    joints = printed_rover(n, q)
    pull, M_hat = rover_curvature(n, q, p)
    s, c = ca.sin(theta), ca.cos(theta)
    V = n.g * (n.l4 * n.m6 * ca.sin(q[3] + q[4]) + n.l3 * (n.m5 / 2 + n.m6) * ca.sin(q[3]))
    rows = ca.blockcat([[-s, c, 0, 0, 0], [c, s, -n.c, -n.b, 0], [c, s, n.c, 0, -n.b]])
    fields = ca.vertcat(ca.blockcat([[n.b / 2 * c] * 2, [n.b / 2 * s] * 2, [-n.b / (2 * n.c), n.b / (2 * n.c)]]), ca.SX.eye(2))
    turn = ca.diagcat(rotation("Z", theta)[:2, :2], 1)
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "horizontal lift": (-turn @ rover_lift(n), fields[:3, :]),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f", [*n.values(), q, p, theta], [printed_inertia(joints), pull, M_hat, V, rows @ fields, rover_lift(n), *both]
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, at, velocity = varied(ROVER, random), random.uniform(-1.5, 1.5, 8), random.normal(size=5)
        M, _, metric, height, slip, A, *values = (np.array(y) for y in f(*L.values(), at[3:], np.zeros(5), at[2]))
        v = np.r_[-A @ velocity[:2], velocity]
        K = pf.mass_matrix(m, at, parameters=L)
        upsilon = float(f(*L.values(), at[3:], metric @ velocity, at[2])[1])
        expected = np.zeros((5, 5))
        expected[0, 1], expected[1, 0] = upsilon, -upsilon
        lift = np.vstack([np.pad(-A, [(0, 0), (0, 3)]), np.eye(5)])
        zero = pf.energy(m, np.r_[at[:6], 0, 0], parameters=L).potential
        here = {
            "K": off(K, M),
            "V": off(pf.energy(m, at, parameters=L).potential - zero, height),
            "fields of D, slip": float(np.abs(slip).max()),
            "A^": off(pf.reduction.constraint_connection(m, at, parameters=L)[:, :2], A),
            "M^ by its blocks": off(lift.T @ K @ lift, metric),
            "Xi^": off(pf.reduction.constraint_curvature(m, at, parameters=L) @ (K @ v)[:3], expected),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here.items()}
    return found


def car_off() -> dict[str, float]:
    m, n, random, by = car(), unknowns(CAR), np.random.default_rng(4), ["base", "psi3"]
    q, p, theta, post_momentum = ca.SX.sym("q", 4), ca.SX.sym("p", 4), ca.SX.sym("theta"), ca.SX.sym("kept")
    wheels = ca.SX.sym("wheels", 2)
    joints = printed_car(n, ca.vertcat(q[0], q[2], wheels, q[3]))
    pull, M_hat = car_curvature(n, q, p)
    s, e, c, d = ca.sin(q[0]), ca.cos(q[0]), ca.cos(theta), ca.sin(theta)
    D = n.l - n.c * s
    rows = ca.blockcat([
        [-d, c, 0, 0, 0, 0],
        [-ca.sin(theta + q[0]), ca.cos(theta + q[0]), n.l * e, 0, 0, 0],
        [ca.cos(theta + q[0]), ca.sin(theta + q[0]), n.l * s - n.c, -n.c, -n.b, 0],
        [ca.cos(theta + q[0]), ca.sin(theta + q[0]), n.l * s + n.c, n.c, 0, -n.b],
    ])  # of x, y, theta, psi1, psi2, psi3  # fmt: skip
    columns = []
    for first, last in ((n.c, 2 / (n.b * e)), (n.b, (n.l + n.c * s) / (n.b * n.l * e))):
        columns.append(first * n.l * e / D * column(c, d, s / e / n.l, 0, 0, last))
    fields = ca.horzcat(*columns)
    fields[3, 0] = fields[4, 1] = 1
    turn = ca.diagcat(rotation("Z", theta)[:2, :2], 1, 1)
    across = ca.horzcat(n.c * s, n.b * s, D, 0) / D
    alpha = post_momentum * across
    slopes = ca.jacobian(alpha, q)
    form = ca.SX(4, 4)
    form[0, 1], form[1, 0] = post_momentum * n.b * n.l * e / D**2, -post_momentum * n.b * n.l * e / D**2
    K_theta = ca.diagcat(rotation("Z", theta)[:2, :2], ca.SX.eye(6))
    K = printed_inertia(joints)
    pairs = {
        "bases S_j": (ca.horzcat(*[basis_of_pose(j) for j in joints[1:]]), ca.horzcat(*[j.S for j in joints[1:]])),
        "K by its blocks": (K_theta @ K @ K_theta.T, car_inertia(n, q[3], theta)),
        "horizontal lift": (-turn @ car_lift(n, q[0]), fields[[0, 1, 2, 5], :]),
        "connection of the post": (M_hat[2, :] / M_hat[2, 2], across),
        "form of its momentum": (slopes.T - slopes, form),
    }  # fmt: skip
    both = [ca.densify(y) for pair in pairs.values() for y in pair]
    f = ca.Function(
        "f", [*n.values(), q, p, theta, post_momentum, wheels], [K, pull, M_hat, rows @ fields, car_lift(n, q[0]), *both]
    )
    found: dict[str, float] = {}
    for _ in range(STATES):
        L, at, velocity = varied(CAR, random), random.uniform(-0.9, 0.9, 8), random.normal(size=4)
        shape = at[[3, 5, 4, 7]]  # psi1, psi2, phi1, phi2
        rest = at[2], 3.0, at[[5, 6]]
        M, _, metric, slip, A, *values = (np.array(y) for y in f(*L.values(), shape, np.zeros(4), *rest))
        v = np.zeros(8)
        v[[3, 5, 4, 7]], v[[0, 1, 2, 6]] = velocity, -A @ velocity[:2]
        upsilon = float(f(*L.values(), shape, metric @ velocity, *rest)[1])
        expected = np.zeros((4, 4))
        expected[0, 1], expected[1, 0] = upsilon, -upsilon
        B = pf.reduction.constraint_curvature(m, at, by=by, parameters=L)  # of psi1, phi1, psi2, phi2
        order = [0, 2, 1, 3]
        P = (pf.mass_matrix(m, at, parameters=L) @ v)[[0, 1, 2, 6]]
        here = {
            "K": off(pf.mass_matrix(m, at, parameters=L), M),
            "fields of D, slip": float(np.abs(slip).max()),
            "A^": off(pf.reduction.constraint_connection(m, at, by=by, parameters=L)[:, [0, 2]], A),
            "Xi^": off((B @ P)[np.ix_(order, order)], expected),
        } | {name: off(values[2 * i], values[2 * i + 1]) for i, name in enumerate(pairs)}
        found = {name: max(found.get(name, 0.0), y) for name, y in here.items()}
    return found


def closed_or_not() -> dict[str, np.ndarray]:
    """d Xi_mu of the spacecraft at the start, as cyclic sums over index triples; derivatives of the rover's Upsilon at its
    start."""
    o, q = ca.SX.sym("o", 4), ca.SX.sym("q", 6)
    M = printed_inertia(printed_spacecraft(Letter(SPACECRAFT), q))
    A = linear.solve_definite(M[:6, :6], M[:6, 6:])
    Xi = printed_form(MU["mu1"], MU["mu2"], o, q, A)
    x = ca.vertcat(o, q)
    slopes = ca.Function("slopes", [x], [Xi, ca.jacobian(ca.vec(Xi), x)], {"cse": True})
    at, d = (np.array(y) for y in slopes(START))
    d = d.reshape(10, 10, 10)  # [j, i, k]: d_k Xi_ij
    round_three = [d[j, i, k] + d[k, j, i] + d[i, k, j] for i, j, k in combinations(range(10), 3)]
    w, p = ca.SX.sym("w", 5), ca.SX.sym("p", 5)
    pull, M_hat = rover_curvature(Letter(ROVER), w, p)
    f = ca.Function("f", [w, p], [ca.jacobian(pull, w), ca.jacobian(pull, p), M_hat, pull])
    start, rates = ROVER_START
    by_q, by_p, _, pull_at = (np.array(y).ravel() for y in f(start, np.array(f(start, rates)[2]) @ rates))
    return {
        "round three": np.array(round_three),
        "largest": np.abs(at).max(),
        "by phi": by_q[2:],
        "by psi": by_q[:2],
        "by p": by_p,
        "Upsilon": pull_at,
    }


def run() -> dict[str, xr.Dataset]:
    machine = sixteen(Letter(SPACECRAFT), MU["mu1"], MU["mu2"])
    M = value(printed_inertia(printed_spacecraft(Letter(SPACECRAFT), ca.SX(START[4:]))))
    p = (M[6:, 6:] - M[6:, :6] @ np.linalg.solve(M[:6, :6], M[:6, 6:])) @ RATES
    x, step, records = np.r_[START, p], 5e-3, []

    def rate(x: np.ndarray) -> np.ndarray:
        return np.array(machine(x)[0]).ravel()

    for i in range(1001):
        if not i % 20:
            records.append(x)
        k1 = rate(x)
        k2 = rate(x + step / 2 * k1)
        k3 = rate(x + step / 2 * k2)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + step * k3))
    x = np.array(records)
    ran = {"state": (("time", "entry"), x), "energy": ("time", [float(machine(y)[1]) for y in x])}
    compared = {"spacecraft": spacecraft_off(), "rover": rover_off(), "car": car_off()}
    return {"spacecraft in sixteen": xr.Dataset(ran, coords={"time": 0.1 * np.arange(len(x))})} | {
        "forms": xr.Dataset({name: (f"of {name}", np.atleast_1d(y)) for name, y in closed_or_not().items()}),
        **{name: xr.Dataset({"off": ("what", list(y.values()))}, coords={"what": list(y)}) for name, y in compared.items()},
    }


# -- figures ------------------------------------------------------------------------------------------------------------


NAMES = {"psi1": "psi_1", "psi2": "psi_2", "phi1": "phi_1", "phi2": "phi_2", "mu1": "mu_1", "mu2": "mu_2"}


UNPRINTED = r"$\bullet$"
"""Mark of an entry that needs SymPy to be written in symbols."""


def named(m: pf.Mechanism, q: Any) -> ca.SX:
    """M of the library at q, with its parameters as symbols."""
    T, at = pf.symbols(m), ca.vertcat(*q, *[ca.SX.sym(name) for name in m.p_names])
    return ca.densify(ca.substitute(T.M, ca.vertcat(T.q, m.p_symbols), at))


def in_letters(x: Any, states: Mapping[ca.SX, str] | None = None) -> list[list[str]]:
    """Text of each entry of an expression; states: symbol -> name. Without SymPy, `UNPRINTED` for nonzero entries."""
    try:
        import sympy as sp
    except ImportError:
        x = ca.densify(ca.SX(x))
        return [["$0$" if x[i, k].is_zero() else UNPRINTED for k in range(x.shape[1])] for i in range(x.shape[0])]

    known = {s.name(): sp.Symbol(name, real=True) for s, name in (states or {}).items()}
    for s in ca.symvar(ca.SX(x)):
        n = s.name()
        known.setdefault(
            n, sp.Symbol(NAMES.get(n) or (f"j_{n[1]}{n[2:]}" if n[0] == "j" else f"{n[0]}_{n[1:]}" if n[1:] else n))
        )
    M = pf.screws.to_sympy(x, known)
    return [
        [f"${sp.latex(sp.factor_terms(sp.trigsimp(e)) if len(str(e)) < 60 else sp.simplify(e))}$" for e in M.row(i)]
        for i in range(M.rows)
    ]


def matrix(ax: Any, entries: list[list[str]], rows: Sequence[str], columns: Sequence[str], title: str, size: float = 8) -> None:
    """Draw the entries of a matrix, nonzero ones on a coloured ground."""
    ax.imshow([[x != "$0$" for x in row] for row in entries], cmap="Blues", vmin=0, vmax=4, aspect="auto")
    for i, row in enumerate(entries):
        for k, x in enumerate(row):
            ax.text(k, i, x, ha="center", va="center", fontsize=size)
    ax.set_xticks(range(len(columns)), [x and f"${x}$" for x in columns])
    ax.set_yticks(range(len(rows)), [f"${x}$" for x in rows])
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_title(f"{title} (symbols: pip install sympy)" if any(UNPRINTED in row for row in entries) else title)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    ran = _sixteen(result["spacecraft in sixteen"])
    return {"spacecraft": _spacecraft(), "sixteen": ran, "car": _car(), "wheels": _wheels()}


TWIST = ("v_x", "v_y", "v_z", "w_x", "w_y", "w_z")
SECTION = ("x", "z", r"\theta_X", r"\theta_Z")


def shortened(entries: list[list[str]], names: Mapping[str, tuple[int, int]]) -> tuple[list[list[str]], list[str]]:
    """The entries with names in the given places, and the equations of these names."""
    long = []
    for name, (i, k) in names.items():
        text = entries[i][k]
        if text != UNPRINTED:
            long.append(f"${name} = $ {text}")
            entries = [[f"${name}$" if x == text else x for x in row] for row in entries]
    return entries, long


def _spacecraft() -> Any:
    figure = blank_figure(11.0, 6.5)
    axes = figure.subplots(2, 2, width_ratios=(1, 1.3), height_ratios=(1, 1)).ravel()
    o, mu1, mu2, ratio, about_y = ca.SX.sym("o", 4), *(ca.SX.sym(x) for x in ("mu1", "mu2", "ratio", "yh"))
    states = dict(zip(ca.vertsplit(o), ("x", "z", "theta_X", "theta_Z"), strict=True))
    states |= {about_y: "theta_Y", ratio: r"\frac{\mu_2}{\mu_1}"}
    matrix(axes[0], in_letters(carried_section(o), states), TWIST, SECTION, r"$T\chi\,\chi^{-1}$")
    names = ("x", "y", "z", r"\theta_X", r"\theta_Y", r"\theta_Z")
    tangent = in_letters(split_tangent(ratio, about_y, o), states)
    tangent, long = shortened(tangent, {"a": (0, 1), "b": (2, 1)})
    matrix(axes[1], tangent, names, ("y", r"\theta_Y", *SECTION), r"$T\tilde\chi$")
    axes[1].set_xlabel("\n".join(long), fontsize=8)
    matrix(axes[2], in_letters(orbit_form(mu1, o), states), SECTION, SECTION, r"$\Xi_\mu$ of the orbit")
    matrix(axes[3], in_letters(body_momentum(mu1, mu2, o), states), TWIST, ("",), r"$\mu_b$")
    return figure


def _sixteen(r: xr.Dataset) -> Any:
    figure = blank_figure(10.0, 3.2)
    orbit, shape, momenta = figure.subplots(1, 3)
    for i, name in enumerate(SECTION):
        orbit.plot(r["time"], r["state"][:, i], label=f"${name}$")
    for i, name in enumerate((r"\psi_X", r"\psi_Y", r"\psi_Z", r"\psi_1", r"\psi_2", r"\psi_3")):
        shape.plot(r["time"], r["state"][:, 4 + i], label=f"${name}$")
        momenta.plot(r["time"], r["state"][:, 10 + i])
    orbit.set(ylabel="[m], [rad]", title="position on the orbit")
    shape.set(ylabel="[rad]", title="shape")
    momenta.set(ylabel="[N m s]", title="momenta of the shape, same colours")
    for ax in (orbit, shape, momenta):
        ax.set(xlabel="time [s]")
    orbit.legend(loc="upper left", ncols=2)
    shape.legend(loc="upper left", ncols=3)
    return figure


def _car() -> Any:
    figure = blank_figure(11.0, 5.5)
    K = named(car(), [ca.SX.sym(x) for x in ("x", "y", "theta", "psi1", "phi1", "psi2", "psi3", "phi2")])
    rates = ("v_x", "v_y", "w", r"\psi_1", r"\phi_1", r"\psi_2", r"\psi_3", r"\phi_2")
    entries, long = shortened(in_letters(K), {"m_{tot}": (0, 0), "S": (1, 2), r"j_{z,tot}": (2, 2), "K_{33}": (4, 4)})
    ax = figure.subplots()
    matrix(ax, entries, rates, rates, "car: K of the library, in the axes of the base")
    ax.set_xlabel("\n".join(long), fontsize=8)
    return figure


def _wheels() -> Any:
    figure = blank_figure(11.0, 3.2)
    rover_s, car_s, curved = figure.subplots(1, 3, width_ratios=(1, 1.6, 1))
    n, a = unknowns(CAR), ca.SX.sym("psi1")
    base, wheels = ("v_x", "v_y", "w", r"\psi_3"), (r"\psi_1", r"\psi_2")
    matrix(rover_s, in_letters(rover_lift(unknowns(ROVER))), base[:3], wheels, r"rover: $\hat A$", 10)
    matrix(car_s, in_letters(car_lift(n, a)), base, wheels, r"car: $\hat A$", 10)
    matrix(curved, in_letters(car_bend(n, a)), base, ("",), r"car: $\hat B_{12}$", 10)
    return figure


# -- claims -------------------------------------------------------------------------------------------------------------

EXACT = 1e-14
"""Tolerance of two computations of one expression, relative to its largest entry."""


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    sources = {
        "spacecraft": "[chhabra14 3.4]",
        "rover": "[chhabra14 example 4.6.1]",
        "car": "[chhabra14 example 4.6.2]",
    }
    for name, source in sources.items():
        for what, x in zip(result[name]["what"].values, result[name]["off"].values, strict=True):
            yield Claim(f"{name}: {what} minus its printed formula, relative", x, 0, EXACT, source)
    ran = result["spacecraft in sixteen"]
    last = (0.25588136, -0.441264147, 0.8193218581, -0.6337636431)
    last += (1.6246502994, 0.9415472815, -0.4612152686, 0.1216709787, -0.5099969956, -1.1821938358)
    for i, (x, expected) in enumerate(zip(ran["state"].values[-1], last, strict=False)):
        yield Claim(
            f"spacecraft in sixteen: entry {i + 1} at 5 s", x, expected, 6e-9 if i == 0 else 2e-9, sources["spacecraft"]
        )
    yield Claim("spacecraft in sixteen: energy at 0 [J]", ran["energy"][0], 9.56720528757156, 1e-13, sources["spacecraft"])
    yield Claim("spacecraft in sixteen: change of energy [J]", np.ptp(ran["energy"].values), 0, 1e-8, "[chhabra14 (3.3.44)]")
    forms = result["forms"]
    round_three = np.abs(forms["round three"].values).max() / forms["largest"].item()
    yield Claim(
        "spacecraft: d Xi_mu, relative to the largest entry of Xi_mu", round_three, 0, EXACT, "[chhabra14 theorem 3.2.7]"
    )
    for i, x in enumerate((-0.0103, 0.0010, -0.0003)):
        yield Claim(f"rover: derivative of Upsilon by phi{i + 1}", forms["by phi"].values[i], x, 5e-5, sources["rover"])
    yield Claim("rover: derivatives of Upsilon by psi", np.abs(forms["by psi"].values).max(), 0, 0, sources["rover"])
    yield Claim("rover: Upsilon at 0 [N m s]", forms["Upsilon"].item(), 0.006035250883290945, 1e-15, sources["rover"])
    by_p = np.abs(forms["by p"].values).min()
    yield Claim("rover: smallest derivative of Upsilon by a momentum", by_p, 0.01, 0, sources["rover"], "at least")
