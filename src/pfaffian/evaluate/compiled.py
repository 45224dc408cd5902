"""Single quantities at given states: any function of Terms, compiled once, over one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics import formulation
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_number, common_runs, configurations, parameter_values, runs, velocities
from pfaffian.kernel.call.kernel import Backend
from pfaffian.model import shown
from pfaffian.model.caller import answer, checked
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import matrix
from pfaffian.terms.digest import digest
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols


@dataclass(frozen=True, eq=False)
class Compiled:
    """f(q, v, u, t=0, parameters=None) -> {name: array}; see `compile_terms`."""

    mechanism: Mechanism
    kernel: kernel.Kernel
    shapes: Mapping[str, tuple[int, int]]

    def __repr__(self) -> str:
        return shown.words(self, f"of {self.mechanism.name!r}", *[f"{name} {shape}" for name, shape in self.shapes.items()])

    def __call__(
        self, q: Any = None, v: Any = None, u: Any = None, *, t: float = 0.0, parameters: Any = None
    ) -> dict[str, np.ndarray]:
        """Evaluate at (n,) or (runs, n) arrays or {name: number}. Each result is (rows, columns) or (runs, rows, columns);
        columns are dropped where there is one, rows too where there is one number."""
        found = self.matrices(q, v, u, t=t, parameters=parameters)
        return {name: _without_ones(x, *self.shapes[name]) for name, x in found.items()}

    def matrices(
        self, q: Any = None, v: Any = None, u: Any = None, *, t: float = 0.0, parameters: Any = None
    ) -> dict[str, np.ndarray]:
        """The same with every axis kept: (..., rows, columns)."""
        m = self.mechanism
        given = [
            configurations(m, q),
            velocities(m, v),
            runs(u, m.u_names, np.zeros(m.nu), "u"),
            np.array([[as_number(t, "t")]]),
            parameter_values(m, parameters),
        ]
        count = common_runs(dict(zip(("q", "v", "u", "t", "parameters"), map(len, given), strict=True)))
        many = any(np.ndim(x) == 2 for x in (q, v, u)) or count > 1
        results = self.kernel(*[a if len(a) == count else a[0] for a in given])
        # CasADi stores columns one after another.
        arrays = (
            np.atleast_2d(r).reshape(count, columns, rows).transpose(0, 2, 1)
            for r, (rows, columns) in zip(results, self.shapes.values(), strict=True)
        )
        return {name: x if many else x[0] for name, x in zip(self.shapes, arrays, strict=True)}


def _without_ones(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if columns > 1:
        return x
    return x[..., 0, 0] if rows == 1 else x[..., 0]


def compile_terms(
    m: Mechanism, quantities: Mapping[str, Callable[[Terms], ca.SX]], *, backend: Backend = "auto", lanes: int = 8
) -> Compiled:
    """Compile quantities of a mechanism.

    Args:
        backend: auto, c or numpy.   lanes: runs at once, 8 for batches, 1 for single states.
        quantities: {name: function of Terms giving a matrix}, e.g. {"M": lambda T: T.M,
            "tip": lambda T: T.kinematics.position("tool")}.
    Raises ModelError: a function fails, gives no matrix, or uses symbols that are not of the mechanism.
    """
    as_mechanism(m)
    if not isinstance(quantities, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in quantities.items()):
        raise ModelError(f"compile_terms(m, quantities): {{name: function of Terms}} is needed, got {brief(quantities)}")
    T = symbols(m)
    values = {name: _quantity(f, name, T) for name, f in quantities.items()}
    shapes = {name: x.shape for name, x in values.items()}
    return Compiled(m, kernel.compile(function_of(T, values), backend=backend, lanes=lanes), shapes)


def _quantity(f: Callable[[Terms], ca.SX], name: str, T: Terms) -> ca.SX:
    what = f"quantity {name!r}"
    return checked(matrix(answer(f, what, T), what), what, (T.q, T.v, T.u, T.t, T.mechanism.p_symbols))


def function_of(T: Terms, values: Mapping[str, ca.SX]) -> ca.Function:
    """(q, v, u, t, p) -> each value as a column."""
    inputs = [T.q, T.v, T.u, T.t, T.mechanism.p_symbols]
    return ca.Function("quantities", inputs, [ca.vec(ca.densify(x)) for x in values.values()], {"cse": True})


class Dynamics(NamedTuple):
    """v_dot (..., nv), reaction (..., nv) [N, N m], rank (...) of the constraint rows."""

    v_dot: np.ndarray
    reaction: np.ndarray
    rank: np.ndarray


@remembered(64)
def _forward(m: Mechanism, name: str) -> Compiled:
    def build() -> ca.Function:
        T = symbols(m)
        return function_of(T, formulation(name, T)(T)._asdict())

    key = f"forward dynamics {name} {digest(m)}"
    return Compiled(m, kernel.compile(build, key=key), {"v_dot": (m.nv, 1), "reaction": (m.nv, 1), "rank": (1, 1)})


def forward_dynamics(
    m: Mechanism, q: Any, v: Any = None, u: Any = None, *, t: float = 0.0, parameters: Any = None, formulation: str = "auto"
) -> Dynamics:
    """Acceleration and reaction of a mechanism at a state or many: M v_dot + c = f + B u + reaction, A v_dot = b.

    Args:
        m: the mechanism.   q, v, u: (n,) or (runs, n) arrays or {name: number or (runs,)}; None is at rest, without inputs
            [N, N m]. The state is taken as it is: put it onto the constraints first.
        t: [s].   parameters: {name: value} or an array, defaults if None.   formulation: a name of FORMULATIONS, or auto.
    Raises ModelError: wrong names, shapes or numbers; a formulation that does not take this mechanism, and why.
    """
    as_mechanism(m)
    r = _forward(m, formulation).matrices(q, v, u, t=t, parameters=parameters)
    return Dynamics(r["v_dot"][..., 0], r["reaction"][..., 0], r["rank"][..., 0, 0])
