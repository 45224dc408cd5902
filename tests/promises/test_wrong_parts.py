"""Wrong parts of machines: each is refused with a message that names the element, the value and the way out."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np

import pfaffian as pf
from pfaffian.control import regulators
from tests.refused import refusals

F, MC = pf.forces, pf.multicopters
BODIES = [pf.body("arm", 1.0, (0.5, 0, 0), 0.1), pf.body("hand", 1.0, (0.2, 0, 0), 0.05)]
JOINTS = [
    pf.joint("turn", "revolute", "world", "arm", axis=(0, 1, 0)),
    pf.joint("wrist", "revolute", "arm", "hand", axis=(0, 1, 0), placement=pf.pose((1, 0, 0))),
]
SIX = np.eye(6)
STIFF = {"stiffness": 1e4}
DRONE = {"mass": 1.0, "inertia": (0.1, 0.1, 0.2), "arm": 0.2, "thrust": 1e-5, "torque": 1e-7}
RING, SPINS = [0.0, 1.6, 3.1, 4.7], [1, -1, 1, -1]


def made(*forces: Any, bodies: Any = BODIES, joints: Any = JOINTS, **parts: Any) -> pf.Mechanism:
    """An arm with a hand and the given forces and parts."""
    return pf.mechanism("arm", bodies, joints, forces=forces, **parts)


ARM = made()


def touch(name: str = "foot", body: str = "hand", other: str = "world", **numbers: Any) -> Any:
    return F.contact(name, body, other, **(STIFF | numbers))


def rubber(wheel: str = "hand", radius: float = 0.3, **numbers: Any) -> Any:
    return F.tyre("tyre", wheel, radius, **({"load": 100.0} | numbers))


def end(*span: Any, joint: str = "turn", **numbers: Any) -> Any:
    return F.stop("end", joint, *span, **(STIFF | numbers))


def teeth(driven: str = "turn", by: str = "wrist", **numbers: Any) -> Any:
    return F.gear("teeth", driven, by, **({"ratio": 2.0} | STIFF | numbers))


def band(driven: str = "turn", by: str = "wrist", radii: Any = (0.1, 0.2), **numbers: Any) -> Any:
    return F.belt("band", driven, by, radii=radii, **(STIFF | numbers))


def rope(a: str = "arm", b: str = "hand", **numbers: Any) -> Any:
    return F.cable("rope", a, b, **({"length": 1.0} | STIFF | numbers))


def mount(stiffness: Any = SIX, damping: Any = SIX, a: str = "arm", b: str = "hand") -> Any:
    return F.bushing("mount", a, b, stiffness=stiffness, damping=damping)


def blade(body: str = "hand", speed: Any = 100.0, **numbers: Any) -> Any:
    return F.propeller("blade", body, speed, **({"thrust": 1e-5} | numbers))


def pid(period: float = 0.01, **numbers: Any) -> Any:
    return regulators.pid_step(1.0, 1.0, 0.0, 0.0, period, **({"gain": 1.0} | numbers))


def lag(period: float = 0.01, **numbers: Any) -> Any:
    return regulators.lag_step(0.0, 1.0, period, **({"time_constant": 0.1} | numbers))


def second(**numbers: Any) -> Any:
    return regulators.second_order_step(0.0, 0.0, 1.0, 0.01, **({"frequency": 3.0} | numbers))


def voltage(**numbers: Any) -> Any:
    return regulators.battery_voltage(1.0, 10.0, **({"full": 16.8, "empty": 13.2, "resistance": 0.02} | numbers))


def rotors(azimuths: Any = RING, spins: Any = SPINS, **numbers: Any) -> Any:
    return MC.thrust_multicopter("drone", azimuths, spins, **(DRONE | numbers))


def still(*given: Any, m: pf.Mechanism = ARM, **how: Any) -> Any:
    return pf.equilibrium(m, *given, **how)


def completed(a: Any) -> Any:
    return pf.constraints.complete_acceleration(ARM, [0, 0], [0, 0], a)


def singular(body: str = "hand", **how: Any) -> Any:
    return pf.constraints.singularities(ARM, [0.1, 0.2], body, **({"length": 1.0, "inputs": ["turn"]} | how))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    # contact
    "contact of negative stiffness": (lambda: touch(stiffness=-1.0), r"force 'foot': stiffness -1 must be above zero"),
    "contact of NaN": (lambda: touch(stiffness=nan), r"force 'foot': stiffness: nan is not a finite number"),
    "contact with an exponent below 1": (lambda: touch(exponent=0.5), r"'foot': exponent must be 1 or more, got 0\.5"),
    "contact of negative damping": (lambda: touch(damping=-1), r"force 'foot': damping -1 is below zero"),
    "negative friction": (lambda: touch(friction=-0.1), r"force 'foot': sliding friction -0\.1 is below zero"),
    "static friction below sliding": (lambda: touch(friction=0.5, static=0.3), r"'foot': static friction is less than"),
    "friction without creep": (lambda: touch(friction=0.5, creep=0.0), r"'foot': creep 0 must be above zero"),
    "Stribeck speed of zero": (lambda: touch(friction=0.5, static=0.6, stribeck=0.0), r"'foot': stribeck 0 must be above zero"),
    "contact of an unknown body": (
        lambda: made(touch(body="foot")),
        r"'foot press': there is no body 'foot'; there are arm, hand, world"),
    "contact with itself": (lambda: touch(other="hand"), r"force 'foot': both surfaces are on 'hand'"),
    "contact with a word as shape": (
        lambda: touch(shape_a="ball"),
        r"'foot': shape_a must be a shape\(...\) or a point \(3,\), got 'ball'"),
    "contact of two numbers": (lambda: touch(shape_a=(0, 0)), r"'foot': shape_a, a point: 3 numbers are needed, got 2"),
    "a plane as shape_a": (lambda: touch(shape_a=pf.pose()), r"'foot': shape_a is a plane; a plane must be shape_b"),
    "a mesh as shape_a": (
        lambda: touch(shape_a=pf.shape("mesh", file="a.stl")), r"a mesh cannot touch; use a point, sphere, capsule or box"),
    "a ball without radius": (lambda: pf.shape("sphere"), r"shape 'sphere': it needs radius"),
    "a ball of radius zero": (lambda: pf.shape("sphere", radius=0.0), r"shape 'sphere': radius 0 must be above zero"),
    "two contacts of one name": (
        lambda: made(touch(), touch(body="arm")), r"forces: the name 'foot' is used 2 times; names must be unique"),
    # tyre
    "tyre of negative radius": (lambda: rubber(radius=-0.3), r"force 'tyre': radius -0\.3 must be above zero"),
    "tyre of radius zero": (lambda: rubber(radius=0.0), r"force 'tyre': radius 0 must be above zero"),
    "tyre with a shape above 2": (lambda: rubber(shape=3.0), r"'tyre': shape must be at most 2, got 3: the force would push"),
    "tyre without a shape": (lambda: rubber(shape=0.0), r"force 'tyre': shape 0 must be above zero"),
    "tyre of too much curvature": (lambda: rubber(curvature=2.0), r"'tyre': curvature must be at most 1, got 2"),
    "tyre of negative stiffness": (lambda: rubber(stiffness=-1.0), r"force 'tyre': stiffness -1 must be above zero"),
    "tyre of negative friction": (lambda: rubber(friction=-1.0), r"force 'tyre': friction -1 is below zero"),
    "tyre with speed zero": (lambda: rubber(speed=0.0), r"force 'tyre': speed 0 must be above zero"),
    "tyre without axis": (lambda: rubber(axis=(0, 0, 0)), r"'tyre': axis: three numbers, not all zero, are needed"),
    "tyre with a load in words": (
        lambda: rubber(load="heavy"),
        r"'tyre': load: 'heavy' is not a number, a Parameter or an expression"),
    "tyre of negative load": (lambda: rubber(load=-5.0), r"force 'tyre': load -5 is below zero"),
    "tyre on no body": (lambda: made(rubber("wheel")), r"force 'tyre': there is no body 'wheel'; there are arm, hand, world"),
    # stops
    "stop without limits": (lambda: end(), r"force 'end': low or high is needed, or both"),
    "stop with reversed limits": (lambda: end(1.0, -1.0), r"force 'end': low must be below high; high - low is -2"),
    "stop at NaN": (lambda: end(nan, 1.0), r"force 'end': low: nan is not a finite number"),
    "stop of an unknown joint": (lambda: made(end(-1, 1, joint="elbow")), r"there is no joint 'elbow'; there are turn, wrist"),
    "stop of another coordinate": (
        lambda: still(m=made(end(-1, 1, component=2))), r"joint 'turn' has 1 coordinate\(s\), none numbered 2"),
    "stop of component 0.5": (
        lambda: end(-1, 1, component=0.5),
        r"'end': component must be a whole number from 0, got 0\.5"),
    "stops of joints without limits": (lambda: F.stops(JOINTS, **STIFF), r"stops: none of these joints has limits"),
    "stops of a name": (lambda: F.stops("turn", **STIFF), r"stops: joints are needed, as m\.joints, got 'turn'"),
    # gears and belts
    "gear of ratio zero": (
        lambda: teeth(ratio=0.0),
        r"'teeth': ratio must not be zero, or 'turn' would not follow 'wrist'"),
    "gear of NaN": (lambda: teeth(ratio=nan), r"force 'teeth': ratio: nan is not a finite number"),
    "gear of stiffness zero": (lambda: teeth(stiffness=0.0), r"force 'teeth': stiffness 0 must be above zero"),
    "gear of negative play": (lambda: teeth(backlash=-0.1), r"force 'teeth': backlash -0\.1 is below zero"),
    "gear with itself": (lambda: teeth("turn", "turn"), r"force 'teeth': both ends are on 'turn'"),
    "gear on no joint": (lambda: made(teeth(by="elbow")), r"'teeth teeth': there is no joint 'elbow'; there are turn, wrist"),
    "belt with a radius of zero": (lambda: band(radii=(0.1, 0.0)), r"force 'band': radii 0 must be above zero"),
    "belt with one radius": (lambda: band(radii=0.1), r"'band': radii must be two, of `driven` and of `by`, got 0\.1"),
    "belt of negative damping": (lambda: band(damping=-1.0), r"force 'band': damping -1 is below zero"),
    "belt with itself": (lambda: band(by="turn"), r"force 'band': both ends are on 'turn'"),
    "belt on no joint": (lambda: made(band("elbow")), r"'band stretch': there is no joint 'elbow'; there are turn, wrist"),
    # cables and springs
    "cable of length zero": (lambda: rope(length=0.0), r"force 'rope': length 0 must be above zero"),
    "cable of negative length": (lambda: rope(length=-1.0), r"force 'rope': length -1 must be above zero"),
    "cable to itself": (lambda: rope(b="arm"), r"force 'rope': both ends are on 'arm'"),
    "cable from a point of two numbers": (lambda: rope(point_a=(0, 0)), r"force 'rope': point_a: 3 numbers are needed, got 2"),
    "cable to no body": (lambda: made(rope(b="load")), r"'rope stretch': there is no body 'load'; there are arm, hand, world"),
    "spring of NaN": (
        lambda: pf.spring("s", "arm", "hand", stiffness=nan),
        r"force 's': stiffness: nan is not a finite number"),
    "spring to itself": (lambda: made(pf.spring("s", "arm", "arm", stiffness=1.0)), r"force 's': both ends are on 'arm'"),
    "bushing of (5, 5)": (lambda: mount(np.eye(5)), r"'mount': stiffness: a \(4, 4\) or \(6, 6\) matrix is needed"),
    "negative bushing": (lambda: mount(-np.eye(6)), r"'mount': stiffness: .*positive semidefinite; its lowest eigenvalue"),
    "bushing that is not symmetric": (
        lambda: mount(np.triu(np.ones((6, 6)))),
        r"'mount': stiffness: .* is not symmetric"),
    "bushing of negative damping": (lambda: mount(damping=-np.eye(6)), r"'mount': damping: .*positive semidefinite"),
    "bushing of NaN": (lambda: mount(np.full((6, 6), nan)), r"'mount': stiffness: .*nan.* is not a finite number"),
    "bushing to itself": (lambda: made(mount(b="arm")), r"force 'mount spring': both ends are on 'arm'"),
    "negative friction of a joint": (
        lambda: F.joint_friction("f", "turn", -1.0), r"force 'f': sliding friction -1 is below zero"),
    "friction with a jump": (lambda: F.joint_friction("f", "turn", 1.0, smooth=0.0), r"force 'f': smooth 0 must be above zero"),
    "friction of unknown joint": (lambda: made(F.joint_friction("f", "elbow", 1.0)), r"force 'f': there is no joint 'elbow'"),
    # air
    "gust of negative intensity": (lambda: F.gust(intensity=-1.0), r"gust: intensity must not be below zero, got -1\.0"),
    "gust of length zero": (lambda: F.gust(intensity=1.0, length=0.0), r"gust: length must be above zero, got 0\.0"),
    "gust at speed zero": (lambda: F.gust(intensity=1.0, speed=0.0), r"gust: speed must be above zero, got 0\.0"),
    "gust with a mean of two numbers": (lambda: F.gust((1, 2), intensity=1.0), r"gust: mean: 3 numbers are needed, got 2"),
    "gust of a negative seed": (
        lambda: F.gust(intensity=1.0, seed=-1),
        r"gust: seed must be a whole number from 0 or a Parameter, got -1",
    ),
    "gust of NaN": (lambda: F.gust(intensity=nan), r"gust: intensity: one number or three are needed, got nan"),
    "drag of negative area": (lambda: F.drag("air", "hand", -1.0), r"force 'air': area -1 is below zero"),
    "drag with a wind of two numbers": (
        lambda: F.drag("air", "hand", 1.0, wind=(1, 2)),
        r"'air': wind: 3 numbers are needed, got 2"),
    "propeller of negative thrust": (lambda: blade(thrust=-1.0), r"force 'blade': thrust -1 is below zero"),
    "propeller with an unknown hand": (lambda: blade(handed="up"), r"force 'blade': handed 'up' must be right or left"),
    "propeller without axis": (lambda: blade(axis=(0, 0, 0)), r"'blade': axis: three numbers, not all zero, are needed"),
    "propeller on an unknown body": (
        lambda: made(blade("rotor")),
        r"force 'blade': there is no body 'rotor'; there are arm, hand, world"),
    # drives and allocation
    "thruster with reversed limits": (
        lambda: F.thruster("jet", "hand", limits=(1, 0)), r"actuator 'jet': limits \(1\.0, 0\.0\) are the wrong way round"),
    "thruster without axis": (
        lambda: F.thruster("jet", "hand", axis=(0, 0, 0)), r"'jet': axis: three numbers, not all zero, are needed"),
    "thruster on an unknown body": (
        lambda: made(actuators=[F.thruster("jet", "foot")]), r"actuator 'jet': there is no body 'foot'; there are arm, hand"),
    "transmission without gears": (
        lambda: F.transmission("t", {}),
        r"actuator 't': gears must be a dict of joint -> gear, got \{\}"),
    "transmission to an unknown joint": (
        lambda: made(actuators=[F.transmission("t", {"elbow": 1.0})]),
        r"actuator 't': there is no joint 'elbow'; there are turn, wrist"),
    "motor with reversed limits": (
        lambda: pf.actuator("motor", "turn", limits=(1, -1)),
        r"actuator 'motor': limits \(1\.0, -1\.0\) are the wrong way round"),
    "motor on an unknown joint": (
        lambda: made(actuators=[pf.actuator("motor", "turm")]), r"'motor': there is no joint 'turm'; did you mean 'turn'"),
    "rotors without a spin": (
        lambda: rotors(spins=[1, -1, 1]),
        r"multicopter 'drone': an azimuth and a spin are needed for each"),
    "rotors of spin two": (lambda: rotors(spins=[1, -1, 1, 2]), r"'drone': spins must be 1, anticlockwise from above, or -1"),
    "rotors with a negative arm": (lambda: rotors(arm=-0.2), r"multicopter 'drone': arm -0\.2 is below zero"),
    "no rotors": (lambda: rotors([], []), r"multicopter 'drone': an azimuth and a spin are needed for each arm, got \[\]"),
    "rotors of negative mass": (
        lambda: rotors(mass=-1.0),
        r"body 'body': the mass is negative: -1 kg; correct it, or pass lenient"),
    # laws
    "PID without period": (lambda: pid(0.0), r"period must be above zero, got 0\.0"),
    "PID with reversed limits": (lambda: pid(limits=(1, -1)), r"limits \(1\.0, -1\.0\) are the wrong way round"),
    "PID with negative smoothing": (lambda: pid(smoothing=-1.0), r"smoothing must not be below zero, got -1\.0"),
    "PID of NaN": (lambda: pid(integral_gain=nan), r"integral_gain: nan is not a finite number"),
    "motor without a time constant": (lambda: lag(time_constant=0.0), r"time_constant must be above zero, got 0\.0"),
    "motor of negative rate": (lambda: lag(rate=-1.0), r"rate must be above zero, got -1\.0"),
    "actuator without frequency": (lambda: second(frequency=0.0), r"frequency must be above zero, got 0\.0"),
    "actuator with too much damping": (lambda: second(damping=1.5), r"damping must be from 0 to below 1, got 1\.5; for an"),
    "battery without capacity": (
        lambda: regulators.charge_step(1.0, 10.0, 0.1, capacity=0.0), r"capacity must be above zero, got 0\.0"),
    "battery with empty above full": (lambda: voltage(full=12.0), r"battery_voltage: empty 13\.2 is above full 12\.0"),
    "negative resistance": (lambda: voltage(resistance=-0.1), r"battery_voltage: resistance must not be below zero, got -0\.1"),
    "attitude of a (2, 2) matrix": (
        lambda: regulators.attitude_rate(np.eye(2), np.eye(3), 1.0), r"attitude_rate: R must be \(3, 3\), got \(2, 2\)"),
    "rates of two numbers": (
        lambda: regulators.rate_torque(np.zeros(2), np.zeros(3), np.eye(3), 1.0),
        r"rate_torque: w must be \(3, 1\), got \(2,\)"),
    "rates as a list": (
        lambda: regulators.rate_torque([0, 0, 0], np.zeros(3), np.eye(3), 1.0),
        r"rate_torque: w must be \(3, 1\), got \[0, 0, 0\]"),
    # closures and wheels
    "rod of length zero": (
        lambda: pf.closure("rod", "distance", "arm", "hand", length=0.0),
        r"constraint 'rod': length must not be zero; use a spherical closure instead"),
    "rod of negative length": (
        lambda: pf.closure("rod", "distance", "arm", "hand", length=-1.0), r"constraint 'rod': length -1 is below zero"),
    "loop to an unknown body": (
        lambda: made(constraints=[pf.closure("loop", "weld", "hand", "ground")]),
        r"constraint 'loop': there is no body 'ground'; there are arm, hand, world"),
    "disk of radius zero": (lambda: pf.rolling.disk("disk", "hand", 0.0), r"constraint 'disk': radius 0 must be above zero"),
    "plane with a normal of zero": (
        lambda: pf.rolling.plane(normal=(0, 0, 0)),
        r"plane: normal: three numbers, not all zero, are needed"),
    "ellipsoid of two numbers": (
        lambda: pf.rolling.ellipsoid("egg", "hand", (1, 1)), r"constraint 'egg': semi_axes: 3 numbers are needed, got 2"),
    "ellipsoid with a negative axis": (
        lambda: pf.rolling.ellipsoid("egg", "hand", (1, 1, -1)), r"constraint 'egg': semi_axes -1 must be above zero"),
    "joint that follows itself": (
        lambda: made(joints=[JOINTS[0], pf.joint("wrist", "revolute", "arm", "hand", mimic=pf.mimic({"wrist": 1.0}))]),
        r"joints follow each other in a circle: wrist; let one of them move freely"),
    "unphysical inertia": (
        lambda: made(bodies=[pf.body("arm", 1.0, (0, 0, 0), (1, 1, 3)), BODIES[1]]),
        r"body 'arm': the principal moments .* break the triangle inequality: 1, 1, 3 kg m\^2; correct it, or pass lenient"),
    # questions
    "equilibrium, unknown hold": (lambda: still(hold=["elbow"]), r"hold: there is no 'elbow'; there are turn, wrist"),
    "equilibrium of zero branches": (lambda: still(branches=0), r"branches must be a whole number from 1 to 32, got 0"),
    "equilibrium from NaN": (lambda: still([nan, 0.0]), r"q is not finite: 'turn' is nan"),
    "equilibrium from one number": (
        lambda: still([0.0]),
        r"q has shape \(1,\): \(2,\) or \(runs, 2\) is needed, in the order turn"),
    "equilibrium of a falling body": (
        lambda: still(m=pf.mechanism("ball", [pf.body("b", 1.0)], [pf.joint("x", "prismatic", "world", "b")])),
        r"no equilibrium of 'ball' was found .* along 'x'; start elsewhere, hold what moves freely"),
    "path of an unknown parameter": (
        lambda: pf.calculus.equilibrium_path(ARM, "load", 1.0), r"equilibrium_path: 'arm' has no parameter 'load'"),
    "acceleration of nothing": (lambda: completed({}), r"a: \{velocity: number\} is needed, for some of turn, wrist"),
    "acceleration of no velocity": (lambda: completed({"elbow": 1.0}), r"a: there is no 'elbow'; there are turn, wrist"),
    "acceleration of NaN": (lambda: completed({"turn": nan}), r"a\['turn'\] is not finite: nan"),
    "infinite acceleration": (lambda: completed({"turn": inf}), r"a\['turn'\] is not finite: inf"),
    "acceleration of another shape": (lambda: completed([1.0]), r"a has shape \(1,\): \(2,\) or \(runs, 2\) is needed"),
    "singularities without a length": (lambda: singular(length=0.0), r"singularities: length must be above zero, got 0\.0"),
    "singularities, unknown body": (lambda: singular("foot"), r"singularities: there is no body 'foot'; there are arm, hand"),
    "singularities, no input": (lambda: singular(inputs=["elbow"]), r"inputs: there is no velocity 'elbow'; there are turn"),
}  # fmt: skip


test_a_wrong_part_is_named = refusals(WRONG, pf.PfaffianError)


def test_valid_parts_are_accepted() -> None:
    """The functions above give valid parts by default, so the refusals are due to the wrong values."""
    right = [touch(), rubber(), end(-1.0, 1.0), teeth(), band(), rope(), mount(), blade()]
    m = made(*right)
    assert len(m.forces) == 8 and len(m.all_forces) == 14
    for make in (pid, lag, second, voltage, rotors, singular):
        make()
    completed({"turn": 1.0, "wrist": 0.0})
    still()
