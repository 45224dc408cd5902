"""OSIM files beside OpenSim, if it is installed: accelerations of coordinates at random states that satisfy the constraints.

Forces other than those that are read are switched off in OpenSim, and springs and dampers of coordinates stay. Bodies without a
joint float here, and have no coordinates there, so that such models are not compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from pfaffian.formats.osim.osim_coordinate import read_coupler, settled
from pfaffian.formats.osim.osim_known import fill
from pfaffian.formats.osim.osim_part import FRAMES_FROM, check_version, descendants, listed, read_bodies, read_joints, text_of
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.xml import Element, parse_xml
from tools.compare_files.report import Row

SUFFIXES = (".osim",)
"""Of files in this format."""

ROUNDED = 1e-7
"""Relative difference that counts as equal: OpenSim solves loops by a factorisation with a tolerance of its own."""

VELOCITY_TERMS = "turns by functions of one coordinate that moves: findings/opensim-custom-joint-velocity-terms.sh"
"""Cause of differences."""

UPGRADED = 1e-5
"""The same for files older than version 4, whose places OpenSim rounds: findings/opensim-old-files-are-rounded.sh."""


def by_opensim(path: Path, states: Any) -> list[dict[str, float]]:
    """The second derivatives of all coordinates at each state.

    Raises ImportError: OpenSim is not installed; RuntimeError: it does not open the file.
    """
    if find_spec("opensim") is None:
        raise ImportError("opensim")
    command = [sys.executable, str(Path(__file__).with_name("by_opensim.py")), str(path.resolve())]
    done = subprocess.run(command, input=json.dumps(states), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended"])[-1])
    found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _replaced(document: Element) -> dict[str, Any]:
    """Coordinate -> what says it, for those that are not coordinates of the mechanism."""
    model = document.only("Model")
    assert model is not None
    fill(model)
    version = check_version(document)
    joints, _ = read_joints(model, version, read_bodies(model, version))
    couplers = [read_coupler(e, joints) for e in listed(model, "ConstraintSet") if e.tag == "CoordinateCouplerConstraint"]
    return settled(joints, couplers, {})[2]


def states_of(m: pf.Mechanism, start: Any, replaced: dict[str, Any]) -> list[tuple[Any, dict[str, float], dict[str, float]]]:
    """Two random states at rest and two that move, all on the constraints, and their coordinates and speeds in the file."""
    found = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        near = {n: start.get(n, 0.0) + random.uniform(-0.2, 0.2) for n in m.q_names}
        at = pf.assemble(m, guess=near, v=random.normal(size=m.nv) * (seed > 1))
        q, v = (dict(zip(names, map(float, x), strict=True)) for names, x in ((m.q_names, at.q), (m.v_names, at.v)))
        q |= {n: a * q[other] + b for n, (other, a, b) in replaced.items() if other in q}
        v |= {n: a * v[other] for n, (other, a, _) in replaced.items() if other in v}
        found.append((at, q, v))
    return found


def apart(m: pf.Mechanism, states: list[Any], theirs: list[dict[str, float]]) -> float:
    """The largest relative difference of accelerations."""
    worst = 0.0
    for (at, _, _), found in zip(states, theirs, strict=True):
        ours = dict(zip(m.v_names, pf.forward_dynamics(m, at.q, at.v).v_dot, strict=True))
        shared = [n for n in ours if n in found]
        scale = max(1.0, *(abs(found[n]) for n in shared))
        worst = max(worst, *(abs(ours[n] - found[n]) / scale for n in shared))
    return worst


def _turns_by_functions(document: Element) -> bool:
    """Whether two turns of a CustomJoint are functions of one coordinate."""
    for joint in [e for e in descendants(document) if e.tag == "CustomJoint"]:
        axes = [a for a in descendants(joint) if a.tag == "TransformAxis"]
        moved = [text_of(a, "coordinates").split() for a in axes if a.attributes.get("name", "").startswith("rotation")]
        if max(Counter(n for names in moved for n in set(names)).values(), default=0) > 1:
            return True
    return False


def examine(path: Path) -> Row:
    """Open a file and compare it."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            m, settings = pf.formats.read_osim(path)
        except pf.PfaffianError as error:
            return Row(refused=str(error))
    row = Row(nv=m.nv, left_out="; ".join(str(w.message) for w in caught), same=ROUNDED)
    document = parse_xml(read_text(path), path.name, words=True)
    if check_version(document) < FRAMES_FROM:
        row = replace(row, same=UPGRADED)
    if _turns_by_functions(document):
        row = replace(row, causes={"OpenSim moving": VELOCITY_TERMS})
    if any(j.kind.name == "free" for j in m.joints):
        return replace(row, error="a body floats")
    try:
        states = states_of(m, settings.guess, _replaced(document))
        theirs = by_opensim(path, [x[1:] for x in states])
        half = len(states) // 2
        return replace(row, differences={
            "OpenSim at rest": apart(m, states[:half], theirs[:half]),
            "OpenSim moving": apart(m, states[half:], theirs[half:]),
        })  # fmt: skip
    except ImportError:
        return replace(row, error="OpenSim is not installed: pip install opensim")
    except (RuntimeError, pf.PfaffianError) as error:
        return replace(row, error=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
