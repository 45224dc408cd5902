"""A quantity over two coordinates or goals of a mechanism, all others put onto the constraints: workspace, singularities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics import formulation
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.dynamics.regularity import regularity
from pfaffian.errors import ModelError, RunError, RunWarning, brief, nearest, notice
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.model import reprs
from pfaffian.model.constraint import holonomic
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import Parameter, floats
from pfaffian.output.plain import label
from pfaffian.simulate.assemble import assemble
from pfaffian.terms.terms import Terms
from pfaffian.viewer.drawing import style

Measure = Callable[[Terms], Any]
SMALLEST = 1e-9
"""Part of the largest singular value below which one is none."""

FEWEST, MOST = 2, 400
"""Values along an axis of a map."""


class _Axis(NamedTuple):
    """One axis.   name, unit: of what varies.   values: (n,).   function: a goal, None for a coordinate."""

    name: str
    unit: str
    values: np.ndarray
    function: Callable[..., Any] | None

    @property
    def title(self) -> str:
        return f"{label(self.name, 50)} [{self.unit}]" if self.unit else label(self.name, 50)


@dataclass(frozen=True, eq=False)
class ConfigurationMap:
    """A quantity over a grid of configurations; made by `map_of`, shown as a picture in a notebook.

    x: (nx,), y: (ny,) values along the axes.   values: (ny, nx), NaN where no configuration closes.   q: (ny, nx, nq).
    x_title, y_title, title: names with units.   mechanism: its name.
    """

    x: np.ndarray
    y: np.ndarray
    values: np.ndarray
    q: np.ndarray
    x_title: str
    y_title: str
    title: str
    mechanism: str

    def __repr__(self) -> str:
        closed = np.isfinite(self.q).all(axis=-1).mean()
        return reprs.words(self, f"{self.title} over {self.x_title}, {self.y_title}", f"{100 * closed:.0f} % in reach")

    def figure(self) -> Any:
        """The heat map as a matplotlib Figure; white is out of reach."""
        from pfaffian.viewer.chart import Chart

        with style():
            figure = Chart(figsize=(6.4, 5.0), layout="constrained")
            ax = figure.subplots()
            ax.grid(False)
            drawn = ax.pcolormesh(self.x, self.y, np.ma.masked_invalid(self.values), shading="nearest", cmap="viridis")
            figure.colorbar(drawn, ax=ax, label=self.title)
            ax.set_xlabel(self.x_title)
            ax.set_ylabel(self.y_title)
            figure.suptitle(f"{label(self.mechanism, 50)}: {self.title}; white is out of reach", fontsize=10)
        return figure

    def _repr_png_(self) -> bytes:
        return self.figure()._repr_png_()


def map_of(
    m: Mechanism,
    x: tuple[Any, Any],
    y: tuple[Any, Any],
    quantity: str | Measure = "regularity",
    *,
    body: str | None = None,
    point: Any = (0, 0, 0),
    q: Any = None,
    parameters: Any = None,
) -> ConfigurationMap:
    """A quantity over a grid of two coordinates or goals, all other coordinates put onto the constraints by `assemble`.

    Over coordinates it shows where a mechanism is near to a singularity, over goals such as the place of a tool its workspace.

    Args:
        m: the mechanism.
        x, y: what varies along each axis, and its values (n,): (name of a coordinate, values), or (function of Kinematics that
            returns one number, values) for a goal, such as lambda k: k.position("tool")[0].
        quantity: "regularity" of the constraints, "rank" of their rows, "manipulability" of a point of `body`, or a function of
            Terms that returns one number. Manipulability is the product of the singular values of the point's velocity along
            unit velocities that the constraints leave, of as many as there are anywhere on the map.
        body, point: for manipulability, a body and a point in its frame [m]; its origin by default.
        q: where the search starts, (nq,) or {name: number}; neutral by default. Each configuration is found from that of a
            neighbour on the map, so that it stays with the assembly of the nearest one as far as this goes.
        parameters: {name: number} or an array in the mechanism's order; defaults if None.
    Returns:
        x, y: (nx,), (ny,); values: (ny, nx), NaN out of reach; q: (ny, nx, nq); `figure()` draws it, and a notebook shows it.
    Raises ModelError: no such coordinate, body or quantity; values that are no list of numbers.
    Warns RunWarning: no configuration of the map closes.

    Example:
        The reach of a planar arm with links of 1 m and 0.5 m, and how far it is from stretched:

        >>> import numpy as np, pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (0.5, 0, 0), 0.1), pf.body("lower", 1.0, (0.2, 0, 0), 0.1)]
        >>> joints = [pf.joint("A", "revolute", "world", "upper"),
        ...           pf.joint("B", "revolute", "upper", "lower", placement=(1, 0, 0))]
        >>> arm, side = pf.mechanism("arm", bodies, joints), np.linspace(-2, 2, 5)
        >>> goals = [lambda k: k.position("lower", (0.5, 0, 0))[0], lambda k: k.position("lower", (0.5, 0, 0))[1]]
        >>> found = pf.map_of(arm, (goals[0], side), (goals[1], side), "manipulability", body="lower", point=(0.5, 0, 0),
        ...                   q={"B": 1.0})
        >>> np.isfinite(found.values).astype(int).tolist()
        [[0, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]
    """
    as_mechanism(m)
    across, up = (_axis(m, axis, name) for axis, name in ((x, "x"), (y, "y")))
    measure, title = _measure(m, quantity, body, point)
    found = _configurations(m, (across, up), q, parameters)
    closed = np.isfinite(found).all(axis=2)
    values = np.full(closed.shape, np.nan)
    if closed.any():
        values[closed] = measure(found[closed], parameters)
    return ConfigurationMap(across.values, up.values, values, found, across.title, up.title, title, m.name)


def _axis(m: Mechanism, given: Any, what: str) -> _Axis:
    if not isinstance(given, tuple) or len(given) != 2:
        raise ModelError(f"map_of: {what}: (coordinate or function of Kinematics, values) is needed, got {brief(given)}")
    of, values = given[0], floats(given[1], f"map_of: values of {what}")
    if values.ndim != 1 or not FEWEST <= len(values) <= MOST or not (np.diff(values) > 0).all():
        raise ModelError(f"map_of: {what}: {FEWEST} to {MOST} increasing values are needed, got {brief(given[1])}")
    if callable(of):
        name = getattr(of, "__name__", "<lambda>")
        return _Axis(f"goal {what}" if name == "<lambda>" else name, "", values, of)
    if of not in m.q_names:
        raise ModelError(f"map_of: {what}: there is no coordinate {brief(of)}; {nearest(of, m.q_names)}")
    return _Axis(of, m.q_units[m.q_names.index(of)], values, None)


def _configurations(m: Mechanism, axes: Sequence[_Axis], q: Any, parameters: Any) -> np.ndarray:
    """(ny, nx, nq) of configurations, NaN where none closes: each found from a neighbour's, the first from q."""
    grid = np.meshgrid(*[axis.values for axis in axes])
    goals = {i: Parameter(f"goal {'xy'[i]} of a map", 0.0) for i, axis in enumerate(axes) if axis.function}
    rows = [holonomic(p.name, _row(axes[i].function, p)) for i, p in goals.items()]
    constrained = m.with_(constraints=[*m.constraints, *rows], parameters=[*m.parameters, *goals.values()])
    names = [axis.name for axis in axes if axis.function is None]
    default = _one(parameter_values(m, parameters), "parameters")
    start, found = _one(configurations(m, q), "q"), np.full((*grid[0].shape, m.nq), np.nan)

    def close(at: tuple[np.ndarray, ...], guess: np.ndarray) -> bool:
        """Configurations at these points of the grid from (points, nq); whether any closes."""
        guess = guess.copy()
        for axis, values in zip(axes, grid, strict=True):
            if axis.function is None:
                guess[:, m.q_names.index(axis.name)] = values[at]
        p = np.hstack([np.tile(default, (len(guess), 1)), *[grid[i][at][:, None] for i in goals]])
        with suppress(RunError):
            found[at] = assemble(constrained, guess, parameters=p, hold=names, search=False).q
        return bool(np.isfinite(found[at]).any())

    every = np.nonzero(np.ones(grid[0].shape, dtype=bool))
    if not close(every, np.tile(start, (len(every[0]), 1))):
        notice("map_of: no configuration of the map closes from q; start it from one that does", RunWarning)
        return found
    alone, far = found.copy(), np.linalg.norm(found - start, axis=2)
    found[:] = np.nan
    while np.isfinite(left := np.where(np.isnan(found[..., 0]), far, np.nan)).any():
        fresh = left == np.nanmin(left)  # one assembly of the mechanism spreads as far as it goes, then the next
        found[fresh] = alone[fresh]
        while len((at := _beside(np.isfinite(found[..., 0]), fresh))[0]):
            fresh = np.zeros_like(fresh)
            close(at[:2], found[at[2], at[3]])
            fresh[at[:2]] = np.isfinite(found[at[:2]][:, 0])
    return found


def _beside(closed: np.ndarray, fresh: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows and columns of points that are open beside a fresh one, and rows and columns of that one."""
    beside = np.full((*closed.shape, 2), -1)
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        y, x = np.nonzero(fresh)
        to_y, to_x = y + dy, x + dx
        inside = (to_y >= 0) & (to_y < closed.shape[0]) & (to_x >= 0) & (to_x < closed.shape[1])
        y, x, to_y, to_x = y[inside], x[inside], to_y[inside], to_x[inside]
        new = ~closed[to_y, to_x]
        beside[to_y[new], to_x[new]] = np.stack([y[new], x[new]], axis=1)
    y, x = np.nonzero(beside[..., 0] >= 0)
    return y, x, beside[y, x, 0], beside[y, x, 1]


def _row(function: Any, value: Parameter) -> Callable[[Any], ca.SX]:
    return lambda k: ca.SX(function(k)) - value.symbol


def _one(rows: np.ndarray, what: str) -> np.ndarray:
    if len(rows) != 1:
        raise ModelError(f"map_of: {what}: one set is needed, got {len(rows)}")
    return rows[0]


def _measure(m: Mechanism, quantity: Any, body: str | None, point: Any) -> tuple[Callable[[np.ndarray, Any], np.ndarray], str]:
    """(q (n, nq), parameters) -> (n,) of the quantity, and its name."""
    if quantity == "manipulability":
        if body is None:
            raise ModelError("map_of: manipulability is that of a body: name it, body=...")
        terms = {"J": lambda T: ca.jacobian(T.kinematics.velocity(body, point), T.v), "A": lambda T: T.A}
        both = compile_terms(m, terms, squeeze=False)
        return lambda q, p: _manipulability(both(q, parameters=p)), f"manipulability of {body}"
    known = {"regularity": regularity, "rank": lambda T: formulation("auto", T)(T).rank}
    if not callable(quantity) and quantity not in known:
        near = nearest(quantity, [*known, "manipulability"])
        raise ModelError(f"map_of: quantity {brief(quantity)}: {near}, or a function of Terms")
    f = quantity if callable(quantity) else known[quantity]
    name = reprs.function(quantity) if callable(quantity) else quantity
    one = compile_terms(m, {"value": f}, squeeze=False)
    if one.shapes["value"] != (1, 1):
        raise ModelError(f"map_of: quantity {name!r} must return one number, got {one.shapes['value']}")
    return lambda q, p: one(q, parameters=p)["value"][:, 0, 0], name


def _manipulability(at: dict[str, np.ndarray]) -> np.ndarray:
    """(n,) from J (n, 3, nv) and the rows A (n, rows, nv)."""
    J, A = at["J"], at["A"]
    if A.shape[1]:
        J = J - J @ np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ A
    values = np.linalg.svd(J, compute_uv=False)
    count = int((values > SMALLEST * values.max(initial=1e-300)).sum(axis=1).max(initial=0))
    return np.prod(values[:, :count], axis=1)
