"""39 kinds of machines that are hard to step, each in steps of 1 ms and to an accuracy, beside SciPy's DOP853.

`python -m tests.identities.test_hard_machines` prints true and told errors of all of them, or of those whose names contain one
of its arguments; the tests take a few that cost little.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.by_scipy import run_adaptive, true_error, with_instants_between
from tests.simulate.machines import FOUR_BAR_START, four_bar

STEP, ACCURACY, RECORDS = 1e-3, 1e-6, 10
CLOSE, SMALL = 3.0, 3e-10
"""Largest ratio of true to told errors; errors that are not judged, since the oracle itself has them after jumps."""


class Hard(NamedTuple):
    """A machine, its start and the arguments of its run.   longest: step of the oracle [s]."""

    m: pf.Mechanism
    q: Any
    v: Any
    duration: float
    longest: float = 0.02
    how: dict[str, Any] = {}  # noqa: RUF012


def cart(mass: float = 1.0, *forces: Any, gravity: Any = (0, 0, 0)) -> pf.Mechanism:
    """A mass on a rail."""
    rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    return pf.mechanism("cart", [pf.body("cart", mass)], [rail], forces=forces, gravity=gravity)


def chain(n: int, *forces: Any, motors: float | None = None, scale: float = 1.0, heavy: float = 1.0) -> pf.Mechanism:
    """Rods that hang from each other.   motors: limit of those in the joints [N m].   scale: of lengths.   heavy: the last."""
    masses = [*(1 + 0.2 * i for i in range(n - 1)), heavy]
    bodies = [
        pf.body(f"rod {i}", x, com=(0, 0, -0.3 * scale), inertia=0.03 * x * scale**2) for i, x in enumerate(masses)
    ]  # fmt: skip
    joints = [
        pf.joint(
            f"j{i}", "revolute", f"rod {i - 1}" if i else "world", f"rod {i}", axis=(0, 1, 0),
            placement=(0, 0, -0.6 * scale if i else 0),
        )
        for i in range(n)
    ]  # fmt: skip
    actuators = [pf.actuator(f"m{i}", f"j{i}", limits=(-motors, motors)) for i in range(n)] if motors else []
    return pf.mechanism("chain", bodies, joints, forces=forces, actuators=actuators)


def spinning(*inertia: float, joint: str = "spherical", com: Any = (0, 0, 0)) -> pf.Mechanism:
    """One body that may turn about a point."""
    ball = pf.joint("turn", joint, "world", "body")
    return pf.mechanism("body", [pf.body("body", 1.0, com=com, inertia=inertia)], [ball])


def pushed(f: Callable[[Any], Any], n: int = 1) -> Any:
    """A force along the first of n coordinates."""
    return pf.forces.generalised_force("push", lambda k: ca.vertcat(f(k), ca.SX(n - 1, 1)))


def within(t: Any, begin: float, end: float) -> Any:
    """1 between two instants, else 0."""
    return ca.if_else(ca.logic_and(t > begin, t < end), 1.0, 0.0)


def clamped(x: Any) -> Any:
    """x between -1 and 1."""
    return ca.fmax(-1, ca.fmin(1, x))


def law(f: Callable[[Any, Any, Any], Any]) -> dict[str, Any]:
    """The setting of a law from q, v and the time."""
    return {"control": control.Control(lambda T, z, w, y: control.Command(f(T.q, T.v, T.t)))}


def moved(amplitude: float, rate: float) -> pf.Mechanism:
    """A pendulum whose pivot shakes upwards and downwards."""
    m = chain(1)
    k = amplitude * rate**2 * 0.3
    return m.with_(forces=[pushed(lambda at: -k * ca.sin(rate * at.t) * ca.sin(at.q[0]))])


def planet() -> pf.Mechanism:
    """A mass that a centre attracts, GM = 1."""
    far = lambda k: -1 / ca.norm_2(k.q)  # noqa: E731
    joint = [
        pf.joint("x", "prismatic", "world", "sledge", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "sledge", "planet", axis=(0, 1, 0)),
    ]
    bodies = [pf.body("sledge", 0.0), pf.body("planet", 1.0)]
    return pf.mechanism("orbit", bodies, joint, forces=[pf.forces.potential("sun", far)], gravity=(0, 0, 0))


def rotor() -> pf.Mechanism:
    """A free body with a flywheel off its axes."""
    bodies = [pf.body("hull", 3.0, inertia=(0.2, 0.3, 0.4)), pf.body("wheel", 0.5, inertia=(0.01, 0.01, 0.02))]
    joints = [
        pf.joint("free", "free", "world", "hull"),
        pf.joint("spin", "revolute", "hull", "wheel", axis=(0.6, 0, 0.8), placement=(0.1, 0, 0)),
    ]
    return pf.mechanism("gyrostat", bodies, joints, gravity=(0, 0, 0))


def skate() -> pf.Mechanism:
    """A body in the plane on a blade across which it does not slip."""
    plane = pf.joint("plane", "planar", "world", "body")
    row = pf.nonholonomic("blade", lambda k: ca.vertcat(k.v[1] + 0.2 * k.v[2]))
    body = pf.body("body", 1.0, com=(0.3, 0, 0), inertia=0.05)
    return pf.mechanism("sleigh", [body], [plane], constraints=[row], gravity=(0, 0, 0))


TURNED, FALLING = np.array([0.9, -0.4, 0.3]), np.array([0.5, 1.0, -1.0])
BOB = chain(1)
ENDS = {"placement_a": (0.8, 0, 0), "placement_b": (0.7, 0, 0)}
AGAIN = pf.closure("again", "revolute", "coupler", "rocker", axis=(0, 1, 0), **ENDS)
DOUBLED = four_bar().with_(constraints=[*four_bar().constraints, AGAIN])

KINDS: dict[str, Callable[[], Hard]] = {
    "a blow of 1e5 N for 0.2 ms": lambda: Hard(
        cart(2.0, pushed(lambda k: 1e5 * within(k.t, 0.7, 0.7002) - 50 * k.q[0])), [0.1], [0.0], 0.9, 1e-4
    ),
    "100 N for 2 ms in 9 s": lambda: Hard(
        cart(1.0, pushed(lambda k: 100 * within(k.t, 5.003, 5.005))), [0.0], [0.1], 9.0, 2e-3
    ),
    "a wall of 9e8 N/m met once": lambda: Hard(
        cart(1.0, pushed(lambda k: -9e8 * ca.fmax(k.q[0] - 0.1, 0))), [0.0], [1.0], 0.15, 1e-5
    ),
    "a force switched on between two steps": lambda: Hard(
        chain(2, pushed(lambda k: ca.if_else(k.t > 0.50037, 4.0, 0.0), 2)), TURNED[:2], [0, 0], 1.0, 5e-4
    ),
    "friction of width 1e-5 m/s": lambda: Hard(
        cart(1.0, pushed(lambda k: -2 * ca.tanh(k.v[0] / 1e-5))), [0.0], [1.0], 0.6, 1e-3
    ),
    "the middle axis at 150 rad/s": lambda: Hard(spinning(0.02, 0.03, 0.04), [0, 0, 0, 1], [1e-3, 150, 1e-3], 1.0),
    "a double pendulum over 8 s": lambda: Hard(chain(2), [2.0, 1.0], [0, 0], 8.0),
    "a pendulum near the upright": lambda: Hard(BOB, [np.pi - 1e-6], [0.0], 6.0),
    "two pendulums near the upright": lambda: Hard(chain(2), [np.pi - 1e-4, 1e-4], [0.0, 0.0], 3.0),
    "a triple pendulum": lambda: Hard(chain(3), [2.0, 0.5, 1.0], [0, 0, 0], 3.0),
    "a stiff spring": lambda: Hard(chain(2, pushed(lambda k: -1e5 * k.q[0], 2)), [1e-3, 0.5], [0, 0], 0.5, 1e-3),
    "a stiff damper": lambda: Hard(chain(2, pushed(lambda k: -3e3 * k.v[0], 2)), [0.4, 0.5], [0, 0], 0.5, 1e-3),
    "a spring on one side": lambda: Hard(
        chain(2, pushed(lambda k: -80 * ca.fmax(k.q[0] - 0.1, 0), 2)), [0.6, 0], [0, 0], 2.0, 1e-3
    ),
    "backlash": lambda: Hard(
        chain(2, pushed(lambda k: -200 * (k.q[0] - 0.1 * clamped(k.q[0] / 0.1)), 2)), [0.3, 0.2], [0, 0], 2.0, 1e-3
    ),
    "a cubic spring": lambda: Hard(cart(1.0, pushed(lambda k: -1e4 * k.q[0] ** 3)), [0.5], [0.0], 2.0),
    "drag of the square of the speed": lambda: Hard(
        chain(2, pf.forces.generalised_force("drag", lambda k: -0.3 * ca.fabs(k.v) * k.v)), [1.2, 0.3], [0, 0], 3.0, 1e-3
    ),
    "dry friction": lambda: Hard(
        chain(3, pf.forces.generalised_force("dry", lambda k: -0.5 * clamped(k.v / 0.05))), TURNED, FALLING, 1.0, 5e-4
    ),
    "a force that jumps with place": lambda: Hard(
        chain(2, pushed(lambda k: ca.if_else(k.q[0] > 0.2, -3.0, 1.0), 2)), [0.5, 0.1], [0, 0], 1.2, 2e-4
    ),
    "a stop": lambda: Hard(
        chain(2, pf.forces.stop("stop", "j0", high=0.2, stiffness=1e4, exponent=1.5, damping=0.2)), [-0.6, 0], [0, 0], 1.5, 2e-4
    ),
    "a slider of 1e-3 kg": lambda: Hard(chain(2, heavy=1e-3), [1.0, 0.5], [0, 0], 2.0),
    "a load of 1e3 kg": lambda: Hard(chain(2, heavy=1e3), [1.0, 0.5], [0, 0], 2.0),
    "a machine of 1 mm": lambda: Hard(chain(2, scale=1e-3), [1.0, 0.5], [0, 0], 0.2, 1e-3),
    "a four-bar linkage": lambda: Hard(four_bar(), FOUR_BAR_START, [0, 0, 0], 3.0),
    "rows written twice": lambda: Hard(DOUBLED, FOUR_BAR_START, [0, 0, 0], 2.0),
    "a skate": lambda: Hard(skate(), [0, 0, 0], [1.0, -0.4, 2.0], 4.0),
    "a joint that is driven": lambda: Hard(
        chain(2).with_(constraints=[pf.holonomic("drive", lambda k: k.q[0] - 0.4 * ca.sin(9 * k.t))]), [0, 0.5], [3.6, 0], 2.0
    ),
    "a heavy top at 150 rad/s": lambda: Hard(spinning(0.05, 0.05, 0.01, com=(0, 0, 0.2)), [0.2, 0, 0, 0.98], [0, 0, 150], 1.0),
    "a gyrostat": lambda: Hard(rotor(), [0, 0, 0, 0, 0, 0, 1, 0], [0.1, 0, 0, 0.3, 1.0, -0.5, 300], 2.0),
    "a stiff law": lambda: Hard(chain(2, motors=1e9), [0.4, 0], [0, 0], 0.5, 1e-3, law(lambda q, v, t: -4e3 * q - 60 * v)),
    "limits of inputs": lambda: Hard(
        chain(3, motors=1.5),
        TURNED,
        FALLING,
        1.0,
        5e-4,
        law(lambda q, v, t: -14 * q - 0.5 * v) | {"scheme": pf.Scheme(saturate=True)},
    ),
    "a bang-bang law": lambda: Hard(
        chain(2, motors=9.0), [0.4, 0], [0, 0], 0.6, 1e-4, law(lambda q, v, t: -0.4 * ca.sign(q - 0.05) - 0.3 * v)
    ),
    "a dead zone": lambda: Hard(
        chain(2, motors=9.0), [0.5, -0.3], [0, 0], 1.5, 1e-3, law(lambda q, v, t: -9 * (q - 0.1 * clamped(q / 0.1)) - v)
    ),
    "a pivot that shakes": lambda: Hard(moved(0.02, 120.0), [3.0], [0.0], 1.5, 5e-3),
    "a sweep of frequencies": lambda: Hard(
        cart(1.0, pushed(lambda k: 5 * ca.sin(40 * k.t**2) - 900 * k.q[0])), [0.0], [0.0], 2.0
    ),
    "a train of pulses": lambda: Hard(
        cart(1.0, pushed(lambda k: ca.if_else(ca.fmod(k.t, 0.1) < 0.013, 20.0, -1.0) - 30 * k.q[0])), [0.0], [0.0], 1.0, 5e-4
    ),
    "a smooth blow of 1 ms": lambda: Hard(
        chain(2, pushed(lambda k: 300 * ca.exp(-(((k.t - 0.4004) / 5e-4) ** 2)), 2)), [0.5, 0], [0, 0], 1.0, 2e-4
    ),
    "resonance": lambda: Hard(cart(1.0, pushed(lambda k: ca.sin(20 * k.t) - 400 * k.q[0])), [0.0], [0.0], 5.0),
    "an orbit close to its sun": lambda: Hard(planet(), [1.0, 0.0], [0.0, 0.1], 2.0),
    "steps of a staircase": lambda: Hard(
        cart(1.0, pushed(lambda k: -4 * ca.floor(10 * k.q[0]) - k.v[0])), [0.33], [0.0], 0.8, 1e-4
    ),
}
"""Kinds of machines that are hard to step; pushes of more than a few coordinates act on the first."""


class Found(NamedTuple):
    """What a run told of a machine.   true, told: largest errors.   warned: whether anything was said.   status: of the run."""

    true: float
    told: float
    warned: bool
    status: int


def found(of: Hard) -> list[Found]:
    """A machine in steps of one length and to an accuracy."""
    times, results = np.linspace(0, of.duration, RECORDS + 1), []
    dense = with_instants_between(times)
    exact = run_adaptive(of.m, of.q, of.v, times=dense, tolerance=1e-12, max_step=of.longest, **of.how)
    every = round(of.duration / RECORDS / STEP)
    for how in ({"duration": of.duration, "step": STEP, "every": every}, {"times": times, "accuracy": ACCURACY}):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            r = pf.run(of.m, of.q, of.v, record=["q", "v"], backend="interpreter", **of.how, **how)
        true = true_error(of.m, r, exact)
        told = [issubclass(w.category, pf.RunWarning) for w in said]
        results.append(Found(float(np.nanmax(true)), float(np.nanmax(r.error.values)), any(told), int(r.status)))
    return results


def test_there_are_39_kinds():
    assert len(KINDS) == 39


QUICK = ("a spring on one side", "the middle axis at 150 rad/s", "a force that jumps with place", "a skate")


@pytest.mark.parametrize("kind", QUICK)
def test_errors_of_hard_machines_are_told(kind):
    for x in found(KINDS[kind]()):
        assert x.status == 0 and x.true <= CLOSE * x.told + SMALL, x


if __name__ == "__main__":
    print(f"{'':40} in steps of {1e3 * STEP:g} ms: true, told   to {ACCURACY:g}: true, told")
    for name, make in KINDS.items():
        if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
            words = [
                f"{x.true:8.1e} {x.told:8.1e}{'!' if x.true > CLOSE * x.told + SMALL else ' '}"
                f"{'warned' if x.warned else '':6}{' stopped' if x.status else ''}"
                for x in found(make())
            ]
            print(f"{name:40} {words[0]}   {words[1]}", flush=True)
