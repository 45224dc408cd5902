"""A machine linearised near a state: its matrices, eigenvalues and modes, and how they print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pfaffian.maths.span import LENGTH_TOLERANCE
from pfaffian.maths.spectrum import Cluster, Spectrum, spectrum
from pfaffian.output.plain import LONGEST, text

STILL = 1e-6
"""Largest drift of a state that counts as an equilibrium: relative to the accelerations that its forces and weight alone would
cause, and of velocities in rad/s or the machine's lengths a second."""

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
