"""Whether the fits of Figure 3 go far enough, and whether the search for λ finds what the whole grid would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Given, Outcome
from openloop.studies.schnabel2016.factorisation import METRICS, errors_of_fit, search
from openloop.studies.schnabel2016.searching import Search
from openloop.studies.schnabel2016.worlds import ALPHA

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


def _ways(usual: Search) -> tuple[Search, Search, Search]:
    return usual, replace(usual, whole=True), replace(usual, tol=usual.tol / FURTHER, sweeps=usual.sweeps * FURTHER)


def _together(places: Sequence[tuple[str, float, str]], found: Sequence[Outcome]) -> Iterator[Checked]:
    for at, (loss, alpha, by) in enumerate(places):
        three = found[3 * at : 3 * at + 3]
        errors, regs = (tuple(float(one[name]) for one in three) for name in (METRICS[loss], "reg"))
        yield Checked(loss=loss, alpha=alpha, by=by, errors=errors, regs=regs)  # pyright: ignore[reportArgumentType]
