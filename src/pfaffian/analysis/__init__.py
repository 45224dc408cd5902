"""Analyses of control laws that use simulations; `pf.linearise` is one of machines.

matching, feasibility                            what a prototype can be, and which references the inputs can follow
zero_dynamics, zero_dynamics_along               the motion that a law leaves inside
position_gain_bound                              the largest gain for which a law is stable
wheel_curves                                     camber, toe, caster and roll centre over the travel of a wheel
solve_qp                                         the quadratic program of a law, for given numbers

linearise.py              linearised motion near a state
linearised.py             the result: matrices, eigenvalues, modes
matching.py               where a machine with fewer inputs than motions can move like its prototype
terms_near.py             terms at a state and their derivatives there
wheel_curves.py           kinematic curves of a wheel suspension
zero_dynamics.py          zero dynamics: the motion that outputs under a law leave free, and its stability
zero_dynamics_along.py    how small disturbances grow in it along a motion
"""

from pfaffian import lazy
from pfaffian.analysis.matching import feasibility as feasibility
from pfaffian.analysis.matching import matching as matching
from pfaffian.analysis.wheel_curves import wheel_curves as wheel_curves
from pfaffian.analysis.zero_dynamics import zero_dynamics as zero_dynamics
from pfaffian.analysis.zero_dynamics_along import zero_dynamics_along as zero_dynamics_along
from pfaffian.evaluate.gain_bound import position_gain_bound as position_gain_bound
from pfaffian.evaluate.solve_qp import solve_qp as solve_qp

__dir__ = lazy.lister(globals(), [])
