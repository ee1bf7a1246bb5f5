"""`aliquot bench reservations`, on a cluster so small that it only shows what is measured."""

import pytest

from aliquot.bench import reservations
from aliquot.bench.figure import Figure

_MINUTE = 60 * 1_000_000_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight nodes for two hours, with a big claim every quarter of an hour."""
    monkeypatch.setattr(reservations, "_NODES", 8)
    monkeypatch.setattr(reservations, "_TEAMS", 4)
    monkeypatch.setattr(reservations, "_SINGLE_EVERY", 20 * _MINUTE)
    monkeypatch.setattr(reservations, "_GANG_EVERY", 60 * _MINUTE)
    monkeypatch.setattr(reservations, "_LENGTH", 120 * _MINUTE)


def _measure() -> list[Figure]:
    return reservations.reservations(lambda _: None)


def test_every_figure_is_measured_with_and_without() -> None:
    figures = _measure()
    one = [
        "GPUs in use",
        "wait of a big claim, median",
        "wait of a big claim, p99",
        "the longest of them",
        "wait of a small pod, median",
        "wait of a small pod, p99",
    ]
    ratios = ["GPUs in use, of those without", "the longest wait of a big claim"]
    assert [each.what for each in figures] == [*one * 3, *ratios * 2]
    in_use = [each.value for each in figures if each.what == "GPUs in use"]
    assert all(50 < value <= 100 for value in in_use)
    assert figures[3].value >= figures[1].value > 0
    assert figures[18].value == pytest.approx(100 * in_use[1] / in_use[0])


def test_the_same_stream_is_played_each_time() -> None:
    assert _measure() == _measure()
