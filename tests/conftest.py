"""Makes `tests` importable, sets Hypothesis up, and prints residuals at the end if asked to."""

from __future__ import annotations

import os

# For the workers, which load NumPy later: there are as many of them as cores, so threads of BLAS would wait for each other. The
# product of a 12,000 x 26 matrix with its transpose took 400 times the processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

# Every 700 objects, Python's default, the garbage collector looks at 700, and now and then at all: the tests themselves, half
# a million, and what they keep. That took two fifths of the time to collect the tests, and some hundredths of that to run
# them. Few objects are in cycles, so the memory is the same.
gc.set_threshold(50_000)

# A shell that starts the tests in the background lets them, and all that they start, ignore Ctrl-C, which is tested here.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("dev", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci",
    max_examples=25,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list) -> None:
    """Run studies first: each takes long on one core, and at the end the other core would be idle."""
    items.sort(key=lambda item: item.path.name != "test_studies.py")


def pytest_collection_finish() -> None:
    """What has been collected stays to the end: the garbage collector need not look at it again."""
    gc.freeze()
