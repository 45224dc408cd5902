#!/bin/sh
# Tools: qpax 0.1.4 with JAX 0.10.2
# Behaviour: in single precision, JAX's default, solve_qp does all 30 iterations and returns converged = 0 for a
#   problem of three variables that it has solved to 1e-6. In double precision it takes a few, and returns 1. An
#   equality that is written twice makes x and the multipliers nan as soon as there is an inequality.
# Consequence: a loop that tests converged throws good answers away and always pays for 30 iterations. Enable
#   jax_enable_x64, and remove dependent rows first.
# Source: qpax, solve_qp
# Seen:
#   single precision (x, converged, iterations): ([0.5, 0.0, 0.5], 0, 30)
#   double precision: ([0.5, 0.0, 0.5], 1, 5)
#   double precision, the equality twice: ([nan, nan, nan], 0, 30)
. "$(dirname "$0")/common.sh"
needs qpax==0.1.4 jax==0.10.2 jaxlib==0.10.2
"$python" -I - <<'END'
import jax
import jax.numpy as jnp
import qpax


def solve(rows):
    Q, q = jnp.diag(jnp.array([1.0, 2.0, 3.0])), jnp.array([-1.0, 0.5, -2.0])
    A, b = jnp.ones((rows, 3)), jnp.ones(rows)
    G, h = -jnp.eye(3), jnp.zeros(3)
    x, *_, converged, iterations = qpax.solve_qp(Q, q, A, b, G, h)
    return [round(float(v), 4) for v in x], int(converged), int(iterations)


single = solve(1)
jax.config.update("jax_enable_x64", True)
double, twice = solve(1), solve(2)
print("single precision (x, converged, iterations):", single)
print("double precision:", double)
print("double precision, the equality twice:", twice)
assert max(abs(a - b) for a, b in zip(single[0], double[0], strict=True)) < 1e-3
assert single[1:] == (0, 30) and double[1] == 1 and double[2] < 15 and all(v != v for v in twice[0])
END
