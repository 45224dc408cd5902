"""Kinds of forces and of contacts with a plane in YAML files, a row each: what makes them, the forms of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pfaffian.formats.text.library_laws import Names
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.formats.yaml.yaml_value import FORMS, made_at, take
from pfaffian.model.force import (
    dissipation,
    generalised_force,
    kinetic_energy,
    potential,
    spring,
    wrench,
)
from pfaffian.model.path_force import path_spring
from pfaffian.parts.contact import Contact, Stop, contact, stop
from pfaffian.parts.cylinder import Cylinder, cylinder
from pfaffian.parts.drives import Belt, Cable, Gear, belt, cable, gear
from pfaffian.parts.elastic import Bushing, bushing, pose_damper, pose_inertia, pose_spring
from pfaffian.parts.fluid import drag, propeller
from pfaffian.parts.friction import contact_friction, joint_friction
from pfaffian.parts.load_friction import gear_loss, guide_friction, pin_friction, screw_friction
from pfaffian.parts.rebound import Rebound, rebound
from pfaffian.parts.suspension import AntiRollBar, anti_roll_bar, bush
from pfaffian.parts.wheels import Ball, Blade, Disk, Ellipsoid, disk, ellipsoid, knife_edge, sphere, wheel


class FileKind(NamedTuple):
    """A kind of force or constraint in a file: the function that makes it and the forms of its arguments.

    required: keys of the bodies or the joint, in order.   optional: key -> form of its value; with "!" it is required too.
    record: class of frozen data whose fields are these arguments, by which it is written again; None if there is none.
    """

    make: Callable[..., Any]
    required: tuple[str, ...]
    optional: dict[str, str]
    record: type | None = None

    def read(self, name: str, node: Node, names: Names) -> Any:
        """What the function makes of the entry. Raises ModelError: a key that is missing or unknown, a value of wrong form."""
        needed = [key for key, form in self.optional.items() if form.endswith("!")]
        f = node.fields(("kind", *self.required, *self.optional), required=(*self.required, *needed))
        forms = {key: FORMS[form.rstrip("!")] for key, form in self.optional.items()}
        given = take(f, **{key: lambda n, form=form: form(n, names) for key, form in forms.items()})
        return made_at(node, self.make, name, *[f[key].text() for key in self.required], **given)


def _kind(make: Callable[..., Any], record: type | None = None, /, *required: str, **optional: str) -> FileKind:
    """A row of the tables below."""
    return FileKind(make, required, optional, record)


_DRY = dict.fromkeys(("static", "stribeck", "viscous", "smooth"), "number")
_BLADE = {"thrust": "number!", "torque": "number", "handed": "hand", "axis": "direction", "point": "point"}

_PRESS = {"stiffness": "number!", "exponent": "number", "damping": "number"}
_SURFACE = _PRESS | {"stiffness": "number", "impact": "number"}

_LOADED = {"static": "number", "stribeck": "number", "smooth": "number", "settle": "number"}

FORCES: dict[str, FileKind] = {
    "spring": _kind(spring, None, "body_a", "body_b", point_a="point", point_b="point", stiffness="number", rest="number",
                    damping="number"),
    "path-spring": _kind(path_spring, None, path="path!", stiffness="number", rest="number", damping="number",
                         pulls_only="truth"),
    "wrench": _kind(wrench, None, "body", value="wrench", point="point", axes="axes", by="text"),
    "potential": _kind(potential, None, V="function!"),
    "dissipation": _kind(dissipation, None, R="function!"),
    "kinetic-energy": _kind(kinetic_energy, None, T="function!"),
    "generalised-force": _kind(generalised_force, None, f="function!", joint="text"),
    "pose-spring": _kind(pose_spring, None, "body_a", "body_b", stiffness="pseudo!", rest="pose"),
    "pose-damper": _kind(pose_damper, None, "body_a", "body_b", damping="pseudo!"),
    "bushing": _kind(bushing, Bushing, "body_a", "body_b", stiffness="pseudo!", damping="pseudo!", rest="pose"),
    "bush": _kind(bush, None, "body_a", "body_b", axis="direction!", point="point", radial="number!", axial="number!",
                  torsional="number!", cardanic="number!", damping="number", rest="pose"),
    "anti-roll-bar": _kind(anti_roll_bar, AntiRollBar, "left", "right", stiffness="number!", ratio="number", damping="number"),
    "pose-inertia": _kind(pose_inertia, None, "body_a", "body_b", inertia="pseudo!"),
    "joint-friction": _kind(joint_friction, None, "joint", sliding="number!", **_DRY),
    "guide-friction": _kind(guide_friction, None, "joint", coefficient="number!", length="number", **_LOADED),
    "pin-friction": _kind(pin_friction, None, "joint", coefficient="number!", radius="number!", collar="number", **_LOADED),
    "screw-friction": _kind(screw_friction, None, "joint", coefficient="number!", radius="number!", **_LOADED),
    "gear-loss": _kind(gear_loss, None, "joint", efficiency="number!", backward="number", smooth="number"),
    "contact-friction": _kind(contact_friction, None, "body", "on", normal="direction!", load="number!", coefficient="number!",
                              point="point", **_DRY),
    "contact": _kind(contact, Contact, "body_a", body_b="text", shape_a="surface", shape_b="surface", **_SURFACE,
                     friction="number", static="number", stribeck="number", creep="number"),
    "stop": _kind(stop, Stop, "joint", low="number", high="number", component="component", **_SURFACE),
    "rebound": _kind(rebound, Rebound, gap="function!", impact="number!"),
    "gear": _kind(gear, Gear, "driven", "by", ratio="number!", backlash="number", **_PRESS),
    "cable": _kind(cable, Cable, "body_a", "body_b", length="number!", point_a="point", point_b="point", **_PRESS),
    "cylinder": _kind(cylinder, Cylinder, "body_a", "body_b", bore="number!", stroke="pair!", stiffness="number!", rod="number",
                      point_a="point", point_b="point", damping="number", friction="number", viscous="number", smooth="number"),
    "belt": _kind(belt, Belt, "driven", "by", radii="pair!", stiffness="number!", damping="number"),
    "drag": _kind(drag, None, "body", area="number!", coefficient="number", density="number", point="point", wind="wind"),
    "propeller": _kind(propeller, None, "body", speed="number!", **_BLADE),
    "rotor": _kind(propeller, None, "body", "joint", **_BLADE),
}  # fmt: skip
"""Kind of force -> how it is made. The speed of a propeller is a number, that of a rotor the rate of a joint."""

_DISK = {"radius": "number!", "axis": "direction", "centre": "point", "plane": "plane"}

ROLLING: dict[str, FileKind] = {
    "rolling-disk": _kind(disk, Disk, "body", **_DISK),
    "rolling-wheel": _kind(wheel, None, "body", **_DISK),
    "rolling-sphere": _kind(sphere, Ball, "body", radius="number!", centre="point", plane="plane"),
    "rolling-ellipsoid": _kind(ellipsoid, Ellipsoid, "body", semi_axes="point!", centre="point", plane="plane"),
    "knife-edge": _kind(knife_edge, Blade, "body", along="direction!", point="point", plane="plane"),
}
"""Kind of contact with a plane -> how it is made. A wheel has the record of a disk."""
