"""Ready-made parts of machines: springs, friction, contacts, wheels, drives, tyres, multicopters.

constellation.py         sets of point springs between two bodies merged into one spring between their poses
contact.py               contact of points, spheres, capsules, boxes and planes; stops of joints
cylinder.py              hydraulic and pneumatic cylinders between two pins
drives.py                parts of drives: gears with backlash, elastic belts, cables that only pull, and gusts of wind
elastic.py               springs, dampers and inertias between the poses of two bodies, given by 4 x 4 pseudo-matrices
fluid.py                 forces of a fluid on a body
friction.py              dry friction, regularised at rest
load_friction.py         friction of guides, pins, screws and gear heads that follows the load of the joint
multicopter.py           multicopters: a flying body, arms that may tilt, and propellers that turn on the arms
rebound.py               rigid impacts with a coefficient of restitution
road.py                  roads of any shape, and the tyre that carries a wheel on one
rotation_potential.py    the function V(R) = -tr(P R): critical points, nearest rotations
suspension.py            bushes by their rates, anti-roll bars
two_ends.py              the check that a part has two different ends
tyre.py                  a tyre that slips on a plane
wheels.py                wheels, disks, balls, ellipsoids and blades on a plane
"""
