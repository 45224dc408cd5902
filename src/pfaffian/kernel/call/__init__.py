"""Kernels and rollouts: found by a key, or traced, printed and built, and then called with batches of runs.

cache_keys.py    compiled objects found by a key or by a skeleton; Programs found by a key
device.py        the time loop on a device
diagnose.py      a report on what this machine offers for compiling kernels, for `pfaffian doctor`
external.py      `compile_external`: Functions as a library that `casadi.external` loads
kernel.py        `compile`: a casadi.Function as a function of arrays that evaluates a batch of runs
memory.py        memory and threads for compiled code
native.py        calls of a compiled function by ctypes
obtain.py        compiled code from the store, or Programs that the interpreter runs until compiling pays
recipe.py        recipes: what to compile and how
rollout.py       `compile_rollout`: time loop, recording and status of every run in compiled code
tiers.py         from the interpreter to compiled code, between two calls
"""
