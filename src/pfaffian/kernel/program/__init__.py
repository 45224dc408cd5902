"""casadi.Function -> Program, passes over it, and its meaning: the interpreter and the time loop on NumPy arrays."""
