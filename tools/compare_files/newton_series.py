"""Joints in series beside the one joint that Newton makes of them: the place of the last body, joint by joint and together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

import pfaffian as pf
from pfaffian.maths import so3
from tools.compare_files.trees import apart

if TYPE_CHECKING:
    from tools.compare_files.by_newton import Imported

CAUSES = {
    "Newton order of joints in series": "Newton lets slides act first, and in an articulation goes by the names of joints:"
    " findings/newton-usd-joints-in-series.sh",
    "Newton places of joints in series": "Newton lets joints in series act at the place of the first one, with a warning",
    "Newton angles of joints in series": "Newton takes the axes of hinges in series to be at right angles:"
    " findings/newton-usd-hinges-off-right-angles.sh",
}
"""Beginning of what differs -> why Newton is not right."""

ANGLES = (0.4, -0.3, 0.5, 0.2, -0.6, 0.7)
"""Coordinates at which chains are compared [rad, m]."""

ALIKE = 1e-4
"""Difference of places that counts as none: Newton has single precision."""


def compared(n: Imported, m: pf.Mechanism, index: Mapping[str, int]) -> tuple[dict[str, float], set[str]]:
    """What differs -> by how much; and the joints that were compared.   index: body -> its number in Newton."""
    found, names, b = dict[str, float](), set[str](), n.builder
    ends = [*zip(b.joint_parent, b.joint_child, strict=True)]
    for chain in _chains(m, index):
        first, last = index.get(chain[0].parent, -1), index[chain[-1].child]
        i = ends.index((first, last)) if (first, last) in ends else -1
        if i < 0 or sum(b.joint_dof_dim[i]) != len(chain):
            continue
        what, far = _apart(n, m, chain, (first, last), b.joint_q_start[i])
        found[what] = max(far, found.get(what, 0.0))
        names |= {j.name for j in chain}
    return found, names


def _chains(m: pf.Mechanism, index: Mapping[str, int]) -> list[list[pf.Joint]]:
    """Joints that lead from one body of the stage to the next by way of others, which Newton does not have."""
    after, found = {j.parent: j for j in m.joints if j.parent not in index and j.parent != "world"}, list[list[pf.Joint]]()
    for j in (j for j in m.joints if j.parent not in after and j.child in after):
        chain = [j]
        while chain[-1].child in after:
            chain.append(after[chain[-1].child])
        if chain[-1].child in index:
            found.append(chain)
    return found


def _apart(n: Imported, m: pf.Mechanism, chain: list[pf.Joint], ends: tuple[int, int], start: int) -> tuple[str, float]:
    """What differs of a chain, and by how much.   ends: its bodies in Newton.   start: of its coordinates there.

    Newton's coordinates are those joints that move the last body alike when each of them moves alone."""
    size = len(chain)
    x = np.resize(ANGLES, size)

    def ours(x: np.ndarray) -> np.ndarray:
        where = pf.forward_kinematics(m, dict(zip([j.name for j in chain], x.tolist(), strict=True)))
        pair = [where.get(name) for name in (chain[0].parent, chain[-1].child)]
        return _from(*((np.eye(3), np.zeros(3)) if at is None else (at.rotation, at.position) for at in pair))

    def theirs(x: np.ndarray) -> np.ndarray:
        q = n.still()
        q[start : start + size] = x
        poses = [*n.state(q).body_q.numpy().astype(float), np.r_[np.zeros(6), 1.0]]  # the world is the last, number -1
        return _from(*((so3.quat_to_matrix(list(poses[i][3:])).full(), poses[i][:3]) for i in ends))

    units = np.eye(size)
    alone = np.array([[apart(ours(x * a), theirs(x[i] * b), 1.0) for b in units] for i, a in enumerate(units)])
    order = alone.argmin(axis=1)  # Newton's place of each joint
    if alone.min(axis=1).max() > ALIKE or len({*order.tolist()}) < size:
        return f"Newton {_otherwise(m, chain)}joints in series", float(alone.min(axis=1).max())
    given = np.zeros(size)
    given[order] = x
    far = apart(ours(x), theirs(given), 1.0)
    return "Newton joints in series" if np.array_equal(order, range(size)) else "Newton order of joints in series", far


def _otherwise(m: pf.Mechanism, chain: list[pf.Joint]) -> str:
    """What Newton changes of the joints of a chain, of which one alone moves the last body otherwise there."""
    ends = [[np.array(m.value(x)) for x in (j.child_placement.R, j.child_placement.p)] for j in chain]
    if max(apart(p.ravel(), ends[0][1].ravel(), 1.0) for _, p in ends) > ALIKE:
        return "places of "
    axes = np.array([R[:, 2] for j, (R, _) in zip(chain, ends, strict=True) if j.kind.name == "revolute"])
    return "angles of " if apart(axes @ axes.T, np.eye(len(axes)), 1.0) > ALIKE else ""


def _from(first: tuple[np.ndarray, np.ndarray], last: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The place of the last body in the first, (3, 4)."""
    (R, p), (Rk, pk) = first, last
    return R.T @ np.c_[Rk, pk - p]
