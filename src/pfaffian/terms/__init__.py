"""From a mechanism to the terms of its equations: M, c, f, B, A, b.

applied_forces.py             springs, dampers, wrenches, the caller's functions, the input matrix, potential energy
articulated_inertia.py        articulated-body inertias, and solution of the equations of motion along the tree, link by link
common_motion.py              motions of a whole machine as one rigid body, where no single joint permits them
connection.py                 calculus along the velocities: derivatives, brackets and the connection of a metric
dependence.py                 constraint rows that depend on each other where a mechanism moves
equations_digest.py           digests of a mechanism's equations, and of the graph that a caller's function returns
force_scale.py                sizes of forces along a motion, from the bodies that it moves
generic_states.py             decisions at random states: what is zero, which rank a matrix has
hamel.py                      equations of motion by differentiation of an energy
independent_bodies.py         kinematics in which every body moves independently
kinematics.py                 poses and motions of bodies
lengths.py                    the length of a machine, by which residuals and steps are scaled
loop_joints.py                joints that close loops: their coordinates and velocities
loop_rotors.py                inertia of rotors in joints that close loops
loops.py                      the loops of a mechanism
momentum.py                   momenta p = M v and their rates, body by body
new_symbols.py                a caller's function evaluated at new symbols, by which it is differentiated
orbit_chart.py                charts of coadjoint orbits
path_forces.py                forces along paths
permitted_directions.py       directions that velocity constraints leave, where these turn with the shape
pfaffian.py                   constraint rows A v_dot = b, with the residuals of position and velocity
product_of_exponentials.py    kinematics of an open chain in screw parameters
rates.py                      maps from the velocities v to other rates, such as q_dot = K(q) v
recursions.py                 mass matrix, bias force, momentum, energy, link by link
reduced_terms.py              terms of a reduction: the mass matrix without a first joint that is a group
reused_kinematics.py          kinematics that serve many traces of callers' functions
stabilised.py                 constraints to which a run returns at given rates, instead of being put onto them
symbolic.py                   expressions in SymPy, for papers and lectures
terms.py                      M v_dot + c = f + B u + A^T lambda, A v_dot = b
traced_now.py                 the present state of a mechanism
tree.py                       the tree on which recursions run: a link for each moving joint
wrenches.py                   forces on each body: those that its motion requires, those applied to it
"""
