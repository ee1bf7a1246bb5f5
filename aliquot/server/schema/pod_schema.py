"""The schema of a pod: spec and status."""

from typing import Any

from aliquot.dialects.core.schema import (
    Schema,
    anything,
    conditions,
    flag,
    listed,
    long,
    mapped,
    moment,
    open_ended,
    quantities,
    record,
    text,
    whole,
)
from aliquot.server.schema.shared_shapes import SELECTOR, merged


def _of(properties: dict[str, Schema], **more: Any) -> Schema:
    return open_ended(record(properties, **more))


_RESOURCES = _of(
    {
        "requests": quantities("What is set aside for it."),
        "limits": quantities("What it may not go beyond."),
        "claims": listed(_of({"name": text(), "request": text()})),
    },
    description="What it asks for.",
)
_PORT = _of(
    {
        "name": text(),
        "containerPort": whole(),
        "hostPort": whole(),
        "protocol": text(),
        "hostIP": text(),
    }
)
_CONTAINER = _of(
    {
        "name": text("Its name in the pod."),
        "image": text("What it runs."),
        "command": listed(text()),
        "args": listed(text()),
        "workingDir": text(),
        "ports": merged(listed(_PORT), "containerPort"),
        "env": merged(
            listed(_of({"name": text(), "value": text(), "valueFrom": anything()})), "name"
        ),
        "envFrom": listed(anything()),
        "resources": _RESOURCES,
        "restartPolicy": text("Always makes an init container a sidecar."),
        "volumeMounts": merged(listed(_of({"name": text(), "mountPath": text()})), "mountPath"),
        "volumeDevices": merged(listed(_of({"name": text(), "devicePath": text()})), "devicePath"),
        "imagePullPolicy": text(),
        "livenessProbe": anything(),
        "readinessProbe": anything(),
        "startupProbe": anything(),
        "lifecycle": anything(),
        "securityContext": anything(),
        "stdin": flag(),
        "tty": flag(),
        "terminationMessagePath": text(),
        "terminationMessagePolicy": text(),
    }
)
_CONTAINERS = merged(listed(_CONTAINER, "What runs in it."), "name")
_TOLERATION = _of(
    {
        "key": text(),
        "operator": text(),
        "value": text(),
        "effect": text(),
        "tolerationSeconds": long(),
    }
)
_SPREAD = _of(
    {
        "maxSkew": whole(),
        "topologyKey": text(),
        "whenUnsatisfiable": text(),
        "labelSelector": SELECTOR,
        "minDomains": whole(),
    }
)
_NAMED = _of({"name": text()})

POD_SPEC = _of(
    {
        "containers": _CONTAINERS,
        "initContainers": merged(listed(_CONTAINER, "What runs before, or beside, them."), "name"),
        "ephemeralContainers": merged(listed(_CONTAINER), "name"),
        "volumes": merged(listed(_NAMED, "What they can mount."), "name", "merge,retainKeys"),
        "nodeName": text("Where it runs, once that is decided."),
        "nodeSelector": mapped(text(), "Labels that its node must have."),
        "affinity": anything("Where it must, and would rather, run."),
        "tolerations": listed(_TOLERATION, "Taints that do not keep it away."),
        "topologySpreadConstraints": merged(listed(_SPREAD), "topologyKey"),
        "schedulerName": text("Who decides where it runs."),
        "schedulingGates": merged(listed(_NAMED, "What it waits for."), "name"),
        "priority": whole("How important it is."),
        "priorityClassName": text("The name of how important it is."),
        "preemptionPolicy": text("PreemptLowerPriority or Never."),
        "overhead": quantities("What running it costs by itself."),
        "resources": _RESOURCES,
        "resourceClaims": merged(listed(_NAMED), "name", "merge,retainKeys"),
        "restartPolicy": text("Always, OnFailure or Never."),
        "terminationGracePeriodSeconds": long("How long it has to end."),
        "activeDeadlineSeconds": long("How long it may run."),
        "dnsPolicy": text(),
        "dnsConfig": anything(),
        "serviceAccountName": text(),
        "serviceAccount": text(),
        "automountServiceAccountToken": flag(),
        "securityContext": anything(),
        "imagePullSecrets": merged(listed(_NAMED), "name"),
        "hostAliases": merged(listed(_of({"ip": text(), "hostnames": listed(text())})), "ip"),
        "hostname": text(),
        "subdomain": text(),
        "hostNetwork": flag(),
        "hostPID": flag(),
        "hostIPC": flag(),
        "enableServiceLinks": flag(),
        "readinessGates": listed(_of({"conditionType": text()})),
        "runtimeClassName": text(),
        "shareProcessNamespace": flag(),
        "setHostnameAsFQDN": flag(),
        "os": anything(),
    },
    description="What is wanted.",
)

_STATE = _of(
    {
        "waiting": _of({"reason": text(), "message": text()}),
        "running": _of({"startedAt": moment()}),
        "terminated": _of(
            {
                "exitCode": whole(),
                "signal": whole(),
                "reason": text(),
                "message": text(),
                "startedAt": moment(),
                "finishedAt": moment(),
            }
        ),
    }
)
_CONTAINER_STATUS = _of(
    {
        "name": text(),
        "ready": flag(),
        "started": flag(),
        "restartCount": whole(),
        "image": text(),
        "imageID": text(),
        "containerID": text(),
        "state": _STATE,
        "lastState": _STATE,
        "allocatedResources": quantities(),
        "resources": _RESOURCES,
        "volumeMounts": merged(listed(anything()), "mountPath"),
        "allocatedResourcesStatus": merged(listed(anything()), "name"),
    }
)
_ADDRESS = _of({"ip": text()})

POD_STATUS = _of(
    {
        "phase": text("Pending, Running, Succeeded, Failed or Unknown."),
        "conditions": merged(conditions(), "type"),
        "message": text(),
        "reason": text(),
        "nominatedNodeName": text("Where room is being made for it."),
        "hostIP": text(),
        "hostIPs": merged(listed(_ADDRESS), "ip"),
        "podIP": text(),
        "podIPs": merged(listed(_ADDRESS), "ip"),
        "startTime": moment(),
        "initContainerStatuses": listed(_CONTAINER_STATUS),
        "containerStatuses": listed(_CONTAINER_STATUS),
        "ephemeralContainerStatuses": listed(_CONTAINER_STATUS),
        "qosClass": text(),
        "resize": text(),
        "resourceClaimStatuses": merged(listed(_NAMED), "name", "merge,retainKeys"),
    },
    description="How it is doing.",
)
