"""casadi.Function -> Program, the passes that simplify it, and its specification: interpreter and time loop in NumPy."""
