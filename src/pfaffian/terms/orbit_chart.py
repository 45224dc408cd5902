"""Charts of coadjoint orbits: the body momenta mu_b = Ad_chi^T mu of one spatial momentum mu. [chhabra14 (3.3.42)]

A group element is h chi, with h in the isotropy group of mu, which leaves mu unchanged, and chi in a section that intersects
each coset of that group once. After a motion a of the group that aligns the axis of mu with an axis of the frame,
chi is one of:

    a free joint with a linear momentum      turns about y and x at (x, y, 0); h a turn about z and a slide along it
    a free joint without, a spherical joint  turns about y and x; h all the rest
    a planar one with a linear momentum      a turn about z at (x, 0); h slides along y, and z
    all others, or mu = 0                    nothing: mu_b is mu
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.maths import se3
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.pose import Pose
from pfaffian.terms.connection import commutation_coefficients, directional_derivative
from pfaffian.terms.rates import twists
from pfaffian.terms.reduced_terms import blocks, group_of, indices, on_algebra, others
from pfaffian.terms.terms import Terms

NO_MOMENTUM = 1e-12
"""A linear momentum below this fraction of the largest entry of mu counts as zero."""


class Orbit(NamedTuple):
    """A chart of the orbit of a momentum.

    names, units: of the coordinates (d,).   mu: (k,) the momentum in the frame `aligned`.   aligned: (R, p) of that frame.
    section: coordinates -> (R, p) of chi in that frame.   split: (R, p) of an element there -> its coordinates.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    mu: np.ndarray
    aligned: tuple[np.ndarray, np.ndarray]
    section: Callable[[ca.SX], tuple[ca.SX, ca.SX]]
    split: Callable[[ca.SX, ca.SX], ca.SX]

    def coordinates(self, R: ca.SX, p: ca.SX) -> ca.SX:
        """Coordinates of a group element in the frame of the joint."""
        back = se3.inverse(*map(ca.DM, self.aligned))
        return self.split(*se3.compose(*back, R, p))


def orbit_of(group: Subgroup, mu: np.ndarray) -> Orbit:
    """The chart for a momentum mu (k,) conjugate to the velocities of a group, in the group's frame."""
    along, turns = len(group.along), len(group.rotation.axes)
    f, n = np.zeros(3), np.zeros(3)
    f[list(group.along)] = mu[:along]
    n[[i - 3 for i in group.rotation.axes]] = mu[along:]
    size = np.abs(mu).max(initial=0.0)
    if turns == 3 and np.linalg.norm(f) > NO_MOMENTUM * size:
        a = _with_third_column(f), np.cross(f, n) / (f @ f)
        names, units = ("x", "y", "about_y", "about_x"), ("m", "m", "rad", "rad")
        return Orbit(names, units, _transformed(group, a, mu), a, _pose_section, _pose_coordinates)
    if turns == 3 and size:
        a = _with_third_column(n), np.zeros(3)
        return Orbit(("about_y", "about_x"), ("rad", "rad"), _transformed(group, a, mu), a, _tilt_section, _tilt_coordinates)
    if turns == 1 and along > 1 and np.linalg.norm(f[:2]) > NO_MOMENTUM * size:
        c, s = f[1] / np.linalg.norm(f[:2]), -f[0] / np.linalg.norm(f[:2])
        a = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.zeros(3)
        pitch = group.pitch if group.screws else 0
        return Orbit(
            ("x", "about_z"), ("m", "rad"), _transformed(group, a, mu), a,
            lambda x: (_about_z(x[1]), ca.vertcat(x[0], 0, pitch * x[1])),
            lambda R, p: ca.vertcat(p[0], ca.atan2(R[1, 0], R[0, 0])),
        )  # fmt: skip
    a = np.eye(3), np.zeros(3)
    return Orbit((), (), mu, a, lambda x: (ca.SX.eye(3), ca.SX.zeros(3, 1)), lambda R, p: ca.SX(0, 1))


def body_momentum(group: Subgroup, orbit: Orbit, o: ca.SX) -> ca.SX:
    """mu_b (k, 1) = Ad_chi^T mu at coordinates o of the orbit."""
    return on_algebra(group, *orbit.section(o)).T @ ca.SX(ca.DM(orbit.mu))


def two_form(T: Terms, joint: str, orbit: Orbit, o: ca.SX) -> ca.SX:
    """Xi_mu (d + n, d + n) = d theta over the orbit's coordinates o (symbols) and the n velocities of all but a first joint.

    theta = <mu_b, chi^-1 d chi> + <mu_b, A y>,   d theta_ij = d_i theta_j - d_j theta_i - gamma_ij^k theta_k
    [chhabra14 (3.3.43)]
    """
    m, k, d = T.mechanism, T.kinematics, len(orbit.names)
    group = group_of(m.joint(joint))
    assert group is not None
    rest, mu_b = others(m, indices(m, (joint,))), body_momentum(group, orbit, o)
    of_section = twists(Pose(*orbit.section(o)), o, ca.SX.eye(d))[list(group.axes), :]
    theta_o, theta_s = of_section.T @ mu_b, blocks(T, joint).A.T @ mu_b
    gamma = commutation_coefficients(k)
    turned = [gamma[i][rest, rest] @ theta_s for i in rest]
    J_o, J_s = ca.jacobian(theta_o, o), directional_derivative(k, theta_s)[:, rest]
    Y_os = ca.jacobian(theta_s, o).T
    return ca.densify(ca.blockcat([[J_o.T - J_o, Y_os], [-Y_os.T, J_s.T - J_s - ca.horzcat(ca.SX(len(rest), 0), *turned).T]]))


def _transformed(group: Subgroup, a: tuple[np.ndarray, np.ndarray], mu: np.ndarray) -> np.ndarray:
    """The momentum (k,) in the frame of the pose a of the group."""
    return np.array(ca.DM(on_algebra(group, *map(ca.SX, a)))).T @ mu


def _with_third_column(n: np.ndarray) -> np.ndarray:
    """A rotation whose third column is along n."""
    z = n / np.linalg.norm(n)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def _about_z(angle: ca.SX) -> ca.SX:
    """(3, 3) rotation by an angle about z."""
    s, c = ca.sin(angle), ca.cos(angle)
    return ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def _tilt(about_y: ca.SX, about_x: ca.SX) -> ca.SX:
    """(3, 3) rotation about y, then about the new x."""
    cy, sy, cx, sx = ca.cos(about_y), ca.sin(about_y), ca.cos(about_x), ca.sin(about_x)
    return ca.blockcat([[cy, sy * sx, sy * cx], [0, cx, -sx], [-sy, cy * sx, cy * cx]])


def _pose_section(x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """(R, p) of the section for a free joint with a linear momentum, at the coordinates (x, y, about_y, about_x)."""
    return _tilt(x[2], x[3]), ca.vertcat(x[0], x[1], 0)


def _tilt_section(x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """(R, p) of the section for an angular momentum alone, at the coordinates (about_y, about_x)."""
    return _tilt(x[0], x[1]), ca.SX.zeros(3, 1)


def _tilt_coordinates(R: ca.SX, p: ca.SX) -> ca.SX:
    """(about_y, about_x) of a pose: the inverse of `_tilt_section`, also after a turn about z and any translation."""
    return ca.vertcat(ca.atan2(-R[2, 0], ca.sqrt(R[2, 1] ** 2 + R[2, 2] ** 2)), ca.atan2(R[2, 1], R[2, 2]))


def _pose_coordinates(R: ca.SX, p: ca.SX) -> ca.SX:
    """(x, y, about_y, about_x) of a pose: the inverse of `_pose_section`, also after a turn about z and a slide along z."""
    angle = ca.atan2(R[1, 0], R[0, 0])
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(c * p[0] + s * p[1], c * p[1] - s * p[0], _tilt_coordinates(R, p))
