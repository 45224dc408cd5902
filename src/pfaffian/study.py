"""Studies: figures and tables of papers, or of machines, whose claims are checked.

studies, run_study      list the studies of a folder; run one by its name
Claim                   a number that a study found, and what it has to be
COLOURS                 colours for lines of figures that colour-blind readers can tell apart
"""

from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.study import Claim, run_study, studies

__all__ = [
    "COLOURS",
    "Claim",
    "run_study",
    "studies",
]
