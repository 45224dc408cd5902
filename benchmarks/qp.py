"""Nearest inputs within limits, a batch in the kernel beside a kept solver called once a problem, its documented way.

H random of condition 100, limits of 1 on both sides of each input, u0 of which about half is beyond them; then 24 rows at
random. "As in flight" is the same box with u0 well inside of it but for one problem in ten: what a law meets. daqp is told of
limits as of bounds, which it knows apart from rows; quadprog took 2.4 times its time and proxsuite 6.8 where all three were
tried, so it stands for them. Ours is the kernel that knows that W is the limits of a box, as a law has it; `solve_qp` takes any
W and arranges the caller's arrays. Eight problems share turns and wait for the slowest: "turns of eight". Answers are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import casadi as ca
import daqp
import numpy as np

import pfaffian as pf
from benchmarks.check import agree
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved
from pfaffian.kernel import compile
from pfaffian.maths import qp

SAME = 1e-9


def run(o: Options) -> Iterator[Comparison]:
    for n in (3, 4, 6, 7):
        yield box(n, "in a box", 1.0, o)
    for n in (4, 7):
        yield box(n, "in a box, as in flight", 0.1, o)
    yield rows(6, 24, o)


def box(n: int, where: str, share: float, o: Options) -> Comparison:
    """share: of problems whose u0 is drawn wide, the others are well inside."""
    H, u0 = drawn(n, o)
    u0[np.random.default_rng(0).random(len(u0)) > share] /= 10
    W = np.vstack([np.eye(n), -np.eye(n)])
    l = np.ones((o.runs, 2 * n))
    law, operations = kernel(n, ca.sparsify(ca.SX(ca.DM(W))))
    given = columns(H, u0, l)
    kept = one_by_one(H, u0, np.empty((0, n)), np.ones(n), -np.ones(n))
    off = agree(f"box of {n} inputs", law(*given)[0], kept(), SAME)
    calls = {"": lambda: law(*given), "solve_qp": lambda: pf.solve_qp(H, u0, W, l), "daqp": kept}
    times = interleaved(calls, o.runs, o)
    notes = counted(operations, law(*given)[1]) | {"difference": off, "solve_qp, any W [us]": times["solve_qp"].median / 1e3}
    what = f"nearest of {n} inputs {where}, {o.runs} problems"
    return Comparison(what, "a problem", times[""], times["daqp"], Goal("ratio", ">=", 20), notes)


def rows(n: int, m: int, o: Options) -> Comparison:
    H, u0 = drawn(n, o)
    W = np.random.default_rng(m).normal(size=(o.runs, m, n))
    l = np.ones((o.runs, m))
    solve, operations = kernel(n, ca.SX.sym("W", m, n))
    given = columns(H, u0, l, W)
    kept = one_by_one(H, u0, W, l[0], np.full(m, -1e30))
    off = agree(f"{m} rows", solve(*given)[0], kept(), SAME)
    times = interleaved({"": lambda: solve(*given), "daqp": kept}, o.runs, o)
    notes = counted(operations, solve(*given)[1]) | {"difference": off}
    what = f"nearest of {n} inputs within {m} rows, {o.runs} problems"
    return Comparison(what, "a problem", times[""], times["daqp"], Goal("ratio", ">=", 20), notes)


def counted(operations: tuple[int, int], turns: np.ndarray) -> dict[str, float]:
    slowest = turns.reshape(-1, 8).max(axis=1).mean()
    return {"operations": operations[0], "of a turn": operations[1], "turns": turns.mean(), "turns of eight": slowest}


def drawn(n: int, o: Options) -> tuple[np.ndarray, np.ndarray]:
    """H (runs, n, n) and u0 (runs, n)."""
    random = np.random.default_rng(n)
    Q = np.linalg.qr(random.normal(size=(o.runs, n, n)))[0]
    H = np.einsum("bij,bj,bkj->bik", Q, 10.0 ** random.uniform(-1, 1, (o.runs, n)), Q)
    return (H + H.swapaxes(1, 2)) / 2, 1.5 * random.normal(size=(o.runs, n))


def kernel(n: int, W: ca.SX) -> tuple[Callable, tuple[int, int]]:
    """(H, u0, l[, W]) -> (u, turns), and its operations beside the turns and in one."""
    H, u0, l = ca.SX.sym("H", n, n), ca.SX.sym("u0", n), ca.SX.sym("l", W.shape[0])
    r = qp.nearest(H, u0, W, l)
    f = compile(ca.Function("nearest", [H, u0, l, *([] if W.is_constant() else [W])], [r.u, r.turns]), backend="c")
    return f, (len(f.program.steps), len(f.program.callees[0].steps))


def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    """(runs, numbers) each, matrices column by column, the runs of a number side by side."""
    return [np.asfortranarray(x.swapaxes(1, -1).reshape(len(x), -1)) for x in arrays]


def one_by_one(H: np.ndarray, u0: np.ndarray, W: np.ndarray, upper: np.ndarray, lower: np.ndarray) -> Callable[[], np.ndarray]:
    linear, kinds = -np.einsum("bij,bj->bi", H, u0), np.zeros(len(upper), dtype=np.intc)
    each = list(zip(H, linear, W if W.ndim == 3 else [W] * len(H), strict=True))
    return lambda: np.array([daqp.solve(h, f, w, upper, lower, kinds)[0] for h, f, w in each])
