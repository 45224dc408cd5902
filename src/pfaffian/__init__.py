"""pfaffian: model, simulate and control constrained rigid-body systems.

describe (Mechanism) -> equations -> step -> Program -> kernel -> run -> Dataset -> look
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "pfaffian.errors": ["BuildError", "ModelError", "ModelWarning", "PfaffianError", "RunError", "RunWarning"],
    "pfaffian.model.number": ["Parameter"],
    "pfaffian.model.pose": ["Pose", "pose"],
    "pfaffian.model.body": ["Body", "body"],
    "pfaffian.model.joint": ["Joint", "edge", "joint", "locked", "mimic"],
    "pfaffian.model.coordinates": ["Coordinates", "Velocities", "coordinates", "velocities"],
    "pfaffian.model.constraint": [
        "acceleration_constraint",
        "active_while",
        "closure",
        "coincide",
        "holonomic",
        "nonholonomic",
        "servo",
    ],
    "pfaffian.model.force": [
        "actuator",
        "dissipation",
        "generalised_force",
        "kinetic_energy",
        "potential",
        "spring",
        "thruster",
        "wrench",
    ],
    "pfaffian.model.elastic": ["bushing", "pose_damper", "pose_inertia", "pose_spring", "pseudo_matrix"],
    "pfaffian.model.constellation": ["Constellation", "merged_springs", "point_springs", "spring_constellation"],
    "pfaffian.model.friction": ["contact_friction", "joint_friction"],
    "pfaffian.model.fluid": ["drag", "propeller"],
    "pfaffian.model.rolling": ["knife_edge", "rolling_disk", "rolling_sphere", "rolling_wheel"],
    "pfaffian.model.multicopter": [
        "QUADCOPTER",
        "TRICOPTER",
        "bicopter",
        "bicopter_lean",
        "multicopter",
        "thrust_multicopter",
        "thrust_polygon",
    ],
    "pfaffian.model.mechanism": ["Mechanism", "actuate_all", "mechanism", "random_configuration"],
    "pfaffian.model.check": ["unphysical"],
    "pfaffian.model.graph": ["GraphMatrices", "graph_matrices", "joined"],
    "pfaffian.model.rotations": ["CriticalRotations", "critical_rotations", "nearest_rotation", "special_polar", "wahba"],
    "pfaffian.formats": ["RunSettings", "parse_urdf", "parse_yaml", "read", "read_urdf", "read_yaml"],
    "pfaffian.terms.terms": ["Terms", "symbols"],
    "pfaffian.terms.kinematics": ["Kinematics"],
    "pfaffian.terms.floating": ["FloatingBase", "floating_base"],
    "pfaffian.terms.exponentials": ["Exponentials", "exponentials"],
    "pfaffian.terms.symbolic": ["SymbolicKinematics", "symbolic_kinematics", "to_sympy"],
    "pfaffian.dynamics": ["FORMULATIONS"],
    "pfaffian.dynamics.multipliers": ["minimum_norm_multipliers", "unique_multipliers"],
    "pfaffian.dynamics.projection": ["coupling", "length_metric", "projector"],
    "pfaffian.dynamics.reaction": ["ReactionWrench"],
    "pfaffian.simulate.run": ["run"],
    "pfaffian.simulate.adaptive": ["run_accurately"],
    "pfaffian.simulate.step": ["Scheme"],
    "pfaffian.simulate.system": ["StatePart", "System"],
    "pfaffian.simulate.states": ["chosen_velocities", "hamiltonian"],
    "pfaffian.simulate.reduction": ["reduce"],
    "pfaffian.evaluate.connections": [
        "connection_curvature",
        "constraint_connection",
        "constraint_curvature",
        "isotropy_connection",
        "isotropy_inertia",
        "locked_inertia",
        "mechanical_connection",
        "momentum_map",
        "reduced_two_form",
        "shape_inertia",
    ],
    "pfaffian.evaluate.floating": ["generalised_jacobian", "holonomy", "momentum_twist", "reaction_null_space"],
    "pfaffian.simulate.impact": ["Impact", "impact"],
    "pfaffian.evaluate.symmetry": ["Symmetry", "symmetry"],
    "pfaffian.simulate.assemble": ["assemble"],
    "pfaffian.simulate.signals": ["of_motion"],
    "pfaffian.evaluate.reactions": ["reaction_wrench"],
    "pfaffian.simulate.reaction_output": ["reaction"],
    "pfaffian.simulate.result": ["causes", "sign_changes"],
    "pfaffian.simulate.events": ["Passage", "singular_passages"],
    "pfaffian.simulate.netcdf": ["read_netcdf", "write_netcdf"],
    "pfaffian.evaluate.compiled": ["compile_terms", "forward_dynamics"],
    "pfaffian.evaluate.quantities": [
        "BodyPose",
        "bias_force",
        "energy",
        "forward_kinematics",
        "jacobian",
        "mass_centre",
        "mass_matrix",
        "momentum",
    ],
    "pfaffian.evaluate.exponentials": [
        "Home",
        "ScrewRates",
        "chart_to_screw",
        "home",
        "product_of_exponentials",
        "screw_jacobian",
        "screw_rates",
        "screw_to_chart",
    ],
    "pfaffian.evaluate.calculus": [
        "commutation_coefficients",
        "connection_coefficients",
        "covariant_hessian",
        "directional_derivative",
        "linearise_along",
    ],
    "pfaffian.evaluate.inverse": ["inverse_dynamics"],
    "pfaffian.simulate.linearise": ["Linearised", "linearise"],
    "pfaffian.simulate.zero_dynamics": ["ZeroDynamics", "ZeroDynamicsAlong", "zero_dynamics", "zero_dynamics_along"],
    "pfaffian.simulate.matching": ["Feasibility", "Matching", "feasibility", "matching"],
    "pfaffian.evaluate.gain_bound": ["GainBound", "position_gain_bound"],
    "pfaffian.evaluate.realisability": ["realisability"],
    "pfaffian.evaluate.transported_basis": ["transport_basis"],
    "pfaffian.simulate.qp": ["NearestInput", "solve_qp"],
    "pfaffian.viewer.figures": ["overview"],
    "pfaffian.viewer.latex": ["kinematics_latex"],
    "pfaffian.viewer.scene": ["view"],
    "pfaffian.embedded.export": ["Exported", "export"],
    "pfaffian.viewer.study": ["Claim", "run_study", "studies"],
}
_FROM = {name: module for module, names in _HOME.items() for name in names}
_ROOMS = ("control",)

__all__ = sorted([*_FROM, *_ROOMS])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import pfaffian` stays quick."""
    if name in _ROOMS:
        return import_module(f"pfaffian.{name}")
    if name not in _FROM:
        raise AttributeError(f"module 'pfaffian' has no attribute {name!r}")
    value = getattr(import_module(_FROM[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
