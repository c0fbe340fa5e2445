"""The tutorials as a notebook runs them: cells in order, what each prints, and what their text quotes of it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt

import openloop as ol
from tests.cli.running import run as run_command

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
SOURCES = sorted(FOLDER.glob("*.py"))

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUOTE = re.compile(r"(?:^>.*\n?)+", re.MULTILINE)
MEASURED = re.compile(r"\d+\.\d+|\d+ ?%")  # numbers that someone has to measure; "200 books" are given


@dataclass(frozen=True)
class Cell:
    """A cell of a percent file: code as it is, or Markdown without its comment signs."""

    line: int
    markdown: bool
    text: str


def cells(path):
    """The cells of a percent file, in order; its header is none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("# %%")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        assert lines[start] in ("# %%", "# %% [markdown]"), f"{path.name}:{start + 1}: {lines[start]}"
        markdown = lines[start].endswith("[markdown]")
        body = lines[start + 1 : end]
        assert not markdown or all(line.startswith("#") for line in body if line), f"{path.name}:{start + 1}"
        text = "\n".join(re.sub("^# ?", "", line) if markdown else line for line in body)
        yield Cell(line=start + 1, markdown=markdown, text=text.strip("\n"))


@dataclass
class Session:
    """What a reader has who ran a tutorial in the current folder: names, and what was printed above each text."""

    path: Path
    names: dict = field(default_factory=dict)
    printed: str = ""
    texts: list[tuple[Cell, str]] = field(default_factory=list)  # Markdown cells, with all that was printed above

    def run(self):
        for cell in cells(self.path):
            if cell.markdown:
                self.texts.append((cell, words(self.printed)))
            else:
                self.printed += self.output(cell)
        return self

    def output(self, cell):
        """What a code cell prints and shows, as a notebook does: the value of its last line too."""
        tree = ast.parse("\n" * cell.line + cell.text, str(self.path))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(tree, str(self.path), "exec"), self.names)  # noqa: S102 (this repository's own)
            value = last and eval(compile(ast.Expression(last.value), str(self.path), "eval"), self.names)  # noqa: S307
        return out.getvalue() + shown(value)

    @property
    def audits(self):
        return [value for value in self.names.values() if isinstance(value, ol.Audit)]


def shown(value):
    """What a notebook shows of the last value of a cell. A chart has no words, but is made in full, which checks it."""
    if isinstance(value, alt.TopLevelMixin):
        assert value.to_dict()
        return ""
    return "" if value is None else repr(value)


def words(text):
    """Text with single spaces, as lines break elsewhere on another terminal."""
    return " ".join(text.split())


def quotes(cell):
    """Each quotation of a text as one line."""
    return [words(re.sub(r"^> ?", "", found, flags=re.MULTILINE)) for found in QUOTE.findall(prose(cell))]


def measured(cell):
    """The numbers in the sentences of a text that were measured, but for those in quotations and code."""
    return MEASURED.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", QUOTE.sub("", prose(cell))))


def prose(cell):
    return FENCE.sub("", cell.text)


def fences(path, language):
    """The blocks of one language in a tutorial's texts, in order."""
    texts = [cell.text for cell in cells(path) if cell.markdown]
    return [body for text in texts for name, body in FENCE.findall(text) if name == language]


def commands(path):
    """Each command line that a tutorial shows, with the lines that it says are printed."""
    for block in fences(path, "console"):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, *expected = part.splitlines()
            yield shlex.split(line), [words(text) for text in expected if text.strip()]


def command_output(line):
    """The exit code and the output of `openloop …` in the current folder."""
    program, *arguments = line
    assert program == "openloop"
    result = run_command(*arguments)
    return result.exit_code, words(result.output)
