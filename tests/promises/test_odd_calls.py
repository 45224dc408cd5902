"""Calls that a new user tries: each error names the way out, and help lists no name of another package."""

import inspect
from types import ModuleType

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.public_names import ROOMS
from tools.api import public_names


@pytest.mark.parametrize("arguments", [([0.0, 1.0], [2.0, 3.0]), ([0.0, 1.0],), (np.arange(3), np.zeros((3, 2)))])
def test_samples_given_to_a_sampled_reference_are_sent_to_series(arguments):
    with pytest.raises(pf.ModelError, match=r"control\.series"):
        control.sampled(*arguments)


@pytest.mark.parametrize(("wrong", "way"), [("t", "s.terms.t"), ("M", "s.terms.M"), ("reactio", "reaction")])
def test_a_sample_sends_names_of_terms_to_its_terms(wrong, way):
    slide = pf.joint("slide", "prismatic", "world", "sledge", axis=(1, 0, 0))
    m = pf.mechanism("sledge", [pf.body("sledge", 3.0)], [slide], actuators=[pf.actuator("push", "slide")])
    law = control.discrete(lambda s: control.Command(getattr(s, wrong)), 0.01)
    with pytest.raises((pf.ModelError, AttributeError), match=way):
        pf.run(m, duration=0.1, control=law, backend="numpy")


def test_numbers_of_a_model_are_arrays_where_they_have_values():
    offset = pf.Parameter("offset", 2.0, "m")
    plate = pf.body("plate", 1.0, com=(1, 2, 3))
    joint = pf.joint("lift", "prismatic", "world", "plate", placement=(0, offset, 0))
    m = pf.mechanism("plate", [plate], [joint], parameters=[offset])
    assert np.array(plate.com).ravel().tolist() == [1, 2, 3]
    assert np.asarray(plate.inertia, dtype=float).shape == (3, 3)
    with pytest.raises(pf.ModelError, match=r"'offset'.*m.value"):
        np.array(joint.placement.p)
    assert m.value(joint.placement.p).ravel().tolist() == [0, 2, 0]


def _modules(module: ModuleType) -> list[ModuleType]:
    inner = [x for n in public_names(module) if isinstance(x := getattr(module, n), ModuleType)]
    return [module, *(x for x in inner if x.__name__.startswith(f"{module.__name__}."))]


@pytest.mark.parametrize("module", [m for room in ROOMS.values() for m in _modules(room)], ids=lambda m: m.__name__)
def test_help_of_a_room_lists_no_function_of_python(module):
    foreign = [name for name, x in vars(module).items() if inspect.isbuiltin(x) and not name.startswith("_")]
    assert not foreign
