"""Runs: `run`, `stepper`, runs to an accuracy, environments.

abstract_stepper.py  what the steppers have in common
accuracy_request.py  what is asked of runs to an accuracy
accurate.py          a run to an accuracy, from its arguments to its result
accurate_stepper.py  a machine that the caller's loop moves to an accuracy, by times of its choice
batch.py             a batch of runs, from its start to its result with all findings
batch_start.py       where a batch begins, and its inputs
checked_request.py   runs to an accuracy before their first step
companion.py         the global error of runs with steps of one length
controlled.py        steps under error control, and an estimate of the global error
coupling_error.py    the error of the exchange of a run with an FMU
device_stepper.py    a stepper whose state lies in the memory of an NVIDIA device
ended.py             the result of runs in steps of fixed length
environment.py       many copies of one machine as a Gymnasium vector environment
findings.py          what is said about runs that have ended, in order
input_intervals.py   the parts of a run in which nothing changes abruptly
interrupt.py         Ctrl-C during a run: a long run ends early and returns its results so far
new_stepper.py       `stepper`: a machine for a loop of the caller's own
python_law.py        a law in plain Python within runs
request_solver.py    the Solver of runs to an accuracy
request_starts.py    the lanes of runs to an accuracy where they begin
resume.py            a run that continues from the end of another one
resume_lanes.py      a run to an accuracy that continues from the end of another one
roll.py              the time loop of a run: calls of the compiled loop, short enough to be interrupted
run.py               `run`: a mechanism, initial states and inputs -> a labelled result
run_in_steps.py      a run with steps of one length, from its arguments to its result
run_options.py       options of `run`, and which of them go together
run_request.py       the arguments of a run, of both kinds
saved.py             saved states of steppers that are restored
singular_start.py    starts in singular configurations
solver.py            solutions of runs by steps under error control
step_events.py       the events of a run in steps of one length
step_log.py          the steps that runs to an accuracy have made
stepper.py           a machine that the caller's loop moves step by step
stepper_start.py     what a stepper is made with, and where its runs start
"""
