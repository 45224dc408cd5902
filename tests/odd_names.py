"""Three hundred odd names: valid, because printable, but with a meaning for whatever may show, store or interpret them."""

from __future__ import annotations

import random

MEANINGS = {
    "markdown": [
        "![x](https://example.org/x.png)", "![x](/etc/hostname)", "[x](javascript:alert(1))",
        "<https://example.org>", "# x", "- x", "1. x", "> x", "| a | b |", "```", "`x`", "**x**", "__x__", "~~x~~",
        "[x]: https://example.org", "---", "    x", "https://example.org/x", "www.example.org", "{alert(1)}",
        "![x][y]", "&#33;[x](y)", "\\![x](y)", "<!-- x -->", "$$x$$",
    ],
    "HTML": [
        "</script>", "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "&lt;b&gt;", '"\'><b>',
        "<svg onload=alert(1)>", "]]>", "<!--", "&amp;", "&#x3c;", "' autofocus onfocus='x", "</title>",
        "<style>*{display:none}</style>", "@DATA@", "${1}",
    ],
    "TeX": [
        "$x$", "$\\frac{$", "$$", "\\$x$", "\\\\$x$", "\\input{/etc/passwd}", "\\end{document}", "%x", "x_{1}",
        "x^2", "#1", "a&b", "~", "{", "}", "\\", "^^5c", "--", "<<", "$a$ $b$", "$", "$\\mathdefault{x}$",
        "\\verb|x|", "_hidden", "__", "a\\$b$c",
    ],
    "terminals": [
        "\\x1b[31m", "\\033]0;x\\007", "^[[2J", "%n%s", "%(name)s", "{0}", "{name!r}", "\\n", "\\r\\n", "\\u202e",
        "\\N{BELL}",
    ],
    "paths": [
        ".", "..", "../../x", "/etc/passwd", "a/b", "a\\b", "C:\\x", "CON", "nul.txt", "~root", "$HOME", "x.nc",
        "x.png", "-rf", "*", "?", "a:b", "a|b", ";ls", "`ls`", "$(ls)", '"); system("', ".hidden", "x.", "x ", " x",
        "file://x", "a//b", "\\\\x\\y",
    ],
    "code": [
        "class", "None", "True", "lambda", "import os", "__class__", "a.b", "a[0]", "a-b", "a b", "1", "0x10", "1e3",
        "nan", "inf", "-1", "int", "double", "void", "return", "NULL", "/*", "*/", "//", '"', "'", "??/", "#define",
        "SELECT", "x = 1", "@x", "a,b", "(", ")",
    ],
    "formats": [
        "yes", "null", "~x", "- a", "a: b", "&a", "*a", "!x", "{a: b}", "[a]", '"a"', "'a'", "<a/>", "<?xml",
        "<![CDATA[", "%YAML", "a=b", "time", "run", "coordinate", "q", "v", "u", "axis", "status", "off", "total",
        "still camera", "block_digest", "row",
    ],
    "letters": [
        "日本", "Größe", "عربى", "ελ", "é", "🚀", "ﬁ", "İ", "ß", "Ω", "ﷺ", "“x”", "x…", "Å", "½", "x" * 128, "é" * 128,
        "$" * 128, "a" * 59 + "$", "a" * 14 + "$x$", "a" * 14 + "$" + "b" * 13 + "$", "!" * 100, "a b " * 20 + "a",
    ],
}  # fmt: skip
"""What may take the names for something else -> such names."""

COUNT = 300


def odd_names() -> list[str]:
    """The names of all meanings, and pairs of them joined, up to COUNT different ones; the same ones at every call."""
    names = list(dict.fromkeys(name for several in MEANINGS.values() for name in several))
    draw = random.Random(33)
    while len(names) < COUNT:
        pair = draw.choice(names) + draw.choice(["", " ", "_", ".", "/"]) + draw.choice(names)
        if len(pair) <= 128 and pair not in names:
            names.append(pair)
    return names[:COUNT]
