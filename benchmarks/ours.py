"""Our side: a kernel of accelerations with all its arrays laid out beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import pfaffian as pf
from pfaffian.kernel.call.kernel import Kernel, from_program


def acceleration(m: pf.Mechanism, formulation: str, strict: bool = True) -> Kernel:
    """Kernel (q, v, u, p, t) -> v_dot."""
    made = pf.compile_terms(m, {"v_dot": lambda T: pf.FORMULATIONS[formulation](T).v_dot}, backend="c").kernel
    return made if strict else from_program(made.program, backend="c", strict=False)


def prepared(
    kernel: Kernel, m: pf.Mechanism, q: np.ndarray, v: np.ndarray, u: np.ndarray, order: str = "F"
) -> tuple[Callable[[], object], np.ndarray]:
    """A call that fills the returned array (runs, nv).

    order: "F", each coordinate's runs next to each other; "C", each run's coordinates next to each other.
    """
    q, v, u = (np.array(x, order=order) for x in (q, v, u))  # type: ignore[call-overload]
    out = np.empty((len(q), m.nv), order=order)  # type: ignore[call-overload]
    return partial(kernel, q, v, u, m.p_defaults, np.zeros(1), out=(out,)), out
