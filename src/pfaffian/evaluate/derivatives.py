"""Derivatives of constrained forward dynamics at given states: matrices, and products with them.

The residuals of inverse dynamics and of the rows are differentiated at constant accelerations and multipliers; the factors of
the dynamics then give the change of the motion (`dynamics/response.py`). The result is exact, and no factorisation or rank
decision is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.dynamics.motion import RANK_TOLERANCE, shortest_change
from pfaffian.dynamics.response import Slopes, gradient, response, slopes
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import Compiled, Dynamics, function_of, given, matrices
from pfaffian.evaluate.progress import progress_line
from pfaffian.evaluate.single_values import MOST_THREADS, as_flag, as_number, as_whole, one_of
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.margins import Decision, closest, singular_values, unit_rows
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.generic_states import at_generic_states, speed_units, tell
from pfaffian.terms.pfaffian import activity, row_names
from pfaffian.terms.terms import Terms, always_active, as_terms, shared, symbols
from pfaffian.terms.traced_now import remembered

BY = ("q", "v", "u", "t", "parameters")
"""Arguments to differentiate by, in this order."""

OF = ("v_dot", "reaction", "multipliers")
"""Quantities to differentiate, in this order."""


class Partials(NamedTuple):
    """Derivatives of (n,) numbers by each argument, None if not requested.

    q: (..., n, nv) along the velocities, q + K(q) eps.   v: (..., n, nv).   u: (..., n, nu).   t: (..., n).
    parameters: (..., n, np), in the order of the mechanism's `p_names`.
    """

    q: np.ndarray | None = None
    v: np.ndarray | None = None
    u: np.ndarray | None = None
    t: np.ndarray | None = None
    parameters: np.ndarray | None = None


class Derivatives(NamedTuple):
    """Result of `derivatives`.

    v_dot, reaction, multipliers: `Partials` of each.   motion: values of v_dot, reaction and rank.
    values: (..., m) values of the multipliers.   regular: (...) whether the derivatives exist: False where rows have lost rank.
    """

    v_dot: Partials
    reaction: Partials
    multipliers: Partials
    motion: Dynamics
    values: np.ndarray
    regular: np.ndarray


def derivatives(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
    by: Sequence[str] = BY,
    of: Sequence[str] = OF,
    threads: int = 1,
    backend: Backend = "auto",
    strict: bool = True,
) -> Derivatives:
    """Derivatives of acceleration, reaction and multipliers by the state, inputs, time and parameters, at one state or many.

        [M A^T; A 0] [dv_dot; -dlambda] = -d[M v_dot + c - f - B u - A^T lambda; A v_dot - b] at constant v_dot, lambda

    The derivatives are exact. If rows are redundant, the derivatives of v_dot and reaction are unique along motions that the
    constraints allow; in other directions they depend on which rows are in use. The multipliers are those of smallest norm, and
    their derivatives are consistent with that choice. Changing a parameter that sets a length is one of these other directions:
    add the changes of q and v that keep the loops closed.
    In a singular configuration v_dot jumps and has no derivative: `regular` is False there, and the numbers belong to the rows
    in use. The same holds at the instant at which a constraint with `active_while` becomes active or inactive, but `regular`
    does not detect this.

    Args:
        m: the mechanism.
        q, v, u, parameters: as in `forward_dynamics`, one state or many; put q and v onto the constraints first.
        t: time [s], 0 by default.
        by: arguments to differentiate by, any of "q", "v", "u", "t", "parameters"; all of them by default.
        of: quantities to differentiate, any of "v_dot", "reaction", "multipliers"; all of them by default.
        threads: number of threads that share the states of a batch, 1 by default.
        backend: "auto" interprets at once and compiles in the background where that pays; "c" compiles first; "interpreter" and
            "numpy" only interpret, in C or with NumPy. The bits are the same.
        strict: True gives the same bits on every machine and backend; False allows fused multiply-add. True by default.
    Returns:
        a named tuple: v_dot, reaction, multipliers, each with q (..., n, nv), v (..., n, nv), u (..., n, nu), t (..., n) and
        parameters (..., n, np), in the order of `p_names`, and None if not requested; q moves along the velocities,
        q + K(q) eps. motion: values of v_dot, reaction and rank; values (..., m): values of the multipliers; regular (...):
        whether the derivatives exist.
    Raises ModelError: wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.derivatives(m, {"hinge": 0.0}).v_dot.q.round(2)  # -g / l
        array([[-9.81]])
    """
    as_mechanism(m)
    chosen, which = _chosen(by, BY, "by"), _chosen(of, OF, "of")
    f = compiled_derivatives(m, chosen, which, backend, as_flag(strict, "strict"))
    outputs = f.matrices(q, v, u, t=t, parameters=parameters, threads=as_whole(threads, "threads", most=MOST_THREADS))
    parts = {name: _partials(outputs, name, chosen) if name in which else Partials() for name in OF}
    motion = Dynamics(outputs["at v_dot"][..., 0], outputs["at reaction"][..., 0], outputs["rank"][..., 0, 0])
    return Derivatives(**parts, motion=motion, values=outputs["at multipliers"][..., 0], regular=_regular(m, outputs))


def motion_derivatives(terms: Terms, by: Sequence[str] = BY, of: Sequence[str] = ("v_dot",)) -> ca.SX:
    """Derivatives of the motion as one matrix of expressions, for `compile_terms`, control laws and optimisations.

    `derivatives` evaluates them as numbers, and describes them.

    Args:
        terms: Terms at a state.
        by: arguments to differentiate by, any of "q", "v", "u", "t", "parameters", as columns in this order; all by default.
        of: quantities to differentiate, any of "v_dot", "reaction", "multipliers", as rows in this order; "v_dot" by default.
    Returns:
        (n, k) expression.
    Raises ModelError: an unknown name in `by` or `of`.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> f = pf.compile_terms(m, {"A": lambda T: pf.calculus.motion_derivatives(T, by=["q", "v"])}, backend="numpy")
        >>> f({"hinge": 0.0})["A"].round(2)  # -g / l, and no damping
        array([[-9.81,  0.  ]])
    """
    chosen, which = _chosen(by, BY, "by"), _chosen(of, OF, "of")
    at = response(as_terms(terms))
    changes = slopes(at, at.motion(), along_each(terms, chosen))
    return ca.vertcat(*[ca.densify(getattr(changes, name)) for name in which])


class MotionTangent(NamedTuple):
    """Result of `jvp`: changes of v_dot (..., nv), reaction (..., nv) and multipliers (..., m)."""

    v_dot: np.ndarray
    reaction: np.ndarray
    multipliers: np.ndarray


def jvp(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    dq: Any = None,
    dv: Any = None,
    du: Any = None,
    dt: float = 0.0,
    dp: Any = None,
    t: float = 0.0,
    parameters: Any = None,
) -> MotionTangent:
    """Change of acceleration, reaction and multipliers along one direction.

    This is the product of `derivatives` with the direction, without computing the matrices (forward mode).

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        u: (nu,) or (runs, nu) array, or {input: number or (runs,)}; omitted inputs are zero.
        dq: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}: q moves by K(q) dq. Zero by default.
        dv: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}, the change of v. Zero by default.
        du: (nu,) or (runs, nu) array, or {input: number or (runs,)}, the change of u. Zero by default.
        dt: change of the time [s], 0 by default.
        dp: (np,) or (runs, np) array, or {parameter: number or (runs,)}, the change of parameters. Zero by default.
        t: time [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: the changes of v_dot (..., nv), reaction (..., nv) and multipliers (..., m).
    Raises ModelError: wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.calculus.jvp(m, {"hinge": 0.0}, dq={"hinge": 2.0}).v_dot.round(2)  # -g / l times 2
        array([-19.62])
    """
    as_mechanism(m)
    no_change = np.zeros(len(m.p_names))
    state = _state(m, q, v, u, parameters)
    more: dict[str, Any] = {
        "dq": (dq, velocities(m, dq, "dq")),
        "dv": (dv, velocities(m, dv, "dv")),
        "du": (du, as_batch(du, m.u_names, np.zeros(m.nu), "du")),
        "dp": (dp, as_batch(dp, m.p_names, no_change, "dp")),
    }
    f, rows = _jvp(m)
    times = np.array([as_number(t, "t")]), np.array([as_number(dt, "dt")])
    changes = matrices(f, given(**state, **more), [(m.nv, 1), (m.nv, 1), (rows, 1)], *times)
    return MotionTangent(*[x[..., 0] for x in changes])


def vjp(
    m: Mechanism,
    q: Any,
    v: Any = None,
    u: Any = None,
    *,
    v_dot: Any = None,
    reaction: Any = None,
    multipliers: Any = None,
    t: float = 0.0,
    parameters: Any = None,
) -> Partials:
    """Gradient of a weighted sum of acceleration, reaction and multipliers by state, inputs, time and parameters.

    The sum is a . v_dot + r . reaction + l . multipliers with the weights a, r and l. Its gradient is the product of the
    weights with `derivatives`, computed in one backward sweep without the matrices (reverse mode).

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        u: (nu,) or (runs, nu) array, or {input: number or (runs,)}; omitted inputs are zero.
        v_dot: (nv,) or (runs, nv) weights a of the accelerations, zero by default.
        reaction: (nv,) or (runs, nv) weights r of the reaction, zero by default.
        multipliers: (m,) or (runs, m) weights l of the multipliers, zero by default.
        t: time [s], 0 by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: q (..., nv) along the velocities, v (..., nv), u (..., nu), t (...) and parameters (..., np).
    Raises ModelError: wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.calculus.vjp(m, {"hinge": 0.0}, v_dot=[2.0]).q.round(2)
        array([-19.62])
    """
    as_mechanism(m)
    f, names = _vjp(m)
    state = _state(m, q, v, u, parameters)
    more: dict[str, Any] = {
        "v_dot": (v_dot, velocities(m, v_dot, "v_dot")),
        "reaction": (reaction, velocities(m, reaction, "reaction")),
        "multipliers": (multipliers, as_batch(multipliers, names, np.zeros(len(names)), "multipliers")),
    }
    sizes = [(n, 1) for n in (m.nv, m.nv, m.nu, 1, len(m.p_names))]
    gradients = Partials(*[x[..., 0] for x in matrices(f, given(**state, **more), sizes, np.array([as_number(t, "t")]))])
    assert gradients.t is not None
    return gradients._replace(t=gradients.t[..., 0])


# -- kernels --------------------------------------------------------------------------------------------------------------


def _chosen(given: Any, known: Sequence[str], what: str) -> tuple[str, ...]:
    """A caller's selection of the known words, in their order. Raises ModelError: an unknown word."""
    names = as_names(given, what)
    for name in names:
        one_of(name, known, f"{what}:")
    return tuple(name for name in known if name in names)


def _state(m: Mechanism, q: Any, v: Any, u: Any, parameters: Any) -> dict[str, Any]:
    """A caller's state, inputs and parameters as arguments for `given`."""
    return {
        "q": (q, configurations(m, q)),
        "v": (v, velocities(m, v)),
        "u": (u, as_batch(u, m.u_names, np.zeros(m.nu), "u")),
        "parameters": (parameters, parameter_values(m, parameters)),
    }


def _partials(outputs: Mapping[str, np.ndarray], name: str, chosen: tuple[str, ...]) -> Partials:
    """The derivatives of the quantity of that name, from the outputs of `compiled_derivatives`."""
    x = Partials(**{by: outputs[f"{name} by {by}"] for by in chosen})
    return x if x.t is None else x._replace(t=x.t[..., 0])


def along_each(T: Terms, chosen: Sequence[str]) -> Callable[[ca.SX], ca.SX]:
    """The function column (n, 1) -> its derivatives (n, k) by the chosen arguments, side by side; q along the velocities."""

    def along(x: ca.SX) -> ca.SX:
        parts = [ca.jacobian(x, symbol) for symbol in (T.q, T.v, T.u, T.t, T.mechanism.p_symbols)]
        parts[0] = parts[0] @ T.kinematics.kinematic_matrix
        return ca.horzcat(ca.SX(x.numel(), 0), *[part for name, part in zip(BY, parts, strict=True) if name in chosen])

    return along


@remembered(64)
def compiled_derivatives(
    m: Mechanism, chosen: tuple[str, ...], which: tuple[str, ...], backend: Backend, strict: bool
) -> Compiled:
    """The compiled motion, the quantities that decide whether it is regular, and derivatives of `which` by each of `chosen`."""
    T = symbols(m)
    rows, sizes = T.A.shape[0], dict(zip(BY, (m.nv, m.nv, m.nu, 1, len(m.p_names)), strict=True))
    shapes: dict[str, tuple[int, int]] = {"at v_dot": (m.nv, 1), "at reaction": (m.nv, 1), "at multipliers": (rows, 1)}
    shapes |= {"rank": (1, 1), "realisable": (1, 1), "on": (rows, 1)}
    shapes |= {
        f"{of} by {by}": (n, sizes[by]) for of, n in zip(OF, (m.nv, m.nv, rows), strict=True) if of in which for by in chosen
    }

    def build() -> ca.Function:
        """Values of the motion, and their derivatives by each of `chosen`."""
        at = response(T)
        motion = at.motion()
        reaction = T.A.T @ motion.multipliers + T.servo.Z.T @ motion.mu
        values = [motion.v_dot, ca.densify(reaction), motion.multipliers, at.rank, at.realisable, rows_on(T)]
        changes = slopes(at, motion, along_each(T, chosen))
        ends = np.cumsum([0, *[sizes[by] for by in chosen]]).tolist()
        for x in (getattr(changes, name) for name in which):
            values += [x[:, i:j] for i, j in pairwise(ends)]
        return function_of(T, dict(zip(shapes, values, strict=True)))

    with progress_line(m.name, False):
        compiled = kernel.compile(build, key=f"derivatives {which} {chosen} {digest(m)}", backend=backend, strict=strict)
    return Compiled(m, compiled, shapes)


@remembered(64)
def _jvp(m: Mechanism) -> tuple[kernel.Kernel, int]:
    """The compiled (q, v, u, p, dq, dv, du, dp, t, dt) -> changes of v_dot, reaction and multipliers; the number of rows."""
    T = symbols(m)
    seeds = [ca.SX.sym(name, n) for name, n in zip(("dq", "dv", "du", "dp"), (m.nv, m.nv, m.nu, len(m.p_names)), strict=True)]
    dt = ca.SX.sym("dt")

    def build() -> ca.Function:
        at, k = response(T), T.kinematics
        arguments = ca.vertcat(T.q, T.v, T.u, m.p_symbols, T.t)
        direction = ca.vertcat(k.kinematic_matrix @ seeds[0], *seeds[1:], dt)
        changes = slopes(at, at.motion(), lambda x: ca.jtimes(x, arguments, direction))
        outputs = [ca.densify(x) for x in (changes.v_dot, changes.reaction, changes.multipliers)]
        return ca.Function("jvp", [T.q, T.v, T.u, m.p_symbols, *seeds, T.t, dt], outputs)

    with progress_line(m.name, False):
        return kernel.compile(build, key=f"jvp {digest(m)}"), T.A.shape[0]


@remembered(64)
def _vjp(m: Mechanism) -> tuple[kernel.Kernel, tuple[str, ...]]:
    """The compiled (q, v, u, p, weights of v_dot, reaction and multipliers, t) -> gradients by q, v, u, t and p; the names of
    the rows.
    """
    T = symbols(m)
    names = row_names(T.kinematics)
    a, r, l = (ca.SX.sym(name, n) for name, n in zip(OF, (m.nv, m.nv, len(names)), strict=True))

    def build() -> ca.Function:
        at = response(T)
        by = [T.q, T.v, T.u, T.t, m.p_symbols]
        gradients = gradient(at, at.motion(), Slopes(a, l, ca.SX(0, 0), r), ca.vertcat(*by))
        parts = ca.vertsplit(gradients, np.cumsum([0, *[x.numel() for x in by]]).tolist())
        parts[0] = T.kinematics.kinematic_matrix.T @ parts[0]
        return ca.Function("vjp", [T.q, T.v, T.u, m.p_symbols, a, r, l, T.t], [ca.densify(x) for x in parts])

    with progress_line(m.name, False):
        return kernel.compile(build, key=f"vjp {digest(m)}"), names


# -- states without derivatives -------------------------------------------------------------------------------------------


def rows_on(T: Terms) -> ca.SX:
    """(m, 1) activity of the rows: 1 for each row of an active constraint, 0 for others."""
    k = T.kinematics
    each = [activity(k, c.active, c.name) if c.active else ca.SX(1) for c in T.mechanism.ideal]
    return ca.vertcat(ca.SX(0, 1), *[ca.repmat(on, n, 1) for on, n in zip(each, T.rows.counts, strict=True)])


def _regular(m: Mechanism, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Whether derivatives exist (...): servo forces are determined, and rows have the rank that they have elsewhere."""
    rank, on = outputs["rank"][..., 0, 0], outputs["on"][..., 0]
    rows = [tuple(row) for row in on.reshape(rank.size, on.shape[-1]).tolist()]
    known = {row: _rank_elsewhere(m, row) for row in set(rows)}
    usual = np.array([known[row] for row in rows]).reshape(rank.shape)
    return (rank >= usual) & (outputs["realisable"][..., 0, 0] != 0)


@remembered(64)
def _rank_elsewhere(m: Mechanism, on: tuple[float, ...]) -> int:
    """The largest rank of the active rows at random states on the constraints."""
    m, chosen = always_active(m), np.flatnonzero(on).tolist()
    rows = chosen if len(chosen) < len(on) else None
    if not chosen:
        return 0
    T = shared(m)
    at = at_generic_states(m, {"rank": shortest_change(T, rows=rows).rank, "A": T.A[chosen, :]}, on_constraints=True)
    unit = speed_units(m, m.p_defaults)
    sizes = np.array([singular_values(unit_rows(A * unit)) for A in at["A"]])
    most = at["rank"].ravel() == at["rank"].max()
    decision = Decision(int(at["rank"].max()), closest(sizes[most], RANK_TOLERANCE), RANK_TOLERANCE)
    return int(tell(m, "the rank of the constraint rows at almost all states", decision))
