"""Errors of the library in the words of a command: keywords become its options, other remedies are left out."""

from __future__ import annotations

import re
from typing import Any

KEYWORD = re.compile(r"""(?<![\w'"=/.-])([a-z]\w*)=('[^']*'|"[^"]*"|[\w+-][\w.+-]*?)?(?=[.,;:)]*(?:\s|$))""")
QUOTED = re.compile(
    r"""(?<![\w=])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)"""
)  # what a message quotes, as from data
HIDDEN = re.compile("\0([0-9]+)\0")  # which no message holds
END = re.compile(r"[.)]*$")

# What a library call can be given, and a command only in another way.
INSTEAD = {
    "or a vocabulary that has them": "or raise users= and items=",
    "pass id= with its name": "call it id",
    "rating=False": "--no-rating",
    "or pass exclude=None": "or leave out --exclude; under --test give the date on which their training ended, or "
    "pass --repeats keep",
    "pass users= the ids of its rows, in their order": "save the ids of its rows in its file, as users",
    "pass items= the ids of its rows, in their order": "save the ids of its rows in its file, as items",
    "given to ol.propensity.Balanced(model).fit(log, uniform=sample)": "as --propensity balanced=sample.csv",
}
OTHER_NAMES = {"rng": "seed"}


def for_command(message: str, command: Any) -> str:
    """The message with `--name` for `name=`; a way out that the command does not have is dropped."""
    quoted: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        quoted.append(found[0][1:-1])
        return f"'\0{len(quoted) - 1}\0'" if found[0][0] == "'" else f'"\0{len(quoted) - 1}\0"'

    told = _in_words_of(QUOTED.sub(hidden, message), command)
    return HIDDEN.sub(lambda found: quoted[int(found[1])], told)


def _in_words_of(message: str, command: Any) -> str:
    options = {} if command is None else {str(p.name): _flag(p) for p in command.params}
    for written, instead in INSTEAD.items():
        message = message.replace(written, instead)
    kept, *remedies = message.split("; ")
    for remedy in remedies:
        way, stop, rest = remedy.partition(". ")  # the sentence behind it is about something else
        possible = _possible(way := way + stop.strip(), options)
        kept = f"{kept}; {possible}" if possible else kept + END.findall(way)[0]
        kept += f" {rest}" if rest else ""
    return KEYWORD.sub(lambda found: _option(found, options), kept)


def _possible(remedy: str, options: dict[str, str]) -> str:
    """Those of the ways out that name no keyword beyond the options; empty where none is left."""
    if _within(remedy, options):
        return remedy
    end, between = END.findall(remedy)[0], ", or " if ", or " in remedy else " or "
    ways = [way for way in remedy.removesuffix(end).split(between) if _within(way, options)]
    return between.join(ways) + end if ways else ""


def _within(text: str, options: dict[str, str]) -> bool:
    return all(_name(found) in options or _placeholder(found) for found in KEYWORD.finditer(text))


def _placeholder(found: re.Match[str]) -> bool:
    """Whether it is the value of an option, as a command writes it: balanced=SAMPLE."""
    return (found[2] or "").isupper()


def _name(found: re.Match[str]) -> str:
    return OTHER_NAMES.get(found[1], found[1])


def _option(found: re.Match[str], options: dict[str, str]) -> str:
    if _name(found) not in options:
        return found[0]
    value = (found[2] or "").strip("'\"")
    return f"{options[_name(found)]} {value}".rstrip()


def _flag(parameter: Any) -> str:
    """How a parameter is written: its first name with dashes; that of an argument is made up."""
    written = next((name for name in parameter.opts if name.startswith("--")), None)
    return written or f"--{str(parameter.name).replace('_', '-')}"
