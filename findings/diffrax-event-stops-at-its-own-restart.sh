#!/bin/sh
# Tools: diffrax 0.7.2 with optimistix 0.1.0 and JAX 0.10.2
# Behaviour: an Event without a root finder ends at the end of the step in which its condition changes sign: a ball is
#   metres below the floor then, and the result says that the event occurred. With a root finder and without
#   direction, a run that starts upwards at h = 0 ends at once, and so does one from a root that was found at or below
#   0: its speed is reversed twice. direction=False, downward crossings only, is right.
# Consequence: whether a simulation of impacts works depends on the last bit of the root. Give the root finder and the
#   direction.
# Source: diffrax documentation, Event
# Seen:
#   without a root finder: t = 1.110, height -4.043 m, event occurred: True
#   ends of the pieces, any direction: [0.6386, 0.6386, 0.6386, 1.2924, 1.2924]
#   ends of the pieces, direction=False: [0.6386, 1.6602, 2.4776, 3.1315, 3.6546]
#   a piece that starts upwards at height h ends at t: {0.0: 0.0, -1e-17: 0.0, 1e-17: 1.0194}
#   from h = 0 with direction=False: 1.0194
. "$(dirname "$0")/common.sh"
needs diffrax==0.7.2 optimistix==0.1.0 jax==0.10.2 jaxlib==0.10.2
"$python" -I - <<'END'
import diffrax
import jax
import jax.numpy as jnp
import optimistix

jax.config.update("jax_enable_x64", True)
FALL = diffrax.ODETerm(lambda t, y, args: jnp.array([y[1], -9.81]))
ROOT = optimistix.Newton(rtol=1e-9, atol=1e-9)


def fall(y, t=0.0, root=ROOT, direction=None):
    """Time, state and result of a ball until it meets the floor, or for 3 s."""
    event = diffrax.Event(lambda t, y, args, **_: y[0], root, direction)
    control = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    r = diffrax.diffeqsolve(FALL, diffrax.Tsit5(), t, t + 3, 0.01, y, event=event, stepsize_controller=control)
    return float(r.ts[-1]), r.ys[-1], r.result


def bounces(direction):
    """Ends of five pieces, each from the end of the piece before with 0.8 of its speed, reversed."""
    t, y, times = 0.0, jnp.array([2.0, 0.0]), []
    for _ in range(5):
        t, y, _ = fall(y, t, direction=direction)
        y = y * jnp.array([1, -0.8])
        times.append(round(t, 4))
    return times


t, y, result = fall(jnp.array([2.0, 0.0]), root=None)
occurred = bool(result == diffrax.RESULTS.event_occurred)
print(f"without a root finder: t = {t:.3f}, height {y[0]:.3f} m, event occurred: {occurred}")
down = bounces(False)
print("ends of the pieces, any direction:", bounces(None))
print("ends of the pieces, direction=False:", down)
starts = {h: round(fall(jnp.array([h, 5.0]))[0], 4) for h in (0.0, -1e-17, 1e-17)}
ahead = fall(jnp.array([0.0, 5.0]), direction=False)[0]
print("a piece that starts upwards at height h ends at t:", starts)
print(f"from h = 0 with direction=False: {ahead:.4f}")
assert occurred and y[0] < -1 and starts == {0.0: 0, -1e-17: 0, 1e-17: 1.0194} and ahead > 1
assert down == sorted(set(down))
END
