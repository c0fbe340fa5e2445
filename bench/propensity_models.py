"""`python -m bench.propensity_models`: every propensity model in worlds of known truth and on Coat, as Markdown.

The tables of the guide's page on choosing a model are what this prints. In each world the log is drawn several
times; the question is the mean squared error of two predictions, and the answer is the root mean squared error
of IPS and SNIPS, divided by naive's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import openloop as ol
from bench.harness import data_folder
from openloop.data.simulate import World, observation_model
from openloop.propensity import Boosted, Calibrated, Known, Logistic, LowRank, NaiveBayes, Popularity, Uniform

U, I = 600, 400
LOGS = 5
SAMPLE = 10_000
WORLDS, DRAWS, SAMPLES = 4, 50, (100, 1_000, 10_000, 100_000)
Fit = Callable[[Any, "Setting"], Any]


class Setting:
    """A world with covariates, some of which matter in it, and a uniform sample of its ratings."""

    def __init__(self, P: Any, taste: Any, X: Any, Z: Any, rng: np.random.Generator) -> None:
        Y = np.clip(np.rint(2.5 + taste + rng.normal(0, 0.6, (U, I))), 1, 5)
        P = observation_model(Y, alpha=0.25, observed=0.08) if P is None else P
        # One prediction for all, and one that knows item's first covariate only: its error is not the rating's alone.
        predictions = {"four": np.full((U, I), 4.0), "by item": np.broadcast_to(2.5 + Z[:, 0], (U, I))}
        self.world = World(ratings=Y, propensities=np.clip(P, 1e-4, 1), predictions=predictions)
        self.X, self.Z = X, Z
        self.sample = rng.choice(Y.ravel(), SAMPLE, replace=False)


def settings() -> dict[str, Setting]:
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((U, 3)), rng.standard_normal((I, 3))
    quality = 0.7 * Z[:, 0] + 0.5 * rng.standard_normal(I)
    crossed = X @ rng.normal(0, 0.5, (3, 3)) @ Z.T
    A, B = rng.standard_normal((U, 2)), rng.standard_normal((I, 2))
    hidden = A @ B.T / np.sqrt(2)
    active = rng.normal(0, 0.5, (U, 1))
    return {
        "the rating": Setting(None, 0.6 * quality + 0.6 * hidden, X, Z, rng),
        "the item": Setting(sigma(-3 + 1.3 * quality + active), quality, X, Z, rng),
        "covariates of both": Setting(sigma(-2.7 + crossed + active), crossed, X, Z, rng),
        "a hidden taste": Setting(sigma(-2.7 + 1.2 * hidden + active), hidden, X, Z, rng),
    }


def sigma(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


MODELS: dict[str, Fit] = {
    "true p": lambda log, s: Known(s.world.propensities).fit(log),
    "`Uniform`": lambda log, _: Uniform().fit(log),
    "`Popularity()`": lambda log, _: Popularity().fit(log),
    "`Popularity(gamma=1)`": lambda log, _: Popularity(gamma=1).fit(log),
    "`NaiveBayes`, sample of 10,000": lambda log, s: NaiveBayes().fit(log, uniform=s.sample),
    "`Logistic`, offsets": lambda log, _: Logistic().fit(log),
    "`Logistic`, covariates": lambda log, s: Logistic().fit(log, s.X, s.Z),
    "`LowRank`": lambda log, _: LowRank().fit(log),
    "`Boosted`, covariates": lambda log, s: Boosted().fit(log, s.X, s.Z),
}


def errors(setting: Setting, fit: Fit) -> dict[str, float]:
    """Root mean squared error of each estimator over logs and predictions."""
    world, found = setting.world, {"naive": [], "ips": [], "snips": []}
    truth = {name: float(np.mean((Y - world.ratings) ** 2)) for name, Y in world.predictions.items()}
    for seed in range(LOGS):
        log = world.observe(seed)
        names = list(found)
        result = ol.evaluate(world.predictions, log, fit(log, setting), metrics=["mse"], estimators=names, pairs=[])
        for name in names:
            found[name] += [result[m, "mse", name].value - truth[m] for m in truth]
    return {name: float(np.sqrt(np.mean(np.square(e)))) for name, e in found.items()}


def worlds_table() -> str:
    made = settings()
    lines = [f"| model | {' | '.join(made)} |", "|---" * (len(made) + 1) + "|"]
    for name, fit in MODELS.items():
        cells: list[str] = []
        for setting in made.values():
            e = errors(setting, fit)
            cells.append(f"{e['ips'] / e['naive']:.2f} / {e['snips'] / e['naive']:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def samples_table() -> str:
    """RMSE of the estimated MSE by the size of NaiveBayes' sample, in the paper's setting (section 6.4)."""
    errors: dict[tuple[str, str], list[float]] = {}
    for seed in range(WORLDS):
        world = ol.simulate.schnabel_world(rng=seed)
        losses = {name: np.square(Y - world.ratings) for name, Y in world.predictions.items()}
        rng = np.random.default_rng(100 + seed)
        for _ in range(DRAWS):
            log = world.observe(rng)
            fitted = {"true p": Known().fit(log), "none": Uniform().fit(log)} | {
                f"`NaiveBayes`, {n:,} ratings": NaiveBayes().fit(log, uniform=rng.choice(world.ratings.ravel(), n))
                for n in SAMPLES
            }
            for name, model in fitted.items():
                w = model.predict(log).weights
                for delta in losses.values():
                    total = float(w @ delta[log.user, log.item])
                    for kind, value in (("ips", total / delta.size), ("snips", total / w.sum())):
                        errors.setdefault((name, kind), []).append(value - float(delta.mean()))
    rmse = {key: float(np.sqrt(np.mean(np.square(e)))) for key, e in errors.items()}
    names = dict.fromkeys(name for name, _ in rmse)
    rows = [f"| {name} | {rmse[name, 'ips']:.3f} | {rmse[name, 'snips']:.3f} |" for name in names]
    return "\n".join(["| propensities | ips | snips |", "|---" * 3 + "|", *rows])


def coat_table(folder: Path) -> str:
    Y, test = np.loadtxt(folder / "train.ascii"), np.loadtxt(folder / "test.ascii")
    X, Z = (np.loadtxt(folder / "user_item_features" / f"{side}_features.ascii") for side in ("user", "item"))
    user, item = np.nonzero(Y)
    log = ol.Feedback.from_arrays(user, item, Y[user, item], users=290, items=300)
    published = np.loadtxt(folder / "propensities.ascii")
    asked = np.random.default_rng(0).permutation(test[test > 0])
    fitted = {
        "published": Known(published).fit(log),
        "`Uniform`": Uniform().fit(log),
        "`Popularity()`": Popularity().fit(log),
        "`Popularity(gamma=1)`": Popularity(gamma=1).fit(log),
        "`NaiveBayes`, 5 % of the test ratings": NaiveBayes().fit(log, uniform=asked[: len(asked) // 20]),
        "`Logistic`, offsets": Logistic().fit(log),
        "`Logistic`, covariates": Logistic().fit(log, X, Z),
        "`Logistic`, covariates, Platt": Calibrated(Logistic(), "platt").fit(log, user_features=X, item_features=Z),
        "`LowRank`": LowRank().fit(log),
        "`Boosted`, covariates": Boosted().fit(log, X, Z),
    }
    lines = ["| model | held-out log-likelihood | ECE | Σw/(U·I) | effective rows | mean rating |", "|---" * 6 + "|"]
    for name, model in fitted.items():
        found = ol.propensity.check(model, log, (X, Z))
        c, w = found.calibration, found.weights
        p = model.predict(log).used
        mean = float(np.average(log.rating, weights=1 / p))
        held = "–" if c is None or name == "published" else f"{c.log_likelihood:.5f}"
        ece = "–" if c is None or name == "published" else f"{c.error:.4f}"
        lines.append(f"| {name} | {held} | {ece} | {w.mass:.2f} | {w.effective_size:,.0f} | {mean:.3f} |")
        print(lines[-1], flush=True)
    lines.append(f"\nnaive {log.rating.mean():.3f}, of the uniform test ratings {test[test > 0].mean():.3f}")
    model = fitted["`Logistic`, covariates"]
    lines += ["", f"correlation with the published p: {correlation(model.matrix(), published):s}; log-likelihoods"]
    offsets, share = fitted["`Logistic`, offsets"].matrix(), len(log) / Y.size
    grids = {
        "published": published,
        "covariates": model.matrix(),
        "offsets": offsets,
        "uniform": np.full(Y.shape, share),
    }
    lines += [f"- {name}: {likelihood(P, Y > 0):.1f}" for name, P in grids.items()]
    return "\n".join(lines)


def correlation(P: Any, Q: Any) -> str:
    plain, logs = (np.corrcoef(f(P).ravel(), f(Q).ravel())[0, 1] for f in (np.asarray, np.log))
    return f"{plain:.3f} ({logs:.3f} of their logarithms)"


def likelihood(P: Any, O: Any) -> float:
    return float(np.log(P[O]).sum() + np.log1p(-P[~O]).sum())


def main() -> None:
    print(f"{U} × {I} cells, {LOGS} logs\n\n{worlds_table()}\n")
    print(f"{WORLDS} worlds, {DRAWS} logs of each\n\n{samples_table()}\n")
    folder = data_folder("coat")
    print("Coat is neither in $OPENLOOP_DATA nor in ../shared/data." if folder is None else coat_table(folder))


if __name__ == "__main__":
    main()
