"""Constraints of bodies that roll on a plane, or slide on it in one direction only. The plane may belong to a moving body.

disk, sphere, ellipsoid   contact without slip: two constraints, for constraints=[*disk(...)]
wheel                     no slip only, for a wheel whose height the machine determines
knife_edge                no sideways motion: a blade, skate or keel
"""

from pfaffian.parts.wheels import disk as disk
from pfaffian.parts.wheels import ellipsoid as ellipsoid
from pfaffian.parts.wheels import knife_edge as knife_edge
from pfaffian.parts.wheels import sphere as sphere
from pfaffian.parts.wheels import wheel as wheel
