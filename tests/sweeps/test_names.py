"""Names of variables in a store: whatever they are, they are no paths, and reading gives them back."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian import statistics, sweeps
from pfaffian.errors import ModelError
from pfaffian.sweeps.store import PLAIN, folders

SEED, COUNT = 3, 300

E_ACUTE, SUN, FACE = "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{CJK UNIFIED IDEOGRAPH-65E5}", "\N{GRINNING FACE}"

KNOWN = [
    "a\\b", "a\\..\\up", "C:\\x", "\\", "con", "NUL", "aux.txt", "com1", "x.partial", "top.partial", f"0.{'0' * 32}.partial",
    f"name-{'0' * 32}", " ", " a", "a ", "a.", "a\n", "\t", "\0", "a\0b", E_ACUTE, FACE, "\ud800", "A", "a", "x" * 64, "x" * 65,
    "x" * 300, SUN * 200, "%41", "a:b", "a?", "a*", "<a>", '"', "'", "-", "~", "$HOME", "0", "c", "zarr.json", "description",
    "chunk_digest", "Axis", "SPACE", "nan", "coordinates", "name",
]  # fmt: skip

REFUSED = [".", "..", "..\\up", ".hidden", "axis", "axis_unit", "block", "block_digest", "space", "a/b", "../up", "/etc/passwd",
           "", "time", "status", "run", "coordinate"]  # fmt: skip

M = pf.mechanism("box", [pf.body("box", 1.0)], [pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))], gravity=(0, 0, 0))
HOW = {"duration": 0.2, "step": 0.1, "backend": "numpy", "block": 4}
SPACE = {"q:x": [0.5, 1.5, 2.5]}


def odd_names() -> list[str]:
    """Known trouble, and names drawn from letters that paths, file systems and Zarr give a meaning."""
    draw, letters = random.Random(SEED), f"ab.\\ _-%:*AB0\0\n\u202e{E_ACUTE}"
    names = dict.fromkeys(KNOWN)
    while len(names) < COUNT:
        names[draw.choice("ab\\ _-%:AB0") + "".join(draw.choice(letters) for _ in range(draw.randint(0, 7)))] = None
    return list(names)


def test_odd_names_come_back_and_no_folder_is_named_by_them(tmp_path):
    names, place = odd_names(), tmp_path / "in" / "runs.zarr"
    keep = {name: (statistics.final if k % 2 else statistics.maximum)("q") for k, name in enumerate(names)}
    made = pf.sweep(M, SPACE, store=place, keep=keep, **HOW).load()
    assert len(names) == COUNT and {*names} <= {*made.data_vars}
    for name in names:
        np.testing.assert_array_equal(made[name].values, [[0.5], [1.5], [2.5]], err_msg=repr(name))
    assert sweeps.open_store(place).load().identical(made) and sweeps.damaged(place) == []
    assert [p.name for p in tmp_path.iterdir()] == ["in"] and [p.name for p in place.parent.iterdir()] == ["runs.zarr"]
    inside = [p.name for p in place.iterdir() if p.is_dir()]
    assert all(PLAIN.fullmatch(name) for name in inside) and len({name.casefold() for name in inside}) == len(inside)
    assert {"top.partial", "x.partial", "x" * 64, "c", "a", "space"} <= {*inside}
    assert not {"x" * 65, "A", "SPACE", "con", "a "} & {*inside}


def test_other_readers_of_zarr_find_the_name_in_an_attribute(tmp_path):
    pf.sweep(
        M,
        SPACE,
        store=tmp_path / "a.zarr",
        keep={"a\\b": statistics.histogram("q", [0, 1, 3]), "end": statistics.final("q")},
        **HOW,
    )
    with warnings.catch_warnings(action="error"):
        found = xr.open_zarr(tmp_path / "a.zarr", consolidated=False).load()
    named = {x.attrs.get("name", folder): x for folder, x in found.variables.items()}
    assert named["a\\b"].values.tolist() == [[[3, 0]], [[0, 3]], [[0, 3]]] and named["a\\b"].dims[-1] == "a\\b_bin"
    assert named["a\\b_bin"].values.tolist() == [0.5, 2.0] and "name" not in found["end"].attrs


@pytest.mark.parametrize("name", ["a\\b", "top.partial", "chunk_digest", "\ud800"])
def test_a_signal_with_an_odd_name_is_stored_over_time(tmp_path, name):
    how = {"keep": [name, "q"], "outputs": {name: lambda k: 2 * k.q[0]}, **HOW}
    found = pf.sweep(M, SPACE, store=tmp_path / "a.zarr", **how).load()
    np.testing.assert_array_equal(found[name].values, 2 * found["q"].values[:, :, 0])


@pytest.mark.parametrize("name", REFUSED)
def test_names_that_the_dataset_has_are_refused_for_statistics_and_signals(tmp_path, name):
    for keep in ({name: statistics.final("q")}, [name], {name: True, "end": statistics.final("q")}):
        with pytest.raises(ModelError):
            pf.sweep(M, SPACE, store=tmp_path / "a.zarr", keep=keep, outputs={name: lambda k: k.q[0]} if name else {}, **HOW)
    assert not [*tmp_path.iterdir()], "nothing is left behind"


def test_each_name_has_a_folder_of_its_own():
    names = odd_names()
    found = folders(names)
    assert len({folder.casefold() for folder in found.values()}) == len(names)
    assert folders(["A", "b"]) == {"A": "A", "b": "b"}
    found = folders(["A", "a", "Status", "status", "bC", "Bc", "Description", "description"])
    assert [name for name, folder in found.items() if name == folder] == ["a", "status"]
