"""Derivatives of steps and of whole runs, and the machine as a function of other libraries."""
