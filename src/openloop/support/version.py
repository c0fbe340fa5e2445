"""The version of openloop, told once: the package, its files and its pages take it from here."""

VERSION = "0.1.0"
