"""A mechanism as a function of PyTorch: compiled kernels behind an autograd function, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from pfaffian.differentiation.differentiable import ValueAndSlopes, pair_of
from pfaffian.differentiation.step_slopes import refuse_accuracy
from pfaffian.errors import ModelError, optional
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import real_array
from pfaffian.simulate.step.step import Scheme


def torch_function(
    m: Mechanism,
    what: str = "step",
    *,
    step: float | None = None,
    accuracy: None = None,
    scheme: Scheme | None = None,
    threads: int = 1,
    backend: Backend = "auto",
) -> Callable[..., Any]:
    """A mechanism as a function of PyTorch's tensors, for backward, `torch.func` and optimisers; in double precision.

        forward_dynamics   f(q, v, u, p) -> v_dot
        step               f(x, u, p) -> x after a step under constant inputs, x = [q; v]

    Leading axes are a batch, computed in one call; arrays without them are the same for the whole batch. Tensors in the memory
    of the CPU are read in place, by DLPack, and results are returned in the same way. Forward and backward derivatives are
    those of `derivatives` and `step_derivatives`, with respect to the entries of q; there are no second derivatives.

    Args:
        m: the mechanism.
        what: "step" (default) or "forward_dynamics". Rules for a whole run are `jvp` and `vjp` of `accurate_rollout`.
        step: length of the step [s], needed for "step".
        accuracy: refused, since steps of one length have none; `accurate_rollout` takes it.
        scheme: of "step", with the integrator rk4, euler, tr-bdf2, dopri5 or dop853; `pf.Scheme()` by default.
        threads: number of threads that share a batch, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
    Returns:
        the function. p may be left out for the mechanism's defaults, and then u as well, which is then zero.
    Raises ModelError: torch is not installed; a tensor of another precision or size; what `step_derivatives` refuses.

    Example:
        >>> from importlib.util import find_spec
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> if find_spec("torch"):
        ...     import torch
        ...
        ...     f = pf.bridges.torch_function(m, "forward_dynamics", backend="numpy")
        ...     q = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        ...     f(q, torch.zeros(1, dtype=torch.float64)).backward()
        ...     assert round(float(q.grad), 6) == -9.81  # -g / l
    """
    refuse_accuracy(accuracy, "torch_function")
    as_mechanism(m)
    torch = optional("torch", "torch", "torch_function needs")
    pair = pair_of(m, what, step, scheme, threads, backend, "torch_function")
    rule = _rule(torch, pair)

    @torch.compiler.disable  # PyTorch cannot trace into a kernel; its graph continues after the call
    def f(*arrays: Any) -> Any:
        tensors = [_in_double(torch, x) for x in pair.whole(arrays, m.name)]
        pair.check(tensors, m.name)
        return rule.apply(*tensors)

    return f


def _in_double(torch: Any, x: Any) -> Any:
    """x as a tensor of float64; lists and whole numbers are converted. Raises ModelError: another precision, not real."""
    if not torch.is_tensor(x):
        x = torch.tensor(np.array(real_array(x, "torch_function")))
    if x.is_complex():
        raise ModelError(f"torch_function takes real numbers, got a tensor of {x.dtype}")
    if not x.is_floating_point():
        return x.double()
    if x.dtype != torch.float64:
        raise ModelError(f"torch_function computes in double precision, got a tensor of {x.dtype}; call x.double()")
    return x


def _batched(torch: Any) -> Any:
    """The base class of autograd functions that `torch.vmap` can give a further batch axis, before those of their tensors."""

    class Batched(torch.autograd.Function):
        @classmethod
        def vmap(cls, info: Any, axes: tuple[Any, ...], *tensors: Any) -> tuple[Any, int]:
            most = max(x.dim() - (axis is not None) for x, axis in zip(tensors, axes, strict=True))
            moved = []
            for x, axis in zip(tensors, axes, strict=True):
                y = x.unsqueeze(0) if axis is None else x.movedim(axis, 0)
                moved.append(y.reshape(y.shape[0], *[1] * (most + 1 - y.dim()), *y.shape[1:]))
            return cls.apply(*moved), 0

    return Batched


def _rule(torch: Any, pair: ValueAndSlopes) -> Any:
    """The autograd function: one kernel computes its values, another the Jacobian for its derivatives."""
    Batched: Any = _batched(torch)
    first = np.cumsum([0, *pair.value.shape.inputs])

    def of_kernel(tensors: tuple[Any, ...], of: Any) -> Any:
        # DLPack shares memory even between versions of PyTorch and NumPy that were not built for each other.
        values = pair.call(of, tuple(np.from_dlpack(x.detach().cpu()) for x in tensors))[-1]
        return torch.from_dlpack(values).to(tensors[0].device)

    def by_input(tensors: tuple[Any, ...]) -> Any:
        """(..., inputs, n) the transposed Jacobian."""
        return JacobianRule.apply(*tensors).unflatten(-1, (int(first[-1]), -1))

    class JacobianRule(Batched):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return of_kernel(tensors, pair.slopes)

        @staticmethod
        def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
            """Stores nothing, since second derivatives are refused."""

        @staticmethod
        def backward(context: Any, *ways: Any) -> Any:
            raise ModelError("torch_function has no second derivatives")

        jvp = backward

    class Rule(Batched):
        @staticmethod
        def forward(*tensors: Any) -> Any:
            return of_kernel(tensors, pair.value)

        @staticmethod
        def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
            context.save_for_backward(*inputs)
            context.save_for_forward(*inputs)

        @staticmethod
        def backward(context: Any, weight: Any) -> tuple[Any, ...]:
            tensors = context.saved_tensors
            by_all = (by_input(tensors) @ weight.unsqueeze(-1)).squeeze(-1)
            parts = [by_all[..., a:b] for a, b in pairwise(first)]
            return tuple(part.sum_to_size(x.shape) for part, x in zip(parts, tensors, strict=True))

        @staticmethod
        def jvp(context: Any, *ways: Any) -> Any:
            slopes = by_input(context.saved_tensors)
            known = [(way, a, b) for way, (a, b) in zip(ways, pairwise(first), strict=True) if way is not None]
            return sum((way.unsqueeze(-2) @ slopes[..., a:b, :]).squeeze(-2) for way, a, b in known)

    return Rule
