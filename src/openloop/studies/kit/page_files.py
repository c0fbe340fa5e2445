"""Writing a page and its pictures: only what an earlier run wrote, and nobody changed since, is replaced.

A Markdown page has its pictures in a folder beside it, and there a manifest, `.openloop.json`, of their digests. A file
that is not in the manifest, or is no longer what it was, is the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openloop.errors import FormatError, InputError, did_you_mean
from openloop.studies.kit.page import html, markdown, svg
from openloop.studies.kit.running import Reproduction
from openloop.support.atomic import json_text, replacing, write_text

FORMATS = (".md", ".html")
MANIFEST = ".openloop.json"


@dataclass(frozen=True, slots=True)
class Written:
    """The files that were written, and pictures of an earlier run that stay because they were changed since."""

    files: list[Path]
    kept: list[Path]


def write_page(found: Reproduction, path: Path) -> Written:
    """Write the page, by its extension .md or .html; an error leaves what was there as it was."""
    check_format(path)
    if path.suffix == ".html":
        write_text(path, html(found))
        return Written([path], [])
    folder = path.with_suffix("")
    pictures = {f"{figure.name}.svg": svg(figure) for result in found.results for figure in result.figures}
    earlier = manifest(folder)
    changed = {name for name, digest in earlier.items() if _digest(folder / name) not in (digest, None)}
    _refuse_others(folder, set(pictures), set(earlier) - changed)
    _replace(path, markdown(found, folder.name), folder, pictures)
    _remove(folder, set(earlier) - changed - set(pictures), whole=bool(earlier) and not pictures)
    return Written([path, *(folder / name for name in pictures)], sorted(folder / name for name in changed))


def check_format(path: Path) -> None:
    """Refuse a page of an extension that is no format, or whose pictures have no place."""
    if path.suffix not in FORMATS:
        raise InputError(f"report {str(path)!r}: no such format.{did_you_mean(path.suffix, FORMATS)}")
    folder = path.with_suffix("")
    if path.suffix == ".md" and folder.exists() and not folder.is_dir():
        taken = f"its figures go into the folder {str(folder)!r}, which is a file"
        raise InputError(f"report {str(path)!r}: {taken}; move that file, or give the page another name.")
    if path.suffix == ".md":
        manifest(folder)  # what cannot be read then is refused now, before the work


def manifest(folder: Path) -> dict[str, str]:
    """The pictures that an earlier run wrote into the folder, and their digests."""
    file = folder / MANIFEST
    if not file.exists():
        return {}
    try:
        pictures: Any = json.loads(file.read_text(encoding="utf-8"))["pictures"]
        listed = {str(name): str(digest) for name, digest in pictures.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{file}: is no list of pictures that openloop wrote; move it, or give the page another name."
        ) from error
    if any(Path(name).name != name for name in listed):
        raise FormatError(f"{file}: lists files outside its folder; move it, or give the page another name.")
    return listed


def _digest(file: Path) -> str | None:
    """None where there is nothing; a link or folder has the digest of no file."""
    if not os.path.lexists(file):
        return None
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() and not file.is_symlink() else ""


def _refuse_others(folder: Path, needed: set[str], ours: set[str]) -> None:
    """Refuse to overwrite a file that openloop did not write, or that was changed since."""
    others = sorted(name for name in needed - ours if os.path.lexists(folder / name))
    if others:
        files = ", ".join(str(folder / name) for name in others)
        why = "which openloop did not write, or which was changed since"
        raise InputError(f"report: would overwrite {files}, {why}; move it, or give the page another name.")


def _replace(path: Path, text: str, folder: Path, pictures: dict[str, str]) -> None:
    """All files are written beside their places first, and then put there: the pictures, the manifest, the page."""
    contents = {path: text}
    if pictures:
        folder.mkdir(exist_ok=True)
        digests = {name: hashlib.sha256(drawn.encode()).hexdigest() for name, drawn in pictures.items()}
        contents[folder / MANIFEST] = json_text({"written_by": "openloop reproduce", "pictures": digests}) + "\n"
        contents |= {folder / name: drawn for name, drawn in pictures.items()}
    with ExitStack() as last_comes_first:
        for file, content in contents.items():
            last_comes_first.enter_context(replacing(file)).write_text(content, encoding="utf-8")


def _remove(folder: Path, names: set[str], *, whole: bool) -> None:
    """Delete pictures of an earlier run that the page no longer shows; `whole`: with the folder, if nothing is left."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if whole:
        (folder / MANIFEST).unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
