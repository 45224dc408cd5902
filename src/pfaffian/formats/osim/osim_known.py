"""The elements of an OSIM file that are read or cannot change the motion, and the values that its <defaults> give to others."""

from __future__ import annotations

from pfaffian.formats.osim.osim_part import MEMBERS, MOTIONS, listed
from pfaffian.formats.text.unread import Known, unread
from pfaffian.formats.text.xml import Element

_FRAME = "@name components frames frame_geometry FrameGeometry attached_geometry WrapObjectSet"
_JOINT = (
    f"{_FRAME} socket_parent_frame socket_child_frame socket_parent_frame_connectee_name socket_child_frame_connectee_name"
    " coordinates CoordinateSet parent_body location_in_parent orientation_in_parent location orientation reverse connectors"
    " location_in_child orientation_in_child"
)
_CONSTRAINT = "@name components frames isEnforced isDisabled"
_TWO = " ".join(f"socket_{x} socket_{x}_connectee_name {x}" for x in ("body_1", "body_2", "frame1", "frame2"))
_PLACES = "location_body_1 location_body_2 orientation_body_1 orientation_body_2"
_LINE = " ".join(f"socket_{x} socket_{x}_connectee_name {x}" for x in ("line_body", "follower_body"))
_FORCE = "@name components isDisabled appliesForce coordinate"
_FUNCTIONS = "SimmSpline NaturalCubicSpline natCubicSpline Constant LinearFunction PolynomialFunction"
_STEP = "transition_start_time transition_end_time start_value end_value"
_ALL = f"{_FUNCTIONS} PiecewiseLinearFunction StepFunction MultiplierFunction"

KNOWN: Known = {
    "OpenSimDocument": "@Version Model",
    "Model": "@name components assembly_accuracy ground Ground gravity credits publications length_units force_units defaults"
    " BodySet JointSet ControllerSet ConstraintSet ForceSet MarkerSet ContactGeometrySet ProbeSet ComponentSet"
    " ModelVisualPreferences",
    **dict.fromkeys((*MEMBERS, "defaults", "ground", "Ground", "credits", "publications", "ControllerSet", "MarkerSet",
                     "ContactGeometrySet", "ProbeSet", "ComponentSet", "ModelVisualPreferences", "components", "frames",
                     "frame_geometry", "FrameGeometry", "attached_geometry", "WrapObjectSet", "VisibleObject",
                     "connectors"), "*"),
    "Body": f"{_FRAME} VisibleObject Joint mass mass_center inertia inertia_xx inertia_yy inertia_zz inertia_xy inertia_xz"
    " inertia_yz",
    "Joint": f"{' '.join(MOTIONS)} CustomJoint",
    **dict.fromkeys(MOTIONS, _JOINT), "CustomJoint": f"{_JOINT} SpatialTransform", "coordinates": "@name Coordinate",
    "CoordinateSet": "@name objects groups", "objects": "Coordinate",
    "Coordinate": "@name components motion_type default_value default_speed_value initial_value range clamped locked"
    " prescribed_function prescribed is_free_to_satisfy_constraints",
    "SpatialTransform": "@name TransformAxis", "TransformAxis": f"@name coordinates axis function {_ALL}",
    "function": _ALL, "prescribed_function": _ALL, "coupled_coordinates_function": _ALL,
    **dict.fromkeys(_FUNCTIONS.split(), "@name x y value coefficients"),
    "PiecewiseLinearFunction": "@name x y", "StepFunction": f"@name {_STEP}",
    "MultiplierFunction": "@name function scale",
    "CoordinateCouplerConstraint": f"{_CONSTRAINT} coupled_coordinates_function independent_coordinate_names"
    " dependent_coordinate_name scale_factor",
    "PointConstraint": f"{_CONSTRAINT} {_TWO} {_PLACES}", "WeldConstraint": f"{_CONSTRAINT} {_TWO} {_PLACES}",
    "ConstantDistanceConstraint": f"{_CONSTRAINT} {_TWO} {_PLACES} constant_distance",
    "PointOnLineConstraint": f"{_CONSTRAINT} {_LINE} line_direction_vec point_on_line point_on_follower",
    "SpringGeneralizedForce": f"{_FORCE} stiffness rest_length viscosity",
    "CoordinateActuator": f"{_FORCE} optimal_force min_control max_control",
}  # fmt: skip
"""As in `unread`, for the classes that are read, by their properties in OpenSim 4.6 and in files of version 3. Members of sets
and components of elements have rows of their own."""


def not_known(document: Element, model: Element) -> list[str]:
    """What a file has that is not known, in words, without members of sets that are left out as a whole."""
    members = [e for tag in MEMBERS for e in listed(model, tag) if e.tag in KNOWN]
    return [word for e in (document, *members) for word in unread(e, KNOWN)]


def fill(model: Element) -> None:
    """Give the elements of a model what its <defaults> say of their classes and they leave open, as OpenSim does."""
    given = model.only("defaults")
    defaults = {e.tag: e.children for e in given.children} if given is not None else {}
    waiting = [e for e in model.children if e is not given] if defaults else []
    while waiting:
        e = waiting.pop()
        there = {c.tag for c in e.children}
        e.children.extend(c for c in defaults.get(e.tag, ()) if c.tag not in there)
        waiting.extend(e.children)
