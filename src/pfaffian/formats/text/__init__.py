"""Untrusted text: XML, YAML, numbers, expressions, files that a file names.

coupling.py          functions of the kinematics that files describe by names and numbers
expression.py        arithmetic in model files
file.py              reading the text of one regular file, with a bound on its size
formula.py           numbers of a model as text
left_out.py          parts of a file that a mechanism cannot represent
library_laws.py      the library's ready-made functions as entries of a YAML file
mesh_file.py         finding the mesh files that a model file names
msh_file.py          MuJoCo's own kind of mesh file
place.py             finding other files that a model file names
run_settings.py      run settings in a file: only data, which the room `simulate` uses
solid.py             mass, mass centre and inertia of solids, for files that leave them to the geometry
strict_number.py     numbers and words from untrusted text, in stricter forms than `float` accepts
sweep_settings.py    sweep settings in a file: only data, which the room `sweeps` uses
unit_length.py       quaternions of a file whose length is not 1
unread.py            elements and attributes of an XML file that its reader does not know
written.py           functions given by expressions in a file, of coordinates, their rates, the time and parameters
xacro_source.py      expanding xacro files, the source code of URDF files, with the package xacro
xml.py               a safe subset of XML: a tree of elements with line numbers
yaml_tree.py         a safe subset of YAML: a tree of texts, lists and maps with line numbers
"""
