"""Run FMUs under the sanitizers of gcc: their C text, compiled with a program that makes instances in several threads.

    python -m tools.fmu_sanitizers [--instances 1000] [--steps 300] [--only NAME ...]

Each machine is written for model exchange and for co-simulation, in steps of one length and under error control, and run under
address and undefined (which find leaks, too) and under thread. Each instance is stepped through its events; its state is saved,
serialised and restored, its derivatives and all of its variables are read; it is reset and stepped again. All threads have to
find the same bits.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import casadi as ca

import pfaffian as pf
from pfaffian.interchange.archive import SOURCE_FLAGS

SANITIZERS = "address,undefined", "thread"
THREADS = 4

DRIVER = r"""
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void Log(void *, int, const char *, const char *);
#define FMI(name, ...) extern int fmi3##name(void *, __VA_ARGS__);
extern void *fmi3InstantiateModelExchange(const char *, const char *, const char *, _Bool, _Bool, void *, Log *);
extern void *fmi3InstantiateCoSimulation(const char *, const char *, const char *, _Bool, _Bool, _Bool, _Bool, const unsigned *,
                                         size_t, void *, Log *, void *);
extern void fmi3FreeInstance(void *);
extern int fmi3ExitInitializationMode(void *), fmi3EnterEventMode(void *), fmi3EnterContinuousTimeMode(void *);
extern int fmi3Reset(void *);
FMI(EnterInitializationMode, _Bool, double, double, _Bool, double)
FMI(GetFloat64, const unsigned *, size_t, double *, size_t)
FMI(DoStep, double, double, _Bool, _Bool *, _Bool *, _Bool *, double *)
FMI(GetFMUState, void **)
FMI(SetFMUState, void *)
FMI(FreeFMUState, void **)
FMI(SerializedFMUStateSize, void *, size_t *)
FMI(SerializeFMUState, void *, uint8_t *, size_t)
FMI(DeserializeFMUState, const uint8_t *, size_t, void **)
FMI(UpdateDiscreteStates, _Bool *, _Bool *, _Bool *, _Bool *, _Bool *, double *)
FMI(SetTime, double)
FMI(CompletedIntegratorStep, _Bool, _Bool *, _Bool *)
FMI(GetContinuousStates, double *, size_t)
FMI(SetContinuousStates, const double *, size_t)
FMI(GetContinuousStateDerivatives, double *, size_t)
FMI(GetEventIndicators, double *, size_t)
FMI(GetDirectionalDerivative, const unsigned *, size_t, const unsigned *, size_t, const double *, size_t, double *, size_t)
FMI(GetAdjointDerivative, const unsigned *, size_t, const unsigned *, size_t, const double *, size_t, double *, size_t)

static double found[THREADS][NX + 1];
static int events[THREADS];
static void logged(void *of, int status, const char *category, const char *message) { *(size_t *)of += strlen(message); }

static double event(void *it, int *count) {
  _Bool again = 1, end, nominals, values, timed = 0;
  double next = 0;
  fmi3EnterEventMode(it);
  for (int k = 0; again && k < 9; k++) fmi3UpdateDiscreteStates(it, &again, &end, &nominals, &values, &timed, &next);
  fmi3EnterContinuousTimeMode(it);
  *count += 1;
  return timed ? next : INFINITY;
}

static void kept(void *it) {
  void *state = NULL, *again = NULL;
  size_t size = 0;
  fmi3GetFMUState(it, &state), fmi3SerializedFMUStateSize(it, state, &size);
  uint8_t *bytes = malloc(size);
  fmi3SerializeFMUState(it, state, bytes, size), fmi3DeserializeFMUState(it, bytes, size, &again);
  fmi3SetFMUState(it, again), fmi3FreeFMUState(it, &state), fmi3FreeFMUState(it, &again), free(bytes);
}

static void exchange(void *it, double *x, int *count) {
  double rate[NX + 1], sides[2][NZ + 1], next = event(it, count);
  fmi3GetContinuousStates(it, x, NX), fmi3GetEventIndicators(it, sides[1], NZ);
  for (int k = 1; k <= STEPS; k++) {
    memcpy(sides[0], sides[1], sizeof sides[0]);
    if (fmi3GetContinuousStateDerivatives(it, rate, NX)) return;
    for (int j = 0; j < NX; j++) x[j] += STEP * rate[j];
    fmi3SetTime(it, k * STEP), fmi3SetContinuousStates(it, x, NX);
    _Bool wants = 0, end, due = k * STEP >= next;
    if (fmi3CompletedIntegratorStep(it, 1, &wants, &end) || fmi3GetEventIndicators(it, sides[1], NZ)) return;
    for (int j = 0; j < NZ; j++) due |= sides[0][j] > 0 != sides[1][j] > 0;
    if (wants || due) next = event(it, count), fmi3GetContinuousStates(it, x, NX), fmi3GetEventIndicators(it, sides[1], NZ);
    if (k % 50 == 0) kept(it);
  }
  unsigned states[NX + 1], rates[NX + 1];
  double seed[NX + 1], out[NX + 1];
  for (int j = 0; j < NX; j++) states[j] = FIRST_X + j, rates[j] = FIRST_RATE + j, seed[j] = j;
  fmi3GetDirectionalDerivative(it, rates, NX, states, NX, seed, NX, out, NX);
  fmi3GetAdjointDerivative(it, rates, NX, states, NX, seed, NX, out, NX);
}

static void steps(void *it) {
  for (int k = 0; k < STEPS; k++) {
    _Bool event, end, early;
    double reached;
    if (fmi3DoStep(it, k * STEP, STEP, 1, &event, &end, &early, &reached)) return;
    if (k % 50 == 0) kept(it);
  }
}

static void *instances(void *of) {
  const int thread = (double(*)[NX + 1])of - found;
  for (int n = 0; n < INSTANCES; n++) {
    size_t words = 0;
    void *it = EXCHANGE ? fmi3InstantiateModelExchange("it", TOKEN, "", 0, 1, &words, logged)
                        : fmi3InstantiateCoSimulation("it", TOKEN, "", 0, 1, 0, 0, NULL, 0, &words, logged, NULL);
    for (int again = 0; again < 2; again++) {
      double x[NX + 1] = {0}, all[COUNT];
      unsigned references[COUNT];
      fmi3EnterInitializationMode(it, 0, 0, 0, 0, 0), fmi3ExitInitializationMode(it);
#if EXCHANGE
      exchange(it, x, events + thread);
#else
      steps(it);
#endif
      for (int j = 0; j < COUNT; j++) references[j] = j;
      fmi3GetFloat64(it, references, COUNT, all, COUNT);
      memcpy(found[thread], all + FIRST_X, NX * sizeof(double));
      fmi3Reset(it);
    }
    fmi3FreeInstance(it);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int same = 1;
  for (int k = 0; k < THREADS; k++) pthread_create(threads + k, NULL, instances, found[k]);
  for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
  for (int k = 0; k < THREADS; k++) same &= !memcmp(found[0], found[k], sizeof found[0]) && events[k] == events[0];
  printf("%d events, %s\n", events[0] / INSTANCES, same ? "the same bits" : "other bits in another thread");
  return !same;
}
"""


def definitions(folder: Path, instances: int, steps: int, step: float) -> str:
    """The numbers of the program, from the description of an unpacked FMU."""
    root = ElementTree.parse(folder / "modelDescription.xml").getroot()
    at = {v.get("name", ""): int(v.get("valueReference", "")) for v in root.findall("ModelVariables/Float64")}
    rates = [int(x.get("valueReference", "")) for x in root.findall("ModelStructure/ContinuousStateDerivative")]
    numbers = {
        "TOKEN": f'"{root.get("instantiationToken")}"',
        "EXCHANGE": int(root.find("ModelExchange") is not None),
        "NX": len(rates),
        "NZ": len(root.findall("ModelStructure/EventIndicator")),
        "COUNT": 1 + max(at.values()),
        "FIRST_X": min(r for name, r in at.items() if name.startswith(("q.", "v."))),
        "FIRST_RATE": min(rates, default=0),
        "INSTANCES": instances,
        "STEPS": steps,
        "STEP": step,
        "THREADS": THREADS,
    }
    return "".join(f"#define {name} {x}\n" for name, x in numbers.items())


def under(sanitizer: str, file: Path, folder: Path, instances: int, steps: int, step: float = 1e-3) -> str:
    """What the program prints for an FMU in FMI 3.0. Raises RuntimeError: the sanitizer found something.

    instances: in each of the threads.   steps: of each instance, of `step` [s].
    """
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    (folder / "driver.c").write_text(definitions(folder, instances, steps, step) + DRIVER, encoding="ascii")
    flags = [x for x in SOURCE_FLAGS if x != "-shared"] + ["-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    texts = ["driver.c", *map(str, sorted((folder / "sources").glob("*.c")))]
    for command in (["gcc", *flags, "-o", "driver", *texts, "-lm", "-lpthread"], ["./driver"]):
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"{sanitizer} of {file.name}: {ran.stdout}{ran.stderr}")
    return ran.stdout.strip()


def machines() -> Iterator[tuple[str, pf.Mechanism, dict[str, Any]]]:
    """Name, machine and arguments of `pf.fmu`: closed loops, redundant rows, contact, rebounds, switches, laws."""
    for name in ("four_bar", "bennett", "coin", "segway"):
        m, settings = pf.read(f"zoo:{name}")
        yield name, m, {k: dict(x) for k in ("q", "v", "guess", "parameters") if (x := getattr(settings, k))}
    slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    grip = pf.Parameter("grip", 0.0)
    wind = pf.forces.generalised_force("wind", lambda k: ca.if_else(k.v[0] > 0, -2, 1) - 5 * grip, joint="z")
    line = pf.constraints.active_while(pf.nonholonomic("line", lambda k: k.v[0] + 1), lambda k: k.q[0] > 0.95)
    floor, pull = pf.forces.rebound("floor", lambda k: k.q[0], 0.8), pf.actuator("pull", "z")
    m = pf.mechanism(
        "ball",
        [pf.body("ball", 1.0)],
        [slide],
        constraints=[line],
        forces=[floor, wind],
        actuators=[pull],
        parameters=[grip],
    )
    switches = {"grip": lambda k: ca.if_else(k.v[0] > 0.8, 1, ca.if_else(k.v[0] < 0, 0, grip))}
    yield "ball", m, {"q": {"z": 0.1}, "switches": switches}
    law = pf.control.discrete(lambda S: pf.control.Command(-3.0 * S.terms.q[0]), 0.02)
    yield "ball with a law", m, {"q": {"z": 0.1}, "control": law}


def main() -> int:
    """See the text of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    passes = True
    kinds: dict[str, dict[str, Any]] = {
        "exchange": {"kind": "model exchange"},
        "steps": {"step": 1e-3},
        "accurate": {"accuracy": 1e-7, "step": 1e-3},
    }
    for name, m, fields in machines():
        for kind, how in kinds.items() if not given.only or name in given.only else ():
            with tempfile.TemporaryDirectory() as place:
                file = pf.fmu(m, Path(place, "machine.fmu"), **fields, **how).file
                for sanitizer in SANITIZERS:
                    try:
                        words = under(sanitizer, file, Path(place, sanitizer), given.instances // THREADS, given.steps)
                    except RuntimeError as e:
                        passes, words = False, f"NO: {e}"
                    print(f"{name:16} {kind:9} {sanitizer:18} {words}", flush=True)
    return int(not passes)


if __name__ == "__main__":
    sys.exit(main())
