"""The validation of workloads: Deployment, ReplicaSet, StatefulSet and Job."""

from collections.abc import Iterator

from aliquot.errors import SelectorError
from aliquot.json import Body
from aliquot.server.rules.causes import Cause, invalid, not_supported, required
from aliquot.server.rules.metadata_rules import changed, check_labels
from aliquot.server.rules.pod_rules import check_pod_spec
from aliquot.server.selectors.selectors import Labels

_TEMPLATE = "spec.template"
_AT_LEAST_ZERO = "must be greater than or equal to 0"


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
