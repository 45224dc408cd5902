"""Scheme, law, outputs and names of inputs of a run, as a caller gives them: checked, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pfaffian.control.law import Control
from pfaffian.control.open_loop import open_loop
from pfaffian.dynamics import FORMULATIONS
from pfaffian.errors import ModelError, brief
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.simulate.step.signals import MotionOutput, OutputFunction
from pfaffian.simulate.step.step import DEFAULT, Scheme


def arguments(
    m: Mechanism, scheme: Any, control: Any, outputs: Any, integrator: str = DEFAULT
) -> tuple[Scheme, Control, tuple[tuple[str, OutputFunction], ...]]:
    """Check scheme, law and outputs of a run and fill in the defaults; without a law the machine runs in open loop.

    integrator: of a scheme that names none.
    Raises ModelError: one of the three has the wrong type.
    """
    if scheme is not None and not isinstance(scheme, Scheme):
        known = {"integrator": INTEGRATORS, "formulation": ("auto", *FORMULATIONS)}
        which = next((k for k, names in known.items() if isinstance(scheme, str) and scheme in names), None)
        way = f"{which}={scheme!r}" if which else "integrator=..., formulation=..."
        raise ModelError(f"scheme: a Scheme is needed, got {brief(scheme)}; write scheme=pf.Scheme({way})")
    if control is not None and not isinstance(control, Control):
        raise ModelError(
            f"control: a control law is needed, got {brief(control)}; make one by pf.control.projected(...) or another "
            "law, or from your own function law(terms, z, w, y) -> Command by pf.control.Control(law)"
        )
    if outputs is not None and not isinstance(outputs, Mapping):
        raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(outputs)}")
    for name, f in (outputs or {}).items():
        if not isinstance(name, str) or not name or not (callable(f) or isinstance(f, MotionOutput)):
            raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(name)}: {brief(f)}")
    scheme = scheme or Scheme()
    scheme = scheme if scheme.integrator else replace(scheme, integrator=integrator)
    return scheme, control or open_loop(m), tuple((outputs or {}).items())


def input_names(m: Mechanism, control: Control) -> tuple[str, ...]:
    """Names of a run's inputs: those of its law, then the external wrenches. Raises ModelError: two have the same name."""
    for name in control.w_names:
        if name in m.wrench_names:
            raise ModelError(f"the control law and an external wrench both have an input {name!r}; give one another name")
    return control.w_names + m.wrench_names
