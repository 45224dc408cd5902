"""Products of exponentials: the graph of four bodies, and a rover with two hands on a moving base. [chhabra14 2.5, 3.3.1]

The thesis gives matrices and no numbers. Home poses and screw parameters of the rover are ours: its deck is 0.6 m above the
base's origin, the joints above it are in one column, the last one 0.3 m to the side; parameters up to an angle of 1 rad.
Positions, norms and Sigma_2 were also computed by a separate program from the thesis's equations ("computed apart").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.linalg import block_diag, expm

import pfaffian as pf
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

QUARTER = np.pi / 2
HOME = {
    "B1": pf.pose(),
    "B2": pf.pose((0.5, 0, 0.6)),
    "B3": pf.pose((0.5, 0, 0.9)),
    "B4": pf.pose((0.5, 0, 1.7), rpy=(QUARTER, 0, 0)),
    "B5": pf.pose((0.5, 0, 2.3), rpy=(QUARTER, 0, 0)),
    "B6": pf.pose((0.5, 0.3, 2.3), rpy=(0, QUARTER, 0)),
}
"""Frames of the bodies, each with its origin on the axis of the joint that carries it, z along that axis."""

CHAIN = (
    ("J1", "free", None, "B1"),
    ("J2", "planar", "B1", "B2"),
    ("J3", "spherical", "B2", "B3"),
    ("J4", "revolute", "B3", "B4"),
    ("J5", "revolute", "B4", "B5"),
    ("J6", "revolute", "B4", "B6"),
)
S = np.array([0.1, -0.2, 0.3, 0.2, -0.1, 0.3, 0.4, -0.3, 0.5, 0.2, -0.4, 0.6, 0.7, -0.5, 0.9])
"""Screw parameters: six of J1, three of J2 and of J3, one of each hinge [m, rad]."""

SPEEDS, DURATION = np.array([0.3, 0.5]), 10.0
"""Speeds of the rover forward [m/s] and about the vertical [rad/s], and their duration [s]: a turn by 5 rad."""
HANDS = ("B5", "B6")
REACH = 0.4
"""Position along x of the point on each hand whose curve is drawn [m]."""
XI = np.array([0.7, -0.4, 0.5, 0.6, 0.9, -0.3])
"""A twist with nonzero w . v [m, rad]."""


def mechanism() -> pf.Mechanism:
    """The rover on a free base; its wheels leave the forward speed and the turn of SE(2). [chhabra14 2.5, figs. 2.1-2.2]"""
    joints = []
    for name, kind, parent, child in CHAIN:
        at = HOME[child] if parent is None else HOME[parent].inverse() @ HOME[child]
        wheels = {"distribution": ["vx", "wz"], "speeds": ["forward", "round"]} if kind == "planar" else {}
        joints.append(pf.joint(name, kind, parent or "world", child, placement=at, **wheels))
    return pf.mechanism("rover with two hands", [pf.body(b, 1.0, inertia=0.1) for b in HOME], joints, gravity=(0, 0, 0))


def four_bodies() -> pf.Mechanism:
    """Four bodies with parents 0, 1, 1, 3; the kind of the joints does not matter. [chhabra14 (3.3.29)]"""
    parents = {"B1": "world", "B2": "B1", "B3": "B1", "B4": "B3"}
    joints = [pf.joint(f"J{b[1]}", "revolute", above, b) for b, above in parents.items()]
    return pf.mechanism("four bodies", [pf.body(b, 1.0, inertia=0.1) for b in parents], joints)


# -- runs -----------------------------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    m = mechanism()
    rates = pf.screws.screw_rates(m, S)
    poses = pf.screws.product_of_exponentials(m, [S, 0 * S])
    J = {b: pf.screws.screw_jacobian(m, b, S) for b in HANDS}
    rover = xr.Dataset(
        {
            "position": (("run", "body", "xyz"), np.stack([X.position for X in poses.values()], axis=1)),
            "rotation": (("run", "body", "xyz", "axis"), np.stack([X.rotation for X in poses.values()], axis=1)),
            "J": (("hand", "row", "s"), np.array(list(J.values()))),
            "Sigma": (("s", "speed"), rates.Sigma),
            "Z": (("q", "s"), rates.Z),
            "twists": (("row", "s"), np.hstack(list(pf.screws.home(m).twists.values()))),
        },
        coords={
            "body": list(poses),
            "hand": list(HANDS),
            "s": list(pf.screws.exponentials(m).s_names),
            "run": ["at s", "home"],
        },
    )
    return {"rover": rover, "way": way(m), "curves": curves(m), "closed forms": closed_forms()}


def printed_sigma(s: np.ndarray) -> np.ndarray:
    """(3, 2) printed Sigma_2, Z C_bar with C = (0 1 0), in its chart (R(a), R(a) (x, y)). [chhabra14 2.5.2]"""
    (x, y), to_twist = in_moving_axes(s), np.eye(3)
    to_twist[:2, 2] = -y, x
    return np.linalg.solve(to_twist, differential(s))[:, [0, 2]]


def in_moving_axes(s: np.ndarray) -> np.ndarray:
    """(x, y) of the printed chart at screw parameters of SE(2)."""
    R, p = (np.array(part) for part in se3.exp([s[0], s[1], 0, 0, 0, s[2]]))
    return (R.T @ p).ravel()[:2]


def differential(s: np.ndarray) -> np.ndarray:
    """(3, 3) matrix from s_dot to the body twist (v_x, v_y, w) of SE(2), taken from that of SE(3)."""
    return np.array(se3.dexp_right([s[0], s[1], 0, 0, 0, s[2]]))[np.ix_([0, 1, 5], [0, 1, 5])]


def way(m: pf.Mechanism) -> xr.Dataset:
    """Path of the rover at constant speeds, J1 at home, by s_dot = Sigma v_bar and by the printed Sigma_2."""
    E = pf.screws.exponentials(m)
    plane = E.s[6:9]
    other = ca.vertcat(np.zeros(6), plane, np.zeros(6))
    right = ca.Function("Sigma", [plane], [ca.substitute(E.Sigma[6:9, 6:8], E.s, other)])
    laws = {"corrected": lambda s: np.array(right(s)) @ SPEEDS, "printed": lambda s: printed_sigma(s) @ SPEEDS}
    times = np.linspace(0, DURATION, 401)
    found = {}
    for name, rate in laws.items():
        s = [np.zeros(3)]
        for h in np.diff(times):
            a = rate(s[-1])
            b = rate(s[-1] + h / 2 * a)
            c = rate(s[-1] + h / 2 * b)
            s.append(s[-1] + h / 6 * (a + 2 * b + 2 * c + rate(s[-1] + h * c)))
        found[name] = np.array(s)
    v, w = SPEEDS
    arc = v / w * np.stack([np.sin(w * times), 1 - np.cos(w * times)], axis=1)
    place = np.array([[expm(np.array(se3.hat([x, y, 0, 0, 0, a])))[:2, 3] for x, y, a in s] for s in found.values()])
    return xr.Dataset(
        {
            "s": (("law", "time", "entry"), np.array(list(found.values()))),
            "place": (("law", "time", "xy"), place),
            "arc": (("time", "xy"), arc),
        },
        coords={"law": list(found), "time": times},
    )


def curves(m: pf.Mechanism) -> xr.Dataset:
    """Points of the hands while J4 turns once and the hand three times, the other joints at home."""
    turn = np.linspace(-np.pi, np.pi, 241)
    X = pf.screws.product_of_exponentials(m, {"J4": turn, "J5": 3 * turn, "J6": 3 * turn})
    points = np.array([X[b].position + REACH * X[b].rotation[:, :, 0] for b in HANDS])
    return xr.Dataset({"point": (("hand", "turn", "xyz"), points)}, coords={"hand": list(HANDS), "turn": turn})


def closed_forms() -> xr.Dataset:
    """Upper right blocks of exp(ad) and of its integral at XI, by series and quadrature, by the corrected and by the printed
    [chhabra14 (2.4.22), (2.4.23)], and of `se3.dexp_left`, which is that integral."""
    v, w = (np.array(ca.DM(so3.hat(x))) for x in (XI[:3], XI[3:]))
    ad = np.array(ca.DM(se3.ad(XI)))
    n2, h, R = XI[3:] @ XI[3:], XI[3:] @ XI[:3] / (XI[3:] @ XI[3:]), expm(w)
    x, weight = np.polynomial.legendre.leggauss(30)

    def integral(f: Callable[[float], np.ndarray]) -> np.ndarray:
        return sum(a / 2 * f((t + 1) / 2) for a, t in zip(weight, x, strict=True))

    def bracket(X: np.ndarray) -> np.ndarray:
        C = w @ v - v @ w
        return (C @ X - X @ C) / n2

    M1 = integral(lambda t: expm(t * w))
    blocks = {
        "exp": [expm(ad)[:3, 3:], bracket(R) + h * w @ R, bracket(R) + h * w @ expm(h * w)],
        "integral": [
            integral(lambda t: expm(t * ad))[:3, 3:],
            bracket(M1) + h * (R - M1),
            bracket(M1) + integral(lambda t: t * h * w @ expm(t * h * w)),
        ],
    }
    made = np.array(se3.dexp_left(XI))
    found = {name: (("form", "row", "column"), np.array(three)) for name, three in blocks.items()}
    found["dexp_left"] = (("row", "column"), made[:3, 3:])
    return xr.Dataset(found, coords={"form": ["quadrature", "corrected", "printed"]})


# -- figures --------------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"graph": graph(), "rover": rover(result["rover"], result["curves"]), "way": path(result["way"])}


def graph() -> Any:
    """The graph of the four bodies, with GM and Ph as printed."""
    figure = blank_figure(8.5, 2.6)
    tree, first, second, third = figure.subplots(1, 4, width_ratios=(1, 1.25, 1.25, 1))
    m, places = four_bodies(), {"world": (0, 0), "B1": (0, 1), "B2": (-0.8, 2), "B3": (0.8, 2), "B4": (0.8, 3)}
    g = pf.calculus.graph_matrices(m)
    for j in m.joints:
        (x0, y0), (x1, y1) = places[j.parent], places[j.child]
        tree.plot([x0, x1], [y0, y1], color="#777777", zorder=1)
        tree.annotate(j.name, ((x0 + x1) / 2, (y0 + y1) / 2), xytext=(4, -3), textcoords="offset points", color="#777777")
    for name, (x, y) in places.items():
        end = name in g.extremities
        tree.plot(x, y, "o", color="#D55E00" if end else "#0072B2", markersize=7, zorder=2)
        tree.annotate(name, (x, y), xytext=(7, 3), textcoords="offset points")
    tree.set(xlim=(-1.4, 1.8), ylim=(-0.4, 3.5), title="extremities in red")
    tree.axis("off")
    printed(first, g.GM, g.joints, g.bodies, "GM")
    printed(second, g.GM.T @ g.GM, g.bodies, g.bodies, "GM^T GM")
    printed(third, g.Ph, g.joints, g.joints, "Ph")
    return figure


def printed(ax: Any, M: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str) -> None:
    """Draw a matrix of whole numbers, nonzero entries on a dark ground."""
    ax.imshow(np.abs(M) > 0, cmap="Blues", vmin=0, vmax=4, aspect="equal")
    for i, k in np.ndindex(M.shape):
        ax.text(k, i, f"{M[i, k]:d}", ha="center", va="center")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_title(title)


def rover(r: xr.Dataset, c: xr.Dataset) -> Any:
    """Bodies from the side and from above, with curves of points on the hands, and the Jacobians of both branches."""
    figure = blank_figure(9.5, 3.4)
    side, above, blocks = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    sticks = [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B4", "B5"), ("B4", "B6")]
    for ax, (a, b) in ((side, (0, 2)), (above, (0, 1))):
        for run, colour in (("home", "#999999"), ("at s", "#0072B2")):
            p = r["position"].sel(run=run)
            for k, (one, other) in enumerate(sticks):
                ends = np.array([p.sel(body=one), p.sel(body=other)])
                label = run if k == 0 else None
                ax.plot(ends[:, a], ends[:, b], "o-", color=colour, markersize=3.5, label=label)
        for hand, colour in zip(HANDS, ("#D55E00", "#009E73"), strict=True):
            curve = c["point"].sel(hand=hand).values
            ax.plot(curve[:, a], curve[:, b], color=colour, linewidth=0.8, label=f"point of {hand}")
        ax.set(xlabel="x [m]", ylabel=f"{'xyz'[b]} [m]", aspect="equal")
    J = np.abs(modified(r))
    logarithms = np.where(J > 1e-12, np.log10(np.maximum(J, 1e-3)), np.nan)
    image = blocks.imshow(logarithms, cmap="viridis", aspect="auto", vmin=-3, vmax=0.5)
    figure.colorbar(image, ax=blocks, label="log10 of |entry|")
    blocks.set(xlabel="speeds of both branches", ylabel="twists of B5, B6", title="modified Jacobian, 12 x 26")
    blocks.grid(False)
    return figure


def path(w: xr.Dataset) -> Any:
    figure = blank_figure(5.5, 3.4)
    ax = figure.subplots()
    ax.plot(*w["arc"].values.T, color="#BBBBBB", linewidth=4, label="the arc of v and w")
    ax.plot(*w["place"].sel(law="corrected").values.T, color="#0072B2", label="by Sigma = Z^-1 C_bar")
    ax.plot(*w["place"].sel(law="printed").values.T, "--", color="#D55E00", label="as printed, Z C_bar")
    ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title=f"{SPEEDS[0]} m/s forward, {SPEEDS[1]} rad/s round")
    return figure


def modified(r: xr.Dataset) -> np.ndarray:
    """(12, 26) J Sigma of both branches, one hand below the other, without the hinge that is not on the branch. [(2.3.13)]"""
    names = list(r["s"].values)
    left_out = {"B5": names.index("J6"), "B6": names.index("J5")}
    found = []
    for hand in HANDS:
        Jm = r["J"].sel(hand=hand).values @ r["Sigma"].values
        found.append(np.delete(Jm, left_out[hand] - 1, axis=1))  # the joints before it have one speed fewer than parameters
    return block_diag(*found)


# -- claims ---------------------------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _graph()
    yield from _rover(result["rover"])
    yield from _wheels(result["rover"], result["way"])
    yield from _closed(result["closed forms"])
    yield from _on_circles(result["curves"])


def _graph() -> Iterator[Claim]:
    source, g = "[chhabra14 (3.3.29)]", pf.calculus.graph_matrices(four_bodies())
    GM = [[-1, 1, 0, 0, 0], [0, -1, 1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, -1, 1]]
    Ph = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    yield Claim("four bodies: entries of GM that differ", np.sum(g.GM != GM), 0, 0, source)
    yield Claim("four bodies: entries of Ph that differ", np.sum(g.Ph != Ph), 0, 0, source)
    yield Claim("four bodies: Ph minus the inverse of GM's last columns", np.abs(np.linalg.inv(g.GM[:, 1:]) - Ph).max(), 0,
                   1e-15, "[chhabra14 cor. 3.3.2]")  # fmt: skip
    degrees = np.diag(g.GM.T @ g.GM)
    yield Claim("four bodies: numbers of neighbours that differ", np.sum(degrees != [1, 3, 1, 2, 1]), 0, 0, source)
    ends = g.extremities == ("B2", "B4")
    yield Claim("four bodies: extremities are B2 and B4", ends, 1, 0, source)


def _rover(r: xr.Dataset) -> Iterator[Claim]:
    here, source = r.sel(run="at s"), "[chhabra14 2.5.1], computed apart"
    expected = {
        "B5": ((0.9010308656, -1.374929737, 2.0124262923), 5.440968159202, 5.397589819754),
        "B6": ((0.6038435511, -1.3348624454, 2.0210467464), 5.208554034454, 5.163223458527),
    }
    Sigma = r["Sigma"].values
    for hand, (p, size, slower) in expected.items():
        for axis, x, value in zip("xyz", here["position"].sel(body=hand).values, p, strict=True):
            yield Claim(f"rover: {axis} of {hand} [m]", x, value, 6e-11, source)
        J = r["J"].sel(hand=hand).values
        yield Claim(f"rover: norm of J of {hand}", np.linalg.norm(J), size, 6e-13, source)
        yield Claim(f"rover: norm of J Sigma of {hand}", np.linalg.norm(J @ Sigma), slower, 6e-13, source)
    row = here["rotation"].sel(body="B5").values[0]
    for k, (x, value) in enumerate(zip(row, (0.1091506621, -0.0821551414, 0.9906243817), strict=True)):
        yield Claim(f"rover: entry {k + 1} of the first row of R of B5", x, value, 6e-11, source)
    yield Claim("rover: columns of the Jacobian of both branches", modified(r).shape[1], 26, 0, "[chhabra14 2.5.2]")
    z = np.array(ca.DM(HOME["B4"].R))[:, 2]
    hinge = np.r_[np.cross([0.5, 0, 1.7], z), z]
    off = np.abs(r["twists"].values[:, list(r["s"].values).index("J4")] - hinge).max()
    yield Claim("rover: twist of J4 minus (p x z; z)", off, 0, 1e-15, "[chhabra14 2.5.1]")


def _wheels(r: xr.Dataset, w: xr.Dataset) -> Iterator[Claim]:
    s, Sigma = S[6:9], r["Sigma"].values[6:9, 6:8]
    expected = [[0.9790793412, -0.1332634729], [0.25, -0.2125523953], [0, 1]]
    yield Claim(
        "Sigma_2: largest error of an entry", np.abs(Sigma - expected).max(), 0, 6e-11, "[chhabra14 (2.1.5)], computed apart"
    )
    D = differential(s)
    yield Claim("Sigma_2: lateral slip, for both speeds", np.abs(D @ Sigma)[1].max(), 0, 1e-15, "[chhabra14 (2.1.5)]")
    for k, slip in enumerate((-0.4695, 0.0884)):
        found = (D @ printed_sigma(s))[1, k]
        yield Claim(f"Sigma_2 as printed: lateral slip for speed {k + 1}", found, slip, 6e-5, "studies/errata.md, 2.5.2")
    a = s[2]
    print_11 = np.sin(a) / a
    yield Claim("Sigma_2 as printed, Z C_bar: its first entry", printed_sigma(s)[0, 0], print_11, 1e-15, "[chhabra14 2.5.2]")
    at_rest = np.abs(printed_sigma(np.array([0.4, -0.3, 0.0])) - [[1, -0.15], [0, -0.2], [0, 1]]).max()
    yield Claim("Sigma_2 as printed at s_3 = 0: error", at_rest, 0, 1e-15, "[chhabra14 2.5.2]")
    x, y = in_moving_axes(s)
    twist = np.array([[1, 0, -y], [0, 1, x], [0, 0, 1]])  # of the printed chart's rates
    across = {"0 1 0": [[1, 0], [0, 0], [0, 1]], "0 1 x": [[1, 0], [0, -x], [0, 1]]}
    for C, C_bar in across.items():
        expected = abs(x) if C == "0 1 0" else 0.0
        slip = np.abs(twist @ C_bar)[1].max()
        yield Claim(f"C_2 = ({C}): slip that its speeds leave", slip, expected, 1e-15, "studies/errata.md, 2.5.2")
    off, source = np.abs(w["place"] - w["arc"]).max(("time", "xy")), "studies/errata.md, 2.5.2"
    yield Claim("path by Sigma: distance from the arc [m]", float(off.sel(law="corrected")), 0, 1e-12, "closed form")
    yield Claim(
        "path by the printed Sigma_2: distance from the arc [m]", float(off.sel(law="printed")), 0.5, 0, source, "at least"
    )


def _closed(f: xr.Dataset) -> Iterator[Claim]:
    for name, number, least in (("exp", "(2.4.22)", 0.02), ("integral", "(2.4.23)", 0.01)):
        off = np.abs(f[name] - f[name].sel(form="quadrature")).max(("row", "column"))
        right, wrong = (float(off.sel(form=form)) for form in ("corrected", "printed"))
        yield Claim(f"{number} corrected, minus the {name} of ad", right, 0, 2e-15, f"[chhabra14 {number}]")
        yield Claim(f"{number} as printed, minus the {name} of ad", wrong, least, 0, f"studies/errata.md, {number}", "at least")
    off = np.abs(f["dexp_left"] - f["integral"].sel(form="quadrature")).max()
    yield Claim("dexp_left of the library minus the integral", float(off), 0, 2e-15, "[chhabra14 (2.1.4)]")


def _on_circles(c: xr.Dataset) -> Iterator[Claim]:
    """J4 and J5 turn about parallel axes, so the point of B5 stays in a plane and on two circles, one moving with the other."""
    point, t = c["point"].sel(hand="B5").values, c["turn"].values
    along, up = point[:, 0] - 0.5, point[:, 2] - 1.7
    circles = np.exp(1j * t) * (0.6j + REACH * np.exp(3j * t))  # z of both frames is -y of the world: x to z
    yield Claim("point of B5: distance from its plane [m]", np.ptp(point[:, 1]), 0, 1e-15, "closed form")
    yield Claim(
        "point of B5: distance from its two circles [m]", np.abs(along + 1j * up - circles).max(), 0, 1e-14, "closed form"
    )
