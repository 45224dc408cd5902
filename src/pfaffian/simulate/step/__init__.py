"""One time step as an expression: integrators, the law, switches, inputs, signals; and the compiled loop of steps."""
