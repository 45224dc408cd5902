#!/bin/sh
# Tools: Newton 1.8.0, beside MuJoCo 4.0.0
# Behaviour: the joints of one MJCF body act one after the other, each at its own pos. Newton makes one joint of them,
#   which slides first and turns afterwards, about one place. A slide behind a hinge is no longer turned by it, and of
#   two hinges at different places one is misplaced. At q = 0, and for joints at the origin of the body with the
#   slides first, both agree. No warning.
# Consequence: telescopes, cranes and hips with offsets move otherwise. Write one body for each joint.
# Source: MuJoCo documentation, XML reference: body/joint
# Seen:
#   slide, hinge at q = (0.5, 0.5): the boom is at [0.5 0.  0. ] in MuJoCo, [0.5 0.  0. ] in Newton
#   hinge, slide at q = (0.5, 0.5): the boom is at [ 0.439  0.    -0.24 ] in MuJoCo, [0.5 0.  0. ] in Newton
#   hinges at two places at q = (0.5, 0.5): the boom is at [-0.096 -0.012  0.021] in MuJoCo, [ 0.012 -0.023  0.042] in Newton
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 mujoco==4.0.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import newton
import numpy as np
import warp as wp

wp.config.log_level, wp.config.kernel_cache_dir = wp.LOG_ERROR, str(Path("kernels").resolve())
FILE = '<mujoco model="crane"><worldbody><body name="boom">{}<geom size=".1"/></body></worldbody></mujoco>'
HINGE, SLIDE = '<joint axis="0 1 0"/>', '<joint type="slide" axis="1 0 0"/>'
CASES = {
    "slide, hinge": SLIDE + HINGE,
    "hinge, slide": HINGE + SLIDE,
    "hinges at two places": '<joint axis="1 0 0" pos=".1 0 0"/><joint axis="0 1 0" pos="0 0 .2"/>',
}
gaps = {}
for name, joints in CASES.items():
    Path("crane.xml").write_text(FILE.format(joints))
    m = mujoco.MjModel.from_xml_path("crane.xml")
    d = mujoco.MjData(m)
    d.qpos[:] = 0.5
    mujoco.mj_forward(m, d)
    builder = newton.ModelBuilder()
    builder.add_mjcf("crane.xml")
    model = builder.finalize(device="cpu")
    state = model.state()
    newton.eval_fk(model, wp.full(2, 0.5, dtype=float, device="cpu"), model.joint_qd, state)
    there = state.body_q.numpy()[0, :3]
    gaps[name] = float(np.linalg.norm(there - d.xpos[1]))
    print(f"{name} at q = (0.5, 0.5): the boom is at {d.xpos[1].round(3)} in MuJoCo, {there.round(3)} in Newton")
assert gaps["slide, hinge"] < 1e-6 and gaps["hinge, slide"] > 0.1 and gaps["hinges at two places"] > 0.01
END
