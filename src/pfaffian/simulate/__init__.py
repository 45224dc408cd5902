"""Runs of a machine over time: the step, its error, what is recorded, and the run itself.

error/     how far a run can be trusted
record/    what a run leaves: its result, why it stopped, its files
run/       runs: `run`, `stepper`, adaptive runs, environments
step/      one time step as an expression
"""
