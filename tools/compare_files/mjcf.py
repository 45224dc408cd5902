"""MJCF files beside MuJoCo: accelerations, without constraints and with the exact constraints of the file.

MuJoCo opens the file itself; where it cannot, because meshes are missing or soft bodies are left out, it gets the text written
by the reader. In MuJoCo's model everything soft is switched off: contact, limits, dry friction, fluid forces; and so is what
the reader reports as left out: activations, delays, higher powers of dampers of balls, actuators that a mechanism cannot have.

free        the largest difference of accelerations without constraints at three random states with random inputs, relative to
            the largest acceleration, or to 1 if all are smaller
explained   the same without what MuJoCo is known to do otherwise in such a file
tied        the largest difference with the equality constraints of the file as exact constraints, at a closed state that moves
            along them: Gauss's principle in the null space of MuJoCo's Jacobian, by singular values; the drift of the rows by
            central differences of eighth order along the motion
rows, rank  of MuJoCo's Jacobian
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

import pfaffian as pf
from pfaffian.formats.mjcf.mjcf_model import MISSING, CompiledModel, compiled
from pfaffian.formats.mjcf.mjcf_part import of_actuators
from pfaffian.formats.mjcf.mjcf_text import HIGHER, prepare
from pfaffian.formats.text.file import read_text
from pfaffian.formats.text.mesh_file import places
from pfaffian.formats.text.run_settings import RunSettings
from tools.compare_files.report import Row

SUFFIXES = (".xml",)
"""Of files in this format."""

SMALL = 1e-7
"""Singular values of the rows that are smaller than this, relative to the largest, count as zero."""

ARTICULATED = 100
"""Degrees of freedom from which trees are evaluated by the articulated-body algorithm."""

CENTRAL = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
"""Weights of the first derivative by central differences of eighth order, by the number of steps to one side."""

STEP = 5e-4
"""Step of these differences times the largest velocity [s]; their errors are of order STEP^8 and 1e-16 / STEP."""

ELSEWHERE = (HIGHER, MISSING, "has no inertia without its mesh")
"""Words of the reader where files that a file names lie in folders above its own."""

SAME_FRAME = "MuJoCo takes a mass centre within 1e-6 of the body's frame for its origin"
TENDON = "MuJoCo's sparse mass matrix has no entries for the inertia of a tendon between branches"
DELAYS = "delays of actuators act in MuJoCo"
"""Causes of differences."""

State = tuple[np.ndarray, np.ndarray, np.ndarray]
"""q, v and u in the order of the library."""


class Engine:
    """MuJoCo's model of a mechanism, without soft elements."""

    def __init__(self, path: Path, m: pf.Mechanism, folder: Path | None = None) -> None:
        text = prepare(read_text(path), path.name, path.parent, folder)
        c = compiled(text, places(path.parent, [folder] if folder else []))
        self.m, (self.opened, self.instead) = m, _opened(path, c)
        self.model, self.names = self.opened or c.model, c.actuators
        self.bodies, self.read = c.bodies, c
        if self.model.nv != m.nv:
            raise ValueError(f"the mechanism has {m.nv} degrees of freedom, MuJoCo's model {self.model.nv}")
        self.ranges = _compensated(self.model)
        _harden(self.model, [i for i, name in enumerate(self.names) if name not in m.u_names])
        self.data = mujoco.MjData(self.model)

    def put(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Set MuJoCo's state and inputs, and evaluate its model."""
        model, data = self.model, self.data
        data.qpos, data.qvel = self.position(q), self.velocity(q, v)
        data.act[:], data.ctrl[:], data.qfrc_applied[:] = 0, 0, 0
        for name, x in zip(self.m.u_names, u, strict=True):
            i = self.names.index(name)
            if model.actuator_dyntype[i] == mujoco.mjtDyn.mjDYN_NONE:
                data.ctrl[model.actuator_ctrladr[i]] = x
            else:  # the last activation is the input
                data.act[model.actuator_actadr[i] + model.actuator_actnum[i] - 1] = x
        mujoco.mj_forward(model, data)
        if self.ranges:
            at, low, high = np.array(self.ranges).T
            force = data.qfrc_gravcomp[at.astype(int)]
            data.qfrc_applied[at.astype(int)] = np.clip(force, low, high) - force
            mujoco.mj_forward(model, data)

    def joints(self, kind: mujoco.mjtJoint) -> Iterator[tuple[int, int]]:
        """First indices of each joint's quaternion in q and of its angular velocity in v, for joints of one kind."""
        for j in np.flatnonzero(self.model.jnt_type == kind):
            far = 3 * (kind == mujoco.mjtJoint.mjJNT_FREE)
            yield self.model.jnt_qposadr[j] + far, self.model.jnt_dofadr[j] + far

    def position(self, q: np.ndarray) -> np.ndarray:
        """qpos from q; MuJoCo's quaternions have the scalar first."""
        found = np.array(q)
        for kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            for at, _ in self.joints(kind):
                found[at : at + 4] = np.roll(found[at : at + 4], 1)
        return found

    def along_world(self, q: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """First index of each free joint in v, and the rotation of its body, since MuJoCo's linear velocity is along the
        world's axes."""
        for at, rate in self.joints(mujoco.mjtJoint.mjJNT_FREE):
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, np.roll(q[at : at + 4], 1))
            yield rate - 3, R.reshape(3, 3)

    def velocity(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """qvel from v."""
        found = np.array(v)
        for i, R in self.along_world(q):
            found[i : i + 3] = R @ v[i : i + 3]
        return found

    def rates(self, q: np.ndarray, v: np.ndarray, qacc: np.ndarray) -> np.ndarray:
        """v_dot from qacc."""
        found = np.array(qacc)
        for i, R in self.along_world(q):
            found[i : i + 3] = R.T @ qacc[i : i + 3] - np.cross(v[i + 3 : i + 6], v[i : i + 3])
        return found

    def jacobian(self) -> np.ndarray:
        """(rows, nv) Jacobian of the equality constraints at the evaluated state."""
        data, J = self.data, np.zeros((self.data.nefc, self.model.nv))
        if mujoco.mj_isSparse(self.model):
            mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            J[:] = data.efc_J[: J.size].reshape(J.shape)
        return J[: data.ne]

    def free(self, state: State) -> np.ndarray:
        """v_dot without constraints."""
        self.put(*state)
        return self.rates(*state[:2], self.data.qacc_smooth)

    def inertia(self) -> np.ndarray:
        """MuJoCo's mass matrix at the evaluated state."""
        M = np.zeros((self.model.nv,) * 2)
        mujoco.mj_fullM(self.model, self.data, M)
        return M

    def tendon_armatures(self) -> np.ndarray:
        """(ntendon,) inertias along the tendons, those of their actuators included."""
        found = np.array(self.model.tendon_armature)
        for i, driving in self.read.on_tendons.items():
            found[i] += of_actuators(self.read, driving, self.read.model.actuator_armature)
        return found

    def with_whole_tendons(self, state: State) -> np.ndarray:
        """v_dot without constraints, with all entries of the inertia of tendons."""
        model, data = self.model, self.data
        self.put(*state)
        force, J = self.inertia() @ data.qacc_smooth, np.zeros((model.ntendon, model.nv))
        whole, given = self.tendon_armatures(), (model.tendon_armature.copy(), model.actuator_armature.copy())
        for i, row in enumerate(J):
            own = slice(model.ten_J_rowadr[i], model.ten_J_rowadr[i] + model.ten_J_rownnz[i])
            row[model.ten_J_colind[own]] = data.ten_J[own]
        model.tendon_armature[:] = 0
        model.actuator_armature[[i for driving in self.read.on_tendons.values() for i in driving]] = 0
        self.put(*state)
        M = self.inertia() + J.T @ np.diag(whole) @ J
        model.tendon_armature[:], model.actuator_armature[:] = given
        return self.rates(*state[:2], np.linalg.solve(M, force))

    def tied(self, state: State) -> tuple[np.ndarray, np.ndarray, int]:
        """v_dot with exact constraints, their Jacobian and its rank. The state satisfies them."""
        q, v, u = state
        self.put(q, v, u)
        smooth, J, M = self.data.qacc_smooth.copy(), self.jacobian(), self.inertia()
        left, s, V = np.linalg.svd(J)
        rank = int((s > SMALL * s[0]).sum())
        drift = self.drift(q, v)
        along, N = V[:rank].T @ ((left.T @ -drift)[:rank] / s[:rank]), V[rank:].T
        free = np.linalg.solve(N.T @ M @ N, N.T @ M @ (smooth - along)) if N.size else np.zeros(0)
        return self.rates(q, v, along + N @ free), J, rank

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(rows,) rate of J at constant v, times v."""
        start, rate, total = self.position(q), self.velocity(q, v), 0.0
        h = STEP / max(1.0, float(np.abs(rate).max()))
        for steps, weight in CENTRAL.items():
            for side in (1, -1):
                self.data.qpos, self.data.qvel = start, rate
                mujoco.mj_integratePos(self.model, self.data.qpos, rate, side * steps * h)
                mujoco.mj_forward(self.model, self.data)
                total = total + side * weight / h * (self.jacobian() @ rate)
        return np.asarray(total)


def _opened(path: Path, c: CompiledModel) -> tuple[mujoco.MjModel | None, str]:
    """The file as MuJoCo opens it; or None and why it gets the reader's text: it does not open it, or the reader leaves out
    soft bodies or actuators."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        return None, f"MuJoCo gets the reader's text, since it does not open the file: {' '.join(str(error).split())[:120]}"
    if model.nv == c.model.nv and model.nactuator == c.model.nactuator:
        return model, ""
    what = "soft bodies" if model.nv > c.model.nv else "actuators"
    return None, f"MuJoCo gets the reader's text, without the {what} that are left out"


def _compensated(model: mujoco.MjModel) -> list[tuple[int, float, float]]:
    """(degree of freedom, least, most) force by which motors may hold gravity, for hinges and slides with such a range."""
    if not model.nactuator or model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        return []
    scalar = model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)
    limited = np.flatnonzero(model.jnt_actgravcomp * model.jnt_actfrclimited * scalar)
    return [(int(model.jnt_dofadr[j]), float(low), float(high)) for j in limited for low, high in [model.jnt_actfrcrange[j]]]


def _harden(model: mujoco.MjModel, unknown: list[int]) -> None:
    """Switch off everything soft, limited or left out.   unknown: actuators that the mechanism lacks."""
    off = mujoco.mjtDisableBit
    for flag in (off.mjDSBL_CONTACT, off.mjDSBL_LIMIT, off.mjDSBL_FRICTIONLOSS, off.mjDSBL_CLAMPCTRL):
        model.opt.disableflags |= int(flag)
    model.opt.density = model.opt.viscosity = 0
    model.opt.wind[:] = 0
    for limited in ("actuator_forcelimited", "actuator_ctrllimited", "jnt_actfrclimited", "tendon_actfrclimited"):
        getattr(model, limited)[:] = 0
    model.actuator_actearly[:] = 0
    for j in np.flatnonzero(model.jnt_type < int(mujoco.mjtJoint.mjJNT_SLIDE)):
        model.dof_dampingpoly[model.jnt_dofadr[j] : model.jnt_dofadr[j] + 6 - 3 * int(model.jnt_type[j])] = 0
    for i in unknown:
        model.actuator_gaintype[i] = model.actuator_biastype[i] = 0
        model.actuator_gainprm[i] = model.actuator_biasprm[i] = 0


def _read(path: Path) -> tuple[pf.Mechanism, RunSettings, Path | None, str]:
    """The mechanism, its settings, the folder above the file's own that holds the files which it names, if it needs one, and
    what the reader tells."""
    answers, refused = list[tuple[pf.Mechanism, RunSettings, Path | None, str]](), list[pf.PfaffianError]()
    for folder in (None, *path.absolute().parents[1:6]):
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                m, settings = pf.formats.read_mjcf(path, friction="none", folder=folder)
                answers.append((m, settings, folder, "; ".join(str(w.message) for w in caught)))
            except pf.PfaffianError as error:
                refused.append(error)
        told = answers[-1][-1] if answers else str(refused[-1])
        if not any(words in told for words in ELSEWHERE):
            break
    if not answers:
        raise refused[0]
    return next((a for a in answers if MISSING not in a[-1]), answers[0])


def examine(path: Path) -> Row:
    """Open a file and compare it."""
    try:
        m, settings, folder, told = _read(path)
    except pf.PfaffianError as error:
        return Row(refused=str(error).removeprefix(f"{path.name} "), note=_of_refused(path))
    row = Row(nv=m.nv, left_out=told.removeprefix(f"{path.name}: "))
    try:
        engine = Engine(path, m, folder)
        own = "" if engine.opened else engine.instead
        row = replace(row, note=own, differences={"free": _free(engine)})
        if known := "; ".join(_causes(engine, row.left_out)):
            explained = {"explained": _explained(engine)} if row.apart else {}
            row = replace(row, causes=dict.fromkeys(("free", "tied"), known), differences={**row.differences, **explained})
        return _tied(engine, settings.guess or {}, row) if m.constraints else row
    except (ValueError, IndexError, np.linalg.LinAlgError, mujoco.FatalError, pf.PfaffianError) as error:
        return replace(row, error=_singular(path) or f"{type(error).__name__}: {error}"[:200])


def _of_refused(path: Path) -> str:
    """What MuJoCo makes of a file that the reader refuses."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return "MuJoCo refuses it too"
    return f"MuJoCo has {model.nv} degrees of freedom{' with its soft bodies' if model.nflex else ''}"


def _causes(engine: Engine, told: str) -> Iterator[str]:
    """Why MuJoCo's accelerations are not those of the file, at the state that was evaluated last."""
    model, data = engine.model, engine.data
    if model.body_ipos[model.body_sameframe == mujoco.mjtSameFrame.mjSAMEFRAME_BODY].any():
        yield SAME_FRAME
    if any(x and _branches(model, _moved_by(model, data, i)) for i, x in enumerate(engine.tendon_armatures())):
        yield TENDON
    if "delays of actuators are left out" in told:
        yield DELAYS


def _moved_by(model: mujoco.MjModel, data: mujoco.MjData, i: int) -> set[int]:
    """The degrees of freedom on which the length of a tendon depends."""
    first, count = int(model.ten_J_rowadr[i]), int(model.ten_J_rownnz[i])
    return {
        int(v) for v, x in zip(model.ten_J_colind[first : first + count], data.ten_J[first : first + count], strict=True) if x
    }


def _branches(model: mujoco.MjModel, moved: set[int]) -> bool:
    """Whether the deepest of some degrees of freedom does not carry all others of them."""
    chain, v = set[int](), max(moved, default=-1)
    while v >= 0:
        chain.add(v)
        v = int(model.dof_parentid[v])
    return not moved <= chain


def _singular(path: Path) -> str:
    """The reason why a file without accelerations has none: its mass matrix is singular in MuJoCo as well."""
    with suppress(ValueError, mujoco.FatalError):
        model = mujoco.MjModel.from_xml_path(str(path))
        data, M = mujoco.MjData(model), np.zeros((model.nv, model.nv))
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, M)
        if model.nv and np.linalg.matrix_rank(M) < model.nv:
            return (
                f"the mass matrix of the file has rank {np.linalg.matrix_rank(M)} of {model.nv}: joints of one body move alike"
            )
    return ""


def _accelerations(m: pf.Mechanism) -> Callable[..., Mapping[str, np.ndarray]]:
    """Compiled v_dot of a mechanism at q, v, u."""
    name = "articulated" if m.nv > ARTICULATED and not m.constraints else "gauss"
    return pf.compile_terms(m, {"v_dot": lambda T: pf.FORMULATIONS[name](T).v_dot}, backend="interpreter", lanes=1)


def _explained(engine: Engine) -> float:
    """The difference without constraints that is left without delays, with mass centres at the origins where MuJoCo has them
    there, and with the whole inertia of tendons."""
    model, m = engine.model, engine.m
    model.actuator_delay[:], model.actuator_history[:] = 0, 0
    engine.data = mujoco.MjData(model)
    there = {engine.bodies[i] for i in np.flatnonzero(model.body_sameframe == mujoco.mjtSameFrame.mjSAMEFRAME_BODY)}
    engine.m = m.with_(bodies=[replace(b, com=0 * b.com) if b.name in there else b for b in m.bodies])
    found = _free(engine, engine.with_whole_tendons)
    engine.m = m
    return found


def _free(engine: Engine, theirs: Callable[[State], np.ndarray] | None = None) -> float:
    """Largest difference without constraints.   theirs: accelerations of MuJoCo, `engine.free` if None."""
    m, worst, theirs = engine.m.with_(constraints=()), 0.0, theirs or engine.free
    call = _accelerations(m)
    for seed in range(3):
        random = np.random.default_rng(seed)
        state = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
        exact = theirs(state)
        worst = max(worst, _difference(np.ravel(call(*state)["v_dot"]), exact, exact))
    return worst


def _tied(engine: Engine, guess: Mapping[str, float], row: Row) -> Row:
    """The row with the comparison under constraints, at a closed state near the start of the file."""
    m, random = engine.m, np.random.default_rng(3)
    start = pf.assemble(m, guess=guess, backend="interpreter")
    q = pf.assemble(m, start.q + 0.02 * random.normal(size=m.nq), backend="interpreter").q
    v = pf.assemble(m, q, random.normal(size=m.nv), backend="interpreter").v
    state = q, v, random.normal(size=m.nu)
    exact, J, rank = engine.tied(state)
    ours = np.ravel(_accelerations(m)(*state)["v_dot"])
    tied = _difference(ours, exact, engine.free(state))
    note = "; ".join(filter(None, (f"rows {len(J)}, rank {rank}", row.note)))
    return replace(row, note=note, differences={**row.differences, "tied": tied})


def _difference(ours: np.ndarray, exact: np.ndarray, free: np.ndarray) -> float:
    """Difference relative to the largest acceleration, with constraints or without."""
    return float(np.abs(ours - exact).max() / max(1.0, np.abs([exact, free]).max()))
