"""Child processes: several at once, each in its own session, all killed at a time-out, a failure or Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO

from pfaffian.errors import BuildError
from pfaffian.kernel.build.waiting import tell

MEMORY = 16 << 30  # bytes of address space for a child
# Bytes of standard output that a child may write by default, and last bytes of its standard error that a message contains.
OUTPUT, ERRORS = 16 << 20, 2048
POLL = 0.01  # seconds between two checks of which children have ended


_ENDED: ContextVar[Callable[[], bool]] = ContextVar("ended", default=lambda: False)


class Ended(BaseException):
    """Raised out of `run` when its commands are no longer needed, see `until`."""


@contextlib.contextmanager
def until(ended: Callable[[], bool]) -> Iterator[None]:
    """Within this context, `run` kills its commands and raises Ended as soon as `ended()` is true."""
    token = _ENDED.set(ended)
    try:
        yield
    finally:
        _ENDED.reset(token)


@dataclass(eq=False)
class _Child:
    """A running process.   index: of its command.   deadline: by time.monotonic().   out, err: its output so far."""

    index: int
    process: subprocess.Popen[bytes]
    deadline: float
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    @property
    def name(self) -> str:
        """The program that it runs."""
        return str(self.process.args[0])  # type: ignore[index]


def run(
    commands: Sequence[Sequence[str]],
    timeout: float,
    *,
    environment: Mapping[str, str] = os.environ,
    feed: bytes = b"",
    most: int = OUTPUT,
    hint: str = "",
    activity: str = "",
) -> list[bytes]:
    """Run commands, as many at once as there are cores; return the standard output of each.

    A failure, a time-out or an exception such as Ctrl-C ends this call and all processes that the commands started.

    Args:
        commands: argv of each.
        timeout: time for each command [s].
        environment: environment variables of each command.
        feed: standard input. All commands share it, so only one of them may read it.
        most: largest standard output of each command [bytes].
        hint: text appended to every error, such as the path of the source.
        activity: progress message, sent to the listener with the number of commands done; "" for none.
    Raises BuildError: a command cannot start, takes too long, writes too much, or fails (with the end of its standard error).
    """
    waiting, outputs = list(enumerate(commands)), [b""] * len(commands)
    running: list[_Child] = []
    with selectors.DefaultSelector() as selector, tempfile.TemporaryFile() as given:
        given.write(feed)
        given.seek(0)
        try:
            while waiting or running:
                if _ENDED.get()():
                    raise Ended
                if activity:
                    tell(f"{activity}, {len(commands) - len(waiting) - len(running)} of {len(commands)} pieces done")
                while waiting and len(running) < (os.cpu_count() or 1):
                    running.append(_start(selector, *waiting.pop(0), environment, given, timeout))
                for key, _ in selector.select(POLL):
                    _read(selector, key, most, hint)
                for child in [c for c in running if _has_ended(c)]:
                    running.remove(child)
                    outputs[child.index] = _collect(selector, child, most, hint)
                for child in running:
                    if time.monotonic() > child.deadline:
                        raise BuildError(f"{child.name} took longer than {timeout:.0f} s{hint}")
        finally:
            for child in running:
                _end(child)
    return outputs


def _start(
    selector: selectors.BaseSelector,
    index: int,
    argv: Sequence[str],
    environment: Mapping[str, str],
    given: IO[bytes],
    timeout: float,
) -> _Child:
    """Start a command in a new session and register its pipes. Raises BuildError: it cannot start."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(  # noqa: S603  argv is a list made here, no shell
            list(argv), stdin=given, stdout=pipe, stderr=pipe, start_new_session=True, env=dict(environment)
        )
    except OSError as error:
        raise BuildError(f"cannot start {argv[0]}: {error}") from error
    child = _Child(index, process, time.monotonic() + timeout)
    _limit_memory(process.pid)
    for out, to in ((process.stdout, child.out), (process.stderr, child.err)):
        os.set_blocking(out.fileno(), False)  # type: ignore[union-attr]
        selector.register(out, selectors.EVENT_READ, (child, to))  # type: ignore[arg-type]
    return child


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, most: int, hint: str) -> bool:
    """Read the bytes that are in a pipe now; of standard error only the end is stored. False if there were none."""
    child, to = key.data
    try:
        chunk = os.read(key.fd, 1 << 16)
    except BlockingIOError:
        return False
    to += chunk
    if to is child.err:
        del to[:-ERRORS]
    elif len(to) > most:
        raise BuildError(f"{child.name} wrote more than {most} bytes{hint}")
    if not chunk:
        selector.unregister(key.fileobj)
    return bool(chunk)


def _has_ended(child: _Child) -> bool:
    """Whether the process has ended. Where the system allows, it is not reaped, so that its process ID is not reused."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return child.process.poll() is not None
    return os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _collect(selector: selectors.BaseSelector, child: _Child, most: int, hint: str) -> bytes:
    """The output of a child that has ended, after killing its child processes, which may hold the pipes open.

    Raises BuildError: it failed or wrote too much.
    """
    _kill_group(child)
    try:
        for key in [k for k in selector.get_map().values() if k.data[0] is child]:
            while _read(selector, key, most, hint):
                pass
            if key.fileobj in selector.get_map():
                selector.unregister(key.fileobj)
    finally:
        _end(child)
    status = child.process.returncode
    if status != 0:
        raise BuildError(f"{child.name} ended with status {status}{hint}\n{child.err.decode(errors='replace')}")
    return bytes(child.out)


def _end(child: _Child) -> None:
    """Kill what is left of the child's process group and reap the child."""
    _kill_group(child)
    child.process.wait()
    for pipe in (child.process.stdout, child.process.stderr):
        pipe.close()  # type: ignore[union-attr]


def _kill_group(child: _Child) -> None:
    """Kill the child's process group if the child is not reaped yet: until then its process ID cannot be reused."""
    if child.process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)


def _limit_memory(pid: int) -> None:
    """Limit a child's memory where possible. Only Linux can do so from outside, which is thread-safe, unlike preexec_fn."""
    try:
        import resource

        resource.prlimit(pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
    except (ImportError, AttributeError, OSError, ValueError):
        return
