"""Lines along paths, and what they go round, as parts of a scene."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from pfaffian.evaluate.compiled import compile_terms
from pfaffian.maths.so3 import exp
from pfaffian.model.constraint import Holonomic, Servo
from pfaffian.model.path import Guide, Path, Strand, Through
from pfaffian.model.path_force import FixedLength, PathSpring, Winch
from pfaffian.model.shape import Colour
from pfaffian.parts.cylinder import Cylinder
from pfaffian.terms.terms import Terms
from pfaffian.viewer.scene import MovingPart, PlacedMechanism, ScenePart
from pfaffian.viewer.solids import cylinder, sphere

LINE: Colour = (0.25, 0.22, 0.20, 1.0)
PULLEY: Colour = (0.55, 0.55, 0.60, 0.6)

CHORDS = 8
"""Number of chords that draw an arc."""


def paths_of(k: PlacedMechanism) -> Iterator[tuple[str, Path]]:
    """Name and path of each spring, winch and cable along a path, without those of the chambers of cylinders."""
    inside = [x.of.path for x in k.m.compounds if isinstance(x.of, Cylinder)]
    for f in (*k.m.all_forces, *k.m.actuators):
        if isinstance(f, (PathSpring, Winch)) and f.path not in inside:
            yield f.name, f.path
    for c in (c.target if isinstance(c, Servo) else c for c in k.m.all_constraints):
        if isinstance(c, Holonomic) and isinstance(c.phi, FixedLength):
            yield c.name, c.phi.path


def lines(k: PlacedMechanism) -> Iterator[MovingPart]:
    """The chords of all lines, straight pieces and arcs."""
    spans = [(name, *span) for name, p in paths_of(k) for s in p.strands if isinstance(s, Strand) for span in s.spans()]
    arcs = {str(i): lambda T, s=span: _corners(T, *s[1:]) for i, span in enumerate(spans)}
    s = k.states
    v = np.zeros((len(s.q), k.m.nv)) if s.v is None else s.v
    found = compile_terms(k.m, arcs, backend=s.backend).matrices(s.q, v, t=s.time, parameters=s.p) if arcs else {}
    for i, (name, *_) in enumerate(spans):
        corners = found[str(i)].reshape(len(s.q), 3, -1).transpose(0, 2, 1)
        for n in range(corners.shape[1] - 1):
            yield MovingPart(name, "rod", corners[:, n : n + 2], LINE, "lines", 0.006 * k.size)


def _corners(T: Terms, a: Through, round_: Guide | None, b: Through) -> ca.SX:
    """(3, n) points of the line from a to b in the world: its ends and, round a body, points along its arc."""
    k = T.kinematics
    ends = [k.position(x.body, x.point) for x in (a, b)]
    if round_ is None:
        return ca.horzcat(*ends)
    R, centre = k.rotation(round_.body) @ round_.frame.R, k.position(round_.body, round_.frame.p)
    seen = [R.T @ (x - centre) for x in ends]
    found, points = round_.wrapped(*seen), []
    height = 0 if round_.kind == "sphere" else found.last[2] - found.first[2]
    for part in np.linspace(0, 1, CHORDS + 1):
        on_arc = exp(found.turn * found.arc * part) @ found.first
        on_arc[2] += height * part
        points.append(ca.if_else(found.touches, on_arc, seen[0] + part * (seen[1] - seen[0])))
    return ca.horzcat(ends[0], *[R @ x + centre for x in points], ends[1])


def guides(k: PlacedMechanism) -> Iterator[ScenePart]:
    """The cylinders, spheres and pulleys that lines go round; each is drawn once, a cylinder as long as it is thick."""
    drawn: list[Guide] = []
    for name, p in paths_of(k):
        for x in (x for s in p.strands if isinstance(s, Strand) for x in s.stations if isinstance(x, Guide)):
            if x not in drawn:
                drawn.append(x)
                r = k.value(x.radius).item()
                solid = sphere(r) if x.kind == "sphere" else cylinder(r, 0.4 * r if x.kind == "pulley" else 2 * r, 36)
                yield ScenePart(name, k.number_of(x.body), solid.moved(*k.pose(x.frame)), PULLEY, "lines")
