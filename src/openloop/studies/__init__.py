"""The papers that this library stands on, one module a paper: every table and figure, run by name."""
