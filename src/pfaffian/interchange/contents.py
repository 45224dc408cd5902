"""The files inside an FMU: its description, its sources and its binaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from pfaffian.interchange.archive import PLATFORMS, SOURCE_FLAGS, compiled
from pfaffian.interchange.c_tables import c_string
from pfaffian.interchange.fmu_description import Identity, build_description, description
from pfaffian.interchange.fmu_text import sources_of
from pfaffian.interchange.fmu_variables import FMUVariables
from pfaffian.interchange.machine import FMUMachine
from pfaffian.simulate.record.provenance import machine as this_machine


def contents(
    machine: FMUMachine, variables: FMUVariables, version: str, platforms: Sequence[str], processor: str
) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    """Names and contents of the files of an FMU, and the sizes of its binaries."""
    name = machine.simulation.mechanism.name
    identifier = f"fmu_{re.sub(r'[^A-Za-z0-9_]', '_', name)[:40]}"
    texts = sources_of(machine, variables, version)
    digest = sha256("\n".join([*texts, *(repr(v) for v in variables.listed())]).encode()).hexdigest()
    token = "{" + str(UUID(digest[:32])) + "}"
    texts[0] = f"#define TOKEN {c_string(token)}\n{texts[0]}"
    units = {f"machine{k or ''}.c": text for k, text in enumerate(texts)}
    identity = Identity(name, identifier, token, f"pfaffian {this_machine()['pfaffian']}")
    files = [("modelDescription.xml", description(machine, variables, identity, version, list(units)).encode())]
    files += [(f"sources/{file}", text.encode()) for file, text in units.items()]
    if version == "3.0":
        flags = " ".join(SOURCE_FLAGS)
        files.append(("sources/buildDescription.xml", build_description(identity, list(units), flags).encode()))
    sizes = {}
    for target in platforms:
        of, binary = PLATFORMS[target], compiled(units, target, processor)
        folder = of.three if version == "3.0" else of.two
        files.append((f"binaries/{folder}/{identifier}{of.suffix}", binary))
        sizes[target] = len(binary)
    return files, sizes
