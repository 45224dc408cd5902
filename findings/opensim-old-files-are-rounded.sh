#!/bin/sh
# Tools: OpenSim 4.6
# Behaviour: when OpenSim opens a file that is older than version 4, it writes the places of joints into frames of the
#   new form as text with few digits. A place of 0.123456789 m becomes 0.123457; in a file of version 4 it stays.
# Consequence: the same model in an old and in a new file moves differently, here by 2e-7 m, in public models up to 1e-6
#   of an acceleration. Compare results of both with a tolerance above that, or convert the file with a tool that keeps
#   the digits.
# Source: OpenSim documentation, file format 4.0: offset frames in place of location_in_parent
# Seen:
#   version 30000: 0.123457 m; version 40000: 0.123456789 m
. "$(dirname "$0")/common.sh"
needs opensim==4.6
"$python" -I - <<'END'
import opensim as osim

osim.Logger.setLevelString("Warn")
BODY = "<mass>1</mass><mass_center>0 0 0</mass_center>"
OLD = f"""<OpenSimDocument Version="30000"><Model name="m"><BodySet><objects><Body name="ground"><mass>0</mass></Body>
<Body name="a">{BODY}<inertia_xx>1</inertia_xx><inertia_yy>1</inertia_yy><inertia_zz>1</inertia_zz><Joint><PinJoint name="p">
<parent_body>ground</parent_body><location_in_parent>0.123456789 0 0</location_in_parent>
<orientation_in_parent>0 0 0</orientation_in_parent><location>0 0 0</location><orientation>0 0 0</orientation>
<CoordinateSet><objects><Coordinate name="q"/></objects></CoordinateSet></PinJoint></Joint></Body></objects></BodySet>
</Model></OpenSimDocument>"""
NEW = f"""<OpenSimDocument Version="40000"><Model name="m"><BodySet><objects><Body name="a">{BODY}<inertia>1 1 1 0 0 0</inertia>
</Body></objects></BodySet><JointSet><objects><PinJoint name="p"><socket_parent_frame>near</socket_parent_frame>
<socket_child_frame>/bodyset/a</socket_child_frame><coordinates><Coordinate name="q"/></coordinates>
<frames><PhysicalOffsetFrame name="near"><socket_parent>/ground</socket_parent><translation>0.123456789 0 0</translation>
<orientation>0 0 0</orientation></PhysicalOffsetFrame></frames></PinJoint></objects></JointSet></Model></OpenSimDocument>"""
places = []
for name, text in (("old", OLD), ("new", NEW)):
    with open(f"{name}.osim", "w") as file:
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}')
    model = osim.Model(f"{name}.osim")
    state = model.initSystem()
    places.append(model.getBodySet().get("a").getPositionInGround(state).get(0))
print(f"version 30000: {places[0]:.9g} m; version 40000: {places[1]:.9g} m")
assert abs(places[0] - 0.123456789) > 1e-8 and abs(places[1] - 0.123456789) < 1e-15
END
