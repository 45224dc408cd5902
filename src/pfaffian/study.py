"""Studies: figures and tables of papers, or of machines, whose claims are checked.

studies, run_study      by name
Claim                   what one found, and what it has to be
"""

from pfaffian.viewer.study import Claim, run_study, studies

__all__ = [
    "Claim",
    "run_study",
    "studies",
]
