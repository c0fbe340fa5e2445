"""WHAT COMMANDS DO: one module per command, without a terminal; messages speak of the options of the command."""
