"""`python -m openloop` is the command line."""

import subprocess
import sys
from importlib.metadata import version

import openloop as ol
from openloop.support.version import VERSION


def test_the_module_runs_as_the_command():
    run = subprocess.run([sys.executable, "-m", "openloop", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"openloop {ol.__version__}"


def test_it_calls_itself_as_the_command_does():
    run = subprocess.run([sys.executable, "-m", "openloop", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: openloop [OPTIONS]" in run.stdout


def test_the_distribution_and_the_package_have_one_version():
    assert ol.__version__ == VERSION == version("openloop")
