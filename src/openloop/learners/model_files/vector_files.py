"""Vector files: user and item vectors with their ids as .npz, Parquet or safetensors, by any program.

Arrays have the names of the parameters of `Factors`. An .npz file is read without pickle. In safetensors text ids are
the UTF-8 bytes of all of them, and a second tensor of where each ends. Reading a file runs nothing.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import FormatError, InputError, OpenloopError, did_you_mean, listing, quoted
from openloop.learners.adapters.factors import Factors, checked
from openloop.learners.model_files.packing import Tensors, pack_array, strings
from openloop.learners.model_files.vector_tables import PARQUET, misnamed, read_table, write_table
from openloop.support.atomic import FilePath, replacing
from openloop.support.memory import total_memory
from openloop.support.sizes import written
from openloop.support.wording import cut

Vectors = dict[str, Any]  # parameters of `Factors`

NPZ = ".npz"
# The names under which an array or a tensor is found; the first is the one that is written.
NAMES = {
    "user_factors": ("user_factors", "user_vectors", "user_embeddings"),
    "item_factors": ("item_factors", "item_vectors", "item_embeddings"),
    "user_bias": ("user_bias", "user_biases"),
    "item_bias": ("item_bias", "item_biases"),
    "intercept": ("intercept",),
    "users": ("users", "user_ids"),
    "items": ("items", "item_ids"),
    "output": ("output",),
}
KNOWN = tuple(name for same in NAMES.values() for name in same)
ENDS = ".ends"  # of the strings of a tensor


def is_vector_file(file: Path) -> bool:
    """Whether the name of a file says that it holds vectors; safetensors may hold a model too."""
    return file.suffix.lower() in (NPZ, *PARQUET)


def read_vectors(file: Path) -> Factors:
    """The vectors of a file, checked. Without ids, row r is id r."""
    kind = file.suffix.lower()
    read = _read_npz if kind == NPZ else read_table if kind in PARQUET else _read_safetensors
    found = read(file)
    if np.size(found.get("intercept", ())) == 1:
        found["intercept"] = np.reshape(found["intercept"], ())
    try:
        return checked(Factors(**found))
    except OpenloopError as error:
        raise type(error)(f"{file}: {str(error).removeprefix('Factors: ')}") from error


def write_vectors(path: FilePath, vectors: Vectors) -> None:
    """Write vectors in the format of the extension; the file appears whole or not at all."""
    file = Path(path).expanduser()
    kind = file.suffix.lower()
    if kind not in WRITERS:
        raise FormatError(f"{path}: extension {kind!r} is not one of {listing(list(WRITERS), limit=9)}; rename it.")
    with replacing(file) as temporary:
        WRITERS[kind](temporary, {key: value for key, value in vectors.items() if value is not None})


def _names(file: Path, there: Iterable[str]) -> dict[str, str]:
    """The name in the file of each array that it has."""
    names = list(there)
    found = {key: [name for name in same if name in names] for key, same in NAMES.items()}
    for key, same in found.items():
        if len(same) > 1:
            raise FormatError(f"{file}: {listing(same)} are names of one array, {key}; keep one.")
    for key in ("user_factors", "item_factors"):
        if not found[key]:
            raise FormatError(
                f"{file}: has no array {key!r}, but {listing(names) or 'nothing'}; a file of vectors has user_factors "
                "(U, K) and item_factors (I, K); rename them, or give the arrays to ol.learners.Factors."
            )
    if odd := misnamed(names, KNOWN):
        raise FormatError(f"{file}: array {quoted(odd)} has a name that is not read.{did_you_mean(odd, KNOWN)}")
    return {key: same[0] for key, same in found.items() if same}


def _line(error: BaseException) -> str:
    """The first line of an error, which may have several."""
    return cut((str(error).strip().split("\n")[0] or type(error).__name__).rstrip("."))


# -- .npz ----------------------------------------------------------------------------------------------------

# A damaged file can end the reading of its zip, of an array's header, or of the array.
_BROKEN = (
    ValueError, OSError, EOFError, MemoryError, RuntimeError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def _read_npz(file: Path) -> Vectors:
    with file.open("rb") as handle:  # of a file that it cannot read np.load would leave it open
        try:
            opened = np.load(handle, allow_pickle=False)
        except _BROKEN as error:
            raise FormatError(
                f"{file}: is not a file that numpy.savez wrote ({_line(error)}); write it again."
            ) from error
        if isinstance(opened, np.ndarray):
            raise FormatError(f"{file}: is one array that numpy.save wrote; write all with numpy.savez.")
        _refuse_bomb(file, opened)
        found = {key: _array(file, opened, name) for key, name in _names(file, opened.files).items()}
    text = {key: str(value) for key, value in found.items() if value.dtype.kind == "U" and value.ndim == 0}
    return found | text


def _refuse_bomb(file: Path, opened: Any) -> None:
    """Refuse an archive whose arrays would fill the memory; a small one may unpack to any size."""
    size, room = sum(entry.file_size for entry in opened.zip.infolist()), total_memory()
    if room is not None and size > room // 2:
        raise FormatError(
            f"{file}: unpacks to {written(size)}, which is more than half the memory here; write it as .safetensors, "
            "or use a machine with more memory."
        )


def _array(file: Path, opened: Any, name: str) -> Array:
    try:
        found = opened[name]
    except _BROKEN as error:
        remedy = (
            "save ids as integers or as an array of str, not of objects"
            if "allow_pickle" in str(error)
            else "repair it"
        )
        raise FormatError(f"{file}: array {quoted(name)} cannot be read ({_line(error)}); {remedy}.") from error
    if not isinstance(found, np.ndarray):
        raise FormatError(f"{file}: {quoted(name)} is not an array that numpy.savez wrote; write it again.")
    return found


def _write_npz(file: Path, vectors: Vectors) -> None:
    arrays: Vectors = {key: _without_objects(key, np.asarray(value)) for key, value in vectors.items()}
    with file.open("wb") as opened:  # to a path numpy.savez would add an extension
        np.savez(opened, **arrays)


def _without_objects(key: str, array: Array) -> Array:
    """Text of one width, as only pickles hold objects."""
    if array.dtype != object:
        return array
    text = array.astype(str)
    if not bool(np.all(text.astype(object) == array)):
        raise InputError(f"to_vectors: {key} has ids that end in a null character, which .npz loses; use .safetensors.")
    return text


# -- safetensors ---------------------------------------------------------------------------------------------

HELD = {"F16", "F32", "F64", "BOOL"} | {f"{kind}{bits}" for kind in "IU" for bits in (8, 16, 32, 64)}


def _read_safetensors(file: Path) -> Vectors:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            there = list(opened.keys())
            names = _names(file, (name for name in there if name.removesuffix(ENDS) == name))
            found = {key: _tensor(file, opened, name, there) for key, name in names.items()}
            output = (opened.metadata() or {}).get("output")
    except SafetensorError as error:
        raise FormatError(f"{file}: is damaged ({_line(error)}); fetch or write it again.") from error
    return found if output is None else found | {"output": output}


def _tensor(file: Path, opened: Any, name: str, there: list[str]) -> Array:
    """A tensor; text where another one has the ends of its strings."""
    parts: Tensors = {}
    for part in (name, name + ENDS):
        if part in there:
            if (kind := opened.get_slice(part).get_dtype()) not in HELD:
                raise FormatError(f"{file}: tensor {quoted(part)} is {kind}, which NumPy lacks; save it as float32.")
            parts[part] = np.array(opened.get_tensor(part))
    try:
        return strings(name, parts) if name + ENDS in parts else parts[name]
    except (ValueError, IndexError, TypeError) as error:
        raise FormatError(f"{file}: the text in {quoted(name)} is damaged ({_line(error)}); write it again.") from error


def _write_safetensors(file: Path, vectors: Vectors) -> None:
    from safetensors.numpy import save_file

    tensors, text = Tensors(), {key: value for key, value in vectors.items() if isinstance(value, str)}
    for key in vectors.keys() - text.keys():
        pack_array(np.asarray(vectors[key], order="C"), key, tensors)
    save_file(tensors, file, metadata=text or None)


WRITERS: dict[str, Callable[[Path, Vectors], None]] = {
    NPZ: _write_npz,
    **dict.fromkeys(PARQUET, write_table),
    ".safetensors": _write_safetensors,
}
