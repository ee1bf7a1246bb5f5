"""How long campaigns are: a sample in `make test`, all of it in `make soak`.

A campaign tries many cases of one kind: examples that hypothesis draws, inputs that are spoiled, a
process that is killed over and over. `ALIQUOT_SOAK=1` makes it as long as it is meant to be; the
sample is chosen so that the whole suite takes minutes on two cores.
"""

import os
import subprocess
from pathlib import Path

SOAK = bool(os.environ.get("ALIQUOT_SOAK"))
_PART, _FEWEST = 8, 20
"""With a fourth of the examples, properties took two fifths of what the suite took. With fewer than
20, hypothesis hardly leaves the simplest ones."""


def examples(whole: int, sample: int | None = None) -> int:
    """How many examples hypothesis draws, where so many are the whole campaign.

    The sample is stated where an example is a long story of its own, of many steps: a few say much,
    and each takes a tenth of a second or more.
    """
    if SOAK:
        return whole
    return min(whole, max(whole // _PART, _FEWEST)) if sample is None else sample


def length(sample: int, whole: int) -> int:
    """One of two lengths: how often something is done."""
    return whole if SOAK else sample


def seconds(sample: float, whole: float) -> float:
    """The same for campaigns that are bounded by time; ALIQUOT_FUZZ_SECONDS overrides both."""
    told = os.environ.get("ALIQUOT_FUZZ_SECONDS")
    return float(told) if told else whole if SOAK else sample


def piece(pieces: int) -> int:
    """Which of so many pieces of a campaign a run of the suite plays.

    It follows from the commit that is checked out: the same commit plays the same piece, so that a
    failure is found again, and over the commits all pieces are played. `ALIQUOT_PIECE` chooses one;
    where there is no git, it is the first.
    """
    told = os.environ.get("ALIQUOT_PIECE")
    if told:
        return int(told) % pieces
    found = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(found.stdout.strip() or "0", 16) % pieces if found.returncode == 0 else 0
