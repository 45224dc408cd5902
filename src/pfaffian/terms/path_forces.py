"""Forces along paths: generalised forces, energies and wrenches on bodies."""

from __future__ import annotations

import casadi as ca

from pfaffian.model.path import Path, Pull
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.terms.kinematics import Kinematics


def length_gradient(k: Kinematics, path: Path, pulls: list[Pull]) -> ca.SX:
    """(nv, 1) derivative of the rate of a path's length with respect to v: minus the generalised force of a unit tension.

    Links that carry the whole path do not change its length; their entries are zero, and do not cost digits.

    pulls: those of the path.
    """
    tree, found = k.tree, ca.SX(k.mechanism.nv, 1)
    links = [tree.place[pull.body][0] for pull in pulls]
    shared = set.intersection(*[set(tree.path(link)) for link in links]) if links else set()
    for pull, link in zip(pulls, links, strict=True):
        if link >= 0 and link not in shared:
            X = tree.place[pull.body][1]
            J = k.columns(k.arms(link, X.R @ pull.point + X.p, shared))
            found -= J[:3, :].T @ pull.force
            found -= 0 if pull.moment is None else J[3:, :].T @ pull.moment
    for drum in path.drums:
        found += k.along_joint(drum.joint, drum.radius)
    return found


def path_spring_force(k: Kinematics, s: PathSpring) -> ca.SX:
    """(nv, 1) generalised force of a spring and damper along a path."""
    length, pulls = s.path.line(k)
    gradient = length_gradient(k, s.path, pulls)
    rate = ca.SX(0) if s.damping.is_zero() else ca.dot(gradient, k.v)
    return -gradient * s.tension_at(length, rate)


def path_spring_energy(k: Kinematics, s: PathSpring) -> ca.SX:
    """Energy of a spring along a path, stiffness x^2 / 2 with its stretch x [J]."""
    return s.stiffness * s.stretch(s.path.length(k)) ** 2 / 2


def winch_column(k: Kinematics, a: Winch) -> ca.SX:
    """(nv, 1) generalised force of a winch for an input of one."""
    gradient = length_gradient(k, a.path, a.path.line(k).pulls)
    return -a.gear * gradient * (ca.dot(gradient, k.v) if a.damps else 1)
