"""Mechanisms from files and untrusted text, each format with its own options; `pf.read` opens them all, `pf.write` writes.

Nothing that a file contains is run, imported or fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_yaml       a file
parse_urdf, parse_mjcf, parse_sdf, parse_yaml             text
installed                                                 a file of an installed package
unphysical                                                bodies whose inertia no body can have, common in files
"""

from __future__ import annotations

from pfaffian.formats.door import read as read
from pfaffian.formats.mjcf import parse_mjcf, read_mjcf
from pfaffian.formats.place import installed
from pfaffian.formats.run_settings import RunSettings as RunSettings
from pfaffian.formats.sdf import parse_sdf, read_sdf
from pfaffian.formats.urdf import parse_urdf, read_urdf
from pfaffian.formats.usd import read_usd
from pfaffian.formats.write import write as write
from pfaffian.formats.yaml import parse_yaml, read_yaml
from pfaffian.model.unphysical import unphysical

__all__ = [
    "installed",
    "parse_mjcf",
    "parse_sdf",
    "parse_urdf",
    "parse_yaml",
    "read_mjcf",
    "read_sdf",
    "read_urdf",
    "read_usd",
    "read_yaml",
    "unphysical",
]


def __dir__() -> list[str]:
    return __all__
