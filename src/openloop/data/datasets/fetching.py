"""`fetch`: download a data set, verify it, unpack it; it appears whole in the data folder, or not at all.

What came of an archive that could not be fetched whole is kept and continued; one that fails its check is put aside.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from openloop.data.datasets.downloading import PartialDownload, download
from openloop.data.datasets.finding import Folder, data_folder, find, missing
from openloop.data.datasets.records import Archive, Dataset
from openloop.data.datasets.unpacking import names, unpack
from openloop.errors import FormatError, InputError, listing
from openloop.support.leftovers import clear, hidden, sweep
from openloop.support.progress import Step, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a download brought.

    Attributes:
        name: The name of the data set.
        folder: The folder with its files.
        url: The address that it came from.
        size: The size of the download in bytes.
        sha256: The SHA-256 of the download.
        verified: The digest that it was compared with, "sha256" or "md5"; None where none is known.
        files: The names of the files.

    Examples:
        >>> from pathlib import Path
        >>> came = ol.datasets.Fetched(
        ...     name="coat", folder=Path("data/coat"), url="https://example.org/coat.zip", size=10, sha256="ab12",
        ...     verified=None, files=("train.ascii",),
        ... )
        >>> came.files
        ('train.ascii',)
    """

    name: str
    folder: Path
    url: str
    size: int
    sha256: str
    verified: str | None
    files: tuple[str, ...]


def fetch(
    name: str,
    folder: Folder | None = None,
    *,
    accept_terms: bool = False,
    url: str | None = None,
    step: Step = silent,
) -> Fetched:
    """Download a data set, verify it and unpack it into the data folder.

    An interrupted download is kept, and the next call continues it.

    Args:
        name: The name of the data set.
        folder: The data folder; by default $OPENLOOP_DATA, or `data` in the current folder.
        accept_terms: True says that you accept the terms of the data set, which the error shows otherwise.
        url: A mirror of the archive.
        step: A function that is told about progress, as `step(what, fraction)`.

    Returns:
        What came. Where no digest is known, `.sha256` is that of the download, and `.verified` is None.

    Raises:
        InputError: The terms are not accepted, the publisher must be asked first, or the folder is not empty.
        FormatError: The archive is not the documented one.

    Examples:
        >>> ol.datasets.fetch("ml-100k", "data")
        Traceback (most recent call last):
            ...
        openloop.errors.InputError: ml-100k: its terms must be accepted first: Research use; ... Pass accept_terms=True.
    """
    dataset = find(name)
    archive, target = _archive(dataset, folder), data_folder(folder) / dataset.folders[0]
    if not accept_terms:
        raise _unaccepted(dataset)
    partial = PartialDownload(file=target.with_name(f".{target.name}.part"))
    _refuse_taken(dataset, target, partial)
    source = archive.url if url is None else url
    with _workplace(target) as place:
        size, found = download(dataset, source, archive, partial, step)
        try:
            verified = _verify(dataset, archive, source, found)
            step("unpacking", 1.0)
            content = place / "content"
            content.mkdir()
            unpack(partial.file, file_name(archive.url), content)
            _refuse_incomplete(dataset, source, content)
        except FormatError as error:
            aside = partial.quarantine(str(error))
            raise FormatError(f"{error} What came is in {str(aside)!r}.") from error
        files = tuple(names((path for path in content.rglob("*") if path.is_file()), content))
        content.rename(target)  # onto an empty folder, or none
        partial.remove()
    return Fetched(
        name=name, folder=target, url=source, size=size, sha256=found["sha256"], verified=verified, files=files
    )


def file_name(url: str) -> str:
    """The last part of an address: the name of the file."""
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path).rsplit("/", 1)[-1]


# -- refusals ------------------------------------------------------------------------------------------------


def _unaccepted(dataset: Dataset) -> InputError:
    if dataset.unstated:
        msg = f"{dataset.name}: its publisher states no terms of use, so what you may do with it is unknown"
        return InputError(f"{msg}; pass accept_terms=True to download it.")
    return InputError(f"{dataset.name}: its terms must be accepted first: {dataset.terms} Pass accept_terms=True.")


def _archive(dataset: Dataset, folder: Folder | None) -> Archive:
    if dataset.archive is None:
        place = data_folder(folder) / dataset.folders[0]
        raise InputError(f"{dataset.name}: is not downloaded, and belongs in {str(place)!r}; {dataset.apply}.")
    return dataset.archive


def _refuse_taken(dataset: Dataset, target: Path, partial: PartialDownload) -> None:
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        if not missing(dataset, target):  # a run may have been killed once all was there
            sweep(target.parent)
            with suppress(OSError):
                partial.remove()
        msg = f"{dataset.name}: {str(target)!r} exists and is not empty; move it away, or choose another data folder."
        raise InputError(msg)


def _refuse_incomplete(dataset: Dataset, source: str, content: Path) -> None:
    lacking = [" or ".join(part.patterns) for part in missing(dataset, content)]
    if lacking:
        held = names((path for path in content.rglob("*") if path.is_file()), content)
        msg = f"{dataset.name}: {source} must hold {listing(lacking)}, and holds {listing(held)}; use another source."
        raise FormatError(msg)


def _verify(dataset: Dataset, archive: Archive, source: str, found: dict[str, str]) -> str | None:
    """The digest that the download agrees with; one that it does not agree with is an error."""
    for kind in ("sha256", "md5"):
        known = getattr(archive, kind)
        if known is not None and found[kind] != known:
            raise FormatError(
                f"{dataset.name}: {source} must have the {kind.upper()} {known}, got {found[kind]}; fetch it again, "
                f"or by hand if its publisher has changed it: see {dataset.home}."
            )
    return next((kind for kind in ("sha256", "md5") if getattr(archive, kind) is not None), None)


# -- the download --------------------------------------------------------------------------------------------


@contextmanager
def _workplace(target: Path) -> Generator[Path]:
    """A hidden folder beside the target, gone afterwards; a data folder made for it goes too if nothing came."""
    above = target.parent
    made = not above.exists()
    try:
        above.mkdir(exist_ok=True)
        sweep(above)
        place = hidden(target)
        place.mkdir(mode=0o700)
    except OSError as error:
        msg = f"data folder {str(above)!r}: cannot be written ({error.strerror}); create it, or choose another."
        raise InputError(msg) from error
    try:
        yield place
    except OSError as error:
        raise InputError(
            f"{str(target)!r}: cannot be written ({error}); make room, or choose another folder: what came is kept."
        ) from error
    finally:
        clear(place)
        if made and not any(above.iterdir()):
            above.rmdir()
