"""Any page: one template, one policy, and no text that becomes markup or script."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from bench import vega_bundle
from openloop.errors import InputError
from openloop.reporting.blocks import (
    Bullets,
    Cell,
    Code,
    Fold,
    Heading,
    Picture,
    Section,
    TableBlock,
    Terms,
    Text,
    VerdictBlock,
)  # fmt: skip
from openloop.reporting.figures import check_figures, love_plot
from openloop.reporting.rendering import bundle, chart_page, embedded, page_of
from tests.audit_cases import HOSTILE, SCRIPTS, checked
from tests.pages import Reader, check_safe


def named_after(names):
    """A check with covariates of these names."""
    return replace(checked(), balance=tuple(replace(checked().balance[0], name=name) for name in names))


def every_block(text: str):
    cells = ((Cell(text=text, detail=text), Cell(text=text, value=1.0)),)
    return (
        VerdictBlock(state="neutral", headline=text, sentences=(text,), reasons=(text,), warnings=(text,)),
        Text(text=text), Bullets(items=(text,), title=text), Heading(text=text), Code(text=text),
        Terms(items=((text, text, text),)), TableBlock(caption=text, columns=(text, text), rows=cells, notes=(text,)),
        Fold(summary=text, blocks=(Text(text=text),)), Picture.svg("<svg/>", caption=text, alt=text),
    )  # fmt: skip


@pytest.mark.parametrize("chart", [check_figures, love_plot])
def test_a_chart_s_page_is_safe_whatever_its_covariates_are_called(chart):
    text = chart_page(chart(named_after(SCRIPTS)))
    check_safe(text)
    (spec,) = [json.loads(data) for attributes, data in Reader(text).scripts if "type" in attributes]
    assert json.dumps(SCRIPTS[0]) in json.dumps(spec)  # escaped, not lost


@pytest.mark.parametrize("text", [*SCRIPTS, *HOSTILE])
@pytest.mark.parametrize("marked", [False, True])
def test_every_block_of_any_text_is_safe(text, marked):
    section = Section(id="part", title=text, blocks=every_block(text)[1:])
    page = page_of(text, every_block(text), sections=[section], meta=text, names=[text], marked=marked)
    check_safe(page)
    assert text in "".join(Reader(page).text)


def test_json_escapes_round_trip():
    value = {"name": "</script><!-- & \u2028 \u2029", "missing": float("nan")}
    assert json.loads(embedded(value)) == {"name": value["name"], "missing": None}


@pytest.mark.parametrize("source", ["figure.svg", "javascript:alert(1)", "data:text/html,x", "//example.org/x.png"])
def test_a_picture_from_elsewhere_is_refused(source):
    with pytest.raises(InputError, match="Picture: source"):
        Picture(source=source, caption="", alt="")


# -- the library of the charts -------------------------------------------------------------------------------------


def test_the_library_that_is_kept_is_what_vl_convert_makes():
    kept, made = bundle(), vega_bundle.made()
    same_versions = kept.splitlines()[0] == made.splitlines()[0]
    assert (kept == made) == same_versions  # another vl-convert may be installed


def test_the_library_cannot_end_its_element_and_comes_with_its_licences():
    assert re.search(r"</script|<!--", bundle(), re.IGNORECASE) is None
    beside = vega_bundle.KEPT.with_name("LICENSES.txt").read_text(encoding="utf-8")
    for library in ("vega", "vega-lite", "vega-embed"):
        (version,) = re.findall(rf"{library} ([\d.]+\d)", bundle().splitlines()[0])
        assert f"{library} {version}" in beside
    assert beside.count("Redistribution and use in source and binary forms") >= 3
    assert "LICENSES.txt" in bundle().splitlines()[0]


def test_a_page_with_charts_starts_no_javascript_engine():
    code = (
        "import sys; from tests.audit_cases import checked; from openloop.reporting.figures import love_plot; "
        "from openloop.reporting.rendering import chart_page; chart_page(love_plot(checked())); "
        "sys.exit('vl_convert' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
