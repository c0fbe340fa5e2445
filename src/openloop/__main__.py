"""`python -m openloop`: the command line."""

from openloop.cli import main

main()
