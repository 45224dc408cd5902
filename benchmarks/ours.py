"""Our side of the comparisons: a kernel of accelerations with preallocated arrays, and repeated runs from the same start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pfaffian as pf


def acceleration(m: pf.Mechanism, formulation: str, strict: bool = True, backend: str = "c") -> Any:
    """Kernel (q, v, u, p, t) -> v_dot."""
    v_dot = {"v_dot": lambda T: pf.FORMULATIONS[formulation](T).v_dot}
    return pf.compile_terms(m, v_dot, backend=backend, strict=strict).kernel


def again(
    m: pf.Mechanism | pf.reduction.AbstractSystem,
    q: np.ndarray,
    v: np.ndarray,
    steps: int,
    u: Any = None,
    backend: str = "c",
    **how: Any,
) -> tuple[Callable[[], np.ndarray], dict[str, int]]:
    """A call that makes this many steps from q, v (runs, n) and returns the last states, [q, v, ...]; and its operations.

    u: constant inputs.   how: options of `pf.stepper`.
    """
    s = pf.stepper(m, runs=len(q), backend=backend, **how)
    s.reset(q, v)
    start = s.save()

    def call() -> np.ndarray:
        s.restore(start)
        s.step(u, steps=steps)
        return s.save().x

    return call, s.operations


def prepared(
    kernel: Any, m: pf.Mechanism, q: np.ndarray, v: np.ndarray, u: np.ndarray, order: str = "F"
) -> tuple[Callable[[], object], np.ndarray]:
    """A call that fills the returned array (runs, nv).

    order: "F", the runs of each coordinate are contiguous; "C", the coordinates of each run are contiguous.
    """
    q, v, u = (np.array(x, order=order) for x in (q, v, u))  # type: ignore[call-overload]
    out = np.empty((len(q), m.nv), order=order)  # type: ignore[call-overload]
    return partial(kernel, q, v, u, m.p_defaults, np.zeros(1), out=(out,)), out
