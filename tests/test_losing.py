"""Executors and Python workers that are lost on Spark: evaluation, propensities, fits and ranks come out the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import openloop as ol

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def told(spark, tmp_path_factory):
    # In a process of its own: a session has one master, and this one needs executors that can be lost.
    folder = tmp_path_factory.mktemp("losing")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))}
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(ol.__file__).parents[1])]), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    command = [sys.executable, str(ROOT / "tests" / "losing.py"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"
    found = json.loads((folder / "told.json").read_text("utf-8"))
    # One in the evaluation, two for propensities, two passes and the ranks of the fit; nothing is still held.
    assert (found["lost"], found["held"]) == (6, 0)
    assert found["late"] < 3  # of the three that are lost while a task runs, one at least was: the machine may be slow
    return found


@pytest.mark.slow
def test_an_evaluation_survives_a_lost_executor(told):
    calm, lossy = told["evaluate"]
    assert list(calm) == list(lossy)
    for key, values in calm.items():
        np.testing.assert_allclose(lossy[key], values, rtol=1e-12, err_msg=key)


@pytest.mark.slow
def test_propensities_survive_lost_executors(told):
    calm, lossy = told["propensities"]
    np.testing.assert_allclose(lossy, calm, rtol=1e-12)


@pytest.mark.slow
def test_a_fit_and_its_ranks_have_the_same_bits_after_losses(told):
    assert told["fit"] == {"fit": True, "ranks": True}
