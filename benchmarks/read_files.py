"""python -m benchmarks.read_files: reads the files whose paths it is given, a line each, and answers each with a line of JSON.

The answer has the processor time [ns] and the peak memory of the process [bytes]; {} stands for a file that does not open.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings

import pfaffian as pf

KIB = 1024
"""Bytes in the unit of the operating system's figure of the peak memory."""


def answer(path: str) -> dict[str, float]:
    start = time.process_time_ns()
    try:
        pf.read(path)
    except pf.PfaffianError:
        return {}
    used = time.process_time_ns() - start
    return {"time": used, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(answer(line.rstrip("\n"))), flush=True)
