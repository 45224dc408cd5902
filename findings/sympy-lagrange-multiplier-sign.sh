#!/bin/sh
# Tools: SymPy 1.14.0
# Behaviour: one LagrangesMethod object gives the multiplier of a holonomic constraint with two signs. By the
#   equations that form_lagranges_equations() returns, and by solve_multipliers(), it is the negative of what
#   mass_matrix_full, forcing_full and rhs() give. The accelerations agree.
# Consequence: a rope force computed from rhs() and read by the printed equations is a push instead of a pull. Put one
#   set of numbers into the equations to find the sign.
# Source: SymPy documentation, physics.mechanics.LagrangesMethod
# Seen:
#   second equation, hanging: 20 - 2*lam1(t) = 0, multiplier 10
#   by solve_multipliers(): 10  by mass_matrix_full and forcing_full: -10
. "$(dirname "$0")/common.sh"
needs sympy==1.14.0
"$python" -I - <<'END'
from sympy import solve, symbols
from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols

x, y = dynamicsymbols("x y")
m, g, l, t = symbols("m g l t")
L = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 - m * g * y
pendulum = LagrangesMethod(L, [x, y], hol_coneqs=[x**2 + y**2 - l**2])
equations = pendulum.form_lagranges_equations()
lam = pendulum.lam_vec[0]
hanging = [(x.diff(t, 2), 0), (y.diff(t, 2), 0), (x.diff(t), 0), (y.diff(t), 0), (x, 0), (y, -l), (l, 1), (m, 2), (g, 10)]
printed = solve(equations[1].subs(hanging), lam)[0]
solved = pendulum.solve_multipliers()[lam].subs(hanging)
numbers = pendulum.mass_matrix_full.LUsolve(pendulum.forcing_full)[-1].subs(hanging)
print("second equation, hanging:", equations[1].subs(hanging), "= 0, multiplier", printed)
print("by solve_multipliers():", solved, " by mass_matrix_full and forcing_full:", numbers)
assert printed == solved == 10 and numbers == -10
END
