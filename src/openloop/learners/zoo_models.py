"""`zoo`: the 104 models that Jadidinejad et al. (2021, section 6.2) compare, unfitted, by name.

Hyper-parameters are those of the paper's repository (github.com/terrierteam/stratified_recsys_eval, utils.py), which
are Cornac's defaults but for what SETTINGS says, and seed 123. Models meet the rows in the order of the input, as
there. Where this zoo cannot do as that code does:

- BO is called a random permutation in the paper's text, but the code trains Cornac's BaselineOnly, the offsets
  a_u + b_i + c, and so does this zoo. The code leaves BO without a seed; a seed changes nothing in it but that it
  learns on one thread, the same each time. (`openloop.learners.Random` is the permutation.)
- WMF, GMF, MLP and NeuMF are Cornac's TensorFlow models, trained by PyTorch (`adapters/torch_models.py`): the same
  loss, layers, start (number by number) and optimiser. (`openloop.learners.WMF` is another WMF, solved by least
  squares.)
- The code gives its data no seed, so its batches and unrated items are drawn anew each time; here they follow the seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from openloop.errors import InputError, MissingPackageError, did_you_mean
from openloop.learners.adapters.cornac_models import CornacModel, cornac_module
from openloop.learners.base import Learner
from openloop.support.arguments import is_whole

NEURAL = {"backend": "pytorch"}
# Family: the class in Cornac, or Torch… in adapters/torch_models.py, and what the paper's code sets in it.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "GA": ("GlobalAvg", {}),
    "MostPop": ("MostPop", {}),
    "BO": ("BaselineOnly", {}),
    "MLP": ("TorchMLP", NEURAL),
    "MF": ("MF", {"learning_rate": 0.001, "early_stop": True, "use_bias": False}),
    "SVD": ("SVD", {"learning_rate": 0.001}),
    "PMFL": ("PMF", {"variant": "linear"}),
    "PMFNL": ("PMF", {"variant": "non_linear"}),
    "WMF": ("TorchWMF", {}),
    "MMMF": ("MMMF", {}),
    "BPR": ("BPR", {}),
    "WBPR": ("WBPR", {}),
    "GMF": ("TorchGMF", NEURAL),
    "NeuMF": ("TorchNeuMF", NEURAL),
    "NMF": ("NMF", {"use_bias": True}),
}

FAMILIES = tuple(name for name in SETTINGS if name != "NMF")  # the code makes NMF and leaves it out of its 104
ONE_SIZE = ("GA", "MostPop", "BO", "MLP")
SEEDLESS = ("GA", "MostPop")  # nothing is drawn, and nothing is said while they count
ON_TORCH = ("WMF", "MLP", "GMF", "NeuMF")
SIZES = tuple(range(10, 101, 10))
SEED = 123


def zoo(
    families: str | Iterable[str] = FAMILIES, sizes: int | Iterable[int] = SIZES, seed: int = SEED
) -> dict[str, Learner]:
    """The 104 unfitted models of Jadidinejad et al. (2021, section 6.2), by the paper's names, such as "MF40".

    Needs the extra `cornac`, and `torch` for WMF, MLP, GMF and NeuMF.

    Args:
        families: Which families. GA, MostPop, BO and MLP have one size; MF, SVD, PMFL and PMFNL (linear and
            non-linear), WMF, MMMF, BPR, WBPR, GMF and NeuMF have all `sizes`. NMF, which the paper names but does not
            count among its 104, must be asked for: `zoo(families=["NMF"])`.
        sizes: The numbers of factors.
        seed: The seed of every model.

    Returns:
        The models by name.

    Examples:
        >>> import openloop as ol
        >>> models = ol.learners.zoo(families=["GA", "MF"], sizes=[10, 20])  # doctest: +SKIP
        >>> list(models)  # doctest: +SKIP
        ['GA', 'MF10', 'MF20']
    """
    chosen = [families] if isinstance(families, str) else list(dict.fromkeys(families))
    factors = [sizes] if isinstance(sizes, int) else list(dict.fromkeys(sizes))
    _check(chosen, factors, seed)
    models: dict[str, Learner] = {}
    for family in chosen:
        for k in [0] if family in ONE_SIZE else factors:
            name = f"{family}{k or ''}"
            models[name] = _model(family, name, k, seed)
    return models


def _model(family: str, name: str, k: int, seed: int) -> Learner:
    kind, settings = SETTINGS[family]
    options = {"name": name, **settings}
    if family not in SEEDLESS:
        options |= {"seed": seed, "verbose": False}
    if k:
        options["num_factors" if settings is NEURAL else "k"] = k
    return CornacModel(_class(family, kind)(**options), order="input")


def _class(family: str, kind: str) -> Any:
    models = cornac_module("models")
    if family in ON_TORCH:
        from openloop.learners.adapters import torch_models as models
    return getattr(models, kind)


def _check(families: list[Any], sizes: list[Any], seed: Any) -> None:
    for family in families:
        if family not in SETTINGS:
            raise InputError(f"zoo: no family {family!r}.{did_you_mean(str(family), SETTINGS)}")
    for k in sizes:
        if not (is_whole(k) and k > 0):
            raise InputError(f"zoo: sizes must be whole numbers from 1, got {k!r}.")
    if not (is_whole(seed) and 0 <= seed < 2**32):
        raise InputError(f"zoo: seed must be a whole number from 0 to 2³² − 1, got {seed!r}.")
    wants_torch = [family for family in families if family in ON_TORCH]
    if wants_torch and find_spec("torch") is None:
        raise MissingPackageError(
            f"zoo: {', '.join(wants_torch)} need torch; pip install 'openloop[torch]', or choose families without them."
        )
