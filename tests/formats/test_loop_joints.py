"""What a joint that closes a loop carries, read from and written to every kind of file that can say it."""

import numpy as np

import pfaffian as pf
from tests.loops_cut_anywhere import FOUR_BAR, linkage
from tests.tolerance import PEER_CONSTRAINED, close

CARRIED = {"stiffness": 2.0, "rest": 0.3, "damping": 0.5, "limits": (-3.0, 2.5), "effort": 7.0}


def acceleration(m: pf.Mechanism, u: float = 0.0) -> float:
    """Of the crank, at 0.4 rad and 2 rad/s."""
    at = pf.assemble(m, {"A": 0.4}, v={"A": 2.0})
    return float(pf.forward_dynamics(m, at.q, at.v, u=np.full(m.nu, u)).v_dot[m.v_names.index("A")])


def test_yaml_writes_and_reads_what_a_closure_carries(tmp_path):
    motor = pf.actuator("motor", "C", gear=2.0, limits=(-3, 3))
    seal = pf.forces.joint_friction("seal", "C", 0.2, smooth=0.1)
    turns = pf.Parameter("turns", 0.5)
    m = linkage(FOUR_BAR, "C", {"C": CARRIED | {"near": turns}}, actuators=[motor], forces=[seal], parameters=[turns])
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    (c,), (d,) = m.constraints, again.constraints
    assert d.limits == c.limits and d.effort == c.effort and again.value(d.near) == m.value(c.near) == 0.5
    close(acceleration(again, 0.7), acceleration(m, 0.7), PEER_CONSTRAINED, "acceleration")
    pf.write(again, tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "m.yaml").read_text()


def test_yaml_keeps_the_zero_of_a_universal_closure(tmp_path):
    ends = {"placement_a": pf.pose((0.1, 0, 0), rpy=(0.2, 0.1, 0.4)), "axis": (1, 1, 0), "axis_b": (0, 0, 1)}
    joint = pf.closure("U", "universal", "world", "b", stiffness=(1.0, 2.0), rest=(0.1, 0.2), **ends)
    body, base = pf.body("b", mass=1.0, inertia=0.1), pf.joint("base", "free", "world", "b")
    m = pf.mechanism("m", [body], [base], constraints=[joint])
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    q = pf.assemble(m, [0.1, 0.0, 0.0, 0.3, 0.1, 0.2, 0.9]).q
    angles = [pf.compile_terms(x, {"U": lambda T: T.kinematics.joint("U")}, backend="numpy")(q)["U"] for x in (m, again)]
    close(angles[1], angles[0], PEER_CONSTRAINED, "angles")
    assert np.abs(angles[0]).max() > 0.05
