"""What is told of a URDF file besides its mechanism: what was changed, locked, left out or assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pfaffian.errors import ModelWarning, notice
from pfaffian.formats.text.left_out import BELOW_ZERO, as_they_are, below_zero
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.unit_length import NORMALISED, is_of_unit_length
from pfaffian.formats.text.unread import NOT_READ, unread
from pfaffian.formats.text.xml import Element
from pfaffian.formats.urdf.loop_record import Loop
from pfaffian.formats.urdf.urdf_gazebo import Gazebo
from pfaffian.formats.urdf.urdf_loops import Extras
from pfaffian.formats.urdf.urdf_names import KNOWN
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfLink, assumed_limits, lacks_limit
from pfaffian.formats.urdf.urdf_sidecar import Sidecar
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism


def judge(wrong: Mapping[str, str], links: Mapping[str, UrdfLink], strict: bool, source: str) -> bool:
    """Whether the mechanism must be lenient because of inertias that no body can have. Warns of them, or raises if strict."""
    if strict and wrong:
        name, reason = next(iter(wrong.items()))
        # Only the root link "world" has been renamed.
        raise (links[name] if name in links else links[WORLD]).element.error(f"{reason}; correct it")
    if wrong:
        warn(f"{source}: {as_they_are(wrong)}")
    return bool(wrong)


def warn_of_friction(smooth: list[str], lost: list[str], choice: str, source: str) -> None:
    """Warn of the joints whose dry friction is smoothed or left out."""
    if smooth:
        warn(f"{source}: dry friction is smooth below 0.001 rad/s or m/s: {sorted_names(smooth)}")
    if lost:
        way = "; friction='smooth' reads it" if choice == "none" else ""
        warn(f"{source}: dry friction is left out: {sorted_names(lost)}{way}")


def warn_of_joints(made: Mechanism, order: list[UrdfJoint], mimic: str, source: str) -> None:
    """Warn of mimic joints that move freely, and of bounds, springs and dampers."""
    followers = [j.name for j in order if j.mimic]
    if followers and mimic == "free":
        warn(f"{source}: mimic joints move on their own: {sorted_names(followers)}; mimic='follow' couples them")
    lost = [j.name for j in order if j.damping and j.kind in ("planar", "free")]
    if lost:
        warn(f"{source}: damping of joints with velocities of several units is left out: {sorted_names(lost)}")
    if driving := below_zero(made):
        warn(f"{source}: {BELOW_ZERO}: {sorted_names(driving)}")
    unlimited = [j.name for j in order if (limit := j.element.only("limit")) and limit.number("effort", 0.0) < 0]
    if unlimited:
        warn(f"{source}: an effort below zero counts as no limit: {sorted_names(unlimited)}")
    assumed = [f"{j.name} ({' and '.join(assumed_limits(j))})" for j in order if assumed_limits(j) and j.kind != "fixed"]
    if assumed:
        warn(f"{source}: bounds that a <limit> leaves out are 0 by the format: {sorted_names(assumed)}; write them")
    if bare := [j.name for j in order if j.kind != "fixed" and lacks_limit(j)]:
        words = "joints without the <limit> that the format requires of their type have none"
        warn(f"{source}: {words}: {sorted_names(bare)}; write it, or type 'continuous' of a hinge")


VERSIONS = ("1.0", "1.1", "1.2")
"""The versions of URDF whose elements are known, which urdfdom 6.0 reads."""


def warn_of_unread(robot: Element, gazebo: Gazebo) -> None:
    """Warn of the elements and attributes that are not read; those of Drake below <robot> are told with the loops."""
    plain = replace(robot, children=[e for e in robot.children if not e.tag.startswith("drake:")])
    version = robot.attributes.get("version", VERSIONS[0])
    later = [] if version in VERSIONS else [f"version {version} of <robot>, of which {VERSIONS[-1]} is known"]
    found = [*later, *unread(plain, KNOWN), *(w for e in robot.all("drake:joint") for w in unread(e, KNOWN)), *gazebo.lost]
    if gazebo.geared:
        words = "motors act on the joint's side of transmissions, whatever their mechanicalReduction"
        warn(f"{robot.source}: {words}: {sorted_names(dict.fromkeys(gazebo.geared))}")
    turned = [*_turned(robot)]
    if long := [f"line {e.line}" for e in turned if not is_of_unit_length(e.numbers("quat_xyzw", (0, 0, 0, 1)))]:
        warn(f"{robot.source}: {NORMALISED}: {sorted_names(long)}")
    if turned and version == VERSIONS[0]:
        words = 'quat_xyzw is read, though other tools ignore it without version="1.1" of <robot>'
        warn(f"{robot.source}: {words}: {sorted_names(f'line {e.line}' for e in turned)}")
    if found:
        warn(f"{robot.source}: {NOT_READ}: {sorted_names(dict.fromkeys(found))}")


def _turned(element: Element) -> Iterator[Element]:
    """The elements below one that have a quaternion."""
    for child in element.children:
        if "quat_xyzw" in child.attributes:
            yield child
        yield from _turned(child)


def warn_of_loops(
    source: str, closing: list[Loop], cut: list[UrdfJoint], extras: Extras, side: Sidecar, order: list[UrdfJoint]
) -> None:
    """Warn of the loops and their closures, and of elements that were changed or left out."""
    if closing:
        by = f" ({side.source})" if side.source else ""
        first = "; ".join(f"{printable(c.name)}, {c.kind} of {printable(c.links[0])} and {printable(c.links[1])}"
                          for c in closing[:10])  # fmt: skip
        more = f"; and {len(closing) - 10} more" if len(closing) > 10 else ""
        warn(f"{source}: loops are closed by constraints{by}: {first}{more}")
    if cut:
        warn(
            f"{source}: the child links of these joints already have a parent, so the joints close loops: "
            f"{sorted_names(j.name for j in cut)}"
        )
    if side.motors is None and any(j.independent is False for j in order):
        warn(f"{source}: motors are on the joints that the file marks as independent; actuated=[...] chooses others")
    known = {j.name for j in (*order, *cut)}
    lost = [f"{', '.join(parts)} of the {c.kind} loop {printable(c.name)}" for c in closing if (parts := c.not_carried)]
    following = {c.name for c in closing if c.follows}
    free = [j.name for j in cut if j.mimic and j.name not in following]
    lost += [f"the <mimic> of joint {printable(name)}, which closes a loop" for name in free]
    lost += [*extras.lost, *(f"{side.source}: {key}" for key in (*side.lost, *(n for n in side.kinds if n not in known)))]
    for words in (*extras.changed, *([f"left out: {sorted_names(lost)}"] if lost else [])):
        warn(f"{source}: {words}")


def warn(message: str) -> None:
    notice(message, ModelWarning)


def sorted_names(names: Iterable[str]) -> str:
    """The first 20 names in alphabetical order, and how many more there are."""
    order = sorted(names)
    return ", ".join(printable(n) for n in order[:20]) + (f" and {len(order) - 20} more" if len(order) > 20 else "")
