"""A SCARA controlled by its joints and by its tool: closed loops, both elbows, singularities, potentials. [konz25 4.7.6]

By the joints (4.104) the prototype has moments between each link and the one before, so that the joints move like two single
ones, E'' + 3 E' + 6.25 sin E = 0. By the tool (4.108) it is a mass on a spring and a damper, so that the tool's error obeys
e'' + 3 e' + 6.25 e = 0 with the elbow on either side. When the arm is stretched, sin theta_2 = 0, this prototype has no
inertia along the arm: the effort grows as 1 / sin theta_2, and the law stops. The body approach has another closed loop, since
its errors are those of the twists.

The thesis gives neither arm nor gains nor starts: links of 0.4 and 0.3 m, masses and inertias of a desk robot, and gains of
2.5 rad/s with damping 0.6, slow enough that errors remain while the reference moves, are ours. The timing is the thesis's: rest
until 1 s, the tool along a straight line until 4 s, rest again.

The same laws move two arms with parallel axes from the files of example-robot-data, one in a horizontal plane and one hanging
in a vertical plane, with the masses, offsets and gravity of the files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

L1, L2 = 0.4, 0.3
"""Lengths of the links [m]."""
M, D, K = 1.0, 3.0, 6.25
"""Inertia, damping and stiffness of both prototypes: [kg, N s/m, N/m] at the tool, [kg m^2, N m s, N m] about the joints."""
LINE = ((0.25, 0.45), (0.5, 0.1))
"""End points of the tool's line [m]."""
STARTS = {"same elbow": ((1.2, 0.9), (0.5, -0.5)), "other elbow": ((1.9, -1.3), (0.5, -0.5))}
"""Starts: q [rad] and v [rad/s]."""
OUTWARDS = (0.6, 0.6), 2.5
"""Start [rad] and outward speed of the tool [m/s], with which its error would leave the workspace."""
STRETCHED = (0.0, 1e-3, 1e-2)
"""Elbow angles at rest [rad]."""
REST = (0.0, np.pi / 2)
"""Reference theta_R of the potentials [rad]. [konz25 fig. 4.12]"""
DURATION, STEP, EVERY = 6.0, 1e-3, 5


class File(NamedTuple):
    """An arm with two parallel axes.

    file: in example-robot-data.   tip: body and point [m] of the tool.   ends: joints of the reference at rest [rad].
    start: q [rad] and v [rad/s] of the run.
    """

    file: str
    tip: tuple[str, tuple[float, float, float]]
    ends: tuple[tuple[float, float], tuple[float, float]]
    start: tuple[tuple[float, float], tuple[float, float]]


FILES = {
    "TwoDofs": File("TwoDofs.urdf", ("Tip", (0, 0, 0)), ((0.2, 0.9), (1.1, 1.6)), ((0.5, 0.6), (0.4, -0.8))),
    "double pendulum": File(
        "double_pendulum_continuous.urdf", ("link2", (-0.01, 0, 0.2)), ((2.6, 0.7), (3.4, 1.4)), ((2.9, 0.5), (-0.3, 0.9))
    ),
}


def mechanism() -> pf.Mechanism:
    bodies = [pf.body("arm", 1.2, com=(0.18, 0, 0), inertia=0.02), pf.body("hand", 0.7, com=(0.12, 0.01, 0), inertia=0.008)]
    joints = [
        pf.joint("shoulder", "revolute", "world", "arm"),
        pf.joint("elbow", "revolute", "arm", "hand", placement=(L1, 0, 0)),
    ]
    return pf.actuate_all(pf.mechanism("SCARA", bodies, joints, gravity=(0, 0, 0)))


def tool(k: pf.Kinematics) -> ca.SX:
    return k.position("hand", (L2, 0, 0))[:2]


# -- laws ------------------------------------------------------------------------------------------------------------------


def by_joints() -> list[control.Pair]:
    """Prototype by the joints: a pair about each joint, relative to the body before it. [konz25 (4.104)]"""
    inertia, damping, stiffness = (pf.forces.pseudo_matrix(0, moments=x) for x in (M, D, K))
    single = {"inertia": inertia, "damping": damping, "stiffness": stiffness}
    return [control.pair("arm", **single), control.pair("hand", seen_from="arm", **single)]


def by_tool() -> list[control.Pair]:
    """Prototype by the tool: a mass on a spring and a damper at the tool. [konz25 (4.108)]"""
    inertia, damping, stiffness = (pf.forces.pseudo_matrix(x, (L2, 0, 0)) for x in (M, D, K))
    return [control.pair("hand", inertia=inertia, damping=damping, stiffness=stiffness)]


def reference() -> control.Reference:
    """Reference joints that move the tool along its line, with the elbow on one side."""
    y = control.rest_to_rest(*LINE, 3.0, begin=1.0)

    def joints(t: ca.SX) -> ca.SX:
        p = y(t)
        c = (ca.sumsqr(p) - L1**2 - L2**2) / (2 * L1 * L2)
        elbow = ca.acos(c)
        return ca.vertcat(ca.atan2(p[1], p[0]) - ca.atan2(L2 * ca.sin(elbow), L1 + L2 * c), elbow)

    return control.function_of_time(joints, 2)


def laws() -> dict[str, control.Control]:
    errors = control.error_coordinates(lambda k, k_R: tool(k) - tool(k_R))
    found = {f"joints, {a}": control.prototype_tracking(by_joints(), reference(), approach=a) for a in control.APPROACHES}
    for a in control.APPROACHES:
        transport = errors if a == "energy" else None
        found[f"tool, {a}"] = control.prototype_tracking(by_tool(), reference(), approach=a, transport=transport)
    return found


# -- the thesis's own equations of the closed loops ------------------------------------------------------------------------

Loop = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""A closed loop: (q, v, q_R, v_R, a_R) -> v_dot."""


def of_joints(q: np.ndarray, v: np.ndarray, q_R: np.ndarray, v_R: np.ndarray, a_R: np.ndarray) -> np.ndarray:
    """Closed loop by the joints for the body and energy approaches. [konz25 (4.106)]"""
    return a_R - (D * (v - v_R) + K * np.sin(q - q_R)) / M


def of_points(q: np.ndarray, v: np.ndarray, q_R: np.ndarray, v_R: np.ndarray, a_R: np.ndarray) -> np.ndarray:
    """Closed loop by the joints for the particle approach. [konz25 (4.107)]"""
    c, s = np.cos(q - q_R), np.sin(q - q_R)
    return a_R * c + v_R**2 * s - (D * (v - v_R * c) + K * s) / M


def of_tool(q: np.ndarray, v: np.ndarray, q_R: np.ndarray, v_R: np.ndarray, a_R: np.ndarray) -> np.ndarray:
    """Closed loop by the tool for the energy approach: Mbar v_E_dot + Cbar v_E + Dbar v_E + grad Vbar = 0, v_E = v - Q v_R,
    Q = J_T(q)^-1 J_T(q_R). [konz25 (4.111a)]"""
    there, turning = jacobian(q_R), jacobian_rate(q_R, v_R)
    Q = np.linalg.solve(jacobian(q), there)
    v_E = v - Q @ v_R
    carried = Q @ a_R + np.linalg.solve(jacobian(q), turning @ v_R - jacobian_rate(q, v) @ Q @ v_R)
    weight, C = inertia(q), coriolis(q, v)
    return carried - np.linalg.solve(weight, (C + D / M * weight) @ v_E + pull(q, q_R))


def inertia(q: np.ndarray) -> np.ndarray:
    c = L1 * L2 * np.cos(q[1]) + L2**2
    return M * np.array([[L1**2 - L2**2 + 2 * c, c], [c, L2**2]])


def coriolis(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return M * L1 * L2 * np.sin(q[1]) * np.array([[-v[1], -v[0] - v[1]], [v[0], 0]])


def pull(q: np.ndarray, q_R: np.ndarray) -> np.ndarray:
    """Gradient of Vbar."""
    E = q - q_R
    hand, both = L1 * L2 * np.sin(E[0] + q[1]), L2**2 * np.sin(E.sum())
    shoulder = L1**2 * np.sin(E[0]) + L1 * L2 * np.sin(E[0] - q_R[1]) + hand + both
    return K * np.array([shoulder, hand - L1 * L2 * np.sin(q[1]) + both])


def place(q: np.ndarray) -> np.ndarray:
    """(..., 2) position r_T of the tool."""
    a, b = q[..., 0], q[..., 0] + q[..., 1]
    return np.stack([L1 * np.cos(a) + L2 * np.cos(b), L1 * np.sin(a) + L2 * np.sin(b)], axis=-1)


def jacobian(q: np.ndarray) -> np.ndarray:
    """(..., 2, 2) Jacobian J_T of the tool."""
    (x, y), b = place(q), q[0] + q[1]
    return np.array([[-y, -L2 * np.sin(b)], [x, L2 * np.cos(b)]])


def jacobian_rate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    (x, y), b, w = jacobian(q) @ v, q[0] + q[1], v[0] + v[1]
    return np.array([[-y, -L2 * np.cos(b) * w], [x, -L2 * np.sin(b) * w]])


def motion(times: np.ndarray | float) -> np.ndarray:
    """(..., 3, 2) q_R, v_R and a_R of the reference."""
    t = ca.SX.sym("t")
    f = ca.Function("reference", [t], [ca.horzcat(*reference().at(t, ca.SX(0, 1))).T])
    found = np.array([np.array(f(x)) for x in np.atleast_1d(times)])
    return found if np.ndim(times) else found[0]


def integrated(loop: Loop, start: tuple, times: np.ndarray) -> np.ndarray:
    """q of a closed loop at the given times by SciPy."""
    t = ca.SX.sym("t")
    f = ca.Function("reference", [t], [ca.horzcat(*reference().at(t, ca.SX(0, 1))).T])

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x[2:], loop(x[:2], x[2:], *np.array(f(t)))])

    found = solve_ivp(rate, (0, times[-1]), np.concatenate(start), "DOP853", times, rtol=1e-11, atol=1e-12)
    return found.y[:2].T


# -- what is computed ------------------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    m, (names, starts) = mechanism(), zip(*STARTS.items(), strict=True)
    q, v = (np.array(x) for x in zip(*starts, strict=True))
    results = {}
    for law, given in laws().items():
        both = pf.run(m, q, v, duration=DURATION, step=STEP, every=EVERY, control=given)
        results |= {f"{law}, {name}": both.isel(run=i) for i, name in enumerate(names)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        law, at = laws()["tool, energy"], np.array(OUTWARDS[0])
        v = np.linalg.solve(jacobian(at), OUTWARDS[1] * place(at) / np.linalg.norm(place(at)))
        results["outwards"] = pf.run(m, at, v, duration=0.1, step=STEP / 10, control=law)
        starts = [(0.6, elbow) for elbow in STRETCHED]
        results["stretched"] = pf.run(m, starts, duration=STEP, step=STEP, control=law)
    for name, arm in FILES.items():
        results |= of_file(name, arm)
    return results | {"potentials": potentials()}


def of_file(name: str, arm: File) -> dict[str, xr.Dataset]:
    """Runs of an arm from a file, controlled by its tool and by its joints, with positions of tool and reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.actuate_all(
            pf.formats.read_urdf(pf.formats.installed("example-robot-data", arm.file, "konz-scara")).with_(actuators=())
        )
    body, point = arm.tip
    goal = control.function_of_time(control.rest_to_rest(*arm.ends, 2.0, begin=0.5), 2)
    weights = {"inertia": M, "damping": D, "stiffness": K}
    turns = {n: pf.forces.pseudo_matrix(0, moments=x) for n, x in weights.items()}
    hinges = [control.pair(j.child, seen_from=j.parent, **turns) for j in m.joints if j.nv]
    at_tool = control.pair(body, **{n: pf.forces.pseudo_matrix(x, point) for n, x in weights.items()})
    laws = {"tool": ([at_tool], "particle"), "joints": (hinges, "energy")}

    def there(k: pf.Kinematics) -> ca.SX:
        return pf.Kinematics(m, goal.at(k.t, ca.SX(0, 1)).value, k.v, k.t).position(body, point)

    outputs = {"tool": lambda k: k.position(body, point), "goal": there, "goal_q": lambda k: goal.at(k.t, ca.SX(0, 1)).value}
    how = {"duration": 4.0, "step": STEP, "every": EVERY, "outputs": outputs}
    return {
        f"{name}, {space}": pf.run(m, *arm.start, control=control.prototype_tracking(pairs, goal, approach=a), **how)
        for space, (pairs, a) in laws.items()
    }


def vbar(pairs: list[control.Pair]) -> ca.Function:
    """Function theta -> Vbar / k, its gradient and Hessian, at theta_R = REST."""
    m, q, t = mechanism(), ca.SX.sym("q", 2), ca.SX.sym("t")
    k, k_R = (pf.Kinematics(m, x, ca.SX(2, 1), t) for x in (q, ca.SX(ca.DM(REST))))
    V = control.prototype_terms(k, control.ReferenceMotion(k_R, ca.SX(2, 1)), pairs, "body", None).potential / K
    H, g = ca.hessian(V, q)
    return ca.Function("V", [q], [V, g, H])


KINDS = ("minimum", "saddle", "maximum")
"""Kinds of critical points by the number of negative eigenvalues of the Hessian."""


def potentials() -> xr.Dataset:
    """Both potentials on a grid, and their critical points by Newton iterations from a grid of starts."""
    grid = np.linspace(-np.pi, np.pi, 81)
    data = {}
    for name, pairs in (("joints", by_joints()), ("tool", by_tool())):
        f = vbar(pairs)
        points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
        found: list[np.ndarray] = []
        for x in points[::37]:
            at = newton(f, x)
            if at is not None and all(np.abs(np.sin((at - y) / 2)).max() > 1e-6 for y in found):
                found.append(at)
        values = [f(x) for x in found]
        rows = [(*x, float(V), float((np.linalg.eigvalsh(H) < 0).sum())) for x, (V, _, H) in zip(found, values, strict=True)]
        data[f"V {name}"] = (("theta1", "theta2"), np.array(f.map(len(points))(points.T)[0]).reshape(81, 81))
        data[f"critical {name}"] = ((f"{name} point", "entry"), np.array(sorted(rows, key=lambda r: r[2])))
    return xr.Dataset(data, {"theta1": grid, "theta2": grid, "entry": ["theta1", "theta2", "V", "falling"]})


def newton(f: ca.Function, x: np.ndarray) -> np.ndarray | None:
    """Critical point by Newton iterations from x, with angles within half a turn, or None if they do not converge."""
    for _ in range(50):
        _, g, H = (np.array(y) for y in f(x))
        move = np.linalg.lstsq(H, -g.ravel(), rcond=None)[0]
        x = x + move * min(1.0, 0.5 / max(np.abs(move).max(), 1e-300))
        if np.abs(move).max() < 1e-13 and np.abs(g).max() < 1e-13:
            return (x + np.pi - 1e-9) % (2 * np.pi) - np.pi + 1e-9
    return None


def tool_error(r: xr.Dataset) -> np.ndarray:
    return place(r.q.values) - place(motion(r.time.values)[:, 0])


def designed(r: xr.Dataset) -> np.ndarray:
    """Solution e of m e'' + d e' + k e = 0 from the start of a run. [konz25 (4.111b)]"""
    q_R, v_R, _ = motion(0.0)
    e, rate = tool_error(r)[0], jacobian(r.q.values[0]) @ r.v.values[0] - jacobian(q_R) @ v_R
    decay, turn, t = D / (2 * M), np.sqrt(K / M - (D / (2 * M)) ** 2), r.time.values[:, None]
    return np.exp(-decay * t) * (e * np.cos(turn * t) + (rate + decay * e) / turn * np.sin(turn * t))


# -- figures and claims ----------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    motions = blank_figure(11, 6.4)
    axes = motions.subplots(2, 3)
    for row, law, title in zip(axes, ("joints", "tool"), ("by the joints", "by the tool"), strict=True):
        path, angle, off = row
        for i, a in enumerate(control.APPROACHES):
            same, other = (result[f"{law}, {a}, {elbow}"] for elbow in STARTS)
            for r, look in ((same, "-"), (other, "--")):
                path.plot(*place(r.q.values).T, look, color=f"C{i}")
                apart = tool_error(r) - (designed(r) if law == "tool" else 0)
                off.semilogy(r.time, np.maximum(1e3 * np.linalg.norm(apart, axis=1), 1e-12), look, color=f"C{i}")
                angle.plot(r.time, r.q[:, 1], look, color=f"C{i}", label=a if look == "-" else None)
        path.plot(*np.array(LINE).T, "k:", linewidth=2)
        angle.plot(r.time, motion(r.time.values)[:, 0, 1], "k:", label="reference")
        path.set(xlabel="x [m]", ylabel=f"tool {title}: y [m]", aspect="equal")
        alike = "body and energy coincide" if law == "joints" else "all three coincide"
        angle.set(xlabel="time [s]", ylabel="elbow [rad]", title=alike)
        off.set(xlabel="time [s]", ylabel="error of the tool [mm]" if law == "joints" else "tool minus (4.111b) [mm]")
        angle.legend(loc="best")
    axes[0, 0].set_title("full: elbow on the reference's side, dashed: other side")
    maps = blank_figure(9, 4.2)
    p = result["potentials"]
    for ax, name in zip(maps.subplots(1, 2), ("joints", "tool"), strict=True):
        V = p[f"V {name}"]
        levels = np.linspace(0, float(V.max()), 25)
        ax.contour(p.theta1, p.theta2, V.T, levels=levels, linewidths=0.7, colors="0.6")
        ax.contour(
            p.theta1, p.theta2, V.T, levels=sorted({round(x[2], 9) for x in saddles(p, name)}), linewidths=1.2, colors="C1"
        )
        for i, (kind, mark) in enumerate(zip(KINDS, "oX^", strict=True)):
            at = np.array([x[:2] for x in p[f"critical {name}"].values if x[3] == i])
            ax.plot(*at.T, mark, color=("C0", "C1", "C3")[i], linestyle="none", label=kind)
        ax.set(xlabel="theta1 [rad]", ylabel="theta2 [rad]", title=f"potential by the {name}", aspect="equal")
        ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3))
        ax.legend()
    return {"scara": motions, "scara potentials": maps, "scara files": drawn_files(result)}


def drawn_files(result: dict[str, xr.Dataset]) -> Any:
    """Errors of tools and joints for the arms from files, with the designed motions of the tools."""
    figure = blank_figure(9, 3.6)
    off, turned = figure.subplots(1, 2)
    for i, name in enumerate(FILES):
        r, expected = result[f"{name}, tool"], designed_of(result[f"{name}, tool"])
        e = r.tool.values - r.goal.values
        off.plot(r.time, 1e3 * np.linalg.norm(e, axis=1), color=f"C{i}", label=name)
        off.plot(r.time[::40], 1e3 * np.linalg.norm(expected, axis=1)[::40], "k.", label=None if i else "(4.111b)")
        r = result[f"{name}, joints"]
        turned.plot(r.time, r.q.values - r.goal_q.values, color=f"C{i}")
    off.set(xlabel="time [s]", ylabel="error of the tool [mm]", title="controlled by the tool")
    turned.set(xlabel="time [s]", ylabel="errors of both joints [rad]", title="controlled by the joints")
    figure.legend(*off.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def designed_of(r: xr.Dataset) -> np.ndarray:
    """(time, 3) solution e of m e'' + d e' + k e = 0 from the start of a run, with the initial rate by differences. [konz25
    (4.111b)]"""
    e, h = r.tool.values - r.goal.values, STEP * EVERY
    decay, turn, t = D / (2 * M), np.sqrt(K / M - (D / (2 * M)) ** 2), r.time.values[:, None]
    first = (-25 * e[0] + 48 * e[1] - 36 * e[2] + 16 * e[3] - 3 * e[4]) / (12 * h)
    return np.exp(-decay * t) * (e[0] * np.cos(turn * t) + (first + decay * e[0]) / turn * np.sin(turn * t))


def saddles(p: xr.Dataset, name: str) -> np.ndarray:
    rows = p[f"critical {name}"].values
    return rows[rows[:, 3] == 1]


GOLDEN = [
    (0.0, 1.5708, 0.0, 0),
    (1.2870, -1.5708, 0.0, 0),
    (0.6435, 0.0, 0.02, 1),
    (0.6435, np.pi, 0.08, 1),
    (-2.4981, np.pi, 0.18, 1),
    (-2.4981, 0.0, 0.72, 2),
]
"""Critical points by the tool: angles, V / k and number of descending directions. [konz25 fig. 4.12, numbers computed apart]"""


def of_files(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    """Claims that from a moving start the tool's error obeys m e'' + d e' + k e = 0, and each joint's error its single
    equation."""
    for name, arm in FILES.items():
        r = result[f"{name}, tool"]
        e, expected = r.tool.values - r.goal.values, designed_of(r)
        yield Claim(f"{name}: error of the tool at the start [m]", float(np.linalg.norm(e[0])), 0.02, 0, "setting", "at least")
        yield Claim(
            f"{name}: tool minus m e'' + d e' + k e = 0, relative",
            float(np.abs(e - expected).max() / np.abs(e).max()),
            0,
            1e-6,
            "[konz25 (4.111b)]",
        )
        r = result[f"{name}, joints"]
        E = r.q.values - r.goal_q.values

        def rate(t: float, x: np.ndarray) -> np.ndarray:
            return np.concatenate([x[2:], -(D * x[2:] + K * np.sin(x[:2])) / M])

        start = np.concatenate([E[0], arm.start[1]])
        single = solve_ivp(rate, (0, 4.0), start, "DOP853", r.time.values, rtol=1e-11, atol=1e-12).y[:2].T
        yield Claim(f"{name}: joints minus two single ones [rad]", float(np.abs(E - single).max()), 0, 1e-8, "[konz25 (4.106)]")


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from of_files(result)
    samples = slice(None, None, 20)
    loops = {"body": (of_joints, "(4.106)"), "energy": (of_joints, "(4.106)"), "particle": (of_points, "(4.107)")}
    for a, (loop, source) in loops.items():
        r = result[f"joints, {a}, same elbow"]
        off = np.abs(r.q.values[samples] - integrated(loop, STARTS["same elbow"], r.time.values[samples])).max()
        yield Claim(f"joints by {a} minus two single ones [rad]", float(off), 0, 1e-9, f"[konz25 {source}]")
    for elbow, start in STARTS.items():
        r = result[f"tool, energy, {elbow}"]
        off = np.abs(r.q.values[samples] - integrated(of_tool, start, r.time.values[samples])).max()
        yield Claim(
            f"joints under the law by the tool minus its closed loop, {elbow} [rad]", float(off), 0, 1e-8, "[konz25 (4.111a)]"
        )
        for a in ("particle", "energy"):
            r = result[f"tool, {a}, {elbow}"]
            off = np.abs(tool_error(r) - designed(r)).max()
            yield Claim(f"tool by {a} minus m e'' + d e' + k e = 0, {elbow} [m]", float(off), 0, 1e-9, "[konz25 (4.111b)]")
        r = result[f"tool, body, {elbow}"]
        off = np.abs(tool_error(r) - designed(r)).max()
        yield Claim(
            f"tool by body minus m e'' + d e' + k e = 0, {elbow} [m]", float(off), 1e-3, 0, "[konz25 4.7.6]", "at least"
        )
        for law in ("joints", "tool"):
            last = max(float(np.linalg.norm(tool_error(result[f"{law}, {a}, {elbow}"])[-1])) for a in control.APPROACHES)
            yield Claim(f"error of the tool at the end, by the {law}, {elbow} [m]", last, 0, 1e-3, "[konz25 4.7.6]", "at most")
    for law in ("joints", "tool"):
        names = [f"{law}, {a}, {elbow}" for a in ("body", "energy") for elbow in STARTS]
        rise = max(float(result[n].prototype_power.max()) for n in names if n != "tool, body")
        yield Claim(f"largest rate of the energy, by the {law} [W]", rise, 0, 1e-12, "[konz25 (4.32)]", "at most")
    at_end = result["tool, energy, other elbow"].q.values[-1, 1]
    yield Claim(
        "elbow at the end from the other side, by the tool [rad]", at_end, -motion(DURATION)[0, 1], 1e-3, "[konz25 4.7.6]"
    )
    at_end = result["joints, energy, other elbow"].q.values[-1, 1]
    yield Claim(
        "elbow at the end from the other side, by the joints [rad]", at_end, motion(DURATION)[0, 1], 1e-3, "[konz25 4.7.6]"
    )
    off = max(float(np.abs(result[f"tool, energy, {elbow}"].transport_error).max()) for elbow in STARTS)
    yield Claim("map of the tool's errors: error in (4.30)", off, 0, 1e-12, "[konz25 (A.8)]")
    yield from of_reach(result["outwards"], result["stretched"])
    yield from of_potentials(result["potentials"])


def of_reach(out: xr.Dataset, still: xr.Dataset) -> Iterator[Claim]:
    goal = place(motion(0.0)[0])
    leaves = float(out.time[np.linalg.norm(goal + designed(out), axis=1) < L1 + L2][-1])
    follows = np.linalg.norm(tool_error(out) - designed(out), axis=1) < 1e-4
    lasted = float(out.time[follows.argmin() - 1])
    yield Claim(
        "tool moving outwards: time until which it obeys its equation, the limit of the workspace [s]",
        lasted,
        leaves,
        2e-4,
        "[konz25 4.7.6]",
    )
    yield Claim("tool moving outwards: status of the run", float(out.status), 1, 0, "ours", "at least")
    yield Claim("stretched arm: runs that stopped", float((still.status != 0).sum()), 1, 0, "[konz25 4.7.6]")
    named = "no inertia" in pf.results.causes(still)[0] and "elbow, shoulder" in pf.results.causes(still)[0]
    yield Claim("stretched arm: the reason names the motion", float(named), 1, 0, "ours")
    size = np.abs(still.u.values[1:, 0]).max(axis=1) * np.sin(STRETCHED[1:])
    yield Claim(
        "effort times sin theta_2, ratio at a tenth of the elbow angle [1]", size[0] / size[1], 1, 0.05, "[konz25 (4.111)]"
    )


def of_potentials(p: xr.Dataset) -> Iterator[Claim]:
    for name, counts in (("joints", (1, 2, 1)), ("tool", (2, 3, 1))):
        kinds = p[f"critical {name}"].values[:, 3]
        for i, (kind, count) in enumerate(zip(KINDS, counts, strict=True)):
            yield Claim(f"{kind} of the potential by the {name}", float((kinds == i).sum()), count, 0, "[konz25 fig. 4.12]")
    for *theta, V, kind in GOLDEN:
        rows = p["critical tool"].values
        off = np.abs(np.sin((rows[:, :2] - theta) / 2)).max(axis=1) + np.abs(rows[:, 3] - kind)
        nearest = rows[off.argmin()]
        yield Claim(
            f"{KINDS[kind]} at ({theta[0]:.4f}, {theta[1]:.4f}), distance [rad]", 2 * off.min(), 0, 5e-5, "[konz25 fig. 4.12]"
        )
        yield Claim(
            f"{KINDS[kind]} at ({theta[0]:.4f}, {theta[1]:.4f}), V / k [m^2]", nearest[2], V, 1e-12, "[konz25 fig. 4.12]"
        )
