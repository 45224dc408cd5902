"""The store of compiled objects: a folder of immutable entries named by content, correct without any lock.

KEY.json is the sidecar of a build and contains the sha256 of the object KEY.SHA.so. Before every load this is checked, and that
both files are private. Builds happen in tmp folders beside them and are published by renaming, the sidecar last. On KEY.alias
and KEY.programs see `keyed`.
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
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pfaffian.errors import BuildError
from pfaffian.kernel.build import private_files

DAY = 86400.0
PATIENCE = 60.0  # seconds to wait for another process that builds the same
ROOM = 2**23  # bytes that must be left on the disk for a build
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def directory() -> Path:
    """The store in $PFAFFIAN_CACHE, $XDG_CACHE_HOME or ~/.cache; if that is not safe, a temporary one after a warning."""
    path = _requested()
    reason = private_files.make_folder(path) if path else "there is no home folder"
    if path and reason is None:
        _sweep(path)
        return path
    _warn_once(f"compiled programs are not kept: {path or '~/.cache'}: {reason}. Or set PFAFFIAN_CACHE to another folder")
    return _temporary()


def _requested() -> Path | None:
    """The store's folder by the environment. Many users may share $PFAFFIAN_CACHE: each has a folder in it."""
    if os.environ.get("PFAFFIAN_CACHE"):
        return Path(os.environ["PFAFFIAN_CACHE"]).absolute() / f"pfaffian-{os.getuid()}"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).absolute() / "pfaffian"
    try:
        return Path.home() / ".cache" / "pfaffian"
    except RuntimeError:
        return None


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


@cache
def _temporary() -> Path:
    """A private store for this process only."""
    path = Path(tempfile.mkdtemp(prefix="pfaffian-"))
    import atexit

    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def _sweep(path: Path) -> None:
    """Once in each process, remove build folders that a killed process left more than a day ago."""
    for orphan in path.glob("tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - orphan.stat().st_mtime > DAY:
                shutil.rmtree(orphan) if orphan.is_dir() else orphan.unlink()


def get(store: Path, key: str) -> tuple[Path, dict[str, Any]] | None:
    """The object of the key and its sidecar; None if either is absent or damaged."""
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
    return store / f"{key}.{sha256[:16]}.so"


def _has_room(path: Path) -> bool:
    """Whether a build fits on the disk of a folder."""
    try:
        status = os.statvfs(path)
    except OSError:
        return True  # the build will say it
    return status.f_bavail * status.f_frsize >= ROOM


def place_to_build(store: Path) -> Path:
    """The store, or one for this process alone if the disk of that is full, after a warning."""
    if _has_room(store):
        return store
    reason = f"less than {ROOM // 2**20} MB are left on its disk: make room"
    _warn_once(f"compiled programs are not kept: {store}: {reason}. Or set PFAFFIAN_CACHE to another folder")
    return _temporary()


@contextlib.contextmanager
def building(store: Path) -> Iterator[Path]:
    """A fresh folder inside the store, removed afterwards unless the build fails: then the source is kept.

    Raises BuildError: the disk is full, so that nothing is kept.
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
    """Move a tested object to its name, the sidecar last: an object without one does not count."""
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
    """Lock the key, so that other processes wait instead of building the same; not forever, since a builder may be suspended.

    This only saves work: nothing depends on it.
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


def prune(days: float = 30.0) -> int:
    """Delete the entries that were not used for so many days; return their number. A process that has one loaded keeps it."""
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
