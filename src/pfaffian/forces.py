"""Ready-made forces between bodies, within joints, and of a fluid on bodies.

Springs, friction, drag and propellers go into `pf.mechanism(..., forces=[...])`, thrusters and transmissions into its
actuators. The simplest forces are directly in `pf`: `pf.spring`, `pf.actuator` and `pf.wrench`.

    potential, dissipation, generalised_force, kinetic_energy                        any function of the kinematics
    bushing, pose_spring, pose_damper, pose_inertia, pseudo_matrix                   springs and dampers in six directions
    spring_constellation, point_springs, merged_springs                              springs between points of two bodies
    contact_friction, joint_friction                                                 regularised friction
    guide_friction, pin_friction, screw_friction, gear_loss                          friction that follows the load of a joint
    transmission                                                                     one input on several joints
    contact, stop, stops, rebound, tyre                                              contacts, joint stops, impacts; tyres
    road, road_tyre, bush, anti_roll_bar                                             tyres on roads, parts of suspensions
    gear, belt, cable                                                                gears with play, elastic belts, cables
    path, guide, pulley, path_spring, winch, adjustable_damper                      lines over pulleys and round bodies
    cylinder, pressures                                                              hydraulic and pneumatic cylinders
    drag, propeller, thruster, gust                                                  forces of air and water
"""

from pfaffian.model.force import dissipation as dissipation
from pfaffian.model.force import generalised_force as generalised_force
from pfaffian.model.force import kinetic_energy as kinetic_energy
from pfaffian.model.force import potential as potential
from pfaffian.model.force import thruster as thruster
from pfaffian.model.force import transmission as transmission
from pfaffian.model.path import guide as guide
from pfaffian.model.path import path as path
from pfaffian.model.path import pulley as pulley
from pfaffian.model.path_force import adjustable_damper as adjustable_damper
from pfaffian.model.path_force import path_spring as path_spring
from pfaffian.model.path_force import winch as winch
from pfaffian.parts.constellation import merged_springs as merged_springs
from pfaffian.parts.constellation import point_springs as point_springs
from pfaffian.parts.constellation import spring_constellation as spring_constellation
from pfaffian.parts.contact import contact as contact
from pfaffian.parts.contact import stop as stop
from pfaffian.parts.contact import stops as stops
from pfaffian.parts.cylinder import cylinder as cylinder
from pfaffian.parts.cylinder import pressures as pressures
from pfaffian.parts.drives import belt as belt
from pfaffian.parts.drives import cable as cable
from pfaffian.parts.drives import gear as gear
from pfaffian.parts.drives import gust as gust
from pfaffian.parts.elastic import bushing as bushing
from pfaffian.parts.elastic import pose_damper as pose_damper
from pfaffian.parts.elastic import pose_inertia as pose_inertia
from pfaffian.parts.elastic import pose_spring as pose_spring
from pfaffian.parts.elastic import pseudo_matrix as pseudo_matrix
from pfaffian.parts.fluid import drag as drag
from pfaffian.parts.fluid import propeller as propeller
from pfaffian.parts.friction import contact_friction as contact_friction
from pfaffian.parts.friction import joint_friction as joint_friction
from pfaffian.parts.load_friction import gear_loss as gear_loss
from pfaffian.parts.load_friction import guide_friction as guide_friction
from pfaffian.parts.load_friction import pin_friction as pin_friction
from pfaffian.parts.load_friction import screw_friction as screw_friction
from pfaffian.parts.rebound import rebound as rebound
from pfaffian.parts.road import road as road
from pfaffian.parts.road import road_tyre as road_tyre
from pfaffian.parts.suspension import anti_roll_bar as anti_roll_bar
from pfaffian.parts.suspension import bush as bush
from pfaffian.parts.tyre import tyre as tyre
