"""State estimation of a machine in flight: observers, calibration, tracking errors. [konz25 5.4, 5.5]

turning_step, attitude_step, force_bias_step                           angular velocity, attitude, unknown force
accelerometer, flight_step, flight_correction                          position and velocity from accelerometer and fixes
flight_memory, imu_step, fix_step, clock_step, latency                 position, velocity and attitude from late fixes
imu_misalignment, bessel_filter, tracking_error                        calibration, smooth references, errors of a flight

A function whose name ends in `_step` is one step of an observer, for numbers or symbols; call it in a law of your own
(`discrete`). Calibration takes arrays of measurements.

Example:
    >>> from pfaffian.control import estimation
    >>> q = [0.0, 0.0, 0.0, 1.0]
    >>> for _ in range(100):  # 1 rad/s about z for 1 s
    ...     q = estimation.attitude_step(q, [0.0, 0.0, 1.0], 0.01)
    >>> [round(x, 3) for x in q.elements()]  # sin and cos of half the angle
    [0.0, 0.0, 0.479, 0.878]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.actuation import low_pass
from pfaffian.control.law_part import Sample
from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.maths.tree_factor import solve_M
from pfaffian.model.number import floats, is_whole, named_float
from pfaffian.parts.rotation_potential import special_polar


def turning_step(
    w: Any, bias: Any, measured: Any, moment: Any, inertia: Any, period: float, gains: tuple[float, float] = (0.2, 0.01)
) -> tuple[Any, Any]:
    """One step of an observer that estimates angular velocity and an unknown moment from a gyro. [konz25 (5.51)]

        w' = w + T Theta^-1 (moment + bias - w x Theta w) + L_w e,  bias' = bias + L_tau e,  e = measured - w

    Errors about a principal axis have the characteristic polynomial z^2 - (2 - L_w) z + 1 - L_w + T L_tau / Theta.

    Args:
        w: estimate (3,) [rad/s].
        bias: estimate of the unknown moment (3,) [N m].
        measured: reading of the gyro (3,) [rad/s].
        moment: known moment (3,) [N m].
        inertia: Theta (3, 3) [kg m^2].
        period: T [s].
        gains: (L_w [1], L_tau [N m s]); default (0.2, 0.01).
    Returns:
        next w and bias.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import estimation
        >>> zero = np.zeros(3)
        >>> w, bias = estimation.turning_step(zero, zero, [0.0, 0.0, 1.0], zero, np.eye(3), 0.1)
        >>> print(w, bias)
        [0, 0, 0.2] [0, 0, 0.01]
    """
    w, I = so3.matrix(w, 3), inertia if isinstance(inertia, ca.SX) else ca.DM(inertia)
    e = measured - w
    return w + period * (ca.inv(I) @ (moment + bias - ca.cross(w, I @ w))) + gains[0] * e, bias + gains[1] * e


def attitude_step(q: Any, w: Any, period: float, correction: Any = 1.0) -> Any:
    """Next attitude at an angular velocity, with the length of q corrected towards one. [konz25 (5.56), corrected]

        q + T q_dot - correction (|q|^2 - 1) q / 2

    With correction = 1 an error e of the length becomes about 3/2 e^2 in one step.

    Args:
        q: quaternion (4,), x, y, z, w.
        w: angular velocity (3,) along the body's axes [rad/s].
        period: T [s].
        correction: strength of the length correction; for a step over a fraction of a period, that fraction. Default 1.
    Returns:
        next q (4, 1).

    Example:
        >>> from pfaffian.control import estimation
        >>> print(estimation.attitude_step([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0], 0.1))
        [0, 0, 0.05, 1]
    """
    x = so3.matrix(q, 4)
    return x + period * (so3.quat_rate(x) @ w) - correction * (ca.sumsqr(x) - 1) / 2 * x


def accelerometer(s: Sample, body: str, point: Any = (0, 0, 0)) -> ca.SX:
    """Reading of an ideal accelerometer, R^T (r'' - a_G) at a point of a body. [konz25 (5.46)]

    The reading is under the inputs held until this instant, without misalignment, bias and noise.

    Args:
        s: Sample of the law.
        body: name of the body.
        point: (3,) in the body's frame [m]; default its origin.
    Returns:
        (3, 1) along the body's axes [m/s^2].

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> def law(s):
        ...     return control.Command([4.0], signals={"imu": control.estimation.accelerometer(s, "cart")})
        >>> run = pf.run(m, duration=0.1, step=0.1, control=control.discrete(law, 0.1), backend="numpy")
        >>> run["imu"].values[-1].round(6)  # 4 N on 2 kg, and gravity
        array([2.  , 0.  , 9.81])
    """
    T = s.terms
    return T.kinematics.specific_force(body, solve_M(T.factor, T.force + T.B @ s.u + s.reaction), point)


class Flight(NamedTuple):
    """Estimated position, velocity and accelerometer bias of a machine in flight.

    r: (3,) position along the world's axes [m].   v: (3,) velocity along the world's axes [m/s].
    a_B: (3,) bias of the accelerometer along the body's axes [m/s^2].
    """

    r: Any
    v: Any
    a_B: Any


def flight_step(x: Flight, R: Any, acceleration: Any, period: float, gravity: float = 9.81) -> Flight:
    """Predict position and velocity a period later from the accelerometer's reading. [konz25 (5.59)-(5.60)]

        r'' = a_G + R (a_M - a_B), constant over the period

    Args:
        x: Flight at the beginning of the period.
        R: (3, 3) attitude.
        acceleration: a_M (3,) [m/s^2].
        period: [s].
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        Flight at the end of the period.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.control import estimation
        >>> x = estimation.Flight(ca.DM([0, 0, 1]), ca.DM([1, 0, 0]), ca.DM([0, 0, 0]))
        >>> print(estimation.flight_step(x, ca.DM.eye(3), ca.DM([0, 0, 9.81]), 0.1).r)  # hovers at 1 m/s
        [0.1, 0, 1]
    """
    v_dot = R @ (acceleration - x.a_B) - gravity * ca.DM([0, 0, 1])
    return Flight(x.r + period * x.v + period**2 / 2 * v_dot, x.v + period * v_dot, x.a_B)


def flight_correction(
    x: Flight, R: Any, position: Any, period: Any, gains: tuple[Any, Any, Any] = (1.0, 0.575, -0.025)
) -> Flight:
    """Correct an estimate by a position that is measured once every `period`. [konz25 (5.62)-(5.65)]

        r + l_r e,  v + l_v e / T',  a_B + 2 l_a R^T e / T'^2,  e = position - r

    From one measurement to the next the errors have the characteristic polynomial

        z^3 + (l_r + l_v - l_a - 3) z^2 + (3 - 2 l_r - l_v - l_a) z + l_r - 1,

    whose roots are {0, 0.5, 0.9} with the default gains, which are the thesis's.

    Args:
        x: Flight before the correction.
        R: (3, 3) attitude.
        position: measured (3,) [m].
        period: T' between measurements [s].
        gains: (l_r, l_v, l_a); default (1, 0.575, -0.025).
    Returns:
        Flight after the correction.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.control import estimation
        >>> x = estimation.Flight(ca.DM([0, 0, 1]), ca.DM([0, 0, 0]), ca.DM([0, 0, 0]))
        >>> x = estimation.flight_correction(x, ca.DM.eye(3), ca.DM([0, 0, 1.1]), 0.1)
        >>> print(x.r, x.v)
        [0, 0, 1.1] [0, 0, 0.575]
    """
    e = position - x.r
    return Flight(
        x.r + gains[0] * e, x.v + gains[1] / period * e, x.a_B + 2 * gains[2] / period**2 * (ca.transpose(ca.SX(R) if
        isinstance(R, ca.SX) else ca.DM(R)) @ e)
    )  # fmt: skip


class Fix(NamedTuple):
    """A late measurement of position and attitude.

    position: (3,) [m].   q: (4,) attitude, x, y, z, w.   delay: time since the measurement [s].
    fresh: 1 if the measurement arrived at this instant, else 0.
    """

    position: Any
    q: Any
    delay: Any
    fresh: Any


class FlightMemory(NamedTuple):
    """The estimate at an instant and the samples before it, as columns; give `_asdict()` to `discrete` as its state.

    estimate: (13,) r, v, a_B and q.
    samples: (19 n,) r, v, a_B, q, a_M and w of the last n samples, newest first.
    fixes: (2,) number of fixes used so far, at most 2, and age of the last one [s].
    """

    estimate: Any
    samples: Any
    fixes: Any

    @property
    def flight(self) -> Flight:
        """Position, velocity, bias."""
        return Flight(self.estimate[:3], self.estimate[3:6], self.estimate[6:9])

    @property
    def q(self) -> Any:
        """(4,) attitude, x, y, z, w."""
        return self.estimate[9:13]


SAMPLE_SIZE = 19
"""Numbers that are stored for each sample."""


def flight_memory(position: Any, q: Any, samples: int = 64, *, known: bool = False, gravity: float = 9.81) -> FlightMemory:
    """Start of the memory of `fix_step` and `imu_step`, for a machine that has been at rest until now.

    Args:
        position: (3,) [m].
        q: (4,) attitude, x, y, z, w, of unit length.
        samples: number of stored samples, which together must last longer than any delay; `fix_step` takes some 240 operations
            for each. Default 64.
        known: whether the start is certain, so that the first fix corrects it; default False: the first fix replaces the
            position.
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        FlightMemory.
    Raises ModelError: other shapes, no samples, a quaternion that is not of unit length.

    Example:
        >>> from pfaffian.control import estimation
        >>> x = estimation.flight_memory([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], samples=4)
        >>> x.samples.shape, x.q
        ((76,), array([0., 0., 0., 1.]))
    """
    r, x = floats(position, "flight_memory: position"), floats(q, "flight_memory: q")
    if r.shape != (3,) or x.shape != (4,) or abs(x @ x - 1) > 1e-6:
        raise ModelError(
            f"flight_memory: position (3,) and a quaternion (4,) of length one are needed, got {brief(position)}, {brief(q)}"
        )
    if not is_whole(samples) or samples < 1:
        raise ModelError(f"flight_memory: samples must be a whole number above zero, got {brief(samples)}")
    up = gravity * np.array(ca.DM(so3.quat_to_matrix(x)))[2]
    rest = np.concatenate([r, np.zeros(6), x])
    return FlightMemory(rest, np.tile(np.concatenate([rest, up, np.zeros(3)]), samples), np.array([2.0 * known, 0.0]))


def imu_step(x: FlightMemory, acceleration: Any, w: Any, period: float, gravity: float = 9.81) -> FlightMemory:
    """Advance the memory by one period with the IMU's reading in this period. [konz25 (5.56), (5.59)]

    The estimate takes a `flight_step` and an `attitude_step`, with R of the middle of the period. With R of its beginning, as
    in (5.59), rotation would act like a bias of the accelerometer: 0.03 m/s^2 in flights to and fro with rates of 3 rad/s.
    Called last in a law, with the reading of this instant, it predicts the estimate of the next instant. Called first, with
    the mean of this reading and the previous one, it integrates up to this instant with an error of order two.

    Args:
        x: FlightMemory at the beginning of the period.
        acceleration: a_M (3,) [m/s^2].
        w: angular velocity (3,) [rad/s].
        period: [s].
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        FlightMemory at the end of the period.

    Example:
        >>> from pfaffian.control import estimation
        >>> x = estimation.flight_memory([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], samples=4)
        >>> x = estimation.imu_step(x, [1.0, 0.0, 9.81], [0.0, 0.0, 0.0], 0.1)
        >>> print(x.flight.v)
        [0.1, 0, 0]
    """
    now, reading = so3.matrix(x.estimate, 13), ca.vertcat(so3.matrix(acceleration, 3), so3.matrix(w, 3))
    stored, fixes = _column(x.samples), so3.matrix(x.fixes, 2)
    later = _advanced(now, reading, period, period, gravity)
    return FlightMemory(later, ca.vertcat(now, reading, stored[:-SAMPLE_SIZE]), ca.vertcat(fixes[0], fixes[1] + period))


def fix_step(
    x: FlightMemory,
    fix: Fix,
    period: float,
    gains: tuple[float, float, float] = (1.0, 0.575, -0.025),
    gravity: float = 9.81,
) -> FlightMemory:
    """Correct the memory by a late fix, a position and an attitude measured a while ago. [konz25 5.4.4, 5.4.5]

    The estimate at the time of the fix is that of the sample before it, advanced by the part of a period in between. This
    estimate is corrected (`flight_correction`, scaled by the time since the last fix) and takes the measured attitude. It is
    then advanced to the present with the IMU's readings, first from the time of the fix to the next sample. If the fix is not
    fresh, x does not change.

    The first fix sets the position, the second one position and velocity: corrections with gains (1, 0, 0) and (1, 1, 0). For
    a machine at rest this is (5.58). If the machine accelerates between these fixes, this start has no error, whereas that of
    (5.58) is wrong by half of the velocity gained. A fix older than all samples, or measured less than a period after the last
    one, is ignored.

    Args:
        x: FlightMemory.
        fix: Fix, its delay from `clock_step`; a negative delay counts as zero.
        period: T between samples [s].
        gains: (l_r, l_v, l_a) of `flight_correction`; default (1, 0.575, -0.025).
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        FlightMemory after the correction.

    Example:
        >>> from pfaffian.control import estimation
        >>> x = estimation.flight_memory([0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], samples=4)
        >>> x = estimation.imu_step(x, [0.0, 0.0, 9.81], [0.0, 0.0, 0.0], 0.005)
        >>> x = estimation.fix_step(x, estimation.Fix([0.0, 0.0, 1.2], [0.0, 0.0, 0.0, 1.0], 0.002, 1.0), 0.005)
        >>> print(x.flight.r)
        [0, 0, 1.2]
    """
    now, (count, age), stored = so3.matrix(x.estimate, 13), so3.scalars(x.fixes, 2), _column(x.samples)
    past = [stored[i : i + SAMPLE_SIZE] for i in range(0, stored.numel(), SAMPLE_SIZE)]
    n, delay, q = len(past), ca.fmax(fix.delay, 0), so3.matrix(fix.q, 4)
    used = ca.logic_and(fix.fresh, ca.logic_and(delay < n * period, ca.logic_or(count < 1, age - delay >= period)))
    before, lead = past[-1], n * period - delay  # the last sample before the fix, and the time from this sample to the fix
    for i in reversed(range(n - 1)):
        inside = delay < (i + 1) * period
        before, lead = ca.if_else(inside, past[i], before), ca.if_else(inside, (i + 1) * period - delay, lead)
    at_fix = FlightMemory(_advanced(before[:13], before[13:], lead, period, gravity), None, None).flight
    gain = (
        ca.if_else(count < 2, 1, gains[0]),
        ca.if_else(count < 1, 0, ca.if_else(count < 2, 1, gains[1])),
        ca.if_else(count < 2, 0, gains[2]),
    )
    since = ca.fmax(age - delay, period)
    at_fix = flight_correction(at_fix, so3.quat_to_matrix(q), so3.matrix(fix.position, 3), since, gain)
    estimate = ca.vertcat(*at_fix, q)
    for i in reversed(range(n)):
        reading = past[i][13:]
        past[i] = ca.if_else(ca.logic_and(used, delay >= (i + 1) * period), ca.vertcat(estimate, reading), past[i])
        estimate = _advanced(estimate, reading, ca.fmin(ca.fmax(delay - i * period, 0), period), period, gravity)
    fixes = ca.if_else(used, ca.vertcat(ca.fmin(count + 1, 2), delay), ca.vertcat(count, age))
    return FlightMemory(ca.if_else(used, estimate, now), ca.vertcat(*past), fixes)


def _column(x: Any) -> Any:
    """x as a DM, unless it is an expression."""
    return x if isinstance(x, ca.SX) else ca.DM(x)


def _advanced(estimate: Any, imu: Any, time: Any, period: float, gravity: float) -> Any:
    """(13,) r, v, a_B, q after `time`, at most a period, with the acceleration along the body's axes at the middle of it."""
    x = FlightMemory(estimate, None, None)
    turned = attitude_step(x.q, imu[3:], time, time / period)
    R = so3.quat_to_matrix((x.q + turned) / 2)
    return ca.vertcat(*flight_step(x.flight, R, imu[:3], time, gravity), turned)


class Clock(NamedTuple):
    """Clock of a message's sender.   offset: T_PC, our clock minus the sender's [s].   delay: T_D of the message [s]."""

    offset: Any
    delay: Any


def clock_step(offset: Any, received: Any, stamped: Any, mean_delay: float = 0.034, forgetting: float = 0.99) -> Clock:
    """Offset of a sender's clock and delay of its message, from the message's time stamp. [konz25 (5.53)-(5.54)]

        T_PC' = c T_PC + (1 - c) (received - stamped - mean_delay),  T_D = received - stamped - T_PC'

    Start with the offset received - stamped - mean_delay of the first message. The delay of each message is estimated, on the
    assumption that the mean of all is `mean_delay`, which `latency` computes from recorded signals.

    Args:
        offset: previous T_PC [s].
        received: arrival of the message by our clock [s].
        stamped: time stamp of the message by the sender's clock [s].
        mean_delay: mean delay of messages [s]; default 0.034.
        forgetting: c, the fraction of the offset that remains, 0 to 1; default 0.99.
    Returns:
        Clock.

    Example:
        >>> from pfaffian.control import estimation
        >>> x = estimation.clock_step(5.0, 15.044, 10.0)
        >>> round(x.offset, 6), round(x.delay, 6)
        (5.0001, 0.0439)
    """
    new_offset = low_pass(offset, received - stamped - mean_delay, forgetting)
    return Clock(new_offset, received - stamped - new_offset)


def force_bias_step(
    bias: Any, acceleration: Any, v: Any, force: Any, *, mass: float, drag: float = 0.0, forgetting: float = 0.98
) -> Any:
    """Next estimate of an unknown force, c F_B + (1 - c) (m a + d v - F), along the body's axes. [konz25 (5.67)]

    Args:
        bias: F_B (3,) [N].
        acceleration: a_M - a_B (3,) [m/s^2].
        v: velocity (3,) [m/s].
        force: F (3,) of the propellers [N].
        mass: m [kg].
        drag: d [kg/s]; default 0.
        forgetting: c, the fraction of the estimate that remains, 0 to 1; default 0.98.
    Returns:
        next F_B (3,) [N].

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import estimation
        >>> a, F = np.array([0, 0, 9.0]), np.array([0, 0, 8.0])
        >>> estimation.force_bias_step(np.zeros(3), a, np.zeros(3), F, mass=1.0).round(6)
        array([0.  , 0.  , 0.02])
    """
    return forgetting * bias + (1 - forgetting) * (mass * acceleration + drag * v - force)


def bessel_filter(cutoff: float, period: float, order: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Bessel low pass in discrete time, x' = F x + G u, exact for an input constant over each period. [konz25 (5.72)]

    x contains the output and its first order - 1 derivatives; in steady state it is (u, 0, 0, ...). The filter turns a stick's
    signal into a smooth reference.

    Args:
        cutoff: frequency at which the amplitude is 1 / sqrt(2) [Hz].
        period: [s].
        order: 1 to 9; default 4.
    Returns:
        F (order, order) and G (order,).
    Raises ModelError: a cutoff or period not above zero, an order that is not from 1 to 9.

    Example:
        >>> from pfaffian.control import estimation
        >>> F, G = estimation.bessel_filter(1.0, 0.01, order=1)
        >>> F.round(4), G.round(4)  # exp(-2 pi 0.01), and the rest of one
        (array([[0.9391]]), array([0.0609]))
    """
    f, T = (named_float(x, f"bessel_filter: {n}") for n, x in (("cutoff", cutoff), ("period", period)))
    if not (f > 0 and T > 0) or not is_whole(order) or not 1 <= order <= 9:
        raise ModelError("bessel_filter: cutoff and period above zero and an order from 1 to 9 are needed")
    n = order
    a = [1.0]
    for i in range(n):  # from the highest power down, a_k = (2n - k)! / (2^(n-k) k! (n - k)!)
        k = n - i
        a.append(a[-1] * k * (2 * n - k + 1) / (2 * (n - k + 1)))
    p = np.array(a)
    odd = np.where(np.arange(n + 1)[::-1] % 2, -1.0, 1.0)
    even = np.convolve(p, p * odd)  # p(s) p(-s), and |p(i w)|^2 = 2 p(0)^2 at the cutoff
    even[-1] -= 2 * p[-1] ** 2
    roots = np.roots(even)
    w = min(x.imag for x in roots if abs(x.real) < 1e-6 * abs(x) and x.imag > 0)
    p = p * (2 * np.pi * f / w) ** np.arange(n + 1)
    A = np.zeros((n + 1, n + 1))
    A[: n - 1, 1:n] = np.eye(n - 1)
    A[n - 1, :n], A[n - 1, n] = -p[:0:-1], p[-1]
    scale = (2 * np.pi * f) ** np.append(np.arange(n), 0.0)  # derivatives in units of the cutoff, for similar sizes
    E = _exponential(A * T * scale[None, :] / scale[:, None]) * scale[:, None] / scale[None, :]
    return E[:n, :n], E[:n, n]


def _exponential(A: np.ndarray) -> np.ndarray:
    """e^A from the power series of e^(A / 2^s), squared s times."""
    s = max(0, int(np.ceil(np.log2(max(np.abs(A).sum(axis=1).max(), 1e-300)))) + 3)
    X, term, small = np.eye(len(A)), np.eye(len(A)), A / 2.0**s
    for i in range(1, 16):
        term = term @ small / i
        X = X + term
    for _ in range(s):
        X = X @ X
    return X


class Misalignment(NamedTuple):
    """Calibration of an accelerometer.   rotation: R_B (3, 3) of its mounting.   bias: a_B (3,) [m/s^2]."""

    rotation: np.ndarray
    bias: np.ndarray


def imu_misalignment(measured: Any, attitudes: Any, gravity: float = 9.81) -> Misalignment:
    """Mounting and bias of an accelerometer, from readings at rest. [konz25 (5.48)-(5.49), corrected]

        R_B and a_B that minimise the sum of |a_M + R_B R^T a_G - a_B|^2

    Args:
        measured: readings a_M (n, 3) [m/s^2].
        attitudes: R (n, 3, 3) of the machine at these readings.
        gravity: [m/s^2] along -z; default 9.81.
    Returns:
        Misalignment.
    Raises ModelError: other shapes; attitudes that do not determine R_B, such as rotations about the vertical alone.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import estimation
        >>> R = np.array([np.roll(np.eye(3), i, axis=0) for i in range(3)])
        >>> estimation.imu_misalignment(9.81 * R[:, 2] + [0.1, 0.0, 0.0], R).bias.round(6)
        array([0.1, 0. , 0. ])
    """
    a, R = floats(measured, "imu_misalignment: measured"), floats(attitudes, "imu_misalignment: attitudes")
    if a.ndim != 2 or a.shape[1] != 3 or R.shape != (len(a), 3, 3):
        raise ModelError(f"imu_misalignment: measured (n, 3) and attitudes (n, 3, 3) are needed, got {a.shape} and {R.shape}")
    u = -gravity * R[:, 2, :]  # R^T a_G
    spread = np.linalg.svd(u - u.mean(axis=0), compute_uv=False)
    if len(spread) < 2 or spread[1] < 1e-3 * gravity:
        raise ModelError("imu_misalignment: the attitudes do not determine R_B: tilt the machine about at least two axes")
    best = special_polar(-(a - a.mean(axis=0)).T @ (u - u.mean(axis=0)))
    return Misalignment(best[0], (a + u @ best[0].T).mean(axis=0))


def latency(times: Any, values: Any, late_times: Any, late_values: Any, *, longest: float = 0.2, step: float = 1e-3) -> float:
    """Delay of a late copy of a signal: the shift at which the correlation of the two is highest. [konz25 (5.52)]

    Args:
        times, late_times: (n,) increasing instants of each signal [s]; the two may differ.
        values, late_values: (n,) the signals.
        longest: largest delay to try [s]; default 0.2.
        step: step of the grid to which both signals are interpolated by cubics [s]; default 1e-3. Between grid points the
            maximum is that of a parabola.
    Returns:
        delay [s].
    Raises ModelError: arrays that do not match, signals that are too short or constant, a delay at the end of the range.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import estimation
        >>> t = np.linspace(0.0, 3.0, 301)
        >>> round(estimation.latency(t, np.sin(2 * t), t + 0.05, np.sin(2 * t)), 4)
        0.05
    """
    names = ("times", "values", "late_times", "late_values")
    t, x, s, y = (floats(a, f"latency: {n}") for n, a in zip(names, (times, values, late_times, late_values), strict=True))
    h, most = named_float(step, "latency: step"), named_float(longest, "latency: longest")
    for when, value in ((t, x), (s, y)):
        if when.ndim != 1 or when.shape != value.shape or when.size < 2 or not (np.diff(when) > 0).all():
            raise ModelError(
                f"latency: increasing times (n,) and as many values are needed, got {when.shape} and {value.shape}"
            )
    if not h > 0:
        raise ModelError(f"latency: step must be a time above zero, got {h:g}")
    begin, end = max(t[0], s[0]), min(t[-1], s[-1])
    n, lags = int((end - begin) / h), round(most / h)
    if n < 3 * lags or lags < 1:
        raise ModelError(f"latency: signals that overlap for three times {most:g} s are needed, got {end - begin:g} s")
    grid = begin + h * np.arange(n)
    first, late = _interpolated(t, x, grid), _interpolated(s, y, grid)
    width = n - lags
    score = [_correlation(first[lags - i : lags - i + width], late[lags : lags + width]) for i in range(lags + 1)]
    i = int(np.argmax(score))
    if not np.isfinite(score).all() or i in (0, lags):
        raise ModelError("latency: no delay within the range stands out; give signals that change, or a larger `longest`")
    low, top, high = score[i - 1 : i + 2]
    return h * (i + (low - high) / (2 * (low - 2 * top + high)))


def _interpolated(t: np.ndarray, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """x (n,) at t (n,) interpolated at other instants by cubics, with the slopes of parabolas through three neighbours."""
    slope, i = np.gradient(x, t), np.clip(np.searchsorted(t, at) - 1, 0, len(t) - 2)
    h = t[i + 1] - t[i]
    u = (at - t[i]) / h
    ends = (1 + 2 * u) * (1 - u) ** 2 * x[i] + u**2 * (3 - 2 * u) * x[i + 1]
    return ends + h * u * (1 - u) * ((1 - u) * slope[i] - u * slope[i + 1])


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation coefficient of two signals; nan if one is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else np.nan


class TrackingError(NamedTuple):
    """Errors of a flight.   position: (n,) [m].   attitude, heading: (n,) [rad]."""

    position: np.ndarray
    attitude: np.ndarray
    heading: np.ndarray


def tracking_error(r: Any, R: Any, r_R: Any, R_R: Any) -> TrackingError:
    """Errors of a flight from its reference. [konz25 (5.73)-(5.75)]

        e_r = |r - r_R|,  e_R = acos((tr E - 1) / 2),  e_phi = |atan2(E_yx - E_xy, E_xx + E_yy)|,  E = R_R^T R

    The heading error e_phi is never larger than the attitude error e_R.

    Args:
        r: (n, 3) positions [m].
        R: (n, 3, 3) attitudes.
        r_R: (n, 3) positions of the reference [m].
        R_R: (n, 3, 3) attitudes of the reference.
    Returns:
        TrackingError.
    Raises ModelError: other shapes.

    Example:
        >>> import numpy as np
        >>> from pfaffian.control import estimation
        >>> x = estimation.tracking_error([[0, 0, 1.0]], [np.eye(3)], [[0, 0, 0.5]], [np.eye(3)])
        >>> x.position
        array([0.5])
    """
    r, R, r_R, R_R = (floats(x, f"tracking_error: {n}") for n, x in (("r", r), ("R", R), ("r_R", r_R), ("R_R", R_R)))
    if r.ndim != 2 or r.shape[1] != 3 or r_R.shape != r.shape or not R.shape == R_R.shape == (len(r), 3, 3):
        raise ModelError(
            "tracking_error: r and r_R (n, 3), R and R_R (n, 3, 3) are needed, got "
            f"{r.shape}, {r_R.shape}, {R.shape}, {R_R.shape}"
        )
    E = np.einsum("nji,njk->nik", R_R, R)
    sine = np.sqrt((E[:, 2, 1] - E[:, 1, 2]) ** 2 + (E[:, 0, 2] - E[:, 2, 0]) ** 2 + (E[:, 1, 0] - E[:, 0, 1]) ** 2)
    turn = np.arctan2(sine, np.trace(E, axis1=1, axis2=2) - 1)  # e_R without cancellation at small angles
    spin = np.abs(np.arctan2(E[:, 1, 0] - E[:, 0, 1], E[:, 0, 0] + E[:, 1, 1]))
    return TrackingError(np.linalg.norm(r - r_R, axis=1), turn, spin)
