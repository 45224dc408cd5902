"""A free rigid body with springs to the world in a moving fluid: twelve coordinates, four by four matrices. [konz25 3.3]

The coordinates are r and the columns of R, the velocities [v; w] along the body's axes. Inertia, damping and stiffness are
symmetric 4 x 4 matrices of moments; any set of springs is equivalent to one such matrix with a rest pose, which the special
polar decomposition gives. The body is compared with one on a free joint with individual springs, and with Newton's and Euler's
equations (3.93) in NumPy. Numbers are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

GRAVITY = np.array([0.0, 0.0, -9.8])
MASS, CENTRE = 1.5, np.array([0.05, -0.02, 0.1])
INERTIA = np.array([0.03, 0.05, 0.04])
"""Inertia about the mass centre [kg m^2]."""
DAMPING, LEVER = 1.2, np.array([0.0, 0.1, 0.05])
RESISTANCE = np.array([0.05, 0.03, 0.04])
"""Rotational damping of the fluid about the centre of damping [N m s]."""
STREAM = np.array([0.3, 0.0, 0.1, 0.0, 0.0, 0.5])
"""Twist of the fluid, which moves as a rigid body about the world's z axis: [v; w] at the world's origin [m/s, rad/s]."""
DURATION, STEP = 2.0, 2e-4


class Springs(NamedTuple):
    """Springs with zero rest length between points of the body and of the world.

    stiffness: (n,) [N/m].   body: (n, 3) points of the body [m].   space: (n, 3) points of the world [m].
    """

    stiffness: np.ndarray
    body: np.ndarray
    space: np.ndarray


class Rest(NamedTuple):
    """Equivalent of a set of springs: V = tr((G - G_R) K' (G - G_R)^T) / 2 + V0. [konz25 (3.61)-(3.72)]"""

    K: np.ndarray
    G: np.ndarray
    V0: float


def springs() -> Springs:
    random = np.random.default_rng(33)
    return Springs(random.uniform(5, 20, 7), random.uniform(-0.4, 0.4, (7, 3)), random.uniform(-1, 1, (7, 3)) + (0, 0, 1))


def pose_of(q: ca.SX) -> pf.Pose:
    return pf.Pose(ca.reshape(q[3:12], 3, 3), q[0:3])


def matrix_coordinates() -> pf.Coordinates:
    """Coordinates r and R by its columns. [konz25 (3.48)]"""
    names = [f"r{x}" for x in "xyz"] + [f"{column}{x}" for column in "xyz" for x in "xyz"]

    def K(q: ca.SX) -> ca.SX:
        R = pose_of(q).R
        return ca.diagcat(R, ca.horzcat(*[ca.vec(R @ so3.hat(axis)) for axis in np.eye(3)]))

    def phi(q: ca.SX) -> ca.SX:
        R = pose_of(q).R
        return ca.vertcat(*[ca.dot(R[:, i], R[:, j]) - (i == j) for i in range(3) for j in range(i + 1)], ca.det(R) - 1)

    units = ("m/s",) * 3 + ("rad/s",) * 3
    return pf.coordinates(
        "G", names, ("vx", "vy", "vz", "wx", "wy", "wz"), K, phi=phi, start=[0, 0, 0, *np.eye(3).ravel()],
        q_units=("m",) * 3 + ("1",) * 9, v_units=units,
    )  # fmt: skip


def body() -> pf.Body:
    return pf.body("body", MASS, CENTRE, INERTIA)


def fluid():
    """Dissipation R = xi_E^T D xi_E / 2 with xi_E the twist of the body relative to the fluid around it. [konz25 (3.75)]"""
    D = ca.DM(Vee(damping()))

    def R(k: pf.Kinematics) -> ca.SX:
        G = k.pose("body")
        w = ca.DM(STREAM[3:])
        there = ca.DM(STREAM[:3]) + ca.cross(w, G.p)
        apart = k.twist("body") - ca.vertcat(G.R.T @ there, G.R.T @ w)
        return ca.dot(apart, D @ apart) / 2

    return pf.forces.dissipation("fluid", R)


def by_matrices(flowing: bool = True) -> pf.Mechanism:
    """The body with twelve coordinates and one stiffness matrix."""
    rest = equilibrium(springs())
    there = pf.pose(rest.G[:3, 3], rotation=rest.G[:3, :3])
    forces = [pf.forces.pose_spring("springs", "world", "body", rest.K, rest=there), *([fluid()] if flowing else [])]
    pose = pf.edge("pose", "world", "body", lambda k: pose_of(k.q))
    return pf.mechanism("matrices", [body()], [pose], coordinates=[matrix_coordinates()], forces=forces, gravity=GRAVITY)


def by_joint(flowing: bool = True) -> pf.Mechanism:
    """The body with a free joint and individual springs."""
    s = springs()
    each = [
        pf.spring(f"spring {i}", "world", "body", point_a=p, point_b=h, stiffness=k)
        for i, (k, h, p) in enumerate(zip(*s, strict=True))
    ]
    joint = pf.joint("pose", "free", "world", "body")
    return pf.mechanism("joint", [body()], [joint], forces=[*each, *([fluid()] if flowing else [])], gravity=GRAVITY)


def mechanism() -> pf.Mechanism:
    return by_matrices()


# -- the thesis's operators [konz25 (2.51)-(2.57), (3.78)-(3.91)] --------------------------------------------------------


def wed(w: np.ndarray) -> np.ndarray:
    """(3, 3) matrix of a (3,) vector, or (4, 4) of (6,)."""
    if len(w) == 6:
        return np.block([[wed(w[3:]), w[:3, None]], [np.zeros((1, 4))]])
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def vee2(A: np.ndarray) -> np.ndarray:
    """(3,) vector of a (3, 3) matrix, or (6,) of (4, 4)."""
    S = A[:3, :3] - A[:3, :3].T
    turn = np.array([S[2, 1], S[0, 2], S[1, 0]])
    return turn if len(A) == 3 else np.concatenate([A[:3, 3], turn])


def Vee(A: np.ndarray) -> np.ndarray:
    """(3, 3) matrix of a (3, 3) matrix, or (6, 6) of (4, 4)."""
    if len(A) == 3:
        return np.trace(A) * np.eye(3) - A
    return np.block([[A[3, 3] * np.eye(3), wed(A[:3, 3]).T], [wed(A[3, :3]), Vee(A[:3, :3])]])


def pseudo(weight: float, centre: np.ndarray, about_centre: np.ndarray) -> np.ndarray:
    """(4, 4) matrix of a weight about a frame's origin, from the (3, 3) moment about its centre. [konz25 (3.91)]"""
    second = np.trace(about_centre) / 2 * np.eye(3) - about_centre + weight * np.outer(centre, centre)
    return np.block([[second, weight * centre[:, None]], [weight * centre, weight]])


def inertia() -> np.ndarray:
    return pseudo(MASS, CENTRE, np.diag(INERTIA))


def damping() -> np.ndarray:
    return pseudo(DAMPING, LEVER, np.diag(RESISTANCE))


def ad(xi: np.ndarray) -> np.ndarray:
    return np.block([[wed(xi[3:]), wed(xi[:3])], [np.zeros((3, 3)), wed(xi[3:])]])


def equilibrium(s: Springs) -> Rest:
    """Stiffness matrix and rest pose of a set of springs. [konz25 (3.61)-(3.72)]"""
    k = s.stiffness.sum()
    h, p = s.stiffness @ s.body / k, s.stiffness @ s.space / k
    P = (s.stiffness[:, None] * s.body).T @ s.space
    X, sigma, Yt = np.linalg.svd((P - k * np.outer(h, p)).T)
    signs = np.diag([1, 1, np.linalg.det(X) * np.linalg.det(Yt)])
    R = X @ signs @ Yt
    about_centre = Yt.T @ Vee(np.diag(sigma) @ signs) @ Yt
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = R, p - R @ h
    return Rest(pseudo(k, h, about_centre), G, energy_of(s, G))


def energy_of(s: Springs, G: np.ndarray) -> float:
    apart = s.body @ G[:3, :3].T + G[:3, 3] - s.space
    return float(s.stiffness @ (apart**2).sum(1) / 2)


# -- what is computed ----------------------------------------------------------------------------------------------------


def at_rest_somewhere() -> tuple[np.ndarray, np.ndarray]:
    """Initial pose in the twelve coordinates, and as position and quaternion."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_rotvec([0.8, -1.1, 0.6])
    r = np.array([0.4, -0.3, 1.5])
    return np.concatenate([r, turn.as_matrix().T.ravel()]), np.concatenate([r, turn.as_quat()])


def run() -> dict[str, xr.Dataset]:
    q, p = at_rest_somewhere()
    v = np.array([0.5, -0.4, 0.3, 2.0, -1.0, 3.0])
    results = {
        "matrices": pf.run(by_matrices(), q, v, duration=DURATION, step=STEP, every=10),
        "joint": pf.run(by_joint(), p, v, duration=DURATION, step=STEP, every=10),
    }
    results["still"] = pf.run(by_matrices(flowing=False), q, v, duration=DURATION, step=STEP, every=10)
    return results | {"states": states(), "tables": tables()}


def states() -> xr.Dataset:
    """Forces by the mechanism and by the formulas, at random states."""
    from scipy.spatial.transform import Rotation

    random, m, s, rest = np.random.default_rng(34), by_matrices(), springs(), equilibrium(springs())
    R = Rotation.random(40, random_state=35).as_matrix()
    r, v, a = random.normal(size=(40, 3)), random.normal(size=(40, 6)), random.normal(size=6)
    q = np.concatenate([r, R.swapaxes(1, 2).reshape(-1, 9)], axis=1)
    alone = m.with_(gravity=(0, 0, 0))
    found = pf.compile_terms(m, {"f": lambda T: T.f, "c": lambda T: T.c, "M": lambda T: T.M, "V": lambda T: T.V})(q, v)
    found |= pf.compile_terms(
        alone, {"gyroscopic": lambda T: T.c, "S": lambda T: pf.calculus.acceleration_energy(T.kinematics, ca.DM(a))}
    )(q, v)
    theirs: dict[str, list] = {
        name: [] for name in ("f^M", "f^G", "f^D", "f^K", "f^K (3.71)", "v_dot", "S", "V springs", "C v")
    }
    M4, M6, D6 = inertia(), Vee(inertia()), Vee(damping())
    for ri, Ri, xi in zip(r, R, v, strict=True):
        G = np.eye(4)
        G[:3, :3], G[:3, 3] = Ri, ri
        theirs["f^M"].append(vee2(wed(xi) @ wed(xi) @ M4))
        theirs["C v"].append(-ad(xi).T @ M6 @ xi)
        theirs["f^G"].append(-M6 @ np.concatenate([Ri.T @ GRAVITY, np.zeros(3)]))
        apart = xi - np.concatenate([Ri.T @ (STREAM[:3] + np.cross(STREAM[3:], ri)), Ri.T @ STREAM[3:]])
        theirs["f^D"].append(D6 @ apart)
        theirs["f^K"].append(vee2((np.eye(4) - np.linalg.inv(G) @ rest.G) @ rest.K))
        theirs["f^K (3.71)"].append(stiffness_force(rest, G))
        force = ad(xi).T @ M6 @ xi - theirs["f^G"][-1] - theirs["f^D"][-1] - theirs["f^K"][-1]
        theirs["v_dot"].append(np.linalg.solve(M6, force))
        theirs["S"].append(acceleration(xi, a))
        theirs["V springs"].append(energy_of(s, G) - MASS * GRAVITY @ (ri + Ri @ CENTRE))
    data = {name: (("state", "axis")[: np.ndim(x)], np.array(x)) for name, x in theirs.items()}
    data |= {f"our {name}": (("state", "axis", "column")[: x.ndim], x) for name, x in found.items()}
    data["our v_dot"] = (("state", "axis"), pf.forward_dynamics(m, q, v).v_dot)
    return xr.Dataset(data)


def stiffness_force(rest: Rest, G: np.ndarray) -> np.ndarray:
    """f^K term by term. [konz25 (3.71)]"""
    k, h, R, R_R = rest.K[3, 3], rest.K[:3, 3] / rest.K[3, 3], G[:3, :3], rest.G[:3, :3]
    apart = R.T @ (G[:3, 3] - rest.G[:3, 3])
    return np.concatenate(
        [k * apart + (np.eye(3) - R.T @ R_R) @ (k * h), k * wed(h) @ apart + vee2(rest.K[:3, :3] @ R_R.T @ R)]
    )


def acceleration(xi: np.ndarray, a: np.ndarray) -> float:
    """Acceleration energy S of the body. [konz25 (3.54)]"""
    M4, M6, v, W = inertia(), Vee(inertia()), xi[:3], wed(xi[3:])
    rest = MASS * (W @ v) @ (W @ v) / 2 + v @ W @ W @ (MASS * wed(CENTRE) @ xi[3:]) + np.trace(M4[:3, :3] @ W @ W @ W @ W) / 2
    return float(a @ M6 @ a / 2 - a @ ad(xi).T @ M6 @ xi + rest)


def tables() -> xr.Dataset:
    """gamma and Gamma, by the mechanism and as printed; gradient and Hessian of the individual springs at their rest pose."""
    from scipy.spatial.transform import Rotation

    m, rest = by_matrices(), equilibrium(springs())
    q, _ = at_rest_somewhere()
    gamma = np.zeros((6, 6, 6))
    for k, i, j in ((1, 2, 6), (1, 5, 3), (2, 3, 4), (2, 6, 1), (3, 1, 5), (3, 4, 2), (4, 5, 6), (5, 6, 4), (6, 4, 5)):
        gamma[i - 1, j - 1, k - 1], gamma[j - 1, i - 1, k - 1] = 1, -1
    M4 = inertia()
    first = dict(zip("xyz", M4[:3, 3], strict=True))
    entries = dict.fromkeys(("324", "135", "216"), MASS)
    entries |= dict.fromkeys(("254", "364", "515", "616"), first["x"])
    entries |= dict.fromkeys(("424", "145", "365", "626"), first["y"])
    entries |= dict.fromkeys(("434", "535", "146", "256"), first["z"])
    entries |= {"654": M4[0, 0], "465": M4[1, 1], "546": M4[2, 2]}
    entries |= dict.fromkeys(("464", "655"), M4[0, 1]) | dict.fromkeys(("544", "656"), M4[0, 2])
    entries |= dict.fromkeys(("545", "466"), M4[1, 2])
    Gamma = np.zeros((6, 6, 6))
    for name, x in entries.items():
        i, j, k = (int(c) - 1 for c in name)
        Gamma[i, j, k], Gamma[j, i, k] = x, -x
    floating = by_joint().with_(gravity=(0, 0, 0))
    rest_q = np.concatenate([rest.G[:3, 3], Rotation.from_matrix(rest.G[:3, :3]).as_quat()])
    three = ("i", "j", "k")
    return xr.Dataset(
        {
            "gamma": (three, pf.calculus.commutation_coefficients(m, q)),
            "printed gamma": (three, gamma),
            "Gamma": (three, pf.calculus.connection_coefficients(m, q)),
            "printed Gamma": (three, Gamma),
            "slope": ("j", pf.calculus.directional_derivative(floating, rest_q)[0]),
            "Hessian": (("i", "j"), pf.calculus.covariant_hessian(floating, rest_q)),
            "Vee(K')": (("i", "j"), Vee(rest.K)),
        }
    )


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.2)
    path, energy = figure.subplots(1, 2)
    V0 = equilibrium(springs()).V0
    for name, style in (("still", "C1-"), ("matrices", "C0-"), ("joint", "k:")):
        r = result[name]
        label = {"still": "without fluid", "matrices": "fluid, one matrix", "joint": "fluid, individual springs"}[name]
        path.plot(r["q"][:, 0], r["q"][:, 2], style, label=label)
        energy.plot(r["time"], r["energy"] + (V0 if name != "joint" else 0), style, label=label)
    path.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    energy.set(xlabel="time [s]", ylabel="energy [J]")
    energy.legend(loc="best")
    return {"free body": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    t, s = result["tables"], result["states"]
    for name, unit, source in (("gamma", "1", "(3.49)"), ("Gamma", "kg m^2", "(3.58)")):
        off = _largest(t[name] - t[f"printed {name}"])
        yield Claim(f"{name} minus the printed table [{unit}]", off, 0, 1e-14, f"[konz25 {source}]")
    yield Claim("number of nonzero entries of gamma", float((np.abs(t["gamma"]) > 1e-9).sum()), 18, 0, "[konz25 (3.49)]")
    for name, ours, source in (
        ("f^M at constant velocity", s["our gyroscopic"] - s["f^M"], "(3.92a)"),
        ("-ad^T M xi", s["our gyroscopic"] - s["C v"], "(3.92a)"),
        ("f^M + f^G", s["our c"] - s["f^M"] - s["f^G"], "(3.92d)"),
        ("f^D + f^K", s["our f"] + s["f^D"] + s["f^K"], "(3.92b, c)"),
        ("f^K by pseudo-matrix, term by term", s["f^K"] - s["f^K (3.71)"], "(3.71)"),
        ("M", s["our M"] - Vee(inertia()), "(3.91)"),
        ("S [N^2/kg]", s["our S"] - s["S"], "(3.54)"),
        ("V of the individual springs [J]", s["our V"] + equilibrium(springs()).V0 - s["V springs"], "(3.90)"),
    ):
        yield Claim(f"{name}: minus the formula", _largest(ours), 0, 1e-12, f"[konz25 {source}]")
    scale = _largest(s["v_dot"])
    off = _largest(s["our v_dot"] - s["v_dot"]) / scale
    yield Claim("v_dot minus the equations of motion, relative", off, 0, 1e-13, "[konz25 (3.93)]")
    yield Claim("gradient of the springs at their rest pose [N, N m]", _largest(t["slope"]), 0, 1e-12, "[konz25 (3.67)]")
    yield Claim("Hessian at the rest pose minus Vee(K')", _largest(t["Hessian"] - t["Vee(K')"]), 0, 1e-12, "[konz25 (3.72)]")
    yield Claim("smallest eigenvalue of Vee(K')", np.linalg.eigvalsh(t["Vee(K')"])[0], 0, 0, "[konz25 (3.72)]", "at least")
    r, j, still = result["matrices"], result["joint"], result["still"]
    off = _largest(r["q"].values[:, :3] - j["q"].values[:, :3])
    yield Claim("motion by matrices minus that by the joint: r [m]", off, 0, 1e-9, "[konz25 (3.93)]")
    off = _largest(r["v"].values - j["v"].values) / _largest(r["v"])
    yield Claim("motion by matrices minus that by the joint: v, w, relative", off, 0, 1e-9, "[konz25 (3.93)]")
    drift = _largest(still["energy"] - still["energy"][0]) / float(still["energy"].max())
    yield Claim("change of energy without the fluid, relative", drift, 0, 1e-8, "[konz25 (3.44)]")


def _largest(x: xr.DataArray | np.ndarray) -> float:
    return float(np.abs(x).max())
