"""A mechanism as a function, model or environment of other programs: CasADi's optimisers, acados, JAX, PyTorch, Gymnasium.

acados_model          x, u, p, xdot, rate and step as expressions, and as files
jax_function          a JAX function with derivatives, jit and vmap; needs the package jax
torch_function        a PyTorch function with derivatives and batches; needs the package torch
vector_environment    many copies of a machine as a vector environment of Gymnasium; needs the package gymnasium

The first three are built on the functions that `pf.casadi_function` returns.
"""

from pfaffian import lazy
from pfaffian.differentiation.acados_model import acados_model as acados_model
from pfaffian.differentiation.jax_function import jax_function as jax_function
from pfaffian.differentiation.torch_function import torch_function as torch_function

if lazy.TYPE_CHECKING:
    from typing import Any

    from pfaffian.simulate.run.environment import vector_environment as vector_environment

__dir__ = lazy.lister(globals(), ["vector_environment"])


def __getattr__(name: str) -> "Any":
    """Import the environment when it is first used, since its class inherits from one of gymnasium."""
    if name != "vector_environment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pfaffian.simulate.run.environment import vector_environment

    return vector_environment
