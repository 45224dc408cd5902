"""Contacts with a plane or another body that roll or slide in some directions only, as constraints of a mechanism.

wheel, disk, sphere, knife_edge
"""

from pfaffian.model.rolling import disk, knife_edge, sphere, wheel

__all__ = [
    "disk",
    "knife_edge",
    "sphere",
    "wheel",
]
