"""Tables of text in Markdown and LaTeX; the content of a cell stays in its cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openloop.support.escaping import on_one_line

Line = Sequence[str]

# What Markdown would read as something else: the edges of cells, links, code, emphasis, HTML and formulas.
MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|~#$&"})
# A bracket or a star at the beginning of a line would belong to the command before it; a quote may be a shorthand.
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {c: f"{{{c}}}" for c in "[]*`'"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': r"\char34{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "…": r"\ldots{}", "−": "$-$"}
)


def in_markdown(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    return on_one_line(text).translate(MARKDOWN)


def markdown_table(header: Line, rows: Iterable[Line]) -> str:
    """A pipe table, as GitHub and pandoc read it."""
    lines = [[in_markdown(cell) for cell in line] for line in (header, *rows)]
    lines.insert(1, ["---"] * len(header))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def latex_table(header: Line, rows: Iterable[Line]) -> str:
    """A tabular with the rules of the package booktabs, which the preamble must load."""
    head, *body = (" & ".join(on_one_line(cell).translate(LATEX) for cell in line) + r" \\" for line in (header, *rows))
    begin = rf"\begin{{tabular}}{{{'l' * len(header)}}}"
    return "\n".join([begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]) + "\n"
