"""Mechanisms from untrusted text. Nothing that a file contains is run, imported or fetched.

m, settings = read("robot.yaml")        # or .urdf, with the options of read_urdf
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pfaffian.errors import ModelError
from pfaffian.formats.file import as_path
from pfaffian.formats.number import printable
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.shelf import model_file
from pfaffian.formats.urdf import WAYS_OUT, parse_urdf, read_urdf
from pfaffian.formats.usd import read_usd
from pfaffian.formats.write import write
from pfaffian.formats.yaml import parse_yaml, read_yaml
from pfaffian.model.mechanism import Mechanism

__all__ = ["RunSettings", "parse_urdf", "parse_yaml", "read", "read_urdf", "read_usd", "read_yaml", "write"]

YAML = (".yaml", ".yml")
"""Suffixes of YAML files."""


def read(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]:
    """The mechanism of a file, read by its suffix, and the run that it describes: (Mechanism, RunSettings).

    Args:
        path: of a .urdf or .xml file, with the options of `read_urdf` and default RunSettings; or of a .yaml or .yml file, with
            the options of `read_yaml`. Or a machine of the zoo: "zoo:bennett", or "bennett" where there is no such file.
    Raises ModelError: no such file or machine, another suffix, or what the reader finds.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> text = "{bodies: {ball: {mass: 2}}, joints: {z: {kind: prismatic, parent: world, child: ball}}, run: {duration: 3}}"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "ball.yaml")
        ...     n = file.write_text(text)
        ...     m, settings = pf.read(file)
        >>> m.q_names, settings.duration
        (('z',), 3.0)
        >>> pf.read("zoo:bennett")[0]
        <Mechanism 'Bennett': 3 bodies, 3 joints (nq 3, nv 3), 1 constraint, ...>
    """
    suffix = as_path(path).suffix.lower()
    if suffix in ("", *YAML):
        path = model_file(as_path(path))
        suffix = path.suffix.lower()
    if suffix in (".urdf", ".xml", ".xacro"):
        return read_urdf(path, **options), RunSettings()
    if suffix in YAML:
        return read_yaml(path, **options)
    if suffix in (".usd", ".usda", ".usdc"):
        return read_usd(path, **options)
    way = WAYS_OUT.get(suffix.removeprefix(".").replace("mjcf", "mujoco"), "the suffix must be .urdf, .xml, .yaml or .yml")
    raise ModelError(f"{printable(str(path))}: {way}")
