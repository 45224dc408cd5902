#!/bin/sh
# Tools: CasADi 3.8.2
# Behaviour: least |x|^2 with the row x1 + x2 = 1 written twice, in six QP plugins of CasADi. ipqp reports success and
#   returns nan. qrqp and daqp refuse. osqp, proxqp and highs find x; osqp and proxqp share the multiplier, highs puts
#   it on one row. With the row once, all six agree, osqp to its default tolerance of 1e-3.
# Consequence: closed mechanisms have redundant rows. Test x for nan beside success, remove dependent rows first, and
#   compare A^T lam between solvers, not lam.
# Source: CasADi documentation, conic and its plugins
# Seen:
#   ipqp: success True, x [nan nan], multipliers [nan nan]
#   qrqp: success False, x [0. 0.], multipliers [0. 0.]
#   daqp: success False, x [0. 0.], multipliers [0. 0.]
#   osqp: success True, x [0.5 0.5], multipliers [-0.25 -0.25]
#   proxqp: success True, x [0.5 0.5], multipliers [-0.25 -0.25]
#   highs: success True, x [0.5 0.5], multipliers [-0.5  0. ]
. "$(dirname "$0")/common.sh"
needs casadi==3.8.2
"$python" -I - <<'END'
import casadi as ca
import numpy as np


QUIET = {
    "qrqp": {"print_iter": False, "print_header": False, "print_info": False},
    "ipqp": {"print_iter": False, "print_header": False, "print_info": False},
    "osqp": {"osqp": {"verbose": False}},
    "highs": {"highs": {"output_flag": False}},
}


def solve(plugin, rows):
    """Success, x and multipliers with the row x1 + x2 = 1 once or twice."""
    H, A = ca.DM.eye(2), ca.DM.ones(rows, 2)
    shape = {"h": H.sparsity(), "a": A.sparsity()}
    solver = ca.conic("solver", plugin, shape, {"error_on_fail": False, **QUIET.get(plugin, {})})
    r = solver(h=H, g=0, a=A, lba=1, uba=1)
    return solver.stats()["success"], *(np.array(r[key]).ravel().round(2) + 0.0 for key in ("x", "lam_a"))


seen = {}
for plugin in ("ipqp", "qrqp", "daqp", "osqp", "proxqp", "highs"):
    once, seen[plugin] = solve(plugin, 1), solve(plugin, 2)
    success, x, multipliers = seen[plugin]
    print(f"{plugin}: success {success}, x {x}, multipliers {multipliers}")
    assert once[0] and list(once[1]) == [0.5, 0.5]
assert seen["ipqp"][0] and np.isnan(seen["ipqp"][1]).all()
assert not seen["qrqp"][0] and not seen["daqp"][0]
assert list(seen["osqp"][2]) == list(seen["proxqp"][2]) == [-0.25, -0.25] and seen["highs"][2].tolist() == [-0.5, 0]
END
