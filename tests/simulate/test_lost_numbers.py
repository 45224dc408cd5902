"""Runs that end because what a user's function returns is no number: it is named, and the run ends soon."""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control

WORDS = "what '{}' returns is no number at t = "
HOWS = [{"step": 1e-2}, {"step": 1e-2, "scheme": pf.Scheme(integrator="tr-bdf2")}, {"accuracy": 1e-6},
        {"accuracy": 1e-6, "scheme": pf.Scheme(integrator="radau5")}]  # fmt: skip


def slide(**parts) -> pf.Mechanism:
    """A block of 1 kg on a rail."""
    rail = pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0))
    return pf.mechanism("slide", [pf.body("block", 1.0)], [rail], gravity=(0, 0, 0), **parts)


def told(m: pf.Mechanism, v: float = -1.0, **how) -> tuple[object, str]:
    """A run of 1 s from x = 1 m, and its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        r = pf.run(m, [1.0], [v], duration=1.0, backend="interpreter", **how)
    return r, " ".join(str(w.message) for w in found)


ROOT = lambda k: 0.1 * ca.sqrt(k.q[0] - 0.8)  # noqa: E731
LATE = lambda k: 0.1 * ca.sqrt(0.3 - k.t)  # noqa: E731


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("act, v, between", [(ROOT, -1.0, (0.19, 0.21)), (LATE, -1.0, (0.29, 0.31))], ids=["place", "time"])
def test_a_force_or_a_law_that_returns_no_number_is_named(act, v, between, how):
    force = slide(forces=[pf.forces.generalised_force("wind", act), pf.forces.dissipation("air", lambda k: k.v[0] ** 2 / 100)])
    r, words = told(force, v, **how)
    assert WORDS.format("wind") in words and "air" not in words
    assert between[0] < float(r.stopped) < between[1]
    law = {"control": control.Control(lambda T, z, w, y: control.Command(act(T)))}
    r, words = told(slide(actuators=[pf.actuator("motor", "x")]), v, **law, **how)
    assert WORDS.format("control law") in words
    assert between[0] < float(r.stopped) < between[1]


@pytest.mark.parametrize("how", HOWS[::2], ids=str)
@pytest.mark.parametrize(
    "u",
    [{"u": {"reach": 0.2}}, {"u": np.array([[9.0], [0.2]]), "u_step": 0.1}, {"u": np.array([[[9.0]], [[0.2]]]), "u_step": 0.1}],
    ids=["constant", "series", "series of the run"],
)
def test_a_law_that_takes_inputs_is_named_where_these_leave_it_no_number(u, how):
    """Under the inputs 0 and 9 it has a number everywhere, and so has the push of the motor beside it."""
    pull = lambda T, z, w, y: control.Command(0.1 * ca.sqrt(w[0] * (0.8 - T.q[0]) * (w[0] - 9) + 1e-9 * (w[0] - 9) ** 2))  # noqa: E731
    law = control.Control(pull, w_names=("reach",))
    r, words = told(slide(actuators=[pf.actuator("motor", "x")]), control=law, **u, **how)
    assert WORDS.format("control law") in words
    assert 0.19 < float(r.stopped) < 0.22


def test_one_that_has_no_number_at_the_start_and_one_of_a_speed_are_named():
    for how in HOWS[::2]:
        low = slide(forces=[pf.forces.generalised_force("wind", lambda k: ca.sqrt(k.q[0] - 1.5))])
        assert WORDS.format("wind") + "0 s" in told(low, **how)[1]
        slower = slide(forces=[pf.forces.generalised_force("wind", lambda k: -2 - 0.1 * ca.sqrt(k.v[0] + 1.5))])
        assert WORDS.format("wind") in told(slower, **how)[1]


def test_a_spring_that_is_too_fast_is_not_blamed_on_what_has_no_number_far_away():
    """The motion has grown; that a root has no number there is no cause."""
    far = pf.forces.generalised_force("wind", lambda k: 1e-3 * ca.sqrt(1e9 - k.q[0]))
    stiff = pf.forces.generalised_force("stiff", lambda k: -1e8 * k.q[0])
    _, words = told(slide(forces=[far, stiff]), step=1e-2)
    assert "stopped" in words and "'stiff'" in words and "'wind'" not in words


def test_a_run_of_the_stiff_pair_whose_iterations_find_no_number_ends_soon():
    """It went on in steps that do not change the time, a million of them."""
    m = slide(forces=[pf.forces.generalised_force("wind", ROOT)])
    r, _ = told(m, accuracy=1e-6, scheme=pf.Scheme(integrator="radau5"), error=False)
    assert int(r.steps) < 500


def test_of_several_runs_those_that_meet_it_are_named():
    m = slide(forces=[pf.forces.generalised_force("wind", ROOT)])
    with pytest.warns(pf.RunWarning, match="1 of 2 runs stopped"):
        r = pf.run(m, [[1.0], [3.0]], [-1.0], duration=1.0, step=1e-2, backend="interpreter")
    assert r.status.values.tolist()[1] == 0 and WORDS.format("wind") in r.reason.values[0] and r.reason.values[1] == ""
    assert np.isnan(r.stopped.values[1])


@pytest.mark.parametrize("records", [["q"], ["q", "v", "energy"]])
def test_a_potential_whose_pole_steps_pass_is_named(records):
    """A block at -1000 m/s comes from x = 1.3 m beyond the pole of log(x) in two steps, which meet no large force."""
    far, well = (pf.forces.potential(name, lambda k, a=a: ca.log(k.q[0] + a)) for name, a in (("far", 9), ("well", 0)))
    how = {"step": 1e-3, "record": records, "backend": "interpreter"}
    with pytest.warns(pf.RunWarning, match="the energy of 'well' is no number at t = 0.002 s: if steps passed a pole"):
        pf.run(slide(forces=[far, well]), [1.3], [-1e3], duration=4e-3, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(slide(forces=[far, well]), [1.3], [-1.0], duration=0.5, **how)


def test_the_run_of_a_batch_is_told_whose_potential_has_no_number():
    well = slide(forces=[pf.forces.potential("well", lambda k: ca.log(k.q[0]))])
    with pytest.warns(pf.RunWarning, match="the energy of 'well' is no number at t = 0 s in run 1: "):
        pf.run(well, [[2.0], [-2.0]], duration=1e-2, step=1e-3, backend="interpreter")


def test_a_potential_that_a_switch_changes_is_not_judged_by_its_first_value():
    """The block meets log(x) from 1 m, and below 0.5 m log(x + 10)."""
    shift = pf.Parameter("shift", 0.0, "m")
    well = pf.forces.potential("well", lambda k: ca.log(k.q[0] + shift.symbol))
    switches = {"shift": lambda k: ca.if_else(k.q[0] < 0.5, 10, 0)}
    r, words = told(slide(forces=[well], parameters=[shift]), -2.0, step=1e-2, switches=switches)
    assert float(r.q.min()) < -0.5 and int(r.status) == 0 and "energy" not in words


@pytest.mark.parametrize("how", HOWS[::2], ids=str)
def test_the_run_of_a_batch_is_examined_at_its_own_inputs(how):
    root = lambda T, z, w, y: control.Command(0.1 * ca.sqrt(w[0] + T.q[0]))  # noqa: E731
    m, law = slide(actuators=[pf.actuator("motor", "x")]), control.Control(root, w_names=("reach",))
    u = np.array([[[9.0], [9.0]], [[9.0], [-0.5]]])
    with pytest.warns(pf.RunWarning, match=WORDS.format("control law")):
        r = pf.run(
            m, [[1.0], [1.0]], [[-1.0], [-1.0]], u=u, u_step=0.3, control=law, duration=1.0, backend="interpreter", **how
        )
    assert np.isnan(r.stopped.values[0]) and 0.49 < float(r.stopped[1]) < 0.56
