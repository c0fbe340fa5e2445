"""The tree keeps the promises that README and the design make about it."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import openloop as ol

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openloop"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_ROLE = 120

# What `import openloop` may bring along.
LIGHT = {"openloop", "numpy", "narwhals"}

# A package index, by the look of its address or by an option that names one; it does not find itself.
REGISTRY = re.compile(
    r"https?://[^\s)\"'>]*(?:pypi|/simple\b|registry|mirror|artifactory|nexus)"
    r"|\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|com|net|io)\b"
    r"|\b(?:extra-)?index-url\b\s*[=:]|\bPIP_(?:EXTRA_)?INDEX_URL\b\s*=",
    re.IGNORECASE,
)


def name(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_every_module_opens_with_its_role():
    offenders = {}
    for module in MODULES:
        docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
        role, *rest = (docstring or "").splitlines() or [""]
        if not role:
            offenders[name(module)] = "has no docstring"
        elif len(role) >= MAX_ROLE:
            offenders[name(module)] = f"role has {len(role)} characters"
        elif rest and rest[0].strip():
            offenders[name(module)] = "role runs over one line"
    assert offenders == {}


def test_public_names_are_those_of_the_reference():
    assert ol.__all__ == documented_names((ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8"))


def documented_names(page: str) -> list[str]:
    """The names `ol.x` in the first column of the table under "## Public names"."""
    section = re.search(r"^## Public names\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert section, 'The reference has no section "## Public names"'
    rows = [line for line in section[1].splitlines() if line.startswith("|")][2:]  # after head and rule
    names = []
    for row in rows:
        found = re.findall(r"`ol\.(\w+)`", row.split("|")[1])
        assert found, f"no `ol.name` in the first column of {row!r}"
        names += found
    return names


def test_public_names_exist():
    assert [public for public in ol.__all__ if not hasattr(ol, public)] == []


def test_import_is_light():
    # Compiled modules leave private names, and Cython entries without a __spec__: neither is a package.
    program = """if True:
        import sys
        before = set(sys.modules)
        import openloop
        new = {name: sys.modules[name] for name in set(sys.modules) - before}
        print(*{name.split(".")[0] for name, module in new.items() if getattr(module, "__spec__", None)})
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if not name.startswith("_")}
    assert loaded - sys.stdlib_module_names - LIGHT == set()


def test_no_file_names_a_package_registry():
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / file for file in run.stdout.split("\0") if file]
    assert ROOT / "pyproject.toml" in files
    offenders = []
    for file in filter(Path.is_file, files):
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if REGISTRY.search(line):
                offenders.append(f"{file.relative_to(ROOT)}:{number}")
    assert offenders == []


def test_the_registry_pattern_finds_one():
    scheme, host = "https:" + "//", "pypi" + ".org"
    assert REGISTRY.search(f"see {host} for it")
    assert REGISTRY.search(f"{scheme}packages.example/simple/openloop")
    assert REGISTRY.search("--index" + "-url=packages.example")
    assert not REGISTRY.search(f"{scheme}www.apache.org/licenses/")


def test_no_module_has_the_name_of_a_public_function():
    functions = {public for public in ol.__all__ if inspect.isroutine(getattr(ol, public))}
    # Only a direct child of the package becomes an attribute of it when it is loaded.
    children = {
        module.stem for module in PACKAGE.iterdir() if module.suffix == ".py" or (module / "__init__.py").exists()
    }
    assert functions & children == set()
