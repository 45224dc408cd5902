"""Numbers of a machine from measurements; `pf.fit` fits them to recorded motion.

Fit, fit_report                                                        the result of `pf.fit`; a page that shows it
read_fit, FitFile                                                      a fit described by a YAML file
least_squares, LinearEquations, Estimate                               linear equations with confidence intervals
regressor, equation_error, base_parameters                             equations of motion, linear in the inertias of bodies
free_inertia                                                           a body of which every inertia is possible
derivatives                                                            rates and accelerations of a sampled signal
"""

from pfaffian.control.identification import Estimate as Estimate
from pfaffian.control.identification import LinearEquations as LinearEquations
from pfaffian.control.identification import derivatives as derivatives
from pfaffian.control.identification import least_squares as least_squares
from pfaffian.fitting.fit_file import FitFile as FitFile
from pfaffian.fitting.fit_file import read_fit as read_fit
from pfaffian.fitting.fit_result import Fit as Fit
from pfaffian.fitting.free_inertia import free_inertia as free_inertia
from pfaffian.fitting.regressor import BaseParameters as BaseParameters
from pfaffian.fitting.regressor import Regressor as Regressor
from pfaffian.fitting.regressor import base_parameters as base_parameters
from pfaffian.fitting.regressor import equation_error as equation_error
from pfaffian.fitting.regressor import regressor as regressor
from pfaffian.viewer.fit_report import fit_report as fit_report
