"""Overconstrained linkages: closed chains of hinges that move although the number of their rows forbids it.

Each link goes from one hinge to the next by the parameters of Denavit and Hartenberg: offset R along the hinge, length a along
the common normal, twist alpha about it. Any hinge may be cut, and the closure's frames may be anywhere on its axis and turned
about it: the motion does not depend on this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

import pfaffian as pf


class Chain(NamedTuple):
    """a, alpha, R: parameters of each link [m, rad, m]; the last link is fixed to the world.   near: angles close to an
    assembly [rad]."""

    a: tuple[float, ...]
    alpha: tuple[float, ...]
    R: tuple[float, ...]
    near: tuple[float, ...]


def bennett(a: float, b: float, alpha: float, obtuse: bool = False) -> Chain:
    """Four hinges, with equal opposite links and sin(alpha) / a = sin(beta) / b."""
    beta = np.arcsin(b / a * np.sin(alpha))
    beta = np.pi - beta if obtuse else beta
    return Chain((a, b, a, b), (alpha, beta, alpha, beta), (0.0,) * 4, (0.4, 2.6, 0.4, -2.6))


def goldberg(a: float = 1.0, b: float = 1.3, c: float = 1.6, alpha: float = 0.5) -> Chain:
    """Two linkages of Bennett without the links c that they share, with links a and b joined to each other."""
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
    """The inversion of Bricard's trihedral linkage that is used in mixers."""
    right = np.pi / 2
    return Chain(
        (0.0, a, a, a, 0.0, np.sqrt(3) * a), (right,) * 5 + (0.0,), (0.3, 0, 0, 0, 0, -0.3), (0.5, 2.0, 1.5, 2.0, 1.5, 0.7)
    )


def sarrus() -> Chain:
    """Two groups of three parallel hinges, which leave motion along a straight line."""
    right = np.pi / 2
    return Chain((1.0, 1.0, 0.5) * 2, (0.0, 0.0, right, 0.0, 0.0, -right), (0.0,) * 6, (0.5, 1.0, 0.5, 0.5, 1.0, 0.5))


def parallelogram(shift: float = 0.0) -> Chain:
    """A planar loop of hinges in space."""
    return Chain((1.0, 2.0, 1.0, 2.0), (0.0,) * 4, (shift, 0.0, -shift, 0.0), (1.0, np.pi - 1.0, 1.0, np.pi - 1.0))


def matrix_along(c: Chain, i: int) -> np.ndarray:
    """(4, 4) matrix from hinge i to hinge i + 1, without the angle of hinge i."""
    s, k = np.sin(c.alpha[i]), np.cos(c.alpha[i])
    return np.array([[1, 0, 0, c.a[i]], [0, k, -s, 0], [0, s, k, c.R[i]], [0, 0, 0, 1]])


def turn(angle: float) -> np.ndarray:
    s, k = np.sin(angle), np.cos(angle)
    return np.array([[k, -s, 0, 0], [s, k, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def closed(c: Chain, near: np.ndarray | None = None, hold: int = 0) -> np.ndarray:
    """Angles that close the chain, computed by SciPy without the library; the angle of hinge `hold` is that in `near`."""
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


FRAMES = (pf.Parameter("slide", 0.0, "m"), pf.Parameter("turn a", 0.0, "rad"), pf.Parameter("turn b", 0.0, "rad"))
"""Where the closure's frames are: the offset along the cut hinge, and the angles about it of either body."""


def linkage(c: Chain, cut: int = -1) -> pf.Mechanism:
    """The chain as a mechanism whose hinge `cut` closes the loop, with FRAMES as parameters."""
    n = len(c.a)
    cut %= n
    along = [matrix_along(c, i) for i in range(n)]
    back = [np.linalg.inv(X) for X in along]
    bodies, joints = [], []
    for i in range(n - 1):
        com = np.array([c.a[i] / 2, 0.0, c.R[i] / 2, 1.0])
        com = com if i < cut else back[i] @ com
        bodies.append(pf.body(f"link {i}", 1.0 + 0.1 * i, com[:3], 0.1))
    for i in range(cut):
        parent, at = ("world", np.eye(4)) if i == 0 else (f"link {i - 1}", along[i - 1])
        joints.append(pf.joint(f"hinge {i}", "revolute", parent, f"link {i}", placement=_pose(at)))
    for i in range(n - 1, cut, -1):
        parent, at = ("world", back[n - 1]) if i == n - 1 else (f"link {i}", back[i])
        joints.append(pf.joint(f"hinge {i}", "revolute", parent, f"link {i - 1}", axis=(0, 0, -1), placement=_pose(at)))
    a, at_a = ("world", np.eye(4)) if cut == 0 else (f"link {cut - 1}", along[cut - 1])
    b, at_b = ("world", back[n - 1]) if cut == n - 1 else (f"link {cut}", back[cut])
    slide, *turns = FRAMES
    ends = [_pose(X) @ pf.pose((0, 0, slide), rpy=(0, 0, t)) for X, t in zip((at_a, at_b), turns, strict=True)]
    loop = pf.closure("cut", "revolute", a, b, placement_a=ends[0], placement_b=ends[1])
    return pf.mechanism("linkage", bodies, joints, constraints=[loop], gravity=(1.0, -2.0, -9.0), parameters=FRAMES)


def start(c: Chain, m: pf.Mechanism, speed: float = 1.0) -> tuple[dict[str, float], dict[str, float]]:
    """Angles of an assembly, and rates at which hinge 0 has a speed [rad/s], for the hinges that are not cut.

    The rates come from the null space of the screws of all hinges, without the library.
    """
    x, T, screws = closed(c), np.eye(4), []
    for i, angle in enumerate(x):
        screws.append(np.concatenate([np.cross(T[:3, 3], T[:3, 2]), T[:3, 2]]))
        T = T @ turn(angle) @ matrix_along(c, i)
    _, s, Vt = np.linalg.svd(np.array(screws).T)
    assert (s < 1e-9).sum() + max(0, len(x) - 6) == 1, "the chain has one motion"
    rate = speed * Vt[-1] / Vt[-1, 0]
    names = [f"hinge {i}" for i in range(len(x)) if f"hinge {i}" in m.q_names]
    return tuple({n: float(y[int(n.split()[1])]) for n in names} for y in (x, rate))


def storeys(count: int, rotation: np.ndarray, cut: str = "top", reverse: bool = False) -> pf.Mechanism:
    """Parallelograms on top of each other, each closed by a hinge with five rows and with one motion.

    rotation: (3, 3) of the whole, so that no axis is aligned with the world.   cut: at the "top" or the "foot" of the right
    leg of each storey.   reverse: reverses the order of the closures.
    """
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    base = pf.pose((0, 0, 0), rotation=rotation)
    bodies, joints, closures = [], [], []
    below = "world"
    for i in range(count):
        left, right, beam = f"left {i}", f"right {i}", f"beam {i}"
        bodies += [pf.body(n, 1.0, (0, 0, 0.5), 0.1) for n in (left, right)] + [pf.body(beam, 1.0, (0.5, 0, 0), 0.1)]
        at, beside = (base, base @ pf.pose((1.0, 0, 0))) if i == 0 else (pf.pose(), pf.pose((1.0, 0, 0)))
        joints.append(pf.joint(left, parent=below, child=left, placement=at, **hinge))
        joints.append(pf.joint(beam, parent=left, child=beam, placement=pf.pose((0, 0, 1.0)), **hinge))
        if cut == "foot":
            joints.append(pf.joint(right, parent=beam, child=right, placement=pf.pose((1.0, 0, 0)), **hinge))
            bodies[-2] = pf.body(right, 1.0, (0, 0, -0.5), 0.1)
            ends = (below, beside), (right, pf.pose((0, 0, -1.0)))
        else:
            joints.append(pf.joint(right, parent=below, child=right, placement=beside, **hinge))
            ends = (right, pf.pose((0, 0, 1.0))), (beam, pf.pose((1.0, 0, 0)))
        (a, X), (b, Y) = ends
        closures.append(pf.closure(f"loop {i}", body_a=a, body_b=b, placement_a=X, placement_b=Y, **hinge))
        below = beam
    gravity = rotation @ np.array([0.0, 0.0, -9.81])
    return pf.mechanism("storeys", bodies, joints, constraints=closures[::-1] if reverse else closures, gravity=gravity)
