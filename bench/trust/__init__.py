"""How far the answers can be trusted, measured where the truth is known: `python -m bench.trust` writes a page."""
