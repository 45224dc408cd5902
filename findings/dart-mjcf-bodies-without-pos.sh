#!/bin/sh
# Tools: DART 6.20.0 (dartpy), beside MuJoCo 4.0.0
# Behaviour: a body of an MJCF file without pos stands at the origin of its parent. DART puts it at its first geom and
#   then adds the place of that geom once more: hinge and mass centre are off. With pos="0 0 0", which says the same,
#   it is right. Without a message it also welds a body with <freejoint/> to the world (<joint type="free"/> is read),
#   and leaves out gravity of <option>.
# Consequence: links twice as far away as they should be, and robots that do not fall. Give every body a pos, write
#   joint type="free", and compare mass centres.
# Source: MuJoCo documentation, XML reference: body/pos, body/freejoint, option/gravity
# Seen:
#   body without pos: mass centre at x = 0.4 in MuJoCo, 0.8 in DART
#   body pos="0 0 0": mass centre at x = 0.4 in MuJoCo, 0.4 in DART
#   <freejoint/> degrees of freedom in MuJoCo and DART: (6, 0)
#   <joint type="free"/> degrees of freedom in MuJoCo and DART: (6, 6)
#   gravity -1.6 in the file: -1.6 in MuJoCo, -9.81 in DART
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 dartpy==6.20.0
"$python" -I - <<'END'
from pathlib import Path

import dartpy as dart
import mujoco

ARM = '<body {}><joint axis="0 1 0"/><geom size=".1" mass="2" pos=".4 0 0"/></body>'
FREE = '<body pos="0 0 1">{}<geom size=".1" mass="2"/></body>'


def both(body, option=""):
    file = Path("robot.xml").resolve()
    file.write_text(f'<mujoco model="robot">{option}<worldbody>{body}</worldbody></mujoco>')
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    world = dart.utils.MjcfParser.readWorld(dart.common.Uri.createFromPath(str(file)))
    return m, d, world


centres = []
for place in ("", 'pos="0 0 0"'):
    m, d, world = both(ARM.format(place))
    there = world.getSkeleton(0).getCOM()
    centres.append((float(d.xipos[1, 0]), round(float(there[0]), 9)))
    print(f"body {place or 'without pos'}: mass centre at x =", centres[-1][0], "in MuJoCo,", centres[-1][1], "in DART")
freedoms = []
for joint in ("<freejoint/>", '<joint type="free"/>'):
    m, d, world = both(FREE.format(joint))
    freedoms.append((m.nv, world.getSkeleton(0).getNumDofs()))
    print(joint, "degrees of freedom in MuJoCo and DART:", freedoms[-1])
m, d, world = both(ARM.format('pos="0 0 0"'), '<option gravity="0 0 -1.6"/>')
print("gravity -1.6 in the file:", float(m.opt.gravity[2]), "in MuJoCo,", float(world.getGravity()[2]), "in DART")
assert centres == [(0.4, 0.8), (0.4, 0.4)] and freedoms == [(6, 0), (6, 6)] and world.getGravity()[2] < -9
END
