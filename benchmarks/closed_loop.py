"""Runs under control: two Pandas that carry one box, compared with the arms without control and with the law in Python.

14 velocities, 6 rows, hybrid motion and force control (studies/two_pandas.py), RK4 with steps of 1 ms, 4096 runs from
different starts, the first and the last state recorded. "Open loop" is the same mechanism and step with constant inputs. The
law in Python performs for one run the work of the compiled step without drift correction, four times per step: terms and
Jacobians by Pinocchio, and three dense systems by NumPy for the desired acceleration, the smallest torques and the plant. The
squeeze loop is closed there explicitly, lambda = lambda_u, which holds since model and plant are equal. States are compared
after 50 steps.

In addition, a UR5 under computed torque at 200 Hz, constant over five steps, is compared with the same law at every stage of
every step, and a run of the law to an accuracy with one in steps of 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.check import agree
from benchmarks.ours import again
from benchmarks.peers import Twin, pinocchio_model, se3, twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import robot
from benchmarks.timing import Options, interleaved
from pfaffian import control
from pfaffian.control import Control
from studies import two_pandas

STEP, STEPS = 1e-3, 50
SPREAD = 0.02
SAME_END = 1e-7
SQUEEZE = 30.0
PERIOD = 5e-3
LONG = 5.0


def run(o: Options) -> Iterator[Comparison]:
    m = two_pandas.mechanism()
    law = two_pandas.law(m, m.parameters[0].symbol)
    random = np.random.default_rng(7)
    q = np.array(two_pandas.READY * 2) + SPREAD * random.uniform(-1, 1, (o.runs, m.nq))
    q, v = pf.assemble(m, q)[:2]
    closed, operations = loop(m, law, q, v, backend=o.backend)
    opened, without = loop(m, None, q, v, backend=o.backend)
    python = Python.of(m)
    few = min(o.runs, 2)
    ends = np.array([python.run(q[i], v[i]) for i in range(few)])
    off = agree("two Pandas, the law in Python", closed()[:few, : ends.shape[1]], ends, SAME_END)
    one, _ = loop(m, law, q[:1], v[:1], backend=o.backend)
    calls = {"": closed, "open loop": opened}
    times = interleaved(calls, o.runs * STEPS, o)
    what = f"two Pandas, hybrid force, {o.runs} runs"
    notes = {"operations of a right-hand side": operations, "in the open loop": without}
    yield Comparison(f"{what}, beside no control", "a step", times[""], times["open loop"], None, notes)
    single = interleaved({"one run": one, "law in Python": lambda: python.run(q[0], v[0])}, STEPS, o)
    peer = single["law in Python"]
    yield Comparison(f"{what}, beside one in Python", "a step", times[""], peer, Goal("ratio", ">=", 25), {"difference": off})
    yield Comparison("two Pandas, hybrid force, one run", "a step", single["one run"], peer)
    yield at_a_rate(o)
    yield to_an_accuracy(o)


def at_a_rate(o: Options) -> Comparison:
    """A law in discrete time compared with the same law in continuous time."""
    m = pf.actuate_all(robot("ur5"))
    joints = control.joints(*(j.name for j in m.joints if j.nv))
    law = control.computed_torque(joints, control.set_point([0.3] * m.nv), stiffness=100.0, damping=20.0)
    q = np.random.default_rng(7).uniform(-0.5, 0.5, (o.runs, m.nq))
    sampled, operations = loop(m, control.discrete(law, PERIOD), q, np.zeros_like(q), backend=o.backend)
    flowing, always = loop(m, law, q, np.zeros_like(q), backend=o.backend)
    times = interleaved({"": sampled, "at every stage": flowing}, o.runs * STEPS, o)
    notes = {"operations of a right-hand side": operations, "with the law in it": always}
    what = f"UR5, computed torque at 200 Hz, {o.runs} runs"
    return Comparison(what, "a step", times[""], times["at every stage"], Goal("ratio", ">=", 1.0), notes)


def to_an_accuracy(o: Options) -> Comparison:
    """A law in discrete time under error control, compared with steps of one length; both tell their error."""
    m = pf.actuate_all(robot("ur5"))
    joints = control.joints(*(j.name for j in m.joints if j.nv))
    law = control.discrete(
        control.computed_torque(joints, control.set_point([0.3] * m.nv), stiffness=100.0, damping=20.0), PERIOD
    )
    q, how = np.full(m.nq, 0.1), {"duration": LONG, "control": law, "backend": o.backend}
    calls = {"": lambda: pf.run(m, q, accuracy=1e-6, **how), "fixed": lambda: pf.run(m, q, step=STEP, every=50, **how)}
    times = interleaved(calls, 1, o)
    what = f"UR5, computed torque at 200 Hz, one run of {LONG:g} s to 1e-6, beside steps of 1 ms"
    return Comparison(what, "a run", times[""], times["fixed"], Goal("ratio", ">=", 1 / 1.2))


def loop(
    m: pf.Mechanism | pf.reduction.AbstractSystem,
    law: Control | None,
    q: np.ndarray,
    v: np.ndarray,
    u: Mapping[str, float] | None = None,
    scheme: pf.Scheme | None = None,
    backend: str = "c",
) -> tuple[Callable[[], np.ndarray], int]:
    """A call that makes steps and returns the last states, [q, v, z]; and the operations of the right-hand side.

    u: constant inputs.
    """
    call, operations = again(m, q, v, STEPS, u, backend, step=STEP, control=law, scheme=scheme)
    return call, operations["rate"]


@dataclass
class Python:
    """The law and the plant in Python.   a, b: frames of the weld.   box: frame of the box.   X: its start."""

    w: Twin
    model: pin.Model
    a: int
    b: int
    box: int
    X: pin.SE3

    @classmethod
    def of(cls, m: pf.Mechanism) -> Python:
        w = twin(m)
        model = pinocchio_model(w)
        (a, b), (link, place) = w.ends(m.constraints[0]), w.tree.place["box"]
        frames = []
        for name, (i, X) in (("a", a), ("b", b), ("box", (link, place))):
            joint = w.number(i)
            frames.append(model.addFrame(pin.Frame(name, joint, 0, se3(m, X), pin.FrameType.OP_FRAME)))
        data = model.createData()
        pin.framesForwardKinematics(model, data, np.array(two_pandas.READY * 2)[w.q_order])
        return cls(w, model, *frames, data.oMf[frames[2]].copy())

    def run(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The last [q, v] in our order."""
        w, data = self.w, self.model.createData()
        x, n, h = np.concatenate([q[w.q_order], v[w.v_order], two_pandas.INTEGRAL]), self.model.nv, STEP
        for i in range(STEPS):
            t = i * h
            k1 = self.rate(data, x, t)
            k2 = self.rate(data, x + h / 2 * k1, t + h / 2)
            k3 = self.rate(data, x + h / 2 * k2, t + h / 2)
            k4 = self.rate(data, x + h * k3, t + h)
            x = x + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        out = np.empty(2 * n)
        out[w.q_order], out[n + w.v_order] = x[:n], x[n : 2 * n]
        return out

    def rate(self, data: pin.Data, x: np.ndarray, t: float) -> np.ndarray:
        model, n = self.model, self.model.nv
        q, v, z = x[:n], x[n : 2 * n], x[2 * n :]
        gravity = pin.computeGeneralizedGravity(model, data, q).copy()
        M, c = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, v)
        M = np.triu(M) + np.triu(M, 1).T
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(n))
        pin.updateFramePlacements(model, data)
        A, b = self.weld(data)
        J, desired = self.task(data, t)
        # Desired acceleration: A v_dot = b, J v_dot = desired; the remaining motion is damped in the metric of M, in which
        # v_dot + M^-1 (c - gravity), the acceleration of the bodies, is least.
        rest = two_pandas.MOTION["rest_damping"]
        rows, k = np.vstack([A, J]), len(A) + len(J)
        system = np.block([[M, rows.T], [rows, np.zeros((k, k))]])
        v_dot = np.linalg.solve(system, np.concatenate([gravity - c - rest * M @ v, b, desired]))[:n]
        tau = M @ v_dot + c
        s = smooth(t)[0]
        weight = -two_pandas.MASS * two_pandas.G / 2
        lam_d = np.array([s * weight, 0.0, -10.0 + s * (10.0 - SQUEEZE)])
        gain, integral = two_pandas.FORCE["force_gain"], two_pandas.FORCE["integral_gain"]
        error = -integral * z / (1 + gain)
        u = tau - A[:3].T @ (lam_d - error)
        u -= A[3:].T @ np.linalg.lstsq(A[3:].T, u, rcond=None)[0]
        system = np.block([[M, -A.T], [A, np.zeros((6, 6))]])
        return np.concatenate([v, np.linalg.solve(system, np.concatenate([u - c, b]))[:n], error])

    def weld(self, data: pin.Data) -> tuple[np.ndarray, np.ndarray]:
        """A and b of the closure between frames a and b, which coincide."""
        local = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        R = data.oMf[self.a].rotation.T
        J, drift = [], []
        for f in (self.a, self.b):
            J.append(pin.getFrameJacobian(self.model, data, f, local))
            a = pin.getFrameClassicalAcceleration(self.model, data, f, local)
            drift.append(np.concatenate([a.linear, a.angular]))
        turn = np.kron(np.eye(2), R)
        return turn @ (J[1] - J[0]), -turn @ (drift[1] - drift[0])

    def task(self, data: pin.Data, t: float) -> tuple[np.ndarray, np.ndarray]:
        """J and the desired acceleration of the box minus its drift."""
        local = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        X, model = data.oMf[self.box], self.model
        J = pin.getFrameJacobian(model, data, self.box, local)
        a = pin.getFrameClassicalAcceleration(model, data, self.box, local)
        V = pin.getFrameVelocity(model, data, self.box, local)
        E = self.X.rotation.T @ X.rotation
        omega, alpha = X.rotation.T @ V.angular, X.rotation.T @ a.angular
        L = pin.Jlog3(E)
        # The rate of L along the motion, by a central difference.
        h = 1e-5
        L_dot = (pin.Jlog3(E @ pin.exp3(h * omega)) - pin.Jlog3(E @ pin.exp3(-h * omega))) / (2 * h)
        drift = np.concatenate([a.linear, L @ alpha + L_dot @ omega])
        rate = np.concatenate([V.linear, L @ omega])
        J = np.vstack([J[:3], L @ X.rotation.T @ J[3:]])
        s, slope, bend = smooth(t)
        move = np.array(two_pandas.MOVE)
        place = np.concatenate([X.translation - self.X.translation, pin.log3(E)])
        G_P, G_D = two_pandas.MOTION["stiffness"], two_pandas.MOTION["damping"]
        return J, bend * move + G_D * (slope * move - rate) + G_P * (s * move - place) - drift


def smooth(t: float) -> tuple[float, float, float]:
    """The polynomial of degree five over 1 s, its rate and acceleration."""
    s = min(max(t, 0.0), 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2, 60 * s * (1 - s) * (1 - 2 * s)
