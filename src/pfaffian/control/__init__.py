"""Control laws, the tasks and references that they follow, and analyses of what a law can do.

A law is run by `pf.run(m, control=law)`. Types: Control, Command; Task, Output; Reference, Setpoint, ReferenceMotion; Sample,
Sensor; Pair, Hover, Matched, TwoMasses; Course, PathEnd.

computed_torque, operational_space, projected, hybrid_force, tracking, regulation,       laws
    servo_control, prototype_tracking, concurrent; length_weights
joints, point, pose, centre_of_mass, whole, stack; output                                tasks and outputs
set_point, polynomial, function_of_time, sampled, series                                 references
rest_to_rest, along, least_time, extremes, turning_series, path_end, thrust_attitude,    references from flat outputs
    pvtol_reference, bicopter_reference, quadcopter_reference, tricopter_reference;
    course, course_step, taylor
discrete, sensor, several, python_law; actuation, estimation, identification,             laws in discrete time and their parts
    regulators
nearest, solve_qp                                                                        inputs within limits
pair, hover_placement, matched_placement, two_mass_placement, quadcopter_pair,           prototypes
    prototype_terms, error_coordinates, transport_error, APPROACHES
matching, feasibility, check_reference, check_thrust, zero_dynamics,                     what a law can do
    zero_dynamics_along, position_gain_bound

Example:
    >>> import pfaffian as pf
    >>> from pfaffian import control
    >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
    >>> law = control.projected(control.joints("rail"), control.set_point([1.0]), stiffness=4.0, damping=4.0)
    >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
    >>> run["u"].values[0]  # mass times stiffness times error
    array([8.])
"""

from importlib import import_module
from typing import Any

from pfaffian.control import actuation, estimation, identification, regulators
from pfaffian.control.allocation import length_weights
from pfaffian.control.computed_torque import computed_torque
from pfaffian.control.concurrent import concurrent
from pfaffian.control.course import Course, course, course_step, taylor
from pfaffian.control.discrete import Sample, Sensor, discrete, python_law, sensor, several
from pfaffian.control.extremes import check_thrust, extremes, least_time
from pfaffian.control.feasible import check_reference
from pfaffian.control.flat import (
    along,
    bicopter_reference,
    pvtol_reference,
    quadcopter_reference,
    rest_to_rest,
    thrust_attitude,
    tricopter_reference,
)
from pfaffian.control.hybrid_force import hybrid_force
from pfaffian.control.law import Command, Control
from pfaffian.control.operational_space import operational_space
from pfaffian.control.output import Output, output
from pfaffian.control.placement import (
    Hover,
    Matched,
    TwoMasses,
    hover_placement,
    matched_placement,
    quadcopter_pair,
    two_mass_placement,
)
from pfaffian.control.projected import projected
from pfaffian.control.prototype import (
    APPROACHES,
    Pair,
    ReferenceMotion,
    error_coordinates,
    pair,
    prototype_terms,
    transport_error,
)
from pfaffian.control.prototype_tracking import prototype_tracking
from pfaffian.control.quasivelocity import regulation, tracking
from pfaffian.control.reference import Reference, Setpoint, function_of_time, polynomial, sampled, series, set_point
from pfaffian.control.servo import servo_control
from pfaffian.control.task import Task, centre_of_mass, joints, point, pose, stack, whole
from pfaffian.control.turning import PathEnd, path_end, turning_series
from pfaffian.maths.qp import nearest

_LATE = {
    "feasibility": "pfaffian.simulate.matching",
    "matching": "pfaffian.simulate.matching",
    "position_gain_bound": "pfaffian.evaluate.gain_bound",
    "solve_qp": "pfaffian.simulate.qp",
    "zero_dynamics": "pfaffian.simulate.zero_dynamics",
    "zero_dynamics_along": "pfaffian.simulate.zero_dynamics",
}
"""Analyses of a law use simulations, which laws do not depend on: these names are imported when they are first used."""

__all__ = [
    "APPROACHES",
    "Command",
    "Control",
    "Course",
    "Hover",
    "Matched",
    "Output",
    "Pair",
    "PathEnd",
    "Reference",
    "ReferenceMotion",
    "Sample",
    "Sensor",
    "Setpoint",
    "Task",
    "TwoMasses",
    "actuation",
    "along",
    "bicopter_reference",
    "centre_of_mass",
    "check_reference",
    "check_thrust",
    "computed_torque",
    "concurrent",
    "course",
    "course_step",
    "discrete",
    "error_coordinates",
    "estimation",
    "extremes",
    "feasibility",
    "function_of_time",
    "hover_placement",
    "hybrid_force",
    "identification",
    "joints",
    "least_time",
    "length_weights",
    "matched_placement",
    "matching",
    "nearest",
    "operational_space",
    "output",
    "pair",
    "path_end",
    "point",
    "polynomial",
    "pose",
    "position_gain_bound",
    "projected",
    "prototype_terms",
    "prototype_tracking",
    "pvtol_reference",
    "python_law",
    "quadcopter_pair",
    "quadcopter_reference",
    "regulation",
    "regulators",
    "rest_to_rest",
    "sampled",
    "sensor",
    "series",
    "servo_control",
    "set_point",
    "several",
    "solve_qp",
    "stack",
    "taylor",
    "thrust_attitude",
    "tracking",
    "transport_error",
    "tricopter_reference",
    "turning_series",
    "two_mass_placement",
    "whole",
    "zero_dynamics",
    "zero_dynamics_along",
]


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'pfaffian.control' has no attribute {name!r}")
    value = getattr(import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
