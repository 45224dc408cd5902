"""Header, source and test of a controller, as text in C99.

The user's names appear in comments only, with special characters replaced. Identifiers consist of the checked name that the
user chose for the files, and of fixed words and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pfaffian.embedded.controller import Calls, Controller, Entry, Port, RateGroup
from pfaffian.kernel.text.portable import Portable, Precision, literal

LONGEST = 100
"""Largest number of characters of a name in a comment."""


def comment(words: object) -> str:
    """The words made safe for a comment of C: ASCII on one line that cannot end or begin a comment or form a trigraph."""
    safe = "".join(c if " " <= c <= "~" and c not in "*?\\" else "_" for c in str(words))
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST // 2 - 1]}..{safe[1 - LONGEST // 2 :]}"


def header(c: Controller, name: str, of: Precision, work: int, about: Sequence[str]) -> str:
    """The text of NAME.h.   work: numbers of a call's scratch memory.   about: lines that describe the law."""
    guard = f"{name.upper()}_H"
    state = [f"  {of.real} d[{len(c.state)}];", *_listed([e for _, _, e in c.state])] if c.state else []
    state += [f"  uint32_t wait[{len(c.rates)}]; /* calls until each of its rates is evaluated */"] if c.counts else []
    state = state or ["  char nothing; /* a law without memory */"]
    lines = ["/*", *[f" * {line}".rstrip() for line in about], " */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#include <stdint.h>", ""] if c.counts else []
    lines += ["typedef struct {", *_fields([port for port, _ in c.inputs], of), f"}} {name}_in;", ""]
    lines += ["typedef struct {", *state, f"}} {name}_state;", ""]
    lines += ["typedef struct {", *_fields([*c.outputs, *([c.faults] if c.faults.entries else [])], of), f"}} {name}_out;", ""]
    lines += ["/* Scratch memory of a call, which needs no initial values and keeps nothing for the next one. */",
              f"typedef struct {{ {of.real} x[{work}]; }} {name}_work;", ""]  # fmt: skip
    lines += [f"void {name}_init({name}_state *state);", ""]
    lines += [
        "/* Returns 0; i + 1 if fault i is the first that is not zero; or -1 if an output is not a finite number: then stop",
        "   the machine, and initialise the state again before the next call. */",
    ]
    lines += [f"int {name}_step({_parameters(name)});", "", "#endif", ""]
    return "\n".join(lines)


def _parameters(name: str) -> str:
    """The parameters of the function NAME_step in C."""
    return f"const {name}_in *in, {name}_state *state, {name}_work *work, {name}_out *out"


def work_size(c: Controller, programs: Portable) -> int:
    """Numbers of a call's scratch memory: the pool, the outputs of one Program, and the work array of the Programs."""
    return c.size + _width(c) + max(programs.work)


def _width(c: Controller) -> int:
    """The largest number of outputs of a Program."""
    return max(1, *[program.n_out for program in c.programs])


def _fields(ports: Sequence[Port], of: Precision) -> list[str]:
    """Fields of a struct in C, one for each port, with its entries in comments."""
    lines = []
    for port in ports:
        if port.name == "t":
            lines.append(f"  {of.real} t; /* time [s] */")
        else:
            lines += [f"  {of.real} {port.name}[{len(port.entries)}]; /* {port.what} */", *_listed(port.entries)]
    return lines or ["  char nothing;"]


def _listed(entries: Sequence[Entry]) -> list[str]:
    """A comment in C for each entry: its index, name and unit."""
    return [f"  /* {i:3} {comment(e.name)}{f' [{comment(e.unit)}]' if e.unit else ''} */" for i, e in enumerate(entries)]


def source(c: Controller, name: str, of: Precision, programs: Portable, about: Sequence[str]) -> str:
    """The text of NAME.c.   about: lines that describe the law."""
    body = "\n".join([*_init(c, name, of), "", *_step(c, name, of, programs)])
    lines = ["/*", *[f" * {line}".rstrip() for line in about], " */", f'#include "{name}.h"', "", programs.text, body, ""]
    return "\n".join(lines)


def _init(c: Controller, name: str, of: Precision) -> Iterator[str]:
    """Lines of the function NAME_init."""
    yield f"void {name}_init({name}_state *state) {{"
    for k, (_, start, _) in enumerate(c.state):
        yield f"  state->d[{k}] = {literal(of, start)};"
    for i, rate in enumerate(c.rates if c.counts else ()):
        yield f"  state->wait[{i}] = {rate.phase};"
    if not c.state and not c.counts:
        yield "  state->nothing = 0;"
    yield "}"


def _step(c: Controller, name: str, of: Precision, programs: Portable) -> Iterator[str]:
    """Lines of the function NAME_step. x is the pool, y the outputs of a Program, w the rest of the work array."""
    at = [f"*const {x} = work->x + {k}" for x, k in (("x", 0), ("y", c.size), ("w", c.size + _width(c)))]
    yield f"int {name}_step({_parameters(name)}) {{"
    yield f"  {of.real} {', '.join(at).replace(' + 0,', ',')};"
    yield "  int status = 0;"
    if not c.inputs:
        yield "  (void)in;"
    if not c.state and not c.counts:
        yield "  (void)state;"
    yield from _filled(c, of)
    first = 0
    for i, rate in enumerate(c.rates):
        update = _updated(rate, programs.names[i], first)
        yield from _when_due(i, rate, update, first, of) if c.counts else update
        first += _faults(rate)
    yield f"  {programs.names[-1]}(x, y, w);"
    yield from _stored(c)
    yield from _judged(c, of)
    yield "  return status;"
    yield "}"


def _filled(c: Controller, of: Precision) -> Iterator[str]:
    """Lines that copy constants, inputs and state into the pool."""
    for place, value, entry in c.constants:
        yield f"  x[{place}] = {literal(of, value)};{_listed([entry])[0].replace('/*   0', ' /*', 1)}"
    for port, places in c.inputs:
        for k, place in enumerate(places):
            yield f"  x[{place}] = in->{port.name}{'' if port.name == 't' else f'[{k}]'};"
    for k, (place, _, _) in enumerate(c.state):
        yield f"  x[{place}] = state->d[{k}];"


def _faults(rate: RateGroup) -> int:
    """Number of faults that the parts of a rate can raise."""
    return len(rate.program.outputs[1])


def _updated(rate: RateGroup, called: str, first: int) -> list[str]:
    """Lines that call the Program of a rate, then copy its new values into the pool and its faults to faults[first], ..."""
    new = len(rate.changed)
    lines = [f"  {called}(x, y, w);", *[f"  x[{place}] = y[{k}];" for k, place in enumerate(rate.changed)]]
    return lines + [f"  out->faults[{first + k}] = y[{new + k}];" for k in range(_faults(rate))]


def _when_due(i: int, rate: RateGroup, update: Sequence[str], first: int, of: Precision) -> Iterator[str]:
    """Lines that update rate i in the calls in which it is due; in the other calls its faults are zero."""
    yield from (f"  out->faults[{first + k}] = {literal(of, 0.0)};" for k in range(_faults(rate)))
    yield f"  if (state->wait[{i}] == 0) {{"
    yield from (f"  {line}" for line in update)
    yield f"    state->wait[{i}] = {rate.period};"
    yield "  }"
    yield f"  state->wait[{i}]--;"


def _stored(c: Controller) -> Iterator[str]:
    """Lines that copy the results of the last Program into the outputs, and the new state from the pool into the struct."""
    first = 0
    for port in c.outputs:
        yield from (f"  out->{port.name}[{k}] = y[{first + k}];" for k in range(len(port.entries)))
        first += len(port.entries)
    for k, (place, _, _) in enumerate(c.state):
        yield f"  state->d[{k}] = x[{place}];"


def _judged(c: Controller, of: Precision) -> Iterator[str]:
    """Lines that compute the status: the number of the first fault, else -1 if an output is not finite, else 0."""
    for port in c.outputs:
        yield f"  for (int i = 0; i < {len(port.entries)}; i++)"
        yield f"    if (!(out->{port.name}[i] - out->{port.name}[i] == {literal(of, 0.0)})) status = -1;"
    if c.faults.entries:
        yield f"  for (int i = {len(c.faults.entries)}; i > 0; i--)"
        yield f"    if (out->faults[i - 1] != {literal(of, 0.0)}) status = i;"


def test(c: Controller, name: str, of: Precision, calls: Calls, about: Sequence[str]) -> str:
    """The text of NAME_test.c, which repeats the recorded calls and compares all bits; any nan equals any other."""
    word, digits = of.words["word"], int(of.words["width"]) // 4
    count = len(calls.faults)
    given = _columns([calls.inputs[port.name] for port, _ in c.inputs], count)
    expected = _columns([*[calls.outputs[port.name] for port in c.outputs], calls.faults], count)
    fields = [f"in.{p.name}{'' if p.name == 't' else f'[{k}]'}" for p, _ in c.inputs for k in range(len(p.entries))]
    results = [f"out.{p.name}[{k}]" for p in (*c.outputs, c.faults) for k in range(len(p.entries))]
    macro = f"UINT{of.words['width']}_C"

    def rows(table: np.ndarray) -> Iterator[str]:
        for row in table.view(of.words["word"].removesuffix("_t")):
            yield "  {" + ", ".join(f"{macro}(0x{int(x):0{digits}x})" for x in row) + "},"

    lines = ["/*", *[f" * {line}".rstrip() for line in about], " */", "#include <stdint.h>", "#include <stdio.h>", ""]
    sizes = f"CALLS = {count}, GIVEN = {given.shape[1]}, EXPECTED = {expected.shape[1]}"
    lines += [f'#include "{name}.h"', "", f"enum {{ {sizes} }};"]
    if given.shape[1]:
        lines += [f"static const {word} given[CALLS][GIVEN] = {{", *rows(given), "};"]
    lines += [f"static const {word} expected[CALLS][EXPECTED] = {{", *rows(expected), "};"]
    if c.state:
        lines += [f"static const {word} left[1][{len(c.state)}] = {{", *rows(calls.state[None]), "};"]
    union = f"union {{ {of.real} real; {word} bits; }} u;"
    lines += ["", f"static {of.real} number({word} bits) {{ {union} u.bits = bits; return u.real; }}", ""]
    lines += [f"static int differs({of.real} found, {word} bits) {{", f"  const {of.real} x = number(bits);", f"  {union}",
              "  u.real = found;", "  return u.bits != bits && !(found != found && x != x);", "}", ""]  # fmt: skip
    lines += [
        "int main(void) {",
        f"  {name}_in in;",
        f"  {name}_state state;",
        f"  static {name}_work work;",
        f"  {name}_out out;",
    ]
    lines += ["  int wrong = 0;", f"  {name}_init(&state);", "  for (int k = 0; k < CALLS; k++) {"]
    lines += [f"    {field} = number(given[k][{i}]);" for i, field in enumerate(fields)] or ["    in.nothing = 0;"]
    lines += [f"    (void){name}_step(&in, &state, &work, &out);"]
    lines += [f"    wrong += differs({field}, expected[k][{i}]);" for i, field in enumerate(results)]
    lines += ["  }"]
    lines += [f"  wrong += differs(state.d[{i}], left[0][{i}]);" for i in range(len(c.state))]
    lines += [
        f'  printf("{name}: %d numbers of %d calls, %d of them wrong\\n", CALLS * EXPECTED + {len(c.state)}, CALLS, wrong);'
    ]
    lines += ["  return wrong != 0;", "}", ""]
    return "\n".join(lines)


def _columns(arrays: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The arrays (count, n) side by side in one contiguous array."""
    return np.ascontiguousarray(np.hstack([a.reshape(count, -1) for a in arrays])) if arrays else np.zeros((count, 0))
