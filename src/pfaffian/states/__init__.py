"""States that an integrator steps, and what they are for: [q; v], chosen velocities, momenta, reduced states.

abstract_system.py       what a system is: a mechanism and the state in which it is integrated
chosen_velocities.py     [q; y] with velocities y that the user chooses
conserved_fields.py      fields of the user along which a momentum is conserved
constants.py             components of a momentum that gravity conserves
extended_state.py        a reduced state with more entries
hamilton_state.py        the coordinates and their momenta
inner_momenta.py         momenta of symmetries in the first body's own frame, such as the spin of a top
momentum_orbit.py        the reduced space of one momentum: the shape, its momentum, mu in the axes of the body
one_momentum.py          a machine that several joints carry, at one value of its momentum
reduce.py                what of a mechanism is reduced, and the state that remains
reduced_state.py         q and the momenta, conserved or not
reduction_data.py        the plan of a reduction, its base, and the fields of the user
reduction_in_words.py    which momenta are in a reduced state, and which of them are conserved
signal.py                the labels of a recorded signal
system.py                the state [q; v], and a state that a user's functions define
variables.py             the velocities that the integrator steps
"""
