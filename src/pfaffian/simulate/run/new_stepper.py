"""stepper: a machine, or many of one kind, for a loop of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack, overload

from pfaffian.control.law import Control
from pfaffian.errors import ModelError
from pfaffian.evaluate.single_values import MOST_THREADS, as_flag, as_number, as_whole
from pfaffian.kernel.call.recipe import Backend, check_options
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.run.accuracy_request import PAIR, as_accuracy
from pfaffian.simulate.run.accurate_stepper import AccurateStepper
from pfaffian.simulate.run.stepper import Stepper
from pfaffian.simulate.run.stepper_start import Options
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.sampling import check_seed, in_python
from pfaffian.simulate.step.signals import OutputFunction, as_record
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.step import DEFAULT, Scheme
from pfaffian.simulate.step.switches import as_switches
from pfaffian.simulate.step.turns import counting_arguments
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.system import as_system


class StepperArguments(TypedDict, total=False):
    """The arguments of `stepper` besides the machine and the accuracy, described there."""

    step: float
    runs: int | None
    control: Control | None
    switches: Mapping[str, OutputFunction] | None
    outputs: Mapping[str, OutputFunction] | None
    record: Any
    scheme: Scheme | None
    seed: int
    threads: int
    backend: Backend
    strict: bool


@overload
def stepper(m: Mechanism | AbstractSystem, *, accuracy: float, **more: Unpack[StepperArguments]) -> AccurateStepper: ...
@overload
def stepper(m: Mechanism | AbstractSystem, *, accuracy: None = None, **more: Unpack[StepperArguments]) -> Stepper: ...
def stepper(
    m: Mechanism | AbstractSystem,
    *,
    accuracy: float | None = None,
    step: float = 1e-3,
    runs: int | None = None,
    control: Control | None = None,
    switches: Mapping[str, OutputFunction] | None = None,
    outputs: Mapping[str, OutputFunction] | None = None,
    record: Any = (),
    scheme: Scheme | None = None,
    seed: int = 0,
    threads: int = 1,
    backend: Backend = "auto",
    strict: bool = True,
) -> Stepper | AccurateStepper:
    """A machine, or many of one kind, that your own loop moves step by step, with the same bits as `run`.

    Args:
        m: the mechanism, or a System such as `pf.reduction.hamiltonian(m)`.
        accuracy: None (default): steps of one length. Or steps under error control, as in `run`: the result is then an
            AccurateStepper, which is moved by `advance(seconds)`, and estimates its `error` since the reset.
        step: length of a step [s], 1e-3 by default; with `accuracy` the time by which a call advances that names none.
        runs: number of machines; None (default): one, without an axis of runs.
        control: a control law; its inputs replace those of the mechanism. None by default.
        switches: {parameter: function of the kinematics or `of_motion(...)`}, as in `run`. None by default.
        outputs: {name: function of the kinematics} that `observe` returns too, as in `run`. None by default.
        record: names of the signals that `Stepper.observe` returns in addition to q and v, as in `run`; none by default.
        scheme: formulation and integrator; `pf.Scheme()` by default.
        seed: seed of the sensors' noise, 0 by default.
        threads: number of threads that share the runs of a step, 1 by default.
        backend: "auto" interpreted at once, and compiled beside it where that pays; "c" compiled first; "interpreter" or
            "numpy" only interpreted, in C or by NumPy. The bits are the same.
        strict: the same bits on every machine and backend; False allows fused multiply-add. True by default.
    Raises:
        ModelError: an argument is wrong, or the law is one in Python, which your loop can call itself.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=0.1)], [hinge])
        >>> s = pf.stepper(m, runs=3, step=0.01)
        >>> s.reset(q=[[0.1], [0.2], [0.3]])
        >>> s.step(steps=50)
        >>> s.q.ravel().round(3)
        array([-0.03 , -0.058, -0.086])
    """
    pair = DEFAULT if accuracy is None else PAIR
    system, given, law, extra = counting_arguments(as_system(m), scheme, control, outputs, switches, pair)
    m = system.mechanism
    check_options(backend, 1)
    check_seed(seed)
    count = None if runs is None else as_whole(runs, "runs")
    options = Options(
        as_number(step, "step", above=0),
        count,
        seed,
        as_whole(threads, "threads", most=MOST_THREADS),
        backend,
        as_flag(strict, "strict"),
    )
    if in_python(law):
        raise ModelError(
            "stepper: a law in Python needs no stepper to call it: call it in your loop, and give s.step its inputs"
        )
    input_names(m, law)
    changing = as_switches(m, switches)
    recorded = as_record(("q", "v", *record) if isinstance(record, list | tuple) else record, count or 1)
    s = Simulation(system, given, law, extra, recorded, changing.next).with_kinks()
    if accuracy is None:
        return Stepper(s, options)
    return AccurateStepper(s, options, as_accuracy(accuracy), scheme)
