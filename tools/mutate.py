"""Mutation testing: would the tests detect a fault? Plants small faults in a copy of the source, one at a time.

    python -m tools.mutate                                   100 mutants of all of src/, drawn by a seed
    python -m tools.mutate --only control --count 40         of some folders or files
    python -m tools.mutate --only model/check.py --list      print the mutants, run nothing
    python -m tools.mutate --only model/check.py:120         of one line, for example to retry a survivor
    python -m tools.mutate --since v1.0                      of the files that differ from a revision
    python -m tools.mutate --count 200 --jobs 2              two at a time
    python -m tools.mutate --keep                            add the score to tools/mutation_score.md

Each mutant is run against the tests most likely to detect it, first those that name the changed function and then the fastest,
and is killed by the first test that fails. Survivors are printed as differences. Some are equivalent programs, or change only
the time at which something ends: the score need not reach 1, but must not fall. A mutant is unknown if it runs out of time, or
if the failed test also fails without it.
"""

from __future__ import annotations

import argparse
import compileall
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from tools import mutant_tests
from tools.mutants import Mutant, candidates, differs

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/pfaffian"
SCORES = ROOT / "tools" / "mutation_score.md"
COPIED = ("src", "tests", "tools", "studies", "examples", "benchmarks", "docs")
COPIED += ("README.md", "CONTRIBUTING.md", "pyproject.toml")
LAWS = ["control/test_faults.py", "control/test_weights.py", "control/test_wrenches.py"]
TESTS_OF = {
    "__init__.py": ["promises"],
    "cli.py": ["cli/test_run.py", "cli/test_sweep.py", "cli/test_study.py", "cli/test_hostile.py"],
    "control": [*LAWS, "control/test_designed.py"],
    "control/acceleration.py": [*LAWS, "control/test_allocation.py", "control/test_designed.py"],
    "control/actuation.py": ["control/test_flight_filters.py"],
    "control/allocation.py": [*LAWS, "control/test_allocation.py", "control/test_designed.py"],
    "control/computed_torque.py": ["control/test_faults.py", "control/test_reference.py", "control/test_weights.py"],
    "control/concurrent.py": ["control/test_concurrent.py", "control/test_zero_dynamics.py"],
    "control/digest.py": ["control/test_digest.py"],
    "control/discrete.py": ["control/test_discrete.py", "control/test_digest.py", "promises/test_repr.py"],
    "control/estimation.py": ["control/test_flight_filters.py", "control/test_flight_filter.py"],
    "control/feasible.py": [
        "control/test_prototype.py",
        "control/test_bicopter.py",
        "control/test_flat.py",
        "control/test_least_time.py",
    ],
    "control/course.py": ["control/test_course.py"],
    "control/extremes.py": ["control/test_flat.py", "control/test_least_time.py", "control/test_other_gravity.py"],
    "control/flat.py": ["control/test_flat.py", "control/test_bicopter.py", "control/test_least_time.py"],
    "control/identification.py": ["control/test_identification.py"],
    "control/law.py": ["promises/test_repr.py", "control/test_faults.py", "control/test_digest.py", "control/test_discrete.py"],
    "control/layout.py": ["control/test_discrete.py", "control/test_digest.py"],
    "control/motors.py": ["control/test_allocation_motors.py", "control/test_concurrent.py", "control/test_prototype.py"],
    "control/undriven.py": ["control/test_undriven.py"],
    "control/output.py": ["control/test_concurrent.py", "control/test_random_outputs.py"],
    "control/placement.py": ["control/test_placement.py", "control/test_bicopter.py"],
    "control/prototype.py": ["control/test_prototype.py", "control/test_matching.py", "control/test_prototype_arms.py"],
    "control/prototype_tracking.py": [
        "control/test_prototype.py",
        "control/test_matching.py",
        "control/test_prototype_arms.py",
        "control/test_allocation_motors.py",
    ],
    "control/reach.py": ["control/test_reach.py"],
    "control/reason.py": ["control/test_reason.py", "simulate/test_stops.py", "control/test_concurrent.py"],
    "control/reference.py": ["control/test_reference.py", "control/test_attitude_references.py", *LAWS],
    "control/servo.py": [*LAWS, "control/test_servo.py"],
    "control/turning.py": ["control/test_turning.py", "control/test_flat.py", "control/test_other_gravity.py"],
    "control/task.py": ["control/test_reference.py", "control/test_task_geometry.py", *LAWS],
    "dynamics": ["identities", "oracles/test_formulations.py", "oracles/test_singular.py", "control/test_wrenches.py"],
    "dynamics/controlforce.py": ["simulate/test_signals.py", "control/test_servo.py"],
    "dynamics/motion.py": [
        "oracles/test_formulations.py",
        "oracles/test_dependent_rows.py",
        "model/test_default_arguments.py",
        "simulate/test_scales.py",
    ],
    "dynamics/multipliers.py": ["identities/test_multipliers.py", "oracles/test_formulations.py"],
    "dynamics/nullspace.py": ["oracles/test_formulations.py", "oracles/test_singular.py"],
    "dynamics/floating.py": ["simulate/test_floating.py", "simulate/test_closed_connections.py"],
    "dynamics/passage.py": ["simulate/test_entrance.py", "simulate/test_velocity_constraints.py"],
    "dynamics/projection.py": ["control/test_projection.py", "oracles/test_formulations.py"],
    "dynamics/quasivelocity.py": ["control/test_wrenches.py", "control/test_quasivelocity.py", "oracles/test_formulations.py"],
    "dynamics/reaction.py": ["oracles/test_reaction_wrench.py"],
    "dynamics/loop_regularity.py": ["identities/test_regularity.py", "oracles/test_overconstrained.py"],
    "dynamics/regularity.py": [
        "identities/test_regularity.py",
        "simulate/test_signals.py",
        "simulate/test_scales.py",
        "oracles/test_overconstrained.py",
        "simulate/test_entrance.py",
    ],
    "embedded": ["embedded"],
    "errors.py": ["promises"],
    "evaluate": ["oracles/test_quantities.py", "simulate/test_arguments.py", "simulate/test_inputs.py"],
    "evaluate/arrays.py": ["simulate/test_arguments.py", "simulate/test_inputs.py", "promises/test_wrong_arguments.py"],
    "evaluate/calculus.py": [
        "identities/test_connection.py",
        "identities/test_deviation.py",
        "promises/test_wrong_arguments.py",
    ],
    "evaluate/compiled.py": ["oracles/test_quantities.py", "promises/test_wrong_arguments.py"],
    "evaluate/connections.py": [
        "identities/test_reduction_forms.py",
        "simulate/test_reduction.py",
        "simulate/test_floating.py",
        "simulate/test_closed_connections.py",
        "simulate/test_shared_motion.py",
    ],
    "evaluate/derivatives.py": ["identities/test_derivatives.py", "identities/test_exact_derivatives.py"],
    "evaluate/exponentials.py": ["oracles/test_exponentials.py", "promises"],
    "evaluate/floating.py": ["simulate/test_floating.py", "simulate/test_closed_connections.py"],
    "evaluate/gain_bound.py": ["control/test_gain.py"],
    "evaluate/given_state.py": ["simulate/test_arguments.py", "control/test_projection.py"],
    "evaluate/inverse.py": ["simulate/test_complete_states.py", "control/test_projection.py", "control/test_wrenches.py"],
    "evaluate/light_inertia.py": ["oracles/test_light_directions.py"],
    "evaluate/quantities.py": ["oracles/test_quantities.py"],
    "evaluate/reactions.py": ["oracles/test_reaction_wrench.py"],
    "evaluate/realisability.py": ["control/test_servo.py", "simulate/test_stops.py"],
    "evaluate/reduction_plan.py": [
        "simulate/test_symmetry_scale.py",
        "simulate/test_reduced_rates.py",
        "simulate/test_reduction.py",
    ],
    "evaluate/symmetry.py": ["simulate/test_symmetry.py", "simulate/test_reduction.py"],
    "evaluate/transported_basis.py": ["control/test_quasivelocity.py"],
    "formats": ["formats"],
    "formats/mesh_file.py": ["formats/test_shapes.py"],
    "formats/urdf.py": ["formats/test_urdf.py", "formats/test_urdf_loops.py", "formats/test_robots.py"],
    "formats/urdf_part.py": ["formats/test_urdf.py", "formats/test_robots.py"],
    "formats/urdf_shape.py": ["formats/test_shapes.py"],
    "kernel": ["kernel"],
    "kernel/build/decisions.py": ["simulate/test_trial.py"],
    "kernel/build/processes.py": ["kernel/test_toolchain.py", "kernel/test_store.py"],
    "kernel/build/store.py": ["kernel/test_store.py", "kernel/test_toolchain.py"],
    "kernel/build/toolchain.py": ["kernel/test_toolchain.py", "kernel/test_store.py"],
    "kernel/build/trial.py": ["simulate/test_trial.py", "kernel/test_store.py", "kernel/test_toolchain.py"],
    "kernel/build/nvrtc.py": ["kernel/test_cuda.py"],
    "kernel/call/device.py": ["kernel/test_cuda.py"],
    "kernel/call/external.py": ["simulate/test_compiled_casadi.py", "kernel/test_external.py"],
    "kernel/call/keyed.py": ["kernel/test_keyed.py"],
    "kernel/call/obtain.py": ["kernel/test_store.py", "simulate/test_keys.py", "simulate/test_trial.py"],
    "kernel/call/rollout.py": ["kernel/test_rollout.py", "kernel/test_samplers.py"],
    "kernel/program/interpret.py": [
        "kernel/test_reciprocal.py",
        "kernel/test_selection.py",
        "kernel/test_passes.py",
        "kernel/test_bits.py",
    ],
    "kernel/build/passes.py": ["kernel/test_compiled_passes.py", "kernel/test_toolchain.py"],
    "kernel/program/listing.py": ["kernel/test_compiled_passes.py", "kernel/test_trace.py"],
    "kernel/program/passes.py": [
        "kernel/test_passes.py",
        "kernel/test_compiled_passes.py",
        "kernel/test_trace.py",
        "kernel/test_bits.py",
    ],
    "kernel/program/selection.py": ["kernel/test_selection.py", "kernel/test_passes.py"],
    "kernel/program/share.py": ["kernel/test_share.py", "kernel/test_passes.py", "simulate/test_lanes.py"],
    "kernel/remember.py": [
        "kernel/test_remember.py",
        "kernel/test_keyed.py",
        "simulate/test_keys.py",
        "simulate/test_changed_functions.py",
    ],
    "kernel/text/cuda.py": ["kernel/test_cuda.py"],
    "kernel/text/external.py": ["simulate/test_compiled_casadi.py", "kernel/test_external.py"],
    "kernel/text/portable.py": ["kernel/test_portable.py", "embedded/test_export.py"],
    "maths": ["maths", "identities", "oracles/test_formulations.py"],
    "maths/linear.py": [
        "maths/test_linear.py",
        "maths/test_smallest.py",
        "maths/test_dependent_rows.py",
        "maths/test_pack.py",
        "maths/test_singular_value.py",
        "oracles/test_dependent_rows.py",
        "oracles/test_formulations.py",
        "simulate/test_reduced_rates.py",
    ],
    "maths/minimum_norm.py": [
        "maths/test_pack.py",
        "maths/test_dependent_rows.py",
        "maths/test_smallest.py",
        "oracles/test_formulations.py",
        "oracles/test_dependent_rows.py",
    ],
    "maths/qp.py": ["maths/test_qp.py"],
    "maths/random.py": ["maths/test_random.py", "control/test_discrete.py"],
    "maths/reflection.py": ["maths/test_reflection.py", "maths/test_smallest.py"],
    "maths/selected_inverse.py": ["maths/test_dependent_rows.py", "identities/test_regularity.py"],
    "maths/se3.py": ["maths/test_se3.py", "maths/test_pseudo.py", "identities/test_constellation.py"],
    "maths/so3.py": ["maths/test_so3.py", "maths/test_rotations.py", "control/test_task_geometry.py"],
    "maths/span.py": ["maths/test_span.py", "oracles/test_linearise.py"],
    "maths/subgroups.py": ["maths/test_subgroups.py", "model/test_joint.py", "oracles/test_joint_kinds.py"],
    "model": ["model", "simulate/test_wrong_models.py", "simulate/test_inputs.py", "formats/test_yaml.py", "identities"],
    "model/check.py": [
        "model/test_check.py",
        "formats/test_yaml.py",
        "simulate/test_wrong_models.py",
        "promises/test_wrong_arguments.py",
    ],
    "model/unphysical.py": ["model/test_check.py", "simulate/test_many_starts.py", "formats/test_urdf.py"],
    "model/constellation.py": ["identities/test_constellation.py"],
    "model/constraint.py": [
        "model/test_check.py",
        "simulate/test_velocity_constraints.py",
        "identities/test_constraints.py",
        "oracles/test_closure_twins.py",
        "promises/test_repr.py",
    ],
    "model/coordinates.py": ["identities/test_coordinates.py", "identities/test_graphs.py"],
    "model/data.py": ["model/test_data.py"],
    "model/digest.py": ["simulate/test_keys.py", "simulate/test_changed_functions.py", "model/test_data.py"],
    "model/elastic.py": ["identities/test_ready_forces.py", "identities/test_constellation.py"],
    "model/fluid.py": ["identities/test_ready_forces.py"],
    "model/friction.py": ["identities/test_ready_forces.py"],
    "model/graph.py": ["oracles/test_exponentials.py", "promises/test_repr.py"],
    "model/traced_function.py": ["simulate/test_keys.py", "simulate/test_changed_functions.py"],
    "model/mechanism.py": [
        "model/test_check.py",
        "model/test_data.py",
        "identities/test_parameters.py",
        "simulate/test_record.py",
        "promises/test_wrong_arguments.py",
    ],
    "model/multicopter.py": ["model/test_multicopter.py", "control/test_bicopter.py", "control/test_flat.py"],
    "model/number.py": [
        "model/test_check.py",
        "model/test_data.py",
        "formats/test_yaml.py",
        "promises/test_wrong_arguments.py",
    ],
    "model/rolling.py": ["model/test_rolling.py"],
    "model/rotations.py": ["maths/test_rotations.py"],
    "model/shape.py": ["model/test_shape.py"],
    "model/reprs.py": ["promises/test_repr.py"],
    "output": ["viewer/test_plain.py", "cli", "simulate/test_netcdf.py"],
    "output/folder.py": ["viewer/test_plain.py", "cli"],
    "output/plain.py": ["viewer/test_plain.py", "cli"],
    "output/whole_file.py": ["simulate/test_netcdf.py"],
    "simulate": ["simulate", "control/test_faults.py"],
    "simulate/accuracy.py": ["simulate/test_accuracy.py"],
    "simulate/casadi_functions.py": [
        "simulate/test_curvature.py",
        "simulate/test_sensitivity.py",
        "simulate/test_compiled_casadi.py",
    ],
    "simulate/closed_loop.py": ["control/test_faults.py", "control/test_designed.py", "control/test_discrete.py"],
    "simulate/half_steps.py": ["simulate/test_accuracy.py", "simulate/test_balance.py"],
    "simulate/bursts.py": ["simulate/test_bursts.py", "simulate/test_accuracy.py"],
    "simulate/comparisons.py": ["simulate/test_accuracy.py"],
    "simulate/loop.py": ["simulate/test_accuracy.py", "simulate/test_resume.py", "simulate/test_lanes.py"],
    "simulate/roll.py": [
        "simulate/test_lanes.py",
        "simulate/test_many_starts.py",
        "simulate/test_interrupt.py",
        "simulate/test_entrance.py",
    ],
    "simulate/tracing.py": ["simulate/test_signals.py", "simulate/test_states.py", "simulate/test_reused_factor.py"],
    "simulate/acados_model.py": ["simulate/test_sensitivity.py"],
    "simulate/adaptive.py": [
        "simulate/test_result.py",
        "simulate/test_order.py",
        "simulate/test_activation.py",
        "simulate/test_record.py",
    ],
    "simulate/advice.py": ["simulate/test_accuracy.py", "simulate/test_stiff_states.py"],
    "simulate/activation.py": ["simulate/test_activation.py", "simulate/test_switches.py"],
    "simulate/assemble.py": ["simulate/test_start.py", "simulate/test_arguments.py"],
    "simulate/balance.py": ["simulate/test_accuracy.py"],
    "simulate/record_memory.py": ["simulate/test_record.py", "simulate/test_sizes.py"],
    "simulate/curvature.py": ["simulate/test_curvature.py"],
    "simulate/device.py": ["kernel/test_cuda.py"],
    "simulate/differentiable.py": ["simulate/test_sensitivity.py"],
    "simulate/drift.py": ["simulate/test_symmetry_scale.py"],
    "simulate/entrance.py": ["simulate/test_entrance.py"],
    "simulate/passages.py": ["oracles/test_singular.py", "simulate/test_record.py"],
    "simulate/faults.py": ["simulate/test_stops.py", "simulate/test_activation.py"],
    "simulate/fastest.py": ["simulate/test_accuracy.py", "simulate/test_stops.py", "simulate/test_stiff_states.py"],
    "simulate/holonomy.py": ["simulate/test_floating.py", "simulate/test_closed_connections.py"],
    "simulate/impact.py": ["simulate/test_impact.py"],
    "simulate/inputs.py": ["simulate/test_inputs.py", "simulate/test_signals.py"],
    "simulate/integrators.py": ["simulate/test_integrators.py", "simulate/test_order.py"],
    "simulate/limits.py": ["simulate/test_limits.py"],
    "simulate/jax_function.py": ["simulate/test_sensitivity.py"],
    "simulate/linearise.py": ["oracles/test_linearise.py", "simulate/test_stiff_states.py"],
    "simulate/matching.py": ["control/test_matching.py"],
    "simulate/netcdf.py": ["simulate/test_netcdf.py"],
    "simulate/newton.py": ["simulate/test_start.py", "simulate/test_many_starts.py", "simulate/test_impact.py"],
    "simulate/one_momentum.py": ["simulate/test_shared_motion.py"],
    "simulate/orbit.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "simulate/interrupt.py": ["simulate/test_statistics.py", "simulate/test_interrupt.py"],
    "simulate/statistics.py": ["simulate/test_statistics.py"],
    "simulate/environment.py": ["simulate/test_environment.py"],
    "sweeps/__init__.py": ["sweeps"],
    "sweeps/space.py": ["sweeps/test_space.py", "sweeps/test_sweep.py"],
    "sweeps/plan.py": ["sweeps/test_sweep.py"],
    "sweeps/store.py": ["sweeps/test_sweep.py"],
    "sweeps/engine.py": ["sweeps/test_sweep.py", "sweeps/test_dask.py"],
    "sweeps/ranked.py": ["sweeps/test_space.py"],
    "viewer/sweeps.py": ["viewer/test_sweep_figures.py"],
    "formats/sweep_settings.py": ["cli/test_sweep.py"],
    "evaluate/progress.py": ["simulate/test_progress.py"],
    "simulate/qp.py": ["maths/test_qp.py", "promises/test_wrong_arguments.py"],
    "simulate/start_search.py": ["simulate/test_start.py", "simulate/test_many_starts.py"],
    "simulate/reduction.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "simulate/result.py": [
        "simulate/test_result.py",
        "simulate/test_stops.py",
        "simulate/test_record.py",
        "simulate/test_signals.py",
    ],
    "simulate/resume.py": ["simulate/test_resume.py"],
    "simulate/run.py": [
        "simulate/test_record.py",
        "simulate/test_arguments.py",
        "simulate/test_interrupt.py",
        "simulate/test_lanes.py",
        "simulate/test_resume.py",
        "simulate/test_accuracy.py",
    ],
    "simulate/sampling.py": ["control/test_discrete.py", "simulate/test_switches.py"],
    "simulate/sensitivity.py": ["simulate/test_sensitivity.py", "simulate/test_stiff_sensitivity.py"],
    "simulate/signals.py": ["simulate/test_signals.py", "simulate/test_record.py"],
    "simulate/simulation.py": [
        "simulate/test_signals.py",
        "simulate/test_record.py",
        "control/test_faults.py",
        "simulate/test_states.py",
    ],
    "simulate/start.py": ["simulate/test_start.py", "simulate/test_entrance.py"],
    "simulate/states.py": ["simulate/test_states.py"],
    "simulate/step_slopes.py": [
        "simulate/test_sensitivity.py",
        "simulate/test_stiff_sensitivity.py",
        "simulate/test_curvature.py",
    ],
    "simulate/step.py": ["simulate/test_correction.py", "simulate/test_integrators.py", "simulate/test_signals.py"],
    "simulate/stops.py": ["simulate/test_stops.py", "control/test_faults.py"],
    "simulate/switches.py": ["simulate/test_switches.py"],
    "simulate/system.py": ["simulate/test_states.py", "simulate/test_keys.py", "simulate/test_reduction.py"],
    "simulate/tangent.py": ["simulate/test_stiff_states.py"],
    "simulate/undecided.py": ["oracles/test_dependent_rows.py", "model/test_default_arguments.py"],
    "simulate/variables.py": ["simulate/test_spinning.py", "simulate/test_states.py"],
    "simulate/zero_dynamics.py": ["control/test_zero_dynamics.py"],
    "terms": ["identities", "oracles/test_formulations.py", "oracles/test_pinocchio_joints.py", "simulate/test_signals.py"],
    "terms/common_motion.py": ["simulate/test_common_motion.py", "simulate/test_shared_motion.py"],
    "terms/apart.py": ["identities/test_force_functions.py", "simulate/test_changed_functions.py"],
    "terms/dependence.py": [
        "oracles/test_dependent_rows.py",
        "maths/test_dependent_rows.py",
        "oracles/test_overconstrained.py",
    ],
    "terms/digest.py": ["simulate/test_keys.py", "simulate/test_changed_functions.py", "control/test_digest.py"],
    "terms/exponentials.py": ["oracles/test_exponentials.py"],
    "terms/lengths.py": ["simulate/test_scales.py", "simulate/test_complete_states.py", "simulate/test_start.py"],
    "terms/loops.py": ["identities/test_regularity.py", "oracles/test_overconstrained.py", "simulate/test_scales.py"],
    "terms/momentum.py": ["identities/test_kinetic_energy.py", "simulate/test_reduced_rates.py", "simulate/test_states.py"],
    "terms/orbit.py": ["identities/test_reduction_forms.py", "simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "terms/force_scale.py": ["simulate/test_symmetry.py", "simulate/test_symmetry_scale.py"],
    "terms/pfaffian.py": ["model", "identities", "simulate/test_signals.py", "control/test_servo.py"],
    "terms/present.py": ["simulate/test_changed_functions.py", "simulate/test_keys.py", "identities/test_force_functions.py"],
    "terms/kinematics.py": [
        "identities/test_coordinates.py",
        "simulate/test_changed_functions.py",
        "oracles/test_quantities.py",
    ],
    "terms/rates.py": [
        "identities/test_graphs.py",
        "identities/test_coordinates.py",
        "simulate/test_signals.py",
        "simulate/test_symmetry.py",
    ],
    "terms/reduction.py": ["simulate/test_reduced_rates.py", "simulate/test_reduction.py"],
    "terms/symbolic.py": ["oracles/test_symbolic.py", "viewer/test_latex.py"],
    "terms/terms.py": [
        "oracles/test_formulations.py",
        "identities/test_forces.py",
        "oracles/test_dependent_rows.py",
        "oracles/test_light_directions.py",
        "simulate/test_signals.py",
        "simulate/test_scales.py",
    ],
    "terms/wrenches.py": ["oracles/test_reaction_wrench.py"],
    "viewer": ["viewer", "cli"],
    "viewer/animate.py": ["viewer/test_animate.py"],
    "viewer/browser.py": ["viewer/test_browser.py"],
    "viewer/build.py": ["viewer/test_scene.py", "viewer/test_animate.py"],
    "viewer/camera.py": ["viewer/test_scene.py", "viewer/test_animate.py"],
    "viewer/curves.py": ["viewer/test_figures.py"],
    "viewer/describe.py": ["cli/test_run.py", "model/test_joint.py", "simulate/test_sizes.py"],
    "viewer/drawing.py": ["viewer/test_figures.py"],
    "viewer/equations.py": ["viewer/test_equations.py"],
    "viewer/chart.py": ["viewer/test_plots.py"],
    "viewer/maps.py": ["viewer/test_maps.py"],
    "viewer/plots.py": ["viewer/test_plots.py"],
    "viewer/figures.py": ["viewer/test_figures.py"],
    "viewer/fittings.py": ["viewer/test_scene.py"],
    "viewer/latex.py": ["viewer/test_latex.py"],
    "viewer/page.py": ["viewer/test_animate.py"],
    "viewer/render.py": ["viewer/test_animate.py"],
    "viewer/scene.py": ["viewer/test_scene.py", "viewer/test_animate.py"],
    "viewer/sketch.py": ["viewer/test_scene.py"],
    "viewer/solids.py": ["model/test_shape.py", "formats/test_shapes.py", "viewer/test_scene.py"],
    "viewer/study.py": ["cli/test_study.py"],
    "viewer/summary.py": ["cli/test_run.py", "simulate/test_record.py"],
}
"""Tests by the file or folder of the source that they cover, fastest first; the longest match counts."""
COVERS_ALL = ["promises/test_defaults.py"]
LEFT_OUT = ("tests/simulate/test_bits.py", "tests/simulate/test_provenance.py", "tests/promises/test_pages.py")
"""Tests that are slower than others with the same coverage, or that examine the checkout, which the copy is not."""


class Change(NamedTuple):
    """path: below src/pfaffian.   source: the file's text without the mutant."""

    path: str
    mutant: Mutant
    source: bytes

    def __str__(self) -> str:
        return f"{SOURCE}/{self.path}:{self.mutant.line} {self.mutant.kind}"

    def diff(self) -> str:
        old, new = (x.decode().splitlines() for x in (self.source, self.mutant.apply(self.source)))
        return "\n".join(list(unified_diff(old, new, n=0, lineterm=""))[3:])


def covering_tests(path: str) -> list[str]:
    """The existing tests for a source file; for a file at the top, which only re-exports names, those of the public names."""
    if "/" not in path and path not in TESTS_OF:
        path = "__init__.py"
    key = max((k for k in TESTS_OF if path == k or path.startswith(f"{k}/")), key=len, default="")
    chosen = [f"tests/{t}" for t in TESTS_OF.get(key, [])]
    if (ROOT / SOURCE / path).exists():
        chosen = list(dict.fromkeys([*chosen, *naming(path, 2)] if key == path else [*naming(path), *chosen]))
    return [t for t in chosen if (ROOT / t).exists()] + [f"tests/{t}" for t in COVERS_ALL] if chosen else ["tests"]


def naming(path: str, most: int = 4) -> list[str]:
    """The tests that mention most names defined in a source file."""
    names = set(re.findall(r"^(?:def|class) ([A-Za-z]\w{3,})", (ROOT / SOURCE / path).read_text(encoding="utf-8"), re.M))
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    counts = {t: len(names & set(re.findall(r"\w+", t.read_text(encoding="utf-8")))) for t in tests}
    best = sorted((t for t in tests if counts[t]), key=lambda t: -counts[t])[:most]
    return [t.relative_to(ROOT).as_posix() for t in best]


def changes(only: list[str]) -> list[Change]:
    """All candidates in the given files, folders or lines (path:line); in all files if none are given."""
    files = sorted(p.relative_to(ROOT / SOURCE).as_posix() for p in (ROOT / SOURCE).rglob("*.py"))
    places = [p.removeprefix(f"{SOURCE}/").rstrip("/") for p in only]
    texts = {f: (ROOT / SOURCE / f).read_bytes() for f in files if _within(f, [p.partition(":")[0] for p in places])}
    every = (Change(f, m, text) for f, text in texts.items() for m in candidates(text))
    return [c for c in every if _within(c.path, places) or f"{c.path}:{c.mutant.line}" in places]


def _within(path: str, names: list[str]) -> bool:
    return not names or any(path == n or path.startswith(f"{n}/") for n in names)


def changed(revision: str) -> list[str]:
    """Files of the source that differ from a revision in more than their path."""
    command = ["git", "-C", str(ROOT), "diff", "--name-status", "--find-renames", "--diff-filter=d", revision]
    output = subprocess.run([*command, "--", f"{SOURCE}/*.py"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[-1] for line in output.splitlines() if not line.startswith("R100")]


def draw(every: list[Change], count: int, seed: int) -> list[Change]:
    """Random sample of this many mutants, each a different program; only drawn mutants are parsed."""
    order = random.Random(seed).sample(every, len(every))
    return sorted(islice((c for c in order if differs(c.source, c.mutant)), count))


def run_tests(tree: Path, tests: list[str], names: list[set[str]], limit: float, cache: Path) -> tuple[str, str]:
    """The tests' verdict on a tree, killed, survived or unknown; and the test that failed."""
    options = ["-x", "-q", "-n", "0", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", *tests]
    return mutant_tests.run(tree, options + [f"--ignore={t}" for t in LEFT_OUT], names, limit, cache)


def copy_tree(folder: str) -> Path:
    """A copy of the files that the tests need, compiled to bytecode, which otherwise takes half of the time of a fast test."""
    tree = Path(folder)
    for part in COPIED:
        where = ROOT / part
        (shutil.copytree if where.is_dir() else shutil.copy2)(where, tree / part)
    for words in (["init", "-q"], ["add", "."]):  # some tests list the files by git
        subprocess.run(["git", *words], cwd=tree, check=True)
    for part in ("src", "tests"):  # only once: no bytecode is written while mutants are in the tree
        compileall.compile_dir(tree / part, quiet=1)
    return tree


def run_mutants(chosen: list[Change], limit: float, jobs: int = 1, shared: Path | None = None) -> Counter[str]:
    """Run every mutant, `jobs` at a time, and print its verdict. A test that kills has to pass without the mutant.

    shared: a permanent cache. Mutants of kernel/, which could write wrong objects into it, use a separate one.
    """
    counts: Counter[str] = Counter()
    sound: set[str] = set()
    trees: Queue[Path] = Queue()

    def one(change: Change) -> None:
        tree, begun = trees.get(), time.monotonic()
        cache = shared if shared and not change.path.startswith("kernel/") else tree / "out" / "cache"
        target = tree / SOURCE / change.path
        target.write_bytes(change.mutant.apply(change.source))
        names, tests = mutant_tests.names_at(change.source, change.mutant.line), covering_tests(change.path)
        verdict, test = run_tests(tree, tests, names, limit, cache)
        target.write_bytes(change.source)
        # If no test has failed because nothing could be collected, this must also be due to the mutant.
        alone = [test] if "::" in test else [*([test] if test else tests), "--collect-only"]
        if verdict == "killed" and test not in sound and run_tests(tree, alone, names, 5 * limit, cache)[0] != "survived":
            verdict, test = "unknown", f"{test or 'the choice of tests'} fails without it"
        elif test:
            sound.add(test)
        trees.put(tree)
        counts[verdict] += 1
        words = [f"{counts.total():4d}/{len(chosen)} {time.monotonic() - begun:5.0f} s  {verdict:11s} {change}  {test}"]
        print("\n".join(words + [change.diff()] * (verdict != "killed")), flush=True)

    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            trees.put(copy_tree(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutate-"))))
        list(pool.map(one, chosen))
    return counts


def last_score() -> str:
    rows = re.findall(r"^\|.*\|$", SCORES.read_text(encoding="utf-8"), re.M) if SCORES.exists() else []
    return rows[-1] if len(rows) > 2 else "none"


def keep(row: str) -> None:
    head = "| score | killed | survived | unknown | of | seed | date | revision |\n|---|---|---|---|---|---|---|---|\n"
    text = SCORES.read_text(encoding="utf-8") if SCORES.exists() else f"# Mutation score\n\n`python -m tools.mutate`\n\n{head}"
    SCORES.write_text(f"{text}{row}\n", encoding="utf-8")


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="PATH", help="files or folders below src/pfaffian")
    parser.add_argument("--since", metavar="REVISION", help="files that differ from a revision, in addition to --only")
    parser.add_argument("--count", type=int, default=100, help="how many mutants to draw (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random choice (1)")
    parser.add_argument(
        "--limit", type=float, default=300.0, help="seconds of processor time for the tests of one mutant (300)"
    )
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="cache of compiled kernels, kept for the next time (none)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time, each in its own copy of the tree (1)")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--keep", action="store_true", help="add the score to tools/mutation_score.md")
    args = parser.parse_args(given)
    every = changes(args.only + (changed(args.since) if args.since else []))
    chosen = draw(every, args.count, args.seed)
    if args.list:
        print("\n".join(f"{c}\n{c.diff()}" for c in chosen))
        return 0
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    counts = run_mutants(chosen, args.limit, args.jobs, args.cache and args.cache.resolve())
    known = counts["killed"] + counts["survived"]
    score = f"{counts['killed'] / known:.3f}" if known else "none"
    numbers = [counts[x] for x in ("killed", "survived", "unknown")]
    what = ", ".join(args.only + [f"since {args.since}"] * bool(args.since)) or "all"
    row = " | ".join(map(str, [score, *numbers, f"{what} ({len(every)})", args.seed, date.today(), revision]))
    print(f"last kept: {last_score()}\nnow:       | {row} |")
    if args.keep:
        keep(f"| {row} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
