"""The fastest part of a machine at a state, by name: it limits the length of a step.

The applied forces, the force of a law and the inertia forces are differentiated one by one. Along the velocities that
constraints leave, orthonormal in the metric of M, their derivatives form a matrix. Its eigenvalue of largest modulus is the
fastest rate, which is attributed to the force with the largest share along its eigenvectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.open_loop import is_open
from pfaffian.control.reason import foremost, participation
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.maths.linear import largest_entry
from pfaffian.maths.spectrum import Cluster, spectrum
from pfaffian.model.mechanism import Mechanism
from pfaffian.parts.contact import compliant_parts, press_law
from pfaffian.simulate.step.closed_loop import command_of
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.step import Scheme
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered

EQUAL = 1e-9
"""Relative difference of rates that count as equal; the first of them is named."""

LARGE = 150
"""Number of velocities above which no part is named: for 500, half a minute would go into the derivatives of this advice."""

HUGE = 1e100
"""Size of a derivative of a force from which on it counts as infinite: eigenvalues of such are none."""

OF_JOINT, MOTION, TOUCHING = "spring or damper of ", "the motion of ", " once it touches"


class Fastest(NamedTuple):
    """A part of a machine and how fast it moves.

    name: of the part.   rate: its eigenvalue [1/s], or the speed of a spin [rad/s] as an imaginary number.
    """

    name: str
    rate: complex

    @property
    def size(self) -> float:
        """|rate| to as many digits as rounding leaves, so that rounding does not order equal ones."""
        return float(f"{abs(self.rate):.9e}")

    @property
    def damped(self) -> bool:
        """Whether the motion of the part decays without oscillating much."""
        return self.rate.real < 0 and abs(self.rate.real) >= abs(self.rate.imag)

    def __str__(self) -> str:
        grows = " and grows" if self.rate.real > abs(self.rate.imag) else ""
        return f"{self.name}, {abs(self.rate):.3g} {'rad/s' if abs(self.rate.imag) > abs(self.rate.real) else '1/s'}{grows}"


def fastest(
    m: Mechanism, control: Control, q: np.ndarray, v: np.ndarray, w: np.ndarray, z: np.ndarray, t: float, p: np.ndarray
) -> Fastest | None:
    """The fastest part at one state; None if all rates are zero, a derivative is not finite or HUGE, a motion has no inertia,
    or the machine is LARGE.

    q: (nq,).   v: (nv,).   w: inputs of the run.   z: states that the law integrates.   p: (np,) parameters.   control: a law
    in continuous time.
    """
    if m.nv > LARGE:
        return None
    names, f = _part_slopes(m, control, law_digest(control, m))
    M, A, *slopes = (np.array(x) for x in f(q, v, w, z, t, p))
    if not all((np.abs(x) < HUGE).all() for x in (M, *slopes)):
        return None
    Z = _free_motions(M, A)
    if Z is None:
        return None
    n = Z.shape[1]
    S, D = ([Z.T @ x @ Z for x in slopes[i::2]] for i in (0, 1))
    spins = [_spin(m, joint, v) for joint in m.quaternions if joint in m.v_slices]
    spin = max(spins, key=lambda s: s.size, default=Fastest("", 0j))
    # Beside a singularity the square of a rate would hide it behind rounding: speeds count by the rate of the springs.
    units = np.repeat([1.0, float(np.sqrt(np.linalg.norm(sum(S)))) or 1.0], n)
    found = spectrum(np.block([[np.zeros((n, n)), np.eye(n)], [sum(S), sum(D)]]), units).clusters
    rates = np.array([abs(x.value) for x in found])
    most = found[int(np.argmax(rates >= rates.max() * (1 - EQUAL)))] if n else None
    part = _named_part(m, names, S, D, most.value, _displacements(most), Z) if most else spin
    # A quaternion turns by half the angle of a spin, velocities along the axes of a body by the whole angle.
    spins_most = abs(spin.rate) > (1 if part.name.startswith(MOTION) else 2) * abs(part.rate) * (1 - EQUAL)
    return (spin if spins_most else part) if spin.rate or part.rate else None


def largest_force(
    m: Mechanism, control: Control, q: np.ndarray, v: np.ndarray, w: np.ndarray, z: np.ndarray, t: float, p: np.ndarray
) -> str:
    """The name and the largest entry [N, N m] of the largest applied force or force of a law at one state, whose arguments are
    those of `fastest`; "" if there is none."""
    names, f = _force_sizes(m, control, law_digest(control, m))
    sizes = np.nan_to_num(np.array(f(q, v, w, z, t, p)).ravel(), nan=np.inf)
    return f"{names[int(sizes.argmax())]}, {sizes.max():.3g}" if sizes.max(initial=0.0) > 0 else ""


@remembered(16)
def _force_sizes(m: Mechanism, control: Control, digest: str) -> tuple[list[str], ca.Function]:
    """Names of the forces, and (q, v, w, z, t, p) -> (forces, 1) the largest entry of each."""
    T, w, z, forces = _acting(m, control)
    sizes = ca.vertcat(ca.SX(0, 1), *[largest_entry(F) for F in forces.values()])
    return list(forces), ca.Function("sizes", [T.q, T.v, w, z, T.t, m.p_symbols], [sizes])


def _displacements(x: Cluster) -> np.ndarray:
    """(n, k) orthonormal basis of the displacements y in the eigenvectors [y; rate y]; the longer half is more accurate."""
    upper, lower = np.split(x.eigenvectors, 2)
    return np.linalg.qr(lower if abs(x.value) > 1 else upper)[0]


def _free_motions(M: np.ndarray, A: np.ndarray) -> np.ndarray | None:
    """(nv, n) velocities that the constraint rows leave, orthonormal in the metric of M; None if a motion has no inertia."""
    try:
        L = np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return None
    _, sizes, rows = np.linalg.svd(np.linalg.solve(L, A.T).T) if len(A) else (0, np.zeros(0), np.eye(len(M)))
    free = rows[int((sizes > RANK_TOLERANCE * sizes.max(initial=0.0)).sum()) :]
    return np.linalg.solve(L.T, free.T)


def springs_and_dampers(m: Mechanism, q: np.ndarray, v: np.ndarray, t: float, p: np.ndarray) -> list[Fastest]:
    """The rate of each spring, damper and other applied force at one state, as if it acted alone; the fastest first.

    Contacts and stops count as if they touched, at the depth at which they carry the weight of the machine or stop its motion.
    """
    names, f = _applied_slopes(m)
    if not names:
        return []
    M, A, *slopes = (np.array(x) for x in f(q, v, t, p))
    if not all(np.isfinite(x).all() for x in (M, *slopes)):
        return []
    Z, found = _free_motions(M, A), list[Fastest]()
    if Z is None:
        return []
    for name, S, D in zip(names, slopes[::2], slopes[1::2], strict=True):
        joint = name.removeprefix(OF_JOINT)
        spring, damper = (f"{x} of {joint}" if joint != name else f"{x} of {name}" for x in ("the spring", "the damper"))
        hold, damp = (np.linalg.eigvals(Z.T @ x @ Z) for x in (S, D))
        found.append(Fastest(spring, 1j * float(np.sqrt(np.abs(hold).max(initial=0.0)))))
        found.append(Fastest(damper, -float(np.abs(damp).max(initial=0.0))))
    return sorted(found, key=lambda x: -x.size)


def contact_parts(m: Mechanism, parts: list[Fastest], p: np.ndarray) -> list[Fastest]:
    """The springs of contacts and stops among the parts at a state, and for each contact the rate mu g / s_0 at which weight
    alone brings it from sliding to sticking. An implicit step converges if both are slower than the step."""
    springs = [part for part in parts if TOUCHING in part.name and part.name.startswith("the spring")]
    rates = np.array(_sticking_rates(m)(p)).ravel().tolist()
    frictions = [Fastest(f"the friction of contact {n!r}", -r) for n, r in zip(compliant_parts(m), rates, strict=True)]
    return springs + frictions


@remembered(16)
def _sticking_rates(m: Mechanism) -> ca.Function:
    """p -> (contacts, 1) rates mu g / s_0 [1/s] at which contacts stick."""
    rates = [c.sticking * ca.norm_2(m.gravity) for c in compliant_parts(m).values()]
    return ca.Function("braking", [m.p_symbols], [ca.densify(ca.vertcat(*rates))])


def _named_part(
    m: Mechanism, names: list[str], S: list[Any], D: list[Any], rate: complex, mode: np.ndarray, Z: np.ndarray
) -> Fastest:
    """The part with the largest share of an eigenvalue: the largest force along its modes (n, k).

    S, D: derivatives of the forces by position and by velocity, along the free motions Z.
    """
    X = mode.conj().T
    parts = [tuple(np.linalg.norm(X @ x @ mode, 2) for x in (s, abs(rate) * d)) for s, d in zip(S, D, strict=True)]
    (i,) = foremost(np.array([sum(part) for part in parts]))
    damps = parts[i][1] > parts[i][0]
    name = names[i]
    if name.startswith(OF_JOINT):
        name = f"{'damper' if damps else 'spring'} of {name.removeprefix(OF_JOINT)}"
    elif name == "motion":
        name = f"{MOTION}{m.v_names[foremost(participation(Z @ mode))[0]]!r}"
    elif damps:
        name = f"the damping of {name}"
    return Fastest(name, rate)


def _spin(m: Mechanism, joint: str, v: np.ndarray) -> Fastest:
    """The spin of a joint that has a quaternion."""
    return Fastest(f"the spin of joint {joint!r}", 1j * float(np.linalg.norm(v[m.v_slices[joint]][-3:])))


@remembered(16)
def may_stiffen(m: Mechanism, switched: tuple[str, ...]) -> bool:
    """Whether the stiffness of springs or dampers may change in a run: with the motion, the time or a parameter.

    switched: names of the parameters that the run changes.
    """
    T = symbols(m)
    by = ca.vertcat(T.q, T.v, T.t, *[m.p_symbols[m.p_names.index(name)] for name in switched])
    return bool(ca.depends_on(ca.veccat(*[x for pair in _slopes(T).values() for x in pair]), by))


@remembered(16)
def _applied_slopes(m: Mechanism) -> tuple[list[str], ca.Function]:
    """Names of the applied forces, and (q, v, t, p) -> M, A, and df/dq K and df/dv for each force."""
    T = symbols(m)
    slopes = _slopes(T)
    if not slopes:
        return [], ca.Function()
    outputs = [ca.densify(x) for x in (T.M, T.A, *[x for pair in slopes.values() for x in pair])]
    return list(slopes), ca.Function("applied", [T.q, T.v, T.t, m.p_symbols], outputs)


def _slopes(T: Terms) -> dict[str, tuple[ca.SX, ca.SX]]:
    """Name of an applied force -> (df/dq K, df/dv), contacts and stops included; empty if no force acts."""
    forces, K = named_forces(T.kinematics), T.kinematics.kinematic_matrix
    slopes = {name: (ca.jacobian(F, T.q) @ K, ca.jacobian(F, T.v)) for name, F in forces.items()}
    return slopes | _contact_slopes(T) if forces else {}


def _contact_slopes(T: Terms) -> dict[str, tuple[ca.SX, ca.SX]]:
    """Name of a contact or stop -> (df/dq K, df/dv), as if all its points were pressed in.

    With g the derivative of the gap along v, k' that of the elastic force N at the depth, c the damping, mu the friction below
    the creeping speed s_0 and G the derivative of the sliding velocity, these are -k' g^T g and -(c N g^T g + mu W / s_0 G^T
    G). Friction is taken under the weight W, since it sticks where nothing strikes.
    """
    k, found = T.kinematics, {}
    weight = sum((link.mass for link in k.tree.links), ca.SX(0)) * ca.norm_2(T.mechanism.gravity)
    for name, part in compliant_parts(T.mechanism).items():
        press = press_law(part)
        depth = press.depth(weight, T.T)
        N, hold, damp = press.elastic(-depth), ca.SX(T.mechanism.nv, T.mechanism.nv), ca.SX(T.mechanism.nv, T.mechanism.nv)
        for gap, sliding in part.touches(k):
            g, G = ca.jacobian(gap, T.q) @ k.kinematic_matrix, ca.jacobian(sliding, T.v)
            hold -= press.slope(depth) * (g.T @ g)
            damp -= N * press.damping * (g.T @ g) + weight * part.sticking * (G.T @ G)
        found[f"contact {name!r}{TOUCHING}"] = hold, damp
    return found


@remembered(16)
def _part_slopes(m: Mechanism, control: Control, digest: str) -> tuple[list[str], ca.Function]:
    """Names of the parts, and (q, v, w, z, t, p) -> M, A, and df/dq K and df/dv for the force f of each part."""
    T, w, z, forces = _acting(m, control)
    bias_at_rest = Terms(m, T.q, ca.SX.zeros(m.nv, 1), T.u, T.t).c
    forces |= {"gravity": -bias_at_rest, "motion": bias_at_rest - T.c}
    K, slopes = T.kinematics.kinematic_matrix, []
    for F in forces.values():
        slopes += [ca.jacobian(F, T.q) @ K, ca.jacobian(F, T.v)]
    outputs = [ca.densify(x) for x in (T.M, T.A, *slopes)]
    return list(forces), ca.Function("parts", [T.q, T.v, w, z, T.t, m.p_symbols], outputs)


def _acting(m: Mechanism, control: Control) -> tuple[Terms, ca.SX, ca.SX, dict[str, ca.SX]]:
    """Terms at symbols, inputs w of the run, states z of the law, and name -> (nv, 1) applied forces and that of the law."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    u = command_of(T, control, Scheme(), z, w).u
    return T, w, z, named_forces(T.kinematics) | {"the inputs" if is_open(control) else "the control law": T.B @ u}
