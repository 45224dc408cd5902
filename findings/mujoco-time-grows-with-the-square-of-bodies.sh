#!/bin/sh
# Tools: MuJoCo 4.0.0
# Behaviour: the time to read a model, or to build one with MjSpec.worldbody.add_body, grows with the square of the number of
#   its elements, also where all bodies hang on the world: four times as many bodies take some thirty times as long to read.
# Consequence: worlds of many robots are built slowly: 10,000 bodies of one joint and one geom take some ten seconds, of which
#   the compiler takes two. Keep the compiled model as MJB (mj_saveModel) if it is read again and again.
# Source: MuJoCo documentation, model editing, which tells no cost
# Seen:
#   reading 2500 and 10000 bodies: 0.3 and 9.7 s, 32 times as long; building them: 0.4 and 12.0 s, 31 times
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0
"$python" -I - <<'END'
import time

import mujoco

SMALL, LARGE = 2_500, 10_000


def read(n):
    bodies = "".join('<body pos="0 0 1"><joint/><geom size=".1"/></body>' for _ in range(n))
    text = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
    begin = time.process_time()
    mujoco.MjSpec.from_string(text)
    return time.process_time() - begin


def build(n):
    spec = mujoco.MjSpec()
    begin = time.process_time()
    for _ in range(n):
        body = spec.worldbody.add_body(pos=[0, 0, 1])
        body.add_joint()
        body.add_geom(size=[0.1, 0.1, 0.1])
    return time.process_time() - begin


def compared(of):
    of(100)
    small, large = min(of(SMALL) for _ in range(3)), of(LARGE)
    return f"{small:.1f} and {large:.1f} s, {large / small:.0f} times", large / small


(reading, slower), (building, also) = compared(read), compared(build)
print(f"reading {SMALL} and {LARGE} bodies: {reading} as long; building them: {building}")
assert min(slower, also) > 8, "it is nearly linear now, which would be 4"
END
