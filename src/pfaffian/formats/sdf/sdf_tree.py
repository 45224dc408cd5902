"""Splitting the joints of an SDF model into those of the tree and those that close loops; finding links that float."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pfaffian.formats.sdf.sdf_part import SdfJoint
from pfaffian.model.body import WORLD


@dataclass(frozen=True)
class JointEnds:
    """A joint with the links at its ends, either of which may be the world.   back: the tree goes from child to parent."""

    joint: SdfJoint
    parent: str
    child: str
    back: bool = False

    @property
    def near(self) -> str:
        """The link that is nearer to the root of the tree."""
        return self.child if self.back else self.parent

    @property
    def far(self) -> str:
        """The link that is farther from the root of the tree."""
        return self.parent if self.back else self.child


def span(
    links: Sequence[str], joints: Sequence[JointEnds], loops: frozenset[str]
) -> tuple[list[JointEnds], list[JointEnds], list[str]]:
    """The joints of the tree, parents first; the joints that close loops; the links that float.

    In the order of the file, a joint becomes part of the tree if no earlier joint has its child and it closes no loop. After
    that, a link that is only the parent of a remaining joint is attached by it, from the joint's child (`back`).

    Args:
        links: names of the links.
        joints: in the order of the file.
        loops: names of joints that always close loops.
    """
    group = {n: n for n in (*links, WORLD)}

    def root(n: str) -> str:
        while group[n] != n:
            group[n] = group[group[n]]
            n = group[n]
        return n

    reached, tree, closed = {WORLD}, list[JointEnds](), list(joints)
    for back in (False, True):
        waiting, closed = closed, []
        for j in waiting:
            near, far = (j.child, j.parent) if back else (j.parent, j.child)
            if far in reached or root(near) == root(far) or j.joint.name in loops:
                closed.append(j)
                continue
            reached.add(far)
            group[root(far)] = root(near)
            tree.append(replace(j, back=back))
    floating = [n for n in links if n not in reached]
    return _parents_first(tree, [WORLD, *floating]), closed, floating


def _parents_first(tree: list[JointEnds], roots: list[str]) -> list[JointEnds]:
    """The joints in depth-first order from the roots."""
    leaving: dict[str, list[JointEnds]] = {}
    for j in tree:
        leaving.setdefault(j.near, []).append(j)
    # Depth first: each joint comes after the joint whose far link is its near link.
    ordered, stack = list[JointEnds](), [j for r in reversed(roots) for j in reversed(leaving.get(r, []))]
    while stack:
        j = stack.pop()
        ordered.append(j)
        stack += reversed(leaving.get(j.far, []))
    return ordered
