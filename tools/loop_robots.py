"""Comparison of robots with loops with an independent computation: python -m tools.loop_robots FOLDER

FOLDER holds URDF files, each next to its robot.yaml of example-parallel-robots. Prints a row for each: number of rows, rank and
mobility by the library at a closed configuration, and by `independent` from the file itself.

Two robots do not close as written, from any start of a damped least-squares search: the residual of each closure is printed
below their rows. kangaroo_like declares all closures as 6d, even those of rods with a ball at one end only; kangaroo_like_2legs
has hinges where its rods have balls. With 3d for all but the three hip closures the first one closes (42 rows, rank 41), and
the robot.yaml of kangaroo_like_2legs closes the URDF file of kangaroo_like_2leg (90 rows, rank 90).
"""

from __future__ import annotations

import math
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import casadi as ca
import numpy as np
import yaml
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.terms.terms import symbols

SHUT = 1e-9
"""Largest residual of a closed loop [m, rad]."""

SMALL = 1e-7
"""Singular values that are smaller than this, relative to the largest, count as zero."""


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3) rotation by Rodrigues' formula."""
    n = axis / np.linalg.norm(axis)
    N = np.array([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
    return np.eye(3) + math.sin(angle) * N + (1 - math.cos(angle)) * N @ N


class Tree:
    """The joints of a URDF file, with the kinds of its robot.yaml, and the pairs of frames that its closures let coincide."""

    def __init__(self, path: Path) -> None:
        self.joints, self.parents = ElementTree.parse(path).getroot().findall("joint"), {}
        side = yaml.safe_load(path.with_name("robot.yaml").read_text())
        self.kinds = dict(zip(side.get("joint_name", []), side.get("joint_type", []), strict=True))
        self.loops = list(zip(side["closed_loop"], side["type"], strict=True))
        self.frames = {}
        for j in self.joints:
            child = j.find("child").get("link")
            self.parents[child], self.frames[j.get("name")] = j, child
        self.index, self.count = {}, 0
        for j in self.joints:
            self.index[j.get("name")] = slice(self.count, self.count + self.width(j))
            self.count += self.width(j)

    def width(self, j: ElementTree.Element) -> int:
        kind = self.kinds.get(j.get("name"), j.get("type"))
        return {"fixed": 0, "FIXED": 0, "SPHERICAL": 3, "floating": 6, "planar": 3}.get(kind, 2 if kind[0] == "U" else 1)

    def place(self, link: str, q: np.ndarray) -> np.ndarray:
        """(4, 4) pose of a link; a spherical joint has a rotation vector here, near zero."""
        if link not in self.parents:
            return np.eye(4)
        j = self.parents[link]
        before, placement = self.place(j.find("parent").get("link"), q), np.eye(4)
        origin, motion = j.find("origin"), np.eye(4)
        if origin is not None:
            placement[:3, 3] = [float(x) for x in origin.get("xyz", "0 0 0").split()]
            r, p, y = (float(x) for x in origin.get("rpy", "0 0 0").split())
            placement[:3, :3] = turned(np.eye(3)[2], y) @ turned(np.eye(3)[1], p) @ turned(np.eye(3)[0], r)
        x, kind = q[self.index[j.get("name")]], self.kinds.get(j.get("name"), j.get("type"))
        if kind == "SPHERICAL":
            motion[:3, :3] = turned(x, np.linalg.norm(x)) if np.linalg.norm(x) else np.eye(3)
        elif kind[0] == "U" and kind != "UNLIMITED":
            first, second = (np.eye(3)["XYZ".index(c)] for c in kind[-2:])
            motion[:3, :3] = turned(first, x[0]) @ turned(second, x[1])
        elif len(x) == 1:
            axis = j.find("axis")
            n = np.array([float(v) for v in axis.get("xyz").split()]) if axis is not None else np.eye(3)[0]
            if kind == "prismatic":
                motion[:3, 3] = n / np.linalg.norm(n) * x[0]
            else:
                motion[:3, :3] = turned(n, x[0])
        return before @ placement @ motion

    def residual(self, q: np.ndarray) -> np.ndarray:
        """Residual of each loop: position of frame B relative to A, and for 6d loops twice the sine of half the angle."""
        parts = []
        for (a, b), kind in self.loops:
            X = np.linalg.inv(self.place(self.frames.get(a, a), q)) @ self.place(self.frames.get(b, b), q)
            parts.append(X[:3, 3])
            if kind.lower() == "6d":
                turn = Rotation.from_matrix(X[:3, :3]).as_quat(canonical=True)
                parts.append(2 * turn[:3])
        return np.concatenate(parts)

    def jacobian(self, q: np.ndarray, step: float = 1e-6) -> np.ndarray:
        """Jacobian of the residual by central differences."""
        moves = step * np.eye(self.count)
        return np.array([(self.residual(q + d) - self.residual(q - d)) / (2 * step) for d in moves]).T


def independent(path: Path) -> tuple[int, int, int]:
    """Rows, rank and mobility at a closed configuration, by Newton's method from several starts."""
    tree, random = Tree(path), np.random.default_rng(1)
    for attempt in range(20):
        q = random.normal(size=tree.count) * 0.03 * attempt
        for _ in range(60):
            r = tree.residual(q)
            if np.abs(r).max() < SHUT:
                break
            step = -np.linalg.lstsq(tree.jacobian(q), r, rcond=1e-6)[0]
            q = q + step * min(1.0, 0.5 / np.abs(step).max())
        if np.abs(tree.residual(q)).max() < SHUT:
            s = np.linalg.svd(tree.jacobian(q), compute_uv=False)
            rank = int((s > SMALL * s[0]).sum())
            return len(tree.residual(q)), rank, tree.count - rank
    return len(tree.residual(q)), -1, -1


def left(path: Path, starts: int = 2) -> list[tuple[str, float]]:
    """Residual of each loop at the best result of a damped least-squares search from several starts [m, rad]."""
    tree, random = Tree(path), np.random.default_rng(0)
    begins = [random.normal(size=tree.count) * 0.5 * i / starts for i in range(starts)]
    found = min((least_squares(tree.residual, q, tree.jacobian, xtol=1e-14, ftol=1e-14) for q in begins), key=lambda f: f.cost)
    ends = np.cumsum([6 if kind.lower() == "6d" else 3 for _, kind in tree.loops])
    parts = np.split(np.abs(found.fun), ends[:-1])
    return [(loop[0], float(x.max())) for (loop, _), x in zip(tree.loops, parts, strict=True)]


def closed(m: pf.Mechanism, starts: int = 12) -> np.ndarray:
    """A closed configuration, found from the neutral one or near it."""
    random = np.random.default_rng(1)
    for attempt in range(starts):
        q = m.neutral()
        ones = [j for j in m.joints if j.nq == 1]
        for j in ones:
            q[m.q_slices[j.name]] += random.normal(size=1) * 0.1 * attempt
        try:
            return pf.assemble(m, q, search=False).q
        except pf.RunError:
            continue
    return pf.assemble(m).q


def ours(path: Path) -> tuple[int, int, int, float]:
    """Rows, rank, mobility and residual of the robot as read by the library, if `assemble` closes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = pf.formats.read_urdf(path)
    T, q = symbols(m), closed(m)
    A, phi = ca.Function("rows", [T.q], [T.rows.A, T.rows.phi])(q)
    s = np.linalg.svd(np.array(A), compute_uv=False)
    rank = int((s > SMALL * s[0]).sum())
    return A.shape[0], rank, m.nv - rank, float(np.abs(np.array(phi)).max())


def main(folder: str) -> None:
    """Print the table."""
    print(f"{'robot':22s} rows rank mobility | independently | residual")
    for path in sorted(Path(folder).glob("*/*.urdf")):
        if not path.with_name("robot.yaml").is_file():
            continue
        words = []
        for count in (ours, independent):
            try:
                words.append(count(path))
            except (pf.PfaffianError, KeyError, np.linalg.LinAlgError) as error:
                words.append((f"{type(error).__name__}: {str(error)[:60]}",))
        first, second = words
        rest = f"{first[3]:8.1e}" if len(first) == 4 else ""
        print(
            f"{path.parent.name:22s} {' '.join(map(str, first[:3])):14s} | {' '.join(map(str, second)):13s} | {rest}",
            flush=True,
        )
        if second[1] == -1:
            print("\n".join(f"    {name:20s} left {x:.1e}" for name, x in left(path)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
