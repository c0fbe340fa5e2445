"""WHAT COMMANDS DO: one module per command, without a terminal; messages name the options of the command."""
