"""Mathematics behind the models: rotations and poses, groups of motions, linear algebra; for CasADi expressions and numbers.

so3              rotations: hat, exponential, logarithm, differentials, quaternions
se3              poses and twists: exponential, logarithm, Ad, ad
subgroups        groups of motions that joints permit
linear           factorisations and solves of small matrices
"""

from pfaffian import lazy
from pfaffian.maths import linear as linear
from pfaffian.maths import operators
from pfaffian.maths import se3 as se3
from pfaffian.maths import so3 as so3
from pfaffian.maths import subgroups as subgroups

operators.install()

__dir__ = lazy.lister(globals(), ["linear", "se3", "so3", "subgroups"])
