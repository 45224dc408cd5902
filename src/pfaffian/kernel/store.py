"""The store of compiled objects: a directory named by content, immutable entries, correct without any lock.

KEY.json is the sidecar of a build; it holds the sha256 of the object KEY.SHA.so, checked before every load. Builds
happen in tmp directories beside them and are published by renaming, the sidecar last. KEY.alias: see `keyed`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

DAY = 86400.0
PATIENCE = 60.0  # seconds to wait for another process that builds the same


def directory() -> Path:
    """$PFAFFIAN_CACHE, $XDG_CACHE_HOME/pfaffian or ~/.cache/pfaffian; a private temporary one if that is not safe."""
    for path in _candidates():
        if _is_private(path):
            _sweep(path)
            return path
    return _temporary()


def _candidates() -> Iterator[Path]:
    if os.environ.get("PFAFFIAN_CACHE"):
        yield Path(os.environ["PFAFFIAN_CACHE"]).absolute()
        return
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]).absolute() / "pfaffian"
        return
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "pfaffian"


def _is_private(path: Path) -> bool:
    """Make the directory with mode 0700. False if it is another user's: loading code from it would be unsafe."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.getuid():
            return False
        if stat.S_IMODE(status.st_mode) != 0o700:
            path.chmod(0o700)
        return os.access(path, os.W_OK | os.X_OK)
    except OSError:
        return False


@cache
def _temporary() -> Path:
    """A private store for this process only."""
    path = Path(tempfile.mkdtemp(prefix="pfaffian-"))
    import atexit

    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def _sweep(path: Path) -> None:
    """Once a process: remove build directories that a killed process left more than a day ago."""
    for orphan in path.glob("tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - orphan.stat().st_mtime > DAY:
                shutil.rmtree(orphan) if orphan.is_dir() else orphan.unlink()


def get(store: Path, key: str) -> tuple[Path, dict[str, Any]] | None:
    """The object of the key and its sidecar, or None if it is absent or not whole."""
    sidecar = store / f"{key}.json"
    try:
        meta = json.loads(sidecar.read_text(encoding="utf-8"))
        target = _object(store, key, str(meta["sha256"]))
        if hashlib.sha256(target.read_bytes()).hexdigest() != meta["sha256"]:
            return None
        os.utime(sidecar)  # prune looks at it
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return target, meta


def _object(store: Path, key: str, sha256: str) -> Path:
    return store / f"{key}.{sha256[:16]}.so"


@contextlib.contextmanager
def building(store: Path) -> Iterator[Path]:
    """A fresh directory inside the store, removed afterwards unless an Exception came (the source is kept)."""
    path = Path(tempfile.mkdtemp(prefix="tmp", dir=store))
    try:
        yield path
    except Exception:
        raise
    except BaseException:  # Ctrl-C leaves nothing
        shutil.rmtree(path, ignore_errors=True)
        raise
    else:
        shutil.rmtree(path, ignore_errors=True)


def write(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    handle, name = tempfile.mkstemp(prefix="tmp", dir=path.parent)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path)


def publish(store: Path, key: str, built: Path, meta: dict[str, Any]) -> Path:
    """Move a tested object to its name. Sidecar last: an object without one does not exist."""
    sha256 = hashlib.sha256(built.read_bytes()).hexdigest()
    meta = meta | {"sha256": sha256}
    sidecar = built.with_suffix(".json")
    sidecar.write_text(json.dumps(meta, indent=1), encoding="utf-8")
    for path in (built, sidecar):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    target = _object(store, key, sha256)
    os.replace(built, target)
    os.replace(sidecar, store / f"{key}.json")
    return target


@contextlib.contextmanager
def lock(store: Path, key: str) -> Iterator[None]:
    """Hold the key, so that others wait instead of building the same, though not for good: a builder may be suspended.

    Only to save work: nothing depends on it.
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
    """Delete entries not used for so many days; the number deleted. A process that has one loaded keeps it."""
    store, count = directory(), 0
    for sidecar in store.glob("*.json"):
        with contextlib.suppress(OSError):
            if time.time() - sidecar.stat().st_mtime > days * DAY:
                sidecar.unlink()
                for target in store.glob(f"{sidecar.stem}.*.so"):
                    target.unlink(missing_ok=True)
                count += 1
    for note in store.glob("*.alias"):
        with contextlib.suppress(OSError):
            if time.time() - note.stat().st_mtime > days * DAY:
                note.unlink()
    return count
