#!/bin/sh
# Tools: Exudyn 1.13.6
# Behaviour: a planar four-bar of three bodies and four revolute joints has redundant rows. With the default linear
#   solver, EXUdense, SolveDynamic stops: a matrix is not factorized, says the exception, and a warning gives the
#   number of an equation; ignoreSingularJacobian changes nothing there. It acts with LinearSolverType.EigenDense
#   alone, where the motion is then computed.
# Consequence: the switch seems not to work. Set both, or replace joints by ones with fewer rows.
# Source: Exudyn documentation, simulationSettings.linearSolver
# Seen:
#   EXUdense, ignoreSingularJacobian=False: GeneralMatrixEXUdense::Solve(...): matrix is not factorized!
#   EXUdense, ignoreSingularJacobian=True: GeneralMatrixEXUdense::Solve(...): matrix is not factorized!
#   EigenDense, ignoreSingularJacobian=False: SolveDynamic terminated
#   EigenDense, ignoreSingularJacobian=True: 1.017
. "$(dirname "$0")/common.sh"
needs exudyn==1.13.6
"$python" -I - > log <<'END'
import exudyn as exu
from exudyn.utilities import InertiaCuboid, ObjectGround


def four_bar(linear, ignore):
    """Place x of the coupler after 0.1 s, or the exception."""
    mbs = exu.SystemContainer().AddSystem()
    ground = mbs.AddObject(ObjectGround())

    def bar(x, y, *sides):
        shape = InertiaCuboid(density=1000, sideLengths=[*sides, 0.1])
        return mbs.CreateRigidBody(inertia=shape, referencePosition=[x, y, 0], gravity=[3, -9.81, 0])

    crank, coupler, rocker = bar(0, 0.5, 0.1, 1), bar(1, 1, 2, 0.1), bar(2, 0.5, 0.1, 1)
    for a, b, x, y in ((ground, crank, 0, 0), (crank, coupler, 0, 1), (coupler, rocker, 2, 1), (rocker, ground, 2, 0)):
        mbs.CreateRevoluteJoint(itemNumbers=[a, b], position=[x, y, 0], axis=[0, 0, 1])
    mbs.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 100, 0.1
    settings.linearSolver.solverType = linear
    settings.linearSolver.ignoreSingularJacobian = ignore
    try:
        mbs.SolveDynamic(settings)
    except Exception as e:
        return str(e).partition(" [")[0]
    return round(float(mbs.GetObjectOutputBody(coupler, exu.OutputVariableType.Position)[0]), 4)


seen = {}
for kind in ("EXUdense", "EigenDense"):
    for ignore in (False, True):
        seen[kind, ignore] = four_bar(getattr(exu.LinearSolverType, kind), ignore)
        print(f"@ {kind}, ignoreSingularJacobian={ignore}: {seen[kind, ignore]}")
moves = {case for case, x in seen.items() if isinstance(x, float)}
assert moves == {("EigenDense", True)} and "not factorized" in seen["EXUdense", True]
END
sed -n "s|^@ ||p" log
