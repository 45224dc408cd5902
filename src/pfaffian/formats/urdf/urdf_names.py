"""The elements and attributes of URDF and its dialects that are read, or do not change the motion without contact."""

from __future__ import annotations

_ORIGIN = "@xyz @rpy @quat_xyzw"

KNOWN = {
    "robot": "@name @version link joint material transmission gazebo ros2_control loop coupling loop_joint constraint frame "
             "sensor",
    "link": "@name @type @drake_ignore inertial visual collision contact self_filter self_collision_checking "
            "collision_checking",
    "inertial": "origin mass inertia",
    "origin": _ORIGIN, "parent_origin": _ORIGIN, "child_origin": _ORIGIN,
    "mass": "@value",
    "inertia": "@ixx @iyy @izz @ixy @ixz @iyz",
    "joint": "@name @type @independent @dont_collapse origin parent child axis limit dynamics mimic calibration "
             "safety_controller drake:screw_thread_pitch",
    "drake:joint": "@name @type @independent origin parent child axis limit dynamics mimic drake:screw_thread_pitch",
    "drake:screw_thread_pitch": "@value",
    "parent": "@link", "child": "@link",
    "axis": "@xyz", "parent_axis": "@xyz", "child_axis": "@xyz",
    "limit": "@lower @upper @effort @velocity",
    "dynamics": "@damping @friction",
    "mimic": "@joint @multiplier @offset",
    "loop": "@name @type predecessor successor axis",
    "coupling": "@name predecessor successor ratio",
    "predecessor": "@link origin", "successor": "@link origin", "ratio": "@value",
    "loop_joint": "@name @type link1 link2 axis",
    "link1": f"@link {_ORIGIN}", "link2": f"@link {_ORIGIN}",
    "constraint": "@name @type parent child parent_origin child_origin parent_axis child_axis",
    "frame": f"@name @link {_ORIGIN}",
    **dict.fromkeys(("visual", "collision", "contact", "self_filter", "self_collision_checking", "collision_checking", "sensor",
                     "material", "transmission", "gazebo", "ros2_control", "calibration", "safety_controller"), "*"),
}  # fmt: skip
"""See `Known`. Elements of Gazebo and transmissions are checked in `urdf_gazebo`, those of Drake in `urdf_loops`. Velocities of
limits do not act here, as limits do not."""
