"""What <gazebo>, <transmission> and <ros2_control> elements add to the mechanics of a URDF file, and what of it is not read.

Gazebo turns <gazebo reference="NAME"> into elements of the SDF joint or link of that name: the springs of joints, and whether
gravity acts on links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np

from pfaffian.formats.text.coupling import GravityCompensation
from pfaffian.formats.text.strict_number import number
from pfaffian.formats.text.unread import OFF
from pfaffian.formats.text.xml import Element
from pfaffian.formats.urdf.urdf_part import UrdfJoint, UrdfLink
from pfaffian.model.force import Potential

_SPRINGS = ("springStiffness", "springReference")
_GRAVITY = {"turnGravityOff": True, "gravity": False}
"""Element of a link -> its truth value with which gravity does not act."""

_CONTACT = ("mu", "mu1", "mu2", "fdir1", "kp", "kd", "minDepth", "maxVel", "maxContacts", "selfCollide", "self_collide")
_SEEN = ("material", "laserRetro", "sensor", "visual", "collision")
_SOLVED = ("implicitSpringDamper", "cfmDamping", "stopCfm", "stopErp", "fudgeFactor", "provideFeedback")
_MERGED = ("disableFixedJointLumping", "preserveFixedJoint")
_HARMLESS = frozenset((*_CONTACT, *_SEEN, *_SOLVED, *_MERGED))
"""Elements that do not change the motion of a machine without contact."""

_SIMPLE = ("", "SimpleTransmission")
"""Last part of the type of a transmission between one motor and one joint."""

_ROTORS = ("drake:rotor_inertia", "drake:gear_ratio")
"""Drake's elements of actuators that are read elsewhere."""


@dataclass
class Gazebo:
    """What is read.   springs: joint -> its stiffness and rest.   weights: link -> whether gravity acts on it.   geared:
    transmissions with a reduction other than one.   lost: what is not read, in words."""

    springs: dict[str, dict[str, float]] = field(default_factory=dict)
    weights: dict[str, bool] = field(default_factory=dict)
    geared: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def read_gazebo(robot: Element, links: Mapping[str, UrdfLink], joints: Iterable[UrdfJoint]) -> Gazebo:
    """The elements of Gazebo and of transmissions. Raises ModelError: a number is wrong."""
    found, named = Gazebo(), {j.name: j for j in joints}
    for e in robot.all("gazebo"):
        reference = e.attributes.get("reference", "")
        telling = [child for child in e.children if child.tag not in _HARMLESS]
        if telling and reference and reference not in named and reference not in links:
            found.lost.append(f"<gazebo> {reference}, which is no link or joint")
            continue
        for child in telling:
            if child.tag in _SPRINGS and reference in named:
                _spring(child, named[reference], found)
            elif child.tag in _GRAVITY and reference in links:
                _weigh(child, reference, found)
            elif not ((child.tag == "joint" and not reference) or _says_nothing(child)):
                found.lost.append(f"<{child.tag}> of <gazebo>" + (f" {reference}" if reference else f" on line {child.line}"))
    _transmissions(robot, found)
    _simulated(robot, found)
    return found


def _says_nothing(e: Element) -> bool:
    return not e.children and not e.attributes and e.content in OFF


def _weigh(e: Element, link: str, found: Gazebo) -> None:
    """Note whether gravity acts on a link; of elements that contradict each other the last one counts, as in Gazebo."""
    acts = (e.content.lower() in ("true", "1", "yes")) != _GRAVITY[e.tag]
    if found.weights.setdefault(link, acts) != acts:
        found.lost.append(f"the gravity of <gazebo> {link} before line {e.line}, which says the opposite")
    found.weights[link] = acts


def _spring(e: Element, j: UrdfJoint, found: Gazebo) -> None:
    """Note the stiffness or the rest of the spring of a joint; of several the last one counts, as in Gazebo."""
    x = number(e.content, e.where)
    if j.kind not in ("revolute", "prismatic"):
        found.lost.append(f"<{e.tag}> of <gazebo> {j.name}, which is a {j.kind} joint")
        return
    spring = found.springs.setdefault(j.name, {})
    what = "stiffness" if e.tag == "springStiffness" else "rest"
    if spring.get(what, x) != x:
        found.lost.append(f"the <{e.tag}> of <gazebo> {j.name} before line {e.line}, which says another")
    spring[what] = x


def _transmissions(robot: Element, found: Gazebo) -> None:
    """Note the transmissions that do more than connect a motor to a joint."""
    for t in [*robot.all("transmission"), *(x for r in robot.all("ros2_control") for x in r.all("transmission"))]:
        name = t.attributes.get("name", "?")
        sorts = [e.content for tag in ("type", "plugin") for e in t.all(tag)] + [t.attributes.get("type", "")]
        for sort in sorts:
            if sort.rpartition("/")[2] not in _SIMPLE:
                found.lost.append(f"<transmission> {name}, a {sort.rpartition('/')[2]}")
        for part in (t, *t.all("actuator"), *t.all("joint")):
            for e in part.children:
                if e.tag in ("mechanicalReduction", "mechanical_reduction") and number(e.content, e.where) != 1:
                    found.geared.append(name)
                if e.tag.startswith("drake:") and e.tag not in _ROTORS:
                    found.lost.append(f"<{e.tag}> of <transmission> {name}")


def _simulated(robot: Element, found: Gazebo) -> None:
    """Note the couplings and starts of joints in <ros2_control>, which its plugin of Gazebo gives to the simulation."""
    for j in [x for r in robot.all("ros2_control") for x in r.all("joint")]:
        for e in [*j.all("param"), *(p for s in j.all("state_interface") for p in s.all("param"))]:
            word = e.attributes.get("name", "")
            if word in ("mimic", "initial_value") and e.content not in OFF:
                found.lost.append(f"{word} of <ros2_control> {j.attributes.get('name', '?')}")


def with_spring(j: UrdfJoint, springs: Mapping[str, dict[str, float]]) -> UrdfJoint:
    """The joint with its spring, if it has one."""
    spring = springs.get(j.name)
    return j if spring is None else replace(j, stiffness=spring.get("stiffness", 0.0), rest=spring.get("rest", 0.0))


def weightless(
    links: Mapping[str, UrdfLink], weights: Mapping[str, bool], called: Mapping[str, str], gravity: np.ndarray
) -> list[Potential]:
    """For each link without gravity, a force at its mass centre that carries its weight.   called: link -> body.
    gravity: (3,) [m/s^2]."""
    found = []
    for name, acts in weights.items():
        link = links[name]
        if link.mass and not acts:
            carried = GravityCompensation(called[name], ca.SX(ca.DM(link.com)), ca.SX(ca.DM(-link.mass * gravity)))
            found.append(Potential(f"{name} without gravity"[:128], carried))
    return found
