"""The request of an audit: its files and options, what they mean, and which combinations are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from openloop.audits.basis import granted
from openloop.audits.question import COLD, ESTIMATORS, STRATA, AuditQuestion, Cold
from openloop.commands.fitting import FitRequest
from openloop.commands.table_files import open_list
from openloop.core.feedback import Vocabulary
from openloop.data import values
from openloop.data.columns import REQUIRED, Column, InputTable
from openloop.data.encoding import vocabulary
from openloop.data.features import id_column
from openloop.data.reading import NO_RATINGS
from openloop.data.splitting import Repeats
from openloop.errors import InputError, LeakError, did_you_mean, listing, quoted
from openloop.estimators.naming import method
from openloop.metrics.naming import any_metric
from openloop.moments.table_rules import MISSING
from openloop.propensity.naming import FORMS, MODELS, ModelSpec, is_model, sample_of
from openloop.support.atomic import FilePath

SPLITS = ("random", "time", "none")
OWN = "propensity"  # the column that is taken without being asked for


class ModelFile(NamedTuple):
    """A model's name and one of its files."""

    name: str
    path: FilePath

    @classmethod
    def parse(cls, text: str) -> ModelFile:
        """The name and the file in NAME=PREDICTIONS."""
        name, equals, path = text.partition("=")
        if not equals:
            raise InputError(f"{text!r}: a model is given as NAME=PREDICTIONS; write {f'{Path(text).stem}={text}'!r}.")
        if not name.strip() or not path:
            raise InputError(
                f"{text!r}: a model is given as NAME=PREDICTIONS, and one of the two is empty; write both."
            )
        return cls(name.strip(), path)

    def __str__(self) -> str:
        return f"{self.name}={self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest(FitRequest):
    """Which files to audit and how; whatever cannot work is refused here.

    `models` are names and files, a name twice for a table of scores and a list with ranks; `score` and `rank` are
    columns of these tables. `propensity` is a column of
    the log, or NAME[=SAMPLE] of a model; `assumes` names the model that a column was fitted by. `users` and `items` are
    sizes of a population with the ids 0 … n-1, or files that list all ids. `test` is the share of the log, or its rows
    from a date on, that models are judged by; the rest is then what they were trained on, as `exclude` is otherwise.
    `split` says how one log became `log` and `exclude`, None: as their pairs suggest.
    """

    models: tuple[ModelFile, ...]
    score: Column = None
    rank: Column = None
    propensity: str | None = None
    assumes: str | None = None
    metrics: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    test: float | str | None = None
    repeats: Repeats = "drop"
    cold: Cold = "keep"
    exclude: FilePath | None = None
    split: str | None = None
    threshold: float | None = None
    strata: tuple[str, ...] = ()
    open_loop: FilePath | None = None
    baseline: str | None = None
    running: str | None = None
    min_item_rows: int = 0
    missing: str = "error"
    level: float = 0.95
    users: int | FilePath | None = None
    items: int | FilePath | None = None
    rehearse: int = 0
    check: bool = True
    device: str | None = None

    def __post_init__(self) -> None:
        FitRequest.__post_init__(self)
        _check_models(self)
        _check_test(self)
        _check_choices(self)
        _check_samples(self)

    @property
    def tables(self) -> dict[str, list[FilePath]]:
        """The files of each model."""
        found: dict[str, list[FilePath]] = {}
        for name, path in self.models:
            found.setdefault(name, []).append(path)
        return found

    def model_columns(self, log: Mapping[str, str]) -> dict[str, Column]:
        """The names of columns in the models' tables: ids as in the log, numbers as given by options."""
        return {"user": log["user"], "item": log["item"], "score": self.score, "rank": self.rank}

    @property
    def sample(self) -> str | None:
        """The uniform sample of the propensity model, if that needs one."""
        return None if self.propensity is None else sample_of(self.propensity)

    @property
    def inputs(self) -> list[FilePath]:
        """The files to read."""
        beside = (self.exclude, self.open_loop, self.sample, self.user_features, self.item_features)
        ids = (given for given in (self.users, self.items) if not isinstance(given, int))
        return [path for path in (self.log, *(path for _, path in self.models), *beside, *ids) if path is not None]

    def question(self, **found: Any) -> AuditQuestion:
        """What is asked of the files; `found` is what was read from them, or overrides what was asked for."""
        asked: dict[str, Any] = {
            "metrics": self.metrics, "estimators": self.estimators or ESTIMATORS, "threshold": self.threshold,
            "strata": tuple(filter(is_number_of_strata, self.strata)) or STRATA, "missing": self.missing,
            "level": self.level, "check": self.check, "rng": self.seed, "baseline": self.baseline,
            "running": self.running, "min_item_rows": self.min_item_rows, "rehearse": self.rehearse, "cold": self.cold,
            "device": self.device, **({} if self.assumes is None else granted(self.assumes)),
        }  # fmt: skip
        return AuditQuestion(**asked | found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditInputs:
    """What an audit takes, read from files, and what should be known about how it was read."""

    models: dict[str, Any]
    log: Any  # a Feedback, or a lazy frame
    propensities: Any
    asked: AuditQuestion
    notes: Sequence[str] = ()  # a model file adds what it lacks when it is asked
    about_log: str = ""
    about_propensity: str = ""


# -- what the log's columns say ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Where propensities come from: a column of the log, a model, or nowhere."""

    column: str | None = None
    model: ModelSpec | None = None
    guessed: bool = False  # not given

    @property
    def none(self) -> bool:
        """Whether there are none."""
        return self.column is None and self.model is None

    def source(self, *, split: bool) -> str:
        """Where propensities come from, in words; `split`: the log and the excluded log are parts of one."""
        if self.none:
            return "none"
        on = "log and excluded log together" if split else "the log"
        return f"column {self.column!r} of the log" if self.model is None else f"{self.model}, fitted on {on}"


def propensity_choice(wanted: AuditRequest, table: InputTable, notes: list[str]) -> Choice:
    """The column of that very name, else the model; where nothing was asked for, what there is, or a guess."""
    asked = wanted.propensity
    if asked is None and OWN in table.columns:
        notes.append(f"propensities are the log's column {OWN!r}; pass --propensity to choose others")
        asked = OWN
    if wanted.assumes is not None and (asked is None or asked not in table.columns):
        raise InputError(
            f"--assumes {wanted.assumes}: names the model behind a column of propensities, and here they are not a "
            "column; leave it out, or name the column with --propensity."
        )
    if asked is None:
        return Choice(model=wanted.spec(DEFAULT), guessed=True)
    if asked in table.columns:
        _refuse_for_column(wanted, asked)
        if is_model(asked):
            notes.append(
                f"--propensity {asked} is the log's column of that name, not the model; rename it for the model"
            )
        return Choice(column=asked)
    if not is_model(asked):
        raise InputError(
            f"--propensity {asked!r}: is neither a column of {wanted.log} nor a model."
            f"{did_you_mean(asked, [*table.columns, *MODELS])}"
        )
    return Choice(model=wanted.spec(asked))


# Without --propensity: activity and popularity, see docs/choosing.md. They ignore the rating, so the verdict asks how
# far ratings may matter beyond them.
DEFAULT = "logistic"
GUESSED = (
    "no propensities were given; a model of activity and popularity (logistic) is used, which cannot correct for "
    "people rating what they like; pass --propensity: a column, balanced=SAMPLE, or a model"
)
UNEXPOSED = (
    "the log holds positives only, so propensities fitted on it would be the chance of being shown and liked; none "
    "were fitted; pass --propensity with a column that has the chance of being shown"
)


def guesses(table: InputTable, chosen: Mapping[str, str], asked: Mapping[str, Column]) -> list[str]:
    """A line on the columns that were found by their names or positions."""
    found = ", ".join(
        f"{role} {quoted(chosen[role])}" for role in REQUIRED if asked.get(role) is None and role in chosen
    )
    notes = [f"columns of the log, as found: {found}"] if found else []
    if "rating" not in chosen and asked.get("rating") is None:
        notes += [table.remark] if table.remark else []
        notes.append(NO_RATINGS)
    return notes


def is_number_of_strata(text: str) -> bool:
    """Whether strata are of propensity: 5, 2:width."""
    number = text.partition(":")[0]
    return number.isascii() and number.isdecimal()


def split_of(wanted: AuditRequest, common: int, rows: tuple[int, int], notes: list[str]) -> str:
    """How one log became log and excluded log: as said, or as their pairs suggest."""
    if wanted.split in ("random", "time") and common:
        raise InputError(
            f"--split {wanted.split}: {common:,} pairs are in both {wanted.log} and {wanted.exclude}, which parts of "
            "one log never share; drop them from one, let --test split the whole log, or pass --split none."
        )
    if common == rows[0]:
        raise LeakError(
            f"--exclude {wanted.exclude}: holds every row of {wanted.log}, so the models would be judged by what they "
            "were trained on; judge them by rows that were held out."
        )
    if wanted.split is not None:
        return wanted.split
    if common:
        notes.append(f"log and excluded log share {common:,} pairs, so they are treated as two separate logs")
        return "none"
    share = rows[0] / sum(rows)
    notes.append(
        f"log and excluded log share no pair, so they are treated as one log split at random, {share:.1%} and "
        f"{1 - share:.1%} of it; otherwise pass --split time or --split none"
    )
    return "random"


def given_ids(role: str, given: int | FilePath | None, named: str) -> Vocabulary | None:
    """The ids that --users or --items name: their number, or a file that lists them."""
    if given is None or isinstance(given, int):
        return vocabulary(given, f"{role}s")
    table = open_list(given, role)
    column = named if named in table.columns else table.columns[0] if len(table.columns) == 1 else id_column(given)
    ids = values.ids(table.fetch([column])[column], f"--{role}s {given}: column {quoted(column)}", text=table.text)
    return vocabulary(ids, f"{role}s")


def mixed_ids(role: str, some: list[Any]) -> InputError:
    """The error of logs of which some have integers and others text."""
    return InputError(
        f"the {role} ids of the files are integers in one and text in another, as {listing(some)}; cast one."
    )


# -- refusals ------------------------------------------------------------------------------------------------


def _check_models(wanted: AuditRequest) -> None:
    if len(wanted.tables) < 2:
        raise InputError(
            f"audit: compares models, so it needs at least two names, got {listing(list(wanted.tables))}; add another "
            "NAME=PREDICTIONS."
        )


def _check_test(wanted: AuditRequest) -> None:
    """One log is split here, or was before."""
    if wanted.test is None:
        if wanted.repeats != "drop":
            raise InputError(f"--repeats {wanted.repeats}: applies to the parts that --test makes; pass that, too.")
        if wanted.cold != "keep" and wanted.exclude is None:
            raise InputError(
                f"--cold {wanted.cold}: needs what models were trained on; pass --test or --exclude TRAIN."
            )
        return
    for name, value in (("exclude", wanted.exclude), ("split", wanted.split)):
        if value is not None:
            raise InputError(
                f"--test {wanted.test}: splits the log, and --{name} {value} is for a log that was split before; leave "
                "one of the two out."
            )
    if wanted.time is None:
        raise InputError(f"--test {wanted.test}: splits the log by time; name the column of times with --time.")


def _check_choices(wanted: AuditRequest) -> None:
    for name, value, known in (("split", wanted.split or "random", SPLITS), ("missing", wanted.missing, MISSING),
                               ("repeats", wanted.repeats, ("drop", "keep")), ("cold", wanted.cold, COLD),
                               ("assumes", wanted.assumes or DEFAULT, tuple(MODELS))):  # fmt: skip
        if value not in known:
            raise InputError(f"--{name} {value!r} is not an option.{did_you_mean(value, known)}")
    for name, value in (("baseline", wanted.baseline), ("running", wanted.running)):
        if value is not None and value not in wanted.tables:
            raise InputError(f"--{name} {value!r} is not a model.{did_you_mean(value, list(wanted.tables))}")
    if wanted.split is not None and wanted.exclude is None:
        raise InputError(f"--split {wanted.split}: says how one log became LOG and --exclude TRAIN; pass that, too.")
    if not 0 < wanted.level < 1:
        raise InputError(f"--level must lie strictly between 0 and 1, got {wanted.level:g}; 0.95 is usual.")
    for name in wanted.metrics:
        any_metric(name)
    for name in wanted.estimators:
        if method(name).imputes:
            raise InputError(f"--estimator {name}: needs imputed ratings, which only ol.dr takes, in Python.")


def _refuse_for_column(wanted: AuditRequest, column: str) -> None:
    """A column is taken as it is, above the floor."""
    given = {
        "user-features": wanted.user_features, "gamma": wanted.gamma,  # item features also describe lists
        "quantile": wanted.quantile, "calibrate": None if wanted.calibrate == "none" else wanted.calibrate,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"--{name} {value}: is for a propensity model, and propensities are the log's column {quoted(column)}; "
                f"leave it out, or pass --propensity {', '.join(FORMS[:-1])} or {FORMS[-1]}."
            )


def _check_samples(wanted: AuditRequest) -> None:
    """Refuse as open loop the sample that made the propensities, which cannot judge them, and the log itself."""
    named = {"--propensity": wanted.sample, "--open-loop": wanted.open_loop}
    for what, path in named.items():
        if path is not None and same_file(path, wanted.log):
            raise LeakError(f"{what} {path}: is the log itself, not a uniform sample; give another file.")
    if wanted.sample is not None and wanted.open_loop is not None and same_file(wanted.sample, wanted.open_loop):
        raise LeakError(
            f"--open-loop {wanted.open_loop}: is also the sample of --propensity, so it would judge propensities that "
            "were made from it; split it in two files."
        )


def same_file(a: FilePath, b: FilePath) -> bool:
    """Whether two names are of one file."""
    first, second = (Path(path).expanduser() for path in (a, b))
    return first.exists() and second.exists() and first.samefile(second)
