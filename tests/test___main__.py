"""`python -m openloop` is the command line."""

import subprocess
import sys

import openloop as ol


def test_the_module_runs_as_the_command():
    run = subprocess.run([sys.executable, "-m", "openloop", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"openloop {ol.__version__}"


def test_it_calls_itself_as_the_command_does():
    run = subprocess.run([sys.executable, "-m", "openloop", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: openloop [OPTIONS]" in run.stdout
