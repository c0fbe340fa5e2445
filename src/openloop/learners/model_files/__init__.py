"""Model files: what a fitted model holds, packed, saved and loaded."""
