"""Runs of a machine over time: the step, its error, what is recorded, and the run itself."""
