"""Kernels and rollouts: found by a key, or traced, printed and built, and then called with batches of runs."""
