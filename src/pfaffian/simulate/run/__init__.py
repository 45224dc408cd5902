"""Runs: `run`, `stepper`, adaptive runs, environments."""
