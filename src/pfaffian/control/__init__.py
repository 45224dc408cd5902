"""Control laws: each answers, from the terms at a state and a reference, what the inputs shall be."""

from pfaffian.control import actuation, estimation, identification
from pfaffian.control.allocation import length_weights
from pfaffian.control.computed_torque import computed_torque
from pfaffian.control.concurrent import concurrent
from pfaffian.control.discrete import Sample, Sensor, discrete, python_law, sensor, several
from pfaffian.control.feasible import check_reference
from pfaffian.control.flat import (
    along,
    bicopter_reference,
    check_thrust,
    extremes,
    least_time,
    pvtol_reference,
    quadcopter_reference,
    rest_to_rest,
    thrust_attitude,
    turning_series,
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
from pfaffian.control.prototype import Pair, error_coordinates, pair, prototype_tracking
from pfaffian.control.quasivelocity import regulation, tracking
from pfaffian.control.reference import Reference, function_of_time, polynomial, sampled, series, set_point
from pfaffian.control.servo import servo_control
from pfaffian.control.task import Task, centre_of_mass, joints, point, pose, stack, whole

__all__ = [
    "Command",
    "Control",
    "Hover",
    "Matched",
    "Output",
    "Pair",
    "Reference",
    "Sample",
    "Sensor",
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
    "discrete",
    "error_coordinates",
    "estimation",
    "extremes",
    "function_of_time",
    "hover_placement",
    "hybrid_force",
    "identification",
    "joints",
    "least_time",
    "length_weights",
    "matched_placement",
    "operational_space",
    "output",
    "pair",
    "point",
    "polynomial",
    "pose",
    "projected",
    "prototype_tracking",
    "pvtol_reference",
    "python_law",
    "quadcopter_pair",
    "quadcopter_reference",
    "regulation",
    "rest_to_rest",
    "sampled",
    "sensor",
    "series",
    "servo_control",
    "set_point",
    "several",
    "stack",
    "thrust_attitude",
    "tracking",
    "turning_series",
    "two_mass_placement",
    "whole",
]
