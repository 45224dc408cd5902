"""Kernels and rollouts, which callers use: found by a key, or traced, printed and built, then called over batches."""
