"""Mass matrix, bias force, momentum, energy: O(n) recursions over the tree."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import once_for
from pfaffian.maths import so3
from pfaffian.maths.inertia import translate_moments
from pfaffian.maths.repeated import repeated
from pfaffian.model.pose import Pose
from pfaffian.terms.kinematics import Acceleration, Kinematics
from pfaffian.terms.tree import Link, Turning, project_force, turned, turning


class Moments(NamedTuple):
    """Moments of a mass distribution about one origin: mass [kg], first moment h (3, 1) [kg m], inertia I (3, 3) [kg m^2]."""

    mass: ca.SX
    h: ca.SX
    I: ca.SX


class SpatialForce(NamedTuple):
    """A wrench: force f (3, 1) [N] and moment n (3, 1) [N m] about one origin."""

    f: ca.SX
    n: ca.SX


class Inertia(NamedTuple):
    """M (nv, nv) and c (nv, 1) of the inertia force M v_dot + c, and energy (1, 1), the work to reach v from rest [J]."""

    M: ca.SX
    c: ca.SX
    energy: ca.SX


def shift(k: Kinematics, i: int, x: Moments) -> Moments:
    """Transform moments from the frame of link i to that of the previous link."""
    X, P, R = k.steps[i], k.tree.links[i].placement.R, k.motions[i].R
    return Moments(*_shifted(turning(R))(*x, X.R, X.p, P, R))


@repeated
def _shifted(turns: Turning, mass: ca.SX, h: ca.SX, I: ca.SX, *frames: ca.SX) -> tuple[ca.SX, ...]:
    """Moments in the frame of the previous link.

    frames: R and p of the link's pose in the previous one, and the rotations of the joint's frame there and of its motion.
    """
    R, p, P, turn = frames
    return translate_moments(mass, R @ h, P @ turned(turns, turn, I) @ P.T, p)


def carry(X: Pose, x: SpatialForce) -> SpatialForce:
    """Transform a wrench, or one in each column, from frame B to frame A, X being the pose of B in A."""
    return SpatialForce(*_carried()(X.R, X.p, x.f, x.n))


@repeated
def _carried(R: ca.SX, p: ca.SX, f: ca.SX, n: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Force and moment in frame A, (R, p) being the pose of B in A."""
    f = R @ f
    return f, R @ n + _cross(p, f)


@repeated
def _momentum(mass: ca.SX, h: ca.SX, I: ca.SX, u: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Momentum of a link alone, and its angular momentum about its origin, in its axes."""
    return mass * u + ca.cross(w, h), I @ w + ca.cross(h, u)


def link_momentum(k: Kinematics, i: int) -> SpatialForce:
    """Momentum of link i alone [N s], and its angular momentum about its origin [N m s], in its axes."""
    link = k.tree.links[i]
    return SpatialForce(*_momentum()(link.mass, link.h, link.I, *k.link_velocity[i]))


def composite_moments(k: Kinematics) -> tuple[Moments, ...]:
    """For each link the moments, in its frame, of the link and all links that it carries; once for these Kinematics."""
    return once_for(k, "composite moments", lambda: _composite_moments(k))


def _composite_moments(k: Kinematics) -> tuple[Moments, ...]:
    """The moments, from the leaves to the root."""
    out = [Moments(link.mass, link.h, link.I) for link in k.tree.links]
    for i in reversed(range(len(out))):
        parent = k.tree.links[i].parent
        if parent >= 0:
            out[parent] = Moments(*[x + y for x, y in zip(out[parent], shift(k, i, out[i]), strict=True)])
    return tuple(out)


def mass_matrix(k: Kinematics) -> ca.SX:
    """Mass matrix M (nv, nv) by composite bodies, symmetric positive definite; zero between different branches of the tree."""
    M = _link_mass_matrix(k)
    if k.rates.plain:
        return M
    N = k.maps[1]
    M = N.T @ M @ N
    return ca.SX(ca.tril2symm(ca.tril(M)))


def _link_mass_matrix(k: Kinematics) -> ca.SX:
    """(ns, ns) mass matrix for the link rates, by composite bodies.

    Column j is the wrench for a unit rate j, projected onto its own link and onto all links before it. From link to link the
    wrenches of all columns are transformed together.
    """
    links, M = k.tree.links, ca.SX(k.tree.ns, k.tree.ns)
    columns = [list[int]() for _ in links]
    F = [SpatialForce(ca.SX(3, 0), ca.SX(3, 0))] * len(links)
    for i, c in reversed(list(enumerate(composite_moments(k)))):
        link, mine = links[i], list(range(links[i].v.start, links[i].v.stop))
        S = ca.densify(link.basis)
        s, w = S[:3, :], S[3:, :]
        f, n = c.mass * s + _cross(w, c.h), c.I @ w + _cross(c.h, s)
        along = ca.triu(project_force(link, f, n)) + ca.diag(link.armature)
        M[mine, mine] = ca.triu2symm(along)
        if columns[i]:
            M[mine, columns[i]] = project_force(link, *F[i])
            M[columns[i], mine] = M[mine, columns[i]].T
        if link.parent >= 0:
            all_of_it = SpatialForce(ca.horzcat(f, F[i].f), ca.horzcat(n, F[i].n))
            F[link.parent] = _beside(F[link.parent], carry(k.steps[i], all_of_it))
            columns[link.parent] += mine + columns[i]
    return M


def _beside(x: SpatialForce, y: SpatialForce) -> SpatialForce:
    """The columns of two sets of wrenches."""
    return SpatialForce(ca.horzcat(x.f, y.f), ca.horzcat(x.n, y.n))


def _cross(a: ca.SX, b: ca.SX) -> ca.SX:
    """a x b for each column; a column alone counts for all columns of the other."""
    (ax, ay, az), (bx, by, bz) = ca.vertsplit(a), ca.vertsplit(b)
    return ca.vertcat(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)


def inverse_dynamics(k: Kinematics, v_dot: ca.SX) -> ca.SX:
    """M v_dot + c (nv, 1) by the recursive Newton-Euler equations, without constraints, applied forces and inputs."""
    return _newton_euler(k, k.s_dot(v_dot), k.accelerations(v_dot, k.mechanism.gravity))


def bias_force(k: Kinematics) -> ca.SX:
    """c (nv, 1): Coriolis, centrifugal and gravity force, M v_dot + c = f + B u + reaction."""
    return _newton_euler(k, k.s_dot(), k.bias_accelerations)


def gravity_force(k: Kinematics) -> ca.SX:
    """(nv, 1) the part of c that gravity makes: the weight of each link and all that it carries, along its joint."""
    tau = list[ca.SX]()
    for i, (link, c) in enumerate(zip(k.tree.links, composite_moments(k), strict=True)):
        up = k.link_pose(i).R.T @ -k.mechanism.gravity
        tau.append(project_force(link, c.mass * up, ca.cross(c.h, up)))
    return k.along_v(_in_order(k, tau))


def inertial_wrench(link: Link, a: ca.SX, Phi: ca.SX) -> SpatialForce:
    """Inertia force, sum m (a + Phi x), and moment, sum m x cross (a + Phi x), of a link; a + Phi x accelerates its point x."""
    S = link.S
    turned = Phi @ S
    n = ca.vertcat(turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1])
    return SpatialForce(link.mass * a + Phi @ link.h, n + ca.cross(link.h, a))


def _newton_euler(k: Kinematics, s_dot: ca.SX, accelerations: tuple[Acceleration, ...]) -> ca.SX:
    """(nv, 1) generalised inertia force for accelerations of the links and of the link rates s, s_dot (ns, 1)."""
    F = [inertial_wrench(link, x.a, x.Phi) for link, x in zip(k.tree.links, accelerations, strict=True)]
    tau = [ca.SX(0)] * len(F)
    for i in reversed(range(len(F))):
        link = k.tree.links[i]
        tau[i] = project_force(link, *F[i]) + link.armature * s_dot[link.v]
        if link.parent >= 0:
            F[link.parent] = SpatialForce(*[x + y for x, y in zip(F[link.parent], carry(k.steps[i], F[i]), strict=True)])
    return k.along_v(_in_order(k, tau))


def _in_order(k: Kinematics, tau: list[ca.SX]) -> ca.SX:
    """(ns, 1) column of the parts of all links."""
    out = ca.SX.zeros(k.tree.ns, 1)
    for link, part in zip(k.tree.links, tau, strict=True):
        out[link.v] = part
    return out


def coriolis_matrix(k: Kinematics) -> ca.SX:
    """C (nv, nv) with C v the Coriolis and centrifugal force and C + C^T = dM/dt, for any kinds of joints.

    C = sum over links of J^T (M_b J_dot + N J): J the link's body Jacobian, M_b its inertia and N = [[0, -hat(l)], [-hat(l),
    -hat(k)]] skew, with l and k its linear and angular momentum, so that dM/dt - 2 C is skew for each link.
    """
    n = k.mechanism.nv
    C = ca.SX(n, n)
    for i, link in enumerate(k.tree.links):
        u, w = k.link_velocity[i]
        J = ca.jacobian(ca.vertcat(u, w), k.v)
        J_dot = ca.reshape(ca.jtimes(ca.vec(J), k.q, k.q_dot), 6, n)
        l, h = link.mass * u + ca.cross(w, link.h), so3.hat(link.h)
        M_b = ca.blockcat([[link.mass * ca.SX.eye(3), -h], [h, link.I]])
        N = ca.blockcat([[ca.SX(3, 3), -so3.hat(l)], [-so3.hat(l), -so3.hat(link.I @ w + ca.cross(link.h, u))]])
        C += J.T @ (M_b @ J_dot + N @ J)
        if not link.armature.is_zero():
            J = ca.jacobian(k.s[link.v], k.v)
            C += J.T @ ca.diag(link.armature) @ ca.reshape(ca.jtimes(ca.vec(J), k.q, k.q_dot), *J.shape)
    return ca.densify(C)


def momentum(k: Kinematics) -> ca.SX:
    """(6, 1) momentum [linear; angular about the world's origin], world axes [kg m/s, kg m^2/s]."""
    total = ca.SX.zeros(6, 1)
    for i in range(len(k.tree.links)):
        total += ca.vertcat(*carry(k.link_pose(i), link_momentum(k, i)))
    return total


def kinetic_energy(k: Kinematics) -> ca.SX:
    """T [J], summed over the links (armature included), independently of the mass matrix."""
    T = ca.SX(0)
    for link, (u, w) in zip(k.tree.links, k.link_velocity, strict=True):
        (T,) = _with_kinetic_energy()(T, link.mass, link.h, link.I, u, w, link.armature, k.s[link.v])
    return T


@repeated
def _with_kinetic_energy(
    T: ca.SX, mass: ca.SX, h: ca.SX, I: ca.SX, u: ca.SX, w: ca.SX, armature: ca.SX, s: ca.SX
) -> tuple[ca.SX]:
    """T and the kinetic energy of a link, with the velocities u, w of its origin and the rates s of its joint."""
    T = T + ((mass * ca.dot(u, u) + ca.dot(w, I @ w)) / 2 + ca.dot(u, ca.cross(w, h)))
    return (T + ca.dot(armature, s**2) / 2,)


def mass_centre(k: Kinematics) -> ca.SX:
    """(3, 1) mass centre of all moving bodies, world axes [m]. Raises ModelError: no moving body has a mass."""
    total, moment = ca.SX(0), ca.SX.zeros(3, 1)
    for i, link in enumerate(k.tree.links):
        X = k.link_pose(i)
        total += link.mass
        moment += X.R @ link.h + link.mass * X.p
    if total.is_zero():
        raise ModelError(f"mechanism {k.mechanism.name!r} moves no body that has a mass, so there is no mass centre")
    return moment / total


def gravity_energy(k: Kinematics, gravity: ca.SX) -> ca.SX:
    """Potential energy of weight [J], zero if every mass is at the world's origin."""
    V = ca.SX(0)
    for i, link in enumerate(k.tree.links):
        X = k.link_pose(i)
        (V,) = _with_weight()(V, gravity, link.mass, link.h, X.R, X.p)
    return V


@repeated
def _with_weight(V: ca.SX, gravity: ca.SX, mass: ca.SX, h: ca.SX, R: ca.SX, p: ca.SX) -> tuple[ca.SX]:
    """V and the energy of a link's weight, (R, p) being its pose in the world."""
    return (V - ca.dot(gravity, R @ h + mass * p),)
