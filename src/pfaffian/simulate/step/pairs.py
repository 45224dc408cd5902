"""Explicit Runge-Kutta pairs: results of different order from the same stages, whose difference tells the error of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import casadi as ca

from pfaffian.maths.reflection import NOTHING
from pfaffian.simulate.step.method import Moved, StepData, later_faults


class EmbeddedPair(NamedTuple):
    """An explicit Runge-Kutta pair.

    order: of the result.   c: times of the stages after the first, in parts of the step.   a: for each of these stages the
    weights {earlier stage: weight} of the rates from which it follows.   b: weights {stage: weight} of the result.
    errors: weights of differences between the result and results of lower order, each {stage: weight}.
    last: whether the rate at the result is one more stage, which only `errors` needs.
    estimated: order of the estimated error of a step, the power of its length with which `size` grows.
    limit: largest product of the length of a step and the rate of the fastest motion at which the rule is stable enough.
    """

    order: int
    c: tuple[float, ...]
    a: tuple[Mapping[int, float], ...]
    b: Mapping[int, float]
    errors: tuple[Mapping[int, float], ...]
    last: bool
    estimated: int
    limit: float

    def error(self, a: ca.SX, b: ca.SX | None = None) -> ca.SX:
        """The error of a step whose differences have the sizes a and b, of different order: a^2 / sqrt(a^2 + b^2 / 100).
        [Hairer, Norsett, Wanner 1993, section II.10]
        """
        return a if b is None else a**2 / ca.sqrt(ca.fmax(a**2 + b**2 / 100, NOTHING))

    def turn(self, before: ca.SX, after: ca.SX) -> ca.SX:
        """The length of the step times the rate of the fastest motions, from the sizes of the two columns of `fastest`: a
        combination of the stages that is free of slow motions, and the same of their rates.
        """
        return after / ca.fmax(before, NOTHING)


ATTEMPTS = 1_000_000
"""Greatest number of steps that a run tries."""

SHORT = f"became too short to change the time, or for {ATTEMPTS:,} of them to reach the end"
"""What the steps of a run did that no accuracy can be had of."""

TOO_SHORT = f"the steps that the accuracy needs {SHORT}: the motion has a kink, an end or a singularity"


def explicit(pair: EmbeddedPair, s: StepData) -> Moved:
    """One step of an explicit pair. [Hairer, Norsett, Wanner 1993, section II.4]

    Its second stage, a mere step of Euler, also follows the acceleration of coordinates whose rate is a velocity, so that no
    stage violates the constraints by h^2. The order conditions leave this stage free.
    """
    X, h, (at, rate) = s.variables.stepped(s.x), s.h, s.variables.straight
    first = stage = s.start(s.x, s.u0, s.t)
    rates, states, faults = [first.rate], [X], first.faults

    def reached(weights: Mapping[int, float]) -> ca.SX:
        return h * sum((w * rates[j] for j, w in weights.items()), ca.SX.zeros(*X.shape))

    for i, (c, weights) in enumerate(zip(pair.c, pair.a, strict=True)):
        X_stage = X + reached(weights)
        if i == 0:
            X_stage[at, 0] += c**2 / 2 * h**2 * first.rate[rate, 0]
        x_stage = s.variables.state(X_stage)
        stage = s.f(x_stage, s.u0 + c * (s.u1 - s.u0), s.t + c * h)
        faults = later_faults(s, faults, first, x_stage, stage)
        rates.append(stage.rate)
        states.append(X_stage)
    end = X + reached(pair.b)
    moved = s.variables.state(end)
    if pair.last:
        rates.append(s.f(moved, s.u1, s.t + h).rate)
        states.append(end)
    fastest = sum((w * states[j] for j, w in pair.errors[0].items()), ca.SX.zeros(*X.shape))
    differences = ca.horzcat(*map(reached, pair.errors))
    turning, ends = ca.horzcat(fastest, differences[:, 0]), ca.horzcat(rates[0], rates[-1])
    return Moved(moved, faults, stage.near, ca.SX(1, 1), differences, turning, ends)


DOP853 = EmbeddedPair(
    8,
    (
        0.05260015195876773,
        0.0789002279381516,
        0.1183503419072274,
        0.2816496580927726,
        0.3333333333333333,
        0.25,
        0.3076923076923077,
        0.6512820512820513,
        0.6,
        0.8571428571428571,
        1.0,
    ),
    (
        {0: 0.05260015195876773},
        {0: 0.0197250569845379, 1: 0.0591751709536137},
        {0: 0.02958758547680685, 2: 0.08876275643042054},
        {0: 0.2413651341592667, 2: -0.8845494793282861, 3: 0.924834003261792},
        {0: 0.037037037037037035, 3: 0.17082860872947386, 4: 0.12546768756682242},
        {0: 0.037109375, 3: 0.17025221101954405, 4: 0.06021653898045596, 5: -0.017578125},
        {
            0: 0.03709200011850479,
            3: 0.17038392571223998,
            4: 0.10726203044637328,
            5: -0.015319437748624402,
            6: 0.008273789163814023,
        },
        {
            0: 0.6241109587160757,
            3: -3.3608926294469414,
            4: -0.868219346841726,
            5: 27.59209969944671,
            6: 20.154067550477894,
            7: -43.48988418106996,
        },
        {
            0: 0.47766253643826434,
            3: -2.4881146199716677,
            4: -0.590290826836843,
            5: 21.230051448181193,
            6: 15.279233632882423,
            7: -33.28821096898486,
            8: -0.020331201708508627,
        },
        {
            0: -0.9371424300859873,
            3: 5.186372428844064,
            4: 1.0914373489967295,
            5: -8.149787010746927,
            6: -18.52006565999696,
            7: 22.739487099350505,
            8: 2.4936055526796523,
            9: -3.0467644718982196,
        },
        {
            0: 2.273310147516538,
            3: -10.53449546673725,
            4: -2.0008720582248625,
            5: -17.9589318631188,
            6: 27.94888452941996,
            7: -2.8589982771350235,
            8: -8.87285693353063,
            9: 12.360567175794303,
            10: 0.6433927460157636,
        },
    ),
    {
        0: 0.054293734116568765,
        5: 4.450312892752409,
        6: 1.8915178993145003,
        7: -5.801203960010585,
        8: 0.3111643669578199,
        9: -0.1521609496625161,
        10: 0.20136540080403034,
        11: 0.04471061572777259,
    },
    (
        {
            0: 0.01312004499419488,
            5: -1.2251564463762044,
            6: -0.4957589496572502,
            7: 1.6643771824549864,
            8: -0.35032884874997366,
            9: 0.3341791187130175,
            10: 0.08192320648511571,
            11: -0.022355307863886294,
        },
        {
            0: -0.18980075407240762,
            5: 4.450312892752409,
            6: 1.8915178993145003,
            7: -5.801203960010585,
            8: -0.4226823213237919,
            9: -0.1521609496625161,
            10: 0.20136540080403034,
            11: 0.02265179219836082,
        },
    ),
    False,
    8,
    2.5,
)
"""The pair of order 8 of Dormand and Prince, with two estimates. [Hairer, Norsett, Wanner 1993, section II.10]"""

DOPRI5 = EmbeddedPair(
    5,
    (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0),
    (
        {0: 1 / 5},
        {0: 3 / 40, 1: 9 / 40},
        {0: 44 / 45, 1: -56 / 15, 2: 32 / 9},
        {0: 19372 / 6561, 1: -25360 / 2187, 2: 64448 / 6561, 3: -212 / 729},
        {0: 9017 / 3168, 1: -355 / 33, 2: 46732 / 5247, 3: 49 / 176, 4: -5103 / 18656},
    ),
    {0: 35 / 384, 2: 500 / 1113, 3: 125 / 192, 4: -2187 / 6784, 5: 11 / 84},
    ({0: 71 / 57600, 2: -71 / 16695, 3: 71 / 1920, 4: -17253 / 339200, 5: 22 / 525, 6: -1 / 40},),
    True,
    5,
    0.9,
)
"""The pair of order 5(4) of Dormand and Prince. [Dormand, Prince 1980]"""
