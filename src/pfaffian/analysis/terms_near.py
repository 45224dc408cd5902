"""Terms of a machine under a law at a state, with their exact derivatives there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Control
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.dynamics.response import Factors, residuals, response
from pfaffian.evaluate.given_state import off_constraints
from pfaffian.maths.linear import Orthogonal, orthogonalise
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.closed_loop import command_of
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered


class TermsNear(NamedTuple):
    """Terms at a state; derivatives are by q, v, z and the inputs.

    inverse_K: left inverse of K.   P_q, P_v: projectors, in y, onto the motions that phi = 0 and eta = 0 allow.   back: W^-T.
    bent: (nv, nq) change of v that the rows require when q moves.   a: (nv, 1) v_dot itself.   z_rate: z_dot itself.
    v_dot, q_dot, z_dot: derivatives of these.   scale: norms, in y, of the accelerations due to each kind of force.
    apart: (rows, nv) rates at which bodies move relative to each other, by v.
    """

    M: np.ndarray
    K: np.ndarray
    inverse_K: np.ndarray
    P_q: np.ndarray
    P_v: np.ndarray
    back: np.ndarray
    bent: np.ndarray
    a: np.ndarray
    v_dot: np.ndarray
    q_dot: np.ndarray
    z_dot: np.ndarray
    scale: np.ndarray
    z_rate: np.ndarray
    apart: np.ndarray


class NearState(NamedTuple):
    """Functions of a state.   terms: (q, v, w, z, t, p) -> residuals of the constraints, z_dot, and the fields of _Here.
    moved: (q, v, w, z, t, p, *motion) -> derivatives of forces, rows, servo rows, q_dot and z_dot by q, v, z and w."""

    terms: ca.Function
    moved: ca.Function

    def at(self, *state: Any) -> tuple[np.ndarray, TermsNear]:
        """Residuals of the constraints at a state, and the TermsNear."""
        off, z_rate, *here = map(np.array, self.terms(*state))
        derivatives = lambda *motion: [np.array(ca.densify(x)) for x in self.moved(*state, *motion)]  # noqa: E731
        return off, _parts(_Here.of(here), z_rate, derivatives)


@remembered(16)
def near_state(m: Mechanism, control: Control, digest: str) -> NearState:
    """The functions of a state under a law."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    command = command_of(T, control, Scheme(), z, w)
    T = T.under(command.u)
    at, variables = [T.q, T.v, w, z, T.t, m.p_symbols], ca.vertcat(T.q, T.v, z, w)
    here, known = _here(T), residuals(T)
    moving = known.force, known.rows, known.servo, T.kinematics.q_dot, command.z_dot
    return NearState(
        ca.Function("near", at, [ca.densify(ca.SX(x)) for x in (off_constraints(T), command.z_dot, *here.matrices)]),
        ca.Function("moved", [*at, *known.motion], [ca.jacobian(x, variables) for x in moving]),
    )


class _Here(NamedTuple):
    """Terms at a state, first as SX and then as arrays.

    forces: (nv, 3) -c, f and B u.   weight: root of the total mass times g.   apart: as in TermsNear.
    b, b_s: accelerations of rows and servo rows.   Q_q, Q_v: the rows of phi, and of phi and eta, orthonormal in mass-weighted
    coordinates.   D: (s, m) such that the rows A y = d are Q_v y = D d.   bends: (m, nq) d eta / d q.
    multipliers: of the ideal rows.   factors: without the metric, which is computed from M with numbers.
    """

    M: Any
    K: Any
    forces: Any
    weight: Any
    apart: Any
    b: Any
    b_s: Any
    Q_q: Any
    Q_v: Any
    D: Any
    bends: Any
    multipliers: Any
    factors: Factors

    @property
    def matrices(self) -> list[Any]:
        """All matrices in one list, those of the factors last."""
        return [*self[:-1], *self.factors[1:]]

    @classmethod
    def of(cls, matrices: Sequence[Any]) -> _Here:
        """The terms with these `matrices`."""
        n = len(cls._fields) - 1
        return cls._make([*matrices[:n], Factors(None, *matrices[n:])])


def _here(T: Terms) -> _Here:
    """The terms as expressions. Without rows nothing is factorised: this is done with numbers."""
    T.check_mass()
    n, levels = T.mechanism.nv, T.rows.at(POSITION, VELOCITY)
    bends = ca.jacobian(T.rows.eta, T.q)[levels, :]
    constrained = T.A.shape[0] + T.servo.A.shape[0] > 0
    Q_q = Q_v = ca.SX(0, n)
    D, multipliers = ca.SX(0, 0), ca.SX(0, 1)
    factors = Factors(None, *[ca.SX(*shape) for shape in ((0, n), (n, 0), (n, 0), (0, n), (n, 0), (0, 0))])
    if constrained:
        at = response(T)
        rows, Q_q = _orthonormal(T, levels), _orthonormal(T, T.rows.at(POSITION)).Q
        Q_v, D = rows.Q, rows.carry(ca.SX.eye(len(levels)))[0]
        factors, multipliers = at.factors, at.motion().multipliers
    forces = ca.horzcat(-T.c, T.f, T.B @ T.u)
    weight = ca.sqrt(sum(link.mass for link in T.kinematics.tree.links)) * ca.norm_2(T.mechanism.gravity)
    K = T.kinematics.kinematic_matrix
    return _Here(T.M, K, forces, weight, _parting(T.kinematics), T.b, T.servo.b, Q_q, Q_v, D, bends, multipliers, factors)


def _root(M: np.ndarray) -> np.ndarray:
    """The upper triangular W with M = W W^T; nan if M is not positive definite."""
    try:
        return np.linalg.cholesky(M[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        return np.full(M.shape, np.nan)


def _parts(x: _Here, z_rate: np.ndarray, derivatives: Callable[..., list[np.ndarray]]) -> TermsNear:
    """The TermsNear from the terms at a state.

    derivatives: (v_dot, multipliers, mu) -> derivatives of forces, rows and servo rows at this motion, of q_dot and of z_dot.
    """
    W, I = _root(x.M), np.eye(len(x.M))
    factors = x.factors._replace(metric=W)

    def answer(force: np.ndarray, rows: np.ndarray, servo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        free = np.linalg.solve(W, force)
        correction, _, mu = factors.respond(free, rows, servo)
        return np.linalg.solve(W.T, free + correction), mu

    v_dot, mu = answer(sum(x.forces.T)[:, None], x.b, x.b_s)
    force, rows, servo, q_dot, z_dot = derivatives(v_dot, x.multipliers, mu)
    back, inverse_K = np.linalg.inv(W).T, np.linalg.solve(x.K.T @ x.K, x.K.T)
    scale = np.append(np.linalg.norm(np.linalg.solve(W, x.forces), axis=0), x.weight)
    return TermsNear(
        x.M, x.K, inverse_K, I - x.Q_q.T @ x.Q_q, I - x.Q_v.T @ x.Q_v, back, -back @ x.Q_v.T @ x.D @ x.bends, v_dot,
        answer(-force, -rows, -servo)[0], q_dot, z_dot, scale, z_rate, x.apart,
    )  # fmt: skip


def _parting(k: Kinematics) -> ca.SX:
    """(rows, nv) rates at which bodies move relative to the one that carries them, bodies that the world carries relative to
    the first of these, and the rates of coordinates that belong to no body, by v."""
    m = k.mechanism
    carrier = {j.child: j.parent for j in m.joints}
    first = next((child for child, parent in carrier.items() if parent == "world"), None)
    pairs = [(child, first if parent == "world" else parent) for child, parent in carrier.items() if child != first]
    rows = [k.relative(child, seen_from)[1] for child, seen_from in pairs if seen_from is not None]
    return ca.vertcat(ca.SX(0, m.nv), *rows, *[ca.jacobian(k.joint_rate(c.name), k.v) for c in m.coordinates])


def _orthonormal(T: Terms, rows: list[int]) -> Orthogonal:
    """Some of the mass-weighted constraint rows, orthonormalised."""
    Lam, size, groups = T.Lam[rows, :], T.row_size[rows, 0], T.row_groups(rows)
    return orthogonalise(Lam, ca.SX(len(rows), 0), RANK_TOLERANCE, size, T.counted, groups=groups)
