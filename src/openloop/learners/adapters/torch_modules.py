"""Modules of PyTorch that score pairs: f(users, items) of positions, asked in blocks, without gradients."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.core.protocols import on_host
from openloop.errors import InputError
from openloop.learners.adapters.wrapped import Wrapped
from openloop.support.wording import joined


def is_module(model: Any) -> bool:
    """Whether it is a module of PyTorch."""
    return all(hasattr(model, name) for name in ("forward", "parameters", "modules", "eval", "state_dict"))


def wrap_module(model: Any, users: Any, items: Any, unknown: str) -> Wrapped:
    """The module, asked about positions; it is in evaluation mode while it answers, and then as it was."""
    missing = [f"{side}=" for side, ids in (("users", users), ("items", items)) if ids is None]
    if missing:
        raise InputError(
            f"wrap: {type(model).__name__} is called with positions of users and items, and does not say what they "
            f"are; pass {joined(missing)} the ids of the positions 0, 1, …."
        )

    def pairs(user: Array, item: Array) -> Array:
        torch: Any = sys.modules["torch"]
        device = next((p.device for p in model.parameters()), "cpu")
        with torch.no_grad(), _evaluating(model):
            return on_host(model(*(torch.as_tensor(x.astype(np.int64), device=device) for x in (user, item))))

    return Wrapped(type(model).__name__, pairs, users, items, unknown)


@contextmanager
def _evaluating(module: Any) -> Generator[None]:
    """Evaluation mode, and after it the mode that each part was in."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
