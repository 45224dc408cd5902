"""States from which a run may begin: on the constraints, in equilibrium, after an impact, at singular configurations.

assemble.py            the nearest state that satisfies the constraints, with named coordinates unchanged
branch.py              index of an assembly's branch, and its distance from the given state
closure_angles.py      coordinates of closures along a motion, over whole turns
closures_as_joints.py  coordinates of closures that are held, by joints in their place
continuation.py        ways onto the constraints that stay on one branch
equilibrium.py         static equilibria and their stability
equilibrium_path.py    equilibria along a parameter, round folds and through branches
given_motion.py        given motions of coordinates and bodies, read from series and references
given_start.py         the start that a caller gave, checked, as arrays of runs
held_rates.py          velocities, accelerations and regularity under given motions
holonomy.py            how the base of a floating machine moves while the joints follow a path
impact.py              plastic impact: constraints begin to act, and velocities jump
newton.py              Newton iterations onto phi(q, t) = 0 and eta(q, v, t) = 0
singularities.py       how near a parallel machine is to its singular configurations
start.py               the start of a run: put onto the constraints with the named coordinates fixed
start_search.py        searches where Newton's iterations fail; names of coordinates at fault
trajectory.py          assemblies along given motions, on one branch
whole_turns.py         coordinates whose whole turns matter: of screws, and in a loop with one
"""
