"""Runs that stop are reported once, with counts by cause and the element responsible."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.command import Fault
from pfaffian.model.constraint import Constraint
from pfaffian.simulate.record.result import causes_of, status_of
from pfaffian.simulate.step.faults import Faults
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.states.system import as_system
from tests.by_scipy import run_adaptive
from tests.simulate.machines import pendulum
from tests.simulations import simulation

GAIN = pf.Parameter("gain", 0.0)


OUT = pf.servo(pf.holonomic("out", lambda k: k.position("held", (1, 0, 0))[0]), ["motor"])
"""The motor of the second rod shall control the position of its tip along x, along which the rod at q = 0 cannot move it."""


def rods(*servos: Constraint) -> pf.Mechanism:
    """A rod with negative damping of a given gain, and a second one with a motor."""
    bodies = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.1) for n in ("wild", "held")]
    joints = [pf.joint(n, "revolute", "world", n, damping=-GAIN if n == "wild" else 0.0) for n in ("wild", "held")]
    return pf.mechanism("rods", bodies, joints, constraints=servos, actuators=[pf.actuator("motor", "held")], parameters=[GAIN])


def warned(**arguments) -> tuple[list[str], object]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = pf.run(**{"m": rods(), "duration": 0.3, "step": 1e-2, "backend": "interpreter", "error_bound": np.inf} | arguments)
    assert all(w.category is pf.RunWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught], r


def test_runs_that_finish_do_not_warn() -> None:
    found, r = warned(v={"wild": 1.0})
    assert found == [] and pf.results.causes(r) == ["finished"] and "reason" not in r


def test_a_batch_warns_once_with_the_number_and_causes_of_stops() -> None:
    q = np.array([[0, 1.0], [0, 1.0], [0, 0.0], [0, 1.0], [0, 0.0], [0, 1.0]])
    found, r = warned(m=rods(OUT), q=q, v={"wild": 1.0}, parameters={"gain": [0, 50, 0, 6e4, 0, 7e4]}, every=3)
    before, words = found
    assert "'wild'" in before and "time constants shorter than the step" in before, "one warning before the run"
    assert float(r["stopped"][3]) < float(r["stopped"][1])
    assert words.startswith("5 of 6 runs stopped: 3 diverged: the state grew"), words
    assert f"(run 3 first, at t = {float(r['stopped'][3]):.6g} s); the fastest part is damper of joint 'wild', " in words
    assert "; 2 servo constraint not realisable: " in words
    assert "(run 2 first, at t = 0 s); its last state is not realisable: rank 0 of 1" in words
    assert pf.results.causes(r)[0] == "finished" and pf.results.causes(r.isel(run=4)) == [pf.results.causes(r)[2]]


def test_a_single_run_warns_with_its_cause() -> None:
    found, r = warned(v={"wild": 1.0}, parameters={"gain": 1e5})
    assert found[1:] == [f"the run stopped: {pf.results.causes(r)[0]}"] and "diverged" in found[1]
    assert "time constants shorter than the step" in found[0], "one warning before the run"


@pytest.mark.filterwarnings("ignore:.*encountered in dot:RuntimeWarning")
def test_an_adaptive_run_warns_too() -> None:
    with pytest.warns(pf.RunWarning, match="the run stopped: diverged"):
        run_adaptive(pendulum(damping=-50.0), [0.1], [1.0], times=np.linspace(0, 100, 11))


@pytest.mark.parametrize("law", [control.computed_torque, control.operational_space])
def test_laws_that_ignore_the_constraints_blame_the_joints(law) -> None:
    """A constraint fixes the second task coordinate, which these laws ignore; the first cannot be controlled at q = 0."""
    task = control.stack(control.point("held", (1, 0, 0), (0,)), control.joints("wild"))
    m = pf.actuate_all(rods(pf.holonomic("hold", lambda k: k.q[0])))
    steer = law(task, control.set_point([0.5, 0.0]), stiffness=1.0, damping=2.0)
    _, r = warned(m=m, q=np.zeros(2), control=steer)
    assert pf.results.causes(r)[0].endswith(
        "the joints leave task coordinate 0 the least motion, 0, where 1 is unrestricted"
    ), pf.results.causes(r)


@pytest.mark.parametrize("state", [lambda m: m, pf.reduction.hamiltonian], ids=["[q; v]", "[q; p]"])
def test_each_run_without_a_hold_names_its_servo_constraint(tmp_path, state) -> None:
    """Also after a round trip through a file, and for a state other than q and v."""
    found, r = warned(m=state(rods(OUT)), q=np.zeros((2, 2)))
    assert found[0].startswith("2 of 2 runs stopped: 2 servo constraint not realisable")
    words = "its last state is not realisable: rank 0 of 1, smallest singular value 0"
    words += "; no control direction acts on 'out'"
    assert [str(w) for w in r["reason"].values] == [f"{words}; without effect: 'motor'"] * 2
    assert all("acts on 'out'" in cause for cause in pf.results.causes(r))
    pf.results.write_netcdf(r, tmp_path / "r.nc")
    assert pf.results.causes(pf.results.read_netcdf(tmp_path / "r.nc")) == pf.results.causes(r)


def test_every_run_of_a_large_batch_has_its_reason() -> None:
    """Half of 4096 runs lose a hold, then a law; each run has the reason that it has alone, whichever others stopped
    before."""
    runs, q = 4096, np.zeros((4096, 2))
    q[:, 0] = np.linspace(0.0, 0.5, runs)
    _, r = warned(m=rods(OUT), q=q, duration=0.01)
    words = [str(w) for w in r["reason"].values]
    assert all(w.startswith("its last state is not realisable: rank 0 of 1") for w in words)
    law = control.operational_space(control.point("held", (1, 0, 0), (0,)), control.set_point([0.5]), stiffness=1, damping=2)
    m = pf.actuate_all(rods())
    q[1::2, 1] = 0.5
    _, r = warned(m=m, q=q, duration=0.01, control=law)
    stopped = r["status"].values != 0
    assert stopped[::2].all() and not stopped[1::2].any()
    assert all("task coordinate 0 the least motion" in str(w) for w in r["reason"].values[stopped])
    assert not any(str(w) for w in r["reason"].values[~stopped])


@pytest.mark.parametrize("often", [None, 0.02], ids=["continuous", "every 20 ms"])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_reference_that_ends_is_named(often, backend) -> None:
    """The reference is named in addition to the effect on the state; each run of a batch has its own parameters, and no
    reference is named where the run diverges by itself."""
    end = pf.Parameter("end", 0.1, "s")
    task = control.stack(control.joints("held"), control.joints("wild"))
    goal = control.function_of_time(lambda t: [np.sqrt(end - t), 0], 2)
    law = control.projected(task, goal, stiffness=1.0, damping=2.0)
    law = law if often is None else control.discrete(law, period=often)
    m = pf.actuate_all(rods()).with_(parameters=[GAIN, end])
    _, r = warned(
        m=m, v={"wild": 1.0}, control=law, parameters={"end": [0.094, 0.194, 9.0, 9.0], "gain": [0, 0, 0, 9e4]}, backend=backend
    )
    first, second, third, fourth = pf.results.causes(r)
    late = 0.005 if often else 0.0
    words = "the value of the reference 'reference' is no number at t = {:g} s"
    assert first.startswith("diverged") and first.endswith(words.format(0.095 + late))
    assert second.endswith(words.format(0.195 + late))
    # A law in continuous time compensates the gain; one that is evaluated every 20 ms does not.
    assert third == "finished" and "reference" not in fourth and fourth.startswith("diverged" if often else "finished")


def test_a_reference_of_an_output_that_ends_is_named() -> None:
    outputs = [
        control.output(body, "position", goal, stiffness=1.0, damping=2.0, axes=(1,), at=(1, 0, 0))
        for body, goal in zip(("held", "wild"), (lambda t: [0.1 * t], lambda t: [0.2 + 0.01 * np.sqrt(0.054 - t)]), strict=True)
    ]
    _, r = warned(m=pf.actuate_all(rods()), q=[0.3, 0.3], control=control.concurrent(outputs), duration=0.2)
    assert "the value of the reference of <Output: position of 'wild'> is no number at t = 0.055 s" in pf.results.causes(r)[0]


def test_a_fault_is_identified_by_its_place_and_not_by_its_words():
    same = Fault("the same words")
    faults = Faults(law=(same, same), servo=(same,), integrator=(same,), python=(same,))
    assert [faults.place(kind) for kind in faults._fields] == [0, 2, None, None, None, None, 3, None, None, None, None, 4]
    assert faults.listed() == (same,) * 5 and Faults().listed() == ()


def test_a_law_may_have_a_fault_with_the_words_of_the_integrator():
    """The law's fault is not taken for that of the integrator, which comes after it."""
    words = INTEGRATORS["midpoint"].faults[0]
    law = control.Control(lambda T, z, w, y: control.Command([0.0], faults=T.t > 0.015), faults=(words,))
    s = simulation(as_system(rods()), pf.Scheme(integrator="midpoint"), law)
    every = causes_of(s)
    assert [i for i, cause in enumerate(every) if cause == words] == [status_of(s, "law"), status_of(s, "integrator")]
    assert status_of(s, "servo") == -1
