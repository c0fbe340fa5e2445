"""Models that were made elsewhere, as recommenders here."""
