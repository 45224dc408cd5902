"""Welded and pinned robots against pin.constraintDynamics, every formulation, single and redundant rows."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import pfaffian as pf
from tests.oracles.pinocchio_twin import Twin, twin
from tests.random_mechanisms import closing, on_velocity, placements, reverse
from tests.tolerance import PEER_CONSTRAINED, close

FORMULATIONS = [n for n in pf.FORMULATIONS if n not in ("articulated", "quasi-velocity-symmetric")]  # takes too long to trace
CASES = {
    "panda, hand welded": ("panda_description/panda", "fixed", [("weld", "world", "panda_hand")]),
    "panda, finger pinned": ("panda_description/panda", "fixed", [("spherical", "world", "panda_leftfinger")]),
    "baxter, hands welded": ("baxter_description/baxter", "fixed", [("weld", "left_hand_link", "right_hand_link")]),
    "talos, both feet": (
        "talos_data/talos_reduced",
        "free",
        [("weld", "world", "leg_left_6_link"), ("weld", "world", "leg_right_6_link")],
    ),
    "talos, foot and hands": (
        "talos_data/talos_reduced",
        "free",
        [("weld", "world", "leg_left_6_link"), ("spherical", "gripper_left_base_link", "gripper_right_base_link")],
    ),
    "anymal, four feet": (
        "anymal_b_simple_description/anymal",
        "free",
        [("spherical", "world", f"{leg}_FOOT") for leg in ("LF", "RF", "LH", "RH")],
    ),
    "icub, hand to foot": ("icub_description/icub_reduced", "free", [("weld", "l_hand", "r_foot")]),
}


def their_contact(w: Twin, c) -> pin.RigidConstraintModel:
    """Pinocchio's weld or ball joint at the frames of our closure, without drift correction."""
    ends = []
    for body, X in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)):
        place = pin.SE3(w.ours.value(X.R), w.ours.value(X.p).ravel())
        frame = None if body == "world" else w.model.frames[w.frame(body)]
        ends += [0, place] if frame is None else [frame.parentJoint, frame.placement * place]
    kind = {"weld": pin.ContactType.CONTACT_6D, "spherical": pin.ContactType.CONTACT_3D}[c.kind]
    contact = pin.RigidConstraintModel(kind, w.model, *ends, pin.ReferenceFrame.LOCAL)
    contact.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(0.0, 0.0))
    return contact


def their_acceleration(w: Twin, closures: list, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    contacts, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in closures:
        contacts.append(their_contact(w, c))
        data.append(contacts[-1].createData())
    pin.initConstraintDynamics(w.model, w.data, contacts, data)
    accuracy = pin.ProximalSettings(1e-14, 1e-14, 1e-10, 50)
    a = pin.constraintDynamics(w.model, w.data, w.q(q), w.v(v), w.v(tau), contacts, data, accuracy)
    return a[w.order]


@pytest.mark.parametrize("case", CASES)
def test_closed_robot_agrees_with_pinocchio(case):
    name, base, ends = CASES[case]
    w = twin(name, base)
    m = pf.actuate_all(w.ours)
    random = np.random.default_rng(3)
    q = pf.random_configuration(m, random)
    at = placements(m, q)
    single = [closing(f"{kind} {i}", kind, a, b, random, at) for i, (kind, a, b) in enumerate(ends)]
    twice = [*single, *[reverse(c) for c in single]]
    v = np.array([on_velocity(m.with_(constraints=single), q, random.normal(size=m.nv), 0.0) for _ in range(3)])
    tau = random.normal(size=(3, m.nv))
    damping = pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy", lanes=1)(q, v)["f"]
    expected = [their_acceleration(w, single, q, *x) for x in zip(v, tau + damping, strict=True)]
    for rows, closures in (("single", single), ("redundant", twice)):
        closed = m.with_(constraints=closures)
        # The dense formulations take long to trace for many joints.
        chosen = FORMULATIONS if m.nv <= 10 else ["gauss", "multipliers"]
        parts = {n: lambda T, n=n: pf.FORMULATIONS[n](T).v_dot for n in chosen}
        for n, v_dot in pf.compile_terms(closed, parts, backend="numpy", lanes=1)(q, v, tau).items():
            close(v_dot, expected, PEER_CONSTRAINED, f"{case}, {rows} rows, {n}")
