#!/bin/sh
# Tools: Drake 1.51.1
# Behaviour: a discrete MultibodyPlant holds its outputs from one step to the next. At a state that was set by hand
#   before any step, the port reaction_forces gives exactly zero, without a warning, and after a step the forces of
#   that step. With SetUseSampledOutputPorts(False) before Finalize it belongs to the state.
# Consequence: load tables, static analyses and tests that set positions and read a port get 0 N, or the forces of
#   another position.
# Source: Drake, class MultibodyPlant: output port sampling, SetUseSampledOutputPorts
# Seen:
#   ports by default: [0.0, 29.43, 29.43]  with SetUseSampledOutputPorts(False): [29.43, 29.43, 0.0]
. "$(dirname "$0")/common.sh"
needs drake==1.51.1
"$python" -I - <<'END'
from math import pi

from pydrake.all import MultibodyPlant, RevoluteJoint, Simulator, SpatialInertia, UnitInertia


def forces(sampled):
    """Force in the hinge of a pendulum of 3 kg: hanging; after one step; raised to the horizontal after it."""
    plant = MultibodyPlant(0.001)
    body = plant.AddRigidBody("load", SpatialInertia(3.0, [0, 0, -1], UnitInertia(1, 1, 0)))
    hinge = plant.AddJoint(RevoluteJoint("hinge", plant.world_frame(), body.body_frame(), [0, 1, 0]))
    plant.SetUseSampledOutputPorts(sampled)
    plant.Finalize()
    simulator = Simulator(plant)
    context = simulator.get_mutable_context()
    port, seen = plant.get_reaction_forces_output_port(), []
    for angle, end in ((0, None), (0, 0.001), (pi / 2, None)):
        if end:
            simulator.AdvanceTo(end)
        hinge.set_angle(context, angle)
        force = port.Eval(context)[0].translational()
        seen.append(round(float(sum(force**2)) ** 0.5, 2))
    return seen


ports, state = forces(True), forces(False)
print("ports by default:", ports, " with SetUseSampledOutputPorts(False):", state)
assert ports == [0, 29.43, 29.43] and state == [29.43, 29.43, 0]
END
