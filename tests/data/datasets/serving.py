"""A web server on 127.0.0.1 that answers as it is told, and archives to serve."""

from __future__ import annotations

import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Answer:
    """What the server says to a path; `cut` ends it after so many bytes. What it was asked is in `asked`.

    With a `version`, an ETag or a date, ranges of it can be asked for.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    version: dict[str, str] | None = None
    cut: int | None = None
    asked: list[dict[str, str]] = field(default_factory=list)

    def to(self, request: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        self.asked.append(request)
        headers = {"Content-Length": str(len(self.body))} | (self.version or {}) | self.headers
        first = int(request.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        fresh = "If-Range" not in request or request["If-Range"] in (self.version or {}).values()
        if first == 0 or self.version is None or not fresh:
            return self.status, headers, self.body[: self.cut]
        if first >= len(self.body):
            return 416, {"Content-Range": f"bytes */{len(self.body)}", "Content-Length": "0"}, b""
        span = f"bytes {first}-{len(self.body) - 1}/{len(self.body)}"
        return 206, headers | {"Content-Range": span, "Content-Length": str(len(self.body) - first)}, self.body[first:]


@contextmanager
def served(**answers: Answer | bytes) -> Iterator[str]:
    """The address of a server that answers `/name` for each name; a header of None is left out."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer = answers.get(self.path.strip("/"), Answer(b"nothing here", 404))
            answer = answer if isinstance(answer, Answer) else Answer(answer)
            status, headers, body = answer.to(dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                if value is not None:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    proxies = pytest.MonkeyPatch()
    proxies.setenv("no_proxy", "127.0.0.1")
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        proxies.undo()
        server.shutdown()
        thread.join()
        server.server_close()


def zipped(files: dict[str, str | zipfile.ZipInfo]) -> bytes:
    """A zip of these texts; a ZipInfo in place of a text is a link."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return held.getvalue()


def tarred(files: dict[str, str | tarfile.TarInfo]) -> bytes:
    """A tar.gz of these texts; a TarInfo in place of a text is put there as it is."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for path, text in files.items():
            entry = text if isinstance(text, tarfile.TarInfo) else tarfile.TarInfo(path)
            body = b"" if isinstance(text, tarfile.TarInfo) else text.encode()
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return held.getvalue()
