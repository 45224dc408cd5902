"""References of attitudes: a quaternion of any length is an attitude; errors name a reference that is no attitude."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from tests.tolerance import close

pm = pf.forces.pseudo_matrix
HUNG = pf.body("bell", 1.3, com=(0.0, 0.1, -0.4), inertia=(0.11, 0.2, 0.15, 0.01, 0.0, -0.02))
PAIRS = [control.pair("bell", inertia=pm(0, moments=1.0), damping=pm(0, moments=9.0), stiffness=pm(0, moments=25.0))]
W = np.array([0.4, -0.7, 1.1])
BEGIN = Rotation.from_rotvec([0.3, 0.9, -0.2])


def bell() -> pf.Mechanism:
    """A bell on a ball joint; its attitude is a quaternion."""
    return pf.actuate_all(pf.mechanism("bell", [HUNG], [pf.joint("ball", "spherical", "world", "bell")]))


def bell_by_matrix() -> pf.Mechanism:
    """A bell whose coordinates are the nine entries of its rotation."""
    rows = [0, 1, 2, 4, 5, 8]
    nine = pf.coordinates(
        "R", [f"r{i}" for i in range(9)], ("wx", "wy", "wz"),
        lambda q: ca.horzcat(*[ca.vec(ca.reshape(q, 3, 3) @ so3.hat(e)) for e in np.eye(3)]),
        phi=lambda q: ca.vertcat(ca.vec((R := ca.reshape(q, 3, 3)).T @ R - ca.DM.eye(3))[rows], ca.det(R) - 1),
        start=np.eye(3).ravel(),
    )  # fmt: skip
    hung = pf.edge("ball", "world", "bell", lambda k: pf.Pose(ca.reshape(k.q, 3, 3), ca.SX.zeros(3, 1)))
    return pf.actuate_all(pf.mechanism("bell", [HUNG], [hung], coordinates=[nine]))


def turning(t):
    """A steady turn about an axis of the bell that is not a principal one."""
    return so3.quat_mul(ca.DM(BEGIN.as_quat()), so3.quat_exp(ca.DM(W) * t))


def nine_numbers(t):
    return ca.vec(so3.quat_to_matrix(turning(t)))


def flown(m: pf.Mechanism, reference, start, **how) -> np.ndarray:
    """Rotations (samples, 3, 3) of the bell in a run that follows the reference."""
    law = control.prototype_tracking(PAIRS, reference, approach="body")
    r = pf.run(m, start, W, duration=0.5, step=0.01, control=law, backend="interpreter", **how)
    assert float(r.status) == 0
    q = r["q"].values
    return Rotation.from_quat(q).as_matrix() if m.nq == 4 else q.reshape(-1, 3, 3).transpose(0, 2, 1)


def steady(samples: int) -> np.ndarray:
    """Rotations (samples, 3, 3) of the steady turn, by SciPy."""
    return np.array([(BEGIN * Rotation.from_rotvec(W * 0.01 * k)).as_matrix() for k in range(samples)])


LENGTHS = {
    "two": lambda t: 2.0,
    "a thousandth of the least square": lambda t: 1e-200,
    "beyond the largest square": lambda t: 1e200,
    "one that changes": lambda t: ca.exp(3 * t),
    "one that turns its sign": lambda t: -0.3 - t,
}


@pytest.mark.parametrize("length", LENGTHS)
def test_a_quaternion_of_any_length_is_its_attitude(length):
    """A run that begins on the reference stays on it, to the step's accuracy."""
    reference = control.function_of_time(lambda t: LENGTHS[length](t) * turning(t), 4)
    found = flown(bell(), reference, BEGIN.as_quat())
    close(found, steady(len(found)), 1e-6, "attitude", 1.0)


def test_a_reference_of_nine_numbers_is_followed():
    found = flown(bell_by_matrix(), control.function_of_time(nine_numbers, 9), BEGIN.as_matrix().T.ravel())
    close(found, steady(len(found)), 1e-6, "attitude", 1.0)


MATRICES = {
    "twice as long": lambda t: 2 * nine_numbers(t),
    "a reflection": lambda t: ca.vec(ca.reshape(nine_numbers(t), 3, 3) @ ca.diag(ca.DM([1, 1, -1]))),
    "longer after a while": lambda t: (1 + 0.1 * ca.fmax(t - 0.2, 0)) * nine_numbers(t),
    "a rate that leads off": lambda t: nine_numbers(t) + 1e-3 * ca.sin(t) * ca.DM([1] + [0] * 8),
}


@pytest.mark.parametrize("case", MATRICES)
def test_nine_numbers_that_are_no_rotation_are_refused(case):
    """By the law, by check_reference and by feasibility."""
    m, reference = bell_by_matrix(), control.function_of_time(MATRICES[case], 9)
    law = control.prototype_tracking(PAIRS, reference, approach="body")
    with pytest.warns(pf.RunWarning, match=r"the reference is no configuration .* it is the reference of coordinates 'R'"):
        r = pf.run(m, BEGIN.as_matrix().T.ravel(), W, duration=0.5, step=0.01, control=law, backend="interpreter")
    assert float(r.status) != 0 and (case != "longer after a while" or float(r.stopped) == pytest.approx(0.2, abs=0.011))
    with pytest.raises(pf.ModelError, match="leaves the configurations, by coordinates 'R'"):
        control.check_reference(m, reference, 0.5)
    with pytest.raises(pf.ModelError, match="or no configuration"):
        pf.analysis.feasibility(m, reference, [0.0, 0.25, 0.5])


def test_numbers_that_never_are_a_rotation_are_refused_before_the_run():
    law = control.prototype_tracking(PAIRS, control.set_point(2 * np.eye(3).ravel()))
    with pytest.raises(pf.ModelError, match=r"reference of coordinates 'R' is no configuration: it leaves phi\(q\) = 0"):
        pf.run(bell_by_matrix(), duration=0.1, control=law, backend="interpreter")


def test_samples_that_are_no_attitude_are_refused():
    """Zeros for a quaternion, as from motion capture that has lost its markers, and twice a rotation matrix."""
    for m, names, wrong in (
        (bell(), "xyzw", np.zeros(12)),
        (bell_by_matrix(), "abcdefghi", np.r_[2 * np.eye(3).ravel(), np.zeros(18)]),
    ):
        law = control.prototype_tracking(PAIRS, control.sampled(list(names)))
        with pytest.warns(pf.RunWarning, match="the reference is no configuration"):
            r = pf.run(m, duration=0.1, step=0.01, control=law, u=wrong, backend="interpreter")
        assert float(r.stopped) == 0


def test_a_quaternion_that_vanishes_on_the_way_is_named():
    reference = control.function_of_time(lambda t: ca.fmax(0.1 - t, 0) * turning(t), 4)
    law = control.prototype_tracking(PAIRS, reference)
    with pytest.warns(pf.RunWarning, match=r"no configuration .*a quaternion is zero.* it is the reference of joint 'ball'"):
        r = pf.run(bell(), BEGIN.as_quat(), W, duration=0.5, step=0.01, control=law, backend="interpreter")
    assert float(r.stopped) == pytest.approx(0.1, abs=0.011)
    with pytest.raises(pf.ModelError, match="or no configuration"):
        pf.analysis.feasibility(bell(), reference, [0.05, 0.2])


def test_of_two_attitudes_the_one_that_vanishes_is_named():
    bodies = [pf.body(n, 1.0, inertia=(0.1, 0.2, 0.15)) for n in ("one", "two")]
    balls = [pf.joint("first", "spherical", "world", "one"), pf.joint("second", "spherical", "one", "two")]
    m = pf.actuate_all(pf.mechanism("two bells", bodies, balls))
    gains = {"inertia": pm(0, moments=1.0), "damping": pm(0, moments=9.0), "stiffness": pm(0, moments=25.0)}
    law = control.prototype_tracking(
        [control.pair("one", **gains), control.pair("two", **gains)],
        control.function_of_time(lambda t: ca.vertcat(0, 0, 0, 1, 0, 0, 0, ca.fmax(0.02 - t, 0)), 8),
    )
    with pytest.warns(pf.RunWarning, match=r"a quaternion is zero.* it is the reference of joint 'second'(?! and)"):
        pf.run(m, duration=0.05, step=0.01, control=law, backend="interpreter")


def test_a_pose_is_measured_from_rotations_only():
    for wrong in (2 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.full((3, 3), np.nan)):
        with pytest.raises(pf.ModelError, match=r"rotation|finite"):
            control.pose("bell", wrong)
