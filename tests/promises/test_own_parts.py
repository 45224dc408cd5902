"""Seven things that one may add: each is written here, outside the library, and takes at most one row of one table.

Files, pictures, results and exported C code follow from that row.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.law import maker
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.joint import KINDS, JointFactor, JointKind
from pfaffian.simulate.step.integrators import INTEGRATORS, NO_FAULTS, Integrator, Moved
from pfaffian.viewer.build import scene
from pfaffian.viewer.scene import state_of
from tests.embedded.conftest import run_written_test
from tests.tolerance import ALGEBRA, PEER, close

TABLES = (KINDS, pf.FORMULATIONS, INTEGRATORS, pf.formats.FORMATS, pf.formats.LAWS)
QUIET: dict[str, Any] = {"backend": "numpy", "error_bound": np.inf}


@pytest.fixture(autouse=True)
def own_rows_are_removed() -> Iterator[None]:
    before = [set(table) for table in TABLES]
    yield
    for table, names in zip(TABLES, before, strict=True):
        for name in set(table) - names:
            del table[name]


def exported(law: control.Control, m: pf.Mechanism, folder: Path) -> None:
    """Export a law as C99 and run the test that is exported with it, which compares all bits."""
    gcc = shutil.which("gcc")
    assert gcc, "these tests compile C: install gcc"
    pf.export(law, m, folder, name="own", period=0.01)
    done = run_written_test(gcc, folder, "own", "-O1")
    assert done.returncode == 0, done.stdout


def held(m: pf.Mechanism) -> control.Control:
    """A law of the library, whose C code contains the equations of the machine."""
    return control.computed_torque(control.whole(m), control.set_point(np.zeros(m.nv)), stiffness=9.0, damping=6.0)


# -- a joint kind -----------------------------------------------------------------------------------------------------

SLOT = JointKind("pin in a slot", (JointFactor(SUBGROUPS["prismatic"], (1.0, 0.0, 0.0), "slide"),
                                   JointFactor(SUBGROUPS["revolute"], label="turn")))  # fmt: skip
"""A pin that slides along the x axis of its frame and turns about z."""


TILTED = pf.pose((0.1, 0.2, 0.3), rpy=(0.4, -0.3, 0.2))
BOOM = {"mass": 2.0, "com": (0.3, 0.1, 0), "inertia": (0.1, 0.2, 0.25)}


def boom(kind: str) -> pf.Mechanism:
    joint = pf.joint("pin", kind, "world", "boom", placement=TILTED, limits=[(-0.5, 0.5), (-1.0, 2.0)], damping=[0.3, 0.2])
    motors = [pf.actuator(n, "pin", component=i) for i, n in enumerate(("push", "twist"))]
    return pf.mechanism("boom", [pf.body("boom", **BOOM)], [joint], actuators=motors)


def test_a_joint_kind(tmp_path: Path) -> None:
    KINDS[SLOT.name] = SLOT
    m = boom(SLOT.name)
    assert m.q_names == ("pin.slide", "pin.turn") and m.u_units == ("N", "N m")
    bodies = [pf.body("slider"), pf.body("boom", **BOOM)]
    joints = [
        pf.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0), placement=TILTED, damping=0.3),
        pf.joint("turn", "revolute", "slider", "boom", damping=0.2),
    ]
    twin = pf.mechanism("twin", bodies, joints)
    q, v = [0.2, 0.7], [0.4, -1.1]
    motion = pf.forward_dynamics(m, q, v)
    close(motion.v_dot, pf.forward_dynamics(twin, q, v).v_dot, ALGEBRA, "accelerations", 10)
    pf.write(m, tmp_path / "boom.yaml")
    assert pf.read(tmp_path / "boom.yaml")[0] == m
    solids = [p.solid for p in scene(m, state_of(m, [0, 0])).parts if p.layer == "joints"]
    along = [np.ptp(np.asarray(s.vertices) @ np.array(ca.DM(TILTED.R)), axis=0) for s in solids]
    assert [int(np.argmax(x)) for x in along] == [0, 2], "a bar along x and a pin about z"
    exported(held(m), m, tmp_path)
    pytest.importorskip("mujoco")
    pf.write(m, tmp_path / "boom.xml")
    theirs, _ = pf.read(tmp_path / "boom.xml")
    assert theirs.q_names == ("pin.slide", "pin.turn") and theirs.q_limits.tolist() == m.q_limits.tolist()
    close(pf.forward_dynamics(theirs, q, v).v_dot, motion.v_dot, PEER, "accelerations of the file", 10)


def test_a_changed_joint_kind_is_another_machine() -> None:
    """The key of compiled equations knows what a user's kind is, not only its name."""
    q, found = [0.2, 0.7], []
    for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        KINDS["mine"] = JointKind("mine", (JointFactor(SUBGROUPS["prismatic"], axis, "slide"), SLOT.factors[1]))
        found.append(pf.forward_kinematics(boom("mine"), q)["boom"].position)
    moves = [x - np.array(ca.DM(TILTED.p)).ravel() for x in found]
    close(moves[0] @ moves[1], 0.0, ALGEBRA, "directions of the slides", 0.2**2)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (JointKind("other", SLOT.factors), r"a JointKind\('mine'"),
        (JointKind("mine", ()), r"a JointKind\('mine'"),
        (JointKind("mine", (JointFactor(SUBGROUPS["spherical"]),)), "with one velocity"),
        (JointKind("mine", (JointFactor(SUBGROUPS["revolute"], (0.0, 2.0, 0.0)),)), "of length one"),
        (JointKind("mine", (JointFactor(SUBGROUPS["revolute"]),) * 2), "a label of its own"),
    ],
)
def test_a_joint_kind_that_cannot_be(row: JointKind, words: str) -> None:
    with pytest.raises(pf.ModelError, match=words):
        KINDS["mine"] = row
    with pytest.raises(pf.ModelError, match="rows of the library cannot be changed"):
        KINDS["universal"] = SLOT


# -- a force ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Magnet:
    """V(k) of a magnet at the origin of the world that attracts a body."""

    body: str
    strength: float

    @property
    def bodies(self) -> tuple[str, ...]:
        return (self.body,)

    def __call__(self, k: pf.Kinematics) -> ca.SX:
        return -self.strength / ca.sqrt(ca.sumsqr(k.position(self.body)) + 0.01)


def test_a_force(tmp_path: Path) -> None:
    pf.formats.LAWS["magnet"] = Magnet
    base, body = pf.joint("base", "translation", "world", "ball"), pf.body("ball", 2.0)
    motors = [pf.forces.thruster(n, "ball", axis=np.eye(3)[i]) for i, n in enumerate("xyz")]
    pull = pf.forces.potential("pull", Magnet("ball", 3.0))
    m = pf.mechanism("ball", [body], [base], forces=[pull], actuators=motors, gravity=(0, 0, 0))
    r = np.sqrt(0.25 + 0.01)
    close(pf.forward_dynamics(m, [0.5, 0, 0]).v_dot, [-3 * 0.5 / r**3 / 2, 0, 0], ALGEBRA, "attraction", 10)
    result = pf.run(m, [0.5, 0, 0], duration=0.2, record=["q", "energy"], **QUIET)
    assert np.ptp(result.energy.values) < 1e-6 * 6.0, "it has a potential of up to 6 J"
    pf.write(m, tmp_path / "ball.yaml")
    assert "law: magnet" in (tmp_path / "ball.yaml").read_text() and pf.read(tmp_path / "ball.yaml")[0] == m
    with pytest.raises(pf.ModelError, match="force 'pull': there is no body 'bal'"):
        pf.formats.parse_yaml((tmp_path / "ball.yaml").read_text().replace("law: magnet, body: ball", "law: magnet, body: bal"))
    exported(held(m), m, tmp_path)
    del pf.formats.LAWS["magnet"]
    with pytest.raises(pf.ModelError, match="'magnet' is unknown"):
        pf.read(tmp_path / "ball.yaml")


# -- a formulation, an integrator -------------------------------------------------------------------------------------


def crank(**given: Any) -> pf.Mechanism:
    """A crank on a slider, with a motor."""
    rods = [pf.body(name, 1.0, com=(0.5, 0, 0), inertia=0.1) for name in ("crank", "rod")]
    hinges = [
        pf.joint("A", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("B", "revolute", "crank", "rod", axis=(0, -1, 0), placement=(1.0, 0, 0)),
    ]
    rail = pf.holonomic("rail", lambda k: k.position("rod", (1.5, 0, 0))[2])
    return pf.mechanism("crank", rods, hinges, constraints=[rail], actuators=[pf.actuator("motor", "A")], **given)


def saddle_point(terms: pf.Terms) -> pf.Motion:
    """The textbook formulation, for independent rows."""
    n, rows = terms.M.shape[0], terms.A.shape[0]
    x = ca.solve(
        ca.densify(ca.blockcat([[terms.M, -terms.A.T], [terms.A, ca.SX(rows, rows)]])), ca.vertcat(terms.force, terms.b)
    )
    return pf.Motion(x[:n], terms.A.T @ x[n:], ca.SX(rows))


def test_a_formulation() -> None:
    pf.FORMULATIONS["saddle point"] = saddle_point
    m = crank()
    q = pf.assemble(m, [0.7, -1.1], hold=["A"]).q
    mine, gauss = (pf.forward_dynamics(m, q, [1.0, -0.8], formulation=name) for name in ("saddle point", "gauss"))
    close(mine.v_dot, gauss.v_dot, ALGEBRA, "accelerations", 10)
    found = [pf.run(m, q, duration=0.1, scheme=pf.Scheme(formulation=n), **QUIET) for n in ("saddle point", "gauss")]
    close(found[0].q[-1], found[1].q[-1], PEER, "runs")


def heun(s: Any) -> Moved:
    """Heun's rule of order two."""
    x, first = s.variables.stepped(s.x), s.start(s.x, s.u0, s.t)
    last = s.f(s.variables.state(x + s.h * first.rate), s.u1, s.t + s.h)
    return Moved(s.variables.state(x + s.h / 2 * (first.rate + last.rate)), first.faults, last.near, NO_FAULTS)


def test_an_integrator() -> None:
    INTEGRATORS["heun"] = Integrator(heun, 2)
    m = crank()
    q = pf.assemble(m, [0.7, -1.1], hold=["A"]).q
    exact = pf.run(m, q, duration=0.2, step=1e-3, **QUIET).q.values[-1]
    scheme = pf.Scheme(integrator="heun")
    ends = [pf.run(m, q, duration=0.2, step=h, scheme=scheme, **QUIET).q.values[-1] for h in (0.02, 0.01)]
    errors = [np.abs(end - exact).max() for end in ends]
    assert 3 < errors[0] / errors[1] < 5, "an error of order two is a quarter at half the step"


# -- a law, a signal --------------------------------------------------------------------------------------------------


@maker
def bang_bang(*, force: float, width: float) -> control.Control:
    """A motor that pushes back with a force, smoothly within a width of zero, and records how hard it pushes."""

    def law(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        push = -force * ca.tanh((terms.q[0] + terms.v[0]) / width)
        return control.Command(ca.vertcat(push), signals={"effort": ca.fabs(push) / force})

    return control.Control(law, units={"effort": "1"})


def test_a_law_and_a_signal(tmp_path: Path) -> None:
    m = crank()
    law = bang_bang(force=20.0, width=0.1)
    q = pf.assemble(m, [0.7, -1.1], hold=["A"]).q
    power = pf.of_motion(lambda terms, motion: terms.u[0] * terms.v[0])
    r = pf.run(m, q, duration=0.1, control=law, outputs={"power": power}, record="all", **QUIET)
    close(r["power"], r["u"].values[:, 0] * r["v"].values[:, 0], ALGEBRA, "power", 100)
    close(r["effort"], np.abs(r["u"].values[:, 0]) / 20, ALGEBRA, "effort", 10)
    assert r["effort"].attrs["units"] == "1"
    pf.results.write_netcdf(r, tmp_path / "run.nc")
    assert pf.results.read_netcdf(tmp_path / "run.nc")["power"].equals(r["power"])
    assert pf.plot(r, "power") is not None
    exported(law, m, tmp_path)
    near = [pf.run(m, q, duration=0.02, control=bang_bang(force=f, width=0.1), **QUIET).q.values[-1] for f in (20.0, 25.0)]
    assert not np.array_equal(*near), "its arguments are in the key"


# -- a file format ----------------------------------------------------------------------------------------------------


def read_rows(path: str | Path, *, base: str = "world") -> pf.Mechanism:
    """A chain of rods from lines of name, mass and length."""
    bodies, joints, last, at = [], [], base, 0.0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        name, mass, length = line.split()
        bodies.append(pf.body(name, float(mass), com=(float(length) / 2, 0, 0), inertia=0.1))
        joints.append(pf.joint(name, "revolute", last, name, axis=(0, 1, 0), placement=(at, 0, 0)))
        last, at = name, float(length)
    return pf.mechanism("chain", bodies, joints)


def write_rows(m: pf.Mechanism, path: Path, settings: Any) -> dict[Path, str]:
    if any(b.mass.is_zero() for b in m.bodies):
        raise pf.ModelError(f"{m.name}: rows need a mass")
    return {path: "".join(f"{b.name} {float(b.mass)} {2 * float(b.com[0])}\n" for b in m.bodies)}


def test_a_file_format(tmp_path: Path) -> None:
    with pytest.raises(pf.ModelError, match=r"the suffix of the file must be one of .*\.mjcf$"):
        pf.write(crank(), tmp_path / "chain.rows")
    pf.formats.FORMATS["rows"] = pf.formats.Format(read_rows, write_rows, (".rows",))
    (tmp_path / "chain.rows").write_text("upper 2.0 0.5\nlower 1.5 0.25\n")
    m, settings = pf.read(tmp_path / "chain.rows")
    assert m.q_names == ("upper", "lower") and settings == pf.formats.RunSettings()
    assert pf.write(m, tmp_path / "again.rows") == (tmp_path / "again.rows",)
    assert pf.read(tmp_path / "again.rows", base="world")[0] == m
    with pytest.raises(pf.ModelError, match=r"rows has no option 'bse'; did you mean 'base'\?"):
        pf.read(tmp_path / "again.rows", bse="world")
    pf.write(m, tmp_path / "chain.yaml")
    assert pf.read(tmp_path / "chain.yaml")[0] == m


def test_a_file_format_by_its_suffix_first_bytes_or_root_element(tmp_path: Path) -> None:
    pf.formats.FORMATS["rows"] = pf.formats.Format(lambda path: crank(), None, (".rows",), first=(b"ROWS1",))
    pf.formats.FORMATS["crank"] = pf.formats.Format(lambda path: crank(), None, (".crank",), root="crank")
    pf.formats.FORMATS["raw"] = pf.formats.Format(
        lambda path: crank(lenient=Path(path).read_bytes() == b"\xff\x00"), None, (".raw",)
    )
    (tmp_path / "c.raw").write_bytes(b"\xff\x00")
    assert pf.read(tmp_path / "c.raw")[0].lenient
    (tmp_path / "a.bin").write_bytes(b"ROWS1\x00\xff")
    (tmp_path / "b.xml").write_text("<crank/>")
    assert [pf.read(tmp_path / name)[0].name for name in ("a.bin", "b.xml")] == ["crank", "crank"]
    with pytest.raises(pf.ModelError, match="the suffix of the file must be one of"):
        pf.write(crank(), tmp_path / "c.rows")


WRONG = {
    "a law that is no class": (pf.formats.LAWS, lambda k: k.q, "a frozen dataclass with __call__"),
    "a law without a function": (pf.formats.LAWS, pf.Pose, "a frozen dataclass with __call__"),
    "a format that is a function": (pf.formats.FORMATS, read_rows, "a Format"),
    "a format of a suffix without a dot": (pf.formats.FORMATS, pf.formats.Format(read_rows, None, ("rows",)), "a Format"),
    "a format of a name": (pf.formats.FORMATS, pf.formats.Format("read_rows", None, (".rows",)), "a Format"),
}


@pytest.mark.parametrize("what", WRONG)
def test_rows_that_do_not_fit_are_refused(what: str) -> None:
    table, row, words = WRONG[what]
    with pytest.raises(pf.ModelError, match=words):
        table["mine"] = row


@pytest.mark.parametrize("table", TABLES, ids=repr)
def test_rows_of_the_library_cannot_be_replaced(table: Any) -> None:
    name = next(iter(table))
    with pytest.raises(pf.ModelError, match="give your own another name"):
        table[name] = table[name]
