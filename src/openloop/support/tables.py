"""Tables of text in Markdown and LaTeX; whatever a cell holds, it stays in its cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Line = Sequence[str]

# What Markdown would read as something else: the edges of cells, links, code, emphasis and HTML.
MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|~#"} | {"\r": " ", "\n": " "})
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "…": r"\ldots{}", "−": "$-$", "\r": " ", "\n": " "}
)


def markdown_table(header: Line, rows: Iterable[Line]) -> str:
    """A pipe table, as GitHub and pandoc read it."""
    lines = [[cell.translate(MARKDOWN) for cell in line] for line in (header, *rows)]
    lines.insert(1, ["---"] * len(header))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def latex_table(header: Line, rows: Iterable[Line]) -> str:
    """A tabular with the rules of the package booktabs, which the preamble must load."""
    head, *body = (" & ".join(cell.translate(LATEX) for cell in line) + r" \\" for line in (header, *rows))
    begin = rf"\begin{{tabular}}{{{'l' * len(header)}}}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]) + "\n"
