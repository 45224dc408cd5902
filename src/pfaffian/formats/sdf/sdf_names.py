"""The elements and attributes of SDF that are read, or cannot change the motion of a machine without contact."""

from __future__ import annotations

_PICTURES = "visual light sensor audio_sink audio_source battery projector particle_emitter"
_AXIS = "xyz limit dynamics mimic initial_position use_parent_model_frame"
_SOLVED = "real_time_factor real_time_update_rate max_contacts dart simbody bullet ode profile gravity magnetic_field"

KNOWN = {
    "world": "@name gravity physics model include frame plugin magnetic_field atmosphere gui scene light actor road wind "
             "spherical_coordinates population audio",
    "model": "@name @canonical_link @placement_frame @namespace pose static self_collide allow_auto_disable frame link joint "
             "model include plugin gripper",
    "frame": "@name @attached_to pose",
    "pose": "@relative_to @frame @rotation_format @degrees",
    "link": f"@name pose inertial gravity self_collide kinematic must_be_base_link collision {_PICTURES}",
    "inertial": "@auto mass density pose inertia fluid_added_mass",
    "inertia": "ixx iyy izz ixy ixz iyz",
    "collision": "@name pose geometry density surface max_contacts laser_retro drake:proximity_properties",
    "joint": "@name @type parent child pose axis axis2 gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch "
             "physics sensor",
    "axis": _AXIS,
    "axis2": _AXIS,
    "xyz": "@expressed_in",
    "limit": "lower upper effort velocity stiffness dissipation cfm erp",
    "dynamics": "damping friction spring_reference spring_stiffness",
    "mimic": "@joint @axis multiplier offset reference",
    "physics": f"@name @default @type max_step_size provide_feedback {_SOLVED}",
    "ode": "cfm_damping implicit_spring_damper fudge_factor cfm erp bounce limit suspension solver constraints",
    **dict.fromkeys((
        *_PICTURES.split(), "include", "plugin", "gripper", "geometry", "surface", "fluid_added_mass", "suspension", "solver",
        "constraints", "dart", "simbody", "bullet", "magnetic_field", "atmosphere", "gui", "scene", "actor", "road", "wind",
        "spherical_coordinates", "population", "audio", "drake:proximity_properties",
    ), "*"),
}  # fmt: skip
"""See `Known`. Of limits, the velocity and the stiffness and dissipation of stops do not act here, as the limits do not."""

BELOW = ("link", "joint", "frame", "model", "include")
"""Elements in a model that are checked one by one, when it is flattened."""
