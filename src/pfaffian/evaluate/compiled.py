"""Quantities at given states: any function of Terms, compiled once, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import isfinite
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics import check_unchanged, formulation, identity
from pfaffian.dynamics.load_losses import check_solved, meanings
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_batch, configurations, instants, parameter_values, velocities, without_lost
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import as_flag, common_runs, some_runs
from pfaffian.kernel.call.memory import FLOAT
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import once_for
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism, as_mechanism, unconstrained
from pfaffian.model.number import matrix
from pfaffian.model.traced_function import TracedFunction
from pfaffian.model.user_functions import call_for_value, in_symbols
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.terms import Terms, has_losses, symbols, tell_rows_of_nothing
from pfaffian.terms.traced_now import remembered


class CallArguments(NamedTuple):
    """A caller's arguments for one state or many, as arrays.

    arrays: (size, n) or (1, n) each.   size: number of runs.
    many: whether results have an axis of runs: some argument has rows, or there are several runs.
    """

    arrays: tuple[np.ndarray, ...]
    size: int
    many: bool

    @property
    def spread(self) -> list[np.ndarray]:
        """Each array broadcast to (size, n)."""
        return [np.broadcast_to(x, (self.size, x.shape[1])) for x in self.arrays]

    def shaped(self, x: np.ndarray) -> np.ndarray:
        """x (size, ...), without its first axis if one state was given."""
        return x if self.many else x[0]


def given(*, least: int = 0, **values: tuple[Any, np.ndarray]) -> CallArguments:
    """Collect checked arguments: name=(the caller's argument, its (runs, n) array) for each.

    least: smallest number of runs, 0 or 1.
    Raises ModelError: numbers of runs differ, or are below `least`.
    """
    counts = {name: len(array) for name, (_, array) in values.items()}
    count = some_runs(counts) if least else common_runs(counts)
    many = count != 1 or any(np.ndim(value) == 2 for value, _ in values.values())
    return CallArguments(tuple(array for _, array in values.values()), count, many)


def matrices(
    f: Callable[..., Sequence[np.ndarray]], of: CallArguments, shapes: Sequence[tuple[int, int]], *shared: np.ndarray
) -> list[np.ndarray]:
    """Call f at the given states and return its outputs as matrices (..., rows, columns).

    f: returns each matrix as a vector in CasADi's column-major order.   shapes: (rows, columns) of each output.
    shared: (n,) further inputs of f, the same for all runs.
    """
    outputs = f(*[a if len(a) == of.size else a[0] for a in of.arrays], *shared)
    parts = (np.reshape(x, (of.size, b, a)).transpose(0, 2, 1) for x, (a, b) in zip(outputs, shapes, strict=True))
    return [of.shaped(x) for x in parts]


@dataclass(frozen=True, eq=False)
class Compiled:
    """Compiled function f(q, v, u, t=0, parameters=None) -> {name: array}, as `compile_terms` returns it."""

    mechanism: Mechanism
    kernel: kernel.Kernel
    shapes: Mapping[str, tuple[int, int]]
    squeeze: bool = True

    def __repr__(self) -> str:
        return reprs.words(self, f"of {self.mechanism.name!r}", *[f"{name} {shape}" for name, shape in self.shapes.items()])

    def __call__(
        self, q: Any = None, v: Any = None, u: Any = None, *, t: Any = 0.0, parameters: Any = None
    ) -> dict[str, np.ndarray]:
        """Evaluate at (n,) or (runs, n) arrays or {name: number}, at one time or (runs,) times.

        Each result is (rows, columns) or (runs, rows, columns). Unless the function was compiled with squeeze=False, an axis of
        one column is dropped, and then an axis of one row.
        """
        values = self.matrices(q, v, u, t=t, parameters=parameters)
        if not self.squeeze:
            return values
        return {name: _without_ones(x, *self.shapes[name]) for name, x in values.items()}

    def matrices(
        self, q: Any = None, v: Any = None, u: Any = None, *, t: Any = 0.0, parameters: Any = None, threads: int = 1
    ) -> dict[str, np.ndarray]:
        """Evaluate without dropping an axis: {name: (..., rows, columns)}.

        A row of a batch that is all NaN in q, v or u, as after the stop of a run, gives NaN.
        threads: number of threads that share the states of a batch.
        """
        if parameters is None and (one := self._one_state(q, v, u, t)):
            values = zip(self.shapes.items(), self.kernel(*one), strict=True)
            return {name: x.reshape(columns, rows).T for (name, (rows, columns)), x in values}
        m = self.mechanism
        q, lost_q = without_lost(q, m.q_names, m.neutral(), "q")
        v, lost_v = without_lost(v, m.v_names, np.zeros(m.nv), "v")
        u, lost_u = without_lost(u, m.u_names, np.zeros(m.nu), "u")
        at = given(
            q=(q, configurations(m, q)),
            v=(v, velocities(m, v)),
            u=(u, as_batch(u, m.u_names, np.zeros(m.nu), "u")),
            parameters=(parameters, parameter_values(m, parameters)),
            t=(t, instants(t)),
        )
        outputs = matrices(partial(self.kernel, threads=threads), at, list(self.shapes.values()))
        lost = [x for x in (lost_q, lost_v, lost_u) if x.any()]
        if lost:
            rows = np.any([np.broadcast_to(x, at.size) for x in lost], axis=0)
            outputs = [np.where(rows[:, None, None], np.nan, x) for x in outputs]
        return dict(zip(self.shapes, outputs, strict=True))

    def _one_state(self, q: Any, v: Any, u: Any, t: Any) -> tuple[np.ndarray, ...] | None:
        """The kernel's inputs for one state given as arrays that need no conversion or normalisation; otherwise None.

        This short way takes a microsecond. A sum of squares is finite only if all numbers are.
        """
        rest = _rest(self.mechanism)
        if rest is None or type(t) is not float or not isfinite(t):
            return None
        inputs = []
        for x, default in zip((q, v, u), rest, strict=False):
            if x is None:
                inputs.append(default)
            elif type(x) is np.ndarray and x.dtype is FLOAT and x.shape == default.shape and isfinite(x.dot(x)):
                inputs.append(x)
            else:
                return None
        return (*inputs, rest[3], np.array([t]))


def _rest(m: Mechanism) -> tuple[np.ndarray, ...] | None:
    """Neutral q, zero v and u, and the defaults of the parameters; None if configurations have to be normalised."""
    if m.quaternions or m.coordinates:
        return None
    return once_for(m, "rest", lambda: (m.neutral(), np.zeros(m.nv), np.zeros(m.nu), m.p_defaults))


def _without_ones(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """x (..., rows, columns) without an axis of one column, and then without an axis of one row."""
    if columns > 1:
        return x
    return x[..., 0, 0] if rows == 1 else x[..., 0]


def compile_terms(
    m: Mechanism,
    quantities: Mapping[str, Callable[[Terms], ca.SX]],
    *,
    backend: Backend = "auto",
    lanes: int = 8,
    strict: bool = True,
    squeeze: bool = True,
) -> Compiled:
    """Compile functions of the terms of a mechanism, to evaluate at one state or many.

    Args:
        m: the mechanism.
        quantities: {name: function of Terms that returns a matrix}, e.g. {"M": lambda T: T.M,
            "tip": lambda T: T.kinematics.position("tool")}.
        backend: "auto" interprets at once and compiles in the background where that pays; "c" compiles first; "interpreter" and
            "numpy" only interpret, in C or with NumPy. The bits are the same.
        lanes: number of runs evaluated at once: 8 suits batches, 1 single states. 8 by default.
        strict: True gives the same bits on every machine and backend; False allows fused multiply-add. True by default.
        squeeze: True drops an axis of one column from a result, and then an axis of one row. False gives every result as
            (rows, columns), whatever the mechanism. True by default.
    Returns:
        a function f(q, v, u, t=0, parameters=None) -> {name: array}. It takes (n,) or (runs, n) arrays or {name: number}, with
        one or (runs,) times, and gives (rows, columns) or (runs, rows, columns). A row of a batch that is all NaN, as after the
        stop of a run, gives NaN.
    Raises ModelError: a function fails, returns no matrix, or uses symbols that are not the mechanism's.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> terms = {"M": lambda T: T.M, "height": lambda T: T.kinematics.position("bob", (0, 0, -1))[2]}
        >>> at = pf.compile_terms(m, terms, backend="numpy")({"hinge": 0.0})
        >>> print(at["M"], at["height"])
        2.0 -1.0
    """
    as_mechanism(m)
    if not isinstance(quantities, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in quantities.items()):
        raise ModelError(f"compile_terms(m, quantities): {{name: function of Terms}} is needed, got {brief(quantities)}")
    squeezed = as_flag(squeeze, "squeeze")
    with progress_line(m.name, False):
        T = symbols(m)
        values = {name: _quantity(f, name, T) for name, f in quantities.items()}
        shapes = {name: x.shape for name, x in values.items()}
        compiled = kernel.compile(lambda: function_of(T, values), backend=backend, lanes=lanes, strict=strict)
    return Compiled(m, compiled, shapes, squeezed)


def _quantity(f: Callable[[Terms], ca.SX], name: str, T: Terms) -> ca.SX:
    """The matrix that a caller's function f(T) returns, checked; errors name it."""
    what = f"quantity {name!r}"
    return in_symbols(matrix(call_for_value(f, what, T), what), what, (T.q, T.v, T.u, T.t, T.mechanism.p_symbols))


def function_of(T: Terms, values: Mapping[str, ca.SX]) -> ca.Function:
    """CasADi function (q, v, u, p, t) -> each value as a column."""
    inputs = [T.q, T.v, T.u, T.mechanism.p_symbols, T.t]
    return ca.Function("quantities", inputs, [ca.vec(ca.densify(x)) for x in values.values()])


class Quantity(NamedTuple):
    """A quantity of a mechanism at a state: the matrix f(Terms, *arguments).

    name: with the arguments, the key under which its kernel is stored.   shape: (rows, columns), if known without tracing.
    constrained: whether the quantity depends on the mechanism's constraints.
    """

    name: str
    f: Callable[..., ca.SX]
    arguments: tuple[Any, ...] = ()
    shape: tuple[int, int] | None = None
    constrained: bool = False

    def relevant_part(self, m: Mechanism) -> Mechanism:
        """The mechanism, without constraints that the quantity does not depend on."""
        return m if self.constrained else unconstrained(m)


def evaluate(
    m: Mechanism,
    what: Quantity,
    q: Any = None,
    v: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
    backend: Backend = "auto",
) -> np.ndarray:
    """Evaluate a quantity at one state or many: (..., rows, columns). It is compiled once per mechanism.

    q, v, t and parameters have the forms that `Compiled` takes.
    """
    return _kernel_of(as_mechanism(m), what, backend).matrices(q, v, t=t, parameters=parameters)[what.name]


@remembered(256)
def _kernel_of(m: Mechanism, what: Quantity, backend: Backend) -> Compiled:
    """The compiled quantity of a mechanism; its function is traced only if the cache has no kernel of this key."""
    of = what.relevant_part(m)

    @cache
    def traced() -> tuple[ca.Function, tuple[int, int]]:
        T = symbols(of)
        value = what.f(T, *what.arguments)
        return function_of(T, {what.name: value}), value.shape

    names = tuple(x.digest if isinstance(x, TracedFunction) else x for x in what.arguments)
    with progress_line(m.name, False):
        compiled = kernel.compile(lambda: traced()[0], backend=backend, key=f"{what.name} {names!r} {digest(of)}")
    return Compiled(m, compiled, {what.name: what.shape or traced()[1]})


class Dynamics(NamedTuple):
    """Result of `forward_dynamics`: v_dot (..., nv), reaction (..., nv) [N, N m] and rank (...) of the constraint rows."""

    v_dot: np.ndarray
    reaction: np.ndarray
    rank: np.ndarray


@remembered(64)
def _forward(m: Mechanism, name: str, known: str) -> Compiled:
    """The compiled motion of a mechanism by the formulation of that name.   known: its `identity`."""

    def build() -> ca.Function:
        T = symbols(m)
        check_unchanged(name, m, known)
        faults = {} if T.losses is None else {"faults": T.losses.faults}
        return function_of(T, formulation(name, T)(T)._asdict() | faults)

    tell_rows_of_nothing(m)
    key = f"forward dynamics {known} {digest(m)}"
    with progress_line(m.name, False):
        compiled = kernel.compile(build, key=key)
    faults = {"faults": (len(meanings(m)), 1)} if has_losses(m) else {}
    return Compiled(m, compiled, {"v_dot": (m.nv, 1), "reaction": (m.nv, 1), "rank": (1, 1)} | faults)


def forward_dynamics(
    m: Mechanism, q: Any, v: Any = None, u: Any = None, *, t: Any = 0.0, parameters: Any = None, formulation: str = "auto"
) -> Dynamics:
    """Acceleration and reaction of a mechanism at one state or many: M v_dot + c = f + B u + reaction, A v_dot = b.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral. The state is used as
            given: put it onto the constraints first.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        u: (nu,) or (runs, nu) array, or {input: number or (runs,)} [N, N m]; omitted inputs are zero.
        t: time [s], or (runs,) times.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        formulation: a name from FORMULATIONS, or auto.
    Returns:
        a named tuple: v_dot (..., nv), reaction (..., nv) [N, N m] and rank (...) of the constraint rows.
    Raises ModelError: wrong names, shapes or numbers; the formulation does not apply to this mechanism (with the reason).
    Raises RunError: friction that follows the load of a joint has no solution or several (with the joint and the time).

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.forward_dynamics(m, {"hinge": np.pi / 2}).v_dot.round(2)  # -g / l
        array([-9.81])
    """
    as_mechanism(m)
    r = _forward(m, formulation, identity(formulation, m)).matrices(q, v, u, t=t, parameters=parameters)
    if "faults" in r:
        check_solved(m, r["faults"], t)
    return Dynamics(r["v_dot"][..., 0], r["reaction"][..., 0], r["rank"][..., 0, 0])
