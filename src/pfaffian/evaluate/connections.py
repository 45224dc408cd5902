"""The quantities of a reduction: momentum map, locked inertia, connections and their curvature, inertia of the shape.

They belong to the first joint: tau are its body velocities, s all other velocities, which move the shape. Where several joints
carry the machine together, tau are the speeds along the motions that these joints share, in the world frame. In a closed chain,
quantities that depend on s use only the s that the closures permit.
q and v are (n,) or (runs, n) arrays or {name: number}; None means neutral for q and rest for v. parameters: {name: value} or an
array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.floating_base import carrying, loops, one_joint, without_momentum
from pfaffian.dynamics.floating_base import permitted as put_onto_closures
from pfaffian.errors import ModelError
from pfaffian.evaluate.compiled import Quantity, evaluate
from pfaffian.evaluate.reduction_plan import as_group, plan
from pfaffian.maths.linear import solve_definite, solve_symmetric
from pfaffian.maths.subgroups import isotropy
from pfaffian.model.constraint import AccelerationConstraint, Nonholonomic
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats
from pfaffian.terms.common_motion import carried_together, common_motion
from pfaffian.terms.connection import commutation_coefficients, directional_derivative
from pfaffian.terms.momentum import total_momentum
from pfaffian.terms.orbit_chart import orbit_of, two_form
from pfaffian.terms.reduced_terms import (
    adjoint_inverse,
    blocks,
    curvature,
    first_joint,
    group_of,
    horizontal_lift,
    in_first_joint,
    indices,
    others,
    split,
)
from pfaffian.terms.terms import Terms
from pfaffian.terms.traced_now import remembered


def momentum_map(m: Mechanism, q: Any = None, v: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Spatial momentum of the machine along the first joint, in that joint's frame on its parent. [chhabra14 (3.3.35)]

    J = Ad_g^-T (K11 tau + K1s s), where tau are the body velocities of the first joint, s all other velocities and K the mass
    matrix. It is conserved if the group of the joint consists of symmetries. Constraints are ignored. Where several joints
    connect the machine to the world, it is the momentum of all bodies along the motions that these joints share, in the order
    of `CommonMotion` and of `pf.reduce`: translations, then turns about the origin of the world, along the world's axes if
    these span them.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        v: (nv,) or (runs, nv) array, or {velocity: number or (runs,)}; omitted velocities are zero.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        J (..., k) [N s, N m s], one for each velocity of the first joint; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> pf.reduction.momentum_map(m, [0.0, 0.0], {"turn": 2.0, "spin": 1.0})  # (4 + 1) * 2 + 1 * 1
        array([11.])
    """
    return _ask(m, "momentum", q, v, parameters)[..., 0]


def locked_inertia(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Inertia of the machine with every joint but the first locked, in the first joint's frame on its parent. [chhabra14
    (3.3.36)]

    I_q = Ad_g^-T K11 Ad_g^-1, where K11 is the first joint's block of the mass matrix. Constraints are ignored. Where several
    joints connect the machine to the world, the whole machine is locked and moves by the motions that these joints share, as in
    `momentum_map`.

    Args:
        m, q, parameters: as in `momentum_map`, which raises the same errors.
    Returns:
        I_q (..., k, k) [kg, kg m, kg m^2], k velocities of the first joint; with an axis of runs if several were given.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> pf.reduction.locked_inertia(m)  # hub 4, wheel 1
        array([[5.]])
    """
    return _ask(m, "locked", q, None, parameters)


def mechanical_connection(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """The connection A of the mass matrix: at zero momentum the first joint moves by tau = -A s. [chhabra14 (3.3.37)]

    A = K11^-1 K1s, where tau are the body velocities of the first joint, s all other velocities and K the mass matrix. Closures
    between bodies are respected: with them the result is A P, where P s is the permitted velocity nearest to s in the metric of
    M. Constraints on velocities are ignored. Where several joints connect the machine to the world, tau are the speeds along
    the motions that these joints share, in the world frame as in `momentum_map`, and s are the remaining velocities, as in the
    state of `pf.reduce`.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        A (..., k, n) [unit of tau by that of s]; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; a closure ties the machine to the world, or is active only at
    times; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> pf.reduction.mechanical_connection(m)  # the wheel turns the hub back by 1 / (4 + 1)
        array([[0.2]])
    """
    return _ask(m, "connection", q, None, parameters)


def shape_inertia(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Effective inertia M^ of the other joints when the first one moves freely. [chhabra14 (3.3.42)]

    M^ = Kss - K1s^T A with A = K11^-1 K1s, so that the kinetic energy is s^T M^ s / 2 + mu_b^T K11^-1 mu_b / 2. mu_b is the
    first joint's momentum in body axes, s are all other velocities and K is the mass matrix. With closures between bodies the
    result is P^T M^ P, as in `mechanical_connection`. Constraints on velocities are ignored.

    Args:
        m, q, parameters: as in `mechanical_connection`, which raises the same errors.
    Returns:
        M^ (..., n, n) [kg, kg m, kg m^2]; with an axis of runs if several were given.

    Example:
        >>> import pfaffian as pf
        >>> hub, wheel = pf.body("hub", 3.0, inertia=4.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> m = pf.mechanism("satellite", [hub, wheel], [turn, spin])
        >>> pf.reduction.shape_inertia(m).round(3)  # of the wheel 1 - 1 / 5
        array([[0.8]])
    """
    return _ask(m, "shape", q, None, parameters)


def connection_curvature(m: Mechanism, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Curvature B of the mechanical connection A of the first joint. [chhabra14 (3.3.43)]

    B_ij = d_i A_j - d_j A_i - gamma_ij^l A_l - [A_i, A_j]. When the shape goes round a small rectangle in directions i and j at
    zero momentum, the first joint moves by -B_ij times the area. With closures between bodies, both directions are projected
    onto them as in `mechanical_connection`, which gives the curvature of the closed chain. Constraints on velocities are
    ignored. Where several joints carry the machine together, it is the curvature of their connection, with tau in the world
    frame.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        B (..., n, n, k) with B[i, j] = B_ij [unit of tau by those of s_i and s_j, per second], for the k velocities tau of the
        first joint and the n others s; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; a closure ties the machine to the world, or is active only at
    times; a joint has a distribution; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> B = pf.reduction.connection_curvature(m, {"boom": 1.0})
        >>> round(float(B[0, 1, 0]), 3)  # d/dr of 1 / (4 + r^2) at r = 1 m
        -0.08
    """
    return _over_pairs(_ask(m, "curvature", q, None, parameters))


def isotropy_inertia(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Locked inertia along the motions of the first joint that leave a spatial momentum unchanged. [chhabra14 theorem 3.2.7]

    I^mu = i^T I_q i with the locked inertia I_q. The columns of i span the isotropy algebra of mu, as returned by
    `maths.subgroups.isotropy(S, mu)` for the basis S of the joint's group, or of the motions that several joints share.
    Constraints are ignored.

    Args:
        m: the mechanism.
        momentum: (k,) spatial momentum mu of the first joint [N s, N m s].
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        I^mu (..., d, d) [kg, kg m, kg m^2]; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; a momentum of another size; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> top = pf.body("top", 1.0, inertia=(1, 2, 3))
        >>> m = pf.mechanism("top", [top], [pf.joint("pivot", "spherical", "world", "top")])
        >>> pf.reduction.isotropy_inertia(m, [0.0, 0.0, 5.0])  # about z, the axis of the momentum
        array([[3.]])
    """
    return of_carrier(m, Quantity("isotropy inertia", _isotropy_inertia, _momentum(m, momentum)), q, None, parameters)


def isotropy_connection(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """The connection A^mu of the isotropy group of a spatial momentum: the component of v along that group. [chhabra14 theorem
    3.2.7]

    A^mu = (I^mu)^-1 i^T I A_q, where the columns of i are the motions of the first joint that leave mu unchanged. It is a
    principal connection of that group: 1 for velocities along the group and 0 for those orthogonal to it in the metric of M.
    The two-form Xi_mu does not need it, since <mu, [Lie(G_mu), .]> = 0. Constraints are ignored.

    Args:
        m: the mechanism.
        momentum: (k,) spatial momentum mu of the first joint [N s, N m s].
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        A^mu (..., d, nv) [unit of i's columns by that of v]; with an axis of runs if several were given.
    Raises ModelError: no joints carry the whole machine; a momentum of another size; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> top = pf.body("top", 1.0, inertia=(1, 2, 3))
        >>> m = pf.mechanism("top", [top], [pf.joint("pivot", "spherical", "world", "top")])
        >>> pf.reduction.isotropy_connection(m, [0.0, 0.0, 5.0])
        array([[0., 0., 1.]])
    """
    return of_carrier(m, Quantity("isotropy connection", _isotropy_connection, _momentum(m, momentum)), q, None, parameters)


def reduced_two_form(m: Mechanism, momentum: Any, q: Any = None, *, parameters: Any = None) -> np.ndarray:
    """Two-form Xi_mu of the reduced space that belongs to one spatial momentum. [chhabra14 (3.3.43)]

    Its arguments are the coordinates of the momentum's orbit, as in the state of `pf.reduce(m, momentum=mu)`, and the
    velocities of all other joints, projected onto closures between bodies as in `mechanical_connection`. Constraints on
    velocities are ignored.

    Args:
        m: the mechanism.
        momentum: (k,) spatial momentum mu of the first joint [N s, N m s].
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral. The first joint's
            entries give the point on the orbit.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        Xi_mu (..., d + n, d + n) [N m s by the units of the two coordinates]; with an axis of runs if several were given.
    Raises ModelError: no single first joint with a group of motions carries the machine; a momentum of another size; a closure
    that ties the machine to the world, or is active only at times; a joint has a distribution; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> hub, mass, wheel = pf.body("hub", 3.0, inertia=3.0), pf.body("mass", 1.0), pf.body("wheel", 1.0, inertia=1.0)
        >>> turn, spin = pf.joint("turn", "revolute", "world", "hub"), pf.joint("spin", "revolute", "hub", "wheel")
        >>> boom = pf.joint("boom", "prismatic", "hub", "mass", axis=(1, 0, 0))
        >>> m = pf.mechanism("satellite", [hub, mass, wheel], [turn, boom, spin])
        >>> Xi = pf.reduction.reduced_two_form(m, [5.0], {"boom": 1.0})
        >>> round(float(Xi[0, 1]), 3)  # 5 N m s by the curvature -0.08
        -0.4
    """
    one_joint(replace(as_mechanism(m), constraints=()), "reduced_two_form")
    what = Quantity("reduced two-form", _two_form, _momentum(m, momentum), constrained=True)
    return of_first_joint(loops(m, "reduced_two_form", FREE), what, q, None, parameters)


def _two_form(T: Terms, joint: str, *mu: float) -> ca.SX:
    """Xi_mu (d + n, d + n) of the closed chain, at the point of the orbit to which q moves mu."""
    j = T.mechanism.joint(joint)
    group = group_of(j)
    assert group is not None
    orbit = orbit_of(group, np.array(mu))
    o = ca.SX.sym("o", len(orbit.names))
    at = orbit.coordinates(*group.motion(T.q[T.mechanism.q_slices[joint], 0]))
    P = ca.diagcat(ca.SX.eye(len(orbit.names)), permitted(T, joint))
    return P.T @ ca.substitute(two_form(T, joint, orbit, o), o, at) @ P


def _momentum(m: Mechanism, momentum: Any) -> tuple[float, ...]:
    """A caller's momentum as k numbers. Raises ModelError: another size."""
    m = replace(as_mechanism(m), constraints=())
    name, common = carrying(m), carried_together(m)
    mu, k = floats(momentum, f"momentum of joint {name!r}"), common.basis.shape[1] if common else first_joint(m).nv
    if mu.shape != (k,):
        raise ModelError(f"momentum: {k} numbers are needed for joint {name!r}, got {mu.size}")
    return tuple(mu.tolist())


def _along_isotropy(T: Terms, joint: str, mu: tuple[float, ...]) -> ca.SX:
    """(nv, d) velocities v of the motions of the first joint, or of several together, that leave mu unchanged."""
    if common := carried_together(T.mechanism):
        return common.fields(T.kinematics) @ ca.SX(ca.DM(isotropy(common.basis, np.array(mu))))
    j = T.mechanism.joint(joint)
    group = group_of(j)
    assert group is not None
    S = ca.DM(T.mechanism.value(group.S))
    along = ca.SX(T.mechanism.nv, isotropy(S, np.array(mu)).shape[1])
    back = adjoint_inverse(j, T.q[T.mechanism.q_slices[joint], 0])
    along[indices(T.mechanism, (joint,)), :] = back @ ca.SX(ca.DM(isotropy(S, np.array(mu))))
    return along


def _isotropy_inertia(T: Terms, joint: str, *mu: float) -> ca.SX:
    """I^mu (d, d)."""
    along = _along_isotropy(T, joint, mu)
    return along.T @ T.M @ along


def _isotropy_connection(T: Terms, joint: str, *mu: float) -> ca.SX:
    """A^mu (d, nv)."""
    along = _along_isotropy(T, joint, mu)
    momentum = along.T @ ca.densify(T.M)
    return solve_definite(momentum @ along, momentum)


def constraint_connection(m: Mechanism, q: Any = None, *, by: Any = None, parameters: Any = None) -> np.ndarray:
    """The connection A^ of constraints on velocities: they determine a group's velocities v_G = -A^ y from all others, y.
    [chhabra14 (4.3.25)]

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        by: names of the joints of the group; found if None, as by `pf.reduce`.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        A^ (..., g, n) [unit of v_G by that of y]; with an axis of runs if several were given.
    Raises ModelError: no constraint on velocities; the constraints determine no group of joints, or a symmetry is missing (with
    its cause); wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("cart", 10.0), pf.body("wheel", 1.0, inertia=0.1)]
        >>> rail, axle = pf.joint("rail", "prismatic", "world", "cart"), pf.joint("axle", "revolute", "cart", "wheel")
        >>> rolling = pf.nonholonomic("rolling", lambda k: k.joint_rate("rail") - 0.1 * k.joint_rate("axle"))
        >>> m = pf.mechanism("cart", bodies, [rail, axle], constraints=[rolling], gravity=(0, 0, 0))
        >>> pf.reduction.constraint_connection(m)  # the radius of the wheel
        array([[-0.1]])
    """
    return of_first_joint(
        m, Quantity("constraint connection", _velocity_connection, _joints(m, by), constrained=True), q, None, parameters
    )


def constraint_curvature(m: Mechanism, q: Any = None, *, by: Any = None, parameters: Any = None) -> np.ndarray:
    """Curvature B^ of the connection A^ of constraints on velocities, v_G = -A^ y. [chhabra14 (4.2.14), (4.3.27)]

    B^_ij = d_i A^_j - d_j A^_i - gamma_ij^l A^_l - [A^_i, A^_j]. The two-form of the reduced machine is Xi^_ij = <P, B^_ij>
    with the momenta P of the group, and p_i_dot = -d_i H + ... - Xi^_ji y^j.

    Args:
        m: the mechanism.
        q: (nq,) or (runs, nq) array, or {coordinate: number or (runs,)}; omitted coordinates are neutral.
        by: names of the joints of the group; found if None, as by `pf.reduce`.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
    Returns:
        B^ (..., n, n, g) with B^[i, j] = B^_ij [unit of v_G by those of y_i and y_j, per second]; with an axis of runs if
        several were given.
    Raises ModelError: no constraint on velocities; the constraints determine no group of joints, or a symmetry is missing (with
    its cause); a joint has a distribution; wrong names, shapes or numbers.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> def rolling(k):  # two wheels of radius 0.1 m, 0.25 m to the left and right of a cart's centre
        ...     V, left, right = k.twist("cart"), k.joint_rate("left"), k.joint_rate("right")
        ...     return ca.vertcat(V[1], V[0] - 0.25 * V[5] - 0.1 * left, V[0] + 0.25 * V[5] - 0.1 * right)
        >>> bodies = [pf.body("cart", 10.0, inertia=1.0), *[pf.body(n, 1.0, inertia=0.1) for n in ("left", "right")]]
        >>> left = pf.joint("left", "revolute", "cart", "left", placement=(0, 0.25, 0), axis=(0, 1, 0))
        >>> right = pf.joint("right", "revolute", "cart", "right", placement=(0, -0.25, 0), axis=(0, 1, 0))
        >>> joints = [pf.joint("base", "planar", "world", "cart"), left, right]
        >>> m = pf.mechanism("robot", bodies, joints, constraints=[pf.nonholonomic("rolling", rolling)])
        >>> round(float(pf.reduction.constraint_curvature(m)[0, 1, 1]), 3)  # sideways per area of the wheels' angles
        0.02
    """
    x = of_first_joint(
        m, Quantity("constraint curvature", _velocity_curvature, _joints(m, by), constrained=True), q, None, parameters
    )
    return _over_pairs(x)


@remembered(64)
def _group(m: Mechanism, by: tuple[str, ...] | None) -> tuple[str, ...]:
    """Names of the joints whose velocities the constraints determine from the others. Raises ModelError: there are none."""
    group = plan(m, by).group
    if not group:
        raise ModelError(f"nothing constrains velocities of {m.name!r}: its only connection is mechanical_connection")
    return tuple(j.name for j in m.joints if m.v_slices[j.name].start in group)


def _joints(m: Mechanism, by: Any) -> tuple[str, ...]:
    """Names of the joints of the group, from a caller's argument `by`."""
    return _group(as_mechanism(m), as_group(by))


def _velocity_connection(T: Terms, first: str, *joints: str) -> ca.SX:
    """A^ (g, n) of a group of joints."""
    return -horizontal_lift(T, indices(T.mechanism, joints))[indices(T.mechanism, joints), :]


def _velocity_curvature(T: Terms, first: str, *joints: str) -> ca.SX:
    """B^ (g n, n) of a group of joints, in the layout of `curvature`."""
    return curvature(T, _velocity_connection(T, first, *joints), joints)


def _over_pairs(x: np.ndarray) -> np.ndarray:
    """(..., n, n, k) array from (..., k n, n), the layout of `curvature`."""
    n = x.shape[-1]
    return np.moveaxis(x.reshape(*x.shape[:-2], -1, n, n), -3, -1)


def _locked(T: Terms, joint: str) -> ca.SX:
    """Locked inertia I_q (k, k)."""
    m = T.mechanism
    back = adjoint_inverse(m.joint(joint), T.q[m.q_slices[joint], 0])
    return back.T @ blocks(T, joint).K11 @ back


def permitted(T: Terms, joint: str) -> ca.SX:
    """P (n, n): P s is the velocity permitted by the closures of T nearest to s, in the metric of M at zero momentum."""
    return without_momentum(T, joint)[others(T.mechanism, indices(T.mechanism, (joint,))), :]


def _shape(T: Terms, joint: str) -> ca.SX:
    """Inertia of the shape P^T M^ P (n, n)."""
    P = permitted(T, joint)
    return P.T @ blocks(T, joint).shape @ P


def _connection_curvature(T: Terms, joint: str) -> ca.SX:
    """B (k n, n) in the layout of `curvature`, with both directions projected onto the closures."""
    return _over_closures(curvature(T, blocks(T, joint).A, (joint,)), permitted(T, joint))


def _over_closures(B: ca.SX, P: ca.SX) -> ca.SX:
    """P^T B P for each of the k blocks of B (k n, n)."""
    n, out = P.shape[0], ca.SX(*B.shape)
    for first in range(0, B.shape[0], n):
        rows = slice(first, first + n)
        out[rows, :] = P.T @ B[rows, :] @ P
    return out


FREE = (Nonholonomic, AccelerationConstraint)
"""Kinds of constraints that these quantities ignore: constraints on velocities and accelerations."""

_QUANTITIES: dict[str, tuple[str, Callable[[Terms, str], ca.SX]]] = {
    "momentum": ("", in_first_joint),
    "locked": ("", _locked),
    "connection": ("mechanical_connection", lambda T, joint: blocks(T, joint).A @ permitted(T, joint)),
    "shape": ("shape_inertia", _shape),
    "curvature": ("connection_curvature", _connection_curvature),
}
"""Quantity -> its public name ("" if it ignores closures), and its function of Terms and the name of the first joint."""


class _Common(NamedTuple):
    """A machine that several joints carry together: v = X [w; s] with the speeds w along the common motions of these joints.

    free: (nv, n) motions of zero momentum for unit s.   speeds: (k, nv) w of the momentum of a velocity v.
    A: (k, n).   shape: (n, n) M^.   P: as in `permitted`.
    """

    free: ca.SX
    speeds: ca.SX
    A: ca.SX
    shape: ca.SX
    P: ca.SX


def _common_terms(T: Terms) -> _Common:
    """The terms of the common motions. They are computed about a point of the base, so that no digits are lost far from the
    world's origin, and then converted.
    """
    common, M = common_motion(T.mechanism), ca.densify(T.M)
    assert common is not None
    b, X = common.entries(T.kinematics.tree), common.near(T.kinematics)
    K = split(X.T @ T.M @ X, b)
    free = X[:, others(T.mechanism, b)] - X[:, b] @ K.A
    P = solve_symmetric(K.shape, free.T @ M @ put_onto_closures(T, free))
    speeds = common.about_origin(T.kinematics, solve_symmetric(K.K11, X[:, b].T @ M))
    return _Common(free, speeds, common.about_origin(T.kinematics, K.A), K.shape, P)


def _common_inertia(T: Terms) -> ca.SX:
    """(k, k) inertia of the whole machine along the common motions."""
    common = common_motion(T.mechanism)
    assert common is not None
    Y = common.fields(T.kinematics)
    return Y.T @ T.M @ Y


def _common_momentum(T: Terms) -> ca.SX:
    """Momentum (k, 1) of all bodies along the common motions."""
    common = common_motion(T.mechanism)
    assert common is not None
    return ca.DM(common.basis.T) @ total_momentum(T.kinematics)


def _common_connection(T: Terms) -> ca.SX:
    """A P (k, n) of the common motions."""
    of = _common_terms(T)
    return of.A @ of.P


def _common_curvature(T: Terms) -> ca.SX:
    """B (k n, n) in the layout of `curvature`: -A([H_i, H_j]) for the motions H of zero momentum, along which A is 0."""
    common, k = common_motion(T.mechanism), T.kinematics
    assert common is not None
    of = _common_terms(T)
    H, count = of.free, len(common.twists)
    along, gamma, (nv, n) = directional_derivative(k, ca.vec(ca.densify(H))), commutation_coefficients(k), H.shape
    slope = [along[nv * i : nv * (i + 1), :] for i in range(n)]  # [a, b]: d_b H_i^a
    turned = [sum((H[a, i] * g.T for a, g in enumerate(gamma)), ca.SX(nv, nv)) for i in range(n)]
    B = ca.SX(count * n, n)
    for i in range(n):
        for j in range(n):
            B[i::n, j] = -of.speeds @ (slope[j] @ H[:, i] - slope[i] @ H[:, j] + turned[i] @ H[:, j])
    return _over_closures(B, of.P)


def _common_shape(T: Terms) -> ca.SX:
    """P^T M^ P (n, n) of the common motions."""
    of = _common_terms(T)
    return of.P.T @ of.shape @ of.P


_COMMON_QUANTITIES: dict[str, Callable[[Terms], ca.SX]] = {
    "momentum": _common_momentum,
    "locked": _common_inertia,
    "connection": _common_connection,
    "shape": _common_shape,
    "curvature": _common_curvature,
}
"""Quantity -> function of Terms that gives it for a machine that several joints carry together."""


def _ask(m: Mechanism, what: str, q: Any, v: Any, parameters: Any) -> np.ndarray:
    """Evaluate an entry of _QUANTITIES, or of _COMMON_QUANTITIES if joints carry the machine together: (..., rows, columns)."""
    closed, f = _QUANTITIES[what]
    m = loops(as_mechanism(m), closed, FREE) if closed else as_mechanism(m)
    if what in _COMMON_QUANTITIES and carried_together(m):
        of_all = Quantity(f"{what} of several joints", _COMMON_QUANTITIES[what], constrained=bool(closed))
        return evaluate(m, of_all, q, v, parameters=parameters)
    return of_first_joint(m, Quantity(what, f, constrained=bool(closed)), q, v, parameters)


def of_carrier(m: Mechanism, what: Quantity, q: Any, v: Any, parameters: Any) -> np.ndarray:
    """Evaluate f(Terms, name of the carrier, *arguments): (..., rows, columns).

    The carrier is the first joint, or the joints that carry the machine together.
    """
    name = carrying(what.relevant_part(as_mechanism(m)))
    named = what._replace(name=f"{what.name} of what carries all", arguments=(name, *what.arguments))
    return evaluate(m, named, q, v, parameters=parameters)


def of_first_joint(m: Mechanism, what: Quantity, q: Any, v: Any, parameters: Any) -> np.ndarray:
    """Evaluate f(Terms, name of the first joint, *arguments): (..., rows, columns)."""
    first = first_joint(what.relevant_part(as_mechanism(m))).name
    named = what._replace(name=f"{what.name} of the first joint", arguments=(first, *what.arguments))
    return evaluate(m, named, q, v, parameters=parameters)
