"""The benchmark measures what it says, and openloop and its peers agree on the values; no test asserts a time."""

from __future__ import annotations

import json
import re
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from bench import factorisation, gpu
from bench.__main__ import CASES, run_case
from bench.environments import environment, installed, interpreter
from bench.harness import ROOT, Measured, Side, SideError, compare, make_input, missing, race, table, write
from bench.versus import versus
from tests.facts import facts

HERE = "tests.test_bench"
MIB = 2**20

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _one_call_a_turn(monkeypatch):
    monkeypatch.setenv("BENCH_TURN_SECONDS", "0")


# -- sides of races, run in processes of their own -----------------------------------------------------------


def chatty(folder, *rest):
    sys.stdout.write("loading\n")

    def timed():
        sys.stdout.write("working\n")
        return [str(folder), *rest]

    return timed


def frugal(folder):
    return lambda: 0


def greedy(folder):
    return lambda: len(bytearray(200 * MIB))


def deferred(folder):
    def timed():
        def value():
            time.sleep(0.5)
            return len(bytearray(200 * MIB))

        return value

    return timed


def failing(folder):
    def timed():
        raise ValueError("the input is odd")

    return timed


def make(folder, size):
    return {"made": size}


# -- the harness ---------------------------------------------------------------------------------------------


def test_a_side_may_print_and_gets_its_arguments(tmp_path):
    found = race({"a": Side(call=f"{HERE}:chatty", rest=("x", "y"))}, tmp_path, 2)["a"]
    assert found.value == [str(tmp_path), "x", "y"]
    assert len(found.seconds) >= 2


def test_the_best_call_counts_and_the_first_is_known():
    found = Measured(seconds=(3.0, 1.0, 2.0), peak=0, value=None)
    assert (found.first, found.best) == (3.0, 1.0)


def test_memory_is_each_sides_own(tmp_path):
    held = bytearray(100 * MIB)  # what this process holds is not the sides' concern
    found = race({name: Side(call=f"{HERE}:{name}") for name in ("greedy", "frugal")}, tmp_path, 1)
    assert found["greedy"].value == 200 * MIB
    assert found["greedy"].peak - found["frugal"].peak > 150 * MIB
    del held


def test_a_value_may_be_worked_out_when_the_clock_has_stopped(tmp_path):
    found = race({"a": Side(call=f"{HERE}:deferred")}, tmp_path, 1)["a"]
    assert found.value == 200 * MIB
    assert found.best < 0.5
    assert found.grown < 150 * MIB


def test_a_failing_side_says_why(tmp_path):
    sides = {"a": Side(call=f"{HERE}:frugal"), "b": Side(call=f"{HERE}:failing")}
    with pytest.raises(SideError, match=facts(f"{HERE}:failing", "status 1", "ValueError", "the input is odd")):
        race(sides, tmp_path, 1)


def test_an_input_is_made_in_a_process_of_its_own(tmp_path):
    assert make_input(HERE, tmp_path, "quick") == {"made": "quick"}


def test_a_ratio_is_ours_over_the_peers():
    line = compare("a", 3.0, 2.0, target=1.4)
    assert (line.ratio, line.met) == (1.5, False)
    assert compare("a", 3.0, 2.0, target=1.5).met is True
    assert compare("a", 3.0, 2.0).met is None


def test_without_a_peer_the_target_is_absolute():
    line = compare("a", 0.2, target=0.3)
    assert (line.ratio, line.met) == (None, True)


def test_the_table_shows_ratios_targets_and_reasons(tmp_path):
    lines = [
        compare("fast", 1.0, 250.0, target=1 / 100, note="how"),
        compare("small", 5.0 * MIB, target=3.0 * MIB, unit="B"),
        missing("absent", "no such peer", 1.0),
    ]
    shown = table(lines).splitlines()
    assert shown[1].split() == ["fast", "1", "s", "250", "s", "1/250", "≤", "1/100", "yes"]
    assert shown[2].split() == ["small", "5", "MiB", "≤", "3", "MiB", "NO"]
    assert "fast: how" in shown
    assert any(re.search(facts("absent", "no such peer"), line) for line in shown)
    write(lines, tmp_path / "results.json")
    assert [line["met"] for line in json.loads((tmp_path / "results.json").read_text())] == [True, False, None]


def test_a_peer_that_is_not_installed_is_not_installed_by_a_test():
    with pytest.raises(SideError, match=facts("nowhere", "python -m bench")):
        environment("nowhere", install=False)


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
    found = values("moments", tmp_path, "ours", "ours_checked", "peer")
    assert found["ours"] == pytest.approx(found["peer"], rel=1e-12)
    assert found["ours_checked"] == pytest.approx(found["peer"], rel=1e-12)


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


def test_two_trees_are_measured_by_the_same_case():
    here, there = versus("moments", ROOT, "quick")
    assert here > 0
    assert there > 0


# -- a GPU's page ---------------------------------------------------------------------------------------------

LINES = [
    {"what": "ranks", "size": "2 × 3", "ms": 3.0, "base": 1.5, "target": "≤ 2.1×", "met": True, "note": ""},
    {
        "what": "a fit",
        "size": "5 rows",
        "ms": 1500.0,
        "base": None,
        "target": "≤ 1 s",
        "met": False,
        "note": "on a host",
    },
]


def test_lines_of_a_gpu_are_put_between_the_marks_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{gpu.MARKS[0]}\nold\n{gpu.MARKS[1]}\nafter\n", encoding="utf-8")
    gpu.write({"machine": "one GPU", "checks": ["all equal"], "lines": LINES}, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| ranks | 2 × 3 | 3 ms | 2.00× of 1.5 ms | ≤ 2.1× | met |  |" in text
    assert "| a fit | 5 rows | 1.5 s |  | ≤ 1 s | **missed** | on a host |" in text
    assert "- all equal" in text
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match=facts("marks", "page.md")):
        gpu.write({"machine": "one GPU", "checks": [], "lines": []}, page)


def test_the_guide_has_what_a_gpu_measured():
    before, _, rest = gpu.PAGE.read_text(encoding="utf-8").partition(gpu.MARKS[0])
    table, end, _ = rest.partition(gpu.MARKS[1])
    assert before
    assert end
    assert table.count("| met |") == 6  # each target of the design
    assert "missed" not in table
