"""Files of each format that describe a chain of any length, to measure how the work of readers grows with it."""

from __future__ import annotations


def names(n: int) -> list[tuple[str, str]]:
    """(parent, child) of each joint of a chain."""
    return list(zip(["world", *(f"l{i}" for i in range(n - 1))], (f"l{i}" for i in range(n)), strict=True))


def urdf(n: int, mimics: bool = False, reverse: bool = False) -> str:
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    parts = ['<link name="world"/>']
    for i, (parent, child) in enumerate(names(n)):
        follows = f'<mimic joint="j{i + 1}"/>' if mimics and i < n - 1 else ""
        ends = f'<origin xyz="0 0 1" rpy="0 .1 0"/><parent link="{parent}"/><child link="{child}"/>{follows}'
        parts += [f'<link name="{child}">{mass}</link>', f'<joint name="j{i}" type="continuous">{ends}</joint>']
    return f"<robot name='chain'>{''.join(parts[::-1] if reverse else parts)}</robot>"


def sdf(n: int, back: bool = False) -> str:
    parts = []
    for i, (parent, child) in enumerate(names(n)):
        ends = (child, parent) if back and i else (parent, child)
        parts.append(f'<link name="{child}"><pose relative_to="{parent if i else "__model__"}">0 0 1 0 .1 0</pose></link>')
        parts.append(f'<joint name="j{i}" type="revolute"><parent>{ends[0]}</parent><child>{ends[1]}</child></joint>')
    return f'<sdf version="1.9"><model name="chain">{"".join(parts[::-1])}</model></sdf>'


def yaml(n: int, more: str = "", run: bool = False) -> str:
    """A chain with a parameter for each link, and an entry of `more` for each joint."""
    numbers = ["parameters:", *(f"  m{i}: 1" for i in range(n))]
    bodies = ["bodies:", *(f"  l{i}: {{mass: m{i}, inertia: [1, 1, 1]}}" for i in range(n))]
    joints = ["joints:"]
    joints += [f"  j{i}: {{kind: revolute, parent: {p}, child: {c}, axis: [0, 1, 0]}}" for i, (p, c) in enumerate(names(n))]
    head, _, entry = more.partition("|")
    rest = [head, *(f"  f{i}: {entry.replace('#', str(i))}" for i in range(n))] if more else []
    start = ["run:", "  q: {" + ", ".join(f"j{i}: 0.1" for i in range(n)) + "}"] if run else []
    return "\n".join([*numbers, *bodies, *joints, *rest, *start])


def mjcf(n: int) -> str:
    """Short chains side by side, since MuJoCo's compiler and XML itself bound the depth, with a motor on each joint."""
    bodies = "".join(f'<body name="l{i}" pos="0 0 1"><joint name="j{i}"/><geom size=".1"/></body>' for i in range(n))
    motors = "".join(f'<position name="u{i}" joint="j{i}" kp="1"/>' for i in range(n))
    return f"<mujoco><worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>"


def usd(n: int) -> str:
    """Joints from the tip to the root, so that each is reached only after all that follow it in the file."""
    parts = ["#usda 1.0"]
    for i, (parent, child) in reversed([*enumerate(names(n))]):
        near = f"rel physics:body0 = </{parent}>\n" if i else ""
        parts.append(f'def Xform "{child}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])\n{{')
        parts.append("float physics:mass = 1\nfloat3 physics:diagonalInertia = (1, 1, 1)\n}")
        parts.append(f'def PhysicsRevoluteJoint "j{i}"\n{{ {near}rel physics:body1 = </{child}>\n}}')
    return "\n".join(parts)


WRITERS = {"urdf": urdf, "sdf": sdf, "yaml": yaml, "mjcf": mjcf, "usd": usd}
"""Suffix -> the text of a chain of so many links."""
