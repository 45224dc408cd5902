"""Mathematics behind the models: rotations and poses, groups of motions, linear algebra; on CasADi expressions and numbers.

so3              rotations: hat, exponential, logarithm, differentials, quaternions
se3              poses and twists: exponential, logarithm, Ad, ad
subgroups        groups of motions that joints leave
linear           factorisations and solves of small matrices
"""

from pfaffian.maths import linear, operators, se3, so3, subgroups

operators.install()

__all__ = ["linear", "se3", "so3", "subgroups"]


def __dir__() -> list[str]:
    return __all__
