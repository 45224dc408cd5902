#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: some values of one MJCF file mean other things in Pinocchio. The axis of axisangle is not normalised, so
#   that the "rotation" of the joint's placement stretches; ref shifts the limits although the coordinate counts as
#   MuJoCo's; limited="false" is ignored; geoms whose contype and conaffinity are 0 have no mass; a <default> after
#   the worldbody is not applied; gravity of <option> is not read. No exception, no warning.
# Consequence: a controller computed with one model and simulated with the other is off by tens of per cent, or its
#   limits exclude the true range. Compare mass matrix and limits of both once for each file.
# Source: MuJoCo documentation, XML reference: frame orientations, joint/ref, joint/limited, geom/contype,
#   option/gravity
# Seen:
#   axisangle: determinant of Pinocchio's rotation 12.877
#   range -10..20 with ref 30: degrees in MuJoCo [-10.0, 20.0]  in Pinocchio [-40.0, -10.0]
#   limited=false: limited in MuJoCo False  limits in Pinocchio [-10.0, 20.0]
#   geom without contact: mass in MuJoCo 1.0  in Pinocchio 0.0
#   default after the worldbody, armature in MuJoCo 5.0  in Pinocchio 0.0
#   gravity in MuJoCo [0.0, 0.0, -1.6]  in Pinocchio [0.0, 0.0, -9.81]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin


def both(bodies, rest=""):
    Path("robot.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody>{rest}</mujoco>")
    return mujoco.MjModel.from_xml_path("robot.xml"), pin.buildModelFromMJCF("robot.xml")


def body(joint="", frame="", geom="", child="", name="arm"):
    return f'<body name="{name}" {frame}><joint axis="0 1 0" {joint}/><geom size=".1" mass="1" {geom}/>{child}</body>'


def limits(m, p):
    """Limits in degrees in MuJoCo and in Pinocchio."""
    pinocchio = p.lowerPositionLimit[0], p.upperPositionLimit[0]
    return [np.degrees(x).round(2).tolist() for x in (m.jnt_range[0], pinocchio)]


m, p = both(body(child=body(name="forearm", frame='axisangle="0 0 3 30"')))
stretch = float(np.linalg.det(p.jointPlacements[2].rotation))
print(f"axisangle: determinant of Pinocchio's rotation {stretch:.3f}")
m, p = both(body('range="-10 20" ref="30"'))
shifted = limits(m, p)
print("range -10..20 with ref 30: degrees in MuJoCo", shifted[0], " in Pinocchio", shifted[1])
m, p = both(body('limited="false" range="-10 20"'))
switched = bool(m.jnt_limited[0]), limits(m, p)[1]
print("limited=false: limited in MuJoCo", switched[0], " limits in Pinocchio", switched[1])
m, p = both(body(geom='contype="0" conaffinity="0"'))
ghost = float(m.body_mass[1]), p.inertias[1].mass
print("geom without contact: mass in MuJoCo", ghost[0], " in Pinocchio", ghost[1])
m, p = both(body(), '<default><joint armature="5"/></default>')
late = float(m.dof_armature[0]), float(p.armature[0])
print("default after the worldbody, armature in MuJoCo", late[0], " in Pinocchio", late[1])
m, p = both(body(), '<option gravity="0 0 -1.6"/>')
weight = m.opt.gravity.tolist(), p.gravity.linear.tolist()
print("gravity in MuJoCo", weight[0], " in Pinocchio", weight[1])
assert stretch > 1.5 and shifted[0] != shifted[1] and switched == (False, [-10, 20]) and ghost == (1, 0)
assert late == (5, 0) and weight == ([0, 0, -1.6], [0, 0, -9.81])
END
