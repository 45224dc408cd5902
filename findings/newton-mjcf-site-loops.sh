#!/bin/sh
# Tools: Newton 1.8.0, beside MuJoCo 4.0.0
# Behaviour: a <connect> or <weld> by site1 and site2 brings the two sites together in MuJoCo. Newton reads site1
#   alone: it closes the loop between that point and the point of the other body that coincides with it in the pose of
#   the file. No warning.
# Consequence: a loop that the file leaves open in its rest pose is closed where it stands, with another geometry, and
#   site2 has no effect. Write body1, body2 and anchor in a pose in which the loop is closed, or move the sites
#   together first.
# Source: MuJoCo documentation, XML reference: equality/connect (site1, site2)
# Seen:
#   site of c at z = 0.1: a gap of -0.6 m in MuJoCo; Newton joins z = 0.1 of a and z = -0.5 of c
#   site of c at z = 0.2: a gap of -0.7 m in MuJoCo; Newton joins z = 0.1 of a and z = -0.5 of c
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 mujoco==4.0.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import newton
import warp as wp

wp.config.log_level = wp.LOG_ERROR
LINK = '<body name="{0}" pos="0 0 .3"><joint axis="0 1 0"/><geom size=".05"/><site name="{0}" pos="0 0 {2}"/>{1}</body>'
FILE = """<mujoco model="arm"><worldbody>{}</worldbody><equality><connect site1="a" site2="c"/></equality></mujoco>"""
seen = []
for height in (0.1, 0.2):
    chain = LINK.format("a", LINK.format("b", LINK.format("c", "", height), 0), 0.1)
    Path("arm.xml").write_text(FILE.format(chain))
    m = mujoco.MjModel.from_xml_path("arm.xml")
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    builder = newton.ModelBuilder()
    builder.add_mjcf("arm.xml")
    a, c = (round(float(x[-1][2]), 3) for x in (builder.joint_X_p, builder.joint_X_c))
    seen.append((round(float(d.efc_pos[2]), 3), a, c))
    print(f"site of c at z = {height}: a gap of {seen[-1][0]} m in MuJoCo; Newton joins z = {a} of a and z = {c} of c")
assert seen == [(-0.6, 0.1, -0.5), (-0.7, 0.1, -0.5)]
END
