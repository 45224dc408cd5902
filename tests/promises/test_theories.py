"""The page docs/theories.md, which treats one machine with all five works, runs and gives the results it states."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "theories.md"


def test_one_machine_with_all_five_works(capsys):
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))
    x: dict = {}
    exec(compile(code, PAGE.name, "exec"), x)
    runs = [x[name] for name in ("docked", "other", "steady", "like", "free")]
    assert all(int(r["status"]) == 0 for r in runs)
    assert int(x["docked"]["rank"][0]) == 2 and float(x["docked"]["violation"].max()) < 1e-12
    assert float(np.abs(x["docked"]["q"][-1, :2] - [0, 0]).max()) < 0.6 * float(np.abs(x["docked"]["q"][0, :2]).max())
    assert float(np.abs(x["other"]["q"] - x["docked"]["q"]).max()) < 1e-12
    assert float(np.abs(x["steady"]["q"][:, 2]).max()) < 1e-12 and 1e-3 < float(np.abs(x["steady"]["servo_force"]).max()) < 1
    assert np.abs(x["like"]["q"][-1, 3:].values - [0.9, -0.9]).max() < 1e-5
    assert (np.ptp(x["free"]["momentum"][:, :3].values, axis=0) == 0).all()
    assert "moved by SE(2)" in capsys.readouterr().out
