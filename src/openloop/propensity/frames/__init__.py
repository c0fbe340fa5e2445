"""Logs that stay in their engine: opened and counted there, and p as a column beside their rows."""
