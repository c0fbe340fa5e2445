"""Where kernels run: what is no device is refused, memory that is too small is told by its number, TF32 comes back."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from openloop.errors import DeviceError, InputError, MissingPackageError
from tests.facts import facts


@pytest.fixture
def devices(triton):
    from openloop.kernels.cuda import devices

    return devices


def test_the_interpreter_runs_on_the_cpu(devices):
    assert devices.device_of("MF", "cuda").type == "cpu"


@pytest.mark.parametrize("given", ["gpu!", "", 1.5], ids=["word", "empty", "number"])
def test_what_torch_does_not_know_is_no_device(devices, given):
    with pytest.raises(InputError, match=facts("MF", "device", repr(given))):
        devices.device_of("MF", given)


def test_the_cpu_is_asked_for_by_leaving_device_out(devices, monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(InputError, match=facts("MF", "device", "'cpu'", "None")):
        devices.device_of("MF", "cpu")


@pytest.mark.parametrize(("device", "count"), [("cuda", 0), ("cuda:2", 2)])
def test_a_gpu_that_is_not_there_is_refused_with_how_many_are(devices, monkeypatch, device, count):
    monkeypatch.delenv("TRITON_INTERPRET")
    monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: count)
    with pytest.raises(DeviceError, match=facts("MF", device, count, "nvidia-smi")):
        devices.device_of("MF", device)


def test_what_does_not_fit_is_refused_with_what_it_needs_and_what_is_free(devices, monkeypatch):
    monkeypatch.setattr(devices, "free_bytes", lambda _: 3 * devices.GIB)
    at = devices.device_of("MF", "cuda")
    with devices.fitting_memory("MF", "a fit", 3 * devices.GIB, at):
        pass
    with (
        pytest.raises(DeviceError, match=facts("MF", "a fit", 7, 3)),
        devices.fitting_memory("MF", "a fit", 7 * devices.GIB, at),
    ):
        pytest.fail("ran without memory")


def test_memory_that_runs_out_is_told_likewise(devices, torch):
    at = devices.device_of("MF", "cuda")
    with pytest.raises(DeviceError, match=facts("MF", "a fit", "GiB")), devices.fitting_memory("MF", "a fit", 1, at):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize("before", ["ieee", "tf32"])
def test_products_are_exact_inside_and_as_they_were_after(devices, torch, before):
    flags = torch.backends.cuda.matmul
    kept = flags.fp32_precision
    try:
        flags.fp32_precision = before
        with devices.exact_products():
            assert flags.fp32_precision == "ieee"
        assert flags.fp32_precision == before
    finally:
        flags.fp32_precision = kept


def test_arrays_that_may_not_be_written_are_sent(devices, torch):
    array = np.arange(3)
    array.flags.writeable = False
    sent = devices.on_device(array, torch.int32, torch.device("cpu"))
    assert (sent.dtype, sent.tolist()) == (torch.int32, [0, 1, 2])


@pytest.mark.parametrize("lacking", ["torch", "triton"])
def test_a_missing_package_names_the_extra(monkeypatch, lacking):
    for name in [name for name in sys.modules if name.startswith("openloop.kernels.cuda")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("torch", "triton"):
        monkeypatch.setitem(sys.modules, name, None if name == lacking else sys)
    with pytest.raises(MissingPackageError, match=facts(lacking, "openloop[cuda]")):
        __import__("openloop.kernels.cuda")


def test_numpy_torch_and_triton_are_all_that_is_imported(triton):
    program = """if True:
        import sys
        from openloop.kernels.cuda import bootstrap, least_squares, ranking
        print(*{name.partition(".")[0] for name in sys.modules} & {"numba", "scipy", "sklearn", "narwhals", "polars"})
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
