"""A mechanism inside the programs of others: CasADi's optimisers, acados, JAX, PyTorch.

acados_model    x, u, p, xdot, rate and step as expressions, and as files
jax_function    a function of JAX, with derivatives, jit and vmap; needs the package jax
torch_function  a function of PyTorch, with derivatives and batches; needs the package torch

`pf.casadi_function` makes the functions that these are built of.
"""

from pfaffian.simulate.acados_model import acados_model as acados_model
from pfaffian.simulate.jax_function import jax_function as jax_function
from pfaffian.simulate.torch_function import torch_function as torch_function
