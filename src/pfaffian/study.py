"""Studies: figures and tables of papers, or about machines, with claims that are checked.

studies, run_study      list the studies of a folder; run one by its name
Claim                   a number that a study computes, and the one that its source gives
blank_figure            an empty figure to draw on
COLOURS                 colours for lines of figures that colour-blind readers can tell apart
"""

from pfaffian.viewer.drawing import COLOURS as COLOURS
from pfaffian.viewer.drawing import blank_figure as blank_figure
from pfaffian.viewer.run_study import Claim as Claim
from pfaffian.viewer.run_study import run_study as run_study
from pfaffian.viewer.run_study import studies as studies
