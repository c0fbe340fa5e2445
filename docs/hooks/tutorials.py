"""Tutorials: jupytext scripts that run as notebooks, and become pages with what their cells printed and drew.

With OPENLOOP_DOCS_RUN=0 they become pages without outputs, which takes no time.
"""

from __future__ import annotations

import base64
import html
import logging
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

SOURCES = Path(__file__).resolve().parents[1] / "tutorials"
SECONDS = 1800  # for one cell
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}
LINK = re.compile(r"\]\(([\w-]+\.py)(#[\w-]+)?\)")
DRAWN = "What the cell drew"
NO_LINK = str.maketrans("[]", "()")
COLUMNS = r"\S {2,}\S|[\u2500-\u257f]"  # text in columns has wide spaces, or lines between
QUIET = "--IPKernelApp.log_level=ERROR"  # a kernel warns that others on this machine could listen

log = logging.getLogger("mkdocs.hooks.tutorials")


def pages_of(config: MkDocsConfig) -> list[str]:
    """The pages of the navigation's part for tutorials, without the list of them."""
    section = next(section["Tutorials"] for section in config.nav or [] if "Tutorials" in section)
    return [page for page in section if page != "tutorials/index.md"]


def source_of(page: str) -> Path:
    """The script of a page."""
    return SOURCES / Path(page).with_suffix(".py").name


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each script, its notebook, and its pictures."""
    listed = []
    for source in map(source_of, pages_of(config)):
        notebook = executed(source)
        page, pictures = rendered(notebook, source.stem)
        made: dict[str, str | bytes] = {f"{source.stem}.md": page, f"{source.stem}.ipynb": as_text(notebook)} | pictures
        for name, content in made.items():
            files.append(File.generated(config, f"tutorials/{name}", content=content))
        listed.append(entry(page, source.stem))
    index = files.src_uris["tutorials/index.md"]
    files.remove(index)
    files.append(File.generated(config, index.src_uri, content="\n".join([index.content_string, *listed])))
    return files


def entry(page: str, stem: str) -> str:
    """A line of the list of tutorials: its title, and its first paragraph."""
    start = re.match(r"# (.+)\n\n((?:.+\n)+)", page)
    if start is None:
        raise PluginError(f"{stem}.py must begin with a Markdown cell that has a title and a paragraph.")
    return f"- **[{start[1]}]({stem}.md)** {' '.join(start[2].split())}"


def executed(source: Path) -> Any:
    """The notebook of a script, run from top to bottom in an empty folder; an error in a cell ends the build."""
    import jupytext

    notebook = jupytext.read(source)
    if os.environ.get("OPENLOOP_DOCS_RUN") == "0":
        return notebook
    import nbclient

    log.info("Running %s", source.name)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        return nbclient.NotebookClient(notebook, timeout=SECONDS, resources=place, extra_arguments=[QUIET]).execute()


def as_text(notebook: Any) -> str:
    """The notebook as a file."""
    import nbformat

    return nbformat.writes(nbformat.v4.upgrade(notebook))


def rendered(notebook: Any, stem: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook, and its pictures by name."""
    parts, pictures = [], {}
    for cell in notebook.cells:
        if cell.cell_type != "code":
            parts.append(LINK.sub(between_pages, cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        # A picture takes the next number, so they come in order.
        parts += [shown(output, f"{stem}-{len(pictures) + 1}", pictures) for output in joined(cell.get("outputs", []))]
    parts.append(f"This page as a [notebook]({stem}.ipynb), or as a [script]({stem}.py)")
    return "\n\n".join(filter(None, parts)) + "\n", pictures


def between_pages(link: re.Match[str]) -> str:
    """A link from a tutorial to another, which among scripts names the script, as one between pages."""
    name = Path(link[1])
    return f"]({name.with_suffix('.md')}{link[2] or ''})" if (SOURCES / name).is_file() else link[0]


def joined(outputs: Sequence[Any]) -> list[Any]:
    """Outputs with what was printed in several parts as one, however a kernel divided it."""
    found: list[Any] = []
    for output in outputs:
        last = found[-1] if found else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            found[-1] = type(last)({**last, "text": last.text + output.text})
        else:
            found.append(output)
    return found


def shown(output: Any, name: str, pictures: dict[str, bytes]) -> str:
    """What a cell printed, drew or returned, in the richest form that a page can show."""
    if output.output_type == "stream":
        return printed(output.text) if output.name == "stdout" else ""
    data = output.get("data", {})
    for kind, suffix in PICTURES.items():
        if kind in data:
            content = data[kind]
            pictures[f"{name}.{suffix}"] = content.encode() if suffix == "svg" else base64.b64decode(content)
            return f"![{said(content) if suffix == 'svg' else DRAWN}]({name}.{suffix})"
    if "text/html" in data:  # without empty lines, which would end the element in Markdown
        return '<div class="output">' + re.sub(r"\n\s*\n", "\n", data["text/html"]).strip() + "</div>"
    return printed(data["text/plain"]) if "text/plain" in data else ""


def said(drawing: str) -> str:
    """A chart in words: its title, and what is under it."""
    groups = re.findall(r'role-title-(?:text|subtitle)".*?</g>', drawing, re.DOTALL)
    lines = [line for group in groups for line in re.findall(r">([^<>]+)</t", group)]
    return html.escape(html.unescape(". ".join(line.strip(" .") for line in lines))).translate(NO_LINK) or DRAWN


def printed(text: str) -> str:
    """Text as it came, without the codes that colour a terminal; sentences may break, tables may not."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", plain)), default=0))
    kind = "output" if re.search(COLUMNS, plain) else "output sentences"
    return f'<div class="{kind}" markdown>\n\n{fence}text\n{plain}\n{fence}\n\n</div>'
