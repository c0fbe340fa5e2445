"""What an audit is asked: its files and options, what they stand for, and what of it cannot work.

This module reads no log; its messages speak of the options of `openloop audit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openloop.core.feedback import Array, Vocabulary
from openloop.data import values
from openloop.data.columns import REQUIRED, Column, InputTable, names_a
from openloop.data.encoding import vocabulary
from openloop.data.features import id_column
from openloop.data.formats import open_file
from openloop.errors import FormatError, InputError, LeakError, did_you_mean, listing
from openloop.estimators.naming import method
from openloop.metrics.naming import metric
from openloop.support.atomic import FilePath

PROPENSITIES = {
    "popularity": "Popularity",
    "naive-bayes": "NaiveBayes",
    "logistic": "Logistic",
    "uniform": "Uniform",
}
SPLITS = ("random", "time", "none")
MISSING = ("error", "drop", "worst")
OWN = "propensity"  # the column that is taken without being asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """Which files to audit and how; whatever cannot work is refused here.

    `models` are names and files, a name twice for a table of scores and a list with ranks. `users` and `items` are
    sizes of a population with the ids 0 … n-1, or files that list all ids. `split` says how `log` and `exclude` came
    apart, None: as their pairs suggest. `stream` leaves the rows on disk, None: where they would not fit.
    """

    log: FilePath
    models: tuple[tuple[str, FilePath], ...]
    user: Column = None
    item: Column = None
    rating: Column = None
    propensity: str | None = None
    user_features: FilePath | None = None
    item_features: FilePath | None = None
    floor: float = 0.0
    metrics: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    exclude: FilePath | None = None
    split: str | None = None
    threshold: float | None = None
    strata: tuple[str, ...] = ()
    open_loop: FilePath | None = None
    missing: str = "error"
    level: float = 0.95
    users: int | FilePath | None = None
    items: int | FilePath | None = None
    seed: int = 0
    stream: bool | None = None

    def __post_init__(self) -> None:
        _check_models(self)
        _check_choices(self)
        _check_samples(self)

    @property
    def columns(self) -> dict[str, Column]:
        """Where user, item and rating stand, as `ol.read` takes it."""
        return {"user": self.user, "item": self.item, "rating": self.rating}

    @property
    def tables(self) -> dict[str, list[FilePath]]:
        """The files of each model."""
        found: dict[str, list[FilePath]] = {}
        for name, path in self.models:
            found.setdefault(name, []).append(path)
        return found

    @property
    def sample(self) -> str | None:
        """The uniform sample of naive-bayes, if that is the model."""
        name, _, path = (self.propensity or "").partition("=")
        return path if name == "naive-bayes" and path else None

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        beside = (self.exclude, self.open_loop, self.sample, self.user_features, self.item_features)
        ids = (given for given in (self.users, self.items) if not isinstance(given, int))
        return [path for path in (self.log, *(path for _, path in self.models), *beside, *ids) if path is not None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gathered:
    """What `ol.audit` takes, and what should be known about how it was read."""

    models: dict[str, Any]
    log: Any  # a Feedback, or a lazy frame
    propensities: Any
    exclude: Any = None
    open_loop: Any = None
    groups: dict[str, Array] = field(default_factory=dict[str, Array])
    strata: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict[str, Any])  # other arguments: a frame's columns, its population
    whole: Any = None  # the log that a propensity model was fitted on
    doubts: tuple[str, ...] = ()
    assumes: str | None = None  # None: what the propensity model itself says
    notes: tuple[str, ...] = ()
    about_log: str = ""
    about_propensity: str = ""

    def options(self, wanted: AuditRequest) -> dict[str, Any]:
        """The keyword arguments of `ol.audit`; what was not asked for keeps its default."""
        given = {
            "metrics": wanted.metrics or None, "estimators": wanted.estimators or None, "strata": self.strata or None,
            "exclude": self.exclude, "open_loop": self.open_loop, "groups": self.groups or None,
            "threshold": wanted.threshold, "doubts": self.doubts or None, "assumes": self.assumes,
        }  # fmt: skip
        asked = {name: value for name, value in given.items() if value is not None}
        return asked | self.more | {"missing": wanted.missing, "level": wanted.level, "rng": wanted.seed}


def named_model(text: str) -> tuple[str, str]:
    """The name and the file in NAME=PREDICTIONS."""
    name, equals, path = text.partition("=")
    if not equals:
        raise InputError(f"{text!r}: a model is given as NAME=PREDICTIONS; write {f'{Path(text).stem}={text}'!r}.")
    if not name.strip() or not path:
        raise InputError(f"{text!r}: a model is given as NAME=PREDICTIONS, and one of the two is empty; write both.")
    return name.strip(), path


# -- what the log's columns say ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where propensities come from: a column of the log, or a model by name."""

    column: str | None = None
    model: str = ""
    guessed: bool = False  # nobody said


def propensity_choice(wanted: AuditRequest, table: InputTable, notes: list[str]) -> Choice:
    """The column of that very name, else the model; where nothing was asked for, what there is, or a guess."""
    asked, columns = wanted.propensity, table.columns
    if asked is None and OWN in columns:
        _check_side(wanted, "")
        notes.append(f"propensities are the log's column {OWN!r}; pass --propensity to choose others")
        return Choice(column=OWN)
    if asked is None:
        _check_side(wanted, DEFAULT)
        return Choice(model=DEFAULT, guessed=True)
    if asked in columns:
        _check_side(wanted, "")
        return Choice(column=asked)
    name = asked.partition("=")[0]
    if name not in PROPENSITIES:
        known = [*columns, *PROPENSITIES]
        raise InputError(
            f"--propensity {asked!r}: is neither a column of {wanted.log} nor a model.{did_you_mean(asked, known)}"
        )
    _check_side(wanted, name)
    return Choice(model=name)


# Where nobody said how the log came to be: activity and popularity, see docs/choosing.md. Good to look at, no ground
# for a choice.
DEFAULT = "logistic"
GUESSED = (
    "nobody said with which chance rows were observed, and activity and popularity alone do not undo that people rate "
    "what they like; pass --propensity: a column, naive-bayes=SAMPLE, or logistic to take it as it is"
)


def guesses(chosen: Mapping[str, str], asked: Mapping[str, Column]) -> list[str]:
    """A line on the columns that were found by their names or positions."""
    found = ", ".join(f"{role} {chosen[role]!r}" for role in REQUIRED if asked.get(role) is None)
    return [f"columns of the log, as found: {found}"] if found else []


def is_number_of_strata(text: str) -> bool:
    """Whether strata are of propensity: 5, 2:width."""
    return text.partition(":")[0].isdecimal()


def split_of(wanted: AuditRequest, common: int, rows: tuple[int, int], notes: list[str]) -> str:
    """How log and excluded log came apart: as said, or as their pairs suggest."""
    if wanted.split in ("random", "time") and common:
        raise InputError(
            f"--split {wanted.split}: {common:,} pairs are in both {wanted.log} and {wanted.exclude}, which parts of "
            "one log never share; drop them from one, or pass --split none."
        )
    if common == rows[0]:
        raise LeakError(
            f"--exclude {wanted.exclude}: holds every row of {wanted.log}, so the models would be judged by what they "
            "were trained on; judge them by rows that were held out."
        )
    if wanted.split is not None:
        return wanted.split
    if common:
        notes.append(f"log and excluded log share {common:,} pairs, so they are taken as two separate logs")
        return "none"
    share = rows[0] / sum(rows)
    notes.append(
        f"log and excluded log share no pair, so they are taken as one log split at random, {share:.1%} and "
        f"{1 - share:.1%} of it; pass --split time or --split none if they are not"
    )
    return "random"


def given_ids(role: str, given: int | FilePath | None, named: str) -> Vocabulary | None:
    """The ids that --users or --items stand for: their number, or a file that lists them."""
    if given is None or isinstance(given, int):
        return vocabulary(given, f"{role}s")
    table = _id_list(given, role)
    column = named if named in table.columns else table.columns[0] if len(table.columns) == 1 else id_column(given)
    ids = values.ids(table.fetch([column])[column], f"--{role}s {given}: column {column!r}", text=table.text)
    return vocabulary(ids, f"{role}s")


def _id_list(path: FilePath, role: str) -> InputTable:
    """A table, or a list of one id a line, in which no separator could be found; its first line may be a header."""
    try:
        return open_file(path, {})
    except FormatError as error:
        if "separator" not in str(error):
            raise
    first = open_file(path, {}, separator=",", header=True).columns[0]
    return open_file(path, {}, separator=",", header=first == "id" or names_a(role, first))


# -- refusals ------------------------------------------------------------------------------------------------


def _check_models(wanted: AuditRequest) -> None:
    if len(wanted.tables) < 2:
        raise InputError(
            f"audit: compares models, so it needs at least two names, got {listing(list(wanted.tables))}; add another "
            "NAME=PREDICTIONS."
        )


def _check_choices(wanted: AuditRequest) -> None:
    for name, value, known in (("split", wanted.split or "random", SPLITS), ("missing", wanted.missing, MISSING)):
        if value not in known:
            raise InputError(f"--{name} {value!r} is no option.{did_you_mean(value, known)}")
    if wanted.split is not None and wanted.exclude is None:
        raise InputError(f"--split {wanted.split}: says how the log and --exclude TRAIN came apart; pass that, too.")
    if not 0 < wanted.level < 1:
        raise InputError(f"--level must lie strictly between 0 and 1, got {wanted.level:g}; 0.95 is usual.")
    if not 0 <= wanted.floor <= 1:
        raise InputError(f"--floor must lie in [0, 1], got {wanted.floor:g}; 0 raises nothing.")
    if wanted.seed < 0:
        raise InputError(f"--seed must be at least 0, got {wanted.seed}; choose another.")
    for name in wanted.metrics:
        metric(name)
    for name in wanted.estimators:
        if method(name).imputes:
            raise InputError(f"--estimator {name}: needs imputed ratings, which only ol.audit(imputation=) takes.")


def _check_side(wanted: AuditRequest, model: str) -> None:
    """What a propensity model needs, and what it has no use for."""
    if model == "naive-bayes" and wanted.sample is None:
        raise InputError(
            "--propensity naive-bayes: needs ratings of cells drawn at random; write naive-bayes=SAMPLE, their file."
        )
    if model and model != "naive-bayes" and "=" in (wanted.propensity or ""):
        raise InputError(f"--propensity {wanted.propensity}: only naive-bayes takes a file; write {model}.")
    features = wanted.user_features, wanted.item_features
    if any(features) and (model != "logistic" or not all(features)):
        raise InputError(
            "--user-features and --item-features are for --propensity logistic, which takes both or neither."
        )


def _check_samples(wanted: AuditRequest) -> None:
    """A sample that made the propensities says nothing about them, and the log is none."""
    named = {"--propensity naive-bayes": wanted.sample, "--open-loop": wanted.open_loop}
    for what, path in named.items():
        if path is not None and same_file(path, wanted.log):
            raise LeakError(f"{what} {path}: is the log itself, not a uniform sample; give another file.")
    if wanted.sample is not None and wanted.open_loop is not None and same_file(wanted.sample, wanted.open_loop):
        raise LeakError(
            f"--open-loop {wanted.open_loop}: is also the sample of naive-bayes, so that it would judge propensities "
            "made from it; split it in two files."
        )


def same_file(a: FilePath, b: FilePath) -> bool:
    """Whether two names are of one file."""
    first, second = (Path(path).expanduser() for path in (a, b))
    return first.exists() and second.exists() and first.samefile(second)
