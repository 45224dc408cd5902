"""No result shows which basis of a subspace LAPACK chose; it differs between processors, and a picture or a message with it."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.control.open_loop import open_loop
from pfaffian.maths import subgroups
from pfaffian.simulate.error.fastest import fastest, springs_and_dampers
from pfaffian.viewer.scene import PlacedMechanism, state_of
from pfaffian.viewer.sketch import inertia_box
from tests.other_lapack import mix
from tests.tolerance import close

SAME = 1e-9
"""Rounding of small decompositions."""

TURNED = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
TURNED = TURNED * np.linalg.det(TURNED)


def fleet() -> pf.Mechanism:
    """Four equal carts on equal springs: four equal rates, and four forces that cause them."""
    names = ["front left", "front right", "rear left", "rear right"]
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0), stiffness=400.0, damping=0.1) for n in names]
    return pf.mechanism("fleet", [pf.body(n, 1.0) for n in names], joints)


def fastest_part() -> list[str]:
    m = fleet()
    none, p = np.zeros(0), np.array(m.p_defaults)
    part = fastest(m, open_loop(m), m.neutral(), np.zeros(m.nv), none, none, 0.0, p)
    return [str(part), *map(str, springs_and_dampers(m, m.neutral(), np.zeros(m.nv), 0.0, p))]


def drawn_box() -> np.ndarray:
    """The corners of the box of a body with two equal moments of inertia about axes that are turned."""
    I = TURNED @ np.diag([0.3, 0.5, 0.5]) @ TURNED.T
    m = pf.mechanism("one", [pf.body("b", 1.0, inertia=I.tolist())], [pf.joint("free", "free", "world", "b")])
    k = PlacedMechanism(m, state_of(m), {"b": 0}, np.eye(3)[None, None], np.zeros((1, 1, 3)))
    (solid,) = inertia_box(k, m.bodies[0])
    return solid.vertices


RESULTS = {
    "springs between points": lambda: pf.forces.point_springs(np.diag([2.0, 2.0, 2.0, 300.0]))[1],
    "critical rotations": lambda: np.vstack([x.quaternions for x in pf.rotations.critical_rotations(np.diag([2.0, 2.0, 2.0]))]),
    "isotropy": lambda: subgroups.isotropy(np.eye(6), [0, 0, 0, 0, 0, 2.0]),
    "the fastest part": fastest_part,
    "a picture of an inertia": drawn_box,
}


@pytest.mark.parametrize("what", RESULTS)
def test_results_do_not_depend_on_the_basis_of_lapack(what, monkeypatch):
    expected = RESULTS[what]()
    for seed in range(3):
        with monkeypatch.context() as patch:
            mix(patch, seed)
            found = RESULTS[what]()
        if isinstance(expected, list):
            assert found == expected
        else:
            close(found, expected, SAME, what)


def test_the_first_of_equally_fast_parts_is_named():
    first, *parts = fastest_part()
    assert first.startswith("spring of joint 'front left'")
    assert [part.split("'")[1] for part in parts if part.startswith("the spring")] == list(fleet().v_names)
