"""A mechanism as a function of JAX: compiled kernels behind a callback, with exact derivatives.

The derivative of a call is the kernel's matrix of derivatives times the tangents. JAX can transpose this product, so that one
rule serves jvp and grad.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pfaffian.differentiation.differentiable import ValueAndSlopes, pair_of
from pfaffian.differentiation.step_slopes import refuse_accuracy
from pfaffian.errors import ModelError, brief, optional
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.simulate.step.step import Scheme


def jax_function(
    m: Mechanism,
    what: str = "step",
    *,
    step: float | None = None,
    accuracy: None = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> Callable[..., Any]:
    """A mechanism as a function of JAX arrays, for jit, grad, jvp, jacobian, vmap and scan, in double precision.

        forward_dynamics   f(q, v, u, p) -> v_dot
        step               f(x, u, p) -> x after one step under constant inputs, x = [q; v]

    A callback computes values and derivatives with the library's kernels, a batch of `vmap` in one call. The derivatives are
    those of `derivatives` and `step_derivatives`, taken by the entries of q. There are no second derivatives. The callback
    runs on the CPU, and a program on a GPU waits for it.

    Args:
        m: the mechanism.
        what: "step" (default) or "forward_dynamics". Rules for a whole run are `jvp` and `vjp` of `accurate_rollout`.
        step: length of the step [s], required for "step".
        accuracy: refused, since steps of one length have none; `accurate_rollout` takes it.
        scheme: how "step" integrates, with the integrator rk4, euler, tr-bdf2, dopri5 or dop853; `pf.Scheme()` by default.
        threads: number of threads that share a batch, 1 by default.
        backend: "auto": interpreted at once, and compiled in the background where that pays; "c": compiled first;
            "interpreter" or "numpy": only interpreted, in C or by NumPy. All give the same bits.
    Returns:
        the function. p may be left out and is then the mechanism's defaults; so may u, which is then zero.
    Raises ModelError: jax is not installed, or its double precision is switched off; an array has another precision or size,
        or more than one axis; the machine or scheme is one that `step_derivatives` refuses.

    Example:
        >>> import jax, pfaffian as pf
        >>> jax.config.update("jax_enable_x64", True)
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> f = pf.bridges.jax_function(m, "forward_dynamics", backend="numpy")
        >>> print(jax.jacobian(f)(jax.numpy.zeros(1), jax.numpy.zeros(1)).round(2))  # -g / l
        [[-9.81]]
    """
    refuse_accuracy(accuracy, "jax_function")
    as_mechanism(m)
    jax = _need_jax()
    pair = pair_of(m, what, step, scheme, threads, backend, "jax_function")
    f = _differentiable(jax, pair)

    def called(*arrays: Any) -> Any:
        whole = [_in_double(jax, x) for x in pair.whole(arrays, m.name)]
        pair.check(whole, m.name, batch="jax.vmap makes a batch")
        return f(*whole)

    return called


def _in_double(jax: Any, x: Any) -> Any:
    """x as an array in double precision. Raises ModelError: it is not real, or has another floating-point type."""
    try:
        array = jax.numpy.asarray(x)
        if jax.numpy.iscomplexobj(array):
            raise TypeError
    except (TypeError, ValueError):
        raise ModelError(f"jax_function: {brief(x)} is not an array of real numbers") from None
    if array.dtype != np.float64 and jax.numpy.issubdtype(array.dtype, jax.numpy.floating):
        raise ModelError(f'jax_function computes in double precision, got an array of {array.dtype}; call x.astype("float64")')
    return array.astype(float)


def _need_jax() -> Any:
    """The module jax. Raises ModelError: it is not installed, or its double precision is switched off."""
    jax = optional("jax", "jax", "jax_function needs")
    if jax.numpy.zeros(0).dtype != np.float64:
        raise ModelError('jax_function computes in double precision: call jax.config.update("jax_enable_x64", True) first')
    return jax


def _differentiable(jax: Any, pair: ValueAndSlopes) -> Callable[..., Any]:
    """The function of a pair of kernels, values and derivatives, with its rule for jvp; it has no second derivatives."""
    sizes, (n,) = pair.value.shape.inputs, pair.value.shape.outputs
    width = sum(sizes)

    def shaped(count: int) -> Any:
        return jax.ShapeDtypeStruct((count,), np.float64)

    back = partial(jax.pure_callback, vmap_method="broadcast_all")

    @jax.custom_jvp
    def f(*arrays: Any) -> Any:
        return back(lambda *x: pair.call(pair.value, x)[0], shaped(n), *arrays)

    @jax.custom_jvp
    def slopes(*arrays: Any) -> Any:
        return back(lambda *x: pair.call(pair.slopes, x), (shaped(n), shaped(n * width)), *arrays)

    @slopes.defjvp
    def slopes_jvp(arrays: Any, tangents: Any) -> Any:
        raise ModelError("jax_function has no second derivatives")

    @f.defjvp
    def f_jvp(arrays: Any, tangents: Any) -> Any:
        value, columns = slopes(*arrays)
        return value, jax.numpy.concatenate(tangents) @ columns.reshape(width, n)

    return f
