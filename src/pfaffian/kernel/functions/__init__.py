"""Elementary functions to the bit: one text that NumPy runs and C compiles, from IEEE operations alone."""
