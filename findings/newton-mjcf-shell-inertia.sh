#!/bin/sh
# Tools: Newton 1.8.0, Drake 1.51.1 and Pinocchio 4.1.0, beside MuJoCo 4.0.0
# Behaviour: a geom with shellinertia="true" has its mass in its surface. Newton takes it for solid without a word,
#   Drake with a warning; Pinocchio refuses the file.
# Consequence: hollow parts have two thirds of their inertia or less. Write <inertial>.
# Source: MuJoCo documentation, XML reference: body/geom shellinertia
# Seen:
#   moment of inertia in kg m^2: {'MuJoCo': 0.12, 'Newton': 0.072, 'Drake': 0.072}
#   Pinocchio: Shell inertia computation is not supported yet.
#   The attribute 'shellinertia' found in a 'geom' tag is currently unsupported and will be ignored
. "$(dirname "$0")/common.sh"
needs newton==1.8.0 drake==1.51.1 pin==4.1.0 mujoco==4.0.0
cat > ball.xml <<'END'
<mujoco model="ball"><worldbody><body name="ball"><joint axis="0 1 0"/><geom size=".3" mass="2" shellinertia="true"/></body>
</worldbody></mujoco>
END
"$python" -I - 2> warnings <<'END'
import mujoco
import newton
import pinocchio as pin
import warp as wp
from pydrake.all import MultibodyPlant, Parser

wp.config.log_level = wp.LOG_ERROR
builder = newton.ModelBuilder()
builder.add_mjcf("ball.xml")
plant = MultibodyPlant(0.0)
Parser(plant).AddModels("ball.xml")
plant.Finalize()
moments = {
    "MuJoCo": mujoco.MjModel.from_xml_path("ball.xml").body_inertia[1, 0],
    "Newton": builder.body_inertia[0][0, 0],
    "Drake": plant.CalcMassMatrix(plant.CreateDefaultContext())[0, 0],
}
moments = {tool: round(float(moment), 4) for tool, moment in moments.items()}
try:
    pin.buildModelFromMJCF("ball.xml")
    refused = "no"
except Exception as error:
    refused = str(error).strip().splitlines()[-1]
print("moment of inertia in kg m^2:", moments)
print("Pinocchio:", refused)
assert moments == {"MuJoCo": 0.12, "Newton": 0.072, "Drake": 0.072} and "not supported" in refused
END
grep -o "The attribute 'shellinertia'.*will be ignored" warnings
