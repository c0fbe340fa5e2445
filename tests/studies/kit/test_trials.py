"""Trials are pure, kept by content, computed in processes, and go on after a stop."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from openloop.errors import InputError, OpenloopError
from openloop.studies.kit.fingerprint import code_digest
from openloop.studies.kit.kept_arrays import digest_of
from openloop.studies.kit.trials import Task, Trials, compute, time_file
from tests.facts import facts

GIVEN = {"x": np.arange(5.0)}


def total(given, *, seed, power=1):
    rng = np.random.default_rng(seed)
    return {"sum": (given["x"] ** power).sum() + rng.random(), "draws": rng.random(3)}


def failing(given, *, number):
    if number == 2:
        raise InputError("failing: number must not be 2, got 2.")
    return {"number": number}


def dying(given, *, number):
    if number == 1:
        os._exit(9)
    return {"number": number}


def objects(given):
    return {"bad": np.array([object()])}


def writing(given):
    given["x"][0] = 7
    return {}


def ignore(_done, _total):
    pass


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / "trials").iterdir()}


def test_outcomes_stand_in_the_order_of_settings_and_do_not_depend_on_the_number_of_processes(tmp_path):
    settings = [{"seed": seed} for seed in (3, 1, 2, 0)]
    found = []
    for workers in (0, 1, 2):
        with Trials(tmp_path / str(workers), workers) as trials:
            found.append(trials.map(total, GIVEN, settings, ignore))
    for one, setting in zip(found[0], settings, strict=True):
        np.testing.assert_array_equal(one["sum"], 10 + np.random.default_rng(setting["seed"]).random())
    assert files(tmp_path / "0") == files(tmp_path / "1") == files(tmp_path / "2")


def test_what_is_kept_is_not_computed_again(tmp_path):
    seen = []
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
        before = {file: file.stat().st_mtime_ns for file in (tmp_path / "trials").iterdir()}
        trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]
    assert all(file.stat().st_mtime_ns == moment for file, moment in before.items())


def test_processor_seconds_are_known_of_trials_that_an_earlier_run_computed(tmp_path):
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
        kept = trials.spent()
        trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], ignore)
        both = trials.spent()
    assert (kept.trials, kept.computed, kept.timed) == (1, 0, 1)
    assert (both.trials, both.computed, both.timed) == (2, 1, 2)
    assert both.seconds >= kept.seconds >= 0
    time_file(next((tmp_path / "trials").iterdir())).unlink()
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], ignore)
        assert trials.spent().timed == 1


def test_a_trial_that_an_item_asks_for_twice_counts_once(tmp_path):
    with Trials(tmp_path, 0) as trials:
        for _ in range(2):
            trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}, {"seed": 0}], ignore)
        spent = trials.spent()
    assert (spent.trials, spent.computed) == (2, 2)


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"x": np.arange(5.0) + 1e-9}, {"seed": 0}),
        ({"x": np.arange(5.0, dtype=np.float32)}, {"seed": 0}),
        ({"x": np.arange(5.0).reshape(5, 1)}, {"seed": 0}),
        (GIVEN, {"seed": 1}),
        (GIVEN, {"seed": 0, "power": 2}),
    ],
)
def test_other_data_or_settings_are_other_trials(tmp_path, given, setting):
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
        trials.map(total, given, [setting], ignore)
    assert len(files(tmp_path)) == 2


def test_code_that_changes_while_a_run_goes_on_is_refused(tmp_path):
    task = Task(total, tmp_path / "none.npz", {"seed": 0}, tmp_path / "out.npz", "another digest")
    with pytest.raises(OpenloopError, match=facts("total", "changed")):
        compute(task)
    assert not (tmp_path / "out.npz").exists()


def test_remains_of_killed_processes_are_removed_once_they_are_old(tmp_path):
    with Trials(tmp_path, 0):
        pass
    trials = tmp_path / "trials"
    mark = "npz.0123abcd-7-7-0123abcd.openloop"  # of another host
    old, young, folder, other = (
        trials / f".{name}" for name in (f"old.{mark}", f"young.{mark}", f"x.{mark}", "x.npz.bak")
    )
    for file in (old, young, other):
        file.write_text("")
    folder.mkdir()
    for file in (old, other, folder):
        os.utime(file, (0, 0))
    with Trials(tmp_path, 0):
        assert sorted(trials.iterdir()) == sorted([young, other, folder])


def test_a_failing_trial_says_why_and_the_others_are_kept(tmp_path):
    settings = [{"number": number} for number in range(4)]
    with pytest.raises(InputError, match=facts("failing", "number", 2)), Trials(tmp_path, 0) as trials:
        trials.map(failing, GIVEN, settings, ignore)
    assert len(files(tmp_path)) == 2


def test_a_worker_that_is_killed_is_an_error_that_says_what_to_do(tmp_path):
    settings = [{"number": number} for number in range(4)]
    with pytest.raises(OpenloopError, match=facts("dying", "fewer workers")), Trials(tmp_path, 2) as trials:
        trials.map(dying, GIVEN, settings, ignore)


def test_a_kept_file_that_was_cut_is_computed_again(tmp_path):
    with Trials(tmp_path, 0) as trials:
        (before,) = trials.map(total, GIVEN, [{"seed": 0}], ignore)
        (kept,) = (tmp_path / "trials").iterdir()
        whole = kept.read_bytes()
        kept.write_bytes(whole[:50])
        (after,) = trials.map(total, GIVEN, [{"seed": 0}], ignore)
    assert before["sum"] == after["sum"]
    assert kept.read_bytes() == whole


def damages(whole: bytes, other: bytes) -> dict[str, bytes]:
    """What may become of a file: cut, a bit turned anywhere, another file, nothing, or one that was kept before."""
    draw = np.random.default_rng(0)
    turned = {f"bit {at}": whole[:at] + bytes([whole[at] ^ (1 << draw.integers(8))]) + whole[at + 1 :]
              for at in draw.integers(0, len(whole), 60)}  # fmt: skip
    cut = {f"cut at {at}": whole[:at] for at in draw.integers(0, len(whole), 10)}
    plain = io.BytesIO()
    np.savez(plain, sum=1.0, draws=np.zeros(3))  # a file without a digest
    return turned | cut | {"empty": b"", "other": other, "text": b"PK not a zip", "unsigned": plain.getvalue()}


def test_any_damage_to_a_kept_file_means_that_it_is_absent(tmp_path):
    with Trials(tmp_path, 0) as trials:
        before, _ = trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], ignore)
        one, two = (trials._file(total, digest_of(GIVEN), {"seed": s}, code_digest(total)) for s in (0, 1))
        whole, other = one.read_bytes(), two.read_bytes()
        for how, text in damages(whole, other).items():
            one.write_bytes(text)
            (after,) = trials.map(total, GIVEN, [{"seed": 0}], ignore)
            assert after["sum"] == before["sum"], how
            np.testing.assert_array_equal(after["draws"], before["draws"], how)
            if not how.startswith("bit"):  # some bits, as those of dates, mean nothing
                assert one.read_bytes() == whole, how
        assert trials.notes == []


def test_given_arrays_that_are_damaged_are_written_again(tmp_path):
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
        (given,) = (tmp_path / "given").iterdir()
        whole = given.read_bytes()
        given.write_bytes(whole[:-40] + bytes(40))
        (found,) = trials.map(total, GIVEN, [{"seed": 1}], ignore)
        assert found["sum"] == 10 + np.random.default_rng(1).random()
    assert given.read_bytes() == whole


def test_seconds_that_are_damaged_are_not_known(tmp_path):
    with Trials(tmp_path, 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
        (file,) = (tmp_path / "seconds").iterdir()
        for text in ("", "soon", "nan", "-1", "inf"):
            trials.spent()
            file.write_text(text)
            trials.map(total, GIVEN, [{"seed": 0}], ignore)
            assert trials.spent().timed == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_a_folder_that_takes_no_file_is_a_note_and_not_an_end(tmp_path, workers):
    with Trials(tmp_path / "fine", 0) as trials:
        right = trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], ignore)
    limited = tmp_path / "full"
    with Trials(limited, workers) as trials:
        for kind in ("given", "trials", "seconds"):
            (limited / kind).rmdir()
            (limited / kind).write_text("in the way")  # nothing can be written below it
        found = trials.map(total, GIVEN, [{"seed": 0}, {"seed": 1}], ignore)
        assert [one["sum"] for one in found] == [one["sum"] for one in right]
        (note,) = {note.partition(":")[0] for note in trials.notes}
        assert str(limited) in note
        assert trials.spent().timed == 0


def test_what_a_full_disk_says_is_noted_once(tmp_path, monkeypatch):
    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", full)
    with Trials(tmp_path, 0) as trials:
        (found,) = trials.map(total, GIVEN, [{"seed": 0}], ignore)
    assert found["sum"] == 10 + np.random.default_rng(0).random()
    (note,) = trials.notes
    assert re.search(facts(tmp_path, os.strerror(errno.ENOSPC)), note)
    assert list((tmp_path / "trials").iterdir()) == []
    monkeypatch.setattr(Path, "mkdir", full)
    with Trials(tmp_path / "new", 0) as trials:
        trials.map(total, GIVEN, [{"seed": 0}], ignore)
    assert os.strerror(errno.ENOSPC) in trials.notes[0]


def test_what_cannot_be_kept_is_refused(tmp_path):
    with Trials(tmp_path, 0) as trials:
        with pytest.raises(InputError, match=facts("objects", "bad")):
            trials.map(objects, GIVEN, [{}], ignore)
        with pytest.raises(InputError, match=facts("setting", "'seed'", "<object")):
            trials.map(total, GIVEN, [{"seed": object()}], ignore)
        with pytest.raises(ValueError, match="read-only"):
            trials.map(writing, GIVEN, [{}], ignore)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=facts("cache folder", tmp_path / "file")):
        Trials(tmp_path / "file", 0)


SLOW = """
import sys, time
from pathlib import Path
import numpy as np
from openloop.studies.kit.trials import Trials

def slow(given, *, number):
    time.sleep(0.0 if number < 2 else float(given["wait"]))
    return {{"y": np.random.default_rng(number).random(3)}}

if __name__ == "__main__":
    with Trials(Path(sys.argv[1]), 2) as trials:
        given, settings = {{"wait": np.array({wait})}}, [{{"number": n}} for n in range(4)]
        trials.map(slow, given, settings, lambda done, _: print(done, flush=True))
"""


def test_a_script_needs_no_guard_for_trials_of_a_study(tmp_path):
    script = (
        "import numpy as np, pathlib, sys\nfrom openloop.studies.kit.trials import Trials\n"
        "from tests.studies.made_up import toss\nprint('once')\n"
        "with Trials(pathlib.Path(sys.argv[1]), 2) as trials:\n"
        "    settings = [{'seed': seed, 'n': 9} for seed in (0, 1)]\n"
        "    found = trials.map(toss, {'sides': np.arange(2.0)}, settings, lambda done, total: None)\n"
        "print(len(found))\n"
    )
    by_pipe = [sys.executable, "-", str(tmp_path)]
    root = Path(__file__).parents[3]
    done = subprocess.run(by_pipe, input=script, capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.split() == ["once", "2"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_keeps_what_is_done_and_its_processes_end(tmp_path, how):
    script = tmp_path / "slow.py"
    script.write_text(SLOW.format(wait=600.0))
    started = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "kept")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # Where this test is run in the background, interrupts would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )  # fmt: skip
    for line in started.stdout:
        if line.strip() == "2":
            break
    started.send_signal(how)
    started.wait(timeout=60)
    assert len(files(tmp_path / "kept")) == 2
    _wait_until_gone(started.pid)
    started.stdout.close()
    started.stderr.close()


def _wait_until_gone(session: int) -> None:
    """No process of the session is left."""
    for _ in range(300):
        alive = subprocess.run(
            ["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True, check=False
        )
        if not [line for line in alive.stdout.splitlines() if "Z" not in line]:
            return
        time.sleep(0.1)
    pytest.fail(f"processes of session {session} are left: {alive.stdout}")
