"""A tricopter with a hanging load: 30 coordinates, 15 velocities, bodies on a graph of poses. [konz25 3.4.1, (3.97)-(3.107)]

The bodies are a central body, a load, three tilting arms and three propellers. The coordinates are r and R of the central body,
R of the load relative to it, three tilt angles, and the cosine and sine of each propeller's angle; the velocities are the twist
of the central body, the angular velocity of the load, and the rates of tilts and propellers. The load's angular velocity is
absolute, as in the thesis, or relative to the central body, by K or by a choice of velocities. The machine is compared with one
of ordinary joints, and with one whose load and arms are free bodies connected by closures.

The thesis has no numbers and no run; masses are drawn at random, and the machine falls with its propellers turning. M and c are
also found by the thesis's algorithm (3.120)-(3.124), in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

ARMS = (np.pi / 3, np.pi, -np.pi / 3)
"""Azimuths of the arms [rad]."""
L_A, H_L, H_P = 0.35, -0.05, 0.06
"""Length of an arm, height of the load's joint, height of a propeller above its arm [m]."""
BODIES = ("central", "load", "arm 1", "propeller 1", "arm 2", "propeller 2", "arm 3", "propeller 3")
G = 9.8
DURATION, STEP = 0.5, 2.5e-4
PLAIN = 10_000
"""Number of operations for M and c in a plain version by the group rules."""
LOOKS = {"absolute": "C0-", "relative": "C1-", "chosen": "k:", "tree": "C2-", "closures": "C3-"}
OPERATIONLESS = {ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_PARAMETER}


def bodies() -> list[pf.Body]:
    """Eight bodies of six point masses each, with a heavy load at the bottom."""
    random = np.random.default_rng(36)
    made = []
    for name in BODIES:
        low = 0.4 if name == "load" else 0.0
        masses, points = random.uniform(0.02, 0.1, 6), random.uniform(-0.1, 0.1, (6, 3)) - (0, 0, low)
        com = masses @ points / masses.sum()
        arms = points - com
        inertia = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(masses, arms, strict=True))
        made.append(pf.body(name, masses.sum(), com, inertia.tolist()))
    return made


def coordinates(absolute: bool) -> pf.Coordinates:
    """Coordinates x and K of (3.105), with the corrected rates of cosines and sines; `absolute`: the load's angular velocity is
    absolute and not relative."""
    entries = [f"{column}{x}" for column in "xyz" for x in "xyz"]
    q = [*"xyz", *entries, *(f"load.{e}" for e in entries), *(f"tilt {i}" for i in (1, 2, 3))]
    q += [f"{f} {i}" for i in (1, 2, 3) for f in ("cos", "sin")]
    v = ["vx", "vy", "vz", "wx", "wy", "wz", "load.wx", "load.wy", "load.wz"]
    v += [f"{what} {i}" for what in ("tilt", "propeller") for i in (1, 2, 3)]

    def K(x: ca.SX) -> ca.SX:
        R, L = ca.reshape(x[3:12], 3, 3), ca.reshape(x[12:21], 3, 3)
        out = ca.SX(30, 15)
        out[0:3, 0:3] = R
        for i, axis in enumerate(map(so3.hat, np.eye(3))):
            out[3:12, 3 + i] = ca.vec(R @ axis)
            out[12:21, 6 + i] = ca.vec(L @ axis)
            if absolute:
                out[12:21, 3 + i] = -ca.vec(axis @ L)
            out[21 + i, 9 + i] = 1
            out[24 + 2 * i, 12 + i], out[25 + 2 * i, 12 + i] = -x[25 + 2 * i], x[24 + 2 * i]
        return out

    def phi(x: ca.SX) -> ca.SX:
        turns = [ca.reshape(x[i : i + 9], 3, 3) for i in (3, 12)]
        rows = [ca.dot(R[:, i], R[:, j]) - (i == j) for R in turns for i in range(3) for j in range(i + 1)]
        return ca.vertcat(*rows, *[ca.det(R) - 1 for R in turns], *[ca.sumsqr(x[i : i + 2]) - 1 for i in (24, 26, 28)])

    one = np.eye(3).ravel()
    return pf.coordinates(
        "x", q, v, K, phi=phi, start=[0, 0, 0, *one, *one, 0, 0, 0, 1, 0, 1, 0, 1, 0],
        q_units=["m"] * 3 + ["1"] * 18 + ["rad"] * 3 + ["1"] * 6, v_units=["m/s"] * 3 + ["rad/s"] * 12,
    )  # fmt: skip


def edges() -> list[pf.Joint]:
    """Relative poses of the graph. [konz25 (3.97)-(3.100)]"""

    def turn_z(c: ca.SX, s: ca.SX) -> ca.SX:
        return ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    def turn_x(angle: ca.SX) -> ca.SX:
        c, s = ca.cos(angle), ca.sin(angle)
        return ca.blockcat([[1, 0, 0], [0, c, -s], [0, s, c]])

    made = [
        pf.edge("central", "world", "central", lambda k: pf.Pose(ca.reshape(k.q[3:12], 3, 3), k.q[0:3])),
        pf.edge("load", "central", "load", lambda k: pf.Pose(ca.reshape(k.q[12:21], 3, 3), ca.SX([0, 0, H_L]))),
    ]
    for i, at in enumerate(ARMS):
        foot, top = ca.SX(L_A * np.array([np.cos(at), np.sin(at), 0])), ca.SX([0, 0, H_P])
        across = turn_z(ca.SX(np.cos(at)), ca.SX(np.sin(at)))
        arm: Callable = lambda k, i=i, R=across, p=foot: pf.Pose(R @ turn_x(k.q[21 + i]), p)  # noqa: E731
        spin: Callable = lambda k, i=i, p=top: pf.Pose(turn_z(k.q[24 + 2 * i], k.q[25 + 2 * i]), p)  # noqa: E731
        made.append(pf.edge(f"arm {i + 1}", "central", f"arm {i + 1}", arm))
        made.append(pf.edge(f"propeller {i + 1}", f"arm {i + 1}", f"propeller {i + 1}", spin))
    return made


def graph(absolute: bool = True) -> pf.Mechanism:
    """Bodies on a graph, with the load's angular velocity absolute or relative."""
    return pf.mechanism("graph", bodies(), edges(), coordinates=[coordinates(absolute)], gravity=(0, 0, -G))


def chosen() -> pf.Mechanism:
    """The graph with relative angular velocity, and the absolute one as chosen velocity: w12 = w02 - R12^T w01."""

    def T(k: pf.Kinematics) -> ca.SX:
        out = ca.SX.eye(15)
        out[6:9, 3:6] = -ca.reshape(k.q[12:21], 3, 3).T
        return out

    m = graph(absolute=False)
    return m.with_(velocities=pf.velocities(T, m.v_names, m.v_units))


def places() -> dict[str, pf.Pose]:
    """Placements of the joints on the central body and on the arms."""
    feet = [(L_A * np.cos(at), L_A * np.sin(at), 0) for at in ARMS]
    made = {f"arm {i + 1}": pf.pose(p, rpy=(0, 0, at)) for i, (p, at) in enumerate(zip(feet, ARMS, strict=True))}
    return made | {"load": pf.pose((0, 0, H_L)), "propeller": pf.pose((0, 0, H_P))}


def tree(closed: bool = False) -> pf.Mechanism:
    """The machine with ordinary joints; `closed`: load and arms are free bodies connected by closures."""
    at = places()
    hung: list[tuple[str, dict]] = [("load", {"kind": "spherical"})]
    hung += [(f"arm {i}", {"kind": "revolute", "axis": (1, 0, 0)}) for i in (1, 2, 3)]
    joints, loops = [pf.joint("central", "free", "world", "central")], []
    for name, how in hung:
        if closed:
            joints.append(pf.joint(name, "free", "world", name))
            loops.append(pf.closure(name, body_a="central", body_b=name, placement_a=at[name], **how))
        else:
            joints.append(pf.joint(name, parent="central", child=name, placement=at[name], **how))
    joints += [
        pf.joint(f"propeller {i}", "revolute", f"arm {i}", f"propeller {i}", axis=(0, 0, 1), placement=at["propeller"])
        for i in (1, 2, 3)
    ]
    return pf.mechanism("tree", bodies(), joints, constraints=loops, gravity=(0, 0, -G))


def mechanism() -> pf.Mechanism:
    return graph()


# -- states --------------------------------------------------------------------------------------------------------------


def start() -> tuple[np.ndarray, np.ndarray]:
    """Start x (30,) and xi (15,) with the absolute angular velocity of the load."""
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_rotvec([[0.3, -0.2, 0.4], [-0.4, 0.5, 0.1]]).as_matrix()
    tilt, angle = np.array([0.3, -0.2, 0.1]), np.array([0.5, 1.5, -2.0])
    pairs = np.column_stack([np.cos(angle), np.sin(angle)]).ravel()
    x = np.concatenate([[0.1, -0.2, 1.0], *(R.T.ravel() for R in turns), tilt, pairs])
    return x, np.array([0.5, -0.3, 0.2, 1.0, -0.6, 0.8, -1.5, 1.0, 0.4, 0.7, -0.5, 0.9, 12.0, -10.0, 14.0])


def relative(x: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """xi with the relative instead of the absolute angular velocity of the load."""
    L = x[..., 12:21].reshape(*x.shape[:-1], 3, 3)  # transposed, since x has R column by column
    out = xi.copy()
    out[..., 6:9] -= np.einsum("...ij,...j->...i", L, xi[..., 3:6])
    return out


def of_tree(m: pf.Mechanism, x: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the tree at the state x, xi."""
    from scipy.spatial.transform import Rotation

    R, L = (Rotation.from_matrix(x[i : i + 9].reshape(3, 3).T) for i in (3, 12))
    xi_relative = relative(x, xi)
    angle = np.arctan2(x[[25, 27, 29]], x[[24, 26, 28]])
    q, v = {"central": [*x[:3], *R.as_quat()]}, {"central": xi[:6]}
    if not m.constraints:
        q |= {"load": L.as_quat()} | {f"arm {i + 1}": x[21 + i] for i in range(3)}
        v |= {"load": xi_relative[6:9]} | {f"arm {i + 1}": xi[9 + i] for i in range(3)}
    else:
        for name, at in places().items():
            if name != "propeller":
                turn, w = _hung(name, x, xi, xi_relative, L)
                P, Q = np.array(ca.DM(at.R)), np.array(ca.DM(at.p)).ravel()
                here = R * Rotation.from_matrix(P) * turn
                q[name] = [*(x[:3] + R.apply(Q)), *here.as_quat()]
                speed = (Rotation.from_matrix(P) * turn).inv()
                v[name] = [*speed.apply(xi[:3] + np.cross(xi[3:6], Q)), *(speed.apply(xi[3:6]) + w)]
    q |= {f"propeller {i + 1}": angle[i] for i in range(3)}
    v |= {f"propeller {i + 1}": xi[12 + i] for i in range(3)}
    return (
        np.concatenate([np.atleast_1d(q[j.name]) for j in m.joints]),
        np.concatenate([np.atleast_1d(v[j.name]) for j in m.joints]),
    )


def _hung(name: str, x: np.ndarray, xi: np.ndarray, xi_relative: np.ndarray, L):
    """Rotation of a body in its joint's frame, and its angular velocity relative to the central body."""
    from scipy.spatial.transform import Rotation

    if name == "load":
        return L, xi_relative[6:9]
    i = int(name[-1]) - 1
    return Rotation.from_rotvec([x[21 + i], 0, 0]), np.array([xi[9 + i], 0, 0])


# -- the thesis's algorithm ----------------------------------------------------------------------------------------------


def hat(w: np.ndarray) -> np.ndarray:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def Ad(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.block([[R, hat(p) @ R], [np.zeros((3, 3)), R]])


def ad(xi: np.ndarray) -> np.ndarray:
    return np.block([[hat(xi[3:]), hat(xi[:3])], [np.zeros((3, 3)), hat(xi[3:])]])


def by_group_rules(m: pf.Mechanism, x: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and c without gravity, from the Jacobians of the edges: (3.104), (3.107), (3.122), (3.123)."""
    L, w12 = x[12:21].reshape(3, 3).T, relative(x, xi)[6:9]
    J, J_dot = {"central": np.eye(15)[:6]}, {"central": np.zeros((6, 15))}
    edge, rate = np.zeros((6, 15)), np.zeros((6, 15))
    edge[3:, 6:9], edge[3:, 3:6], rate[3:, 3:6] = np.eye(3), -L.T, hat(w12) @ L.T
    given = {"load": ("central", (L, np.array([0, 0, H_L])), edge, rate)}
    for i, at in enumerate(ARMS):
        c, s, ct, st = np.cos(at), np.sin(at), np.cos(x[21 + i]), np.sin(x[21 + i])
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array([[1, 0, 0], [0, ct, -st], [0, st, ct]])
        c, s = x[24 + 2 * i : 26 + 2 * i]
        spin = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        tilt, whirl = np.zeros((6, 15)), np.zeros((6, 15))
        tilt[3, 9 + i] = whirl[5, 12 + i] = 1
        given[f"arm {i + 1}"] = ("central", (turn, L_A * np.array([np.cos(at), np.sin(at), 0])), tilt, 0 * tilt)
        given[f"propeller {i + 1}"] = (f"arm {i + 1}", (spin, np.array([0, 0, H_P])), whirl, 0 * tilt)
    for name, (before, (turn, p), edge_J, edge_rate) in given.items():
        back = Ad(turn.T, -turn.T @ p)  # Ad of G[c, b]
        J[name] = back @ J[before] + edge_J
        J_dot[name] = back @ J_dot[before] - ad(edge_J @ xi) @ back @ J[before] + edge_rate
    M, c = np.zeros((15, 15)), np.zeros(15)
    for b in m.bodies:
        mass, com, inertia = (m.value(y) for y in (b.mass, b.com, b.inertia))
        s = hat(com.ravel())
        inertia_matrix = np.block([[mass * np.eye(3), -mass * s], [mass * s, inertia - mass * s @ s]])
        twist = J[b.name] @ xi
        M += J[b.name].T @ inertia_matrix @ J[b.name]
        c += J[b.name].T @ (inertia_matrix @ J_dot[b.name] @ xi - ad(twist).T @ inertia_matrix @ twist)
    return M, c


def operations(m: pf.Mechanism) -> int:
    """Number of operations for M and c together, without repeated subexpressions."""
    T = pf.symbols(m)
    f = ca.Function("f", [T.q, T.v], [T.M, T.c], {"cse": True})
    return sum(f.instruction_id(i) not in OPERATIONLESS for i in range(f.n_instructions()))


def run() -> dict[str, xr.Dataset]:
    x, xi = start()
    starts = {
        "absolute": (graph(), x, xi),
        "relative": (graph(absolute=False), x, relative(x, xi)),
        "chosen": (chosen(), x, xi),
    }
    starts |= {name: (m, *of_tree(m, x, xi)) for name, m in (("tree", tree()), ("closures", tree(closed=True)))}
    results = {}
    for name, (m, q, v) in starts.items():
        r = pf.run(m, q, v, duration=DURATION, step=STEP, every=20)
        found = pf.forward_kinematics(m, r["q"].values, bodies=BODIES)
        r["position"] = (("time", "body", "axis"), np.stack([found[b].position for b in BODIES], axis=1))
        r["rotation"] = (("time", "body", "direction", "axis"), np.stack([found[b].rotation for b in BODIES], axis=1))
        results[name] = r
    return results | {"states": states()}


def states() -> xr.Dataset:
    """M and c of the graph at random states, by the mechanism, by the group rules and by the connection coefficients."""
    random, m = np.random.default_rng(37), graph().with_(gravity=(0, 0, 0))
    x = np.array([pf.random_configuration(m, random) for _ in range(12)])
    xi = random.normal(size=(12, 15))
    found = pf.compile_terms(
        m, {"M": lambda T: T.M, "c": lambda T: T.c, "C": lambda T: pf.calculus.coriolis_matrix(T.kinematics, T.M)}
    )(x, xi)
    plain = [by_group_rules(m, *at) for at in zip(x, xi, strict=True)]
    counts = {"absolute": operations(graph()), "relative": operations(graph(absolute=False)), "tree": operations(tree())}
    return xr.Dataset(
        {
            "M": (("state", "row", "column"), found["M"]),
            "c": (("state", "row"), found["c"]),
            "C v": (("state", "row"), np.einsum("nij,nj->ni", found["C"], xi)),
            "plain M": (("state", "row", "column"), np.array([M for M, _ in plain])),
            "plain c": (("state", "row"), np.array([c for _, c in plain])),
            **{f"operations, {name}": count for name, count in counts.items()},
        }
    )


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 5.6)
    (path, energy), (apart, count) = figure.subplots(2, 2)
    r = result["absolute"]
    for body in ("central", "load", "propeller 1"):
        at = r["position"].values[:, BODIES.index(body)]
        path.plot(at[:, 0], at[:, 2], label=body)
    path.set(xlabel="x [m]", ylabel="z [m]", title="frames of three of the bodies")
    for name, look in LOOKS.items():
        e = result[name]["energy"]
        energy.semilogy(r["time"], np.abs(e - e[0]) + 1e-16, look, label=name)
        if name != "tree":
            off = np.linalg.norm(result[name]["position"].values - result["tree"]["position"].values, axis=2).max(1)
            apart.semilogy(r["time"], off + 1e-17, look, label=name)
    energy.set(xlabel="time [s]", ylabel="change of energy [J]")
    apart.set(xlabel="time [s]", ylabel="distance from the tree's motion [m]")
    names = ("absolute", "relative", "tree")
    count.bar([*names, "plain"], [*(int(result["states"][f"operations, {n}"]) for n in names), PLAIN], color="#999999")
    count.set(ylabel="operations of M and c")
    for axes in (path, energy, apart):
        axes.legend(loc="best")
    return {"tricopter": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    s = result["states"]
    least = np.linalg.eigvalsh(s["M"].values).min()
    yield Claim("least eigenvalue of M over its largest entry", least / _largest(s["M"]), 0, 0, "[konz25 (3.123)]", "at least")
    for name, source in (("M", "(3.123a)"), ("c", "(3.123b)")):
        off = _largest(s[name] - s[f"plain {name}"]) / _largest(s[name])
        yield Claim(f"{name} minus that by the group rules, relative", off, 0, 1e-13, f"[konz25 {source}]")
    off = _largest(s["c"] - s["C v"]) / _largest(s["c"])
    yield Claim("c minus Gamma v v, relative", off, 0, 1e-12, "[konz25 (3.109)]")
    truth = result["tree"]
    for name in ("absolute", "relative", "chosen", "closures"):
        r = result[name]
        yield Claim(f"{name}: run ended early", float(r["status"] != 0), 0)
        off = max(_largest(r[x].values - truth[x].values) for x in ("position", "rotation"))
        yield Claim(f"{name}: poses minus the tree's [m, 1]", off, 0, 1e-9, "[konz25 3.4.1]")
    for name in LOOKS:
        e = result[name]["energy"]
        yield Claim(f"{name}: change of energy [J]", _largest(e - e[0]), 0, 1e-8, "[konz25 (3.44)]")
    for name in ("absolute", "relative"):
        count = float(s[f"operations, {name}"])
        yield Claim(f"{name}: operations of M and c", count, PLAIN, 0, "plain version", "at most")


def _largest(x: xr.DataArray | np.ndarray) -> float:
    return float(np.abs(x).max())
