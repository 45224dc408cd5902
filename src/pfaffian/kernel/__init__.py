"""casadi.Function -> Program -> C lanes or NumPy: compile, cache, call. Knows no robot."""

from pfaffian.kernel.diagnose import diagnose
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.kernel import Kernel, compile
from pfaffian.kernel.keyed import noted
from pfaffian.kernel.program import Program
from pfaffian.kernel.rollout import Rollout, RolloutResult, compile_rollout
from pfaffian.kernel.trace import trace
from pfaffian.kernel.waiting import listening

__all__ = [
    "Kernel",
    "Program",
    "Rollout",
    "RolloutResult",
    "compile",
    "compile_rollout",
    "diagnose",
    "evaluate",
    "listening",
    "noted",
    "trace",
]
