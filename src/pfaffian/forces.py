"""Ready-made forces between bodies, in joints, and of the fluid around them.

Springs, friction, drag and propellers go into `pf.mechanism(..., forces=[...])`, thrusters and transmissions into its
actuators. Simple forces are `pf.spring`, `pf.actuator` and `pf.wrench`.

    potential, dissipation, generalised_force, kinetic_energy                        any function of the motion
    bushing, pose_spring, pose_damper, pose_inertia, pseudo_matrix                   stiffness and damping of several directions
    spring_constellation, point_springs, merged_springs                              springs between points of two bodies
    contact_friction, joint_friction                                                 regularised friction
    transmission                                                                     one input on several joints
    contact, stop, stops, tyre                                                       surfaces and stops that give way; tyres
    gear, belt, cable                                                                drives with play, and ropes that let go
    drag, propeller, thruster, gust                                                  air and water
"""

from pfaffian.model.constellation import merged_springs, point_springs, spring_constellation
from pfaffian.model.contact import contact, stop, stops
from pfaffian.model.drives import belt, cable, gear, gust
from pfaffian.model.elastic import bushing, pose_damper, pose_inertia, pose_spring, pseudo_matrix
from pfaffian.model.fluid import drag, propeller
from pfaffian.model.force import dissipation, generalised_force, kinetic_energy, potential, thruster, transmission
from pfaffian.model.friction import contact_friction, joint_friction
from pfaffian.model.tyre import tyre

__all__ = [
    "belt",
    "bushing",
    "cable",
    "contact",
    "contact_friction",
    "dissipation",
    "drag",
    "gear",
    "generalised_force",
    "gust",
    "joint_friction",
    "kinetic_energy",
    "merged_springs",
    "point_springs",
    "pose_damper",
    "pose_inertia",
    "pose_spring",
    "potential",
    "propeller",
    "pseudo_matrix",
    "spring_constellation",
    "stop",
    "stops",
    "thruster",
    "transmission",
    "tyre",
]
