"""OpenSim's accelerations of a file, in a process of its own, since its CasADi is another one than the library's.

python tools/compare_files/by_opensim.py FILE < states: a list of (coordinates, their rates), two dicts each, as JSON. Prints
the second derivatives of all coordinates at each state, as JSON. They are those of Simbody's q: speeds of balls and floating
bodies are angular velocities, see findings/opensim-ball-speeds-are-not-rates.sh.
"""

import json
import sys
from typing import Any

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
    state, found = model.initSystem(), model.getCoordinateSet()
    coordinates = {found.get(i).getName(): found.get(i) for i in range(found.getSize())}
    places, answers = place_of(coordinates, state), []
    for q, v in json.load(sys.stdin):
        for name in coordinates.keys() & q.keys():
            coordinates[name].setValue(state, q[name], False)
        model.realizePosition(state)
        rates = opensim.Vector(state.getNQ(), 0.0)
        for name in places.keys() & v.keys():
            rates[places[name]] = v[name]
        speeds = opensim.Vector(state.getU())
        model.getMatterSubsystem().multiplyByNInv(state, False, rates, speeds)
        state.setU(speeds)
        model.realizeAcceleration(state)
        second = state.getQDotDot()
        answers.append({name: second[i] for name, i in places.items()})
    print(json.dumps(answers))


def place_of(coordinates: dict[str, Any], state: Any) -> dict[str, int]:
    """Index of each coordinate in Simbody's q: what changes with it, up or down. Locked ones change nothing."""
    found = {}
    for name, c in coordinates.items():
        before, x = state.getQ().to_numpy().copy(), c.getValue(state)
        for step in (0.1, -0.1):
            c.setValue(state, x + step, False)
            for i in (state.getQ().to_numpy() != before).nonzero()[0].tolist():
                found[name] = i
            c.setValue(state, x, False)
    return found


if __name__ == "__main__":
    main(sys.argv[1])
