"""With PyTorch installed: do values and derivatives equal those of the library, and does a policy learn through a machine?

    python -m tools.torch_check

1. a four-bar's accelerations and their derivatives, compared with `forward_dynamics` and `derivatives`
2. memory of tensors and results, compared with that of the kernels: nothing is copied
3. PyTorch's `gradcheck` for a four-bar and a quadcopter: acceleration and step by state, inputs and parameters
4. second derivatives, which are refused and not silently zero
5. a gradient through 1000 steps of a quadcopter, compared with differences of order 6
6. a policy of two layers that swings the four-bar to rest at a goal, trained through 60 steps of the machine
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import pfaffian as pf
from pfaffian.differentiation.differentiable import ValueAndSlopes

STEP, STEPS, RUNS, ROUNDS = 0.01, 60, 16, 80
GOAL = 1.2
LONG = 1000
"""Number of steps of the gradient that is compared with differences."""

EXAMPLES = Path(__file__).parents[1] / "examples"


def four_bar() -> pf.Mechanism:
    """The four-bar of the examples, with a motor at its first joint."""
    m, _ = pf.read(EXAMPLES / "four_bar.yaml")
    return m.with_(actuators=[pf.actuator("motor", m.joints[0].name)], gravity=(0, 0, 0))


def starts(m: pf.Mechanism) -> torch.Tensor:
    """(RUNS, nq + nv) states at rest, on the constraints."""
    angles = np.linspace(0.6, 1.0, RUNS)
    found = pf.assemble(m, {m.q_names[0]: angles})
    return torch.as_tensor(np.hstack([found.q, np.zeros((RUNS, m.nv))]))


def flight() -> tuple[pf.Mechanism, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The quadcopter of the examples, a state in flight, the thrusts that carry it, and its parameters."""
    m, settings = pf.read(EXAMPLES / "quadcopter.yaml")
    speeds = 0.2 * np.random.default_rng(3).normal(size=m.nv)
    arrays = np.concatenate([m.neutral(), speeds]), [settings.u[name] for name in m.u_names], m.p_defaults
    return m, *(torch.tensor(np.asarray(x)) for x in arrays)


def same_numbers(m: pf.Mechanism) -> tuple[float, float]:
    """Largest differences of values and derivatives from `forward_dynamics` and `derivatives`."""
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


def copied(m: pf.Mechanism) -> list[str]:
    """Tensors of a step that do not share their memory with the kernel; there should be none."""
    seen: list[int] = []

    def watched(pair: ValueAndSlopes, of: Any, arrays: tuple[Any, ...]) -> Any:
        found = call(pair, of, arrays)
        seen.extend(x.ctypes.data for x in (*arrays, found[-1]))
        return found

    call, x = ValueAndSlopes.call, starts(m)
    u, p = torch.ones(RUNS, 1, dtype=torch.float64), torch.as_tensor(np.tile(m.p_defaults, (RUNS, 1)))
    with patch.object(ValueAndSlopes, "call", watched):
        there = pf.bridges.torch_function(m, step=STEP)(x, u, p)
    named = {"x": x, "u": u, "p": p, "the result": there}
    assert len(seen) == len(named)
    return [name for (name, tensor), place in zip(named.items(), seen, strict=True) if tensor.data_ptr() != place]


def gradients_checked() -> int:
    """Number of functions that pass PyTorch's gradcheck, single and as batches; it raises at the first that does not."""
    bar, (craft, x, u, p) = four_bar(), flight()
    q = starts(bar)[:2, : bar.nq]
    parameters = torch.tensor(np.asarray(bar.p_defaults))
    speed = torch.as_tensor(pf.assemble(bar, q.numpy(), np.ones((2, bar.nv))).v)
    force = torch.ones(2, 1, dtype=torch.float64)
    cases = [
        (bar, "forward_dynamics", (q, speed, force, parameters)),
        (bar, "step", (torch.cat([q, speed], 1), force, parameters)),
        (craft, "forward_dynamics", (x[: craft.nq], x[craft.nq :], u, p)),
        (craft, "step", (x, u, p)),
        (craft, "step", (x.repeat(3, 1), u, p)),
    ]
    for m, what, tensors in cases:
        f = pf.bridges.torch_function(m, what, step=STEP if what == "step" else None)
        given = tuple(a.clone().requires_grad_() for a in tensors)
        bounds = {"eps": 1e-6, "atol": 1e-6, "rtol": 1e-6}
        assert torch.autograd.gradcheck(f, given, **bounds, check_batched_grad=True, check_forward_ad=True)
    return len(cases)


def second_derivatives_refused() -> bool:
    """Whether three ways to compute a second derivative raise an error."""
    m = four_bar()
    x, u = starts(m)[0], torch.ones(1, dtype=torch.float64)
    step = pf.bridges.torch_function(m, step=STEP)

    def cost(force: torch.Tensor) -> torch.Tensor:
        return (step(x, force) ** 2).sum()

    for way in (torch.func.hessian, lambda f: torch.func.jacrev(torch.func.jacrev(f)), curvature):
        try:
            way(cost)(u)
        except pf.ModelError as error:
            assert "no second derivatives" in str(error)
        else:
            return False
    return True


def curvature(f: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.autograd.functional.hessian(f, x)


def through_many_steps() -> tuple[float, float]:
    """Derivative of the parcel's position after LONG steps of the quadcopter by a change of all thrusts: backwards, and by
    differences."""
    m, x, u, _ = flight()
    step = pf.bridges.torch_function(m, step=2e-3)
    t = 2e-3 * torch.arange(LONG, dtype=torch.float64)[:, None]
    way = torch.cos(3 * t + torch.arange(m.nu))

    def end(thrusts: torch.Tensor) -> torch.Tensor:
        now = x
        for thrust in thrusts:
            now = step(now, thrust)
        return now[..., m.q_names.index("hang.z")]

    thrusts = (u + 0 * t).requires_grad_()
    (slope,) = torch.autograd.grad(end(thrusts), thrusts)
    sizes = [2e-3, 1e-3, 5e-4]
    moved = torch.stack([u + sign * size * way for size in sizes for sign in (1, -1)], dim=1)
    with torch.no_grad():
        ends = end(moved)
    table = [(ends[2 * k] - ends[2 * k + 1]) / (2 * size) for k, size in enumerate(sizes)]
    for power in (4, 16):
        table = [(power * b - a) / (power - 1) for a, b in pairwise(table)]
    return float((slope * way).sum()), float(table[0])


def learnt(m: pf.Mechanism) -> list[float]:
    """Cost after each round of training."""
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
    m = four_bar()
    value, slope = same_numbers(m)
    print(f"torch {torch.__version__}: values off by {value:.1e}, derivatives by {slope:.1e}")
    assert value < 1e-12 and slope < 1e-9
    assert not (names := copied(m)), names
    print("tensors and results are the memory of the kernels: nothing is copied")
    print(f"gradcheck passes for {gradients_checked()} functions, in batches too")
    assert second_derivatives_refused()
    print("second derivatives are refused")
    found, expected = through_many_steps()
    print(f"gradient through {LONG} steps of a quadcopter: {found:.12g}, by differences {expected:.12g}")
    assert abs(found - expected) < 1e-9 * abs(expected)
    costs = learnt(m)
    print(f"a policy through {STEPS} steps of {RUNS} four-bars: cost {costs[0]:.3g}, after {ROUNDS} rounds {costs[-1]:.3g}")
    assert costs[-1] < 0.1 * costs[0]


if __name__ == "__main__":
    main()
