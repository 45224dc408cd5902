"""Pinocchio and MuJoCo models of a mechanism, from one description, so that all sides compute the same machine.

Both peers number bodies depth first; `Twin.q_order` and `v_order` say which of our columns each of theirs is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import pfaffian as pf

JOINTS = {
    "revolute": pin.JointModelRZ,
    "prismatic": pin.JointModelPZ,
    "spherical": pin.JointModelSpherical,
    "free": pin.JointModelFreeFlyer,
}
HINGES = {"revolute": "hinge", "prismatic": "slide"}


@dataclass(frozen=True)
class Twin:
    """A mechanism with the data that the peers need.   links: our indices, depth first."""

    mechanism: pf.Mechanism
    tree: Any
    links: tuple[int, ...]

    @property
    def q_order(self) -> np.ndarray:
        """Our column of q for each of theirs."""
        return np.concatenate([np.r_[self.tree.links[i].q] for i in self.links])

    @property
    def v_order(self) -> np.ndarray:
        """Our column of v for each of theirs."""
        return np.concatenate([np.r_[self.tree.links[i].v] for i in self.links])

    def number(self, link: int) -> int:
        """Their number of a link, 0 for the world."""
        return 0 if link < 0 else self.links.index(link) + 1

    def ends(self, c: Any) -> tuple[tuple[int, pf.Pose], tuple[int, pf.Pose]]:
        """(link, frame of the closure in it) at both of its ends."""
        sides = ((c.body_a, c.placement_a), (c.body_b, c.placement_b))
        (a, Xa), (b, Xb) = ((self.tree.place[body][0], self.tree.place[body][1] @ X) for body, X in sides)
        return (a, Xa), (b, Xb)


def twin(m: pf.Mechanism) -> Twin:
    """Raise ValueError for joint damping, springs or armature, which the comparisons leave out."""
    for j in m.joints:
        if not (j.damping.is_zero() and j.stiffness.is_zero() and j.armature.is_zero()):
            raise ValueError(f"joint {j.name!r} has damping, a spring or armature")
    t = pf.symbols(m).kinematics.tree
    return Twin(m, t, tuple(_below(t, -1)))


def _below(t: Any, parent: int) -> Iterator[int]:
    for i, link in enumerate(t.links):
        if link.parent == parent:
            yield i
            yield from _below(t, i)


def _inertia(m: pf.Mechanism, link: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, mass centre (3,) and inertia about it (3, 3)."""
    mass, h, I = m.value(link.mass).item(), m.value(link.h).ravel(), m.value(link.I)
    c = h / mass if mass else h
    return mass, c, I - mass * (c @ c * np.eye(3) - np.outer(c, c))


# -- Pinocchio ----------------------------------------------------------------------------------------------------------


def pinocchio_model(w: Twin) -> pin.Model:
    """The tree, with every joint about or along z, for which Pinocchio has its fastest joints."""
    m, model = w.mechanism, pin.Model()
    model.gravity.linear = m.value(m.gravity).ravel()
    for i in w.links:
        link = w.tree.links[i]
        joint = model.addJoint(w.number(link.parent), JOINTS[link.joint.kind.name](), se3(m, link.placement), f"j{i}")
        mass, c, I = _inertia(m, link)
        model.appendBodyToJoint(joint, pin.Inertia(mass, c, I), pin.SE3.Identity())
    return model


def pinocchio_closures(w: Twin, model: pin.Model) -> tuple[Any, Any]:
    """Contact models and data of the mechanism's closures: welds and points."""
    models, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in w.mechanism.constraints:
        kind = {"weld": pin.ContactType.CONTACT_6D, "spherical": pin.ContactType.CONTACT_3D}[c.kind]
        # The world is the second body, as in Pinocchio's examples: pin.lcaba crashes if it is the first.
        first, second = ((w.number(i), se3(w.mechanism, X)) for i, X in sorted(w.ends(c), key=lambda end: end[0] < 0))
        models.append(pin.RigidConstraintModel(kind, model, *first, *second, pin.ReferenceFrame.LOCAL))
    for one in models:
        data.append(one.createData())
    return models, data


def se3(m: pf.Mechanism, X: pf.Pose) -> pin.SE3:
    return pin.SE3(m.value(X.R), m.value(X.p).ravel())


# -- MuJoCo -------------------------------------------------------------------------------------------------------------


def mjcf(w: Twin, *, step: float, solref: str = "0.002 1") -> str:
    """MJCF text of the mechanism, with exact numbers, integrated by RK4, without contacts.

    Closures are equality constraints, which are soft, as stiff as twice the step allows (`solref`).
    """
    m = w.mechanism
    sites: dict[int, list[str]] = {}
    rows = []
    for i, c in enumerate(m.constraints):
        kind = {"weld": "weld", "spherical": "connect"}[c.kind]
        for end, (link, X) in zip("ab", w.ends(c), strict=True):
            sites.setdefault(link, []).append(f'<site name="{i}{end}" {_place(m, X)}/>')
        rows.append(f'<{kind} site1="{i}a" site2="{i}b" solref="{solref}" solimp="0.9999 0.9999 0.001"/>')
    gravity = _numbers(m.value(m.gravity))
    return (
        f'<mujoco><compiler angle="radian" autolimits="false"/>'
        f'<option integrator="RK4" timestep="{step!r}" gravity="{gravity}" iterations="100" tolerance="1e-12">'
        f'<flag contact="disable"/></option>'
        f"<worldbody>{''.join(sites.get(-1, []))}{_bodies(w, -1, sites)}</worldbody>"
        f"<equality>{''.join(rows)}</equality></mujoco>"
    )


def _bodies(w: Twin, parent: int, sites: dict[int, list[str]]) -> str:
    text = []
    for i, link in enumerate(w.tree.links):
        if link.parent == parent:
            inside = _inertial(w.mechanism, link) + _joint(link) + "".join(sites.get(i, [])) + _bodies(w, i, sites)
            text.append(f'<body name="b{i}" {_place(w.mechanism, link.placement)}>{inside}</body>')
    return "".join(text)


def _joint(link: Any) -> str:
    kind = link.joint.kind.name
    return "<freejoint/>" if kind == "free" else f'<joint type="{HINGES[kind]}" axis="0 0 1"/>'


def _inertial(m: pf.Mechanism, link: Any) -> str:
    mass, c, I = _inertia(m, link)
    six = _numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
    return f'<inertial mass="{mass!r}" pos="{_numbers(c)}" fullinertia="{six}"/>'


def _place(m: pf.Mechanism, X: pf.Pose) -> str:
    x, y, z, w = pin.Quaternion(m.value(X.R)).coeffs()
    return f'pos="{_numbers(m.value(X.p))}" quat="{_numbers([w, x, y, z])}"'


def _numbers(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))
