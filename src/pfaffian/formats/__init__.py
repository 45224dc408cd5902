"""Mechanisms from files and untrusted text, each format with its own options; `pf.read` opens them all.

Nothing that a file contains is run, imported or fetched.

m, settings = read("robot.xml")        # URDF, MJCF, SDF or YAML, with the options of the reader of that format
"""

from __future__ import annotations

from pfaffian.formats.door import read as read
from pfaffian.formats.mjcf import parse_mjcf, read_mjcf
from pfaffian.formats.run_settings import RunSettings as RunSettings
from pfaffian.formats.sdf import parse_sdf, read_sdf
from pfaffian.formats.urdf import parse_urdf as parse_urdf
from pfaffian.formats.urdf import read_urdf as read_urdf
from pfaffian.formats.yaml import parse_yaml as parse_yaml
from pfaffian.formats.yaml import read_yaml as read_yaml

__all__ = ["parse_mjcf", "parse_sdf", "read_mjcf", "read_sdf"]
