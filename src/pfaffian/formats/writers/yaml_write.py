"""Writing mechanisms as YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import yaml

from pfaffian.errors import ModelError
from pfaffian.formats.text.expression import CONSTANTS, NAME
from pfaffian.formats.text.formula import formula, formulas, rows
from pfaffian.formats.text.library_laws import YamlTree, law_tree, placed
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.yaml_tree import MAX_CHARACTERS
from pfaffian.formats.writers.yaml_write_part import (
    carried,
    constraint_of,
    entries_of,
    following,
    force_of,
    one,
    range_of,
    shape_of,
    some,
)
from pfaffian.model.body import Body
from pfaffian.model.force import Thruster, Transmission
from pfaffian.model.joint import UNLIMITED, Joint
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.path_force import Winch
from pfaffian.model.shape import moments


def yaml_files(m: Mechanism, path: Path, settings: RunSettings | None) -> dict[Path, str]:
    """The text of a YAML file: {path: text}."""
    return {path: yaml_text(m, settings, path.parent.resolve())}


def yaml_text(m: Mechanism, settings: RunSettings | None, folder: Path, urdf: YamlTree | None = None, only: Any = None) -> str:
    """The YAML text of a mechanism and of a run.

    Args:
        m: the mechanism.
        settings: of the run, None for none.
        folder: of the file, for the names of meshes.
        urdf: the section `urdf`, None, the default, for a file without one.
        only: with `urdf`, the other sections to write.
    Raises ModelError: an element that a file cannot contain, by name.
    """
    tree = {"name": m.name, **machine(m, folder)}
    if urdf is not None:
        tree = {"name": m.name, "urdf": urdf} | {k: x for k, x in tree.items() if k in (only or ())}
    if settings is not None and (run := run_of(settings)):
        tree["run"] = run
    text = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    if len(text) > MAX_CHARACTERS:
        raise ModelError(
            f"{printable(m.name)} needs {len(text)} characters of YAML, more than {MAX_CHARACTERS}; write it as URDF"
        )
    return text


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full instead of as anchors and aliases, which the reader refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def machine(m: Mechanism, folder: Path) -> YamlTree:
    """The sections of a mechanism, without those that are empty."""
    for owner in m.coordinates:
        raise ModelError(f"coordinates {owner.name!r} are functions in Python, which a file cannot contain; leave them out")
    if m.velocities:
        raise ModelError("velocities: choosing them takes a function in Python, which a file cannot contain; leave it out")
    tree: YamlTree = {"gravity": formulas(m.gravity, "gravity")}
    tree["parameters"] = {p.name: _parameter(p.name, p.default, p.unit) for p in m.parameters}
    tree["bodies"] = {b.name: _body(b, folder) for b in m.bodies}
    tree["joints"] = {j.name: joint_of(j) for j in m.joints}
    tree["constraints"] = entries_of(m.constraints, constraint_of, "constraint")
    tree["forces"] = entries_of(m.forces, force_of, "force")
    tree["actuators"] = {a.name: _actuator(a) for a in m.actuators}
    tree["lenient"] = m.lenient
    return {key: value for key, value in tree.items() if value or key == "gravity"}


def _parameter(name: str, default: float, unit: str) -> Any:
    """The entry of a parameter. Raises ModelError: expressions cannot use its name."""
    if not NAME.fullmatch(name) or name in CONSTANTS:
        raise ModelError(f"parameter {name!r}: in a file, its name may have letters, digits and _ only; rename it")
    return {"default": default, "unit": unit} if unit else default


def _body(b: Body, folder: Path) -> YamlTree:
    """The entry of a body; its mass is left out if its shapes give it."""
    what, tree = f"body {b.name!r}", YamlTree()
    weighed = moments(b.shapes) if b.shapes else None
    if weighed is None:
        tree["mass"] = formula(b.mass, f"{what}: mass")
        if not b.com.is_zero():
            tree["com"] = formulas(b.com, f"{what}: com")
        if not b.inertia.is_zero():
            six = ca.vertcat(*[b.inertia[i, k] for i, k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))])
            tree["inertia"] = formulas(six, f"{what}: inertia")
    if b.shapes:
        tree["shape"] = [shape_of(s, f"{what}: shape", folder) for s in b.shapes]
    return tree


def joint_of(j: Joint) -> YamlTree:
    """The entry of a joint, whose placements contain the rotation of its axis onto z."""
    what = f"joint {j.name!r}"
    if j.pose is not None:
        raise ModelError(f"edge {j.name!r}: its pose is a function in Python, which a file cannot contain; use a joint kind")
    tree: YamlTree = {"kind": j.kind.name, "parent": j.parent, "child": j.child}
    tree |= placed("placement", j.placement, what, True) | placed("child_placement", j.child_placement, what, True)
    if j.kind.screws:
        tree["pitch"] = formula(j.pitch, f"{what}: pitch")
    if j.distribution is not None:
        tree["distribution"] = rows(j.distribution, f"{what}: distribution")
        tree["speeds"] = dict(j.speeds)
    tree |= following(j.mimic, what)
    return tree | carried(j, what)


def _actuator(a: Any) -> YamlTree:
    """The entry of an actuator, thruster, transmission or winch."""
    what = f"actuator {a.name!r}"
    limits = {"limits": range_of(a.limits)} if a.limits != UNLIMITED else {}
    if isinstance(a, Thruster):
        tree: YamlTree = {"body": a.body, "axis": formulas(a.axis, what)}
        return tree | some(what, point=a.point) | one(what, torque=a.torque) | limits
    if isinstance(a, Winch):
        tree = {"path": law_tree(a.path, what), "gear": formula(a.gear, what), "limits": range_of(a.limits)}
        return tree | ({"unit": a.unit} if a.unit != "N" else {}) | ({"damps": True} if a.damps else {})
    if isinstance(a, Transmission):
        return {"gears": [_end(*end, formula(a.gears[i], what)) for i, end in enumerate(a.ends)]} | limits
    tree = {"joint": a.joint}
    if a.component:
        tree["component"] = a.component
    gear = formula(a.gear, what)
    return tree | ({"gear": gear} if gear != 1.0 else {}) | limits


def _end(joint: str, component: int, gear: float | str) -> YamlTree:
    """The entry of one velocity that a transmission drives."""
    return {"joint": joint} | ({"component": component} if component else {}) | {"gear": gear}


def run_of(s: RunSettings) -> YamlTree:
    """The section `run`, with the settings that differ from the defaults."""
    default, tree = RunSettings(), YamlTree()
    for key in ("duration", "step", "record_every", "accuracy", "formulation", "integrator", "saturate", "state"):
        if getattr(s, key) != getattr(default, key):
            tree[key] = getattr(s, key)
    for key in ("q", "guess", "v", "u", "parameters"):
        if getattr(s, key):
            tree[key] = {name: float(x) for name, x in getattr(s, key).items()}
    return tree
