"""Whole engines of others: Drake's error-controlled integrators on trees, Exudyn's generalised-alpha method on planar loops.

Both build the machine themselves, from the numbers of ours, and give its last state in our coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.problems import Problem

Engine = Callable[[float], np.ndarray]
"""Tolerance, or number of steps -> [q; v] at the end of a motion."""

TREES, PLANAR = ("double pendulum", "heavy top", "ur5"), ("four-bar", "Andrews")
"""Names of the machines that Drake and that Exudyn computes."""

SPECTRAL_RADIUS = 0.9
"""Of the generalised-alpha method for motions that the steps do not resolve."""


def by_drake(of: Problem) -> dict[str, Engine]:
    """Name -> a motion by an integrator of Drake that takes a tolerance; {} where Drake is not installed, or for no tree."""
    if of.m.name not in TREES or not find_spec("pydrake"):
        return {}
    from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator

    plant, joints = _plant(of.m)
    simulator, at = Simulator(plant), pf.assemble(of.m, of.q, of.v)
    context = simulator.get_mutable_context()

    def solve(scheme: str, tolerance: float) -> np.ndarray:
        context.SetTime(0.0)
        _place(joints, context, np.ravel(at.q), np.ravel(at.v))
        ResetIntegratorFromFlags(simulator, scheme, of.duration / 100).set_target_accuracy(tolerance)
        simulator.Initialize()
        simulator.AdvanceTo(of.duration)
        return _read(joints, context)

    names = {"Drake RK3": "runge_kutta3", "Drake RK5": "runge_kutta5", "Drake Radau3": "radau3"}
    return {name: lambda tolerance, scheme=scheme: solve(scheme, tolerance) for name, scheme in names.items()}


def _plant(m: pf.Mechanism) -> tuple[Any, list[Any]]:
    """A tree in Drake, and its joints in our order: hinges, or one ball."""
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import BallRpyJoint, FixedOffsetFrame, RevoluteJoint, SpatialInertia, UnitInertia

    plant, bodies, joints = MultibodyPlant(0.0), list[Any](), list[Any]()
    plant.mutable_gravity_field().set_gravity_vector(m.value(m.gravity).ravel())
    for i, link in enumerate(pf.symbols(m).kinematics.tree.links):
        mass, h, I = m.value(link.mass).item(), m.value(link.h).ravel(), m.value(link.I)
        six = np.array([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]) / mass
        bodies.append(plant.AddRigidBody(f"b{i}", SpatialInertia(mass, h / mass, UnitInertia(*six))))
        X = RigidTransform(RotationMatrix(m.value(link.placement.R)), m.value(link.placement.p).ravel())
        parent = plant.world_body() if link.parent < 0 else bodies[link.parent]
        frame = plant.AddFrame(FixedOffsetFrame(f"f{i}", parent.body_frame(), X))
        ends = (f"j{i}", frame, bodies[i].body_frame())
        ball = link.joint.kind.name == "spherical"
        joints.append(plant.AddJoint(BallRpyJoint(*ends) if ball else RevoluteJoint(*ends, [0, 0, 1])))
    plant.Finalize()
    return plant, joints


def _place(joints: list[Any], context: Any, q: np.ndarray, v: np.ndarray) -> None:
    """Put Drake's joints into our state."""
    from pydrake.math import RollPitchYaw
    from scipy.spatial.transform import Rotation

    if len(q) > len(v):
        R = Rotation.from_quat(q).as_matrix()
        joints[0].set_angles(context, RollPitchYaw(R).vector())
        joints[0].set_angular_velocity(context, R @ v)
        return
    for joint, angle, rate in zip(joints, q, v, strict=True):
        joint.set_angle(context, angle)
        joint.set_angular_rate(context, rate)


def _read(joints: list[Any], context: Any) -> np.ndarray:
    """Our [q; v] of Drake's joints."""
    from scipy.spatial.transform import Rotation

    if not hasattr(joints[0], "get_angles"):
        return np.array([j.get_angle(context) for j in joints] + [j.get_angular_rate(context) for j in joints])
    R = Rotation.from_euler("xyz", joints[0].get_angles(context))
    return np.concatenate([R.as_quat(), R.inv().apply(joints[0].get_angular_velocity(context))])


def by_exudyn(of: Problem) -> dict[str, Engine]:
    """Name -> a motion by Exudyn with a number of steps; {} where it is not installed, or for no loop in a plane."""
    if of.m.name not in PLANAR or not find_spec("exudyn"):
        return {}
    import exudyn

    exudyn.SetWriteToConsole(False)
    container, at = exudyn.SystemContainer(), pf.assemble(of.m, of.q, of.v)
    mbs, q = container.AddSystem(), np.ravel(at.q)
    parents = [link.parent for link in pf.symbols(of.m).kinematics.tree.links]
    nodes = _planar(of, mbs, q)
    mbs.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.endTime = of.duration
    settings.timeIntegration.generalizedAlpha.spectralRadius = SPECTRAL_RADIUS
    settings.solutionSettings.writeSolutionToFile = False
    settings.timeIntegration.verboseMode = settings.displayComputationTime = 0

    def turn(kind: Any) -> np.ndarray:
        found = [mbs.GetNodeOutput(n, kind)[2] for n in nodes]
        return np.array([found[i] - (found[k] if k >= 0 else 0.0) for i, k in enumerate(parents)])

    def solve(steps: float) -> np.ndarray:
        settings.timeIntegration.numberOfSteps = int(steps)
        mbs.SolveDynamic(settings, updateInitialValues=False)
        kinds = exudyn.OutputVariableType
        return np.concatenate([q + turn(kinds.Coordinates), turn(kinds.Coordinates_t)])

    return {"Exudyn generalised-alpha": solve}


def _planar(of: Problem, mbs: Any, q: np.ndarray) -> list[int]:
    """Write a machine of hinges that begins at rest into Exudyn, with bodies that are not turned then; returns their nodes."""
    from exudyn import itemInterface as items

    m, poses = of.m, pf.forward_kinematics(of.m, q)
    normal = m.value(pf.symbols(m).kinematics.tree.links[0].placement.R)[:, 2]
    plane = np.array([[1.0, 0.0, 0.0], np.cross(normal, [1.0, 0.0, 0.0])])
    centres: dict[str, np.ndarray] = {}
    numbers: dict[str, int] = {}
    nodes = []

    def world(body: str, point: Any) -> np.ndarray:
        p = m.value(point).ravel()
        return plane @ (p if body == "world" else poses[body].position + poses[body].rotation @ p)

    def marker(body: str, point: np.ndarray) -> int:
        local = [*(point - centres[body]), 0.0]
        return mbs.AddMarker(items.MarkerBodyPosition(bodyNumber=numbers[body], localPosition=local))

    centres["world"], numbers["world"] = np.zeros(2), mbs.AddObject(items.ObjectGround())
    for b in m.bodies:
        centres[b.name], mass = world(b.name, b.com), m.value(b.mass).item()
        nodes.append(mbs.AddNode(items.NodeRigidBody2D(referenceCoordinates=[*centres[b.name], 0.0])))
        about = normal @ poses[b.name].rotation @ m.value(b.inertia) @ poses[b.name].rotation.T @ normal
        body = items.ObjectRigidBody2D(physicsMass=mass, physicsInertia=about, nodeNumber=nodes[-1])
        numbers[b.name] = mbs.AddObject(body)
        at = mbs.AddMarker(items.MarkerBodyMass(bodyNumber=numbers[b.name]))
        weight = [*(plane @ m.value(m.gravity).ravel()), 0.0]
        mbs.AddLoad(items.LoadMassProportional(markerNumber=at, loadVector=weight))
    pins = [(j.parent, j.child, world(j.child, np.zeros(3))) for j in m.joints]
    pins += [(c.body_a, c.body_b, world(c.body_a, c.placement_a.p)) for c in m.constraints]
    for a, b, point in pins:
        ends = [marker(a, point), marker(b, point)]
        mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=ends))
    for f in m.forces:
        ends = [marker(f.body_a, world(f.body_a, f.point_a)), marker(f.body_b, world(f.body_b, f.point_b))]
        k, rest = m.value(f.stiffness).item(), m.value(f.rest).item()
        mbs.AddObject(items.ObjectConnectorSpringDamper(markerNumbers=ends, stiffness=k, referenceLength=rest))
    for a, torque in zip(m.actuators, np.ravel(of.u if of.u is not None else []), strict=True):
        body = next(j.child for j in m.joints if j.name == a.joint)
        at = mbs.AddMarker(items.MarkerBodyRigid(bodyNumber=numbers[body]))
        mbs.AddLoad(items.LoadTorqueVector(markerNumber=at, loadVector=[0, 0, torque]))
    return nodes
