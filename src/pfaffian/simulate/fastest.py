"""The fastest part of a machine at a state, by name: it limits the length of a step.

The applied forces, those of a law and those of inertia are differentiated one by one. Along the velocities that constraints
leave, orthonormal in the metric of M, they form a matrix whose eigenvalue of the largest modulus is the fastest rate; it gets
the name of the force with the largest share along its eigenvector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.digest import digest as law_digest
from pfaffian.control.law import Control
from pfaffian.control.open_loop import is_open
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.model.contact import compliant
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.closed_loop import command_of
from pfaffian.simulate.simulation import input_names
from pfaffian.simulate.step import Scheme
from pfaffian.terms.forces import named_forces
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

OF_JOINT, MOTION, TOUCHING = "spring or damper of ", "the motion of ", " once it touches"


class Fastest(NamedTuple):
    """name: of the part.   rate: its eigenvalue [1/s], or the speed of a spin [rad/s] as an imaginary number."""

    name: str
    rate: complex

    @property
    def damped(self) -> bool:
        """Whether it decays without oscillating much."""
        return self.rate.real < 0 and abs(self.rate.real) >= abs(self.rate.imag)

    def __str__(self) -> str:
        grows = " and grows" if self.rate.real > abs(self.rate.imag) else ""
        return f"{self.name}, {abs(self.rate):.3g} {'rad/s' if abs(self.rate.imag) > abs(self.rate.real) else '1/s'}{grows}"


def fastest(
    m: Mechanism, control: Control, q: np.ndarray, v: np.ndarray, w: np.ndarray, z: np.ndarray, t: float, p: np.ndarray
) -> Fastest | None:
    """The fastest part at one state; None where its rate is not finite.

    q (nq,), v (nv,), w: inputs of the run, z: what the law integrates, p: parameters.   control: a law in continuous time.
    """
    names, f = _parts(m, control, law_digest(control, m))
    M, A, *slopes = (np.array(x) for x in f(q, v, w, z, t, p))
    if not all(np.isfinite(x).all() for x in (M, *slopes)):
        return None
    Z = _free(M, A)
    n = Z.shape[1]
    S, D = ([Z.T @ x @ Z for x in slopes[i::2]] for i in (0, 1))
    spins = [_spin(m, joint, v) for joint in m.quaternions if joint in m.v_slices]
    spin = max(spins, key=lambda s: abs(s.rate), default=Fastest("", 0j))
    values, vectors = np.linalg.eig(np.block([[np.zeros((n, n)), np.eye(n)], [sum(S), sum(D)]]))
    at = int(np.argmax(np.abs(values))) if n else 0
    # Of an eigenvector [y; rate y] the longer half is the accurate one.
    mode = vectors[n:, at] if n and abs(values[at]) > 1 else vectors[:n, at : at + 1].ravel()
    found = _named(m, names, S, D, complex(values[at]), mode, Z) if n else spin
    # A quaternion turns by half the angle, velocities along axes of a body by the whole.
    spins_most = abs(spin.rate) > (1 if found.name.startswith(MOTION) else 2) * abs(found.rate) * (1 - 1e-9)
    return (spin if spins_most else found) if spin.rate or found.rate else None


def _free(M: np.ndarray, A: np.ndarray) -> np.ndarray:
    """(nv, n) velocities that the constraint rows leave, orthonormal in the metric of M."""
    L = np.linalg.cholesky(M)
    _, sizes, rows = np.linalg.svd(np.linalg.solve(L, A.T).T) if len(A) else (0, np.zeros(0), np.eye(len(M)))
    free = rows[int((sizes > RANK_TOLERANCE * sizes.max(initial=0.0)).sum()) :]
    return np.linalg.solve(L.T, free.T)


def springs_and_dampers(m: Mechanism, q: np.ndarray, v: np.ndarray, t: float, p: np.ndarray) -> list[Fastest]:
    """The rate of each spring, damper and other applied force at one state, as if it alone acted; the fastest first.

    Contacts and stops count as if they touched there, as deep as carries the weight of the machine or takes up its motion.
    """
    names, f = _applied(m)
    if not names:
        return []
    M, A, *slopes = (np.array(x) for x in f(q, v, t, p))
    if not all(np.isfinite(x).all() for x in (M, *slopes)):
        return []
    Z, found = _free(M, A), []
    for name, S, D in zip(names, slopes[::2], slopes[1::2], strict=True):
        joint = name.removeprefix(OF_JOINT)
        spring, damper = (f"{x} of {joint}" if joint != name else f"{x} of {name}" for x in ("the spring", "the damper"))
        hold, damp = (np.linalg.eigvals(Z.T @ x @ Z) for x in (S, D))
        found.append(Fastest(spring, 1j * float(np.sqrt(np.abs(hold).max(initial=0.0)))))
        found.append(Fastest(damper, -float(np.abs(damp).max(initial=0.0))))
    return sorted(found, key=lambda x: -abs(x.rate))


def kinks(m: Mechanism, parts: list[Fastest], p: np.ndarray) -> list[Fastest]:
    """Of the parts at a state the springs of contacts and stops, and how fast weight alone brings each contact from sliding to
    sticking, mu g / s_0: an implicit step is solved where both take longer than the step."""
    springs = [part for part in parts if TOUCHING in part.name and part.name.startswith("the spring")]
    rates = np.array(_braking(m)(p)).ravel().tolist()
    frictions = [Fastest(f"the friction of contact {n!r}", -r) for n, r in zip(compliant(m), rates, strict=True)]
    return springs + frictions


@remembered(16)
def _braking(m: Mechanism) -> ca.Function:
    rates = [c.friction * ca.norm_2(m.gravity) for c in compliant(m).values()]
    return ca.Function("braking", [m.p_symbols], [ca.densify(ca.vertcat(*rates))])


def _named(
    m: Mechanism, names: list[str], S: list[Any], D: list[Any], rate: complex, mode: np.ndarray, Z: np.ndarray
) -> Fastest:
    parts = [(abs(mode.conj() @ s @ mode), abs(rate * (mode.conj() @ d @ mode))) for s, d in zip(S, D, strict=True)]
    i = int(np.argmax([sum(part) for part in parts]))
    damps = parts[i][1] > parts[i][0]
    name = names[i]
    if name.startswith(OF_JOINT):
        name = f"{'damper' if damps else 'spring'} of {name.removeprefix(OF_JOINT)}"
    elif name == "motion":
        name = f"{MOTION}{m.v_names[int(np.argmax(np.abs(Z @ mode)))]!r}"
    elif damps:
        name = f"the damping of {name}"
    return Fastest(name, rate)


def _spin(m: Mechanism, joint: str, v: np.ndarray) -> Fastest:
    return Fastest(f"the spin of joint {joint!r}", 1j * float(np.linalg.norm(v[m.v_slices[joint]][-3:])))


@remembered(16)
def changing(m: Mechanism, switched: tuple[str, ...]) -> bool:
    """Whether springs or dampers may become stiffer in a run: with the motion, the time or a parameter that it switches."""
    T = symbols(m)
    by = ca.vertcat(T.q, T.v, T.t, *[m.p_symbols[m.p_names.index(name)] for name in switched])
    return bool(ca.depends_on(ca.veccat(*[x for pair in _slopes(T).values() for x in pair]), by))


@remembered(16)
def _applied(m: Mechanism) -> tuple[list[str], ca.Function]:
    """Names of the applied forces, and (q, v, t, p) -> M, A, and for each of them df/dq K and df/dv."""
    T = symbols(m)
    slopes = _slopes(T)
    if not slopes:
        return [], ca.Function()
    outputs = [ca.densify(x) for x in (T.M, T.A, *[x for pair in slopes.values() for x in pair])]
    return list(slopes), ca.Function("applied", [T.q, T.v, T.t, m.p_symbols], outputs)


def _slopes(T: Terms) -> dict[str, tuple[ca.SX, ca.SX]]:
    """df/dq K and df/dv of each applied force by its name, none where there is no force."""
    forces, K = named_forces(T.kinematics), T.kinematics.kinematic_matrix
    slopes = {name: (ca.jacobian(F, T.q) @ K, ca.jacobian(F, T.v)) for name, F in forces.items()}
    return slopes | _touching(T) if forces else {}


def _touching(T: Terms) -> dict[str, tuple[ca.SX, ca.SX]]:
    """By the name of each contact or stop: df/dq K and df/dv as if all its points were pressed in.

    With the gap's slope g along v, the slope k' of the elastic force N at that depth, damping c and friction mu below the
    creeping speed s_0 these are -k' g^T g and -(c N g^T g + mu W / s_0 G^T G), G the slope of the sliding velocity; friction
    sticks where nothing strikes, under the weight W.
    """
    k, found = T.kinematics, {}
    weight = sum((link.mass for link in k.tree.links), ca.SX(0)) * ca.norm_2(T.mechanism.gravity)
    for name, (touches, press, friction) in compliant(T.mechanism).items():
        depth = press.depth(weight, T.T)
        N, hold, damp = press.elastic(-depth), ca.SX(T.mechanism.nv, T.mechanism.nv), ca.SX(T.mechanism.nv, T.mechanism.nv)
        for gap, sliding in touches(k):
            g, G = ca.jacobian(gap, T.q) @ k.kinematic_matrix, ca.jacobian(sliding, T.v)
            hold -= press.slope(depth) * (g.T @ g)
            damp -= N * press.damping * (g.T @ g) + weight * friction * (G.T @ G)
        found[f"contact {name!r}{TOUCHING}"] = hold, damp
    return found


@remembered(16)
def _parts(m: Mechanism, control: Control, digest: str) -> tuple[list[str], ca.Function]:
    """Names, and (q, v, w, z, t, p) -> M, A, and for each name df/dq K and df/dv of its force f."""
    T = symbols(m)
    w, z = ca.SX.sym("w", len(input_names(m, control))), ca.SX.sym("z", len(control.z))
    u = command_of(T, control, Scheme(), z, w).u
    rest = Terms(m, T.q, ca.SX.zeros(m.nv, 1), T.u, T.t).c
    forces = named_forces(T.kinematics) | {"gravity": -rest, "motion": rest - T.c}
    forces |= {"the inputs" if is_open(control) else "the control law": T.B @ u}
    K, slopes = T.kinematics.kinematic_matrix, []
    for F in forces.values():
        slopes += [ca.jacobian(F, T.q) @ K, ca.jacobian(F, T.v)]
    outputs = [ca.densify(x) for x in (T.M, T.A, *slopes)]
    return list(forces), ca.Function("parts", [T.q, T.v, w, z, T.t, m.p_symbols], outputs)
