"""Which joints of an SDF model make the tree, which close loops, and which links float."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pfaffian.formats.sdf_part import SdfJoint
from pfaffian.model.body import WORLD


@dataclass(frozen=True)
class Ends:
    """A joint with the links at its ends, which may be world.   back: the tree goes from its child to its parent."""

    joint: SdfJoint
    parent: str
    child: str
    back: bool = False

    @property
    def near(self) -> str:
        return self.child if self.back else self.parent

    @property
    def far(self) -> str:
        return self.parent if self.back else self.child


def span(links: Sequence[str], joints: Sequence[Ends], loops: frozenset[str]) -> tuple[list[Ends], list[Ends], list[str]]:
    """The joints of a tree, parents first; those that close loops; the links that float.

    In the order of the file, a joint is part of the tree if its child has none yet and it closes no loop. A link that is only
    the parent of a joint that would close a loop is carried by that joint's child.

    Args:
        links: names.   joints: in the order of the file.   loops: names of joints that close loops in any case.
    """
    group = {n: n for n in (*links, WORLD)}

    def root(n: str) -> str:
        while group[n] != n:
            group[n] = group[group[n]]
            n = group[n]
        return n

    led, tree, closed = {WORLD}, list[Ends](), list[Ends]()
    for j in joints:
        if j.child in led or root(j.child) == root(j.parent) or j.joint.name in loops:
            closed.append(j)
            continue
        led.add(j.child)
        group[root(j.child)] = root(j.parent)
        tree.append(j)
    for j in list(closed):
        if j.parent not in led and root(j.child) != root(j.parent) and j.joint.name not in loops:
            closed.remove(j)
            led.add(j.parent)
            group[root(j.parent)] = root(j.child)
            tree.append(Ends(j.joint, j.parent, j.child, True))
    floating = [n for n in links if n not in led]
    return _parents_first(tree, [WORLD, *floating]), closed, floating


def _parents_first(tree: list[Ends], roots: list[str]) -> list[Ends]:
    leaving: dict[str, list[Ends]] = {}
    for j in tree:
        leaving.setdefault(j.near, []).append(j)
    # Depth first, each joint after the one that leads to its near link.
    ordered, stack = list[Ends](), [j for r in reversed(roots) for j in reversed(leaving.get(r, []))]
    while stack:
        j = stack.pop()
        ordered.append(j)
        stack += reversed(leaving.get(j.far, []))
    return ordered
