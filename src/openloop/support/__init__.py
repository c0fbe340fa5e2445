"""NO DOMAIN: files, lazy imports, progress, words and arguments; nothing here knows what a log is."""
