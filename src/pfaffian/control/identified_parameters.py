"""Identification of a machine's parameters from measurements: least squares with confidence intervals. [konz25 5.2.3]

least_squares                                                          parameters with confidence intervals from equations
thrust_scale, propeller_bench, servo_bench, bifilar_pendulum           equations of a bench test
flight, propeller_wrench, FLIGHT                                       equations of a flight
smoothed                                                               rates and accelerations of a sampled signal

Equations of motion are linear in masses, inertias and coefficients: A x = b, with one or more rows for each sample.
`thrust_scale`, `propeller_bench`, `servo_bench`, `bifilar_pendulum` and `flight` build these `LinearEquations` from
measurements, and `least_squares` solves them.

Measurements are noisy. Noise in b scatters the estimate, and the confidence interval says by how much. Noise in A biases the
estimate towards zero, which the interval does not show: where A is one column of root mean square a with noise of root mean
square e, the estimate is 1 / (1 + (e / a)^2) times the true value. There are two remedies: smoother measurements (a longer
window of `smoothed`), and `instruments`, the same equations built from another measurement of the same motion or from a
simulation of it.

Neither remedy removes the error of the smoothing itself: the product of two smoothed signals is not their smoothed product.
This error is small while the motion changes little within a window, and biases the estimate where the motion changes fast, for
example when servos jump at a start. Leave such samples out; they show as rows whose residual is many times the standard
deviation of their kind.

Example:
    >>> import numpy as np
    >>> from pfaffian import identification
    >>> speed = np.array([100.0, 200.0, 300.0, 400.0])
    >>> x = identification.least_squares(identification.thrust_scale(speed, 1.5e-5 * speed**2 + [0.01, -0.02, 0.01, 0.0]))
    >>> f"{x.value[0]:.2e} +- {x.half_width[0]:.1e}"
    '1.50e-05 +- 1.5e-07'
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model.number import floats, is_whole, named_float

QUANTILE = 1.959963984540054
"""Half the width of the 95 % interval of a normal distribution, in standard deviations."""

NEGLIGIBLE = 1e-10
"""A singular value below this fraction of the largest one counts as zero; the columns have unit length."""

COUPLED = 1e-6
"""Two parameters depend on each other if their entry in the projector onto the null space of the rows exceeds this."""

BLOCK = 256
"""Number of rows in each block of the QR factorisation."""

ITERATIONS = 3
"""Iterations of reweighting: each divides a kind of row by the standard deviation of its residuals in the iteration before."""


class LinearEquations(NamedTuple):
    """Linear equations A x = b for k parameters x, with r rows of different kinds for each of n samples.

    A: (n, r, k), or (n, k) for a single kind of row.   b: (n, r), or (n,).   names: of the k parameters; x[0], ... if empty.

    Example:
        >>> from pfaffian import identification
        >>> identification.LinearEquations([[1.0], [2.0]], [2.0, 4.0], ("mass",)).names
        ('mass',)
    """

    A: Any
    b: Any
    names: tuple[str, ...] = ()


class Estimate(NamedTuple):
    """Result of `least_squares`.

    value: (k,) the estimate x.   half_width: (k,) half the width of its 95 % confidence interval.   covariance: (k, k) of x.
    deviation: (r,) standard deviation of the residuals of each kind of row.

    Example:
        >>> from pfaffian import identification
        >>> x = identification.least_squares(identification.LinearEquations([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0]))
        >>> x.value.round(6), x.deviation.round(6)
        (array([2.]), array([0.]))
    """

    value: np.ndarray
    half_width: np.ndarray
    covariance: np.ndarray
    deviation: np.ndarray


def least_squares(equations: LinearEquations, *, instruments: LinearEquations | None = None, correlated: int = 1) -> Estimate:
    """Solve A x = b by weighted least squares, with 95 % confidence intervals.

        Z^T (A x - b) = 0,  covariance = (Z^T A)^-1 (Z^T Z) (A^T Z)^-1,  rows and instruments Z divided by s

    s is the standard deviation of the residuals of each kind of row. Without instruments Z = A. With instruments, errors of A
    do not bias x, provided that the errors of Z are independent of them.

    Args:
        equations: LinearEquations with n r > k.
        instruments: LinearEquations of the same shape, whose b is not used; None for the equations themselves.
        correlated: least distance, in samples, at which errors count as independent of each other. The middle factor of the
            covariance is estimated from sums of the errors over this many samples (Bartlett's window). Where a filter
            correlates the errors, take a few times the filter's window; default 1.
    Returns:
        Estimate.
    Raises ModelError: other shapes; too few rows; parameters that the rows do not determine, which the message names.

    Example:
        >>> from pfaffian import identification
        >>> line = identification.LinearEquations([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [1.0, 3.0, 5.0], ("slope", "offset"))
        >>> identification.least_squares(line).value.round(6)
        array([2., 1.])
    """
    A, b = floats(equations.A, "least_squares: A"), floats(equations.b, "least_squares: b")
    if A.ndim not in (2, 3) or b.shape != A.shape[:-1] or not A.size:
        raise ModelError(
            f"least_squares: A (n, r, k) and b (n, r), or (n, k) and (n,), are needed, got {A.shape} and {b.shape}"
        )
    Z = A if instruments is None else floats(instruments.A, "least_squares: instruments")
    if Z.shape != A.shape:
        raise ModelError(f"least_squares: instruments are of the shape of A, {A.shape}, got {Z.shape}")
    A, b, Z = (x.reshape(len(A), -1, *x.shape[len(b.shape) :]) for x in (A, b, Z))
    n, r, k = A.shape
    names = [str(name) for name in equations.names] or [f"x[{i}]" for i in range(k)]
    if len(names) != k:
        raise ModelError(f"least_squares: {k} names are needed, got {len(names)}")
    if n * r <= k:
        raise ModelError(f"least_squares: more than {k} rows are needed for {k} numbers, got {n * r}")
    if not is_whole(correlated) or not 1 <= correlated <= n:
        raise ModelError(f"least_squares: correlated must be a whole number from 1 to {n}, got {brief(correlated)}")
    deviation = np.ones(r)
    for _ in range(ITERATIONS if r > 1 else 1):
        s = np.where(deviation > 0, deviation, 1.0)
        Q, N, length = _normal_matrix(A / s[:, None], Z / s[:, None], names)
        x = np.linalg.solve(N, Q.T @ (b / s).ravel()) / length
        residual = A @ x - b
        deviation = np.sqrt((residual**2).sum(axis=0) / (n - k / r))
    scaled, half = residual / s, np.linalg.inv(N) / length[:, None]
    if correlated == 1:
        middle = (scaled**2).sum() / (n * r - k) * np.eye(k)
    else:
        middle = _covariance_of_sum(np.einsum("nrk,nr->nk", Q.reshape(n, r, k), scaled), correlated)
    covariance = half @ middle @ half.T
    return Estimate(x, QUANTILE * np.sqrt(np.diag(covariance)), covariance, deviation)


def _normal_matrix(A: np.ndarray, Z: np.ndarray, names: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q (n r, k), an orthonormal basis of Z's columns; N = Q^T A with A's columns scaled to unit length; their lengths (k,).

    Raises ModelError: parameters that the rows do not determine.
    """
    A, Z = (x.reshape(-1, x.shape[-1]) for x in (A, Z))
    length, long = (np.linalg.norm(x, axis=0) for x in (A, Z))
    length, long = (np.where(x > 0, x, 1.0) for x in (length, long))
    Q = _orthonormal(Z / long)
    N = (_blocks(Q).transpose(0, 2, 1) @ _blocks(A / length)).sum(axis=0)
    _check_identifiable(N, names)
    return Q, N, length


def _check_identifiable(N: np.ndarray, names: list[str]) -> None:
    """Raise ModelError: parameters that the rows do not determine; the message groups those that depend on each other."""
    _, s, Vt = np.linalg.svd(N)
    null = Vt[s <= NEGLIGIBLE * s[0]]
    if not len(null):
        return
    coupled = np.abs(null.T @ null) > COUPLED  # the projector onto the null space does not depend on the choice of its basis
    groups, remaining = [], [i for i in range(len(names)) if coupled[i, i]]
    while remaining:
        group, added = [remaining[0]], [remaining[0]]
        while added:
            added = [j for j in remaining if j not in group and any(coupled[i, j] for i in added)]
            group += added
        groups.append(sorted(group))
        remaining = [i for i in remaining if i not in group]
    alone = [names[g[0]] for g in groups if len(g) == 1]
    problems = [f"the rows do not depend on {', '.join(alone)}"] if alone else []
    problems += [f"the rows do not tell {', '.join(names[i] for i in g)} apart" for g in groups if len(g) > 1]
    raise ModelError(f"least_squares: {'; '.join(problems)}; excite the machine in other ways, or leave them out")


def _orthonormal(Z: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span those of Z."""
    k = Z.shape[1]
    R = np.asarray(np.linalg.qr(np.asarray(np.linalg.qr(_blocks(Z), mode="r")).reshape(-1, k), mode="r"))
    size = np.abs(np.diag(R))
    return Z @ np.linalg.inv(R) if size.min() > NEGLIGIBLE * size.max() else np.linalg.qr(Z)[0]


def _blocks(A: np.ndarray) -> np.ndarray:
    """(blocks, BLOCK, k) the rows of A (n, k), and zeros: blocks so small that BLAS starts no threads, which take more time."""
    n, k = A.shape
    blocks = np.zeros((-(-n // BLOCK), BLOCK, k))
    blocks.reshape(-1, k)[:n] = A
    return blocks


def _covariance_of_sum(errors: np.ndarray, correlated: int) -> np.ndarray:
    """(k, k) covariance of the sum of errors (n, k) that are correlated over fewer than `correlated` samples."""
    pad = np.zeros((correlated, errors.shape[1]))
    total = np.cumsum(np.concatenate([pad, errors, pad]), axis=0)
    sums = total[correlated:] - total[:-correlated]
    return sums.T @ sums / correlated


def smoothed(x: Any, period: float, window: int, order: int = 3) -> np.ndarray:
    """Smooth x and differentiate it twice by polynomials fitted to `window` samples (the Savitzky-Golay filter).

    A longer window leaves less noise, in the second derivative by the power -5/2 of the window, but smooths out fast changes.

    Args:
        x: (n, ...) samples, one each period.
        period: of the samples [s].
        window: odd number of samples, above `order` and at most n.
        order: of the polynomial, 2 or more; default 3.
    Returns:
        (3, n - window + 1, ...): x, its rate and its acceleration at the samples with window // 2 others on either side.
    Raises ModelError: a period not above zero, a window that is even, not above order or longer than x.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> t = np.arange(0.0, 1.0, 0.1)
        >>> identification.smoothed(t**2, 0.1, window=5)[:, 0].round(6)  # at t = 0.2
        array([0.04, 0.4 , 2.  ])
    """
    x, T = floats(x, "smoothed: x"), named_float(period, "smoothed: period")
    if not (T > 0 and is_whole(window) and is_whole(order)) or window % 2 == 0 or not 2 <= order < window <= len(x):
        raise ModelError(
            f"smoothed: a period above zero, an order from 2 and an odd window above it, up to the {len(x)} samples, are "
            f"needed, got {T:g} s, {brief(order)} and {brief(window)}"
        )
    offsets = np.arange(window) - window // 2
    fit = np.linalg.pinv(np.vander(offsets, order + 1, increasing=True))[:3]
    fit = fit * np.array([math.factorial(i) / T**i for i in range(3)])[:, None]
    return np.einsum("dj,n...j->dn...", fit, np.lib.stride_tricks.sliding_window_view(x, window, axis=0))


def thrust_scale(speed: Any, thrust: Any) -> LinearEquations:
    """Equations for the thrust coefficient kF in F = kF varpi^2, from a propeller on a scale. [konz25 (5.3)]

    Args:
        speed: varpi (n,) [rad/s].
        thrust: F (n,) [N].
    Returns:
        Equations for (kF,) [N s^2].
    Raises ModelError: other shapes.

    Example:
        >>> from pfaffian import identification
        >>> x = identification.least_squares(identification.thrust_scale([100.0, 200.0], [0.1, 0.4]))
        >>> f"{x.value[0]:.3e}"
        '1.000e-05'
    """
    w, F = _signals("thrust_scale", speed=speed, thrust=thrust)
    return LinearEquations(w[:, None] ** 2, F, ("kF",))


def propeller_bench(speed: Any, speed_rate: Any, current: Any) -> LinearEquations:
    """Equations for (p1, p2, p3) of a propeller motor, varpi_dot + p1 varpi^2 = p2 i - p3. [konz25 (5.13), corrected]

    Args:
        speed: varpi (n,) [rad/s].
        speed_rate: (n,) [rad/s^2], as from `smoothed`.
        current: i (n,) [A].
    Returns:
        Equations for (p1 [1/rad], p2 [rad/(s^2 A)], p3 [rad/s^2]).
    Raises ModelError: other shapes.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> w, i = np.array([100.0, 200.0, 300.0, 400.0]), np.array([1.0, 2.0, 1.0, 2.0])
        >>> bench = identification.propeller_bench(w, 20 * i - 4e-4 * w**2 - 3, i)
        >>> identification.least_squares(bench).value.round(6)
        array([4.e-04, 2.e+01, 3.e+00])
    """
    w, w_dot, i = _signals("propeller_bench", speed=speed, speed_rate=speed_rate, current=current)
    return LinearEquations(np.column_stack([-(w**2), i, -np.ones_like(w)]), w_dot, ("p1", "p2", "p3"))


def servo_bench(angle: Any, rate: Any, acceleration: Any, setpoint: Any) -> LinearEquations:
    """Equations for (p0, p1) of a servo, angle'' + p1 angle' + p0 angle = p0 setpoint. [konz25 (5.14)]

    Args:
        angle, rate, acceleration: (n,) [rad] and its derivatives.
        setpoint: requested angle (n,) [rad].
    Returns:
        Equations for (p0 [1/s^2], p1 [1/s]).
    Raises ModelError: other shapes.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> t = np.linspace(0.0, 1.0, 20)
        >>> angle, rate = np.exp(-5 * t) * (1 + 5 * t), -25 * t * np.exp(-5 * t)  # returns to zero
        >>> bench = identification.servo_bench(angle, rate, -25 * angle - 10 * rate, 0 * t)
        >>> identification.least_squares(bench).value.round(6)
        array([25., 10.])
    """
    a, a1, a2, goal = _signals("servo_bench", angle=angle, rate=rate, acceleration=acceleration, setpoint=setpoint)
    return LinearEquations(np.column_stack([goal - a, -a1]), a2, ("p0", "p1"))


def bifilar_pendulum(
    angle: Any, rate: Any, acceleration: Any, *, mass: float, distance: float, length: float, gravity: float = 9.81
) -> LinearEquations:
    """Equations for inertia Theta and damping Upsilon of a body that turns about the vertical on two strings. [konz25 (5.15)]

        Theta a'' + Upsilon a' + m g d^2 sin a / (4 sqrt(h^2 - d^2 / 2 (1 - cos a))) = 0

    Small turns have the frequency sqrt(m g d^2 / (4 h Theta)) [rad/s]. The measured rate and acceleration are in A, so their
    noise biases the estimate towards zero.

    Args:
        angle, rate, acceleration: (n,) the angle a [rad] and its derivatives.
        mass: m [kg].
        distance: d, between the strings [m].
        length: h, of the strings [m].
        gravity: g [m/s^2]; default 9.81.
    Returns:
        Equations for (Theta [kg m^2], Upsilon [kg m^2/s]).
    Raises ModelError: other shapes; strings too short for the angle.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> t = np.linspace(0.0, 3.0, 50)
        >>> a = 1e-3 * np.cos(2 * t)  # 2 rad/s
        >>> rate, acceleration = -2e-3 * np.sin(2 * t), -4 * a
        >>> bench = identification.bifilar_pendulum(a, rate, acceleration, mass=1.0, distance=0.2, length=1.0, gravity=10.0)
        >>> round(float(identification.least_squares(bench).value[0]), 5)  # 1 * 10 * 0.2^2 / (4 * 1 * 2^2)
        0.025
    """
    a, a1, a2 = _signals("bifilar_pendulum", angle=angle, rate=rate, acceleration=acceleration)
    m, d, h, g = (
        named_float(x, f"bifilar_pendulum: {n}")
        for n, x in (("mass", mass), ("distance", distance), ("length", length), ("gravity", gravity))
    )
    radicand = h**2 - d**2 / 2 * (1 - np.cos(a))
    if not (radicand > 0).all():
        raise ModelError("bifilar_pendulum: strings of that length cannot turn so far; check angle, distance and length")
    moment = m * g * d**2 * np.sin(a) / (4 * np.sqrt(radicand))
    return LinearEquations(np.column_stack([a2, a1]), -moment, ("Theta", "Upsilon"))


def _signals(what: str, **given: Any) -> list[np.ndarray]:
    """The given signals as arrays (n,). Raises ModelError: they do not have one length."""
    arrays = [floats(x, f"{what}: {name}") for name, x in given.items()]
    if any(x.ndim != 1 or x.shape != arrays[0].shape for x in arrays):
        shapes = ", ".join(f"{name} {x.shape}" for name, x in zip(given, arrays, strict=True))
        raise ModelError(f"{what}: arrays (n,) of one length are needed, got {shapes}")
    return arrays


FLIGHT = ("com x", "com y", "com z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "d_x", "d_z", "d_x l_z", "Ups_x",
          "Ups_z", "F_x", "F_y", "F_z", "tau_x", "tau_y", "tau_z")  # fmt: skip
"""Names of the parameters that `flight` identifies; the first three are m s, mass times mass centre [kg m]."""


def flight(
    v: Any, w: Any, v_dot: Any, w_dot: Any, up: Any, wrench: Any, *, mass: float, gravity: float = 9.81
) -> LinearEquations:
    """Equations for mass centre, inertia, drag and biases of a multicopter (`FLIGHT`), from a flight. [konz25 5.2.3]

    The first six rows of (5.5) are linear in m s, Theta, d_x, d_z, d_x l_z, Upsilon_x, Upsilon_z and the biases; Upsilon is
    the whole lower right block of (5.4), [[D_v, D_v hat(l)^T], [hat(l) D_v, Upsilon]]. If the damping of rotation is given
    about the point l instead, Upsilon_x is that damping plus d_x l_z^2.

    Args:
        v, w: (n, 3) velocity [m/s] and angular velocity [rad/s], along the body's axes.
        v_dot, w_dot: (n, 3) their rates.
        up: (n, 3) the vertical in the body's frame, R^T e_z.
        wrench: (n, 6) that the propellers exert on the body [N, N m], as from `propeller_wrench`.
        mass: m [kg].
        gravity: [m/s^2]; default 9.81.
    Returns:
        Equations with six rows for each sample.
    Raises ModelError: other shapes.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> rest, up = np.zeros((5, 3)), np.tile([0.0, 0.0, 1.0], (5, 1))
        >>> x = identification.flight(rest, rest, rest, rest, up, np.tile([0, 0, 9.81, 0, 0, 0], (5, 1)), mass=1.0)
        >>> x.A.shape, x.names[:3]
        ((5, 6, 20), ('com x', 'com y', 'com z'))
    """
    named = (("v", v), ("w", w), ("v_dot", v_dot), ("w_dot", w_dot), ("up", up))
    v, w, v1, w1, z = (floats(x, f"flight: {n}") for n, x in named)
    f, m = floats(wrench, "flight: wrench"), named_float(mass, "flight: mass")
    n = len(v)
    if not all(x.shape == (n, 3) for x in (v, w, v1, w1, z)) or f.shape != (n, 6):
        raise ModelError(f"flight: five arrays (n, 3) and a wrench (n, 6) are needed, got {v.shape} and {f.shape}")
    a = v1 + np.cross(w, v) + named_float(gravity, "flight: gravity") * z  # acceleration of the origin minus that of gravity
    A = np.zeros((n, 6, len(FLIGHT)))
    for i, e in enumerate(np.eye(3)):  # m s
        A[:, :3, i] = np.cross(w1, e) + np.cross(w, np.cross(w, e))
        A[:, 3:, i] = np.cross(e, a)
        A[:, i, 14 + i] = A[:, 3 + i, 17 + i] = -1.0
    for i, (j, k) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):  # Theta
        E = np.zeros((3, 3))
        E[j, k] = E[k, j] = 1.0
        A[:, 3:, 3 + i] = w1 @ E + np.cross(w, w @ E)
    A[:, 0, 9], A[:, 1, 9], A[:, 2, 10] = v[:, 0], v[:, 1], v[:, 2]
    A[:, 0, 11], A[:, 1, 11], A[:, 3, 11], A[:, 4, 11] = w[:, 1], -w[:, 0], -v[:, 1], v[:, 0]
    A[:, 3, 12], A[:, 4, 12], A[:, 5, 13] = w[:, 0], w[:, 1], w[:, 2]
    b = f.copy()
    b[:, :3] -= m * a
    return LinearEquations(A, b, FLIGHT)


def propeller_wrench(
    speeds: Any, rates: Any, w: Any, azimuths: Any, spins: Any, *, arm: float, rotor: float, thrust: float, torque: float,
    height: Any = 0.0, tilts: Any = None, tilt_inertia: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """The wrench that propellers on fixed or tilting arms exert on a body. [konz25 (5.9), (5.12)]

        sum F H3,    sum r x F H3 - kT varpi^2 eps H3 - d/dt P - w x P,    F = kF varpi^2
        P = sum Theta_P eps varpi H3 + Theta_AC theta_dot H1,    H1 = (cos phi, sin phi, 0),  r = l_A H1 + h_A e_z
        H3 = (sin phi sin theta, -cos phi sin theta, cos theta)

    Args:
        speeds: varpi (n, rho) [rad/s].
        rates: varpi_dot (n, rho) [rad/s^2].
        w: angular velocity (n, 3) of the body [rad/s].
        azimuths: (rho,) of the arms [rad].
        spins: (rho,) eps, 1 for propellers that turn anticlockwise seen from above, otherwise -1.
        arm: l_A, from the centre to a propeller [m].
        rotor: Theta_P, inertia of a propeller with its motor's rotor [kg m^2].
        thrust: kF [N s^2].
        torque: kT [N m s^2].
        height: h_A, from the centre up to a propeller [m], one number for all or (rho,); default 0.
        tilts: (3, n, rho) angles of the arms about their own axes [rad] with rates and accelerations, as from `smoothed`;
            (rho,) for fixed angles; None for upright propellers.
        tilt_inertia: Theta_AC of an arm that tilts [kg m^2]; default 0.
    Returns:
        (n, 6) force and moment [N, N m].
    Raises ModelError: other shapes, or what is not a number.

    Example:
        >>> import numpy as np
        >>> from pfaffian import identification
        >>> arms, spins = np.arange(4) * np.pi / 2, [1, -1, 1, -1]
        >>> numbers = {"arm": 0.2, "rotor": 3e-5, "thrust": 1e-5, "torque": 2e-7}
        >>> x = identification.propeller_wrench([[500.0] * 4], [[0.0] * 4], [[0.0] * 3], arms, spins, **numbers)
        >>> round(float(x[0, 2]), 6)  # 4 * 1e-5 * 500^2
        10.0
    """
    scalars = {"arm": arm, "rotor": rotor, "thrust": thrust, "torque": torque, "tilt_inertia": tilt_inertia}
    arm, rotor, thrust, torque, tilt_inertia = (named_float(y, f"propeller_wrench: {n}") for n, y in scalars.items())
    named = (("speeds", speeds), ("rates", rates), ("w", w), ("azimuths", azimuths), ("spins", spins), ("height", height))
    x, x1, w, phi, eps, up = (floats(y, f"propeller_wrench: {n}") for n, y in named)
    if x.ndim != 2 or x1.shape != x.shape or w.shape != (len(x), 3) or not phi.shape == eps.shape == x.shape[1:]:
        raise ModelError(
            f"propeller_wrench: speeds and rates (n, rho) and w (n, 3) are needed, got {x.shape}, {x1.shape}, {w.shape}"
        )
    angles = np.zeros(x.shape[1]) if tilts is None else floats(tilts, "propeller_wrench: tilts")
    if up.shape not in ((), phi.shape) or angles.shape not in (phi.shape, (3, *x.shape)):
        raise ModelError(
            f"propeller_wrench: height a number or (rho,) and tilts (rho,) or (3, n, rho) are needed, got {up.shape} and "
            f"{angles.shape}"
        )
    a, a1, a2 = angles if angles.ndim == 3 else np.stack([angles + 0 * x, 0 * x, 0 * x])
    H1 = np.stack([np.cos(phi), np.sin(phi), 0 * phi], axis=1)
    across = np.stack([np.sin(phi), -np.cos(phi), 0 * phi], axis=1)
    c, s = np.cos(a)[:, :, None], np.sin(a)[:, :, None]
    H3, H4 = c * [0, 0, 1.0] + s * across, c * across - s * [0, 0, 1.0]  # H4 is the derivative of H3 by theta
    F, momentum = np.expand_dims(thrust * x**2, 2) * H3, rotor * eps * x
    at = arm * H1 + np.outer(up + 0 * phi, [0, 0, 1.0])
    P = np.expand_dims(momentum, 2) * H3 + tilt_inertia * np.expand_dims(a1, 2) * H1
    P_dot = (
        np.expand_dims(rotor * eps * x1, 2) * H3
        + np.expand_dims(momentum * a1, 2) * H4
        + tilt_inertia * np.expand_dims(a2, 2) * H1
    )
    moment = (np.cross(at, F) - np.expand_dims(torque * eps * x**2, 2) * H3 - P_dot).sum(axis=1) - np.cross(w, P.sum(axis=1))
    return np.column_stack([F.sum(axis=1), moment])
