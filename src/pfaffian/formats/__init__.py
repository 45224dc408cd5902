"""Readers of mechanisms from files and untrusted text, each format with its own options.

`pf.read` opens a file of any of these formats and `pf.write` writes one. Nothing that a file contains is run, imported or
fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_yaml       read a file
parse_urdf, parse_mjcf, parse_sdf, parse_yaml             read a text
RunSettings                                               what a file says about a run
installed                                                 finds a file of an installed package
FORMATS, Format                                           the formats that read and write know; add one of your own
LAWS                                                      force laws in YAML files; add one of your own
unphysical                                                lists inertias that no body can have, which are common in files
"""

from pfaffian import lazy

__getattr__ = lazy.importer(globals())
__dir__ = lazy.lister(globals(), lazy.listed(__file__))
