"""Time histories of other tools, from tables in text and MATLAB 4 files that SciPy wrote."""

import numpy as np
import pytest
from scipy.io import savemat

import pfaffian as pf
from pfaffian.errors import ModelError, RunError, RunWarning
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


@pytest.mark.parametrize(
    "text",
    [
        'Time (ms),"a.r[1,2] (rad)",nan\n0,0.1,nan\n500,-3e-1,inf\n',
        '"time","a.r[1,2]",nan,\nms,rad,,\n0,0.1,nan,\n500,-3e-1,inf,\n',
        'time [ms];"a.r[1,2] [rad]";nan\n0;0.1;nan\n500;-0,3;inf\n',
    ],
    ids=["in brackets", "below, and separators at the end", "in quotes"],
)
def test_units_are_no_part_of_names(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    found = read_table(tmp_path / "a.csv")
    assert found.time.values.tolist() == [0, 0.5] and found["a.r[1,2]"].values.tolist() == [0.1, -0.3]
    assert found["a.r[1,2]"].attrs == {"units": "rad"} and np.isnan(found["nan"].values[0]) and np.isinf(found["nan"].values[1])


def test_motions_of_opensim_in_degrees_are_named(tmp_path):
    (tmp_path / "a.mot").write_text("walk\ninDegrees=yes\nendheader\ntime knee\n 0 10\n 1 20\n")
    with pytest.warns(RunWarning, match="its angles are in degrees"):
        assert read_table(tmp_path / "a.mot", ["time", "knee"]).knee.values.tolist() == [10, 20]


@pytest.mark.parametrize("names", ["x", 3, [3], {"q": 3}, {3: "x"}, {"time": "x"}])
def test_wrong_names_are_refused(tmp_path, names):
    (tmp_path / "a.csv").write_text("t,x\n0,1\n")
    with pytest.raises(ModelError, match="a list of names in the file is needed"):
        read_table(tmp_path / "a.csv", names)


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
    "same name": (b"time,x,x\n1,2,3\n", "two of its 3 columns have the same name, 'x'"),
    "a word": (b"time,x\n1,two\n", "row 1 has 'two' for 'x'"),
    "nothing": (b"time,x\n1,2\n2,\n3,4\n", "row 2 has nothing for 'x'"),
    "underscores": (b"time,x\n1,1_000\n", "row 1 has '1_000'"),
    "back": (b"time,x\n0,1\n1,2\n0.5,3\n", "record 3 of 'time' is 0.5 s, after 1.0 s; times must be finite"),
    "no number": (b"t;x\n0;1\nnan;2\n", "record 2 of 't' is nan s"),
    "unit of time": (b"time [days],x\n0,1\n", "the unit 'days' of the times is unknown; use one of s,"),
    "newer MATLAB": (b"MATLAB 5.0 MAT-file", "a MATLAB file of version 5 or later; save it with '-v4'"),
    "a long cell": (b"time,x\n0," + b"1" * 200_000, "field larger than field limit"),
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
    with pytest.raises(RunError, match=r"have the same name, 'pendulum\.phi'"):
        read_table(mat(tmp_path / "e.mat", False, name=["time", "pendulum.phi", "pendulum.phi", "pendulum.m"]))
    with pytest.raises(RunError, match="'time' has one value, and others have 5"):
        read_table(mat(tmp_path / "f.mat", False, dataInfo=np.where(INFO == 0, 1, INFO)))
    with pytest.raises(RunError, match="dataInfo has numbers that are not finite"):
        read_table(mat(tmp_path / "g.mat", False, dataInfo=np.where(INFO == -2, np.nan, INFO)))
    savemat(tmp_path / "d.mat", {"x": np.eye(2)}, format="4")
    with pytest.raises(RunError, match="the matrix Aclass is missing"):
        read_table(tmp_path / "d.mat")
    with pytest.raises(RunError, match=r"cannot read .*none\.csv"):
        read_table(tmp_path / "none.csv")


def test_an_unknown_variable_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"there is no variable 'pendulum.w'; did you mean 'pendulum.(m|phi)'"):
        read_table(mat(tmp_path / "a.mat", True), ["pendulum.w"])
