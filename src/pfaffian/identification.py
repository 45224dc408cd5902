"""Numbers of a machine from measurements; `pf.fit` fits them to recorded motion.

Fit                                                                    the result of `pf.fit`
least_squares, LinearEquations, Estimate                               linear equations with confidence intervals
derivatives                                                            rates and accelerations of a sampled signal
"""

from pfaffian.control.identification import Estimate as Estimate
from pfaffian.control.identification import LinearEquations as LinearEquations
from pfaffian.control.identification import derivatives as derivatives
from pfaffian.control.identification import least_squares as least_squares
from pfaffian.fitting.fit_result import Fit as Fit
