"""A mechanism as a function of arrays for automatic differentiation: kernels for its values and for their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.differentiation.casadi_functions import motion_with_matrices
from pfaffian.differentiation.step_slopes import differentiable, with_matrices
from pfaffian.errors import ModelError, is_one_of
from pfaffian.evaluate.single_values import MOST_THREADS, as_number, as_whole, one_of
from pfaffian.kernel.call.recipe import Backend
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered

KINDS = ("forward_dynamics", "step")
"""Functions that can be differentiated."""

WHOLE = ("run", "rollout", "accurate_rollout")
"""Words for whole runs, whose derivatives are taken elsewhere."""


class ValueAndSlopes(NamedTuple):
    """The kernels of a function and of its derivatives.

    value: inputs -> (n,) values.   slopes: inputs -> the values, and their derivatives with respect to all inputs, column by
    column.   states: how many of the inputs are states; u and p follow them.   default: u and p of the mechanism.
    threads: number of threads that share a batch.
    """

    value: kernel.Kernel
    slopes: kernel.Kernel
    states: int
    default: tuple[np.ndarray, np.ndarray]
    threads: int

    def whole(self, arrays: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        """The arrays, completed by the defaults of u and p. Raises ModelError: there are too few or too many arrays."""
        if not self.states <= len(arrays) <= self.states + 2:
            raise ModelError(f"{name}: {self.states} to {self.states + 2} arrays are needed, got {len(arrays)}")
        return (*arrays, *self.default[len(arrays) - self.states :])

    def check(self, arrays: Sequence[Any], name: str, *, batch: str = "") -> None:
        """Raise ModelError unless each array has the size of its input.

        batch: advice on how to compute a batch, where arrays with leading axes are not allowed; "" where they are.
        """
        labels = ("x", "u", "p") if self.states == 1 else ("q", "v", "u", "p")
        for label, x, n in zip(labels, arrays, self.value.shape.inputs, strict=True):
            shape = tuple(x.shape)
            if shape[-1:] != (n,) or (batch and len(shape) > 1):
                more = f"; {batch}" if batch and shape[-1:] == (n,) else ""
                raise ModelError(f"{name}: {label} has shape {shape}: ({'' if batch else '..., '}{n},) is needed{more}")

    def call(self, k: kernel.Kernel, arrays: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
        """Evaluate a kernel of this function at arrays (..., n), whose leading axes are broadcast; return arrays (..., n)."""
        lead = np.broadcast_shapes(*[np.shape(x)[:-1] for x in arrays])
        count = int(np.prod(lead))
        flat = [np.broadcast_to(np.asarray(x), (*lead, np.shape(x)[-1])).reshape(count, np.shape(x)[-1]) for x in arrays]
        values = k(*flat, threads=self.threads)
        return tuple(np.ascontiguousarray(x).reshape(*lead, x.shape[-1]) for x in values)


def pair_of(
    m: Mechanism, what: str, step: float | None, scheme: Scheme | None, threads: int, backend: Backend, name: str
) -> ValueAndSlopes:
    """The kernels of "forward_dynamics" or "step".

    name: the public function, which the messages name. Raises ModelError: arguments that do not fit.
    """
    if is_one_of(what, WHOLE):
        raise ModelError(
            f"{name} takes no whole run: pf.calculus.rollout and, to an accuracy, pf.calculus.accurate_rollout compute one; "
            "their jvp and vjp are the rules of its derivatives; 'step' is one step of it"
        )
    one_of(what, KINDS, f"{name}: what")
    workers = as_whole(threads, "threads", most=MOST_THREADS)
    if what == "forward_dynamics":
        if step is not None or scheme is not None:
            raise ModelError(f"{name}: forward_dynamics takes no step or scheme; 'step' does")
        kernels, states = _forward(m, backend), 2
    else:
        if step is None:
            raise ModelError(f"{name}: give the length of a step too, such as step=0.01 [s]")
        s = differentiable(m, None, scheme, name)
        kernels, states = _step(s, as_number(step, "step", above=0), backend), 1
    value, slopes = kernels
    return ValueAndSlopes(value, slopes, states, (np.zeros(m.nu), np.asarray(m.p_defaults)), workers)


@remembered(16)
def _forward(m: Mechanism, backend: Backend) -> tuple[kernel.Kernel, ...]:
    """The kernels of (q, v, u, p) -> v_dot at t = 0, and of its derivatives."""
    T = symbols(m)
    inputs, values, J = motion_with_matrices(T)
    inputs, t = inputs[:-1], inputs[-1]
    outputs = [ca.substitute(x, t, 0) for x in (values[0], ca.vec(J[: m.nv, :-1]))]
    f, g = ca.Function("value", inputs, outputs[:1]), ca.Function("slopes", inputs, outputs)
    return _compiled(f"differentiable forward dynamics {digest(m)}", backend, f, g)


@by_key(16)
def _step(s: Simulation, h: float, backend: Backend) -> tuple[kernel.Kernel, ...]:
    """The kernels of (x, u, p) -> x after a step of h [s] from t = 0, and of its derivatives."""
    parts = with_matrices(s)
    (x, w, p, t, length), x_next = parts.step(s)
    J = ca.vec(ca.densify(ca.jacobian(x_next, ca.vertcat(x, w, p))))
    whole = ca.Function("whole", [x, w, p, t, length], [x_next, J])
    step, zero = s.traced.step, ca.SX(0)
    value = ca.Function("value", [x, w, p], [step(x, w, w, p, zero, h)[0]])
    slopes = ca.Function("slopes", [x, w, p], whole.call([x, w, p, zero, ca.SX(h)]))
    return _compiled(f"differentiable step {h.hex()} {s.key}", backend, value, slopes)


def _compiled(key: str, backend: Backend, *functions: ca.Function) -> tuple[kernel.Kernel, ...]:
    """The functions as kernels.   key: common part of their keys in the cache."""
    return tuple(kernel.compile(f, key=f"{key} {f.name()}", backend=backend) for f in functions)
