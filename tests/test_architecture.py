"""The tree keeps the promises that README and the design make about it."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openloop as ol

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "openloop"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Modules that only declare types have no behaviour to test.
TYPES_ONLY = {"core/protocols.py"}

MAX_LINES = 400
MAX_ROLE = 110
MAX_PARAMETERS = 8

# Functions with more parameters, and why; public functions, commands, models and compiled kernels need no reason.
MANY_PARAMETERS = {
    "kernels/cuda/ranking.py: factor_ranks": "as its CPU twin",
    "kernels/ranking.py: factor_ranks": "a kernel's door: factors and ragged lists as plain arrays",
    "studies/kit/charts.py: lines": "a chart's channels, each a keyword",
}

# Class names that modules share, and why nobody mixes them up.
SHARED_CLASS_NAMES = {
    "Popularity": "public in two packages: a model of items, a model of propensities",
    "Check": "public in two packages: of a data set's files, of propensities",
    "Part": "the files of a data set, the rows of a paradox: public in modules that do not meet",
    "Rows": "arrays of a kernel, scored rows of a source: modules that do not meet",
}

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


def test_the_package_is_found():
    assert "errors.py" in map(name, MODULES)


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


def test_tests_mirror_the_tree():
    missing = []
    for module in MODULES:
        if module.name == "__init__.py" or name(module) in TYPES_ONLY or name(module).startswith("studies/"):
            continue
        test = Path("tests", module.relative_to(PACKAGE).parent, f"test_{module.name}")
        if not (ROOT / test).is_file():
            missing.append(test.as_posix())
    assert missing == []


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


def test_no_module_is_too_long():
    lengths = {name(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {module: length for module, length in lengths.items() if length > MAX_LINES} == {}


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


def test_functions_take_few_parameters():
    many = {
        f"{name(module)}: {path}"
        for module in MODULES
        for path, function in functions(ast.parse(module.read_text(encoding="utf-8")))
        if len(parameters(function)) > MAX_PARAMETERS and not may_take_many(module, path, function)
    }
    assert many == set(MANY_PARAMETERS)


def functions(tree: ast.AST, path: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function of a module with the classes and functions that it is defined in: Class.method."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{path}.{node.name}".strip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else path
        if isinstance(node, ast.FunctionDef):
            yield inner, node
        yield from functions(node, inner)


def parameters(function: ast.FunctionDef) -> list[str]:
    given = function.args
    several = [part for part in (given.vararg, given.kwarg) if part is not None]
    names = [part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs, *several)]
    return [part for part in names if part not in ("self", "cls")]


def may_take_many(module: Path, path: str, function: ast.FunctionDef) -> bool:
    """Public functions, commands, models, which scikit-learn wants to list their settings, and compiled kernels."""
    package = name(module).partition("/")[0]
    home = ".".join(module.relative_to(PACKAGE.parent).with_suffix("").parts)
    public = path in ol.__all__ and getattr(getattr(ol, path), "__module__", None) == home
    command = package == "cli" and path == module.stem
    model = package in ("learners", "propensity") and path.endswith(".__init__")
    compiled = any(re.search("jit|inlined", ast.unparse(decorator)) for decorator in function.decorator_list)
    return public or command or model or compiled


def test_parameters_are_counted_wherever_a_function_is_defined():
    tree = ast.parse("class A:\n def f(self, a, /, b, *c, d, **e):\n  def g(h): ...")
    assert {path: parameters(function) for path, function in functions(tree)} == {"A.f": list("abdce"), "A.f.g": ["h"]}


def test_no_two_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name(module))
    assert {each for each, modules in homes.items() if len(modules) > 1} == set(SHARED_CLASS_NAMES)


# -- the map in docs/architecture.md -------------------------------------------------------------------------

MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_map_has_every_module_with_its_own_first_line():
    rows = set(re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", MAP, re.MULTILINE))
    roles = {
        (name(module), first_line(module).rstrip(".").replace("|", "\\|"))
        for module in MODULES
        if module.name != "__init__.py"
    }
    assert sorted(roles - rows) == [], "add these rows"
    assert sorted(rows - roles) == [], "remove these rows"


def first_line(module: Path) -> str:
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").splitlines()[0]


def test_every_path_on_the_map_exists():
    paths = set(re.findall(r"`([\w/]+(?:\.py|\.md|/))`", MAP))
    assert len(paths) > len(MODULES) / 2
    assert [path for path in paths if not ((PACKAGE / path).exists() or (ROOT / path).exists())] == []
    layers = re.search(r"```\n(__main__\n.*?)```", MAP, re.DOTALL)
    assert layers
    parts = [re.split(r"\s{2,}", line)[0] for line in layers[1].splitlines()]
    named = {part.strip() for line in parts for part in line.split("|")}
    children = {path.stem for path in PACKAGE.iterdir() if path.name not in ("__init__.py", "py.typed", "__pycache__")}
    assert named == children
