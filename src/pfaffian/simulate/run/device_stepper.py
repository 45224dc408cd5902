"""A stepper whose state lies in the memory of an NVIDIA device: one thread per run, and arrays of CuPy."""

from __future__ import annotations

from typing import Any

from pfaffian.errors import BuildError, ModelError, brief, install
from pfaffian.kernel.call.device import OnDevice, device_of
from pfaffian.kernel.call.rollout import Buffers
from pfaffian.kernel.text.cuda_source import cuda_text
from pfaffian.simulate.run.singular_start import REGULAR
from pfaffian.simulate.run.stepper import ARRAYS, Stepper


def text(s: Stepper) -> str:
    """CUDA C++ of a stepper's loop: the kernel `pfaffian_device_rollout`, with one thread for each run.

    Args:
        s: the stepper, with its law, sensors and switches.
    Returns:
        The source text. It must be compiled with the options --fmad=false and -default-device; then a device computes the same
        bits as a processor.
    Raises ModelError: s is not a stepper.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), runs=1000)
        >>> "__global__ void pfaffian_device_rollout" in pf.cuda.text(s).replace("KERNEL", 'extern "C" __global__')
        True
    """
    rollout, _ = _as_stepper(s).loop
    return cuda_text(*rollout.code.recipe.programs)


def on_device(s: Stepper) -> DeviceStepper:
    """Continue a stepper on the current device of CuPy, from its present state.

    Args:
        s: the stepper; its state does not change until `DeviceStepper.back`.
    Returns:
        DeviceStepper.
    Raises:
        ModelError: s is not a stepper, or a run starts in a singular configuration, whose first step only the processor can
            take: call s.step() first.
        BuildError: CuPy or a device is missing.

    Example:
        >>> from importlib.util import find_spec
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), runs=1000)
        >>> if find_spec("cupy"):  # and a device
        ...     d = pf.cuda.on_device(s)
        ...     d.step(100)
        ...     d.back()
        >>> s.runs
        1000
    """
    _as_stepper(s)
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy without a driver raises errors of its own
        raise BuildError(f"an NVIDIA device and CuPy are needed: {install('cupy-cuda12x')} ({error})") from error
    return DeviceStepper(s, cupy)


class DeviceStepper:
    """Machines that move on a device; made by `on_device`.

    x: (runs, nx) state, including that of a law; its first columns are q and v, or the state of the System.
    u: (1, runs, nu) inputs, constant over a step.   p: (runs, np) parameters.   status: (runs,), as in `pf.stepper`.
    t: time [s].
    x, u, p and status are arrays of CuPy, which other libraries use without a copy through DLPack. Values written into x, u and
    p take effect in the next step.
    """

    def __init__(self, s: Stepper, cupy: Any) -> None:
        rollout, span = s.loop
        saved = s.save()
        if saved.k == 0 and bool((saved.kinds != REGULAR).any()):
            raise ModelError("on_device: a run starts in a singular configuration; take the first step with s.step()")
        self._stepper, self._saved, self._k, self._span = s, saved, saved.k, span
        arrays = {name: cupy.asarray(getattr(saved, name), order="F") for name in ARRAYS[:-1]}
        self.x, self.u, self.p, self.status, self._stopped = arrays.values()
        self._moved = OnDevice(rollout, device_of(rollout, cupy), Buffers(**arrays), span)

    @property
    def t(self) -> float:
        """The time [s]."""
        return self._span.t0 + self._k * self._span.h

    def step(self, steps: int = 1) -> None:
        """Take `steps` steps under the inputs u. Returns before they are done; reading an array waits for them."""
        self._moved.advance(self._k, steps)
        self._k += steps

    def wait(self) -> None:
        """Wait until all steps are done."""
        self._moved.wait()

    def back(self) -> None:
        """Copy the state, inputs, parameters and status from the device back into the stepper."""
        host = {"x": self.x, "u": self.u, "p": self.p, "status": self.status, "stopped": self._stopped}
        arrays: dict[str, Any] = {name: array.get(order="F") for name, array in host.items()}
        self._stepper.restore(self._saved._replace(**arrays, k=self._k))


def _as_stepper(s: Any) -> Stepper:
    """s. Raises ModelError: it is not a stepper."""
    if not isinstance(s, Stepper):
        raise ModelError(f"a stepper with steps of one length is needed, as pf.stepper(m, runs=...) makes it, got {brief(s)}")
    return s
