"""Linearised motion near a state: x_dot = drift + A x + B du in coordinates of the constraint manifold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.open_loop import is_open
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.dynamics.response import Factors, residuals, response
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.evaluate.single_values import as_number
from pfaffian.maths.linear import Orthogonal, orthogonalise
from pfaffian.maths.span import LENGTH_TOLERANCE, basis, complement
from pfaffian.maths.spectrum import Cluster, Spectrum, spectrum
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats
from pfaffian.output.plain import LONGEST, text
from pfaffian.simulate.step.closed_loop import command_of
from pfaffian.simulate.step.run_arguments import arguments, input_names
from pfaffian.simulate.step.sampling import refuse
from pfaffian.simulate.step.step import Scheme
from pfaffian.states.abstract_system import AbstractSystem, enter
from pfaffian.states.system import as_system
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.lengths import scales
from pfaffian.terms.pfaffian import POSITION, VELOCITY
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

STILL = 1e-6
"""Largest drift of a state that counts as an equilibrium: relative to the accelerations that its forces and weight alone would
cause, and of velocities in rad/s or the machine's lengths a second."""

SPLIT = 1e-7
"""Parts of unit motions below this fraction count as zero."""

NEGLIGIBLE = 1e-9
"""Motion of the machine, as a fraction of an eigenvector, below which the mode does not move the machine; and of its bodies
relative to each other, as a fraction of its motion, below which it moves as one rigid body."""

SHARE_DIGITS = 9
"""Digits of a share that rounding leaves: it decides neither the order of equal shares nor their percents."""

LAW_SWEEPS = 3
"""Sweeps through the states of a law that find their sizes."""

SMALLEST_SHARE, MOST_NAMED = 0.005, 4
"""Smallest share of a velocity in a mode that is printed, and the largest number of shares printed for a simple eigenvalue; for
a repeated one it is the number of repetitions, if that is larger."""


@dataclass(frozen=True, eq=False)
class Mode:
    """The motions near a state that belong to one eigenvalue, however often it is repeated.

    value: the eigenvalue [1/s], exactly zero where it differs from zero only by rounding.
    chains: lengths of its Jordan chains, the longest first: one for each independent eigenvector. In a chain of k, a
        disturbance grows like t^(k - 1) exp(value t).
    vectors: (n, m) orthonormal columns in x, m the sum of `chains`: a basis of the eigenvectors, then of the generalised ones.
    share: (nv,) [1] share of each velocity in the kinetic energy, as in `Linearised.participation`.
    rigid, free: of the displacements with eigenvalue zero, how many move the machine as one rigid body, and how many others.
    """

    value: complex
    chains: tuple[int, ...]
    vectors: np.ndarray
    share: np.ndarray
    rigid: int
    free: int

    @property
    def count(self) -> int:
        """Number of equal eigenvalues."""
        return self.vectors.shape[1]

    @property
    def defective(self) -> bool:
        """Whether there are fewer independent eigenvectors than eigenvalues."""
        return len(self.chains) < self.count

    @property
    def words(self) -> str:
        """How often the eigenvalue occurs, the rigid and other free motions, and the chains; "" for a simple one."""
        parts = [f"{self.count}-fold"] if self.count > 1 else []
        parts += [f"{n} {kind} motion{'s' * (n > 1)}" for kind, n in (("rigid", self.rigid), ("free", self.free)) if n]
        if self.defective:
            chains = [f"{n} chain{'s' * (n > 1)} of {length}" for length, n in Counter(self.chains).items()]
            parts.append(f"defective: {', '.join(chains)}")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class Linearised:
    """x_dot = drift + A x + B du near a state, x = [displacements; speeds; states of a law], with its eigenvalues.

    A: (n, n) [1/s].   B: (n, inputs).   drift: (n,) x_dot at the state itself.   equilibrium: whether drift is zero.
    states, units: names and units of x: d.. displacements along the manifold of positions, in mass-weighted length; s.. speeds
        that the constraints allow; z.. states of a law; r.. combinations of these.
    inputs, input_units: names and units of the inputs, the columns of B.
    dq: (nq, n), dv: (nv, n) change of q and v for each unit of x, with rows q_names and v_names.
    along: (nv, n) the displacements dq expressed along the velocities.   M: (nv, nv) mass matrix at the state.
    apart: (rows, nv) rates at which bodies move relative to each other, for each unit of v.
    rate: [1/s] root of the accelerations that the forces at the state cause over the machine's length.
    """

    A: np.ndarray
    B: np.ndarray
    drift: np.ndarray
    equilibrium: bool
    states: tuple[str, ...]
    units: tuple[str, ...]
    inputs: tuple[str, ...]
    input_units: tuple[str, ...]
    dq: np.ndarray
    dv: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    along: np.ndarray
    M: np.ndarray
    apart: np.ndarray
    rate: float

    @property
    def eigenvalues(self) -> np.ndarray:
        """(n,) eigenvalues of A [1/s], the least stable first, in the order of `modes`; exactly zero where they differ from
        zero only by rounding."""
        return self._spectrum.values

    @property
    def vectors(self) -> np.ndarray:
        """(n, n) complex columns in the order of the eigenvalues, a basis of all x; dq @ vectors are the mode shapes in q.

        Columns of a repeated eigenvalue are orthonormal, eigenvectors first, and depend on their subspaces alone. The largest
        displacement of each is real, so that the shapes of motions without damping are real.
        """
        return np.hstack([np.zeros((len(self.A), 0), dtype=complex), *(mode.vectors for mode in self.modes)])

    @property
    def frequencies(self) -> np.ndarray:
        """(n,) [rad/s] |eigenvalue|, the undamped natural frequency of a pair."""
        return np.abs(self.eigenvalues)

    @property
    def dampings(self) -> np.ndarray:
        """(n,) [1] damping ratio -Re / |eigenvalue|: 1 decays without oscillation, 0 oscillates undamped, below 0 grows."""
        return np.divide(0 - self.eigenvalues.real, self.frequencies, out=np.zeros(len(self.A)), where=self.frequencies > 0)

    @property
    def hertz(self) -> np.ndarray:
        """(n,) [Hz] frequencies / (2 pi)."""
        return self.frequencies / (2 * np.pi)

    @property
    def participation(self) -> np.ndarray:
        """(nv, n) [1] the share of each velocity in the kinetic energy of each mode, averaged over its period.

        e_i = Re(conj(y_i) (M y)_i) / (y^H M y), with y = dv w for the eigenvector w, or K^+ dq w for a mode with eigenvalue
        zero that is a displacement without speed. For a repeated eigenvalue it is the mean over a basis, orthonormal in the
        metric of M, of the velocities in all its motions. Columns sum to 1; a column is zero where only states of a law change.
        """
        columns = [mode.share for mode in self.modes for _ in range(mode.count)]
        return np.array(columns).reshape(-1, len(self.M)).T

    @property
    def clear(self) -> bool:
        """Whether each eigenvalue is clearly zero or clearly different from zero, in view of rounding."""
        return self._spectrum.clear

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The motions of each different eigenvalue, the least stable first."""
        return tuple(self._mode(cluster) for cluster in self._spectrum.clusters)

    @cached_property
    def _spectrum(self) -> Spectrum:
        """The eigenvalues and vectors of A."""
        return spectrum(self.A, _sizes(self.A, [name[0] for name in self.states], self.rate))

    def _mode(self, x: Cluster) -> Mode:
        """The motions of a cluster of eigenvalues."""
        L = np.linalg.cholesky(self.M)

        def moved(*parts: np.ndarray) -> np.ndarray:
            """(nv, k) orthonormal basis, in the coordinates L^T v, of the motions of the machine in the columns."""
            U, s, _ = np.linalg.svd(L.T @ np.hstack(parts), full_matrices=False)
            return U[:, s > NEGLIGIBLE]

        still = self.along[:, : len(self.A) if x.value == 0 else 0]
        n = still.shape[1]
        y = np.linalg.solve(L.T, moved(still @ x.vectors[:n], self.dv @ x.vectors))
        energy = (y.conj() * (self.M @ y)).real.sum(axis=1)
        share = energy / (energy.sum() if y.size else 1.0)
        displaced = moved(still @ x.eigenvectors[:n])
        parting = np.linalg.solve(L, self.apart.T).T
        parting = parting / np.maximum(np.linalg.norm(parting, axis=1, keepdims=True), 1e-300) @ displaced
        free = int((np.linalg.svd(parting, compute_uv=False) > NEGLIGIBLE).sum())
        return Mode(x.value, x.chains, self._in_phase(x.vectors), share, displaced.shape[1] - free, free)

    def _in_phase(self, vectors: np.ndarray) -> np.ndarray:
        """The columns (n, m), each turned in phase so that its largest displacement is real and positive."""
        d = vectors[[name[0] == "d" for name in self.states]]
        if not d.size:
            return vectors
        sizes = np.abs(d)
        largest = d[np.argmax(sizes > sizes.max(axis=0) - LENGTH_TOLERANCE, axis=0), np.arange(d.shape[1])]
        phase = np.where(np.abs(largest) > NEGLIGIBLE, largest, 1.0)
        return vectors * phase.conj() / np.abs(phase)

    def __str__(self) -> str:
        drift, change = (np.abs(x).max(initial=0.0) for x in (self.drift, self.A @ self.drift))
        steady = change <= STILL * drift * np.abs(self.A).max(initial=0.0)  # the state moves on, and its rates stay
        moving = "in steady motion" if steady else f"no equilibrium: drifts by {drift:.3g}"
        how = "at an equilibrium" if self.equilibrium else moving
        lines = [f"{len(self.states)} states, {len(self.inputs)} inputs, {how}"]
        if not self.clear:
            lines.append("unclear: rounding hides whether the slowest of these eigenvalues is zero")
        first = np.cumsum([0, *(mode.count for mode in self.modes)])[:-1]
        columns = zip(self.modes, self.frequencies[first], self.hertz[first], self.dampings[first], strict=True)
        for x, f, hertz, d in columns:
            rate = f"  {x.value.real:12.6g} {x.value.imag:+12.6g}i 1/s   {f:10.5g} rad/s {hertz:10.5g} Hz   damping {d:8.4f}"
            named = _mainly(self.v_names, x.share, max(MOST_NAMED, x.count))
            lines.append("   ".join([rate, named, *([x.words] if x.words else [])]))
        return "\n".join(lines)


def _mainly(names: Sequence[str], share: np.ndarray, most: int) -> str:
    """The velocities with the largest shares in a mode, in percent.   most: largest number of them."""
    share = np.round(share, SHARE_DIGITS)
    order = np.argsort(-share, kind="stable")[:most]
    named = [f"{text(names[i], LONGEST)} {100 * share[i]:.0f} %" for i in order if share[i] >= SMALLEST_SHARE]
    return ", ".join(named) or "the law alone"


def _sizes(A: np.ndarray, letters: Sequence[str], rate: float) -> np.ndarray:
    """(n,) sizes of the states x that count as equal: a speed is that of a displacement at the fastest rate, and a state of a
    law has the size with which it is moved and moves.

    letters: the first letters of the names of x.   rate: [1/s] lower bound of the fastest rate.
    """
    kinds = np.array(letters)
    d, s, size = kinds == "d", kinds == "s", np.ones(len(A))
    norms = [float(np.linalg.norm(A[np.ix_(rows, columns)])) for rows, columns in ((s, d), (s, s), (d, d))]
    fastest = max(np.sqrt(norms[0]), *norms[1:], rate) or 1.0
    size[d] = 1 / fastest
    for i in LAW_SWEEPS * np.flatnonzero(kinds == "z").tolist():
        others = np.arange(len(A)) != i
        moved, moves = (float(np.linalg.norm(x[others])) for x in (A[i] * size, A[:, i] / size))
        size[i] = np.sqrt(moved / moves) if moved and moves else (moved or fastest) / (moves or fastest)
    return size


def linearise(
    m: Mechanism | AbstractSystem,
    q: Any = None,
    v: Any = None,
    u: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
    control: Control | None = None,
    z: Sequence[float] | None = None,
) -> Linearised:
    """The linear system near a state, x_dot = drift + A x + B du, in the displacements and speeds that the constraints leave.

        x_1 = Z_q^T M K^+ (q - q_0),   x_2 = Z_v^T M (v - v_0),   x_2_dot = Z_v^T M v_dot

    The columns of Z_q (Z_v) are a basis, orthonormal in the metric of M, of the velocities that phi = 0 (and eta = 0) allow at
    the state. The derivatives of v_dot are those of `derivatives`: exact, and never taken through a rank decision. Redundant
    rows change nothing. At a singular configuration there is no manifold, and the result is that of the rows in use there.

    Args:
        m: the mechanism, or a System of it. The result then contains the motions that the state of the System can represent:
            all of them, except where a momentum is fixed by `reduce(m, momentum=...)`; then x has fewer entries, r...
        q, v, u: one state on the constraints and its inputs, (n,) or {name: number}; None: neutral, at rest, no inputs.
        t: time [s], held constant.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
        control: a law that closes the loop; u are then the inputs of the law and the external wrenches.
        z: states of the law, which become part of x; their start values if None.
    Returns:
        A: (n, n) [1/s], B: (n, inputs) and drift: (n,), x_dot at the state itself; `equilibrium`: whether drift is zero.
        eigenvalues, vectors, frequencies [rad/s], hertz [Hz] and dampings [1], the least stable first; participation: (nv, n)
        [1], the share of each velocity in the kinetic energy of each mode.
        states, units: names and units of x: d.. displacements in mass-weighted length, s.. speeds, z.. states of the law.
        inputs, input_units: names and units of the inputs, the columns of B.
        dq: (nq, n), dv: (nv, n), the change of q and v for each unit of x. Printing the result shows the eigenvalues.
    Raises ModelError: a batch of states; a state off the constraints; servo forces or a law without a derivative at the state;
    a joint with a distribution.

    Example:
        A box of 2 kg on a spring of 8 N/m oscillates at 2 rad/s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> near = pf.linearise(m)
        >>> near.equilibrium, near.frequencies.round(6), near.hertz.round(4), near.participation
        (True, array([2., 2.]), array([0.3183, 0.3183]), array([[1., 1.]]))
    """
    system = as_system(m)
    m = system.mechanism
    refuse_distributions(m, "linearise")
    _, law, _ = arguments(m, None, control, None)
    refuse(law, "linearise")
    near = _function(m, law, law_digest(law, m))
    names = input_names(m, law)
    u0 = as_batch(u, names, np.zeros(len(names)), "u" if control is None else "u, inputs of the law")
    given = [configurations(m, q), velocities(m, v), u0, parameter_values(m, parameters)]
    if any(len(x) != 1 for x in given):
        raise ModelError("linearise takes one state at a time")
    q0, v0, w0, p0 = (x[0] for x in given)
    z0 = floats(law.z if z is None else z, "z")
    if z0.shape != (len(law.z),):
        raise ModelError(f"z has shape {z0.shape}: ({len(law.z)},) is needed")
    off, parts = near.at(q0, v0, w0, z0, as_number(t, "t"), p0)
    check_on_constraints(m, off[None])
    linear = _assembled(m, law, parts, v0, names, scales(m, p0[None], q0[None], m.v_units)[0])
    return _followed(system, linear, q0, v0, p0, as_number(t, "t")) if system.other_state else linear


def _followed(s: AbstractSystem, x: Linearised, q: np.ndarray, v: np.ndarray, p: np.ndarray, t: float) -> Linearised:
    """The linear system x restricted to the motions that the state of a System can represent.

    That is x unchanged unless the System holds a momentum fixed. The representable motions x = Z r stay among themselves, so
    r_dot = Z^T drift + Z^T A Z r + Z^T B du.
    """
    enter(s, q[None], v[None], p[None], t)  # refuses what the state cannot represent
    T, X = symbols(s.mechanism), ca.SX.sym("x", s.nx)
    both = ca.vertcat(T.q, T.v)
    into = ca.jacobian(s.entered(T, T.q, T.v), both)
    back = ca.substitute(ca.jacobian(ca.vertcat(*s.q_and_v(X, T.t)), X), X, s.entered(T, T.q, T.v))
    f = ca.Function("kept", [T.q, T.v, s.mechanism.p_symbols, T.t], [ca.densify(back @ into)])
    moved = np.vstack([x.dq, x.dv])
    off = np.array(f(q, v, p, t)) @ moved - moved
    Z = complement(np.where(np.abs(off) > SPLIT * np.abs(moved).max(initial=0.0), off, 0.0), SPLIT)
    n = Z.shape[1]
    if n == len(x.A):
        return x
    names, units = tuple(f"r{i}" for i in range(n)), ("mixed",) * n
    return replace(x, A=Z.T @ x.A @ Z, B=Z.T @ x.B, drift=Z.T @ x.drift, states=names, units=units, dq=x.dq @ Z, dv=x.dv @ Z,
                   along=x.along @ Z)  # fmt: skip


class _TermsAt(NamedTuple):
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


def _assembled(
    m: Mechanism, law: Control, x: _TermsAt, v0: np.ndarray, names: tuple[str, ...], lengths: np.ndarray
) -> Linearised:
    """The Linearised in bases of the constraint manifold, from the terms at the state.

    names: input names.   lengths: (nv,) the machine's length for velocities in m/s, 1 for others.
    """
    nq, nv, nz = m.nq, m.nv, len(x.z_rate)
    Z_q, Z_v = (x.back @ basis(P) for P in (x.P_q, x.P_v))
    k, l = Z_q.shape[1], Z_v.shape[1]
    dq = np.hstack([x.K @ Z_q, np.zeros((nq, l + nz))])
    dv = np.hstack([x.bent @ dq[:, :k], Z_v, np.zeros((nv, nz))])
    n_in = len(names)
    states = np.vstack([dq, dv, np.hstack([np.zeros((nz, k + l)), np.eye(nz)])])
    # The changes of q, v, z and the inputs for a unit of each state and of each input.
    move = np.block([[states, np.zeros((len(states), n_in))], [np.zeros((n_in, states.shape[1])), np.eye(n_in)]])
    along = Z_q.T @ x.M
    rates = np.vstack([along @ x.inverse_K @ x.q_dot, Z_v.T @ x.M @ x.v_dot, x.z_dot]) @ move
    if not np.isfinite(rates).all():
        raise ModelError("the motion has no derivative here: a force, a constraint or the law is not smooth at this state")
    drift = np.concatenate([along @ v0, Z_v.T @ x.M @ x.a[:, 0], x.z_rate[:, 0]])
    length = np.sqrt((np.diag(x.M) * lengths**2).max(initial=0.0))  # in the mass-weighted metric, as displacements are
    bounds = (STILL * length, STILL * x.scale.sum(), STILL)
    parts = np.split(drift, [k, k + l])
    still = all(np.linalg.norm(part) <= bound for part, bound in zip(parts, bounds, strict=True))
    labels = [f"{letter}{i}" for letter, count in (("d", k), ("s", l), ("z", nz)) for i in range(count)]
    units = ["kg^0.5 m"] * k + ["kg^0.5 m/s"] * l + ["1"] * nz
    input_units = m.u_units if is_open(law) else ("1",) * len(law.w_names) + m.u_units[len(m.actuators) :]
    n = k + l + nz
    return Linearised(
        rates[:, :n], rates[:, n:], drift, still, tuple(labels), tuple(units), names, input_units, dq, dv, m.q_names,
        m.v_names, np.hstack([Z_q, np.zeros((nv, l + nz))]), x.M, x.apart, float(np.sqrt(x.scale.sum() / (length or 1.0))),
    )  # fmt: skip


class _Near(NamedTuple):
    """Functions of a state.   terms: (q, v, w, z, t, p) -> residuals of the constraints, z_dot, and the fields of _Here.
    moved: (q, v, w, z, t, p, *motion) -> derivatives of forces, rows, servo rows, q_dot and z_dot by q, v, z and w."""

    terms: ca.Function
    moved: ca.Function

    def at(self, *state: Any) -> tuple[np.ndarray, _TermsAt]:
        """Residuals of the constraints at a state, and the _TermsAt."""
        off, z_rate, *here = map(np.array, self.terms(*state))
        derivatives = lambda *motion: [np.array(ca.densify(x)) for x in self.moved(*state, *motion)]  # noqa: E731
        return off, _parts(_Here.of(here), z_rate, derivatives)


@remembered(16)
def _function(m: Mechanism, control: Control, digest: str) -> _Near:
    """The functions of a state under a law."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    command = command_of(T, control, Scheme(), z, w)
    T = T.under(command.u)
    at, variables = [T.q, T.v, w, z, T.t, m.p_symbols], ca.vertcat(T.q, T.v, z, w)
    here, known = _here(T), residuals(T)
    moving = known.force, known.rows, known.servo, T.kinematics.q_dot, command.z_dot
    return _Near(
        ca.Function("near", at, [ca.densify(ca.SX(x)) for x in (off_constraints(T), command.z_dot, *here.matrices)]),
        ca.Function("moved", [*at, *known.motion], [ca.jacobian(x, variables) for x in moving]),
    )


class _Here(NamedTuple):
    """Terms at a state, first as SX and then as arrays.

    forces: (nv, 3) -c, f and B u.   weight: root of the total mass times g.   apart: as in _TermsAt.
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


def _parts(x: _Here, z_rate: np.ndarray, derivatives: Callable[..., list[np.ndarray]]) -> _TermsAt:
    """The _TermsAt from the terms at a state.

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
    return _TermsAt(
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
