"""Mechanisms from untrusted text. Nothing that a file contains is run, imported or fetched.

m, settings = read("robot.xml")        # URDF, MJCF, SDF or YAML, with the options of the reader of that format
"""

from __future__ import annotations

from pfaffian.formats.door import read
from pfaffian.formats.mjcf import parse_mjcf, read_mjcf
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.sdf import parse_sdf, read_sdf
from pfaffian.formats.urdf import parse_urdf, read_urdf
from pfaffian.formats.yaml import parse_yaml, read_yaml

__all__ = [
    "RunSettings",
    "parse_mjcf",
    "parse_sdf",
    "parse_urdf",
    "parse_yaml",
    "read",
    "read_mjcf",
    "read_sdf",
    "read_urdf",
    "read_yaml",
]
