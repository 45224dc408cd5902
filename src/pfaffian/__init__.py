"""Model, simulate and control constrained rigid-body systems.

    describe a machine    mechanism, body, shape, joint, locked, mimic, edge, coordinates, velocities; pose; Parameter for a
                          number that varies
        its constraints   closure, coincide, holonomic, nonholonomic, servo
        its forces        actuator, actuate_all, spring, wrench
        from files        read, write (URDF, MJCF, SDF, USD, YAML, the zoo)
        changed           joined for one tree of two machines, reduce for fewer states
    run it                assemble, run, stepper, run_adaptive, impact, sweep; Scheme for the integrator; random_configuration
        record            reaction, of_motion
    evaluate a state      forward_kinematics, jacobian, mass_centre, mass_matrix, bias_force, energy, momentum,
                          forward_dynamics, inverse_dynamics, derivatives, reaction_wrench, equilibrium, linearise
        anything else     compile_terms, casadi_function, symbols, equations in letters; FORMULATIONS
    use a result          overview, plot, plot_sweep, map_of, animate, view; export for laws as C99
    types                 Mechanism, Body, Joint, Coordinates, Pose, Kinematics, Terms, Motion, System
    errors                PfaffianError: ModelError, RunError, BuildError; warnings ModelWarning, RunWarning

Further names are in modules by subject: control (laws, references, filters, analysis of a law), forces, rolling, multicopters,
rotations, screws (products of exponentials), reduction (symmetries too), calculus, constraints, results (causes, files),
statistics (along a run), sweeps, learning, formats (options of the readers), maths (so3, se3), cuda, study, bridges (acados,
JAX). `help(pf.control)` shows what is in one, `help(pf.run)` explains a name.
"""

from __future__ import annotations

import sys
from importlib import import_module

from pfaffian import lazy
from pfaffian import sources as sources

if lazy.TYPE_CHECKING:
    from typing import Any

_NAMES = {
    "pfaffian.errors": ["BuildError", "ModelError", "ModelWarning", "PfaffianError", "RunError", "RunWarning"],
    "pfaffian.model.number": ["Parameter"],
    "pfaffian.model.pose": ["Pose", "pose"],
    "pfaffian.model.body": ["Body", "body"],
    "pfaffian.model.shape": ["shape"],
    "pfaffian.model.joint": ["Joint", "edge", "joint", "locked", "mimic"],
    "pfaffian.model.coordinates": ["Coordinates", "coordinates", "velocities"],
    "pfaffian.model.constraint": ["closure", "coincide", "holonomic", "nonholonomic", "servo"],
    "pfaffian.model.force": ["actuator", "spring", "wrench"],
    "pfaffian.model.mechanism": ["Mechanism", "actuate_all", "mechanism", "random_configuration"],
    "pfaffian.model.graph": ["joined"],
    "pfaffian.formats.door": ["read"],
    "pfaffian.formats.write": ["write"],
    "pfaffian.terms.terms": ["Terms", "symbols"],
    "pfaffian.terms.kinematics": ["Kinematics"],
    "pfaffian.dynamics": ["FORMULATIONS"],
    "pfaffian.dynamics.motion": ["Motion"],
    "pfaffian.simulate.run": ["run"],
    "pfaffian.simulate.stepper": ["stepper"],
    "pfaffian.simulate.adaptive": ["run_adaptive"],
    "pfaffian.simulate.step": ["Scheme"],
    "pfaffian.simulate.system": ["System"],
    "pfaffian.simulate.reduction": ["reduce"],
    "pfaffian.simulate.impact": ["impact"],
    "pfaffian.simulate.assemble": ["assemble"],
    "pfaffian.simulate.signals": ["of_motion"],
    "pfaffian.evaluate.reactions": ["reaction_wrench"],
    "pfaffian.simulate.reaction_output": ["reaction"],
    "pfaffian.evaluate.compiled": ["compile_terms", "forward_dynamics"],
    "pfaffian.evaluate.quantities": [
        "bias_force",
        "energy",
        "forward_kinematics",
        "jacobian",
        "mass_centre",
        "mass_matrix",
        "momentum",
    ],
    "pfaffian.evaluate.inverse": ["inverse_dynamics"],
    "pfaffian.evaluate.derivatives": ["derivatives"],
    "pfaffian.simulate.equilibrium": ["equilibrium"],
    "pfaffian.simulate.linearise": ["linearise"],
    "pfaffian.simulate.casadi_functions": ["casadi_function"],
    "pfaffian.sweeps.engine": ["sweep"],
    "pfaffian.viewer.figures": ["overview"],
    "pfaffian.viewer.equations": ["equations"],
    "pfaffian.viewer.maps": ["map_of"],
    "pfaffian.viewer.plots": ["plot"],
    "pfaffian.viewer.sweeps": ["plot_sweep"],
    "pfaffian.viewer.animate": ["animate"],
    "pfaffian.viewer.browser": ["view"],
    "pfaffian.embedded.export": ["export"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_ROOMS = (
    "bridges", "calculus", "constraints", "control", "cuda", "forces", "formats", "learning", "maths", "multicopters",
    "reduction",
    "results", "rolling", "rotations", "screws", "statistics", "study", "sweeps",
)  # fmt: skip

_import = lazy.importer(globals(), _HOMES, _ROOMS)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import pfaffian` is quick."""
    return import_module("importlib.metadata").version("pfaffian") if name == "__version__" else _import(name)


__dir__ = lazy.lister({}, [*_HOMES, *_ROOMS])


def _show_in_notebooks() -> None:
    """Make notebooks display machines and results with a picture; the code for it is imported when it is first needed."""
    notebook = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    html = notebook.display_formatter.formatters["text/html"] if notebook is not None else None
    if html is not None:
        show: Any = lambda name: lambda x: getattr(import_module("pfaffian.viewer.notebook"), name)(x)  # noqa: E731
        html.for_type_by_name("pfaffian.model.mechanism", "Mechanism", show("machine"))
        html.for_type_by_name("xarray.core.dataset", "Dataset", show("result"))


_show_in_notebooks()
