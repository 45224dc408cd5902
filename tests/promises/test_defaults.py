"""Default values of public functions. Changing one changes the results of users, so all are listed here."""

from __future__ import annotations

import inspect
from math import inf
from typing import Any

from tests.public_names import PUBLIC

ORIGIN = (0, 0, 0)
DEFAULTS: dict[str, list[Any]] = {
    "along": [False], "approach": ["energy"], "architecture": ["sm_90"], "armature": [0.0], "around": [0.0], "at": [ORIGIN],
    "attitude": [ORIGIN],
    "axes": ["WORLD", (0, 1, 2)], "axis": [(0, 0, 1), (0, 1, 0)], "backend": ["auto"], "backlash": [0.0],
    "base": ["fixed", "file"], "begin": [0.0], "beside": [False], "beyond": ["raise"],
    "bias": [(0, 0, 0, 0, 0, 0)], "body_b": ["world"],
    "branches": [1], "by": [("q", "v", "u", "t", "parameters")], "cells": [40], "centre": [ORIGIN], "chords": [4],
    "clocks": [False],
    "coefficient": [1.0], "collar": [0.0],
    "com": [ORIGIN], "complete": [False], "component": [0], "correct_start": [True], "corrections": [2],
    "count": [10, 1024], "coupling": [1.0],
    "correlated": [1], "coupling_length": [0.0],
    "creep": [0.01], "curvature": [0.0], "damping": [0.0, 40.0], "density": [1.225],
    "dim": ["sample"], "direction": ["either"], "drag": [0.0, (0, 0)], "drag_height": [0.0], "draw": [True], "dt": [0.0],
    "duration": [1.0],
    "effort": [inf], "error_bound": [5e-05], "every": [1], "expand": [False], "exponent": [1.0, 1.5], "factor": ["cholesky"],
    "falls": [1.0],
    "force_gain": [0.0], "formulation": ["auto"], "frame": ["LOCAL", "world"],
    "friction": [0.0, "none", "smooth", 1.0], "gear": [1.0], "gravity": [9.81, (0.0, 0.0, -9.81)], "handed": ["right"],
    "heading": [0.0], "height": [0.0], "hessian": [True],
    "hold": ["zero"], "holds": [False], "inertia": [0.0, 1.0], "inertia_ratio": [1.0], "integral_gain": [0.0],
    "joint_damping": [0.0], "keep": ["pose"], "kind": ["parallel", "co-simulation"], "lanes": [8],
    "largest": [False], "largest_error": [0.01], "latency": [0], "lean": [0.0],
    "length": [(200.0, 200.0, 50.0)], "lenient": [False], "level": [0.0],
    "limits": [(-inf, inf), (0.0, inf)], "longest": [100.0, 1000], "magnitude": [False], "mass": [0.0, 1.0], "mean": [ORIGIN],
    "method": ["sobol"], "middle": [0.0], "mimic": ["free"], "modified": [False], "moments": [0.0], "moving": [False],
    "name": ["law", "model"], "near": [0.02], "normal": [(0, 0, 1)], "of": [("v_dot", "reaction", "multipliers"), ("v_dot",)],
    "offset": [0.0], "on": ["world"], "order": [3], "orders": [(1, 2)],
    "phase": [0.0], "point": [ORIGIN], "point_a": [ORIGIN], "point_b": [ORIGIN],
    "points": [400], "precision": ["double"], "processor": ["x86-64"],
    "progress": [False], "propellers": [1], "pulls_only": [False], "q_units": ["1"],
    "quantity": ["regularity"], "radius": [0.3], "rate": [0.0], "ratio": [1.0], "reactions": [False], "record_every": [1],
    "record": ["lean"], "version": ["3.0"],
    "relation": ["within"], "rod": [0.0], "relative_to": ["world"],
    "rest": [0.0, ORIGIN], "rest_damping": [0.0], "robust": [True], "role": ["visual"], "root": [""], "rounds": [4],
    "run_binary": [False],
    "saturate": [False], "scale": [1.0],
    "search": [True], "seed": [0], "seen_from": ["world"], "servos": ["targets"], "shape": [1.3], "shape_a": [ORIGIN],
    "shrink": [0.4], "size": [(720, 540), 0.01], "smooth": [0.001, 4], "source": ["", "URDF", "YAML", "MJCF", "SDF", "OSIM"],
    "speed": [1.0, 0.5, 10.0], "squeeze": [True], "stable": [True],
    "state": ["standard"], "start": [0.0], "std": [0.0], "step": [0.001, 0.05],
    "steps": [1, 200], "stiffness": [0.0, 400.0, 10.0], "stribeck": [0.01], "strict": [False, True], "switch": [True],
    "t": [0.0], "threads": [1], "through": [ORIGIN], "tilt_inertia": [0.0],
    "tilting": [False], "tolerance": [0.0, 1e-05], "torque": [0.0],
    "turning": [0.0, True], "turning_drag": [(0, 0)], "unique": [False], "unit": [""], "units": ["1/s"],
    "violation_limit": [1e-06], "viscous": [0.0], "what": ["step"], "where": ["installed"], "wind": [ORIGIN], "within": [1.0],
    "xyz": [ORIGIN],
}  # fmt: skip
"""Defaults of each parameter in all public functions, except None, () and values made at each call."""


def plain(x: Any) -> bool:
    return isinstance(x, (bool, int, float, str)) or (isinstance(x, tuple) and x != () and all(map(plain, x)))


def has_defaults(x: Any) -> bool:
    return inspect.isfunction(x) or (inspect.isclass(x) and not issubclass(x, Exception))


def test_defaults_agree_with_the_list():
    found: dict[str, set[str]] = {}
    for value in filter(has_defaults, PUBLIC.values()):
        for p in inspect.signature(value).parameters.values():
            if plain(p.default):
                found.setdefault(p.name, set()).add(repr(p.default))
    assert found == {name: set(map(repr, values)) for name, values in DEFAULTS.items()}
