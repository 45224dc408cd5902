"""Go2 crawls: four steps with unilateral contacts of the feet, by one law that knows the plan. [konz25 4.4-4.6]

The robot is that of example-robot-data. A foot on the ground is a fixed point, a closure. It opens at the first instant at
which the ground would have to pull, and closes where the foot touches down (`switches`, `of_motion`); after a touch-down it
stays closed until the law, which is sampled, has noticed it. The law knows which feet
may stand: from the start of a step on it treats the foot of that step as free, so it unloads and lifts this foot, and the
contact opens because it carries no load.

The law is that of `konz-legged`, body-based and sampled at 500 Hz, with a body for the torso and a point for each foot. Between
two steps the torso moves over the middle of the three feet that will stand. No paper has this run. Claimed: every foot leaves
the ground once and touches down once; meanwhile no other contact opens, although only pushing forces keep them closed; the
impulse of the contact forces is the change of the robot's momentum; and torso and feet follow the plan. The law ignores
friction: it chooses the smallest torques, for which a lightly loaded foot needs a coefficient of friction of 0.9.

Leaving and touching the ground are events: their instants, and the claims, do not depend on the length of the time steps.

Ours: steps of 8 cm, 4 cm high, in 0.4 s, each after 1.5 s with four feet down, on level ground.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

LEGS = ("RL", "FL", "RR", "FR")
"""Legs in the order of their steps."""
PARTS = ("hip", "thigh", "calf")
HEIGHT = 0.29
"""Height of the base above the feet [m]."""
STRIDE, LIFT, DEEP = 0.08, 0.04, 0.002
"""A step [m]: forwards, up, and how far below the ground its reference ends, so that the foot touches the ground."""
SHIFT, SWING = 1.5, 0.4
"""Durations of standing on four feet and of a step [s]."""
DURATION = len(LEGS) * (SHIFT + SWING) + 2 * SHIFT
TORSO = 9.6, 36.0
FOOT = 1.0, 40.0, 400.0
"""Gains of the torso's prototype [1/s, 1/s^2]; mass, damping and stiffness of a foot's [kg, N s/m, N/m]."""
MASS, INERTIA = 15.0, (0.15, 0.4, 0.4)
"""Mass [kg] and inertia [kg m^2] of the torso's prototype."""
PULL = 1e-6
"""Pull on a foot at which it leaves the ground [N]; where the plan takes its load away, the force is zero but for rounding."""
STEP, PERIOD = 2e-3, 2e-3
HALVES = 1, 2
"""Parts of a step in runs of the first leg's step, whose instants do not depend on them."""

SCHEME = pf.Scheme(corrections=1, violation_limit=1e-4)
"""One correction a step keeps the feet on the ground."""

ON = {leg: pf.Parameter(f"on {leg}", 1.0) for leg in LEGS}
"""1 while a foot is on the ground."""
AT = {leg: tuple(pf.Parameter(f"{axis} {leg}", 0.0, "m") for axis in "xy") for leg in LEGS}
"""Position at which the foot touched down [m]."""
SINCE = {leg: pf.Parameter(f"since {leg}", -1.0, "s") for leg in LEGS}
"""Time of the touch-down [s]."""


@cache
def robot() -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.formats.read_urdf(
            pf.formats.installed("example-robot-data", "go2_description/urdf/go2.urdf", "konz-crawl"), base="free"
        )


def begin(leg: str) -> float:
    """Start of the leg's step [s]."""
    return SHIFT + LEGS.index(leg) * (SHIFT + SWING)


def planned(leg: str, t: ca.SX) -> ca.SX:
    """1 while the plan lets the foot stand; in the second half of its step it stands as soon as it touches the ground."""
    return ca.logic_or(t < begin(leg), t >= begin(leg) + SWING / 2)


@cache
def mechanism(plan: bool = False) -> pf.Mechanism:
    """Go2 with feet on the ground while their parameters are on; with `plan`, only those that the plan also lets stand."""
    m, feet = robot(), []
    for leg in LEGS:
        holds = pf.closure(leg, "spherical", "world", f"{leg}_foot", placement_a=ca.vertcat(*[x.symbol for x in AT[leg]], 0))

        def there(k: pf.Kinematics, leg: str = leg) -> ca.SX:
            on = ON[leg].symbol > 0.5
            return ca.logic_and(on, planned(leg, k.t)) if plan else on

        feet.append(pf.constraints.active_while(holds, there))
    return m.with_(constraints=feet, parameters=[*ON.values(), *SINCE.values(), *(x for leg in LEGS for x in AT[leg])])


# -- the plan --------------------------------------------------------------------------------------------------------------


@cache
def hips() -> dict[str, np.ndarray]:
    """By leg: position of the hip relative to the base, offset to the leg's plane, lengths of thigh and calf [m]."""
    m, found = robot(), {}
    for leg in LEGS:
        hip, thigh, calf, foot = (
            np.array(ca.DM(m.joint(f"{leg}_{part}_joint").placement.p)).ravel() for part in (*PARTS, "foot")
        )
        assert np.allclose([thigh[0], thigh[2], *calf[:2], *foot[:2]], 0)
        found[leg] = np.array([*hip, thigh[1], -calf[2], -foot[2]])
    return found


def stand(leg: str) -> np.ndarray:
    """(3,) initial position of a foot, below its hip and offset [m]; the base is above the origin."""
    x, y, _, d, *_ = hips()[leg]
    return np.array([x, y + d, 0.0])


def angles(leg: str, p: ca.SX) -> ca.SX:
    """(3, 1) joint angles of the leg for a foot at p relative to the base."""
    *hip, d, a, b = (float(x) for x in hips()[leg])
    x, y, z = ca.vertsplit(p - ca.DM(hip))
    h = ca.sqrt(y**2 + z**2 - d**2)
    knee = -ca.acos((x**2 + h**2 - a**2 - b**2) / (2 * a * b))
    thigh = ca.atan2(-x, h) - ca.atan2(b * ca.sin(knee), a + b * ca.cos(knee))
    return ca.vertcat(ca.atan2(z, y) - ca.atan2(-h, d), thigh, knee)


def moved(t: ca.SX, begin: float, time: float) -> ca.SX:
    """A motion from 0 to 1, at rest at both ends."""
    return control.rest_to_rest([0.0], [1.0], time, begin=begin)(t)


def foot(leg: str, t: ca.SX) -> ca.SX:
    """(3, 1) reference of the foot: up, forwards, and down to slightly below the ground [m]."""
    t0, half = begin(leg), SWING / 2
    up, down = moved(t, t0, half), moved(t, t0 + half, half)
    forwards = moved(t, t0 + SWING / 8, 3 / 4 * SWING)
    return ca.DM(stand(leg)) + ca.vertcat(STRIDE * forwards, 0, LIFT * (up - down) - DEEP * down)


def torso(t: ca.SX) -> ca.SX:
    """(2, 1) reference of the base: above the middle of the three feet that stand, finally of all four [m]."""
    places = {leg: stand(leg)[:2] for leg in LEGS}
    at = p = ca.SX(ca.DM([0.0, 0.0]))
    for leg in LEGS:
        goal = ca.DM(np.mean([places[n] for n in LEGS if n != leg], axis=0))
        p += (goal - at) * moved(t, begin(leg) - SHIFT, SHIFT)
        at, places[leg] = goal, places[leg] + [STRIDE, 0]
    return p + (ca.DM(np.mean(list(places.values()), axis=0)) - at) * moved(t, DURATION - 2 * SHIFT, SHIFT)


def reference() -> control.Reference:
    m = robot()

    def at(t: ca.SX) -> ca.SX:
        q = ca.SX(ca.DM(m.neutral()))
        base = ca.vertcat(torso(t), HEIGHT)
        q[:3] = base
        for leg in LEGS:
            for part, angle in zip(PARTS, ca.vertsplit(angles(leg, foot(leg, t) - base)), strict=True):
                q[m.q_slices[f"{leg}_{part}_joint"]] = angle
        return q

    return control.function_of_time(at, m.nq)


# -- law and ground --------------------------------------------------------------------------------------------------------


def law() -> control.Control:
    """Body-based law on the feet that stand and are planned to."""
    pm = pf.forces.pseudo_matrix
    weights = [pm(MASS * x, moments=[x * i for i in INERTIA]) for x in (1.0, *TORSO)]
    pairs = [control.pair("base", inertia=weights[0], damping=weights[1], stiffness=weights[2])]
    of = [pm(x) for x in FOOT]
    pairs += [control.pair(f"{leg}_foot", inertia=of[0], damping=of[1], stiffness=of[2]) for leg in LEGS]
    inner = control.prototype_tracking(pairs, reference(), approach="body")

    def planned_law(T: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        answer = inner.law(pf.Terms(mechanism(plan=True), T.q, T.v, T.u, T.t), z, w, y)
        return control.Command(answer.u, faults=answer.faults)

    return control.discrete(control.Control(planned_law, faults=inner.faults), PERIOD)


def pushed(T: pf.Terms, motion: object, leg: str) -> ca.SX:
    """(3, 1) force of the ground on a foot [N], from the reaction along the leg's joints, J^T F."""
    joints = [T.mechanism.v_slices[f"{leg}_{part}_joint"].start for part in PARTS]
    J = T.kinematics.jacobian(f"{leg}_foot", "LOCAL_WORLD_ALIGNED")[:3, joints]
    a, b, c = ca.horzsplit(J)
    # Invert J^T by cross products.
    across = ca.horzcat(ca.cross(b, c), ca.cross(c, a), ca.cross(a, b))
    return across @ motion.reaction[joints, 0] / ca.dot(a, ca.cross(b, c))


def ground() -> dict:
    """Switches of the contacts: open where the ground would pull, close where a foot touches down."""
    found = {}
    for leg in LEGS:

        def lands(k: pf.Kinematics, leg: str = leg) -> ca.SX:
            down = ca.logic_and(k.position(f"{leg}_foot")[2] < 0, k.velocity(f"{leg}_foot")[2] < 0)
            return ca.logic_and(ON[leg].symbol < 0.5, down)

        def following(T: pf.Terms, motion: object, leg: str = leg, lands=lands) -> ca.SX:
            unnoticed = T.t < SINCE[leg].symbol + PERIOD
            stays = ca.logic_or(unnoticed, pushed(T, motion, leg)[2] >= -PULL)
            return ca.if_else(ON[leg].symbol > 0.5, stays, lands(T.kinematics))

        found[f"on {leg}"] = pf.of_motion(following)
        found[f"since {leg}"] = lambda k, leg=leg, lands=lands: ca.if_else(lands(k), k.t, SINCE[leg].symbol)
        for axis, x in enumerate(AT[leg]):
            found[x.name] = lambda k, leg=leg, axis=axis, x=x, lands=lands: ca.if_else(
                lands(k), k.position(f"{leg}_foot")[axis], x.symbol
            )
    return found


def momentum(k: pf.Kinematics) -> ca.SX:
    """(3, 1) linear momentum of all bodies [N s]."""
    return sum((b.mass * k.velocity(b.name, b.com) for b in k.mechanism.bodies), ca.SX(3, 1))


def run() -> dict[str, xr.Dataset]:
    first = {f"step / {n}": crawl(STEP / n, begin(LEGS[0]) + SWING) for n in HALVES}
    return {"crawl": crawl(STEP, DURATION)} | first


def crawl(step: float, duration: float) -> xr.Dataset:
    """The run of the robot up to a duration [s] in steps of one length [s]."""
    at = {x.name: float(p) for leg in LEGS for x, p in zip(AT[leg], stand(leg), strict=False)}
    q = np.array(ca.DM(ca.evalf(reference().at(ca.SX(0), ca.SX(0, 1)).value))).ravel()
    outputs = {f"foot {leg}": lambda k, leg=leg: k.position(f"{leg}_foot") for leg in LEGS}
    outputs |= {f"force {leg}": pf.of_motion(lambda T, motion, leg=leg: pushed(T, motion, leg)) for leg in LEGS}
    outputs["momentum"] = momentum
    how = {"step": step, "control": law(), "switches": ground(), "outputs": outputs, "parameters": at}
    names = ["q", "u", *outputs, *(x.name for x in ON.values())]
    return pf.run(mechanism(), q, duration=duration, record=names, scheme=SCHEME, **how)


# -- figures and claims ----------------------------------------------------------------------------------------------------


def planned_places(times: np.ndarray) -> dict[str, np.ndarray]:
    """(times, 3) references of the base and of each foot [m]."""
    t = ca.SX.sym("t")
    parts = {"base": ca.vertcat(torso(t), HEIGHT)} | {leg: foot(leg, t) for leg in LEGS}
    f = ca.Function("places", [t], list(parts.values())).map(len(times))
    return {name: np.array(x).T for name, x in zip(parts, f(times), strict=True)}


def down(r: xr.Dataset, leg: str) -> np.ndarray:
    """(times,) whether the foot is on the ground."""
    return r[f"on {leg}"].values > 0.5


def changes(r: xr.Dataset, leg: str) -> np.ndarray:
    """Times at which the foot leaves the ground or touches down, alternately [s]."""
    return r.time.values[1:][np.diff(down(r, leg).astype(int)) != 0]


def touches(r: xr.Dataset) -> np.ndarray:
    """Instants at which a foot leaves the ground or touches down, located within steps [s]."""
    found = pf.events(r)
    return found.time.values[[str(name).startswith("on ") for name in found["name"].values]]


def share(r: xr.Dataset) -> np.ndarray:
    """(times,) largest torque relative to the motor's limit."""
    return np.abs(r.u.values / robot().u_limits[:, 1]).max(axis=1)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    r, figure = result["crawl"], blank_figure(11, 7)
    plan = planned_places(r.time.values)
    (above, height), (force, off) = figure.subplots(2, 2)
    above.plot(r.q[:, 0], r.q[:, 1], "k", label="base")
    above.plot(r.q[0, 0], r.q[0, 1], "ko", markersize=4)
    for i, leg in enumerate(LEGS):
        way, N = r[f"foot {leg}"].values, r[f"force {leg}"].values[:, 2]
        above.plot(*way[:, :2].T, color=f"C{i}", label=leg)
        above.plot(*way[[0, -1], :2].T, "s", color=f"C{i}", markersize=5)
        height.plot(r.time, 1e3 * way[:, 2], color=f"C{i}", label=leg)
        force.plot(r.time, N, color=f"C{i}", linewidth=1, label=leg)
        off.plot(r.time, 1e3 * np.linalg.norm(way - plan[leg], axis=1), color=f"C{i}", linewidth=1, label=leg)
    off.plot(r.time, 1e3 * np.linalg.norm(r.q.values[:, :3] - plan["base"], axis=1), "k", linewidth=1, label="base")
    force.axhline(0, color="k", linewidth=0.6)
    above.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="from above; squares: first and last positions of the feet")
    height.set(xlabel="time [s]", ylabel="height of the feet [mm]")
    force.set(xlabel="time [s]", ylabel="normal forces [N]")
    off.set(
        xlabel="time [s]", ylabel="distance from the plan [mm]", title="a foot on the ground cannot follow its plan below it"
    )
    handles, names = off.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5)
    return {"crawl": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["crawl"]
    t, plan = r.time.values, planned_places(r.time.values)
    yield Claim("status", float(r.status), 0)
    for leg in LEGS:
        at = changes(r, leg)
        yield Claim(
            f"{leg}: number of times that the foot leaves the ground or touches down", len(at), 2, 0, "unilateral contact"
        )
        yield Claim(f"{leg}: lift-off after the start of its step [s]", at[0] - begin(leg), 0.01, 0.01, "plan")
        yield Claim(f"{leg}: touch-down before the end of its step [s]", begin(leg) + SWING - at[-1], 0.05, 0.05, "plan")
        way = r[f"foot {leg}"].values
        yield Claim(f"{leg}: largest height of the foot [m]", float(way[:, 2].max()), LIFT, 1e-3, "plan")
        yield Claim(f"{leg}: motion of the foot forwards [m]", float(way[-1, 0] - way[0, 0]), STRIDE, 1e-3, "plan")
        on = down(r, leg)
        still = np.abs(np.diff(way[1:], axis=0))[on[2:] & on[1:-1] & on[:-2]]
        yield Claim(
            f"{leg}: motion on the ground in a time step after the first [m]", float(still.max()), 0, 1e-5, "closure", "at most"
        )
    standing = np.array([r[f"force {leg}"].values[:, 2] for leg in LEGS])
    steady = np.array([down(r, leg) & ((t < begin(leg)) | (t > begin(leg) + SWING)) for leg in LEGS])
    yield Claim(
        "smallest normal force of a standing foot [N]", float(standing[steady].min()), 5, 0, "unilateral contact", "at least"
    )
    pushes = np.array([r[f"force {leg}"].values for leg in LEGS])
    used = np.hypot(pushes[..., 0], pushes[..., 1])[steady] / standing[steady]
    yield Claim("largest friction coefficient used", float(used.max()), 1, 0, "rubber", "at most")
    yield Claim("largest share of a motor's limit", float(share(r).max()), 0.5, 0, "ours", "at most")
    mass = sum(np.array(robot().value(b.mass)).item() for b in robot().bodies)
    force = pushes.sum(axis=0) - [0, 0, 9.81 * mass]
    gained = np.vstack([np.zeros(3), np.cumsum((force[1:] + force[:-1]) / 2 * STEP, axis=0)])
    left = float(np.abs(gained - (r.momentum.values - r.momentum.values[0])).max())
    yield Claim("impulse of ground and weight minus the change of momentum [N s]", left, 0, 0.5, "Newton", "at most")
    yield Claim("impulse of the weight [N s]", 9.81 * mass * DURATION, 500, 0, "setting", "at least")
    off = float(np.linalg.norm(r.q.values[:, :3] - plan["base"], axis=1).max())
    yield Claim("distance of the base from its plan [m]", off, 0, 1e-3, "ours", "at most")
    instants, others = (touches(result[f"step / {n}"]) for n in HALVES)
    yield Claim(f"{LEGS[0]}: number of events of its step in half as long steps", len(others), len(instants), 0, "definition")
    yield Claim(
        f"{LEGS[0]}: change of its instants in half as long steps [s]", float(np.abs(others - instants).max()), 0, 1e-8,
        "order of the rule", "at most"
    )  # fmt: skip
    yield Claim("motion of the base forwards [m]", float(r.q[-1, 0] - r.q[0, 0]), STRIDE, 1e-3, "plan")
