"""Maps of a quantity over two coordinates or goals of a mechanism: its workspace, its singularities."""

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
from pfaffian.output.plain import label, text
from pfaffian.starts.assemble import assemble
from pfaffian.terms.terms import Terms
from pfaffian.viewer.drawing import style

Measure = Callable[[Terms], Any]
NEGLIGIBLE = 1e-9
"""A singular value below this fraction of the largest on the map counts as zero."""

FEWEST, MOST = 2, 400
"""Smallest and largest number of values along an axis of a map."""


class _Axis(NamedTuple):
    """An axis of a map.   name, unit: of a coordinate or goal.   values: (n,).   function: the goal; None for a coordinate."""

    name: str
    unit: str
    values: np.ndarray
    function: Callable[..., Any] | None

    @property
    def title(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True, eq=False)
class ConfigurationMap:
    """A quantity over a grid of configurations; made by `map_of`, displayed as a picture in a notebook.

    x: (nx,), y: (ny,) values along the axes.   values: (ny, nx), NaN where no configuration meets the constraints.
    q: (ny, nx, nq).
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
        what = f"{self.title} over {self.x_title}, {self.y_title}"
        return reprs.words(self, text(what), f"{100 * closed:.0f} % in reach")

    def figure(self) -> Any:
        """Draw the map as a matplotlib Figure; points out of reach are white."""
        from pfaffian.viewer.chart import Chart

        with style():
            figure = Chart(figsize=(6.4, 5.0), layout="constrained")
            ax = figure.subplots()
            ax.grid(False)
            mesh = ax.pcolormesh(self.x, self.y, np.ma.masked_invalid(self.values), shading="nearest", cmap="viridis")
            figure.colorbar(mesh, ax=ax, label=label(self.title, 60))
            ax.set_xlabel(label(self.x_title, 60))
            ax.set_ylabel(label(self.y_title, 60))
            figure.suptitle(
                label(f"{text(self.mechanism, 50)}: {text(self.title, 60)}; white is out of reach", 150), fontsize=10
            )
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
    """Compute a quantity over a grid of two coordinates or goals; `assemble` puts all other coordinates onto the constraints.

    Over coordinates, the map shows where a mechanism is near a singularity; over goals such as the position of a tool, its
    workspace.

    Args:
        m: the mechanism.
        x, y: the axes: (name of a coordinate, values (n,)), or for a goal (function of Kinematics that returns one number,
            values (n,)); such a function is lambda k: k.position("tool")[0].
        quantity: "regularity" of the constraints, "rank" of their rows, "manipulability" of a point of `body`, or a function of
            Terms that returns one number. Manipulability is the product of the largest singular values of the point's Jacobian
            along unit velocities that the constraints leave, as many of them as are nonzero somewhere on the map.
        body, point: for manipulability, a body and a point in its frame [m]; its origin by default.
        q: where the search starts, (nq,) or {name: number}; neutral by default. The search for each configuration starts at
            that of a neighbour on the map, so that the map stays on the branch nearest to q as far as that branch reaches.
        parameters: {name: number} or an array in the mechanism's order; defaults if None.
    Returns:
        ConfigurationMap with x, y: (nx,), (ny,); values: (ny, nx), NaN out of reach; q: (ny, nx, nq). `figure()` draws it, a
        notebook displays it.
    Raises ModelError: there is no such coordinate, body or quantity; values are not 2 to 400 increasing numbers.
    Warns RunWarning: no configuration of the map meets the constraints.

    Example:
        The workspace of a planar arm with links of 1 m and 0.5 m, and how far the arm is from its stretched singularity:

        >>> import numpy as np, pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (0.5, 0, 0), 0.1), pf.body("lower", 1.0, (0.2, 0, 0), 0.1)]
        >>> joints = [pf.joint("A", "revolute", "world", "upper"),
        ...           pf.joint("B", "revolute", "upper", "lower", placement=(1, 0, 0))]
        >>> arm, side = pf.mechanism("arm", bodies, joints), np.linspace(-2, 2, 5)
        >>> goals = [lambda k: k.position("lower", (0.5, 0, 0))[0], lambda k: k.position("lower", (0.5, 0, 0))[1]]
        >>> reach = pf.map_of(arm, (goals[0], side), (goals[1], side), "manipulability", body="lower", point=(0.5, 0, 0),
        ...                   q={"B": 1.0})
        >>> np.isfinite(reach.values).astype(int).tolist()
        [[0, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 1, 0, 1, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]]
    """
    as_mechanism(m)
    across, up = (_axis(m, axis, name) for axis, name in ((x, "x"), (y, "y")))
    measure, title = _measure(m, quantity, body, point)
    grid_q = _configurations(m, (across, up), q, parameters)
    closed = np.isfinite(grid_q).all(axis=2)
    values = np.full(closed.shape, np.nan)
    if closed.any():
        values[closed] = measure(grid_q[closed], parameters)
    return ConfigurationMap(across.values, up.values, values, grid_q, across.title, up.title, title, m.name)


def _axis(m: Mechanism, given: Any, what: str) -> _Axis:
    """An axis from the argument x or y of `map_of`, checked."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise ModelError(f"map_of: {what}: (coordinate or function of Kinematics, values) is needed, got {brief(given)}")
    varied, values = given[0], floats(given[1], f"map_of: values of {what}")
    if values.ndim != 1 or not FEWEST <= len(values) <= MOST or not (np.diff(values) > 0).all():
        raise ModelError(f"map_of: {what}: {FEWEST} to {MOST} increasing values are needed, got {brief(given[1])}")
    if callable(varied):
        name = getattr(varied, "__name__", "<lambda>")
        return _Axis(f"goal {what}" if name == "<lambda>" else name, "", values, varied)
    if varied not in m.q_names:
        raise ModelError(f"map_of: {what}: there is no coordinate {brief(varied)}; {nearest(varied, m.q_names)}")
    return _Axis(varied, m.q_units[m.q_names.index(varied)], values, None)


def _configurations(m: Mechanism, axes: Sequence[_Axis], q: Any, parameters: Any) -> np.ndarray:
    """Configurations (ny, nx, nq), NaN where there is none; each search starts at that of a neighbour, the first at q."""
    grid = np.meshgrid(*[axis.values for axis in axes])
    goals = {i: Parameter(f"goal {'xy'[i]} of a map", 0.0) for i, axis in enumerate(axes) if axis.function}
    rows = [holonomic(p.name, _row(axes[i].function, p)) for i, p in goals.items()]
    constrained = m.with_(constraints=[*m.constraints, *rows], parameters=[*m.parameters, *goals.values()])
    names = [axis.name for axis in axes if axis.function is None]
    default = _one(parameter_values(m, parameters), "parameters")
    start, grid_q = _one(configurations(m, q), "q"), np.full((*grid[0].shape, m.nq), np.nan)

    def close(at: tuple[np.ndarray, ...], guess: np.ndarray) -> bool:
        """Search configurations at these points of the grid from guesses (points, nq); return whether any is found."""
        guess = guess.copy()
        for axis, values in zip(axes, grid, strict=True):
            if axis.function is None:
                guess[:, m.q_names.index(axis.name)] = values[at]
        p = np.hstack([np.tile(default, (len(guess), 1)), *[grid[i][at][:, None] for i in goals]])
        with suppress(RunError):
            grid_q[at] = assemble(constrained, guess, parameters=p, hold=names, search=False).q
        return bool(np.isfinite(grid_q[at]).any())

    all_points = np.nonzero(np.ones(grid[0].shape, dtype=bool))
    if not close(all_points, np.tile(start, (len(all_points[0]), 1))):
        notice("map_of: no configuration of the map closes from q; start it from one that does", RunWarning)
        return grid_q
    direct, distance = grid_q.copy(), np.linalg.norm(grid_q - start, axis=2)
    grid_q[:] = np.nan
    while np.isfinite(remaining := np.where(np.isnan(grid_q[..., 0]), distance, np.nan)).any():
        # Among the points still free, the one nearest to q starts a branch, which spreads as far as it can.
        front = remaining == np.nanmin(remaining)
        grid_q[front] = direct[front]
        while len((at := _neighbours(np.isfinite(grid_q[..., 0]), front))[0]):
            front = np.zeros_like(front)
            close(at[:2], grid_q[at[2], at[3]])
            front[at[:2]] = np.isfinite(grid_q[at[:2]][:, 0])
    return grid_q


def _neighbours(closed: np.ndarray, front: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows and columns of points next to the front that have no configuration yet, and those of their neighbours in it."""
    source = np.full((*closed.shape, 2), -1)
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        y, x = np.nonzero(front)
        to_y, to_x = y + dy, x + dx
        inside = (to_y >= 0) & (to_y < closed.shape[0]) & (to_x >= 0) & (to_x < closed.shape[1])
        y, x, to_y, to_x = y[inside], x[inside], to_y[inside], to_x[inside]
        new = ~closed[to_y, to_x]
        source[to_y[new], to_x[new]] = np.stack([y[new], x[new]], axis=1)
    y, x = np.nonzero(source[..., 0] >= 0)
    return y, x, source[y, x, 0], source[y, x, 1]


def _row(function: Any, value: Parameter) -> Callable[[Any], ca.SX]:
    """The residual of a goal: its function of the kinematics minus its value."""
    return lambda k: ca.SX(function(k)) - value.symbol


def _one(rows: np.ndarray, what: str) -> np.ndarray:
    """The only row. Raises ModelError: there are several."""
    if len(rows) != 1:
        raise ModelError(f"map_of: {what}: one set is needed, got {len(rows)}")
    return rows[0]


def _measure(m: Mechanism, quantity: Any, body: str | None, point: Any) -> tuple[Callable[[np.ndarray, Any], np.ndarray], str]:
    """The function (q (n, nq), parameters) -> (n,) that computes the quantity, and its name."""
    if quantity == "manipulability":
        if body is None:
            raise ModelError("map_of: manipulability needs a body: name it, body=...")
        terms = {"J": lambda T: ca.jacobian(T.kinematics.velocity(body, point), T.v), "A": lambda T: T.A}
        matrices = compile_terms(m, terms, squeeze=False)
        return lambda q, p: _manipulability(matrices(q, parameters=p)), f"manipulability of {body}"
    measures = {"regularity": regularity, "rank": lambda T: formulation("auto", T)(T).rank}
    if not callable(quantity) and quantity not in measures:
        near = nearest(quantity, [*measures, "manipulability"])
        raise ModelError(f"map_of: quantity {brief(quantity)}: {near}, or a function of Terms")
    f = quantity if callable(quantity) else measures[quantity]
    name = reprs.function(quantity) if callable(quantity) else quantity
    compiled = compile_terms(m, {"value": f}, squeeze=False)
    if compiled.shapes["value"] != (1, 1):
        raise ModelError(f"map_of: quantity {name!r} must return one number, got {compiled.shapes['value']}")
    return lambda q, p: compiled(q, parameters=p)["value"][:, 0, 0], name


def _manipulability(at: dict[str, np.ndarray]) -> np.ndarray:
    """Manipulability (n,) from the Jacobian J (n, 3, nv) of a point and the constraint rows A (n, rows, nv)."""
    J, A = at["J"], at["A"]
    if A.shape[1]:
        J = J - J @ np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ A
    values = np.linalg.svd(J, compute_uv=False)
    count = int((values > NEGLIGIBLE * values.max(initial=1e-300)).sum(axis=1).max(initial=0))
    return np.prod(values[:, :count], axis=1)
