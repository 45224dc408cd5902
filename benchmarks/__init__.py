"""Comparisons of the library with its peers, in one run, on one core: `python -m benchmarks [NAME ...]`.

Each benchmark is one file with `run(options)`, a generator of comparisons. Every one checks that both sides compute the
same numbers before it measures any time.
"""

import os

# Set before any numerical library is loaded, so that everything that is compared runs on one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Crazyflow needs the first before SciPy is imported, and JAX reads its variables when it starts: one thread, on the CPU.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
