"""Poses of the frames of an SDF model: links, joints and frames, each given relative to another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pfaffian.formats.sdf.sdf_part import SdfJoint, name_of, word, written_pose
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.xml import Element
from pfaffian.model.pose import IDENTITY, Pose

MODEL = "__model__"

_FEW = 3
"""Poses between a joint's frame and a link that are composed, rather than those of both in the model."""


@dataclass
class NamedFrames:
    """Poses of named frames in the model, at the configuration of the file.

    defaults: name -> element, and the frame that its pose is relative to by default.   after: name -> transform to apply
    after the pose of the element.   known: name -> pose, as far as computed.
    """

    defaults: dict[str, tuple[Element, str]]
    after: Mapping[str, Pose] = field(default_factory=dict)
    known: dict[str, Pose] = field(default_factory=lambda: {MODEL: IDENTITY, "": IDENTITY})

    def at(self, name: str, namer: Element) -> Pose:
        """The pose of a frame.   namer: element with its name, for errors. Raises ModelError: no such frame, or a circle."""
        waiting, target = dict[str, None](), name
        while name not in self.known:
            if name not in self.defaults:
                raise namer.error(f"there is no link, joint or frame {printable(name)}; add it, or correct the name")
            if name in waiting:
                raise self.defaults[name][0].error("its pose is relative to itself, by way of other frames; break the circle")
            waiting[name] = None
            name = self._base(name)
        for last in reversed(waiting):
            self.known[last] = self.known[self._base(last)] @ self._pose_in_base(last)
        return self.known[target]

    def in_link(self, joint: SdfJoint, link: str) -> Pose:
        """The pose of a joint's frame in the frame of a link: as the file gives it where few poses lie between them."""
        place, name = IDENTITY, _joint_key(joint.name)
        for _ in range(_FEW):
            if name in ("", MODEL) or name not in self.defaults:
                break
            place = self._pose_in_base(name) @ place
            name = self._base(name)
            if name == link:
                return place
        return self.at(link, joint.element).inverse() @ self.of_joint(joint)

    def link_of(self, name: str, namer: Element) -> str:
        """The link that a frame is attached to, since joints may connect frames. "world" is returned as it is."""
        seen = set[str]()
        while name != "world":
            element, otherwise = self.defaults.get(name, (None, ""))
            if element is None or name in seen:
                raise namer.error(f"there is no link {printable(name)}; add it, or correct the name")
            if element.tag == "link":
                return name
            seen.add(name)
            name = otherwise
        return name

    def of_joint(self, joint: SdfJoint) -> Pose:
        """The pose of a joint's frame in the model."""
        return self.at(_joint_key(joint.name), joint.element)

    def _pose_in_base(self, name: str) -> Pose:
        """The pose of a frame in the one that it is relative to."""
        here = written_pose(self.defaults[name][0].only("pose"))
        return here @ self.after[name] if name in self.after else here

    def _base(self, name: str) -> str:
        """The name of the frame that a frame is relative to."""
        element, otherwise = self.defaults[name]
        return relative_to(element) or otherwise


def relative_to(element: Element) -> str:
    """The name of the frame that the pose of an element is relative to; empty if the element does not give it."""
    pose = element.only("pose")
    return "" if pose is None else pose.attributes.get("relative_to", pose.attributes.get("frame", ""))


def _joint_key(joint: str) -> str:
    """The key of a joint's frame, which differs from that of a link or frame of the same name."""
    return f"<joint> {joint}"


def read_frames(model: Element, version: tuple[int, ...], after: Mapping[str, Pose]) -> NamedFrames:
    """The frames of a flat model, whose own frame is attached to its canonical link.

    Before SDF 1.7 a joint may have the name of a link; the name then means the link.   after: as in `NamedFrames`.
    Raises ModelError: two frames have the same name.
    """
    links = [name_of(element) for element in model.all("link")]
    found = {MODEL: (model, model.attributes.get("canonical_link") or links[0])}
    for element in model.children:
        if element.tag not in ("link", "joint", "frame"):
            continue
        name = name_of(element)
        old = version < (1, 7) and element.tag == "joint" and _joint_key(name) not in found
        if name in found and not old:
            raise element.error(f"a <{found[name][0].tag}> of this name is on line {found[name][0].line}; names must be unique")
        base = MODEL
        if element.tag == "joint":
            base = word(element, "child")
        elif element.tag == "frame":
            base = element.attributes.get("attached_to", "") or MODEL
        if element.tag == "joint":
            found[_joint_key(name)] = (element, base)
        found.setdefault(name, (element, base))
    return NamedFrames(found, after)
