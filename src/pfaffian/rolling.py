"""Contacts with the plane of a body that roll, or slide in one direction only, as constraints of a mechanism.

disk, sphere      contact without slip: two constraints, for constraints=[*disk(...)]
wheel             no slip alone, for a wheel that a machine carries
knife_edge        no sideways motion: a blade, skate or keel
"""

from pfaffian.model.rolling import disk, knife_edge, sphere, wheel

__all__ = [
    "disk",
    "knife_edge",
    "sphere",
    "wheel",
]
