"""A mechanism as a function of JAX: compiled kernels behind a callback, with exact derivatives.

The derivative of a call is a matrix of a kernel times the tangents, which JAX can transpose: one rule serves jvp and grad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError, install
from pfaffian.evaluate.arrays import as_number, one_of
from pfaffian.kernel.call.kernel import Backend
from pfaffian.kernel.remember import remembered as by_key
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.casadi_functions import motion_with_matrices
from pfaffian.simulate.simulation import Simulation
from pfaffian.simulate.step import Scheme
from pfaffian.simulate.step_slopes import check_differentiable, with_matrices
from pfaffian.simulate.system import as_system
from pfaffian.terms.digest import digest
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import symbols

KINDS = ("forward_dynamics", "step")
"""What `jax_function` makes."""


class _Pair(NamedTuple):
    """value: inputs -> (n,) numbers.   slopes: inputs -> the same, and their derivatives by all inputs, column by column."""

    value: kernel.Kernel
    slopes: kernel.Kernel


def jax_function(
    m: Mechanism,
    what: str = "step",
    *,
    step: float | None = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> Callable[..., Any]:
    """A mechanism as a function of JAX arrays, for jit, grad, jvp, jacobian, vmap and scan; in double precision.

        forward_dynamics   f(q, v, u, p) -> v_dot
        step               f(x, u, p) -> x after a step under inputs that are held, x = [q; v]

    Values and derivatives come from the library's kernels by a callback, a batch of `vmap` in one call; derivatives are those
    of `derivatives` and `step_derivatives`, by the numbers in q. There are no second derivatives, and the callback runs on the
    processor: a program on a GPU waits for it.

    Args:
        m: the mechanism.
        what: "step" (default) or "forward_dynamics".
        step: length of the step [s], needed for "step".
        scheme: of "step", with the integrator rk4 or euler; `pf.Scheme()` by default.
        threads: that share a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        the function; p may be left out, and is then that of the mechanism's defaults, as may u of a mechanism without inputs.
    Raises ModelError: jax is not installed, or has no double precision switched on; what `step_derivatives` refuses.

    Example:
        >>> import jax, pfaffian as pf
        >>> jax.config.update("jax_enable_x64", True)
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> f = pf.bridges.jax_function(m, "forward_dynamics", backend="numpy")
        >>> print(jax.jacobian(f)(jax.numpy.zeros(1), jax.numpy.zeros(1)).round(2))  # -g / l
        [[-9.81]]
    """
    as_mechanism(m)
    jax = _need_jax()
    one_of(what, KINDS, "jax_function: what")
    if what == "step":
        if step is None:
            raise ModelError("jax_function: give the length of a step too, such as step=0.01 [s]")
        s = Simulation(as_system(m), scheme or Scheme(), None, (), ("q", "v"), ())
        check_differentiable(s, "jax_function")
        pair = _step(s, as_number(step, "step", above=0), backend)
    else:
        if step is not None or scheme is not None:
            raise ModelError("jax_function: forward_dynamics takes no step or scheme; 'step' does")
        pair = _forward(m, backend)
    f = _differentiable(jax, pair, threads)
    states = pair.value.shape.inputs[:-2]

    def of_arrays(*arrays: Any) -> Any:
        if not len(states) <= len(arrays) <= len(states) + 2:
            raise ModelError(f"{m.name}: {len(states)} to {len(states) + 2} arrays are needed, got {len(arrays)}")
        rest = (np.zeros(m.nu), m.p_defaults)[len(arrays) - len(states) :]
        return f(*[jax.numpy.asarray(x, dtype=float) for x in (*arrays, *rest)])

    return of_arrays


def _need_jax() -> Any:
    try:
        import jax
    except ImportError:
        raise ModelError(f"jax_function needs the package jax: run {install('jax')}") from None
    if jax.numpy.zeros(0).dtype != np.float64:
        raise ModelError('jax_function computes in double precision: call jax.config.update("jax_enable_x64", True) first')
    return jax


def _differentiable(jax: Any, pair: _Pair, threads: int) -> Callable[..., Any]:
    sizes, (n,) = pair.value.shape.inputs, pair.value.shape.outputs
    width = sum(sizes)

    def call(of: kernel.Kernel, *arrays: Any) -> tuple[np.ndarray, ...]:
        lead = np.broadcast_shapes(*[np.shape(x)[:-1] for x in arrays])
        count = int(np.prod(lead))
        flat = [np.broadcast_to(np.asarray(x), (*lead, np.shape(x)[-1])).reshape(count, np.shape(x)[-1]) for x in arrays]
        found = of(*flat, threads=threads)
        return tuple(np.ascontiguousarray(x).reshape(*lead, x.shape[-1]) for x in found)

    def shaped(count: int) -> Any:
        return jax.ShapeDtypeStruct((count,), np.float64)

    @jax.custom_jvp
    def f(*arrays: Any) -> Any:
        return jax.pure_callback(lambda *x: call(pair.value, *x)[0], shaped(n), *arrays, vmap_method="broadcast_all")

    @f.defjvp
    def f_jvp(arrays: Any, tangents: Any) -> Any:
        shapes = shaped(n), shaped(n * width)
        value, columns = jax.pure_callback(lambda *x: call(pair.slopes, *x), shapes, *arrays, vmap_method="broadcast_all")
        return value, jax.numpy.concatenate(tangents) @ columns.reshape(width, n)

    return f


@remembered(16)
def _forward(m: Mechanism, backend: Backend) -> _Pair:
    T = symbols(m)
    inputs, values, J = motion_with_matrices(T)
    inputs, t = inputs[:-1], inputs[-1]
    outputs = [ca.substitute(x, t, 0) for x in (values[0], ca.vec(J[: m.nv, :-1]))]
    f, g = ca.Function("value", inputs, outputs[:1]), ca.Function("slopes", inputs, outputs)
    key = f"jax forward dynamics {digest(m)}"
    return _Pair(*[kernel.compile(h, key=f"{key} {h.name()}", backend=backend) for h in (f, g)])


@by_key(16)
def _step(s: Simulation, h: float, backend: Backend) -> _Pair:
    parts = with_matrices(s)
    (x, w, p, t, length), there = parts.step(s)
    J = ca.vec(ca.densify(ca.jacobian(there, ca.vertcat(x, w, p))))
    whole = ca.Function("whole", [x, w, p, t, length], [there, J])
    step, other = s.traced.step, ca.SX(0)
    value = ca.Function("value", [x, w, p], [step(x, w, w, p, other, h)[0]])
    slopes = ca.Function("slopes", [x, w, p], whole.call([x, w, p, other, ca.SX(h)]))
    key = f"jax step {h.hex()} {s.key}"
    return _Pair(*[kernel.compile(g, key=f"{key} {g.name()}", backend=backend) for g in (value, slopes)])
