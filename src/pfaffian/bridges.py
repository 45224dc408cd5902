"""A mechanism as a function or model of other programs, and components of others as laws: acados, JAX, PyTorch, FMUs.

acados_model    x, u, p, xdot, rate and step as expressions, and as files
jax_function    a JAX function with derivatives, jit and vmap; needs the package jax
torch_function  a PyTorch function with derivatives and batches; needs the package torch
fmu_law         an FMU of another tool as a law that drives actuators; needs the package fmpy

The first three are built on the functions that `pf.casadi_function` returns.
"""

from pfaffian.differentiation.acados_model import acados_model as acados_model
from pfaffian.differentiation.jax_function import jax_function as jax_function
from pfaffian.differentiation.torch_function import torch_function as torch_function
from pfaffian.interchange.fmu_law import fmu_law as fmu_law
