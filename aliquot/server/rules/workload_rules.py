"""The validation of workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and CronJob."""

from collections.abc import Iterator
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aliquot.dialects.core import cron
from aliquot.dialects.cron_jobs import CONCURRENCY
from aliquot.errors import SelectorError
from aliquot.json import Body, same
from aliquot.server.rules.causes import Cause, forbidden, invalid, not_supported, required
from aliquot.server.rules.metadata_rules import changed, check_labels
from aliquot.server.rules.pod_rules import check_pod_spec
from aliquot.server.selectors.selectors import Labels

_TEMPLATE = "spec.template"
_AT_LEAST_ZERO = "must be greater than or equal to 0"
_LONGEST_CRON_JOB = 52
"""Characters of a CronJob's name: those of its Jobs have eleven more, and at most 63."""
_CHANGEABLE = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
"""The fields of a StatefulSet's spec that an update may change, as Kubernetes lists them."""


def check_deployment(body: Body) -> Iterator[Cause]:
    """A Deployment: as a ReplicaSet, and a known strategy."""
    yield from check_replicated(body)
    strategy = (body.get("spec") or {}).get("strategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        words = ("Recreate", "RollingUpdate")
        yield not_supported("spec.strategy.type", kind or "", words)
    elif kind == "Recreate" and rolling:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        yield Cause("spec.strategy.rollingUpdate", "FieldValueForbidden", f"Forbidden: {detail}")


def check_replicated(body: Body) -> Iterator[Cause]:
    """A Deployment, ReplicaSet or StatefulSet: its selector matches its pod template."""
    spec = body.get("spec") or {}
    yield from _not_negative(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        detail = f"empty selector is invalid for {str(body.get('kind', 'workload')).lower()}"
        yield invalid("spec.selector", selector, detail)
    else:
        yield from _check_match(selector, spec)
    yield from _check_template(spec)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        yield not_supported(f"{_TEMPLATE}.spec.restartPolicy", policy, ("Always",))


def check_stateful_set(body: Body) -> Iterator[Cause]:
    """A StatefulSet: as a ReplicaSet, with the volumes of its claims, and known policies."""
    yield from check_replicated(_with_claims(body))
    spec = body.get("spec") or {}
    policy, strategy = spec.get("podManagementPolicy"), spec.get("updateStrategy") or {}
    if policy not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, detail)
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        yield invalid("spec.ordinals.start", start, _AT_LEAST_ZERO)


def _with_claims(body: Body) -> Body:
    """The StatefulSet with a volume in its template for each claim template, as its pods have."""
    spec = body.get("spec") or {}
    claims = [
        (each.get("metadata") or {}).get("name") for each in spec.get("volumeClaimTemplates") or ()
    ]
    if not claims:
        return body
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    own = [each for each in pod.get("volumes") or () if each.get("name") not in claims]
    made: list[Body] = [{"name": name, "emptyDir": {}} for name in claims]
    template = {**template, "spec": {**pod, "volumes": [*own, *made]}}
    return {**body, "spec": {**spec, "template": template}}


def check_stateful_set_update(old: Body, new: Body) -> Iterator[Cause]:
    """All of a StatefulSet's spec is immutable but a few fields."""
    before, after = (
        {key: value for key, value in (each.get("spec") or {}).items() if key not in _CHANGEABLE}
        for each in (old, new)
    )
    if not same(before, after):
        *most, last = (f"'{name}'" for name in _CHANGEABLE)
        named = f"{', '.join(most)} and {last}"
        detail = f"updates to statefulset spec for fields other than {named} are forbidden"
        yield forbidden("spec", detail)


def check_daemon_set(body: Body) -> Iterator[Cause]:
    """A DaemonSet: as a ReplicaSet, and a known strategy."""
    yield from check_replicated(body)
    strategy = (body.get("spec") or {}).get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield not_supported("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete"))


def check_replication_controller(body: Body) -> Iterator[Cause]:
    """A ReplicationController: its selector, a map of labels, matches its pod template."""
    spec = body.get("spec") or {}
    yield from _not_negative(spec, "replicas", "minReadySeconds")
    if not spec.get("selector"):
        yield required("spec.selector")
    else:
        yield from _check_match({"matchLabels": spec["selector"]}, spec)
    yield from _check_template(spec)


def check_cron_job(body: Body) -> Iterator[Cause]:
    """A CronJob: its schedule and time zone can be read, and its Jobs are valid."""
    spec, name = body.get("spec") or {}, (body.get("metadata") or {}).get("name") or ""
    if len(name) > _LONGEST_CRON_JOB:
        yield invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB} characters")
    yield from _check_schedule(spec)
    history = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from _not_negative(spec, "startingDeadlineSeconds", *history)
    policy = spec.get("concurrencyPolicy")
    if policy not in CONCURRENCY:
        yield not_supported("spec.concurrencyPolicy", policy or "", CONCURRENCY)
    for cause in check_job(spec.get("jobTemplate") or {}):
        yield Cause(f"spec.jobTemplate.{cause.field}", cause.reason, cause.message)


def _check_schedule(spec: Body) -> Iterator[Cause]:
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if not schedule:
        yield required("spec.schedule")
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, detail)
    else:
        try:
            cron.parse(schedule)
        except cron.ScheduleError as error:
            yield invalid("spec.schedule", schedule, str(error))
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")


def check_job(body: Body) -> Iterator[Cause]:
    """A Job: its pods end, so their restartPolicy is not Always."""
    spec = body.get("spec") or {}
    names = ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished")
    yield from _not_negative(spec, *names, "activeDeadlineSeconds")
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        yield not_supported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        detail = "when completion mode is Indexed"
        yield required("spec.completions", detail)
    yield from _check_template(spec)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        detail = 'valid values: "OnFailure", "Never"'
        yield required(f"{_TEMPLATE}.spec.restartPolicy", detail)


def check_replicated_update(old: Body, new: Body) -> Iterator[Cause]:
    """The selector is immutable."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    yield from changed("spec.selector", before.get("selector"), after.get("selector"))


def check_job_update(old: Body, new: Body) -> Iterator[Cause]:
    """The template is immutable, and completions, unless the Job is Indexed."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    if before.get("completionMode") != "Indexed":
        fixed.append("completions")
    if not before.get("suspend"):
        fixed.append("template")
    for name in fixed:
        yield from changed(f"spec.{name}", before.get(name), after.get(name))


def _check_match(selector: Body, spec: Body) -> Iterator[Cause]:
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    try:
        found = Labels.of(selector)
    except SelectorError as error:
        yield invalid("spec.selector", selector, str(error))
        return
    if found is None or not found.match(labels):
        detail = "`selector` does not match template `labels`"
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels, detail)


def _check_template(spec: Body) -> Iterator[Cause]:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from check_labels(labels, f"{_TEMPLATE}.labels")
    yield from check_pod_spec(template.get("spec") or {}, f"{_TEMPLATE}.spec")


def _not_negative(spec: Body, *names: str) -> Iterator[Cause]:
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], _AT_LEAST_ZERO)
