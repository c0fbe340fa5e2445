"""Whether the fits of Figure 3 go far enough, and whether the search for λ finds what the whole grid would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from openloop.studies.kit.grids import told
from openloop.studies.kit.results import Table, Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.schnabel2016.factorisation import METRICS, errors_of_fit, search
from openloop.studies.schnabel2016.searching import OutwardSearch
from openloop.studies.schnabel2016.worlds import ALPHA
from openloop.support.wording import counted

FURTHER = 10  # times as many sweeps, and as small a gain
PLACES = [(loss, alpha, by) for loss in METRICS for alpha in (0.05, ALPHA) for by in ("naive", "known")]
METHODS = {"naive": "MF-Naive", "known": "MF-IPS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The first trial of a setting as it is, over the whole grid, and fitted further: error and λ of each."""

    loss: str
    alpha: float
    by: str
    errors: tuple[float, float, float]
    regs: tuple[float, float, float]


def checked(run: Run, Y: Given) -> list[Checked]:
    """Trials of both losses, methods and of two α, thrice each; a quick run takes one of them."""
    places = run.either(PLACES, PLACES[2:3])
    settings = [
        {"alpha": alpha, "by": by, "size": 0, "loss": loss, "draw": 0, "seed": run.seed, "search": asdict(how)}
        for loss, alpha, by in places
        for how in _ways(search(run, loss))
    ]
    found = run.map(errors_of_fit, Y, settings, "checking fits")
    return list(_together(places, found))


def _ways(usual: OutwardSearch) -> tuple[OutwardSearch, OutwardSearch, OutwardSearch]:
    return usual, replace(usual, whole=True), replace(usual, tol=usual.tol / FURTHER, sweeps=usual.sweeps * FURTHER)


def _together(places: Sequence[tuple[str, float, str]], found: Sequence[Outcome]) -> Iterator[Checked]:
    for at, (loss, alpha, by) in enumerate(places):
        three = found[3 * at : 3 * at + 3]
        errors, regs = (tuple(float(one[name]) for one in three) for name in (METRICS[loss], "reg"))
        yield Checked(loss=loss, alpha=alpha, by=by, errors=errors, regs=regs)  # pyright: ignore[reportArgumentType]


# -- what the page says --------------------------------------------------------------------------------------


def check_table(found: Sequence[Checked], run: Run) -> Table:
    """Errors and λ of each check, side by side."""
    rows = [
        (
            f"{METRICS[one.loss].upper()}, α = {one.alpha:g}, {METHODS[one.by]}",
            *(cell for error, reg in zip(one.errors, one.regs, strict=True)
              for cell in (Value(value=error, digits=4), told(reg, search(run, one.loss).regs))),
        )
        for one in found
    ]  # fmt: skip
    return Table(
        name="figure3left-checks", appendix=True, rows=tuple(rows),
        caption=f"The first trial three times: as run; with every λ tried; with a {FURTHER} times smaller tolerance "
        f"and {FURTHER} times the sweeps",
        columns=("", "error", "λ", "all λ: error", "all λ: λ", "further: error", "further: λ"),
    )  # fmt: skip


def check_note(found: Sequence[Checked]) -> str:
    """How much the errors move."""
    same = [sum(one.regs[way] == one.regs[0] for one in found) for way in (1, 2)]
    moved = [max(abs(one.errors[way] / one.errors[0] - 1) for one in found) for way in (1, 2)]
    n = len(found)
    return (
        f"Two checks of {counted(n, 'trial')} (appendix). With all λ tried, the λ is the same in {same[0]} of {n}, and "
        f"the error moves by at most {moved[0]:.1%}. Fitted further, folds included, the λ is the same in {same[1]} of "
        f"{n}, and the error moves by at most {moved[1]:.1%}."
    )
