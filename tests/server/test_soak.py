"""Half an hour of `aliquot up` at ten pods a second: memory and data folder reach a plateau.

Only `make soak` has the time; `test_growth` counts what pods leave behind in the suite.
"""

import asyncio
from pathlib import Path

import pytest

from tests.campaign import SOAK
from tests.server.soak import HEADER, Row, soak

_MINUTES, _RATE = 30, 10.0
_PLATEAU, _PODS = 10, 6000
"""The minute after which memory is flat, if as many pods have come by then as ten a second make:
windows and Events are full. A busy machine takes longer."""
_MOST_GROWTH = 1.25
"""From then on: windows hold what comes in 75 seconds, which is more when the machine is faster,
and allocators do not give back everything. Before Events and changes expired it tripled."""
_MOST_DATA = 32.0
"""Megabytes of the data folder: some 4,000 Events and 100 pods, and the write-ahead log."""


@pytest.mark.skipif(not SOAK, reason="half an hour: make soak")
def test_memory_and_data_reach_a_plateau(tmp_path: Path) -> None:
    async def story() -> list[Row]:
        return [row async for row in soak(tmp_path, _MINUTES, _RATE, 1.0)]

    rows = asyncio.run(story())
    print(HEADER, *rows, sep="\n")
    flat = [row for row in rows if row.minute >= _PLATEAU and row.pods >= _PODS]
    assert len(flat) > 1, "the machine is too busy to say anything"
    assert max(row.megabytes for row in flat) <= flat[0].megabytes * _MOST_GROWTH
    assert max(row.data for row in rows) <= _MOST_DATA
