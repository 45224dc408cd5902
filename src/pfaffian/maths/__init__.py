"""Mathematics behind the models: rotations and poses, groups of motions, linear algebra; for CasADi expressions and numbers.

so3              rotations: hat, exponential, logarithm, differentials, quaternions
se3              poses and twists: exponential, logarithm, Ad, ad
subgroups        groups of motions that joints permit
linear           factorisations and solves of small matrices

chebyshev.py           polynomials through values at Chebyshev's points: integrals, roots and maxima
closures.py            kinds of loop closures, with their rows and residuals
inertia.py             inertia of a rigid body, about the origin of its frame
linear.py              linear algebra on expressions
margins.py             what counts as zero beside the sizes that occur, and how clear that is
minimum_norm.py        minimum-norm solutions of A X = B for A of any rank, at a cost that follows the sparsity of A
nearest_in_plane.py    the point of a plane, or of a line, nearest to the origin between pairs of parallel lines
operators.py           faster arithmetic operators between two SX expressions of CasADi
pack.py                structures of expressions as columns that one Function can pass to another
precision.py           the arithmetic for which expressions are built: doubles, or floats for an export
qp.py                  the nearest point within linear limits
random.py              counter-based random numbers as expressions
reflection.py          elimination of an orthonormal row from rows that share few of its columns
repeated.py            functions that are applied to one link after another, traced once
roots.py               eigenvalues, symmetric square roots and smallest singular values, as expressions
se3.py                 poses and twists: SE(3) with poses (R, p), twists xi = [v
selected_inverse.py    single entries of the inverse of a sparse symmetric matrix
shifted.py             solutions of (mu - J) x = b for a real or complex shift mu
so3.py                 rotations: SO(3), unit quaternions (x, y, z, w), exponential, logarithm and their differentials
spare.py               the smallest solution of fewer rows than unknowns, and the directions that they leave
span.py                orthonormal bases of subspaces, the same on every machine
spectrum.py            eigenvalues of a real matrix with their multiplicities
spline.py              slopes and second derivatives of cubic splines at their samples
subgroups.py           connected subgroups of SE(3): the motions that joints permit
tree_factor.py         factor a mass matrix as M = W W^T along a tree, and solve with the factor
values.py              fast evaluation of a casadi.Function with numbers
wrapping.py            the shortest line between two points round a cylinder or a sphere, without branches
"""

from pfaffian import lazy
from pfaffian.maths import linear as linear
from pfaffian.maths import operators
from pfaffian.maths import se3 as se3
from pfaffian.maths import so3 as so3
from pfaffian.maths import subgroups as subgroups

operators.install()

__dir__ = lazy.lister(globals(), ["linear", "se3", "so3", "subgroups"])
