"""Draws the pictures of the pages: `python docs/pictures/draw.py` writes them beside itself.

Each is plain SVG. Its colours are variables that a page sets for its light and dark look. Without a page it follows
the reader's system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import numpy as np

import openloop as ol

HERE = Path(__file__).resolve().parent

LIGHT = {
    "ink": "#1c2733",
    "muted": "#52606d",
    "line": "#9aa5b1",
    "paper": "#f4f7fa",
    "blue": "#0072b2",
    "vermillion": "#b84e00",
    "green": "#007a59",
    "shade": "#dfe8f0",
}
DARK = {
    "ink": "#e8edf2",
    "muted": "#a9b4c0",
    "line": "#6b7a89",
    "paper": "#222a35",
    "blue": "#56b4e9",
    "vermillion": "#f28e4b",
    "green": "#3cc79b",
    "shade": "#2f3b49",
}


def colour(name: str) -> str:
    """A colour that a page may replace."""
    return f"var(--ol-{name}, {LIGHT[name]})"


def picture(name: str, width: int, height: int, title: str, parts: Sequence[str]) -> None:
    """Write one picture; the title is what a screen reader says."""
    dark = ";".join(f"--ol-{key}:{value}" for key, value in DARK.items())
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" '
        'font-family="system-ui, Helvetica, Arial, sans-serif" font-size="14">'
        f"<style>@media (prefers-color-scheme: dark){{:root{{{dark}}}}}</style>"
    )
    (HERE / name).write_text("\n".join([head, *parts, "</svg>", ""]), encoding="utf-8")


def text(x: float, y: float, words: str, *, ink: str = "ink", anchor: str = "start", more: str = "") -> str:
    """One line of text."""
    return f'<text x="{x:g}" y="{y:g}" fill="{colour(ink)}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


BOLD = ' font-weight="600"'
SMALL = ' font-size="12.5"'


# -- the problem ---------------------------------------------------------------------------------------------


def the_problem() -> None:
    """What a log shows of a world, and what that makes of two models: a real evaluation."""
    world = ol.simulate.movie_lovers()
    log = world.observe(rng=1)
    models = {name: world.predictions[name] for name in ("Y1", "Y2")}
    seen = ol.evaluate(models, log, metrics=["mae"], estimators=["naive", "snips"])
    truth = ol.evaluate(models, world.everything(), metrics=["mae"], estimators=["naive"])
    lines = [
        ("Plain average of the log", {m: seen[m, "mae", "naive"] for m in models}),
        ("openloop, weighted by 1/p", {m: seen[m, "mae", "snips"] for m in models}),
        ("Truth: all 8,000 ratings", {m: truth[m, "mae", "naive"] for m in models}),
    ]
    left = "A log of 100 users and 80 movies: a dot for each rating. Most dots are where people love the genre."
    picture("log.svg", 400, 372, left, list(observed(log)))
    right = (
        "The errors of two models. The plain average of the log prefers model B. Weighted by one over the probability "
        "of being observed, the same log prefers model A, and so does the truth."
    )
    picture("errors.svg", 440, 384, right, list(errors(lines)))


def observed(log: ol.Feedback) -> Iterator[str]:
    """The grid of users and movies with a dot for each rating that the log has."""
    left, top, step, tall = 84, 70, 3.6, 2.6
    place = np.concatenate(
        [np.arange(30), np.arange(50, 80), np.arange(30, 50)]
    )  # dramas, the last 20, go to the middle
    yield text(left, 24, "What the log shows", more=BOLD)
    yield text(left, 43, f"{len(log):,} of 8,000 ratings, each a dot", ink="muted", more=SMALL)
    yield f'<rect x="{left}" y="{top}" width="{80 * step:g}" height="{100 * tall:g}" fill="{colour("shade")}"/>'
    cells = zip(log.user.tolist(), log.item.tolist(), strict=True)
    dots = "".join(f"M{left + place[i] * step:.4g} {top + u * tall:.4g}h2.6v1.9h-2.6z" for u, i in cells)
    yield f'<path d="{dots}" fill="{colour("blue")}"/>'
    for x, words in ((15, "horror"), (40, "drama"), (65, "romance")):
        yield text(left + x * step, top - 9, words, anchor="middle", more=SMALL)
    for y, words in ((25, "horror"), (75, "romance")):
        yield text(left - 10, top + y * tall - 4, "fans of", anchor="end", ink="muted", more=SMALL)
        yield text(left - 10, top + y * tall + 12, words, anchor="end", more=SMALL)
    yield text(left, top + 100 * tall + 22, "People mostly rate what they love.", ink="muted", more=SMALL)


def errors(lines: Sequence[tuple[str, dict[str, ol.Estimate]]]) -> Iterator[str]:
    """The error of both models, by three ways to look at them."""
    left, width, most = 10, 420, 1.75
    names, inks = {"Y1": "A", "Y2": "B"}, {"Y1": "blue", "Y2": "vermillion"}

    def at(value: float) -> float:
        return left + width * value / most

    yield text(left, 24, "Which model errs less?", more=BOLD)
    yield text(left, 43, "mean absolute error with 95 % intervals; left is better", ink="muted", more=SMALL)
    for n, (words, found) in enumerate(lines):
        y = 84 + 92 * n
        best = min(found, key=lambda model: found[model].value)
        right = best == "Y1"
        yield text(left, y, words, more=BOLD)
        verdict = f"prefers {names[best]}" + ("" if n == len(lines) - 1 else ", rightly" if right else ", wrongly")
        yield text(left + width, y, verdict, anchor="end", ink="green" if right else "vermillion", more=BOLD)
        yield f'<path d="M{left} {y + 30}h{width}" stroke="{colour("line")}" stroke-width="1"/>'
        for model, estimate in found.items():
            low, high = estimate.interval(0.95)
            if high - low > 1e-6 and n < len(lines) - 1:
                yield (
                    f'<path d="M{at(low):.1f} {y + 30}H{at(high):.1f}" stroke="{colour(inks[model])}" stroke-width="7" '
                    'stroke-linecap="round" opacity=".45"/>'
                )
            yield f'<circle cx="{at(estimate.value):.1f}" cy="{y + 30}" r="7.5" fill="{colour(inks[model])}"/>'
            label = f"{names[model]} {estimate.value:.2f}"
            side = "end" if model == best else "start"  # names of neighbours do not meet
            yield text(
                at(estimate.value) + (7 if side == "end" else -7),
                y + 55,
                label,
                anchor=side,
                ink=inks[model],
                more=SMALL,
            )
    for n, words in enumerate(
        ("A overrates dramas. B overrates the movies that its users hate,", "which hardly anyone rates.")
    ):
        yield text(left, 354 + 17 * n, words, ink="muted", more=SMALL)


# -- which to choose -----------------------------------------------------------------------------------------


def box(x: float, y: float, width: float, head: str, lines: Sequence[str] = (), ink: str = "line") -> str:
    """A box with a heading and lines under it; a coloured one is an answer."""
    height = 34 + 18 * len(lines)
    fill = "shade" if ink == "line" else "paper"
    look = f'rx="6" fill="{colour(fill)}" stroke="{colour(ink)}" stroke-width="1.5"'
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {look}/>',
        text(x + width / 2, y + 22, head, anchor="middle", more=BOLD),
    ]
    parts += [
        text(x + width / 2, y + 41 + 18 * n, line, anchor="middle", ink="muted", more=SMALL)
        for n, line in enumerate(lines)
    ]
    return "\n".join(parts)


def arrow(points: Sequence[tuple[float, float]], label: str = "", at: tuple[float, float] = (0, 0)) -> str:
    """A line with a head at its end, and words beside it."""
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    (_, y0), (x, y) = points[-2:]
    tip = f"M{x - 5} {y - 8}L{x} {y}L{x + 5} {y - 8}" if y > y0 else f"M{x - 8} {y - 5}L{x} {y}L{x - 8} {y + 5}"
    drawn = f'<path d="{path}{tip}" fill="none" stroke="{colour("line")}" stroke-width="1.5"/>'
    return drawn + (text(*at, label, anchor="middle", ink="muted", more=SMALL) if label else "")


def which() -> None:
    """From what the log holds to propensities, metric, estimator and split."""
    title = (
        "A flow chart from what a log holds to the split, propensities, metric and estimator; the text has the same."
    )
    picture("which.svg", 960, 900, title, [*kinds(), *propensities(), *metrics(), *estimators()])


def kinds() -> Iterator[str]:
    """The three kinds of log, and all of the answer for two of them."""
    yield box(330, 10, 300, "What does a row of your log say?")
    yield arrow([(480, 44), (480, 92)], "a rating", (512, 74))
    yield arrow([(330, 27), (135, 27), (135, 92)], "a click, a play, an order", (212, 18))
    yield arrow([(630, 27), (825, 27), (825, 92)], "shown where, and clicked or not", (738, 18))
    yield box(330, 92, 300, "Ratings", ['split at random: by="row"'], "blue")
    yield box(
        15,
        92,
        240,
        "Positives only",
        [
            'split by time: by="time"',
            "propensities: none; the audit asks",
            "how much popularity is exposure (κ)",
            "metric: recall@k, adg",
            "estimator: naive",
        ],
        "vermillion",
    )
    yield box(
        705,
        92,
        240,
        "Impressions",
        [
            "no split: models of an earlier log",
            "propensities: Examination(by=…)",
            "metric: clicks",
            "estimator: snpbm, or sniips",
            "with logged probabilities",
        ],
        "vermillion",
    )


def propensities() -> Iterator[str]:
    """For ratings: what there is to estimate p from."""
    yield arrow([(480, 144), (480, 262)])
    yield box(330, 262, 300, "Where can p come from?")
    yield f'<path d="M116 342H844M480 296V342" fill="none" stroke="{colour("line")}" stroke-width="1.5"/>'
    columns = [
        (15, "the system logged it", "Known()", ["nothing is as good"], "green"),
        (257, "200 random ratings", "Balanced(Logistic())", ["sees that people rate", "what they like"], "green"),
        (499, "user and item features", "Logistic() with features", ["blind to taste beyond them"], "blue"),
        (741, "the log alone", "Logistic()", ["activity and popularity;", "ask for 200 ratings"], "blue"),
    ]
    for x, words, head, lines, ink in columns:
        middle = x + 101
        yield arrow([(middle, 342), (middle, 386)], words, (middle, 334))
        yield box(x, 386, 204, head, lines, ink)
    yield text(237, 480, "can carry a verdict", anchor="middle", ink="green", more=SMALL)
    yield text(
        721,
        480,
        "a verdict only if it holds when ratings matter up to 1.5× a star",
        anchor="middle",
        ink="blue",
        more=SMALL,
    )


def metrics() -> Iterator[str]:
    """What is shown to people decides the metric."""
    yield arrow([(480, 492), (480, 526)])
    yield box(330, 526, 300, "What do people see?")
    yield arrow([(330, 543), (167, 543), (167, 590)], "predicted ratings", (248, 534))
    yield arrow([(480, 560), (480, 590)], "a list", (502, 578))
    yield arrow([(630, 543), (793, 543), (793, 590)], "a list, as papers report it", (724, 534))
    yield box(45, 590, 244, "mae, mse", ["per cell"], "green")
    yield box(333, 590, 294, "dcg@k, or recall@k and adg", ["per cell, or per relevant item"], "green")
    yield box(
        671, 590, 244, "ndcg, map, mrr, hit@k, auc", ["describe what was seen:", "no weights debias them"], "vermillion"
    )


def estimators() -> Iterator[str]:
    """What remains is how to weight."""
    yield f'<path d="M167 642V676H480M480 642V676" fill="none" stroke="{colour("line")}" stroke-width="1.5"/>'
    yield arrow([(480, 676), (480, 702)])
    yield box(330, 702, 300, "Which estimator?")
    yield f'<path d="M116 772H844M480 736V772" fill="none" stroke="{colour("line")}" stroke-width="1.5"/>'
    columns = [
        (15, "in general", "snips", ["whatever the scale of p"], "green"),
        (257, "a few huge weights", "clipped", ["steadier, and biased"], "blue"),
        (499, "a good imputation", "dr", ["mae, mse, dcg: cell metrics"], "blue"),
        (741, "p right in scale", "ips", ["unbiased; not after a time split"], "blue"),
    ]
    for x, words, head, lines, ink in columns:
        middle = x + 101
        yield arrow([(middle, 772), (middle, 800)], words, (middle, 764))
        yield box(x, 800, 204, head, lines, ink)
    yield text(
        480,
        882,
        "Always show naive beside it: the distance is the bias you would have had.",
        anchor="middle",
        ink="muted",
        more=SMALL,
    )


if __name__ == "__main__":
    the_problem()
    which()
