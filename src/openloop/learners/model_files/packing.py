"""What a model holds, as JSON and tensors: numbers, text, arrays, ids, covariates, generators and learners.

None, bool, int, float and str are themselves; all else is an object with one key, which says what it is, and arrays and
long lists go into tensors. Packing knows nothing about files.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from openloop.core.covariates import Covariates
from openloop.core.feedback import Array, Vocabulary
from openloop.core.protocols import on_host
from openloop.errors import InputError, UndefinedError, listing, quoted
from openloop.learners.model_files.kinds import is_saved, kind

Tensors = dict[str, Array]

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
DTYPES = frozenset(
    ["bool", "float16", "float32", "float64"] + [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
)
LONG = 1000  # a longer list becomes a tensor: the header of a safetensors file is limited


def pack(value: Any, name: str, tensors: Tensors) -> Any:
    """A value as JSON, its arrays put into `tensors` under names that begin with `name`."""
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        return {"scalar": _stored(np.asarray(value), name, tensors)}  # its type decides how sums with it are rounded
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str | os.PathLike):
        return str(value) if isinstance(value, str | os.PathLike) else value
    if isinstance(value, Vocabulary):
        return {"vocabulary": pack_array(value.ids, name, tensors)}
    if isinstance(value, Covariates):
        parts = {part: getattr(value, part) for part in ("values", "names", "ids", "notes")}
        return {"covariates": pack(parts, name, tensors)}
    if isinstance(value, np.random.Generator):
        return {"generator": pack(value.bit_generator.state, name, tensors)}
    if isinstance(value, dict | list | tuple):
        return _pack_many(value, name, tensors)
    if is_saved(value):
        params = {key: pack(given, f"{name}.{key}", tensors) for key, given in value.get_params(deep=False).items()}
        return {"learner": {"class": type(value).__name__, "params": params}}
    if hasattr(value, "__array__") or hasattr(value, "to_numpy"):
        return pack_array(as_array(value), name, tensors)
    raise _cannot(name, type(value).__name__)


def as_array(given: Any) -> Array:
    """What an array of another library holds; a tensor may be on a device, or wait for its gradient."""
    own = hasattr(given, "to_numpy") and not hasattr(given, "detach")
    values = on_host(given.to_numpy() if own else given)
    if values.dtype == object and values.ndim == 1 and len(values) and not isinstance(values[0], str):
        return np.stack([np.asarray(row) for row in values])  # a column of lists
    return values


def _pack_many(values: Any, name: str, tensors: Tensors) -> dict[str, Any]:
    if isinstance(values, dict):
        if not all(isinstance(key, str) for key in values):
            raise _cannot(name, "dict whose keys are not all strings")
        return {"dict": {key: pack(value, f"{name}.{key}", tensors) for key, value in values.items()}}
    kind = "tuple" if isinstance(values, tuple) else "list"
    if len(values) > LONG:
        return {f"long {kind}": pack_array(_uniform(values, name), name, tensors)}
    return {kind: [pack(value, f"{name}.{i}", tensors) for i, value in enumerate(values)]}


def pack_array(array: Array, name: str, tensors: Tensors) -> dict[str, str]:
    """An array in `tensors`; text is its bytes, and where each string ends."""
    if array.dtype.kind in "OU":
        if array.ndim != 1 or not all(isinstance(v, str) for v in array):
            raise _cannot(name, f"{array.dtype} array of shape {array.shape}")
        words = [v.encode("utf-8", "surrogatepass") for v in array]
        _stored(np.cumsum([len(word) for word in words], dtype=np.int64), f"{name}.ends", tensors)
        return {"strings": _stored(np.frombuffer(b"".join(words), np.uint8), name, tensors)}
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return {"columns": _stored(array.T, name, tensors)}  # a product of the same order rounds the same
    return {"array": _stored(array, name, tensors)}


def _stored(array: Array, name: str, tensors: Tensors) -> str:
    if array.dtype.name not in DTYPES:
        raise _cannot(name, f"{array.dtype} array")
    tensors[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    return name


def _uniform(values: Any, name: str) -> Array:
    """A long list as an array, where that gives back the same list."""
    kinds = {type(value) for value in values}
    if kinds == {str}:
        return np.array(values, object)
    if kinds in ({int}, {float}):
        return np.array(values)
    raise _cannot(name, f"list of {len(values):,} {' and '.join(sorted(kind.__name__ for kind in kinds))} values")


def _cannot(name: str, what: str) -> UndefinedError:
    return UndefinedError(
        f"save: {name.partition('.')[2]} is a {what}, which a model file cannot hold; give numbers, strings or arrays."
    )


# -- and back ------------------------------------------------------------------------------------------------


def unpack(node: Any, left: Tensors) -> Any:
    """The value of a JSON node; the tensors that it uses leave `left`."""
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise InputError("there is a list in place of a value")
        return node
    ((kind, inside),) = node.items()
    if kind not in _MAKE:
        raise InputError(f"a value is of unknown kind {quoted(kind)}")
    return _MAKE[kind](inside, left)


def _tensor(name: str, left: Tensors) -> Array:
    if name not in left:
        raise InputError(f"tensor {quoted(name)} is missing or used twice")
    return left.pop(name)


def strings(name: str, left: Tensors) -> Array:
    """The text that `pack_array` put into two tensors."""
    text, ends = _tensor(name, left), _tensor(f"{name}.ends", left)
    if np.any(np.diff(ends, prepend=0) < 0) or ends[-1:].sum() != len(text):
        raise InputError(f"the strings of {quoted(name)} do not end where their text does")
    data, at = text.tobytes(), [0, *ends.tolist()]
    words = np.empty(len(ends), object)
    words[:] = [data[start:end].decode("utf-8", "surrogatepass") for start, end in itertools.pairwise(at)]
    return words


def _generator(node: Any, left: Tensors) -> np.random.Generator:
    state = unpack(node, left)
    name = state["bit_generator"]
    if name not in GENERATORS:
        raise InputError(f"generator {quoted(name)} is none of {listing(GENERATORS)}")
    bits = getattr(np.random, name)()
    bits.state = state
    return np.random.Generator(bits)


def _learner(node: Any, left: Tensors) -> Any:
    return kind(node["class"])(**{key: unpack(given, left) for key, given in node["params"].items()})


_MAKE: dict[str, Callable[[Any, Tensors], Any]] = {
    "array": _tensor,
    "columns": lambda name, left: _tensor(name, left).T,
    "scalar": lambda name, left: _tensor(name, left)[()],
    "strings": strings,
    "vocabulary": lambda node, left: Vocabulary(unpack(node, left)),
    "covariates": lambda node, left: Covariates(**unpack(node, left)),
    "generator": _generator,
    "learner": _learner,
    "dict": lambda nodes, left: {key: unpack(node, left) for key, node in nodes.items()},
    "list": lambda nodes, left: [unpack(node, left) for node in nodes],
    "tuple": lambda nodes, left: tuple(unpack(node, left) for node in nodes),
    "long list": lambda node, left: unpack(node, left).tolist(),
    "long tuple": lambda node, left: tuple(unpack(node, left).tolist()),
    "float": lambda text, _: float(text),
}
