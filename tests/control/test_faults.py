"""Each fault of each law: where it cannot go on, the run stops at once and says why; near such a state it goes on."""

from __future__ import annotations

import json

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.control.test_projection import slider_crank

UPRIGHT, BENT = [np.pi / 2, np.pi], [1.0, 2 * np.pi - 2.0]
GAINS = {"stiffness": 25.0, "damping": 10.0}
CRANK = control.joints("q1")
HEIGHT = control.point("rod", (1, 0, 0), (2,))
TIP = control.point("rod", (1, 0, 0), (0, 2))
OPEN = slider_crank().with_(constraints=[])
NEAR = control.set_point([1.0, 0.2])
STRETCHED, ELBOW = [0.5, 0.0], [0.5, 0.8]


def crank_to(angle: float) -> control.Reference:
    return control.set_point([angle])


def hybrid(task=CRANK, goal=None, force: float = 0.0) -> control.Control:
    return control.hybrid_force(task, goal or crank_to(1.2), control.set_point([force]), ["slider"], **GAINS)


def reduced(name: str, **more) -> control.Control:
    return getattr(control, name)(control.set_point([1.2, 2 * np.pi - 2.4]), velocity_gain=4.0, position_gain=6.0, **more)


def push(*names: str) -> control.Control:
    """Law that holds the angles of both joints by the inputs in `names`."""
    servos = [pf.servo(pf.holonomic(f"hold {i}", lambda k, i=i: k.q[i] - 0.5), [n]) for i, n in enumerate(names)]
    return control.servo_control(*servos)


ONE, BOTH = slider_crank(("q1",)), slider_crank()
THREE, FOUR = (
    slider_crank().with_(actuators=[pf.actuator(f"m{i}", joint, gear=1.0 + i) for i, joint in enumerate(joints)])
    for joints in (("q1", "q1", "q1"), ("q1", "q1", "q1", "q2"))
)
"""Three motors on one joint; FOUR adds one on the other joint."""
FORCE = {"force": control.set_point([1.0]), "rows": ["slider"]}
FORBIDDEN = {"task": control.stack(CRANK, HEIGHT), "goal": control.set_point([1.2, 0.1])}
SATISFIED = {"task": control.stack(CRANK, HEIGHT), "goal": control.set_point([1.2, 0.0])}
TIPS = [
    OPEN.with_(actuators=[pf.forces.thruster(f"t{i}", "rod", axis=axis, point=(1, 0, 0)) for i, axis in enumerate(axes)])
    for axes in (((1, 0, 0), (0, 0, 1)), ((1, 0, 0), (0, 0, 1), (0.6, 0, 0.8)))
]
"""Two and three thrusters at the end of an arm; where the arm is stretched they drive only one of its two motions."""
WHOLE = control.joints("q1", "q2")
# Name: a run that stops (machine, law, start, first words of the cause), then a run that goes on (machine, law, start).
STOPS = {
    "computed torque, singular": (
        (OPEN, control.computed_torque(TIP, NEAR, **GAINS), STRETCHED, "the task's Jacobian is singular"),
        (OPEN, control.computed_torque(TIP, NEAR, **GAINS), ELBOW),
    ),
    "operational space, singular": (
        (OPEN, control.operational_space(TIP, NEAR, **GAINS), STRETCHED, "infeasible"),
        (OPEN, control.operational_space(TIP, NEAR, **GAINS), ELBOW),
    ),
    "computed torque, undriven": (
        (TIPS[0], control.computed_torque(WHOLE, NEAR, **GAINS), STRETCHED, "the actuators do not drive every velocity"),
        (TIPS[0], control.computed_torque(WHOLE, NEAR, **GAINS), ELBOW),
    ),
    "computed torque, undriven by three": (
        (TIPS[1], control.computed_torque(WHOLE, NEAR, **GAINS), STRETCHED, "the actuators do not drive every velocity"),
        (TIPS[1], control.computed_torque(WHOLE, NEAR, **GAINS), ELBOW),
    ),
    "operational space, undriven": (
        (TIPS[1], control.operational_space(WHOLE, NEAR, **GAINS), STRETCHED, "the actuators do not drive every velocity"),
        (TIPS[1], control.operational_space(WHOLE, NEAR, **GAINS), ELBOW),
    ),
    "projected, uncontrollable": (
        (ONE, control.projected(CRANK, crank_to(1.2), **GAINS), UPRIGHT, "uncontrollable"),
        (ONE, control.projected(CRANK, crank_to(1.2), **GAINS), BENT),
    ),
    "projected, uncontrollable with three motors on one joint": (
        (THREE, control.projected(CRANK, crank_to(1.2), **GAINS), UPRIGHT, "uncontrollable"),
        (THREE, control.projected(CRANK, crank_to(1.2), **GAINS), BENT),
    ),
    "hybrid, force out of reach of three motors on one joint": (
        (THREE, hybrid(force=1.0), BENT, "the requested constraint force is out of reach"),
        (FOUR, hybrid(force=1.0), BENT),
    ),
    "projected, infeasible": (
        (BOTH, control.projected(FORBIDDEN["task"], FORBIDDEN["goal"], **GAINS), BENT, "infeasible"),
        (BOTH, control.projected(SATISFIED["task"], SATISFIED["goal"], **GAINS), BENT),
    ),
    "hybrid, infeasible": ((BOTH, hybrid(**FORBIDDEN), BENT, "infeasible"), (BOTH, hybrid(**SATISFIED), BENT)),
    "hybrid, force out of reach": (
        (ONE, hybrid(force=1.0), BENT, "the requested constraint force is out of reach"),
        (BOTH, hybrid(force=1.0), BENT),
    ),
    "tracking, uncontrollable": ((ONE, reduced("tracking"), UPRIGHT, "uncontrollable"), (ONE, reduced("tracking"), BENT)),
    "tracking, force out of reach": (
        (ONE, reduced("tracking", **FORCE), BENT, "the requested constraint force is out of reach"),
        (BOTH, reduced("tracking", **FORCE), BENT),
    ),
    "regulation, uncontrollable": ((ONE, reduced("regulation"), UPRIGHT, "uncontrollable"), (ONE, reduced("regulation"), BENT)),
    "regulation, force out of reach": (
        (ONE, reduced("regulation", **FORCE), BENT, "the requested constraint force is out of reach"),
        (BOTH, reduced("regulation", **FORCE), BENT),
    ),
    "servo law, not realisable": (
        (OPEN, push("q2", "q2"), ELBOW, "servo constraint not realisable: forces along q2, q2"),
        (OPEN, push("q1", "q2"), ELBOW),
    ),
}  # fmt: skip
SETTINGS = {"duration": 2e-3, "step": 1e-3, "backend": "interpreter"}


def measuring(u) -> control.Control:
    """Law whose u (2, 1) is a function of the reaction of a slider-crank."""
    return control.Control(lambda T, z, w, y: control.Command(u(y)))


def test_inputs_must_be_affine_in_the_measured_reaction():
    """Limits would cut such inputs and are refused."""
    for u in (lambda y: y * y[0], lambda y: ca.vertcat(0, ca.sin(y[1]))):
        with pytest.raises(pf.ModelError, match="a control law must be affine in the measured reaction"):
            pf.run(BOTH, BENT, control=measuring(u), **SETTINGS)
    straight = measuring(lambda y: 0.1 * y + 1)
    r = pf.run(BOTH, BENT, control=straight, **SETTINGS)
    np.testing.assert_allclose(r.u, 0.1 * r.reaction + 1, rtol=0, atol=1e-12)
    with pytest.raises(
        pf.ModelError, match="saturate: inputs of a control law that measures reactions cannot be limited; run it without"
    ):
        pf.run(BOTH, BENT, control=straight, scheme=pf.Scheme(saturate=True), **SETTINGS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STOPS)
def test_a_law_stops_where_it_cannot_go_on(name):
    (m, law, q, cause), beside = STOPS[name]
    r = pf.run(m, q, control=law, **SETTINGS)
    assert int(r.status) >= 2 and float(r.stopped) == 0
    assert pf.results.causes(r)[0].startswith(cause)
    m, law, q = beside
    r = pf.run(m, q, control=law, **SETTINGS)
    assert pf.results.causes(r) == ["finished"]


@pytest.mark.filterwarnings("ignore")
def test_hybrid_law_is_uncontrollable_where_a_free_motion_has_no_motor():
    """Upright, the crank can turn or fold and has one motor; bent, that motor moves it but cannot also choose the force."""
    r = pf.run(ONE, [UPRIGHT, BENT], control=hybrid(force=0.0), **SETTINGS)
    assert [c.split(" ")[0] for c in pf.results.causes(r)] == ["uncontrollable", "the"]


@pytest.mark.filterwarnings("ignore")
def test_every_fault_of_a_law_is_in_the_list():
    """A new fault of a law needs an entry in STOPS."""
    laws = {id(law): law for (_, law, _, _), _ in STOPS.values()}
    kinds = {name.split(",")[0] for name in STOPS}
    counted = {kind: {cause for name, ((_, _, _, cause), _) in STOPS.items() if name.startswith(kind)} for kind in kinds}
    counted["hybrid"].add("uncontrollable")
    for name, ((_, law, _, _), _) in STOPS.items():
        assert len(laws[id(law)].faults) == len(counted[name.split(",")[0]]), name


# Status 2: the fault of the step itself.


def pushed_off(push: float) -> pf.Mechanism:
    """A mass on a plane z = 0 with a second row that contradicts it, z = push t^2. Its radius of gyration is 1 m."""
    body = pf.body("mass", 1.0, inertia=2 / 3)
    rows = [pf.holonomic("flat", lambda k: k.q[2]), pf.holonomic("lift", lambda k: k.q[2] - push * k.t**2)]
    return pf.mechanism("contradiction", [body], [pf.joint("j", "free", "world", "mass")], constraints=rows, gravity=(0, 0, 0))


@pytest.mark.filterwarnings("ignore")
def test_violation_above_the_limit_is_status_two():
    """Two rows drift apart: the run stops when half their distance exceeds the limit, not before."""
    m, limit = pushed_off(1.0), 1e-3
    r = pf.run(m, duration=0.1, step=1e-3, scheme=pf.Scheme(violation_limit=limit), backend="interpreter")
    assert int(r.status) == 2
    assert pf.results.causes(r)[0].startswith("constraint violation above the limit")
    left = float(r.violation.sel(time=r.time < r.stopped).max())
    assert 0.5 * limit < left <= limit
    wider = pf.run(m, duration=0.03, step=1e-3, scheme=pf.Scheme(violation_limit=1.0), backend="interpreter")
    assert int(wider.status) == 0


def test_the_meanings_of_statuses_are_recorded_in_order():
    """The result lists what each status means, in this order."""
    r = pf.run(ONE, BENT, control=control.projected(CRANK, crank_to(1.2), **GAINS), **SETTINGS)
    meaning = json.loads(r.status.attrs["meaning"])
    first = [m.split(":")[0].split(" ")[0] for m in meaning]
    assert first[:5] == ["finished", "diverged", "constraint", "uncontrollable", "infeasible"]


# Wrong arguments of a law.


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (control.projected(CRANK, control.set_point([1.0, 2.0]), **GAINS), "reference has 2 coordinates, the task 1"),
        (control.projected(CRANK, crank_to(1.0), weight=[1.0], **GAINS), "weight.*2 numbers are needed, got 1"),
        (control.projected(CRANK, crank_to(1.0), weight=[1.0, 0.0], **GAINS), "weight.*above zero"),
        (control.projected(CRANK, crank_to(1.0), stiffness=[1.0, 2.0], damping=1.0), "stiffness: 1 numbers are needed, got 2"),
        (control.projected(lambda k: k.v, control.set_point([0.0, 0.0]), **GAINS), "depends on velocities"),
        (control.projected(lambda k: ca.SX(0, 1), crank_to(1.0), **GAINS), "at least one coordinate"),
        (control.operational_space(TIP, control.set_point([0.0]), **GAINS), "reference has 1 coordinates, the task 2"),
        (reduced("tracking", factor="lu"), "factor 'lu' is unknown"),
        (reduced("tracking", force=control.set_point([1.0]), rows=["slide"]), "row 'slide'; did you mean 'slider'"),
        (control.tracking(crank_to(1.0), velocity_gain=1.0, position_gain=1.0), "1 coordinates, the configuration 2"),
        (control.tracking(control.set_point(BENT), velocity_gain=1.0, position_gain=[1.0] * 5), "law: position_gain: 2 "),
        (control.tracking(control.set_point(BENT), velocity_gain=[1.0] * 5, position_gain=1.0), "law: velocity_gain: 2 "),
    ],
)  # fmt: skip
def test_wrong_arguments_of_a_law_are_named(law, message):
    with pytest.raises(pf.ModelError, match=message):
        pf.run(BOTH, BENT, control=law, **SETTINGS)


def test_hybrid_law_needs_one_force_for_each_row():
    with pytest.raises(pf.ModelError, match="2 components for 1 rows"):
        control.hybrid_force(CRANK, crank_to(1.0), control.set_point([1.0, 2.0]), ["slider"], **GAINS)
