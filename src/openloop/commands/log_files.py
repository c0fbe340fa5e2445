"""`LogRequest`: the file of a log as commands name it: its columns, its form, and what becomes of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openloop.data.cells import Duplicates
from openloop.data.columns import Column
from openloop.data.delimited import FOUND, TextForm
from openloop.data.formats import is_text
from openloop.data.reading import ReadRequest
from openloop.errors import InputError
from openloop.support.atomic import FilePath
from openloop.support.fields import fields_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """A log, and how it is read; the requests of commands extend it. See `ol.read` for each."""

    log: FilePath
    user: Column = None
    item: Column = None
    rating: Column = None
    no_rating: bool = False
    positive: float | None = None
    time: Column = None
    duplicates: Duplicates = "error"
    separator: str | None = None
    header: bool | None = None
    skip: int = 0
    comment: str | None = None

    def __post_init__(self) -> None:
        if self.no_rating and self.rating is not None:
            raise InputError(
                f"--no-rating: --rating {self.rating} names a column of ratings; leave one of the two out."
            )
        ReadRequest(**self.reading)  # refuses what cannot work

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of user, item and rating, as `ol.read` takes them."""
        return {"user": self.user, "item": self.item, "rating": False if self.no_rating else self.rating}

    @property
    def reading(self) -> dict[str, Any]:
        """All that `ol.read` is told of the log."""
        return (
            fields_of(ReadRequest, fields_of(LogRequest, self)) | self.columns
        )  # a request's own fields are not these

    @property
    def form(self) -> TextForm:
        """How the log's text is read."""
        return TextForm(**fields_of(TextForm, self))

    def form_of(self, path: FilePath) -> TextForm:
        """How a log beside the log is read: likewise, where both are delimited text."""
        return self.form if is_text(path) else FOUND
