#!/bin/sh
# Tools: scikit-sundae 1.2.0
# Behaviour: t_events, y_events and i_events of a result hold the events of all earlier solve() calls of the same
#   CVODE object, too; t and y belong to the call. A call without an event returns the old ones, a fresh object None.
# Consequence: a loop that goes on from t_events[0] and y_events[0], as with SciPy, repeats the first impact for ever.
#   Go on from t[-1] and y[-1] where the status says event, or make a new object for each piece.
# Source: scikit-sundae documentation, CVODE, eventsfn and CVODEResult
# Seen:
#   piece 1: ends at 0.6386 s, t_events [0.6386]
#   piece 2: ends at 1.0217 s, t_events [0.6386 1.0217]
#   piece 3: ends at 0.8173 s, t_events [0.6386 1.0217 0.8173]
#   a piece without an event: [0.6386 1.0217 0.8173]  with a fresh object: None
. "$(dirname "$0")/common.sh"
needs scikit-sundae==1.2.0
"$python" -I - <<'END'
import numpy as np
from sksundae.cvode import CVODE


def rate(t, y, dydt):
    dydt[:] = y[1], -9.81


def floor(t, y, value):
    value[0] = y[0]


floor.terminal, floor.direction = [True], [-1]
OPTIONS = {"eventsfn": floor, "num_events": 1, "rtol": 1e-9, "atol": 1e-9}
solver, y, counts = CVODE(rate, **OPTIONS), np.array([2.0, 0.0]), []
for piece in range(3):
    r = solver.solve(np.array([0.0, 5.0]), y)
    counts.append(len(r.t_events))
    print(f"piece {piece + 1}: ends at {r.t[-1]:.4f} s, t_events {np.round(np.ravel(r.t_events), 4)}")
    y = np.array([0.0, -0.8 * r.y[-1, 1]])
flight = np.array([0.0, 0.1]), np.array([5.0, 0.0])
old, fresh = solver.solve(*flight).t_events, CVODE(rate, **OPTIONS).solve(*flight).t_events
print("a piece without an event:", np.round(np.ravel(old), 4), " with a fresh object:", fresh)
assert counts == [1, 2, 3] and len(old) == 3 and fresh is None
END
