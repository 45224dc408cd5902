"""Results as tables and as logs of other viewers, read back by the packages of these."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import ALGEBRA


def swinging() -> tuple[pf.Mechanism, object]:
    hinge = pf.joint("hinge/a b", "revolute", "world", "rod", axis=(0, 1, 0))
    rod = pf.body("rod", 1.0, com=(0, 0, -0.5), inertia=0.1, shape=pf.shape("box", size=(0.1, 0.1, 1.0)))
    m = pf.mechanism("pendulum", [rod], [hinge], actuators=[pf.actuator("motor", "hinge/a b")])
    return m, pf.run(m, [0.8], duration=0.3, step=0.01, backend="numpy")


def test_a_table_is_read_back_to_the_bit(tmp_path: Path) -> None:
    _, result = swinging()
    pf.results.write_columns(result, tmp_path / "run.csv")
    again = pf.results.read_table(tmp_path / "run.csv")
    np.testing.assert_array_equal(again["time"].values, result["time"].values)
    np.testing.assert_array_equal(again["q.hinge/a b"].values, result["q"].values[:, 0])
    np.testing.assert_array_equal(again["energy"].values, result["energy"].values)


def test_parquet_has_units(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    _, result = swinging()
    pf.results.write_columns(result, tmp_path / "run.parquet")
    table = parquet.read_table(tmp_path / "run.parquet")
    np.testing.assert_array_equal(table["v.hinge/a b"].to_numpy(), result["v"].values[:, 0])
    units = {name: table.field(name).metadata[b"unit"] for name in ("time", "q.hinge/a b", "v.hinge/a b", "energy", "u.motor")}
    assert list(units.values()) == [b"s", b"rad", b"rad/s", b"J", b"N m"]


def test_mcap_has_poses_solids_and_signals(tmp_path: Path) -> None:
    pytest.importorskip("mcap")
    from mcap.reader import make_reader

    m, result = swinging()
    pf.results.write_mcap(m, result, tmp_path / "run.mcap")
    told: dict[str, list] = {}
    with (tmp_path / "run.mcap").open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            told.setdefault(channel.topic, []).append((schema.name, message.log_time, json.loads(message.data)))
    (kind, _, solids), *more = told["/scene"]
    assert kind == "foxglove.SceneUpdate" and not more
    assert any(len(x["triangles"][0]["points"]) == 8 and x["frame_id"] == "rod" for x in solids["entities"])
    name, at, last = told["/tf"][-1]
    turn = last["transforms"][0]["rotation"]
    angle = result["q"].values[-1, 0]
    assert name == "foxglove.FrameTransforms" and at == 300_000_000 and len(told["/tf"]) == 31
    np.testing.assert_allclose([turn[c] for c in "wxyz"], [np.cos(angle / 2), 0, np.sin(angle / 2), 0], atol=ALGEBRA)
    assert (
        told["/signals/q"][-1][2] == {"hinge/a b": angle}
        and told["/signals/energy"][0][2]["energy"] == result["energy"].values[0]
    )


def test_rrd_has_the_same(tmp_path: Path) -> None:
    pytest.importorskip("rerun")
    m, result = swinging()
    pf.results.write_rrd(m, result, tmp_path / "run.rrd")
    data = (tmp_path / "run.rrd").read_bytes()
    assert data[:3] == b"RRF" and len(data) > 1000


def test_wrong_files_and_results_are_refused(tmp_path: Path) -> None:
    m, result = swinging()
    with pytest.raises(pf.ModelError, match=r"ends in \.csv or \.parquet"):
        pf.results.write_columns(result, tmp_path / "run.xls")
    several = pf.run(m, [[0.1], [0.2]], duration=0.02, step=0.01, backend="numpy")
    with pytest.raises(pf.ModelError, match="one run is needed"):
        pf.results.write_columns(several, tmp_path / "run.csv")
    assert not list(tmp_path.iterdir())
