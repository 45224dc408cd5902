"""Fits of simulated machines: what was planted is found, and derivatives are those of differences."""

from __future__ import annotations

import warnings
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.fitting.guesses import guesses
from pfaffian.fitting.problem import residuals
from pfaffian.fitting.records import CheckedRecord, Measurements, check, noise
from pfaffian.fitting.segments import cut
from pfaffian.fitting.starts import closed, freedom
from tests.fitting.machines import NEAR, PENDULUM, TRUTH, five_bar, pendulum, record
from tests.tolerance import CENTRAL, SATISFIED

PLANTED = 2.5
"""Half widths of a 95 % interval within which a planted value lies: beyond these is one of a million."""


def found(fit: pf.identification.Fit, **planted: float) -> None:
    """Assert that planted values lie within their intervals, widened, and that these say something."""
    for name, value in planted.items():
        assert abs(fit.values[name] - value) < PLANTED * fit.half_widths[name], name
        assert fit.half_widths[name] < max(0.2 * abs(value), 1e-2), name


@pytest.fixture(scope="module")
def loop() -> pf.identification.Fit:
    """A five-bar of which only the cranks are measured, with torques whose record is late by 4 ms."""
    m = five_bar()
    one = record(m, TRUTH, ("left crank", "right crank"), guess=NEAR, late=4)
    return pf.fit(m, one, guess=NEAR)


def test_lengths_masses_springs_and_delay_of_a_loop_are_found(loop: pf.identification.Fit) -> None:
    found(loop, **TRUTH, **{"delay of u": 0.004})
    assert loop.converged
    x, at = loop.solution.fitted.x, loop.problem
    p, _ = at.at(loop.solution.theta)
    left = closed(at.of.s.mechanism, x, p, at.segments.begin, most=1)[1]
    assert left.max() < SATISFIED  # every start is on the constraints of the fitted lengths


def test_unseen_loops_close_as_those_of_the_fit() -> None:
    """From the neutral configuration elbows, which are not measured, bend the other way. No number of theirs is told."""
    down, cranks = NEAR | {"left elbow": -3.2, "right elbow": 3.08}, ("left crank", "right crank")
    seen, other = (record(five_bar(), TRUTH, cranks, guess=down, seconds=0.6, seed=seed) for seed in (1, 2))
    fit = pf.fit(five_bar(), seen, guess=down, parameters=["damping"], start=TRUTH, unknown={})
    error = fit.unseen(other, [0.2])["fit"].loc[0.2]
    assert (error[["q left crank", "q right crank"]] < 5e-3).all() and np.isnan(error["q left elbow"])


def test_tangents_of_lengths_and_delays_are_those_of_closed_loops(loop: pf.identification.Fit) -> None:
    at, theta, x = loop.problem, loop.solution.theta, loop.solution.fitted.x
    m, begin, everything = at.of.s.mechanism, at.segments.begin, slice(None)
    p, _ = at.at(theta)
    free = freedom(m, x, p, begin)
    _, J = residuals(at, theta, x, free, everything)
    k = free.basis.shape[2]
    for i, h in enumerate([1e-5, 1e-5, 1e-4, 1e-3, 1e-5, 1e-6]):
        ends = list[np.ndarray]()
        for sign in (1.0, -1.0):
            there = theta + sign * h * (np.arange(len(theta)) == i)
            q, _ = at.at(there)
            moved = closed(m, x + sign * (free.by_p @ (q - p) * sign), q, begin)[0] if i < len(at.free) else x
            ends.append(residuals(at, there, moved, free, everything)[0])  # type: ignore[arg-type]
        measured = np.isfinite(ends[0])
        slope = ((ends[1] - ends[0]) / (2 * h))[measured]
        assert np.abs(slope - J[..., k + i][measured]).max() < 1e3 * CENTRAL * np.abs(slope).max(), at.names[i]


def test_wrong_gains_offsets_and_zeros_are_found() -> None:
    m = pendulum()
    records = [record(m, PENDULUM, ("hinge",), q={"hinge": a}, seed=k) for k, a in enumerate((0.5, -1.0))]
    for one, zero in zip(records, (0.05, -0.02), strict=True):
        one["q"] = {"hinge": one["q"]["hinge"] + zero}
        one["u"] = -1.2 * one["u"] + 0.3
    fit = pf.fit(m, records, unknown={"u": ("gain", "offset"), "q": "zero"}, parameters=["damping"], start=PENDULUM)
    # u = gain of the record + offset, and the sign was wrong
    found(fit, damping=0.1, **{"gain of u motor": -1 / 1.2, "offset of u motor": 0.25})
    found(fit, **{"zero of q hinge in record 0": 0.05, "zero of q hinge in record 1": -0.02})


def test_a_rate_that_is_half_a_step_late_is_found() -> None:
    m = pendulum()
    one = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0})
    fine = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0}, noise=0.0)["q"]["hinge"]
    one["v"] = np.append(np.nan, np.diff(fine) / 0.01)
    fit = pf.fit(m, one)
    assert abs(fit.values["delay of v"] - 0.005) < 2e-4


def test_outliers_are_rejected_and_listed() -> None:
    m = pendulum()
    one = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0})
    wrong = [20, 77, 150]
    one["q"]["hinge"][wrong] += 0.5
    fit = pf.fit(m, one)
    found(fit, **PENDULUM)
    rejected = fit.rejected
    assert set(np.round(one["time"][wrong], 6)) <= set(rejected["time"].round(6))
    assert abs(pf.fit(m, one, robust=False).values["m_r"] - 1.0) > abs(fit.values["m_r"] - 1.0)


def test_gaps_uneven_times_and_samples_without_a_measurement() -> None:
    m = pendulum()
    one = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0}, seconds=4.0)
    rng = np.random.default_rng(5)
    keep = np.sort(rng.permutation(401)[:300])
    keep = keep[(keep < 150) | (keep > 200)]
    q = np.where(rng.random(len(keep)) < 0.2, np.nan, one["q"]["hinge"][keep])
    # the input is held between its own samples: fill it in at all times, and leave the angle out
    whole = np.full(401, np.nan)
    whole[keep] = q
    found(pf.fit(m, {"time": one["time"], "q": whole, "u": one["u"]}), **PENDULUM)


def test_outputs_of_points_and_accelerometers() -> None:
    m = pendulum()
    outputs = {
        "tip": lambda k: k.position("rod", (0, 0, -1)),
        "accelerometer": pf.of_motion(lambda T, motion: T.kinematics.specific_force("rod", motion.v_dot, (0, 0, -1))),
    }
    t = np.arange(201) * 0.01
    u = np.sin(7 * t)[:, None]
    run = pf.run(m, {"hinge": 1.0}, u=u[:-1], u_step=0.01, duration=2.0, step=0.01, parameters=PENDULUM, outputs=outputs)
    rng = np.random.default_rng(2)
    noise = {"tip": 1e-3, "accelerometer": 0.05}
    one = {"time": t, "u": u} | {n: run[n].values + s * rng.normal(size=run[n].shape) for n, s in noise.items()}
    fit = pf.fit(m, one, outputs=outputs, guess={"hinge": 1.0}, horizon=3.0)
    found(fit, **PENDULUM)
    assert np.isclose(fit.deviations["tip 0"], 1e-3, rtol=0.3) and np.isclose(fit.deviations["accelerometer 0"], 0.05, rtol=0.3)


def test_what_cannot_be_told_apart_is_named() -> None:
    k, mass = pf.Parameter("stiffness", 8.0), pf.Parameter("mass", 2.0)
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    spare = pf.Parameter("spare", 1.0)
    m = pf.mechanism("oscillator", [pf.body("box", mass=mass)], [slide], parameters=[k, mass, spare])
    t = np.arange(300) * 0.02
    q = np.cos(2.2 * t) + 1e-3 * np.random.default_rng(0).normal(size=300)
    with pytest.warns(pf.RunWarning) as told:
        fit = pf.fit(m, {"time": t, "q": q})
    words = " ".join(str(w.message) for w in told)
    assert "scale is missing" in words and "do not depend on 'spare'" in words
    assert np.isinf(fit.half_widths["mass"]) and np.isinf(fit.half_widths["spare"])
    assert np.isclose(fit.values["stiffness"] / fit.values["mass"], 2.2**2, rtol=1e-3)
    assert np.isfinite(pf.fit(m, {"time": t, "q": q}, parameters=["stiffness"]).half_widths["stiffness"])


def test_the_fitted_mechanism_is_written_and_read(tmp_path: Any) -> None:
    m = pendulum()
    fit = pf.fit(m, record(m, PENDULUM, ("hinge",), q={"hinge": 1.0}))
    for suffix in (".yaml", ".urdf", ".xml"):
        pf.write(fit.mechanism, tmp_path / f"as_{suffix[1:]}{suffix}")
    again, _ = pf.read(tmp_path / "as_yaml.yaml")
    state = ([0.4], [1.2], [0.3])
    expected = pf.forward_dynamics(m, *state, parameters={n: fit.values[n] for n in m.p_names}).v_dot
    assert np.allclose(pf.forward_dynamics(again, *state).v_dot, expected, rtol=1e-9)


def test_forces_of_a_user_have_the_fitted_parameters() -> None:
    c = pf.Parameter("c", 1.0)
    push = pf.forces.generalised_force("push", lambda k: -c * k.joint_rate("x"), joint="x")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
    m = pf.mechanism("box", [pf.body("box", mass=2.0)], [slide], forces=[push], parameters=[c])
    t = np.arange(100) * 0.01
    fit = pf.fit(m, {"time": t, "q": np.exp(-1.5 * t)})
    assert np.isclose(fit.values["c"], 3.0, rtol=1e-3)
    assert np.isclose(pf.forward_dynamics(fit.mechanism, [0.0], [1.0]).v_dot[0], -fit.values["c"] / 2, rtol=1e-12)


def test_a_fit_goes_on_from_another_one() -> None:
    m = pendulum()
    one = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0})
    first = pf.fit(m, one)
    again = pf.fit(m, one, start=first)
    assert again.iterations < first.iterations
    assert np.allclose(list(again.values.values()), list(first.values.values()), rtol=1e-3, atol=1e-6)


def test_priors_and_bounds_hold() -> None:
    m = pendulum()
    one = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0})
    assert pf.fit(m, one, bounds={"damping": (0.0, 0.07)}).values["damping"] == 0.07
    tight = pf.fit(m, one, priors={"damping": (0.3, 1e-6)})
    assert np.isclose(tight.values["damping"], 0.3, atol=1e-5)


def test_free_inertia_stays_possible_where_plain_numbers_do_not() -> None:
    rod = pf.body("rod", mass=2.0, com=(0.1, 0.02, -0.5), inertia=(0.1, 0.12, 0.05))
    free, ten = pf.identification.free_inertia(rod)
    for a, b in ((free.mass, rod.mass), (free.com, rod.com), (free.inertia, rod.inertia)):
        value = ca.Function("x", [p.symbol for p in ten], [a]).call([p.default for p in ten])[0]
        assert np.allclose(np.array(value), np.array(ca.DM(b)), atol=1e-12)
    rng = np.random.default_rng(3)
    m = pf.mechanism("rod", [free], [pf.joint("free", "free", "world", "rod")], parameters=ten)
    for _ in range(20):
        assert not pf.formats.unphysical(m, rng.normal(size=10) * 2)
    with pytest.raises(pf.ModelError, match="extent"):
        pf.identification.free_inertia(pf.body("point", mass=1.0))


def test_the_unseen_table_says_where_the_fit_loses() -> None:
    m = pendulum()
    fit = pf.fit(m, record(m, PENDULUM, ("hinge",), q={"hinge": 1.0}))
    table = fit.unseen(record(m, PENDULUM, ("hinge",), q={"hinge": -0.7}, seed=9), [0.2, 1.0])
    row = table.loc[(1.0, "q hinge")]
    assert row["fit"] < 0.02 < row["persistence"] and row["fit"] < row["start values"] and row["loses to"] == ""
    still = record(m, PENDULUM, ("hinge",), seed=9, noise=0.0)
    still["q"]["hinge"][:] = 0.3  # a pendulum that somebody holds
    assert "persistence" in fit.unseen(still, [0.5]).loc[(0.5, "q hinge"), "loses to"]


def good() -> dict[str, Any]:
    """A record without faults."""
    return record(pendulum(), PENDULUM, ("hinge",), q={"hinge": 1.0}, seconds=0.5)


BAD = {
    "back": ({"time": lambda x: x["time"][::-1]}, "record 0: time does not increase after sample 0"),
    "one": ({"time": lambda x: x["time"][:1]}, "two or more times"),
    "constant": ({"q": lambda x: 0 * x["time"] + 1.0}, "constant in all records"),
    "nan": ({"q": lambda x: 0 * x["time"] + np.nan}, "no measured number is finite"),
    "input": ({"u": lambda x: np.where(np.arange(51)[:, None] == 7, np.nan, x["u"])}, "'motor' is not finite at 0.07 s"),
    "another": ({"q": lambda x: {"knee": x["time"]}}, "there is no 'knee'.*hinge"),
    "what": ({"torque": lambda x: x["time"]}, "'torque' is neither"),
    "degrees": (
        {"q": lambda x: np.degrees(x["q"]["hinge"]), "v": lambda x: np.gradient(x["q"]["hinge"], 0.01)},
        r"units=\{'q': 'deg'\}",
    ),
}


@pytest.mark.parametrize("change, words", BAD.values(), ids=BAD.keys())
def test_bad_records_are_named(change: dict[str, Any], words: str) -> None:
    one = good()
    with pytest.raises(pf.ModelError, match=words):
        pf.fit(pendulum(), one | {name: f(one) for name, f in change.items()})


def test_degrees_are_read() -> None:
    one = good()
    plain = pf.fit(pendulum(), one, parameters=["m_r"], start=PENDULUM).values["m_r"]
    one["q"] = np.degrees(one["q"]["hinge"])
    assert np.isclose(pf.fit(pendulum(), one, parameters=["m_r"], start=PENDULUM, units={"q": "deg"}).values["m_r"], plain)


def test_records_and_options_that_are_none() -> None:
    m, one = pendulum(), good()
    for change, words in (
        ({"records": []}, "records"), ({"records": 3.0}, "records"), ({"parameters": ["mass"]}, "no 'mass'"),
        ({"unknown": {"v": "delay"}}, "no record measures 'v'"), ({"unknown": {"q": "noise"}}, "'noise'"),
        ({"start": {"mas": 1.0}}, "no parameter 'mas'"), ({"bounds": {"mass": (0, 1)}}, "not fitted"),
        ({"units": {"q": "parsec"}}, "'parsec'"), ({"horizon": -1.0}, "horizon"),
    ):  # fmt: skip
        with pytest.raises(pf.ModelError, match=words):
            pf.fit(m, **{"records": one, **change})


def test_a_run_is_a_record() -> None:
    m = pendulum()
    run = pf.run(m, {"hinge": 1.0}, duration=2.0, step=0.01, parameters=PENDULUM)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = pf.fit(m, run, parameters=["damping"], start={"m_r": 1.0, "I": 0.6})
    assert np.isclose(fit.values["damping"], 0.1, rtol=1e-6)


@pytest.mark.parametrize("more", ["q", "v"])
def test_a_number_that_is_zero_is_not_one_without_effect(more: str) -> None:
    """Records without noise of an oscillator without damping, and of sensors without offset and delay."""
    d, k = pf.Parameter("damping", 0.1, "N s/m"), pf.Parameter("stiffness", 5.0, "N/m")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k, damping=d)
    m, t = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[d, k]), np.arange(0.0, 4.0, 0.02)
    signals = {"q": np.cos(2 * t + 0.3), "v": -2 * np.sin(2 * t + 0.3)}
    known, word = {"q": ("q",), "v": ("q", "v")}[more], {"q": "offset", "v": "delay"}[more]
    fit = pf.fit(m, {"time": t, **{name: signals[name] for name in known}}, unknown={more: word})
    assert not fit.undetermined and np.isfinite(list(fit.half_widths.values())).all()
    assert abs(fit.values["damping"]) < 1e-6


def test_hidden_coordinates_hide_most_of_what_is_wrong() -> None:
    """The second one of two boxes on springs is not measured: its starts make up for a wrong mass, but not wholly."""
    mass = pf.Parameter("mass", 1.0, "kg")
    slides = [
        pf.joint("x", "prismatic", "world", "one", axis=(1, 0, 0), stiffness=20.0),
        pf.joint("y", "prismatic", "one", "two", axis=(1, 0, 0), stiffness=10.0),
    ]
    m = pf.mechanism("boxes", [pf.body("one", mass=2.0), pf.body("two", mass=mass)], slides, parameters=[mass])
    run = pf.run(m, {"x": 0.2, "y": -0.1}, duration=6.0, step=0.02)
    x = run.q.sel(coordinate="x").values + 2e-4 * np.random.default_rng(8).normal(size=run.time.size)
    record = {"time": run.time.values, "q": {"x": x}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        wrong, short = (pf.fit(m, record, start={"mass": 1.3}, bounds={"mass": (1.3, 1.3)}, horizon=h) for h in (1.0, 0.6))
    assert "false minimum" in wrong.doubt
    assert short.deviations["q x"] < 1.1 * 2e-4 and "do not go on from one segment to the next" in short.doubt
    for h in (1.0, 0.6):
        assert not pf.fit(m, record, start={"mass": 1.3}, horizon=h).doubt


def test_the_smallest_friction_that_predicts_as_well_is_proposed() -> None:
    def box(forces: tuple[Any, ...] = ()) -> pf.Mechanism:
        slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        return pf.mechanism("box", [pf.body("box", mass=2.0)], [slide], forces=forces)

    dry = pf.forces.joint_friction("dry", "x", 0.3, smooth=0.01)
    rng, records = np.random.default_rng(4), list[dict[str, Any]]()
    for start in (1.0, 0.6):
        run = pf.run(box((dry,)), {"x": start}, duration=4.0, step=1e-3, every=20, error_bound=np.inf)
        records.append({"time": run.time, "q": run.q.values + 1e-3 * rng.normal(size=run.q.shape)})
    laws = ("none", "viscous", "dry", "dry and viscous", "asymmetric")
    table = pf.identification.compare_friction(box(), *records, joints=["x"], horizon=1.0, size=0.1, laws=laws)
    assert table["proposed"].idxmax() == "dry" and table["error"]["viscous"] > 2
    found(table["fit"]["dry"], **{"dry x": 0.3})
    with pytest.raises(pf.ModelError, match="no law 'wet'"):
        pf.identification.compare_friction(box(), *records, joints=["x"], horizon=1.0, laws=["wet"])


def two_records(zeros: tuple[float, float] = (0.0, 0.0), late: tuple[int, int] = (0, 0)) -> dict[str, dict[str, Any]]:
    """Two records of a pendulum.   zeros: of the angle.   late: tenths of a sample by which the torques are late."""
    found = dict[str, dict[str, Any]]()
    for k, angle in enumerate((0.5, -1.0)):
        found[f"run {k}"] = record(pendulum(), PENDULUM, ("hinge",), q={"hinge": angle}, seed=k, late=late[k])
        found[f"run {k}"]["q"]["hinge"] += zeros[k]
    return found


def test_clocks_of_records_are_found() -> None:
    """Two loggers, of which one was started by hand in each record."""
    fit = pf.fit(pendulum(), two_records(late=(9, 3)), unknown={"u": "clock"}, parameters=["I"], start=PENDULUM)
    found(fit, I=0.6, **{"clock of u in run 0": 0.009, "clock of u in run 1": 0.003})
    assert set(fit.table["unit"]) == {"kg m^2", "s"}


def test_tangents_of_clocks_are_those_of_differences() -> None:
    words = ("clock", "gain", "zero")
    first = {"clock of q in run 1": 0.013, "gain of q hinge": 1.2, "zero of q hinge in run 0": 0.1}
    first |= {"clock of u in run 0": 0.003, "clock of u in run 1": -0.014}  # an input that is held has a kink at a sample
    fit = pf.fit(pendulum(), two_records(), unknown={"q": words, "u": ("clock", "gain")}, parameters=["I"], start=PENDULUM)
    at, x = fit.problem, fit.solution.fitted.x
    theta = np.array([first.get(name, value) for name, value in fit.values.items()])
    free = freedom(at.of.s.mechanism, x, at.p, at.segments.begin)
    _, J = residuals(at, theta, x, free, slice(None))
    k = free.basis.shape[2]
    for i in range(1, len(theta)):
        h = 1e-5 * (np.arange(len(theta)) == i)
        ends = [residuals(at, theta + sign * h, x, free, slice(None))[0] for sign in (-1.0, 1.0)]
        slope = (ends[0] - ends[1]) / 2e-5  # type: ignore[operator]
        assert np.nanmax(np.abs(slope - J[..., k + i])) < 1e3 * CENTRAL * np.nanmax(np.abs(slope)), at.names[i]


def test_zeros_of_records_are_not_those_of_unseen_ones() -> None:
    fit = pf.fit(pendulum(), two_records((0.05, -0.02)), unknown={"q": "zero"}, parameters=["damping"], start=PENDULUM)
    found(fit, **{"zero of q hinge in run 0": 0.05, "zero of q hinge in run 1": -0.02})
    errors = [fit.unseen({name: x}, [0.5])["fit"].iloc[0] for name, x in {"other": two_records()["run 0"]}.items()]
    errors += [fit.unseen({"run 1": two_records((0.0, -0.02))["run 1"]}, [0.5])["fit"].iloc[0]]
    assert max(errors) < 0.02
    assert fit.table["unit"]["zero of q hinge in run 1"] == "rad"


def test_rounding_to_counts_is_no_fault_of_the_equations() -> None:
    """A slow box whose place is read in steps of 2 mm: most neighbours are equal, and show no noise."""
    k = pf.Parameter("stiffness", 0.03, "N/m")
    slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
    m = pf.mechanism("box", [pf.body("box", mass=2.0)], [slide], parameters=[k])
    t, count = np.arange(0.0, 20.0, 0.005), 2e-3
    fit = pf.fit(m, {"time": t, "q": count * np.rint(0.02 * np.cos(0.1 * t) / count)}, horizon=20.0)
    assert not fit.doubt
    found(fit, stiffness=0.02)


def slider_crank() -> pf.Mechanism:
    """A slider-crank whose crank has a motor and an encoder."""
    load, friction = pf.Parameter("load", 1.6, "kg"), pf.Parameter("friction", 1.0, "N s/m")
    bodies = [pf.body("crank", 0.4, (0.05, 0, 0), 1e-3), pf.body("rod", 0.5, (0.15, 0, 0), 4e-3), pf.body("piston", load)]
    joints = [
        pf.joint("crank", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("rod", "revolute", "crank", "rod", axis=(0, -1, 0), placement=(0.1, 0, 0)),
        pf.joint("slide", "prismatic", "world", "piston", axis=(1, 0, 0), damping=friction),
    ]
    pin = pf.closure("pin", "revolute", "rod", "piston", axis=(0, -1, 0), placement_a=(0.3, 0, 0))
    return pf.mechanism(
        "slider-crank",
        bodies,
        joints,
        constraints=[pin],
        actuators=[pf.actuator("motor", "crank")],
        parameters=[load, friction],
    )


def test_loops_are_followed_across_gaps_and_outliers() -> None:
    """Guesses of the starts of a crank that turns evenly, with gaps of up to a turn, and outliers at the starts."""
    m, h, rate = slider_crank(), 2e-3, 20.0
    t = h * np.arange(600)
    for gap in range(40, 170, 10):
        q = rate * t
        q[[0, 150, 450]] += 0.3
        q[210 : 210 + gap] = np.nan
        layout = Measurements(("q",), (m.q_names,), m.u_names)
        records = (check("run", {"time": t, "q": {"crank": q}}, layout, {}),)
        segments = cut(records, 0.1)
        near = m.neutral() + np.array([0.0, 0.0, 0.4])
        x = guesses(m, layout, records, segments, near, m.p_defaults)
        known = np.isfinite(segments.y[:, 0, 0])
        angle = rate * segments.begin
        place = 0.1 * np.cos(angle) + np.sqrt(0.3**2 - (0.1 * np.sin(angle)) ** 2)
        assert np.abs(x[:, 2] - place)[known].max() < 5e-3 and np.abs(x[:, 3] - rate)[known].max() < 1e-3


def test_outliers_are_no_noise() -> None:
    y = np.cumsum(np.ones(500)) + 1e-2 * np.random.default_rng(2).normal(size=500)
    y[[17, 200, 333]] += 3.0
    one = CheckedRecord("run", np.arange(500.0), np.zeros((500, 0)), y[:, None])
    assert np.isclose(noise((one,))[0], 1e-2, rtol=0.15)
