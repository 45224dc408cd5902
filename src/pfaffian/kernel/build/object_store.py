"""The store of compiled objects: a folder of immutable entries named by their content, correct without any lock.

KEY.json is the sidecar of a build and contains the sha256 of the object KEY.SHA.so. Before every load, this digest is checked,
and that both files are private. Builds happen in tmp folders inside the store and are published by renaming, the sidecar last.
The files KEY.alias and KEY.programs are described in `keyed`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pfaffian.errors import BuildError, notice_once
from pfaffian.kernel.build import private_files

DAY = 86400.0
PATIENCE = 60.0  # seconds to wait for another process that builds the same object
ROOM = 2**23  # free bytes on the disk that a build needs
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def directory() -> Path:
    """The store in $PFAFFIAN_CACHE, $XDG_CACHE_HOME or ~/.cache; if it is not private, a temporary folder, with a warning."""
    path = _requested()
    reason = private_files.make_folder(path) if path else "there is no home folder"
    if path and reason is None:
        _sweep(path)
        return path
    notice_once(f"compiled code is not stored in {path or '~/.cache'}: {reason}. Or set PFAFFIAN_CACHE to another folder")
    return _temporary()


def _requested() -> Path | None:
    """The store's folder according to the environment; None if there is no home folder. Users may share $PFAFFIAN_CACHE: each
    has a folder in it."""
    if os.environ.get("PFAFFIAN_CACHE"):
        return Path(os.environ["PFAFFIAN_CACHE"]).absolute() / f"pfaffian-{os.getuid()}"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).absolute() / "pfaffian"
    try:
        return Path.home() / ".cache" / "pfaffian"
    except RuntimeError:
        return None


@cache
def _temporary() -> Path:
    """A private folder for this process only, removed when it ends."""
    path = Path(tempfile.mkdtemp(prefix="pfaffian-"))
    import atexit

    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def _sweep(path: Path) -> None:
    """Remove build folders that a killed process left more than a day ago, once in each process."""
    for orphan in path.glob("tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - orphan.stat().st_mtime > DAY:
                shutil.rmtree(orphan) if orphan.is_dir() else orphan.unlink()


def get(store: Path, key: str) -> tuple[Path, dict[str, Any]] | None:
    """Path of the object of the key, and its sidecar; None if either is absent, damaged or not private."""
    sidecar = store / f"{key}.json"
    try:
        meta = private_files.read_note(sidecar)
        target = _object(store, key, str(meta["sha256"]))
        if hashlib.sha256(private_files.read(target)).hexdigest() != meta["sha256"]:
            return None
        os.utime(sidecar)  # for prune
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return target, meta


def _object(store: Path, key: str, sha256: str) -> Path:
    """Path of an object in the store."""
    return store / f"{key}.{sha256[:16]}.so"


def _has_room(path: Path) -> bool:
    """Whether the disk of a folder has enough free space for a build."""
    try:
        status = os.statvfs(path)
    except OSError:
        return True  # if there is none, the build raises the error
    return status.f_bavail * status.f_frsize >= ROOM


def place_to_build(store: Path) -> Path:
    """The folder to build in: the store, or, if its disk is full, a temporary folder for this process and a warning."""
    if _has_room(store):
        return store
    reason = f"less than {ROOM // 2**20} MB are left on its disk: make room"
    notice_once(f"compiled code is not stored in {store}: {reason}. Or set PFAFFIAN_CACHE to another folder")
    return _temporary()


@contextlib.contextmanager
def building(store: Path) -> Iterator[Path]:
    """A new folder inside the store. It is removed afterwards, unless the build fails; then it remains, with the source.

    Raises BuildError: the disk is full; then the folder is removed too.
    """
    path = None
    try:
        path = Path(tempfile.mkdtemp(prefix="tmp", dir=store))
        yield path
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in FULL or (path and not _has_room(path)):
            shutil.rmtree(path or "", ignore_errors=True)
            reason = os.strerror(number or errno.ENOSPC)
            words = f"cannot write into the cache {store}: {reason}; make room, or set PFAFFIAN_CACHE to another folder"
            raise BuildError(words) from error
        raise
    except BaseException:  # Ctrl-C leaves nothing behind
        shutil.rmtree(path or "", ignore_errors=True)
        raise
    else:
        shutil.rmtree(path, ignore_errors=True)


def publish(store: Path, key: str, built: Path, meta: dict[str, Any]) -> Path:
    """Move a tested object into the store, then its sidecar: an object without a sidecar does not count."""
    sha256 = hashlib.sha256(built.read_bytes()).hexdigest()
    meta = meta | {"sha256": sha256}
    sidecar = built.with_suffix(".json")
    sidecar.write_text(json.dumps(meta, indent=1), encoding="utf-8")
    for path in (built, sidecar):
        path.chmod(0o600)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    target = _object(store, key, sha256)
    os.replace(built, target)
    os.replace(sidecar, store / f"{key}.json")
    return target


@contextlib.contextmanager
def lock(store: Path, key: str) -> Iterator[None]:
    """Lock the key, so that other processes wait instead of building the same object. They wait at most PATIENCE seconds,
    since the builder may be suspended.

    The lock only saves work: the store is correct without it.
    """
    try:
        import fcntl

        file = (store / f"{key[:2]}.lock").open("w")
    except (ImportError, OSError):
        yield
        return
    with file:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                break
        yield


def prune(days: float) -> int:
    """Delete objects, notes and Programs that were not used for this number of days; return the number of objects.

    A process that has loaded an object can go on using it.
    """
    store, count = directory(), 0
    for sidecar in store.glob("*.json"):
        with contextlib.suppress(OSError):
            if time.time() - sidecar.stat().st_mtime > days * DAY:
                sidecar.unlink()
                for target in store.glob(f"{sidecar.stem}.*.so"):
                    target.unlink(missing_ok=True)
                count += 1
    for note in (*store.glob("*.alias"), *store.glob("*.programs")):
        with contextlib.suppress(OSError):
            if time.time() - note.stat().st_mtime > days * DAY:
                note.unlink()
    return count
