"""Open chains as products of exponentials in screw parameters, as numbers and as symbols.

exponentials                                              expressions
home, product_of_exponentials, screw_jacobian             numbers
screw_to_chart, chart_to_screw, screw_rates               between screw parameters and coordinates
symbolic_kinematics, to_sympy, kinematics_latex           formulas (needs SymPy)
"""

from pfaffian.evaluate.at_screw_parameters import chart_to_screw as chart_to_screw
from pfaffian.evaluate.at_screw_parameters import home as home
from pfaffian.evaluate.at_screw_parameters import product_of_exponentials as product_of_exponentials
from pfaffian.evaluate.at_screw_parameters import screw_jacobian as screw_jacobian
from pfaffian.evaluate.at_screw_parameters import screw_rates as screw_rates
from pfaffian.evaluate.at_screw_parameters import screw_to_chart as screw_to_chart
from pfaffian.terms.product_of_exponentials import exponentials as exponentials
from pfaffian.terms.symbolic import symbolic_kinematics as symbolic_kinematics
from pfaffian.terms.symbolic import to_sympy as to_sympy
from pfaffian.viewer.latex import kinematics_latex as kinematics_latex
