"""What a closure carries is there at every door of the library: each compares a loop cut at C with one cut at D."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.loops_cut_anywhere import FOUR_BAR, PARALLELOGRAM, ROD_BETWEEN_BALLS, SPHERICAL, linkage
from tests.tolerance import ALGEBRA, INTEGRATED, PEER_CONSTRAINED, close

CARRIED = {"C": {"stiffness": 2.0, "rest": 0.3, "damping": 0.5, "armature": 0.3}}


def machine(cut: str, **more) -> pf.Mechanism:
    seal = pf.forces.joint_friction("seal", "C", 0.2, smooth=0.1)
    return linkage(FOUR_BAR, cut, CARRIED, forces=[seal], actuators=[pf.actuator("motor", "C", gear=2.0)], **more)


def start(m: pf.Mechanism, speed: float = 2.0):
    return pf.assemble(m, {"A": 0.4}, v={"A": speed})


def inverse(m):
    at = start(m)
    a = pf.constraints.complete_acceleration(m, at.q, at.v, {"A": 1.5})
    return pf.inverse_dynamics(m, at.q, at.v, a).u


def eigenvalues(m):
    at = pf.equilibrium(m, {"A": 0.4})
    found = pf.linearise(m, at.q)
    assert found.equilibrium
    return np.sort_complex(found.eigenvalues).view(float)


def derivatives(m):
    """Along the motion of the loop; at rest, where a change of q leaves v on the constraints."""
    at, rest = start(m), start(m, 0.0)
    moving, still = (pf.derivatives(m, x.q, x.v, [0.7], of=["v_dot"], backend="numpy").v_dot for x in (at, rest))
    i = m.v_names.index("A")
    return np.array([*moving.u[i], moving.v[i] @ at.v, still.q[i] @ at.v])


def through_casadi(m):
    at = start(m)
    f = pf.casadi_function(m, "forward_dynamics", backend="casadi")
    return np.array(f(q=at.q, v=at.v, u=[0.7], p=m.p_defaults)["v_dot"]).ravel()[m.v_names.index("A")]


def held(m):
    """A law that holds the angle of C, measured by a sensor of this name."""
    law = control.projected(control.joints("C"), control.set_point([-1.0]), stiffness=9.0, damping=6.0)
    return _run(m, control=law)["u"].values.ravel()


def measured(m):
    sensor = control.sensor(lambda k: ca.vertcat(k.joint("C"), k.joint_rate("C")), unit="rad")
    law = control.discrete(lambda s: control.Command(-0.3 * s["C"][0] - 0.1 * s["C"][1]), 0.01, measure={"C": sensor})
    return _run(m, control=law, outputs={"angle": lambda k: k.joint("C")})["angle"].values.ravel()


def _run(m, **more):
    at = start(m)
    return pf.run(m, at.q, at.v, duration=0.2, step=1e-3, every=20, backend="interpreter", **more)


def adaptive(m):
    at = start(m)
    return pf.run(m, at.q, at.v, times=[0.0, 0.1, 0.2], accuracy=1e-11)["q"].sel(coordinate="A").values


def impulse(m):
    r = _run(m)
    return np.concatenate([r["energy"].values.ravel(), r["energy_error"].values.ravel() < np.inf])


DOORS = {
    "inverse_dynamics": (inverse, PEER_CONSTRAINED),
    "linearise": (eigenvalues, 10 * PEER_CONSTRAINED),
    "derivatives": (derivatives, PEER_CONSTRAINED),
    "casadi_function": (through_casadi, PEER_CONSTRAINED),
    "law": (held, INTEGRATED),
    "sensor": (measured, INTEGRATED),
    "accuracy": (adaptive, INTEGRATED),
    "energy": (impulse, INTEGRATED),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_gives_the_same_wherever_the_loop_is_cut(door):
    of, tolerance = DOORS[door]
    close(of(machine("C")), of(machine("D")), tolerance, door)


@pytest.mark.parametrize("size, cuts", [(1.0, "CDA"), (1e3, "C")])
def test_the_acceleration_of_a_closure_determines_that_of_the_machine(size, cuts):
    """Also where rows of the closure vanish up to rounding, as of hinges whose axes meet, whatever the size of the machine."""
    hinges = {n: h._replace(**{end: tuple(size * x for x in h.at) for end in ("at", "there")}) for n, h in SPHERICAL.items()}
    found = []
    for cut in cuts:
        m = linkage(hinges, cut, {"C": {"damping": 0.5}}, actuators=[pf.actuator("motor", "B")])
        at = pf.assemble(m, m.neutral(), {"B": 2.0})
        found.append(pf.inverse_dynamics(m, at.q, at.v, {"C": 1.5}, complete=True).u)
    close(found, np.tile(found[0], (len(cuts), 1)), PEER_CONSTRAINED, "moment of the motor")
    with pytest.raises(pf.RunError, match="violate the constraints"):
        pf.constraints.complete_acceleration(m, at.q, at.v, {"C": 1.5, "B": 9.0})


def test_singularities_take_a_motor_where_the_loop_is_cut():
    found = [pf.constraints.singularities(m, start(m).q, "rocker", length=0.5) for m in (machine("C"), machine("D"))]
    close(found[0].jacobian, found[1].jacobian, PEER_CONSTRAINED, "motion of the rocker for that of the motor")
    named = pf.constraints.singularities(machine("C"), start(machine("C")).q, "rocker", length=0.5, inputs=["C"])
    close(named.jacobian, found[0].jacobian, ALGEBRA, "named")


@pytest.mark.parametrize("hinges", [FOUR_BAR, PARALLELOGRAM], ids=["four-bar", "parallelogram"])
def test_a_spring_where_the_loop_is_cut_costs_as_much_as_elsewhere(hinges):
    """Operations of a step, at most 1.1 times those of the same machine cut elsewhere."""
    counts = []
    for cut in ("C", "D"):
        m = linkage(hinges, cut, {"C": {"stiffness": 2.0, "rest": 0.3}})
        s = pf.stepper(m, step=1e-3, backend="interpreter", record=["q"])
        s.reset(start(m).q)
        counts.append(s.operations)
    for part in ("rate", "step"):
        assert counts[0][part] <= 1.1 * counts[1][part], counts


def test_a_spring_where_a_loop_in_space_is_cut_costs_little():
    """A rod between two balls, cut at either of its hinges: seven velocities and five rows, wherever the spring is. The spring
    adds at most a tenth to the step; a cut at a ball has five velocities and three rows, and less than half the work."""
    spring = {"turn": {"stiffness": 2.0, "rest": 0.3, "damping": 0.1}}
    counts = {}
    for cut, carried in (("turn", spring), ("turn", {}), ("rock", spring)):
        m = linkage(ROD_BETWEEN_BALLS, cut, carried)
        s = pf.stepper(m, step=1e-3, backend="interpreter", record=["q"])
        s.reset(pf.assemble(m).q)
        counts[cut, bool(carried)] = s.operations
    for part in ("rate", "step"):
        assert counts["turn", True][part] <= 1.1 * counts["rock", True][part], counts
        assert counts["turn", True][part] <= 1.1 * counts["turn", False][part], counts


def test_a_reduced_machine_keeps_what_its_closure_carries():
    speeds = {"A": 2.0} | {f"base.{n}": 0.0 for n in ("vx", "vy", "vz", "wx", "wy")} | {"base.wz": 0.3}
    found = []
    for cut in ("C", "D"):
        m = machine(cut, floating=True, gravity=(0, 0, 0))
        at = pf.assemble(m, {"A": 0.4}, v=speeds, hold=["base"])
        reduced = pf.reduce(m)
        runs = [pf.run(x, at.q, at.v, duration=0.2, step=1e-3, every=50, backend="interpreter") for x in (m, reduced)]
        full, less = (r["q"].sel(coordinate="A").values for r in runs)
        close(less, full, INTEGRATED, f"reduced, cut at {cut}")
        found.append(full)
    close(found[0], found[1], INTEGRATED, "cut at C and at D")


def test_constraints_between_bodies_stay_in_a_reduced_machine():
    """A gear from a hinge to a closure between two free bodies, whose motions are one, and a driven gear between two hinges."""
    bodies = [pf.body(n, mass=1.0, com=(0.1, 0, 0), inertia=0.1) for n in ("hull", "arm", "wheel")]
    flight, other = (pf.joint(f"free {n}", "free", "world", n) for n in ("hull", "arm"))
    turn, swing = (pf.joint(n, "revolute", "hull", n, axis=(0, 0, 1)) for n in ("wheel", "arm"))
    pin = pf.closure("pin", "revolute", "hull", "arm", placement_b=(-0.6, 0, 0), mimic=pf.mimic({"wheel": 0.5}))
    gear = pf.holonomic("gear", lambda k: k.joint("wheel") - 2 * k.joint("arm") - 0.1 * ca.sin(9 * k.t))
    for joints, c in (([flight, other, turn], pin), ([flight, turn, swing], gear)):
        m = pf.mechanism("two", bodies, joints, constraints=[c], gravity=(0, 0, 0))
        at = pf.assemble(m, v=np.linspace(2, 1, m.nv))
        runs = [pf.run(x, at.q, at.v, duration=0.1, step=1e-3, every=50, backend="interpreter") for x in (m, pf.reduce(m))]
        close(runs[1]["q"].values, runs[0]["q"].values, INTEGRATED, c.name)


def test_a_released_closure_carries_nothing():
    m = machine("C")
    (closed,) = m.constraints
    gone = m.with_(constraints=[pf.constraints.active_while(closed, lambda k: k.t < 1)])
    plain = pf.closure("C", "revolute", "coupler", "rocker")
    bare = m.with_(constraints=[pf.constraints.active_while(plain, lambda k: k.t < 1)], forces=[], actuators=[])
    at = start(m)
    found = pf.forward_dynamics(gone, at.q, at.v, u=[0.7], t=2.0).v_dot
    close(found, pf.forward_dynamics(bare, at.q, at.v, t=2.0).v_dot, ALGEBRA * 100, "accelerations of the open chain")
    close(pf.forward_dynamics(gone, at.q, at.v, u=[0.7]).v_dot, pf.forward_dynamics(m, at.q, at.v, u=[0.7]).v_dot,
          ALGEBRA, "while it holds")  # fmt: skip
