"""What every test may ask for: data folders, optional packages and programs, Spark; and no skipping in CI."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.browser import Pipe

ROOT = Path(__file__).resolve().parents[1]
CI = os.environ.get("CI") == "true"

pytest.register_assert_rewrite("tests.contracts", "tests.strategies")

# No deadline: the first example of a test may compile a numba kernel. For the same reason `too_slow` is off.
hypothesis.settings.register_profile("dev", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("ci", hypothesis.settings.get_profile("dev"), derandomize=True)
hypothesis.settings.load_profile("ci" if CI else "dev")


# -- markers and skips ---------------------------------------------------------------------------------------

LIBRARIES = {"implicit", "lightfm", "surprise", "lenskit", "faiss"}  # whose models `ol.wrap` takes
# The fixtures below that `make` alone does not install.
EXTRAS = {"torch", "triton", "cornac", "chromium", "axe_core", "mkdocs", "nbclient", "pypa_build", *LIBRARIES}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Where extras alone are asked for, other files need not be imported to be left out.
    alone = config.option.markexpr == "extra" and collection_path.name.startswith("test_")
    return True if alone and collection_path.is_file() and not names_an_extra(collection_path) else None


@cache
def names_an_extra(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(name in text for name in EXTRAS)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker("spark")
        if fixtures & EXTRAS:
            if not names_an_extra(item.path):
                raise pytest.UsageError(f"{item.nodeid} must name the extra that it uses, or `-m extra` leaves it out.")
            item.add_marker("extra")
    # What takes long begins first: begun last, it would run alone, with one core idle.
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow and item.get_closest_marker("spark") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    from xdist.scheduler import LoadFileScheduling

    class OneSpark(LoadFileScheduling):
        """A file stays in one process, but all tests that Spark is named in share one: a session starts once."""

        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "spark" in nodeid.rpartition("::")[2] else super()._split_scope(nodeid)

    return OneSpark(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    # Where everything runs, only extras may be missing; where they alone are asked for, nothing may.
    may_skip = item.get_closest_marker("extra") and item.config.option.markexpr != "extra"
    return report if may_skip else fail_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return fail_if_skipped(report)


def fail_if_skipped(report):
    # An expected failure is reported as skipped too, but it ran.
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"This test may not skip in CI. {reason}"
    return report


# -- data ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def data_dir() -> Callable[[str], Path]:
    """`data_dir("coat")` is the folder of that data set, in $OPENLOOP_DATA or else in ../shared/data."""

    def find(name: str) -> Path:
        places = [ROOT.parent / "shared" / "data" / name]
        if "OPENLOOP_DATA" in os.environ:
            places.insert(0, Path(os.environ["OPENLOOP_DATA"]) / name)
        for place in places:
            if place.is_dir():
                return place
        pytest.skip(f"data set {name!r} is neither in $OPENLOOP_DATA nor in {places[-1].parent}")

    return find


# -- the disk ------------------------------------------------------------------------------------------------


@pytest.fixture
def small_files() -> Callable[[int], AbstractContextManager[None]]:
    """`with small_files(n)`: no file of this process grows beyond n bytes, which reads as a full disk does."""
    import resource

    @contextmanager
    def limit(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limit


# -- extras --------------------------------------------------------------------------------------------------


def import_triton() -> None:
    """Triton's own functions run in Python if it is told so when it is first imported, which optimisers of torch do."""
    if importlib.util.find_spec("triton") is not None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")
            importlib.import_module("triton")


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    import_triton()
    return pytest.importorskip("torch", reason="torch is an extra: pip install 'openloop[torch]'")


@pytest.fixture(scope="session")
def interpreter(torch) -> Iterator[ModuleType]:
    """Triton, whose kernels run in Python on tensors of the CPU: it says so once, before they are defined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        yield pytest.importorskip("triton", reason="Triton is an extra: pip install 'openloop[cuda]'")


@pytest.fixture
def triton(interpreter) -> Iterator[ModuleType]:
    """The same for one test: what overflows on purpose in a kernel is a warning in Python."""
    with np.errstate(all="ignore"):
        yield interpreter


@pytest.fixture(scope="session")
def cornac() -> ModuleType:
    import_triton()
    return pytest.importorskip("cornac", reason="Cornac is an extra: pip install 'openloop[cornac]'")


def library(name: str, package: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a library that is imported
        return pytest.importorskip(name, reason=f"a library of models is an extra: pip install {package}")


@pytest.fixture(scope="session")
def implicit() -> ModuleType:
    return library("implicit", "implicit")


@pytest.fixture(scope="session")
def lightfm() -> ModuleType:
    return library("lightfm", "lightfm-next")


@pytest.fixture(scope="session")
def surprise() -> ModuleType:
    return library("surprise", "scikit-surprise")


@pytest.fixture(scope="session")
def lenskit() -> ModuleType:
    import_triton()
    return library("lenskit", "torch lenskit")


@pytest.fixture(scope="session")
def faiss() -> ModuleType:
    return library("faiss", "faiss-cpu")


@pytest.fixture(scope="session")
def nbclient() -> ModuleType:
    """What executes notebooks, with a kernel of this Python."""
    for package in ("ipykernel", "nbformat", "nbclient"):
        found = pytest.importorskip(package, reason=f"{package} is an extra: pip install 'openloop[docs]'")
    return found


@pytest.fixture(scope="session")
def pypa_build() -> ModuleType:
    """`python -m build`, with the backend that it runs and twine, which looks at what it made."""
    for package in ("hatchling", "twine", "build"):
        found = pytest.importorskip(package, reason=f"{package} is an extra: pip install 'openloop[release]'")
    return found


@pytest.fixture(scope="session")
def mkdocs() -> str:
    """The name of the module that builds the site, with the theme and the reference that it needs."""
    for package in ("material", "mkdocstrings", "jupytext", "nbclient", "ipykernel", "mkdocs"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is an extra: pip install 'openloop[docs]'")
    return "mkdocs"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipe]:
    """A headless browser, to open tabs in with `tests.browser.page`."""
    from tests.browser import browser, command

    if (program := command()) is None:
        pytest.skip("no Chromium or Chrome on PATH (Debian and Ubuntu: apt install chromium)")
    with browser(program, tmp_path_factory.mktemp("profile")) as pipe:
        yield pipe


@pytest.fixture(scope="session")
def axe_core() -> str:
    """The script of axe-core, which finds what keeps people from a page; a page is given it by the browser."""
    script = ROOT / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("no axe-core: npm install --no-save --no-package-lock --prefix .venv/axe axe-core@4")
    return script.read_text(encoding="utf-8")


# -- Spark ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session on two local threads that listens on 127.0.0.1 only."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or newer: no `java` on PATH and no JAVA_HOME")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # Frames here have a few hundred rows: compiling a plan takes longer than running it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").appName("openloop-tests")
        session = builder.config(map=settings).getOrCreate()
        yield session
        session.stop()
