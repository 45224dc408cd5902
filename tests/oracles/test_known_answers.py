"""Published benchmark problems, with the answers in tests/data."""

from __future__ import annotations

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.tolerance import ADAMS, ADAMS_LOOSE, ANDREWS, INTEGRATED, PAST_SINGULAR, close

DATA = Path(__file__).parents[1] / "data"
CONSTRAINED = [n for n in pf.FORMULATIONS if n != "articulated"]
Y = (0, 1, 0)


def table(name: str) -> np.ndarray:
    return np.loadtxt(DATA / name, delimiter=",", skiprows=2)


@pytest.mark.parametrize("polar", [True, False])
def test_simple_pendulum(polar):
    """A01 by an angle, and by x and z with the rod as a constraint."""
    exact = table("A01_exact.csv")
    exact = exact[exact[:, 0] <= 10]
    if polar:
        bodies = [pf.body("bob", 1.0, com=(1, 0, 0))]
        joints = [pf.joint("pivot", "revolute", "world", "bob", axis=(0, -1, 0))]
        m, q, at = pf.mechanism("A01", bodies, joints), [0.0], (1, 0, 0)
    else:
        joints = [
            pf.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0)),
            pf.joint("z", "prismatic", "slide", "bob", axis=(0, 0, 1)),
        ]
        rod = pf.holonomic("rod", lambda k: (ca.sumsqr(k.position("bob")) - 1) / 2)
        m = pf.mechanism("A01", [pf.body("slide"), pf.body("bob", 1.0)], joints, constraints=[rod])
        q, at = [1.0, 0.0], (0, 0, 0)
    r = pf.run(m, q, duration=10.0, step=5e-4, every=1000, outputs={"bob": lambda k: k.position("bob", at)})
    close(r.bob.values[:, [0, 2]], exact[:, 1:3], INTEGRATED, "A01 pendulum over 10 s")


def n_four_bar(n: int, spatial: bool) -> pf.Mechanism:
    """n + 1 vertical links, connected by n horizontal ones on top; spatial: revolute closures, five rows of rank two."""
    bodies, joints, closures = [], [], []
    for i in range(n + 1):
        bodies.append(pf.body(f"v{i}", 1.0, com=(0, 0, 0.5), inertia=(1 / 12, 1 / 12, 0)))
        joints.append(pf.joint(f"pin{i}", "revolute", "world", f"v{i}", axis=Y, placement=pf.pose((i, 0, 0))))
        if i == n:
            break
        bodies.append(pf.body(f"h{i}", 1.0, com=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12)))
        joints.append(pf.joint(f"top{i}", "revolute", f"v{i}", f"h{i}", axis=Y, placement=pf.pose((0, 0, 1))))
        ends = {"placement_a": pf.pose((1, 0, 0)), "placement_b": pf.pose((0, 0, 1))}
        if spatial:
            closures.append(pf.closure(f"c{i}", "revolute", f"h{i}", f"v{i + 1}", axis=Y, **ends))
        else:
            closures.append(pf.holonomic(f"c{i}", lambda k, i=i: meet(k, f"h{i}", f"v{i + 1}")))
    return pf.mechanism("n four-bar", bodies, joints, constraints=closures)


def meet(k: pf.Kinematics, a: str, b: str) -> ca.SX:
    return (k.position(a, (1, 0, 0)) - k.position(b, (0, 0, 1)))[[0, 2]]


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("formulation", CONSTRAINED)
def test_n_four_bar_passes_its_singular_configurations(formulation, spatial):
    """A02: twice a turn all links are horizontal and the loops could fold; the motion stays on its branch."""
    exact = table("A02_N2_exact.csv")
    m = n_four_bar(2, spatial)
    v = {f"pin{i}": 1.0 for i in range(3)} | {f"top{i}": -1.0 for i in range(2)}
    tip = {"tip": lambda k: k.position("v0", (0, 0, 1)), "angle": lambda k: k.joint("pin0")}
    scheme = pf.Scheme(formulation=formulation)
    r = pf.run(m, None, v, duration=20.0, step=1e-3, every=50, outputs=tip, scheme=scheme)
    assert r.status == 0
    assert r.angle.max() - r.angle.min() > 4 * np.pi  # several passages
    assert r.phi.shape[1] == (10 if spatial else 4)
    close(r.tip.values[:201, [0, 2]], exact[:201, 1:3], INTEGRATED, f"A02 over 10 s by {formulation}")
    close(r.tip.values[:, [0, 2]], exact[:401, 1:3], PAST_SINGULAR, f"A02 over 20 s by {formulation}")


def andrews(p: dict[str, float]) -> pf.Mechanism:
    """Andrews' squeezing mechanism: seven bodies in the x-y plane, three of them closed onto one point."""

    def bar(name, mass, com, about_com):
        return pf.body(name, p[mass], com=com, inertia=(p[about_com] / 2, p[about_com] / 2, p[about_com]))

    bodies = [
        bar("K1", "m1", (p["ra"], 0, 0), "i1"),
        bar("K2", "m2", (-p["da"], 0, 0), "i2"),
        bar("K3", "m3", (p["sa"], -p["sb"], 0), "i3"),
        bar("K5", "m5", (p["ta"], -p["tb"], 0), "i5"),
        bar("K4", "m4", (0, p["ea"] - p["e"], 0), "i4"),
        bar("K7", "m7", (p["ua"], -p["ub"], 0), "i7"),
        bar("K6", "m6", (p["zf"] - p["fa"], 0, 0), "i6"),
    ]
    A, B = pf.pose((p["xa"], p["ya"], 0)), pf.pose((p["xb"], p["yb"], 0))
    joints = [
        pf.joint("beta", "revolute", "world", "K1"),
        pf.joint("Theta", "revolute", "K1", "K2", placement=pf.pose((p["rr"], 0, 0))),
        pf.joint("gamma", "revolute", "world", "K3", placement=B),
        pf.joint("delta", "revolute", "world", "K5", placement=A),
        pf.joint("Phi", "revolute", "K5", "K4", placement=pf.pose((p["zt"], 0, 0))),
        pf.joint("epsilon", "revolute", "world", "K7", placement=A),
        pf.joint("Omega", "revolute", "K7", "K6", placement=pf.pose((0, -p["u"], 0))),
    ]
    ends = {"K3": (0, -p["ss"], 0), "K4": (0, -p["e"], 0), "K6": (p["zf"], 0, 0)}
    # Points of a planar mechanism: the third row of each is always zero.
    closures = [pf.coincide(f"E {n}", "K2", (-p["d"], 0, 0), n, x) for n, x in ends.items()]
    spring = pf.spring("spring", "world", "K3", point_a=(p["xc"], p["yc"], 0), point_b=(p["sd"], -p["sc"], 0),
                       stiffness=p["c0"], rest=p["l0"])  # fmt: skip
    return pf.mechanism("Andrews", bodies, joints, constraints=closures, forces=[spring],
                        actuators=[pf.actuator("motor", "beta")], gravity=(0, 0, 0))  # fmt: skip


def andrews_data() -> tuple[pf.Mechanism, dict, dict[str, float]]:
    data = json.loads((DATA / "andrews.json").read_text())
    p = {name: float(x) for name, x in data["parameters"].items()}
    return andrews(p), data, p


def by_name(data: dict, values: list[str]) -> dict[str, float]:
    return {n: float(x) for n, x in zip(data["unknowns"], values, strict=True)}


@pytest.mark.parametrize("adaptive", [True, False])
def test_andrews_mechanism_of_the_ivp_test_set(adaptive):
    m, data, p = andrews_data()
    q, end = by_name(data, data["q0"]), data["corrected_reference_t003"]
    if adaptive:
        r = run_adaptive(m, q, times=[0, 0.03], u=[p["mom"]], tolerance=1e-12)
    else:
        r = pf.run(m, q, duration=0.03, step=2e-6, every=15000, u=[p["mom"]])
    for name, values in (("q", end["q"]), ("v", end["v"])):
        expected = by_name(data, values)
        found = {n: float(r[name].values[-1][m.v_names.index(n)]) for n in expected}
        for n in expected:
            close(found[n], expected[n], ANDREWS, f"Andrews: {name} of {n}", max(abs(expected[n]), 1.0))


def test_acceleration_of_andrews_mechanism():
    m, data, p = andrews_data()
    for q, v, a in (
        (data["q0"], data["v0"], data["a0"]),
        *[(d["q"], d["v"], d["a"]) for d in (data["corrected_reference_t003"],)],
    ):
        expected = by_name(data, a)
        scale = max(abs(x) for x in expected.values())
        for formulation in CONSTRAINED:
            found = pf.forward_dynamics(m, by_name(data, q), by_name(data, v), [p["mom"]], formulation=formulation)
            v_dot = dict(zip(m.v_names, found.v_dot, strict=True))
            assert found.rank == 6
            close([v_dot[n] for n in expected], list(expected.values()), ANDREWS, f"Andrews: {formulation}", scale)


def test_andrews_mechanism_of_iftomm():
    m, data, p = andrews_data()
    exact = table("A03_exact.csv")
    q = by_name(data, data["q0"])
    start = pf.assemble(
        m.with_(constraints=[*m.constraints, pf.holonomic("crank", lambda k: k.joint("beta") + 0.0620)]),
        [q[n] for n in m.q_names],
    )
    r = run_adaptive(m, start.q, times=exact[:, 0], u=[p["mom"]], tolerance=1e-11)
    close(r.q.values[:, 0], exact[:, 1], ANDREWS, "A03: crank angle")
    close(r.v.values[:, 0], exact[:, 2], ANDREWS, "A03: crank rate")


ROUND = (0, 0, 1)
# Kind, position of the joint, its turn about x in units of pi, and accuracy of the table.
PENDULUMS = {
    "Revolute_Case01": ("revolute", (0, 0, 0), -0.5, ADAMS),
    "Revolute_Case02": ("revolute", (1, 2, 3), -0.25, ADAMS),
    "Spherical_Case01": ("spherical", (0, 0, 0), 0.0, ADAMS_LOOSE),
    "Cylindrical_Case02": ("cylindrical", (0, 0, 0), -0.5, ADAMS),
    "Cylindrical_Case03": ("cylindrical", (1, 2, 3), -0.25, ADAMS),
    "Prismatic_Case02": ("prismatic", (1, 2, 3), -0.25, ADAMS_LOOSE),
}


@pytest.mark.parametrize("name", PENDULUMS)
def test_pendulums_of_adams(name):
    """A free body with a single closure: position, spin and reaction on the ground by ADAMS, to 7 digits."""
    data = json.loads((DATA / "chrono_adams_joints.json").read_text())["cases"][name]
    kind, origin, turn, tolerance = PENDULUMS[name]
    place = pf.pose(origin, rpy=(turn * np.pi, 0, 0))
    m = pf.mechanism(
        name,
        [pf.body("rod", 1.0, com=(2, 0, 0), inertia=(0.04, 0.1, 0.1))],
        [pf.joint("flight", "free", "world", "rod")],
        constraints=[pf.closure("joint", kind, "world", "rod", placement_a=place, axis=ROUND)],
        gravity=(0, 0, -9.80665),
    )
    half = turn * np.pi / 2
    q = [*origin, np.sin(half), 0, 0, np.cos(half)]
    outputs = {"com": lambda k: k.position("rod", (2, 0, 0)), "spin": lambda k: k.twist("rod", "WORLD")[3:],
               "R": lambda k: k.rotation("rod")}  # fmt: skip
    r = pf.run(m, q, duration=5.0, step=1e-3, every=100, outputs=outputs)
    R = r.R.values.reshape(-1, 3, 3).transpose(0, 2, 1)
    on_ground = -np.einsum("tij,tj->ti", R, r.reaction.values[:, :3])
    for what, found in (("Pos", r.com.values), ("Avel", r.spin.values), ("Rforce", on_ground)):
        close(found, np.array(data[what])[:, 1:], tolerance, f"{name}: {what}")
