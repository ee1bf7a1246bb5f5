"""The dashboard for Grafana: what people ask of a shared cluster, from top to bottom.

Who has what, who waits and why, what was taken back, what it cost, and whether the control plane is
well. Series are put together over replicas, as in the rules: only the one that leads has figures.
"""

from aliquot.json import Body
from aliquot.kube.monitoring import accounting
from aliquot.kube.monitoring.panels import SOURCE, Panel, Query, Row, laid_out
from aliquot.kube.monitoring.rules import BY_CHOICE
from aliquot.kube.observe.catalogue import (
    ADMISSION_DURATION,
    ADMISSION_REVIEWS,
    BUDGET_OVERRIDES,
    CACHE_OBJECTS,
    CERTIFICATE_EXPIRY,
    CYCLE_DURATION,
    DECISIONS,
    EVICTED_RESOURCE_SECONDS,
    EVICTIONS,
    EVICTIONS_HELD_BACK,
    EVICTIONS_LAST_MINUTE,
    EVICTIONS_PAUSED,
    GANG_PODS,
    GANGS,
    GPU_QUOTA_AVAILABLE,
    GPU_QUOTA_USED,
    INVARIANT_VIOLATIONS,
    LEADER,
    PASSED_CLAIM_SECONDS,
    PENDING_PODS,
    POD_WAIT,
    PROCESS_CPU,
    PROCESS_MEMORY,
    QUEUE_DESERVED,
    QUEUE_USED,
    QUOTA_BORROWED,
    QUOTA_IDLE,
    QUOTA_LENT,
    QUOTA_MAX,
    QUOTA_MIN,
    QUOTA_OWED,
    QUOTA_REQUEST,
    QUOTA_RUNTIME,
    QUOTA_USED,
    WATCH_RESTARTS,
    WRITE_DURATION,
    WRITES,
    WRITES_WAITING,
    Metric,
)

TITLE = "Aliquot"
UID = "aliquot"
_RESOURCE = '="$resource"'
_CHOSEN = '=~"$quota"'
_RATE = "$__rate_interval"
_HOUR = 3600
_QUANTILES = (0.5, 0.9, 0.99)


def dashboard() -> Body:
    """The dashboard, as Grafana imports it."""
    return {
        "title": TITLE,
        "uid": UID,
        "description": "Quotas, waiting pods, evictions and the control plane of Aliquot",
        "tags": ["aliquot", "scheduling", "quota", "gpu"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables()},
        "panels": laid_out(
            [
                Row("At a glance", _glance()),
                Row("Quotas", _quotas()),
                Row("Waiting", _waiting()),
                Row("Evictions", _evictions()),
                Row("Accounting, by month (needs the recording rules)", _accounting()),
                Row("Queues and quotas on GPUs", _others(), collapsed=True),
                Row("Control plane", _control_plane(), collapsed=True),
                Row("Webhook", _webhook(), collapsed=True),
            ]
        ),
    }


def _variables() -> list[Body]:
    return [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            **_variable("resource", f"label_values({QUOTA_USED}, resource)"),
            "current": {"text": "nvidia.com/gpu", "value": "nvidia.com/gpu"},
        },
        {
            **_variable("quota", f"label_values({QUOTA_USED.where(resource=_RESOURCE)}, quota)"),
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        },
    ]


def _variable(name: str, query: str) -> Body:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
    }


def _of_quotas(metric: Metric) -> str:
    """A figure of the chosen quotas in the chosen resource."""
    return f"max by (quota) ({metric.where(resource=_RESOURCE, quota=_CHOSEN)})"


def _by_quota(title: str, description: str, metric: Metric, stacked: bool = True) -> Panel:
    return Panel(title, description, [Query(_of_quotas(metric), "{{quota}}")], stacked=stacked)


def _quantiles(histogram: Metric) -> list[Query]:
    rate = f"sum by (le) (rate({histogram.bucket()}[{_RATE}]))"
    return [Query(f"histogram_quantile({q}, {rate})", f"p{round(100 * q)}") for q in _QUANTILES]


def _rate(metric: Metric, label: str, per: str = "") -> Query:
    return Query(f"sum by ({label}) (rate({metric}[{_RATE}])){per}", f"{{{{{label}}}}}")


def _glance() -> list[Panel]:
    lost = EVICTED_RESOURCE_SECONDS.where(resource=_RESOURCE)
    figures = [
        ("Used", "Of the chosen resource, by pods in quotas.", _total(QUOTA_USED), "short", None),
        (
            "Owed",
            "Asked for by claims within their guarantee that wait: 0 if every promise is kept.",
            _total(QUOTA_OWED),
            "short",
            1,
        ),
        ("Waiting pods", "Of all quotas.", f"sum(max by (reason) ({PENDING_PODS}))", "short", None),
        (
            "Evictions in an hour",
            "By choice: pods of lost nodes are not counted.",
            f"sum(increase({BY_CHOICE}[1h]))",
            "short",
            None,
        ),
        (
            "Lost to evictions in a day",
            "Hours of the chosen resource that evicted pods had used.",
            f"sum(increase({lost}[1d])) / {_HOUR}",
            "h",
            None,
        ),
        (
            "Wrong in the books",
            "What the last check of the ledger found; anything but 0 is a defect.",
            f"max({INVARIANT_VIOLATIONS})",
            "short",
            1,
        ),
    ]
    return [
        Panel(title, words, [Query(expression)], "stat", unit, 4, bad_from=bad)
        for title, words, expression, unit, bad in figures
    ]


def _total(metric: Metric) -> str:
    return f"sum(max by (quota) ({metric.where(resource=_RESOURCE)}))"


def _quotas() -> list[Panel]:
    table: list[tuple[str, Metric]] = [
        ("used", QUOTA_USED),
        ("min", QUOTA_MIN),
        ("max", QUOTA_MAX),
        ("borrowed", QUOTA_BORROWED),
        ("lent", QUOTA_LENT),
        ("owed", QUOTA_OWED),
    ]
    columns = [("quota", "quota")]
    columns += [(f"Value #{chr(ord('A') + n)}", word) for n, (word, _) in enumerate(table)]
    return [
        _by_quota("Used", "Held by running pods.", QUOTA_USED),
        Panel(
            "Quotas now",
            "What each has, lends and borrows, and what it is owed.",
            [Query(_of_quotas(metric)) for _, metric in table],
            "table",
            width=16,
            columns=columns,
        ),
        _by_quota("Borrowed", "Used above min: what may be taken back.", QUOTA_BORROWED),
        _by_quota("Lent", "Min that others use.", QUOTA_LENT),
        _by_quota(
            "Idle guarantee",
            "Min that its quota does not use, whether or not it is lent. For long: too high a min.",
            QUOTA_IDLE,
        ),
        _by_quota(
            "Owed", "What claims within their guarantee wait for. 0 is a promise kept.", QUOTA_OWED
        ),
        _by_quota(
            "Asked for",
            "Used, and what waiting pods ask for.",
            QUOTA_REQUEST,
        ),
        _by_quota(
            "Share now",
            "What each quota may have at this moment (runtime), where the policy computes shares.",
            QUOTA_RUNTIME,
            stacked=False,
        ),
    ]


def _waiting() -> list[Panel]:
    passed = PASSED_CLAIM_SECONDS.where(quota=_CHOSEN)
    return [
        Panel(
            "Waiting pods by reason",
            "NoNodeFits wants nodes; the others want quota, or patience.",
            [Query(f"max by (reason) ({PENDING_PODS})", "{{reason}}")],
            stacked=True,
        ),
        Panel("From created to bound", "What users feel.", _quantiles(POD_WAIT), unit="s"),
        Panel(
            "Passed claims",
            "For how long a waiting claim has been passed by others, the longest of each quota.",
            [Query(f"max by (quota) ({passed})", "{{quota}}")],
            unit="s",
        ),
        Panel(
            "Gangs by phase",
            "Unknown for long: gangs that lost pods and do not get them back.",
            [Query(f"max by (phase) ({GANGS})", "{{phase}}")],
        ),
        Panel(
            "Pods of gangs by phase",
            "Running pods, by the phase of their gang.",
            [Query(f"max by (phase) ({GANG_PODS})", "{{phase}}")],
        ),
    ]


def _evictions() -> list[Panel]:
    lost = EVICTED_RESOURCE_SECONDS.where(resource=_RESOURCE, quota=_CHOSEN)
    return [
        Panel(
            "Evictions a minute by reason",
            "A high rate for long: quotas that fight.",
            [_rate(EVICTIONS, "reason", " * 60")],
            stacked=True,
        ),
        Panel(
            "Lost to evictions, hours in an hour",
            "Hours of the chosen resource that evicted pods had used, by quota.",
            [Query(f"sum by (quota) (increase({lost}[1h])) / {_HOUR}", "{{quota}}")],
            unit="h",
            stacked=True,
        ),
        Panel(
            "Brakes",
            "Pods whose evictions were held back a minute, and evictions of the last minute.",
            [
                _rate(EVICTIONS_HELD_BACK, "brake", " * 60"),
                Query(f"max({EVICTIONS_LAST_MINUTE})", "evicted in the last minute"),
                Query(f"max({EVICTIONS_PAUSED})", "paused"),
                Query(f"sum(increase({BUDGET_OVERRIDES}[1h]))", "budgets overridden in an hour"),
            ],
        ),
    ]


def _accounting() -> list[Panel]:
    def total(figure: str) -> str:
        chosen = f'{{figure="{figure}",resource=~"$resource",quota=~"$quota"}}'
        return f"max by (month, quota) (last_over_time({accounting.TOTAL}{chosen}[$__range]))"

    figures = [*accounting.FIGURES, accounting.LOST]
    columns = [("month", "month"), ("quota", "quota")]
    columns += [(f"Value #{chr(ord('A') + n)}", word) for n, word in enumerate(figures)]
    return [
        Panel(
            "Hours of the chosen resource",
            "By quota and month (UTC), as of the last full hour; months within the time range.",
            [Query(total(figure)) for figure in figures],
            "table",
            "h",
            24,
            columns=columns,
        )
    ]


def _others() -> list[Panel]:
    def queues(metric: Metric) -> str:
        return f"max by (queue) ({metric.where(resource=_RESOURCE)})"

    both = "max by (namespace, figure)"
    workers = GPU_QUOTA_USED.where(figure='="workers"')
    return [
        Panel(
            "Queues: used",
            "Held by running pods, by queue.",
            [Query(queues(QUEUE_USED), "{{queue}}")],
            stacked=True,
        ),
        Panel(
            "Queues: used beyond what they deserve",
            "What a queue may have to give back.",
            [Query(f"clamp_min({queues(QUEUE_USED)} - {queues(QUEUE_DESERVED)}, 0)", "{{queue}}")],
        ),
        Panel(
            "Quotas on GPUs: part that is left",
            "Near 0: the namespace's pods wait soon. Unlimited figures are left out.",
            [Query(f"{both} ({GPU_QUOTA_AVAILABLE})", "{{namespace}} {{figure}}")],
            unit="percentunit",
        ),
        Panel(
            "Quotas on GPUs: workers",
            "Pods with GPUs, by namespace.",
            [Query(f"max by (namespace) ({workers})", "{{namespace}}")],
        ),
    ]


def _control_plane() -> list[Panel]:
    return [
        Panel("Replicas that lead", "1, or 0 for seconds.", [Query(f"sum({LEADER})", "leaders")]),
        Panel("Decisions a second", "Binds are the throughput.", [_rate(DECISIONS, "decision")]),
        Panel("Time to decide", "A cycle.", _quantiles(CYCLE_DURATION), unit="s"),
        Panel(
            "Writes a second by result", "Any but ok as a rate: look.", [_rate(WRITES, "result")]
        ),
        Panel(
            "Writes: 99th percentile",
            "Slow writes are a slow API server.",
            [
                Query(
                    "histogram_quantile(0.99, sum by (le, write) "
                    f"(rate({WRITE_DURATION.bucket()}[{_RATE}])))",
                    "{{write}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "Writes waiting",
            "Decided and not yet answered. Growing: the API server does not keep up.",
            [Query(f"max({WRITES_WAITING})", "writes")],
        ),
        Panel(
            "CPU",
            "By replica; at 1, the replica is at its limit.",
            [Query(f"rate({PROCESS_CPU}[{_RATE}]) and on (instance) {LEADER}", "{{instance}}")],
        ),
        Panel(
            "Memory",
            "By replica.",
            [Query(f"{PROCESS_MEMORY} and on (instance) {LEADER}", "{{instance}}")],
            unit="bytes",
        ),
        Panel(
            "Watches begun anew, in an hour",
            "A high rate: a network or API server in trouble.",
            [Query(f"sum by (kind) (increase({WATCH_RESTARTS}[1h]))", "{{kind}}")],
        ),
        Panel(
            "Objects known",
            "Compare with the cluster.",
            [Query(f"max by (kind) ({CACHE_OBJECTS})", "{{kind}}")],
        ),
    ]


def _webhook() -> list[Panel]:
    return [
        Panel(
            "Reviews a second by result", "What is refused.", [_rate(ADMISSION_REVIEWS, "result")]
        ),
        Panel(
            "Time to answer",
            "API servers wait for 5 s.",
            _quantiles(ADMISSION_DURATION),
            unit="s",
        ),
        Panel(
            "Certificate ends in",
            "Renewed long before.",
            [Query(f"min({CERTIFICATE_EXPIRY}) - time()", "left")],
            unit="s",
        ),
    ]
