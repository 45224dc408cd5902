"""States that an integrator steps, and what they are for: [q; v], chosen velocities, momenta, reduced states.

constants.py         components of a momentum that gravity conserves
inner_momenta.py     momenta of symmetries in the first body's own frame, such as the spin of a top
momentum_orbit.py    the reduced space of one momentum: the shape, its momentum, mu in the axes of the body
one_momentum.py      a machine that several joints carry, at one value of its momentum
other_states.py      [q; v] replaced by momenta, or by velocities that the caller chooses
reduced_state.py     reduction by symmetries and constraints: q and the momenta, conserved or not
signal.py            the labels of a recorded signal
system.py            a mechanism and the state in which it is integrated
variables.py         the velocities that the integrator steps
"""
