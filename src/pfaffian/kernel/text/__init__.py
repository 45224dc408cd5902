"""Program -> C: vector lanes for this machine, portable C99 for any processor, and CUDA C++.

cuda.h                   names of C in CUDA, for the text of one lane
cuda_source.py           Programs -> CUDA C++: the C text for one lane, run by one thread for each run
device.h                 the time loop on a device, a thread for each run
driver.h                 evaluation of a batch of runs
encode.h                 encoding of a Program for the interpreter
external.h               calls of a Program as CasADi calls a function of a library
external_source.py       Programs -> C of a library that `casadi.external` loads
huge.h                   reduction of huge angles, lane by lane
interpreted.h            the interpreter's functions, in the form of those of compiled kernels
interpreter.h            the interpreter of encoded Programs
interpreter_source.py    the C text of the interpreter
listing.h                CasADi's instructions to the words of a Program
passes.h                 the passes
passes_source.py         the C text of the passes, of the translation of listings and of the encoding
passes_trial.h           the trial of the passes
portable.h               operations on single numbers, for C99
portable.py              Programs -> C99 for one run
ports.h                  arrays of the caller, with their strides
prelude.h                operations on lanes
reduction.h              exact reduction of a huge angle
rollout.h                the time loop on lanes
source.py                Program -> C
transpose.h              copies between rows of runs and lanes
units.py                 units of a long C text, compiled in parallel
"""
