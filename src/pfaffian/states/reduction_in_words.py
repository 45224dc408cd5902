"""A reduction in words: which momenta are in its state, and which of them are conserved."""

from __future__ import annotations

from collections.abc import Sequence

from pfaffian.evaluate.reduction_plan import INTERNAL, carrier
from pfaffian.evaluate.symmetry import symmetries
from pfaffian.maths.subgroups import name_of
from pfaffian.model import reprs
from pfaffian.model.joint import Joint
from pfaffian.states.reduction_data import Reduction
from pfaffian.terms.common_motion import CommonMotion
from pfaffian.terms.reduced_terms import (
    indices,
)
from pfaffian.terms.terms import shared


def about(r: Reduction) -> tuple[str, ...]:
    """A description of the plan, line by line."""
    m, plan = r.m, r.plan
    first, names = carrier(m), r.names
    out = list[str]()
    if isinstance(first, CommonMotion):
        out.append(
            f"joints {reprs.listed(first.joints)} are taken as one that carries all, {name_of(first.basis)} in the world; "
            f"its momentum is that of all bodies{', about the mass centre' if first.slides else ''}"
        )
    if r.along:
        out.append(
            f"the constraints leave {len(plan.y)} of {m.nv} velocities, directions that turn with the shape, named after "
            f"{_listed(names, plan.y)}"
        )
        if len(r.along.moved) < len(indices(m, r.along.base)):
            out.append(f"nothing depends on where {reprs.listed(r.along.base)} stands if it moves along its slides alone")
    elif plan.group:
        fixed = reprs.listed([j.name for j in m.joints if set(indices(m, (j.name,))) & set(plan.group)])
        out.append(f"the constraints fix the velocities of {fixed} by the others: {_listed(names, plan.y)}")
    for name in plan.spatial:
        out.append(f"momenta of joint {name!r} are spatial, {_reference(r, name)}")
    for name, _ in r.fields:
        out.append(f"the momentum of {name!r} is that of the field along it")
    out.append(f"conserved while no force acts along them: {_listed(names, plan.conserved)}")
    changing = [i for i in plan.y if i not in plan.conserved]
    out.append(f"changed by the motion itself: {_listed(names, changing)}")
    if not plan.group and (isinstance(first, CommonMotion) or first.distribution is None):
        of_all = symmetries(m)
        for motion, causes in of_all.broken:
            if motion.joint == of_all.joint:
                out.append(f"no symmetry by {motion.label}: {', '.join(causes)}")
    if plan.closed:
        internal = reprs.listed([c.name for c in m.all_constraints if isinstance(c, INTERNAL)])
        out.append(f"constraints {internal} exert reactions, which cancel in the momentum of all bodies")
    return tuple(out)


def _reference(r: Reduction, joint: str) -> str:
    """The reference point of the spatial momenta of a joint."""
    is_base = isinstance(r.base, Joint) and joint == r.base.name
    frame = r.frame(shared(r.m).kinematics) if is_base else None
    return (
        "about the mass centre; those of other joints are relative to a frame that moves with it"
        if frame
        else "about the joint's frame on its parent"
    )


def _listed(names: Sequence[str], entries: Sequence[int]) -> str:
    """The names of some entries, or "none"."""
    return ", ".join(reprs.listed([names[i]]) for i in sorted(entries)) or "none"
