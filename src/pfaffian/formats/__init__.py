"""Mechanisms from files and untrusted text, each format with its own options; `pf.read` opens them all, `pf.write` writes.

Nothing that a file contains is run, imported or fetched.

read_urdf, read_mjcf, read_sdf, read_usd, read_yaml       a file
parse_urdf, parse_mjcf, parse_sdf, parse_yaml             text
installed                                                 a file of an installed package
unphysical                                                bodies whose inertia no body can have, common in files
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LATE = {
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


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'pfaffian.formats' has no attribute {name!r}")
    value = getattr(import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
