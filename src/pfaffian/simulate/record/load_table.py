"""The loads of all joints of a run or a sweep as one table: peak, instant, place and uniqueness; also as a file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.compiled import Compiled, compile_terms
from pfaffian.evaluate.reactions import compiled_wrenches, through
from pfaffian.formats.text.file import as_path
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.table_file import Cell, write_table
from pfaffian.simulate.step.joint_loads import AXES, LOADS, UNITS, load_outputs, loaded_names
from pfaffian.simulate.step.reaction_output import MAGNITUDES
from pfaffian.starts.trajectory import Trajectory
from pfaffian.terms.traced_now import remembered

if TYPE_CHECKING:
    import xarray as xr

OF_PEAK = ("time", "state", *AXES, "unique")
"""What a table may contain of each peak, besides its size."""


def loads(result: xr.Dataset, m: Mechanism | None = None, *, file: Any = None) -> xr.Dataset:
    """The peak loads of every joint and closure over a run, or over each run of a batch or a sweep, as one table.

    Args:
        result: of `run` with record="loads", of `sweep` with keep="loads", or of a run that recorded q, v and u, whose records
            are then searched.
        m: the mechanism, needed for a result that recorded the motion and not the loads.
        file: of the table, one line for each run and joint: .csv, or .xlsx for a spreadsheet; None, the default: no file.
    Returns:
        Dataset over (run, joint): `force` [N] and `moment` [N m], the largest sizes of the reaction about the joint's origin;
        of each its instant `force_time` [s] (`force_state`, the number of the state, of a sweep over states), the place
        `force_x`, `force_y`, `force_z` of the joint then in the world [m], and `force_unique`, 1 where the motion determines
        all of its components; 0 where redundant constraints share it and it follows from multipliers of smallest norm.
    Raises ModelError: the result has neither loads nor a motion; the mechanism is missing; the name of the file
    has another ending. Raises OSError: the file cannot be written.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> result = pf.run(m, v={"hinge": 1.0}, duration=0.1, step=0.01, record="loads", backend="numpy")
        >>> table = pf.loads(result)
        >>> round(float(table["force"].sel(joint="hinge")), 2), float(table["force_time"].sel(joint="hinge"))
        (21.62, 0.0)
    """
    names = [f"{name}{end}" for name in MAGNITUDES for end in ("", *[f"_{x}" for x in OF_PEAK])]
    if not hasattr(result, "data_vars"):
        raise ModelError(f"loads: the result of a run or of a sweep is needed first, got {brief(result)}{_way_out(result)}")
    if "force" in result and "joint" in result["force"].dims:
        table = _alone(result[[n for n in names if n in result]])
    elif m is None:
        raise ModelError(f"loads: the result has none: run with record={LOADS!r}, sweep with keep={LOADS!r}, or give the "
                         "mechanism too, loads(result, m), for a result with q and v")  # fmt: skip
    else:
        table = _of_motion(as_mechanism(m), result)
    if file is not None:
        write_table(as_path(file), _rows(table))
    return table


def _way_out(given: Any) -> str:
    """What to do with an argument that is no result; empty if nothing is known of it."""
    if isinstance(given, Mechanism):
        return "; the mechanism comes after it, loads(result, m)"
    if isinstance(given, Trajectory):
        return ("; a motion of assemble has no inputs: inverse_dynamics(m, way.q, way.v, way.a).u gives them, and "
                "reaction_wrench(m, names, way.q, way.v, u) the loads at each position")  # fmt: skip
    return ""


def _alone(table: xr.Dataset) -> xr.Dataset:
    """The table without coordinates of the result that do not belong to its loads, and without attributes of the run."""
    return table.drop_vars([name for name in table.coords if name not in ("run", "joint")]).drop_attrs(deep=False)


def _of_motion(m: Mechanism, result: xr.Dataset) -> xr.Dataset:
    """The table of a result with a motion, from all of its records."""
    import xarray as xr

    for name in ("q", "v", *(["u"] if m.nu else [])):
        if name not in result:
            raise ModelError(f"loads: the result has no {name!r}; run with record={LOADS!r}")
    whole, single = result, "run" not in result["q"].dims
    whole = result.expand_dims("run") if single else result
    q, v = (whole[n].transpose("run", "time", ...).values for n in ("q", "v"))
    runs, count = q.shape[:2]
    u = whole["u"].transpose("run", "time", ...).values if m.nu else np.zeros((runs, count, 0))
    flat = [x.reshape(runs * count, -1) for x in (q, v, u)]
    p = None
    if "parameters" in whole:
        p = np.repeat(whole["parameters"].transpose("run", "parameter").values, count, axis=0)
    time = np.tile(result["time"].values, runs)
    names = loaded_names(m)
    wrenches = compiled_wrenches(m, names, "LOCAL").matrices(*flat, t=time, parameters=p)
    place = _places(m).matrices(*flat, t=time, parameters=p)
    data = dict[str, Any]()
    shape = (runs, count, len(names))
    for row, name in enumerate(MAGNITUDES):
        part = slice(3 * row, 3 * row + 3)
        size = np.stack([np.linalg.norm(wrenches[through(n)][:, part, 0], axis=1) for n in names], axis=1).reshape(shape)
        alone = np.stack([(wrenches[through(n)][:, part, 1] > 0).all(axis=1) for n in names], axis=1).reshape(shape)
        k = np.argmax(np.nan_to_num(size, nan=-1.0), axis=1)[:, None]
        columns = {"": size, "_time": np.broadcast_to(result["time"].values[None, :, None], shape), "_unique": alone * 1.0}
        columns |= {f"_{x}": place[f"joint_{x}"].reshape(shape) for x in AXES}
        units = {"": UNITS[name], "_time": "s", "_unique": "1"} | {f"_{x}": "m" for x in AXES}
        for end, x in columns.items():
            data[name + end] = ("run", "joint"), np.take_along_axis(x, k, axis=1)[:, 0], {"units": units[end]}
    table = xr.Dataset(data, {"joint": list(names), "run": whole["run"].values if "run" in whole.coords else np.arange(runs)})
    return table.isel(run=0, drop=True) if single else table


@remembered(64)
def _places(m: Mechanism) -> Compiled:
    """The places of all joints and closures as a compiled function."""
    places = {name: x for name, x in load_outputs(m).items() if name in [f"joint_{a}" for a in AXES]}
    return compile_terms(m, {name: lambda T, x=x: x.column(T, None) for name, x in places.items()}, squeeze=False)  # type: ignore[misc]


def _rows(table: xr.Dataset) -> Iterator[list[Cell]]:
    """The rows of a file: the titles with their units, then a row for each run and joint."""
    dims = [d for d in ("run", "joint") if d in table.dims]
    names = [str(n) for n in table.data_vars]
    values = {n: table[n].transpose(*dims).values for n in names}
    units = {n: table[n].attrs.get("units", "") for n in names}
    yield [*dims, *[f"{n} [{units[n]}]" if units[n] not in ("", "1") else n for n in names]]
    labels = [table[d].values.tolist() if d in table.coords else range(table.sizes[d]) for d in dims]
    for place in product(*[range(table.sizes[d]) for d in dims]):
        yield [*[x[i] for x, i in zip(labels, place, strict=True)], *[float(values[n][place]) for n in names]]
