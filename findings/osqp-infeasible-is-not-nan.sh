#!/bin/sh
# Tools: OSQP 1.1.3
# Behaviour: for an infeasible problem solve() raises nothing and fills x and y with the number 2143289344, which are
#   the bits of a single-precision nan read as an integer. isnan and isfinite take it for a good answer.
# Consequence: two constraints that contradict each other become forces of 2e9 N. Look at info.status_val before x and
#   y.
# Source: OSQP documentation, solver status values
# Seen:
#   status: primal infeasible  x: [2.14328934e+09 2.14328934e+09]  y: [2.14328934e+09 2.14328934e+09]  finite: True
. "$(dirname "$0")/common.sh"
needs osqp==1.1.3
"$python" -I - <<'END'
import numpy as np
import osqp
from scipy.sparse import csc_matrix

solver = osqp.OSQP()
sides = np.array([1.0, 1.2])
solver.setup(csc_matrix(np.eye(2)), np.zeros(2), csc_matrix([[1.0, 1.0], [1.0, 1.0]]), sides, sides, verbose=False)
r = solver.solve()
print("status:", r.info.status, " x:", r.x, " y:", r.y, " finite:", bool(np.isfinite(r.x).all()))
assert r.info.status_val != 1 and set(r.x) == {2143289344.0} and np.float32(np.nan).view(np.int32) == 2143289344
END
