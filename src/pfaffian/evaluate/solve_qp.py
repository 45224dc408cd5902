"""Nearest points within linear limits: small quadratic programs, one problem or a batch, solved by a kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError, listed
from pfaffian.evaluate.single_values import some_runs
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered
from pfaffian.maths import qp
from pfaffian.model.number import reals

WORDS = {
    qp.SOLVED: "solved",
    qp.INFEASIBLE: "infeasible",
    qp.TOO_MANY_ITERATIONS: "not solved: it took more iterations than any known problem",
    qp.INACCURATE: "inaccurate, not solved: rows too close to dependent, H too close to singular, or u0 too far beyond the "
    "limits, for the digits of a double",
    qp.INDEFINITE: "H is not positive definite",
    qp.NOT_A_NUMBER: "an entry of H, u0 or W is not finite, or one of l is nan",
}


class NearestInput(NamedTuple):
    """The result of `solve_qp`, with leading axes (runs,) for a batch.

    u: (..., n) the solution, nan where there is none.   active: (..., m) of bool, the active rows; for an infeasible problem
        the rows that contradict each other.
    multipliers: (..., m) y >= 0 with H (u - u0) + W^T y = 0; for an infeasible problem W^T y = 0 with l^T y < 0, which no u
        can satisfy, or a single row whose limit is -inf.
    status: (...) 0 solved, 1 infeasible, 2 too many iterations, 3 inaccurate, 4 H not positive definite, 5 not a number.
    iterations: (...) number of iterations of the method.
    """

    u: np.ndarray
    active: np.ndarray
    multipliers: np.ndarray
    status: np.ndarray
    iterations: np.ndarray

    @property
    def message(self) -> str | list[str]:
        """The message for each problem's status, with the rows that contradict each other."""
        if self.status.ndim == 0:
            return _words(int(self.status), self.active)
        return [_words(int(s), a) for s, a in zip(self.status, self.active, strict=True)]


def _words(status: int, active: np.ndarray) -> str:
    """The message for the status of one problem.   active: (m,)."""
    if status != qp.INFEASIBLE:
        return WORDS[status]
    rows = np.flatnonzero(active)
    if len(rows) == 1:
        return f"infeasible: no u satisfies row {rows[0]}"
    return f"infeasible: rows {listed([str(i) for i in rows])} contradict each other"


def solve_qp(H: Any, u0: Any, W: Any, l: Any, *, backend: Backend = "auto") -> NearestInput:
    """The u nearest to u0 in the metric of H within linear limits, for one problem or a batch.

        min 1/2 (u - u0)^T H (u - u0)   with   W u <= l

    The solution is exact up to rounding times the conditioning of the active rows. Rows may be equal, parallel or zero, and
    more than n may meet in one point. Limits on both sides of each input are W = [1; -1], l = [high; -low]. Units do not
    matter: H, each row and all inputs may have any scale from 1e-20 to 1e20. A solution satisfies H (u - u0) + W^T y = 0 to
    1e-9 of the largest term, and each row to 1e-11 of |l| + |W| |u| and 1e-14 of the largest limit; these errors may be a
    hundred times larger where u0 is 1e10 times beyond all limits.

    A problem is infeasible if any u that satisfies its rows is more than a thousand times as far away as the rows are. Every
    other problem without an accurate solution has the status inaccurate. This is the rule where H has a condition number of
    1e8 or more on the directions that the rows leave free, and where rows miss or meet each other by 1e-14 to 1e-11 of their
    terms. It happens occasionally where u0 is 1e10 times beyond all limits and rows are nearly parallel, or 1e20 times beyond
    them.

    Args:
        H: (n, n) or (runs, n, n), symmetric and positive definite.
        u0: (n,) or (runs, n), the input without limits.
        W: (m, n) or (runs, m, n).
        l: (m,) or (runs, m); inf for a row without effect. Any units will do in which H u0 and W^T y agree.
        backend: "auto": interpreted at once, and compiled in the background where that pays; "c": compiled first;
            "interpreter" or "numpy": only interpreted, in C or by NumPy. All give the same bits.
    Returns:
        u: (..., n) the solution, nan where there is none.
        active: (..., m) of bool, the active rows; for an infeasible problem the rows that contradict each other.
        multipliers: (..., m) y >= 0; for an infeasible problem W^T y = 0 with l^T y < 0, which no u can satisfy, or a single
            row whose limit is -inf.
        status: (...) 0 solved, 1 infeasible, 2 too many iterations, 3 inaccurate, 4 H not positive definite, 5 not a number;
            `message` is the status as a message. No error is raised because of the values of numbers.
        iterations: (...) number of iterations of the method.
    Raises ModelError: the shapes do not fit together; an argument is not an array of real numbers; H is not symmetric.

    Example:
        Two inputs of 3 and 4 N whose sum is limited to 5 N:

        >>> import pfaffian as pf
        >>> nearest = pf.analysis.solve_qp([[1, 0], [0, 1]], [3.0, 4.0], [[1, 1]], [5.0], backend="numpy")
        >>> nearest.u.round(9), nearest.message
        (array([2., 3.]), 'solved')
    """
    given = {name: _array(x, name, axes) for name, x, axes in (("H", H, 2), ("u0", u0, 1), ("W", W, 2), ("l", l, 1))}
    n, m = given["u0"].shape[-1], given["l"].shape[-1]
    if not n or not m:
        raise ModelError(f"solve_qp: at least one input and one row are needed, got {n} and {m}")
    for name, rows in (("H", n), ("W", m)):
        if given[name].shape[-2:] != (rows, n):
            of = f"u0 has {n} numbers" if name == "H" else f"u0 has {n} numbers and l {m}"
            raise ModelError(f"solve_qp: {of}, so {name} must be ({rows}, {n}) or (runs, {rows}, {n}), got {given[name].shape}")
    with np.errstate(invalid="ignore"):
        asymmetric = np.abs(given["H"] - given["H"].swapaxes(1, 2)).max(axis=(1, 2)) > 1e-9 * np.abs(given["H"]).max(
            axis=(1, 2)
        )
    if asymmetric.any():
        raise ModelError("solve_qp: H must be symmetric; pass (H + H^T) / 2, which gives the same metric")
    count = some_runs({name: len(x) for name, x in given.items()})
    many = count > 1 or any(np.ndim(x) > axes for x, axes in ((H, 2), (u0, 1), (W, 2), (l, 1)))
    # CasADi stores matrices column by column, and the kernel stores the runs of each number next to each other.
    flat = [x.swapaxes(1, -1).reshape(len(x), -1) for x in given.values()]
    u, y, active, status, iterations = _kernel(n, m, backend)(*[x if len(x) == count else x[0] for x in flat])
    status, iterations = (np.atleast_2d(x)[:, 0].astype(int) for x in (status, iterations))
    answered = np.isin(status, (qp.SOLVED, qp.INFEASIBLE))[:, None]
    u = np.where(status[:, None] == qp.SOLVED, u, np.nan)
    result = NearestInput(u, np.atleast_2d(active) * answered > 0, np.where(answered, y, np.nan), status, iterations)
    return result if many else NearestInput(*[x[0] for x in result])


def _array(value: Any, name: str, axes: int) -> np.ndarray:
    """Argument `name` as an array (runs, ...) or (1, ...) of float64, nan and inf included."""
    array = reals(value, f"solve_qp: {name}")
    if array.ndim not in (axes, axes + 1):
        raise ModelError(f"solve_qp: {name} has shape {array.shape}: {axes} axes are needed, or one more of runs before them")
    return array if array.ndim > axes else array[None]


@remembered(64)
def _kernel(n: int, m: int, backend: Backend) -> kernel.Kernel:
    """The kernel of problems with n inputs and m rows."""
    return kernel.compile(lambda: _function(n, m), backend=backend, key=f"qp {n} {m}")


def _function(n: int, m: int) -> ca.Function:
    """(H, u0, W, l) -> (u, y, active, status, iterations), matrices column by column."""
    given = [ca.SX.sym(name, *shape) for name, shape in (("H", (n, n)), ("u0", (n, 1)), ("W", (m, n)), ("l", (m, 1)))]
    r = qp.nearest(*given)
    return ca.Function("qp", given, [ca.densify(x) for x in (r.u, r.y, r.active, r.status, r.iterations)])
