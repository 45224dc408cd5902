"""The contact of a thrown ball with spin, from two measured tosses: it turns back between two samples."""

from __future__ import annotations

import numpy as np

import pfaffian as pf

PLANTED = 2.5
"""Half widths of a 95 % interval within which a planted value lies: beyond these is one of a million."""

CONTACT = {"stiffness": 5e3, "damping": 0.4, "friction": 0.25}
RATE, SAMPLES, FINE = 150, 25, 16
THROWS = ((1.0, -0.5, 5.0), (0.5, 0.2, -9.0))
"""Velocities along and across the board [m/s], and spin [rad/s]."""


def ball() -> pf.Mechanism:
    p = {n: pf.Parameter(n, x) for n, x in {"stiffness": 3e3, "damping": 0.2, "friction": 0.4}.items()}
    surfaces = {
        "shape_a": pf.shape("sphere", radius=0.05),
        "shape_b": pf.pose(rotation=[[1, 0, 0], [0, 0, 1], [0, -1, 0]]),
    }  # z of the plane is y of the world
    touch = pf.forces.contact("board", "ball", **surfaces, exponent=1.0, creep=0.1, **p)
    free, down = pf.joint("pose", "planar", "world", "ball"), (0, -9.81, 0)
    bob = pf.body("ball", 0.4, inertia=4e-4)
    return pf.mechanism("ball", [bob], [free], forces=[touch], parameters=list(p.values()), gravity=down)


def test_stiffness_damping_and_friction_of_a_bounce_are_found() -> None:
    m, rng, records = ball(), np.random.default_rng(0), list[dict[str, np.ndarray]]()
    for v in THROWS:
        run = pf.run(
            m, (0, 0.1, 0), v, duration=(SAMPLES - 1) / RATE, step=1 / RATE / FINE, every=FINE, parameters=CONTACT,
            error_bound=np.inf,
        )  # fmt: skip
        assert run.q.values[:, 1].min() < 0.05  # it has touched the board
        noise = np.array([5e-4, 5e-4, 2e-3]) * rng.normal(size=run.q.shape)
        records.append({"time": np.arange(SAMPLES) / RATE, "q": run.q.values + noise})
    fit = pf.fit(m, records, horizon=0.2)
    assert fit.converged and not fit.doubt
    for name, value in CONTACT.items():
        assert abs(fit.values[name] - value) < PLANTED * fit.half_widths[name] < 0.5 * value, name
