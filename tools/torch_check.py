"""Where PyTorch is installed: are values and derivatives those of the library, and does a policy learn through a machine?

    python -m tools.torch_check

A policy of two layers swings a four-bar to rest at a goal, trained through 60 steps of the machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import pfaffian as pf

STEP, STEPS, RUNS, ROUNDS = 0.01, 60, 16, 80
GOAL = 1.2


def machine() -> pf.Mechanism:
    """The four-bar of the examples, with a motor at its first joint."""
    m, _ = pf.read(Path(__file__).parents[1] / "examples" / "four_bar.yaml")
    return m.with_(actuators=[pf.actuator("motor", m.joints[0].name)], gravity=(0, 0, 0))


def starts(m: pf.Mechanism) -> torch.Tensor:
    """(RUNS, nq + nv) states at rest, on the constraints."""
    angles = np.linspace(0.6, 1.0, RUNS)
    found = pf.assemble(m, {m.q_names[0]: angles})
    return torch.as_tensor(np.hstack([found.q, np.zeros((RUNS, m.nv))]))


def same_numbers(m: pf.Mechanism) -> tuple[float, float]:
    """Largest differences of values and of derivatives from `forward_dynamics` and `derivatives`."""
    x = starts(m)
    q, v = x[:, : m.nq], 0.1 + x[:, m.nq :]
    u = torch.ones(RUNS, 1, dtype=torch.float64)
    f = pf.bridges.torch_function(m, "forward_dynamics")
    value = f(q, v, u)
    one = torch.func.vmap(torch.func.jacrev(f, argnums=(0, 1, 2)))(q, v, u)
    known = pf.forward_dynamics(m, q.numpy(), v.numpy(), u.numpy()).v_dot
    d = pf.derivatives(m, q.numpy(), v.numpy(), u.numpy(), by=["q", "v", "u"]).v_dot
    off = max(float(np.abs(a.numpy() - b).max()) for a, b in zip(one, (d.q, d.v, d.u), strict=True))
    return float(np.abs(value.numpy() - np.asarray(known)).max()), off


def learnt(m: pf.Mechanism) -> list[float]:
    """The cost after each round."""
    torch.manual_seed(0)
    step = pf.bridges.torch_function(m, step=STEP)
    policy = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    rate = torch.optim.Adam(policy.parameters(), 0.05)
    costs, begin = [], starts(m)
    for _ in range(ROUNDS):
        x = begin
        for _ in range(STEPS):
            x = step(x, policy(torch.stack([x[:, 0] - GOAL, x[:, m.nq]], dim=1)))
        cost = ((x[:, 0] - GOAL) ** 2 + 0.1 * x[:, m.nq] ** 2).mean()
        rate.zero_grad()
        cost.backward()
        rate.step()
        costs.append(float(cost.detach()))
    return costs


def main() -> None:
    m = machine()
    value, slope = same_numbers(m)
    print(f"torch {torch.__version__}: values off by {value:.1e}, derivatives by {slope:.1e}")
    assert value < 1e-12 and slope < 1e-9
    costs = learnt(m)
    print(f"a policy through {STEPS} steps of {RUNS} four-bars: cost {costs[0]:.3g}, after {ROUNDS} rounds {costs[-1]:.3g}")
    assert costs[-1] < 0.1 * costs[0]


if __name__ == "__main__":
    main()
