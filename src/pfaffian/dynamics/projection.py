"""Projection operator and constraint inertia matrices. [aghili05]

The rows are orthonormalised in the Euclidean metric of the velocity coordinates, P = I - A^+ A projects onto the null space of
A, and one system of full size gives the acceleration for any rank of A.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError
from pfaffian.maths.linear import orthogonalise, solve_definite
from pfaffian.maths.tree_factor import TreeFactor, factor_tree, solve_W, solve_WT
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats, named_float
from pfaffian.terms.terms import Terms, as_terms

VARIANTS = ("nonsymmetric", "symmetric", "tuned")


class Projector(NamedTuple):
    """Projector onto the motions that the constraints leave.

    P: (nv, nv) projector onto the null space of A, for velocities; P^T is for forces. [aghili05 (4) (15)]
    particular: (nv, 1) A^+ b, which is C v for constraints at rest. [aghili05 (16)]   rank: (1, 1) of A.
    """

    P: ca.SX
    particular: ca.SX
    rank: ca.SX


def projector(terms: Terms, tolerance: float = RANK_TOLERANCE, *, metric: Any = None) -> Projector:
    """Projector P = I - A^+ A onto the motions that the constraints leave, and A^+ b; A may have any rank. [aghili05 (4) (15)
    (16)]

    With a metric W = S S^T, A^+ is the inverse of smallest W-norm and P = S^-T P_W S^T. If translations and rotations mix, P is
    only meaningful with a metric: `length_metric`, actuator limits or M. [aghili05 (8)-(10) (47) (48)]

    Args:
        terms: Terms at a state.
        tolerance: of rank, relative to a row's length.
        metric: W of |v|^2 = v^T W v, as (nv,) positive weights or a positive definite (nv, nv); ones if None.
    Returns:
        a named tuple of expressions: P (nv, nv) for velocities (P^T is for forces), particular (nv, 1) = A^+ b, rank (1, 1).
    Raises ModelError: a metric of the wrong shape, or one that is not positive definite.

    Example:
        >>> import pfaffian as pf
        >>> wire = pf.holonomic("wire", lambda k: k.q[1] - k.q[0])
        >>> move = pf.joint("move", "planar-translation", "world", "bead")
        >>> m = pf.mechanism("bead", [pf.body("bead", 2.0)], [move], constraints=[wire])
        >>> pf.compile_terms(m, {"P": lambda T: pf.constraints.projector(T).P}, backend="numpy")()["P"].round(3)  # along y = x
        array([[0.5, 0.5], [0.5, 0.5]])
    """
    n = as_terms(terms).A.shape[1]
    if metric is None:
        rows = orthogonalise(terms.A, terms.b, tolerance, terms.row_size, groups=terms.groups)
        return Projector(ca.SX.eye(n) - rows.Q.T @ rows.Q, rows.Q.T @ rows.D, rows.rank)
    S = _factor(terms.mechanism, metric)
    rows = orthogonalise(solve_W(S, terms.A.T).T, terms.b, tolerance, terms.row_size, groups=terms.groups)
    back = solve_WT(S, rows.Q.T)
    return Projector(ca.SX.eye(n) - back @ (rows.Q @ S.W.T), back @ rows.D, rows.rank)


def length_metric(m: Mechanism, length: float) -> np.ndarray:
    """Weights W of velocities that divide translations by a characteristic length, to make them comparable with rotations.
    [aghili05 (48)]

    The norm of forces is f^T W^-1 f = length^2 |forces|^2 + |moments|^2; `control.length_weights` gives the corresponding
    weights of inputs.

    Args:
        m: the mechanism.
        length: characteristic length [m], above zero.
    Returns:
        (nv,) 1 / length^2 [1/m^2] for translations, 1 for rotations.
    Raises ModelError: a length that is not positive.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.mechanism("disk", [pf.body("disk", 4.0, inertia=9.0)], [pf.joint("base", "planar", "world", "disk")])
        >>> pf.constraints.length_metric(m, 0.5)
        array([4., 4., 1.])
    """
    as_mechanism(m)
    if not named_float(length, "the characteristic length") > 0:
        raise ModelError(f"the characteristic length must be positive, got {length!r}")
    return np.array([length**-2 if unit == "m/s" else 1.0 for unit in m.v_units])


def _factor(m: Mechanism, metric: Any) -> TreeFactor:
    """The factor S of a caller's metric W = S S^T. Raises ModelError: a wrong shape, or W is not positive definite."""
    n = m.nv
    W = metric if isinstance(metric, ca.SX) else floats(metric, "metric")
    if W.shape not in ((n,), (n, 1), (n, n)):
        raise ModelError(f"metric has shape {W.shape}: ({n},) weights or a ({n}, {n}) matrix are needed")
    if W.shape != (n, n) or n == 1:
        if not isinstance(W, ca.SX) and not ((W > 0) & np.isfinite(W)).all():
            raise ModelError("metric: every velocity needs a finite weight above zero")
        return factor_tree(ca.diag(ca.vec(ca.SX(W))), [-1] * n)
    if not isinstance(W, ca.SX) and not (np.allclose(W, W.T) and np.linalg.eigvalsh(W).min() > 0):
        raise ModelError("metric: the matrix must be symmetric and positive definite")
    return factor_tree(ca.SX(W), range(-1, n - 1))


def constraint_inertia(M: ca.SX, P: ca.SX, particular: ca.SX, variant: str) -> tuple[ca.SX, ca.SX]:
    """Constraint inertia matrix (nv, nv), and the force (nv, 1) due to the curvature of the constraints.

    nonsymmetric: Mc = M + PM - (PM)^T,        M A^+ b             [aghili05 (22)-(24)]
    symmetric:    PMP + (I-P) M (I-P),        (I - 2P) M A^+ b     [aghili05 (27) (28)]
    tuned:        PM + g (I - P),  g = |M|,    g A^+ b             [aghili05 (29)]
    """
    n = M.shape[0]
    I = ca.SX.eye(n)
    PM = P @ M
    if variant == "nonsymmetric":
        return M + PM - PM.T, M @ particular
    if variant == "symmetric":
        return PM @ P + (I - P) @ M @ (I - P), M @ particular - 2 * PM @ particular
    if variant == "tuned":
        # The matrix is positive definite if g is at least the largest eigenvalue of M; the Frobenius norm is.
        g = ca.norm_fro(ca.densify(M))
        return PM + g * (I - P), g * particular
    raise ModelError(f"constraint inertia {variant!r} is unknown; one of {', '.join(VARIANTS)}")


def motion(terms: Terms, *, variant: str = "nonsymmetric", tolerance: float = RANK_TOLERANCE) -> Motion:
    """Motion from Mc v_dot = P (f + B u - c) + curvature;  reaction = (I - P)(M v_dot - f - B u + c). [aghili05 (20)-(32)]"""
    M, force = ca.densify(terms.M), terms.force
    P, particular, rank = projector(terms, tolerance)
    Mc, curvature = constraint_inertia(M, P, particular, variant)
    v_dot = solve_definite(Mc, P @ force + curvature)
    residual = M @ v_dot - force
    return Motion(v_dot, residual - P @ residual, rank)


class Coupling(NamedTuple):
    """Coupling of force and motion; reaction = direct + coupled. [aghili05 (32)]

    mu: (nv, nv) (I - P) M Mc^-1.   measure: (1, 1) Frobenius norm |mu P|, 0 if and only if no force that moves the mechanism
    loads the constraints.   direct: (nv, 1) reaction to the part of the applied force that moves nothing [N, N m].
    coupled: (nv, 1) reaction to the part that moves the mechanism, and to the curvature of the constraints [N, N m].
    """

    mu: ca.SX
    measure: ca.SX
    direct: ca.SX
    coupled: ca.SX


def coupling(terms: Terms, *, metric: Any = None, tolerance: float = RANK_TOLERANCE) -> Coupling:
    """Coupling of force and motion of a constrained mechanism: the two parts of the reaction. [aghili05 (32) (80)]

    direct = -(I - P)(f + B u - c),  coupled = mu (P (f + B u - c) + M A^+ b): as printed, except for the sign of the reaction.
    |mu P| = 0 if N(A) is invariant under M; mu is then I - P, not zero. The sum does not depend on the metric W, but the parts
    do: everything is computed in the coordinates S^T v, W = S S^T.

    Args:
        terms: Terms at a state.
        metric: W of |v|^2 = v^T W v, as (nv,) positive weights or a positive definite (nv, nv); ones if None.
        tolerance: of rank, relative to a row's length.
    Returns:
        a named tuple of expressions: mu (nv, nv) = (I - P) M Mc^-1; measure (1, 1) |mu P|, 0 if and only if no force that moves
        the mechanism loads the constraints; direct (nv, 1), the reaction to the part of the applied force that moves nothing;
        coupled (nv, 1), the reaction to the other part and to the curvature of the constraints [N, N m].
    Raises ModelError: a metric of the wrong shape, or one that is not positive definite.

    Example:
        >>> import pfaffian as pf
        >>> stop = pf.holonomic("stop", lambda k: k.q[1])
        >>> turn, slide = pf.joint("turn", "revolute", "world", "arm"), pf.joint("slide", "prismatic", "arm", "mass")
        >>> bodies = [pf.body("arm", 1.0, inertia=1.0), pf.body("mass", 2.0)]
        >>> m = pf.mechanism("lift", bodies, [turn, slide], constraints=[stop])
        >>> f = pf.compile_terms(m, {"direct": lambda T: pf.constraints.coupling(T).direct}, backend="numpy")
        >>> float(f()["direct"][1].round(2))  # the stop carries 2 kg
        19.62
    """
    n, I = as_terms(terms).A.shape[1], ca.SX.eye(terms.A.shape[1])
    S = _factor(terms.mechanism, np.ones(n) if metric is None else metric)
    M, force = solve_W(S, solve_W(S, ca.densify(terms.M)).T), solve_W(S, ca.densify(terms.force))
    rows = orthogonalise(solve_W(S, terms.A.T).T, terms.b, tolerance, terms.row_size, groups=terms.groups)
    P, particular = I - rows.Q.T @ rows.Q, rows.Q.T @ rows.D
    Mc, curvature = constraint_inertia(M, P, particular, "nonsymmetric")
    mu = solve_definite(Mc.T, M @ (I - P)).T
    direct, coupled = P @ force - force, mu @ (P @ force + curvature)
    return Coupling(S.W @ mu @ solve_W(S, I), ca.norm_fro(ca.densify(mu @ P)), S.W @ direct, S.W @ coupled)
