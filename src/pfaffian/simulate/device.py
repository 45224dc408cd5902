"""A stepper whose state is in the memory of a device of NVIDIA: one thread a run, arrays of CuPy."""

from __future__ import annotations

from typing import Any

from pfaffian.errors import BuildError, ModelError, brief, install
from pfaffian.kernel.call.device import OnDevice, device_of
from pfaffian.kernel.call.rollout import Buffers
from pfaffian.kernel.text.cuda import cuda_text
from pfaffian.simulate.entrance import REGULAR
from pfaffian.simulate.stepper import ARRAYS, Stepper


def text(s: Stepper) -> str:
    """CUDA C++ of a stepper's loop: the kernel `pfaffian_device_rollout`, a thread for each run.

    Args:
        s: the stepper, with its law, sensors and switches.
    Returns:
        The text. It needs the options --fmad=false and -default-device of its compiler; then a device gives the bits that a
        processor gives.
    Raises ModelError: no stepper.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> s = pf.stepper(pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide]), runs=1000)
        >>> "__global__ void pfaffian_device_rollout" in pf.cuda.text(s).replace("KERNEL", 'extern "C" __global__')
        True
    """
    rollout, _ = _checked(s).loop
    return cuda_text(*rollout.code.recipe.programs)


def on_device(s: Stepper) -> DeviceStepper:
    """A stepper that goes on on the current device of CuPy, from where this one stands.

    Args:
        s: the stepper; it stays where it is until `DeviceStepper.back`.
    Returns:
        DeviceStepper.
    Raises:
        ModelError: no stepper, or a start in a singular configuration, whose first step is one of the processor: call s.step()
            before.
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
    _checked(s)
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy without a driver raises errors of its own
        raise BuildError(f"a device of NVIDIA and CuPy are needed: {install('cupy-cuda12x')} ({error})") from error
    return DeviceStepper(s, cupy)


class DeviceStepper:
    """Machines that move on a device; made by `on_device`.

    x: (runs, nx) state, with all that a law holds; its first columns are q and v, or the state of the System.
    u: (1, runs, nu) inputs that are held.   p: (runs, np) parameters.   status: (runs,), as in `pf.stepper`.
    They are arrays of CuPy, which other libraries take without a copy by DLPack; what is written into x, u and p counts from
    the next step on.   t: [s].
    """

    def __init__(self, s: Stepper, cupy: Any) -> None:
        rollout, span = s.loop
        saved = s.save()
        if saved.k == 0 and bool((saved.kinds != REGULAR).any()):
            raise ModelError("on_device: a run starts in a singular configuration; take the first step before: s.step()")
        self._stepper, self._saved, self._k, self._span = s, saved, saved.k, span
        given = {name: cupy.asarray(getattr(saved, name), order="F") for name in ARRAYS[:-1]}
        self.x, self.u, self.p, self.status, self._stopped = given.values()
        self._moved = OnDevice(rollout, device_of(rollout, cupy), Buffers(**given), span)

    @property
    def t(self) -> float:
        return self._span.t0 + self._k * self._span.h

    def step(self, steps: int = 1) -> None:
        """Go on by some steps under the inputs u. Returns before they are done; reading an array waits for them."""
        self._moved.advance(self._k, steps)
        self._k += steps

    def wait(self) -> None:
        """Return when all steps are done."""
        self._moved.wait()

    def back(self) -> None:
        """Put the stepper where this one stands."""
        host = {"x": self.x, "u": self.u, "p": self.p, "status": self.status, "stopped": self._stopped}
        arrays: dict[str, Any] = {name: array.get(order="F") for name, array in host.items()}
        self._stepper.restore(self._saved._replace(**arrays, k=self._k))


def _checked(s: Any) -> Stepper:
    if not isinstance(s, Stepper):
        raise ModelError(f"a stepper is needed, as pf.stepper(m, runs=...) makes it, got {brief(s)}")
    return s
