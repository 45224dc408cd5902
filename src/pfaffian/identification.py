"""Numbers of a machine from measurements; `pf.fit` fits them to recorded motion.

Fit, fit_report                                                        the result of `pf.fit`; a page that shows it
read_fit, FitFile                                                      a fit described by a YAML file
fit_modes, ModalFit                                                    a fit to frequencies and eigenvalues
compare_friction                                                       friction laws by what they predict
free_inertia                                                           a body of which every inertia is possible
regressor, equation_error, base_parameters; Regressor, BaseParameters  equations linear in the inertias of bodies
least_squares, LinearEquations, Estimate                               linear equations with confidence intervals
smoothed                                                               a sampled signal, its rate and its acceleration
thrust_scale, propeller_bench, servo_bench, bifilar_pendulum           equations of a bench test
flight, propeller_wrench, FLIGHT                                       equations of a flight
"""

from pfaffian.control.identified_parameters import FLIGHT as FLIGHT
from pfaffian.control.identified_parameters import Estimate as Estimate
from pfaffian.control.identified_parameters import LinearEquations as LinearEquations
from pfaffian.control.identified_parameters import bifilar_pendulum as bifilar_pendulum
from pfaffian.control.identified_parameters import flight as flight
from pfaffian.control.identified_parameters import least_squares as least_squares
from pfaffian.control.identified_parameters import propeller_bench as propeller_bench
from pfaffian.control.identified_parameters import propeller_wrench as propeller_wrench
from pfaffian.control.identified_parameters import servo_bench as servo_bench
from pfaffian.control.identified_parameters import smoothed as smoothed
from pfaffian.control.identified_parameters import thrust_scale as thrust_scale
from pfaffian.fitting.fit_file import FitFile as FitFile
from pfaffian.fitting.fit_file import read_fit as read_fit
from pfaffian.fitting.fit_modes import ModalFit as ModalFit
from pfaffian.fitting.fit_modes import fit_modes as fit_modes
from pfaffian.fitting.fit_result import Fit as Fit
from pfaffian.fitting.free_inertia import free_inertia as free_inertia
from pfaffian.fitting.friction_laws import compare_friction as compare_friction
from pfaffian.fitting.regressor import BaseParameters as BaseParameters
from pfaffian.fitting.regressor import Regressor as Regressor
from pfaffian.fitting.regressor import base_parameters as base_parameters
from pfaffian.fitting.regressor import equation_error as equation_error
from pfaffian.fitting.regressor import regressor as regressor
from pfaffian.viewer.fit_report import fit_report as fit_report
