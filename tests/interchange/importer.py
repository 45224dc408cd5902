"""A small importer of FMUs in FMI 3.0: loads the binary of a file and calls its functions."""

from __future__ import annotations

import ctypes as c
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)
OK, DISCARD, ERROR = 0, 2, 3


class Importer:
    """One instance of the FMU in a file, unpacked into a folder."""

    def __init__(self, file: Path, folder: Path, token: str | None = None) -> None:
        with zipfile.ZipFile(file) as archive:
            self.names = archive.namelist()
            archive.extractall(folder)
        self.root = ElementTree.parse(folder / "modelDescription.xml").getroot()
        self.exchange = self.root.find("ModelExchange") is not None
        (binary,) = [n for n in self.names if n.startswith("binaries/") and n.endswith(".so")]
        self.dll = c.CDLL(str(folder / binary))
        self.reference = {v.get("name"): int(v.get("valueReference")) for v in self.root.find("ModelVariables")}
        self.messages: list[str] = []
        self.log = LOG(lambda _, status, category, message: self.messages.append(message.decode()))
        token = self.root.get("instantiationToken") if token is None else token
        self.at = self.create(token.encode())

    def create(self, token: bytes) -> c.c_void_p:
        kind = "ModelExchange" if self.exchange else "CoSimulation"
        f = getattr(self.dll, f"fmi3Instantiate{kind}")
        f.restype = c.c_void_p
        clocked = not self.exchange and self.root.find("CoSimulation").get("hasEventMode") == "true"
        middle = [] if self.exchange else [c.c_bool(clocked), c.c_bool(False), None, c.c_size_t(0)]
        end = [] if self.exchange else [None]
        made = f(b"it", token, None, c.c_bool(False), c.c_bool(True), *middle, None, self.log, *end)
        return c.c_void_p(made)

    def call(self, name: str, *arguments: object) -> int:
        return getattr(self.dll, f"fmi3{name}")(self.at, *arguments)

    def start(self, t: float = 0.0, **values: float) -> int:
        self.call("EnterInitializationMode", c.c_bool(False), c.c_double(0), c.c_double(t), c.c_bool(False), c.c_double(0))
        for name, value in values.items():
            assert self.set(name, value) == OK
        return self.call("ExitInitializationMode")

    def set(self, name: str, value: float) -> int:
        one = c.c_size_t(1)
        return self.call("SetFloat64", (c.c_uint * 1)(self.reference[name]), one, (c.c_double * 1)(value), one)

    def get(self, *names: str) -> np.ndarray:
        n, values = c.c_size_t(len(names)), (c.c_double * len(names))()
        assert self.call("GetFloat64", (c.c_uint * len(names))(*[self.reference[k] for k in names]), n, values, n) == OK
        return np.array(values)

    def step(self, t: float, h: float) -> int:
        flags = [c.byref(c.c_bool()) for _ in range(3)]
        return self.call("DoStep", c.c_double(t), c.c_double(h), c.c_bool(True), *flags, c.byref(c.c_double()))

    def event(self, *clocks: str) -> float | None:
        """Have these clocks tick in event mode; returns the next time event, if there is one."""
        n, flags, following = len(clocks), [c.c_bool() for _ in range(5)], c.c_double()
        references, ticks = (c.c_uint * n)(*[self.reference[k] for k in clocks]), (c.c_bool * n)(*[True] * n)
        assert self.call("EnterEventMode") == OK
        assert not n or self.call("SetClock", references, c.c_size_t(n), ticks) == OK
        assert self.call("UpdateDiscreteStates", *map(c.byref, flags), c.byref(following)) == OK
        assert self.call("EnterContinuousTimeMode" if self.exchange else "EnterStepMode") == OK
        return following.value if flags[4] else None

    def move(self, x: Sequence[float]) -> int:
        return self.call("SetContinuousStates", (c.c_double * len(x))(*x), c.c_size_t(len(x)))

    def states(self, n: int, what: str = "ContinuousStates") -> np.ndarray:
        values = (c.c_double * n)()
        assert self.call(f"Get{what}", values, c.c_size_t(n)) == OK
        return np.array(values)

    def products(self, kind: str, unknowns: list[str], knowns: list[str], seed: np.ndarray) -> np.ndarray:
        asked = unknowns if kind == "Directional" else knowns
        refs = [(c.c_uint * len(names))(*[self.reference[k] for k in names]) for names in (unknowns, knowns)]
        sizes = [c.c_size_t(len(names)) for names in (unknowns, knowns)]
        values, given = (c.c_double * len(asked))(), (c.c_double * len(seed))(*seed)
        end = given, c.c_size_t(len(seed)), values, c.c_size_t(len(asked))
        assert self.call(f"Get{kind}Derivative", refs[0], sizes[0], refs[1], sizes[1], *end) == OK
        return np.array(values)

    def saved(self) -> bytes:
        """The serialised state."""
        state, size = c.c_void_p(), c.c_size_t()
        assert self.call("GetFMUState", c.byref(state)) == OK
        assert self.call("SerializedFMUStateSize", state, c.byref(size)) == OK
        to = (c.c_uint8 * size.value)()
        assert self.call("SerializeFMUState", state, to, size) == OK
        assert self.call("FreeFMUState", c.byref(state)) == OK
        return bytes(to)

    def restore(self, saved: bytes) -> int:
        state = c.c_void_p()
        status = self.call("DeserializeFMUState", (c.c_uint8 * len(saved))(*saved), c.c_size_t(len(saved)), c.byref(state))
        if status == OK:
            status = self.call("SetFMUState", state)
            self.call("FreeFMUState", c.byref(state))
        return status
