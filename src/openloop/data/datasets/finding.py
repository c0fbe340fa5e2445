"""Where a data set is: its folder in the data folder, and the files in it that its loader reads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from openloop.data.datasets.catalogue import CATALOGUE
from openloop.data.datasets.records import Dataset, Part
from openloop.errors import InputError, NameFormatError, did_you_mean, listing

Folder = str | os.PathLike[str]
Files = Mapping[str, tuple[Path, ...]]  # by role, in the order of their names

VARIABLE, DEFAULT = "OPENLOOP_DATA", "data"


def data_folder(folder: Folder | None = None) -> Path:
    """The folder of all data sets: as given, or $OPENLOOP_DATA, or `data` in the current folder.

    Args:
        folder: The folder, if it is given.

    Returns:
        The path, which need not exist.

    Examples:
        >>> ol.datasets.data_folder("somewhere").name
        'somewhere'
    """
    found = Path(folder or os.environ.get(VARIABLE) or DEFAULT).expanduser()
    if found.exists() and not found.is_dir():
        raise InputError(f"data folder {str(found)!r}: must be a folder, and is a file; give the folder above it.")
    return found


def find(name: str) -> Dataset:
    """The record of a data set: its source, terms, files and documented numbers.

    Args:
        name: The name of the data set, such as "coat".

    Returns:
        Its entry in the catalogue.

    Raises:
        NameFormatError: No data set has that name.

    Examples:
        >>> ol.datasets.find("ml-100k").title
        'MovieLens 100K'
    """
    for dataset in CATALOGUE:
        if name == dataset.name:
            return dataset
    known = [dataset.name for dataset in CATALOGUE]
    raise NameFormatError(f"datasets: no data set is called {name!r}.{did_you_mean(name, known)}")


def places(dataset: Dataset, folder: Folder | None = None) -> tuple[Path, ...]:
    """Where a data set may lie: below the data folder, or that folder itself if it has the data set's name."""
    above = data_folder(folder)
    itself = (above,) if above.name in dataset.folders else ()
    return (*(above / name for name in dataset.folders), *itself)


def present(name: str, folder: Folder | None = None) -> bool:
    """Whether all files that the loader needs are in the data folder.

    Args:
        name: The name of the data set.
        folder: The data folder; by default as `data_folder` says.

    Returns:
        True or False.

    Examples:
        >>> ol.datasets.present("coat", "an empty folder")
        False
    """
    return whereabouts(name, folder) is not None


def whereabouts(name: str, folder: Folder | None = None) -> Path | None:
    """The folder with all files that the loader needs.

    Args:
        name: The name of the data set.
        folder: The data folder; by default as `data_folder` says.

    Returns:
        The folder, None where files are missing.

    Examples:
        >>> ol.datasets.whereabouts("coat", "an empty folder") is None
        True
    """
    dataset = find(name)
    return next((place for place in places(dataset, folder) if not missing(dataset, place)), None)


def files(name: str, folder: Folder | None = None) -> tuple[Path, ...]:
    """The files that the loader reads, in a fixed order.

    Args:
        name: The name of the data set.
        folder: The data folder; by default as `data_folder` says.

    Returns:
        Their paths.

    Raises:
        InputError: A file is missing. The message says where it should be, and how to get it.

    Examples:
        >>> from pathlib import Path
        >>> Path("data/ml-100k").mkdir(parents=True)
        >>> Path("data/ml-100k/u.data").touch()
        >>> [path.name for path in ol.datasets.files("ml-100k", "data")]
        ['u.data']
    """
    return tuple(path for role in located(name, folder).values() for path in role)


def located(name: str, folder: Folder | None = None) -> Files:
    """The files that the loader reads, by role; a missing one is an error that says where it should lie."""
    dataset, place = find(name), whereabouts(name, folder)
    if place is None:
        raise _absent(dataset, places(dataset, folder))
    found = {part.role: matches(part, place) for part in dataset.parts}
    return {role: paths for role, paths in found.items() if paths}


def missing(dataset: Dataset, place: Path) -> list[Part]:
    """The parts without which a data set cannot be loaded, and that are not in its folder."""
    return [part for part in dataset.parts if not part.optional and not matches(part, place)]


def matches(part: Part, place: Path) -> tuple[Path, ...]:
    """The files of a part, by the first of its patterns that finds any."""
    for pattern in part.patterns:
        found = sorted(path for path in place.glob(pattern) if path.is_file())
        if found:
            return tuple(found)
    return ()


def fingerprint(name: str, folder: Folder | None = None) -> str:
    """A hash of the names and contents of the files that the loader reads.

    Args:
        name: The name of the data set.
        folder: The data folder; by default as `data_folder` says.

    Returns:
        64 hexadecimal digits.

    Examples:
        >>> from pathlib import Path
        >>> Path("data/ml-100k").mkdir(parents=True)
        >>> Path("data/ml-100k/u.data").touch()
        >>> len(ol.datasets.fingerprint("ml-100k", "data"))
        64
    """
    digest = hashlib.sha256(name.encode())
    for path in files(name, folder):
        digest.update(f"\n{path.name} {path.stat().st_size} {sha256(path)}".encode())
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _absent(dataset: Dataset, tried: tuple[Path, ...]) -> InputError:
    there = [place for place in tried if place.is_dir()]
    place = (there or list(tried))[0]
    wanted = [" or ".join(part.patterns) for part in missing(dataset, place)]
    lacks = f"folder {str(place)!r} lacks {listing(wanted)}" if there else f"no folder {str(place)!r}"
    away = "move that folder away first, and then " if place.name == dataset.folders[0] and _filled(place) else ""
    remedy = dataset.apply if dataset.gated else f"{away}`openloop datasets get {dataset.name}` fetches it"
    where = "say where the data sets lie: --data, or the folder argument"
    return InputError(f"{dataset.name}: {lacks}; {remedy}, or {where}.")


def _filled(place: Path) -> bool:
    """Whether a folder is there and holds anything; `get` refuses one that does."""
    return place.is_dir() and any(place.iterdir())
