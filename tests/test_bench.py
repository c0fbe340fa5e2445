"""The benchmark measures what it says, and openloop and its peers agree on the values; no test asserts a time."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from bench import factorisation
from bench.__main__ import CASES, run_case
from bench.environments import installed, interpreter
from bench.harness import Side, race

pytestmark = pytest.mark.slow

HERE = "tests.test_bench"


@pytest.fixture(autouse=True)
def _one_call_a_turn(monkeypatch):
    monkeypatch.setenv("BENCH_TURN_SECONDS", "0")


# -- the cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_case_runs_small(case):
    lines = run_case(case, "quick", install=False)
    assert lines
    for line in lines:
        assert line.ours is not None, line.note
        assert line.met is None  # a small input has no target
        assert (line.ratio is not None) or line.peer is None


def values(case: str, folder: Path, *sides: str, peers: tuple[str, ...] = (), python: Path | str = sys.executable):
    """What the sides of a case return on its small input, here; the peers' under another interpreter."""
    module = import_module(f"bench.{case}")
    module.make(folder, "quick")
    theirs = {name: Side(call=f"bench.{case}:{name}", python=python) for name in peers}
    found = {name: side.value for name, side in race(theirs, folder, 1).items()}
    return found | {name: value_of(getattr(module, name)(folder)) for name in sides}


def value_of(timed):
    """As `bench.worker` has it, without a process."""
    value = timed()
    return value() if callable(value) else value


def test_ranks_are_those_of_the_definition(tmp_path):
    from bench.ranks import load
    from openloop.kernels.ranking import ranks_numpy

    found = values("ranks", tmp_path, "ours")["ours"]
    P, Q, ptr, item = load(tmp_path)
    h, e = ranks_numpy(P @ Q.T, ptr, item)
    assert found == [int(h.sum()), int(e.sum())]


def test_moments_agree_with_the_bare_group_by(tmp_path):
    found = values("moments", tmp_path, "ours", "peer")
    assert found["ours"] == pytest.approx(found["peer"], rel=1e-12)


def test_an_iteration_of_em_agrees_with_dense_matrices(tmp_path):
    from bench import mixture_em

    mixture_em.make(tmp_path, "quick")
    ours, dense = value_of(mixture_em.iteration(tmp_path, "cpt-v")), value_of(mixture_em.dense(tmp_path))
    assert ours == pytest.approx(dense, rel=1e-12)


def test_the_bootstrap_agrees_with_scipy(tmp_path):
    found = values("bootstrap", tmp_path, "ours", "peer")
    # Two standard errors from 1,000 and 500 replicates: each is off by about 1/√(2B).
    assert found["ours"]["stderr"] == pytest.approx(found["peer"]["stderr"], rel=0.2)
    assert found["ours"]["interval"] == pytest.approx(found["peer"]["interval"], abs=found["peer"]["stderr"])


def test_the_values_agree_with_cornac(tmp_path):
    peers = ("peer", "peer_mrr") if installed("cornac") else ()
    found = values("cornac_ranking", tmp_path, "ours", peers=peers, python=interpreter("cornac"))
    assert set(found["ours"]) == {"ndcg@10", "recall@10", "auc", "map", "mrr"}
    for peer in peers:
        for name, value in found[peer].items():
            if (peer, name) != ("peer", "mrr"):  # beside @10 its list is sorted down to 10 only
                assert found["ours"][name] == pytest.approx(value, abs=1e-6), name


def test_ndcg_of_frames_agrees_with_rectools(tmp_path):
    from bench.ndcg_frame import OURS

    peers = ("peer_achievable",) if installed("rectools") else ()
    found = values("ndcg_frame", tmp_path, *OURS, peers=peers, python=interpreter("rectools"))
    for value in found.values():
        assert value == pytest.approx(found["ours_feedback"], abs=1e-12)


def test_the_objective_is_the_one_that_mf_and_cmfrec_minimise(tmp_path):
    factorisation.make(tmp_path, "quick")
    found = {"ours": value_of(factorisation.ours(tmp_path, "200"))}
    if installed("cmfrec"):
        side = Side(call="bench.factorisation:cmfrec", python=interpreter("cmfrec"))
        found["cmfrec"] = race({"cmfrec": side}, tmp_path, 1)["cmfrec"].value
    assert found["ours"]["objective"] == pytest.approx(found["ours"]["history"][-1], rel=1e-5)
    for value in found.values():
        assert value["objective"] == pytest.approx(found["ours"]["objective"], rel=2e-3)


def which_openloop(folder):
    import openloop

    return lambda: openloop.__version__


def test_a_side_imports_the_source_that_it_is_given(tmp_path):
    (tmp_path / "openloop").mkdir()
    (tmp_path / "openloop" / "__init__.py").write_text('__version__ = "another"\n')
    call = f"{HERE}:which_openloop"
    found = race({"here": Side(call=call), "there": Side(call=call, source=tmp_path)}, tmp_path, 1)
    assert found["there"].value == "another"
    assert found["here"].value != "another"
