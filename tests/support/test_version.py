"""One version for the package, its distribution and what it writes."""

from importlib.metadata import version

import openloop as ol
from openloop.support.version import VERSION


def test_the_distribution_and_the_package_have_one_version():
    assert ol.__version__ == VERSION == version("openloop")
