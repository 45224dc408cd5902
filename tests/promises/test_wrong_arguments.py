"""Common mistakes end in an error of the library that names the way out, never in another error or a wrong result."""

import inspect
import math
import warnings

import casadi as ca
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian import control, reduction, screws
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.reduction import StatePart
from tests.by_scipy import run_adaptive
from tests.public_names import PUBLIC
from tests.refused import refusals
from tests.tolerance import SATISFIED

QUICK = {"duration": 0.002, "backend": "numpy"}
LENGTH = pf.Parameter("length", 1.0, "m")


def arm(constraints=(), **changes):
    links = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.1) for n in ("rod", "tip")]
    hinges = [
        pf.joint("A", "revolute", "world", "rod", axis=(0, 1, 0)),
        pf.joint("B", "revolute", "rod", "tip", axis=(0, 1, 0), placement=(LENGTH, 0, 0)),
    ]
    motors = [pf.actuator("mA", "A"), pf.actuator("mB", "B")]
    given = {"actuators": motors, "parameters": [LENGTH], "constraints": constraints} | changes
    return pf.mechanism("arm", links, hinges, **given)


ARM = arm()
FLOATING = pf.mechanism("floating", [pf.body("b", 1.0, inertia=0.1)], [pf.joint("flight", "free", "world", "b")])
RESULT = pf.run(ARM, {"A": 0.1}, **QUICK)
SWING = pf.holonomic("swing", lambda k: k.q[0] - ca.sin(k.t))
TURNED = pf.velocities(lambda k: np.eye(2), ["a", "b"])
AB = control.joints("A", "B")
HERE = control.set_point([0, 0])
PLAIN = control.computed_torque(AB, HERE, stiffness=1, damping=1)


def run(**given):
    return pf.run(ARM, **QUICK | given)


def output(f):
    return run(outputs={"out": f})


def with_phi(phi):
    return pf.run(arm([pf.holonomic("c", phi)]), **QUICK)


def pushed(*forces):
    return pf.run(arm(forces=forces), **QUICK)


def steered(task=AB, reference=HERE, **given):
    return run(control=control.projected(task, reference, **{"stiffness": 100, "damping": 20} | given))


def lawful(law):
    return run(control=control.Control(law))


def in_state(**changes):
    """A System of ARM in the state [q; v], written by hand, with the given changes."""
    parts = (StatePart("at", ARM.q_names, ARM.q_units), StatePart("fast", ARM.v_names, ARM.v_units))
    given = {
        "parts": parts,
        "enter": lambda T: ca.vertcat(T.q, T.v),
        "show": lambda x, t: (x[:2], x[2:]),
        "rate": lambda T, motion, x: ca.vertcat(T.v, motion.v_dot),
    }
    return pf.System(ARM, "by hand", **given | changes)


def in_state_run(**changes):
    return pf.run(in_state(**changes), {"A": 0.1}, {"B": 0.2}, **QUICK)


WRONG = {
    "a part of a state without units": (lambda: in_state(parts=[StatePart("at", ("a",), ())]), "a unit for each name"),
    "parts of a state of one name": (lambda: in_state(parts=[StatePart("a", "b", "1")] * 2), "two parts have one name"),
    "a part named like a signal": (
        lambda: in_state_run(parts=(StatePart("energy", "abcd", "1111"),)), "signal 'energy' of the state"),
    "a state that enters too short": (lambda: in_state_run(enter=lambda T: T.q), "enter: 4 numbers are needed, got 2"),
    "a state that shows no pair": (lambda: in_state_run(show=lambda x, t: x), r"show: \(q, v\) is needed"),
    "a state that shows too little": (lambda: in_state_run(show=lambda x, t: (x[:2], x[2])), "show: v: 2 numbers"),
    "a state whose show is no inverse": (
        lambda: in_state_run(show=lambda x, t: (x[:2], 2 * x[2:])), "show does not undo enter"),
    "a rate of symbols of its own": (
        lambda: in_state_run(rate=lambda T, motion, x: ca.SX.sym("x", 4)), "rate uses symbols that do not belong"),
    "a rate that fails": (lambda: in_state_run(rate=lambda T, motion, x: T.speed), "rate.*'Terms' object has no attribute"),
    "signals without names": (lambda: in_state_run(signals=lambda T, motion, x: [x[0]]), r"signals: {name: column}"),
    "a state's own signal named as another": (
        lambda: in_state_run(signals=lambda T, motion, x: {"q": x[0]}), "signal 'q' of the state"),
    "semi-implicit steps of a state without v": (
        lambda: pf.run(pf.reduction.hamiltonian(ARM), **QUICK, scheme=pf.Scheme(integrator="euler")),
        r"supports only the state .* works with rk4, midpoint, tr-bdf2, dopri5, dop853, radau5$"),
    "weights of no length": (lambda: control.length_weights(ARM, 0.0), "the characteristic length must be positive, got 0"),
    "weights of a word": (lambda: control.length_weights(ARM, "a"), "^the characteristic length: 'a'"),
    "a metric of no length": (
        lambda: pf.constraints.length_metric(ARM, -1.0), "the characteristic length must be positive, got -1"),
    "a metric of a word": (lambda: pf.constraints.length_metric(ARM, "a"), "^the characteristic length: 'a'"),
    "reduce a name": (lambda: pf.reduce("arm"), "a Mechanism is needed"),
    "reduce along no name": (lambda: pf.reduce(FLOATING, along={"fligth.vx": lambda k: k.v}), "did you mean 'flight.vx'"),
    "isotropy of three": (
        lambda: reduction.isotropy_inertia(FLOATING, [0, 0, 1]), "6 numbers are needed for joint 'flight', got 3"),
    "isotropy of a word": (lambda: reduction.isotropy_connection(FLOATING, "up"), "momentum of joint 'flight'"),
    "two-form of a name": (lambda: reduction.reduced_two_form("arm", [0] * 6), "a Mechanism is needed"),
    "connection of nothing": (lambda: reduction.constraint_connection(FLOATING), "nothing constrains velocities of 'floating'"),
    "curvature of nothing": (lambda: reduction.constraint_curvature(FLOATING), "nothing constrains velocities of 'floating'"),
    "reduce by nothing": (lambda: pf.reduce(FLOATING, by="flight"), "leave it out"),
    "floating base of a machine": (lambda: reduction.floating_base(FLOATING), "Terms are needed"),
    "generalised jacobian: swapped": (lambda: reduction.generalised_jacobian(FLOATING, [0] * 7, "b"), "no body"),
    "generalised jacobian: no base": (
        lambda: reduction.generalised_jacobian(ARM.with_(joints=[pf.joint("A", "universal", "world", "rod"), ARM.joint("B")],
                                                  actuators=[]), "tip"), r"permits no group of motions \(universal\)"),
    "momentum twist: a frame of screws": (
        lambda: reduction.momentum_twist(FLOATING, "b", frame="body"), "frame 'body' is unknown"),
    "holonomy: a path that ends": (lambda: reduction.holonomy(ARM, lambda x: [ca.sqrt(0.5 - x)]), "not a number at x = 0.5"),
    "zero dynamics of no law": (lambda: pf.analysis.zero_dynamics(ARM, None), "a control law is needed"),
    "reaction null space: another word": (lambda: reduction.reaction_null_space(ARM, keep="place"), "keep: pose or attitude"),
    "holonomy: a path too long": (lambda: reduction.holonomy(ARM, lambda x: [x, x]), "the path: 1 numbers are needed, got 2"),
    "holonomy: samples": (lambda: reduction.holonomy(ARM, [0.0, 1.0]), "path: a function x -> coordinates is needed"),
    "holonomy: no steps": (lambda: reduction.holonomy(ARM, lambda x: [x], steps=0), "steps must be a whole number"),
    "impact of a name": (lambda: pf.impact("arm", [0, 0], [0, 0]), "a Mechanism is needed"),
    "symmetry of a name": (lambda: pf.reduction.symmetry("arm"), "a Mechanism is needed"),
    "hamiltonian of a name": (lambda: pf.reduction.hamiltonian("arm"), "a Mechanism is needed"),
    "chosen velocities by a function": (lambda: pf.reduction.chosen_velocities(ARM, lambda k: np.eye(2)), "pf.velocities"),
    "velocities chosen twice": (
        lambda: pf.reduction.chosen_velocities(ARM.with_(velocities=TURNED), TURNED), "already has a choice of velocities"),
    "the pair that read gives": (lambda: pf.run((ARM, RunSettings()), **QUICK), "m, settings = pf.read"),
    "a file for a mechanism": (lambda: pf.run("robot.urdf", **QUICK), "pf.read"),
    "settings for a state": (lambda: pf.run(ARM, RunSettings(), **QUICK), "settings.arrays"),
    "nothing for a mechanism": (lambda: pf.forward_dynamics(None, [0]), "a Mechanism is needed"),
    "qp: H of another size": (lambda: pf.analysis.solve_qp([[1]], [0, 0], [[1, 0]], [1]), r"so H must be \(2, 2\)"),
    "qp: W turned": (lambda: pf.analysis.solve_qp([[1, 0], [0, 1]], [0, 0], [[1], [0]], [1]), r"W must be \(1, 2\)"),
    "qp: H not symmetric": (lambda: pf.analysis.solve_qp([[1, 1], [0, 1]], [0, 0], [[1, 0]], [1]), "H must be symmetric"),
    "qp: no rows": (lambda: pf.analysis.solve_qp([[1]], [0], np.empty((0, 1)), []), "at least one input and one row"),
    "qp: text": (lambda: pf.analysis.solve_qp([[1]], ["a"], [[1]], [1]), "u0.*not an array of real numbers"),
    "qp: ragged": (lambda: pf.analysis.solve_qp([[1]], [0], [[1], [1, 2]], [1, 2]), "W.*not an array of real numbers"),
    "qp: runs that differ": (
        lambda: pf.analysis.solve_qp([[1]], np.zeros((3, 1)), [[1]], np.ones((2, 1))), "numbers of runs differ"),
    "qp: a number for limits": (lambda: pf.analysis.solve_qp([[1]], [0], [[1]], 1), "l has shape"),
    "swapped: compile_terms": (lambda: pf.compile_terms({"M": lambda T: T.M}, ARM), "a Mechanism is needed"),
    "scheme by the integrator": (lambda: run(scheme="euler"), r"pf.Scheme\(integrator='euler'\)"),
    "scheme by the formulation": (lambda: run(scheme="gauss"), r"pf.Scheme\(formulation='gauss'\)"),
    "integrator as formulation": (lambda: run(scheme=pf.Scheme("euler")), "formulation 'euler' is unknown"),
    "formulation as a list": (lambda: pf.Scheme(formulation=["gauss"]), "formulation must be a name"),
    "control by a function": (lambda: run(control=lambda t, q, v: [0, 0]), r"control.Control\(law\)"),
    "linearise under a function": (lambda: pf.linearise(ARM, control=lambda t: 0), "a control law is needed"),
    "control by a task": (lambda: run(control=AB), "a control law is needed, got the function"),
    "outputs as a list": (lambda: run(outputs=[lambda k: k.q]), "{name: function"),
    "outputs by values": (lambda: run(outputs={"x": 1.0}), "'x': 1.0"),
    "output: if": (lambda: output(lambda k: 1 if k.q[0] > 0 else 0), r"'out' in test_wrong_arguments.py line \d+.*if_else"),
    "output: nothing": (lambda: output(lambda k: None), "output 'out'.*return"),
    "output: math": (lambda: output(lambda k: math.sin(k.q[0])), "output 'out'.*nan.*np.sin"),
    "output: nan in a choice": (lambda: output(lambda k: ca.if_else(k.t > 1, k.t, np.nan)), "output 'out'.*nan or inf"),
    "output: a foreign symbol": (lambda: output(lambda k: ca.SX.sym("z")), "output 'out' uses symbols.*parameters"),
    "output: MX": (lambda: output(lambda k: ca.MX.sym("z")), "output 'out'.*MX"),
    "output: no argument": (lambda: output(lambda: 1), "output 'out'.*1 argument"),
    "output: a method": (lambda: output(lambda k: k.position), "output 'out'.*call it"),
    "output: a dict": (lambda: output(lambda k: {"a": 1}), "output 'out'.*is not a number"),
    "output: no such body": (lambda: output(lambda k: k.position("tipp")), "'out'.*no body 'tipp'; did you mean 'tip'"),
    "output: its own mistake": (lambda: output(lambda k: {}["x"]), "output 'out' in test_wrong.*raised KeyError: 'x'"),
    "output: NumPy": (lambda: output(lambda k: np.asarray(k.q)), "output 'out'.*ca.vertcat"),
    "output: iterated": (lambda: output(lambda k: sum(x for x in k.q)), "output 'out'.*index"),
    "output: index": (lambda: output(lambda k: k.q[7]), "output 'out'.*beyond the end"),
    "quantity: if": (lambda: pf.compile_terms(ARM, {"M": lambda T: 1 if T.q[0] > 0 else 2}), "quantity 'M'.*if_else"),
    "quantity: by name": (lambda: pf.compile_terms(ARM, {"M": "M"}), "{name: function of Terms}"),
    "phi: if": (lambda: with_phi(lambda k: k.q[0] if k.q[0] > 0 else -k.q[0]), "constraint 'c'.*if_else"),
    "phi: max": (lambda: with_phi(lambda k: max(k.q[0], 0)), "constraint 'c'.*ca.fmax"),
    "phi: math within": (lambda: with_phi(lambda k: k.q[0] * math.sin(k.q[1])), "constraint 'c'.*np.sin"),
    "phi: comparison": (lambda: with_phi(lambda k: k.q[0] == 1), "constraint 'c' returns a comparison"),
    "phi: nothing": (lambda: with_phi(lambda k: None), "constraint 'c'.*return"),
    "phi: an unlisted Parameter": (lambda: with_phi(lambda k: k.q[0] - pf.Parameter("a", 1.0)), "'c' uses symbols.*parameters"),
    "phi: a pose": (lambda: with_phi(lambda k: k.pose("tip")), "constraint 'c'.*is not a number"),
    "eta: if": (
        lambda: pf.run(arm([pf.nonholonomic("c", lambda k: k.v[0] if k.v[0] > 0 else 0)]), **QUICK),
        "constraint 'c'.*if_else",
    ),
    "acceleration_constraint: rows at once": (
        lambda: pf.constraints.acceleration_constraint("c", ([[1, 0]], [0])), "'c': rows must be a function of the kinematics"),
    "acceleration_constraint: if": (
        lambda: pf.run(arm([pf.constraints.acceleration_constraint("c", lambda k: ([[1, 0]], 1 if k.t > 0 else 0))]), **QUICK),
        "constraint 'c'.*if_else",
    ),
    "active_while: and": (
        lambda: pf.run(arm([pf.constraints.active_while(SWING, lambda k: k.t < 1 and k.t > 0)]), **QUICK),
        "'swing': active_while.*logic_and",
    ),
    "active_while: two": (
        lambda: pf.run(arm([pf.constraints.active_while(SWING, lambda k: [k.t, k.t])]), **QUICK), "one condition"),
    "active_while: swapped": (
        lambda: pf.constraints.active_while(lambda k: k.t, SWING), "active_while takes a constraint"),
    "holonomic: swapped": (lambda: pf.holonomic(lambda k: k.q[0], "c"), "phi must be a function"),
    "servo: swapped": (lambda: pf.servo(["mA"], SWING), "the target must be a constraint"),
    "servo: one name": (lambda: pf.servo(SWING, "mA"), "list of input names"),
    "servo: unstable": (lambda: pf.servo(SWING, ["mA"], stiffness=-4), "stiffness -4 is below zero"),
    "directions: if": (
        lambda: pf.run(arm([pf.servo(SWING, lambda k: [[1, 0]] if k.q[0] > 0 else [[0, 1]])]), **QUICK),
        "servo constraint 'swing': directions.*if_else",
    ),
    "directions: flat": (lambda: pf.run(arm([pf.servo(SWING, lambda k: [1, 0])]), **QUICK), r"rows \(count, 2\) .* 2 x 1"),
    "rolling_disk: no radius": (lambda: pf.rolling.disk("c", "rod", 0.0), "'c': radius 0 must be above zero"),
    "rolling_disk: no axis": (lambda: pf.rolling.disk("c", "rod", 1.0, axis=(0, 0, 0)), "'c': axis: three numbers"),
    "plane: no normal": (lambda: pf.rolling.plane(normal=(0, 0, 0)), "plane: normal: three numbers"),
    "plane: a list of rates": (lambda: pf.rolling.plane(rate=[1, 2]), "plane: rate: "),
    "rolling_sphere: rate by if": (
        lambda: pf.run(arm([pf.rolling.sphere("c", "rod", 1, plane=pf.rolling.plane(rate=lambda t: 1 if t else 0))]), **QUICK),
        "'c slip'.*if_else",
    ),
    "plane: on a pose": (lambda: pf.rolling.plane(on=pf.pose()), "plane: on must be the name of a body"),
    "rolling_sphere: among the forces": (
        lambda: arm([], forces=[pf.rolling.sphere("c", "rod", 1.0)]), r"forces: .* this item belongs in constraints=\[...\]"),
    "rolling_sphere: two in a tuple": (
        lambda: arm([(pf.rolling.sphere("c", "rod", 1.0),) * 2]), r"join the lists, constraints=\[..., \*more\]"),
    "rolling_sphere: on a pose": (lambda: pf.rolling.sphere("c", "rod", 1, plane=pf.pose()), "'c': plane: .* pf.rolling.plane"),
    "knife_edge: no edge": (lambda: pf.rolling.knife_edge("c", "rod", (0, 0, 0)), "'c': along: three numbers, not all zero"),
    "closure: no pitch": (lambda: pf.closure("c", "helical", "rod", "tip"), "pitch is required for helical, planar-helical"),
    "closure: a pitch too many": (lambda: pf.closure("c", "revolute", "rod", "tip", pitch=0.1), "the kind is revolute"),
    "closure: pitch of zero": (lambda: pf.closure("c", "helical", "rod", "tip", pitch=0), "must not be zero; use a revolute"),
    "closure: no length": (lambda: pf.closure("c", "distance", "rod", "tip"), "length is required for distance"),
    "closure: length below zero": (lambda: pf.closure("c", "distance", "rod", "tip", length=-1.0), "length -1 is below zero"),
    "closure: length of nothing": (lambda: pf.closure("c", "distance", "rod", "tip", length=0.0), "a spherical closure"),
    "closure: no second axis": (lambda: pf.closure("c", "universal", "rod", "tip"), "required for kind universal"),
    "closure: a second axis": (lambda: pf.closure("c", "weld", "rod", "tip", axis_b=(1, 0, 0)), "the kind is weld"),
    "closure: second axis zero": (
        lambda: pf.closure("c", "universal", "rod", "tip", axis_b=(0, 0, 0)), "'c': axis_b.*has no direction"),
    "closure: kind for body": (lambda: arm([pf.closure("c", "rod", "tip", "weld")]), "kind 'rod' is unknown; one of"),
    "body: name and mass swapped": (lambda: pf.body(1.0, "rod"), "the name must be text, got 1.0"),
    "body: mass with its unit": (lambda: pf.body("a", "1 kg"), "body 'a': mass: '1 kg' is not a number"),
    "body: mass as text": (lambda: pf.body("a", "1"), "body 'a': mass: '1' is not a number"),
    "body: truth for mass": (lambda: pf.body("a", True), "mass: True is not a number"),
    "body: math of a Parameter": (lambda: pf.body("a", math.sin(LENGTH / 2)), "nan.*np.sin"),
    "body: com as a dict": (lambda: pf.body("a", 1, com={"x": 1, "y": 2, "z": 3}), "com: a sequence of 3 numbers"),
    "body: inertia of expressions not symmetric": (
        lambda: pf.body("a", 1, inertia=[[1, 0, 0], [0, 1, 0], [LENGTH, 0, 1]]), "not symmetric"),
    "joint: kind for parent": (lambda: pf.joint("j", "world", "a", "revolute"), "kind 'world' is unknown"),
    "joint: a Body for its name": (lambda: pf.joint("j", "free", "world", ARM.bodies[0]), "child must be the name of a body"),
    "joint: one limit": (lambda: pf.joint("j", "revolute", "world", "a", limits=1.0), r"\(low, high\)"),
    "joint: no lower limit": (lambda: pf.joint("j", "revolute", "world", "a", limits=(None, 1)), "-inf"),
    "joint: limit nan": (lambda: pf.joint("j", "revolute", "world", "a", limits=(math.nan, 1)), "wrong way round"),
    "joint: effort below zero": (lambda: pf.joint("j", "revolute", "world", "a", effort=-1), "effort -1 must be zero"),
    "joint: axis by letter": (lambda: pf.joint("j", "revolute", "world", "a", axis="z"), "axis: a sequence of 3 numbers"),
    "joint: placement as a matrix": (lambda: pf.joint("j", "free", "world", "a", placement=np.eye(4)), "3 numbers.*4 x 4"),
    "pose: text": (lambda: pf.pose(quaternion="abcd"), "quaternion"),
    "pose times a point": (lambda: pf.pose() @ (1, 2, 3), "X.R @ x"),
    "actuator: limit": (lambda: pf.actuator("a", "A", limits=3.0), r"actuator 'a': limits: \(low, high\)"),
    "actuator: component": (lambda: pf.actuator("a", "A", component="x"), "component must be a whole number"),
    "wrench: text": (lambda: pf.wrench("w", "tip", "down"), "value: a sequence of 6"),
    "wrench: three numbers of a function": (lambda: pushed(pf.wrench("w", "tip", lambda k: k.position("rod"))),
        "force 'w': its function must return 6 numbers, got 3"),
    "wrench: a function of time": (lambda: pushed(pf.wrench("w", "tip", lambda t: [t, 0, 0, 0, 0, 0])), "'w'.*not a number"),
    "wrench: if": (lambda: pushed(pf.wrench("w", "tip", lambda k: [1 if k.t > 1 else 0] * 6)), "force 'w' in test_.*if_else"),
    "wrench: by itself": (lambda: arm(forces=[pf.wrench("w", "tip", by="tip")]), "force 'w': both ends are on 'tip'"),
    "wrench: by nobody": (lambda: arm(forces=[pf.wrench("w", "tip", by="tipp")]), "force 'w': there is no body 'tipp'"),
    "wrench: swapped": (lambda: pf.wrench("w", lambda k: k.v, "tip"), "force 'w': body and by must be names of bodies"),
    "potential: a number": (
        lambda: pf.forces.potential("V", 1.0), "force 'V': V must be a function of the kinematics, got 1.0"),
    "potential: swapped": (lambda: pf.forces.potential(lambda k: k.t, "V"), "V must be a function"),
    "potential: of velocities": (
        lambda: pushed(pf.forces.potential("V", lambda k: k.v[0])), "'V': V depends on velocities; use"),
    "potential: of q": (
        lambda: pushed(pf.forces.potential("V", lambda k: k.q)), "'V': its function must return one number, got 2"),
    "potential: comparison": (lambda: pushed(pf.forces.potential("V", lambda k: k.q[0] > 0)), "force 'V' returns a comparison"),
    "potential: a foreign symbol": (
        lambda: pushed(pf.forces.potential("V", lambda k: ca.SX.sym("z"))), "'V' uses symbols.*param"),
    "potential: an unlisted Parameter": (
        lambda: pushed(pf.forces.potential("V", lambda k: k.q[0] * pf.Parameter("a", 1.0))),
        "force 'V' uses symbols.*parameters"),
    "potential: nothing": (lambda: pushed(pf.forces.potential("V", lambda k: None)), "force 'V'.*return"),
    "dissipation: a list": (lambda: pf.forces.dissipation("R", [1, 2]), "force 'R': R must be a function"),
    "dissipation: two": (lambda: pushed(pf.forces.dissipation("R", lambda k: k.v)), "'R': its function must return one"),
    "kinetic energy: a number": (lambda: pf.forces.kinetic_energy("T", 2.0), "force 'T': T must be a function"),
    "kinetic energy: not quadratic": (
        lambda: pushed(pf.forces.kinetic_energy("T", lambda k: ca.fabs(k.v[0]))), "force 'T': T must be quadratic in v"),
    "dissipation: no such body": (
        lambda: pushed(pf.forces.dissipation("R", lambda k: ca.sumsqr(k.twist("tipp")))), "force 'R'.*did you mean 'tip'"),
    "generalised force: a number": (lambda: pf.forces.generalised_force("f", 3), "force 'f': f must be a function"),
    "generalised force: size": (
        lambda: pushed(pf.forces.generalised_force("f", lambda k: 1.0)), "'f': its function must return 2 numbers.* got 1"),
    "generalised force: of a joint": (
        lambda: pushed(pf.forces.generalised_force("f", lambda k: k.v, joint="A")), "function must return one number.* got 2"),
    "generalised force: no such joint": (
        lambda: arm(forces=[pf.forces.generalised_force("f", lambda k: 1, joint="AA")]),
        "'f': there is no joint 'AA'; did you mean"),
    "mechanism: lists swapped": (lambda: pf.mechanism("m", ARM.joints, ARM.bodies), r"bodies: .* each item by body\(...\)"),
    "mechanism: a motor among the forces": (lambda: arm(forces=[pf.actuator("m", "A")]), r"belongs in actuators=\[...\]"),
    "spring: on one body": (lambda: arm(forces=[pf.spring("s", "tip", "tip", stiffness=1)]), "'s': both ends are on 'tip'"),
    "mechanism: a dict": (lambda: pf.mechanism("m", {b.name: b for b in ARM.bodies}, ARM.joints), "bodies: a list"),
    "mechanism: one constraint": (lambda: arm(SWING), r"constraints=\[...\]"),
    "mechanism: gravity": (lambda: arm(gravity=9.81), "gravity: a sequence of 3"),
    "mechanism: lenient by word": (lambda: arm(lenient="no"), "lenient must be True or False"),
    "with_: no such field": (lambda: ARM.with_(constraint=[]), "did you mean 'constraints'"),
    "another body": (lambda: ARM.body("Rod"), "did you mean 'rod'"),
    "Parameter: swapped": (lambda: pf.Parameter(1.0, "l"), "must be text"),
    "Parameter: text": (lambda: pf.Parameter("l", "1"), "parameter 'l': default: '1' is not a number"),
    "Parameter: float": (lambda: float(LENGTH), "parameter 'length' has no value.*np.sin"),
    "Parameter: math": (lambda: math.sqrt(LENGTH), "parameter 'length' has no value"),
    "Parameter: if": (lambda: 1 if LENGTH > 1 else 2, "if_else"),
    "Parameter: max": (lambda: max(LENGTH, 1), "ca.fmax"),
    "Parameter and text": (lambda: LENGTH + "a", "'a' is not a number"),
    "Parameter: reduced": (lambda: np.add.reduce(LENGTH), "add.reduce does not take Parameters"),
    "read: nothing": (lambda: pf.read(None), "given by a path, got None"),
    "read: SDF as URDF": (lambda: pf.formats.parse_urdf("<sdf/>"), "this is SDF; pf.read opens it"),
    "read: xacro": (lambda: pf.read("robot.urdf.xacro"), "xacro robot.xacro > robot.urdf"),
    "read: MJCF as URDF": (lambda: pf.formats.parse_urdf("<mujoco/>"), "this is MJCF; pf.read opens it"),
    "read: bytes": (lambda: pf.formats.parse_urdf(b"<robot/>"), r"the text of a file.*pf.read\(path\)"),
    "read: a dict": (lambda: pf.formats.parse_yaml({"name": "a"}), r"the text of a file.*pf.read\(path\)"),
    "duration and step swapped": (lambda: pf.run(ARM, duration=1e-3, step=2), "are the two swapped"),
    "duration: text": (lambda: pf.run(ARM, duration="2"), "duration: '2'"),
    "every second": (lambda: run(every=1.0), "every must be a whole number"),
    "threads: text": (lambda: run(threads="4"), "threads must be a whole number"),
    "strict by word": (lambda: run(strict="no"), "strict must be True or False"),
    "start by name": (lambda: run(start="now"), "start: 'now'"),
    "hold: unknown": (lambda: run(hold="cubic"), "hold 'cubic'"),
    "u where a law gives all inputs": (lambda: run(control=control.projected(AB, HERE, stiffness=1, damping=1), u={"mA": 1}),
        "u: nothing takes inputs here"),
    "u of a machine without motors": (lambda: pf.run(arm(actuators=[]), u=[1.0], u_step=1e-3, **QUICK), "u: nothing takes"),
    "output: a name of the result's": (lambda: run(outputs={"time": lambda k: k.t}), "'time': the result has something else"),
    "output: the name of a dimension": (
        lambda: run(outputs={"x": lambda k: k.q, "x_component": lambda k: k.t}), "'x_component': the result has"),
    "output: named as a wrench's labels": (
        lambda: run(outputs={"A": pf.reaction("A"), "wrench": lambda k: k.q}), "'wrench': the result has something else"),
    "output: a path": (lambda: run(outputs={"a/b": lambda k: k.t}), "'a/b': a name without '/'"),
    "no runs": (lambda: run(q=np.zeros((0, 2))), "no run in q"),
    "no runs by name": (lambda: run(parameters={"length": []}), "no run in parameters"),
    "no runs in a series": (lambda: run(u=np.zeros((3, 0, 2)), u_step=1e-3), "no run in u"),
    "inverse dynamics of no runs": (lambda: pf.inverse_dynamics(ARM, np.zeros((0, 2)), {}, {}), "no run in q"),
    "linearise at no state": (lambda: pf.linearise(ARM, np.zeros((0, 2))), "one state at a time"),
    "u: a function": (lambda: run(u=lambda t: [0, 0]), "u: the function"),
    "record: one name": (lambda: run(record="q"), r"record=\['q'\]"),
    "assemble: one name held": (lambda: pf.assemble(ARM, {"A": 1}, hold="A"), r"hold=\['A'\]"),
    "a whole result for q": (lambda: pf.run(ARM, RESULT, **QUICK), r"result\['q'\].isel\(time=-1\)"),
    "every time of q": (lambda: pf.run(ARM, RESULT["q"], **QUICK), "q still has a time axis"),
    "a Series of other names": (lambda: pf.run(ARM, pd.Series({"A": 1.0, "C": 2.0}), **QUICK), "there is no 'C'"),
    "exponentials of a closed chain": (
        lambda: screws.product_of_exponentials(arm([pf.coincide("c", "tip", (1, 0, 0), "world", (0, 0, 0))])),
        "closure 'c' from 'tip' to 'world' closes the chain.*open it by"),
    "exponentials: coordinates for screw parameters": (
        lambda: screws.product_of_exponentials(ARM, {"C": 1}), "s: there is no 'C'"),
    "screw_jacobian: swapped": (lambda: screws.screw_jacobian(ARM, [0, 0], "tip"), "no body"),
    "screw_jacobian: a frame of jacobian": (lambda: screws.screw_jacobian(ARM, "tip", frame="LOCAL"), "no body 'LOCAL'"),
    "to_sympy: a number": (lambda: screws.to_sympy(1.0), "casadi.SX is needed"),
    "kinematics_latex of a file": (lambda: screws.kinematics_latex("robot.urdf"), "pf.read"),
    "joined: no closure of that name": (lambda: pf.joined(ARM, "grasp"), "no closure 'grasp'"),
    "Control: entries of no names": (
        lambda: control.Control(lambda T, z, w, y: control.Command(T.q), entries={"e": "xy"}), "entries must be {signal:"),
    "Control: entries of numbers": (
        lambda: control.Control(lambda T, z, w, y: control.Command(T.q), entries={"e": (1, 2)}), "entries must be {signal:"),
    "joined: a number": (lambda: pf.joined(ARM, 3), "no closure 3"),
    "graph_matrices of a file": (lambda: pf.calculus.graph_matrices("robot.urdf"), "pf.read"),
    "jacobian: swapped": (lambda: pf.jacobian(ARM, [0, 0], "tip"), "no body"),
    "poses of one name": (lambda: pf.forward_kinematics(ARM, bodies="tip"), "bodies: a list of names"),
    "reactions of a body": (lambda: pf.reaction_wrench(ARM, "tip"), "tip"),
    "of_motion by name": (lambda: pf.of_motion("v_dot"), "of_motion: a function"),
    "causes of a mechanism": (lambda: pf.results.causes(ARM), "not the result of a run"),
    "figure of a mechanism": (lambda: pf.overview(ARM), "not the result of a run"),
    "figure of an instant": (lambda: pf.overview(RESULT.isel(time=0)), "a result over time"),
    "view of a result alone": (lambda: pf.view(RESULT), "a Mechanism is needed"),
    "passages of a mechanism": (lambda: pf.results.singular_passages(ARM), "not the result of a run"),
    "write: swapped": (lambda: pf.results.write_netcdf("x.nc", RESULT), "a Dataset is needed"),
    "write: nowhere": (lambda: pf.results.write_netcdf(RESULT, None), "given by a path, got None"),
    "projector of a mechanism": (lambda: pf.constraints.projector(ARM), "Terms are needed"),
    "multipliers of a mechanism": (lambda: pf.constraints.unique_multipliers(ARM), "Terms are needed"),
    "random: a seed": (lambda: pf.random_configuration(ARM, 1), "default_rng"),
    "export: a mechanism first": (lambda: pf.export(ARM, ARM, "out"), "a control law is needed"),
    "export: no mechanism": (lambda: pf.export(PLAIN, None, "out"), "a Mechanism is needed"),
    "study: a number": (lambda: pf.study.run_study(3), "there is no study '3'"),
    "studies: no folder": (lambda: pf.study.studies("no/such/folder"), "there is no folder"),
    "claim: no numbers": (lambda: pf.study.Claim("a", "b", 1).holds, "a claim is"),
    "claim: relation": (lambda: pf.study.Claim("a", 1, 1, relation="about").holds, "relation 'about' is unknown"),
    "accurate: times that are words": (lambda: run_adaptive(ARM, times=["a", "b"]), "^times: "),
    "accurate: times that stand still": (lambda: run_adaptive(ARM, times=[0, 1, 1]), "two increasing numbers"),
    "accurate: no tolerance": (lambda: run_adaptive(ARM, times=[0, 1], tolerance=0.0), "between 0 and 1, got 0"),
    "accurate: all tolerance": (lambda: run_adaptive(ARM, times=[0, 1], tolerance=1.0), "between 0 and 1, got 1"),
    "accurate: one time": (lambda: run_adaptive(ARM, times=1.0), "increasing"),
    "accurate: tolerance": (lambda: run_adaptive(ARM, times=[0, 1], tolerance="a"), "tolerance: 'a'"),
    "accurate: steps": (lambda: run_adaptive(ARM, times=[0, 1], max_step=-1), "max_step must be"),
    "set_point: one number": (lambda: control.set_point(0.3), r"\[0.3\]"),
    "set_point: none": (lambda: control.set_point([]), "at least one number"),
    "polynomial: text": (lambda: control.polynomial([0], [1], "2"), "duration: '2'"),
    "polynomial: a Parameter": (lambda: control.polynomial([0], [1], LENGTH), "duration: .* is not a number"),
    "function_of_time: swapped": (lambda: control.function_of_time(2, lambda t: [t]), "a function of t and an integer"),
    "function_of_time: if": (
        lambda: steered(reference=control.function_of_time(lambda t: [1 if t > 1 else 0, 0], 2)), "the reference in .*if_else"),
    "function_of_time: math": (
        lambda: steered(reference=control.function_of_time(lambda t: [math.sin(t), 0], 2)), "the reference: nan.*np.sin"),
    "sampled: text": (lambda: control.sampled("ab"), "distinct names"),
    "sampled: values": (lambda: control.sampled(np.zeros((5, 1))), "distinct names"),
    "sampled: twice": (lambda: control.sampled(["a", "a"]), "distinct names"),
    "series: step": (lambda: control.series([0, 1], [[0], [1]], 0), "step must be a time above zero"),
    "series: nan": (lambda: control.series([0, 1], [[0], [math.nan]], 0.1), "values is not finite"),
    "task by name": (lambda: steered(task="A"), "task: a function of the kinematics"),
    "task: if": (lambda: steered(task=lambda k: [k.q[0] if k.q[0] > 0 else 0, k.q[1]]), "the task in .*if_else"),
    "task: constant": (lambda: steered(task=lambda k: [k.q[0], 1.0]), "coordinate 1 does not depend"),
    "task in a stack": (lambda: steered(task=control.stack(lambda k: k.q[9], AB)), "part 1 of the stack"),
    "task and reference swapped": (lambda: steered(task=HERE, reference=AB), "task: a function"),
    "reference: numbers": (lambda: steered(reference=[0, 0]), r"reference: a Reference .*set_point"),
    "joints: a list": (lambda: control.joints(["A", "B"]), "one after another"),
    "point: axes by letter": (lambda: control.point("tip", axes="xz"), "some of 0, 1, 2"),
    "gain below zero": (lambda: steered(stiffness=-100), "stiffness: -100 is below zero"),
    "gain: a Parameter from elsewhere": (
        lambda: steered(stiffness=pf.Parameter("k", 1.0)), "control law uses symbols that do not belong to the mechanism"),
    "reference: a Parameter from elsewhere": (
        lambda: steered(reference=control.set_point([pf.Parameter("x", 1.0), 0])), "the reference uses symbols that"),
    "gain: text": (lambda: steered(damping="a"), "damping: 'a' is not a number"),
    "rest damping: text": (lambda: steered(rest_damping="a"), "rest_damping: 'a' is not a number"),
    "rows: one text": (
        lambda: control.hybrid_force(AB, HERE, control.set_point([0]), "c", stiffness=1, damping=1), "rows: a list of names"),
    "force: numbers": (
        lambda: control.hybrid_force(AB, HERE, [0], ["c"], stiffness=1, damping=1), "force: a Reference is needed"),
    "regulation: numbers": (lambda: control.regulation([0], velocity_gain=1, position_gain=1), "a Reference is needed"),
    "servo_control: a list": (lambda: control.servo_control([pf.servo(SWING, ["mA"])]), "one after another"),
    "law: if": (lambda: lawful(lambda T, z, w, y: control.Command([1 if T.q[0] > 0 else 0, 0])), "control law in .*if_else"),
    "law: inputs alone": (lambda: lawful(lambda T, z, w, y: ca.SX.zeros(2)), "control.Command"),
    "law: nothing": (lambda: lawful(lambda T, z, w, y: None), "the control law.*return"),
    "law: its arguments": (lambda: lawful(lambda T: None), "a function of 4 argument"),
    "law: names as text": (lambda: control.Control(lambda T, z, w, y: None, w_names="a"), "w_names must be a tuple"),
}  # fmt: skip


test_wrong_arguments_give_an_error_with_the_way_out = refusals(WRONG)


NO_WORDS = (np.array(["zero", "linear"]), np.zeros(2), np.zeros(0), ["zero"], {"zero"}, {"zero": 1}, 1, None, True, object())
"""Values that are no text; an array has no truth value when it is compared with a word."""

CHOICES = {
    "hold": lambda x: run(hold=x),
    "backend": lambda x: run(backend=x),
    "backend of a stepper": lambda x: pf.stepper(ARM, backend=x),
    "integrator": lambda x: pf.Scheme(integrator="" if x is None else x),  # None is the default
    "frame": lambda x: pf.jacobian(ARM, [0, 0], "rod", frame=x),
    "hold of a law": lambda x: control.discrete(lambda s: control.Command([0, 0]), 0.1, hold=x),
    "hold of a law in Python": lambda x: control.python_law(lambda t, q, v: [0, 0], 0.1, hold=x),
    "role": lambda x: pf.shape("sphere", radius=1.0, role=x),
    "axes": lambda x: pf.wrench("push", "rod", [0] * 6, axes=x),
    "kind of output": lambda x: control.output("rod", x, 0.0, stiffness=1, damping=1),
}


@pytest.mark.parametrize("what", CHOICES)
def test_a_choice_that_is_no_text_is_refused(what):
    """Also an array, and also where it contains the word."""
    for value in NO_WORDS:
        with pytest.raises((pf.ModelError, pf.BuildError)):
            CHOICES[what](value)


def test_inputs_and_seeds_of_other_kinds_are_refused():
    odd = (1j, True, "1", np.array([True, False]), np.array(["1", "2"]), np.array([1j, 1]), np.zeros((2, 2, 2)), [[1], [1, 2]])
    for value in odd:
        with pytest.raises(pf.ModelError, match="u"):
            run(u=value)
        with pytest.raises(pf.ModelError, match="seed"):
            run(seed=value)
        with pytest.raises(pf.ModelError, match="seed"):
            pf.stepper(ARM, seed=value)
        with pytest.raises(pf.ModelError, match="seed"):
            pf.sweeps.refine(ARM, {"q:A": (0, 1)}, store="nowhere", keep=["q"], by="q", seed=value)
        with pytest.raises(pf.ModelError, match="seed"):
            pf.forces.gust(intensity=1.0, seed=value)


def test_names_may_come_from_a_generator():
    """It is read once, so a check that reads it must not leave nothing."""
    found = pf.inverse_dynamics(ARM, [0, 0], [0, 0], [0, 0], actuated=(name for name in ["A", "B"]))
    assert np.array_equal(found.u, pf.inverse_dynamics(ARM, [0, 0], [0, 0], [0, 0], actuated=["A", "B"]).u)


FIRST = {
    "m": "a Mechanism is needed",
    "result": "not the result of a run|a Dataset is needed|the result of a run or of a sweep is needed",
    "terms": "Terms are needed",
}


def _takes(f, kind):
    return inspect.isfunction(f) and next(iter(inspect.signature(f).parameters), None) == kind


@pytest.mark.parametrize("name", [n for n, f in PUBLIC.items() if any(_takes(f, kind) for kind in FIRST)])
def test_the_first_argument_is_checked_first(name):
    f = PUBLIC[name]
    first, *rest = inspect.signature(f).parameters.values()
    needed = [p for p in rest if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    places = [None for p in needed if p.kind is not p.KEYWORD_ONLY]
    by_name = {p.name: None for p in needed if p.kind is p.KEYWORD_ONLY}
    for wrong in ("robot.urdf", None, (ARM, RunSettings())):
        with pytest.raises(pf.ModelError, match=FIRST[first.name]):
            f(wrong, *places, **by_name)


def test_numpy_functions_of_expressions_need_no_warning():
    """The error messages recommend np.sin, so CasADi's own warning about it would confuse users."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = output(lambda k: np.sin(k.q[0] + 0.5))
    assert abs(result["out"].values[0] - math.sin(0.5)) < SATISFIED


def test_the_original_error_is_the_cause():
    with pytest.raises(pf.ModelError) as caught:
        output(lambda k: 1 if k.q[0] > 0 else 0)
    assert isinstance(caught.value.__cause__, RuntimeError) and "truth value" in str(caught.value.__cause__)


NATURAL = {
    "a list": lambda k: [k.q[0], 2 * k.q[1]],
    "a tuple": lambda k: (k.q[0], 2 * k.q[1]),
    "an array": lambda k: np.array([k.q[0], 2 * k.q[1]]),
    "a generator": lambda k: (x for x in (k.q[0], 2 * k.q[1])),
    "columns": lambda k: [k.q[0], ca.vertcat(2 * k.q[1])],
    "a Parameter in it": lambda k: [k.q[0] * LENGTH, 2 * k.q[1]],
}


@pytest.mark.parametrize("how", NATURAL)
def test_functions_may_return_any_sequence(how):
    given, expected = run(q={"A": 0.4, "B": 0.2}, outputs={"x": NATURAL[how]}), [0.4, 0.4]
    assert given["x"].isel(time=0).values.tolist() == expected
    steered(task=NATURAL[how])
    assert pf.run(arm([pf.holonomic("c", NATURAL[how])]), **QUICK)["phi"].sizes["row"] == 2


def test_conditions_and_directions_may_be_plain_values():
    always = pf.constraints.active_while(pf.holonomic("c", lambda k: k.q[0]), lambda k: True)
    assert abs(float(pf.run(arm([always]), **QUICK)["q"].isel(time=-1, coordinate=0))) < SATISFIED
    by_name = pf.run(arm([pf.servo(SWING, ["mA"])]), v={"A": 1.0}, **QUICK)
    by_rows = pf.run(arm([pf.servo(SWING, lambda k: [[1, 0]])]), v={"A": 1.0}, **QUICK)
    assert np.array_equal(by_name["q"], by_rows["q"])


@pytest.mark.parametrize(
    "q",
    [
        pd.Series({"B": 0.2, "A": 0.4}),
        pd.DataFrame({"B": [0.2], "A": [0.4]}),
        xr.DataArray([0.2, 0.4], dims="coordinate", coords={"coordinate": ["B", "A"]}),
        pd.Series([0.4, 0.2]),
        xr.DataArray([0.4, 0.2], dims="x"),
    ],
    ids=["Series", "DataFrame", "DataArray", "Series without names", "DataArray without names"],
)
def test_names_decide_and_not_the_order(q):
    assert run(q=q)["q"].isel(time=0).values.ravel().tolist() == [0.4, 0.2]


@pytest.mark.parametrize(
    "u",
    [
        pd.DataFrame({"mB": [1.0, 2.0, 3.0], "mA": 0.0}),
        xr.DataArray([[1.0, 2.0, 3.0], [0.0] * 3], dims=("input", "time"), coords={"input": ["mB", "mA"]}),
    ],
    ids=["DataFrame", "DataArray"],
)
def test_names_decide_in_a_series_too(u):
    assert run(u=u, u_step=0.001)["u"].values.tolist() == [[0, 1], [0, 2], [0, 3]]


def test_a_result_starts_the_next_run():
    assert np.array_equal(run(q=RESULT["q"].isel(time=-1))["q"].isel(time=0), RESULT["q"].isel(time=-1))
    batch = run(q={"A": [0.1, 0.2]})["q"].isel(time=-1)
    assert np.array_equal(run(q=batch)["q"].isel(time=0), batch)


ARITHMETIC = {
    "np.sqrt": (lambda p: np.sqrt(p), np.sqrt(2.0)),
    "np.arctan2": (lambda p: np.arctan2(1.0, p), np.arctan2(1.0, 2.0)),
    "np.hypot of an expression": (lambda p: np.hypot(p / 2, p), np.hypot(1.0, 2.0)),
    "abs": (lambda p: abs(-p), 2.0),
    "sum": (lambda p: sum([p, p]), 4.0),
    "power": (lambda p: 3**p - p**3, 1.0),
    "remainder": (lambda p: 5 % p + 5 // p, 3.0),
    "plus": (lambda p: +p - (1 - p), 3.0),
    "float64": (lambda p: np.float64(3) * p, 6.0),
    "array": (lambda p: (np.array([p, 1]) * 2)[0], 4.0),
    "array times": (lambda p: (np.array([1.0, 2.0]) * p)[1], 4.0),
    "times array": (lambda p: (p * [1.0, 2.0])[1], 4.0),
    "comparison": (lambda p: ca.if_else(p > 1, 3 * p, p), 6.0),
}


@pytest.mark.parametrize("what", ARITHMETIC)
def test_a_parameter_is_a_number_for_numpy(what, recwarn):
    f, expected = ARITHMETIC[what]
    p = pf.Parameter("p", 2.0, "kg")
    m = pf.mechanism("m", [pf.body("b", f(p), inertia=1.0)], [pf.joint("j", "free", "world", "b")], parameters=[p])
    assert m.value(m.bodies[0].mass).item() == pytest.approx(expected, rel=1e-15)
    assert what == "np.hypot of an expression" or not recwarn.list  # CasADi warns about np.hypot of its expressions


@pytest.mark.parametrize(
    "com",
    [np.array([[1], [2], [3]]), [[1, 2, 3]], pd.Series([1, 2, 3]), range(1, 4), (x for x in (1, 2, 3)), ca.DM([1, 2, 3])],
    ids=["column", "row", "Series", "range", "generator", "DM"],
)
def test_three_numbers_in_any_container(com):
    assert np.array(ca.DM(pf.body("b", np.array(1.0), com=com).com)).ravel().tolist() == [1, 2, 3]
