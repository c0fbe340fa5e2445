"""Pages whose code makes files: it runs in a folder of its own, and what it writes becomes part of the site.

With OPENLOOP_DOCS_RUN=0 it does not run, and the files are empty.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = ("figures.md", "gallery.md")
MADE = re.compile(r"\]\(([\w-]+\.(?:svg|png|html))\)")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the pages in their order, and add what they wrote."""
    runs = os.environ.get("OPENLOOP_DOCS_RUN") != "0"
    for page in PAGES:
        text = (Path(config.docs_dir) / page).read_text(encoding="utf-8")
        made = written_by(text, page) if runs else dict.fromkeys(MADE.findall(text), b"")
        for name, content in made.items():
            files.append(File.generated(config, name, content=content))
    return files


def written_by(text: str, page: str) -> dict[str, bytes]:
    """The files that the code of a page writes, by name."""
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for code in BLOCK.findall(text):
            exec(compile(code, page, "exec"), names)  # noqa: S102 (the pages are this repository's own)
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
