"""Contacts with the plane of a body that roll, or slide in one direction only, as constraints of a mechanism.

disk, sphere, ellipsoid   contact without slip: two constraints, for constraints=[*disk(...)]
wheel                     no slip alone, for a wheel that a machine carries
knife_edge                no sideways motion: a blade, skate or keel
"""

from pfaffian.model.rolling import disk as disk
from pfaffian.model.rolling import ellipsoid as ellipsoid
from pfaffian.model.rolling import knife_edge as knife_edge
from pfaffian.model.rolling import sphere as sphere
from pfaffian.model.rolling import wheel as wheel
