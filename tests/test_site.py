"""The site: every public name is in the reference and has a state, and no page needs anything from outside."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import itertools
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.main import get_command

import openloop as ol
import openloop.testing
from openloop.cli import app
from tests.browser import page
from tests.reporting.test_report_page import VIOLATIONS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def hook(name):
    """A module of docs/hooks, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_hooks_{name}", DOCS / "hooks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SPACES = ("datasets", "simulate", "propensity", "learners", "bounds", "paradox", "rankings", "figures", "errors")


def public_names():
    """Every public name with what it names: `ol.read`, `ol.propensity.Logistic`, …"""
    found = {f"ol.{name}": getattr(ol, name) for name in ol.__all__}
    modules = {f"ol.{name}": getattr(ol, name) for name in SPACES} | {"ol.testing": openloop.testing}
    for home, module in modules.items():
        names = getattr(module, "__all__", None) or own_names(module)
        found |= {f"{home}.{name}": getattr(module, name) for name in names}
    return found


def own_names(module):
    """What a module without `__all__` defines; of the errors, the classes."""
    names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in names if name[0] != "_" and (module is not ol.errors or name[0].isupper())]


PUBLIC = public_names()


def test_every_public_name_has_a_docstring():
    written = values_with_a_text()
    assert [name for name, value in PUBLIC.items() if not documented(name, value, written)] == []


def documented(name, value, written):
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        return bool((value.__doc__ or "").strip())
    return name.rpartition(".")[2] in written


def values_with_a_text():
    """Names in capitals that a text follows, which is how a value is documented."""
    found = set()
    for source in (ROOT / "src" / "openloop" / "data").rglob("*.py"):
        body = ast.parse(source.read_text(encoding="utf-8")).body
        for node, after in itertools.pairwise(body):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(node, VALUES):
                found.add(ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]))
    return found


VALUES = (ast.Assign, ast.AnnAssign)


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference").glob("*.md")))
    entries = re.findall(r"^::: openloop\.(\S+)$", text, re.MULTILINE)
    assert len(entries) == len(set(entries))
    documented = {id(resolved(entry)) for entry in entries}
    # A module is described by the table of its page, and a name that is offered twice has one entry.
    missing = [n for n, value in PUBLIC.items() if not inspect.ismodule(value) and id(value) not in documented]
    assert missing == []
    assert documented <= {id(value) for value in PUBLIC.values()}


def test_every_command_is_in_the_reference():
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8").partition("## Commands\n")[2]
    assert sorted(re.findall(r"^\| `openloop (\S+)` \|", text, re.MULTILINE)) == sorted(get_command(app).commands)


def resolved(entry):
    value = ol
    for part in entry.split("."):
        value = getattr(value, part)
    return value


def test_every_public_name_is_stable_or_provisional():
    states = hook("states").states
    text = (DOCS / "stability.md").read_text(encoding="utf-8")
    assert sorted(states(text)) == sorted(PUBLIC)
    listed = re.findall(r"`[^`]+`", text.partition("## Every name\n")[2].partition("|---|")[2])
    assert len(listed) == len(PUBLIC) + len(SPACES) + 2  # none in two columns; each line has its module, one is `ol`
    assert {states(text)["ol.read"], states(text)["ol.testing.check_metric"]} == {"stable", "provisional"}


# -- the built site ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory, mkdocs):
    """The site, built strictly; tutorials, which are tested by themselves, are not run."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"OPENLOOP_DOCS_RUN": "0", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", mkdocs, "build", "--quiet", "--site-dir", folder]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Loads(HTMLParser):
    """The addresses of all that a browser fetches with a page, and of the pages that it links to."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.linked, self.anchors, self.classes = [], [], set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found.get("id"), found.get("name")}
        self.classes |= set((found.get("class") or "").split())
        self.loaded += [found[key] for key in ("src", "data", "poster", "srcset") if found.get(key)]
        if tag in ("link", "image", "use"):
            self.loaded += [found[key] for key in ("href", "xlink:href") if found.get(key)]
        elif tag == "a" and found.get("href"):
            self.linked.append(found["href"])


OUTSIDE = re.compile(r"^\s*(?:\w+:)?//|^(?:https?|ftp):", re.IGNORECASE)


def pages(site):
    return {path: Loads(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_no_page_loads_anything_from_outside(site):
    found = pages(site)
    assert len(found) > 40
    for path, loads in found.items():
        assert [address for address in loads.loaded if OUTSIDE.match(address)] == [], path.name
        assert "mermaid" not in loads.classes, path.name  # which the theme would fetch
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']*", text) == [], sheet.name


def test_all_links_of_the_site_lead_somewhere(site):
    found = pages(site)
    for path, loads in found.items():
        if path.name == "404.html":
            continue  # its addresses are those of a server
        for address in loads.linked:
            target, _, anchor = address.partition("#")
            if re.match(r"\w+:", address) or not address:
                continue
            there = (path.parent / target).resolve() if target else path
            assert there.exists(), f"{path.name}: {address}"
            if anchor and there in found and not anchor.startswith("__"):
                assert anchor in found[there].anchors, f"{path.name}: {address}"


def test_the_site_opens_from_a_folder_and_can_be_searched(site, chromium):
    tab = page(chromium, 1280, 900)
    tab.open(site / "index.html", "document.querySelector('.md-search__input')")
    events = "['keyup', 'input'].forEach(name => box.dispatchEvent(new Event(name, {bubbles: true})))"
    tab.run(f"const box = document.querySelector('.md-search__input'); box.focus(); box.value = 'snips'; {events}")
    tab.until("document.querySelectorAll('.md-search-result__item').length > 3")
    assert [address for address in tab.requests() if not address.startswith(("file:", "data:", "about:"))] == []
    assert tab.errors() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["index", "getting-started", "tutorials/which-model", "reference/estimators"])
def test_axe_finds_nothing_serious(site, chromium, axe_core, name, dark):
    tab = page(chromium, 390, 900, dark=dark)
    path = site / f"{name}.html"
    tab.open(path, "true")
    tab.run("localStorage.clear()")  # where the theme keeps the look of the page before
    tab.open(path, "document.querySelector('pre > code[tabindex]')")
    look = "document.body.getAttribute('data-md-color-scheme')"
    assert tab.run(look) == ("slate" if dark else "default")
    tab.run(f"{axe_core};0")
    assert tab.run(f"{VIOLATIONS}({{}})") == []
    assert tab.run("document.documentElement.scrollWidth") == 390
    chromium.call("Target.closeTarget", targetId=tab.target)
