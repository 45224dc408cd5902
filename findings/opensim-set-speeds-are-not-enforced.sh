#!/bin/sh
# Tools: OpenSim 4.6
# Behaviour: setValue of a coordinate satisfies the constraints of the model; setSpeedValue does not, and neither does
#   assemble. Two pendulums are coupled by b = 3 a: the speed 1 given to a leaves that of b at 0. The Manager then
#   projects both by least squares, and a turns at 0.1.
# Consequence: quantities of the assembled state belong to a motion that is impossible, and the simulation is ten
#   times too slow, without a message. Set the speeds of all coordinates of a loop or coupler.
# Source: OpenSim documentation, Coordinate, CoordinateCouplerConstraint, Manager
# Seen:
#   values after setValue(a, 0.2): [0.2, 0.6]
#   speeds after setSpeedValue(a, 1) and assemble: [1.0, 0.0]
#   speeds in the run: [0.1, 0.3]
. "$(dirname "$0")/common.sh"
needs opensim==4.6
"$python" -I - <<'END'
import opensim as osim

osim.Logger.setLevelString("Warn")
model = osim.Model()
model.setGravity(osim.Vec3(0))
for name in "ab":
    body = osim.Body(name, 1, osim.Vec3(0), osim.Inertia(1, 1, 1, 0, 0, 0))
    model.addBody(body)
    joint = osim.PinJoint(f"pin_{name}", model.getGround(), body)
    joint.updCoordinate().setName(name)
    model.addJoint(joint)
coupler, names = osim.CoordinateCouplerConstraint(), osim.ArrayStr()
names.append("a")
coupler.setIndependentCoordinateNames(names)
coupler.setDependentCoordinateName("b")
coupler.setFunction(osim.LinearFunction(3, 0))
model.addConstraint(coupler)
state = model.initSystem()
a, b = model.getCoordinateSet().get("a"), model.getCoordinateSet().get("b")


def values(state):
    model.realizeVelocity(state)
    return [round(f(state), 3) for f in (a.getValue, b.getValue, a.getSpeedValue, b.getSpeedValue)]


a.setValue(state, 0.2)
print("values after setValue(a, 0.2):", values(state)[:2])
a.setSpeedValue(state, 1)
model.assemble(state)
assembled = values(state)
manager = osim.Manager(model)
manager.initialize(state)
end = values(manager.integrate(0.1))
print("speeds after setSpeedValue(a, 1) and assemble:", assembled[2:])
print("speeds in the run:", end[2:])
assert assembled == [0.2, 0.6, 1, 0] and end[2:] == [0.1, 0.3]
END
