"""URDF, with the dialects in which its files describe loops."""
