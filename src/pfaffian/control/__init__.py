"""Control laws, and the tasks and references that they follow; `pf.analysis` examines them.

`pf.run(m, control=law)` runs a law. Types: Control, Command; Task, Output; Reference, Setpoint, ReferenceMotion; Sample,
Sensor; Pair; Course.

computed_torque, operational_space, projected, hybrid_force, tracking, regulation,       laws
    servo_control, prototype_tracking, concurrent; length_weights
joints, point, pose, centre_of_mass, whole, stack; output                                tasks and outputs
set_point, polynomial, function_of_time, sampled, series                                 references
rest_to_rest, along, least_time, extremes, turning_series, path_end, thrust_attitude,    references from flat outputs
    pvtol_reference, bicopter_reference, quadcopter_reference, tricopter_reference;
    course, course_step, taylor
discrete, sensor, several, python_law; actuation, estimation,             laws in discrete time, their parts
    regulators
nearest                                                                                  inputs within limits
pair, hover_placement, matched_placement, two_mass_placement, quadcopter_pair,           prototypes
    prototype_terms, error_coordinates, transport_error, APPROACHES
check_reference, check_thrust                                                            checks of references

command.py, law_part.py, law.py, law_digest.py,      the interface of a law, its digest and values, causes of faults
    layout.py, reason.py
losses_at.py                                         friction that follows loads where the acceleration is given
discrete.py, regulators.py                           laws in discrete time, and their building blocks
projected.py, computed_torque.py, servo.py,          laws for tasks, forces and quasi-velocities, and a run without a law
    operational_space.py, hybrid_force.py, quasivelocity_laws.py, open_loop.py
prototype.py, prototype_pair.py,                     the prototype of a machine, its law, and its poles
    prototype_tracking.py, placement.py
concurrent.py, undriven.py, output_rank.py, idle.py  several outputs at once, and motions that nothing drives or sees
task.py, output.py, acceleration.py                  tasks and outputs, and accelerations for them
allocation.py, full_actuation.py, motors.py, actuation.py    inputs for accelerations and forces, and the motors for them
reference.py, feasible.py                            references, and whether a machine can follow one
flat.py, attitude_path.py, path_demands.py, replanned_path.py    references from flat outputs
estimation.py, identification.py                     states and parameters from measurements
"""

from pfaffian import lazy
from pfaffian.control import actuation as actuation
from pfaffian.control import estimation as estimation
from pfaffian.control import regulators as regulators
from pfaffian.control.allocation import length_weights as length_weights
from pfaffian.control.attitude_path import path_end as path_end
from pfaffian.control.attitude_path import turning_series as turning_series
from pfaffian.control.command import Command as Command
from pfaffian.control.computed_torque import computed_torque as computed_torque
from pfaffian.control.concurrent import concurrent as concurrent
from pfaffian.control.discrete import Sensor as Sensor
from pfaffian.control.discrete import discrete as discrete
from pfaffian.control.discrete import python_law as python_law
from pfaffian.control.discrete import sensor as sensor
from pfaffian.control.discrete import several as several
from pfaffian.control.feasible import check_reference as check_reference
from pfaffian.control.flat import along as along
from pfaffian.control.flat import bicopter_reference as bicopter_reference
from pfaffian.control.flat import pvtol_reference as pvtol_reference
from pfaffian.control.flat import quadcopter_reference as quadcopter_reference
from pfaffian.control.flat import rest_to_rest as rest_to_rest
from pfaffian.control.flat import thrust_attitude as thrust_attitude
from pfaffian.control.flat import tricopter_reference as tricopter_reference
from pfaffian.control.hybrid_force import hybrid_force as hybrid_force
from pfaffian.control.law import Control as Control
from pfaffian.control.law_part import Sample as Sample
from pfaffian.control.operational_space import operational_space as operational_space
from pfaffian.control.output import Output as Output
from pfaffian.control.output import output as output
from pfaffian.control.path_demands import check_thrust as check_thrust
from pfaffian.control.path_demands import extremes as extremes
from pfaffian.control.path_demands import least_time as least_time
from pfaffian.control.placement import hover_placement as hover_placement
from pfaffian.control.placement import matched_placement as matched_placement
from pfaffian.control.placement import quadcopter_pair as quadcopter_pair
from pfaffian.control.placement import two_mass_placement as two_mass_placement
from pfaffian.control.projected import projected as projected
from pfaffian.control.prototype import APPROACHES as APPROACHES
from pfaffian.control.prototype import ReferenceMotion as ReferenceMotion
from pfaffian.control.prototype import error_coordinates as error_coordinates
from pfaffian.control.prototype import prototype_terms as prototype_terms
from pfaffian.control.prototype import transport_error as transport_error
from pfaffian.control.prototype_pair import Pair as Pair
from pfaffian.control.prototype_pair import pair as pair
from pfaffian.control.prototype_tracking import prototype_tracking as prototype_tracking
from pfaffian.control.quasivelocity_laws import regulation as regulation
from pfaffian.control.quasivelocity_laws import tracking as tracking
from pfaffian.control.reference import Reference as Reference
from pfaffian.control.reference import Setpoint as Setpoint
from pfaffian.control.reference import function_of_time as function_of_time
from pfaffian.control.reference import polynomial as polynomial
from pfaffian.control.reference import sampled as sampled
from pfaffian.control.reference import series as series
from pfaffian.control.reference import set_point as set_point
from pfaffian.control.replanned_path import Course as Course
from pfaffian.control.replanned_path import course as course
from pfaffian.control.replanned_path import course_step as course_step
from pfaffian.control.replanned_path import taylor as taylor
from pfaffian.control.servo import servo_control as servo_control
from pfaffian.control.task import Task as Task
from pfaffian.control.task import centre_of_mass as centre_of_mass
from pfaffian.control.task import joints as joints
from pfaffian.control.task import point as point
from pfaffian.control.task import pose as pose
from pfaffian.control.task import stack as stack
from pfaffian.control.task import whole as whole
from pfaffian.maths.qp import nearest as nearest

__dir__ = lazy.lister(globals(), ["actuation", "estimation", "regulators"])
