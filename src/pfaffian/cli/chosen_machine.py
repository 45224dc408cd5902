"""The machine and the settings that a command line names: its file, --set, and numbers in words."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfaffian.errors import ModelError, nearest
from pfaffian.output.plain import text

if TYPE_CHECKING:
    from pfaffian.formats.text.run_settings import RunSettings
    from pfaffian.model.mechanism import Mechanism
    from pfaffian.simulate.step.step import Scheme
    from pfaffian.states.abstract_system import AbstractSystem

EXPLAIN = {"q": "coordinate", "v": "velocity", "u": "input"}
"""Prefix of a name in --set -> what the name is."""


def file_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        type=Path,
        metavar="FILE",
        help="a URDF, MJCF, SDF, USD or YAML file, or a machine of the zoo, such as four_bar",
    )
    add("--base", choices=("fixed", "free"), help="URDF only: weld the root link to the world, or let it float")
    add("--mimic", choices=("free", "follow"), help="URDF only: let mimic joints move freely, or follow")
    words = "a parameter; or q:NAME, v:NAME, u:NAME for a start value or an input (may be repeated)"
    add("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help=words)


def read(chosen: argparse.Namespace) -> tuple[Mechanism, RunSettings]:
    """The file's mechanism and its run settings, the latter with the values of --set."""
    import pfaffian as pf
    from pfaffian.formats.bundled import model_file

    chosen.file = model_file(chosen.file)
    options = {k: getattr(chosen, k) for k in ("base", "mimic") if getattr(chosen, k) is not None}
    if options and chosen.file.suffix.lower() in (".yaml", ".yml"):
        raise ModelError("--base and --mimic are for URDF files; in a .yaml file write urdf: {file: ..., base: free}")
    m, settings = pf.read(chosen.file, **options)
    m = replace(m, name=text(m.name, 200))  # a progress bar prints it
    return m, with_settings(m, settings, chosen.settings)


def with_settings(m: Mechanism, settings: RunSettings, given: list[str]) -> RunSettings:
    """The settings with each NAME=VALUE of --set in the field to which its name belongs."""
    from pfaffian.formats.text.strict_number import number

    known = {"parameters": m.p_names, "q": m.q_names, "v": m.v_names, "u": m.u_names}
    for setting in given:
        name, equals, value = setting.rpartition("=")
        if not equals:
            raise ModelError(f"--set {text(setting, 60)!r}: NAME=VALUE is needed, such as --set mass=2.5")
        field, entry = "parameters", name
        if name not in known["parameters"] and name[:2] in ("q:", "v:", "u:"):
            field, entry = name[0], name[2:]
        if entry not in known[field]:
            what = EXPLAIN.get(field, "parameter")
            raise ModelError(f"--set: there is no {what} {text(entry, 60)!r}; {_hint(entry, known, field)}")
        values = {**getattr(settings, field), entry: number(value, f"--set {text(name, 60)}")}
        changed: dict[str, Any] = {field: values}
        if field == "q":  # a coordinate that --set fixes is no longer a guess
            changed["guess"] = {n: x for n, x in settings.guess.items() if n != entry}
        settings = replace(settings, **changed)
    return settings


def _hint(name: str, known: dict[str, Any], field: str) -> str:
    """Advice for an unknown name: the prefix with which it is known, or the nearest known name."""
    elsewhere = [f"{k}:{name} (the {what})" for k, what in EXPLAIN.items() if name in known[k]]
    return f"write {' or '.join(elsewhere)}" if elsewhere else nearest(name, known[field])


def time_above_zero(word: str | None, what: str, otherwise: Any) -> Any:
    """A time above zero from the command line [s], `otherwise` if there is none."""
    from pfaffian.formats.text.strict_number import number

    if word is None:
        return otherwise
    value = number(word, what)
    if not value > 0:
        raise ModelError(f"{what}: a time above zero is needed, got {value:g}")
    return value


def count(word: str, what: str) -> int:
    """A whole number from 1 on, from the command line."""
    if not (word.isascii() and word.isdigit() and 1 <= len(word) <= 9 and int(word) >= 1):
        raise ModelError(f"{what}: a whole number from 1 on is needed, got {text(word, 40)!r}")
    return int(word)


def keywords_of_run(settings: RunSettings) -> dict[str, Any]:
    """The keyword arguments of `pf.run` in the settings of a file."""
    values = {"q": settings.q, "guess": settings.guess, "v": settings.v, "u": settings.u, "parameters": settings.parameters}
    return settings.times | {k: dict(x) for k, x in values.items() if x} | {"scheme": scheme(settings)}


def scheme(settings: RunSettings) -> Scheme:
    """The Scheme of the run; its formulation is checked before anything is computed."""
    import pfaffian as pf

    options = {k: getattr(settings, k) for k in ("formulation", "integrator") if getattr(settings, k) is not None}
    known = ("auto", *pf.FORMULATIONS)
    if options.get("formulation", "auto") not in known:
        raise ModelError(f"formulation {text(options['formulation'], 40)!r} is unknown; one of {', '.join(known)}")
    return pf.Scheme(**options, saturate=settings.saturate)


def system_of(m: Mechanism, state: str) -> Mechanism | AbstractSystem:
    """The mechanism, or the System with the state that the run integrates."""
    import pfaffian as pf
    from pfaffian.formats.text.run_settings import STATES

    if state not in STATES:
        raise ModelError(f"--state: {text(state, 40)!r} is unknown; {nearest(state, STATES)}")
    return pf.reduce(m) if state == "reduced" else pf.reduction.hamiltonian(m) if state == "hamiltonian" else m


def check_pictures(view: Any, animation: Path | None) -> None:
    """Raise ModelError for a missing package or an unknown suffix before a long run rather than after it."""
    if view:
        from pfaffian.viewer.browser import need_viser

        need_viser()
    if animation is not None:
        from pfaffian.output.folder import prepare
        from pfaffian.viewer.animate import suffix_of

        suffix_of(animation)
        prepare(animation.parent)
