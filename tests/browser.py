"""A headless Chromium, driven over a pipe by the DevTools protocol: no driver, no port, no package."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 300.0  # seconds, after which a browser counts as hung, on a busy machine too


def command() -> str | None:
    """The browser's command, where there is one."""
    return next(filter(None, map(shutil.which, COMMANDS)), None)


class Pipe:
    """JSON messages that end in a zero byte: commands go out, answers and events come in."""

    def __init__(self, out: int, into: int) -> None:
        self.out, self.into, self.rest, self.number = out, into, b"", 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        os.write(self.out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def read(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.into], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            got = os.read(self.into, 2**20)
            assert got, "the browser has ended"
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)


class Page:
    """A tab with one page in it."""

    def __init__(self, pipe: Pipe, width: int, height: int, *, dark: bool, script: bool) -> None:
        self.pipe = pipe
        self.target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = pipe.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        look = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=look)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.pipe.call(method, self.session, **params)

    def size(self, width: int, height: int) -> None:
        """The size of the window, in pixels of the style sheet."""
        phone = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **phone)

    def open(self, path: Path, ready: str) -> None:
        """Open a file, and wait until an expression is true."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until(f"document.readyState === 'complete' && ({ready})")

    def until(self, expression: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.run(f"!!({expression})"):
            assert time.monotonic() < deadline, f"never came true: {expression}"
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript, promises awaited."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def events(self, *methods: str) -> list[dict[str, Any]]:
        """What was reported of this page."""
        self.run("0")
        return [e["params"] for e in self.pipe.events if e.get("sessionId") == self.session and e["method"] in methods]

    def errors(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and what the page's policy refused."""
        said = [
            json.dumps(e)
            for e in self.events("Runtime.consoleAPICalled")
            if e["type"] in ("error", "warning", "assert")
        ]
        return said + [json.dumps(e) for e in self.events("Runtime.exceptionThrown", "Log.entryAdded")]

    def requests(self) -> list[str]:
        """The addresses of all that was asked for."""
        return [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Pipe]:
    """A browser with a fresh profile in `folder`."""
    reads, out = os.pipe()
    into, writes = os.pipe()

    def pipes() -> None:
        # The protocol is spoken on descriptors 3 and 4, which may be taken by these very pipes.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reads, writes)]
        for end, place in zip(ends, (3, 4), strict=True):
            os.dup2(end, place)

    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
               "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
               f"--user-data-dir={folder}"]  # fmt: skip
    process = subprocess.Popen(
        [program, *options, "about:blank"], pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=pipes,  # noqa: PLW1509, it only duplicates descriptors
    )  # fmt: skip
    os.close(reads)
    os.close(writes)
    try:
        yield (pipe := Pipe(out, into))
        pipe.call("Browser.close")
    finally:
        for end in (out, into):
            os.close(end)
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def page(pipe: Pipe, width: int = 1280, height: int = 900, *, dark: bool = False, script: bool = True) -> Page:
    """A new tab."""
    return Page(pipe, width, height, dark=dark, script=script)
