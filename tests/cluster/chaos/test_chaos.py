"""The campaign on both servers, under all four policies: nothing is lost, nothing is held twice.

    ALIQUOT_SOAK=1 .venv/bin/pytest -n 0 -s tests/cluster/chaos

`ALIQUOT_CHAOS_SEED` chooses other rounds, `ALIQUOT_CHAOS_ROUNDS` how many on each server, and
`ALIQUOT_CHAOS_JSON` a file for the figures (`-real` or `-embedded` is put before its suffix).
"""

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.campaign import SOAK
from tests.cluster.chaos.campaign import Deck, Round, describe, play, save, table
from tests.cluster.chaos.world import NAMES
from tests.cluster.conftest import SERVERS

_ROUNDS = int(os.environ.get("ALIQUOT_CHAOS_ROUNDS") or 28)
_SEED = int(os.environ.get("ALIQUOT_CHAOS_SEED") or 18)
_JSON = os.environ.get("ALIQUOT_CHAOS_JSON")


@pytest.mark.skipif(not SOAK, reason="a quarter of an hour on each server: in `make soak`")
@pytest.mark.parametrize("kind", SERVERS)
def test_chaos(kind: str, tmp_path: Path) -> None:
    dice = random.Random(f"{_SEED} {kind}")
    deck, rounds = Deck(dice), list[Round]()
    for place, world in enumerate(NAMES):
        count = _ROUNDS // len(NAMES) + (place < _ROUNDS % len(NAMES))
        if count:
            rounds += asyncio.run(play(kind, world, count, deck, tmp_path / world, dice))
    print(f"\n{kind}, seed {_SEED}\n{table(rounds)}")
    if _JSON:
        file = Path(_JSON)
        save(rounds, file.with_name(f"{file.stem}-{kind}{file.suffix}"))
    assert [describe(each) for each in rounds if each.wrong] == []
    assert [describe(each) for each in rounds if each.recovered is None] == []
