"""casadi.Function -> Program -> C lanes or NumPy: compile, cache and call functions of numbers, whatever they model.

build/         C text -> loaded library: the compiler, the store of compiled objects
call/          kernels and rollouts: found by a key, or traced, printed and built
functions/     elementary functions from IEEE operations only
program/       casadi.Function -> Program, the passes that simplify it, and its interpreter in NumPy
text/          program -> C: vector lanes for this machine, portable C99 for any processor, and CUDA C++
remember.py    caches of function results
"""

from pfaffian.kernel.build.waiting import listening
from pfaffian.kernel.call.cache_keys import noted
from pfaffian.kernel.call.diagnose import diagnose
from pfaffian.kernel.call.kernel import Kernel, compile
from pfaffian.kernel.call.rollout import Rollout, compile_rollout
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.numpy_loop import RolloutResult, Span
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.trace import guarded, trace

__all__ = [
    "Kernel",
    "Program",
    "Rollout",
    "RolloutResult",
    "Span",
    "compile",
    "compile_rollout",
    "diagnose",
    "evaluate",
    "guarded",
    "listening",
    "noted",
    "trace",
]
