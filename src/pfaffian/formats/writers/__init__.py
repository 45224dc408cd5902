"""Writers of URDF, MJCF and YAML files.

mjcf_write.py         writing mechanisms as MJCF, for MuJoCo
mjcf_write_part.py    writing closures, mimic joints, springs and motors as MJCF
turn_sum.py           the angle of a hinge that closes a planar loop as a sum of angles of the tree
urdf_write.py         writing mechanisms as URDF
xml_write.py          writing XML files: elements as lines, numbers to the last digit
yaml_write.py         writing mechanisms as YAML files
yaml_write_part.py    writing constraints and forces as entries of a YAML file
"""
