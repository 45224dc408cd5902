"""Lines along paths wherever a force or an actuator goes: laws, linear models, derivatives, reductions, exported C."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.embedded.conftest import gcc, run_written_test
from tests.tolerance import CENTRAL, INTEGRATED, SATISFIED, close

assert gcc  # a fixture
F = pf.forces
PLATE = [((0, 0), (-0.05, -0.03)), ((1, 0), (0.05, -0.03)), ((1, 1), (0.05, 0.03)), ((0, 1), (-0.05, 0.03))]


def robot(**more) -> pf.Mechanism:
    """A plate in a vertical plane on four cables, two of which run over pulleys."""
    winches = []
    for i, ((x, z), (a, b)) in enumerate(PLATE):
        over = [F.pulley("world", 0.04, axis=(0, -1 if x else 1, 0), centre=(x, 0, z))] if z else []
        start = (1.3 if x else -0.3, 0, 0.5) if z else (x, 0, z)
        path = F.path([("world", start), *over, ("plate", (a, 0, b))])
        winches.append(F.winch(f"w{i}", path, drum=0.05, limits=(0.05, 5)))
    plane = pf.joint("p", "planar", "world", "plate", axis=(0, -1, 0), placement=(0.5, 0, 0.5))
    return pf.mechanism("robot", [pf.body("plate", 1.0, inertia=0.01)], [plane], actuators=winches, **more)


Q, V = np.array([-0.1, 0.15, 0.05]), np.array([0.2, -0.1, 0.3])


def law(m):
    return control.projected(
        control.whole(m), control.set_point([0.1, 0.05, 0.0]), stiffness=60, damping=15, limits="actuators"
    )


def test_a_law_moves_the_plate_by_tensions_within_limits():
    m = robot()
    r = pf.run(m, Q, duration=2.0, step=2e-3, control=law(m), every=5)
    u = r.u.values
    assert u.min() >= 0.05 * (1 - SATISFIED) and u.max() <= 5 * (1 + SATISFIED) and np.isclose(u, 0.05).any()
    close(r.q.values[-1], [0.1, 0.05, 0.0], 1e-3, "place of the plate", 1.0)


def test_a_law_with_winches_is_exported_to_c(tmp_path, gcc):
    m = robot()
    pf.export(law(m), m, tmp_path, name="winches", period=2e-3)
    done = run_written_test(gcc, tmp_path, "winches")
    assert isinstance(done, subprocess.CompletedProcess) and done.returncode == 0, done.stdout


def test_linear_models_and_derivatives_agree_with_differences():
    line = F.path([("world", (-1, 0, 2)), F.guide("world", 0.3, axis=(0, 1, 0), centre=(0.2, 0, 1.3)), ("plate", (0, 0, 0))])
    rubber = F.path_spring("rubber", line, stiffness=20.0, rest=0.5, damping=0.4, pulls_only=True)
    m, u, h = robot(forces=[rubber]), np.array([1.0, 1.2, 1.4, 1.1]), 1e-5
    of = pf.derivatives(m, Q, V, u=u).v_dot
    K = pf.compile_terms(m, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy")(Q, V)["K"]

    def moved(name, i):
        ends = []
        for sign in (1, -1):
            x = {"q": Q.copy(), "v": V.copy(), "u": u.copy()}
            x[name] += sign * h * (K[:, i] if name == "q" else np.eye(len(x[name]))[i])
            ends.append(pf.forward_dynamics(m, x["q"], x["v"], x["u"]).v_dot)
        return (ends[0] - ends[1]) / (2 * h)

    for name, count in (("q", 3), ("v", 3), ("u", 4)):
        slopes = np.stack([moved(name, i) for i in range(count)], axis=1)
        close(getattr(of, name), slopes, CENTRAL, f"derivative by {name}")
    hinge = pf.joint("hinge", "revolute", "world", "plate", axis=(0, 1, 0), placement=(1.0, 0, 0.5))
    hung = m.with_(joints=[hinge], bodies=[pf.body("plate", 1.0, com=(-0.2, 0, 0), inertia=0.01)])
    at_rest = pf.derivatives(hung, [0.3], [0.0], u=u).v_dot
    linear = pf.linearise(hung, [0.3], u=u)
    close(linear.A[1:], np.c_[at_rest.q, at_rest.v], SATISFIED, "linear model")


def test_a_floating_machine_with_a_line_within_it_moves_alike_when_reduced():
    bodies = [pf.body("base", 2.0, inertia=(0.3, 0.4, 0.5)), pf.body("arm", 1.0, com=(0.3, 0, 0), inertia=0.05)]
    joints = [
        pf.joint("float", "free", "world", "base"),
        pf.joint("hinge", "revolute", "base", "arm", axis=(0, 1, 0), placement=(0.2, 0, 0)),
    ]
    knee = F.guide("base", 0.05, axis=(0, 1, 0), centre=(0.2, 0, 0.1))
    tendon = F.path([("base", (-0.3, 0, 0.3)), knee, ("arm", (0.4, 0, 0.05))])
    spring = F.path_spring("spring", tendon, stiffness=40.0, rest=0.5)
    m = pf.mechanism("sat", bodies, joints, forces=[spring], actuators=[F.winch("w", tendon)], gravity=(0, 0, 0))
    v = [0.1, 0.2, 0.0, 0.3, -0.1, 0.2, 0.5]
    reduced, whole = (pf.run(x, m.neutral(), v, u={"w": 1.0}, duration=0.5) for x in (pf.reduce(m), m))
    close(reduced.q.values[-1], whole.q.values[-1], INTEGRATED, "motion of the reduced machine")


@pytest.mark.parametrize("active", [True, False])
def test_a_taut_cable_lifts_by_its_drum_and_lets_go(active):
    """A load on a drum: the tension from the multiplier, and none while the cable is let go."""
    line = F.path([("world", (0, 0, 2)), ("load", (0, 0, 0))], drums={"drum": 0.1})
    cable = pf.constraints.taut_cable("cable", line, length=2.0)
    cable = cable if active else pf.constraints.active_while(cable, lambda k: k.t < -1)
    bodies = [pf.body("load", 2.0), pf.body("drum", 1.0, inertia=0.02)]
    joints = [pf.joint("lift", "prismatic", "world", "load"), pf.joint("drum", "revolute", "world", "drum")]
    m = pf.mechanism("hoist", bodies, joints, constraints=[cable], actuators=[pf.actuator("motor", "drum")])
    found = pf.forward_dynamics(m, [0.0, 0.0], u=[3.0])
    lift = (3.0 / 0.1 - 2 * 9.81) / (2 + 0.02 / 0.01) if active else -9.81
    close(found.v_dot, [lift, lift / 0.1 if active else 150.0], SATISFIED, "acceleration")
