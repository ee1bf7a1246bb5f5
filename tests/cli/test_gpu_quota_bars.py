"""How quotas on GPUs look on a terminal."""

from fractions import Fraction

import pytest

from aliquot.cli.drawing.gpu_quota_bars import gpu_quota_bars
from aliquot.engine.model.gpu import GpuAmount, GpuBound, GpuQuota
from aliquot.engine.model.summaries import GpuQuotaSummary
from aliquot.simulation.outcome import gpu_quota
from tests.cli.test_queue_bars import lines

GIB = 2**30
BOUNDS = {
    "team-a": GpuQuota(
        "team-a", "quota", GpuBound(100_000, 10 * GIB), GpuBound(None, 20 * GIB), workers=2
    ),
    "team-b": GpuQuota("team-b", "free"),
}
LEFT = dict.fromkeys(("requests.tflops", "requests.vram"), Fraction(50))
SUMMARIES = [
    GpuQuotaSummary(
        "team-a",
        "quota",
        GpuAmount(98_000, 5 * GIB),
        GpuAmount(300_000, 19 * GIB),
        3,
        {**LEFT, "limits.tflops": None},
        [],
    ),
    GpuQuotaSummary("team-b", "free", GpuAmount(), GpuAmount(), 1, {}, []),
]


def shown(width: int = 160) -> list[str]:
    return lines(gpu_quota_bars([gpu_quota(each) for each in SUMMARIES], BOUNDS, width), width)


def test_a_line_for_each_figure_that_is_bound() -> None:
    assert [line.split()[:4] for line in shown()[1:6]] == [
        ["team-a/quota", "requests.tflops", "98", "100"],
        ["requests.vram", "5Gi", "10Gi", "█" * 16 + "·" * 16],
        ["limits.vram", "19Gi", "20Gi", "█" * 30 + "·" * 2],
        ["workers", "3", "2", "█" * 20 + "▓" + "▒" * 11],
        ["team-b/free", "workers", "1", "∞"],
    ]


def test_what_calls_for_attention_is_marked() -> None:
    tflops, vram, at_the_threshold, workers, unbound = shown()[1:6]
    assert tflops.endswith("█" * 30 + "▓" + "·  alert: above 95%")
    assert vram.endswith("·")
    assert at_the_threshold.endswith("·")
    assert workers.endswith("exceeded")
    assert unbound.endswith("∞")


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_nothing_is_cut_on_a_narrow_console(width: int) -> None:
    assert max(len(line) for line in shown(width)) <= width
    words = " ".join(" ".join(shown(width)).split())
    for number in ("98", "100", "5Gi", "10Gi", "19Gi", "20Gi", "∞", "alert: above 95%", "exceeded"):
        assert number in words
    for sign in ("█ used", "▓ beyond the alert", "▒ beyond the bound", "· up to the bound"):
        assert sign in words
