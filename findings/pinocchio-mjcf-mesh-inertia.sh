#!/bin/sh
# Tools: Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: a geom of type mesh has in Pinocchio 1 kg and the moments 1, 1, 1 kg m^2 about the origin of the geom,
#   whatever its shape, its size and its attributes mass and density are. No warning.
# Consequence: robots whose links have meshes and no <inertial> move as if every mesh were the same heavy wheel. Write
#   <inertial> into every body, as MuJoCo computes it.
# Source: MuJoCo documentation, XML reference: asset/mesh, geom/mass, body/inertial
# Seen:
#   mass="2": MuJoCo 2.000 kg, moments [0.034 0.025 0.016], centre [0.075 0.1   0.125]
#     Pinocchio 1.0 kg, moments [1. 1. 1.], centre [0. 0. 0.]
#   density="500": MuJoCo 5.000 kg, moments [0.085 0.063 0.04 ], centre [0.075 0.1   0.125]
#     Pinocchio 1.0 kg, moments [1. 1. 1.], centre [0. 0. 0.]
. "$(dirname "$0")/common.sh"
needs mujoco==4.0.0 pin==4.1.0
"$python" -I - <<'END'
from pathlib import Path

import mujoco
import pinocchio as pin

POINTS = ((0, 0, 0), (0.3, 0, 0), (0, 0.4, 0), (0, 0, 0.5))
FACES = ((1, 3, 2), (1, 2, 4), (2, 3, 4), (1, 4, 3))
Path("wedge.obj").write_text(
    "".join(f"v {x} {y} {z}\n" for x, y, z in POINTS) + "".join(f"f {a} {b} {c}\n" for a, b, c in FACES)
)
FILE = """<mujoco><asset><mesh name="wedge" file="wedge.obj"/></asset><worldbody><body name="arm">
  <joint axis="0 1 0"/><geom type="mesh" mesh="wedge" {}/></body></worldbody></mujoco>"""
seen = []
for attribute in ('mass="2"', 'density="500"'):
    Path("arm.xml").write_text(FILE.format(attribute))
    m, p = mujoco.MjModel.from_xml_path("arm.xml"), pin.buildModelFromMJCF("arm.xml")
    body = p.inertias[1]
    print(
        f"{attribute}: MuJoCo {m.body_mass[1]:.3f} kg, moments {m.body_inertia[1].round(3)}, centre {m.body_ipos[1].round(3)}"
    )
    print(f"  Pinocchio {body.mass} kg, moments {body.inertia.diagonal()}, centre {body.lever}")
    seen.append((round(float(m.body_mass[1]), 6), body.mass, *body.inertia.diagonal(), *body.lever))
assert seen == [(2, 1, 1, 1, 1, 0, 0, 0), (5, 1, 1, 1, 1, 0, 0, 0)]
END
