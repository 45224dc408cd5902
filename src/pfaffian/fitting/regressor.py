"""Equation error: the equations of motion are linear in masses, first moments and inertias of the bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.identified_parameters import LinearEquations
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, unknown, velocities
from pfaffian.maths.inertia import moments
from pfaffian.maths.so3 import hat, vee
from pfaffian.model.body import Body
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

INERTIAL = ("m", "hx", "hy", "hz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
"""The numbers of a body: mass [kg], first moment [kg m] and inertia about the origin of its frame [kg m^2]."""

DEPENDENT = 1e-8
"""A column whose remainder is below this fraction of its length depends on the columns before it."""

NAMED = 1e-6
"""Coefficients of a combination below this are rounding."""


class Regressor(NamedTuple):
    """Y (n, nv, 10 bodies) with Y phi = M a + c - f of bodies and their weights.

    names: of phi.   phi: (10 bodies,) of the mechanism.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("box", [pf.body("box", mass=2.0)], [slide])
        >>> r = pf.identification.regressor(m, [0.0], [0.0], [3.0])
        >>> r.names[0], r.Y[0, 0, 0], r.phi[0]
        ('box m', np.float64(3.0), np.float64(2.0))
    """

    Y: np.ndarray
    names: tuple[str, ...]
    phi: np.ndarray


def regressor(
    m: Mechanism, q: Any, v: Any, a: Any, *, bodies: Iterable[str] | None = None, parameters: Any = None
) -> Regressor:
    """The matrix Y by which a motion multiplies the inertial numbers phi of all bodies, exact and linear.

        Y(q, v, a) phi = M a + c - f,   of the bodies and their weights alone, phi = (m, h, I) of each body about its origin

    Args:
        m: the mechanism, a tree or a tree with loops.
        q: (nq,) or (n, nq) configurations, or {coordinate: number or (n,)}.
        v: (nv,) or (n, nv) velocities, or by name.
        a: (nv,) or (n, nv) accelerations v_dot, or by name.
        bodies: whose numbers are wanted; all by default.
        parameters: values of the mechanism's parameters; defaults where left out.
    Returns:
        a named tuple: Y (n, nv, 10 bodies), the names of phi, and phi of the mechanism as it is.
    Raises ModelError: wrong names or shapes.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> r = pf.identification.regressor(m, [np.pi / 2], [0.0], [0.0])
        >>> round(float(r.Y[0, 0] @ r.phi), 2)  # the moment that holds 2 kg still, 1 m out
        19.62
    """
    of, values = _chosen(m, bodies), _values(m, q, v, a, None, parameters)
    phi = np.array(_inertial(m, of)(values[-1][0]))[:, 0]
    return Regressor(_columns(m, of).at(*values), _names(of), phi)


def equation_error(
    m: Mechanism, q: Any, v: Any, a: Any, u: Any = None, *, bodies: Iterable[str] | None = None, parameters: Any = None
) -> LinearEquations:
    """Linear equations for the inertial numbers of all bodies, from motions and inputs; reactions are eliminated.

        P Y phi = P (B u + f'),   P = 1 - A^+ A

    f' are the forces that do not depend on phi: springs, dampers, friction, armatures. With the projector P passive joints and
    closed loops need no measured forces. `least_squares` solves them, for `base_parameters`.

    Args:
        m: the mechanism.
        q: (n, nq) configurations, or {coordinate: (n,)}.
        v: (n, nv) velocities, or by name.
        a: (n, nv) accelerations, or by name.
        u: (n, nu) inputs, or by name; zero by default.
        bodies: whose numbers are unknown; all by default. Those of the others count as known.
        parameters: values of the mechanism's parameters; defaults where left out.
    Returns:
        LinearEquations with A (n, nv, 10 bodies), b (n, nv) and names.
    Raises ModelError: wrong names or shapes.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> box = pf.body("box", mass=2.0)
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("box", [box], [slide], actuators=[pf.actuator("push", "x")])
        >>> a = np.array([[1.0], [2.0], [3.0]])
        >>> e = pf.identification.equation_error(m, 0 * a, 0 * a, a, 2 * a)
        >>> mass = pf.identification.LinearEquations(e.A[:, :, :1], e.b, e.names[:1])
        >>> pf.identification.least_squares(mass).value.round(6)
        array([2.])
    """
    of, values = _chosen(m, bodies), _values(m, q, v, a, u, parameters)
    Y, (b,) = _columns(m, of).at(*values), _rest(m, of)(*values)
    if m.ideal:
        rows = _rows(m)(values[0], values[1], values[4])[0].reshape(len(Y), m.nv, -1).swapaxes(1, 2)
        P = np.eye(m.nv) - np.linalg.pinv(rows, rcond=DEPENDENT) @ rows
        Y, b = P @ Y, (P @ b[:, :, None])[:, :, 0]
    return LinearEquations(Y, b, _names(of))


def _values(m: Mechanism, q: Any, v: Any, a: Any, u: Any, parameters: Any) -> list[np.ndarray]:
    """q, v, a, u and p as (n, .) arrays."""
    inputs = as_batch(u, m.u_names, np.zeros(m.nu), "u")
    arrays = [configurations(m, q), velocities(m, v), velocities(m, a, "a"), inputs, parameter_values(m, parameters)]
    n = max(len(x) for x in arrays)
    if any(len(x) not in (1, n) for x in arrays):
        raise ModelError(f"regressor: q, v, a and u have different lengths: {[len(x) for x in arrays]}")
    return [x if len(x) == n else np.array(np.broadcast_to(x, (n, x.shape[1]))) for x in arrays]


def _chosen(m: Mechanism, bodies: Iterable[str] | None) -> tuple[str, ...]:
    """The names of the chosen bodies. Raises ModelError: one is unknown."""
    known = tuple(b.name for b in as_mechanism(m).bodies)
    chosen = known if bodies is None else as_names(bodies, "bodies")
    for name in chosen:
        if name not in known:
            raise unknown(name, known, "bodies")
    return chosen


def _names(bodies: tuple[str, ...]) -> tuple[str, ...]:
    """The names of phi."""
    return tuple(f"{name} {x}" for name in bodies for x in INERTIAL)


class _Columns(NamedTuple):
    """The part of each column of Y from its first to its last entry that can be different from zero.

    kernel: (q, v, a, u, p) -> these parts.   where: of each part, the place of its first entry among all, column by column.
    rows, width: of Y.
    """

    kernel: kernel.Kernel
    where: tuple[int, ...]
    rows: int
    width: int

    def at(self, *values: np.ndarray) -> np.ndarray:
        """Y (n, rows, width); what is always zero is never written, and costs neither time nor memory."""
        n, sizes = len(values[0]), self.kernel.shape.outputs
        Y = np.zeros((self.rows * self.width, n))
        self.kernel(*values, out=[Y[i : i + size].T for i, size in zip(self.where, sizes, strict=True)])
        return Y.reshape(self.width, self.rows, n).transpose(2, 1, 0)


@remembered(16)
def _columns(m: Mechanism, bodies: tuple[str, ...]) -> _Columns:
    """The columns of Y of some bodies."""
    T, a = symbols(m), ca.SX.sym("a", m.nv)
    Y = ca.substitute(ca.horzcat(*[_of_body(T, name, a) for name in bodies]), T.t, ca.SX(0))
    where, parts = list[int](), list[ca.SX]()
    for i in range(Y.size2()):
        filled = Y[:, i].row()
        if filled:
            where.append(i * m.nv + filled[0])
            parts.append(ca.densify(Y[filled[0] : filled[-1] + 1, i]))
    f = ca.Function("regressor", [T.q, T.v, a, T.u, m.p_symbols], parts)
    return _Columns(kernel.compile(f), tuple(where), m.nv, Y.size2())


@remembered(16)
def _rest(m: Mechanism, bodies: tuple[str, ...]) -> kernel.Kernel:
    """Kernel (q, v, a, u, p) -> B u - (M a + c - f - Y phi)."""
    T, a = symbols(m), ca.SX.sym("a", m.nv)
    Y, phi = ca.horzcat(*[_of_body(T, name, a) for name in bodies]), ca.vertcat(*[_phi(m.body(name)) for name in bodies])
    b = ca.substitute(ca.densify(T.B @ T.u - (T.M @ a + T.c - T.f - Y @ phi)), T.t, ca.SX(0))
    return kernel.compile(ca.Function("rest", [T.q, T.v, a, T.u, m.p_symbols], [b]))


@remembered(16)
def _inertial(m: Mechanism, bodies: tuple[str, ...]) -> ca.Function:
    """p -> phi."""
    return ca.Function("phi", [m.p_symbols], [ca.densify(ca.vertcat(*[_phi(m.body(name)) for name in bodies]))])


@remembered(16)
def _rows(m: Mechanism) -> kernel.Kernel:
    """Kernel (q, v, p) -> the constraint rows A, column by column."""
    T = symbols(m)
    A = ca.substitute(ca.vec(ca.densify(T.A)), T.t, ca.SX(0))
    return kernel.compile(ca.Function("rows", [T.q, T.v, m.p_symbols], [A]))


def _phi(body: Body) -> ca.SX:
    """The ten numbers of a body."""
    mass, h, I = moments(body.mass, body.com, body.inertia)
    return ca.vertcat(mass, h, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])


def _of_body(T: Terms, body: str, a: ca.SX) -> ca.SX:
    """(nv, 10) columns of a body: its Jacobian times the wrench about its origin for a unit of each number."""
    k = T.kinematics
    w, point = k.twist(body)[3:, 0], ca.SX.sym("point", 3)
    g, turn = k.specific_force(body, a), ca.jacobian(k.specific_force(body, a, point), point)
    w_dot = vee((turn - turn.T) / 2)
    zero, moments_of = ca.SX(3, 1), list[ca.SX]()
    for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        E = ca.SX(3, 3)
        E[i, j] = E[j, i] = 1
        moments_of.append(E @ w_dot + ca.cross(w, E @ w))
    force = ca.horzcat(g, turn, *[zero] * 6)
    moment = ca.horzcat(zero, -hat(g), *moments_of)
    return k.jacobian(body).T @ ca.vertcat(force, moment)


class BaseParameters(NamedTuple):
    """Combinations of numbers that a motion determines.

    names: of the combinations, such as "link 2 hx + 0.3 link 3 m".   columns: indices of the numbers that lead them.
    matrix: (k, numbers) with combinations = matrix @ phi.   condition: of the equations for them, columns of unit length; above
        some hundred the motion excites them poorly.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> e = pf.identification.LinearEquations(np.array([[1.0, 2.0], [3.0, 6.0]]), np.array([5.0, 15.0]), ("a", "b"))
        >>> base = pf.identification.base_parameters(e)
        >>> base.names, base.reduced(e).A.ravel()
        (('a + 2 b',), array([1., 3.]))
    """

    names: tuple[str, ...]
    columns: tuple[int, ...]
    matrix: np.ndarray
    condition: float

    def reduced(self, equations: LinearEquations) -> LinearEquations:
        """The equations for the combinations."""
        return LinearEquations(np.asarray(equations.A)[..., list(self.columns)], equations.b, self.names)


def base_parameters(equations: LinearEquations | Regressor) -> BaseParameters:
    """The combinations of numbers that linear equations determine, by rank: each leads with the first independent number.

    Args:
        equations: those of `equation_error`, or a `Regressor` at many states.
    Returns:
        BaseParameters: names, columns, matrix and condition.
    Raises ModelError: the equations determine nothing.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> q, v, a = np.random.default_rng(1).normal(size=(3, 20, 1))
        >>> pf.identification.base_parameters(pf.identification.regressor(m, q, v, a)).names
        ('bob hx', 'bob hz', 'bob Iyy')
    """
    Y = np.asarray(equations[0], dtype=float)
    Y = Y.reshape(-1, Y.shape[-1])
    names = equations.names or tuple(f"x[{i}]" for i in range(Y.shape[1]))
    R = np.asarray(np.linalg.qr(Y, mode="r"))
    length = np.linalg.norm(R, axis=0)
    columns, Q = list[int](), np.zeros((len(R), 0))
    for i in np.flatnonzero(length > DEPENDENT * length.max(initial=0.0)):
        rest = R[:, i] / length[i]
        rest = rest - Q @ (Q.T @ rest)
        rest = rest - Q @ (Q.T @ rest)
        if (size := np.linalg.norm(rest)) > DEPENDENT:
            columns.append(int(i))
            Q = np.column_stack([Q, rest / size])
    if not columns:
        raise ModelError("base_parameters: the equations determine nothing: the machine does not move")
    matrix = np.linalg.lstsq(R[:, columns], R, rcond=None)[0]
    matrix[np.abs(matrix) < NAMED] = 0.0
    s = np.linalg.svd(R[:, columns] / length[columns], compute_uv=False)
    return BaseParameters(tuple(_sum(row, names) for row in matrix), tuple(columns), matrix, float(s[0] / s[-1]))


def _sum(row: np.ndarray, names: tuple[str, ...]) -> str:
    """The text of a combination."""
    factors = {1.0: "", -1.0: "-"}
    terms = [factors.get(x, f"{x:.4g} ") + n for n, x in zip(names, np.round(row, 9), strict=True) if x]
    return " + ".join(terms).replace("+ -", "- ")
