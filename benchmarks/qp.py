"""Nearest inputs within limits: a batch in the kernel compared with persistent solvers called once per problem, as documented.

H is random with condition 100, each input has limits of -1 and 1, and about half of the entries of u0 exceed them; then there
are 24 random rows. "As in flight" is the same box with u0 well inside it except in one problem of ten, as a law usually has
it. daqp and proxsuite get the limits as bounds, which they treat separately from rows. Ours is the kernel for which W is a
box, as in a law; `solve_qp` accepts any W and arranges the caller's arrays. Eight problems share iterations and wait for the
slowest one: "turns of eight". Solutions are compared. proxsuite converges iteratively: it gets TOLERANCE, and the notes count
the problems whose inputs differ by more than FOUND even then. At its default 1e-5 it costs about half, still more than the
others.

Ours is compared with the fastest of the installed solvers (`pip install quadprog proxsuite`); the others are in the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import casadi as ca
import numpy as np

import pfaffian as pf
from benchmarks.check import agree
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved
from pfaffian import control

SAME = 1e-9
FOUND, TOLERANCE = 1e-6, 1e-12
"""For proxsuite: tolerance of its inputs, and its eps_abs."""


def run(o: Options) -> Iterator[Comparison]:
    for n in (3, 4, 6, 7):
        yield box(n, "in a box", 1.0, o)
    for n in (4, 7):
        yield box(n, "in a box, as in flight", 0.1, o)
    yield rows(6, 24, o)


def box(n: int, where: str, share: float, o: Options) -> Comparison:
    """Comparisons in a box; share: fraction of problems whose u0 is drawn wide, the others are well inside."""
    H, u0 = drawn(n, o)
    u0[np.random.default_rng(0).random(len(u0)) > share] /= 10
    W = np.vstack([np.eye(n), -np.eye(n)])
    l = np.ones((o.runs, 2 * n))
    law, operations = kernel(n, 2 * n, W)
    given = columns(H, u0, l)
    ours = {"": lambda: law(given), "solve_qp": lambda: pf.analysis.solve_qp(H, u0, W, l)}
    what = f"nearest of {n} inputs {where}, {o.runs} problems"
    return beside(what, ours, law(given), operations, in_box(H, u0), o)


def rows(n: int, m: int, o: Options) -> Comparison:
    H, u0 = drawn(n, o)
    W = np.random.default_rng(m).normal(size=(o.runs, m, n))
    solve, operations = kernel(n, m)
    given = columns(H, u0, np.ones((o.runs, m)), W)
    what = f"nearest of {n} inputs within {m} rows, {o.runs} problems"
    return beside(what, {"": lambda: solve(given)}, solve(given), operations, in_rows(H, u0, W), o)


Solver = Callable[[], np.ndarray]
"""Solver of all problems, one by one, which returns u (runs, n)."""


def beside(
    what: str, ours: Mapping[str, Callable], answer: Any, operations: tuple[int, int], solvers: Mapping[str, Solver], o: Options
) -> Comparison:
    """Comparison of ours with the fastest installed solver, the others in the notes.   answer: our u and numbers of turns."""
    there = {name: solve for name, solve in solvers.items() if find_spec(name)}
    found = {name: solve() for name, solve in there.items()}
    off = {name: agree(f"{what}, {name}", answer[0], u, SAME) for name, u in found.items() if name != "proxsuite"}
    off |= {name: int((abs(u - answer[0]).max(axis=1) > FOUND).sum()) for name, u in found.items() if name not in off}
    times = interleaved({**ours, **there}, o.runs, o)
    notes: dict[str, Any] = counted(operations, answer[1])
    for name in solvers:
        if name not in there:
            notes[name] = "not installed"
            continue
        notes[f"{name} [us]"], notes[f"times {name}"] = times[name].median / 1e3, times[name].median / times[""].median
        notes["problems missed" if name == "proxsuite" else f"beside {name}"] = off[name]
    notes |= {f"{name}, any W [us]": times[name].median / 1e3 for name in ours if name}
    if not there:
        return Comparison(what, "a problem", times[""], notes=notes)
    fastest = min(there, key=lambda name: times[name].median)
    return Comparison(what, "a problem", times[""], times[fastest], Goal("ratio", ">=", 20), notes)


def counted(operations: tuple[int, int], turns: np.ndarray) -> dict[str, float]:
    slowest = turns.reshape(-1, 8).max(axis=1).mean()
    return {"operations": operations[0], "of a turn": operations[1], "turns": turns.mean(), "turns of eight": slowest}


def drawn(n: int, o: Options) -> tuple[np.ndarray, np.ndarray]:
    """H (runs, n, n) and u0 (runs, n)."""
    random = np.random.default_rng(n)
    Q = np.linalg.qr(random.normal(size=(o.runs, n, n)))[0]
    H = np.einsum("bij,bj,bkj->bik", Q, 10.0 ** random.uniform(-1, 1, (o.runs, n)), Q)
    return (H + H.swapaxes(1, 2)) / 2, 1.5 * random.normal(size=(o.runs, n))


def kernel(n: int, m: int, box: np.ndarray | None = None) -> tuple[Callable, tuple[int, int]]:
    """Function from the numbers of H, u0, l[, W] to (u, turns), and its operations outside the turns and in one turn.

    It is a quantity of a machine whose parameters are these numbers.   box: (m, n) a constant W of the kernel.
    """
    sizes = [(n, n), (n, 1), (m, 1), *([] if box is not None else [(m, n)])]
    numbers = [pf.Parameter(f"p{i}", 0.0) for i in range(sum(a * b for a, b in sizes))]
    slide = pf.joint("slide", "prismatic", "world", "cart")
    machine = pf.mechanism("problem", [pf.body("cart", 1.0)], [slide], parameters=numbers)

    def solved(T: pf.Terms) -> ca.SX:
        parts = ca.vertsplit(T.mechanism.p_symbols, np.cumsum([0, *(a * b for a, b in sizes)]).tolist())
        H, u0, l, *rest = [ca.reshape(x, *size) for x, size in zip(parts, sizes, strict=True)]
        W = rest[0] if rest else ca.sparsify(ca.SX(ca.DM(box)))
        r = control.nearest(H, u0, W, l)
        return ca.vertcat(r.u, r.iterations)

    f = pf.compile_terms(machine, {"nearest": solved}, backend="c").kernel
    at = machine.neutral(), np.zeros(1), np.zeros(0)

    def solve(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = f(*at, p, np.zeros(1))[0]
        return found[:, :n], found[:, n:]

    return solve, (len(f.program.steps), len(f.program.callees[0].steps))


def columns(*arrays: np.ndarray) -> np.ndarray:
    """(runs, numbers) of all problems, matrices column by column, with the runs of each number contiguous."""
    return np.asfortranarray(np.hstack([x.swapaxes(1, -1).reshape(len(x), -1) for x in arrays]))


def in_box(H: np.ndarray, u0: np.ndarray) -> dict[str, Solver]:
    """Persistent solvers of (1/2) u^T H u - (H u0)^T u with -1 <= u <= 1, by name."""
    n = H.shape[1]
    goal, most = np.einsum("bij,bj->bi", H, u0), np.ones(n)
    W, kinds = np.vstack([np.eye(n), -np.eye(n)]), np.zeros(n, dtype=np.intc)
    up, down = (list(zip(H, linear, strict=True)) for linear in (goal, -goal))

    def daqp() -> np.ndarray:
        from daqp import solve

        none = np.empty((0, n))
        return np.array([solve(h, f, none, most, -most, kinds)[0] for h, f in down])

    def quadprog() -> np.ndarray:
        from quadprog import solve_qp

        C, b = -W.T, -np.ones(2 * n)
        return np.array([solve_qp(h, g, C, b)[0] for h, g in up])

    def proxsuite() -> np.ndarray:
        import proxsuite

        solve = proxsuite.proxqp.dense.solve
        return np.array([solve(h, f, l_box=-most, u_box=most, eps_abs=TOLERANCE).x for h, f in down])

    return {"daqp": daqp, "quadprog": quadprog, "proxsuite": proxsuite}


def in_rows(H: np.ndarray, u0: np.ndarray, W: np.ndarray) -> dict[str, Solver]:
    """Persistent solvers of (1/2) u^T H u - (H u0)^T u with W u <= 1, W (runs, m, n), by name."""
    goal, most = np.einsum("bij,bj->bi", H, u0), np.ones(W.shape[1])
    least, kinds = -1e30 * most, np.zeros(len(most), dtype=np.intc)
    down, up = list(zip(H, -goal, W, strict=True)), list(zip(H, goal, -W.swapaxes(1, 2), strict=True))

    def daqp() -> np.ndarray:
        from daqp import solve

        return np.array([solve(h, f, w, most, least, kinds)[0] for h, f, w in down])

    def quadprog() -> np.ndarray:
        from quadprog import solve_qp

        return np.array([solve_qp(h, g, C, -most)[0] for h, g, C in up])

    def proxsuite() -> np.ndarray:
        import proxsuite

        solve = proxsuite.proxqp.dense.solve
        return np.array([solve(h, f, C=w, l=least, u=most, eps_abs=TOLERANCE).x for h, f, w in down])

    return {"daqp": daqp, "quadprog": quadprog, "proxsuite": proxsuite}
