"""The description of a mechanism as frozen, validated data, without equations of motion.

body.py                rigid bodies: mass, mass centre, inertia and shapes
check.py               checks of a mechanism: names, tree, references, parameters and masses
circle.py              circles among things that follow one another
compound.py            several forces or constraints that a mechanism takes as one
constraint.py          constraints: closures, phi(q, t) = 0, eta(q, v, t) = 0 and Z v_dot = z
coordinates.py         user-defined coordinates q with minimal velocities v, q_dot = K(q) v
data.py                frozen dataclasses whose numbers are SX
force.py               forces: actuators, wrenches, springs between bodies, and functions of the kinematics
graph.py               the graph of an open chain
joint.py               joints of the tree, and the relative motions that each kind allows
load_loss.py           friction of a joint in proportion to its load: the data
loop_coordinates.py    the coordinates of joints that close loops, which results record beside q and v
mechanism.py           the mechanism as a whole; frozen and checked
mechanism_digest.py    the digest of a mechanism, the key under which its compiled equations are cached
number.py              numbers of a mechanism: a float, a named parameter, or an expression of parameters
path.py                lines through points of bodies, over pulleys and round cylinders and spheres
path_force.py          springs, dampers and winches along a path, and a cable of fixed length
pose.py                poses: rotation and position of one frame in another
ranges.py              what numbers of elements must be, also where a run sets their parameters
reprs.py               short texts of the parts of a model, and HTML tables for notebooks
shape.py               shapes of bodies, with mass, mass centre and inertia for a uniform density
slider_crank.py        the travel of a slider that a rod pushes
traced_function.py     user functions, each with a digest of the expressions that it returned when it was traced
unphysical.py          bodies, and other elements, with impossible numbers at given parameter values
user_functions.py      all calls of user functions, so that errors in them name the element at fault
with_numbers.py        a mechanism with numbers in place of some parameters
"""
