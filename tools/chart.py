"""Writes the Helm chart from what `aliquot manifests` prints, so that the two cannot drift apart.

Every object is taken as it is; what the chart's users may set takes the place of what is there, and
what belongs to something that they can leave out is put under a condition. Written by hand are only
`values.yaml`, its schema, the notes and what the command does not print. `make chart` writes,
`python tools/chart.py --check` says what is out of date and ends with 1 if anything is.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from aliquot import __version__
from aliquot.cli.show.documents import manifests_as_yaml
from aliquot.kube.install import monitoring
from aliquot.kube.install.all_objects import OPTIONAL_PARTS, PARTS, objects
from aliquot.kube.install.installation import (
    COMPONENT,
    CONFIGURATION,
    DELETION,
    IMAGE,
    KOORDINATOR,
    METRICS_READER,
    QUEUES,
    SCHEDULER,
    SPREAD,
    WEBHOOK,
    Installation,
)
from aliquot.kube.monitoring.alerts import Bounds

CHART = Path(__file__).parent.parent / "charts" / "aliquot"
HEAD = "{{- /* Written by `make chart` from aliquot/kube/install: change it there. */}}\n"
ABOUT = {
    "apiVersion": "v2",
    "name": "aliquot",
    "description": "Elastic quotas and fair sharing for shared GPU clusters",
    "type": "application",
    "version": __version__,
    "appVersion": __version__,
    "kubeVersion": ">=1.27.0-0",
    "keywords": ["scheduler", "quota", "gpu", "fair-share"],
}
_MARKED = re.compile(r"^( *)(- |(?:[\w./-]+): )'@@(\w+) (.+)@@'$", re.MULTILINE)


@dataclass(frozen=True)
class Blank:
    """A place in objects of a kind that a value fills; `C` in the value is the component."""

    kind: str
    path: str
    value: str
    form: str = "block"
    name: str = ""
    """The one object of its kind that has it; otherwise all have."""


DASHBOARD = f"dashboards/{monitoring.DASHBOARD_FILE}"
OF_DASHBOARD = monitoring.DASHBOARD
_POD = "spec/template/spec"
_CONTAINER = f"{_POD}/containers/0"
BLANKS = (
    Blank("Deployment", "spec/replicas", "C.replicas", "number"),
    Blank("Deployment", f"{_POD}/serviceAccountName", "C.serviceAccount.name", "text"),
    Blank("Deployment", f"{_POD}/imagePullSecrets", "imagePullSecrets"),
    Blank("Deployment", f"{_POD}/nodeSelector", "C.nodeSelector"),
    Blank("Deployment", f"{_POD}/tolerations", "C.tolerations"),
    Blank("Deployment", f"{_POD}/affinity", "C.affinity"),
    Blank("Deployment", f"{_CONTAINER}/imagePullPolicy", "image.pullPolicy", "text"),
    Blank("Deployment", f"{_CONTAINER}/resources", "C.resources"),
    *(
        Blank("Deployment", f"{_CONTAINER}/{each}Probe/httpGet/scheme", "metrics.auth", "scheme")
        for each in ("liveness", "readiness", "startup")
    ),
    Blank("Deployment", f"{_CONTAINER}/args/-", "metrics.auth", "flag"),
    Blank("Deployment", f"{_CONTAINER}/args/-", "C.extraArgs", "more"),
    Blank("ServiceAccount", "metadata/name", "C.serviceAccount.name", "text"),
    Blank("ServiceAccount", "metadata/annotations", "C.serviceAccount.annotations"),
    Blank("RoleBinding", "subjects/0/name", "C.serviceAccount.name", "text"),
    Blank("ClusterRoleBinding", "subjects/0/name", "C.serviceAccount.name", "text"),
    Blank("ConfigMap", "data/configuration.yaml", "config", "document", CONFIGURATION),
    Blank("ConfigMap", f"data/{monitoring.DASHBOARD_FILE}", DASHBOARD, "file", OF_DASHBOARD),
    Blank("ConfigMap", "metadata/labels/more", "metrics.dashboard.labels", "more", OF_DASHBOARD),
    Blank("PrometheusRule", "metadata/labels/more", "metrics.rules.labels", "more"),
    Blank("ServiceMonitor", "metadata/labels/more", "metrics.serviceMonitor.labels", "more"),
    Blank("ServiceMonitor", "spec/endpoints/0/interval", "metrics.serviceMonitor.interval", "text"),
    Blank("ServiceMonitor", "spec/endpoints/0/more", "metrics.auth", "protected"),
)
_DELETE_AFTER = '(dig "eviction" "deleteAfter" "1m" .Values.config | toString)'
_NEVER = '(list "0" "0s" "0m" "0h")'
OPTIONAL = {
    DELETION: f"(not (has {_DELETE_AFTER} {_NEVER}))",
    KOORDINATOR: ".Values.rbac.koordinator",
    QUEUES: ".Values.rbac.queues",
    SPREAD: '(dig "placement" "defaultConstraints" list .Values.config)',
    f"{SCHEDULER}-metrics-auth": ".Values.metrics.auth",
    f"{WEBHOOK}-metrics-auth": ".Values.metrics.auth",
    METRICS_READER: ".Values.metrics.auth",
}
"""By name, what must hold for a role and its binding to be there."""
WANTED = {
    "ServiceMonitor": ".Values.metrics.serviceMonitor.enabled",
    "PrometheusRule": ".Values.metrics.rules.enabled",
    "ConfigMap": ".Values.metrics.dashboard.enabled",
}
"""By kind, what must hold for an object of the part `monitoring` to be there."""
BOUNDS = {
    "resources": "metrics.rules.resources",
    "borrowed": "metrics.rules.borrowed",
    "evictions_per_minute": "metrics.rules.evictionsPerMinute",
}
"""The value for each of the bounds at which alerts begin."""
RULES = "rules/aliquot.yaml"
"""The rules as a Prometheus without the operator reads them."""
_DIGEST = "{{ .Values.config | toJson | sha256sum }}"


def main(words: list[str]) -> int:
    """Write the chart, or only look."""
    if words == ["--check"]:
        found = [*stale(), *disagreements()]
        print("\n".join(found) or "the chart is what aliquot manifests prints")
        return 1 if found else 0
    for file, text in written().items():
        (CHART / file).parent.mkdir(parents=True, exist_ok=True)
        (CHART / file).write_text(text)
    return 0


def written() -> dict[str, str]:
    """Every file that is not written by hand, and what belongs in it."""
    parts = (*PARTS, *OPTIONAL_PARTS)
    templates = {f"templates/{part}.yaml": _template(part) for part in parts}
    return {
        "Chart.yaml": yaml.safe_dump(ABOUT, sort_keys=False),
        **templates,
        DASHBOARD: monitoring.dashboard_text(),
        RULES: manifests_as_yaml([monitoring.all_rules(Bounds())]),
    }


def stale() -> Iterator[str]:
    """What `make chart` would change."""
    for file, text in written().items():
        if not (CHART / file).exists() or (CHART / file).read_text() != text:
            yield f"{file} is out of date: run make chart"


def disagreements() -> Iterator[str]:
    """Where a value is not by default what `aliquot manifests` prints."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    if f"{values['image']['repository']}:{values['image']['tag'] or __version__}" != IMAGE:
        yield f"values.yaml: image is not {IMAGE}"
    if Installation().configuration != values["config"]:
        yield f"values.yaml: config is not {Installation().configuration}"
    for field, name in BOUNDS.items():
        if str(_value(values, name)) != getattr(Bounds(), field):
            yield f"values.yaml: {name} is not {getattr(Bounds(), field)}"
    for body in objects(Installation(), (*PARTS, *OPTIONAL_PARTS)):
        for blank in _blanks(body):
            if blank.form in ("document", "file", "flag", "more", "protected", "scheme"):
                continue
            said, here = _value(values, blank.value), _at(body, blank.path.split("/"))
            if (said or None) != here:
                yield f"values.yaml: {blank.value} is {said!r}, in the manifests {here!r}"


def _template(part: str) -> str:
    image = "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
    installation = Installation("{{ .Release.Namespace }}", image)
    if part == "rbac":  # with every role that any installation has
        known = {**installation.configuration, "placement": {"defaultConstraints": [{}]}}
        installation = replace(installation, configuration=known, metrics_auth=True)
    if part == "monitoring":
        filled = {field: f"{{{{.Values.{name}}}}}" for field, name in BOUNDS.items()}
        installation = replace(installation, alert_bounds=Bounds(**filled))
    found = [each for each in objects(installation, [part]) if each["kind"] != "Namespace"]
    return HEAD + "".join(_document(each) for each in found)


def _document(body: dict[str, Any]) -> str:
    if body["kind"] == "CustomResourceDefinition":
        about = body["metadata"]
        about["annotations"] = {**about.get("annotations", {}), "helm.sh/resource-policy": "keep"}
    if body["kind"] == "Deployment":
        about = body["spec"]["template"]["metadata"]
        about["annotations"]["aliquot.dev/configuration"] = _DIGEST
    if body["kind"] == "PrometheusRule":
        body["spec"] = _escaped(body["spec"])
    for blank in _blanks(body):
        _put(body, blank.path.split("/"), f"@@{blank.form} .Values.{blank.value}@@")
    text = _MARKED.sub(_filled, manifests_as_yaml([body]))
    condition = _condition(body)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _escaped(body: Any) -> Any:
    """With what Prometheus fills in when an alert fires, which Helm must leave alone."""
    if isinstance(body, dict):
        return {key: _escaped(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_escaped(each) for each in body]
    return body.replace("{{ $", "{{`{{`}} $") if isinstance(body, str) else body


def _blanks(body: dict[str, Any]) -> Iterator[Blank]:
    component = _component(body)
    for each in BLANKS:
        if each.kind == body["kind"] and each.name in ("", body["metadata"]["name"]):
            value = each.value.replace("C.", f"{component}.", 1)
            yield replace(each, value=value)


def _condition(body: dict[str, Any]) -> str:
    """What must hold for an object to be there."""
    component, every = _component(body), []
    if body["kind"] == "CustomResourceDefinition":
        every += [
            ".Values.crds.install",
            f'(not (has "{body["metadata"]["name"]}" .Values.crds.except))',
        ]
    if component == "webhook":
        every.append(".Values.webhook.enabled")
    every += [condition for name, condition in OPTIONAL.items() if body["metadata"]["name"] == name]
    if body["metadata"]["name"] != CONFIGURATION or body["kind"] != "ConfigMap":
        every += [condition for kind, condition in WANTED.items() if kind == body["kind"]]
    if body["kind"] == "ServiceAccount":
        every.append(f".Values.{component}.serviceAccount.create")
    return f"and {' '.join(every)}" if len(every) > 1 else "".join(every)


def _component(body: dict[str, Any]) -> str:
    return str((body["metadata"].get("labels") or {}).get(COMPONENT, ""))


def _filled(found: re.Match[str]) -> str:
    """The template for a line that was marked."""
    indent, key, form, value = found.groups()
    deep = len(indent) + 2
    if form == "number":
        return f"{indent}{key}{{{{ {value} }}}}"
    if form == "scheme":
        return f'{indent}{key}{{{{ ternary "HTTPS" "HTTP" {value} }}}}'
    if form == "flag":
        flag = f"--{value.removeprefix('.Values.').replace('.', '-')}"
        return f"{indent}{{{{- if {value} }}}}\n{indent}{key}{flag}\n{indent}{{{{- end }}}}"
    if form == "text":
        return f"{indent}{key}{{{{ {value} | quote }}}}"
    if form == "file":
        name = value.removeprefix(".Values.")
        return f'{indent}{key}|\n{{{{ .Files.Get "{name}" | indent {deep} }}}}'
    if form == "protected":
        lines = yaml.safe_dump(monitoring.PROTECTED, sort_keys=False).splitlines()
        shown = "".join(f"{indent}{line}\n" for line in lines)
        return f"{indent}{{{{- if {value} }}}}\n{shown}{indent}{{{{- end }}}}"
    if form == "document":
        return f"{indent}{key}|\n{' ' * deep}{{{{- toYaml {value} | nindent {deep} }}}}"
    opening = "" if form == "more" else f"\n{indent}{key.rstrip()}"
    shown = f"{' ' * deep}{{{{- toYaml . | nindent {len(indent) if form == 'more' else deep} }}}}"
    return f"{indent}{{{{- with {value} }}}}{opening}\n{shown}\n{indent}{{{{- end }}}}"


def _at(body: Any, path: list[str]) -> Any:
    for step in path:
        body = body[int(step)] if isinstance(body, list) else body.get(step)
        if body is None:
            return None
    return body


def _put(body: Any, path: list[str], value: str) -> None:
    parent = _at(body, path[:-1])
    if path[-1] == "-":
        parent.append(value)
    elif isinstance(parent, list):
        parent[int(path[-1])] = value
    else:
        parent[path[-1]] = value


def _value(values: Any, name: str) -> Any:
    for step in name.split("."):
        values = values[step]
    return values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
