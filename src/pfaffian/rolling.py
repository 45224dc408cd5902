"""Constraints of bodies that roll on a plane, or slide on it in one direction only. The plane may belong to a moving body.

disk, sphere, ellipsoid   contact without slip: two constraints, for constraints=[*disk(...)]
wheel                     no slip only, for a wheel whose height the machine determines
knife_edge                no sideways motion: a blade, skate or keel
"""

from pfaffian.model.rolling import disk as disk
from pfaffian.model.rolling import ellipsoid as ellipsoid
from pfaffian.model.rolling import knife_edge as knife_edge
from pfaffian.model.rolling import sphere as sphere
from pfaffian.model.rolling import wheel as wheel
