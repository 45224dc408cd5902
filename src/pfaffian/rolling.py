"""Constraints of bodies that roll on a plane, or slide on it in one direction only. The plane may belong to a moving body.

disk, sphere, ellipsoid   contact without slip: two constraints, in one compound
wheel                     no slip only, for a wheel whose height the machine determines
knife_edge                no sideways motion: a blade, skate or keel
plane                     the plane, also of a moving body or of a turntable
"""

from pfaffian.parts.wheels import disk as disk
from pfaffian.parts.wheels import ellipsoid as ellipsoid
from pfaffian.parts.wheels import knife_edge as knife_edge
from pfaffian.parts.wheels import plane as plane
from pfaffian.parts.wheels import sphere as sphere
from pfaffian.parts.wheels import wheel as wheel
