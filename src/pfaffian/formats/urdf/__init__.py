"""URDF, with the dialects in which its files describe loops.

loop_record.py     loops that a URDF file describes besides its tree of joints, in any of the dialects
urdf.py            reading URDF files as mechanisms
urdf_drake.py      Drake's joints and rotors in URDF files
urdf_gazebo.py     what elements of Gazebo and transmissions add to the mechanics of a URDF file
urdf_joints.py     joints, motors and dry friction as parts of a mechanism
urdf_loops.py      elements that dialects of URDF add to the tree
urdf_names.py      the elements and attributes of URDF that are read, or do not change the motion
urdf_part.py       the elements of a URDF file that describe mechanics, as plain data
urdf_shape.py      the shapes of a URDF file
urdf_sidecar.py    files next to a URDF file that describe where its loops close ("sidecars")
urdf_tree.py       ordering URDF joints: files list links and joints in any order
urdf_warnings.py   what is told of a file: what was changed, locked, left out or assumed
"""
