"""The measured double pendulum fitted by MuJoCo's system identification, for `benchmarks.fit`.

The same links, rotors, viscous and dry friction and the same segments. Its starts are the measured states, which it does not
fit, its derivatives are finite differences, and its dry friction is a constraint in place of an arctangent.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import pfaffian as pf

GEAR, LOWER_MASS, STEP = 6, 0.604346, 4e-3
LEAST = 1e-6
"""Moment of inertia [kg m^2] of a trial step to an impossible one, at which MuJoCo would stop."""

XML = f"""
<mujoco>
  <option timestep="{STEP}" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body name="upper">
      <inertial pos="0 0 -0.1" mass="1" diaginertia="0.05 0.05 0.05"/>
      <joint name="shoulder" axis="0 -1 0"/>
      <body name="lower" pos="0 0 -0.3">
        <inertial pos="0 0 -0.1" mass="{LOWER_MASS}" diaginertia="0.05 0.05 0.05"/>
        <joint name="elbow" axis="0 -1 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="belt"><joint joint="shoulder" coef="-1"/><joint joint="elbow" coef="{GEAR}"/></fixed></tendon>
  <actuator><motor name="motor 1" joint="shoulder"/><motor name="motor 2" joint="elbow"/></actuator>
  <sensor>
    <jointpos name="q1" joint="shoulder"/><jointpos name="q2" joint="elbow"/>
    <jointvel name="v1" joint="shoulder"/><jointvel name="v2" joint="elbow"/>
  </sensor>
</mujoco>
"""


def write_numbers(spec: Any, p: np.ndarray) -> None:
    """Write the nine numbers, in the order of the study, into a model."""
    h1, I1, h2, I2, rotor, b1, b2, c1, c2 = map(float, p)
    for name, mass, h, inertia in (("upper", 1.0, h1, I1), ("lower", LOWER_MASS, h2, I2)):
        body = spec.body(name)
        body.ipos, body.inertia = (0, 0, -h / mass), (0.05, max(inertia - h**2 / mass, LEAST), 0.05)
    for name, damping, dry, armature in (("shoulder", b1, c1, GEAR**2 * rotor), ("elbow", b2, c2, 0.0)):
        joint = spec.joint(name)
        joint.damping = np.full_like(joint.damping, damping) if np.ndim(joint.damping) else damping
        joint.frictionloss, joint.armature = dry, armature
    spec.tendon("belt").armature = rotor


def is_installed() -> bool:
    """Whether `pip install "mujoco[sysid]"` was done; without it the package is empty."""
    return bool(find_spec("mujoco")) and hasattr(import_module("mujoco.sysid"), "optimize")


def by_sysid(fit: pf.identification.Fit) -> tuple[Callable[[], np.ndarray], int]:
    """A call that fits the numbers to the segments of a fit, from the same first numbers, and the number of segments."""
    import mujoco
    from mujoco import sysid

    s, scale = fit.problem.segments, np.abs(fit.first)
    spec = mujoco.MjSpec.from_string(XML)
    model = spec.compile()
    starts, controls, sensors = list[Any](), list[Any](), list[Any]()
    for i in range(s.runs):
        record = fit.problem.records[s.record[i]]
        first, count = int(np.searchsorted(record.time, s.begin[i])), int(np.isfinite(s.y[i]).all(axis=1).sum())
        t = STEP * np.arange(count)
        starts.append(sysid.create_initial_state(model, s.y[i, 0, :2], s.y[i, 0, 2:4]))
        controls.append(sysid.TimeSeries(t, record.u[first : first + count]))
        sensors.append(sysid.TimeSeries.from_names(t, s.y[i, :count], model))
    names = [f"segment {i}" for i in range(s.runs)]
    sequences = sysid.ModelSequences("double pendulum", spec, names, starts, controls, sensors)
    residual = sysid.build_residual_fn(models_sequences=[sequences], n_threads=1)

    def solve() -> np.ndarray:
        numbers = sysid.Parameter(
            "numbers", fit.first / scale, np.full(len(scale), 0.05), np.full(len(scale), 20.0),
            modifier=lambda spec, p: write_numbers(spec, p.value * scale),
        )  # fmt: skip
        given = sysid.ParameterDict()
        given.add(numbers)
        found, _ = sysid.optimize(given, residual, verbose=False)
        return np.asarray(found["numbers"].value) * scale

    return solve, s.runs
