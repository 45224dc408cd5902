"""Particles, constraints added to a machine, and stabilisation of coordinates. [konz25 3.1, 3.2, 3.5, 4.1.1, A.1, A.2]

The thesis gives formulas and no numbers; all numbers are ours.

* 3.1: a particle with weight, a spring and a damper in moving air follows a path; the force (3.7), corrected.
* 3.2, 4.1.1: five particles on a chain of two links. Its equations by release of constraints (reactions in Cartesian
  coordinates), by d'Alembert's and by Gauss's principle agree with those of the machine of two bodies. The particle-based law
  gives the feasible acceleration that is nearest to satisfying m e'' + d e' + k e = 0 of all particles (4.4).
* 3.5, A.2: constraints added to an arm of four joints: a point on a sphere (geometric), a point that does not cross a turning
  line (linear in v), a constant speed (nonlinear), and coupled accelerations. The multipliers (3.130), (3.132), the null space
  (3.129) and Gauss's principle are compared with each other and with three formulations of the library. Starts that violate the
  first three constraints return to them as the stabilised rows (A.13) predict.
* Coordinates off phi = 0 return by q_dot = K v - Psi Lambda phi (A.10), written as a custom System. The correction that the
  library applies to all coordinates, one Newton step at the end of each time step, is an Euler step of this equation with
  Lambda = 1 / h.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from scipy.linalg import expm, null_space

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

MASS, DAMPING, SPRING, GRAVITY = 0.8, 0.6, 5.0, (0, 0, -9.8)
REST, WIND = np.array([0.1, -0.2, 0.3]), np.array([1.0, 0.5, 0.0])
"""Rest position of the particle's spring [m], and velocity of the air [m/s]."""
BAR_D, BAR_K = 3.0, 6.0
"""Damping and stiffness of the controlled particle's error [N s/m, N/m]."""
POINTS = np.array([[0.2, 0.05, 0], [0.5, 0, 0], [0.1, -0.1, 0], [0.35, 0, 0], [0.3, 0.2, 0]])
"""Five particles, two on the first link and three on the second [m]; the second link's axis is at (0.5, 0, 0) of the first."""
WEIGHTS = {"mass": (0.4, 0.3, 0.2, 0.5, 0.3), "damping": (1.0, 0.5, 2.0, 0.7, 0.3), "stiffness": (3.0, 1.0, 5.0, 2.0, 4.0)}
BARS = {"inertia": (0.7, 0.2, 0.5, 0.4, 0.9), "damping": (2.0, 1.5, 1.0, 0.7, 1.3), "stiffness": (6.0, 2.0, 3.0, 8.0, 4.0)}
"""Numbers of the particles (WEIGHTS) and of their prototype (BARS)."""
RADIUS, SPEED = 0.9, 1.5
"""Radius of the sphere about the origin [m], and speed of the tip [m/s]."""
RETURN = {"sphere": (4.0, 8.0), "line": (5.0,), "speed": (5.0,)}
"""Lambda_1 and Lambda_0 of the geometric row, Lambda of the kinematic ones [1/s, 1/s^2]. (A.13)"""
OFF_BY = 0.02
LAMBDA = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
"""Lambda for a rotation matrix [1/s]."""
CIRCLE = 3.0
"""Lambda for a circle [1/s]."""


# -- P1: a particle -------------------------------------------------------------------------------------


def particle() -> pf.Mechanism:
    body, joint = pf.body("body", MASS), pf.joint("j", "translation", "world", "body")
    spring = pf.forces.potential("spring", lambda k: SPRING / 2 * ca.sumsqr(k.q - ca.DM(REST)))
    air = pf.forces.dissipation("air", lambda k: DAMPING / 2 * ca.sumsqr(k.v - ca.DM(WIND)))
    return pf.actuate_all(pf.mechanism("particle", [body], [joint], gravity=GRAVITY, forces=[spring, air]))


def path() -> control.Reference:
    return control.function_of_time(lambda t: [ca.cos(2 * t), ca.sin(2 * t), 0.3 * t], 3)


def drawn() -> list[control.Pair]:
    """Prototype with the particle's mass and with damping and stiffness of the error."""
    pm = pf.forces.pseudo_matrix
    return [control.pair("body", inertia=pm(MASS), damping=pm(BAR_D), stiffness=pm(BAR_K))]


# -- P2: particles on links -----------------------------------------------------------------------------

LINKS = {"first": [0, 1], "second": [2, 3, 4]}


def points(weights: Any, which: list[int]) -> np.ndarray:
    """(4, 4) sum of q_p [h; 1] [h; 1]^T over the particles `which` with weights q_p. [konz25 (3.91)]"""
    h = np.column_stack([POINTS[which], np.ones(len(which))])
    return (h.T * np.array(weights)[which]) @ h


def chain() -> pf.Mechanism:
    """Two links that consist of particles, each with a damper and a spring to its position at q = 0."""
    bodies = [pf.body(n, pseudo=points(WEIGHTS["mass"], which)) for n, which in LINKS.items()]
    joints = [
        pf.joint("a", "revolute", "world", "first"),
        pf.joint("b", "revolute", "first", "second", placement=(0.5, 0, 0)),
    ]

    def V(k: pf.Kinematics) -> ca.SX:
        r, start = places(k.q), places(ca.DM([0, 0]))
        return sum(c / 2 * ca.sumsqr(a - b) for c, a, b in zip(WEIGHTS["stiffness"], r, start, strict=True))

    def R(k: pf.Kinematics) -> ca.SX:
        return sum(d / 2 * ca.sumsqr(ca.jtimes(r, k.q, k.v)) for d, r in zip(WEIGHTS["damping"], places(k.q), strict=True))

    forces = [pf.forces.potential("springs", V), pf.forces.dissipation("dampers", R)]
    return pf.actuate_all(pf.mechanism("chain", bodies, joints, gravity=(0, -9.8, 0), forces=forces, lenient=True))


def places(q: Any) -> list[Any]:
    """Positions of the particles, (2, 1) each."""

    def turn(a: Any) -> Any:
        return ca.vertcat(ca.horzcat(ca.cos(a), -ca.sin(a)), ca.horzcat(ca.sin(a), ca.cos(a)))

    first, second = turn(q[0]), turn(q[0] + q[1])
    elbow = first @ ca.DM([0.5, 0])
    return [first @ ca.DM(POINTS[i, :2]) for i in LINKS["first"]] + [
        elbow + second @ ca.DM(POINTS[i, :2]) for i in LINKS["second"]
    ]


def prototype_particles() -> list[control.Pair]:
    return [control.pair(n, **{what: points(x, which) for what, x in BARS.items()}) for n, which in LINKS.items()]


def swing() -> control.Reference:
    return control.function_of_time(lambda t: [0.5 * ca.sin(2 * t), 0.8 * ca.cos(t)], 2)


class Particles(NamedTuple):
    """Kinematics of the five particles.

    r: (10,) positions.   J: (10, 2) Jacobian.   bent: (10,) J_dot v.
    """

    r: np.ndarray
    J: np.ndarray
    bent: np.ndarray


def particles(q: np.ndarray, v: np.ndarray) -> Particles:
    x, w = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    r = ca.vertcat(*places(x))
    J = ca.jacobian(r, x)
    f = ca.Function("r", [x, w], [r, J, ca.jtimes(J @ w, x, w)])
    r, J, bent = (np.array(y) for y in f(q, v))
    return Particles(r.ravel(), J, bent.ravel())


def principles() -> xr.Dataset:
    """v_dot of the chain by the machine, and by four principles, at random states under random torques."""
    random, found = np.random.default_rng(31), []
    m = chain()
    mass, damping, stiffness = (np.repeat(x, 2) for x in WEIGHTS.values())
    start = particles(np.zeros(2), np.zeros(2)).r
    for _ in range(20):
        q, v, tau = random.normal(size=(3, 2))
        x = particles(q, v)
        F = mass * np.tile([0, -9.8], 5) - damping * (x.J @ v) - stiffness * (x.r - start)
        # Forces on the particles that do the same work as the torques.
        F = F + x.J @ np.linalg.solve(x.J.T @ x.J, tau)
        C = null_space(x.J.T).T  # gradients of the constraints that keep the particles on the links
        KKT = np.block([[np.diag(mass), C.T], [C, np.zeros((8, 8))]])
        released = np.linalg.solve(KKT, np.concatenate([F, C @ x.bent]))[:10]
        by_release = np.linalg.lstsq(x.J, released - x.bent, rcond=None)[0]
        M, b = x.J.T @ (mass[:, None] * x.J), x.J.T @ (F - mass * x.bent)
        root = np.sqrt(mass)
        by_gauss = np.linalg.lstsq(root[:, None] * x.J, (F / mass - x.bent) * root, rcond=None)[0]
        found.append([pf.forward_dynamics(m, q, v, u=tau).v_dot, by_release, np.linalg.solve(M, b), by_gauss])
    return xr.Dataset({"v_dot": (("state", "principle", "joint"), np.array(found))})


def nearest_particles(r: xr.Dataset) -> np.ndarray:
    """(time, 2) v_dot that minimises sum |m e'' + d e' + k e|^2 / (2 m) of all particles. [konz25 (4.4)]"""
    t = ca.SX.sym("t")
    goal = ca.Function("goal", [t], list(swing().at(t, ca.SX(0, 1))))
    mass, damping, stiffness = (np.repeat(BARS[n], 2) for n in ("inertia", "damping", "stiffness"))
    found = []
    for time, q, v in zip(r["time"].values, r["q"].values, r["v"].values, strict=True):
        q_R, v_R, a_R = (np.array(y).ravel() for y in goal(time))
        here, there = particles(q, v), particles(q_R, v_R)
        rest = (
            mass * (here.bent - there.J @ a_R - there.bent)
            + damping * (here.J @ v - there.J @ v_R)
            + stiffness * (here.r - there.r)
        )
        root = np.sqrt(mass)
        found.append(np.linalg.lstsq(root[:, None] * here.J, -rest / root, rcond=None)[0])
    return np.array(found)


# -- R3: constraints added to an arm --------------------------------------------------------------------


def arm(*constraints: Any) -> pf.Mechanism:
    """Arm of four joints with a spring and a damper."""
    axes = {"a": (0, 0, 1), "b": (0, 1, 0), "c": (1, 0, 0), "d": (0, 0.6, 0.8)}
    kinds = {"a": "revolute", "b": "revolute", "c": "prismatic", "d": "revolute"}
    names = list(axes)
    bodies = [pf.body(n, 1.0 - 0.15 * i, com=(0.1, 0.05 * i, 0.02), inertia=(0.02, 0.03, 0.04)) for i, n in enumerate(names)]
    joints = [
        pf.joint(n, kinds[n], above, n, axis=axes[n], placement=(0.4 if above != "world" else 0, 0, 0))
        for n, above in zip(names, ("world", *names), strict=False)
    ]
    forces = [
        pf.forces.potential("spring", lambda k: 10 * k.q[2] ** 2),
        pf.forces.dissipation("damper", lambda k: 0.1 * ca.sumsqr(k.v)),
    ]
    return pf.mechanism("arm", bodies, joints, constraints=constraints, gravity=GRAVITY, forces=forces)


def mechanism() -> pf.Mechanism:
    return arm(pf.holonomic("sphere", sphere))


def tip(k: pf.Kinematics) -> ca.SX:
    return k.position("d", (0.3, 0, 0))


def tip_rate(k: pf.Kinematics) -> ca.SX:
    return ca.jtimes(tip(k), k.q, k.v)


def sphere(k: pf.Kinematics) -> ca.SX:
    return ca.sumsqr(tip(k)) - RADIUS**2


def line(k: pf.Kinematics) -> ca.SX:
    """Residual: velocity of the tip across a line that turns with time; linear in v."""
    return ca.dot(ca.vertcat(-ca.sin(k.t), ca.cos(k.t), 0.2), tip_rate(k))


def speed(k: pf.Kinematics) -> ca.SX:
    """Residual of a constant speed of the tip; quadratic in v."""
    return (ca.sumsqr(tip_rate(k)) - SPEED**2) / 2


def coupled(k: pf.Kinematics) -> tuple[ca.SX, ca.SX]:
    """Z and z of accelerations that depend on each other, on the motion and on time."""
    return ca.horzcat(1, ca.cos(k.q[0]), 0, -0.5), ca.sin(k.t) + 0.3 * k.v[1] ** 2


def row(name: str, k: pf.Kinematics) -> tuple[ca.SX, ca.SX]:
    """Z and z of Z v_dot = z, as in (3.125)."""
    if name == "coupled":
        return coupled(k)
    if name == "sphere":
        Z = ca.jacobian(sphere(k), k.q)  # q_dot = v here
        return Z, -ca.jtimes(Z @ k.v, k.q, k.v)
    eta = {"line": line, "speed": speed}[name](k)
    return ca.jacobian(eta, k.v), -(ca.jtimes(eta, k.q, k.v) + ca.jacobian(eta, k.t))


ROWS = {
    "sphere": pf.holonomic("sphere", sphere),
    "line": pf.nonholonomic("line", line),
    "speed": pf.nonholonomic("speed", speed),
    "coupled": pf.constraints.acceleration_constraint("coupled", coupled),
}
SOLVED = ("multipliers", "nullspace", "gauss")
"""Formulations of the library that are compared."""


def added() -> xr.Dataset:
    """Largest differences of v_dot between the library's and the thesis's formulas, for each constraint and for several; and
    the power of the reaction."""
    random, t = np.random.default_rng(35), 0.4
    sets = {**{n: (n,) for n in ROWS}, "all": tuple(ROWS)[:3]}
    free, apart, power = arm(), [], []
    for names in sets.values():
        m = arm(*(ROWS[n] for n in names))
        terms: dict[str, Any] = {"M": lambda T: T.M, "b": lambda T: T.f - T.c}
        for n in names:
            terms[f"Z {n}"] = lambda T, n=n: ca.SX(row(n, T.kinematics)[0])
            terms[f"z {n}"] = lambda T, n=n: ca.SX(row(n, T.kinematics)[1])
        compiled = pf.compile_terms(free, terms, backend="numpy", lanes=1)
        of_library = {f: lambda T, f=f: pf.FORMULATIONS[f](T).v_dot for f in SOLVED}
        solved = pf.compile_terms(m, of_library, backend="numpy", lanes=1)
        worst = 0.0
        for _ in range(5):
            q, v = random.normal(size=(2, 4))
            x = compiled(q, v, t=t)
            M, b = x["M"], x["b"]
            Z = np.vstack([x[f"Z {n}"].reshape(1, 4) for n in names])
            z = np.array([float(x[f"z {n}"]) for n in names])
            c = len(z)
            KKT = np.linalg.solve(np.block([[M, Z.T], [Z, np.zeros((c, c))]]), np.concatenate([b, z]))
            inverse = np.linalg.inv(M)
            closed = inverse @ (b + Z.T @ np.linalg.solve(Z @ inverse @ Z.T, z - Z @ inverse @ b))
            W, w = null_space(Z), np.linalg.lstsq(Z, z, rcond=None)[0]
            by_null = W @ np.linalg.solve(W.T @ M @ W, W.T @ (b - M @ w)) + w
            theirs = [KKT[:4], closed, by_null]
            ours = list(solved(q, v, t=t).values())
            worst = max(worst, max(np.abs(a - ours[0]).max() for a in [*theirs, *ours[1:]]) / np.abs(ours[0]).max())
            last = v @ (-Z.T @ KKT[4:])
        apart.append(worst)
        power.append(last)
    return xr.Dataset({"apart": ("kind", apart), "power": ("kind", power)}, {"kind": list(sets)})


def stabilised(name: str) -> Any:
    """A constraint with stabilised accelerations, which return a violating start to it. [konz25 (A.13)]"""

    def rows(k: pf.Kinematics) -> tuple[ca.SX, ca.SX]:
        Z, z = row(name, k)
        gains = RETURN[name]
        if name == "sphere":
            return Z, z - gains[0] * (Z @ k.v) - gains[1] * sphere(k)
        return Z, z - gains[0] * {"line": line, "speed": speed}[name](k)

    return pf.constraints.acceleration_constraint(name, rows)


def residual(name: str) -> Any:
    """Residual of the constraint as an output: psi and its rate, or eta."""
    return {"sphere": lambda k: ca.vertcat(sphere(k), ca.jtimes(sphere(k), k.q, k.v)), "line": line, "speed": speed}[name]


# -- drift ----------------------------------------------------------------------------------------------


def on_a_circle() -> pf.Mechanism:
    turned = lambda q: ca.vertcat(-q[1], q[0])  # noqa: E731
    x = pf.coordinates("x", ("1", "2"), ("rate",), turned, phi=lambda q: ca.sumsqr(q) - 1, start=(1, 0))
    T = pf.forces.kinetic_energy("T", lambda k: ca.sumsqr(k.q_dot) / 2)
    return pf.mechanism("circle", [], [], coordinates=[x], forces=[T])


def rotation() -> pf.Mechanism:
    """A top whose coordinates are the nine entries of R, column by column, with the angular velocity as v."""

    def K(q: ca.SX) -> ca.SX:
        R = ca.reshape(q, 3, 3)
        return ca.horzcat(*[ca.vec(R @ so3.hat(axis)) for axis in np.eye(3)])

    names = [f"{a}{b}" for a in "xyz" for b in "xyz"]
    c = pf.coordinates("R", names, ("wx", "wy", "wz"), K, phi=lambda q: metric(q), start=np.eye(3).ravel(), v_units="rad/s")
    T = pf.forces.kinetic_energy("T", lambda k: ca.dot(k.v, ca.DM([0.2, 0.5, 0.3]) * k.v) / 2)
    return pf.mechanism("top", [], [], coordinates=[c], forces=[T])


def metric(q: ca.SX) -> ca.SX:
    """Six entries of R^T R - 1."""
    R = ca.reshape(q, 3, 3)
    return ca.vertcat(*[ca.dot(R[:, i], R[:, j]) - (i == j) for i in range(3) for j in range(i + 1)])


def drifting(m: pf.Mechanism) -> pf.System:
    """A System whose coordinates y violate phi = 0 by OFF_BY at the start: y_dot = K(y) v - Psi Lambda phi. [konz25 (A.10)]

    Its q are on phi = 0 at all times: y scaled to unit length for the circle, and R without its stretch for the rotation.
    """
    c = m.coordinates[0]
    n = m.nq

    def normalised(x: ca.SX) -> ca.SX:
        if n == 2:
            return x[:2] / ca.norm_2(x[:2])
        # y = R S with S = S^T near 1: R by Newton's iterations of the polar decomposition.
        R = ca.reshape(x[:9], 3, 3)
        for _ in range(8):
            R = (R + ca.inv(R).T) / 2
        return ca.vec(R)

    def entered(q: ca.SX) -> ca.SX:
        if n == 2:
            return (1 + OFF_BY) * q
        return ca.vec(ca.reshape(q, 3, 3) @ (ca.SX.eye(3) + OFF_BY * ca.DM([[1, 0.5, 0], [0.5, -1, 0.3], [0, 0.3, 0.5]])))

    def back(y: ca.SX) -> ca.SX:
        if n == 2:
            return -CIRCLE * y / (2 * ca.sumsqr(y)) * (ca.sumsqr(y) - 1)  # Psi = Phi^T / |Phi|^2
        R = ca.reshape(y, 3, 3)
        return ca.vec(-R @ ca.DM(LAMBDA) @ (R.T @ R - ca.SX.eye(3)))

    return pf.System(
        m,
        "off phi = 0",
        (pf.reduction.StatePart("y", m.q_names, m.q_units), pf.reduction.StatePart("v", m.v_names, m.v_units)),
        enter=lambda T: ca.vertcat(entered(T.q), T.v),
        show=lambda x, t: (normalised(x), x[n:, 0]),
        rate=lambda T, motion, x: ca.vertcat(ca.SX(c.K(x[:n, 0])) @ T.v + back(x[:n, 0]), motion.v_dot),
        project=lambda x, t: x,
    )


# -- runs -----------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    follow = control.prototype_tracking(drawn(), path())
    near = control.prototype_tracking(prototype_particles(), swing(), approach="particle")
    results = {
        "principles": principles(),
        "added": added(),
        "particle": pf.run(particle(), [1.5, -0.4, 0.2], [0.3, 0.1, 0.0], duration=4.0, step=2e-3, every=10, control=follow),
        "chain": pf.run(chain(), [0.9, -0.4], [1.0, -2.0], duration=5.0, step=5e-3, every=10, control=near),
    }
    starts = {"sphere": [0.3, 0.4, 0.0, 0.2], "line": [0.3, 0.4, 0.1, 0.2], "speed": [0.3, 0.4, 0.1, 0.2]}
    for name, q in starts.items():
        m = arm(stabilised(name))
        results[name] = pf.run(m, q, [0.5, 0.8, 0.1, -1.0], duration=2.0, step=2e-3, every=10, outputs={"held": residual(name)})
    results["circle"] = pf.run(drifting(on_a_circle()), [0.6, 0.8], [2.0], duration=2.0, step=2e-3, every=10)
    turn = np.array(so3.exp(ca.DM([0.4, -0.8, 0.5]))).T.ravel()
    results["rotation"] = pf.run(drifting(rotation()), turn, [1.0, 3.0, -2.0], duration=2.0, step=2e-3, every=10)
    return results


def stretch(r: xr.Dataset) -> np.ndarray:
    """(time, 3, 3) R^T R - 1 of the drifting coordinates."""
    R = r["y"].values.reshape(-1, 3, 3).swapaxes(1, 2)
    return R.swapaxes(1, 2) @ R - np.eye(3)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(10, 6.2)
    (one, two), (back, drift) = figure.subplots(2, 2)
    r = result["particle"]
    e = r["q"].values - at(path(), r["time"].values)[0]
    for i, axis in enumerate("xyz"):
        one.plot(r["time"], e[:, i], label=axis)
    one.set(xlabel="time [s]", ylabel="error [m]", title="a particle")
    r = result["chain"]
    goal = at(swing(), r["time"].values)[0]
    for i, joint in enumerate("ab"):
        two.plot(r["time"], r["q"].values[:, i], f"C{i}", label=f"joint {joint}")
        two.plot(r["time"], goal[:, i], f"C{i}:", label="reference" if i else None)
    two.set(xlabel="time [s]", ylabel="angle [rad]", title="particles on two links")
    for name, unit in zip(RETURN, ("m$^2$", "m/s", "m$^2$/s$^2$"), strict=True):
        r = result[name]
        off = np.abs(r["held"].values.reshape(len(r["time"]), -1)[:, 0]) + 1e-12
        back.semilogy(r["time"], off, label=f"{name} [{unit}]")
    back.set(xlabel="time [s]", ylabel="|psi|, |eta|", title="return to the constraints")
    t = result["circle"]["time"].values
    off = (result["circle"]["y"].values ** 2).sum(1) - 1
    drift.semilogy(t, off, label="circle")
    drift.semilogy(t, np.linalg.norm(stretch(result["rotation"]), axis=(1, 2)), label="rotation matrix")
    drift.semilogy(t, off[0] * np.exp(-CIRCLE * t), "k:", label="exp(-3 t)")
    drift.set(xlabel="time [s]", ylabel="|phi|", title="return of the coordinates")
    for ax in (one, two, back, drift):
        ax.legend(loc="best")
    return {"constraints": figure}


def at(reference: control.Reference, times: np.ndarray) -> list[np.ndarray]:
    """Value, rate and acceleration of a reference, (times, k) each."""
    t = ca.SX.sym("t")
    f = ca.Function("goal", [t], list(reference.at(t, ca.SX(0, 1))))
    return [np.array(x) for x in zip(*[[np.array(y).ravel() for y in f(s)] for s in times], strict=True)]


# -- claims ---------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _of_particles(result)
    s = result["added"]
    for kind in s["kind"].values:
        off = float(s["apart"].sel(kind=kind))
        yield Claim(f"{kind}: largest difference of six methods, relative to v_dot", off, 0, 5e-13, "[konz25 (3.128)-(3.132)]")
    yield Claim("sphere: power of its reaction [W]", power_of_the_sphere(), 0, 1e-14, "[konz25 3.5]")
    work = abs(float(s["power"].sel(kind="speed")))
    yield Claim("speed: power of its reaction [W]", work, 4, 0, "[konz25 3.5]", "at least")
    yield from _of_returns(result)
    yield from _of_drift(result)


def power_of_the_sphere() -> float:
    """Power of the sphere's reaction along a motion on it [W]."""
    m = mechanism()
    a = pf.assemble(m, [0.3, 0.4, 0.1, 0.2], [0.5, 0.8, 0.1, -1.0])
    return float(np.abs(pf.forward_dynamics(m, a.q, a.v).reaction @ a.v))


def _of_particles(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["particle"]
    t, q, v = r["time"].values, r["q"].values, r["v"].values
    goal, rate, bend = at(path(), t)
    F = MASS * (bend - GRAVITY) + DAMPING * (v - WIND) + SPRING * (q - REST) - BAR_D * (v - rate) - BAR_K * (q - goal)
    yield Claim("P1: force minus (3.7) [N]", np.abs(r["u"].values - F).max(), 0, 1e-13, "[konz25 (3.7)], corrected")
    A = np.array([[0, 1], [-BAR_K / MASS, -BAR_D / MASS]])
    start = np.stack([q[0] - goal[0], v[0] - rate[0]])
    expected = np.array([(expm(A * s) @ start)[0] for s in t])
    yield Claim("P1: error minus its closed form [m]", np.abs(q - goal - expected).max(), 0, 2e-10, "[konz25 (3.5)]")
    x = result["principles"]["v_dot"].values
    for i, name in enumerate(("release of constraints", "d'Alembert", "Gauss"), start=1):
        off = np.abs(x[:, i] - x[:, 0]).max() / np.abs(x).max()
        yield Claim(f"P2: {name} minus the machine, relative", off, 0, 3e-14, "[konz25 (3.8)-(3.25)]")
    r, m = result["chain"], chain()
    v_dot = np.array([pf.forward_dynamics(m, *x).v_dot for x in zip(r["q"].values, r["v"].values, r["u"].values, strict=True)])
    off = np.abs(v_dot - nearest_particles(r)).max()
    yield Claim("P2: law minus the nearest particles [rad/s^2]", off, 0, 2e-12, "[konz25 (4.4)]")


def _of_returns(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name, gains in RETURN.items():
        r = result[name]
        t, x = r["time"].values, r["held"].values.reshape(len(r["time"]), -1)
        A = np.array([[0, 1], [-gains[1], -gains[0]]]) if name == "sphere" else np.array([[-gains[0]]])
        expected = np.array([expm(A * s) @ x[0] for s in t])
        size = np.abs(x[0]).max()
        yield Claim(f"{name}: residual at the start", size, OFF_BY, 0, "setting", "at least")
        yield Claim(
            f"{name}: return minus its exponentials, relative", np.abs(x - expected).max() / size, 0, 2e-8, "[konz25 (A.13)]"
        )


def _of_drift(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["circle"]
    t, off = r["time"].values, (r["y"].values ** 2).sum(1) - 1
    yield Claim(
        "circle: phi minus exp(-Lambda t), relative",
        np.abs(off / off[0] - np.exp(-CIRCLE * t)).max(),
        0,
        1e-9,
        "[konz25 (A.11)]",
    )
    # S = R^T R - 1 obeys S' = [S, hat w] - (1 + S) Lambda S - S Lambda (1 + S), which is integrated separately.
    r = result["rotation"]
    E, steps = stretch(r), 10
    w, h = r["v"].values, (t[1] - t[0]) / steps
    S, worst = E[0], 0.0

    def rate(S: np.ndarray, w: np.ndarray) -> np.ndarray:
        W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        P = LAMBDA @ S
        return (np.eye(3) + S) @ (W - P) + (W - P).T @ (np.eye(3) + S)

    for i in range(len(t) - 1):
        for j in range(steps):
            a, b, c = (w[i] + (w[i + 1] - w[i]) * (j + s) / steps for s in (0, 0.5, 1))
            k1 = rate(S, a)
            k2 = rate(S + h / 2 * k1, b)
            k3 = rate(S + h / 2 * k2, b)
            S = S + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(S + h * k3, c))
        worst = max(worst, np.abs(S - E[i + 1]).max())
    yield Claim("rotation: R^T R - 1 minus its equation", worst, 0, 1e-5, "[konz25 (A.12)]")
    sizes = np.linalg.norm(E, axis=(1, 2))
    slowest = 2 * np.linalg.eigvalsh(LAMBDA)[0]
    slope = np.log(sizes[0] / sizes[-1]) / t[-1]
    yield Claim("rotation: mean rate of return [1/s]", slope, 0.95 * slowest, 0, "[konz25 (A.12)]", "at least")
    yield Claim("Newton's step minus Euler's of (A.10) with Lambda = 1 / h", newton_and_euler(), 0, 1e-15, "[konz25 (A.10)]")


def newton_and_euler() -> float:
    """Largest difference between a run's correction of the circle's coordinates and y - h Psi Lambda phi, Lambda h = 1."""
    y = np.array([0.63, 0.82])
    q = ca.SX.sym("q", 2)
    ours = np.array(ca.Function("q", [q], [pf.constraints.normalise(on_a_circle(), q)])(y)).ravel()
    return float(np.abs(ours - (y - y / (2 * y @ y) * (y @ y - 1))).max())
