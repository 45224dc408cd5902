"""The zero dynamics along a motion: how small disturbances that the outputs do not see grow in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pfaffian.analysis.zero_dynamics import ZeroDynamics, zero_dynamics
from pfaffian.control.law import Control
from pfaffian.control.reason import lowest, mainly, participation
from pfaffian.errors import RunError, RunWarning, notice
from pfaffian.evaluate.arrays import as_batch, configurations, velocities
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.spectrum import TIE
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.record.result import causes
from pfaffian.simulate.run.run import run
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.step import Scheme

if TYPE_CHECKING:
    import xarray as xr

NEAR = 1e-6
"""Size of a disturbance [m, rad, m/s, rad/s] whose motion approximates the derivative."""

GROWN = 10.0
"""Factor of growth of a disturbance along a motion above which a warning is given."""


@dataclass(frozen=True, eq=False)
class ZeroDynamicsAlong:
    """The zero dynamics along a motion, x(t) = transition(t) x(0): how disturbances develop that change no output.

    result: the run itself, as `run` returns it.   time: (K,) [s].   at: (K,) `ZeroDynamics`, each with the basis of its x.
    transition: (K, n, n).   growth: (K,) largest size that a unit disturbance has reached, in the metric of M.
    departure: (K,) part of these motions that has left the zero dynamics; rounding, unless outputs have changed.
    """

    result: xr.Dataset
    time: np.ndarray
    at: tuple[ZeroDynamics, ...]
    transition: np.ndarray
    growth: np.ndarray
    departure: np.ndarray

    @property
    def unstable(self) -> bool:
        """Whether any disturbance grows by more than a factor of GROWN."""
        return bool(self.growth.max(initial=0.0) > GROWN)

    @property
    def exponents(self) -> np.ndarray:
        """(n,) complex [1/s], the logarithms of the last transition's eigenvalues divided by its time, the least stable first:
        Floquet exponents, if the motion has returned to its start."""
        values = np.linalg.eigvals(self.transition[-1]).astype(complex)
        found = np.log(values) / (self.time[-1] - self.time[0])
        unit = TIE * np.abs(found).max(initial=0.0) or 1.0  # rounding does not order equal ones
        return found[np.lexsort((found.imag, -np.round(found.real / unit)))]

    def __str__(self) -> str:
        return f"{self.at[0]}\nalong {self.time[-1] - self.time[0]:g} s: {_growth_message(self)}"


def zero_dynamics_along(
    m: Mechanism,
    control: Control,
    q: Any = None,
    v: Any = None,
    u: Any = None,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    start: float = 0.0,
    parameters: Any = None,
    scheme: Scheme | None = None,
    backend: Backend = "auto",
) -> ZeroDynamicsAlong:
    """The zero dynamics of a law's outputs, linearised about a motion; `zero_dynamics` does the same at one state.

    The motion from q, v is run in one batch with 2 n others, displaced from it in both directions along a basis of the
    disturbances that change neither outputs nor conserved momenta. Their differences are the transition matrix of the
    variational equation, to about 1e-8. The eigenvalues at each recorded time are returned too. The cost is a run of 2 n + 1
    machines and K linearisations, K being the number of recorded times.

    Args:
        m: the mechanism.
        control: a law that records output_error and velocity_error, such as `control.concurrent`.
        q, v: the start, at which both errors are about zero, (n,) or {name: number}; None: neutral, at rest.
        u: (n,) or {name: number}, inputs of the law; zero if None.
        duration, step, start: simulated time, time step and time at the start [s].
        every: number of steps between two records, at which the motion is linearised.
        parameters: {name: value} or an array in the mechanism's order; defaults if None.
        scheme: formulation, integrator and drift correction; `Scheme()` if None.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        result: the run itself, as `run` returns it.   time: (K,) [s].
        at: (K,) zero dynamics at each time, each with the basis of its x.
        transition: (K, n, n), x(t) = transition(t) x(0).
        growth: (K,) largest size that a unit disturbance has reached, in the metric of M; unstable: whether it exceeds 10.
        departure: (K,) part of these motions that has left the zero dynamics; rounding, unless outputs have changed.
        exponents: (n,) [1/s], Floquet exponents if the motion has returned to its start.
    Raises ModelError: arguments that `zero_dynamics` or `run` refuses.
    Raises RunError: a run stops at once. Where a run stops later, the result ends there.
    Warns RunWarning: a disturbance grows more than tenfold, with the time and the coordinates that it moves; as `run`.

    Example:
        A crane whose trolley is held at its place: the load swings at sqrt(g / l) = 1.808 rad/s.

        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m, _ = pf.read("zoo:crane")
        >>> place = control.output("trolley", "position", 0.0, axes=(0,), stiffness=1, damping=2)
        >>> law, how = control.concurrent([place]), {"duration": 0.2, "step": 0.01, "every": 20, "backend": "numpy"}
        >>> found = pf.analysis.zero_dynamics_along(m, law, **how)
        >>> found.unstable, abs(found.exponents).round(3)
        (False, array([1.808, 1.808]))
    """
    as_mechanism(m)
    first = zero_dynamics(m, control, q, v, u, t=start, parameters=parameters)
    q0, v0 = configurations(m, q)[0], velocities(m, v)[0]
    n = len(first.A)
    size = NEAR / np.maximum(np.abs(np.vstack([first.dq, first.dv])).max(axis=0, initial=0.0), 1e-300)
    starts = [np.vstack([x, x + (dx * size).T, x - (dx * size).T]) for x, dx in ((q0, first.dq), (v0, first.dv))]
    names = input_names(m, control)
    result = run(
        m, *starts, duration=duration, step=step, every=every, start=start, u=as_batch(u, names, np.zeros(len(names)), "u")[0],
        control=control, scheme=scheme, backend=backend, record="all", squeeze=False, parameters=parameters,
    )  # fmt: skip
    good = int(np.isfinite(result["q"].values).all(axis=(0, 2)).sum())
    if not good:
        raise RunError(f"zero_dynamics_along: one of the displaced runs stops at once: {next(filter(None, causes(result)))}")
    time = result["time"].values[:good]
    states = np.concatenate([result[x].values[:, :good] for x in ("q", "v")], axis=2)
    moved = (states[1 : n + 1] - states[n + 1 :]) / (2 * size[:, None, None])
    at, transition, departure = [], [], []
    for k, t in enumerate(time):
        here = zero_dynamics(m, control, states[0, k, : m.nq], states[0, k, m.nq :], u, t=t, parameters=parameters)
        basis, change = np.vstack([here.dq, here.dv]), moved[:, k].T
        x = np.linalg.lstsq(basis, change, rcond=None)[0]
        at.append(here)
        transition.append(x)
        departure.append(np.abs(basis @ x - change).max(initial=0.0) / max(np.abs(change).max(initial=0.0), 1e-300))
    Phi = np.array(transition).reshape(good, len(at[-1].A), n)
    along = ZeroDynamicsAlong(
        result.isel(run=0),
        time,
        tuple(at),
        Phi,
        np.linalg.norm(Phi, 2, axis=(1, 2)) if n else np.zeros(good),
        np.array(departure),
    )
    if along.unstable:
        notice(f"zero dynamics: {_growth_message(along)}; choose other outputs, or another motion", RunWarning)
    return along


def _growth_message(x: ZeroDynamicsAlong) -> str:
    """Message about the disturbance that grows the most: its growth, and the coordinates that it moves."""
    if not x.unstable:
        return f"a disturbance that changes no output grows {x.growth.max(initial=0.0):.3g} times at most"
    k = int(np.argmax(x.growth))
    grown = lowest(-x.transition[k] @ x.transition[k].T)
    moves = mainly(participation(x.at[k].dq @ grown), x.at[k].q_names, 3)
    return f"a disturbance that changes no output grows {x.growth[k]:.3g} times until t = {x.time[k]:.6g} s, mainly of {moves}"
