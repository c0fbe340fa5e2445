"""`fetch`: download a data set, verify it, unpack it; it appears whole in the data folder, or not at all."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openloop.data.datasets.finding import Folder, data_folder, find, missing
from openloop.data.datasets.records import Archive, Dataset
from openloop.data.datasets.unpacking import names, refuse_no_room, unpack
from openloop.errors import FormatError, InputError, OpenloopError, listing
from openloop.support.progress import Step, silent

MOST = 2**34  # bytes of a download whose size nobody knows beforehand: 16 GiB
BLOCK = 2**18
PATIENCE = 60  # seconds without a byte


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a download brought; `verified` names the digest that it was compared with, None where none is known."""

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
    """Download the data set `name` into the data folder; `accept_terms=True` says that you accept its terms.

    `url` is a mirror of its archive. Of an archive whose digest is unknown, `.sha256` is what came.
    """
    dataset = find(name)
    archive, target = _archive(dataset, folder), data_folder(folder) / dataset.folders[0]
    if not accept_terms:
        raise _unaccepted(dataset)
    _refuse_taken(dataset, target)
    source = archive.url if url is None else url
    with _workplace(target) as place:
        size, found = _download(dataset, source, archive, place / "download", step)
        verified = _verify(dataset, archive, source, found)
        step("unpacking", 1.0)
        content = place / "content"
        content.mkdir()
        unpack(place / "download", file_name(archive.url), content)
        _refuse_incomplete(dataset, source, content)
        files = tuple(names((path for path in content.rglob("*") if path.is_file()), content))
        content.rename(target)  # onto an empty folder, or none
    return Fetched(
        name=name, folder=target, url=source, size=size, sha256=found["sha256"], verified=verified, files=files
    )


def file_name(url: str) -> str:
    """The last part of an address: the name of the file."""
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path).rsplit("/", 1)[-1]


# -- refusals ------------------------------------------------------------------------------------------------


def _unaccepted(dataset: Dataset) -> InputError:
    if dataset.unstated:
        msg = f"{dataset.name}: its keeper states no terms of use, so nothing says what you may do with it"
        return InputError(f"{msg}; pass accept_terms=True to download it.")
    return InputError(f"{dataset.name}: its terms must be accepted first: {dataset.terms} Pass accept_terms=True.")


def _archive(dataset: Dataset, folder: Folder | None) -> Archive:
    if dataset.archive is None:
        place = data_folder(folder) / dataset.folders[0]
        raise InputError(f"{dataset.name}: is not downloaded, and belongs in {str(place)!r}; {dataset.apply}.")
    return dataset.archive


def _refuse_taken(dataset: Dataset, target: Path) -> None:
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
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
                f"or by hand if its keeper has changed it: see {dataset.home}."
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
        place = Path(tempfile.mkdtemp(dir=above, prefix=f".{target.name}."))
    except OSError as error:
        msg = f"data folder {str(above)!r}: cannot be written ({error.strerror}); create it, or choose another."
        raise InputError(msg) from error
    try:
        yield place
    except OSError as error:
        raise InputError(
            f"{str(target)!r}: cannot be written ({error}); make room, or choose another folder."
        ) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if made and not any(above.iterdir()):
            above.rmdir()


def _download(dataset: Dataset, source: str, archive: Archive, target: Path, step: Step) -> tuple[int, dict[str, str]]:
    """Stream to a file; the bytes that came, and their digests."""
    sha256, md5, done = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    try:
        with _open(source) as answer, target.open("wb") as file:
            length = _length(answer)
            most = length or archive.size or MOST
            free, size = shutil.disk_usage(target.parent).free, length or archive.size or 0
            refuse_no_room(f"{dataset.name}: {source} has", size, free, MOST, f"fetch it by hand: see {dataset.home}")
            while block := answer.read(BLOCK):
                done += len(block)
                if done > most:
                    raise FormatError(f"{dataset.name}: {source} sent more than {most:,} bytes; fetch it again.")
                for digest in (sha256, md5):
                    digest.update(block)
                file.write(block)
                step(f"{done / 1e6:,.1f} MB" + (f" of {most / 1e6:,.1f}" if most != MOST else ""), done / most)
    except OpenloopError:  # some are ValueErrors too
        raise
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
        raise _unreachable(dataset, source, error) from error
    if length is not None and done != length:
        raise FormatError(f"{dataset.name}: {source} was cut short: {done:,} of {length:,} bytes came; fetch it again.")
    return done, {"sha256": sha256.hexdigest(), "md5": md5.hexdigest()}


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows an address to the web only, and from https to https only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        _refuse_scheme(newurl, secure=req.type == "https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(source: str) -> Any:
    _refuse_scheme(source, secure=False)
    opener = urllib.request.OpenerDirector()
    handlers = (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, _Redirects,
    )  # fmt: skip
    for handler in handlers:  # and none for files, ftp or data
        opener.add_handler(handler())
    request = urllib.request.Request(source, headers={"User-Agent": "openloop"})  # noqa: S310, checked above
    return opener.open(request, timeout=PATIENCE)


def _refuse_scheme(url: str, *, secure: bool) -> None:
    allowed = ("https",) if secure else ("https", "http")
    if urllib.parse.urlsplit(url).scheme not in allowed:
        raise InputError(
            f"url must begin with {' or '.join(f'{a}://' for a in allowed)}, got {url!r}; use another source."
        )


def _length(answer: Any) -> int | None:
    length = answer.headers.get("Content-Length")
    return int(length) if length is not None and length.isdecimal() else None


def _unreachable(dataset: Dataset, source: str, error: Exception) -> InputError:
    why = str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
    why = f"HTTP {error.code} {why}" if isinstance(error, urllib.error.HTTPError) else why
    return InputError(
        f"{dataset.name}: {source} cannot be fetched ({why}); try again later, or fetch it by hand: see {dataset.home}."
    )
