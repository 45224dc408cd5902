"""The equations of friction that follows loads, and their solution: small systems, one unknown for each joint.

With the load L_i, a sum of norms of w_i = w_i0 + G_i Q, the friction Q_i of a joint satisfies

    Q_i + mu_i sigma(s_i) L_i = 0

or with sticking Q_i = clip(Q_i - r_i / H_ii, mu_i L_i), for the rates r = r_0 + H Q that have to vanish. Where the friction of
a joint adds more to its own load than it takes from it, mu_i |sigma| L_i(G_ii) >= 1, this has no solution or several
(Painleve); below it has one. Together with others it has one if all pivots of I - K are positive, K_ij = mu_i |sigma_i|
L_i(G_ij).

One friction with one norm is a quadratic equation. Smooth friction of several joints is found by Newton's method, in which each
norm is its component along the direction of the previous w_i. Friction that sticks under fixed limits minimises the convex
Q^T H Q / 2 + r_0^T Q within them: H is singular where several joints share one motion, as those of a loop do, and their shares
are then not unique while the motion is. Each round therefore goes through the joints one by one, which needs H_ii only, and
then makes Newton steps for all that are held, each up to the first limit. Under fixed limits neither raises the minimised
function, and the rounds end at its minimum. [More and Toraldo 1991] Where limits depend on Q they end after one to three. Of
random equations of four joints that share two motions, with levers from 0.1 to 10, one in two hundred comes back to the same Q
after every round, since limits that move cost more than the round gains. There Newton's method is tried with each of the 3^n
ways in which joints are held or slide to either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import casadi as ca

from pfaffian import kernel
from pfaffian.maths.pack import pack, unpack

ITERATIONS = 5
"""Number of Newton iterations for the smooth friction of several joints, or of one with several parts."""

ROUNDS = 60
"""Largest number of rounds for friction that sticks. The kernel stops repeating them at their end."""

MOST_SPLIT = 5
"""Largest number of joints that stick for which each way to be held or to slide is tried where rounds do not end."""

RESIDUAL = 1e-8
"""Largest residual of the friction after the iterations, relative to the loads."""

SETTLED = 1e-10
"""Residual at which rounds end, relative to the loads."""

SHARING = 1e-8
"""Weight, relative to H_ii, that keeps Newton steps finite where several joints share one motion. Their end does not depend on
it, and its derivatives differ by this fraction.
"""

TINY_LOAD = 1e-9
"""[N, N m] Smoothing of a load, which gives it a derivative where there is none."""


class Grip(NamedTuple):
    """Whether a joint is held.   sticks: (1, 1) 1 or 0.   side: (1, 1) the sign of its friction where it is not held."""

    sticks: ca.SX
    side: ca.SX


class Linear(NamedTuple):
    """An equation near given frictions.

    value: (1, 1) its residual.   slopes: (1, n) along the frictions.
    goal: (1, 1) slopes Q of the Q that solves it linearly, for a joint that is not held.
    most: (1, 1) the largest friction under the load, with its sign if it does not stick.
    alone: (1, 1) the friction of this joint that solves its equation while loads and all others stay.
    grip: how this was decided.
    """

    value: ca.SX
    slopes: ca.SX
    goal: ca.SX
    most: ca.SX
    alone: ca.SX
    grip: Grip


class Equation(NamedTuple):
    """The equation of the friction Q_i of one joint.

    number: i.   factor: (1, 1) mu sigma with the sign of the rate, mu itself with sticking.   sizes, base, turned: of the parts
    of the load: their weights, values w0 (k, 1) without friction, and changes G (k, n) for a unit of each friction.
    rest: with sticking, (1, 1) r_i / H_ii without friction, and (1, n) its change for a unit of each friction.
    """

    number: int
    factor: ca.SX
    sizes: tuple[ca.SX, ...]
    base: tuple[ca.SX, ...]
    turned: tuple[ca.SX, ...]
    rest: tuple[ca.SX, ca.SX] | None

    def at(self, Q: ca.SX, grip: Grip | None = None) -> Linear:
        """The equation near frictions Q (n, 1).   grip: decided before; by Q if not given."""
        load, along, most_0 = ca.SX(0), ca.SX(1, Q.numel()), ca.SX(0)
        for c, w, G in zip(self.sizes, self.base, self.turned, strict=True):
            part = w + G @ Q
            size = ca.sqrt(ca.sumsqr(part) + TINY_LOAD**2)
            e = (self.factor * c / size) * part
            load, along, most_0 = load + c * size, along + e.T @ G, most_0 + ca.dot(e, w)
        most, mine, unit = self.factor * load, Q[self.number], ca.SX.eye(Q.numel())[self.number, :]
        if self.rest is None:
            return Linear(mine + most, unit + along, -most_0, most, -most, Grip(ca.SX(0), ca.SX(-1)))
        left = self.rest[0] + self.rest[1] @ Q
        aim = mine - left
        sticks, side = grip = grip or Grip(ca.fabs(aim) <= most, ca.if_else(aim > 0, 1, -1))
        value = ca.if_else(sticks, left, mine - side * most)
        slopes = ca.if_else(sticks, self.rest[1], unit - side * along)
        return Linear(value, slopes, side * most_0, most, ca.if_else(sticks, aim, side * most), grip)

    @property
    def feedback(self) -> ca.SX:
        """(1, n) the largest change of this friction for a unit of each friction, by way of its load."""
        size = sum((c * ca.sqrt(ca.sum1(G**2)) for c, G in zip(self.sizes, self.turned, strict=True)), ca.SX(0))
        return ca.fabs(self.factor) * size


def friction(equations: Sequence[Equation]) -> tuple[ca.SX, ca.SX]:
    """(n, 1) the friction of all joints, and (n + 1, 1) the faults, see `JointLosses`."""
    n = len(equations)
    if n == 1 and len(equations[0].sizes) == 1:
        Q, room = _of_one(equations[0])
        return Q, ca.vertcat(ca.logic_not(room > 0), 0)
    K = ca.vertcat(*[e.feedback for e in equations])
    pivots = ca.diag(_factors(ca.SX.eye(n) - K))
    Q = _by_newton(equations) if all(e.rest is None for e in equations) else _by_rounds(equations)
    missed = ca.logic_not(_residual(equations, Q) <= RESIDUAL)
    return Q, ca.vertcat(ca.logic_not(pivots > 0), missed)


def _of_one(e: Equation) -> tuple[ca.SX, ca.SX]:
    """The friction of one joint with a load of one part, and 1 - |c G|^2, c the size of the friction for a unit of it.

    A friction -c L has L >= 0 from (1 - |c G|^2) L^2 + 2 c w.G L - |w|^2 = 0; c is against the motion that would not be held.
    """
    (size,), (w,), (G,) = e.sizes, e.base, e.turned
    against = ca.SX(1) if e.rest is None else ca.if_else(e.rest[0] < 0, -1, 1)
    c, weight = against * e.factor * size, ca.sumsqr(w) + TINY_LOAD**2
    half, room = c * ca.dot(w, G), 1 - c**2 * ca.sumsqr(G)
    sliding = -c * weight / (half + ca.sqrt(half**2 + room * weight))
    if e.rest is None:
        return sliding, room
    resting = -e.rest[0]
    sticks = resting**2 <= c**2 * (ca.sumsqr(w + G * resting) + TINY_LOAD**2)
    return ca.if_else(sticks, resting, sliding), room


def _by_newton(equations: Sequence[Equation]) -> ca.SX:
    """(n, 1) Q after ITERATIONS of Newton."""
    Q = ca.SX.zeros(len(equations), 1)
    for _ in range(ITERATIONS):
        near = [e.at(Q) for e in equations]
        Q = _solve(_factors(ca.vertcat(*[x.slopes for x in near])), ca.vertcat(*[x.goal for x in near]))
    return Q


def _by_rounds(equations: Sequence[Equation]) -> ca.SX:
    """(n, 1) Q after rounds for friction that sticks, a search where these do not end, and a last Newton step, which gives it
    the derivatives of a solution."""
    given, n = tuple(equations), len(equations)
    Q, known = ca.SX.sym("Q", n), ca.SX.sym("equations", pack(given).numel())
    again = unpack(given, known)
    after = _call("friction", [Q, known], ca.if_else(_residual(again, Q) <= SETTLED, Q, _round(again, Q)))
    found = ca.SX.zeros(n, 1)
    for _ in range(ROUNDS):
        found = after(found, pack(given))
    if n <= MOST_SPLIT:
        missed = ca.logic_not(_residual(given, found) <= RESIDUAL)
        search = _call("search", [ca.SX.sym("missed"), known], _search(again), guarded=True)
        found = ca.if_else(missed, search(missed, pack(given)), found)
    return _step([e.at(found) for e in equations], found)[0]


def _search(equations: Sequence[Equation]) -> ca.SX:
    """(n, 1) the first Q that solves the equations, of those found with each way in which joints are held or slide."""
    given, n = tuple(equations), len(equations)
    state, known = ca.SX.sym("state", n + 1), ca.SX.sym("equations", pack(given).numel())
    again, Q, way = unpack(given, known), state[:n], state[n]
    digits = [ca.floor(way / 3**i) - 3 * ca.floor(way / 3 ** (i + 1)) for i in range(n)]
    grips, tried = [Grip(x == 0, ca.if_else(x == 1, 1, -1)) for x in digits], ca.SX.zeros(n, 1)
    for _ in range(ITERATIONS):
        tried += _newton_step([e.at(tried, g) for e, g in zip(again, grips, strict=True)])
    after = _call("way", [state, known], ca.if_else(_residual(again, Q) <= SETTLED, state, ca.vertcat(tried, way + 1)))
    found = ca.SX.zeros(n + 1, 1)
    for _ in range(3**n):
        found = after(found, pack(given))
    return found[:n]


def _call(what: str, inputs: list[ca.SX], output: ca.SX, *, guarded: bool = False) -> ca.Function:
    """A Function that stays a call, under a name of its own, as one kernel may call several of them."""
    name = f"{what}_{sha256(ca.Function(what, inputs, [output]).serialize().encode()).hexdigest()[:16]}"
    if guarded:
        return kernel.guarded(name, inputs, [output])
    return ca.Function(name, inputs, [output], {"never_inline": True})


def _round(equations: Sequence[Equation], Q: ca.SX) -> ca.SX:
    """(n, 1) Q after a pass through all joints, and a Newton step for each: one that ends at a limit lets go of the joint that
    reaches it."""
    Q = ca.SX(Q)
    for e in equations:
        Q[e.number] = e.at(Q).alone
    near = [e.at(Q) for e in equations]
    for _ in equations:
        Q, grips = _step(near, Q)
        near = [e.at(Q, g) for e, g in zip(equations, grips, strict=True)]
    return Q


def _step(near: Sequence[Linear], Q: ca.SX) -> tuple[ca.SX, list[Grip]]:
    """(n, 1) Q after a Newton step, up to the first limit that a held joint reaches; and which joints are held then."""
    step, shares = _newton_step(near), list[ca.SX]()
    for i, x in enumerate(near):
        beyond = ca.logic_and(x.grip.sticks, ca.fabs(Q[i] + step[i]) > x.most)
        room = ca.if_else(step[i] > 0, x.most, -x.most) - Q[i]
        shares.append(ca.if_else(beyond, ca.fmax(room / ca.if_else(beyond, step[i], 1), 0), 2))
    share = ca.fmin(ca.mmin(ca.vertcat(*shares)), 1)
    grips = [
        Grip(x.grip.sticks * (mine > share), ca.if_else(x.grip.sticks, ca.if_else(step[i] > 0, 1, -1), x.grip.side))
        for i, (x, mine) in enumerate(zip(near, shares, strict=True))
    ]
    return Q + share * step, grips


def _newton_step(near: Sequence[Linear]) -> ca.SX:
    """(n, 1) the change of Q after which all equations hold as long as they are linear and their joints stay held."""
    sharing = SHARING * ca.diag(ca.vertcat(*[x.grip.sticks for x in near]))
    slopes = ca.vertcat(*[x.slopes for x in near]) + sharing
    return -_solve(_factors(slopes), ca.vertcat(*[x.value for x in near]))


def _residual(equations: Sequence[Equation], Q: ca.SX) -> ca.SX:
    """(1, 1) the largest residual, relative to the load of its joint."""
    near = [e.at(Q) for e in equations]
    return ca.mmax(ca.vertcat(*[ca.fabs(Q[i] - x.alone) / (ca.fabs(x.most) + TINY_LOAD) for i, x in enumerate(near)]))


def _factors(A: ca.SX) -> ca.SX:
    """(n, n) L and U of A = L U in one matrix, without pivoting: L with ones on its diagonal, which is not stored."""
    A = ca.densify(A)
    for i in range(A.shape[0]):
        for j in range(i + 1, A.shape[0]):
            A[j, i] = A[j, i] / A[i, i]
            A[j, i + 1 :] = A[j, i + 1 :] - A[j, i] * A[i, i + 1 :]
    return A


def _solve(LU: ca.SX, b: ca.SX) -> ca.SX:
    """(n, 1) x with A x = b for the factors of A."""
    n, x = b.numel(), ca.densify(b)
    for i in range(n):
        x[i] -= sum((LU[i, j] * x[j] for j in range(i)), ca.SX(0))
    for i in reversed(range(n)):
        x[i] = (x[i] - sum((LU[i, j] * x[j] for j in range(i + 1, n)), ca.SX(0))) / LU[i, i]
    return x
