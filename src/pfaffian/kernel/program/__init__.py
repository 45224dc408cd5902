"""casadi.Function -> Program, the passes that simplify it, and its specification: interpreter and time loop in NumPy.

encode.py            Program -> integer words that the interpreter in C runs (see text/interpreter.h)
hoist.py             the pass `hoist`: what depends on the parameters alone is computed once
interpret.py         the NumPy interpreter: the specification for every printer of C
listing.py           the instruction list of a CasADi Function, and its translation to a Program
numpy_loop.py        the time loop on NumPy arrays
ops.py               the operations that a Program may contain
passes.py            passes: pure functions Program -> Program
program.py           the Program: a straight-line list of scalar operations, each value assigned once
program_bytes.py     programs to bytes and back
reciprocal.py        the pass `share_reciprocals`
selection.py         the pass `select`: one selection instead of several operations
share.py             the pass `share`: what a step and an observation both need is computed once
skeleton.py          skeletons of Programs
stages.py            a Program cut into C functions of about a thousand operations
trace.py             tracing: casadi.Function of SX -> Program
trial_programs.py    small Programs on which the interpreter and the passes in C are tested
"""
