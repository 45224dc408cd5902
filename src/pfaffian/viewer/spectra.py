"""Root locus and Campbell diagram: eigenvalues of linearised machines over a parameter or a rotor's speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pfaffian.analysis.linearised import Linearised
from pfaffian.errors import ModelError, brief
from pfaffian.model.number import floats
from pfaffian.output.plain import label
from pfaffian.viewer.drawing import COLOURS, GREY, NOTE, style

GROWS = 1e-6
"""A motion grows if the real part of its eigenvalue exceeds this fraction of the largest eigenvalue; less is rounding."""

PER_MINUTE = 60 / (2 * np.pi)
"""Turns per minute of 1 rad/s."""

MOST_NAMED = 8
"""Largest number of critical speeds that are written at their points."""


def plot_root_locus(near: Sequence[Linearised], values: Any, name: str, *, title: str | None = None) -> Any:
    """Draw the eigenvalues of a machine in the complex plane while one of its numbers changes.

    Each begins at a cross and ends at a dot. The right half of the plane, where motions grow, is shaded; the title names the
    values between which the machine becomes unstable, or stable again.

    Args:
        near: (n,) results of `linearise`, one for each value, with equally many states.
        values: (n,) increasing values of the number: of a parameter, a gain, a speed.
        name: of the number, with its unit.
        title: text above the figure; None: the name, and where stability changes.
    Returns:
        matplotlib Figure.
    Raises ModelError: fewer than two values, or not one result for each; values that do not increase; different states.

    Example:
        An inverted pendulum of 1 kg and 1 m stands where its torsion spring exceeds m g l = 9.81 N m/rad:

        >>> import numpy as np, pfaffian as pf
        >>> k = pf.Parameter("k", 5.0, "N m/rad")
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0), stiffness=k)
        >>> m = pf.mechanism("upright", [pf.body("rod", 1.0, com=(0, 0, 1))], [hinge], parameters=[k])
        >>> ks = np.linspace(5.0, 15.0, 11)
        >>> figure = pf.results.plot_root_locus([pf.linearise(m, parameters={"k": x}) for x in ks], ks, "k [N m/rad]")
        >>> figure.get_suptitle()
        'eigenvalues over k [N m/rad]: stability changes between 9 and 10'
    """
    x, roots = _checked(near, values, "plot_root_locus")
    branches = followed(roots, x)
    from pfaffian.viewer.chart import Chart

    with style():
        figure = Chart(figsize=(6.6, 4.6), layout="constrained")
        ax = figure.subplots()
        for branch in branches.T:
            ax.plot(branch.real, branch.imag, color=GREY, linewidth=0.8, linestyle="-", zorder=1)
        points = ax.scatter(branches.real, branches.imag, c=np.repeat(x, branches.shape[1]), s=7, cmap="viridis", zorder=2)
        for row, mark in ((0, "x"), (-1, "o")):
            ax.plot(branches[row].real, branches[row].imag, mark, color="black", markersize=5, zorder=3)
        ax.axvline(0.0, color="black", linewidth=0.8, linestyle="-")
        ax.margins(0.08)
        ax.set_xlim(*ax.get_xlim())
        ax.axvspan(0.0, max(ax.get_xlim()[1], 0.0), color=COLOURS[1], alpha=0.07, linewidth=0)
        ax.set(xlabel="growth: real part [1/s]", ylabel="angular frequency: imaginary part [rad/s]")
        figure.colorbar(points, ax=ax, label=label(name, 60))
        changes = ", between ".join(f"{a:.4g} and {b:.4g}" for a, b in stability_changes(x, roots))
        found = (
            f"stability changes between {changes}" if changes else ("grows throughout" if _growing(roots)[0] else "never grows")
        )
        figure.suptitle(label(title or f"eigenvalues over {name}: {found}", 110), fontsize=10)
    return figure


def plot_campbell(
    near: Sequence[Linearised], speeds: Any, orders: Sequence[float] = (1, 2), *, title: str | None = None
) -> Any:
    """Draw a Campbell diagram: the natural frequencies of a machine over the speed of its rotor, with lines of excitation.

    A line of order k is the frequency of k times the speed; where it meets a natural frequency, a dot marks a critical speed.
    Frequencies are those of the damped motion. Motions that grow are marked red.

    Args:
        near: (n,) results of `linearise`, one for each speed, with equally many states.
        speeds: (n,) increasing speeds [rad/s], drawn in turns per minute.
        orders: multiples of the speed at which the machine is excited: 1 for an unbalance, 2 for a crossed joint; (1, 2) by
            default.
        title: text above the figure; None: how many critical speeds there are.
    Returns:
        matplotlib Figure.
    Raises ModelError: fewer than two speeds, or not one result for each; speeds that do not increase; different states.

    Example:
        A rotor on two springs of 100 N m/rad is slender (0.3 kg m^2 about the axes of tilt, 0.1 about its own), so that its
        unbalance excites one tilting motion at sqrt(100 / (0.3 - 0.1)) rad/s and the other at sqrt(100 / (0.3 + 0.1)):

        >>> import numpy as np, pfaffian as pf
        >>> frames = [pf.body("fork", 0.0, inertia=0.0), pf.body("cage", 0.0, inertia=0.0)]
        >>> rotor = pf.body("rotor", 1.0, inertia=(0.3, 0.3, 0.1))
        >>> joints = [pf.joint("x", "revolute", "world", "fork", axis=(1, 0, 0), stiffness=100.0),
        ...           pf.joint("y", "revolute", "fork", "cage", axis=(0, 1, 0), stiffness=100.0),
        ...           pf.joint("spin", "revolute", "cage", "rotor", axis=(0, 0, 1))]
        >>> m = pf.mechanism("rotor", [*frames, rotor], joints, gravity=(0, 0, 0))
        >>> speeds = np.linspace(0.0, 40.0, 41)
        >>> figure = pf.results.plot_campbell([pf.linearise(m, v={"spin": w}) for w in speeds], speeds, orders=[1])
        >>> figure.get_suptitle()
        'Campbell diagram: 2 critical speeds'
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['1x', '151', '214']
    """
    x, roots = _checked(near, speeds, "plot_campbell")
    multiples = floats(orders, "plot_campbell: orders").ravel()
    turns = x * PER_MINUTE
    branches = followed(roots, x)
    hertz = np.where(branches.imag > 0, branches.imag, np.nan) / (2 * np.pi)
    grows = branches.real > GROWS * np.abs(roots).max(initial=0.0)
    from pfaffian.viewer.chart import Chart

    with style():
        figure = Chart(figsize=(6.6, 4.6), layout="constrained")
        ax = figure.subplots()
        for i in np.flatnonzero(np.isfinite(hertz).any(axis=0)):
            ax.plot(turns, hertz[:, i], color=COLOURS[0], linestyle="-")
            ax.plot(turns[grows[:, i]], hertz[grows[:, i], i], ".", color=COLOURS[1], markersize=4)
        ax.set(xlim=(turns[0], turns[-1]), ylim=(0.0, 1.15 * np.nanmax(hertz, initial=0.0) or 1.0))
        critical = 0
        for order in multiples:
            excited = order * np.abs(turns) / 60
            _excitation(ax, turns, excited, f"{order:g}x")
            for at, frequency in _crossings(turns, hertz, excited):
                critical += 1
                ax.plot([at], [frequency], "o", color="black", markersize=4)
                if critical <= MOST_NAMED:
                    _note(ax, f"{at:.0f}", (at, frequency), (5, -5), ha="left")
        ax.set(xlabel="speed [1/min]", ylabel="natural frequency [Hz]")
        counted = f"{critical or 'no'} critical speed{'s' * (critical != 1)}"
        red = "; red grows" if (grows & np.isfinite(hertz)).any() else ""
        figure.suptitle(label(title or f"Campbell diagram: {counted}{red}", 110), fontsize=10)
    return figure


def _excitation(ax: Any, turns: np.ndarray, excited: np.ndarray, order: str) -> None:
    """Draw a line of excitation as far as the axes reach, with its order at the end."""
    top = ax.get_ylim()[1]
    inside = np.where(excited <= top, excited, np.nan)
    past = np.flatnonzero(excited > top)
    xs, ys = turns, inside
    if len(past) and past[0] > 0:
        i = int(past[0])
        end = np.interp(top, excited[i - 1 : i + 1], turns[i - 1 : i + 1])
        xs, ys = np.append(turns[:i], end), np.append(excited[:i], top)
    ax.plot(xs, ys, color=NOTE, linestyle="--", linewidth=0.8)
    if np.isfinite(ys[-1]):
        _note(ax, order, (xs[-1], ys[-1]), (-4, -4), ha="right", color=NOTE)


def _note(ax: Any, words: str, at: tuple[float, float], offset: tuple[int, int], **how: Any) -> None:
    """Write words below a point, on white so that lines do not cross them."""
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    ax.annotate(words, at, offset, textcoords="offset points", va="top", fontsize=7.5, bbox=paper, **how)


def _crossings(turns: np.ndarray, hertz: np.ndarray, excited: np.ndarray) -> Iterator[tuple[float, float]]:
    """(speed, frequency) where a natural frequency meets a line of excitation, between two speeds in a straight line."""
    for branch in hertz.T:
        gap = branch - excited
        for i in np.flatnonzero((gap[:-1] * gap[1:] < 0) | ((gap[1:] == 0) & (gap[:-1] != 0))):
            part = gap[i] / (gap[i] - gap[i + 1])
            yield turns[i] + part * (turns[i + 1] - turns[i]), branch[i] + part * (branch[i + 1] - branch[i])


def _checked(near: Any, values: Any, who: str) -> tuple[np.ndarray, np.ndarray]:
    """The values (n,), and the eigenvalues (n, states). Raises ModelError as the plots do."""
    x = floats(values, f"{who}: values")
    if x.ndim != 1 or len(x) < 2 or not (np.diff(x) > 0).all():
        raise ModelError(f"{who}: two or more increasing values are needed, got {brief(values)}")
    found = list(near) if not isinstance(near, Linearised) else [near]
    if len(found) != len(x) or not all(isinstance(part, Linearised) for part in found):
        raise ModelError(f"{who}: a result of linearise for each of the {len(x)} values is needed, got {len(found)} of them: "
                         "[pf.linearise(m, q, parameters={name: x}) for x in values]")  # fmt: skip
    counts = {len(part.states) for part in found}
    if len(counts) > 1:
        raise ModelError(f"{who}: the results have {min(counts)} to {max(counts)} states: leave out values at which the "
                         "machine is singular")  # fmt: skip
    return x, np.array([part.eigenvalues for part in found])


def followed(roots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Eigenvalues (n, states), each row in the order in which they continue those of the row before in a straight line.

    So frequencies that cross keep their branch. The pairs with the smallest distance are joined first.
    """
    found = roots.astype(complex)
    for k in range(1, len(found)):
        ahead = found[k - 1]
        if k > 1:
            ahead = ahead + (found[k - 1] - found[k - 2]) * (x[k] - x[k - 1]) / (x[k - 1] - x[k - 2])
        distance = np.abs(ahead[:, None] - roots[k])
        for _ in range(len(ahead)):
            i, j = np.unravel_index(np.argmin(distance), distance.shape)
            found[k, i] = roots[k, j]
            distance[i, :] = distance[:, j] = np.inf
    return found


def _growing(roots: np.ndarray) -> np.ndarray:
    """(n,) whether a motion grows at each value."""
    growth: np.ndarray = roots.real.max(axis=1, initial=0.0) > GROWS * np.abs(roots).max(initial=0.0)
    return growth


def stability_changes(x: np.ndarray, roots: np.ndarray) -> list[tuple[float, float]]:
    """The pairs of neighbouring values between which motions begin or cease to grow."""
    grows = _growing(roots)
    return [(float(x[i]), float(x[i + 1])) for i in np.flatnonzero(grows[1:] != grows[:-1])]
