"""Program -> C: vector lanes for this machine, and portable C99 for any processor."""
