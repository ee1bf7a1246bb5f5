"""`aliquot bench gangs`, on a cluster so small that it only shows what is measured."""

import pytest

from aliquot.bench import gangs


def test_every_gang_is_decided_on_idle_nodes_and_by_preemption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gangs, "NODES", 64)
    monkeypatch.setattr(gangs, "RACKS", 4)
    monkeypatch.setattr(gangs, "GANGS", 10)
    figures = {each.what: each for each in gangs.gangs(lambda _: None)}
    started = [each.value for what, each in figures.items() if "gangs started" in what]
    assert started == [8, 8, 8]  # two of eight nodes in each rack of 16
    assert [each.budget for each in figures.values() if "p99" in each.what] == ["<= 50", "<= 50"]
