"""Readers of mechanisms from files and untrusted text, each format with its own options.

`pf.read` opens a file of any of these formats and `pf.write` writes one. Nothing that a file contains is run, imported or
fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_yaml       read a file
parse_urdf, parse_mjcf, parse_sdf, parse_yaml             read a text
installed                                                 finds a file of an installed package
unphysical                                                lists inertias that no body can have, which are common in files
"""

from pfaffian import lazy

_HOMES = {
    "RunSettings": "pfaffian.formats.run_settings",
    "installed": "pfaffian.formats.place",
    "parse_mjcf": "pfaffian.formats.mjcf",
    "parse_sdf": "pfaffian.formats.sdf",
    "parse_urdf": "pfaffian.formats.urdf",
    "parse_yaml": "pfaffian.formats.yaml",
    "read_mjcf": "pfaffian.formats.mjcf",
    "read_sdf": "pfaffian.formats.sdf",
    "read_urdf": "pfaffian.formats.urdf",
    "read_usd": "pfaffian.formats.usd",
    "read_yaml": "pfaffian.formats.yaml",
    "unphysical": "pfaffian.model.unphysical",
}
"""Public name -> module. A reader and its dependencies are imported at first use, so reading a URDF file loads no others."""

__getattr__ = lazy.importer(globals(), _HOMES)
__dir__ = lazy.lister(globals(), set(_HOMES) - {"RunSettings"})  # only returned by readers, never called
