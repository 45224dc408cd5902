"""Quantities at one state or a batch of states, compiled once per mechanism; and checks of the arrays that callers pass.

arrays.py                    a caller's states, inputs and parameters as checked arrays (runs, n)
at_screw_parameters.py       numerical products of exponentials
candidates.py                motions of joints that may be symmetries
compiled.py                  quantities at given states
complete.py                  complete accelerations from some of their components
configuration_calculus.py    numerical calculus on the configurations of a mechanism
connections.py               the quantities of a reduction: momentum map, locked inertia, connections and their curvature
derivatives.py               derivatives of constrained forward dynamics at given states
inverse_derivatives.py       derivatives of inverse dynamics at given states
directions_at_states.py      directions that constraints leave where they determine no group, decided at random states
effects.py                   what changes the momenta of motions, and combinations of motions that nothing changes
flat_disks.py                disks that lie flat on their plane, where rolling has no value
floating_quantities.py       numerical quantities of a machine with a floating base
gain_bound.py                lower bound of the position gain of tracking in quasi-velocities
given_state.py               checks of the state that a caller passes for one instant
inverse.py                   inverse dynamics of closed loops with passive joints
light_inertia.py             a check for parameters that make inertias too light for the rank decision
terms_at_symbols.py          the terms of a mechanism at new symbols, for expressions of the user's own
place_dependence.py          whether the equations depend on where joints are
progress.py                  progress on the terminal, while a mechanism is compiled for the first time and during a run
quantities.py                single quantities at one state or a batch
reactions.py                 reaction wrenches of joints and closures at given states
realisability.py             whether the chosen control forces can maintain the servo constraints
reduction_plan.py            how a mechanism is reduced
single_values.py             checks of numbers, counts, words and flags, and the common number of runs
solve_qp.py                  nearest points within linear limits
symmetry.py                  symmetries of a mechanism
transported_basis.py         a smooth basis of the null space along a recorded motion, for equations written in such a basis
"""
