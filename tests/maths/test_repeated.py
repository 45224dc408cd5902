"""Functions that are traced once for each structure give the expressions that they would give without that."""

from __future__ import annotations

import casadi as ca

from pfaffian.maths.repeated import repeated
from pfaffian.maths.so3 import hat
from pfaffian.maths.tree_factor import TreeFactor, multiply_W, solve_W, solve_WT

CALLS: list[int] = []


@repeated
def moment(sign: int, p: ca.SX, f: ca.SX) -> tuple[ca.SX, ca.SX]:
    CALLS.append(sign)
    return sign * ca.cross(p, f), hat(p) @ f


def test_expressions_are_those_without_tracing() -> None:
    """Numbers among the entries simplify the result; a new structure or option is traced anew."""
    x, CALLS[:] = ca.SX.sym("x", 3), []
    sparse = ca.SX(3, 1)
    sparse[1] = ca.SX.sym("y")
    for sign in (1, 2):
        for p in (x, 2 * x, ca.vertcat(x[0], 0, 1), sparse):
            found, direct = moment(sign)(p, x), moment.__wrapped__(sign, p, x)
            assert all(ca.is_equal(a, b, 20) and a.sparsity() == b.sparsity() for a, b in zip(found, direct, strict=True))
    traced = [1] * 2 + [2] * 2
    assert len(CALLS) == len(traced) + 8, "eight of them without tracing"


def test_columns_are_solved_together_as_alone() -> None:
    n = 5
    rows = [{j: ca.SX.sym(f"l{k}{j}") for j in range(k) if (j + k) % 2} for k in range(n)]
    diagonal = [ca.SX.sym(f"d{k}") for k in range(n)]
    F = TreeFactor(tuple(rows), tuple(diagonal), tuple(1 / d for d in diagonal))
    B = ca.SX(n, 3)
    B[1, 0], B[4, 1], B[2, 2], B[0, 2] = ca.vertsplit(ca.SX.sym("b", 4))
    for solve in (solve_W, solve_WT, multiply_W):
        alone = ca.horzcat(*[solve(F, B[:, i]) for i in range(3)])
        assert ca.is_equal(ca.densify(solve(F, B)), ca.densify(alone), 20)
    numbers = ca.Function("f", ca.symvar(ca.veccat(B, F.W)), [F.W @ solve_W(F, B) - B, F.W.T @ solve_WT(F, B) - B])
    for off in numbers(*[0.5 + 0.1 * i for i in range(numbers.n_in())]):
        assert float(ca.norm_inf(ca.vec(off))) < 1e-12
