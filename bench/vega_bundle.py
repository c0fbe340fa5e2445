"""The script of the charts in reports, made from vl-convert: `python -m bench.vega_bundle` writes it anew.

A report holds Vega, Vega-Lite and Vega-Embed. They are kept in the package, since making them starts a JavaScript
engine: a second, and 120 MiB. Their licences are beside them, and have to be looked at when the versions change.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

NOTICE = (
    "/*! {versions}: BSD-3-Clause, (c) University of Washington Interactive Data Lab and others; all licences are in "
    "openloop/reporting/vega/LICENSES.txt */\n"
)
KEPT = Path(str(files("openloop.reporting") / "vega" / "bundle.js"))


def versions() -> str:
    """Those of the three libraries, as the licences name them."""
    import vl_convert

    lite = vl_convert.get_vegalite_versions()[-1]
    return f"vega {vl_convert.get_vega_version()}, vega-lite {lite}, vega-embed {vl_convert.get_vega_embed_version()}"


def made() -> str:
    """The three as one script, which cannot end the element that holds it."""
    import vl_convert

    library = str(vl_convert.javascript_bundle())
    safe = re.sub(r"</(script)|<!--", lambda m: f"<\\/{m[1]}" if m[1] else "\\x3c!--", library, flags=re.IGNORECASE)
    return NOTICE.format(versions=versions()) + safe


def main() -> None:
    KEPT.write_text(made(), encoding="utf-8")
    print(f"wrote {KEPT}: {versions()}; bring the licences beside it up to date")


if __name__ == "__main__":
    main()
