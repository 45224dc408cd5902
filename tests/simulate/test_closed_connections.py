"""Connection, generalised Jacobian, reaction null space and holonomy of a closed chain, against sums over its bodies.

The machine is a crank-rocker and a wheel on a floating hull. The reference solution has no joints but the crank and the wheel:
it solves the loop in closed form and sums the momenta body by body in the hull's frame.
"""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import PEER, close

CRANK, COUPLER, ROCKER, LEFT, RIGHT = 0.15, 0.5, 0.4, 0.2, 0.75
MASS = {"hull": 6.0, "crank": 1.0, "coupler": 1.4, "rocker": 1.1, "wheel": 0.8}
COM = {"hull": (0.3, 0.1), "crank": (0.07, 0.01), "coupler": (0.2, 0.05), "rocker": (0.25, -0.02), "wheel": (0.0, 0.0)}
SPIN = {"hull": 0.9, "crank": 0.03, "coupler": 0.06, "rocker": 0.04, "wheel": 0.05}
HUB = (-0.2, 0.1)
PIN = {"placement_a": (COUPLER, 0, 0), "placement_b": (ROCKER, 0, 0)}
LOOPS = {
    "five rows of rank two": pf.closure("pin", "revolute", "coupler", "rocker", **PIN),
    "a ball": pf.closure("pin", "spherical", "coupler", "rocker", **PIN),
}


def machine(base: str = "free", closure=LOOPS["five rows of rank two"], **more) -> pf.Mechanism:
    bodies = [pf.body(n, MASS[n], com=(*COM[n], 0), inertia=np.diag([SPIN[n], 0.7 * SPIN[n], SPIN[n]])) for n in MASS]
    joints = [
        pf.joint("base", base, "world", "hull"),
        pf.joint("a", "revolute", "hull", "crank", placement=(LEFT, 0, 0)),
        pf.joint("b", "revolute", "crank", "coupler", placement=(CRANK, 0, 0)),
        pf.joint("c", "revolute", "hull", "rocker", placement=(RIGHT, 0, 0)),
        pf.joint("w", "revolute", "hull", "wheel", placement=(*HUB, 0)),
    ]
    return pf.mechanism("crank-rocker", bodies, joints, constraints=[closure], gravity=(0, 0, 0), **more)


# -- the same by hand: positions and velocities of bodies in the hull's frame, all in its plane --------------------------


def across(x):
    return np.array([-x[1], x[0]])


def at_angle(x):
    return np.array([np.cos(x), np.sin(x)])


def loop(a: float, side: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Angles (a, b, c) of the hinges at an angle of the crank, and their rates relative to that of the crank."""
    knee = np.array([LEFT, 0]) + CRANK * at_angle(a)
    to = np.array([RIGHT, 0]) - knee
    far = np.linalg.norm(to)
    beside = (COUPLER**2 - ROCKER**2 + far**2) / (2 * far)
    tip = knee + beside * to / far + side * np.sqrt(COUPLER**2 - beside**2) * across(to) / far
    beta, c = (np.arctan2(*x[::-1]) for x in (tip - knee, tip - [RIGHT, 0]))
    # CRANK e'(a) + COUPLER e'(beta) beta' = ROCKER e'(c) c'
    columns = np.column_stack([COUPLER * across(at_angle(beta)), -ROCKER * across(at_angle(c))])
    beta_rate, c_rate = np.linalg.solve(columns, -CRANK * across(at_angle(a)))
    return np.array([a, beta - a, c]), np.array([1, beta_rate - 1, c_rate])


class Sums:
    """Sums over the bodies: the momentum is K (3, 3) times the hull's twist (v_x, v_y, w) plus K_s (3, 2) times the rates
    of crank and wheel."""

    def __init__(self, a: float, side: int = 1) -> None:
        (_, b, c), (_, b_rate, c_rate) = loop(a, side)
        angle = {"hull": 0, "crank": a, "coupler": a + b, "rocker": c, "wheel": 0.4}
        rate = {"hull": (0, 0), "crank": (1, 0), "coupler": (1 + b_rate, 0), "rocker": (c_rate, 0), "wheel": (0, 1)}
        pivot = {"hull": (0, 0), "crank": (LEFT, 0), "coupler": np.array([LEFT, 0]) + CRANK * at_angle(a)}
        pivot |= {"rocker": (RIGHT, 0), "wheel": HUB}
        carried = {"coupler": CRANK * across(at_angle(a))}
        self.K, self.K_s, self.energy = np.zeros((3, 3)), np.zeros((3, 2)), np.zeros((2, 2))
        self.twist = {}
        for n in MASS:
            R = np.column_stack([at_angle(angle[n]), across(at_angle(angle[n]))])
            r = pivot[n] + R @ COM[n]
            moves = np.outer(across(R @ COM[n]), rate[n]) + np.outer(carried.get(n, np.zeros(2)), (1, 0))
            J, J_s = np.column_stack([np.eye(2), across(r)]), moves
            turn, turn_s = np.array([[0, 0, 1]]), np.array([rate[n]])
            for lever, mass in ((J, MASS[n]), (turn, SPIN[n])):
                self.K += mass * lever.T @ lever
            self.K_s += MASS[n] * J.T @ J_s + SPIN[n] * turn.T @ turn_s
            self.energy += MASS[n] * J_s.T @ J_s + SPIN[n] * turn_s.T @ turn_s
            self.twist[n] = np.vstack([J, turn]), np.vstack([J_s, turn_s])

    @property
    def A(self) -> np.ndarray:
        return np.linalg.solve(self.K, self.K_s)


def state(a: float, side: int = 1) -> dict[str, float]:
    return dict(zip("abc", loop(a, side)[0], strict=True)) | {"w": 0.4}


def directions(a: float, side: int = 1) -> np.ndarray:
    """(4, 2) velocities of a, b, c, w for unit rates of crank and wheel."""
    return np.column_stack([np.r_[loop(a, side)[1], 0], [0, 0, 0, 1]])


PLANE = [0, 1, 5]
"""Entries of a twist: along x and y, about z."""


@pytest.mark.parametrize("closure", LOOPS)
@pytest.mark.parametrize("side", [1, -1])
def test_connection_and_generalised_jacobian_are_those_of_crank_and_wheel(closure, side):
    m, a = machine(closure=LOOPS[closure]), 0.9
    q, s, by_hand = state(a, side), directions(a, side), Sums(a, side)
    A = pf.reduction.mechanical_connection(m, q)
    close(A[PLANE] @ s, by_hand.A, PEER, "A")
    close(A[2:5], np.zeros((3, 4)), PEER, "A out of the plane", 1)
    for n in ("coupler", "rocker"):
        J, J_s = by_hand.twist[n]
        J_g = pf.reduction.generalised_jacobian(m, n, q, frame="LOCAL_WORLD_ALIGNED", point=(*COM[n], 0))
        close(J_g[PLANE] @ s, J_s - J @ by_hand.A, PEER, f"J_g of {n}")
        # The other directions of s are no motions of the machine: J_g has rank two.
        assert np.linalg.svd(J_g, compute_uv=False)[2] < 1e-12
    inertia = pf.reduction.shape_inertia(m, q)
    close(s.T @ inertia @ s, by_hand.energy - by_hand.K_s.T @ by_hand.A, PEER, "M^")
    assert np.linalg.eigvalsh(inertia)[1] < 1e-12


def test_velocities_off_the_closure_are_projected_onto_it():
    """The projection is the smallest change in the metric of M at zero momentum, which is the change that an impulse of the
    pin makes."""
    m, a = machine(), -1.3
    q, s = state(a), directions(a)
    whole = pf.reduction.shape_inertia(m.with_(constraints=[]), q)
    P = s @ np.linalg.solve(s.T @ whole @ s, s.T @ whole)
    close(
        pf.reduction.mechanical_connection(m, q), pf.reduction.mechanical_connection(m.with_(constraints=[]), q) @ P, PEER, "A"
    )
    v = np.r_[np.zeros(6), 0.3, -0.2, 0.5, 0.1]
    v[:6] = -pf.reduction.mechanical_connection(m.with_(constraints=[]), q) @ v[6:]
    after = pf.assemble(m, [*m.neutral()[:7], *q.values()], v).v
    close(pf.jacobian(m, "rocker", [*m.neutral()[:7], *q.values()]) @ after,
          pf.reduction.generalised_jacobian(m, "rocker", q) @ v[6:], PEER, "twist")  # fmt: skip


def test_curvature_includes_the_closure():
    """B_aw = d_a A_w - d_w A_a - [A_a, A_w] over crank and wheel, by differences of the sums by hand."""
    m, a, h = machine("planar"), 0.7, 1e-4
    s, here = directions(a), Sums(a)
    slope = (8 * (Sums(a + h).A - Sums(a - h).A) - Sums(a + 2 * h).A + Sums(a - 2 * h).A)[:, 1] / (12 * h)
    x, y = here.A.T
    bracket = np.r_[x[2] * across(y[:2]) - y[2] * across(x[:2]), 0]
    B = pf.reduction.connection_curvature(m, state(a))
    close(np.einsum("ijk,i,j->k", B, *s.T), slope - bracket, 1e-9, "B")
    Xi = pf.reduction.reduced_two_form(m, (mu := [0.0, 0.0, 3.0]), state(a))
    assert mu[2] and Xi.shape == (4, 4)
    close(s[:, 0] @ Xi @ s[:, 1], 3 * (slope - bracket)[2], 1e-9, "Xi")


def test_motions_that_leave_the_hull_at_rest_keep_the_loop_closed():
    """One motion leaves the attitude of the hull, the wheel against the crank; none leaves its whole pose. With the loop
    open three leave the attitude."""
    m, a = machine(), 2.1
    q, s = state(a), directions(a)
    x, y = Sums(a).A[2]
    d = s @ [y, -x]
    close(pf.reduction.reaction_null_space(m, q, keep="attitude"), np.outer(d, d) / (d @ d), PEER, "P")
    close(pf.reduction.reaction_null_space(m, q), np.zeros((4, 4)), PEER, "P of the pose", 1)
    whole = pf.reduction.reaction_null_space(m.with_(constraints=[]), q, keep="attitude")
    assert np.trace(whole).round(9) == 3


@pytest.mark.parametrize("side", [1, -1])
def test_a_turn_of_the_crank_turns_the_hull(side):
    """The path names the crank alone; the closure moves coupler and rocker on the branch of the start."""
    m = machine("planar")
    g = pf.reduction.holonomy(m, lambda x: {"a": 0.5 + 2 * np.pi * x, "w": 0}, start=state(0.5, side), steps=60)
    angles = 0.5 + 2 * np.pi * np.arange(256) / 256
    turned = -2 * np.pi * np.mean([Sums(a, side).A[2, 0] for a in angles])
    close(np.unwrap(np.arctan2(g[:, 1, 0], g[:, 0, 0]))[-1], turned, PEER, "angle", 1)


def test_a_path_off_the_closures_is_refused_with_the_row():
    m = machine("planar")
    with pytest.raises(pf.ModelError, match=r"at x = .* the closures of 'crank-rocker' do not close: row 'pin.v"):
        pf.reduction.holonomy(m, lambda x: [0.5 + x, *loop(0.5)[0][1:], 0], steps=4)
    with pytest.raises(pf.ModelError, match="holonomy: the path: there is no 'd'; there are a, b, c, w"):
        pf.reduction.holonomy(m, lambda x: {"d": x})
    ball = m.with_(joints=[*m.joints[:-1], pf.joint("w", "spherical", "hull", "wheel")])
    with pytest.raises(pf.ModelError, match=r"the path names a part of a joint: give w\.qy, w\.qz, w\.qw as well"):
        pf.reduction.holonomy(ball, lambda x: {"w.qx": x})


REFUSED = {
    "mechanical_connection": lambda m: pf.reduction.mechanical_connection(m),
    "shape_inertia": lambda m: pf.reduction.shape_inertia(m),
    "connection_curvature": lambda m: pf.reduction.connection_curvature(m),
    "reduced_two_form": lambda m: pf.reduction.reduced_two_form(m, [1.0, 0, 0]),
    "generalised_jacobian": lambda m: pf.reduction.generalised_jacobian(m, "crank"),
    "momentum_twist": lambda m: pf.reduction.momentum_twist(m, "crank"),
    "reaction_null_space": lambda m: pf.reduction.reaction_null_space(m),
    "holonomy": lambda m: pf.reduction.holonomy(m, lambda x: {"a": x}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_constraints_than_closures_between_bodies_are_refused(what):
    m = machine("planar")
    tied = m.with_(constraints=[pf.coincide("tie", "world", (0, 0.5, 0), "hull", (0, 0.5, 0))])
    with pytest.raises(pf.ModelError, match=f"{what}: closure 'tie' ties 'crank-rocker' to 'world', which does not move"):
        REFUSED[what](tied)
    for other in (
        pf.holonomic("rod", lambda k: k.joint("a") - k.joint("c")),
        pf.constraints.active_while(LOOPS["a ball"], lambda k: k.t),
    ):
        with pytest.raises(pf.ModelError, match=f"{what}: constraint '{other.name}' of 'crank-rocker' is not an always active"):
            REFUSED[what](m.with_(constraints=[other]))


def test_wheels_on_the_ground_do_not_affect_the_connection():
    """The connection of the mass matrix ignores them, whereas reaction_null_space refuses a machine that rolls, since it
    does not float."""
    m = machine("planar")
    rolls = m.with_(constraints=[*m.constraints, pf.nonholonomic("skate", lambda k: k.twist("hull")[1])])
    close(pf.reduction.mechanical_connection(rolls, state(1)), pf.reduction.mechanical_connection(m, state(1)), PEER, "A")
    with pytest.raises(pf.ModelError, match="reaction_null_space: constraint 'skate' of 'crank-rocker' is not an always"):
        pf.reduction.reaction_null_space(rolls)


def test_expressions_in_laws_respect_the_closure():
    """The expressions of floating_base give the numbers of the functions."""
    m, q = machine(), state(1.7)
    base = pf.reduction.floating_base
    terms = {"J": lambda T: base(T).jacobian("rocker"), "P": lambda T: base(T).reaction_free("attitude")}
    found = pf.compile_terms(m, terms, backend="numpy")(q)
    close(found["J"], pf.reduction.generalised_jacobian(m, "rocker", q), PEER, "J")
    close(found["P"], pf.reduction.reaction_null_space(m, q, keep="attitude"), PEER, "P")
