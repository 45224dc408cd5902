"""A quadcopter compared with Crazyflow, which steps thousands by JAX: same machine, integrator and precision, one core.

A Crazyflie with the numbers of Crazyflow's `cf2x_L250` and all effects of its "first principles" model: four rotors that follow
commanded speeds with a lag, thrusts and torques quadratic in the speed, drag, gyroscopic and reaction torques of the rotors.
Steps of 1 ms, random attitudes and rates. Open loop: constant commands. Under a law: ours is the body-based prototype law with
poles placed at hover, 200 times per second; theirs is its controller (Mellinger's) at 200 Hz, both towards one point at rest.
These are different laws, so only the open loops are compared number by number.

`Sim.step(50)` is their documented call. XLA gets the one core of the process, with one thread. "As it comes" means its
defaults: float32 and explicit Euler. Where Crazyflow is not installed (`pip install crazyflow`) only our times are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

import pfaffian as pf
from benchmarks.check import agree
from benchmarks.closed_loop import loop
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved
from pfaffian import control
from pfaffian.control import Command, Control, Sample

STEP, STEPS, PERIOD = 1e-3, 50, 5e-3
SAME = 1e-7
"""Tolerance of the final states, relative to the largest entry: the two sides rotate by a step with different rules of one
order."""

MASS, INERTIA, ARM = 0.0328, np.array([16.8e-6, 16.8e-6, 29.8e-6]), 0.03253
ROTOR = 34.52e-9
"""Inertia of one propeller with its motor [kg m^2]."""
THRUST, TORQUE = (0.0, -5.382196214637237e-7, 2.4582929831265485e-10), (0.0, 1.410454111996297e-9, 1.4592584373980652e-12)
"""Polynomials of thrust [N] and torque [N m] in the speed [rpm]."""
FASTER, SLOWER = (7.355623702172756, 0.0), (0.0, 0.00024443862952110715)
"""Response of a rotor with the speed n to a command c: n' = a (c - n) + b (c^2 - n^2)."""
MIX = np.array([[-1.0, -1, 1, 1], [-1, 1, 1, -1], [-1, 1, -1, 1]])
"""Signs of the thrusts' moments about x, y, z, times the arm for x and y."""
DRAG = np.array([0.014953790232821078, 0.014953790232821078, 0.013900090000325344])
LIMITS = (0.012817578393224994, 0.12)
"""Limits of a thrust [N]."""
G = 9.81
RADIANS = 2 * np.pi / 60
COMMANDS = tuple(f"command {i}" for i in range(1, 5))
GOAL = (0, 0, 2.0, 0, 0, 0, 1.0)
POLES = (-1.5, -1.5, -1.5 + 0.5j, -1.5 - 0.5j)


def run(o: Options) -> Iterator[Comparison]:
    m, random = mechanism(), np.random.default_rng(7)
    q = np.hstack([random.uniform(-1, 1, (o.runs, 3)) + [0, 0, 20], random.normal(size=(o.runs, 4))])
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    v, command = random.normal(size=(o.runs, 6)), 1.02 * speed_of(MASS * G / 4)
    what = f"Crazyflie, {{}}, {o.runs} runs"
    for ours, theirs in (("rk4", "rk4"), ("euler", "symplectic_euler")):
        call, operations = loop(m, rotors(), q, v, dict.fromkeys(COMMANDS, command), pf.Scheme(integrator=ours), o.backend)
        peers = [
            crazyflow("Crazyflow", q, v, theirs, command),
            crazyflow("float32", q, v, theirs, command, wide=False),
            crazyflow("as it comes", q, v, "euler", command, wide=False),
        ]
        notes: dict[str, Any] = {"operations of a right-hand side": operations}
        if peers[0]:
            notes["difference"] = agree(f"Crazyflow, {ours}", in_theirs(call()), peers[0].end(), SAME)
        yield beside(what.format(f"open loop, {ours}"), call, peers, notes, o)
    q[:, :7] = np.array(GOAL) + np.hstack([0.1 * random.normal(size=(o.runs, 3)), np.zeros((o.runs, 4))])
    v = 0.1 * random.normal(size=(o.runs, 6))
    call, operations = loop(m, tracked(), q, v, backend=o.backend)
    peers = [crazyflow("Crazyflow", q, v, "rk4"), crazyflow("float32", q, v, "rk4", wide=False)]
    yield beside(what.format("under a law at 200 Hz, rk4"), call, peers, {"operations of a right-hand side": operations}, o)


class Peer(NamedTuple):
    """The other side.   call: a run from the start.   end: its final states (runs, 17)."""

    name: str
    call: Callable[[], object]
    end: Callable[[], np.ndarray]


def beside(what: str, call: Callable, peers: list[Peer | None], notes: dict[str, Any], o: Options) -> Comparison:
    """Comparison of ours with the first of the peers; the other peers are in the notes."""
    there = [peer for peer in peers if peer]
    times = interleaved({"": call} | {peer.name: peer.call for peer in there}, o.runs * STEPS, o)
    if not there:
        return Comparison(what, "a step", times[""], None, None, notes | {"Crazyflow": "not installed"})
    others = {f"{peer.name} [ns]": times[peer.name].median for peer in there[1:]}
    return Comparison(what, "a step", times[""], times[there[0].name], Goal("ratio", ">=", 1.0), notes | others)


def in_theirs(x: np.ndarray) -> np.ndarray:
    """[position, quaternion, velocity along the world, angular velocity along the body, rotors] of our [q, v, z]."""
    moved = x.copy()
    moved[:, 7:10] = Rotation.from_quat(x[:, 3:7]).apply(x[:, 7:10])
    return with_one_sign(moved)


def with_one_sign(x: np.ndarray) -> np.ndarray:
    """States for comparison: quaternions with a fixed sign, rotor speeds relative to hover, so that all entries have similar
    size."""
    x[:, 3:7] *= np.where(x[:, 6:7] < 0, -1.0, 1.0)
    x[:, 13:] /= speed_of(MASS * G / 4)
    return x


def crazyflow(
    name: str, q: np.ndarray, v: np.ndarray, integrator: str, command: float | None = None, *, wide: bool = True
) -> Peer | None:
    """Their run from the same states, at constant commands or under their controller; None where it is not installed.

    wide: float64 instead of the default float32. JAX stores this setting for the whole process, so each call sets it.
    """
    if not find_spec("crazyflow"):
        return None
    import jax
    from crazyflow.sim import Sim

    jax.config.update("jax_enable_x64", wide)
    size, rate, real = len(q), round(1 / PERIOD), np.float64 if wide else np.float32
    often = {"state_freq": rate, "attitude_freq": rate, "force_torque_freq": rate} if command is None else {}
    how = "state" if command is None else "rotor_vel"
    sim = Sim(size, drone="cf2x_L250", control=how, integrator=integrator, freq=round(1 / STEP), **often)
    turned = Rotation.from_quat(q[:, 3:7]).apply(v[:, :3])
    states = {"pos": q[:, :3], "quat": q[:, 3:7], "vel": turned, "ang_vel": v[:, 3:]}
    states["rotor_vel"] = np.full((size, 4), speed_of(MASS * G / 4))
    put = {part: jax.numpy.asarray(x[:, None], real) for part, x in states.items()}
    sim.data = sim.data.replace(states=sim.data.states.replace(**put))
    if command is None:
        goal = np.zeros((size, 1, 16))
        goal[..., [2, 12]] = GOAL[2], 1.0
        sim.state_control(jax.numpy.asarray(goal, real))
    else:
        sim.rotor_vel_control(jax.numpy.full((size, 1, 4), command, real))
    start = sim.data

    def call() -> object:
        jax.config.update("jax_enable_x64", wide)
        sim.data = start
        sim.step(STEPS)
        return jax.block_until_ready(sim.data.states)

    def end() -> np.ndarray:
        x: Any = call()
        return with_one_sign(np.hstack([np.array(part)[:, 0] for part in (x.pos, x.quat, x.vel, x.ang_vel, x.rotor_vel)]))

    return Peer(name, call, end)


def speed_of(thrust: Any) -> Any:
    """Speed [rpm] at which a rotor gives a thrust [N]."""
    _, b, c = THRUST
    return (-b + (b**2 + 4 * c * thrust) ** 0.5) / (2 * c)


def mechanism() -> pf.Mechanism:
    """Inputs: four thrusts, each with its torque at hover, and a wrench for the difference of the torques."""
    kappa = polynomial(TORQUE, speed_of(MASS * G / 4)) / (MASS * G / 4)
    thrusts = [
        pf.forces.thruster(f"thrust {i + 1}", "body", point=(-MIX[1, i] * ARM, MIX[0, i] * ARM, 0), torque=MIX[2, i] * kappa)
        for i in range(4)
    ]
    drag = pf.wrench("drag", "body", lambda k: -ca.vertcat(DRAG * k.twist("body")[:3], ca.SX(3, 1)), axes="LOCAL")
    rest = pf.wrench("rotors", "body", axes="LOCAL")
    body = pf.body("body", MASS, inertia=INERTIA)
    free = pf.joint("body", "free", "world", "body")
    return pf.mechanism("Crazyflie", [body], [free], forces=[drag, rest], actuators=thrusts, gravity=(0, 0, -G))


def polynomial(c: tuple[float, float, float], x: Any) -> Any:
    return c[0] + c[1] * x + c[2] * x**2


def rotors() -> Control:
    """The rotors between commanded speeds [rpm] and the body; their speeds are the state z."""
    hover = speed_of(MASS * G / 4)
    kappa = polynomial(TORQUE, hover) / polynomial(THRUST, hover)

    def law(terms: Any, z: ca.SX, w: ca.SX, reaction: ca.SX) -> Command:
        command = ca.fmin(ca.fmax(w, speed_of(LIMITS[0])), speed_of(LIMITS[1]))
        up, down = (a * (command - z) + b * (command**2 - z**2) for a, b in (FASTER, SLOWER))
        z_dot = ca.if_else(command > z, up, down)
        thrust, torque = polynomial(THRUST, z), polynomial(TORQUE, z)
        hand, turn = ca.SX(MIX[2:]), terms.kinematics.twist("body")[3:]
        spin, spin_dot = (ROTOR * RADIANS * hand @ x for x in (z, z_dot))
        about = ca.vertcat(turn[1] * spin, -turn[0] * spin, spin_dot + hand @ (torque - kappa * thrust))
        return Command(ca.vertcat(thrust, ca.SX(3, 1), about), z_dot)

    return Control(law, z=(hover,) * 4, w_names=COMMANDS)


def tracked() -> Control:
    """The prototype law, evaluated once per period, whose thrusts are commands for the rotors."""
    pair = control.quadcopter_pair("body", POLES, heading=(1.5, 0.8), inertia_ratio=0.1)
    law = control.prototype_tracking([pair], control.set_point(GOAL), approach="body")

    def commands(s: Sample) -> Command:
        thrust = law.law(s.terms, ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)).u[:4]
        within = ca.fmin(ca.fmax(thrust, LIMITS[0]), LIMITS[1])
        return Command(ca.SX(0, 1), signals={name: speed_of(within[i]) for i, name in enumerate(COMMANDS)})

    return control.several(track=control.discrete(commands, PERIOD, gives=COMMANDS), rotors=rotors())
