"""`cite`: BibTeX of openloop and of the papers behind what was used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openloop.audits.results import Audit
from openloop.core.comparison import Comparison
from openloop.core.estimate import Estimate
from openloop.core.lists import LISTS, ListMetric
from openloop.core.metric import Metric
from openloop.errors import InputError
from openloop.estimators.naming import Method
from openloop.learners.adapters.wrapped import Wrapped
from openloop.reporting.references import REFERENCES, Reference
from openloop.selection import Selection
from openloop.support.version import VERSION

Keys = tuple[str, ...]

SOFTWARE = Reference(
    "openloop", "misc", "{The openloop contributors}",
    "openloop: How good a recommender really is, when its users and the running system chose the data",
    "Python package", 2026, note=f"Version {VERSION}",
)  # fmt: skip

# () is what every textbook has.
ESTIMATORS: dict[str, Keys] = {
    "naive": (),
    "ips": ("horvitz1952", "schnabel2016"),
    "snips": ("swaminathan2015", "schnabel2016"),
    "snips_user": ("swaminathan2015", "schnabel2016"),
    "ips_eq3": ("jadidinejad2021",),
    "clipped": ("ionides2008", "schnabel2016"),
    "dr": ("robins1994", "chernozhukov2018"),
    "stratified": ("jadidinejad2021",),
    # Of impressions.
    "sips": ("horvitz1952",),
    "rips": ("mcinerney2020",),
    "iips": ("li2018",),
    "pbm": ("joachims2017", "li2018"),
    "pi": ("swaminathan2017",),
    "affine": ("vardasbi2020", "agarwal2019trust"),
    "snsips": ("swaminathan2015",),
    "snrips": ("mcinerney2020", "swaminathan2015"),
    "sniips": ("li2018", "swaminathan2015"),
    "snpbm": ("joachims2017", "li2018", "swaminathan2015"),
    "rips_dr": ("kiyohara2022",),
    "iips_dr": ("li2018", "dudik2011"),
    "pbm_dr": ("oosterhuis2023",),
    LISTS: (),
}

# By what comes before @ and a colon. Of tied items the gain is its expectation, McSherry & Najork.
TIED = "mcsherry2008"
METRICS: dict[str, Keys] = {
    "mae": (), "mse": (), "rmse": (), "accuracy": (),
    "cg": ("schnabel2016",),
    "dcg": ("jarvelin2002", TIED),
    "ndcg": ("jarvelin2002", TIED),
    "rbp": ("moffat2008", TIED),
    "adg": ("lim2015", TIED),
    "atop": ("steck2010", "lim2015"),
    "prec": ("schnabel2016", TIED),
    "recall": (TIED,), "precision": (TIED,), "hit": (TIED,), "map": (TIED,), "mrr": (TIED,),
    "auc": (),
    "coverage": (), "gini": (), "popularity": (), "novelty": (), "new": (), "overlap": (),
    "similarity": ("ziegler2005",),
    "clicks": (), "ctr": (),
}  # fmt: skip

MODELS: dict[str, Keys] = {
    "learners.MF": ("schnabel2016",),
    "learners.WMF": ("hu2008",),
    "learners.ADG": ("lim2015",),
    "learners.AUC": ("lim2015",),
    "learners.PureSVD": ("cremonesi2010",),
    "learners.Stack": ("wolpert1992",),
    "learners.Recalibrated": (),
    "learners.Exposure": ("musco2015",),
    "learners.Features": (),
    "learners.DR": (),
    "learners.RelMF": ("saito2020",),
    "learners.OrdinalMF": ("hernandezlobato2014", "liu2000", "vehtari2021"),
    "learners.JointMNAR": ("hernandezlobato2014", "polson2013", "roberts1996", "roberts1998", "vehtari2021"),
    "learners.MixtureMNAR": ("marlin2009", "varadhan2008"),
    "learners.RatingPropensities": (),
    "learners.Random": (),
    "learners.GlobalAverage": (),
    "learners.Popularity": (),
    "learners.Bias": (),
    "learners.Factors": (),
    "learners.CornacModel": ("salah2020",),
    "propensity.Uniform": (),
    "propensity.Known": (),
    "propensity.Popularity": ("jadidinejad2021", "clauset2009"),
    "propensity.NaiveBayes": ("schnabel2016",),
    "propensity.Logistic": ("schnabel2016",),
    "propensity.LowRank": ("davenport2014", "ma2019"),
    "propensity.Boosted": ("mccaffrey2004",),
    "propensity.Calibrated": (),
    "propensity.Balanced": ("deville1992",),
    "propensity.Examination": (),
}

# What a model's setting adds: model, attribute, value.
SETTINGS: dict[tuple[str, str, object], Keys] = {
    ("learners.MF", "loss", "logistic"): ("jaakkola2000",),
    ("learners.MF", "solver", "projected"): ("nocedal2006",),
    ("learners.DR", "weights", "dr-jl"): ("wang2019",),
    ("learners.DR", "weights", "mrdr"): ("guo2021",),
    ("learners.DR", "weights", "dr-bias"): ("dai2022",),
    ("learners.DR", "weights", "dr-mse"): ("dai2022",),
    ("learners.DR", "targeted", True): ("li2023",),
    ("propensity.Examination", "method_", "shuffled"): ("joachims2017",),
    ("propensity.Examination", "method_", "weighted"): ("joachims2017",),
    ("propensity.Examination", "method_", "affine"): ("agarwal2019trust",),
    ("propensity.Examination", "method_", "harvest"): ("agarwal2019", "ford1957"),
    ("propensity.Examination", "method_", "all_pairs"): ("agarwal2019",),
    ("propensity.Examination", "method_", "em"): ("wang2018",),
}

AUDIT: Keys = ("holm1979", "hanley2006")


def cite(*used: Any) -> str:
    """BibTeX of openloop, and of the papers behind results, metrics and models.

    A result knows its metrics and estimators, but not the models that were scored or that gave p; pass these too.

    Args:
        *used: Audits, comparisons, selections, estimates, metrics, learners and propensity models.

    Returns:
        BibTeX entries.

    Examples:
        >>> import openloop as ol
        >>> text = ol.cite(ol.learners.MF(), ol.propensity.NaiveBayes(), ol.metric("mae"))
        >>> [line for line in text.splitlines() if line.startswith("@")]
        ['@misc{openloop,', '@inproceedings{schnabel2016,']
    """
    keys = dict.fromkeys(key for each in used for key in _keys(each))  # each paper once, in the order of use
    return "\n\n".join(entry.bibtex() for entry in (SOFTWARE, *(REFERENCES[key] for key in keys))) + "\n"


def _keys(used: Any) -> Iterator[str]:
    match used:
        case Audit():
            yield from _audit(used)
        case Comparison():
            yield from _names((*used.metrics, *used.list_metrics), used.estimators)
        case Estimate():
            yield from _names((used.metric,), (used.method,))
        case Metric() | ListMetric():
            yield from _names((used.name,), ())
        case Method():
            yield from _names((), (used.name,))
        case Selection():
            yield from _keys(used.model)
        case Wrapped():  # trained elsewhere, by papers that its own library names
            return
        case _:
            yield from _model(used)


def _audit(found: Audit) -> Iterator[str]:
    yield from _keys(found.result)
    yield from AUDIT
    if any(curve.against == "gamma" for curve in found.curves):
        yield "zhao2019"
    if found.strata or found.paradoxes or found.open_loop is not None:
        yield "jadidinejad2021"
    if found.friedman is not None:
        yield "conover1999"


def _names(metrics: tuple[str, ...], estimators: tuple[str, ...]) -> Iterator[str]:
    """Names carry parameters, `clipped@20` and `rbp:0.9`. A metric of your own has no paper here."""
    for known, names in ((METRICS, metrics), (ESTIMATORS, estimators)):
        for name in names:
            yield from known.get(name.partition("@")[0].partition(":")[0], ())


def _model(model: Any) -> Iterator[str]:
    """The papers of a model's class, of its settings, and of the models inside it."""
    name = _known(model)
    if name is None:
        raise InputError(
            f"cite: takes results, metrics, learners and propensity models of openloop, got {type(model).__name__}; "
            "cite other libraries yourself."
        )
    yield from MODELS[name]
    for (owner, attribute, value), keys in SETTINGS.items():
        if owner == name and getattr(model, attribute, None) == value:
            yield from keys
    for part in _flat(model.get_params(deep=False).values()):
        if _known(part) is not None:
            yield from _model(part)


def _known(model: Any) -> str | None:
    """The name of a model's class in MODELS; a class that inherits from one has that one's."""
    for kind in type(model).__mro__:
        package, _, rest = kind.__module__.partition(".")
        name = f"{rest.partition('.')[0]}.{kind.__name__}"
        if package == "openloop" and name in MODELS:
            return name
    return None


def _flat(values: Any) -> Iterator[Any]:
    """The values, and those in lists and tuples among them: a stack's bases, some with weights."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
