"""The library beside its peers, in one run, on one core: `python -m benchmarks [NAME ...]`.

Each benchmark is one file with `run(options)`, a generator of comparisons. Every one checks that both sides compute the
same numbers before any time is taken.
"""

import os

# Before any numerical library loads: all that is compared runs on one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Crazyflow asks for the first before SciPy is there, and JAX reads its own as it starts: one thread, on the processor.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
