"""Reading MJCF files as mechanisms, by way of MuJoCo's own compiler."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, nearest
from pfaffian.formats.mjcf.mjcf_actuator import read_actuators, take_torques
from pfaffian.formats.mjcf.mjcf_force import FREE, SPHERICAL, read_couplings, read_motor_gravcomp, read_passive
from pfaffian.formats.mjcf.mjcf_model import CompiledModel, compiled
from pfaffian.formats.mjcf.mjcf_part import disabled, joint_type, read_closures, read_gravcomp, read_tree
from pfaffian.formats.mjcf.mjcf_path import tendon_lengths
from pfaffian.formats.mjcf.mjcf_range import tell_sums
from pfaffian.formats.mjcf.mjcf_text import FLEX, prepare
from pfaffian.formats.text.file import as_path, read_text, without_collection
from pfaffian.formats.text.left_out import warned
from pfaffian.formats.text.mesh_file import places
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import check_choice, printable
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.output.plain import text as plain

FRICTION = ("smooth", "none")
"""Choices for dry friction: smoothed or left out."""

SERVOS = ("targets", "torques")
"""Choices for the inputs of servos."""


def read_mjcf(path: str | Path, *, folder: str | Path | None = None, **options: Any) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism of an MJCF file, with exact loop closures, and its start: (Mechanism, RunSettings).

    Args:
        path: of the file.
        folder: the one below which included files, and meshes that an inertia needs, must lie; None, the default, for that of
            the file. Pass a higher one where a file includes others from folders beside its own.
        options: those of `parse_mjcf`: keyframe, friction, servos, name, meshes, source (by default the file's name).
    Raises ModelError: an element is wrong, with its line and the reason; the package mujoco is not installed.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import tempfile
        >>> import pfaffian as pf
        >>> ball = '<body name="ball"><freejoint name="base"/><geom size="0.1" mass="2"/></body>'
        >>> with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        ...     print(f"<mujoco model='ball'><worldbody>{ball}</worldbody></mujoco>", file=file, flush=True)
        ...     pf.formats.read_mjcf(file.name)[0]
        <Mechanism 'ball': 1 body, 1 joint (nq 7, nv 6), no inputs>
    """
    place = as_path(path)
    options.setdefault("source", place.name)
    if folder is not None and not place.resolve().is_relative_to(Path(folder).resolve()):
        raise ModelError(
            f"folder={printable(str(folder))} does not contain {printable(place.name)}; give a folder above the file"
        )
    return parse_mjcf(read_text(place), folder=place.parent, root=folder, **options)


@without_collection
def parse_mjcf(
    text: str,
    *,
    keyframe: str | int | None = None,
    friction: str = "smooth",
    servos: str = "targets",
    name: str | None = None,
    source: str = "MJCF",
    folder: str | Path | None = None,
    root: str | Path | None = None,
    meshes: Iterable[str | Path] = (),
) -> tuple[Mechanism, RunSettings]:
    """Read the mechanism of an MJCF text, and its start: (Mechanism, RunSettings). This needs the package mujoco.

    Joints keep their coordinates, so q is MuJoCo's qpos and v its qvel, with two exceptions: quaternions are (x, y, z, w), and
    the linear velocity of a free joint is along the body's axes. Constraints that are soft in MuJoCo are exact: <connect>,
    <weld>, and couplings of joints and tendons. Motors stay motors, with gear and gain multiplied into one gear; the input of
    a position or velocity servo is still its target. Limits of joints and inputs are stored as data. Parts that a mechanism
    cannot represent are left out and named in a warning: contact, tendons inside shapes, muscles, activations, plugins,
    friction of tendons, soft bodies (flex) and fluid forces. Cameras, sensors and lights are ignored. Attached
    models are read in the same way as included files.

    Args:
        text: of the file.
        keyframe: name or number of the keyframe to start from; None, the default, starts from the pose of the file.
        friction: "smooth", the default, turns frictionloss into `forces.joint_friction`, smooth below 0.001 rad/s or m/s;
            "none" leaves it out.
        servos: "targets", the default, keeps the targets of position and velocity servos as their inputs; "torques" leaves out
            the servos' feedback, so that their inputs are forces and torques along their gears, within their force ranges.
        name: of the mechanism; None, the default, takes the name in the file.
        source: name of the text in errors, "MJCF" by default.
        folder: of the file, for includes and meshes; with None, the default, none are found.
        root: the folder below which these must lie; None, the default, for `folder`.
        meshes: more folders with meshes; none by default. A missing mesh is an error only if an inertia needs it.
    Returns: the mechanism, and settings with the file's time step and its start in `guess`, `v` and `u`.
    Raises ModelError: an element is wrong, with its line and the reason; the package mujoco is not installed.
    Warns ModelWarning: one warning with everything that was left out or changed.

    Example:
        >>> import pfaffian as pf
        >>> rod = '<joint name="hinge" axis="0 1 0" damping="0.1"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/>'
        >>> motor = '<actuator><motor name="motor" joint="hinge" gear="20" ctrlrange="-1 1"/></actuator>'
        >>> text = f'<mujoco model="arm"><worldbody><body>{rod}</body></worldbody>{motor}</mujoco>'
        >>> m, settings = pf.formats.parse_mjcf(text)
        >>> m, settings.step
        (<Mechanism 'arm': 1 body, 1 joint (nq 1, nv 1), inputs motor>, 0.002)
    """
    check_choice(friction, FRICTION, "friction")
    check_choice(servos, SERVOS, "servos")
    base, top = (None if x is None else Path(x) for x in (folder, root))
    found = prepare(text, source, base, top)
    c = compiled(found, places(base, [*([top] if top else []), *meshes]))
    lost = found.lost
    bodies, joints = read_tree(c, lost)
    if not any(j.nv for j in joints):
        soft = "; soft bodies (flex) are not supported, replace them by bodies on joints" if FLEX in lost else ""
        raise found.root.error(f"no joint moves{soft}; give a body a <joint> or a <freejoint>")
    lengths = tendon_lengths(c, lost)
    without_target = take_torques(c) if servos == "torques" else frozenset()
    motors, biases = read_actuators(c, lengths, lost)
    tell_sums(c, lost)
    start = _start(c, keyframe)
    forces = [*read_passive(c, lengths, friction == "smooth", lost), *read_gravcomp(c), *read_motor_gravcomp(c, lost), *biases]
    made = mechanism(
        name or plain(found.root.attributes.get("model") or "mechanism", 120),
        bodies,
        joints,
        constraints=[*read_closures(c, lost), *read_couplings(c, lengths, lost)],
        forces=forces,
        actuators=motors,
        gravity=(0, 0, 0) if disabled(c, "GRAVITY") else c.model.opt.gravity.tolist(),
        lenient=True,
    )
    if not c.model.opt.timestep > 0:
        raise found.root.error(f"the timestep {c.model.opt.timestep} of <option> is not above zero; correct it")
    settings = _settings(c, made, start, without_target)
    return warned(made, found.root.source, lost), settings


def _start(c: CompiledModel, keyframe: str | int | None) -> int | None:
    """Number of the keyframe, None for the pose of the file. Raises ModelError: an unknown keyframe."""
    if keyframe is None:
        return None
    names = [c.model.key(i).name or str(i) for i in range(c.model.nkey)]
    found = keyframe if isinstance(keyframe, int) else names.index(keyframe) if keyframe in names else -1
    if isinstance(found, bool) or not 0 <= found < len(names):
        raise ModelError(
            f"keyframe={printable(keyframe)}: {nearest(keyframe, names) if names else 'the file has no keyframes'}"
        )
    return found


def _settings(c: CompiledModel, m: Mechanism, key: int | None, without_target: frozenset[str]) -> RunSettings:
    """The run settings: time step and start of the file.   key: number of the keyframe, None for the pose of the file.
    without_target: inputs whose values in keyframes are left out."""
    model, step = c.model, float(c.model.opt.timestep)
    qpos, qvel = (model.qpos0, np.zeros(model.nv)) if key is None else (model.key_qpos[key], model.key_qvel[key])
    q, v = from_mujoco(c, qpos, qvel)
    ctrl = {} if key is None else {n: _input(model, key, c.actuators.index(n)) for n in m.u_names if n not in without_target}
    return RunSettings(
        duration=max(1.0, step),
        step=step,
        guess={n: float(x) for n, x in zip(m.q_names, q, strict=True)},
        v={n: float(x) for n, x in zip(m.v_names, v, strict=True) if x},
        u={n: x for n, x in ctrl.items() if x},
    )


def _input(model: Any, key: int, i: int) -> float:
    """The input of an actuator in a keyframe: its control or, where it has activations, the last one, the input here."""
    if model.actuator_actnum[i]:
        return float(model.key_act[key][model.actuator_actadr[i] + model.actuator_actnum[i] - 1])
    return float(model.key_ctrl[key][model.actuator_ctrladr[i]])


def from_mujoco(c: CompiledModel, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The q and v that correspond to MuJoCo's qpos and qvel."""
    m, q, v = c.model, np.array(qpos, dtype=float), np.array(qvel, dtype=float)
    for n in range(m.njnt):
        kind, at, rate = joint_type(c, n), int(m.jnt_qposadr[n]), int(m.jnt_dofadr[n])
        if kind in (FREE, SPHERICAL):
            turn = at + 3 * (kind == FREE)
            q[turn : turn + 4] = np.roll(qpos[turn : turn + 4], -1)
        if kind == FREE:
            R = np.zeros(9)
            c.mujoco.mju_quat2Mat(R, np.array(qpos[at + 3 : at + 7]))
            v[rate : rate + 3] = R.reshape(3, 3).T @ qvel[rate : rate + 3]
    return q, v
