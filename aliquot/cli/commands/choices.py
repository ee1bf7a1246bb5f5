"""What options offer and what they default to.

The library defines these values in modules that need numpy, msgspec or aiohttp. They are repeated
here, so that `--help` and a mistyped option cost no more than click; tests/cli/test_choices.py
compares every one of them with its definition.
"""

from typing import Literal

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

POLICIES = ("auto", "capacity", "fair", "hierarchy", "queues")

NAMESPACE = "aliquot-system"
SCHEDULER = "aliquot-scheduler"
"""The Lease of the scheduler, and its Deployment."""
WEBHOOK = "aliquot-webhook"
"""The Service of the webhook, and its Deployment."""
CERTIFICATE = "aliquot-webhook-certificate"
"""The Secret with the webhook's certificate."""
CONFIGURATION = "aliquot"
"""The webhook configurations, and the ConfigMap with the Configuration."""
REPLICAS = 2
PAUSABLE = ("evictions",)
INSTALL_PARTS = ("crds", "rbac", "workloads", "webhooks")
OPTIONAL_PARTS = ("monitoring",)

NODES = "8x8"
GPU_MODEL = "NVIDIA-A100-SXM4-80GB"

BENCHMARKS = (
    *("decisions", "affinity", "preempt", "reclaim", "share", "queues", "gpu", "gangs"),
    *("reservations", "estimate", "questions", "blowups", "packing", "apiserver", "dashboard"),
)
"""What `bench all` measures, in this order."""
PACKING_SEEDS = 10
CLUSTER_PARTS = ("binding", "limit", "steady", "start", "takeover")
"""What `bench cluster` measures."""
CLUSTER_NODES = (500, 5_000)
CLUSTER_PODS = 10_000
CLUSTER_PODS_LISTED = 50_000
SERVER_KINDS = ("real", "embedded")
"""What `bench reclaim-burst` runs on."""

WORKLOADS = ("baseline", "poisson")
"""What `generate` makes."""
SHELLS = ("bash", "zsh", "fish")
TOPICS = ("quotas", "pods", "nodes", "gpus")
"""What `top` shows."""
SORTS = ("used", "borrowed", "waiting")
"""By what `top quotas` sorts."""
