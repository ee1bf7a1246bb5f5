"""Half an hour of `aliquot up` at ten pods a second: memory and data folder reach a plateau.

Only `make soak` has the time; `test_growth` counts what pods leave behind in the suite.
"""

import asyncio
from pathlib import Path

import pytest

from tests.campaign import SOAK
from tests.server.soak import HEADER, Row, soak

_MINUTES, _RATE = 30, 10.0
_PLATEAU = 10
"""The minute after which memory is flat: windows and Events are full by then."""
_MOST_GROWTH = 1.1
"""From then on: allocators do not give back everything."""
_MOST_DATA = 32.0
"""Megabytes of the data folder: some 4,000 Events and 100 pods, and the write-ahead log."""


@pytest.mark.skipif(not SOAK, reason="half an hour: make soak")
def test_memory_and_data_reach_a_plateau(tmp_path: Path) -> None:
    async def story() -> list[Row]:
        return [row async for row in soak(tmp_path, _MINUTES, _RATE, 1.0)]

    rows = asyncio.run(story())
    print(HEADER, *rows, sep="\n")
    at_plateau = rows[_PLATEAU - 1].megabytes
    assert max(row.megabytes for row in rows) <= at_plateau * _MOST_GROWTH
    assert max(row.data for row in rows) <= _MOST_DATA
    assert all(row.running for row in rows)
