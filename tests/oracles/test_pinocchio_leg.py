"""A leg with rods between ball joints beside Pinocchio: motion under motors, and motors for a motion of the foot."""

import numpy as np
import pinocchio as pin
import pytest

import pfaffian as pf
from tests.oracles.test_idle_motions import leg, moving
from tests.tolerance import PEER_CONSTRAINED, close

KINDS = {
    "universal": [pin.JointModelRX, pin.JointModelRY],
    "revolute": [pin.JointModelRY],
    "spherical": [pin.JointModelSpherical],
}


class Model:
    """The leg in Pinocchio, with the position of each of our velocities in its own."""

    def __init__(self, m: pf.Mechanism):
        self.model, self.order, ids = pin.Model(), list[int](), {"world": 0}
        for j in m.joints:
            at = pin.SE3(np.eye(3), m.value(j.placement.p).ravel())  # all frames of the leg are parallel where q is neutral
            kinds = KINDS[j.kind.name]
            parent = ids[j.parent]
            for i, kind in enumerate(kinds):
                place = at if i == 0 else pin.SE3.Identity()
                parent = self.model.addJoint(parent, kind(), place, f"{j.name} {i}")
                first = self.model.joints[parent].idx_v
                self.order += range(first, first + self.model.joints[parent].nv)
            ids[j.child] = parent
            b = m.body(j.child)
            inertia = pin.Inertia(m.value(b.mass).item(), m.value(b.com).ravel(), m.value(b.inertia))
            self.model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        self.data, self.contacts = self.model.createData(), pin.StdVec_RigidConstraintModel()
        for c in m.constraints:
            ends = []
            for body, X in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)):
                ends += [ids[body], pin.SE3(np.eye(3), m.value(X.p).ravel())]
            contact = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends, pin.ReferenceFrame.LOCAL)
            contact.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(0.0, 0.0))
            self.contacts.append(contact)

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Ours, from our q, which is in the order of Pinocchio, our v and forces."""
        data = pin.StdVec_RigidConstraintData()
        for contact in self.contacts:
            data.append(contact.createData())
        pin.initConstraintDynamics(self.model, self.data, self.contacts, data)
        there = [np.zeros(self.model.nv), np.zeros(self.model.nv)]
        for mine, x in zip(there, (v, tau), strict=True):
            mine[self.order] = x
        settings = pin.ProximalSettings(1e-14, 1e-14, 1e-10, 50)
        return pin.constraintDynamics(self.model, self.data, q, *there, self.contacts, data, settings)[self.order]


@pytest.mark.parametrize("com", [0.0, 0.02], ids=["slender", "bent"])
def test_a_leg_with_rods_between_balls_moves_as_in_pinocchio(com):
    m, random = leg(com=com), np.random.default_rng(3)
    theirs, along = Model(m), {"ankle.about_x": 0.4, "ankle.about_y": -0.7}
    for _ in range(3):
        held = {"ankle.about_x": random.uniform(-0.2, 0.2), "ankle.about_y": random.uniform(-0.2, 0.2)}
        at = pf.assemble(m, held, v=along | {f"{n} ball.wz": random.normal() for n in ("left", "right")})
        u = random.normal(size=m.nu)
        tau = np.zeros(m.nv)
        tau[[m.v_names.index(a.joint) for a in m.actuators]] = u
        close(pf.forward_dynamics(m, at.q, at.v, u=u).v_dot, theirs.accelerations(at.q, at.v, tau), PEER_CONSTRAINED, "v_dot")


def test_motors_of_a_leg_move_the_foot_in_pinocchio_as_it_was_asked():
    m = leg()
    at, wanted = moving(m), {"ankle.about_x": 2.0, "ankle.about_y": -1.0}
    u = pf.inverse_dynamics(m, at.q, at.v, wanted, complete=True).u
    tau = np.zeros(m.nv)
    tau[[m.v_names.index(a.joint) for a in m.actuators]] = u
    found = dict(zip(m.v_names, Model(m).accelerations(at.q, at.v, tau), strict=True))
    close([found[n] for n in wanted], list(wanted.values()), PEER_CONSTRAINED, "accelerations of the foot")
