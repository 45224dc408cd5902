"""Tasks: coordinates theta(q) that a law steers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reference import Reference, as_reference
from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import floats, is_whole, scalar, several, vector
from pfaffian.model.user_functions import call_for_column
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.recursions import mass_centre
from pfaffian.terms.terms import Terms

Task = Callable[[Kinematics], ca.SX]
"""A task: a function of the Kinematics that returns theta (k, 1), smooth in q and t.

`joints`, `point` and others make tasks. A function of your own is a task too; it is differentiated along the motion.

Example:
    >>> import pfaffian as pf
    >>> from pfaffian import control
    >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
    >>> task: control.Task = lambda k: 2 * k.position("cart")[0]
    >>> theta = pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, backend="numpy")
    >>> float(theta([0.3], [0.0])["theta"])
    0.6
"""

ROTATION = 1e-6
"""Largest error of R^T R = 1 in a rotation that a user gives as numbers."""


class TaskTerms(NamedTuple):
    """A task with its derivatives along the motion.

    theta: (k, 1).   rate: (k, 1) theta_dot.   J: (k, nv) d rate / d v.   drift: (k, 1) theta_ddot at v_dot = 0.
    """

    theta: ca.SX
    rate: ca.SX
    J: ca.SX
    drift: ca.SX


@dataclass(frozen=True)
class GeometricTask:
    """A task whose derivatives are known from geometry, so that no expression has to be differentiated.

    theta: the task.   motion: function of the Kinematics that returns its TaskTerms.
    """

    theta: Task
    motion: Callable[[Kinematics], TaskTerms]

    def __call__(self, k: Kinematics) -> ca.SX:
        return self.theta(k)


def task_terms(terms: Terms, task: Task) -> TaskTerms:
    """The TaskTerms of a task. Raises ModelError: it is empty, depends on v, or a coordinate does not depend on q."""
    k = terms.kinematics
    theta = _value(task, k)
    still = [i for i in range(theta.numel()) if not ca.depends_on(theta[i], k.q)]
    if still:
        raise ModelError(f"the task's coordinate {still[0]} does not depend on the configuration: no motion can change it")
    return _motion(task, k)


def _value(task: Task, k: Kinematics) -> ca.SX:
    """(k, 1) theta. Raises ModelError: the task is empty, or depends on velocities."""
    theta = call_for_column(task, "the task", k)
    if theta.numel() == 0:
        raise ModelError("a task needs at least one coordinate")
    if ca.depends_on(theta, k.v):
        raise ModelError("a task is a function of configuration and time; this one depends on velocities")
    return theta


def _motion(task: Task, k: Kinematics) -> TaskTerms:
    """The TaskTerms of a task: from geometry for a GeometricTask, otherwise by differentiation. k must be at symbols."""
    if isinstance(task, GeometricTask):
        return task.motion(k)
    theta = _value(task, k)
    J = ca.jacobian(theta, k.q) @ k.kinematic_matrix
    rate = J @ k.v + ca.jacobian(theta, k.t)
    return TaskTerms(theta, rate, J, ca.jtimes(rate, k.q, k.q_dot) + ca.jacobian(rate, k.t))


class Pursuit(NamedTuple):
    """Error and feedback of a task that follows a reference.

    x: the task's terms.   acceleration: (k, 1) of the reference.   error, error_rate: (k, 1) e and e_dot, reference minus
    task.   G_P, G_D: (k, 1) gains.   feedback: (k, 1) G_D e_dot + G_P e. [aghili05 (43)]
    """

    x: TaskTerms
    acceleration: ca.SX
    error: ca.SX
    error_rate: ca.SX
    G_P: ca.SX
    G_D: ca.SX
    feedback: ca.SX


def pursue(terms: Terms, task: Task, reference: Reference, w: ca.SX, stiffness: Any, damping: Any) -> Pursuit:
    """Error and feedback of a task. Raises ModelError: task and reference differ in the number of coordinates."""
    x = task_terms(terms, task)
    k = x.theta.numel()
    if reference.size != k:
        raise ModelError(f"the reference has {reference.size} coordinates, the task {k}")
    goal = reference.at(terms.t, w)
    error, error_rate = goal.value - x.theta, goal.rate - x.rate
    G_P, G_D = gain(stiffness, k, "stiffness"), gain(damping, k, "damping")
    return Pursuit(x, goal.acceleration, error, error_rate, G_P, G_D, G_D * error_rate + G_P * error)


def check_aim(task: Any, reference: Any) -> None:
    """Raise ModelError unless the arguments are a task and a Reference."""
    if not callable(task):
        raise ModelError(
            f"task: a function of the kinematics is needed, such as joints(name) or point(body), got {brief(task)}"
        )
    as_reference(reference)


def gain(value: Any, size: int, what: str) -> ca.SX:
    """(size, 1) gains from one number or one for each coordinate. Raises ModelError: another size, or a negative gain."""
    if several(value) or (isinstance(value, (ca.SX, ca.DM)) and value.numel() != 1):
        gains = vector(value, size, what)
    else:
        gains = ca.SX.ones(size, 1) * scalar(value, what)
    if gains.is_constant() and (np.array(ca.DM(gains)) < 0).any():
        raise ModelError(f"{what}: {brief(value)} is below zero and would drive errors away from zero")
    return gains


def joints(*names: str) -> Task:
    """Task: the coordinates of joints.

    Args:
        names: names of joints, one after another; theta contains their coordinates [rad, m] in this order.
    Returns:
        Task.
    Raises ModelError: no names, or an argument that is not a text; at the run, a joint that the mechanism does not have.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m, _ = pf.read("zoo:four_bar")
        >>> theta = control.joints("rocker", "crank")
        >>> pf.compile_terms(m, {"theta": lambda T: theta(T.kinematics)}, backend="numpy")([0.1, 0.2, 0.3])["theta"]
        array([0.3, 0.1])
    """
    if not names or not all(isinstance(n, str) for n in names):
        raise ModelError(f"joints takes names, one after another, such as joints('hip', 'knee'), got {brief(names)}")
    return lambda k: ca.vertcat(*[k.joint(n) for n in names])


def point(body: str, at: Any = (0, 0, 0), axes: Sequence[int] = (0, 1, 2)) -> Task:
    """Task: the world position of a point of a body.

    Args:
        body: name of the body.
        at: (3,) the point in the body's frame [m]; default the body's origin.
        axes: which world coordinates, some of 0, 1, 2 (x, y, z); default all three.
    Returns:
        Task with one coordinate [m] for each axis.
    Raises ModelError: a point without three numbers, other axes; at the run, a body that the mechanism does not have.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> task = control.point("cart", at=(0.0, 0.0, 0.5), axes=(0, 2))
        >>> pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, backend="numpy")([0.3], [0.0])["theta"]
        array([0.3, 0.5])
    """
    x, rows = vector(at, 3, f"point of {brief(body)}"), _axes(axes)

    def theta(k: Kinematics) -> ca.SX:
        return k.position(body, x)[rows, 0]

    def motion(k: Kinematics) -> TaskTerms:
        J = k.jacobian(body, "LOCAL_WORLD_ALIGNED", x)[rows, :]
        return TaskTerms(theta(k), J @ k.v, J, k.bias_acceleration(body, x)[rows, 0])

    return GeometricTask(theta, motion)


def _axes(axes: Any) -> list[int]:
    """The axes as a list of whole numbers. Raises ModelError: they are not some of 0, 1, 2."""
    chosen = list(axes) if several(axes) else [axes]
    if not chosen or not all(map(is_whole, chosen)) or not {0, 1, 2}.issuperset(chosen):
        raise ModelError(f"axes: some of 0, 1, 2 (x, y, z) are needed, got {brief(axes)}")
    return [int(i) for i in chosen]


def pose(body: str, about: Any = None) -> Task:
    """Task: position and rotation vector of a body, (6, 1).

    The rotation vector is log(about^T R) of the body's rotation R; it is regular within half a turn of `about`.

    Args:
        body: name of the body.
        about: (3, 3) rotation from which the rotation vector is measured; the identity if None.
    Returns:
        Task of six coordinates: position of the body's origin, world axes [m], then rotation vector [rad].
    Raises ModelError: about is not a (3, 3) rotation of numbers; at the run, a body that the mechanism does not have.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> m = pf.mechanism("wheel", [pf.body("wheel", 1.0)], [pf.joint("axle", "revolute", "world", "wheel", axis=(0, 0, 1))])
        >>> task = control.pose("wheel")
        >>> pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, backend="numpy")([0.5], [0.0])["theta"].round(6)
        array([0. , 0. , 0. , 0. , 0. , 0.5])
    """
    reference = np.eye(3) if about is None else np.array(floats(about, f"pose task of {body!r}: about"))
    if reference.shape != (3, 3):
        raise ModelError(f"pose task of {body!r}: about must be a (3, 3) rotation, got shape {reference.shape}")
    if not (np.abs(reference.T @ reference - np.eye(3)).max() <= ROTATION and np.linalg.det(reference) > 0):
        raise ModelError(f"pose task of {body!r}: about is no rotation: R^T R = 1 with determinant 1 is needed")
    fixed = ca.SX(ca.DM(reference.T))

    def motion(k: Kinematics) -> TaskTerms:
        J, bias = k.jacobian(body, "LOCAL_WORLD_ALIGNED"), k.bias_acceleration(body)
        turn = so3.log_motion(fixed @ k.rotation(body), fixed @ (J[3:, :] @ k.v))
        L = turn.L @ fixed
        J = ca.vertcat(J[:3, :], L @ J[3:, :])
        return TaskTerms(ca.vertcat(k.position(body), turn.phi), J @ k.v, J, ca.vertcat(bias[:3], L @ bias[3:] + turn.bias))

    return GeometricTask(lambda k: ca.vertcat(k.position(body), so3.log(fixed @ k.rotation(body))), motion)


def centre_of_mass(axes: Sequence[int] = (0, 1, 2)) -> Task:
    """Task: the world position of the mass centre of all bodies.

    Args:
        axes: which world coordinates, some of 0, 1, 2 (x, y, z); default all three.
    Returns:
        Task with one coordinate [m] for each axis.
    Raises ModelError: other axes.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0, com=(0.1, 0, 0))], [rail])
        >>> task = control.centre_of_mass(axes=[0])
        >>> theta = pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, backend="numpy")
        >>> round(float(theta([0.3], [0.0])["theta"]), 6)
        0.4
    """
    rows = _axes(axes)
    return lambda k: mass_centre(k)[rows, 0]


def stack(*tasks: Task) -> Task:
    """Task: the coordinates of several tasks, stacked into one column.

    Args:
        tasks: tasks, one after another; none has priority, since a law steers all coordinates at once.
    Returns:
        Task.
    Raises ModelError: an argument that is not a function.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> task = control.stack(control.joints("rail"), control.point("cart", axes=[2]))
        >>> pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, backend="numpy")([0.3], [0.0])["theta"]
        array([0.3, 0. ])
    """
    for t in tasks:
        if not callable(t):
            raise ModelError(f"stack takes tasks, functions of the kinematics, got {brief(t)}")

    def motion(k: Kinematics) -> TaskTerms:
        return TaskTerms(*[ca.vertcat(*parts) for parts in zip(*[_motion(t, k) for t in tasks], strict=True)])

    return GeometricTask(
        lambda k: ca.vertcat(*[call_for_column(t, f"part {i} of the stack", k) for i, t in enumerate(tasks, 1)]), motion
    )


def whole(m: Mechanism) -> Task:
    """Task: every coordinate of a mechanism without quaternions.

    Args:
        m: the mechanism.
    Returns:
        Task of nq coordinates [rad, m].
    Raises ModelError: a joint whose rotation is a quaternion; take other tasks for such a mechanism.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> law = control.projected(control.whole(m), control.set_point([1.0]), stiffness=4.0, damping=4.0)
        >>> run = pf.run(m, duration=0.05, step=0.01, control=law, backend="numpy")
        >>> float(run["task_error"].values[0])
        1.0
    """
    for j in as_mechanism(m).joints:
        if j.nq != j.nv:
            raise ModelError(
                f"joint {j.name!r} turns by a quaternion; choose the task's coordinates instead of the whole configuration"
            )
    return lambda k: k.q
