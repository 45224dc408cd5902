"""The kinematics as LaTeX, checked against TeX's rules without running TeX."""

from __future__ import annotations

import re

import pytest
import sympy as sp

import pfaffian as pf
from pfaffian.viewer.latex import broken, escaped, kinematics_latex, printed

WORDS = """
    documentclass usepackage setcounter allowdisplaybreaks newsavebox newcommand formula fit sbox displaystyle ifdim wd
    linewidth resizebox usebox else fi begin end section subsection texttt omega hline endhead mathrm quad hat tau theta tfrac
    frac left right cdots cdot dot Ad Omega int ad bar Sigma cos sin tan sqrt xi textbackslash textasciicircum textasciitilde
    textquotesingle textasciigrave
"""
KNOWN = set(WORDS.split())
HOSTILE = "\\input{x}$&#_^~%{}'`\"<<--,, \u65e5"


def machine(name: str = "b") -> pf.Mechanism:
    l = pf.Parameter(f"{name} length", 0.5, "m")
    bodies = [pf.body(f"{name}{i}", 1.0, inertia=0.1) for i in range(5)]
    joints = [
        pf.joint(f"{name} fixed", "fixed", "world", f"{name}0", placement=(0, 0, l)),
        pf.joint(f"{name} hinge", "revolute", f"{name}0", f"{name}1", axis=(0, 1, 0)),
        pf.joint(f"{name} follows", "prismatic", f"{name}1", f"{name}2", mimic=pf.mimic({f"{name} hinge": 0.25})),
        pf.joint(f"{name} ball", "spherical", f"{name}1", f"{name}3", placement=(l, 0, 0)),
        pf.joint(f"{name} wheels", "planar", f"{name}0", f"{name}4", distribution=["vx", "wz"]),
    ]
    return pf.mechanism(name, bodies, joints, parameters=[l])


def grammar(source: str) -> None:
    """Check that braces, environments, formulas and \\left are paired, commands are known, and table rows are complete."""
    stack: list[str] = []
    for token in re.finditer(r"\\([A-Za-z]+)\s*(?:\{([a-z*]+)\})?|\\.|[{}$]|%", source, re.S):
        word, command, argument = token.group(), token.group(1), token.group(2)
        if command in ("begin", "left") or word in ("{", r"\["):
            stack.append(argument or word[:2])
        elif command in ("end", "right") or word in ("}", r"\]"):
            opened = stack.pop()
            expected = argument if command == "end" else {"}": "{", r"\]": r"\["}.get(word, r"\l")
            assert opened == expected, source[max(0, token.start() - 200) : token.end()]
        elif word == "$":
            stack.pop() if stack[-1:] == ["$"] else stack.append("$")
        elif word == "%":
            assert source[token.end()] == "\n" and token.start() < source.index(r"\begin{document}")
        assert command is None or command in KNOWN, word
    assert not stack
    for table in re.findall(r"\\begin\{longtable\}\{(\w+)\}(.*?)\\end\{longtable\}", source, re.S):
        for row in re.findall(r"^(.*) \\\\", table[1], re.M):
            assert len(re.findall(r"(?<!\\)&", row)) == len(table[0]) - 1


@pytest.mark.parametrize("name", ["b", HOSTILE], ids=["plain", "hostile"])
def test_grammar(name):
    source = kinematics_latex(machine(name))
    grammar(source)
    assert source.isascii() and "\x1b" not in source and source.count(r"\begin{document}") == 1
    for words in (r"\mathrm{GM} = \begin{pmatrix}-1 & 1", r"s_{3} = 0.25 s_{2}", r"\theta_{4} = \sqrt", r"\Sigma_{5} =", "0.5"):
        assert words in source


TABLES = {
    "rlllll": r"""
joint & name & kind & from & to & body \\ \hline
\endhead
$1$ & \texttt{b fixed} & \texttt{fixed} & $B_{0}$ & $B_{1}$ & \texttt{b0} \\
$2$ & \texttt{b hinge} & \texttt{revolute} & $B_{1}$ & $B_{2}$ & \texttt{b1} \\
$3$ & \texttt{b follows} & \texttt{prismatic} & $B_{2}$ & $B_{3}$ & \texttt{b2} \\
$4$ & \texttt{b ball} & \texttt{spherical} & $B_{2}$ & $B_{4}$ & \texttt{b3} \\
$5$ & \texttt{b wheels} & \texttt{planar} & $B_{1}$ & $B_{5}$ & \texttt{b4} \\
""",
    "lll": r"""
symbol & name & unit \\ \hline
\endhead
$s_{2}$ & \texttt{b hinge} & rad \\
$s_{4,1}$ & \texttt{b ball.rx} & rad \\
$s_{4,2}$ & \texttt{b ball.ry} & rad \\
$s_{4,3}$ & \texttt{b ball.rz} & rad \\
$s_{5,1}$ & \texttt{b wheels.x} & m \\
$s_{5,2}$ & \texttt{b wheels.y} & m \\
$s_{5,3}$ & \texttt{b wheels.angle} & rad \\
""",
    "lll followers": r"""
parameter & joint & unit \\ \hline
\endhead
$s_{3} = 0.25 s_{2}$ & \texttt{b follows} & m \\
""",
    "llrl": r"""
symbol & name & default & unit \\ \hline
\endhead
$p_{1}$ & \texttt{b length} & 0.5 & \texttt{m} \\
""",
}
SENTENCES = (
    r"\section*{Kinematics of \texttt{b}}",
    "Numbers are rounded to 6 digits.",
    "$B_0$ is the world.",
    "the extremities are $B_{3}$, $B_{4}$, $B_{5}$.",
    "Joints that follow others:\n",
    "Parameters of the machine:\n",
    r"\[\fit{H_{3}(s) = e^{\hat\tau_{2} s_{2}}\,e^{\hat\tau_{3} s_{3}}\,H_{3} = \begin{pmatrix} x & y & z & p",
    r"\[\fit{p = \begin{pmatrix}0.25 s_{2} \sin {s_{2}} \\ 0 \\ p_{1} + 0.25 s_{2} \cos {s_{2}}\end{pmatrix}}\]",
    r"\[\fit{H_{4}(s) = e^{\hat\tau_{2} s_{2}}\,e^{\hat\tau_{4} s_{4}}\,H_{4}}\]",
    "Columns of $B_{3}$, by $s_{2}$:",
    "by $s_{2}$, $s_{4,1}$, $s_{4,2}$, $s_{4,3}$; written out they are long.",
    r"\[\fit{\theta_{4} = \sqrt{s_{4,1}^{2} + s_{4,2}^{2} + s_{4,3}^{2}}}\]",
    r"\[\fit{e^{\hat\tau_{3} s_{3}} = \left(\begin{matrix}1 & 0 & 0 & 0\\0 & 1 & 0 & 0\\0 & 0 & 1 & 0.25 s_{2}\\",
)


def test_contents_of_the_document():
    """It numbers bodies and joints, lists names and units of symbols, and writes short formulas out."""
    source = kinematics_latex(machine())
    tables = re.findall(r"\\begin\{longtable\}\{(\w+)\}(.*?)\\end\{longtable\}", source, re.S)
    assert tables == [(columns.split()[0], rows) for columns, rows in TABLES.items()]
    for words in SENTENCES:
        assert source.count(words) == 1, words
    post, arm = pf.joint("post", "fixed", "world", "post"), pf.joint("arm", "revolute", "world", "arm")
    alone = kinematics_latex(pf.mechanism("still", [pf.body(n, 1.0, inertia=0.1) for n in ("post", "arm")], [post, arm]))
    assert r"\[\fit{H_{1}(s) = H_{1}}\]" in alone and "Joints that follow" not in alone and "Parameters of" not in alone


def test_names_are_only_in_tables():
    plain, hostile = (kinematics_latex(machine(n)) for n in ("b", HOSTILE))

    def formulas(source: str) -> list[str]:
        return re.findall(r"\\\[.*?\\\]", source, re.S)

    assert formulas(plain) == formulas(hostile) and len(formulas(plain)) > 12


def test_escaped_characters():
    assert escaped("a_b-c") == r"\texttt{a\_b{-}c}"
    words = ["backslash", "asciicircum", "asciitilde", "quotesingle", "asciigrave"]
    assert escaped("\\^~'`") == r"\texttt{" + "".join(rf"\text{word}{{}}" for word in words) + "}"
    assert escaped("{}$&#_%<>,-") == r"\texttt{\{\}\$\&\#\_\%{<}{>}{,}{-}}"
    assert escaped("\\end{x}") == r"\texttt{\textbackslash{}end\{x\}}"
    assert len(escaped("x" * 500)) < 80


def test_formulas_of_the_arm():
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("arm", "hand")]
    joints = [
        pf.joint("one", "revolute", "world", "arm"),
        pf.joint("two", "revolute", "arm", "hand", placement=(0.333333333, 0, 0)),
    ]
    source = kinematics_latex(pf.mechanism("arm", bodies, joints))
    grammar(source)
    for words in (
        r"H_{2}(s) = e^{\hat\tau_{1} s_{1}}\,e^{\hat\tau_{2} s_{2}}\,H_{2}",
        r"x = \begin{pmatrix}\cos(s_{1} + s_{2})",
        r"\frac{\cos {s_{1}}}{3}",  # 0.333333333 is read as 1/3
        r"J_{s_{2}} = \begin{pmatrix}\frac{\sin {s_{1}}}{3}",
        r"\tau_{2} = \left(\begin{matrix}0\\- \frac{1}{3}",
        "\nsymbol & name & unit \\\\ \\hline",
    ):
        assert words in source, words
    assert [f"H_{{{i}}} =" in source for i in range(4)] == [False, True, True, False]
    assert source.count(r"\[\fit{J_") == 2 and "written out" not in source and "follow" not in source


def test_long_sums_are_broken_into_lines():
    k = pf.screws.symbolic_kinematics(machine())
    s, p = k.s[0], k.p[0]
    terms = [p**n * sp.cos(n * s) / 3 for n in range(1, 12)]
    lines = re.findall(r"&(.*?)(?= \\\\ |\\end)", broken(sum(terms), k))
    assert len(lines) > 1 and all(len(line) < 300 for line in lines)
    assert all(line.startswith((" + ", "-")) for line in lines[1:])
    assert "".join(lines) == printed(sp.expand(sum(terms)), k)
    assert broken(terms[0], k) == printed(terms[0], k)


def test_long_products_are_not_multiplied_out():
    kinds = ["revolute"] * 7
    at = pf.pose((0.1, 0.2, 0.3), rpy=(0.4, 0.5, 0.6))
    bodies = [pf.body(f"b{i}", 1.0, inertia=0.1) for i in range(len(kinds))]
    joints = [pf.joint(f"j{i}", k, f"b{i - 1}" if i else "world", f"b{i}", placement=at) for i, k in enumerate(kinds)]
    source = kinematics_latex(pf.mechanism("askew", bodies, joints))
    grammar(source)
    assert r"e^{\hat\tau_{7} s_{7}}\,H_{7}}\]" in source and "written out they are long" in source
