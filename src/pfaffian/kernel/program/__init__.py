"""casadi.Function -> Program, passes over it, and what it means: the interpreter and the time loop on NumPy arrays."""
