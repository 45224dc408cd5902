"""Arithmetic in model files: "l/2", "m*l^2/12", "sin(pi/3)". Nothing is ever evaluated as code; the grammar is

sum     = product (("+" | "-") product)*
product = sign (("*" | "/") sign)*
sign    = ("+" | "-")? power
power   = atom (("^" | "**") sign)?
atom    = number | name | function "(" sum ")" | "(" sum ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import UNSIGNED, number, printable

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""Form of the names of parameters that expressions can use."""

CONSTANTS = {"pi": math.pi}

FUNCTIONS: dict[str, Callable[[ca.SX], ca.SX]] = {
    "sin": ca.sin, "cos": ca.cos, "tan": ca.tan, "asin": ca.asin, "acos": ca.acos, "atan": ca.atan, "tanh": ca.tanh,
    "exp": ca.exp, "log": ca.log, "sqrt": ca.sqrt, "abs": ca.fabs,
}  # fmt: skip

WORD = re.compile(rf"{NAME.pattern}(\.[A-Za-z0-9_]+)*'?")
"""Form of all names, also those of a coordinate `base.x` and of a rate `hinge'`."""

_TOKEN = re.compile(rf"(?P<number>{UNSIGNED})|({WORD.pattern})|(\*\*|[-+*/^()])")
_OCTAL = re.compile(r"0[0-9]")
_PLAIN = re.compile(rf"[+-]?(?!{_OCTAL.pattern}){UNSIGNED}")
LONGEST = 1000
_DEEPEST = 32


def words(texts: Iterable[str]) -> list[str]:
    """The words in expressions: names, functions and constants, each once."""
    return list(dict.fromkeys(found[0] for text in texts for found in WORD.finditer(text)))


def expression(text: str, names: Mapping[str, ca.SX], where: str, listed: Iterable[str] | None = None) -> ca.SX:
    """The (1, 1) SX of an arithmetic expression.

    Args:
        text: the expression.
        names: name -> its value or symbol; `pi` is always known.
        where: the place in the file, for errors.
        listed: names to list in the error about an unknown one; those in `names` by default.
    Raises ModelError: a syntax error, an unknown name, a constant that is not finite.
    """
    if len(text) > LONGEST:
        raise ModelError(f"{where}: the expression has {len(text)} characters, more than {LONGEST}; shorten it")
    value = _Reader(text, names, where, names if listed is None else listed).whole()
    if value.is_constant() and not math.isfinite(float(value)):
        raise ModelError(f"{where}: {printable(text)} is not finite; it divides by zero or overflows")
    return value


def plain(text: str) -> float | None:
    """The value of an expression that is a single finite number, None for any other. It takes a tenth of the time."""
    value = float(text) if len(text) <= LONGEST and _PLAIN.fullmatch(text) else math.inf
    return value + 0.0 if math.isfinite(value) else None  # no negative zero


class _Reader:
    """Recursive descent over the tokens of one expression, with one method for each rule of the grammar."""

    def __init__(self, text: str, names: Mapping[str, ca.SX], where: str, listed: Iterable[str]) -> None:
        self.text, self.names, self.where, self.listed = text, names, where, listed
        self.tokens = self.split()
        self.at = 0
        self.depth = 0

    def split(self) -> list[str]:
        """The tokens of the text. Raises ModelError: a character or a form of number is not allowed."""
        tokens, i = [], 0
        while i < len(self.text):
            if self.text[i] in " \t\r\n":
                i += 1
                continue
            found = _TOKEN.match(self.text, i)
            if not found:
                self.fail(f"the character {printable(self.text[i])} is not allowed in it")
            i = found.end()
            if found["number"] and (_OCTAL.match(found[0]) or re.match(r"[\w.]", self.text[i : i + 1])):
                self.fail("write plain decimal numbers: no leading zeros, underscores, hexadecimals or units")
            tokens.append(found[0])
        return tokens

    def fail(self, reason: str) -> NoReturn:
        raise ModelError(f"{self.where}: {printable(self.text)} is not a number or an expression of parameters: {reason}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def whole(self) -> ca.SX:
        value = self.sum()
        if self.peek():
            self.fail(f"{printable(self.peek())} is not expected here")
        return value

    def sum(self) -> ca.SX:
        value = self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> ca.SX:
        value = self.sign()
        while self.peek() in ("*", "/"):
            value = value * self.sign() if self.take() == "*" else value / self.sign()
        return value

    def sign(self) -> ca.SX:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"it has more than {_DEEPEST} nested brackets or powers")
        negative = self.peek() in ("+", "-") and self.take() == "-"
        value = self.power()
        self.depth -= 1
        return -value if negative else value

    def power(self) -> ca.SX:
        value = self.atom()
        if self.peek() in ("^", "**"):
            self.take()
            value = value ** self.sign()
        return value

    def atom(self) -> ca.SX:
        """The value of what comes next: a bracket, a number, a call of a function, a parameter or a constant."""
        word = self.take()
        if word == "(":
            value = self.sum()
            if self.take() != ")":
                self.fail("a bracket is not closed")
            return value
        if word[:1] in tuple("0123456789."):
            return ca.SX(number(word, self.where))
        if word in FUNCTIONS and self.peek() == "(":
            return FUNCTIONS[word](self.atom())
        if word in self.names:
            return self.names[word]
        if word in CONSTANTS:
            return ca.SX(CONSTANTS[word])
        if WORD.fullmatch(word):
            known = ", ".join([*self.listed, *CONSTANTS][:20])
            self.fail(f"there is no parameter {printable(word)}; the known names are {known}")
        self.fail(f"a number or a name is missing before {printable(word)}" if word else "it ends too early")
