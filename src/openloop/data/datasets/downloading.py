"""`download`: an address to a file; an interrupted download is kept, and the next call continues it.

A part is continued only where the server says that the file is still the same, by the ETag or date that it gave before,
or where a digest of the whole is known, which the caller compares in the end.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from openloop.data.datasets.records import Archive, Dataset
from openloop.data.datasets.unpacking import refuse_no_room
from openloop.errors import FormatError, InputError, OpenloopError, quoted
from openloop.support.atomic import write_text
from openloop.support.progress import Step
from openloop.support.wording import cut

MOST = 2**34  # bytes of a download of unknown size: 16 GiB
BLOCK = 2**18
PATIENCE = 60  # seconds without a byte
DIGITS = 20  # of a size


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialDownload:
    """A file that is being downloaded, and beside it where it comes from and how to ask whether that has changed."""

    file: Path

    @property
    def beside(self) -> Path:
        """The file that says what this is a part of."""
        return self.file.with_name(f"{self.file.name}.json")

    def begun(self, source: str, *, verified: bool) -> tuple[int, str]:
        """The bytes that can be continued, and what names their version; none where that is another's, or not known."""
        try:
            known: Any = json.loads(self.beside.read_text(encoding="utf-8"))
            size, version = self.file.stat().st_size, str(known["version"])
            same = known["url"] == source
        except (OSError, ValueError, KeyError, TypeError):
            return 0, ""
        return (size, version) if same and (version or verified) else (0, "")

    def begin(self, source: str, answer: Any) -> None:
        """Note what the first byte belongs to."""
        write_text(self.beside, json.dumps({"url": source, "version": _version(answer)}))

    def remove(self) -> None:
        """Leave nothing."""
        self.file.unlink(missing_ok=True)
        self.beside.unlink(missing_ok=True)

    def quarantine(self, why: str) -> Path:
        """Move what failed its check out of the way, with the reason beside it; what was there before is replaced."""
        place = self.file.with_name(f"{self.file.name.removeprefix('.').removesuffix('.part')}.quarantined")
        self.file.replace(place)
        write_text(place.with_name(f"{place.name}.txt"), f"{why}\n")
        self.remove()
        return place


def download(
    dataset: Dataset, source: str, archive: Archive, partial: PartialDownload, step: Step
) -> tuple[int, dict[str, str]]:
    """Stream to the partial file, after what it has; the bytes of the whole, and their digests."""
    with _alone(dataset, partial.file) as file, _unless_lost(partial, file, source, verified=_verified(archive)):
        try:
            return _streamed(dataset, source, archive, partial, file, step)
        except OpenloopError:  # some are ValueErrors too
            raise
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ValueError) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            raise _unreachable(dataset, source, error) from error


def _streamed(
    dataset: Dataset, source: str, archive: Archive, partial: PartialDownload, file: IO[bytes], step: Step
) -> tuple[int, dict[str, str]]:
    begun, version = partial.begun(source, verified=_verified(archive))
    with _open(source, begun, version) as answer:
        done, length = _span(answer, begun)
        if done not in (0, begun):
            partial.remove()
            raise FormatError(f"{dataset.name}: {source} sends bytes from {done:,}, asked from {begun:,}; fetch again.")
        if done == 0:
            partial.begin(source, answer)
        file.truncate(done)
        digests = _digests(file, done)
        most = length or archive.size or MOST
        free, size = shutil.disk_usage(partial.file.parent).free, (length or archive.size or done) - done
        refuse_no_room(f"{dataset.name}: {source} has", size, free, MOST, f"fetch it by hand: see {dataset.home}")
        while block := answer.read(BLOCK):
            done += len(block)
            if done > most:
                partial.remove()
                raise FormatError(f"{dataset.name}: {source} sent more than {most:,} bytes; fetch it again.")
            for digest in digests.values():
                digest.update(block)
            file.write(block)
            step(f"{done / 1e6:,.1f} MB" + (f" of {most / 1e6:,.1f}" if most != MOST else ""), done / most)
    if length is not None and done != length:
        file.flush()
        on = bool(partial.begun(source, verified=_verified(archive))[0])
        remedy = "what came is kept, and the same command continues from there" if on else "fetch it again"
        raise FormatError(f"{dataset.name}: {source} was cut short: {done:,} of {length:,} bytes came; {remedy}.")
    return done, {kind: digest.hexdigest() for kind, digest in digests.items()}


def _verified(archive: Archive) -> bool:
    """Whether what came can be told from anything else in the end."""
    return bool(archive.sha256 or archive.md5)


def _digests(file: IO[bytes], size: int) -> dict[str, Any]:
    """The digests of what is there, to be continued; the file is then at its end."""
    found: dict[str, Any] = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    file.seek(0)
    while size and (block := file.read(BLOCK)):
        for digest in found.values():
            digest.update(block)
    return found


@contextmanager
def _unless_lost(partial: PartialDownload, file: IO[bytes], source: str, *, verified: bool) -> Generator[None]:
    """Whatever goes wrong, keep what came only where it can be continued."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # on a full disk what was written before stays
            file.flush()
        if not partial.begun(source, verified=verified)[0]:
            partial.remove()
        raise


@contextmanager
def _alone(dataset: Dataset, path: Path) -> Generator[IO[bytes]]:
    """The file, open to be continued, in this process only."""
    with path.open("a+b") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows has no flock, and allows no other process to write
            pass
        except BlockingIOError as error:
            raise InputError(f"{dataset.name}: another process is downloading it to {str(path)!r}; wait.") from error
        yield file


# -- the server --------------------------------------------------------------------------------------------------------


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows an address to the web only, and from https to https only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        try:
            refuse_scheme(newurl, secure=req.type == "https")
        except InputError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(source: str, begun: int, version: str) -> Any:
    """The answer to a request for what is missing, or for all of it where that cannot be had."""
    refuse_scheme(source, secure=False)
    opener = urllib.request.OpenerDirector()
    handlers = (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, _Redirects,
    )  # fmt: skip
    for handler in handlers:  # and none for files, ftp or data
        opener.add_handler(handler())
    rest = {"Range": f"bytes={begun}-"} | ({"If-Range": version} if version else {}) if begun else {}
    request = urllib.request.Request(source, headers={"User-Agent": "openloop", **rest})  # noqa: S310, checked above
    try:
        answer = opener.open(request, timeout=PATIENCE)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not begun:
            raise
        if (error.headers.get("Content-Range") or "").removeprefix("bytes */") == str(begun):
            return error  # nothing is missing
        error.close()
        return _open(source, 0, "")
    partial = answer.status == http.client.PARTIAL_CONTENT
    if begun and partial and _is_another(_version(answer), version):  # although the rest of the same was asked for
        answer.close()
        return _open(source, 0, "")
    return answer


def _version(answer: Any) -> str:
    """What names the version of what a server sends, as If-Range takes it; empty where nothing does."""
    tag = answer.headers.get("ETag") or ""
    return answer.headers.get("Last-Modified") or "" if tag.startswith("W/") or not tag else tag


def _is_another(now: str, before: str) -> bool:
    """Whether two names of versions are both tags, or both dates, and differ."""
    return bool(now and before) and now != before and now.startswith('"') == before.startswith('"')


def refuse_scheme(url: str, *, secure: bool) -> None:
    """Refuse an address that is not of the web; `secure`: or not of https."""
    allowed = ("https",) if secure else ("https", "http")
    if urllib.parse.urlsplit(url).scheme not in allowed:
        raise InputError(
            f"url must begin with {' or '.join(f'{a}://' for a in allowed)}, got {quoted(url)}; use another source."
        )


def _span(answer: Any, begun: int) -> tuple[int, int | None]:
    """The first byte that the server sends, and the bytes of the whole file, None where it does not say.

    A server may send less than was asked for.
    """
    if answer.status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
        return begun, begun  # all of it is there
    start, whole = 0, ""
    if answer.status == http.client.PARTIAL_CONTENT:  # Content-Range: bytes 5-9/10
        span, _, whole = (answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("/")
        start = _size(span.partition("-")[0], -1)
    length = _size(answer.headers.get("Content-Length") or "", None)
    return start, _size(whole, None if length is None else start + length)


def _size(digits: str, otherwise: Any) -> Any:
    """A number of bytes, if these are digits, and no more of them than any size has."""
    return int(digits) if digits.isdecimal() and len(digits) < DIGITS else otherwise


def _unreachable(dataset: Dataset, source: str, error: Exception) -> InputError:
    why = str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
    why = f"HTTP {error.code} {why}" if isinstance(error, urllib.error.HTTPError) else why
    return InputError(
        f"{dataset.name}: {source} cannot be fetched ({cut(why)}); try again later, or fetch it by hand: see "
        f"{dataset.home}."
    )
