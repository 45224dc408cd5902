"""The reduction of a mechanism: what is reduced, and the state in which that leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pfaffian.errors import ModelError, ModelWarning, brief, notice
from pfaffian.evaluate.directions_at_states import planned
from pfaffian.evaluate.reduction_plan import (
    as_group,
    carrier,
    further,
)
from pfaffian.evaluate.symmetry import symmetries
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.parts.rebound import impacts_of
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.conserved_fields import conserved_entries
from pfaffian.states.constants import with_constants
from pfaffian.states.inner_momenta import with_inner_momenta
from pfaffian.states.momentum_orbit import reduced_space
from pfaffian.states.one_momentum import at_momentum, checked_momentum
from pfaffian.states.reduced_state import reduced_state
from pfaffian.states.reduction_data import Fields, Reduction, shared_entries
from pfaffian.terms.common_motion import CommonMotion, carried_together
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import shared


def reduce(
    m: Mechanism, *, by: Any = None, momentum: Any = None, along: Mapping[str, Callable[[Kinematics], Any]] | None = None
) -> AbstractSystem:
    """The mechanism reduced by its symmetries and by its constraints on velocities, as a System for `run`.

    The state is [q; momentum]. Where no constraint acts on velocities, `momentum` begins with the spatial momentum of the
    first joint, which is conserved while no force acts on it. [chhabra14 (3.3.35)] If the first joint slides, this is the
    momentum along the axes of the joint's frame and the angular momentum about the mass centre, which are conserved as well,
    and the momenta of the other joints are relative to a frame that moves with the mass centre: no digits are lost however far
    and fast the machine moves. `momentum_map` gives the momentum about the frame. Where constraints act on velocities, the
    reduction looks for a group whose velocities they determine from the others (Chaplygin), and `momentum` belongs to the
    others. Where the constraints determine no group in every shape, as for a snakeboard, a roller racer or a car with a
    trailer, `momentum` belongs to directions that turn with the shape and are named after velocities: those that move the body
    on the first joints alone, of unit length (a turn counts as a slide at the typical lever of the constraints), and those of
    the shape's velocities. [chhabra14 prop. 4.2.15] In either case the momenta of further symmetries (axially symmetric
    rotors, posts of cranes) are conserved too, to the last bit while nothing drives them.

    Several first joints, as of satellites that a spring or a closure connects, and successive joints without mass between them
    (a translation and a ball; x, y and an angle) are treated as one joint that carries all bodies by the motions common to
    them: `momentum` then contains the momentum of all bodies, with the names all.vx to all.wz, instead of that of one joint.
    Symmetries of the first joint from its child's side, such as the spin of a top, have their momenta in `inner_momentum`;
    after each step the attitude is corrected to agree with them.

    Args:
        m: open chains or trees. Closures and equations of coordinates between their bodies remain constraints with reactions;
            closures to the floor are allowed together with wheels or blades, and are treated as constraints like these.
        by: under constraints on velocities, names of the joints whose velocities the constraints determine; searched if None.
        momentum: (k,) spatial momentum of the first joint in every run [N s, N m s], for a machine without external forces.
            The state is then that of the reduced space, [q; orbit; momentum]: orbit is the given momentum in the axes of the
            body, on its coadjoint orbit, and momentum that of the other joints. The given momentum is about the frame, so that
            far from the frame few digits remain of the part that turns the machine. A run warns of this; place the frame
            nearby. For several first joints it is the momentum of all bodies as `momentum_map` gives it, and the state is
            [q; momentum] with the other momenta. None: a state for any momentum, wherever the machine is.
        along: {name of a velocity: field}; field(k) returns the velocities sigma(q) (nv,) of a motion whose momentum <p,
            sigma> is a constant of motion. This momentum replaces that of the velocity in the state, and is conserved.
            [chhabra14 thm. 4.2.17] It has the unit of sigma, whose entry for that velocity is nowhere zero.
    Returns:
        A System. Results contain, besides q and v: `momentum`, by name; `momentum_drift`, the momenta computed from q and v of
        the bodies less the conserved momenta of the state; `momentum_rate_error`, the rates at which the full equations would
        change the conserved momenta other than those of the first joint; `reduction_error`, an estimate of the resulting
        departure from the full equations; `shape_momentum`, p - A^T mu_b of the other joints [chhabra14 (3.3.42)]; `constant`,
        the components of the first joint's momentum that gravity does not change, where they are along none of its axes, exact
        however long the machine falls. A run warns where these show that its motion departs from that of the full equations,
        and refuses parameters that break a symmetry. Printing the System shows which momenta are conserved.
    Raises ModelError: m is not a mechanism; the mechanism has no symmetry (the message names the causes); constraints on
    velocities leave neither a group nor directions that are the same wherever the first joints are, or determine a group of
    `by` only in some shapes; the constraints do not allow a field, or its momentum is not conserved (the message names the
    causes).

    Example:
        A motor between two bodies of 3 and 1 kg does not change their momentum, here 4 N s:

        >>> import pfaffian as pf
        >>> joints = [pf.joint("base", "prismatic", "world", "base", axis=(1, 0, 0)),
        ...           pf.joint("arm", "prismatic", "base", "arm", axis=(1, 0, 0))]
        >>> bodies = [pf.body("base", mass=3.0), pf.body("arm", mass=1.0)]
        >>> m = pf.mechanism("pair", bodies, joints, actuators=[pf.actuator("motor", "arm")])
        >>> result = pf.run(pf.reduce(m), v=[1.0, 0.0], u=[2.0], duration=0.1, step=0.01, backend="numpy")
        >>> result["momentum"].sel(momentum_entry="base").values[[0, -1]]
        array([4., 4.])
    """
    if momentum is not None:
        if by is not None or along is not None:
            raise ModelError(
                "reduce: momentum= is for a machine without constraints, at one momentum; by= is for a machine with "
                "constraints, along= for a state of any momentum"
            )
        m = as_mechanism(m)
        common = carried_together(m)
        return _at_momentum(m, common, momentum) if common else reduced_space(m, momentum)
    fields = {} if along is None else along
    if not isinstance(fields, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in fields.items()):
        raise ModelError(f"along: {{name of a velocity: function of Kinematics}} is needed, got {brief(along)}")
    return _reduced(as_mechanism(m), as_group(by), tuple(fields.items()))


def _reduction(m: Mechanism, by: tuple[str, ...] | None, fields: Fields = ()) -> Reduction:
    """The data of the reduced state, by the plan of the reduction. Raises ModelError: see `reduce`."""
    if impacts := impacts_of(m):
        raise ModelError(
            f"reduce: the impacts of {', '.join(impacts)} change momenta; run the mechanism itself, or give stiffness in place "
            "of impact"
        )
    plan, along = planned(m, by)
    plan = plan._replace(conserved=tuple(dict.fromkeys((*plan.conserved, *conserved_entries(m, plan, along, fields)))))
    first = carrier(m)
    base = first if isinstance(first, CommonMotion) or first.name in plan.spatial else None
    r = Reduction(m, plan, along, fields, base, further(m, plan), ())
    return r._replace(shared=shared_entries(r))


def _at_momentum(m: Mechanism, common: CommonMotion, momentum: Any) -> AbstractSystem:
    """The System at one momentum of all bodies, which several joints carry. Raises ModelError: see `reduce`."""
    if any(not isinstance(c, Closure) for c in m.all_constraints):
        raise ModelError(
            f"reduce: {m.name!r} has constraints besides closures, which do not fit one momentum: leave momentum out"
        )
    mu = checked_momentum(m, common, momentum)
    return at_momentum(reduced_state(_reduction(m, None)), common, mu)


def _reduced(m: Mechanism, by: tuple[str, ...] | None, fields: Fields = ()) -> AbstractSystem:
    """The System of a reduced state, with the momenta of inner symmetries and the constants under gravity added."""
    r = _reduction(m, by, fields)
    for words in r.plan.unclear:
        notice(f"{m.name!r}: {words}; it counts as not conserved", ModelWarning)
    state = reduced_state(r)
    if r.base is None:
        return state
    extended = with_inner_momenta(state)
    if isinstance(r.base, CommonMotion):
        return extended
    return with_constants(extended, symmetries(m), r.base, r.frame(shared(m).kinematics) is not None)
