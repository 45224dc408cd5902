"""Products of exponentials as numbers: an open chain in screw parameters, at one state or a batch. [chhabra14 ch. 2]

s is (ns,) or (runs, ns) in the order of `exponentials(m).s_names`, or {name: number or (runs,)}, zero where not named: home.
parameters: {name: value} or an array, defaults if None. The same as expressions: `exponentials`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_flag, configurations, parameter_values, runs
from pfaffian.evaluate.compiled import given, matrices
from pfaffian.evaluate.quantities import BodyPose
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.terms.digest import digest
from pfaffian.terms.exponentials import Block, blocks, exponentials
from pfaffian.terms.present import remembered


class Home(NamedTuple):
    """An open chain where all its coordinates are zero.

    poses: body -> BodyPose in the world.
    twists: joint that moves -> (..., 6, k) tau, its columns the twists [v; w] of its screw parameters seen from the world
        [m/rad, 1]; a joint that follows others has those of its own motion.
    """

    poses: dict[str, BodyPose]
    twists: dict[str, np.ndarray]


class ScrewRates(NamedTuple):
    """Rates of screw parameters beside others.

    Z: (..., nq, ns) q_dot = Z s_dot [chhabra14 (2.1.3b)].   Sigma: (..., ns, n) s_dot = Sigma v_bar, v_bar the speeds that
    distributions leave and s_dot elsewhere [chhabra14 (2.1.5)].   of_v: (..., ns, nv) s_dot = of_v v, v body-fixed.
    """

    Z: np.ndarray
    Sigma: np.ndarray
    of_v: np.ndarray


def chart_to_screw(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """s (..., ns) of coordinates q: the logarithm of each joint's motion, by rotations within pi where its motions do not
    commute and however many turns where they do. [chhabra14 (2.1.3a)]

    m: the mechanism.   q: (nq,) or (runs, nq) or {name: number}.   parameters: as said above.
    Raises ModelError: a joint stands where there is no logarithm, and at which run; not an open chain of subgroups.
    """
    found = blocks(as_mechanism(m))
    at = given(q=(q, configurations(m, q)), parameters=(parameters, parameter_values(m, parameters)))
    s = np.empty((at.size, sum(b.subgroup.nv for b in found)))
    for run, (here, p) in enumerate(zip(*at.spread, strict=True)):
        for b in found:
            s[run, b.s] = _logarithm(m, b, here[b.q], p, f" in run {run}" if at.size > 1 else "")
    return at.answer(s)


def _logarithm(m: Mechanism, b: Block, q: np.ndarray, p: np.ndarray, where: str) -> np.ndarray:
    g = b.subgroup
    if g.screws:
        g = g.with_pitch(ca.DM(ca.substitute(ca.SX(g.pitch), m.p_symbols, ca.DM(p))))
    try:
        return np.array(ca.DM(g.chart_to_screw(ca.DM(q)))).ravel()
    except ModelError as error:
        raise ModelError(f"joint {b.joint.name!r}{where}: {error}") from None


def screw_to_chart(m: Mechanism, s: Any = None, *, parameters: Any = None) -> np.ndarray:
    """q (..., nq) of screw parameters, angles as they are, however many turns. [chhabra14 (2.1.3a)]

    m: the mechanism.   s, parameters: as said above.   Raises ModelError: wrong names or shapes; no open chain of subgroups.
    """
    return _ask(m, (("q",),), s, parameters)[0][..., 0]


def screw_rates(m: Mechanism, s: Any = None, *, parameters: Any = None) -> ScrewRates:
    """How rates of screw parameters, of coordinates and velocities go together at s, see `ScrewRates`.

    m: the mechanism.   s, parameters: as said above.   Raises ModelError: as `screw_to_chart`.
    """
    return ScrewRates(*_ask(m, (("Z",), ("Sigma",), ("of_v",)), s, parameters))


def product_of_exponentials(
    m: Mechanism, s: Any = None, *, bodies: Sequence[str] | None = None, parameters: Any = None
) -> dict[str, BodyPose]:
    """Name -> BodyPose in the world of the named bodies (all if None): exp(tau_1 s_1) ... exp(tau_m s_m) home.

    [chhabra14 thm. 2.2.3]; Brockett's formula where every joint has one coordinate.
    m: the mechanism.   s, parameters: as said above.   bodies: names, in the order of the answer.
    Raises ModelError: unknown names, wrong shapes; a closed chain, and what closes it; an edge.
    """
    known = tuple(b.name for b in as_mechanism(m).bodies)
    names = known if bodies is None else tuple(_body(m, b) for b in as_names(bodies, "bodies"))
    return _poses(names, *_ask(m, (("poses", *names),), s, parameters)) if names else {}


def screw_jacobian(
    m: Mechanism,
    body: str,
    s: Any = None,
    *,
    relative_to: str = WORLD,
    frame: str = WORLD,
    modified: bool = False,
    parameters: Any = None,
) -> np.ndarray:
    """J (..., 6, ns) with [v; w] = J s_dot, the twist of a body. [chhabra14 (2.3.7), (2.3.11)-(2.3.13)]

    Args:
        m: the mechanism.   body: name.   s, parameters: as said above.
        relative_to: body that sees the motion, the world if left out.
        frame: body in whose axes, and about whose origin, the twist is said: the world's gives the spatial Jacobian, the body's
            own the body Jacobian.
        modified: give J Sigma (..., 6, n) instead, by the speeds that distributions leave.
    Raises ModelError: unknown names, wrong shapes; a closed chain, and what closes it; an edge.
    """
    which = [_body(as_mechanism(m), b) for b in (body, relative_to, frame)]
    (J,) = _ask(m, (("modified" if as_flag(modified, "modified") else "jacobian", *which),), s, parameters)
    return J


def home(m: Mechanism, *, parameters: Any = None) -> Home:
    """Poses of the bodies and twists of the joints of an open chain at home, see `Home`. [chhabra14 def. 2.1.4]

    m: the mechanism.   parameters: as said above.   Raises ModelError: a closed chain, and what closes it; an edge.
    """
    moving = tuple(j.name for j in as_mechanism(m).joints if j.moves)
    names = tuple(b.name for b in m.bodies)
    G, *twists = _ask(m, (("homes", *names), *(("twists", j) for j in moving)), None, parameters)
    return Home(_poses(names, G), dict(zip(moving, twists, strict=True)))


def _poses(names: Sequence[str], G: np.ndarray) -> dict[str, BodyPose]:
    return {n: BodyPose(G[..., 4 * i + 3], G[..., 4 * i : 4 * i + 3]) for i, n in enumerate(names)}


def _body(m: Mechanism, name: str) -> str:
    return name if name == WORLD else m.body(name).name


_QUANTITIES: dict[str, Callable[..., ca.SX]] = {
    "q": lambda E: E.q,
    "Z": lambda E: E.Z,
    "Sigma": lambda E: E.Sigma,
    "of_v": lambda E: E.of_v,
    "poses": lambda E, *bodies: ca.horzcat(*[ca.horzcat(X.R, X.p) for X in map(E.pose, bodies)]),
    "homes": lambda E, *bodies: ca.horzcat(*[ca.horzcat(X.R, X.p) for X in map(E.home, bodies)]),
    "twists": lambda E, joint: E.twists(joint),
    "jacobian": lambda E, body, seen, frame: E.jacobian(body, relative_to=seen, frame=frame),
    "modified": lambda E, body, seen, frame: E.modified_jacobian(body, relative_to=seen, frame=frame),
}
"""Quantity -> what it is of Exponentials and further arguments."""


def _ask(m: Mechanism, wanted: tuple[tuple[str, ...], ...], s: Any, parameters: Any) -> list[np.ndarray]:
    """(..., rows, columns) of each quantity, named with its arguments."""
    E = exponentials(as_mechanism(m))
    at = given(s=(s, runs(s, E.s_names, np.zeros(E.s.numel()), "s")), parameters=(parameters, parameter_values(m, parameters)))
    shapes, compiled = _compiled(m, wanted)
    return matrices(compiled, at, shapes)


@remembered(256)
def _compiled(m: Mechanism, wanted: tuple[tuple[str, ...], ...]) -> tuple[tuple[tuple[int, int], ...], kernel.Kernel]:
    E = exponentials(m)
    values = [ca.densify(_QUANTITIES[what](E, *arguments)) for what, *arguments in wanted]
    function = ca.Function("exponentials", [E.s, m.p_symbols], [ca.vec(x) for x in values], {"cse": True})
    return tuple(x.shape for x in values), kernel.compile(lambda: function, key=f"exponentials {wanted!r} {digest(m)}")
