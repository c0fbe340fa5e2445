"""An environment of its own for each peer whose pins may clash with ours, made when it is first needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.harness import SideError

# A peer is the name of its package. Those used here pull in no torch.
HOME = Path(__file__).parent / ".envs"
# What a peer imports and does not ask for.
COMPANIONS = {"cmfrec": ("pandas", "threadpoolctl")}


def interpreter(peer: str) -> Path:
    """Where the peer's interpreter is, or would be."""
    return HOME / peer / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def installed(peer: str) -> bool:
    """Whether the peer's environment is complete."""
    return (HOME / peer / ".installed").is_file()


def environment(peer: str, *, install: bool = True) -> Path:
    """The peer's interpreter; without it, a SideError with the reason."""
    if installed(peer):
        return interpreter(peer)
    if not install:
        raise SideError(f"{peer} is not installed; `python -m bench` installs it under {HOME.name}/{peer}")
    print(f"Installing {peer} into {HOME / peer}", file=sys.stderr)
    shutil.rmtree(HOME / peer, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(HOME / peer)], peer)
    packages = [peer, *COMPANIONS.get(peer, ())]
    _run([str(interpreter(peer)), "-m", "pip", "install", "--disable-pip-version-check", *packages], peer)
    (HOME / peer / ".installed").touch()
    return interpreter(peer)


def _run(command: list[str], peer: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        said = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
        raise SideError(f"{peer} could not be installed: {said[-1] if said else f'status {ran.returncode}'}")
