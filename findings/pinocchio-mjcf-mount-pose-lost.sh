#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: where the first body of an MJCF file has no joint, as the base of an arm on a wall or a ceiling,
#   Pinocchio drops its pose. The poses of fixed bodies farther down are kept.
# Consequence: the arm hangs in another direction. Below, the base is turned so that the hinge is vertical: MuJoCo
#   needs no torque to hold the arm, Pinocchio finds the full weight. Put the base into one more body without a pose,
#   or compare gravity torques at one configuration.
# Source: MuJoCo documentation, XML reference: body/pos, body/euler
# Seen:
#   base: hinge at [0.  0.  1.3], 0.000 N m hold the arm in MuJoCo,
#     at [0.  0.2 0. ], 3.924 N m in Pinocchio
#   base in a holder: hinge at [0.  0.  1.3], 0.000 N m hold the arm in MuJoCo,
#     at [0.  0.  1.3], 0.000 N m in Pinocchio
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

BASE = """<body name="base" pos="0 0 1.5" euler="-90 0 0"><geom size=".1" mass="4"/>
  <body name="arm" pos="0 .2 0"><joint axis="0 1 0"/><geom size=".1" mass="1" pos=".4 0 0"/></body></body>"""
HOLDER = f'<body name="holder">{BASE}</body>'
seen = []
for name, body in (("base", BASE), ("base in a holder", HOLDER)):
    Path("arm.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    m, p = mujoco.MjModel.from_xml_path("arm.xml"), pin.buildModelFromMJCF("arm.xml")
    d, data = mujoco.MjData(m), p.createData()
    mujoco.mj_forward(m, d)
    torque = pin.computeGeneralizedGravity(p, data, np.zeros(1))
    pin.forwardKinematics(p, data, np.zeros(1))
    seen += [abs(float(x[0])) for x in (d.qfrc_bias, torque)]
    print(f"{name}: hinge at {d.xanchor[0].round(3) + 0.0}, {seen[-2]:.3f} N m hold the arm in MuJoCo,")
    print(f"  at {data.oMi[1].translation.round(3) + 0.0}, {seen[-1]:.3f} N m in Pinocchio")
assert np.allclose(seen, [0, 3.924, 0, 0], atol=1e-9)
END
