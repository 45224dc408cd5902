"""USD with UsdPhysics.

usd.py          reading USD stages with UsdPhysics as mechanisms
usd_body.py     rigid bodies of a USD stage, with mass properties and shapes
usd_joint.py    joints of a USD stage: kinds, frames in both bodies, limits, drives and mimic relations
usd_stage.py    opening USD stages from untrusted files
"""
