"""Model files: safetensors with a JSON header, so that a file holds numbers and text and can run nothing.

The header has the format's version, the library's, the class, its parameters, its learned state, and a checksum over
all of it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Vocabulary, check_fitted
from openloop.errors import FormatError, InputError, OpenloopError, UndefinedError, listing, quoted
from openloop.learners.base import FactorLearner, Learner
from openloop.learners.model_files.kinds import SAVED, is_saved, kind
from openloop.learners.model_files.packing import pack, unpack
from openloop.learners.model_files.vector_files import is_vector_file, read_vectors
from openloop.support.atomic import replacing
from openloop.support.version import VERSION
from openloop.support.wording import cut

FORMAT = 1
KEY = "openloop"  # of the header, in the file's metadata


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted learner to `path`; the file appears whole or not at all."""
    from safetensors.numpy import save_file

    header, tensors = _packed(model)
    header["blake2b"] = _checksum(header, tensors)
    with replacing(Path(path).expanduser()) as temporary:
        save_file(tensors, temporary, metadata={KEY: _text(header)})


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that `save` wrote, whose answers are the same bit for bit; or `Factors` of a file of vectors.

    A file of vectors has the arrays user_factors and item_factors, and optionally user_bias, item_bias, intercept and
    the ids of the rows, users and items.

    Args:
        path: A model file, or vectors as .npz, .safetensors (of any program) or .parquet.

    Returns:
        A fitted learner.

    Raises:
        FormatError: The file is damaged, or is neither.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> model = ol.learners.Bias().fit(log)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder, "bias.safetensors"))
        ...     again = ol.load(Path(folder, "bias.safetensors"))
        >>> bool((again.scores([0]) == model.scores([0])).all())
        True
    """
    file = _existing(Path(path).expanduser())
    header, tensors = ({}, {}) if is_vector_file(file) else _read(file)
    if not header:
        return read_vectors(file)
    stated = header.pop("blake2b", None)
    if stated != _checksum(header, tensors):
        raise FormatError(f"{file}: its checksum does not match, so it is damaged; fetch or save the model again.")
    try:
        return _unpacked(header, tensors)
    except (OpenloopError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = error if isinstance(error, OpenloopError) else f"{type(error).__name__}: {error}"
        raise FormatError(f"{file}: is not a model as save writes it ({reason}); save the model again.") from error


# -- model ↔ header and tensors ------------------------------------------------------------------------------


def _packed(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the tensors of a model."""
    name, tensors = type(model).__name__, dict[str, Array]()
    if not is_saved(model):
        raise UndefinedError(
            f"save: {name} cannot be saved, only {', '.join(SAVED)} of openloop.learners can; "
            "save it by its own library's means, or give its factors to ol.learners.Factors."
        )
    check_fitted(model)
    _check(model)
    given = model.get_params(deep=False)
    learned = {key: vars(model)[key] for key in sorted(set(vars(model)) - set(given)) if key.endswith("_")}
    header = {
        "format": FORMAT,
        "library": VERSION,
        "class": name,
        "params": {key: pack(value, f"params.{key}", tensors) for key, value in given.items()},
        "state": {key: pack(value, f"state.{key}", tensors) for key, value in learned.items()},
    }
    return header, tensors


def _unpacked(header: dict[str, Any], tensors: dict[str, Array]) -> Any:
    """The model of a header and its tensors, each used once."""
    name, left = header["class"], dict(tensors)
    made = kind(name)
    params = {key: unpack(node, left) for key, node in header["params"].items()}
    state = {key: unpack(node, left) for key, node in header["state"].items()}
    if left:
        raise InputError(f"{len(left):,} tensors belong to nothing: {listing(sorted(left))}")
    odd = [key for key in state if key.startswith("_") or not key.endswith("_") or key in params]
    if odd:
        raise InputError(f"{listing(odd)} is not learned state, whose names end in _")
    model = made(**params)
    vars(model).update(state)
    _check(model)
    return model


def _check(model: Learner) -> None:
    """Refuse learned state that is missing, not finite, or does not fit the vocabularies."""
    name, state = type(model).__name__, vars(model)
    wanted = {key for cls in type(model).__mro__ for key in inspect.get_annotations(cls) if key.endswith("_")}
    missing = sorted(wanted - set(state))
    if missing:
        raise InputError(f"{name}: {listing(missing)} is missing")
    for key in ("users_", "items_"):
        if not isinstance(state[key], Vocabulary):
            raise InputError(f"{name}: {key} is not a vocabulary")
    sizes = {"user_": len(model.users_), "item_": len(model.items_)}
    for key, value in state.items():
        if not key.endswith("_"):
            continue
        if isinstance(value, np.ndarray | float | np.floating) and not _finite(np.asarray(value)):
            raise InputError(f"{name}: {key} has values that are not finite; fit it again")
        size = sizes.get(key[:5])
        if size is not None and np.shape(value)[:1] != (size,):
            raise InputError(f"{name}: {key} has shape {np.shape(value)}, the vocabulary {size:,} {key[:4]}s")
    if isinstance(model, FactorLearner):
        _check_factors(name, model.user_factors_, model.item_factors_, model.user_bias_, model.item_bias_)


def _finite(values: Array) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _check_factors(name: str, V: Array, W: Array, a: Array, b: Array) -> None:
    shapes = [x.shape for x in (V, W, a, b)]
    if [len(shape) for shape in shapes] != [2, 2, 1, 1] or V.shape[1] != W.shape[1]:
        raise InputError(f"{name}: factors and biases have shapes {shapes}, must have (U, K), (I, K), (U,), (I,)")


# -- the file ------------------------------------------------------------------------------------------------


def _existing(file: Path) -> Path:
    if file.is_dir():
        raise InputError(f"{file}: is a folder; give a model file.")
    if not file.exists():
        raise InputError(f"{file}: no such file; ol.load reads what model.save(path) wrote, and vectors.")
    if not file.is_file():
        raise InputError(f"{file}: must be an ordinary file, got a device or a pipe; save it first, then name it.")
    if file.stat().st_size == 0:
        raise FormatError(f"{file}: the file is empty (0 bytes); fetch or save the model again.")
    return file


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the tensors of a file, of a format that this version knows; nothing where it has no header."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            text = (opened.metadata() or {}).get(KEY)
            if text is None:
                return {}, {}
            header = _header(file, text)
            tensors = {name: _tensor(file, opened, name) for name in opened.keys()}  # noqa: SIM118, no mapping
    except SafetensorError as error:
        raise FormatError(f"{file}: {_damage(file, str(error))} ({error}); fetch or save the model again.") from error
    return header, tensors


def _tensor(file: Path, opened: Any, name: str) -> Array:
    """A tensor of a type that NumPy has: bfloat16 and 8-bit floats are none, and `save` never writes them."""
    try:
        return np.array(opened.get_tensor(name))
    except (TypeError, AttributeError) as error:
        kind = opened.get_slice(name).get_dtype()
        raise FormatError(
            f"{file}: tensor {quoted(name)} has type {kind}, which no model of openloop has; convert it to float32, or "
            "save the model again."
        ) from error


def _damage(file: Path, error: str) -> str:
    """What a file is that safetensors cannot read: its first eight bytes count those of a JSON object."""
    with file.open("rb") as opened:
        head = opened.read(9)
    if head[8:] != b"{":
        return "is not a safetensors file"
    short = file.stat().st_size < 8 + int.from_bytes(head[:8], "little") or "ncomplete" in error
    return "is cut off" if short else "is damaged"


def _header(file: Path, text: str) -> dict[str, Any]:
    try:
        header: Any = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file}: its header is damaged ({error}); fetch or save the model again.") from error
    version: Any = header.get("format") if isinstance(header, dict) else None
    if not isinstance(version, int) or version < 1:
        raise FormatError(
            f"{file}: its header has format {quoted(version)}, must have 1 … {FORMAT}; save the model again."
        )
    if version > FORMAT:
        raise FormatError(
            f"{file}: written by openloop {cut(str(header.get('library')))} in format {quoted(version)}, and openloop "
            f"{VERSION} reads formats up to {FORMAT}; upgrade openloop."
        )
    if _text(header) != text:
        raise FormatError(f"{file}: its header is not as openloop writes it, so it is damaged; save the model again.")
    return header


def _no_number(word: str) -> Any:
    raise ValueError(f"it holds {word}, which is no JSON")


def _checksum(header: dict[str, Any], tensors: dict[str, Array]) -> str:
    digest = hashlib.blake2b(_text(header).encode(), digest_size=32)
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}\0{array.dtype.name}\0{array.shape}\0".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _text(header: dict[str, Any]) -> str:
    """The header as text: the same header, the same text."""
    return json.dumps(header, sort_keys=True, allow_nan=False)
