"""Cost of first uses and short runs, counted in calls of Python and built-in functions, which are the same on any computer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from benchmarks.chain_length import chain, ladder
from pfaffian.evaluate.inverse import _compiled, actuated_by
from pfaffian.kernel import remember
from pfaffian.simulate.step import labels
from pfaffian.starts.equilibrium import _functions
from pfaffian.terms.lengths import machine_length
from tests.simulate.machines import pendulum
from tests.work import calls

DURATION = 2e-3
"""Duration of two steps [s]."""

MOST_CALLS_OF_A_STEP = 3_600
"""Bound on the calls of a run of one step: 3,555 with xarray 2026, 4,600 if xarray checks the labels."""


def first(make: Callable[[int], pf.Mechanism], n: int) -> int:
    """Number of calls in the first run of a machine of n parts."""
    m = make(n)
    return calls(lambda: pf.run(m, duration=DURATION, backend="interpreter"))


def hanging_rope(n: int) -> pf.Mechanism:
    """A free body with a rope of n segments on universal joints."""
    bodies, joints = [pf.body("top", 1.0, inertia=0.1)], [pf.joint("top", "free", "world", "top")]
    for i in range(n):
        placement = pf.pose((0, 0, -0.2 if i else 0))
        bodies.append(pf.body(f"segment {i}", 0.1, (0, 0, -0.1), 1e-3))
        joints.append(pf.joint(f"link {i}", "universal", bodies[-2].name, f"segment {i}", placement=placement))
    return pf.mechanism("rope", bodies, joints)


@pytest.fixture(autouse=True)
def without_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute nothing twice for comparison."""
    monkeypatch.setattr(remember, "CHECKING", False)


@pytest.fixture(scope="module")
def warm() -> None:
    """Load everything that a first run loads."""
    pf.run(ladder(2), duration=DURATION, backend="interpreter")


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("make", "most"), [(ladder, 95_000), (chain, 6_500), (hanging_rope, 10_500)])
def test_the_cost_of_a_first_run_is_linear_in_the_number_of_parts(make: Callable[[int], pf.Mechanism], most: int) -> None:
    """Each part takes 74,000, 4,800 and 8,000 calls. Dense orthonormalisation of the rows would take the square of their
    number, and recursions by matrix operations for each link 8,400 and 15,000 calls for a body and a segment."""
    assert (first(make, 18) - first(make, 6)) / 12 < most


@pytest.mark.usefixtures("warm")
def test_the_first_forward_dynamics_of_a_chain() -> None:
    """A body takes 3,400 calls, and 7,000 if each matrix operation of the recursions is called for each body."""
    machines = [chain(n) for n in (6, 18)]
    few, many = (calls(lambda m=m: pf.forward_dynamics(m, m.neutral())) for m in machines)
    assert (many - few) / 12 < 4_500


@pytest.mark.usefixtures("warm")
def test_the_first_linearisation_of_a_rope() -> None:
    """It takes 114,000 calls, and 965,000 if the equations are solved for each derivative by expressions."""
    m = hanging_rope(12)
    pf.linearise(hanging_rope(2))
    assert calls(lambda: pf.linearise(m)) < 150_000


def growth(size: Callable[[pf.Mechanism], int]) -> float:
    """How much more the size grows from 16 to 32 bodies of a chain than from 8 to 16: 2 if it is linear in their number."""
    few, twice, four = (size(chain(n)) for n in (8, 16, 32))
    return (four - twice) / (twice - few)


def test_the_operations_of_long_chains_do_not_grow_faster_than_what_they_return() -> None:
    """The mass matrix would make those of inverse dynamics quadratic, and its factor those of an equilibrium cubic."""
    forces = lambda m: _compiled(actuated_by(m, None), None, None, False, False).program.n_ops  # noqa: E731
    assert growth(forces) < 2.2
    assert growth(lambda m: _functions(m)[0].n_instructions()) < 4.4


LABELS = """
import sys
import pfaffian as pf
m = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("rail", "prismatic", "world", "cart")])
pf.run(m, duration=2e-3, step=1e-3, backend="numpy")
print(*[name for name in ("dask", "matplotlib", "scipy") if name in sys.modules])
"""


def test_a_result_imports_no_package_that_it_does_not_need() -> None:
    """xarray asks whether an array is dask's, for which it imports dask where that is installed."""
    done = subprocess.run([sys.executable, "-c", LABELS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_run_of_one_step() -> None:
    m = pendulum(motor=False)
    run = lambda: pf.run(m, duration=1e-3, step=1e-3, backend="interpreter")  # noqa: E731
    run()
    assert calls(run) < MOST_CALLS_OF_A_STEP


def test_a_first_run_evaluates_a_law_twice(tmp_path, monkeypatch):
    """Once for its digest, and once for its kinks and for the equations."""
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path))
    seen = []

    def servo(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> pf.control.Command:
        seen.append(terms)
        return pf.control.Command(-3.7 * terms.v[:1] - z, z_dot=terms.q[:1])

    pf.run(pendulum(1.0463), [0.3], duration=DURATION, control=pf.control.Control(servo, z=(0.0,)), backend="interpreter")
    assert len(seen) == 2


def test_lengths_are_computed_once_unless_a_callers_function_may_change_them() -> None:
    m, spring = ladder(2), pf.forces.generalised_force("spring", lambda k: -k.q)
    assert machine_length(m) is machine_length(m)
    pushed = m.with_(forces=[spring])
    assert machine_length(pushed) is not machine_length(pushed)
    assert ca.is_equal(machine_length(pushed), machine_length(m))


def test_results_share_no_mutable_labels() -> None:
    m = pendulum(motor=False)
    one, other = (pf.run(m, duration=DURATION, backend="interpreter") for _ in range(2))
    for name in one.variables:
        one[name].attrs["mine"] = "yes"
    one.attrs["mine"] = "yes"
    assert not [n for n, x in other.variables.items() if "mine" in x.attrs] and "mine" not in other.attrs
    assert other["run"].dims == () and set(other.indexes) == {"coordinate", "velocity", "time", "error_kind"}


def test_a_batch_of_one_run_is_labelled_as_a_single_run() -> None:
    """Values, attributes and coordinates are the same with and without the run axis."""
    m, q = pendulum(), np.array([0.3])
    single = pf.run(m, q, duration=DURATION, u=np.zeros((3, m.nu)), u_step=1e-3, backend="interpreter")
    axis = pf.run(m, q, duration=DURATION, u=np.zeros((3, m.nu)), u_step=1e-3, backend="interpreter", squeeze=False)
    assert axis.sizes["run"] == 1 and "run" not in single.sizes
    assert axis.squeeze("run").identical(single)


@pytest.mark.parametrize("squeeze", [True, False])
def test_a_result_is_labelled_as_xarray_itself_would(monkeypatch, squeeze: bool) -> None:
    """The shortcut and the way without it give the labels of xarray's public constructor, which makes all checks."""
    m, how = pendulum(), {"duration": DURATION, "backend": "interpreter", "squeeze": squeeze}
    direct = pf.run(m, [0.3], **how)
    parts = ({n: (x.dims, x.values, x.attrs) for n, x in of.items()} for of in (direct.data_vars, direct.coords))
    data, coords = parts
    checked = xr.Dataset(data, coords, direct.attrs)
    monkeypatch.setattr(labels, "xr", SimpleNamespace(Dataset=None, Coordinates=xr.Coordinates, Variable=xr.Variable))
    for found in (direct, pf.run(m, [0.3], **how)):
        assert found.identical(checked) and found.sizes == checked.sizes
        assert {n: x.equals(checked.indexes[n]) for n, x in found.indexes.items()} == dict.fromkeys(checked.indexes, True)
        assert found.sel(coordinate=m.q_names[0]).isel(time=-1).identical(checked.sel(coordinate=m.q_names[0]).isel(time=-1))
