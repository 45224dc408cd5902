"""Lengths of a compiled MJCF model: tendons through sites, over pulleys and round shapes, and slider-cranks."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.formats.mjcf.mjcf_model import CompiledModel
from pfaffian.formats.mjcf.mjcf_part import frame
from pfaffian.formats.text.coupling import JointSum, Length
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.model.body import WORLD
from pfaffian.model.path import Drum, Guide, Path, Strand, Through, guide, path
from pfaffian.model.slider_crank import SliderCrank

INSIDE = "tendons that run inside shapes are left out, with their actuators"
CONSTANT = "tendons on one body alone, whose lengths never change, are left out, with their actuators"
ELSEWHERE = "tendons round shapes whose sidesite is on another body are left out, with their actuators"


def tendon_lengths(c: CompiledModel, lost: LeftOut) -> dict[int, Length]:
    """Number of a tendon -> its length. Tendons inside shapes and on one body alone are left out."""
    m, kinds, found = c.model, c.mujoco.mjtWrap, dict[int, Length]()
    for i in range(m.ntendon):
        wraps = range(int(m.tendon_adr[i]), int(m.tendon_adr[i] + m.tendon_num[i]))
        if all(m.wrap_type[w] == kinds.mjWRAP_JOINT for w in wraps):
            joints = tuple(c.joints[m.wrap_objid[w]] for w in wraps)
            found[i] = JointSum(joints, ca.SX(ca.DM([float(m.wrap_prm[w]) for w in wraps])))
        elif line := _path(c, wraps, c.tendons[i], lost):
            found[i] = line
    return found


def _path(c: CompiledModel, wraps: range, name: str, lost: LeftOut) -> Path | None:
    """The path of a tendon, a strand before and after each pulley; None if it cannot be read.

    wraps: indices of its wrap objects.
    """
    m, kinds, branches, divisors = c.model, c.mujoco.mjtWrap, list[list[Through | Guide]]([[]]), [1.0]
    for w in wraps:
        if m.wrap_type[w] == kinds.mjWRAP_PULLEY:
            branches.append([])
            divisors.append(float(m.wrap_prm[w]))
        elif m.wrap_type[w] == kinds.mjWRAP_SITE:
            site = _site(c, int(m.wrap_objid[w]))
            branches[-1] += [] if branches[-1] and branches[-1][-1] == site else [site]
        else:
            shape = _shape(c, w)
            if isinstance(shape, str):
                leave(lost, shape, name)
                return None
            ends = [_site(c, int(m.wrap_objid[n])) for n in (w - 1, w + 1)]
            branches[-1] += [] if any(_inside(end, shape) for end in ends) else [shape]
    strands = [Strand(tuple(x), ca.SX(1 / divisor)) for x, divisor in zip(branches, divisors, strict=True) if len(x) > 1]
    if len({body for strand in strands for body in strand.bodies}) < 2:
        leave(lost, CONSTANT, name)
        return None
    for strand in strands:
        path(strand.stations)
    return Path(tuple(strands))


def _site(c: CompiledModel, s: int) -> Through:
    """A site as a point of a body."""
    m = c.model
    return Through(_body(c, int(m.site_bodyid[s])), ca.SX(ca.DM(m.site_pos[s])))


def _body(c: CompiledModel, i: int) -> str:
    return WORLD if i == 0 else c.bodies[i]


def _shape(c: CompiledModel, w: int) -> Guide | str:
    """The cylinder or sphere of a wrap object; the reason why it cannot be read, if it cannot."""
    m = c.model
    g, s = int(m.wrap_objid[w]), round(float(m.wrap_prm[w]))
    at, radius, side = frame(m.geom_pos[g], m.geom_quat[g]), float(m.geom_size[g, 0]), None
    axis = None if m.wrap_type[w] == c.mujoco.mjtWrap.mjWRAP_SPHERE else ca.DM(at.R[:, 2]).full().ravel()
    if s >= 0:
        if m.site_bodyid[s] != m.geom_bodyid[g]:
            return ELSEWHERE
        side = m.site_pos[s]
    try:
        return guide(_body(c, int(m.geom_bodyid[g])), radius, centre=m.geom_pos[g], axis=axis, side=side)
    except ModelError:
        return INSIDE


def _inside(end: Through, shape: Guide) -> bool:
    """Whether a site is fixed within a shape: MuJoCo then leads the tendon straight through it."""
    if end.body != shape.body:
        return False
    seen = shape.frame.inverse()
    away = ca.DM(seen.R @ end.point + seen.p).full().ravel()
    return bool(np.linalg.norm(away if shape.kind == "sphere" else away[:2]) < float(shape.radius))


def slider_crank(c: CompiledModel, i: int) -> Path:
    """The length of the slider-crank transmission of an actuator."""
    m = c.model
    crank, slider = (int(s) for s in m.actuator_trnid[i])
    end, rod = _site(c, crank), ca.SX(float(m.actuator_cranklength[i]))
    at = frame(m.site_pos[slider], m.site_quat[slider])
    return Path((SliderCrank(_body(c, int(m.site_bodyid[slider])), at, end.body, end.point, rod, ca.SX(1)),))


def along(length: Length) -> Path:
    """A length as a path: the sum of joints as drums."""
    if isinstance(length, JointSum):
        radii = ca.vertsplit(length.coefs)
        return Path((), tuple(Drum(joint, r) for joint, r in zip(length.joints, radii, strict=True)))
    assert isinstance(length, Path)
    return length
