"""Readers of mechanisms from files and untrusted text, each format with its own options.

`pf.read` opens a file of any of these formats and `pf.write` writes one. Nothing that a file contains is run, imported or
fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_osim, read_yaml    read a file
parse_urdf, parse_mjcf, parse_sdf, parse_osim, parse_yaml         read a text
read_fmu, FMU                                             what an FMU of another tool says about itself
RunSettings                                               what a file says about a run
installed                                                 finds a file of an installed package
FORMATS, Format                                           the formats that read and write know; add one of your own
LAWS                                                      force laws in YAML files; add one of your own
unphysical                                                lists inertias that no body can have, which are common in files

fmu/          FMUs of other tools, as data
mjcf/         MJCF, the files of MuJoCo
osim/         OSIM, the files of OpenSim
sdf/          SDF, the files of Gazebo
text/         untrusted text: XML, YAML, numbers, expressions, files that a file names
urdf/         URDF, with the dialects in which its files describe loops
usd/          USD with UsdPhysics
writers/      writers of URDF, MJCF and YAML files
yaml/         YAML, this library's own files
bundled.py    finding the studies and the zoo of examples
read.py       reading a model file of any format
write.py      writing a mechanism to a file, in the format of its suffix
"""

from pfaffian import lazy

__getattr__ = lazy.importer(globals())
__dir__ = lazy.lister(globals(), lazy.listed(__file__))
