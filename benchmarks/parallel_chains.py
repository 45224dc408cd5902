"""Coupled parallel chains from URDF+ files: `python -m benchmarks parallel_chains --chains DIR`.

DIR holds files of the family that generalized_rbda ships, in one folder per depth: two serial chains whose links are connected
by a rod (<loop>) or whose angles are coupled (<coupling>). From each folder the file with the longest loop is used; files with
`approx` in their name have no loop and are skipped. Without DIR a message says that nothing is measured.

Both sides are first compared with NumPy: Pinocchio's mass matrix and bias force from the same file, the constraint rows as
read by this module, and Gauss's principle in the null space of these rows, which is exact for dependent rows. Our "gauss" is
compared, for loops, with `pin.constraintDynamics` on the point of the loop, with the small regularisation (1e-10) that it
needs for redundant rows; for couplings, which it does not support, with crba, nonLinearEffects and a solve in the independent
angles. Both are looped in Python.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.chain_length import REGULARISED_SAME
from benchmarks.check import STATES, agree
from benchmarks.forward_dynamics import configuration_order, velocity_order
from benchmarks.ours import acceleration, prepared
from benchmarks.result import Comparison, Missing
from benchmarks.robots import closed_states, random_states, undamped
from benchmarks.timing import Options, interleaved

SPREAD = 0.3
SMALL = 1e-9
"""Singular values of the rows that are smaller than this, relative to the largest, count as zero."""


def run(o: Options) -> Iterator[Comparison]:
    files = [] if o.chains is None else longest(o.chains)
    if not files:
        raise Missing("it reads URDF+ files of parallel chains, such as those of generalized_rbda: --chains FOLDER names them")
    if o.quick:
        files = [next(group) for _, group in groupby(files, key=lambda p: p.parts[:-2])]
    for path in files:
        yield compare(path, o)


def longest(folder: Path) -> list[Path]:
    """From each subfolder, the file with the largest number in its name."""
    every = [p for p in sorted(folder.rglob("*.urdf")) if "approx" not in p.name]
    found = [max(group, key=_size) for _, group in groupby(every, key=lambda p: p.parent)]
    return sorted(found, key=lambda p: (p.parts[:-2], _size(p.parent)))


def _size(path: Path) -> int:
    return int(next(iter(re.findall(r"\d+", path.name)), 0))


def compare(path: Path, o: Options) -> Comparison:
    """One file, checked and timed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.actuate_all(undamped(pf.formats.read_urdf(path)))
    tied = Tied(pin.buildModelFromUrdf(str(path)), ElementTree.parse(path).getroot())
    q, v, u = closed_states(m, m.neutral(), o.runs, SPREAD) if m.constraints else random_states(m, o.runs)
    kernel = acceleration(m, "gauss", backend=o.backend)
    ours, out = prepared(kernel, m, q, v, u)
    ours()
    if m.constraints:
        order = velocity_order(m, tied.model)
        theirs = [q[:, configuration_order(m, tied.model)], v[:, order], u[:, order]]
        name, peer, mine = "pin.constraintDynamics", by_constraint(tied), out[:, order]
    else:
        free, G = tied.independent([n for n in tied.names if n in m.v_names])
        columns = np.concatenate([np.r_[m.v_slices[tied.names[i]]] for i in free])
        theirs = [q[:, columns] @ G.T, v[:, columns] @ G.T, np.zeros((len(u), tied.model.nv))]
        theirs[2][:, free] = u[:, columns]
        name, peer, mine = "pin.crba, solved", by_coordinates(tied, G), out[:, columns] @ G.T
    rows = list(zip(*map(np.ascontiguousarray, theirs), strict=True))
    exact = np.array([tied.acceleration(*row) for row in rows[:STATES]])
    agree(f"{path.name}, {name}", np.array([np.array(peer(*row)) for row in rows[:STATES]]), exact, REGULARISED_SAME)
    about = {"difference": agree(str(path.name), mine[:STATES], exact), "operations": kernel.program.n_ops}
    times = interleaved({"": ours, name: lambda: [peer(*row) for row in rows]}, o.runs, o)
    what = f"{'loop' if m.constraints else 'coupling'}, {path.parent.name}, {path.stem}, {tied.model.nv} angles"
    return Comparison(what, "an evaluation", times[""], times[name], None, about)


Call = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass
class Tied:
    """Pinocchio's tree of a file, which has no loops, with the loops and couplings of the file."""

    model: pin.Model
    robot: ElementTree.Element

    def __post_init__(self) -> None:
        self.data, self.names = self.model.createData(), list(self.model.names)[1:]
        self.leading = {j.find("child").get("link"): j for j in self.robot.iter("joint")}
        self.points = [p for loop in self.robot.iter("loop") for p in self._points(loop)]
        self.K = np.array([self._coupling(c) for c in self.robot.iter("coupling")]).reshape(-1, self.model.nv)

    def _points(self, loop: ElementTree.Element) -> Iterator[tuple[tuple[int, pin.SE3], tuple[int, pin.SE3]]]:
        """Two points of the hinge, each as (joint, position in it) at both ends."""
        axis = np.array([float(x) for x in loop.find("axis").get("xyz").split()])
        for along in (0.0, 0.5):
            ends = []
            for tag in ("predecessor", "successor"):
                end = loop.find(tag)
                origin = end.find("origin")
                x = np.zeros(3) if origin is None else np.array([float(c) for c in origin.get("xyz", "0 0 0").split()])
                frame = self.model.frames[self.model.getFrameId(end.get("link"))]
                ends.append((frame.parentJoint, frame.placement * pin.SE3(np.eye(3), x + along * axis)))
            yield ends[0], ends[1]

    def _coupling(self, coupling: ElementTree.Element) -> np.ndarray:
        """(nv,) row of a coupling: ratio times the sum of angles to one link minus the sum of angles to the other."""
        row, ratio = np.zeros(self.model.nv), float(coupling.find("ratio").get("value"))
        for tag, weight in (("predecessor", ratio), ("successor", -1.0)):
            link = coupling.find(tag).get("link")
            while link in self.leading:
                joint = self.leading[link]
                if joint.get("name") in self.names:
                    row[self.model.joints[self.model.getJointId(joint.get("name"))].idx_v] += weight
                link = joint.find("parent").get("link")
        return row

    def independent(self, names: list[str]) -> tuple[list[int], np.ndarray]:
        """Indices of the independent joints, and G (nv, free), which gives all angles from theirs."""
        free = [self.names.index(n) for n in names]
        rest = [i for i in range(self.model.nv) if i not in free]
        G = np.zeros((self.model.nv, len(free)))
        G[free] = np.eye(len(free))
        G[rest] = -np.linalg.solve(self.K[:, rest], self.K[:, free])
        return free, G

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations by Gauss's principle in the null space of the rows, by singular values."""
        model, data = self.model, self.data
        M, h = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, v)
        M = np.triu(M) + np.triu(M, 1).T
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        J, drift = [self.K], [np.zeros(len(self.K))]
        for ends in self.points:
            (one, a), (other, b) = (self._point(*end) for end in ends)
            J.append(one - other)
            drift.append(a - b)
        rows, left = np.vstack(J), np.concatenate(drift)
        U, s, V = np.linalg.svd(rows)
        rank = int((s > SMALL * s[0]).sum())
        particular = -V[:rank].T @ (U[:, :rank].T @ left / s[:rank])
        N = V[rank:].T
        return particular + N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - h - M @ particular))

    def _point(self, joint: int, place: pin.SE3) -> tuple[np.ndarray, np.ndarray]:
        """(3, nv) Jacobian of a point's velocity along the world's axes, and its acceleration at v_dot = 0."""
        R, p = self.data.oMi[joint].rotation, place.translation
        J = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL)
        cross = pin.skew(p)
        V, a = self.data.v[joint], self.data.a[joint]
        at = a.linear + np.cross(a.angular, p) + np.cross(V.angular, V.linear + np.cross(V.angular, p))
        return R @ (J[:3] - cross @ J[3:]), R @ at


def by_constraint(tied: Tied) -> Call:
    """pin.constraintDynamics on the first point of each hinge, which suffices for a planar loop."""
    model, kind = tied.model, pin.ContactType.CONTACT_3D
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for (a, X), (b, Y) in tied.points[::2]:
        models.append(pin.RigidConstraintModel(kind, model, a, X, b, Y, pin.ReferenceFrame.LOCAL))
    for one in models:
        datas.append(one.createData())
    data, settings = model.createData(), pin.ProximalSettings(1e-12, 1e-12, 1e-10, 1)
    pin.initConstraintDynamics(model, data, models, datas)
    return lambda q, v, tau: pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)


def by_coordinates(tied: Tied, G: np.ndarray) -> Call:
    """G^T M G y_dot = G^T (tau - h) with Pinocchio's M and h."""
    model, data = tied.model, tied.model.createData()

    def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        M, h = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, v)
        M = np.triu(M) + np.triu(M, 1).T
        return G @ np.linalg.solve(G.T @ M @ G, G.T @ (tau - h))

    return call
