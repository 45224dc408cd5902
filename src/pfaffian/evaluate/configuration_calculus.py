"""Numerical calculus on the configurations of a mechanism: derivatives along the velocities, brackets, the connection of M.

q and v are (n,) or (runs, n) arrays or {name: number or (runs,)}; None means neutral for q and rest for v. parameters: {name:
value} or an array, defaults if None. An argument f is a function of Kinematics, as `holonomic` takes one; None means the
potential energy of weight and springs [J]. `terms.connection` gives these quantities as expressions, for laws and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.compiled import Quantity, evaluate, given, matrices
from pfaffian.evaluate.single_values import as_number
from pfaffian.model.mechanism import Mechanism, as_mechanism, unconstrained
from pfaffian.model.number import column
from pfaffian.model.traced_function import TracedFunction, graph
from pfaffian.model.user_functions import call_for_column, call_for_value, in_symbols
from pfaffian.terms import connection
from pfaffian.terms.equations_digest import of_function
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

ConfigurationFunction = Callable[[Any], Any]


def directional_derivative(
    m: Mechanism,
    q: Any = None,
    v: Any = None,
    *,
    f: ConfigurationFunction | None = None,
    t: float = 0.0,
    parameters: Any = None,
) -> np.ndarray:
    """Derivatives of f along the velocities, d_i f = df/dq^a K_i^a with q_dot = K v, at constant v and t. [konz25 (2.13)]

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        f: function of Kinematics that returns (n,) numbers of q, v and t; the potential energy of weight and springs [J] if
            None.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., n, nv) [unit of f by that of v, per second; for the potential energy N, N m]; with an axis of runs if several
        were given.
    Raises ModelError: wrong names, shapes or numbers; f fails or returns no column of numbers.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.calculus.directional_derivative(m, {"hinge": np.pi / 2}).round(2)  # m g l
        array([[19.62]])
    """
    return _ask(m, "gradient", f, q, v, t, parameters)


def commutation_coefficients(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Commutation coefficients of the velocities: d_i d_j - d_j d_i = gamma_ij^k d_k. [konz25 (2.19)]

    gamma_ij^k = (d_i K_j - d_j K_i)^a (K^+)^k_a, skew in i and j: zero where v are the rates of coordinates, the Levi-Civita
    symbol for the body-fixed angular velocity of a rotation.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        gamma (..., nv, nv, nv) with gamma[i, j, k] = gamma_ij^k [unit of v_k by those of v_i and v_j, per second]; the axis of
        runs is there if several were given.
    Raises ModelError: a joint has a distribution; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> top = pf.body("top", 1.0, inertia=(1, 2, 3))
        >>> m = pf.mechanism("top", [top], [pf.joint("pivot", "spherical", "world", "top")])
        >>> pf.calculus.commutation_coefficients(m)[0, 1]  # x and y give z
        array([0., 0., 1.])
    """
    return _tensor(m, _ask(m, "commutation", None, q, None, 0.0, parameters))


def connection_coefficients(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Connection coefficients of the mass matrix: M_ij v_dot^j + Gamma_ijk v^j v^k is the inertia force. [konz25 (3.29),
    (3.31)]

    d_k M_ij = Gamma_ijk + Gamma_jik and gamma_ij^s M_sk = Gamma_kji - Gamma_kij.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        Gamma (..., nv, nv, nv) with Gamma[i, j, k] = Gamma_ijk [unit of the i-th generalised force, N or N m, by those of v_j
        and v_k]; with an axis of runs if several were given.
    Raises ModelError: a joint has a distribution; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> turn = pf.joint("turn", "revolute", "world", "arm")
        >>> slide = pf.joint("slide", "prismatic", "arm", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("boom", [pf.body("arm"), pf.body("mass", 2.0)], [turn, slide])
        >>> float(pf.calculus.connection_coefficients(m, {"slide": 3.0})[1, 0, 0])  # centrifugal: -m r by turn^2
        -6.0
    """
    return _tensor(m, _ask(m, "connection", None, q, None, 0.0, parameters))


def covariant_hessian(
    m: Mechanism, q: Any = None, *, f: ConfigurationFunction | None = None, t: float = 0.0, parameters: Any = None
) -> np.ndarray:
    """Covariant Hessian of a scalar f(q, t) in the metric of the mass matrix, d_j d_i f - Gamma^k_ij d_k f. [konz25 (2.16)]

    Where every d_i f vanishes, it is d_j d_i f and does not depend on the metric. At a stable equilibrium, the Hessian of the
    potential energy is positive definite.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        f: function of Kinematics that returns one number, of q and t; the potential energy of weight and springs [J] if None.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        (..., nv, nv), symmetric [for the potential energy N/m, N, N m]; with an axis of runs if several were given.
    Raises ModelError: f is more than one number, depends on v, or fails; a joint has a distribution; wrong names, shapes or
    numbers.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> pf.calculus.covariant_hessian(m, {"hinge": 0.0}).round(2)  # m g l: hanging is stable
        array([[19.62]])
    """
    return _ask(m, "hessian", f, q, None, t, parameters)


class LinearisedAlong(NamedTuple):
    """f = f_bar + F0 eps + F1 eps_dot + F2 eps_ddot + E du near a trajectory, with q = q_bar + K(q_bar) eps and u = u_bar + du.

    value: (..., n) f_bar.   F0, F1, F2: (..., n, nv) [unit of f by that of eps, eps_dot, eps_ddot].
    B: (..., nv, nv) with v = v_bar + eps_dot + B eps.   E: (..., n, nu) derivative by the inputs; zero for a caller's f.
    """

    value: np.ndarray
    F0: np.ndarray
    F1: np.ndarray
    F2: np.ndarray
    B: np.ndarray
    E: np.ndarray


def linearise_along(
    m: Mechanism,
    q: Any = None,
    v: Any = None,
    v_dot: Any = None,
    u: Any = None,
    *,
    f: Callable[[Any, Any], Any] | None = None,
    t: float = 0.0,
    parameters: Any = None,
) -> LinearisedAlong:
    """Linearise f(q, v, v_dot, t) about a trajectory, in deviations eps along the velocities. [konz25 (2.22)-(2.25)]

    Unlike in `linearise`, the deviations move with the trajectory. F0, F1 and F2 are therefore the coefficients of the equation
    of small deviations from a motion, and give the gains of a regulator along it. Where the motion is symmetric they are
    constant in any coordinates.

    Args:
        m: the mechanism; its constraints are ignored.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}, of the trajectory; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}, of the trajectory; omitted velocities are zero.
        v_dot: accelerations of the trajectory, in the forms of v; omitted ones are zero.
        u: (nu,) or (runs, nu) array, or {input: number or (runs,)}; omitted inputs are zero.
        f: function f(k, v_dot) of a Kinematics k that returns (n,) numbers. If None, the residual M v_dot + c - f - B u of the
            equations of motion [N, N m]. It is zero on a motion, so that near it F2 eps_ddot + F1 eps_dot + F0 eps = -E du,
            with F2 = M and E = -B.
        t: time [s].
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: value (..., n) of f on the trajectory, F0, F1, F2 (..., n, nv) with f = value + F0 eps + F1 eps_dot +
        F2 eps_ddot + E du, B (..., nv, nv) with v = v_bar + eps_dot + B eps, and E (..., n, nu), zero for a caller's f.
    Raises ModelError: wrong names, shapes or numbers; f fails or returns no column of numbers; a joint has a distribution.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> near = pf.calculus.linearise_along(m, {"hinge": 0.0})
        >>> print(near.F0.round(2), near.F2)  # 19.62 eps + 2 eps_ddot = 0
        [[19.62]] [[2.]]
    """
    as_mechanism(m)
    if f is not None and not callable(f):
        raise ModelError("f: a function f(k, v_dot) of Kinematics and (nv, 1) is needed, or None for the equations of motion")
    at = given(
        least=1,
        q=(q, configurations(m, q)),
        v=(v, velocities(m, v)),
        v_dot=(v_dot, velocities(m, v_dot, "v_dot")),
        u=(u, as_batch(u, m.u_names, np.zeros(m.nu), "u")),
        parameters=(parameters, parameter_values(m, parameters)),
    )
    compiled, shapes = _along(m, f and _known(m, f))
    value, *parts = matrices(compiled, at, shapes, np.array([as_number(t, "t")]))
    return LinearisedAlong(value[..., 0], *parts)


@remembered(64)
def _along(m: Mechanism, f: TracedFunction | None) -> tuple[kernel.Kernel, tuple[tuple[int, int], ...]]:
    """The compiled function (q, v, v_dot, u, p, t) -> the fields of a LinearisedAlong, and their shapes."""
    T = symbols(unconstrained(m, named=f is not None))
    k, a = T.kinematics, ca.SX.sym("a", m.nv)
    inputs = [T.q, T.v, a, T.u, m.p_symbols, T.t]
    if f is None:
        value = ca.densify(T.inertia_force(a) - T.generalised_input)
    else:
        value = in_symbols(column(call_for_value(f, "f", k, a), "f"), "f", (T.q, T.v, a, m.p_symbols, T.t))
    near = connection.deviation(k, value, a)
    parts = [value, *near, connection.velocity_of_deviation(k), ca.jacobian(value, T.u)]
    function = ca.Function("along", inputs, [ca.vec(ca.densify(x)) for x in parts])
    return kernel.compile(function), tuple(x.shape for x in parts)


def _known(m: Mechanism, f: Callable[[Any, Any], Any]) -> TracedFunction:
    """f(k, v_dot) as a TracedFunction, identified by the expression that it returns now."""
    T, a = symbols(m), ca.SX.sym("a", m.nv)
    known = [T.q, T.v, a, T.t, m.p_symbols]
    return TracedFunction(f, graph(known, [in_symbols(column(call_for_value(f, "f", T.kinematics, a), "f"), "f", known)]))


def _value(T: Terms, f: ConfigurationFunction | None) -> ca.SX:
    """(n, 1) expression of f, or of the potential energy if f is None."""
    return ca.densify(T.V) if f is None else call_for_column(f, "f", T.kinematics)


def _hessian(T: Terms, f: ConfigurationFunction | None) -> ca.SX:
    """Covariant Hessian of f. Raises ModelError: f is not one number of q and t."""
    value = _value(T, f)
    if value.numel() != 1 or ca.depends_on(value, T.v):
        raise ModelError("f: a Hessian needs one number that depends on q and t alone")
    return connection.covariant_hessian(T.kinematics, value, T.M)


_QUANTITIES: dict[str, Callable[[Terms, ConfigurationFunction | None], ca.SX]] = {
    "gradient": lambda T, f: connection.directional_derivative(T.kinematics, _value(T, f)),
    "commutation": lambda T, _: ca.vertcat(*connection.commutation_coefficients(T.kinematics)),
    "connection": lambda T, _: ca.vertcat(*connection.connection_coefficients(T.kinematics, T.M)),
    "hessian": _hessian,
}
"""Quantity -> function of Terms and f that returns its expression; a tensor as its matrices stacked vertically."""


def _ask(m: Mechanism, what: str, f: ConfigurationFunction | None, q: Any, v: Any, t: float, parameters: Any) -> np.ndarray:
    """Evaluate an entry of _QUANTITIES: (..., rows, columns)."""
    as_mechanism(m)
    if f is not None and not callable(f):
        raise ModelError("f: a function of Kinematics is needed, as for holonomic, or None for the potential energy")
    known = f and TracedFunction(f, of_function(f, "f", symbols(m).kinematics))
    return evaluate(m, Quantity(what, _QUANTITIES[what], (known,)), q, v, t=t, parameters=parameters)


def _tensor(m: Mechanism, x: np.ndarray) -> np.ndarray:
    """(..., nv, nv, nv) from matrices stacked vertically."""
    return x.reshape(*x.shape[:-2], m.nv, m.nv, m.nv)
