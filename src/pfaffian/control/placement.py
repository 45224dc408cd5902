"""Prototypes with chosen poles, for machines with fewer inputs than motions. [konz25 4.8]

About a set point the machine can move as its prototype does only if the matching conditions hold, Lambda_K = 0 and Lambda_D = 0
(4.62). They couple the prototype's parameters, and those that remain free place the poles. Each function solves both problems
for one kind of machine; where the chosen poles are impossible, its error names the condition that they violate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.control.prototype_pair import Pair, pair
from pfaffian.errors import ModelError, brief
from pfaffian.model.number import floats, named_float, several
from pfaffian.parts.elastic import pseudo_matrix

SINGULAR = 1e12
"""A matrix with a condition number of at least this counts as singular."""


class Hover(NamedTuple):
    """A planar prototype of a machine that hovers by a thrust along one of its axes; made by `hover_placement`.

    mass: m [kg].   damping: d [N s/m].   stiffness: k [N/m].
    s: height of the prototype's mass centre above the machine's [m].   h: height of the centres of damping and stiffness [m].
    inertia: about the prototype's mass centre [kg m^2].   moment: rotational stiffness about h [N m]; there is no rotational
    damping about h.
    """

    mass: float
    damping: float
    stiffness: float
    s: float
    h: float
    inertia: float
    moment: float


class Matched(NamedTuple):
    """Matrices (n, n) of a prototype about a set point, in the machine's coordinates; made by `matched_placement`.

    inertia: Mbar.   damping: Dbar.   stiffness: Kbar.
    """

    inertia: np.ndarray
    damping: np.ndarray
    stiffness: np.ndarray


class TwoMasses(NamedTuple):
    """A prototype of two masses on a line, the first one driven; made by `two_mass_placement`.

    m01, m12, m02 [kg], d01, d12, d02 [N s/m] and k01, k12, k02 [N/m]: inertia, damping and stiffness between each two of the
    ground 0, the first mass 1 and the second mass 2.
    """

    m01: float
    m12: float
    m02: float
    d01: float
    d12: float
    d02: float
    k01: float
    k12: float
    k02: float


def hover_placement(poles: Any, *, coupling_length: float = 0.0, mass: float = 1.0, gravity: float = 9.81) -> Hover:
    """Prototype with four chosen poles of tilt, for a PVTOL, a quadcopter in one plane or a bicopter. [konz25 (4.141)]

        k = m p0 p1 / q,  d = m p1^2 / q,  h = eps + g p3 / p1,  s = eps + g p1 / q,  q = p1 p2 - p0 p3
        Theta = m (h - s) (s - eps),  Pi = m g (h - s),  s^4 + p3 s^3 + ... + p0 the polynomial of the poles

    The poles of the motion along the thrust follow from these: the roots of s^2 + (d / m) s + k / m.

    Args:
        poles: four, complex ones in pairs [1/s].
        coupling_length: eps [m], by which the machine's inputs push sideways as they turn it; Theta_z tan(beta) / (m l) for
            propellers whose thrusts lean outwards by beta at a distance l; default 0.
        mass: m of the prototype [kg]; default 1.
        gravity: [m/s^2], above zero; default 9.81.
    Returns:
        Hover.
    Raises ModelError: not four poles, or complex ones not in pairs; a mass or gravity not above zero; poles that cannot be
    placed, with the first condition that they violate.

    Example:
        >>> from pfaffian import control
        >>> x = control.hover_placement([-1, -1, -1, -1], gravity=10.0)
        >>> round(x.damping, 6), round(x.stiffness, 6)  # 4^2 / (4 * 6 - 1 * 4) and 4 / 20
        (0.8, 0.2)
    """
    what = "hover_placement"
    p0, p1, p2, p3 = _polynomial(poles, what)
    m, g, eps = (
        named_float(x, f"{what}: {n}") for n, x in (("mass", mass), ("gravity", gravity), ("coupling_length", coupling_length))
    )
    if not (m > 0 and g > 0):
        raise ModelError(f"{what}: mass and gravity must be above zero, got {m:g} and {g:g}")
    q = p1 * p2 - p0 * p3
    _need(
        p0 > 0 and p1 > 0 and p2 > 0 and p3 > 0,
        what,
        "every coefficient of their polynomial is above zero, as stable poles require",
    )
    _need(q > 0, what, "p1 p2 - p0 p3 > 0, so that k and d are above zero")
    rest = p1 * p2 * p3 - p1**2 - p0 * p3**2
    _need(rest > 0, what, "p1 p2 p3 - p1^2 - p0 p3^2 > 0, so that h > s and Theta > 0")
    h, s = eps + g * p3 / p1, eps + g * p1 / q
    return Hover(m, m * p1**2 / q, m * p0 * p1 / q, s, h, m * (h - s) * (s - eps), m * g * (h - s))


def quadcopter_pair(
    body: str, poles: Any, *, heading: tuple[float, float], coupling_length: Any = 0.0, inertia_ratio: float = 1.0,
    mass: float = 1.0, gravity: float = 9.81,
) -> Pair:  # fmt: skip
    """Prototype with chosen poles of tilt and heading, for a multicopter that thrusts along its z axis. [konz25 (4.147)]

    Args:
        body: name of the body, whose frame is at the mass centre with z along the thrust.
        poles: four poles of tilt, complex ones in pairs [1/s].
        heading: (w0 [rad/s], zeta) of the polynomial s^2 + 2 zeta w0 s + w0^2 of heading.
        coupling_length: eps [m], or (eps_x, eps_y) for a bicopter: by how much the inputs push along x and y as they turn it
            about y and x (4.154). With two lengths the poles are those of tilt about x, and h and s are the same for both
            tilts. Default 0.
        inertia_ratio: inertia about z divided by that about x, which weights heading against tilt where the inputs do not
            suffice for both; default 1.
        mass: of the prototype [kg]; default 1.
        gravity: [m/s^2], above zero; default 9.81.
    Returns:
        Pair, for `prototype_tracking`.
    Raises ModelError: not four poles, or complex ones not in pairs; a mass, gravity, w0, zeta or inertia_ratio not above zero;
    poles that cannot be placed, with the first condition that they violate, which may be s > eps_x.

    Example:
        >>> from pfaffian import control
        >>> p = control.quadcopter_pair("body", [-1, -1, -1, -1], heading=(2.0, 1.0), gravity=10.0)
        >>> p
        <Pair: 'body' seen from 'world'>
        >>> round(float(p.stiffness[3, 3]), 6)  # k [N/m]
        0.2
    """
    what = "quadcopter_pair"
    eps, of_heading = floats(coupling_length, f"{what}: coupling_length"), floats(heading, f"{what}: heading")
    if eps.shape not in ((), (2,)) or of_heading.shape != (2,):
        raise ModelError(
            f"{what}: coupling_length is one number or two, and heading (w0, zeta), got {brief(coupling_length)} and "
            f"{brief(heading)}"
        )
    (w0, zeta), eps, ratio = of_heading.tolist(), np.broadcast_to(eps, 2), named_float(inertia_ratio, f"{what}: inertia_ratio")
    if not (w0 > 0 and zeta > 0 and ratio > 0):
        raise ModelError(f"{what}: w0, zeta and inertia_ratio must be above zero, got {w0:g}, {zeta:g} and {ratio:g}")
    x = hover_placement(poles, coupling_length=float(eps[1]), mass=mass, gravity=gravity)
    inertia_y = x.mass * (x.h - x.s) * (x.s - eps[0])
    _need(inertia_y > 0, what, f"s > eps_x, but s = {x.s:.4g} and eps_x = {eps[0]:.4g}")
    inertia_z = ratio * x.inertia
    return pair(
        body,
        inertia=pseudo_matrix(x.mass, (0, 0, x.s), (x.inertia, inertia_y, inertia_z)),
        damping=pseudo_matrix(x.damping, (0, 0, x.h), _about_z(2 * inertia_z * zeta * w0)),
        stiffness=pseudo_matrix(x.stiffness, (0, 0, x.h), (x.moment, x.moment, inertia_z * w0**2)),
    )


def two_mass_placement(poles: Any, *, ratio: float, coupling: float = 1.0) -> TwoMasses:
    """Prototype with four chosen poles, for two masses with a spring between them and a force on the first. [konz25 4.8.1]

    Args:
        poles: four, complex ones in pairs [1/s].
        ratio: varpi = k12 / m2 of the machine [1/s^2], above zero.
        coupling: m12 of the prototype [kg]; not zero, with the sign of varpi p3 - p1, where s^4 + p3 s^3 + ... + p0 is the
            polynomial of the poles; default 1.
    Returns:
        TwoMasses.
    Raises ModelError: not four poles, or complex ones not in pairs; arguments for which the poles cannot be placed, with the
    first condition that they violate.

    Example:
        >>> from pfaffian import control
        >>> x = control.two_mass_placement([-1, -1, -1, -1], ratio=2.0)
        >>> round(x.d01, 6), round(x.k01, 6)  # p1 p3 / q and p0 p3 / q with p1 = p3 = 4, q = 2 * 4 - 4
        (4.0, 1.0)
    """
    what = "two_mass_placement"
    p0, p1, p2, p3 = _polynomial(poles, what)
    w, m12 = named_float(ratio, f"{what}: ratio"), named_float(coupling, f"{what}: coupling")
    q = w * p3 - p1
    _need(min(p0, p1, p2, p3) > 0, what, "every coefficient of their polynomial is above zero, as stable poles require")
    _need(w > 0, what, "ratio > 0: the machine has a spring")
    _need(p1 * p2 * p3 - p1**2 - p0 * p3**2 > 0, what, "p1 p2 p3 - p1^2 - p0 p3^2 > 0")
    _need(q * m12 > 0, what, f"coupling has the sign of varpi p3 - p1 = {q:.6g}")
    m01, m02 = m12 * p1 / q, m12 * (p1 * p2 - p0 * p3 - w * p1) / (w * q)
    k01, d01 = m12 * p0 * p3 / q, m12 * p1 * p3 / q
    D = m01 * m02 + m01 * m12 + m02 * m12
    k12, k02 = (m12 * k01 + D * w) / m01, -m12 / (m01 + m12) * k01
    return TwoMasses(m01, m12, m02, d01, m12 / m01 * d01, -m12 / (m01 + m12) * d01, k01, k12, k02)


def matched_placement(inertia: Any, stiffness: Any, input_direction: Any, poles: Any, *, scale: float = 1.0) -> Matched:
    """Prototype with 2 n chosen poles about a set point, for any machine with one input, M x'' + K x = b u.

    For any stable poles one prototype satisfies both matching conditions (4.62). Let p(s) = e(s^2) + s o(s^2) be the poles'
    polynomial. Then e has n roots -w_i^2, and o / e = sum c_i / (s^2 + w_i^2) has c_i > 0 (Hermite, Biehler), so that

        V = [(K - w_i^2 M)^-1 b],  z = V^-1 M^-1 b,  D = diag(c_i / z_i^2),  Omega = diag(w_i)
        Mbar = V^-T D V^-1,  Kbar = V^-T D Omega^2 V^-1,  Dbar = d d^T with d = Mbar M^-1 b

    are positive, and the closed loop, damped through the one input, has the characteristic polynomial p(s). For a PVTOL this
    is `hover_placement`, for two masses `two_mass_placement`. To use the result in `prototype_tracking`, find pairs of bodies
    whose matrices add up to it.

    Args:
        inertia: M (n, n) of the machine.
        stiffness: K (n, n) of the machine, including that of weight and thrust; it need not be symmetric.
        input_direction: b (n,), the generalised force of a unit input.
        poles: 2 n, complex ones in pairs [1/s].
        scale: Mbar[0, 0], which sets the scale of the prototype; default 1.
    Returns:
        Matched.
    Raises ModelError: sizes that differ; `scale` not above zero; poles that cannot be placed, with the first condition that
    they violate.

    Example:
        >>> from pfaffian import control
        >>> x = control.matched_placement([[1.0]], [[0.0]], [1.0], poles=[-1, -2])  # s^2 + 3 s + 2
        >>> round(x.damping.item(), 6), round(x.stiffness.item(), 6)
        (3.0, 2.0)
    """
    what = "matched_placement"
    given = {"inertia": inertia, "stiffness": stiffness, "input_direction": input_direction}
    M, K, b = (floats(x, f"{what}: {name}") for name, x in given.items())
    size, n = named_float(scale, f"{what}: scale"), b.size
    if b.shape != (n,) or M.shape != (n, n) or K.shape != (n, n) or not (n and size > 0):
        raise ModelError(f"{what}: M and K (n, n), b (n,) and scale above zero are needed")
    p = _coefficients(poles, 2 * n, what)
    w = -np.roots(p[0::2])
    _need(bool((np.roots(p).real < 0).all()), what, "they are stable")
    w = np.sort(w.real)
    c = np.array([np.polyval(p[1::2], -x) / np.prod(np.delete(w, i) - x) for i, x in enumerate(w)])
    modes = K - w[:, None, None] * M
    regular = np.array([np.linalg.cond(x) < SINGULAR for x in modes]).all()
    _need(bool(regular), what, "every w_i differs from the natural frequencies of the machine: move the poles a little")
    V = np.linalg.solve(modes, np.tile(b, (n, 1))[:, :, None])[:, :, 0].T
    V /= np.linalg.norm(V, axis=0)
    _need(np.linalg.cond(V) < SINGULAR, what, "the input reaches every motion of the machine")
    W, g = np.linalg.inv(V), np.linalg.solve(M, b)
    weights = c / (W @ g) ** 2
    Mbar, Kbar = W.T @ (weights[:, None] * W), W.T @ ((weights * w)[:, None] * W)
    scale = size / Mbar[0, 0]
    d = Mbar @ g
    return Matched(scale * Mbar, scale * np.outer(d, d), scale * Kbar)


def _about_z(moment: float) -> np.ndarray:
    """(3,) moments of a damping that resists turning about z alone; no body has such moments, but a prototype may."""
    return np.array([0.0, 0.0, moment])


def _polynomial(poles: Any, what: str) -> tuple[float, float, float, float]:
    """Coefficients p0 ... p3 of the polynomial s^4 + p3 s^3 + p2 s^2 + p1 s + p0 of four poles, as `_coefficients` does."""
    _, p3, p2, p1, p0 = map(float, _coefficients(poles, 4, what))
    return p0, p1, p2, p3


def _coefficients(poles: Any, n: int, what: str) -> np.ndarray:
    """(n + 1,) coefficients of the polynomial of n poles, highest power first.

    Raises ModelError: another number of poles, or complex ones not in pairs.
    """
    try:
        given = np.asarray(poles if several(poles) else [])
    except ValueError:  # rows of different lengths
        given = np.zeros(0)
    fits = given.shape == (n,) and given.dtype.kind in "fiuc" and np.isfinite(given).all()
    c = np.poly(given) if fits else np.zeros(0)
    if not fits or np.abs(np.imag(c)).max() > 1e-9 * np.abs(c).max():
        count = {4: "four", 6: "six"}.get(n, n)
        raise ModelError(f"{what}: {count} poles are needed, complex ones in pairs, got {brief(poles)}")
    return c.real


def _need(satisfied: bool, what: str, condition: str) -> None:
    """Raise ModelError unless the condition is satisfied."""
    if not satisfied:
        raise ModelError(f"{what}: the poles cannot be placed unless {condition}")
