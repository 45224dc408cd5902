"""Error estimates of a run's steps against closed forms, the part that the warning names, and the step that it advises."""

from __future__ import annotations

import re
import warnings

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.model.force import Potential
from pfaffian.simulate.error.accuracy import BOUND, StepErrorMonitor
from pfaffian.simulate.error.comparisons import Comparison, summed
from pfaffian.simulate.error.half_steps import HalfSteps
from pfaffian.simulate.run.run_options import ACCURACY
from tests.by_scipy import run_adaptive
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, four_bar, pendulum
from tests.simulate.test_resume import SWITCH, cart, law
from tests.tolerance import close


def block(*forces, **joint) -> pf.Mechanism:
    """1 kg on a rail."""
    rail = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0), **joint)
    return pf.mechanism("block", [pf.body("b", 1.0)], [rail], forces=forces, gravity=(0, 0, 0))


def coil(k: float) -> Potential:
    return pf.forces.potential("coil", lambda K: k / 2 * K.q[0] ** 2)


def cubic(k: float) -> Potential:
    return pf.forces.potential("cubic", lambda K: k / 4 * K.q[0] ** 4)


def warned(m, q=None, v=None, **how) -> tuple[list[str], object]:
    """The texts of a run's warnings, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = pf.run(m, q, v, **{"duration": 1.0, "backend": "interpreter", "every": 50} | how)
    assert all(w.category is pf.RunWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught], r


def advised(words: str) -> float:
    return float(re.search(r"step=([0-9.e-]+) would do", words)[1])


def heavy_top() -> pf.Mechanism:
    """The published benchmark: a top of 15 kg, its mass centre 1 m from a fixed point, spinning at 150 rad/s. [Geradin and
    Cardona 2001]"""
    body = pf.body("top", 15.0, com=(0, 1, 0), inertia=(0.234375, 0.46875, 0.234375))
    return pf.mechanism("heavy top", [body], [pf.joint("tip", "spherical", "world", "top")])


SPUN = pf.mechanism(
    "spun", [pf.body("b", 1.0, inertia=(0.02, 0.03, 0.04))], [pf.joint("f", "free", "world", "b")], gravity=(0, 0, 0)
)
TOP_SPEED = [0, 150, -4.61538]


# -- machines that are too fast for a step of 1 ms ----------------------------------------------------------------------


def test_a_spring_too_fast_for_the_step():
    """A spring of 1e6 N/m on 1 kg loses 97 % of its energy in a second at 1 ms."""
    (words,), r = warned(block(coil(1e6)), [0.01])
    lost = float(r.energy[-1] - r.energy[0])
    assert lost < -0.96 * float(r.energy[0])
    assert "the fastest part is potential 'coil', 1e+03 rad/s; " in words and "judging by its start" in words
    step = advised(words)
    fine = pf.run(block(coil(1e6)), [0.01], duration=1.0, step=step, every=round(0.1 / step))
    off = np.abs(fine.v.values[:, 0] + 10 * np.sin(1000 * fine.time.values)).max() / 10
    assert off < BOUND and float(fine.error.max()) < BOUND and 20 * step > 1e-4, "and the advised step is not far too short"
    close(fine.energy.values, np.full(11, 50.0), BOUND, "energy")


def test_the_fastest_part_of_a_large_machine_is_not_derived(monkeypatch):
    def never(*_):
        raise AssertionError("its derivatives take longer than everything else")

    monkeypatch.setattr("pfaffian.simulate.error.fastest.LARGE", 0)
    monkeypatch.setattr("pfaffian.simulate.error.fastest._part_slopes", never)
    (words,), _ = warned(block(coil(1e6)), [0.01])
    assert "fastest part" not in words and advised(words) < 1e-3


def turning(k):
    return k.q[0] - 0.3 * k.t


KEEPS = {
    "a spring": (lambda: block(coil(9e4)), {"q": [0.01]}, True),
    "a top": (lambda: heavy_top(), {"v": TOP_SPEED}, True),
    "a loop without its motor": (four_bar, {"q": FOUR_BAR_START, "v": {"a": 1.0}}, True),
    "a motor at work": (four_bar, {"q": FOUR_BAR_START, "u": [0.1]}, False),
    "a damper": (lambda: block(damping=0.1), {"v": [1.0]}, False),
    "a damped spring": (lambda: block(pf.spring("s", "world", "b", point_a=(-1, 0, 0), stiffness=1, damping=0.1)), {}, False),
    "a force": (lambda: block(pf.forces.generalised_force("f", lambda k: -k.v)), {"v": [1.0]}, False),
    "a potential that swings": (lambda: block(pf.forces.potential("f", lambda k: k.q[0] * ca.sin(k.t))), {}, False),
    "a moving constraint": (lambda: pendulum(motor=False).with_(constraints=(pf.holonomic("turn", turning),)), {}, False),
    "an edge that slides": (lambda: block().with_(constraints=(pf.nonholonomic("r", lambda k: k.v[0]),)), {}, True),
    "a rate to hold": (lambda: block().with_(constraints=(pf.nonholonomic("r", lambda k: k.v[0] - 1),)), {}, False),
    "a law": (pendulum, {"control": control.Control(lambda T, z, w, y: control.Command(-T.v))}, False),
}


@pytest.mark.parametrize("case", KEEPS)
def test_energy_error_is_the_change_of_energy_where_no_power_flows(case):
    make, how, keeps = KEEPS[case]
    _, r = warned(make(), **{"duration": 0.2, "error_bound": np.inf} | how)
    made, change = float(r.energy_error), float(r.energy[-1] - r.energy[0])
    assert r.energy_error.attrs["units"] == "J" and (made == change if keeps else 0 <= made < 1e-6)


def test_lost_energy_warns_although_comparisons_show_no_error(monkeypatch):
    monkeypatch.setattr(HalfSteps, "_error", lambda self, apart, size: np.zeros_like(apart))
    (words,), r = warned(block(coil(1e6)), [0.01])
    assert f"and {float(r.energy_error):+.2g} J of energy" in words and "potential 'coil'" in words
    (words,), r = warned(block(coil(1e6)), [0.01], error=False)
    of_speed = -float(r.energy_error) / (2 * float(r.kinetic_energy.max()))
    assert f"an error of {of_speed:.2g} and" in words, "energy is lost by speed: dE = m v dv"


def test_a_body_that_spins():
    """About a principal axis the quaternion falls behind by (w h)^5 / 5120 in each step of RK4."""
    (words,), r = warned(SPUN, None, {"f.wz": 300.0})
    behind = 1000 * 0.3**5 / 5120
    close(r.error.max(), behind, 0.05, "angle lost")
    assert f"an error of {behind:.2g}, judging" in words and "the fastest part is the spin of joint 'f', 300 rad/s" in words
    step = advised(words)
    fine = pf.run(SPUN, None, {"f.wz": 300.0}, duration=1.0, step=step, every=round(1 / step))
    x, y = fine.q.values[-1, 5:]
    off = abs((300 - 2 * np.arctan2(x, y) + np.pi) % (2 * np.pi) - np.pi)
    assert off < BOUND and float(fine.error.max()) < BOUND


def test_a_body_that_tumbles_at_300_rad_s():
    v = np.array([0, 0, 0, 170.0, 180.0, 170.0])
    (words,), r = warned(SPUN, None, v, duration=0.5)
    exact = run_adaptive(SPUN, None, v, times=[0, 0.5], tolerance=1e-13)
    turned = Rotation.from_quat(r.q.values[-1, 3:]).inv() * Rotation.from_quat(exact.q.values[-1, 3:])
    assert turned.magnitude() > 4e-4
    assert 0.1 * turned.magnitude() < float(r.error.max()) < 10 * turned.magnitude()
    assert "'f'" in words
    step = advised(words)
    fine = pf.run(SPUN, None, v, duration=0.5, step=step, every=round(0.5 / step))
    off = Rotation.from_quat(fine.q.values[-1, 3:]).inv() * Rotation.from_quat(exact.q.values[-1, 3:])
    assert off.magnitude() < BOUND


def test_the_published_heavy_top():
    (words,), r = warned(heavy_top(), None, TOP_SPEED, duration=2.0)
    exact = run_adaptive(heavy_top(), None, TOP_SPEED, times=[0, 2.0], tolerance=1e-13)
    off = (Rotation.from_quat(r.q.values[-1]).inv() * Rotation.from_quat(exact.q.values[-1])).magnitude()
    assert off > 1e-4 and 0.05 * off < float(r.error.max()) < 10 * off, (off, float(r.error.max()))
    assert "the spin of joint 'tip', 150 rad/s" in words
    fine = pf.run(heavy_top(), None, TOP_SPEED, duration=2.0, step=advised(words), every=10**6)
    fine = pf.run(heavy_top(), start_from=fine, duration=0.0, step=advised(words), every=1)
    off = (Rotation.from_quat(fine.q.values[-1]).inv() * Rotation.from_quat(exact.q.values[-1])).magnitude()
    assert off < BOUND


def test_a_cubic_spring_under_tr_bdf2():
    """TR-BDF2 damps stiff motion, also where it is the motion of interest."""
    m, scheme = block(cubic(1e6)), pf.Scheme(integrator="tr-bdf2")
    (words,), r = warned(m, [0.1], scheme=scheme)
    assert float(r.energy[-1]) < 0.999 * float(r.energy[0])
    assert "the fastest part is potential 'cubic', 173 rad/s; step=" in words


def test_iterations_that_do_not_converge_name_the_spring_and_a_step():
    m, scheme = block(cubic(1e8)), pf.Scheme(integrator="tr-bdf2")
    (words,), r = warned(m, [0.1], scheme=scheme)
    assert "the fastest part is potential 'cubic', 1.73e+03 rad/s: a step of 0.0003 s follows it" in words
    assert (
        float(pf.run(m, [0.1], duration=0.1, step=3e-4, scheme=scheme, backend="interpreter", error_bound=np.inf).status) == 0
    )
    assert "potential 'cubic'" in pf.results.causes(r)[0]


@pytest.mark.parametrize("damping", [5e3, 1e9])
def test_a_damper_too_fast_for_the_step(damping):
    found, r = warned(block(damping=damping), [0.1], [1.0])
    words = f"the fastest part is damper of joint 'x', {damping:.3g} 1/s"
    assert (
        words in found[-1]
        and words in pf.results.causes(r)[0]
        and "integrator='tr-bdf2') is stable without following what decays so fast" in found[-1]
    )
    assert len(found) == 2, "one warning before the run, and one of its stop"
    assert pf.results.causes(r)[0].startswith("diverged")
    quiet = {"backend": "numpy", "error_bound": np.inf}  # the first steps do not follow how the block stops
    over = pf.run(block(damping=damping), [0.1], [1.0], duration=1.0, scheme=pf.Scheme(integrator="tr-bdf2"), **quiet)
    close(over.q.values[-1, 0], 0.1 + 1 / damping, 0.01 / damping, "comes to rest")


def test_a_slow_spring_is_not_named_as_the_cause_of_a_stop():
    found, r = warned(
        block(coil(100.0), pf.forces.generalised_force("ends", lambda k: ca.sqrt(0.05 - k.t))), [0.1], duration=0.1
    )
    assert found and not any("the fastest part is" in words for words in [*found, *pf.results.causes(r)])


STIFF = 4e6
"""[N/m] at 1 kg: a step of 1 ms damps the motion by a quarter, so that nothing is left of it a tenth of a second later."""


def stiff_from(begin: float, end: float) -> Potential:
    return pf.forces.potential("late", lambda K: ca.if_else(ca.logic_and(K.t > begin, K.t < end), STIFF, 1.0) * K.q[0] ** 2 / 2)


def switched(begin: float, end: float = 9.0) -> tuple[pf.Mechanism, dict]:
    """A block on a spring that a switch makes stiff for a while."""
    k = pf.Parameter("k", 1.0, "N/m")
    rail = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0), stiffness=k)
    m = pf.mechanism("block", [pf.body("b", 1.0)], [rail], parameters=[k], gravity=(0, 0, 0))
    return m, {"switches": {"k": lambda K: ca.if_else(ca.logic_and(K.t > begin, K.t < end), STIFF, 1.0)}}


@pytest.mark.parametrize(
    ("m", "how", "words"),
    [
        (block(stiff_from(1.2, 9.0)), {"record": ["energy"]}, "the spring of potential 'late', 2e+03 rad/s"),
        (block(stiff_from(1.9, 9.0)), {"record": ["energy"]}, "the spring of potential 'late', 2e+03 rad/s"),
        (*switched(1.2), "the spring of joint 'x', 2e+03 rad/s"),
        (*switched(1.2, 1.9), "the spring of joint 'x', 2e+03 rad/s"),
        (
            *[x if isinstance(x, pf.Mechanism) else x | {"record": ["energy"]} for x in switched(1.2)],
            "the spring of joint 'x', ",
        ),
    ],
)
def test_a_spring_that_becomes_too_fast_between_comparisons_is_named(m, how, words):
    """No step is compared while the spring is stiff, and at the end its motion has decayed."""
    for q, v in (([0.1], [0.3]), ([[0.0], [0.1]], [[0.0], [0.3]])):
        found, _ = warned(m, q, v, duration=2.0, **how)
        assert len(found) == 1 and found[0].startswith(words) and "became shorter than the step of 0.001 s" in found[0]


@pytest.mark.parametrize("end", [9.0, 1.9])
def test_a_step_is_compared_where_recorded_speeds_turn_fast(end):
    """The same springs in runs that record their states."""
    for q, v in (([0.1], [0.3]), ([[0.0], [0.1]], [[0.0], [0.3]])):
        found, _ = warned(block(stiff_from(1.2, end)), q, v, duration=2.0)
        # The fast spring reverses the motion: the true error is 0.999 of the largest position or more.
        assert len(found) == 1 and re.search(r"an error of (more than 1|0\.9)", found[0])
        assert "the fastest part is potential 'late', 2e+03 rad/s" in found[0] and advised(found[0]) < 1e-4


def test_what_was_too_fast_from_the_start_is_named_once():
    line = pf.spring("line", "world", "b", point_a=(-1, 0, 0), stiffness=1.0, rest=1.0)
    found, _ = warned(block(line, pf.forces.potential("even", lambda K: STIFF * K.q[0] ** 2 / 2)), duration=0.1)
    assert len(found) == 1 and "time constants shorter" in found[0]
    assert warned(block(line, stiff_from(0.02, 0.04)), [0.1], duration=0.1, scheme=pf.Scheme(integrator="tr-bdf2"))[0] == []


# -- the part that the warning names ------------------------------------------------------------------------------------


def steered(T, z, w, y):
    return control.Command(-4e5 * T.q - 500 * T.v)


@pytest.mark.parametrize(
    ("words", "make", "how"),
    [
        ("spring 'line', ", lambda: block(pf.spring("line", "world", "b", point_a=(-1, 0, 0), stiffness=1e6, rest=1.0)), {}),
        ("the damping of spring 'line', ",
         lambda: block(pf.spring("line", "world", "b", point_a=(-1, 0, 0), stiffness=1, rest=1.0, damping=900.0)),
         {"every": 1}),
        ("damper of joint 'x', 1.99e+03 1/s", lambda: block(coil(1.0), stiffness=1e4, damping=2e3), {}),
        ("spring of joint 'x', 1e+03 rad/s", lambda: block(coil(1.0), stiffness=1e6), {}),
        ("the control law, ", lambda: pf.actuate_all(block(coil(1.0))), {"control": control.Control(steered)}),
        ("gravity, ", lambda: pf.mechanism(
            "pendulum", [pf.body("bob", 1.0, com=(0, 0, -1))], [pf.joint("x", "revolute", "world", "bob", axis=(0, 1, 0))],
            gravity=(0, 0, -2e5)), {}),
    ],
)  # fmt: skip
def test_the_fastest_part_is_named(words, make, how):
    found, _ = warned(make(), {"x": 0.1}, {"x": 0.2}, duration=0.2, **how)
    assert f"the fastest part is {words}" in found[0], found


def test_frequency_of_a_spring_in_a_loop_is_that_of_the_constrained_machine():
    """The frequency is that of the linearised four-bar on its constraints."""
    at = FOUR_BAR_START[2]
    m = four_bar().with_(forces=[pf.forces.potential("stop", lambda k: 1e6 * (k.joint("d") - at) ** 2)])
    found, _ = warned(m, FOUR_BAR_START, {"a": 0.5}, duration=0.2)
    assert "the fastest part is potential 'stop', " in found[0]
    T = pf.linearise(m, FOUR_BAR_START, {"a": 0.0})
    rate = float(re.search(r"'stop', ([0-9.e+]+) rad/s", found[0])[1])
    close(rate, T.frequencies.max(), 0.02, "its frequency, compared with the linearised four-bar")


def test_errors_of_compared_steps_are_summed_as_exponentials():
    """Of four runs compared at steps 0, 10, 20 and 30 of 40: the last compared step counts for all after it. The second stops
    at step 15; a jump counts in the last alone, in most of whose compared steps something jumps."""
    k, end = np.arange(4) * 10, 40
    errors = np.tile(np.exp(-0.1 * k), (4, 1))
    errors[2:, 2], jumps = 1e3, np.zeros((4, 4), dtype=bool)
    jumps[2, 2], jumps[3, 1:] = True, True
    none = np.zeros((4, 0))
    found = [Comparison(int(at), errors[:, [i]], none, none, none, jumps[:, i]) for i, at in enumerate(k)]
    total = summed(found, [c.error for c in found], np.array([-1, 15, -1, -1]), end)[:, 0]
    first, second, last = 10 * (1 - np.exp(-1)), 10 * (np.exp(-1) - np.exp(-2)), 10 * np.exp(-3)
    close(total[0], 10 * (1 - np.exp(-3)) + last, 1e-12, "the integral")
    close(total[1], first + second / 2, 1e-12, "half of the interval in which it stops")
    kept = first + 10 * np.exp(-1) + 10 * (np.exp(-1) - np.exp(-3)) / 2 + last
    close(total[2], kept, 1e-12, "a jump has the error of the compared step before it")
    assert total[3] > 1e3


# -- runs without a warning -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "q", "v"),
    [
        (pendulum(), [2.0], [1.0]),
        (pendulum(), None, None),
        (four_bar(), FOUR_BAR_START, {"a": 2.0}),
        (block(coil(100.0), damping=3.0), [0.5], None),
        (pf.reduction.hamiltonian(pendulum()), [2.0], [1.0]),
    ],
)
def test_accurate_runs_do_not_warn(m, q, v):
    found, r = warned(m, q, v, duration=0.2)
    assert found == [] and 0 <= float(r.error.max()) < BOUND / 10
    exact = run_adaptive(m, q, v, times=[0, 0.2], tolerance=1e-13)
    assert float(abs(r.v[-1] - exact.v[-1]).max()) < BOUND


@pytest.mark.parametrize("when", [3e-4, 0.3003])
def test_a_jump_in_a_force_counts_as_the_error_of_one_step(when):
    """Only the step with the jump has the error, also where it is the step that is compared."""
    m = block(pf.forces.generalised_force("kick", lambda k: ca.if_else(k.t > when, 5.0, 0.0)), coil(100.0))
    _, r = warned(m, [0.5], duration=0.4)
    exact = pf.run(m, [0.5], duration=0.4, step=1e-4, every=4000)
    off = float(abs(r.v[-1] - exact.v[-1])[0]) / 5
    assert not float(r.error.max()) > 5 * off and off < 1e-3


def test_the_callers_error_bound_is_used():
    found, r = warned(block(coil(1e6)), [0.01], error_bound=np.inf)
    assert found == [] and float(r.error.max()) > BOUND
    (words,), _ = warned(pendulum(), [2.0], [1.0], error_bound=1e-9, step=0.01)
    assert "more than 1e-09" in words
    for wrong in (0, -1.0, "much", np.nan, [1.0]):
        with pytest.raises(pf.ModelError, match="error_bound"):
            pf.run(pendulum(), duration=0.1, error_bound=wrong)


def test_slow_decay_is_no_reason_to_advise_tr_bdf2():
    """Euler also has errors in a decay of 5 1/s; a more accurate explicit integrator follows that."""
    (words,), _ = warned(block(damping=5.0), None, [1.0], scheme=pf.Scheme(integrator="euler"))
    assert "integrator='rk4') follows it" in words and "tr-bdf2" not in words


def rod(stiffness: float) -> pf.Mechanism:
    """A pendulum with an elastic rod."""
    bodies = [pf.body("hinge", 0.2, inertia=0.01), pf.body("bob", 1.0, inertia=0.01)]
    joints = [pf.joint("swing", "revolute", "world", "hinge", axis=(0, 1, 0)),
              pf.joint("stretch", "prismatic", "hinge", "bob", axis=(1, 0, 0), placement=pf.pose((1, 0, 0)),
                       stiffness=stiffness)]  # fmt: skip
    return pf.mechanism("rod", bodies, joints)


def test_damped_stiff_motion_adds_no_error():
    """A rod of 1e8 N/m under tr-bdf2 swings as a rigid one does; its stretching is not judged by itself."""
    scheme = pf.Scheme(integrator="tr-bdf2")
    found, r = warned(rod(1e8), {"swing": 0.3}, duration=0.3, scheme=scheme)
    _, fine = warned(rod(1e8), {"swing": 0.3}, duration=0.3, step=2.5e-4, every=200, error_bound=np.inf, scheme=scheme)
    assert found == [] and float(abs(r.q - fine.q).sel(coordinate="swing").max()) < BOUND


# -- batches, laws, bits ----------------------------------------------------------------------------------------------


def test_a_batch_warns_once_and_names_the_run_of_largest_error():
    stiffness = pf.Parameter("k", 1.0)
    m = block(coil(stiffness.symbol)).with_(parameters=[stiffness])
    k = np.array([1e2, 2e5, 1e2, 1e2, 1e6])
    found, r = warned(m, [0.01], parameters={"k": k}, duration=0.3, error=True)
    (words,) = found
    assert "of 5 runs (run 4 the most) of 'block'" in words and "1e+03 rad/s" in words
    assert ((r.error.max(["time", "error_kind"]).values > BOUND) == (k > 1e3)).all()
    for i in (0, 1, 4):
        _, alone = warned(m, [0.01], parameters={"k": k[i]}, duration=0.3)
        assert float(alone.error.max()) == float(r.error[i].max()) and float(alone.energy_error) == float(r.energy_error[i])


@pytest.mark.parametrize("integrator", ["rk4", "euler", "midpoint", "tr-bdf2"])
def test_the_estimate_follows_the_error(monkeypatch, integrator):
    """For a smooth swing, at any order."""
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.WORK_PER_COMPARISON", 100)
    m, how = pendulum(), {"scheme": pf.Scheme(integrator=integrator), "step": 0.01, "error_bound": np.inf, "duration": 1.6}
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.STEPS_PER_COMPARISON", 20)
    _, r = warned(m, [1.0], [0.5], every=1, **how)
    exact = run_adaptive(m, [1.0], [0.5], times=r.time.values, tolerance=1e-13)
    off = float(abs(r.q - exact.q).max())
    assert 0.1 * off < float(r.error.max()) < 30 * off


DRIVEN = {
    "law": {"control": law(), "switches": SWITCH, "seed": 4},
    "held": {"u": np.random.default_rng(1).normal(size=(65, 1)), "u_step": 4e-3},
    "linear": {"u": np.random.default_rng(1).normal(size=(66, 1)), "u_step": 4e-3, "hold": "linear"},
}


@pytest.mark.parametrize("how", DRIVEN)
def test_a_compared_step_has_the_inputs_of_the_run(monkeypatch, how):
    """With a delayed law in discrete time and modes, or with a series of inputs, a compared step has the bits of the run's
    own step."""
    seen, advance = [], HalfSteps.advance

    def advance_recorded(self, k, x, some, n=1):
        found = advance(self, k, x, some, n)
        seen.append((k, n, found.x.copy()))
        return found

    monkeypatch.setattr(HalfSteps, "advance", advance_recorded)
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.WORK_PER_COMPARISON", 100)
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.STEPS_PER_COMPARISON", 30)
    # Comparisons fall on steps that are no multiple of the sampling time or the period.
    r = pf.run(
        cart(), {"x": 0.3}, {"x": -8.0}, duration=0.257, step=1e-3, backend="interpreter", error_bound=np.inf, **DRIVEN[how]
    )
    assert sum(n == 1 for _, n, _ in seen) >= 6
    for k, n, x in seen:
        there = np.r_[r.q.values[k + 1], r.v.values[k + 1]]
        if n == 1:
            np.testing.assert_array_equal(x[0, :-1], there)
        else:
            np.testing.assert_allclose(x[0, :-1], there, rtol=0, atol=1e-12)


def test_comparing_steps_changes_no_bit_of_a_run(monkeypatch):
    m, how = ball_and_plane(), {"duration": 0.6, "step": 0.01, "error_bound": 1e-9}
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.WORK_PER_COMPARISON", 100)
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.STEPS_PER_COMPARISON", 8)
    with pytest.warns(pf.RunWarning, match="give the run"):
        looked = pf.run(m, None, {"elbow": 2.0}, **how)
    monkeypatch.setattr(StepErrorMonitor, "at", ())
    plain = pf.run(m, None, {"elbow": 2.0}, **how)
    assert "energy_error" in looked and "energy_error" not in plain
    np.testing.assert_array_equal(looked.q.values, plain.q.values)
    np.testing.assert_array_equal(looked.end_state.values, plain.end_state.values)


def test_short_batches_compare_steps_in_some_of_their_runs():
    r = pf.run(pendulum(), np.linspace(0, 1, 100)[:, None], duration=0.01, backend="interpreter")
    assert np.isfinite(r.energy_error.values).all()
    assert np.isnan(pf.run(pendulum(), duration=0.0, backend="interpreter").error.values).all()


def test_a_start_at_rest_is_compared_again_later():
    """A push that grows from almost nothing moves a block on a spring: by the middle of the run it swings."""
    push = pf.forces.generalised_force("push", lambda k: 1e-9 + 1e3 * k.t**4)
    r = pf.run(block(push, coil(1e4)), duration=1.0, backend="interpreter", error_bound=np.inf)
    assert 0 < float(r.error.max()) < BOUND


@pytest.mark.parametrize("steps", [2, 10, 100])
def test_a_few_steps_from_rest_suffice_for_an_estimate(steps):
    """A pendulum hangs still until a motor pushes it in the second half of the run."""
    u = np.zeros((steps, 1))
    u[steps // 2 :] = 5.0
    r, fine = (pf.run(pendulum(), u=u, u_step=0.05, duration=steps * 0.05, step=h, backend="interpreter", error_bound=np.inf)
               for h in (0.05, 0.0025))  # fmt: skip
    off = np.abs(fine.v.values[-1] - r.v.values[-1]).max() / np.abs(fine.v.values).max()
    assert 0 < off < 20 * float(r.error.max()) < 1e-2 and float(r.energy_error) > 0


def test_an_initial_transient_that_settles_does_not_warn():
    """A push against a damper: the errors of the first steps cancel within some 20 steps."""
    m = block(pf.forces.generalised_force("push", lambda k: 1.0), damping=200.0)
    found, r = warned(m, duration=1.0, step=1e-3, every=1)
    exact = (1 - np.exp(-200 * r.time.values)) / 200
    true, told = np.abs(r.v.values[:, 0] - exact).max() * 200, float(r.error.max())
    assert found == [] and true / 2 < told < 2 * true and told < BOUND


@pytest.mark.parametrize("make, start", [(heavy_top, (None, [0, 60, -4.6])), (lambda: block(coil(2700.0)), ([0.1], [3.0]))])
def test_a_run_without_step_or_accuracy_is_right_to_a_millionth_or_says_where_it_is_not(make, start):
    """The same steps are without a word if the caller chose them: their error is below the bound of a chosen step."""
    m, how = make(), {"duration": 3.0, "every": 100}
    (words,), r = warned(m, *start, **how)
    found, chosen = warned(m, *start, step=1e-3, **how)
    exact = pf.run(m, *start, times=r.time.values, accuracy=1e-10, backend="interpreter")
    off = np.abs(r.v.values - exact.v.values).max(axis=1) / np.abs(exact.v.values).max()
    told = r.error.values.max(axis=1)
    assert ACCURACY < off.max() < BOUND and (off <= 3 * told + ACCURACY / 10).all()
    assert f"more than {ACCURACY:g}" in words and f"accuracy={ACCURACY:g} takes the steps that it needs" in words
    assert found == [] and (chosen.q == r.q).all()
    assert not warned(m, *start, duration=3.0, step=advised(words), error_bound=ACCURACY)[0]


def test_an_advised_step_stays_a_tenth_below_the_bound():
    """A pendulum of 2 s a swing: half the step would be just within it, and no more where the motion became faster."""
    (words,), _ = warned(pendulum(motor=False), [0.3], duration=2.0, step=0.1, every=1)
    found, r = warned(pendulum(motor=False), [0.3], duration=2.0, step=advised(words), every=1)
    assert not found and float(r.error.max()) < 0.1 * BOUND


def test_a_motion_that_grows_is_not_said_to_decay():
    """Its error does not end with it, and no integrator may leave it out."""
    grows = block(pf.forces.generalised_force("push", lambda k: 30 * k.v))
    (words,), _ = warned(grows, v=[1.0], duration=0.5, step=0.05, every=1)
    assert "the damping of generalisedforce 'push', 30 1/s and grows" in words and "tr-bdf2" not in words


@pytest.mark.parametrize("spin, named", [(15.0, "spring of joint 'rail', 10 rad/s"), (25.0, "the spin of joint 'ball', 25")])
def test_a_quaternion_turns_by_half_the_angle_of_a_spin(spin, named):
    """Beside a spring of 10 rad/s it is the faster one from 20 rad/s on."""
    joints = [
        pf.joint("ball", "spherical", "world", "top"),
        pf.joint("rail", "prismatic", "world", "block", axis=(1, 0, 0), stiffness=100.0),
    ]
    bodies = [pf.body("top", 1.0, inertia=1.0), pf.body("block", 1.0)]
    m = pf.mechanism("pair", bodies, joints, gravity=(0, 0, 0))
    found, _ = warned(m, {"rail": 1.0}, [0, 0, spin, 0], step=0.05, every=1)
    assert any(f"the fastest part is {named}" in words for words in found), found
