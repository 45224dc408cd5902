"""USD with UsdPhysics.

usd.py          reading USD stages with UsdPhysics as mechanisms
usd_body.py     rigid bodies of a USD stage, with mass properties and shapes
usd_joint.py    joints of a USD stage: kinds, frames in both bodies, limits, drives and mimic relations
usd_mass.py     mass, mass centre and inertia of the rigid bodies of a USD stage, by the precedence of UsdPhysics
usd_names.py    the properties of a USD stage that concern physics
usd_series.py   several hinges and sliders between the same two bodies, which act one after the other
usd_stage.py    opening USD stages from untrusted files
usd_start.py    the poses and velocities with which the bodies of a USD stage start, as those of its joints
"""
