"""The metrics of a webhook replica, for Prometheus.

As in the scheduler: names begin with `aliquot_`, no label may hold the name of an object, and the
registry is not the global one.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from aliquot.kube.observe import catalogue
from aliquot.kube.observe.metrics import build_info
from aliquot.kube.webhook.review import AdmissionRequest
from aliquot.kube.webhook.verdict import JUDGED

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Up to 5 s, after which an API server no longer waits for the answer."""


class Metrics:
    """All metrics of a replica of the webhook."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        build_info(self.registry)
        self.reviews = Counter(*catalogue.ADMISSION_REVIEWS.declared, registry=self.registry)
        self.duration = Histogram(
            *catalogue.ADMISSION_DURATION.declared, buckets=_SECONDS, registry=self.registry
        )
        self.certificate_expiry = Gauge(
            *catalogue.CERTIFICATE_EXPIRY.declared, registry=self.registry
        )

    def count(self, request: AdmissionRequest, result: str, seconds: float) -> None:
        """Count one answered request; kinds without rules are counted together as `other`."""
        kind = request.kind if request.kind in JUDGED else "other"
        self.reviews.labels(kind, request.operation, result).inc()
        self.duration.labels(kind).observe(seconds)
