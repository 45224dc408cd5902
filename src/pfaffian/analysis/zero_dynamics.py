"""Zero dynamics: the motion that outputs under a law leave free, and its stability. [chhabra14 5.3, not analysed there]

Momenta that a symmetry conserves, without a motor along it, do not belong to the zero dynamics: they remain constant, and are
counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.analysis.linearise import SPLIT, linearise
from pfaffian.analysis.linearised import Linearised
from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values, velocities
from pfaffian.evaluate.single_values import as_number
from pfaffian.evaluate.symmetry import conserved_fields
from pfaffian.maths.span import complement
from pfaffian.maths.spectrum import spectrum
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.step.closed_loop import command_of
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.momentum import momenta
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered

ERRORS = ("output_error", "velocity_error")
"""Signals in which a law records the errors of its outputs."""

GROWING = 1e-6
"""Real part [1/s] above which a disturbance grows; one that only drifts has an eigenvalue of zero up to rounding."""


@dataclass(frozen=True, eq=False)
class ZeroDynamics:
    """The zero dynamics near a state, x_dot = A x: motions that change no output, at constant conserved momenta.

    places, speeds: numbers of displacements and speeds that the outputs leave free.   conserved: number of further speeds,
        momenta conserved by a symmetry: neither stable nor unstable, and not part of x.
    A: (n, n) [1/s], n = places + speeds.   eigenvalues: (n,) [1/s], the least stable first.
    dq: (nq, n), dv: (nv, n) changes of q and v for unit entries of x, over q_names and v_names; unit in the metric of M.
    """

    displacements: int
    speeds: int
    conserved: int
    A: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]

    @property
    def eigenvalues(self) -> np.ndarray:
        """(n,) eigenvalues of A [1/s], the least stable first."""
        return spectrum(self.A).values

    @property
    def unstable(self) -> bool:
        """Whether any of these motions grows; one that only drifts, with a zero eigenvalue, does not count."""
        return bool((self.eigenvalues.real > GROWING).any())

    def __str__(self) -> str:
        others = f", and {self.conserved} conserved momenta" if self.conserved else ""
        lines = [f"the outputs leave {self.displacements} displacements and {self.speeds} speeds{others}"]
        return "\n".join(lines + [f"  {x.real:12.6g} {x.imag:+12.6g}i 1/s" for x in self.eigenvalues])


def zero_dynamics(
    m: Mechanism, control: Control, q: Any = None, v: Any = None, u: Any = None, *, t: float = 0.0, parameters: Any = None
) -> ZeroDynamics:
    """The zero dynamics of a law's outputs, linearised: the part of `pf.linearise` that leaves the output errors as they are.

        A = Z^T (d x_dot / dx) Z,   C Z = 0,   C = d(errors, conserved momenta)/dx

    with x the state of the closed loop and Z an orthonormal basis. The time of the reference is held constant. Along a steady
    motion, one with constant C, the eigenvalues decide whether it is stable; for any other use `zero_dynamics_along`.

    Args:
        m: the mechanism.
        control: a law that records output_error and velocity_error, such as `control.concurrent`.
        q, v: one state at which both errors are about zero, (n,) or {name: number}; None: neutral, at rest.
        u: (n,) or {name: number}, inputs of the law; zero if None.
        t: time [s].
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
    Returns:
        places, speeds: numbers of displacements and speeds that the outputs leave free.
        conserved: number of further speeds, momenta conserved by a symmetry: neither stable nor unstable, and not part of x.
        A: (n, n) [1/s], n = places + speeds; eigenvalues: (n,) [1/s], the least stable first; unstable: whether some motion
            grows.
        dq: (nq, n), dv: (nv, n) changes of q and v for unit entries of x, unit in the metric of M; q_names, v_names of
            their rows.
    Raises ModelError: a law without these signals; a batch, a state off the constraints, a law or force without a derivative
    there, a joint with a distribution.

    Example:
        A crane whose trolley is held at its place: the load swings at sqrt(g / l) = 1.808 rad/s.

        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m, _ = pf.read("zoo:crane")
        >>> law = control.concurrent([control.output("trolley", "position", 0.0, axes=(0,), stiffness=1, damping=2)])
        >>> abs(pf.analysis.zero_dynamics(m, law).eigenvalues).round(3)
        array([1.808, 1.808])
    """
    as_mechanism(m)
    if not isinstance(control, Control):
        raise ModelError(f"zero_dynamics: a control law is needed, such as control.concurrent([...]), got {brief(control)}")
    near = linearise(m, q, v, u, t=t, parameters=parameters, control=control)
    names = input_names(m, control)
    given = [
        configurations(m, q),
        velocities(m, v),
        as_batch(u, names, np.zeros(len(names)), "u"),
        parameter_values(m, parameters),
    ]
    q0, v0, w0, p0 = (x[0] for x in given)
    still = tuple(n for n in m.wrench_names if not w0[names.index(n)])
    at = [q0, v0, w0, control.z, as_number(t, "t"), p0]
    errors = _along(_error_slopes(m, control, law_digest(control, m)), at, near)
    momentum = _along(_momentum_slopes(m, still, tuple(p0.tolist())), [q0, v0, p0], near)
    Z, conserved = _inside(errors, momentum)
    half, k, n = len(errors) // 2, sum(name.startswith("d") for name in near.states), len(near.states)
    fixed = errors[:half, :k]
    displacements = k - (
        int(np.linalg.matrix_rank(fixed, rtol=1e-9)) if fixed.size else 0
    )  # NumPy 2.0 has no rank of an empty array
    return ZeroDynamics(
        displacements,
        Z.shape[1] - displacements,
        conserved,
        Z.T @ near.A @ Z,
        near.dq[:, :n] @ Z,
        near.dv[:, :n] @ Z,
        near.q_names,
        near.v_names,
    )


def _along(slopes: ca.Function, at: list[Any], near: Linearised) -> np.ndarray:
    """(rows, n) derivatives along the linearised state x, from `slopes` along q and v at the arguments `at`."""
    by_q, by_v = (np.array(x) for x in slopes(*at))
    return by_q @ near.dq + by_v @ near.dv


def _inside(errors: np.ndarray, momentum: np.ndarray) -> tuple[np.ndarray, int]:
    """Orthonormal columns that change neither errors nor conserved momenta, and how many momenta the errors leave free."""
    free = complement(errors, SPLIT)
    within = momentum @ free / max(np.abs(momentum).max(initial=0.0), 1e-300)
    inner = complement(np.where(np.abs(within) > SPLIT, within, 0), SPLIT)
    return free @ inner, free.shape[1] - inner.shape[1]


@remembered(16)
def _error_slopes(m: Mechanism, control: Control, law: str) -> ca.Function:
    """(q, v, w, z, t, p) -> derivatives of the errors along q and v."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    signals = command_of(T, control, Scheme(), z, w).signals
    missing = [name for name in ERRORS if name not in signals]
    if missing:
        raise ModelError(f"zero_dynamics: the law records no {', '.join(missing)}; control.concurrent does")
    errors = ca.vertcat(*[signals[name] for name in ERRORS])
    return ca.Function("shown", [T.q, T.v, w, z, T.t, m.p_symbols], [ca.jacobian(errors, x) for x in (T.q, T.v)])


@remembered(16)
def _momentum_slopes(m: Mechanism, still: tuple[str, ...], p: tuple[float, ...]) -> ca.Function:
    """(q, v, p) -> derivatives along q and v of the momenta that symmetries conserve while these inputs are zero."""
    T = symbols(m)
    mu = ca.densify(conserved_fields(T, still, np.array(p)).T @ momenta(T))
    return ca.Function("kept", [T.q, T.v, m.p_symbols], [ca.jacobian(mu, x) for x in (T.q, T.v)])
