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
discrete_laws.py, regulators.py                      laws in discrete time, and their building blocks
computed_torque_law.py, operational_space_law.py,    laws for tasks, forces and quasi-velocities, and a run without a law
    projected_law.py, hybrid_force_law.py, servo.py,
    quasivelocity_laws.py, open_loop.py
prototype.py, prototype_pair.py, placement.py,       the prototype of a machine, its poles, and its law
    prototype_tracking_law.py
concurrent_law.py, undriven.py, output_rank.py,      several outputs at once, and motions that nothing drives or sees
    idle.py
task.py, outputs.py, acceleration.py                 tasks and outputs, and accelerations for them
allocation.py, full_actuation.py, motors.py, actuation.py    inputs for accelerations and forces, and the motors for them
reference.py, feasible.py                            references, and whether a machine can follow one
flat.py, attitude_path.py, path_demands.py, replanned_path.py    references from flat outputs
estimation.py, identified_parameters.py              states and parameters from measurements
"""

from pfaffian import lazy

__getattr__ = lazy.importer(globals())
__dir__ = lazy.lister(globals(), lazy.listed(__file__))
