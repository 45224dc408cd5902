"""SDF, the files of Gazebo.

sdf.py            reading SDF files as mechanisms, with exact loop closures
sdf_frame.py      poses of the frames of an SDF model
sdf_inertia.py    the inertia of an SDF link that the file leaves to its collision shapes
sdf_joint.py      joints, loop closures, gearboxes and friction of an SDF model
sdf_names.py      the elements and attributes of SDF that are read, or do not change the motion without contact
sdf_nest.py       nested and included models of an SDF model, flattened into one model
sdf_part.py       the elements of an SDF model that describe mechanics, as plain data
sdf_shape.py      the shapes of an SDF link
sdf_tree.py       splitting the joints of an SDF model into those of the tree and those that close loops
"""
