#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: buildModelAndConstraintsFromMJCF returns constraints with active="false" like the others, leaves out
#   <joint> couplings, and places a <weld> that has both anchor and relpose elsewhere than MuJoCo. No warning.
# Consequence: loops that a file keeps open are closed, gears are missing, and hands that are welded to a load hold it
#   elsewhere. Compare the residuals of all constraints with MuJoCo's efc_pos at one configuration.
# Source: MuJoCo documentation, XML reference: equality (active), equality/joint, equality/weld (anchor, relpose)
# Seen:
#   connect: gap [0.337, 0.0, -0.235] in MuJoCo, [[0.337, 0.0, -0.235]] in Pinocchio
#   connect, inactive: gap [] in MuJoCo, [[0.337, 0.0, -0.235]] in Pinocchio
#   joint: gap [-0.1] in MuJoCo, [] in Pinocchio
#   weld with anchor: gap [-0.236, 0.0, 0.299] in MuJoCo, [[-0.236, 0.0, 0.299]] in Pinocchio
#   weld with relpose: gap [-0.098, 0.2, -0.259] in MuJoCo, [[-0.098, 0.2, -0.259]] in Pinocchio
#   weld with both: gap [-0.414, 0.0, -0.275] in MuJoCo, [[-0.236, -0.232, -0.04]] in Pinocchio
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

LINK = '<body name="{0}" pos="0 0 .3"><joint name="{0}" axis="0 1 0"/><geom size=".05"/>{1}</body>'
TREE = LINK.format("a", LINK.format("b", LINK.format("c", "")))
ANCHOR, POSE = 'anchor=".1 .2 .3"', 'relpose=".1 .2 .3 .8 .6 0 0"'
CASES = {
    "connect": '<connect name="e" body1="a" body2="c" anchor=".1 0 0"/>',
    "connect, inactive": '<connect name="e" body1="a" body2="c" anchor=".1 0 0" active="false"/>',
    "joint": '<joint name="e" joint1="a" joint2="b"/>',
    "weld with anchor": f'<weld name="e" body1="a" body2="c" {ANCHOR}/>',
    "weld with relpose": f'<weld name="e" body1="a" body2="c" {POSE}/>',
    "weld with both": f'<weld name="e" body1="a" body2="c" {ANCHOR} {POSE}/>',
}
q, seen = np.array([0.3, 0.4, 0.5]), {}
for name, equality in CASES.items():
    Path("arm.xml").write_text(f"<mujoco><worldbody>{TREE}</worldbody><equality>{equality}</equality></mujoco>")
    m = mujoco.MjModel.from_xml_path("arm.xml")
    d = mujoco.MjData(m)
    d.qpos[:] = q
    mujoco.mj_forward(m, d)
    p, points, frames = pin.buildModelAndConstraintsFromMJCF("arm.xml")
    data = p.createData()
    pin.forwardKinematics(p, data, q)
    gaps = [
        (data.oMi[c.joint1_id] * c.joint1_placement).translation - (data.oMi[c.joint2_id] * c.joint2_placement).translation
        for c in [*points, *frames]
    ]
    seen[name] = d.efc_pos[:3].round(3).tolist(), [(gap + 0.0).round(3).tolist() for gap in gaps]
    print(f"{name}: gap {seen[name][0]} in MuJoCo, {seen[name][1]} in Pinocchio")
for name in ("connect", "weld with anchor", "weld with relpose"):
    assert seen[name][1] == [seen[name][0]]
assert seen["connect, inactive"] == ([], seen["connect"][1]) and seen["joint"][1] == []
assert abs(np.subtract(*(np.array(x).ravel() for x in seen["weld with both"]))).max() > 0.1
END
