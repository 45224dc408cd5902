"""What callers hold: kernels and rollouts over batches, found by a key or traced, printed, built and called."""
