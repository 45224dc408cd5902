"""Studies: figures and tables of papers, or of machines, whose claims are checked.

studies, run_study      by name
COLOURS                 of figures
Claim                   what one found, and what it has to be
"""

from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.study import Claim, run_study, studies

__all__ = [
    "COLOURS",
    "Claim",
    "run_study",
    "studies",
]
