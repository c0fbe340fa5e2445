"""Tables of text in Markdown, LaTeX and HTML; the content of a cell stays in its cell."""

from __future__ import annotations

import html
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


def html_table(caption: str, columns: Iterable[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table that sets no colour, so that a dark notebook shows it, too; cells are HTML, all else is text."""
    left = ' style="text-align:left"'
    head = "".join(f'<th scope="col"{left * (not at)}>{html.escape(name)}</th>' for at, name in enumerate(columns))
    lines = (
        f'<tr><th scope="row"{left}>{html.escape(name)}</th>'
        + "".join(f'<td style="white-space:nowrap">{cell}</td>' for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    style = "caption-side:top;text-align:left;color:inherit"
    return (
        f'<table><caption style="{style}">{html.escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def html_list(lines: Iterable[str]) -> str:
    """A list of texts; nothing for none."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
