"""Overconstrained linkages: closed chains of hinges that move although a count of their rows forbids it.

Each link goes from one hinge to the next by Denavit and Hartenberg's numbers: offset R along the hinge, length a along the
common normal, twist alpha about it. Which hinge is cut, and where on its axis and how turned about it the closure's frames
are, is free: the motion does not depend on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

import pfaffian as pf


class Chain(NamedTuple):
    """a, alpha, R: of each link [m, rad, m]; the last link is fixed to the world.   near: angles close to an assembly [rad].
    dof: motions of the closed chain."""

    a: tuple[float, ...]
    alpha: tuple[float, ...]
    R: tuple[float, ...]
    near: tuple[float, ...]
    dof: int = 1


def bennett(a: float, b: float, alpha: float, obtuse: bool = False) -> Chain:
    """Four hinges, opposite links equal, sin(alpha) / a = sin(beta) / b."""
    beta = np.arcsin(b / a * np.sin(alpha))
    beta = np.pi - beta if obtuse else beta
    return Chain((a, b, a, b), (alpha, beta, alpha, beta), (0.0,) * 4, (0.4, 2.6, 0.4, -2.6))


def goldberg(a: float = 1.0, b: float = 1.3, c: float = 1.6, alpha: float = 0.5) -> Chain:
    """Two linkages of Bennett that share the links c, taken out, and join the links a and b."""
    beta, gamma = (np.arcsin(x / a * np.sin(alpha)) for x in (b, c))
    return Chain((a + b, c, b, a, c), (alpha + beta, gamma, beta, alpha, gamma), (0.0,) * 5, (0.5, 2.4, 0.3, 0.4, -2.3))


def myard(b: float = 1.0, alpha: float = 0.7) -> Chain:
    a = b * np.sin(alpha)
    twists = (alpha, np.pi / 2, np.pi - 2 * alpha, np.pi / 2, np.pi - alpha)
    return Chain((a, b, 0.0, b, a), twists, (0.0,) * 5, (0.5, 2.0, 1.0, -2.0, 0.6))


def bricard(near: tuple[float, ...] = (0.6, -0.9, 1.4, 0.6, -0.9, 1.4)) -> Chain:
    """Six hinges with a line of symmetry."""
    return Chain((1.0, 0.8, 1.2) * 2, (0.9, 1.3, 0.7) * 2, (0.1, -0.2, 0.15) * 2, near)


def schatz(a: float = 1.0) -> Chain:
    """The inversion of a trihedral linkage of Bricard that mixers use."""
    right = np.pi / 2
    return Chain((0.0, a, a, a, 0.0, np.sqrt(3) * a), (right,) * 5 + (0.0,), (0.3, 0, 0, 0, 0, -0.3), (0.5, 2.0, 1.5, 2.0, 1.5, 0.7))


def sarrus() -> Chain:
    """Two groups of three parallel hinges, which leave a straight line."""
    right = np.pi / 2
    return Chain((1.0, 1.0, 0.5) * 2, (0.0, 0.0, right, 0.0, 0.0, -right), (0.0,) * 6, (0.5, 1.0, 0.5, 0.5, 1.0, 0.5))


def parallelogram(shift: float = 0.0) -> Chain:
    """A plane loop of hinges in space."""
    return Chain((1.0, 2.0, 1.0, 2.0), (0.0,) * 4, (shift, 0.0, -shift, 0.0), (1.0, np.pi - 1.0, 1.0, np.pi - 1.0))


def matrix_along(c: Chain, i: int) -> np.ndarray:
    """(4, 4) from hinge i to hinge i + 1, the angle of i apart."""
    s, k = np.sin(c.alpha[i]), np.cos(c.alpha[i])
    return np.array([[1, 0, 0, c.a[i]], [0, k, -s, 0], [0, s, k, c.R[i]], [0, 0, 0, 1]])


def turn(angle: float) -> np.ndarray:
    s, k = np.sin(angle), np.cos(angle)
    return np.array([[k, -s, 0, 0], [s, k, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def closed(c: Chain, near: np.ndarray | None = None, hold: int = 0) -> np.ndarray:
    """Angles that close the chain, the one of a hinge as it is near them. By SciPy, without the library."""
    x0 = np.array(c.near if near is None else near)
    others = [i for i in range(len(c.a)) if i != hold]

    def off(y: np.ndarray) -> np.ndarray:
        x = x0.copy()
        x[others] = y
        T = np.eye(4)
        for i, angle in enumerate(x):
            T = T @ turn(angle) @ matrix_along(c, i)
        return (T - np.eye(4))[:3].ravel()

    found = least_squares(off, x0[others], xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=2000)
    assert np.abs(found.fun).max() < 1e-9, f"the chain does not close: {np.abs(found.fun).max()}"
    x = x0.copy()
    x[others] = found.x
    return x


def _pose(X: np.ndarray) -> pf.Pose:
    return pf.pose(X[:3, 3], rotation=X[:3, :3])


def linkage(c: Chain, cut: int = -1, slide: float = 0.0, turned: tuple[float, float] = (0.0, 0.0), unit: float = 1.0) -> pf.Mechanism:
    """The chain as a mechanism.

    cut: which hinge closes the loop.   slide: of the closure's frames along that hinge [m].   turned: them about it [rad].
    unit: metres of the model's unit of length.
    """
    n = len(c.a)
    cut %= n
    scaled = c._replace(a=tuple(x / unit for x in c.a), R=tuple(x / unit for x in c.R))
    along = [matrix_along(scaled, i) for i in range(n)]
    back = [np.linalg.inv(X) for X in along]
    bodies, joints = [], []
    for i in range(n - 1):
        com = np.array([scaled.a[i] / 2, 0.0, scaled.R[i] / 2, 1.0])
        com = com if i < cut else back[i] @ com
        bodies.append(pf.body(f"link {i}", 1.0 + 0.1 * i, com[:3], 0.1 / unit**2))
    for i in range(cut):
        parent, at = ("world", np.eye(4)) if i == 0 else (f"link {i - 1}", along[i - 1])
        joints.append(pf.joint(f"hinge {i}", "revolute", parent, f"link {i}", placement=_pose(at)))
    for i in range(n - 1, cut, -1):
        parent, at = ("world", back[n - 1]) if i == n - 1 else (f"link {i}", back[i])
        joints.append(pf.joint(f"hinge {i}", "revolute", parent, f"link {i - 1}", axis=(0, 0, -1), placement=_pose(at)))
    a, at_a = ("world", np.eye(4)) if cut == 0 else (f"link {cut - 1}", along[cut - 1])
    b, at_b = ("world", back[n - 1]) if cut == n - 1 else (f"link {cut}", back[cut])
    offset = np.eye(4)
    offset[2, 3] = slide / unit
    ends = [_pose(X @ turn(angle) @ offset) for X, angle in zip((at_a, at_b), turned, strict=True)]
    loop = pf.closure("cut", "revolute", a, b, placement_a=ends[0], placement_b=ends[1])
    gravity = np.array([1.0, -2.0, -9.0]) / unit
    return pf.mechanism("linkage", bodies, joints, constraints=[loop], gravity=gravity)


def start(c: Chain, m: pf.Mechanism, speed: float = 1.0, angle: float | None = None) -> tuple[dict[str, float], dict[str, float]]:
    """Angles of an assembly, and rates of its motion at which hinge 0 has a speed [rad/s], of the hinges that are not cut."""
    near = np.array(c.near)
    if angle is not None:
        near[0] = angle
    x = closed(c, near)
    # Rates: the null space of the spatial hinge screws.
    T, screws = np.eye(4), []
    for i, q in enumerate(x):
        z, p = T[:3, 2], T[:3, 3]
        screws.append(np.concatenate([np.cross(p, z), z]))
        T = T @ turn(q) @ matrix_along(c, i)
    _, s, Vt = np.linalg.svd(np.array(screws).T)
    N = Vt[len(c.a) - c.dof :]
    rate = N.T @ np.linalg.pinv(N[:, :1].T) @ np.array([speed])
    there = set(m.q_names)
    names = [f"hinge {i}" for i in range(len(c.a))]
    return ({n: float(q) for n, q in zip(names, x, strict=True) if n in there},
            {n: float(v) for n, v in zip(names, rate, strict=True) if n in there})
