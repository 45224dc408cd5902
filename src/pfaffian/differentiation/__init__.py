"""Derivatives of steps and of whole runs, and the machine as a function of other libraries.

accurate_rollout.py    a run to an accuracy with its derivatives, its steps frozen
acados_model.py        a mechanism as the model of an optimal control problem
casadi_functions.py    named CasADi functions of a mechanism
curvature.py           dynamics and a step whose second derivatives are exact
differentiable.py      a mechanism as a function of arrays for automatic differentiation
jax_function.py        a mechanism as a function of JAX
jumps.py               forces, laws and rows that jump with the state, which derivatives refuse
many_steps.py          what derivatives of many steps share
sensitivity.py         derivatives of one step and of many steps by the initial state, the inputs and the parameters
step_slopes.py         derivatives of a step, with given derivatives of the functions that it calls
torch_function.py      a mechanism as a function of PyTorch
"""
