"""A mechanism as the model of an optimal control problem: expressions under the names of acados, and files of CasADi."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import casadi as ca

from pfaffian.differentiation.casadi_functions import FunctionRequest, casadi_function, explicit
from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.single_values import as_number
from pfaffian.formats.text.file import as_path
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.folder import prepare, write_file
from pfaffian.simulate.step.step import Scheme

IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, eq=False)
class AcadosModel:
    """The rate x_dot = f(x, u, p, t) and one discrete step of it, as expressions under the names that acados gives them.

    name: an identifier.   x, u, p, t, xdot: symbols, x = [q; v].   f_expl_expr: x_dot.   f_impl_expr: xdot - x_dot.
    disc_dyn_expr: x after a step.   x_names, u_names, p_names: names of the entries; x_units, u_units: their units.
    p_values: default values of the parameters.   step: its length [s].   functions: rate and step, each with the matrices of
    its derivatives with respect to x and u, and constraints. These matrices cannot be differentiated again; for second
    derivatives differentiate the expressions.

    In a program that uses acados: `model = acados_template.AcadosModel()`, and then
    `for name in ("name", "x", "u", "p", "t", "xdot", "f_expl_expr", "f_impl_expr", "disc_dyn_expr"): setattr(model, name,
    getattr(ours, name))`.
    """

    name: str
    x: ca.SX
    u: ca.SX
    p: ca.SX
    t: ca.SX
    xdot: ca.SX
    f_expl_expr: ca.SX
    f_impl_expr: ca.SX
    disc_dyn_expr: ca.SX
    x_names: tuple[str, ...]
    u_names: tuple[str, ...]
    p_names: tuple[str, ...]
    x_units: tuple[str, ...]
    u_units: tuple[str, ...]
    p_values: tuple[float, ...]
    step: float
    functions: tuple[ca.Function, ...]

    def write(self, folder: Any) -> tuple[Path, ...]:
        """Write NAME_rate, NAME_step and NAME_constraints as .casadi files, all as C in NAME.c, and the names in NAME.json.

        Args:
            folder: created if it does not exist; existing files of these names are replaced.
        Returns:
            the paths of the files. `casadi.Function.load` reads the .casadi files; each function has the name of its file.
        Raises ModelError: the folder cannot be written to.
        """
        target, paths = prepare(as_path(folder, "the folder to write the model to")), list[Path]()
        code = ca.CodeGenerator(f"{self.name}.c", {"with_header": False})
        for f in self.functions:
            paths.append(write_file(target / f"{f.name()}.casadi", _saved(f)))
            code.add(f)
        paths.append(write_file(target / f"{self.name}.c", code.dump().encode("ascii")))
        names = {k: getattr(self, k) for k in ("x_names", "x_units", "u_names", "u_units", "p_names", "p_values", "step")}
        paths.append(write_file(target / f"{self.name}.json", (json.dumps(names, indent=1) + "\n").encode("ascii")))
        return tuple(paths)


def acados_model(m: Mechanism, *, step: float, name: str = "model", scheme: Scheme | None = None) -> AcadosModel:
    """A mechanism as the model of an optimal control problem in acados: x, u, p, xdot, the rate and the step, as expressions.

    acados itself is not needed, since the model consists of CasADi expressions. The rate contains the constraint forces of the
    mechanism, and the step puts the state onto the constraints as `run` does, so no algebraic equation remains.

    Args:
        m: the mechanism.
        step: length of the discrete step [s].
        name: name of the model: lower-case letters, digits and _, a letter first; "model" by default.
        scheme: Scheme with the integrator rk4 or euler; `pf.Scheme()` by default.
    Returns:
        an AcadosModel with the expressions x, u, p, t, xdot, f_expl_expr, f_impl_expr and disc_dyn_expr, the names of their
        entries, and a method `write(folder)` for files.
    Raises ModelError: a name with other characters, and whatever `casadi_function` refuses.

    Example:
        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [slide], actuators=[pf.actuator("push", "x")])
        >>> model = pf.bridges.acados_model(m, step=0.1, name="cart")
        >>> model.x_names, model.x_units, model.u_names, [f.name() for f in model.functions]
        (('q x', 'v x'), ('m', 'm/s'), ('push',), ['cart_rate', 'cart_step', 'cart_constraints'])
    """
    as_mechanism(m)
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
        raise ModelError(f"acados_model: name: lower-case letters, digits and _ are needed, a letter first, got {brief(name)}")
    h = as_number(step, "step", above=0)
    rate = casadi_function(m, "rate", backend="casadi")
    after = casadi_function(m, "step", step=h, scheme=scheme, backend="casadi")
    x, u, p, t = given = [ca.SX.sym(n, rate.size1_in(i)) for i, n in enumerate(rate.name_in())]
    xdot, f = ca.SX.sym("xdot", x.numel()), rate(*given)
    both = ("x", "u")
    functions = [
        FunctionRequest(m, "rate", both, False).matrices(),
        FunctionRequest(m, "step", both, False, explicit(m, None, scheme, "acados_model"), h).matrices(),
        casadi_function(m, "constraints", backend="casadi"),
    ]
    states = [*[f"q {n}" for n in m.q_names], *[f"v {n}" for n in m.v_names]]
    return AcadosModel(
        name, x, u, p, t, xdot, f, xdot - f, after(*given), tuple(states), m.u_names, m.p_names, m.q_units + m.v_units,
        m.u_units, tuple(m.p_defaults.tolist()), h, tuple(_renamed(f"{name}_{g.name()}", g) for g in functions),
    )  # fmt: skip


def _renamed(name: str, f: ca.Function) -> ca.Function:
    """f under another name."""
    given = [ca.SX.sym(n, f.size1_in(i)) for i, n in enumerate(f.name_in())]
    return ca.Function(name, given, f.call(given), f.name_in(), f.name_out())


def _saved(f: ca.Function) -> bytes:
    """The bytes of a file that `casadi.Function.load` reads back as f."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "f.casadi")
        f.save(str(path))
        return path.read_bytes()
