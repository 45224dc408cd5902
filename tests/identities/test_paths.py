"""Lines along paths: lengths, rates, pulls and energies close on every kind of path; what they cost; what is refused."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from pfaffian.model.path import Path
from pfaffian.model.slider_crank import SliderCrank
from pfaffian.terms.path_forces import length_gradient, path_spring_force
from pfaffian.terms.wrenches import applied_wrenches
from tests.tolerance import ALGEBRA, DERIVATIVE, POWER, close

F = pf.forces
L = pf.Parameter("l", 0.12, "m")
FAR = pf.pose((1e6, -2e6, 3e6), quaternion=(0.5, 0.1, -0.3, 0.8))


def machine(**parts) -> pf.Mechanism:
    """A free body that carries an arm of two links, and a load on a ball joint."""
    bodies = [
        pf.body(n, 1.0 + i, com=(0.1, 0.2 * i, 0), inertia=(0.1, 0.2, 0.15)) for i, n in enumerate(("base", "a", "b", "load"))
    ]
    joints = [
        pf.joint("free", "free", "world", "base"),
        pf.joint("A", "revolute", "base", "a", axis=(0, 1, 0), placement=(0.3, 0, 0)),
        pf.joint("B", "cylindrical", "a", "b", axis=(1, 2, 0), placement=(0.4, 0, 0.1)),
        pf.joint("hang", "spherical", "world", "load", placement=(0, 0, 2)),
    ]
    return pf.mechanism("machine", bodies, joints, parameters=[L], **parts)


POINTS = {
    "world": (0.3, -1.5, 1.0),
    "base": (0.5, 0.8, 0.1),
    "a": (-0.6, 0.9, 0.2),
    "b": (0.2, -0.9, 0.7),
    "load": (0.7, 0.2, -0.8),
}
ENDS = [(body, x) for body, x in POINTS.items()]
SLIDER = SliderCrank("base", pf.pose((0.1, 0, 0.2), rpy=(0.3, 0.2, 0)), "load", ca.SX([0.1, 0, 0.3]), ca.SX(5.0), ca.SX(0.5))
PATHS = {
    "points": F.path(ENDS),
    "a tackle": F.path(ENDS[:2], falls=4.0) + F.path(ENDS[2:4], falls=0.5),
    "twice through a point": F.path([ENDS[0], ENDS[2], ENDS[4], ENDS[2], ENDS[3]]),
    "within one link": F.path([ENDS[1], ("base", (0.1, 0, 0)), ENDS[2], ENDS[3]]),
    "a cylinder of the world": F.path([ENDS[2], F.guide("world", L, axis=(0, 1, 3), centre=(0.1, -0.2, 0.3)), ENDS[4]]),
    "a cylinder of a link": F.path([ENDS[0], F.guide("a", 0.2, axis=(1, 1, 0), centre=(0, 0.1, 0)), ENDS[3]]),
    "on a side": F.path([ENDS[0], F.guide("a", 0.3, axis=(1, 1, 0), side=(0, 0, 2)), ENDS[3]]),
    "a sphere": F.path([ENDS[1], F.guide("b", L, centre=(0.1, 0.1, 0)), ENDS[4]]),
    "a sphere on a side": F.path([ENDS[1], F.guide("b", 0.3, side=(2, 0, 0)), ENDS[4], F.guide("world", 0.1), ENDS[0]]),
    "pulleys": F.path([ENDS[0], F.pulley("base", 0.2, axis=(0, 0, 1)), ENDS[4], F.pulley("load", L, axis=(1, 0, 0)), ENDS[3]]),
    "a drum": F.path(ENDS[2:], drums={"A": L}),
    "a slider-crank": F.path(ENDS[:2]) + Path((SLIDER,)),
}


def states(m, count=6):
    random = np.random.default_rng(3)
    return [(pf.random_configuration(m, random), random.normal(size=m.nv)) for _ in range(count)]


def at(m, parts):
    """The function of a state that returns the expressions of the Terms."""
    T = pf.symbols(m)
    made = {name: ca.densify(ca.SX(make(T))) for name, make in parts.items()}
    f = ca.Function("f", [T.q, T.v, T.t, m.p_symbols, T.u], list(made.values()))
    return lambda q, v, u=(): dict(zip(made, map(np.array, f.call([q, v, 0.0, m.p_defaults, u])), strict=True))


@pytest.mark.parametrize("name", PATHS)
def test_rate_and_gradient_are_derivatives_of_the_length(name):
    path, m = PATHS[name], machine()
    touched = False

    def moved(T):
        return ca.jacobian(path.length(T.kinematics), T.q) @ T.kinematics.q_dot

    def gradient(T):
        return length_gradient(T.kinematics, path, path.line(T.kinematics).pulls)

    f = at(m, {"moved": moved, "rate": lambda T: path.rate(T.kinematics), "gradient": gradient})
    for q, v in states(m):
        found = f(q, v)
        size = np.abs(found["gradient"].ravel() * v).sum() + 1
        close(found["rate"], found["moved"], DERIVATIVE, f"rate of {name}", size)
        close(found["gradient"].ravel() @ v, found["moved"].item(), DERIVATIVE, f"gradient of {name}", size)
        touched |= bool(found["gradient"].any())
    assert touched


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("pulls_only", [False, True])
def test_the_power_of_a_spring_closes(name, pulls_only):
    """The forces on the bodies and on a drum have the power of the tension, which changes the energy but for the loss."""
    path = PATHS[name]
    spring = F.path_spring("spring", path, stiffness=30.0, rest=1.0, damping=0.7, pulls_only=pulls_only)
    m = machine(forces=[spring], gravity=(0, 0, 0))

    def on_bodies(T):
        k, total = T.kinematics, ca.SX(0)
        for body, W in applied_wrenches(T, ca.SX(T.mechanism.nv, 1), T.u, {}).items():
            total += ca.dot(W, k.twist(body, "LOCAL_WORLD_ALIGNED"))
        drums = sum((d.radius * k.joint_rate(d.joint) for d in path.drums), ca.SX(0))
        return total - spring.tension(k) * drums

    parts = {
        "generalised": lambda T: ca.dot(path_spring_force(T.kinematics, spring), T.v),
        "bodies": on_bodies,
        "tension": lambda T: -spring.tension(T.kinematics) * path.rate(T.kinematics),
        "stored": lambda T: ca.jacobian(T.V, T.q) @ T.kinematics.q_dot,
        "lost": lambda T: (
            (spring.tension(T.kinematics) - 30 * spring.stretch(path.length(T.kinematics))) * path.rate(T.kinematics)
        ),
    }
    f = at(m, parts)
    for q, v in states(m):
        x = {name: value.item() for name, value in f(q, v).items()}
        size = abs(x["tension"]) + abs(x["stored"]) + 1
        close(x["generalised"], x["tension"], POWER, f"generalised force of {name}", size)
        close(x["bodies"], x["tension"], POWER, f"wrenches of {name}", size)
        close(-x["stored"] - x["lost"], x["tension"], POWER, f"energy of {name}", size)
        assert x["lost"] >= -POWER * size


@pytest.mark.parametrize("name", ["points", "a sphere on a side", "pulleys", "a drum", "a slider-crank"])
def test_winches_and_dampers_have_the_power_of_their_tension(name):
    path = PATHS[name]
    motors = [F.winch("w", path, gear=1.5), F.winch("on a drum", path, drum=0.2), F.adjustable_damper("d", path)]
    m = machine(actuators=motors)

    def on_bodies(T):
        pairs = applied_wrenches(T, ca.SX(T.mechanism.nv, 1), T.u, {}).items()
        drums = sum((d.radius * T.kinematics.joint_rate(d.joint) for d in path.drums), ca.SX(0))
        total = sum((ca.dot(W, T.kinematics.twist(b, "LOCAL_WORLD_ALIGNED")) for b, W in pairs), ca.SX(0))
        return total - drums * (1.5 * T.u[0] + T.u[1] / 0.2 + T.u[2] * path.rate(T.kinematics))

    f = at(m, {"B": lambda T: T.B, "rate": lambda T: path.rate(T.kinematics), "bodies": on_bodies})
    u = np.array([3.0, 0.4, 2.0])
    for q, v in states(m, 3):
        found = f(q, v, u)
        rate = found["rate"].item()
        power = -rate * (1.5 * u[0] + u[1] / 0.2 + u[2] * rate)
        close(v @ found["B"] @ u, power, POWER, f"inputs along {name}", abs(power) + 1)
        close(found["bodies"].item(), power, POWER, f"wrenches along {name}", abs(power) + 1)


def test_a_line_keeps_its_digits_far_from_the_origin():
    """Guide a link that carries the whole line, nothing depends on where the link is."""
    inner = F.path([("base", POINTS["base"]), F.guide("a", 0.2, axis=(1, 1, 0)), ("b", POINTS["b"])])
    spring = F.path_spring("spring", inner, stiffness=30.0, rest=0.5, damping=0.7)
    near = machine(forces=[spring], gravity=(0, 0, 0))
    far = near.with_(joints=[pf.joint("free", "free", "world", "base", placement=FAR), *near.joints[1:]])
    (q, v), *_ = states(near)
    here, there = (pf.forward_dynamics(m, q, v).v_dot for m in (near, far))
    close(there[6:9], here[6:9], 1e4 * ALGEBRA, "acceleration of the arm")


def test_a_slack_cable_pulls_nothing_and_a_falling_one_never_pushes():
    line = F.path([("world", (0, 0, 2)), ("load", (0, 0, 0))])
    cable = F.path_spring("cable", line, stiffness=100.0, rest=1.5, damping=40.0, pulls_only=True)
    m = pf.mechanism(
        "lift", [pf.body("load", 2.0)], [pf.joint("z", "prismatic", "world", "load")], forces=[cable], gravity=(0, 0, 0)
    )
    q, v = [[0.6], [0.6], [0.4], [0.4]], [[0.0], [-3.0], [0.0], [3.0]]
    close(pf.forward_dynamics(m, q, v).v_dot.ravel(), [0, 0, 5, 0], ALGEBRA, "slack twice, stretched, and let go", 1.0)


def test_a_pulley_holds_until_its_ends_are_a_whole_turn_apart():
    """Lengths by plane geometry: no contact, then arcs of pi / 2 and pi, out of the plane too, then all the way round."""
    turn = F.pulley("world", 0.5, axis=(0, 0, 1))
    m = pf.mechanism("end", [pf.body("end", 1.0)], [pf.joint("x", "translation", "world", "end")])
    line = F.path([("world", (0.5, -2, 0)), turn, ("end", (0, 0, 0))])
    of = pf.compile_terms(m, {"l": lambda T: line.length(T.kinematics)}, backend="numpy")
    places = {(1.0, 3, 0): np.hypot(0.5, 5), (-3, 0.5, 0): 5 + np.pi / 4, (-0.5, -3, 0): 5 + np.pi / 2}
    places |= {(-0.5, -3, 1): np.hypot(5 + np.pi / 2, 1), (-0.1, 0.2, 0): np.hypot(0.6, 2.2)}  # the last one is inside
    start, r, tangents = np.arctan2(-2, 0.5), 0.5, np.sqrt([0.5**2 + 4 - 0.25, 9 - 0.25])
    for beta in np.radians([160, 200, 300, 350]):
        round_ = beta - np.arctan2(tangents, r).sum()
        places[3 * np.cos(start + beta), 3 * np.sin(start + beta), 0] = tangents.sum() + r * round_
    for at_end, length in places.items():
        close(float(of(at_end)["l"]), length, ALGEBRA, f"to {at_end}")


def test_energy_is_kept_as_a_line_meets_and_leaves_bodies():
    """A load swings on a rubber that wraps round a bar and comes off again: the equations have no jump there."""
    line = F.path([("world", (0, 0, 1)), F.pulley("world", 0.15, axis=(0, -1, 0), centre=(0.1, 0, 0.4)), ("load", (0, 0, 0))])
    rubber = F.path_spring("rubber", line, stiffness=200.0, rest=1.0)
    plane = pf.joint("p", "planar-translation", "world", "load", axis=(0, -1, 0))
    m = pf.mechanism("swing", [pf.body("load", 1.0)], [plane], forces=[rubber])
    straight = F.path([("world", (0, 0, 1)), ("load", (0, 0, 0))])
    more = {"detour": lambda k: line.length(k) - straight.length(k)}
    scheme = pf.Scheme(integrator="rk4")
    r = pf.run(m, [-0.3, 0.0], duration=2.0, step=5e-4, scheme=scheme, record=["q", "energy"], outputs=more)
    met = r.detour.values > 1e-9
    assert np.count_nonzero(met[1:] != met[:-1]) >= 2, "it meets the bar and leaves it"
    close(r.energy.values[-1], r.energy.values[0], ENERGY, "energy", float(np.abs(r.energy.values).max()))


ENERGY = 1e-6
"""Error of RK4 at 0.5 ms over some dozen passages where the second derivative of the length jumps."""


# -- the number of operations --------------------------------------------------------------------------------------------

A_SPRING_MORE, ROUND_MORE = 120, 360
"""Most operations of an evaluation by which a path of four points, and one round a body, exceed a spring between two points."""


def operations(forces) -> int:
    m = machine(forces=forces, gravity=(0, 0, 0))
    T = pf.symbols(m)
    f = ca.Function("f", [T.q, T.v, T.t, m.p_symbols, T.u], [ca.densify(T.f)])
    return optimise(trace(f)).n_ops


def test_lines_take_few_operations_more_than_a_spring():
    law = {"stiffness": 30.0, "rest": 1.0, "damping": 0.7}
    (a, x), (b, y) = ("world", POINTS["world"]), ("load", POINTS["load"])
    spring = operations([pf.spring("s", a, b, point_a=x, point_b=y, **law)])
    through = [("world", (0, 1, 0)), ("world", (0, 1, 1))]
    on_body = [("load", (0, 0.1, 0.2)), ("world", (0, 1, 1))]
    for between in (through, on_body):
        path = F.path([(a, x), *between, (b, y)])
        assert operations([F.path_spring("s", path, **law)]) <= spring + A_SPRING_MORE
    for turn in (F.guide("world", 0.2, axis=(1, 1, 0)), F.guide("world", 0.2), F.pulley("load", 0.1, axis=(0, 1, 0))):
        path = F.path([(a, x), turn, (b, y)])
        assert operations([F.path_spring("s", path, **law)]) <= spring + ROUND_MORE


# -- what is refused ---------------------------------------------------------------------------------------------------

A, B = ("world", (0, 0, 2)), ("load", (0, 0, 0))
ON_A = [("a", (0, 0, 1)), ("a", (0, 0.2, 2))]


def with_bracket(path: Path) -> pf.Mechanism:
    """The machine with a bracket at (0.4, 0, 0) on its arm, which a line touches."""
    m = machine()
    held = pf.joint("held", "fixed", "a", "bracket", placement=(0.4, 0, 0))
    spring = F.path_spring("s", path, stiffness=1)
    return m.with_(bodies=[*m.bodies, pf.body("bracket", 0.1)], joints=[*m.joints, held], forces=[spring])


REFUSED = {
    "one point": (lambda: F.path([A]), "two points"),
    "no list": (lambda: F.path("rope"), "two points"),
    "no station": (lambda: F.path([A, "load"]), "station 1 must be"),
    "a point twice": (lambda: F.path([A, A, B]), "twice in a row"),
    "no end": (lambda: F.path([A, B, F.guide("world", 0.1)]), "needs a point of the line before and after it"),
    "two in a row": (lambda: F.path([A, F.guide("world", 0.1), F.guide("load", 0.1), B]), "needs a point of the line before"),
    "inside a cylinder": (
        lambda: F.path([A, F.guide("load", 0.2, axis=(0, 0, 1), centre=(0.1, 0, 5)), B]), r"cylinder .* contains the point",
    ),
    "inside a sphere": (lambda: F.path([A, F.guide("load", 0.2, centre=(0.1, 0, 0)), B]), r"sphere .* contains the point"),
    "a radius of zero": (lambda: F.guide("load", 0.0), "radius 0 must be above zero"),
    "a pulley of no radius": (lambda: F.pulley("load", 0, axis=(0, 0, 1)), "radius 0 must be above zero"),
    "no axis": (lambda: F.guide("load", 0.1, axis=(0, 0, 0)), "not all zero"),
    "a side inside": (lambda: F.guide("load", 0.1, side=(0, 0, 0.05)), "`side` is inside"),
    "no falls": (lambda: F.path([A, B], falls=0), "falls 0 must be above zero"),
    "a drum of radius 0": (lambda: F.path([A, B], drums={"z": 0}), "radius of the drum on 'z' 0 must be above zero"),
    "a winch on no drum": (lambda: F.winch("w", F.path([A, B]), drum=0.0), "radius of the drum 0 must be above zero"),
    "a negative length": (lambda: pf.constraints.taut_cable("c", F.path([A, B]), length=-1), "length -1 must be above"),
    "a negative rest length": (lambda: F.path_spring("s", F.path([A, B]), rest=-0.1), "rest -0.1 is below zero"),
    "no path": (lambda: F.winch("w", [A, B]), "must be made by pf.forces.path"),
    "limits turned round": (lambda: F.winch("w", F.path([A, B]), limits=(2, 1)), "wrong way round"),
    "an unknown body": (lambda: machine(actuators=[F.winch("w", F.path([A, ("lod", (0, 0, 0))]))]), "no body 'lod'.*load"),
    "an unknown drum": (lambda: machine(actuators=[F.winch("w", F.path([A, B], drums={"C": 1}))]), "there is no joint 'C'"),
    "a drum of several angles": (lambda: machine(forces=[F.path_spring("s", F.path([A, B], drums={"hang": 1}), stiffness=1)]),
                                 "has 4 coordinates; a drum turns with a joint of one"),
    "a rod too thick": (
        lambda: F.cylinder("c", "world", "load", bore=0.1, rod=0.1, stroke=(1, 2), stiffness=1), "thinner than the bore",
    ),
    "a stroke turned round": (
        lambda: F.cylinder("c", "world", "load", bore=0.1, stroke=(2, 1), stiffness=1), r"stroke must be \(shortest, longest\)",
    ),
    "on one body": (lambda: machine(forces=[F.path_spring("s", F.path(ON_A), stiffness=1)]), "'s': its path is on 'a' alone"),
    "a winch on one body": (lambda: machine(actuators=[F.winch("w", F.path(ON_A))]), "actuator 'w': its path is on 'a' alone"),
    "a cable on one body": (
        lambda: machine(constraints=[pf.constraints.taut_cable("c", F.path(ON_A), length=1)]), "constraint 'c': its path is on",
    ),
    "inside a cylinder of a body that is held": (
        lambda: with_bracket(F.path([A, F.guide("a", 0.2, axis=(0, 1, 0)), ("bracket", (-0.3, 3, 0.05))])),
        r"cylinder .* on 'a' contains the point \(-0.3, 3, 0.05\) of 'bracket'",
    ),
    "a drum without a name": (lambda: F.path([A, B], drums={3: 0.1}), "the key 3 is not the name of a joint"),
    "limits without a number": (lambda: F.winch("w", F.path([A, B]), limits=(np.inf, np.inf)), "leave no number"),
    "pressures of a cable": (lambda: F.pressures(F.cable("c", "world", "load", length=1, stiffness=1)), "made by pf.forc"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_lines_are_refused_with_the_way_out(name):
    make, message = REFUSED[name]
    with pytest.raises(ModelError, match=message):
        m = make()
        pf.forward_dynamics(m, m.neutral())


def test_a_path_is_data():
    assert PATHS["pulleys"] == F.path([*PATHS["pulleys"].strands[0].stations]) != PATHS["points"]
    assert "wound by 'A'" in repr(PATHS["a drum"])
