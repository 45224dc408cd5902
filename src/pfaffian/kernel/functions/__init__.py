"""Elementary functions from IEEE operations only: one text that NumPy runs and C compiles, to the same bits."""
