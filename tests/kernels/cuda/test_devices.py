"""Where kernels run: what is no device is refused, memory that is too small is told by its number, TF32 is off."""

from __future__ import annotations

import pytest

from openloop.errors import DeviceError, InputError
from tests.facts import facts


@pytest.fixture
def devices(triton):
    from openloop.kernels.cuda import devices

    return devices


@pytest.mark.parametrize("given", ["gpu!", "", 1.5], ids=["word", "empty", "number"])
def test_what_torch_does_not_know_is_no_device(devices, given):
    with pytest.raises(InputError, match=facts("MF", "device", repr(given))):
        devices.device_of("MF", given)


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
