"""Quasi-velocities y = W^T v, M = W W^T, and their reduction by constraints. [aghili08]

All components of y have the same unit, |y|^2 is twice the kinetic energy, and y_dot + Gamma y = W^-1 (applied force). With
constraints, P projects onto the null space of Lam = A W^-T. Only P is used, never a basis, so nothing jumps along a motion.
Vectors of the reduced space are represented by y-vectors in the range of P: v_r stands for V2 v_r.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import orthogonalise, solve_definite
from pfaffian.maths.roots import square_root
from pfaffian.maths.tree_factor import solve_W
from pfaffian.terms.articulated_inertia import check_plain, innovations_factor
from pfaffian.terms.connection import rate
from pfaffian.terms.terms import Terms, as_terms, turning

FACTORS = ("cholesky", "symmetric", "innovations")
"""Names of the factors W of M = W W^T that `quasi_velocity(terms, factor)` takes.

Example:
    >>> import pfaffian as pf
    >>> pf.constraints.FACTORS
    ('cholesky', 'symmetric', 'innovations')
"""


class QuasiVelocity(NamedTuple):
    """Quasi-velocity form of the unconstrained equations.

    W: (nv, nv), M = W W^T.   inverse: W^-1.   W_dot: rate of W along the motion.   y: (nv, 1) W^T v [sqrt(kg) m/s].
    Gamma: (nv, nv) skew, y_dot + Gamma y = W^-1 (f + B u - g + reaction).   g: (nv, 1) the part of c without velocities.
    counted: weights of columns when lengths of rows are compared, as in Terms; None if the factor is symmetric.
    """

    W: ca.SX
    inverse: ca.SX
    W_dot: ca.SX
    y: ca.SX
    Gamma: ca.SX
    g: ca.SX
    counted: ca.DM | None


class Reduced(NamedTuple):
    """The constraints in quasi-velocities. [aghili08 (19)-(27)]

    P: (nv, nv) projector onto the null space of Lam.   Q: (m, nv) orthonormal rows of Lam.   D: (m, 1) with Q y_dot = D.
    rank: (1, 1) of Lam.
    """

    P: ca.SX
    Q: ca.SX
    D: ca.SX
    rank: ca.SX


def quasi_velocity(terms: Terms, factor: str = "cholesky") -> QuasiVelocity:
    """Quasi-velocities y = W^T v for a factor of M = W W^T: the equations become y_dot + Gamma y = W^-1 (force). [aghili08 (6)
    (7)]

    |y|^2 is twice the kinetic energy. Gamma = (W^-1 C - W_dot^T) W^-T with C + C^T = dM/dt gives the same product Gamma y as
    the printed one. It is also skew, as the bound of (43) requires; the printed Gamma is not in general. Symmetric factors are
    not triangular, but equally suitable.

    Args:
        terms: Terms of a mechanism at symbols.
        factor: one of FACTORS: "cholesky" (default), "symmetric" or "innovations".
    Returns:
        a named tuple of expressions: W, inverse W^-1, W_dot along the motion and Gamma (nv, nv), y (nv, 1) [sqrt(kg) m/s], and
        g (nv, 1), the part of c without velocities; and counted, the weights of columns as in Terms.
    Raises ModelError: an unknown factor; "innovations" for a mechanism that is not a plain tree of joints.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("disk", [pf.body("disk", 4.0, inertia=9.0)], [pf.joint("base", "planar", "world", "disk")])
        >>> f = pf.compile_terms(m, {"y": lambda T: pf.constraints.quasi_velocity(T).y}, backend="numpy")
        >>> f(v={"base.vx": 1.0, "base.wz": 1.0})["y"]  # by the roots of 4 kg and 9 kg m^2
        array([2., 0., 3.])
    """
    W, inverse, W_dot = _factor(as_terms(terms), factor)
    Gamma = (inverse @ terms.C - W_dot.T) @ inverse.T
    counted = None if factor == "symmetric" else terms.counted
    return QuasiVelocity(W, inverse, W_dot, W.T @ terms.v, Gamma, terms.c - terms.C @ terms.v, counted)


class _MassFactor(NamedTuple):
    """A factor of M = W W^T, its inverse and its rate along the motion."""

    W: ca.SX
    inverse: ca.SX
    W_dot: ca.SX


def _factor(terms: Terms, factor: str) -> _MassFactor:
    """The factor of that name. Raises ModelError: there is none."""
    if factor == "symmetric":
        return _MassFactor(*square_root(ca.densify(terms.M), rate(terms.kinematics, ca.densify(terms.M))))
    identity = ca.SX.eye(terms.M.shape[0])
    if factor == "cholesky":
        W, inverse = terms.factor.W, solve_W(terms.factor, identity)
    elif factor == "innovations":
        check_plain(terms.kinematics, "quasi-velocity-innovations")
        W = innovations_factor(terms.kinematics)
        inverse = solve_definite(W, identity)
    else:
        raise ModelError(f"factor {factor!r} is unknown; one of {', '.join(FACTORS)}")
    return _MassFactor(ca.densify(W), ca.densify(inverse), rate(terms.kinematics, ca.densify(W)))


def reduced_quasi_velocity(terms: Terms, x: QuasiVelocity, tolerance: float = RANK_TOLERANCE) -> Reduced:
    """Constraints in quasi-velocities: orthonormal rows Q and projector P, Lam y_dot = b + A W^-T W_dot^T v. [aghili08 (19)]

    Args:
        terms: Terms of a mechanism at symbols.
        x: quasi-velocities of these terms, from `quasi_velocity`.
        tolerance: fraction of a row's length below which the remainder counts as zero and the row as dependent.
    Returns:
        a named tuple of expressions: projector P (nv, nv) onto the null space of Lam = A W^-T, orthonormal rows Q (m, nv) of
        Lam, D (m, 1) with Q y_dot = D, and rank (1, 1) of Lam.

    Example:
        >>> import pfaffian as pf
        >>> wire = pf.holonomic("wire", lambda k: k.q[1] - k.q[0])
        >>> move = pf.joint("move", "planar-translation", "world", "bead")
        >>> m = pf.mechanism("bead", [pf.body("bead", 2.0)], [move], constraints=[wire])
        >>> def projector(T): return pf.constraints.reduced_quasi_velocity(T, pf.constraints.quasi_velocity(T)).P
        >>> pf.compile_terms(m, {"P": projector}, backend="numpy")()["P"].round(3)  # along y = x
        array([[0.5, 0.5], [0.5, 0.5]])
    """
    Lam = as_terms(terms).A @ x.inverse.T
    rows = orthogonalise(Lam, terms.b + Lam @ (x.W_dot.T @ terms.v), tolerance, terms.row_size, x.counted, groups=terms.groups)
    return Reduced(ca.SX.eye(x.W.shape[0]) - rows.Q.T @ rows.Q, rows.Q, rows.D, rows.rank)


def projector_rate(terms: Terms, x: QuasiVelocity) -> ca.SX:
    """P_dot (nv, nv) along the motion, from P_dot P = -Lam^+ Lam_dot P; no rank decision is differentiated.

    Raises ModelError: the mechanism has rows that depend on v, whose rate would need the acceleration.
    """
    if turning(terms):
        raise ModelError(
            f"mechanism {terms.mechanism.name!r} has constraint rows that depend on velocities (an eta that is not affine in "
            "v): the rate of their projector needs the acceleration, so laws and bounds that use this rate are not available"
        )
    if terms.A.shape[0] == 0:
        return ca.SX(*x.W.shape)
    Lam = terms.A @ x.inverse.T
    rows = orthogonalise(
        Lam, (terms.A_dot - Lam @ x.W_dot.T) @ x.inverse.T, RANK_TOLERANCE, terms.row_size, x.counted, groups=terms.groups
    )
    turn = rows.Q.T @ (rows.D - (rows.D @ rows.Q.T) @ rows.Q)
    return -(turn + turn.T)


def motion(terms: Terms, *, factor: str = "cholesky", tolerance: float = RANK_TOLERANCE) -> Motion:
    """Motion in quasi-velocities, where motion and reaction separate. [aghili08 (31a) (31b)]

    P y_dot = P (u - Gamma y), (I - P) y_dot = Q^T D, reaction = W (y_dot + Gamma y - u).
    """
    x = quasi_velocity(terms, factor)
    r = reduced_quasi_velocity(terms, x, tolerance)
    u = x.inverse @ (terms.generalised_input - x.g)
    drive = u - x.Gamma @ x.y
    y_dot = r.P @ drive + r.Q.T @ r.D
    v_dot = x.inverse.T @ (y_dot - x.W_dot.T @ terms.v)
    return Motion(ca.densify(v_dot), ca.densify(x.W @ (y_dot - drive)), r.rank)
