"""States that an integrator steps, and what they are for: [q; v], chosen velocities, momenta, reduced states."""
