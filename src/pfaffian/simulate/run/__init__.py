"""Runs: `run`, `stepper`, runs to an accuracy, environments."""
