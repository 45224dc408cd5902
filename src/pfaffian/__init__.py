"""Model, simulate and control constrained rigid-body systems.

    describe a machine    mechanism, body, shape, joint, locked, mimic, edge, coordinates, velocities; pose; Parameter for a
                          number that varies
        its constraints   closure, coincide, holonomic, nonholonomic, servo
        its forces        actuator, actuate_all, spring, wrench; Compound for several forces or constraints as one
        from files        read, write (URDF, MJCF, SDF, USD, YAML, the zoo)
        changed           joined for one tree of two machines, reduce for fewer states
    run it                assemble, run, events, stepper, impact, sweep; Scheme for the integrator; random_configuration
        record            reaction, of_motion; loads, a table of the peak loads of joints
    evaluate a state      forward_kinematics, jacobian, mass_centre, mass_matrix, bias_force, energy, momentum,
                          forward_dynamics, inverse_dynamics, derivatives, reaction_wrench, equilibrium, linearise
        anything else     compile_terms, casadi_function, symbols, equations in letters; FORMULATIONS
    measured motion       fit: parameters from records
    use a result          overview, plot, plot_sweep, map_of, animate, view; export for laws as C99, fmu for other
                          simulators
    types                 Mechanism, Body, Joint, Coordinates, Pose, Kinematics, Terms, Motion, System
    errors                PfaffianError: ModelError, RunError, BuildError; warnings ModelWarning, RunWarning

Further names are in modules by subject: control (laws, references, filters), analysis (of machines and laws), forces,
rolling, multicopters, rotations, screws (products of exponentials), reduction (symmetries too), calculus, constraints,
results (causes, files), statistics (along a run), sweeps, learning, formats (options of the readers), maths (so3, se3),
cuda, study, identification (numbers from measurements), bridges (acados, JAX, FMUs). `help(pf.control)` shows what is in one,
`help(pf.run)` explains a name.
"""

from __future__ import annotations

import sys
from importlib import import_module

from pfaffian import lazy
from pfaffian import sources as sources

if lazy.TYPE_CHECKING:
    from typing import Any

_import = lazy.importer(globals())


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import pfaffian` is quick."""
    return import_module("importlib.metadata").version("pfaffian") if name == "__version__" else _import(name)


__dir__ = lazy.lister({}, lazy.listed(__file__))


def _show_in_notebooks() -> None:
    """Make notebooks display machines and results with a picture; the code for it is imported when it is first needed."""
    notebook = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    html = notebook.display_formatter.formatters["text/html"] if notebook is not None else None
    if html is not None:
        show: Any = lambda name: lambda x: getattr(import_module("pfaffian.viewer.notebook"), name)(x)  # noqa: E731
        html.for_type_by_name("pfaffian.model.mechanism", "Mechanism", show("machine"))
        html.for_type_by_name("xarray.core.dataset", "Dataset", show("result"))


_show_in_notebooks()
