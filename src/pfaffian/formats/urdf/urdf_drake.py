"""Drake's joints and rotors in URDF files."""

from __future__ import annotations

import math
from dataclasses import replace

from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.xml import Element
from pfaffian.formats.urdf.urdf_part import UrdfJoint, needed, read_joint_of

_KINDS = {"ball": "spherical", "universal": "universal", "planar": "planar", "screw": "helical", "weld": "fixed"}
"""Type of a <drake:joint> -> kind of joint."""


def read_drake_joint(element: Element) -> UrdfJoint:
    """Read a <drake:joint> directly below <robot>. A screw has a <drake:screw_thread_pitch> [m per turn]."""
    word = element.text("type")
    if word not in _KINDS:
        raise element.error(f"type {printable(word)} is unknown; the types are {', '.join(_KINDS)}")
    j = read_joint_of(element, _KINDS[word])
    if word != "screw":
        return j
    thread = element.only("drake:screw_thread_pitch")
    if thread is None:
        raise element.error("<drake:screw_thread_pitch value=.../> is missing; add it")
    return replace(j, pitch=thread.number("value") / (2 * math.pi))


def rotors(robot: Element) -> dict[str, float]:
    """Joint -> its armature, gear^2 times rotor inertia [kg m^2 or kg], from <transmission><actuator><drake:rotor_inertia>."""
    found: dict[str, float] = {}
    for t in robot.all("transmission"):
        if not any(motor.all("drake:rotor_inertia") for motor in t.all("actuator")):
            continue
        joint, motor = (needed(t, tag, t.tag) for tag in ("joint", "actuator"))
        rotor, gear = needed(motor, "drake:rotor_inertia", motor.tag), motor.only("drake:gear_ratio")
        ratio = gear.number("value") if gear else 1.0
        found[joint.text("name")] = ratio**2 * rotor.number("value")
    return found
