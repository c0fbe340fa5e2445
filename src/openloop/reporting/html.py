"""`report`: a result as one HTML file that opens from disk and needs no network.

The text of the page is escaped by the template. Scripts run only if their hash stands in the page's own policy, which
also forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from openloop.audits.results import Audit, Verdict
from openloop.core.comparison import Comparison
from openloop.errors import InputError
from openloop.reporting import evidence, sections
from openloop.reporting.blocks import Section
from openloop.reporting.sections import Subject
from openloop.reporting.words import moment
from openloop.support.atomic import finite, replacing
from openloop.support.version import VERSION
from openloop.support.wording import counted

# What a JSON block in a page may not hold as it stands: it could end the block, or break a line of script.
ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
ICONS = {
    "supported": "M4 10.5 8.5 15 16 5.5",
    "unsupported": "M5 5 15 15 M15 5 5 15",
    "neutral": "M4 10 16 10",
}
STATES = {
    "supported": "The log supports a choice",
    "unsupported": "The log does not support a choice",
    "neutral": "A comparison, without a verdict",
}


def report(result: Audit | Comparison, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write the report of an audit, or what a comparison can fill of it, as one HTML file, whole or not at all."""
    if not isinstance(result, Audit | Comparison):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"report: takes an Audit or a Comparison, got {type(result).__name__}.")
    if isinstance(result, Comparison) and not result.estimates:
        raise InputError("report: the comparison has no estimate; see its skipped for the reasons.")
    with replacing(path) as temporary:  # a path that cannot be written fails before the work
        temporary.write_text(page(Subject.of(result), title), encoding="utf-8")


def page(of: Subject, title: str | None = None) -> str:
    """The page as text."""
    from altair.utils.schemapi import debug_mode
    from markupsafe import Markup

    with debug_mode(False):  # charts are valid by test; checking them again costs a second
        values = _verdict(of) | {"facts": sections.facts(of), "sections": list(_sections(of))}
    css, script, library = _resource("report.css"), _resource("report.js"), bundle()
    values |= {"css": Markup(css), "script": Markup(script), "bundle": Markup(library)}  # noqa: S704, none from the data
    values |= {"title": title or _title(of), "meta": _meta(of), "policy": _policy(library, script)}
    values["version"] = VERSION
    return _environment(of).get_template("report.html").render(values).lstrip()


def _sections(of: Subject) -> Iterator[Section]:
    yield sections.leaderboard(of)
    if len(of.result.models) > 1:
        yield sections.differences(of)
        yield sections.places(of)
    yield from sections.strata(of)
    for part in (evidence.weights, evidence.sensitivity, evidence.open_loop, evidence.friedman, evidence.data):
        yield from part(of)
    yield evidence.left_out(of)
    yield evidence.computed(of)


def _verdict(of: Subject) -> dict[str, Any]:
    if of.audit is None:
        empty: dict[str, Any] = {"sentences": (), "reasons": (), "warnings": ()}
        found = empty | {"headline": _comparison_words(of), "state": "neutral"}
    else:
        verdict = of.audit.verdict
        found = {
            "headline": verdict.headline, "sentences": verdict.sentences, "reasons": _further(verdict),
            "warnings": of.audit.warnings, "state": "supported" if verdict.supported else "unsupported",
        }  # fmt: skip
    return found | {"state_words": STATES[str(found["state"])], "icon": ICONS[str(found["state"])]}


def _comparison_words(of: Subject) -> str:
    first, *others = of.result.ranking(of.metric, of.estimator)
    if not others:
        return f"{of.estimator} of {of.metric} for {first}; an audit needs another model to compare it with"
    return f"{first} has the best {of.metric} under {of.estimator}; an audit would say whether that can be trusted"


def _title(of: Subject) -> str:
    models = counted(len(of.result.models), "model")
    return f"Comparison of {models}" if of.audit is None else f"Audit of {models} on {of.audit.setting.log}"


def _meta(of: Subject) -> str:
    if of.audit is None:
        return f"{counted(len(of.metrics), 'metric')}, {counted(len(of.result.estimators), 'estimator')}"
    s = of.audit.setting
    size = f"{counted(s.rows, 'row')}, {counted(s.users, 'user')}, {counted(s.items, 'item')}"
    return " · ".join(text for text in (moment(s.created), size) if text)


# -- the file ------------------------------------------------------------------------------------------------


def _environment(of: Subject) -> Any:
    """The template's, which escapes all text and isolates the names of models from the text around them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("openloop.reporting", "templates")
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    found: Any = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **options)
    found.filters["parts"] = _splitter(of.result.models)
    found.filters["embedded"] = embedded
    return found


def _splitter(names: Sequence[str]) -> Callable[[str], list[tuple[str, bool]]]:
    """A text as pieces, and whether each is one of the names; longer names first."""
    longest = sorted(filter(None, names), key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest))

    def parts(text: str) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        at = 0
        for match in pattern.finditer(text):
            found += [(text[at : match.start()], False), (match[0], True)]
            at = match.end()
        # A number and its unit stay on one line.
        return [
            (piece if name else piece.replace(" %", "\u00a0%"), name) for piece, name in (*found, (text[at:], False))
        ]

    return parts


def embedded(spec: Any) -> Any:
    """A chart as JSON that can stand inside a script element."""
    from markupsafe import Markup

    text = json.dumps(finite(spec), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(ESCAPES))  # noqa: S704, nothing that HTML gives a meaning is left


def _further(verdict: Verdict) -> tuple[str, ...]:
    """The reasons that the headline does not give already."""
    return tuple(reason for reason in verdict.reasons if reason not in verdict.headline)


def _policy(*scripts: str) -> str:
    """Nothing may be loaded; only these very scripts may run."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which cannot end the element that it stands in."""
    import vl_convert

    library = str(vl_convert.javascript_bundle())  # pyright: ignore[reportCallIssue]
    return re.sub(r"</(script)|<!--", lambda m: f"<\\/{m[1]}" if m[1] else "\\x3c!--", library, flags=re.IGNORECASE)


def _resource(name: str) -> str:
    return (files("openloop.reporting") / "templates" / name).read_text(encoding="utf-8")
