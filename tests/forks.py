"""`aliquot` in a process of its own, as fast as a fork.

Most of what a start costs is Python reading modules. So a process that has read them waits, and is
copied for each command: what runs in the copy is the command itself, with its arguments, its
environment, its folder and its streams.
"""

import io
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from aliquot.cli.commands import daemon, manifests, scheduler, simulate, test, validate
from aliquot.cli.main import main
from aliquot.cli.show import findings, shadow, simulation, verdicts
from aliquot.kube.control import control_plane
from aliquot.simulation import scenario
from aliquot.validation import inputs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])
_READ = (
    *(daemon, manifests, scheduler, simulate, test, validate),
    *(findings, shadow, simulation, verdicts, control_plane, scenario, inputs),
)
"""What commands import when they run: all of it is read before the fork."""


def fork(
    words: Sequence[str],
    out: Path,
    err: Path,
    stdin: Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> BaseProcess:
    """Start the command with these words; what it prints goes to the end of these files."""
    streams = (stdin or Path(os.devnull), out, err)
    told = dict(os.environ if environment is None else environment)
    where = folder or Path.cwd()
    process = _FORKS.Process(
        target=_be_the_command, args=(list(words), streams, where, told), daemon=True
    )
    process.start()
    return process


def _be_the_command(
    words: list[str], streams: tuple[Path, ...], folder: Path, environment: dict[str, str]
) -> None:
    for number, file in enumerate(streams):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        opened = os.open(file, flags, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(os.fdopen(number, mode), encoding="utf-8", errors="surrogateescape")
        for number, mode in enumerate(("rb", "wb", "wb"))
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["aliquot", *words]
    main()
