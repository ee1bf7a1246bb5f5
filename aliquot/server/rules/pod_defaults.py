"""The defaults of pods and pod templates, as kube-apiserver fills them in."""

from typing import Any

from aliquot.json import Body

_DURING = "DuringSchedulingIgnoredDuringExecution"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def fill_pod(body: Body) -> None:
    """A pod: its spec, requests from limits, phase and QoS class."""
    spec = part(body, "spec")
    fill_pod_spec(spec)
    set_missing(spec, enableServiceLinks=True)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in _containers(spec, _CONTAINERS[:2]):
        _requests_from_limits(container)
        for port in container.get("ports", ()) if spec.get("hostNetwork") else ():
            port["hostPort"] = port.get("hostPort") or port.get("containerPort", 0)
    status = part(body, "status")
    set_missing(status, phase="Pending", qosClass=_qos_class(spec))


def fill_pod_spec(spec: Body) -> None:
    """The spec of a pod or a template."""
    set_missing(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
        securityContext={},
    )
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _containers(spec, _CONTAINERS):
        _container(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def merge_label_keys(body: Body) -> None:
    """Write what `matchLabelKeys` of a new pod mean, by its labels, into the selectors beside them.

    Those of its affinity to pods and of its topology spread; once, when it is created.
    """
    labels, spec = body["metadata"].get("labels") or {}, body.get("spec") or {}
    affinity = spec.get("affinity") or {}
    for word in ("podAffinity", "podAntiAffinity"):
        side = affinity.get(word) or {}
        for term in side.get(f"required{_DURING}") or ():
            _merge(term, labels)
        for weighted in side.get(f"preferred{_DURING}") or ():
            _merge(weighted.get("podAffinityTerm") or {}, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, labels)


def _merge(term: Body, labels: Body) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for word, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(word) or ():
            if key in labels:
                merged = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(merged)


def _container(container: Body) -> None:
    set_missing(
        container,
        imagePullPolicy=_pull_policy(container.get("image", "")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
    )
    for port in container.get("ports", ()):
        set_missing(port, protocol="TCP")
    for word in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(word), dict):
            _probe(container[word])
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        field = source.get("fieldRef") if isinstance(source, dict) else None
        if isinstance(field, dict):
            set_missing(field, apiVersion="v1")


def _probe(probe: Body) -> None:
    set_missing(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if isinstance(probe.get("httpGet"), dict):
        set_missing(probe["httpGet"], path="/", scheme="HTTP")


def _volume(volume: Body) -> None:
    """The default mode of projected files: 0644."""
    for word in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(word), dict):
            set_missing(volume[word], defaultMode=0o644)


def _pull_policy(image: str) -> str:
    """Always without a tag or with the tag latest, since such an image may change."""
    name = image.rpartition("/")[2]
    tag = "" if "@" in name else (name.partition(":")[2] or "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _requests_from_limits(container: Body) -> None:
    resources = container["resources"]
    for name, limit in resources.get("limits", {}).items():
        part(resources, "requests").setdefault(name, limit)


def _qos_class(spec: Body) -> str:
    """The QoS class: Guaranteed if all containers have cpu and memory limits equal to requests."""
    found = [_amounts(each) for each in _containers(spec, _CONTAINERS[:2])]
    if not any(requests or limits for requests, limits in found):
        return "BestEffort"
    names = {"cpu", "memory"}
    guaranteed = all(limits.keys() == names and limits == requests for requests, limits in found)
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(container: Body) -> tuple[Body, Body]:
    """The requests and limits that decide on the QoS class: cpu and memory."""
    named = [container["resources"].get(word, {}) for word in ("requests", "limits")]
    requests, limits = (
        {name: each[name] for name in ("cpu", "memory") if each.get(name, "0") != "0"}
        for each in named
    )
    return requests, limits


def _containers(spec: Body, names: tuple[str, ...]) -> list[Body]:
    return [each for name in names for each in spec.get(name, ())]


def part(holder: Body, name: str) -> Body:
    """The object in a field, made if it is missing; an unused one if the field holds no object."""
    found = holder.setdefault(name, {})
    return found if isinstance(found, dict) else {}


def set_missing(holder: Body, **defaults: Any) -> None:
    """Set every field that is absent or empty text to its default."""
    for name, value in defaults.items():
        if holder.get(name, "") == "":
            holder[name] = value
