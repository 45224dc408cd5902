"""Messages repeat little of a long text, and still contain the error and the way out."""

import pickle
import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import kernel
from pfaffian.errors import MESSAGE_LENGTH, bounded, notice
from pfaffian.formats import parse_urdf, parse_yaml

LONG = "x" * 1_000_000
SPACED = "no end " * 150_000


def joint(**changed):
    return pf.joint(**(dict(name="j", kind="revolute", parent="world", child="b", axis=(0, 1, 0)) | changed))


def body(name="b"):
    return pf.body(name, 1.0, (0.1, 0.2, 0.3), 0.1)


PENDULUM = pf.mechanism("pendulum", [body()], [joint()])
K = pf.symbols(PENDULUM).kinematics
CASES = {
    "mechanism": lambda text: pf.mechanism(text, [body()], [joint()]),
    "body": lambda text: pf.mechanism("m", [body(text)], [joint(child=text)]),
    "bodies of one name": lambda text: pf.mechanism("m", [body(text), body(text)], [joint(child=text)]),
    "no body": lambda text: pf.mechanism("m", [body()], [joint(child=text)]),
    "mass": lambda text: pf.body(text, text),
    "joint": lambda text: joint(name=text, kind=text),
    "both ends": lambda text: joint(parent=text, child=text),
    "coordinate": lambda text: pf.run(PENDULUM, {text: 1.0}, duration=1),
    "value": lambda text: pf.run(PENDULUM, {"j": text}, duration=1),
    "input": lambda text: pf.run(PENDULUM, u={text: 1}, duration=1),
    "parameter": lambda text: pf.run(PENDULUM, parameters={text: 1}, duration=1),
    "hold": lambda text: pf.run(PENDULUM, duration=0.01, hold=text, backend="numpy"),
    "record": lambda text: pf.run(PENDULUM, duration=0.01, record=[text], backend="numpy"),
    "backend": lambda text: kernel.compile(None, backend=text),
    "integrator": lambda text: pf.Scheme(integrator=text),
    "formulation": lambda text: pf.forward_dynamics(PENDULUM, [0.0], [0.0], formulation=text),
    "frame": lambda text: K.jacobian("b", text),
    "body of a function": lambda text: K.position(text),
    "actuator": lambda text: PENDULUM.with_(actuators=[pf.actuator("a", text)]),
    "closure": lambda text: PENDULUM.with_(constraints=[pf.closure("c", "weld", "b", text)]),
    "constraint": lambda text: PENDULUM.with_(constraints=[pf.holonomic(text, lambda k: k.q[0])]),
    "path": pf.read,
    "result": pf.results.read_netcdf,
    "new result": lambda text: pf.results.write_netcdf(pf.run(PENDULUM, duration=0.0, backend="numpy"), text),
    "URDF": lambda text: parse_urdf(f'<robot name="r"><link name="{text}"/></robot>'),
    "YAML": lambda text: parse_yaml(f"{text}: 1"),
    "study": pf.study.run_study,
}


@pytest.mark.parametrize("text", [LONG, SPACED], ids=["one word", "many words"])
@pytest.mark.parametrize("case", CASES)
def test_errors_are_short(case, text):
    with pytest.raises(pf.PfaffianError) as caught:
        CASES[case](text)
    assert len(str(caught.value)) <= MESSAGE_LENGTH


def test_long_messages_keep_the_way_out():
    with pytest.raises(pf.ModelError, match=r"joint 'x{50,}\.\.\. \(1000003 characters\).*one of fixed, revolute"):
        joint(name=LONG, kind="q")
    shortened = bounded("first " + SPACED + "last")
    assert len(shortened) <= MESSAGE_LENGTH and shortened.startswith("first no end") and shortened.endswith("end last")
    assert bounded("short " * 50) == "short " * 50


def test_warnings_are_short():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notice(LONG, UserWarning)
    assert len(str(caught[0].message)) <= MESSAGE_LENGTH


def test_errors_can_be_pickled():
    """Errors pass between processes with their messages."""
    error = pickle.loads(pickle.dumps(pf.RunError("why")))
    assert type(error) is pf.RunError and str(error) == "why" and np.size(error.args) == 1
