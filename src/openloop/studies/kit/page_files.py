"""Writing a page and its pictures: no file of the user is replaced.

A page of openloop's says by which `openloop reproduce` it was written. A Markdown page has its pictures in a folder
beside it, and there a manifest, `.openloop.json`, of their digests. A picture that is not in the manifest, or is no
longer what it was, is the user's. While pictures are replaced the manifest has the digests of those to come as well, so
that a run that is killed leaves none that the next one does not know.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
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
SIGNATURE = r"(^|<p>)Written by (`|<code>)openloop reproduce "  # of a page, as Markdown or as HTML


@dataclass(frozen=True, slots=True)
class Written:
    """The files that were written, and pictures of an earlier run that stay because they were changed since."""

    files: list[Path]
    kept: list[Path]


def write_page(found: Reproduction, path: Path) -> Written:
    """Write the page, by its extension .md or .html; an error leaves what was there as it was."""
    check_place(path)
    if path.suffix == ".html":
        write_text(path, html(found))
        return Written([path], [])
    folder = path.with_suffix("")
    pictures = {f"{figure.name}.svg": svg(figure) for result in found.results for figure in result.figures}
    earlier = manifest(folder)
    changed = _changed(folder, earlier)
    _refuse_others(folder, {name for name in pictures if os.path.lexists(folder / name)} - (set(earlier) - changed))
    _replace(path, markdown(found, folder.name), folder, pictures, earlier)
    _remove(folder, set(earlier) - changed - set(pictures), whole=bool(earlier) and not pictures)
    return Written([path, *(folder / name for name in pictures)], sorted(folder / name for name in changed))


def check_place(path: Path, items: Sequence[str] = ()) -> None:
    """Refuse a page that has no format or no place, or that would replace what openloop did not write.

    With the names of the `items` that it will show this can be known before they run: the name of a picture is that of
    its item, or begins with it and an underscore.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"report {str(path)!r}: no such format.{did_you_mean(path.suffix, FORMATS)}")
    folder = path.with_suffix("")
    if path.suffix == ".md" and folder.exists() and not folder.is_dir():
        taken = f"its figures go into the folder {str(folder)!r}, which is a file"
        raise InputError(f"report {str(path)!r}: {taken}; move that file, or give the page another name.")
    if path.is_file() and not _is_page(path):
        why = "is a file that openloop reproduce did not write"
        raise InputError(f"report {str(path)!r}: {why}, and would be replaced; move it, or give the page another name.")
    if path.suffix == ".md":
        ours = manifest(folder)
        here = {file.name for file in folder.glob("*.svg") if _is_of(file.stem, items)}
        _refuse_others(folder, here - (set(ours) - _changed(folder, ours)))


def _is_page(path: Path) -> bool:
    """Whether a file is a page that openloop wrote; an empty one may be replaced."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return not text.strip() or re.search(SIGNATURE, text, re.MULTILINE) is not None


def _is_of(picture: str, items: Sequence[str]) -> bool:
    return any(picture == item or picture.startswith(f"{item}_") for item in items)


def _changed(folder: Path, earlier: Mapping[str, str]) -> set[str]:
    """Pictures of an earlier run that are no longer what it wrote."""
    return {name for name, digest in earlier.items() if _digest(folder / name) not in (digest, None)}


def manifest(folder: Path) -> dict[str, str]:
    """The pictures that earlier runs wrote into the folder, and their digests."""
    file = folder / MANIFEST
    if not file.exists():
        return {}
    try:
        held: Any = json.loads(file.read_text(encoding="utf-8"))
        listed, coming = _digests(held["pictures"]), _digests(held.get("coming", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(
            f"{file}: is not a list of pictures that openloop wrote; move it, or give the page another name."
        ) from error
    if any(Path(name).name != name for name in (*listed, *coming)):
        raise FormatError(f"{file}: lists files outside its folder; move it, or give the page another name.")
    return listed | {name: digest for name, digest in coming.items() if _digest(folder / name) == digest}


def _digests(held: Any) -> dict[str, str]:
    return {str(name): str(digest) for name, digest in held.items()}


def _digest(file: Path) -> str | None:
    """None where there is nothing; a link or folder has the digest of no file."""
    if not os.path.lexists(file):
        return None
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() and not file.is_symlink() else ""


def _refuse_others(folder: Path, others: set[str]) -> None:
    """Refuse to overwrite files that openloop did not write, or that were changed since."""
    if others:
        files = ", ".join(str(folder / name) for name in sorted(others))
        why = "which openloop did not write, or which was changed since"
        raise InputError(f"report: would overwrite {files}, {why}; move it, or give the page another name.")


def _replace(path: Path, text: str, folder: Path, pictures: dict[str, str], earlier: Mapping[str, str]) -> None:
    """All files are written beside their places first, and then put there: the pictures, the manifest, the page."""
    contents = [(path, text)]
    made = bool(pictures) and not folder.exists()
    if pictures:
        folder.mkdir(exist_ok=True)
        digests = {name: hashlib.sha256(drawn.encode()).hexdigest() for name, drawn in pictures.items()}
        contents.append((folder / MANIFEST, _manifest(pictures=digests)))
        contents += [(folder / name, drawn) for name, drawn in pictures.items()]
        contents.append((folder / MANIFEST, _manifest(pictures=dict(earlier), coming=digests)))
    try:
        with ExitStack() as last_comes_first:
            for file, content in contents:
                last_comes_first.enter_context(replacing(file)).write_text(content, encoding="utf-8")
    except BaseException:
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _manifest(**digests: dict[str, str]) -> str:
    return json_text({"written_by": "openloop reproduce", **digests}) + "\n"


def _remove(folder: Path, names: set[str], *, whole: bool) -> None:
    """Delete pictures of an earlier run that the page no longer shows; `whole`: with the folder, if nothing is left."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if whole:
        (folder / MANIFEST).unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
