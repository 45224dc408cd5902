"""What OpenSim makes of each model behind tests/data/osim_facts.csv, into its last column: python -m tools.osim_facts

Needs the package opensim, which runs in a process of its own for each model: its CasADi is another one than the library's. A
row stays empty if it answers for a class as a whole or is refused, and if OpenSim does not open the model or does not close its
constraints.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

NOT_RATES = ("BallJoint", "FreeJoint", "GimbalJoint")
"""Joints whose speeds in OpenSim are not the rates of their coordinates."""


OPEN = 1e-8
"""Errors of constraints from which they count as open."""


def main() -> None:
    """Write the column."""
    from tests.formats.test_osim_facts import ROWS, TABLE, text

    with TemporaryDirectory() as folder:
        file = Path(folder) / "m.osim"
        for row in ROWS:
            row["opensim"] = ""
            if row["attribute"] != "*" and row["answer"] != "refused":
                file.write_text(text(row["element"], row["attribute"], row["value"]), encoding="utf-8")
                done = subprocess.run([sys.executable, __file__, str(file)], capture_output=True, text=True, check=False)
                row["opensim"] = (done.stdout.strip().splitlines() or [""])[-1] if not done.returncode else ""
                print(row["element"], row["attribute"], row["opensim"] or done.stderr.strip()[-200:], flush=True)
    with TABLE.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(ROWS[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ROWS)


def motion(file: str) -> str:
    """Name, value, speed and acceleration of each coordinate whose speed is its rate, at the start; empty if it is open."""
    import opensim

    opensim.Logger.setLevelString("off")
    model = opensim.Model(file)
    state, found = model.initSystem(), model.getCoordinateSet()
    model.realizeAcceleration(state)
    errors = state.getQErr()
    if max((abs(errors[i]) for i in range(errors.size())), default=0.0) > OPEN:
        return ""
    coordinates = [found.get(i) for i in range(found.getSize())]
    return " ".join(
        f"{c.getName()}:{c.getValue(state):.10g}:{c.getSpeedValue(state):.10g}:{c.getAccelerationValue(state):.10g}"
        for c in coordinates if c.getJoint().getConcreteClassName() not in NOT_RATES
    )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(motion(sys.argv[1]))
    else:
        main()
