#!/bin/sh
# Tools: Drake 1.51.1, beside Pinocchio 4.1.0
# Behaviour: where the moments of inertia of a URDF link break the triangle inequality, Drake warns and takes those of a
#   ball of water of the same mass about the same mass centre. Where a link has moments but no mass, it takes a ball of
#   1 kg. Pinocchio takes the numbers of the file.
# Consequence: a robot with rounded or invented inertias has other ones in Drake, by any factor, and a foot of no mass
#   weighs 1 kg. Look for the warning, and correct such links before comparing dynamics.
# Source: URDF format, inertial: inertia; Drake's parser, which names the link
# Seen:
#   moments 1, 1, 3 of 8 kg: Drake 8.0 kg, 0.0493 kg m^2; Pinocchio 8.0 kg, 3.0000 kg m^2
#   moments 1, 1, 1 of 0 kg: Drake 1.0 kg, 0.0015 kg m^2; Pinocchio 0.0 kg, 1.0000 kg m^2
. "$(dirname "$0")/common.sh"
needs drake==1.51.1 pin==4.1.0
robot_of even.urdf hinge revolute "0 0 1" 'lower="-1" upper="1" effort="9" velocity="9"'
sed 's/mass value="1"/mass value="8"/; s/izz="1"/izz="3"/' even.urdf > slim.urdf
sed 's/mass value="1"/mass value="0"/' even.urdf > light.urdf
"$python" -I - 2> warnings <<'END'
import pinocchio as pin
from pydrake.all import MultibodyPlant, Parser

seen = []
for name, words in (("slim", "moments 1, 1, 3 of 8 kg"), ("light", "moments 1, 1, 1 of 0 kg")):
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(f"{name}.urdf")
    plant.Finalize()
    there = plant.GetBodyByName("moved").CalcSpatialInertiaInBodyFrame(plant.CreateDefaultContext())
    model = pin.buildModelFromUrdf(f"{name}.urdf")
    here = model.inertias[1]
    seen.append((there.get_mass(), there.CalcRotationalInertia().get_moments()[2], here.mass, here.inertia[2, 2]))
    print("{}: Drake {:.1f} kg, {:.4f} kg m^2; Pinocchio {:.1f} kg, {:.4f} kg m^2".format(words, *seen[-1]))
water = 0.4 * 8 * (3 * 8 / (4 * 3.141592653589793 * 1000)) ** (2 / 3)
assert abs(seen[0][1] - water) < 1e-6 and seen[0][3] == 3
assert abs(seen[1][0] - 1) < 1e-9 and seen[1][2:] == (0, 1)
END
grep -q warning warnings
