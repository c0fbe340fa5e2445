"""What openloop never does: an audit with sockets and pickle forbidden, for itself and for everything that it uses."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit_files import audit_files

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "openloop"

# Python tells an audit hook of every socket, connection, look-up of a name, and of every class that pickle finds.
FORBIDDING = """
import sys

def caller():
    frame = sys._getframe(2)
    own = ("pickle", "importlib", "copyreg")
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in own:
        frame = frame.f_back
    return "" if frame is None else frame.f_globals.get("__name__", "")

def forbid(event, args):
    if event.startswith("socket.") or event in ("urllib.Request", "http.client.connect", "ftplib.connect"):
        raise RuntimeError(f"forbidden: {event} {args}")
    if event == "pickle.find_class" and not caller().startswith("numba."):  # its cache of compiled kernels
        raise RuntimeError(f"forbidden: {event} {args} by {caller()}")

sys.addaudithook(forbid)
"""


def forbidden(code: str, *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program with all of that forbidden."""
    return subprocess.run(
        [sys.executable, "-c", FORBIDDING + code, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("code", ["import socket; socket.socket()", "import pickle; pickle.loads(pickle.dumps(len))",
                                  "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1/')"])  # fmt: skip
def test_what_is_forbidden_here_would_be_seen(tmp_path, code):
    assert "forbidden" in forbidden(code, folder=tmp_path).stderr


def test_an_audit_opens_no_socket_and_unpickles_nothing(tmp_path):
    files = audit_files(tmp_path)
    words = ["audit", files / "log", f"a={files / 'a'}", f"b={files / 'b'}", "--propensity", "p", "--metric", "mae"]
    outputs = ["--json", "x.json", "--report", "x.html"]
    done = forbidden("from openloop.cli import main; main()", *words, *outputs, folder=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "x.html").stat().st_size > 100_000


def test_models_are_trained_saved_and_asked_without_pickle(tmp_path):
    files = audit_files(tmp_path)
    run = "from openloop.cli import main; main()"
    train = forbidden(
        run, "train", files / "log", "--model", "mf", "--factors", "2", "--out", "m.safetensors", folder=tmp_path
    )
    assert train.returncode == 0, train.stderr
    asked = forbidden(run, "predict", "m.safetensors", "--top", "2", "--out", "top.csv", folder=tmp_path)
    assert asked.returncode == 0, asked.stderr


def imports(path: Path) -> set[str]:
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_only_downloads_know_the_network_and_only_tasks_of_spark_know_pickle():
    network = (
        "socket",
        "ssl",
        "http",
        "urllib.request",
        "urllib.error",
        "ftplib",
        "smtplib",
        "requests",
        "httpx",
        "aiohttp",
    )
    unsafe = ("pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve")
    found = {path.relative_to(PACKAGE).as_posix(): imports(path) for path in PACKAGE.rglob("*.py")}

    def users(names):
        return {
            path for path, own in found.items() if any(f"{name}.".startswith(f"{n}.") for name in own for n in names)
        }

    assert users(network) == {"data/datasets/downloading.py"}
    assert users(unsafe) == {"blocks/spark_jobs.py", "blocks/spark_tasks.py"}  # tasks, which Spark itself pickles
