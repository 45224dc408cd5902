"""Inertia of a rigid body, about the origin of its frame: its moments, and the 4 x 4 pseudo-inertia.

The moments of the body are its mass m [kg], the first moment h = m com [kg m] and the rotational inertia I about the
frame's origin [kg m^2]; I = trace(S) 1 - S for the second moment S, the integral of x x^T over the mass.
"""

import casadi as ca
import numpy as np

from pfaffian.maths.so3 import Matrix, Vee, Wed, matrix, symmetric

PHYSICAL = 1e-9  # relative tolerance for the rounding of inertias given with some ten digits


def moments(mass: Matrix, com: Matrix, rotational: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """(m, h, I) from a mass, a centre of mass (3,) [m] and an inertia (3, 3) ABOUT THAT CENTRE, all in the body frame.

    h = m com, I = I_com + m (com.com 1 - com com^T).
    """
    m, c = matrix(mass, 1), matrix(com, 3)
    return m, m * c, matrix(rotational, 3, 3) + m * symmetric(ca.sumsqr(c) * ca.DM.eye(3) - ca.mtimes(c, c.T))


def pseudo(m: Matrix, h: Matrix, I: Matrix) -> Matrix:
    """Pseudo-inertia [[S, h], [h^T, m]] with S = trace(I)/2 1 - I; se3.Vee turns it into the 6 x 6 inertia. -> (4, 4)."""
    h = matrix(h, 3)
    return ca.vertcat(ca.horzcat(Wed(I), h), ca.horzcat(h.T, matrix(m, 1)))


def pseudos(mass: np.ndarray, com: np.ndarray, rotational: np.ndarray) -> np.ndarray:
    """(n, 4, 4) numeric pseudo-inertias of masses (n,), mass centres (n, 3) and inertias (n, 3, 3) about these."""
    P, trace = np.empty((len(mass), 4, 4)), np.trace(rotational, axis1=1, axis2=2)
    # About the mass centre, S = trace(I)/2 1 - I; the part of the mass centre adds m c c^T.
    P[:, :3, :3] = trace[:, None, None] / 2 * np.eye(3) - rotational + mass[:, None, None] * com[:, :, None] * com[:, None, :]
    P[:, :3, 3] = P[:, 3, :3] = mass[:, None] * com
    P[:, 3, 3] = mass
    return P


def pseudo_to_moments(P: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """(m, h, I) of a pseudo-inertia: I = trace(S) 1 - S. P (4, 4)."""
    P = matrix(P, 4, 4)
    return P[3, 3], P[:3, 3], Vee(P[:3, :3])


def translate_moments(m: Matrix, h: Matrix, I: Matrix, p: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Moments about the origin of frame A from those about the origin of a parallel frame B, whose origin in A is p (3,)."""
    m, h, p = matrix(m, 1), matrix(h, 3), matrix(p, 3)
    h_A = h + m * p
    shift = ca.dot(p, h + h_A) * ca.DM.eye(3) - ca.mtimes(h_A, p.T) - ca.mtimes(p, h.T)
    return m, h_A, symmetric(matrix(I, 3, 3) + shift)


def is_physical(pseudo_inertia: Matrix) -> str | None:
    """None if a distribution of mass can have this numeric 4 x 4 pseudo-inertia, otherwise the reason why none can.

    The matrix must be finite, symmetric and positive semidefinite, to a relative tolerance. The second moment about the centre
    of mass is compared with its own size, so that the same rule holds for a gram far from its frame's origin and for a ton.
    """
    P = np.array(ca.DM(matrix(pseudo_inertia, 4, 4)).full())
    if are_physical(P[None])[0]:
        return None
    S, h, m = P[:3, :3], P[:3, 3], P[3, 3]
    if not np.isfinite(P).all():
        return "an entry is not finite"
    if not _symmetric(P[None])[0]:
        return "the matrix is not symmetric"
    if m < 0:
        return f"the mass is negative: {m:.6g} kg"
    if m == 0 and h.any():
        return "the mass is zero but the first moment is not"
    spread = _spread(S[None], h[None], m[None])[0]
    principal = np.sort(spread.sum() - spread)
    text = ", ".join(f"{moment:.6g}" for moment in principal)
    if principal[0] < 0:
        return f"a principal moment of inertia about the centre of mass is negative: {text} kg m^2"
    return f"the principal moments about the centre of mass break the triangle inequality: {text} kg m^2"


def least_spread(I: Matrix) -> Matrix:
    """The least principal minor of the second moment S about the centre of mass, of whose largest entry it is a power's part:
    a distribution of mass has one that is not below -PHYSICAL. I (3, 3) about that centre -> (1, 1)."""
    S = Wed(matrix(I, 3, 3))
    S = S / ca.fmax(ca.mmax(ca.fabs(ca.densify(S))), np.finfo(float).tiny)
    corners = [S[rows, rows] for rows in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2])]
    return ca.mmin(ca.densify(ca.vertcat(*map(ca.det, corners))))


def are_physical(P: np.ndarray) -> np.ndarray:
    """(runs,) whether each of the pseudo-inertias P (runs, 4, 4) passes the test of `is_physical`."""
    finite = np.isfinite(P).all(axis=(1, 2))
    P = np.where(finite[:, None, None], P, 0.0)
    S, h, m = P[:, :3, :3], P[:, :3, 3], P[:, 3, 3]
    whole = (m > 0) | ((m == 0) & ~h.any(axis=1))
    spread = _spread(S, h, m)
    rounding = 8 * np.finfo(float).eps * np.abs(S).max(axis=(1, 2))
    definite = spread[:, 0] >= -PHYSICAL * np.abs(spread).max(axis=1) - rounding
    return finite & _symmetric(P) & whole & definite


def _symmetric(P: np.ndarray) -> np.ndarray:
    """(runs,) whether each of P (runs, 4, 4) is symmetric; second and first moments are each compared with their own size."""
    S, h, below = P[:, :3, :3], P[:, :3, 3], P[:, 3, :3]
    off = np.abs(S - S.transpose(0, 2, 1)).max(axis=(1, 2)) <= PHYSICAL * np.abs(S).max(axis=(1, 2))
    return off & (np.abs(h - below).max(axis=1) <= PHYSICAL * np.abs(h).max(axis=1))


def _spread(S: np.ndarray, h: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(runs, 3) principal second moments about the centre of mass, ascending; S (runs, 3, 3), h (runs, 3), m (runs,)."""
    about = np.where(m > 0, m, np.inf)[:, None, None]
    central = S - h[:, :, None] * h[:, None, :] / about
    return np.linalg.eigvalsh((central + central.transpose(0, 2, 1)) / 2)
