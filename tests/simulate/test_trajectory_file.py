"""Time histories of other tools, from tables in text and MATLAB 4 files that SciPy wrote."""

import numpy as np
import pytest
from scipy.io import savemat

import pfaffian as pf
from pfaffian.errors import ModelError, RunError
from pfaffian.results import read_table

TIME = np.array([0.0, 0.25, 0.5, 0.5, 1.0])
PHI, WEIGHT = np.sin(TIME), 3.5
NAMES = ["time", "pendulum.phi", "minus phi", "pendulum.m"]
TEXTS = ["Simulation time [s]", "Relative rotation angle [rad|deg]", "", "Mass of body [kg]"]
INFO = np.array([[0, 1, 0, -1], [2, 2, 0, -1], [2, -2, 0, -1], [1, 2, 0, 0]], dtype=np.int32)


def columns(words):
    """Texts as columns of characters, with a blank after the shorter ones."""
    return np.array([list(w.ljust(max(map(len, words)))) for w in words])


def mat(path, turned, single=False, **changes):
    kind = np.float32 if single else np.float64
    data_1, data_2 = np.array([[0.0, WEIGHT], [1.0, WEIGHT]]), np.column_stack([TIME, PHI]).astype(kind)
    parts = {"name": NAMES, "description": TEXTS} | {k: x for k, x in changes.items() if k in ("name", "description")}
    form = ["Atrajectory", "1.1", "", "binTrans" if turned else "binNormal"]
    matrices = {"Aclass": form} | {k: ["".join(c) for c in columns(x).T] if turned else x for k, x in parts.items()}
    numbers = {"dataInfo": INFO, "data_1": data_1, "data_2": data_2} | {k: x for k, x in changes.items() if k not in parts}
    savemat(path, matrices | {k: x.T if turned else x for k, x in numbers.items()}, format="4")
    return path


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_results_of_modelica(tmp_path, turned, single):
    found = read_table(mat(tmp_path / "a.mat", turned, single))
    near = 1e-7 if single else 0
    np.testing.assert_allclose(found["pendulum.phi"], PHI, rtol=near)
    np.testing.assert_allclose(found["minus phi"], -PHI, rtol=near)
    assert found.time.values.tolist() == TIME.tolist() and float(found["pendulum.m"]) == WEIGHT
    assert found["pendulum.phi"].attrs == {"long_name": TEXTS[1], "units": "rad"} and found["pendulum.m"].dims == ()


@pytest.mark.parametrize(
    "text",
    [
        '"time","pendulum.phi"\n0,0.1\n0.5,-3e-1\n',
        "time;pendulum.phi\n0,0;0,1\n0,5;-0,3\n",
        "Coordinates\nversion=1\nnRows=2\ninDegrees=no\nendheader\ntime\tpendulum.phi\n0\t0.1\n0.5\t-0.3\n",
        "# a comment\ntime, pendulum.phi,\n0, 0.1,\n0.5, -0.3,\n".replace(",\n", "\n"),
    ],
    ids=["csv", "decimal commas", "storage of OpenSim", "blanks"],
)
def test_tables_in_text(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    found = read_table(tmp_path / "a.csv", {"q": "pendulum.phi"})
    assert found.q.values.tolist() == [0.1, -0.3] and found.time.values.tolist() == [0, 0.5] and [*found.data_vars] == ["q"]


def test_a_run_beside_a_table(tmp_path):
    """A slide with 3 m/s for a second, recorded by the other tool at other times."""
    m = pf.mechanism("block", [pf.body("box", mass=2.0)], [pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))])
    run = pf.run(m, v=[3.0], duration=1, step=0.01)
    (tmp_path / "a.csv").write_text("time,box.x\n" + "\n".join(f"{t},{3 * t}" for t in (0, 0.333, 0.9)))
    other = read_table(tmp_path / "a.csv")["box.x"]
    assert float(abs(run.q.sel(coordinate="x").interp(time=other.time) - other).max()) < 1e-12


BAD = {
    "no numbers": (b"time,x\n", "no line of names with numbers below"),
    "no time": (b"a,b\n1,2\n", "no column has the name time"),
    "rows": (b"time,x\n1,2\n1,2,3\n", "row 2 has 3 numbers, for 2 names"),
    "same name": (b"time,x,x\n1,2,3\n", "two columns have the same name"),
    "a word": (b"time,x\n1,two\n", "could not convert"),
    "not text": (b"\xff\xfe\x01time", "not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_tables_are_named(tmp_path, name):
    data, message = BAD[name]
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(RunError, match=message):
        read_table(tmp_path / "a.csv")


def test_wrong_matlab_files_are_named(tmp_path):
    whole = mat(tmp_path / "a.mat", True).read_bytes()
    (tmp_path / "a.mat").write_bytes(whole[:-20])
    with pytest.raises(RunError, match="its matrix 'data_2' is cut off"):
        read_table(tmp_path / "a.mat")
    with pytest.raises(RunError, match="variable 'minus phi' is in no matrix"):
        read_table(mat(tmp_path / "b.mat", False, dataInfo=np.where(INFO == -2, -9, INFO)))
    with pytest.raises(RunError, match="do not belong together"):
        read_table(mat(tmp_path / "c.mat", False, dataInfo=INFO[:2]))
    savemat(tmp_path / "d.mat", {"x": np.eye(2)}, format="4")
    with pytest.raises(RunError, match="the matrix Aclass is missing"):
        read_table(tmp_path / "d.mat")
    with pytest.raises(RunError, match=r"cannot read .*none\.csv"):
        read_table(tmp_path / "none.csv")


def test_an_unknown_variable_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"there is no variable 'pendulum.w'; did you mean 'pendulum.(m|phi)'"):
        read_table(mat(tmp_path / "a.mat", True), ["pendulum.w"])
