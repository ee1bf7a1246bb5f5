"""A recording of an engine in a file, line by line; compressed if its name ends with .gz."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BufferedWriter
from pathlib import Path

from aliquot.engine import Engine, Knobs
from aliquot.errors import InputError
from aliquot.mirror.recording import RecordingEngine

MakeEngine = Callable[[str, Knobs | None], Engine]


@contextmanager
def recording_engine(file: Path | None) -> Iterator[MakeEngine]:
    """What makes engines that are recorded in a file; without one, plain engines."""
    if file is None:
        yield Engine
        return
    with _opened(file) as stream:

        def write(line: bytes) -> None:
            stream.write(line + b"\n")

        yield partial(RecordingEngine, write=write)


def _opened(file: Path) -> AbstractContextManager[gzip.GzipFile | BufferedWriter]:
    try:
        return gzip.open(file, "wb") if file.suffix == ".gz" else file.open("wb")
    except OSError as error:
        raise InputError(str(file), "", (error.strerror or str(error)).lower()) from None
