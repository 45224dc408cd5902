"""The stiff pair: Radau IIA of order 5 with an estimate of order 3, and a fixed number of simplified Newton iterations.

A stiff spring that turns with a machine acts like a constraint of index 3. Rosenbrock and diagonally implicit methods, whose
stages have order 1 or 2, fall to such an order there, or diverge: on a pendulum whose rod has 1e8 N/m, with steps of 5 ms, the
methods of order 4 and 5 of Rodas type were 1e-2 to 1e5 m off after 2 s, SDIRK of order 4 7e-3, TR-BDF2 1e-4, Radau IIA 2e-11.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.linear import largest_entry
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.shifted import Complex, shifted
from pfaffian.simulate.step.method import Moved, StepData, later_faults, rates_through
from pfaffian.simulate.step.pairs import SHORT


class StiffPair(NamedTuple):
    """An implicit pair.   order, estimated: see `EmbeddedPair`.

    rates: number of right-hand sides of a step.
    """

    order: int
    estimated: int
    rates: int

    def error(self, a: ca.SX, left: ca.SX) -> ca.SX:
        """The error of a step, from the size a of its estimate, of order 4, and of what the iterations left.

        Where motions are smooth the error has order 5, about 3 a^(5/4). A stiff direction that turns has errors of size a in
        its speed; as these do not add up, they count by 1/4. What the iterations leave does add up, and counts ADDED times.
        """
        return ca.fmax(ca.fmax(3 * a * ca.sqrt(ca.sqrt(a)), a / 4), ADDED * left)

    def turn(self, before: ca.SX, after: ca.SX) -> ca.SX:
        """The length of the step times the rate of the fastest motions, from the sizes of the two columns of `fastest`, between
        which the Jacobian was applied twice.
        """
        return ca.sqrt(after / ca.fmax(before, NOTHING))


ADDED = 1000
"""Weight of what the iterations left. It falls with a high power of the step, so that the weight hardly shortens the steps."""


_ROOT = 6**0.5
TIMES = ((4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0)
"""Times of the stages, in parts of the step."""

REAL = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
PAIR = complex(3 + (3 ** (1 / 3) - 3 ** (2 / 3)) / 2, -(3 ** (5 / 6) + 3 ** (7 / 6)) / 2)
"""Eigenvalues of the inverse of the matrix of coefficients: one real, one of a pair."""

VECTORS = (
    (0.09443876248897524, -0.14125529502095421, 0.03002919410514742),
    (0.25021312296533332, 0.20412935229379994, -0.38294211275726192),
    (1.0, 1.0, 0.0),
)
INVERSE = (
    (4.17871859155190428, 0.32768282076106237, 0.52337644549944951),
    (-4.17871859155190428, -0.32768282076106237, 0.47662355450055044),
    (0.50287263494578682, -2.57192694985560522, 0.59603920482822492),
)
"""Real and imaginary parts of its eigenvectors, and the inverse of this matrix. [Hairer, Wanner 1996, section IV.8]"""

ESTIMATE = ((-13 - 7 * _ROOT) / 3, (-13 + 7 * _ROOT) / 3, -1 / 3)
"""Weights of the stages in the estimated error."""

ITERATIONS = 7
"""Newton iterations of a step. The first starts from the state at the begin of the step, and needs no right-hand side."""

RADAU5 = StiffPair(5, 5, 3 * (ITERATIONS - 1) + 1)
"""The pair of order 5 of Radau type. [Hairer, Wanner 1996, section IV.8]"""

ROUNDING = 1e-9
"""A change in the last iteration is rounding if it is no larger than this part of that in the first."""

CONVERGED = 1e-3
"""Largest change in the last iteration that counts as converged, relative to 1 plus the largest number of the state."""

UNRESOLVED = (
    f"the iterations of the implicit integrator did not converge, or its steps {SHORT}: the motion has a kink, an end or a "
    "singularity, or a stiff part turns too fast; soften that part, or ask for a lower accuracy"
)


def radau5(s: StepData) -> Moved:
    """One step: Z = h A F(x + Z), where the last Z is the change of the stepped variables. [Hairer, Wanner 1996, section IV.8]

    Its Jacobian is that of the whole right-hand side, at the coordinates in the middle of the step, where a stiff direction
    that turns has its mean direction. The estimate is (mu - h J)^-1 (h f(x) + e Z) plus what the iterations may have left.
    """
    X, h, (at, rate) = s.variables.stepped(s.x), s.h, s.variables.straight
    first, middle = s.start(s.x, s.u0, s.t), ca.SX(X)
    middle[at, 0] += h / 2 * X[rate, 0]
    J = h * s.slopes(s.variables.state(middle), (s.u0 + s.u1) / 2, s.t + h / 2)
    real, pair = shifted(J, REAL, s.coordinates), shifted(J, PAIR, s.coordinates)
    still = ca.SX.zeros(*X.shape)
    W, Z, rates, changes = [still] * 3, [still] * 3, [h * first.rate] * 3, list[ca.SX]()
    faults, stage = first.faults, first
    for k in range(ITERATIONS):
        for i, c in enumerate(TIMES if k else ()):
            x = s.variables.state(X + Z[i])
            stage = s.f(x, s.u0 + c * (s.u1 - s.u0), s.t + c * h)
            rates[i] = h * stage.rate
            faults = later_faults(s, faults, first, x, stage) if k == ITERATIONS - 1 else faults
        r = _combined(INVERSE, rates)
        alone = real.solve(Complex(r[0] - REAL * W[0], ca.SX(*X.shape))).re
        both = pair.solve(Complex(r[1], r[2]).less(Complex(ca.SX(PAIR.real), ca.SX(PAIR.imag)) * Complex(W[1], W[2])))
        change = [alone, both.re, both.im]
        W = [w + d for w, d in zip(W, change, strict=True)]
        Z, change = _combined(VECTORS, W), _combined(VECTORS, change)
        changes.append(change[-1])
    estimated = real.solve(Complex(h * first.rate + _combined((ESTIMATE,), Z)[0], ca.SX(*X.shape))).re
    begun, before, last = (largest_entry(changes[k]) for k in (0, -3, -1))
    left = ca.if_else(last > ROUNDING * begun, ca.sqrt(ca.fmin(1, last / ca.fmax(before, NOTHING))), 0) * changes[-1]
    moved = s.variables.state(X + Z[-1])
    unconverged = ca.logic_not(last <= CONVERGED * (1 + largest_entry(s.x)))
    twice = J @ (J @ ca.SX([1 / (i + 1) for i in range(X.numel())]))
    fastest = ca.horzcat(twice, J @ (J @ twice))
    differences = ca.horzcat(estimated, left)
    return Moved(moved, faults, stage.near, unconverged, differences, fastest, rates_through(TIMES, Z, h))


def _combined(weights: tuple[tuple[float, ...], ...], of: list[ca.SX]) -> list[ca.SX]:
    """The sums of `of` with each of the rows of weights."""
    return [sum((w * x for w, x in zip(row, of, strict=True) if w), ca.SX.zeros(*of[0].shape)) for row in weights]
