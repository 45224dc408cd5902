"""The store of compiled objects: a directory named by content, immutable entries, correct without any lock.

KEY.json is the sidecar of a build; it holds the sha256 of the object KEY.SHA.so, checked before every load, as is that both
are ours alone. Builds happen in tmp directories beside them and are published by renaming, the sidecar last. KEY.alias: see
`keyed`.
"""

from __future__ import annotations

import contextlib
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

from pfaffian.kernel.build import private_files

DAY = 86400.0
PATIENCE = 60.0  # seconds to wait for another process that builds the same


def directory() -> Path:
    """Ours in $PFAFFIAN_CACHE, $XDG_CACHE_HOME or ~/.cache; a private temporary one, said once, if that is not safe."""
    path = _wanted()
    reason = private_files.make_folder(path) if path else "there is no home folder"
    if path and reason is None:
        _sweep(path)
        return path
    _warn_once(f"compiled programs are not kept: {path or '~/.cache'}: {reason}. Or set PFAFFIAN_CACHE to another folder")
    return _temporary()


def _wanted() -> Path | None:
    """Many users may share $PFAFFIAN_CACHE: each has a folder in it."""
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
    """Once a process: remove build directories that a killed process left more than a day ago."""
    for orphan in path.glob("tmp*"):
        with contextlib.suppress(OSError):
            if time.time() - orphan.stat().st_mtime > DAY:
                shutil.rmtree(orphan) if orphan.is_dir() else orphan.unlink()


def get(store: Path, key: str) -> tuple[Path, dict[str, Any]] | None:
    """The object of the key and its sidecar, or None if it is absent or not whole."""
    sidecar = store / f"{key}.json"
    try:
        meta = private_files.read_note(sidecar)
        target = _object(store, key, str(meta["sha256"]))
        if hashlib.sha256(private_files.read(target)).hexdigest() != meta["sha256"]:
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


def publish(store: Path, key: str, built: Path, meta: dict[str, Any]) -> Path:
    """Move a tested object to its name. Sidecar last: an object without one does not exist."""
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
