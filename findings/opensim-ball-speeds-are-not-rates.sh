#!/bin/sh
# Tools: OpenSim 4.6
# Behaviour: the rotational coordinates of a BallJoint or FreeJoint have values, body-fixed angles about x, y and z,
#   and speeds; the speeds are not the rates of the values, but the angular velocity of the child in the axes of the
#   parent. Of a GimbalJoint, whose coordinates have the same names and values, the speeds are the rates.
# Consequence: speeds from differences of measured angles move one joint kind as measured and the other not; near zero
#   angles nobody notices. Convert them, or use a GimbalJoint.
# Source: OpenSim and Simbody documentation, BallJoint, GimbalJoint, MobilizedBody::Ball
# Seen:
#   speeds (0, 0, 1) rates of the values of a BallJoint: [-0.984, 0.296, 1.371]
#   speeds (0, 0, 1) rates of the values of a GimbalJoint: [0.0, 0.0, 1.0]
. "$(dirname "$0")/common.sh"
needs opensim==4.6
"$python" -I - <<'END'
import opensim as osim


def rates(kind, angles, speeds):
    """Rates of the three values at those angles and speeds."""
    model = osim.Model()
    body = osim.Body("body", 1, osim.Vec3(0), osim.Inertia(1, 1, 1, 0, 0, 0))
    model.addBody(body)
    joint = kind("joint", model.getGround(), osim.Vec3(0), osim.Vec3(0), body, osim.Vec3(0), osim.Vec3(0))
    model.addJoint(joint)
    state = model.initSystem()
    for i in range(3):
        joint.get_coordinates(i).setValue(state, angles[i])
        joint.get_coordinates(i).setSpeedValue(state, speeds[i])
    model.realizeVelocity(state)
    return [round(joint.get_coordinates(i).getQDotValue(state), 3) for i in range(3)]


angles, speeds = (0.3, 0.8, -0.4), (0, 0, 1)
ball, gimbal = rates(osim.BallJoint, angles, speeds), rates(osim.GimbalJoint, angles, speeds)
print("speeds", speeds, "rates of the values of a BallJoint:", ball)
print("speeds", speeds, "rates of the values of a GimbalJoint:", gimbal)
assert gimbal == [0, 0, 1] and abs(ball[0]) > 0.5
END
