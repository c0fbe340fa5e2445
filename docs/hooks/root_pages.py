"""Pages of the site whose text is kept beside the README: changes, contributing, security."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, with their links as seen from docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=from_docs((ROOT / name).read_text(encoding="utf-8"))))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links that leave docs/ for one of these files to its page."""
    for name, target in PAGES.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    return markdown


def from_docs(text: str) -> str:
    """Links of a file at the root, as a page in docs/ has them."""
    for name, page in PAGES.items():
        text = text.replace(f"]({name}", f"]({page}")
    return re.sub(r"\]\(docs/", "](", text)
