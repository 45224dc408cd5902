"""Boards, racers, sleighs and trailers on blades, each with three kinds of first joints: a planar joint, two slides and a
hinge, and a free joint with a closure to the floor."""

from __future__ import annotations

import pfaffian as pf

BASES = ("planar", "slides and hinge", "free")
"""Kinds of first joints, by which the first body stands on the floor."""
THIN = 1e-12
"""Mass of a body of which only the inertia matters [kg]."""


def standing(base: str, body: str) -> tuple[list[pf.Body], list[pf.Joint], list[pf.Closure]]:
    """Bodies, joints and closures by which a body slides on the plane z = 0 and turns about z."""
    if base == "planar":
        return [], [pf.joint("ground", "planar", "world", body)], []
    if base == "free":
        return [], [pf.joint("ground", "free", "world", body)], [pf.closure("floor", "planar", "world", body)]
    slides = [
        pf.joint("x", "prismatic", "world", "slide x", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "slide x", "slide y", axis=(0, 1, 0)),
        pf.joint("heading", "revolute", "slide y", body),
    ]
    return [pf.body("slide x"), pf.body("slide y")], slides, []


def blade(body: str, at: float = 0.0) -> pf.Nonholonomic:
    """A blade at x = `at` of the body, along its x axis."""
    return pf.rolling.knife_edge(f"{body} blade", body, (1, 0, 0), point=(at, 0, 0))


def machine(name, base, bodies, joints, blades, motors, parameters=()) -> pf.Mechanism:
    some, first, floor = standing(base, bodies[0].name)
    return pf.mechanism(
        name, [*some, *bodies], [*first, *joints], constraints=[*floor, *blades],
        actuators=[pf.actuator(j, j) for j in motors], parameters=parameters,
    )  # fmt: skip


def snakeboard(base: str, inertia: float = 0.3, linked: bool = False) -> pf.Mechanism:
    """A board of 6 kg with a rotor and two wheel sets 0.35 m from its middle, steered independently or, if `linked`,
    oppositely."""
    bodies = [pf.body("board", 6.0, inertia=inertia), pf.body("rotor", THIN, inertia=0.4)]
    joints = [pf.joint("rotor", "revolute", "board", "rotor")]
    for name, x in (("back", -0.35), ("front", 0.35)):
        bodies.append(pf.body(name, THIN, inertia=0.05))
        link = {"mimic": pf.mimic({"back": -1.0})} if linked and name == "front" else {}
        joints.append(pf.joint(name, "revolute", "board", name, placement=(x, 0, 0), **link))
    motors = ("rotor", "back") if linked else ("rotor", "back", "front")
    return machine("snakeboard", base, bodies, joints, [blade("back"), blade("front")], motors)


def roller_racer(base: str, front: float | pf.Parameter = 0.3, back: float = 0.5) -> pf.Mechanism:
    """Two bodies on a hinge, with one axle at a distance `back` behind it and another one at `front` before it."""
    bodies = [pf.body("seat", 4.0, com=(0.1, 0, 0), inertia=0.2), pf.body("bar", 1.0, com=(0.05, 0, 0), inertia=0.1)]
    joints = [pf.joint("hinge", "revolute", "seat", "bar", placement=(back, 0, 0))]
    axles = [blade("seat"), blade("bar", front)]
    return machine("roller racer", base, bodies, joints, axles, ("hinge",), [front] if isinstance(front, pf.Parameter) else [])


def sleigh(base: str) -> pf.Mechanism:
    """A sleigh whose runner is steered, with a rider who swings a leg and leans to the side."""
    bodies = [pf.body("sleigh", 5.0, com=(0.2, 0.05, 0), inertia=0.4), pf.body("runner", 0.2, inertia=0.02)]
    bodies += [pf.body("rider", 3.0, com=(0.1, 0.2, 0), inertia=0.3), pf.body("leg", 1.0, com=(0.3, 0, 0), inertia=0.05)]
    joints = [
        pf.joint("steer", "revolute", "sleigh", "runner", placement=(-0.4, 0, 0)),
        pf.joint("lean", "prismatic", "sleigh", "rider", axis=(0, 1, 0), stiffness=3.0),
        pf.joint("swing", "revolute", "rider", "leg"),
    ]
    return machine("sleigh", base, bodies, joints, [blade("runner", 0.1)], ("steer", "lean", "swing"))


def trailer(base: str) -> pf.Mechanism:
    """A car steered in front, with a trailer on a hitch behind its rear axle."""
    bodies = [pf.body("car", 8.0, com=(0.3, 0, 0), inertia=0.9), pf.body("fork", 0.3, inertia=0.02)]
    bodies.append(pf.body("trailer", 3.0, com=(-0.4, 0, 0), inertia=0.3))
    joints = [
        pf.joint("steer", "revolute", "car", "fork", placement=(0.6, 0, 0)),
        pf.joint("hitch", "revolute", "car", "trailer", placement=(-0.2, 0, 0)),
    ]
    return machine("trailer", base, bodies, joints, [blade("car"), blade("fork"), blade("trailer", -0.5)], ("steer",))


def truck() -> pf.Mechanism:
    """The car and its trailer, each on two rolling wheels; two of the eight rows of the wheels follow from the others."""
    m = trailer("planar")
    bodies, joints, rows = [], [], [blade("fork")]
    for body, x, half, radius in (("car", 0.0, 0.2, 0.1), ("trailer", -0.5, 0.25, 0.12)):
        for side, y in (("left", half), ("right", -half)):
            name = f"{body} {side}"
            bodies.append(pf.body(name, 0.5, inertia=(0.004, 0.004, 0.006)))
            place = pf.pose((x, y, radius), rpy=(-1.5707963267948966, 0, 0))
            joints.append(pf.joint(name, "revolute", body, name, placement=place))
            rows.append(pf.rolling.wheel(name, name, radius))
    return m.with_(bodies=[*m.bodies, *bodies], joints=[*m.joints, *joints], constraints=rows)


MACHINES = {"snakeboard": snakeboard, "roller racer": roller_racer, "sleigh": sleigh, "trailer": trailer}
