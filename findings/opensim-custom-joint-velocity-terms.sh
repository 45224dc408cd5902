#!/bin/sh
# Tools: OpenSim 4.6
# Behaviour: a body on a CustomJoint whose three turns are functions of one coordinate (angle, 0.5 angle^2 and -angle^2
#   about z, y and x), without gravity and forces. By OpenSim's own kinetic energy, 1/2 M(q) u^2, its acceleration is
#   -1/2 M'(q) u^2 / M(q). OpenSim computes another one. With one turn and a slide the two agree.
# Consequence: a body that nothing drives gains or loses energy, in proportion to the cube of its speed; knees and shoulder
#   blades of public models, whose turns are splines of one angle, are accelerated wrongly when they move.
# Source: OpenSim documentation, CustomJoint, SpatialTransform; Lagrange's equation
# Seen:
#   a turn and a slide: acceleration -0.0603, by the kinetic energy -0.0603
#   three turns: acceleration -2.5689, by the kinetic energy -3.4351
. "$(dirname "$0")/common.sh"
needs opensim==4.6
"$python" -I - <<'END'
import opensim as osim

osim.Logger.setLevelString("Warn")


def function(*coefficients):
    return osim.PolynomialFunction(osim.Vector.createFromMat(__import__("numpy").array(coefficients, dtype=float)))


def acceleration(axes):
    """(found, by the kinetic energy) at q = 0.4 and u = 2.   axes: name -> coefficients, highest power first."""
    model = osim.Model()
    model.setGravity(osim.Vec3(0))
    body = osim.Body("body", 2, osim.Vec3(0.3, 0.2, 0.1), osim.Inertia(1, 2, 2.5, 0, 0, 0))
    model.addBody(body)
    transform = osim.SpatialTransform()
    names = osim.ArrayStr()
    names.append("q")
    for name, coefficients in axes.items():
        axis = getattr(transform, f"upd_{name}")()
        axis.setCoordinateNames(names)
        axis.set_function(function(*coefficients))
    transform.upd_rotation1().setAxis(osim.Vec3(0, 0, 1))
    transform.upd_rotation2().setAxis(osim.Vec3(0, 1, 0))
    transform.upd_rotation3().setAxis(osim.Vec3(1, 0, 0))
    joint = osim.CustomJoint("joint", model.getGround(), osim.Vec3(0), osim.Vec3(0), body, osim.Vec3(0), osim.Vec3(0), transform)
    model.addJoint(joint)
    state = model.initSystem()
    q = model.getCoordinateSet().get(0)

    def set_state(x, u):
        q.setValue(state, x)
        q.setSpeedValue(state, u)
        model.realizeAcceleration(state)

    def M(x):
        set_state(x, 1)
        return 2 * model.calcKineticEnergy(state)

    h = 1e-4
    right = -0.5 * (M(0.4 + h) - M(0.4 - h)) / (2 * h) * 2**2 / M(0.4)
    set_state(0.4, 2)
    return q.getAccelerationValue(state), right


one = acceleration({"rotation1": (1, 0), "translation1": (0.5, 0, 0)})
three = acceleration({"rotation1": (1, 0), "rotation2": (0.5, 0, 0), "rotation3": (-1, 0, 0)})
for what, (found, right) in (("a turn and a slide", one), ("three turns", three)):
    print(f"{what}: acceleration {found:.4f}, by the kinetic energy {right:.4f}")
assert abs(one[0] - one[1]) < 1e-6 and abs(three[0] - three[1]) > 0.1
END
