"""Program -> C: vector lanes for this machine, portable C99 for any processor, and CUDA C++."""
