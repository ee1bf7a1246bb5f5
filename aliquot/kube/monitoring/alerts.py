"""The alerts: what an operator should look at, with the command that says more.

A bound that depends on the cluster is a text, so that a chart can put a value in its place.
"""

from dataclasses import dataclass

from aliquot.kube.monitoring.rules import BY_CHOICE, GPUS, Alert, Group, latest
from aliquot.kube.observe.catalogue import (
    ADMISSION_REVIEWS,
    CERTIFICATE_EXPIRY,
    EVICTIONS_PAUSED,
    INVARIANT_VIOLATIONS,
    LEADER,
    PASSED_CLAIM_SECONDS,
    QUOTA_BORROWED,
    QUOTA_OWED,
)

_QUOTA = "{{ $labels.quota }}"
_AMOUNT = "{{ $value | humanize }} {{ $labels.resource }}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where alerts begin, as far as that differs between clusters."""

    resources: str = GPUS
    """A pattern of the resources of which much may be borrowed for long."""
    borrowed: str = "8"
    """More than so much borrowed by one quota for a day: its min is too low, or it is in luck."""
    evictions_per_minute: str = "10"
    """More than so many evictions by choice in a minute, over ten minutes: quotas fight."""


def groups(bounds: Bounds) -> list[Group]:
    """The alerts about quotas and the scheduler."""
    return [Group("aliquot-alerts", [*_control_plane(), *_quotas(bounds), *_evictions(bounds)])]


def webhook_groups() -> list[Group]:
    """The alerts about the webhook, where there is one."""
    return [Group("aliquot-webhook-alerts", _webhook())]


def _control_plane() -> list[Alert]:
    return [
        Alert(
            "AliquotNotLeading",
            f"sum({LEADER}) < 1 or absent({LEADER})",
            "2m",
            "critical",
            "No replica of aliquot-scheduler leads",
            "Nothing is started and nothing is taken back. A change of leader takes a quarter of a "
            "minute at most. Are the replicas running, and do they reach the API server?",
        ),
        Alert(
            "AliquotLedgerCheckFailed",
            f"max({INVARIANT_VIOLATIONS}) > 0",
            "1m",
            "critical",
            "Aliquot's books do not agree with the cluster",
            "The last check of the ledger found {{ $value }} violations: a defect. Path "
            "/debug/invariants of the leader says which; please report them.",
        ),
    ]


def _quotas(bounds: Bounds) -> list[Alert]:
    by = ("quota", "tree", "resource")
    borrowed = latest(QUOTA_BORROWED, *by, resource=f'=~"{bounds.resources}"')
    return [
        Alert(
            "AliquotGuaranteeNotMet",
            f"{latest(QUOTA_OWED, *by)} > 0",
            "15m",
            "warning",
            f"Quota {_QUOTA} does not get what it is guaranteed",
            f"For 15 minutes, claims within its guarantee have waited for {_AMOUNT}. "
            f"aliquot explain quota {_QUOTA} says why.",
        ),
        Alert(
            "AliquotBorrowingForLong",
            f"{borrowed} > {bounds.borrowed}",
            "1d",
            "info",
            f"Quota {_QUOTA} has borrowed much for a day",
            f"It borrows {_AMOUNT}, which other quotas may take back at any time. Does it need a "
            "higher min?",
        ),
        Alert(
            "AliquotClaimPassed",
            f"{latest(PASSED_CLAIM_SECONDS, 'quota', 'tree')} > 3600",
            "5m",
            "warning",
            f"A claim of quota {_QUOTA} has been passed for an hour",
            "Others behind it started meanwhile: {{ $value | humanizeDuration }}. "
            f"aliquot queue {_QUOTA} shows it, aliquot explain pod says what would help.",
        ),
    ]


def _evictions(bounds: Bounds) -> list[Alert]:
    rate = f"sum(rate({BY_CHOICE}[10m])) * 60"
    return [
        Alert(
            "AliquotManyEvictions",
            f"{rate} > {bounds.evictions_per_minute}",
            "10m",
            "warning",
            "Aliquot evicts many pods",
            "{{ $value | humanize }} a minute. aliquot history says for whom and by which rule; "
            "eviction.maxPerMinute bounds them, aliquot pause evictions stops them.",
        ),
        Alert(
            "AliquotEvictionsPaused",
            f"max({EVICTIONS_PAUSED}) > 0",
            "4h",
            "warning",
            "Evictions have been paused for hours",
            "What is guaranteed is not taken back meanwhile. aliquot resume evictions ends it.",
        ),
    ]


def _webhook() -> list[Alert]:
    failed = ADMISSION_REVIEWS.where(result='=~"failed|not ready"')
    month = 30 * 86400
    return [
        Alert(
            "AliquotWebhookFailing",
            f"sum(rate({failed}[5m])) > 0",
            "10m",
            "critical",
            "Aliquot's webhook fails",
            "It cannot judge {{ $value | humanize }} writes a second; API servers refuse writes to "
            "quotas and queues meanwhile. Its log says why.",
        ),
        Alert(
            "AliquotWebhookMissing",
            f"absent({CERTIFICATE_EXPIRY})",
            "10m",
            "critical",
            "No replica of aliquot-webhook is scraped",
            "API servers refuse writes to quotas and queues if it does not run.",
        ),
        Alert(
            "AliquotWebhookCertificateEnds",
            f"min({CERTIFICATE_EXPIRY}) - time() < {month}",
            "1h",
            "warning",
            "The certificate of aliquot-webhook is not renewed",
            "It ends in {{ $value | humanizeDuration }}, and should have been renewed long ago.",
        ),
    ]
