"""Results as files of other viewers and tools: MCAP for Foxglove, .rrd for rerun, CSV and Parquet for tables."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pfaffian.errors import ModelError, brief, optional
from pfaffian.formats.text.file import as_path
from pfaffian.maths.so3 import quaternions
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.folder import prepare, write_file
from pfaffian.simulate.record.result import as_result
from pfaffian.viewer.build import scene
from pfaffian.viewer.scene import Scene, ScenePart, states_of

UNITS = {"coordinate": "q_unit", "velocity": "v_unit", "input": "u_unit"}
"""Axis of a signal -> coordinate of the result with the unit of each entry."""


class NumberColumn(NamedTuple):
    """A number over time.   values: (times,).   unit: "" where it has none."""

    name: str
    values: np.ndarray
    unit: str


def number_columns(result: xr.Dataset) -> list[NumberColumn]:
    """Every recorded number of one run, as "q.hinge" or "energy". Raises ModelError: the result has several runs."""
    if "run" in as_result(result).dims:
        raise ModelError("one run is needed, this result has several: choose one by result.isel(run=...)")
    columns = []
    for name, x in result.data_vars.items():
        if x.dims[:1] != ("time",) or len(x.dims) > 2 or x.dtype.kind not in "fiub":
            continue
        unit = str(x.attrs.get("units", ""))
        if len(x.dims) == 1:
            columns.append(NumberColumn(f"{name}", x.values, "" if unit == "1" else unit))
            continue
        axis = x.dims[1]
        entries = result[axis].values.tolist() if axis in result.coords else range(x.shape[1])
        place = "force_unit" if name == "reaction" else UNITS.get(str(axis), "")
        units = result[place].values.tolist() if unit.startswith("per ") and place in result.coords else [""] * x.shape[1]
        columns += [NumberColumn(f"{name}.{n}", y, u) for n, y, u in zip(entries, x.values.T, units, strict=True)]
    return columns


def write_columns(result: xr.Dataset, path: str | Path) -> None:
    """Write every recorded number of a run over time as one table: .csv, or .parquet with the units of the columns.

    Args:
        result: of one run.
        path: of the file; its suffix tells the format. The file is complete, or there is none.
    Raises ModelError: another suffix; a result of several runs; Parquet without the package pyarrow.
    Raises RunError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(m, v=[3.0], duration=0.1, step=0.05, record=["q", "v"], backend="numpy")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pf.results.write_columns(result, f"{folder}/block.csv")
        ...     print(Path(folder, "block.csv").read_text().split()[0])
        time,q.x,v.x,error.angle,error.length,error.speed
    """
    columns, place = number_columns(result), as_path(path, "the table to write")
    time = NumberColumn("time", result["time"].values, "s")
    if place.suffix == ".csv":
        stream = io.StringIO(newline="")
        rows = csv.writer(stream)
        rows.writerow([c.name for c in (time, *columns)])
        rows.writerows(zip(*(c.values.tolist() for c in (time, *columns)), strict=True))
        data = stream.getvalue().encode()
    elif place.suffix == ".parquet":
        arrow = optional("pyarrow", "pyarrow", "a .parquet file needs", "write .csv")
        parquet = optional("pyarrow.parquet", "pyarrow", "a .parquet file needs", "write .csv")
        arrays = [arrow.array(c.values) for c in (time, *columns)]
        about = [{"unit": c.unit} for c in (time, *columns)]
        fields = [arrow.field(c.name, a.type, metadata=x) for c, a, x in zip((time, *columns), arrays, about, strict=True)]
        sink = io.BytesIO()
        parquet.write_table(arrow.Table.from_arrays(arrays, schema=arrow.schema(fields)), sink)
        data = sink.getvalue()
    else:
        raise ModelError(f"write_columns: the file is {brief(place.name)}; a name that ends in .csv or .parquet is needed")
    write_file(prepare(place.parent) / place.name, data)


def _shapes(of: Scene) -> Iterator[tuple[int, ScenePart]]:
    """The solids on bodies that are visible at first, numbered."""
    yield from enumerate(part for part in of.parts if of.layers.get(part.layer))


def _stamp(t: float) -> dict[str, int]:
    """A time [s] as Foxglove writes it."""
    seconds, rest = divmod(round(t * 1e9), 10**9)
    return {"sec": seconds, "nsec": rest}


def _transforms(of: Scene, k: int, turns: np.ndarray) -> dict[str, Any]:
    """The poses of all bodies at record k, as Foxglove's FrameTransforms.   turns: (times, bodies, 4) quaternions, w last."""
    return {
        "transforms": [
            {
                "timestamp": _stamp(of.time[k]),
                "parent_frame_id": "world",
                "child_frame_id": body,
                "translation": dict(zip("xyz", of.positions[k, i].tolist(), strict=True)),
                "rotation": dict(zip("xyzw", turns[k, i].tolist(), strict=True)),
            }
            for i, body in enumerate(of.bodies)
        ]
    }


def _entities(of: Scene) -> dict[str, Any]:
    """The solids on bodies as Foxglove's SceneUpdate; each moves with the frame of its body."""
    origin = {"position": dict.fromkeys("xyz", 0.0), "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}
    return {
        "deletions": [],
        "entities": [
            {
                "timestamp": _stamp(of.time[0]),
                "frame_id": "world" if part.body < 0 else of.bodies[part.body],
                "id": f"{number} {part.name}",
                "lifetime": {"sec": 0, "nsec": 0},
                "frame_locked": True,
                "metadata": [],
                "triangles": [
                    {
                        "pose": origin,
                        "points": [dict(zip("xyz", x, strict=True)) for x in part.solid.vertices.tolist()],
                        "indices": part.solid.faces.ravel().tolist(),
                        "color": dict(zip("rgba", map(float, part.colour), strict=True)),
                        "colors": [],
                    }
                ],
            }
            for number, part in _shapes(of)
        ],
    }


class _Opened(NamedTuple):
    """What a log is written from.   package: that writes it.   place: of the file.   turns: (times, bodies, 4) quaternions."""

    package: Any
    place: Path
    columns: list[NumberColumn]
    scene: Scene
    turns: np.ndarray


def _opened(m: Mechanism, result: xr.Dataset, path: str | Path, module: str, package: str, why: str) -> _Opened:
    """What the log of a run is written from. Raises ModelError: the arguments or the package are not there."""
    as_mechanism(m)
    writer = optional(module, package, why)
    place, columns, of = as_path(path, "the log to write"), number_columns(result), scene(m, states_of(m, result))
    return _Opened(writer, place, columns, of, quaternions(of.rotations))


def write_mcap(m: Mechanism, result: xr.Dataset, path: str | Path) -> None:
    """Write a run as an MCAP file for Foxglove: poses and solids of the bodies, and every recorded number with its unit.

    The topics are /tf (FrameTransforms), /scene (SceneUpdate), and /signals/q, /signals/energy and so on, all as JSON.

    Args:
        m: the mechanism.
        result: of one run, that starts at 0 s or later.
        path: of the file, which is complete or absent.
    Raises ModelError: the package mcap is not installed; a result of several runs, of another mechanism, or from before 0 s.
    Raises RunError: the file cannot be written.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(m, v=[3.0], duration=0.1, step=0.05, backend="numpy")
        >>> pf.results.write_mcap(m, result, "block.mcap")  # doctest: +SKIP
    """
    writer, place, columns, of, turns = _opened(m, result, path, "mcap.writer", "mcap", "an .mcap file needs")
    time = result["time"].values
    if min(time[0], of.time[0]) < 0:
        raise ModelError("write_mcap: the run starts before 0 s, and MCAP has no such times: run it with start=0")
    sink = io.BytesIO()
    log = writer.Writer(sink)
    log.start(profile="", library="pfaffian")

    def channel(topic: str, schema: str, properties: dict[str, Any]) -> int:
        words = json.dumps({"type": "object", "properties": properties}).encode()
        return int(log.register_channel(topic, "json", log.register_schema(schema, "jsonschema", words)))

    def say(to: int, t: float, message: dict[str, Any]) -> None:
        at = round(t * 1e9)
        log.add_message(to, at, json.dumps(message).encode(), at)

    say(channel("/scene", "foxglove.SceneUpdate", {"entities": {"type": "array"}}), of.time[0], _entities(of))
    poses = channel("/tf", "foxglove.FrameTransforms", {"transforms": {"type": "array"}})
    for k, t in enumerate(of.time):
        say(poses, t, _transforms(of, k, turns))
    for signal in dict.fromkeys(c.name.partition(".")[0] for c in columns):
        entries = [c for c in columns if c.name.partition(".")[0] == signal]
        named = {c.name.partition(".")[2] or signal: c for c in entries}
        topic = channel(f"/signals/{signal}", signal, {n: {"type": "number", "description": c.unit} for n, c in named.items()})
        for k, t in enumerate(time):
            say(topic, t, {n: float(c.values[k]) for n, c in named.items() if np.isfinite(c.values[k])})
    log.finish()
    write_file(prepare(place.parent) / place.name, sink.getvalue())


def write_rrd(m: Mechanism, result: xr.Dataset, path: str | Path) -> None:
    """Write a run as an .rrd file for the viewer of rerun: poses and solids of the bodies, and every recorded number.

    The entities are world/BODY for the bodies, and signals/q/NAME, signals/energy and so on, over the timeline "time".

    Args:
        m: the mechanism.
        result: of one run.
        path: of the file, which is complete or absent.
    Raises ModelError: the package rerun-sdk is not installed; a result of several runs or of another mechanism.
    Raises RunError: the file cannot be written.

    Example:
        >>> import pfaffian as pf
        >>> m, _ = pf.read("quarter_car")
        >>> pf.results.write_rrd(m, pf.run(m, duration=0.1, backend="numpy"), "car.rrd")  # doctest: +SKIP
    """
    rr, place, columns, of, turns = _opened(m, result, path, "rerun", "rerun-sdk", "an .rrd file needs")
    with tempfile.TemporaryDirectory(prefix="pfaffian-log-") as folder:
        stream = rr.RecordingStream(f"pfaffian {m.name}", recording_id="run")
        stream.save(f"{folder}/log.rrd")
        entity = rr.new_entity_path
        for number, part in _shapes(of):
            parents = ["world"] if part.body < 0 else ["world", of.bodies[part.body]]
            colour = [round(255 * c) for c in part.colour]
            mesh = rr.Mesh3D(vertex_positions=part.solid.vertices, triangle_indices=part.solid.faces, albedo_factor=colour)
            stream.log(entity([*parents, f"{number} {part.name}"]), mesh, static=True)
        for i, body in enumerate(of.bodies):
            moves = rr.Transform3D.columns(translation=of.positions[:, i], quaternion=turns[:, i])
            stream.send_columns(entity(["world", body]), [rr.TimeColumn("time", duration=of.time)], moves)
        for c in columns:
            signal, _, name = c.name.partition(".")
            words = [signal, f"{name} [{c.unit}]" if c.unit else name] if name else [signal]
            values = rr.Scalars.columns(scalars=c.values.astype(float))
            stream.send_columns(entity(["signals", *words]), [rr.TimeColumn("time", duration=result["time"].values)], values)
        stream.disconnect()
        data = Path(folder, "log.rrd").read_bytes()
    write_file(prepare(place.parent) / place.name, data)
