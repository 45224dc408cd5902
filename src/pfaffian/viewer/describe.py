"""Describe a mechanism in tables: bodies, joints, inputs, parameters, constraints, rank, degrees of freedom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pfaffian.dynamics.motion import weighted_rows
from pfaffian.errors import RunError, plural
from pfaffian.evaluate.compiled import Compiled, compile_terms
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import AccelerationConstraint, Closure, Holonomic, Nonholonomic, Servo
from pfaffian.model.joint import UNLIMITED, Joint
from pfaffian.model.mechanism import FORCE_UNITS, Mechanism
from pfaffian.model.unphysical import unphysical
from pfaffian.output.plain import table, text
from pfaffian.starts.assemble import assemble
from pfaffian.terms.generic_states import generic_states
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import symbols

EQUATION = {
    Holonomic: "phi(q, t) = 0",
    Nonholonomic: "eta(q, v, t) = 0",
    AccelerationConstraint: "Z v_dot = z",
    Servo: "maintained by chosen forces",
}
"""Kind of constraint -> its equation."""

SAMPLES = 4
"""Number of random configurations at which the rank is computed."""

DEEPEST = 24
"""Largest indentation of a name in the tree, for bodies at this level and deeper."""


class Rank(NamedTuple):
    """The rank of the rows at one state.   where: name of the state.   reason: why no state near it meets the constraints.

    independent: (rows,) whether each row is independent of those before it; None if there is no such state.
    """

    where: str
    independent: np.ndarray | None
    reason: str = ""


def describe(m: Mechanism, settings: RunSettings) -> str:
    """The whole description, at the parameters of the run. The interpreter computes the ranks, so nothing is compiled."""
    p = settings.arrays(m).p
    parts = [
        _head(m, p),
        _tree(m, p),
        _coordinates(m),
        _inputs(m),
        _parameters(m, settings),
        _forces(m),
        _constraints(m, settings),
        _unphysical_bodies(m, p),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(m: Mechanism, p: np.ndarray) -> str:
    """The number of parts of each kind, the dimensions, the total mass and gravity."""
    g = ", ".join(f"{x:.6g}" for x in m.value(m.gravity, p).ravel())
    mass = sum(m.value(b.mass, p).item() for b in m.bodies)
    parts = {"body": m.bodies, "joint": m.joints, "constraint": m.all_constraints, "force": m.all_forces}
    others = f", {plural(sum(c.nq for c in m.coordinates), 'coordinate')} outside of joints" if m.coordinates else ""
    counts = ", ".join(plural(len(items), word) for word, items in parts.items() if items)
    return (
        f"{text(m.name, 60)}: {counts}{others}\n"
        f"  nq {m.nq} (configuration), nv {m.nv} (velocity), nu {m.nu} (inputs)\n"
        f"  total mass {mass:.6g} kg, gravity ({g}) m/s^2"
    )


def _tree(m: Mechanism, p: np.ndarray) -> str:
    """Table of the bodies with their joints, each body indented below its parent."""
    rows = [(" " * min(depth, DEEPEST) + j.child, j.name, j.kind.name, _units(j), *_limits(j), _mass(m, j.child, p))
            for depth, j in _depth_first(m)]  # fmt: skip
    header = ("body", "by joint", "kind", "q", "from", "to", "effort", "mass [kg]")
    return "tree, from the world\n" + table(rows, header)


def _coordinates(m: Mechanism) -> str:
    """Tables of the coordinates and velocities that belong to no joint."""
    rows = [(c.name, ", ".join(f"{n} [{u}]" for n, u in zip(c.q_names, c.q_units, strict=True)),
             ", ".join(f"{n} [{u}]" for n, u in zip(c.v_names, c.v_units, strict=True)), "phi(q) = 0" if c.phi else "free")
            for c in m.coordinates]  # fmt: skip
    parts = ["coordinates\n" + table(rows, ("name", "q", "v", "constraint"))] if rows else []
    if m.velocities:
        chosen = list(zip(m.velocities.names, m.velocities.units, strict=True))
        parts.append("velocities of the caller's choice\n" + table(chosen, ("name", "unit")))
    return "\n\n".join(parts)


def _depth_first(m: Mechanism) -> Iterator[tuple[int, Joint]]:
    """All joints depth first, each with its level in the tree, 0 on the world."""
    children: dict[str, list[Joint]] = {}
    for j in m.joints:
        children.setdefault(j.parent, []).append(j)
    stack = [(0, j) for j in reversed(children.get(WORLD, []))]
    while stack:
        depth, j = stack.pop()
        yield depth, j
        stack += [(depth + 1, c) for c in reversed(children.get(j.child, []))]


def _units(j: Joint) -> str:
    """A joint's coordinates grouped by unit, with its speeds if these are not their rates; or the joints that it follows."""
    if j.mimic:
        return f"follows {reprs.listed(j.mimic.joints)}"
    if j.distribution is not None:
        return f"{_grouped(j)} by {reprs.listed(j.v_names)}"
    return _grouped(j)


def _grouped(j: Joint) -> str:
    if j.nq <= 1:
        return "".join(f"[{u}]" for u in j.q_units)
    parts: dict[str, list[str]] = {}
    for name, unit in zip(j.q_names, j.q_units, strict=True):
        parts.setdefault(unit, []).append(name)
    return ", ".join(f"{' '.join(names)} [{unit}]" for unit, names in parts.items())


def _limits(j: Joint) -> tuple[str, str, str]:
    """Lower and upper limits of the coordinates, and the limit of the effort."""
    if not j.nv:
        return "", "", ""
    ends = (UNLIMITED,) if set(j.limits) == {UNLIMITED} else j.limits
    low, high = (", ".join(f"{x[end]:.4g}" if np.isfinite(x[end]) else "-" for x in ends) for end in (0, 1))
    unit = FORCE_UNITS.get(j.v_units[0], "") if j.nv == 1 else ""
    return low, high, f"{j.effort:.4g} {unit}" if np.isfinite(j.effort) and unit else "-"


def _mass(m: Mechanism, name: str, p: np.ndarray) -> str:
    return f"{m.value(m.body(name).mass, p).item():.5g}"


def _inputs(m: Mechanism) -> str:
    if not m.nu:
        return "inputs: none"
    limits = [(f"{low:.4g}", f"{high:.4g}") for low, high in m.u_limits]
    rows = [(n, u, *limit) for n, u, limit in zip(m.u_names, m.u_units, limits, strict=True)]
    return "inputs\n" + table(rows, ("name", "unit", "from", "to"))


def _parameters(m: Mechanism, settings: RunSettings) -> str:
    if not m.parameters:
        return "parameters: none"
    values = {p.name: settings.parameters.get(p.name, p.default) for p in m.parameters}
    rows = [(p.name, f"{p.default:.6g}", f"{values[p.name]:.6g}", p.unit) for p in m.parameters]
    return "parameters\n" + table(rows, ("name", "default", "in this run", "unit"))


def _forces(m: Mechanism) -> str:
    rows = [(f.name, type(f).__name__, reprs.description(f)) for f in m.all_forces]
    return "forces\n" + table(rows, ("name", "kind", "acts")) if rows else ""


def _constraints(m: Mechanism, settings: RunSettings) -> str:
    """Tables of the constraints and of the rank of their rows."""
    if not m.all_constraints:
        return f"constraints: none; {plural(m.nv, 'degree')} of freedom"
    names = row_names(symbols(m).kinematics)
    ranks = _ranks(m, settings)
    rows = [(c.name, *_kind(c), " ".join(n for n in _rows_of(c.name, names)) or c.name) for c in m.all_constraints]
    rank_rows = [(r.where, *_rank_columns(m, r, names)) for r in ranks]
    carrying = [(j.name, _units(j), *_limits(j)) for c in m.loop_joints.values() if c.carries and (j := c.joint)]
    carried = (
        "\n\njoints that close loops\n" + table(carrying, ("name", "coordinates", "from", "to", "effort")) if carrying else ""
    )
    return (
        f"constraints: {plural(len(names), 'row')}\n" + table(rows, ("name", "kind", "between", "rows"))
        + carried
        + "\n\nrank of the rows\n" + table(rank_rows, ("where", "rank", "dof", "redundant rows (given those before them)"))
        + _verdict(ranks, names)
    )  # fmt: skip


def _kind(c: Any) -> tuple[str, str]:
    """Kind or equation of a constraint, and the two bodies of a closure."""
    if isinstance(c, Closure):
        return c.kind, f"{text(c.body_a)} - {text(c.body_b)}"
    return EQUATION[type(c)], ""


def _rows_of(name: str, names: tuple[str, ...]) -> list[str]:
    """The names of a constraint's rows without the constraint's name."""
    return [n[len(name) + 1 :] for n in names if n.startswith(f"{name}.")]


def _ranks(m: Mechanism, settings: RunSettings) -> list[Rank]:
    """Ranks at the start and at random configurations, which are put onto the constraints in one batch."""
    independent = compile_terms(m, {"independent": lambda T: weighted_rows(T, T.rows.eta).independent}, lanes=1)
    start = settings.arrays(m)
    random_q = np.array([x.q for x in generic_states(m, parameters=start.p, count=SAMPLES)])
    at_start = _ranks_at(independent, m, start.q[None], start.p, dict(settings.v), tuple(settings.q))
    ranks = at_start + _ranks_at(independent, m, random_q, start.p)
    return [r._replace(where=f"random {i}" if i else "start") for i, r in enumerate(ranks)]


def _ranks_at(
    independent: Compiled,
    m: Mechanism,
    q: np.ndarray,
    p: np.ndarray,
    v: dict[str, float] | None = None,
    hold: tuple[str, ...] = (),
) -> list[Rank]:
    """Ranks at each q (runs, nq) after it is put onto the constraints, with the rates v and the coordinates `hold` fixed."""
    try:
        a = assemble(m, q, v, parameters=p, hold=hold, backend="numpy")
    except RunError as error:
        return [Rank("", None, str(error))] * len(q)
    at = [np.where(np.isfinite(x), x, 1.0) for x in (a.q, a.v)]  # nan where the constraints cannot be met
    rows = independent(*at, parameters=p)["independent"].reshape(len(q), -1) > 0
    return [Rank("", row if np.isfinite(x).all() else None) for row, x in zip(rows, a.q, strict=True)]


def _rank_columns(m: Mechanism, r: Rank, names: tuple[str, ...]) -> tuple[str, str, str]:
    """Rank, degrees of freedom and redundant rows at a state, as text."""
    if r.independent is None:
        return "-", "-", "no state near it closes"
    rank = int(r.independent.sum())
    redundant = [n for n, independent in zip(names, r.independent, strict=True) if not independent]
    more = f" and {len(redundant) - 6} more" if len(redundant) > 6 else ""
    return str(rank), str(m.nv - rank), (", ".join(redundant[:6]) or "none") + more


def _verdict(ranks: list[Rank], names: tuple[str, ...]) -> str:
    """Conclusions from all ranks, and the reason if the start does not meet the constraints."""
    independent = [r.independent for r in ranks if r.independent is not None]
    words = f"\n  start: {text(ranks[0].reason)}" if ranks[0].independent is None else ""
    if not independent:
        return words
    always = [n for n, k in zip(names, np.any(independent, axis=0), strict=True) if not k]
    if always:
        words += f"\n  redundant in every state tried: {text(', '.join(always))}"
    start = ranks[0].independent
    if start is not None and start.sum() < max(k.sum() for k in independent):
        words += "\n  the start is singular: other configurations have a higher rank"
    return words


def _unphysical_bodies(m: Mechanism, p: np.ndarray) -> str:
    """Table of the bodies whose inertia no real body has, with the reasons; empty if there are none."""
    wrong = unphysical(m, p)
    if not wrong:
        return ""
    return "unphysical bodies (used as they are)\n" + table(list(wrong.items()), ("body", "why"))
