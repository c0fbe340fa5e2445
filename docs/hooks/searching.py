"""What search finds: prose and signatures. Blocks of code would hide the page that explains a word."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

# Long pages that name everything; what explains it comes first.
LESS = ("studies/", "architecture.md", "changelog.md", "trust.md")
BLOCK = '<div class="highlight">'


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> None:
    """Let the pages that only name things come later."""
    if page.file.src_uri.startswith(LESS):
        page.meta["search"] = {"boost": 0.3}


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave blocks of code out of the index, but for signatures, whose element has a class of its own."""
    return html.replace(BLOCK, BLOCK.replace(">", " data-search-exclude>"))
