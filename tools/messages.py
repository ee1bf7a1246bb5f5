"""Writes the table of protobuf messages anew, from a checkout of Kubernetes: a maintainer's tool.

kubectl sends the objects of Kubernetes' own kinds as protobuf. The server only reads it, and needs
nothing but the numbers and names of fields: `python tools/messages.py CHECKOUT`.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

_ROOTS = {
    "v1": (
        "core.v1",
        "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume "
        "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service "
        "ServiceAccount",
    ),
    "apps/v1": ("apps.v1", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"),
    "authentication.k8s.io/v1": ("authentication.v1", "SelfSubjectReview TokenReview"),
    "authorization.k8s.io/v1": (
        "authorization.v1",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
        "SubjectAccessReview",
    ),
    "autoscaling/v1": ("autoscaling.v1", "Scale"),
    "autoscaling/v2": ("autoscaling.v2", "HorizontalPodAutoscaler"),
    "batch/v1": ("batch.v1", "CronJob Job"),
    "coordination.k8s.io/v1": ("coordination.v1", "Lease"),
    "discovery.k8s.io/v1": ("discovery.v1", "EndpointSlice"),
    "events.k8s.io/v1": ("events.v1", "Event"),
    "networking.k8s.io/v1": ("networking.v1", "Ingress IngressClass NetworkPolicy"),
    "node.k8s.io/v1": ("node.v1", "RuntimeClass"),
    "policy/v1": ("policy.v1", "Eviction PodDisruptionBudget"),
    "rbac.authorization.k8s.io/v1": (
        "rbac.v1",
        "ClusterRole ClusterRoleBinding Role RoleBinding",
    ),
    "scheduling.k8s.io/v1": ("scheduling.v1", "PriorityClass"),
    "storage.k8s.io/v1": (
        "storage.v1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    ),
    "admissionregistration.k8s.io/v1": (
        "admissionregistration.v1",
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    ),
}
_META = "apimachinery.pkg.apis.meta.v1"
_OPENED = {"Time", "MicroTime", "Quantity", "IntOrString", "RawExtension", "FieldsV1"}
_FIELD = re.compile(
    r"^\s*(optional |repeated )?(map<string, ?([.\w]+)>|[.\w]+) (\w+) = (\d+)", re.MULTILINE
)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r'json:",inline"[^`]*protobuf:"bytes,\d+,opt,name=(\w+)')
_POINTER = re.compile(r'^\s+\w+\s+\*[^`]*`[^`]*protobuf:"[^"]*name=(\w+)', re.MULTILINE)
_NAMED = re.compile(r'json:"(\w+)[^`]*protobuf:"[^"]*name=(\w+)')
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def main(checkout: Path) -> None:
    """Read the protos and write the messages that can be reached."""
    messages = {}
    for proto in checkout.glob("staging/src/k8s.io/api*/**/generated.proto"):
        package = str(proto.parent.relative_to(checkout / "staging/src/k8s.io")).replace("/", ".")
        inline, pointers, names = (
            _tagged(proto.parent, each) for each in (_INLINE, _POINTER, _NAMED)
        )
        for name, text in _MESSAGE.findall(proto.read_text()):
            fields = _fields(package, text, inline.get(name, set()), pointers.get(name, set()))
            in_json = {said: word for word, said in names.get(name, ())}
            messages[f"{package}.{name}"] = {
                number: (in_json.get(field, field), kind, how)
                for number, (field, kind, how) in fields.items()
            }
    roots, wanted = {}, []
    for api_version, (package, names) in _ROOTS.items():
        for name in names.split():
            roots[f"{api_version} {name}"] = f"api.{package}.{name}"
    roots["DeleteOptions"] = f"{_META}.DeleteOptions"
    reached, wanted = {}, list(roots.values())
    while wanted:
        name = wanted.pop()
        if name not in reached and name in messages:
            reached[name] = messages[name]
            wanted += [kind for _, kind, _ in messages[name].values()]
    short = _short_names(reached)
    table = {
        "roots": {key: short[name] for key, name in roots.items()},
        "messages": {
            short[name]: {
                number: [field, short.get(kind, kind.rpartition(".")[2]), how]
                for number, (field, kind, how) in fields.items()
            }
            for name, fields in sorted(reached.items())
        },
    }
    file = Path(__file__).parent.parent / "aliquot/server/schema/messages.json"
    file.write_text(json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n")


def _fields(
    package: str, text: str, inline: set[str], pointers: set[str]
) -> dict[str, tuple[str, str, str]]:
    found = {}
    for rule, kind, of_map, name, number in _FIELD.findall(text):
        how = "map" if of_map else rule.strip().replace("optional", "")
        how = "pointer" if name in pointers and not how else how
        said = of_map or kind
        if said.startswith(".k8s.io."):
            said = said.removeprefix(".k8s.io.")
        elif said[0].isupper():
            said = f"{package}.{said}"
        if said.rpartition(".")[2] in _OPENED:
            said = said.rpartition(".")[2]
        found[number] = (name, said, "inline" if name in inline else how)
    return found


def _tagged(folder: Path, pattern: re.Pattern[str]) -> dict[str, set[Any]]:
    return {
        name: set(pattern.findall(text))
        for file in folder.glob("*types*.go")
        for name, text in _STRUCT.findall(file.read_text())
    }


def _short_names(names: dict[str, object]) -> dict[str, str]:
    count: dict[str, int] = {}
    for name in names:
        last = name.rpartition(".")[2]
        count[last] = count.get(last, 0) + 1
    return {
        name: last
        if count[last := name.rpartition(".")[2]] == 1
        else ".".join(name.split(".")[-3:])
        for name in names
    }


main(Path(sys.argv[1]))
