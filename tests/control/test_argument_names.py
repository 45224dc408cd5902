"""Functions with many arguments name the one that is not a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import identification
from pfaffian.control import estimation, flat, placement

LINE = np.linspace(0.0, 1.0, 40)
PLACES = np.column_stack([LINE] * 3)
POLES = [-2, -2, -2, -2]
CALLS: dict[Any, dict[str, Any]] = {
    identification.thrust_scale: {"speed": LINE, "thrust": LINE},
    identification.propeller_bench: {"speed": LINE, "speed_rate": LINE, "current": LINE},
    identification.servo_bench: {"angle": LINE, "rate": LINE, "acceleration": LINE, "setpoint": LINE},
    identification.bifilar_pendulum: {
        **dict.fromkeys(("angle", "rate", "acceleration"), LINE),
        **{"mass": 1.0, "distance": 0.2, "length": 1.0, "gravity": 9.81},
    },
    estimation.bessel_filter: {"cutoff": 5.0, "period": 0.01},
    estimation.latency: {
        **{"times": LINE, "values": LINE, "late_times": LINE, "late_values": LINE},
        **{"longest": 0.1, "step": 0.01},
    },
    estimation.tracking_error: {"r": PLACES, "R": [np.eye(3)] * 40, "r_R": PLACES, "R_R": [np.eye(3)] * 40},
    flat.rest_to_rest: {"start": 0.0, "end": 1.0, "duration": 1.0, "begin": 0.0},
    placement.hover_placement: {"poles": POLES, "mass": 1.0, "gravity": 9.81, "coupling_length": 0.0},
    placement.two_mass_placement: {"poles": POLES, "ratio": 5.0, "coupling": 1.0},
}


@pytest.mark.parametrize(("call", "name"), [(call, name) for call, given in CALLS.items() for name in given if name != "poles"])
def test_arguments_that_are_no_numbers_are_named(call, name):
    with pytest.raises(pf.ModelError, match=rf"^{call.__name__}: {name}\b(?! x)"):
        call(**CALLS[call] | {name: "no number"})
