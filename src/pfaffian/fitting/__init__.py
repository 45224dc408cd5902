"""Fits of machines to measured motion: `pf.fit`, and the parts of which it consists.

fit.py              `fit`: the records, the first guess, steps that are fine enough
fit_task.py         what it begins from: checked records, unknowns, bounds, first guesses
fit_result.py       its result: values, intervals, residuals, what is not determined, the fitted mechanism
records.py          records of a caller, checked
segments.py         records cut into segments, one batch; inputs over each step; times between steps
unknowns.py         delays, gains, offsets and zeros of signals
guesses.py          first guesses of the starts of segments
starts.py           starts on the constraints, their free directions, their changes with parameters
prediction.py       the compiled batch: what is measured of a motion, with all its tangents
problem.py          residuals of all segments, each reduced to a small triangle
linear_step.py      one linear step: starts eliminated segment by segment, damping, priors, bounds
solve.py            Gauss-Newton with a trust region
determined.py       combinations that are not determined, covariance, intervals
doubt.py            residuals so large that the minimum may be a false one
fit_state.py        the state of a fit in a file, to go on from
regressor.py        equation error: equations linear in inertias, base parameters
free_inertia.py     a body whose inertia is possible for all values of ten parameters
friction_laws.py    friction laws fitted, and compared by what they predict
fit_file.py         a fit described by a YAML file
known_before.py     what is known before a fit: free parameters, bounds, priors, possible bodies
steady.py           steady motions and eigenvalues near them, with derivatives by parameters
fit_modes.py        `fit_modes`: frequencies, dampings and eigenvalues as data
unseen.py           errors on records that a fit has not seen
"""
