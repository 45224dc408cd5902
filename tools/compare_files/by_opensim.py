"""OpenSim's accelerations of a file, in a process of its own, since its CasADi is another one than the library's.

python tools/compare_files/by_opensim.py FILE < states: a list of (coordinates, speeds), two dicts each, as JSON. Prints the
kinds of its joints, and for each state the accelerations of all coordinates, as JSON.
"""

import json
import sys

READ = ("CoordinateActuator", "SpringGeneralizedForce")
"""Forces that act; the others are switched off."""


def main(file: str) -> None:
    """Print the answer as JSON."""
    import opensim

    opensim.Logger.setLevelString("off")
    model = opensim.Model(file)
    forces = [opensim.Force.safeDownCast(c) for c in model.getComponentsList()]
    for force in [f for f in forces if f is not None and f.getConcreteClassName() not in READ]:
        force.set_appliesForce(False)
    state, found, joints = model.initSystem(), model.getCoordinateSet(), model.getJointSet()
    coordinates = {found.get(i).getName(): found.get(i) for i in range(found.getSize())}
    answers = []
    for q, v in json.load(sys.stdin):
        for name in coordinates.keys() & q.keys():
            coordinates[name].setValue(state, q[name], False)
        for name in coordinates.keys() & v.keys():
            coordinates[name].setSpeedValue(state, v[name])
        model.realizeAcceleration(state)
        answers.append({n: c.getAccelerationValue(state) for n, c in coordinates.items()})
    print(json.dumps([sorted({joints.get(i).getConcreteClassName() for i in range(joints.getSize())}), answers]))


if __name__ == "__main__":
    main(sys.argv[1])
