"""The kinematics of an open chain as LaTeX: graph, home, twists, products of exponentials, Jacobians. [chhabra14 ch. 2]

Names, which come from files, stand only in tables, escaped. Formulas contain only symbols made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pfaffian.model.body import WORLD
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.plain import text
from pfaffian.terms.symbolic import SymbolicKinematics, SymPy, flat, need_sympy, symbolic_kinematics

DIGITS = 6
"""Significant digits of a printed number."""

EXPLICIT = 500
"""A matrix of at most this many operations is written out; a longer one stays a product."""

NAME_LENGTH = 60
"""Largest number of characters of a name."""

LINE_LENGTH = 200
"""Characters of LaTeX after which a sum continues on a new line."""

_FLAT_ARGUMENT = re.compile(r"\{\\left\(((?:(?!\\left|\\right|\\frac|\\text).)*) \\right\)\}")
"""Argument of a function in brackets that grow: without fractions and brackets in it, plain ones are as high."""

_ESCAPED = str.maketrans(
    {c: rf"\{c}" for c in "{}$&#_%"}
    | {c: rf"\text{name}{{}}" for c, name in {"\\": "backslash", "^": "asciicircum", "~": "asciitilde"}.items()}
    | {c: rf"\text{name}{{}}" for c, name in {"'": "quotesingle", "`": "asciigrave"}.items()}
    | {c: f"{{{c}}}" for c in "-<>,"}
)
"""Character -> its LaTeX in typewriter; characters that could form ligatures are in braces."""

HEAD = r"""\documentclass[a4paper]{article}
\usepackage{amsmath,graphicx,longtable,textcomp}
\usepackage[margin=2cm]{geometry}
\setcounter{MaxMatrixCols}{200}
\allowdisplaybreaks
\newsavebox{\formula}
\newcommand{\fit}[1]{\sbox{\formula}{$\displaystyle #1$}%
  \ifdim\wd\formula>\linewidth\resizebox{\linewidth}{!}{\usebox{\formula}}\else\usebox{\formula}\fi}
\begin{document}
"""
"""Beginning of the document; its macro `fit` scales down formulas that are too wide."""


def kinematics_latex(m: Mechanism) -> str:
    r"""Write the kinematics of an open chain as a LaTeX document, for pdflatex; its parts can be cut out. Needs SymPy.

    It contains the graph matrix GM, the path matrix Ph, poses at home, joint twists tau and their exponentials; then for each
    extremity its pose as a product of exponentials and its Jacobian, written out where they are short. Numbers are rounded to
    six digits; parameters stay symbols. [chhabra14 ch. 2]

    Args:
        m: the mechanism, an open chain.
    Returns:
        the text of the document.
    Raises ModelError: the chain is closed (the message says by what), has an edge, or has coordinates outside of joints; SymPy
    is not installed.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import screws
        >>> m = pf.mechanism("arm", [pf.body("rod", 1.0)], [pf.joint("hinge", "revolute", "world", "rod")])
        >>> text = screws.kinematics_latex(m)
        >>> print(next(line for line in text.split("\n") if r"\tau_{1} =" in line))
        \[\fit{\tau_{1} = \left(\begin{matrix}0\\0\\0\\0\\0\\1\end{matrix}\right)}\]
    """
    k = symbolic_kinematics(as_mechanism(m))
    parts = [_title(m), *_bodies(k), *_parameters(k), *_home(k), *_factors(k), *_forward(k), *_jacobians(k)]
    return HEAD + "\n\n".join(parts) + "\n\\end{document}\n"


def escaped(name: object) -> str:
    """A name from a file, in typewriter: TeX's special characters escaped, characters beyond ASCII as their codes."""
    plain = text(name, NAME_LENGTH).encode("ascii", "backslashreplace").decode("ascii")
    return rf"\texttt{{{plain.translate(_ESCAPED)}}}"


def printed(x: SymPy, k: SymbolicKinematics) -> str:
    """LaTeX of an expression or a matrix in the symbols of a chain, with numbers rounded."""
    names = {s: _index(s.name) for s in (*k.s, *k.p, *k.norms)}
    return written(rounded(x), names)


def written(x: SymPy, names: Mapping[SymPy, str]) -> str:
    """LaTeX of an expression or a matrix.   names: symbol -> its LaTeX."""
    found = need_sympy().latex(x, symbol_names=names, mat_str="matrix", mat_delim="(", fold_func_brackets=True)
    return _FLAT_ARGUMENT.sub(r"(\1)", found)


def rounded(x: SymPy) -> SymPy:
    """An expression or a matrix with numbers as decimals of DIGITS digits; halves and fractions that no decimal equals stay."""
    sp = need_sympy()

    def decimal(number: Any) -> Any:
        finite = number.is_Float or (number.q != 2 and not set(sp.factorint(number.q)) - {2, 5} and number.q != 1)
        return sp.Float(number, DIGITS) if finite else number

    return x.xreplace({number: decimal(number) for number in x.atoms(sp.Float) | x.atoms(sp.Rational)})


def _index(name: str) -> str:
    """LaTeX of a symbol's name: s_2_1 with both numbers as subscripts, theta_3 with the Greek letter."""
    letter, *numbers = name.replace("theta", "\\theta").split("_")
    return f"{letter}_{{{','.join(numbers)}}}"


def _display(formulas: Iterable[str], beside: int = 1) -> str:
    """Displayed formulas, `beside` of them on each line."""
    all_formulas = list(formulas)
    lines = [r",\quad ".join(all_formulas[i : i + beside]) for i in range(0, len(all_formulas), beside)]
    return "\n".join(rf"\[\fit{{{line}}}\]" for line in lines)


def _columns(letters: Iterable[str], M: SymPy, k: SymbolicKinematics) -> str:
    """LaTeX of a wide matrix, column by column, with long sums broken over several lines."""
    columns = [r" \\ ".join(broken(e, k) for e in M[:, i]) for i in range(M.shape[1])]
    return _display(rf"{x} = \begin{{pmatrix}}{c}\end{{pmatrix}}" for x, c in zip(letters, columns, strict=True))


def broken(e: SymPy, k: SymbolicKinematics) -> str:
    """LaTeX of one entry, a long sum broken into lines of about LINE_LENGTH characters."""
    words = printed(e, k)
    if len(words) <= LINE_LENGTH:
        return words
    lines = [""]
    for term in flat(e).as_ordered_terms():
        word = printed(term, k)
        if len(lines[-1]) > LINE_LENGTH:
            lines.append("")
        lines[-1] += word if word.startswith("-") or lines == [""] else f" + {word}"
    return r"\begin{aligned}" + r" \\ ".join(f"&{line}" for line in lines) + r"\end{aligned}"


def _table(columns: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join(
        [rf"\begin{{longtable}}{{{columns}}}", " & ".join(header) + r" \\ \hline", r"\endhead", *lines, r"\end{longtable}"]
    )


def _title(m: Mechanism) -> str:
    return "\n".join(
        [
            rf"\section*{{Kinematics of {escaped(m.name)}}}",
            r"Twists are $(v, \omega)$, linear part first, in the world frame; lengths in m, angles in rad.",
            rf"Numbers are rounded to {DIGITS} digits.",
        ]
    )


def _bodies(k: SymbolicKinematics) -> Iterator[str]:
    """The section on bodies and joints, with the graph and path matrices."""
    m, g = k.expressions.mechanism, k.graph
    number = {b: str(i) for i, b in enumerate(g.bodies)}
    rows = [
        (f"${i}$", escaped(j.name), escaped(j.kind.name), f"$B_{{{number[j.parent]}}}$", f"$B_{{{i}}}$", escaped(j.child))
        for i, j in enumerate(m.joints, 1)
    ]
    yield r"\subsection*{Bodies and joints}" + "\n" + r"$B_0$ is the world."
    yield _table("rlllll", ("joint", "name", "kind", "from", "to", "body"), rows)
    ends = ", ".join(f"$B_{{{number[b]}}}$" for b in g.extremities)
    yield rf"Graph and path matrix; the extremities are {ends}."
    yield _display([rf"\mathrm{{GM}} = {_whole(g.GM)}", rf"\mathrm{{Ph}} = {_whole(g.Ph)}"])


def _whole(M: np.ndarray) -> str:
    """LaTeX of a matrix of integers."""
    return r"\begin{pmatrix}" + r" \\ ".join(" & ".join(map(str, row)) for row in M.tolist()) + r"\end{pmatrix}"


def _parameters(k: SymbolicKinematics) -> Iterator[str]:
    """The section on screw parameters, joints that follow others, and parameters of the machine."""
    E, m = k.expressions, k.expressions.mechanism
    rows = [(f"${_index(s.name)}$", escaped(n), u) for s, n, u in zip(k.s, E.s_names, E.s_units, strict=True)]
    yield r"\subsection*{Screw parameters}" + "\nAll are zero at home."
    yield _table("lll", ("symbol", "name", "unit"), rows)
    followers = [(f"$s_{{{label}}} = {printed(k.parameters_of(i)[0], k)}$", escaped(f.joint.name), f.subgroup.s_units[0])
                 for i, (f, label) in enumerate(zip(E.factors, k.labels, strict=True)) if f.joint.mimic]  # fmt: skip
    if followers:
        yield "Joints that follow others:" + "\n" + _table("lll", ("parameter", "joint", "unit"), followers)
    if m.parameters:
        values = [(f"${_index(s.name)}$", escaped(p.name), f"{p.default:.{DIGITS}g}", escaped(p.unit))
                  for s, p in zip(k.p, m.parameters, strict=True)]  # fmt: skip
        yield "Parameters of the machine:" + "\n" + _table("llrl", ("symbol", "name", "default", "unit"), values)


def _home(k: SymbolicKinematics) -> Iterator[str]:
    """The section on home: poses of the bodies and twists of the joints."""
    yield r"\subsection*{Home}"
    yield "Poses of the bodies, and twists of the joints that move."
    yield _display((rf"H_{{{i}}} = {printed(k.home(b), k)}" for i, b in enumerate(k.graph.bodies) if b != WORLD), 2)
    yield _display((rf"\tau_{{{label}}} = {printed(k.tau(i), k)}" for i, label in enumerate(k.labels)), 4)


def _factors(k: SymbolicKinematics) -> Iterator[str]:
    """The section on the exponential of each joint."""
    yield r"\subsection*{Exponentials}"
    turning = [i for i in range(len(k.labels)) if k.norm(i) is not None]
    if turning:
        yield (
            r"With $\xi = \tau s = (w, \omega)$ and $\theta = |\omega|$," + "\n"
            r"\[e^{\hat\xi} = \begin{pmatrix} R & p \\ 0 & 1\end{pmatrix},\quad R = 1 + "
            r"\tfrac{\sin\theta}{\theta}\,\hat\omega + "
            r"\tfrac{1 - \cos\theta}{\theta^2}\,\hat\omega^2,\quad p = \tfrac{1}{\theta^2}\left((1 - R)\,\hat\omega w + "
            r"\omega\,\omega^T w\right);\]" + "\n" + r"where $\theta = 0$, $R = 1$ and $p = w$."
        )
    for i, label in enumerate(k.labels):
        if i in turning:
            yield _display([rf"\theta_{{{label}}} = {printed(k.norms[k.norm(i)], k)}"])
        else:
            yield _display([rf"e^{{\hat\tau_{{{label}}} s_{{{label}}}}} = {printed(k.exponential(i), k)}"])


def _forward(k: SymbolicKinematics) -> Iterator[str]:
    """The section on poses: for each extremity its product of exponentials, and the matrix if that is short."""
    yield r"\subsection*{Forward kinematics}"
    for body in k.graph.extremities:
        path, i = _path(k, body), k.graph.bodies.index(body)
        product = "".join(rf"e^{{\hat\tau_{{{k.labels[j]}}} s_{{{k.labels[j]}}}}}\," for j in path)
        formula = rf"H_{{{i}}}(s) = {product}H_{{{i}}}"
        X = k.pose(body) if _opens(k, path) else None
        if X is None or _operations(X) > EXPLICIT:
            yield _display([formula])
        else:
            yield _display([rf"{formula} = \begin{{pmatrix}} x & y & z & p \\ 0 & 0 & 0 & 1 \end{{pmatrix}}"])
            yield _columns("xyzp", X[:3, :], k)


def _jacobians(k: SymbolicKinematics) -> Iterator[str]:
    """The section on Jacobians: for each extremity the columns, written out if they are short."""
    yield r"\subsection*{Jacobians}"
    yield (
        r"The twist of a body is $(v, \omega) = J \dot s$ with blocks" + "\n"
        r"\[J_j = \mathrm{Ad}_{e^{\hat\tau_1 s_1} \cdots\, e^{\hat\tau_{j-1} s_{j-1}}} \Omega_j \tau_j,\quad "
        r"\Omega_j = \int_0^1 e^{x\,\mathrm{ad}_{\tau_j s_j}}\,dx\]" + "\n"
        r"of the joints on its way from the world; $\Omega_j \tau_j = \tau_j$ where the motions of a joint commute."
    )
    bodies: dict[tuple[int, ...], list[str]] = {}
    for body in k.graph.extremities:
        bodies.setdefault(tuple(_path(k, body)), []).append(body)
    for path, moved in bodies.items():
        columns = [c for c in range(len(k.s)) if any(not k.expressions.factors[i].ratios[:, c].is_zero() for i in path)]
        if columns:
            names = [_index(k.s[c].name) for c in columns]
            on = ", ".join(f"$B_{{{k.graph.bodies.index(b)}}}$" for b in moved)
            J = k.jacobian(moved[0])[:, columns] if _opens(k, path) else None
            short = J is not None and _operations(J) <= EXPLICIT
            end = ":" if short else "; written out they are long."
            yield rf"Columns of {on}, by {', '.join(f'${n}$' for n in names)}{end}"
            if short:
                yield _columns((f"J_{{{n}}}" for n in names), J, k)
    rolling = [(i, j.name) for i, j in enumerate(k.expressions.mechanism.joints, 1) if j.distribution is not None]
    if rolling:
        yield r"Where speeds $\bar v_j$ are left, $\dot s_j = \Sigma_j \bar v_j$ and the block of $\bar J$ is $J_j \Sigma_j$:"
        yield _display([rf"\Sigma_{{{i}}} = {printed(k.speeds(name), k)}" for i, name in rolling])


def _opens(k: SymbolicKinematics, path: Sequence[int]) -> bool:
    """Whether the pose at the end of a path can be short: no joint on it turns about a changing axis, and no frame is long."""
    return bool(path) and all(k.norm(i) is None for i in path) and all(_operations(k.frames(i)[1]) <= EXPLICIT for i in path)


def _operations(x: SymPy) -> int:
    """Number of operations of a matrix."""
    return sum(e.count_ops() for e in x)


def _path(k: SymbolicKinematics, body: str) -> list[int]:
    """Indices of the factors on the path from the world to a body."""
    factor, path = k.expressions.place(body)[0], list[int]()
    while factor >= 0:
        path.append(factor)
        factor = k.expressions.factors[factor].before
    return path[::-1]
