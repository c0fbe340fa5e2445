"""What is published: the metadata, what wheel and sdist hold, and that the wheel alone runs the demonstration."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from bench.minimum import bounds, read, requirements
from openloop.support.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openloop"
PROJECT = read()
EXTRAS = PROJECT["optional-dependencies"]

# The distributions whose packages have other names.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
# Asked for, and not imported by name.
UNNAMED = {
    "cornac": "loaded by the name of one of its models",
    "duckdb": "its tables come through narwhals",
    "vl-convert-python": "Altair draws pictures by it",
}


# -- what is asked for ---------------------------------------------------------------------------------------


def test_every_requirement_has_a_lower_and_an_upper_bound():
    asked = list(requirements(PROJECT, tuple(EXTRAS)))
    assert len(asked) > 20
    assert all(bounds(line) for line in asked)


def test_what_is_imported_is_asked_for_and_the_reverse():
    asked = {
        bounds(line)[0] for line in requirements(PROJECT, ("duckdb", "pandas", "spark", "torch", "cuda", "cornac"))
    }
    used = {name for module in PACKAGE.rglob("*.py") for name in imported(module)}
    others = {DISTRIBUTIONS.get(name, name) for name in used - {"openloop"} - sys.stdlib_module_names}
    assert others - asked == set(), "import these nowhere, or ask for them in pyproject.toml"
    assert asked - others == set(UNNAMED), "nothing imports these"


def imported(module: Path) -> set[str]:
    """The packages that a module imports, also under `if` and inside functions."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


# -- what is built -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(pypa_build, tmp_path_factory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made of it: what the sdist lacks, the wheel lacks too."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def run(*command: str | Path, **settings) -> str:
    """What a command prints; if it fails, that is the error."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [*map(str, command)], env=clean, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        **settings,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def test_wheel_and_sdist_pass_the_check_of_their_metadata(built):
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built)
    assert said.count("PASSED") == 2


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    inside = {name for name in names if name.startswith("openloop/")}
    assert inside == {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"openloop/py.typed", "openloop/reporting/templates/page.html"} <= inside
    told = f"openloop-{VERSION}.dist-info/"
    assert {name for name in names - inside if not name.startswith(told)} == set()
    assert f"{told}licenses/LICENSE" in names


def test_the_sdist_holds_what_building_and_testing_need(built):
    with tarfile.open(built[0]) as sdist:
        sizes = {member.name.partition("/")[2]: member.size for member in sdist.getmembers()}
    wanted = {"pyproject.toml", "Makefile", "CITATION.cff", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "README.md"}
    assert all(sizes[name] for name in wanted)
    for folder in ("src", "tests", "bench", "docs"):
        here = [path for path in (ROOT / folder).rglob("*.py") if not {"__pycache__", ".envs"} & set(path.parts)]
        assert {path.relative_to(ROOT).as_posix() for path in here} <= set(sizes)
    assert not any(name.startswith((".venv", "bench/.envs")) or "__pycache__" in name for name in sizes)


@pytest.mark.slow
def test_the_wheel_runs_the_demonstration_in_a_bare_environment(built, tmp_path):
    # All dependencies come from the package index: an import that they do not cover fails here, and nowhere else.
    home = tmp_path / "bare"
    run(sys.executable, "-m", "venv", home)
    programs = home / ("Scripts" if sys.platform == "win32" else "bin")
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-q", "--no-compile", built[1], cwd=tmp_path)
    run(*pip, "check", cwd=tmp_path)
    where = run(programs / "python", "-c", "import openloop; print(openloop.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(home)
    told = run(programs / "openloop", "demo", cwd=tmp_path)
    assert "ips" in told
    assert "naive" in told
