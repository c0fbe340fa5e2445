"""The version of openloop, defined once: the package, its files and its pages take it from here."""

VERSION = "0.1.0"
