"""Frequencies, dampings and eigenvalues as data: planted numbers are found, and derivatives are those of differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.fitting.steady import modes, steady
from pfaffian.terms.traced_now import present
from tests.fitting.machines import NEAR, TRUTH, five_bar
from tests.fitting.twins import bicycle
from tests.tolerance import CENTRAL

ROLLING = {"base.vx": 5.0}
RIDER = {"height": 0.9, "roll inertia": 9.2, "fork": 4.0, "steering": 0.5}


def state(m: pf.Mechanism, q: dict[str, float], v: dict[str, float]) -> tuple[np.ndarray, ...]:
    """q, v, held and u of a state by name."""
    known = np.array([q.get(n, x) for n, x in zip(m.q_names, m.neutral(), strict=True)])
    rates = np.array([v.get(n, 0.0) for n in m.v_names])
    return known, rates, np.array([n in v for n in m.v_names]), np.zeros(m.nu)


def fastest(s: np.ndarray) -> list[int]:
    """The index of the eigenvalue of the highest frequency."""
    return [int(np.argmax(s.imag))]


@pytest.mark.parametrize("make, at, truth", [(five_bar, (NEAR, {}), TRUTH), (bicycle, ({}, ROLLING), RIDER)])
def test_derivatives_follow_the_steady_motion(make: Any, at: tuple[Any, Any], truth: dict[str, float]) -> None:
    m = present(make())
    q, v, held, u = state(m, *at)
    p = np.array([truth[n] for n in m.p_names])

    def mode(p: np.ndarray) -> Any:
        return modes(m, steady(m, q, v, held, u, p), u, p, fastest)[0]

    here = mode(p)
    for i, step in enumerate(1e-5 * p):
        ends = [mode(p + x * (np.arange(len(p)) == i)).s for x in (step, -step)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert abs(slope - here.by_p[i]) < 1e3 * CENTRAL * max(abs(slope), abs(here.s / p[i])), m.p_names[i]


def test_a_bicycle_is_found_from_its_weave_and_capsize() -> None:
    m, measured = bicycle(), list[dict[str, Any]]()
    for v in (4.0, 5.0, 6.0):
        rolling = {"base.vx": v, "rear": v / 0.3, "front": v / 0.35}
        s = pf.linearise(m, v=rolling, parameters=RIDER).eigenvalues
        measured.append({"eigenvalues": s[(s.imag >= 0) & (s != 0)], "v": {"base.vx": v}})
    fit = pf.identification.fit_modes(m, measured)
    assert fit.converged and not fit.undetermined
    assert np.allclose(list(fit.values.values()), list(RIDER.values()), rtol=1e-5)
    assert np.abs(fit.modes["difference"]).max() < 1e-4


def chain(*stiffness: float) -> pf.Mechanism:
    """Three carts on springs; one of 2 kg is known."""
    k = [pf.Parameter(f"k{i}", x, "N/m") for i, x in enumerate(stiffness)]
    d = pf.Parameter("damping", 0.1, "N s/m")
    carts = [pf.body(f"cart {i}", 2.0) for i in range(3)]
    joints = [
        pf.joint(
            f"x{i}", "prismatic", f"cart {i - 1}" if i else "world", f"cart {i}", axis=(1, 0, 0), stiffness=k[i], damping=d
        )
        for i in range(3)
    ]
    return pf.mechanism("carts", carts, joints, parameters=[*k, d])


def test_a_modal_test_gives_stiffness_and_damping() -> None:
    true = pf.linearise(chain(300.0, 200.0, 100.0)).eigenvalues
    true = true[true.imag > 0]
    rng = np.random.default_rng(1)
    hertz = true.imag / (2 * np.pi) * (1 + 1e-3 * rng.normal(size=3))
    one = {"frequencies": list(hertz), "dampings": list(-true.real / np.abs(true))}
    fit = pf.identification.fit_modes(chain(360.0, 170.0, 110.0), [one, one])
    for name, value in {"k0": 300.0, "k1": 200.0, "k2": 100.0, "damping": 0.1}.items():
        assert abs(fit.values[name] - value) < 0.02 * value and np.isfinite(fit.half_widths[name])
    assert fit.mechanism.p_names == ()
    bound = pf.identification.fit_modes(chain(360.0, 170.0, 110.0), one, bounds={"k0": (310.0, 400.0)})
    assert bound.values["k0"] == 310.0


def test_what_modes_do_not_tell_is_named() -> None:
    mass, k = pf.Parameter("mass", 2.0, "kg"), pf.Parameter("k", 5.0, "N/m")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    m = pf.mechanism("box", [pf.body("box", mass)], [slide], parameters=[mass, k])
    with pytest.warns(pf.RunWarning, match="'mass', 'k' only up to a common factor"):
        fit = pf.identification.fit_modes(m, [{"frequencies": 0.3}])
    assert np.isinf(list(fit.half_widths.values())).all()
    assert np.isclose(fit.values["k"] / fit.values["mass"], (0.6 * np.pi) ** 2)


@pytest.mark.parametrize(
    "measured, words",
    [
        ([], "list of dicts"), (3.0, "list of dicts"), ([{"frequency": 1.0}], "no 'frequency'.*frequencies"),
        ([{"frequencies": "low"}], r"measured\[0\]: numbers"), ([{"frequencies": -1.0}], "positive"),
        ([{"frequencies": [1.0, np.nan]}], "finite"), ([{"frequencies": [1.0, 2.0], "dampings": [0.1]}], "as many"),
        ([{"q": {"x0": 1.0}}], "either eigenvalues or frequencies"), ([{"frequencies": 1.0, "v": {"y": 1}}], "'y'"),
    ],
)  # fmt: skip
def test_bad_measurements_are_named(measured: Any, words: str) -> None:
    with pytest.raises(pf.ModelError, match=words):
        pf.identification.fit_modes(chain(1.0, 1.0, 1.0), measured)


def test_modes_and_steady_motions_that_do_not_exist() -> None:
    with pytest.raises(pf.RunError, match="4 modes, and the machine has fewer"):
        pf.identification.fit_modes(chain(1.0, 1.0, 1.0), [{"frequencies": [1.0, 2.0, 3.0, 4.0]}])
    c = pf.Parameter("c", 1.0)
    push = pf.forces.generalised_force("push", lambda k: 1.0 + c * k.joint_rate("x"), joint="x")
    m = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box")], forces=[push], parameters=[c],
                     gravity=(0, 0, 0))  # fmt: skip
    with pytest.raises(pf.RunError, match="no steady motion of 'box'"):
        pf.identification.fit_modes(m, [{"frequencies": 1.0, "v": {"x": 0.0}}])
