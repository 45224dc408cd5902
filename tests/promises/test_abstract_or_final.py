"""Each kind of state is one final class of data, which overrides no method of the abstract one."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import pfaffian
from pfaffian.states.abstract_system import AbstractSystem, StateData

EQUATIONS = {"enter", "show", "rate", "project", "signals", "inside", "check", "inertia", "identity", "changed"}
"""What a kind of state may define."""

for file in (Path(pfaffian.__file__).parent / "states").glob("*.py"):
    importlib.import_module(f"pfaffian.states.{file.stem}")
KINDS = AbstractSystem.__subclasses__()


def concrete(cls: type) -> set[str]:
    """Names of the methods and properties that the text of a class defines."""
    return {name for name, x in vars(cls).items() if callable(x) or hasattr(x, "__get__")} - {
        "__doc__",
        "__dict__",
        "__weakref__",
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_kind_of_state_is_final_frozen_data_with_its_equations(kind):
    assert getattr(kind, "__final__", False) and not kind.__subclasses__() and kind.__bases__ == (AbstractSystem,)
    assert is_dataclass(kind) and kind.__dataclass_params__.frozen, "a state is frozen data"
    named = {f.name for f in fields(kind)}
    own = concrete(kind) - {name for name in vars(kind) if name.startswith("__")}
    assert {"enter", "show", "rate"} <= own | named
    assert not (own | named) & (concrete(AbstractSystem) - EQUATIONS), "a method of AbstractSystem is overridden"


def test_what_every_kind_has_is_data_alone():
    """Above the abstract class there is one record, without a method."""
    assert AbstractSystem.__mro__[1:] == (StateData, object) and StateData.__subclasses__() == [AbstractSystem]
    assert all(name.startswith("__") for name in concrete(StateData) - {f.name for f in fields(StateData)})


def test_every_kind_has_a_file_of_its_own():
    """That of the mechanism itself, [q; v], stands beside the user's."""
    files = [inspect.getfile(kind) for kind in KINDS if kind.__name__ != "Standard"]
    assert len(set(files)) == len(files) > 5
