"""Ordering URDF joints: files list links and joints in any order, but a mechanism needs parents first."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfLink
from pfaffian.model.circle import circle


def open_loops(joints: Sequence[UrdfJoint]) -> tuple[list[UrdfJoint], list[UrdfJoint]]:
    """The joints of the tree, and the joints that close loops, since an earlier joint of the file has the same child link."""
    parents, tree, cut = dict[str, str](), list[UrdfJoint](), list[UrdfJoint]()
    for j in joints:
        (cut if j.child in parents else tree).append(j)
        parents.setdefault(j.child, j.parent)
    return tree, cut


def root_link(links: Mapping[str, UrdfLink], joints: Sequence[UrdfJoint]) -> str:
    """The only link without a parent. Raises ModelError: a joint names an unknown link; there is no root, or several."""
    for j in joints:
        for end in (j.parent, j.child):
            if end not in links:
                raise j.element.error(f"there is no link {printable(end)}; add it, or correct the name")
    children = {j.child for j in joints}
    roots = [name for name in links if name not in children]
    if not roots:
        raise joints[0].element.error("the joints form a cycle without a root; open it and close the loop by a constraint")
    if len(roots) > 1:
        listed = ", ".join(f"{printable(n)} (line {links[n].element.line})" for n in roots[:5])
        raise links[roots[1]].element.error(
            f"{len(roots)} links have no parent: {listed}; connect them to one root by fixed or floating joints"
        )
    return roots[0]


def parents_first(root: str, joints: Sequence[UrdfJoint]) -> list[UrdfJoint]:
    """The joints in the order of the file, except that each comes after the joint whose child is its parent link.

    Raises ModelError: a joint cannot be reached from the root.
    """
    leaving: dict[str, list[int]] = defaultdict(list)
    for i, j in enumerate(joints):
        leaving[j.parent].append(i)
    ready, order = list(leaving[root]), []
    heapq.heapify(ready)
    while ready:
        i = heapq.heappop(ready)
        order.append(joints[i])
        for k in leaving[joints[i].child]:
            heapq.heappush(ready, k)
    if len(order) < len(joints):
        reached = {j.name for j in order}
        lost = next(j for j in joints if j.name not in reached)
        raise lost.element.error("this joint is in a cycle apart from the root; open it and close the loop by a constraint")
    return order


def massless_joints(links: Mapping[str, UrdfLink], order: Sequence[UrdfJoint]) -> set[str]:
    """Names of the movable joints that carry no mass, so that no force determines their acceleration."""
    carries = {name: not link.massless for name, link in links.items()}
    found = set()
    for j in reversed(order):
        carries[j.parent] |= carries[j.child]
        if j.kind != "fixed" and not carries[j.child]:
            found.add(j.name)
    return found


def check_mimics(joints: Mapping[str, UrdfJoint], follow: bool) -> None:
    """Raise ModelError if a mimic joint follows itself, directly or by way of others.

    follow: whether mimic joints follow; if so, also if one follows an unknown joint, or a joint of the wrong kind.
    """
    followers = {j.name: j.mimic.joint for j in joints.values() if j.mimic}
    for j, target in ((joints[name], joints.get(other)) for name, other in followers.items() if follow):
        if target is None:
            raise j.element.error(f"it mimics {printable(followers[j.name])}, which is not a joint; correct the name")
        if any(x.kind not in ("revolute", "prismatic") for x in (j, target)):
            raise j.element.error("only revolute, continuous and prismatic joints can mimic and be mimicked")
    if found := circle({name: (other,) for name, other in followers.items()}):
        raise joints[found[0]].element.error("mimic joints follow each other in a circle; let one of them move freely")
