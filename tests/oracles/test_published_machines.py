"""A heavy top that spins fast, and Jansen's leg: machines with published answers."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import close

X, Y, Z = np.eye(3)

# -- the heavy top of the Lie-group literature [Bruls, Cardona and Arnold 2012] -----------------------------------------

INERTIA = np.array([0.234375, 0.46875, 0.234375])
SPIN = [0, 150, -4.61538]

TOP = np.array([  # t, displacement of the mass centre, quaternion w, x, y, z; in absolute coordinates by DOP853 at 1e-12
    [1, 0.17334396410, -0.35991140793, -0.74849079113, 0.73294398068, -0.27828571934, 0.53182461133, -0.32017614274],
    [2, -0.15041682274, -1.72416559163, -0.67302226957, 0.1229471350, -0.4910798926, 0.3504300303, -0.7879868875],
])  # fmt: skip
TOP_PUBLISHED = (-0.1504168894608856, -1.7241654846852867, -0.6730223697288009,
                 0.1229471344, -0.4910798717, 0.3504301069, -0.7879868666)  # fmt: skip
"""At t = 2 s, by Kynema with steps of 2e-6 s, correct to 1e-7."""


def heavy_top(closed: bool) -> pf.Mechanism:
    """The top on a spherical joint, or as a free body with a closure."""
    body = pf.body("top", 15.0, com=Y, inertia=INERTIA)
    if not closed:
        return pf.mechanism("top", [body], [pf.joint("ball", "spherical", "world", "top")])
    ball = pf.coincide("ball", "world", (0, 0, 0), "top", (0, 0, 0))
    return pf.mechanism("top", [body], [pf.joint("free", "free", "world", "top")], constraints=[ball])


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(("step", "bar"), [(1e-3, 1.5e-4), (2.5e-4, 1.2e-6)])
def test_heavy_top(closed, step, bar):
    """At 1 ms the top turns by 0.15 rad a step: the error is that of the step, of fourth order."""
    m = heavy_top(closed)
    outputs = {"at": lambda k: k.position("top", Y) - Y}
    r = pf.run(m, None, [0, 0, 0, *SPIN] if closed else SPIN, duration=2.0, step=step, every=round(1 / step), outputs=outputs)
    turn = r.q.values[1:, -4:][:, [3, 0, 1, 2]]
    turn *= np.sign(np.sum(turn * TOP[:, 4:], axis=1, keepdims=True))
    moved, what = r["at"].values[1:], f"heavy top at {step} s, closed: {closed}"
    close(moved, TOP[:, 1:4], bar, what, 1.0)
    close(turn, TOP[:, 4:], 4 * bar, f"{what}, quaternion", 1.0)
    close(np.hstack([moved[-1], turn[-1]]), TOP_PUBLISHED, 4 * bar + 1e-7, f"{what}, published", 1.0)


@pytest.mark.parametrize("closed", [False, True])
def test_heavy_top_at_its_start(closed):
    """Force of the joint, 15 kg times the difference of the mass centre's acceleration and g, and angular acceleration."""
    m = heavy_top(closed)
    outputs = {
        "push": pf.of_motion(lambda T, motion: 15 * T.kinematics.specific_force("top", motion.v_dot, Y)),
        "w_dot": pf.of_motion(lambda T, motion: motion.v_dot[-3:]),
    }
    r = pf.run(m, None, [0, 0, 0, *SPIN] if closed else SPIN, duration=1e-3, outputs=outputs)
    close(r.push.values[0], (0, -319.525988166, -317.262461538), 1e-11, "heavy top, force of the joint")
    close(r.w_dot.values[0], (661.3461692308, 0, 0), 1e-11, "heavy top, angular acceleration")


# -- Jansen's leg -------------------------------------------------------------------------------------------------------

a, b, c, d, e, f, g, h, i, j, k, l, m_ = 38, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49, 50, 61.9, 7.8, 15
PIVOT = np.array([-a, -l, 0.0])

LEG = {  # crank [deg] -> J1, J2, E, F, foot
    0: [[-24.013535097, 31.272097455], [-26.952107032, -45.51517017], [-74.794365381, 8.143170206],
        [-59.231514961, -28.052930231], [-43.160110524, -91.756932926]],
    60: [[-38.009468553, 33.69999892], [-19.733495562, -42.596908133], [-78.01557323, -5.199250283],
         [-56.140504949, -37.96876947], [-18.150294681, -91.571324668]],
    120: [[-54.400045231, 30.322021411], [-27.367918274, -45.634492704], [-75.789253517, -21.215748903],
          [-61.892020326, -58.083443564], [-3.668421916, -88.52194859]],
    180: [[-54.933934985, 30.087885213], [-65.315068923, -36.055565995], [-75.597071179, -21.745258649],
          [-96.760126298, -54.979053167], [-33.729729538, -73.51709741]],
    240: [[-28.195942872, 32.525307982], [-64.708283316, -36.629804063], [-76.265757503, 4.189236954],
          [-100.15976983, -27.138644799], [-69.737980866, -85.370979086]],
    300: [[-19.275818443, 29.235861337], [-44.508358820, -46.557338214], [-72.533044544, 12.583297931],
          [-75.380962495, -26.713640415], [-64.15292573, -91.447103094]],
}  # fmt: skip
POINTS = ("J1", "J2", "E", "F", "foot")


def third(p: np.ndarray, q: np.ndarray, to_p: float, to_q: float, side: int) -> np.ndarray:
    """The point at these distances from p and q, to the left (1) or right (-1) of the line from p to q."""
    way, long = q - p, np.linalg.norm(q - p)
    along = (long**2 + to_p**2 - to_q**2) / (2 * long)
    across = side * np.sqrt(to_p**2 - along**2)
    return p + (along * way + across * np.array([-way[1], way[0], 0])) / long


def by_circles(crank: float) -> dict[str, np.ndarray]:
    """Positions of the leg's joints, from intersections of circles."""
    C = m_ * np.array([np.cos(crank), np.sin(crank), 0])
    J1, J2 = third(PIVOT, C, b, j, 1), third(PIVOT, C, c, k, -1)
    E = third(PIVOT, J1, d, e, 1)
    F = third(E, J2, f, g, -1)
    return {"C": C, "J1": J1, "J2": J2, "E": E, "F": F, "foot": third(F, J2, h, i, -1)}


@pytest.fixture(scope="module")
def leg() -> pf.Mechanism:
    """Seven bodies, seven revolutes and three closures of five rows, along x from their first point at the crank's zero."""

    def bar(name: str, long: float) -> pf.Body:
        return pf.body(name, long / 100, com=(long / 2, 0, 0), inertia=(0, long**3 / 1200, long**3 / 1200))

    bodies = [bar(n, x) for n, x in (("crank", m_), ("j", j), ("k", k), ("bde", b), ("c", c), ("f", f), ("ghi", g))]
    joints = [
        pf.joint("crank", "revolute", "world", "crank"),
        pf.joint("j", "revolute", "crank", "j", placement=(m_, 0, 0)),
        pf.joint("k", "revolute", "crank", "k", placement=(m_, 0, 0)),
        pf.joint("bde", "revolute", "world", "bde", placement=PIVOT),
        pf.joint("c", "revolute", "world", "c", placement=PIVOT),
        pf.joint("f", "revolute", "bde", "f", placement=third(0 * X, b * X, d, e, 1)),
        pf.joint("ghi", "revolute", "c", "ghi", placement=c * X),
    ]
    ends = [("J1", "j", j, "bde", b), ("J2", "k", k, "c", c), ("F", "f", f, "ghi", g)]
    cuts = [pf.closure(n, "revolute", p, q, placement_a=x * X, placement_b=y * X) for n, p, x, q, y in ends]
    return pf.mechanism("Jansen's leg", bodies, joints, constraints=cuts, gravity=(0, -9.81, 0))


def pose_of(at: dict[str, np.ndarray], crank: float) -> list[float]:
    """Coordinates of the leg from the positions of its joints."""

    def angle(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.arctan2(*(q - p)[1::-1]))

    bde, rod_c = angle(PIVOT, at["J1"]), angle(PIVOT, at["J2"])
    return [crank, angle(at["C"], at["J1"]) - crank, angle(at["C"], at["J2"]) - crank, bde, rod_c,
            angle(at["E"], at["F"]) - bde, angle(at["J2"], at["F"]) - rod_c]  # fmt: skip


def test_jansens_leg_goes_round(leg):
    """Each degree of the crank is assembled from the one before: one degree of freedom, and the foot as by circles."""
    turned = np.radians(np.arange(361))
    q, places = np.array(pose_of(by_circles(0.0), 0.0)) + 0.02, []  # a guess near the configuration
    for crank in turned:
        q = pf.assemble(leg, [crank, *q[1:]], hold=["crank"]).q
        places.append(q)
    found = pf.forward_kinematics(leg, np.array(places))
    foot = found["ghi"].position + found["ghi"].rotation @ third(g * X, 0 * X, h, i, -1)
    close(foot, [by_circles(crank)["foot"] for crank in turned], 1e-9, "foot of Jansen's leg", 1.0)
    tip = found["crank"].position + found["crank"].rotation @ (m_ * X)
    close(tip, [by_circles(crank)["C"] for crank in turned], 1e-12, "crank of Jansen's leg", 1.0)
    rank = pf.forward_dynamics(leg, np.array(places)).rank
    assert (leg.nv - rank == 1).all()


def test_circles_of_jansens_leg():
    for degrees, places in LEG.items():
        found = by_circles(np.radians(degrees))
        close([found[n][:2] for n in POINTS], places, 1e-9, f"circles at {degrees} deg")
