"""Program -> C: lanes for this machine, and C99 for any processor."""
