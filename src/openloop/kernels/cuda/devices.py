"""Where kernels run on a GPU: the device that is asked for, its free memory, and products in full float32.

With TRITON_INTERPRET=1 Triton runs kernels in Python on tensors of the CPU. "cuda" then means this mode, in which all
of it can be tested without a GPU.
"""

# Types are checked where torch and Triton need not be installed, and what Triton compiles has none.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from openloop.errors import DeviceError, InputError

GIB = 2**30
INTERPRETED_BYTES = 16 * GIB  # what the interpreter counts as free


def device_of(name: str, device: Any) -> torch.device:
    """The device that "cuda", "cuda:1" or a torch.device means; `name` is whose argument it is."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"{name}: device must be None or 'cuda', got {device!r}.") from error
    if interpreted():
        return torch.device("cpu")
    if found.type != "cuda":
        raise InputError(f"{name}: device must be None or 'cuda', got {device!r}; leave it out for the CPU.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (found.index or 0) >= count:
        raise DeviceError(
            f"{name}: device={str(found)!r} is not there, torch {torch.__version__} finds {count} GPUs; install a "
            "torch for CUDA and check nvidia-smi, or leave device out for the CPU."
        )
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def interpreted() -> bool:
    """Whether Triton runs kernels in Python."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def on_device(values: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """An array or a tensor, there."""
    if isinstance(values, torch.Tensor):
        return values.to(device, dtype).contiguous()
    return torch.tensor(np.asarray(values), dtype=dtype, device=device)  # copies, as arrays may be read-only


def free_bytes(device: torch.device) -> int:
    """What may still be asked for: free on the device, or held by torch and unused."""
    if device.type == "cpu":
        return INTERPRETED_BYTES
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + held


def too_small(name: str, what: str, need: int, device: torch.device) -> DeviceError:
    """The error of a device that lacks memory for what must be there at once."""
    free = free_bytes(device) / GIB
    return DeviceError(
        f"{name}: {need / GIB:.3g} GiB are needed on {device} for {what}, and {free:.3g} GiB are free; end what "
        "else runs there, take a larger GPU, or leave device out for the CPU."
    )


@contextmanager
def fitting_memory(name: str, what: str, need: int, device: torch.device) -> Iterator[None]:
    """Refuse before or while running what does not fit on the device."""
    if need > free_bytes(device):
        raise too_small(name, what, need, device)
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise too_small(name, what, need, device) from error


@contextmanager
def exact_products() -> Iterator[None]:
    """Products of float32 in float32, whatever was set: TF32 keeps 10 bits, by which most ranks come out wrong."""
    flags: Any = torch.backends.cuda.matmul
    name, exact = ("fp32_precision", "ieee") if hasattr(flags, "fp32_precision") else ("allow_tf32", False)
    before = getattr(flags, name)
    setattr(flags, name, exact)
    try:
        yield
    finally:
        setattr(flags, name, before)
