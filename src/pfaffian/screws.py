"""Open chains as products of exponentials in screw parameters, as numbers and as symbols.

exponentials                                              expressions
home, product_of_exponentials, screw_jacobian             numbers
screw_to_chart, chart_to_screw, screw_rates               between screw parameters and coordinates
symbolic_kinematics, to_sympy, kinematics_latex           formulas (with SymPy)
"""

from pfaffian.evaluate.exponentials import (
    chart_to_screw,
    home,
    product_of_exponentials,
    screw_jacobian,
    screw_rates,
    screw_to_chart,
)
from pfaffian.terms.exponentials import exponentials
from pfaffian.terms.symbolic import symbolic_kinematics, to_sympy
from pfaffian.viewer.latex import kinematics_latex

__all__ = [
    "chart_to_screw",
    "exponentials",
    "home",
    "kinematics_latex",
    "product_of_exponentials",
    "screw_jacobian",
    "screw_rates",
    "screw_to_chart",
    "symbolic_kinematics",
    "to_sympy",
]
