"""Mechanisms from files and untrusted text, each format with its own options; `pf.read` opens them all, `pf.write` writes.

Nothing that a file contains is run, imported or fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_yaml       a file
parse_urdf, parse_mjcf, parse_sdf, parse_yaml             text
installed                                                 a file of an installed package
unphysical                                                bodies whose inertia no body can have, common in files
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
"""A reader, and what it needs, is imported when it is first used: who reads a URDF does not wait for the others."""

__getattr__ = lazy.importer(globals(), _HOMES)
__dir__ = lazy.lister(globals(), set(_HOMES) - {"RunSettings"})  # a type that is only returned
