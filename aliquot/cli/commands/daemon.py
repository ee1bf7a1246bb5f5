"""What goes wrong while a command runs on and on, as the one line that its user sees."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from aliquot.errors import AliquotError, InputError


@contextmanager
def expected(place: str) -> Iterator[None]:
    """Turn what a command may run into, alone or among other errors, into an error of ours."""
    try:
        yield
    except (Exception, ExceptionGroup) as error:
        first = _first(error)
        if isinstance(first, AliquotError):
            raise first from None
        if isinstance(first, OSError | sqlite3.Error):
            problem = getattr(first, "strerror", None) or str(first)
            raise InputError(place, "", problem) from None
        raise


def _first(error: BaseException) -> BaseException:
    """What went wrong first; the rest is what it led to."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
