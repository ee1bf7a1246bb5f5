"""The catalogue: every metric there is, once: its name, type, labels and meaning.

The registries make their metrics from it, and the dashboard and the rules for Prometheus name
metrics only by it, so that none can ask for a metric or a label that does not exist.
docs/reference/metrics.md is compared with it by a test. It imports nothing, so that what prints
manifests needs no Prometheus client.
"""

from dataclasses import dataclass
from typing import Literal

_OPERATORS = ("=~", "!~", "!=", "=")
"""How a matcher of a label begins; the longer ones first."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, by the name that users ask for: a counter with its ending."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    meaning: str
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def declared(self) -> tuple[str, str, tuple[str, ...]]:
        """Name, meaning and labels: what the classes of the Prometheus client begin with."""
        return self.name, self.meaning, self.labels

    @property
    def family(self) -> tuple[str, str, None, tuple[str, ...]]:
        """The same, for the client's families of samples, which take a value between."""
        return self.name, self.meaning, None, self.labels

    def where(self, **matchers: str) -> str:
        """A selector of its series: `USED.where(quota='=~"a|b"')`."""
        return self._selector(self.name, self.labels, matchers)

    def bucket(self, **matchers: str) -> str:
        """A selector of the buckets of a histogram."""
        return self._part("_bucket", matchers)

    def count(self, **matchers: str) -> str:
        """A selector of the counts of a histogram."""
        return self._part("_count", matchers)

    def _part(self, ending: str, matchers: dict[str, str]) -> str:
        if self.type != "histogram":
            raise ValueError(f"{self.name} is no histogram")
        return self._selector(self.name + ending, (*self.labels, "le"), matchers)

    def _selector(self, name: str, labels: tuple[str, ...], matchers: dict[str, str]) -> str:
        for label, matcher in matchers.items():
            if label not in labels:
                raise ValueError(f"{name} has no label {label}")
            if not matcher.startswith(_OPERATORS):
                raise ValueError(f"{name}: {matcher} is no matcher")
        said = ",".join(f"{label}{matcher}" for label, matcher in matchers.items())
        return f"{name}{{{said}}}" if said else name


_QUOTA = ("quota", "tree")
_AMOUNT = (*_QUOTA, "resource")


def _of_quota(word: str, meaning: str) -> Metric:
    return Metric(f"aliquot_quota_{word}", "gauge", f"Of a quota: {meaning}.", _AMOUNT)


QUOTA_USED = _of_quota("used", "held by bound pods")
QUOTA_REQUEST = _of_quota("request", "used and asked for by waiting pods")
QUOTA_MIN = _of_quota("min", "guaranteed")
QUOTA_MAX = _of_quota("max", "the most it may use; absent if unlimited")
QUOTA_RUNTIME = _of_quota("runtime", "its share now")
QUOTA_BORROWED = _of_quota("borrowed", "used above min")
QUOTA_LENT = _of_quota("lent", "min not used, and used by others")
QUOTA_IDLE = _of_quota("idle", "min not used")
QUOTA_OWED = _of_quota("owed", "asked for by waiting claims within min, runtime or deserved share")
PASSED_CLAIM_SECONDS = Metric(
    "aliquot_passed_claim_seconds",
    "gauge",
    "Of a quota: since when other claims have passed a waiting one; 0 if none was.",
    _QUOTA,
)
EVICTED_RESOURCE_SECONDS = Metric(
    "aliquot_evicted_resource_seconds_total",
    "counter",
    "Of a quota: amount times seconds that evicted pods had run, which is done again.",
    _AMOUNT,
)
_IN_QUEUE = ("queue", "resource")
QUEUE_DESERVED = Metric("aliquot_queue_deserved", "gauge", "Of a queue: its share now.", _IN_QUEUE)
QUEUE_USED = Metric("aliquot_queue_used", "gauge", "Of a queue: held by bound pods.", _IN_QUEUE)
GANGS = Metric("aliquot_gangs", "gauge", "Gangs, by phase.", ("phase",))
GANG_PODS = Metric(
    "aliquot_gang_pods", "gauge", "Bound pods of gangs, by phase of the gang.", ("phase",)
)
_FIGURE = ("namespace", "figure")
GPU_QUOTA_USED = Metric(
    "aliquot_gpu_quota_used", "gauge", "Of a quota on GPUs: held by bound pods.", _FIGURE
)
GPU_QUOTA_AVAILABLE = Metric(
    "aliquot_gpu_quota_available_ratio",
    "gauge",
    "Of a quota on GPUs: the part that is left, 0 to 1; absent if unlimited.",
    _FIGURE,
)
PENDING_PODS = Metric("aliquot_pending_pods", "gauge", "Pods that wait, by reason.", ("reason",))

DECISIONS = Metric("aliquot_decisions_total", "counter", "What was decided.", ("decision",))
EVICTIONS = Metric("aliquot_evictions_total", "counter", "Evictions decided.", ("reason",))
EVICTIONS_HELD_BACK = Metric(
    "aliquot_evictions_held_back_total",
    "counter",
    "Pods that began to wait because a brake held their evictions back.",
    ("brake",),
)
EVICTIONS_LAST_MINUTE = Metric(
    "aliquot_evictions_last_minute",
    "gauge",
    "Evictions by choice that were decided in the last minute, which the brake counts.",
)
EVICTIONS_PAUSED = Metric("aliquot_evictions_paused", "gauge", "1 while evictions are paused.")
BUDGET_OVERRIDES = Metric(
    "aliquot_budget_overrides_total",
    "counter",
    "Pods deleted for an owed claim although disruption budgets refused their eviction.",
)
WRITES = Metric("aliquot_writes_total", "counter", "Writes to the API.", ("write", "result"))
CYCLE_DURATION = Metric("aliquot_cycle_duration_seconds", "histogram", "Time to decide, a cycle.")
WRITE_DURATION = Metric(
    "aliquot_write_duration_seconds",
    "histogram",
    "Time from sending a write to its answer.",
    ("write",),
)
POD_WAIT = Metric(
    "aliquot_pod_wait_seconds", "histogram", "Time from a pod's creation to its binding."
)
WRITES_WAITING = Metric("aliquot_writes_waiting", "gauge", "Writes not yet answered.")

SHADOW_PODS = Metric(
    "aliquot_shadow_pods_total", "counter", "Pods compared, by what came of it.", ("verdict",)
)
SHADOW_EVICTIONS = Metric(
    "aliquot_shadow_evictions_total", "counter", "Pods that it would have evicted.", ("reason",)
)
SHADOW_EARLIER = Metric(
    "aliquot_shadow_earlier_seconds_total",
    "counter",
    "Seconds by which it would have started pods earlier, all together.",
)
SHADOW_PENDING = Metric(
    "aliquot_shadow_pending_pods", "gauge", "Pods that wait, by what it would do.", ("would",)
)

LEADER = Metric("aliquot_leader", "gauge", "1 if this replica leads.")
INVARIANT_VIOLATIONS = Metric(
    "aliquot_invariant_violations", "gauge", "What the last check of the ledger found wrong."
)
CACHE_OBJECTS = Metric("aliquot_cache_objects", "gauge", "Objects known.", ("kind",))
WATCH_RESTARTS = Metric("aliquot_watch_restarts_total", "counter", "Watches begun anew.", ("kind",))
BUILD_INFO = Metric(
    "aliquot_build_info", "gauge", "What runs here; always 1.", ("version", "python")
)
PROCESS_CPU = Metric("process_cpu_seconds_total", "counter", "CPU time.")
PROCESS_MEMORY = Metric("process_resident_memory_bytes", "gauge", "Memory.")
PROCESS_ADDRESSES = Metric("process_virtual_memory_bytes", "gauge", "Address space.")
PROCESS_START = Metric("process_start_time_seconds", "gauge", "When it started.")
PROCESS_FILES = Metric("process_open_fds", "gauge", "Open files and connections.")
PROCESS_MOST_FILES = Metric("process_max_fds", "gauge", "The most there may be.")

ADMISSION_REVIEWS = Metric(
    "aliquot_admission_reviews_total", "counter", "Writes judged.", ("kind", "operation", "result")
)
ADMISSION_DURATION = Metric(
    "aliquot_admission_duration_seconds", "histogram", "Time to answer.", ("kind",)
)
CERTIFICATE_EXPIRY = Metric(
    "aliquot_webhook_certificate_expiry_seconds",
    "gauge",
    "When the certificate in use ends, in seconds since 1970.",
)

METRICS = tuple(each for each in list(globals().values()) if isinstance(each, Metric))
"""All of them, in the order above."""
