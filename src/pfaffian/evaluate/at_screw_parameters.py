"""Numerical products of exponentials: an open chain in screw parameters, at one state or a batch. [chhabra14 ch. 2]

s is (ns,) or (runs, ns) in the order of `exponentials(m).s_names`, or {name: number or (runs,)}; omitted ones are zero, which
is home. parameters: {name: value} or an array, defaults if None. `exponentials` gives these quantities as expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import as_batch, configurations, parameter_values
from pfaffian.evaluate.compiled import given, matrices
from pfaffian.evaluate.quantities import BodyPose
from pfaffian.evaluate.single_values import as_flag
from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.product_of_exponentials import Block, blocks, exponentials
from pfaffian.terms.traced_now import remembered


class Home(NamedTuple):
    """An open chain with all coordinates at zero: result of `home`.

    poses: body -> BodyPose in the world.
    twists: moving joint -> (..., 6, k) tau, whose columns are the twists [v; w] of its screw parameters in the world frame
        [m/rad, 1]; for a joint that follows others (mimic), the twists of its own motion.
    """

    poses: dict[str, BodyPose]
    twists: dict[str, np.ndarray]


class ScrewRates(NamedTuple):
    """Matrices between the rates of screw parameters, of coordinates, and velocities.

    Z: (..., nq, ns) q_dot = Z s_dot [chhabra14 (2.1.3b)].   Sigma: (..., ns, n) s_dot = Sigma v_bar, where v_bar contains the
    speeds that a distribution leaves, and s_dot for joints without one [chhabra14 (2.1.5)].
    of_v: (..., ns, nv) s_dot = of_v v, v body-fixed.
    """

    Z: np.ndarray
    Sigma: np.ndarray
    of_v: np.ndarray


def chart_to_screw(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Convert coordinates q to screw parameters s: the logarithm of each joint's motion. [chhabra14 (2.1.3a)]

    The rotation of a joint whose motions do not commute is at most pi. If they commute, any number of turns is allowed.

    Args:
        m: the mechanism, an open chain.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        s (..., ns) [m, rad], in the order of `exponentials(m).s_names`; with an axis of runs if several were given.
    Raises ModelError: a joint's pose has no logarithm (with the run); not an open chain of subgroups; wrong names or shapes.

    Example:
        >>> import pfaffian as pf
        >>> top = pf.body("top", 1.0, inertia=(1, 2, 3))
        >>> m = pf.mechanism("top", [top], [pf.joint("pivot", "spherical", "world", "top")])
        >>> pf.screws.chart_to_screw(m, [0.0, 0.0, 1.0, 1.0]).round(3)  # a quarter turn about z
        array([0. , 0. , 1.571])
    """
    joints = blocks(as_mechanism(m))
    at = given(q=(q, configurations(m, q)), parameters=(parameters, parameter_values(m, parameters)))
    s = np.empty((at.size, sum(b.subgroup.nv for b in joints)))
    for run, (q_run, p) in enumerate(zip(*at.spread, strict=True)):
        for b in joints:
            s[run, b.s] = _logarithm(m, b, q_run[b.q], p, f" in run {run}" if at.size > 1 else "")
    return at.shaped(s)


def _logarithm(m: Mechanism, b: Block, q: np.ndarray, p: np.ndarray, where: str) -> np.ndarray:
    """Screw parameters of one joint at its coordinates q and parameters p.   where: the run, for the message of an error."""
    g = b.subgroup
    if g.screws:
        g = g.with_pitch(ca.DM(ca.substitute(ca.SX(g.pitch), m.p_symbols, ca.DM(p))))
    try:
        return np.array(ca.DM(g.chart_to_screw(ca.DM(q)))).ravel()
    except ModelError as error:
        raise ModelError(f"joint {b.joint.name!r}{where}: {error}") from None


def screw_to_chart(m: Mechanism, s: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Convert screw parameters s to coordinates q; angles keep their number of turns. [chhabra14 (2.1.3a)]

    Args:
        m: the mechanism, an open chain.
        s: (ns,) or (runs, ns) array in the order of `exponentials(m).s_names`, or {name: number or (runs,)}; omitted ones
            are zero (home).
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        q (..., nq) [m, rad, 1]; with an axis of runs if several were given.
    Raises ModelError: wrong names or shapes; not an open chain of subgroups.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> m = pf.mechanism("disk", [pf.body("disk", 4.0, inertia=9.0)], [pf.joint("base", "planar", "world", "disk")])
        >>> pf.screws.screw_to_chart(m, [np.pi / 2, 0.0, np.pi / 2]).round(3)  # a quarter of a circle of radius 1 m
        array([1. , 1. , 1.571])
    """
    return _ask(m, (("q",),), s, parameters)[0][..., 0]


def screw_rates(m: Mechanism, s: Any = None, *, parameters: Any = None) -> ScrewRates:
    """Matrices between the rates of screw parameters, of coordinates, and velocities at s. [chhabra14 (2.1.3b), (2.1.5)]

    Args:
        m, s, parameters: as in `screw_to_chart`, one state or many.
    Returns:
        a named tuple: Z (..., nq, ns) with q_dot = Z s_dot; Sigma (..., ns, n) with s_dot = Sigma v_bar, where v_bar contains
        the speeds that a distribution leaves, and s_dot for joints without one; of_v (..., ns, nv) with s_dot = of_v v, v
        body-fixed.
    Raises ModelError: wrong names or shapes; not an open chain of subgroups.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (1, 0, 0)), pf.body("lower", 1.0, (1, 0, 0))]
        >>> elbow = pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> m = pf.mechanism("arm", bodies, [pf.joint("shoulder", "revolute", "world", "upper"), elbow])
        >>> pf.screws.screw_rates(m).Z  # the parameter of a revolute joint is its coordinate
        array([[1., 0.], [0., 1.]])
    """
    return ScrewRates(*_ask(m, (("Z",), ("Sigma",), ("of_v",)), s, parameters))


def product_of_exponentials(
    m: Mechanism, s: Any = None, *, bodies: Sequence[str] | None = None, parameters: Any = None
) -> dict[str, BodyPose]:
    """Poses of bodies in the world as a product of exponentials, exp(tau_1 s_1) ... exp(tau_m s_m) home. [chhabra14 thm. 2.2.3]

    If every joint has one coordinate, this is Brockett's formula.

    Args:
        m: the mechanism, an open chain.
        s: (ns,) or (runs, ns) array in the order of `exponentials(m).s_names`, or {name: number or (runs,)}; omitted ones
            are zero (home).
        bodies: names of the bodies, in the order of the result; all of them if None.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        {body: BodyPose}, with `position` (..., 3) [m] and `rotation` (..., 3, 3); with an axis of runs if several were
        given.
    Raises ModelError: unknown names, wrong shapes; a closed chain (with the closing element); an edge.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (1, 0, 0)), pf.body("lower", 1.0, (1, 0, 0))]
        >>> elbow = pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> m = pf.mechanism("arm", bodies, [pf.joint("shoulder", "revolute", "world", "upper"), elbow])
        >>> pf.screws.product_of_exponentials(m, {"shoulder": np.pi / 2})["lower"].position.round(3)
        array([0., 1., 0.])
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
    """Jacobian of a body with respect to screw parameters, [v; w] = J s_dot. [chhabra14 (2.3.7), (2.3.11)-(2.3.13)]

    Args:
        m: the mechanism, an open chain.
        body: name of the body.
        s: (ns,) or (runs, ns) array in the order of `exponentials(m).s_names`, or {name: number or (runs,)}; omitted ones
            are zero (home).
        relative_to: body relative to which the body moves, the world by default.
        frame: body whose frame gives the axes and the origin of the twist: the world (default) for the spatial Jacobian, the
            body itself for the body Jacobian.
        modified: True returns J Sigma (..., 6, n) instead, for the speeds v_bar of `screw_rates`. False by default.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J (..., 6, ns) [m, rad per unit of s]; with an axis of runs if several were given.
    Raises ModelError: unknown names, wrong shapes; a closed chain (with the closing element); an edge.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (1, 0, 0)), pf.body("lower", 1.0, (1, 0, 0))]
        >>> elbow = pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> m = pf.mechanism("arm", bodies, [pf.joint("shoulder", "revolute", "world", "upper"), elbow])
        >>> pf.screws.screw_jacobian(m, "lower")[[1, 5]]  # rows vy, wz: the elbow turns about z at x = 1 m
        array([[ 0., -1.], [ 1., 1.]])
    """
    which = [_body(as_mechanism(m), b) for b in (body, relative_to, frame)]
    (J,) = _ask(m, (("modified" if as_flag(modified, "modified") else "jacobian", *which),), s, parameters)
    return J


def home(m: Mechanism, *, parameters: Any = None) -> Home:
    """Poses of the bodies and twists of the joints of an open chain with all coordinates at zero. [chhabra14 def. 2.1.4]

    Args:
        m: the mechanism, an open chain.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        a named tuple: poses {body: BodyPose} in the world, and twists {moving joint: (..., 6, k)}, whose columns are the twists
        [v; w] of its screw parameters in the world frame [m/rad, 1].
    Raises ModelError: a closed chain (with the closing element); an edge; wrong names or shapes.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (1, 0, 0)), pf.body("lower", 1.0, (1, 0, 0))]
        >>> elbow = pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> m = pf.mechanism("arm", bodies, [pf.joint("shoulder", "revolute", "world", "upper"), elbow])
        >>> pf.screws.home(m).twists["elbow"].ravel()  # about z at x = 1 m
        array([ 0., -1., 0., 0., 0., 1.])
    """
    moving = tuple(j.name for j in as_mechanism(m).joints if j.moves)
    names = tuple(b.name for b in m.bodies)
    G, *twists = _ask(m, (("homes", *names), *(("twists", j) for j in moving)), None, parameters)
    return Home(_poses(names, G), dict(zip(moving, twists, strict=True)))


def _poses(names: Sequence[str], G: np.ndarray) -> dict[str, BodyPose]:
    """{body: pose} from G (..., 3, 4 n), the matrices [R p] of n bodies side by side."""
    return {n: BodyPose(G[..., 4 * i + 3], G[..., 4 * i : 4 * i + 3]) for i, n in enumerate(names)}


def _body(m: Mechanism, name: str) -> str:
    """The name of a body or of the world. Raises ModelError: there is no such body."""
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
"""Quantity -> function of Exponentials and further arguments that returns its expression."""


def _ask(m: Mechanism, requested: tuple[tuple[str, ...], ...], s: Any, parameters: Any) -> list[np.ndarray]:
    """Evaluate quantities: (..., rows, columns) of each.   requested: for each its name in _QUANTITIES, then its arguments."""
    E = exponentials(as_mechanism(m))
    at = given(
        s=(s, as_batch(s, E.s_names, np.zeros(E.s.numel()), "s")), parameters=(parameters, parameter_values(m, parameters))
    )
    shapes, compiled = _compiled(m, requested)
    return matrices(compiled, at, shapes)


@remembered(256)
def _compiled(m: Mechanism, requested: tuple[tuple[str, ...], ...]) -> tuple[tuple[tuple[int, int], ...], kernel.Kernel]:
    """The shapes of the requested quantities, and the compiled function (s, p) -> each of them as a vector."""
    E = exponentials(m)
    values = [ca.densify(_QUANTITIES[what](E, *arguments)) for what, *arguments in requested]
    function = ca.Function("exponentials", [E.s, m.p_symbols], [ca.vec(x) for x in values])
    return tuple(x.shape for x in values), kernel.compile(lambda: function, key=f"exponentials {requested!r} {digest(m)}")
