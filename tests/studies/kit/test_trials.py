"""Trials are pure, kept by content, computed in processes, and go on after a stop."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

from openloop.errors import InputError, OpenloopError
from openloop.studies.kit.fingerprint import code_digest
from openloop.studies.kit.kept_arrays import digest_of
from openloop.studies.kit.trials import Trials
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


def test_a_failing_trial_says_why_and_the_others_are_kept(tmp_path):
    settings = [{"number": number} for number in range(4)]
    with pytest.raises(InputError, match=facts("failing", "number", 2)), Trials(tmp_path, 0) as trials:
        trials.map(failing, GIVEN, settings, ignore)
    assert len(files(tmp_path)) == 2


def test_a_worker_that_is_killed_is_an_error_that_says_what_to_do(tmp_path):
    settings = [{"number": number} for number in range(4)]
    with pytest.raises(OpenloopError, match=facts("dying", "fewer workers")), Trials(tmp_path, 2) as trials:
        trials.map(dying, GIVEN, settings, ignore)


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
