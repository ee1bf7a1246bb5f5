"""What a scrape says, in which units, and that the page about it says the same."""

import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from prometheus_client import REGISTRY, generate_latest

from aliquot.engine.model.decisions import Bind, Evict, Nominate, Wait
from aliquot.engine.model.gpu import GpuAmount
from aliquot.engine.model.pod import Pod, Shape
from aliquot.engine.model.quantity import LIMIT
from aliquot.engine.model.reasons import EVICTION_REASONS, Reason, Refusal
from aliquot.engine.model.summaries import GangSummary, GpuQuotaSummary, QueueSummary, QuotaSummary
from aliquot.kube.observe import catalogue
from aliquot.kube.observe.metrics import Metrics
from aliquot.kube.observe.metrics_snapshot import MetricsSnapshot
from aliquot.kube.shadow.comparison import Comparison
from aliquot.kube.shadow.report import ShadowCollector
from aliquot.kube.webhook import metrics as webhook

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| ", re.MULTILINE)


def quota() -> QuotaSummary:
    return QuotaSummary(
        name="team-a/gpu",
        parent=None,
        min={"cpu": 2000, "nvidia.com/gpu": 8},
        max={"nvidia.com/gpu": 16, "memory": LIMIT},
        used={"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 10},
        request={"nvidia.com/gpu": 12},
        runtime={"nvidia.com/gpu": 10},
        weight={"nvidia.com/gpu": 16},
        borrowed={"cpu": 0, "nvidia.com/gpu": 2},
        idle={"cpu": 500, "nvidia.com/gpu": 0},
    )


def gpu_quota() -> GpuQuotaSummary:
    left = {"requests.tflops": Fraction(25), "requests.vram": None, "workers": Fraction(0)}
    return GpuQuotaSummary(
        "team-a", "gpus", GpuAmount(1500, 2**30), GpuAmount(3000, 2**31), 4, left, []
    )


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    gangs = [GangSummary("a/one", "Running", 4, 4), GangSummary("a/two", "Running", 2, 3)]
    made.snapshot = MetricsSnapshot(
        quotas=[quota()],
        queues=[QueueSummary("research", 2, {"cpu": 2500}, {"cpu": 500}, {})],
        gangs=[*gangs, GangSummary("a/three", "Unknown", 4, 1)],
        gpu_quotas=[gpu_quota()],
        pending={"NoNodeFits": 3},
    )
    return made


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    if name.startswith("quota_"):
        labels = {"tree": ""} | labels
    return metrics.registry.get_sample_value(f"aliquot_{name}", labels)


def test_amounts_are_in_base_units(metrics: Metrics) -> None:
    name = "team-a/gpu"
    assert value(metrics, "quota_used", quota=name, resource="cpu") == 1.5
    assert value(metrics, "quota_used", quota=name, resource="memory") == 2**30
    assert value(metrics, "quota_used", quota=name, resource="nvidia.com/gpu") == 10
    assert value(metrics, "quota_request", quota=name, resource="nvidia.com/gpu") == 12
    assert value(metrics, "quota_min", quota=name, resource="cpu") == 2
    assert value(metrics, "quota_runtime", quota=name, resource="nvidia.com/gpu") == 10
    assert value(metrics, "quota_borrowed", quota=name, resource="nvidia.com/gpu") == 2
    assert value(metrics, "quota_idle", quota=name, resource="cpu") == 0.5
    assert value(metrics, "queue_deserved", queue="research", resource="cpu") == 2.5
    assert value(metrics, "queue_used", queue="research", resource="cpu") == 0.5


def test_what_is_unlimited_is_absent(metrics: Metrics) -> None:
    name = "team-a/gpu"
    assert value(metrics, "quota_max", quota=name, resource="nvidia.com/gpu") == 16
    assert value(metrics, "quota_max", quota=name, resource="cpu") is None
    assert value(metrics, "quota_max", quota=name, resource="memory") is None
    left = "gpu_quota_available_ratio"
    assert value(metrics, left, namespace="team-a", figure="requests.vram") is None


def test_quotas_on_gpus_are_in_tflops_bytes_and_ratios(metrics: Metrics) -> None:
    used = {
        figure: value(metrics, "gpu_quota_used", namespace="team-a", figure=figure)
        for figure in (
            "requests.tflops",
            "requests.vram",
            "limits.tflops",
            "limits.vram",
            "workers",
        )
    }
    assert list(used.values()) == [1.5, 2**30, 3, 2**31, 4]
    left = "gpu_quota_available_ratio"
    assert value(metrics, left, namespace="team-a", figure="requests.tflops") == 0.25
    assert value(metrics, left, namespace="team-a", figure="workers") == 0


def test_gangs_and_waiting_pods_are_counted_not_named(metrics: Metrics) -> None:
    assert value(metrics, "gangs", phase="Running") == 2
    assert value(metrics, "gangs", phase="Pending") == 0
    assert value(metrics, "gang_pods", phase="Running") == 7
    assert value(metrics, "gang_pods", phase="Unknown") == 1
    assert value(metrics, "pending_pods", reason="NoNodeFits") == 3


def test_what_no_longer_stands_is_gone(metrics: Metrics) -> None:
    metrics.snapshot = MetricsSnapshot()
    text = generate_latest(metrics.registry).decode()
    assert "team-a" not in text
    assert "research" not in text


def test_decisions_are_counted_and_evictions_by_reason() -> None:
    metrics, pod = Metrics(), Pod("1", "a", "b", Shape(()))
    assert value(metrics, "decisions_total", decision="nominate") == 0
    evict = Evict(pod, None, Reason.FAIR_SHARE, "")
    metrics.decided([Bind(pod, "n"), Bind(pod, "n"), evict])
    metrics.decided([Wait(pod, Refusal(Reason.NO_NODE_FITS, ""))])
    found = {word: value(metrics, "decisions_total", decision=word) for word in ("bind", "hold")}
    assert found == {"bind": 2, "hold": 1}
    assert value(metrics, "decisions_total", decision="evict") == 1
    assert value(metrics, "evictions_total", reason="FairShare") == 1


def test_a_preemption_counts_each_victim_and_each_nominated_pod() -> None:
    metrics, pod = Metrics(), Pod("1", "a", "b", Shape(()))
    victims = tuple(Evict(pod, pod, Reason.FAIR_SHARE, "") for _ in range(3))
    metrics.decided([Nominate((pod, pod), ("n", "m"), victims)])
    assert value(metrics, "decisions_total", decision="nominate") == 2
    assert value(metrics, "decisions_total", decision="evict") == 3
    assert value(metrics, "evictions_total", reason="FairShare") == 3


def test_waits_are_told_apart_from_milliseconds_to_a_day() -> None:
    metrics = Metrics()
    for seconds in (0.004, 3000, 80_000):
        metrics.pod_wait.observe(seconds)
    assert value(metrics, "pod_wait_seconds_bucket", le="0.005") == 1
    assert value(metrics, "pod_wait_seconds_bucket", le="3600.0") == 2
    assert value(metrics, "pod_wait_seconds_bucket", le="86400.0") == 3


def test_two_replicas_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.leader.set(1)
    assert (value(one, "leader"), value(other, "leader")) == (1, 0)
    assert REGISTRY.get_sample_value("aliquot_leader") is None


def test_the_page_and_the_registries_agree(metrics: Metrics, asked: webhook.Metrics) -> None:
    """Names, types and labels, of every metric there is."""
    compared = Comparison()
    compared.tally.evictions["FairShare"] = 1
    metrics.registry.register(ShadowCollector(compared))
    described = {name: (kind, labels) for name, kind, labels in ROW.findall(PAGE.read_text())}
    assert {name: kind for name, (kind, _) in described.items()} == kinds(metrics, asked)
    text = "".join(generate_latest(each.registry).decode() for each in (used(metrics), asked))
    for name, (kind, labels) in described.items():
        sample = f"{name}_count" if kind == "histogram" else name
        found = re.search(rf"^{sample}(?:\{{(.*?)\}})? ", text, re.MULTILINE)
        assert found, f"{name} has no sample"
        shown = set(re.findall(r"(\w+)=\"", found[1] or ""))
        assert shown == set(re.findall(r"`(\w+)`", labels)), name


def kinds(*all_metrics: Metrics | webhook.Metrics) -> dict[str, str]:
    """By the names that users ask for: counters with their ending."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for metrics in all_metrics
        for family in metrics.registry.collect()
    }


@pytest.fixture
def asked() -> webhook.Metrics:
    made = webhook.Metrics()
    made.reviews.labels("ElasticQuota", "CREATE", "refused").inc()
    made.duration.labels("ElasticQuota").observe(0.01)
    return made


def used(metrics: Metrics) -> Metrics:
    """One in which everything that has labels has been used once."""
    metrics.evictions.labels("FairShare").inc()
    metrics.writes.labels("bind", "ok").inc()
    metrics.write_duration.labels("bind").observe(0.01)
    metrics.watch_restarts.labels("pods").inc()
    metrics.cache_objects.labels("pods").set(1)
    return metrics


def test_names_and_units_are_as_prometheus_wants_them(metrics: Metrics) -> None:
    for family in metrics.registry.collect():
        name, prefix = family.name, ("aliquot_", "process_")
        assert name.startswith(prefix), name
        assert family.documentation, name
        assert not re.search(r"milli|_ms\b|_gb|_mb|percent", name), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name
        for sample in family.samples:
            assert not {"pod", "uid", "gang"} & set(sample.labels), name


def test_the_catalogue_and_the_registries_agree(metrics: Metrics, asked: webhook.Metrics) -> None:
    """Nothing is listed that no replica has, and no replica has what is not listed."""
    metrics.registry.register(ShadowCollector(Comparison()))
    listed = {each.name: each.type for each in catalogue.METRICS}
    assert len(listed) == len(catalogue.METRICS), "each of them once"
    assert listed == kinds(metrics, asked)
    described = {name: labels for name, _, labels in ROW.findall(PAGE.read_text())}
    for each in catalogue.METRICS:
        assert set(re.findall(r"`(\w+)`", described[each.name])) == set(each.labels), each.name


def test_a_selector_names_only_labels_that_there_are() -> None:
    used, wait = catalogue.QUOTA_USED, catalogue.POD_WAIT
    assert used.where(quota='=~"a|b"') == 'aliquot_quota_used{quota=~"a|b"}'
    assert wait.bucket(le='="+Inf"') == 'aliquot_pod_wait_seconds_bucket{le="+Inf"}'
    with pytest.raises(ValueError, match="no label pod"):
        used.where(pod='="a"')
    with pytest.raises(ValueError, match="no matcher"):
        used.where(quota="a")
    with pytest.raises(ValueError, match="no histogram"):
        used.bucket()


def test_what_is_lent_owed_and_passed_is_shown_of_every_quota() -> None:
    borrower = quota()
    lender = replace(
        borrower, name="team-b/gpu", borrowed={}, idle={"nvidia.com/gpu": 3}, tree="pool"
    )
    metrics = Metrics()
    metrics.snapshot = MetricsSnapshot(
        quotas=[borrower, lender],
        owed={"team-b/gpu": {"nvidia.com/gpu": 1}},
        passed={"team-a/gpu": 90.0, "": 5.0},
    )
    b = {"quota": "team-b/gpu", "tree": "pool"}
    assert value(metrics, "quota_lent", resource="nvidia.com/gpu", **b) == 2
    assert value(metrics, "quota_owed", resource="nvidia.com/gpu", **b) == 1
    assert value(metrics, "quota_owed", quota="team-a/gpu", resource="nvidia.com/gpu") == 0
    passed = "passed_claim_seconds"
    assert value(metrics, passed, quota="team-a/gpu", tree="") == 90
    assert value(metrics, passed, quota="", tree="") == 5
    assert value(metrics, passed, **b) == 0


def test_lost_work_is_counted_from_0_by_quota_and_goes_with_it(metrics: Metrics) -> None:
    name = "evicted_resource_seconds_total"
    labels = {"quota": "team-a/gpu", "tree": ""}
    assert value(metrics, name, resource="nvidia.com/gpu", **labels) == 0
    metrics.evicted("team-a/gpu", {"cpu": 500, "nvidia.com/gpu": 2}, 60)
    metrics.evicted("team-a/gpu", {"nvidia.com/gpu": 1}, 30)
    assert value(metrics, name, resource="nvidia.com/gpu", **labels) == 150
    assert value(metrics, name, resource="cpu", **labels) == 30
    metrics.snapshot = MetricsSnapshot()
    assert value(metrics, name, resource="nvidia.com/gpu", **labels) is None


def test_evictions_are_counted_from_0() -> None:
    found = {each: value(Metrics(), "evictions_total", reason=each) for each in EVICTION_REASONS}
    assert set(found.values()) == {0}
    page = (PAGE.parent / "reasons.md").read_text().partition("## Why a pod is evicted")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(EVICTION_REASONS)


def test_a_library_is_not_told_of_any_of_this() -> None:
    """To use the engine must neither need nor load what serves metrics."""
    asked = "import aliquot, sys; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
