"""Kubernetes' own kinds: what is filled in, what is refused, what may not change."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from aliquot.server.rendering.tables import table
from aliquot.server.rules.core_rules import check_create, check_update, fill_defaults
from aliquot.server.rules.pod_defaults import merge_label_keys
from aliquot.server.schema.check import check, unknown
from aliquot.server.schema.core_schemas import schema
from tests.build import manifests

Body = dict[str, Any]


container = partial(manifests.container, image="train:1")
deployment = partial(manifests.deployment, "team/web")
job = partial(manifests.job, "j")


def pod_of(*containers: Body, **spec: Any) -> Body:
    """A pod of these containers, or of one."""
    return manifests.pod("team/a", **{"containers": list(containers or [container()]), **spec})


def definition(**spec: Any) -> Body:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
            **spec,
        },
    }


def webhooks(**more: Any) -> Body:
    hook = {
        "name": "quotas.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "s", "namespace": "n"}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "resources": ["pods"]}],
        **more,
    }
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"},
        "webhooks": [hook],
    }


def named(kind: str, **parts: Any) -> Body:
    return {"kind": kind, "metadata": {"name": "a", "namespace": "team"}, **parts}


def made(kind: str, body: Body) -> list[str]:
    given = deepcopy(body)
    causes = check_create(kind, fill_defaults(kind, body))
    assert body == given
    return [str(each) for each in causes]


def changed(kind: str, old: Body, new: Body) -> list[str]:
    causes = check_update(kind, fill_defaults(kind, old), fill_defaults(kind, new))
    return [str(each) for each in causes]


def test_a_pod_is_filled_in() -> None:
    body = pod_of(container(ports=[{"containerPort": 80}]), serviceAccountName="bot")
    filled = fill_defaults("Pod", body)
    assert filled["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "train:1",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "serviceAccountName": "bot",
        "serviceAccount": "bot",
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
    }
    assert filled["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_what_is_said_stays_as_it_is() -> None:
    body = pod_of(restartPolicy="Never", schedulerName="aliquot", terminationGracePeriodSeconds=0)
    spec = fill_defaults("Pod", body)["spec"]
    assert spec["restartPolicy"] == "Never"
    assert spec["schedulerName"] == "aliquot"
    assert spec["terminationGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("train", "Always"),
        ("train:latest", "Always"),
        ("host:5000/train", "Always"),
        ("host:5000/train:2", "IfNotPresent"),
        ("train@sha256:abc", "IfNotPresent"),
    ],
)
def test_an_image_that_may_have_changed_is_pulled(image: str, policy: str) -> None:
    filled = fill_defaults("Pod", pod_of(container(image=image)))
    assert filled["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_the_labels_that_match_label_keys_name_are_written_into_selectors_once() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["version", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    spread = {"topologyKey": "zone", "maxSkew": 1, "matchLabelKeys": ["version"]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pod = pod_of(
        affinity={"podAntiAffinity": {required: [term]}},
        topologySpreadConstraints=[{**spread, "labelSelector": {}}, spread],
    )
    pod["metadata"]["labels"] = {"version": "v1", "tenant": "t"}
    merge_label_keys(pod)
    version = {"key": "version", "operator": "In", "values": ["v1"]}
    tenant = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
    (merged,) = pod["spec"]["affinity"]["podAntiAffinity"][required]
    assert merged["labelSelector"]["matchExpressions"] == [version, tenant]
    first, second = pod["spec"]["topologySpreadConstraints"]
    assert first["labelSelector"] == {"matchExpressions": [version]}
    assert "labelSelector" not in second


def test_in_the_network_of_its_node_a_pod_asks_for_the_ports_of_its_containers() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 90, "hostPort": 90}]
    filled = fill_defaults("Pod", pod_of(container(ports=ports), hostNetwork=True))
    assert [each["hostPort"] for each in filled["spec"]["containers"][0]["ports"]] == [80, 90]


def test_a_pod_cannot_end_before_it_is_told_to() -> None:
    filled = fill_defaults("Pod", pod_of(terminationGracePeriodSeconds=-1))
    assert filled["spec"]["terminationGracePeriodSeconds"] == 1


def test_requests_come_from_limits_and_quantities_are_canonical() -> None:
    limits = {"cpu": 0.5, "nvidia.com/gpu": 1, "memory": "1024Mi"}
    filled = fill_defaults("Pod", pod_of(container(resources={"limits": limits})))
    (only,) = filled["spec"]["containers"]
    canonical = {"cpu": "500m", "nvidia.com/gpu": "1", "memory": "1Gi"}
    assert only["resources"] == {"limits": canonical, "requests": canonical}
    assert filled["status"]["qosClass"] == "Guaranteed"


def test_requests_that_are_given_stay() -> None:
    resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "1000m"}}
    filled = fill_defaults("Pod", pod_of(container(resources=resources)))
    assert filled["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert filled["status"]["qosClass"] == "Burstable"


def test_templates_do_not_take_requests_from_limits() -> None:
    body = job()
    body["spec"]["template"]["spec"]["containers"] = [container(resources={"limits": {"cpu": 1}})]
    filled = fill_defaults("Job", body)
    (only,) = filled["spec"]["template"]["spec"]["containers"]
    assert only["resources"] == {"limits": {"cpu": "1"}}


def test_null_is_as_good_as_absent() -> None:
    filled = fill_defaults("Pod", {**pod_of(restartPolicy=None), "status": None})
    assert filled["spec"]["restartPolicy"] == "Always"
    assert filled["status"]["phase"] == "Pending"


def test_what_clients_send_has_the_shape_of_its_kind() -> None:
    sent = pod_of(container(resources={"limits": {"cpu": 0.5, "memory": None}}), nodeName=None)
    sent["metadata"]["creationTimestamp"] = None
    shape = schema("Pod")
    assert shape is not None
    assert check(shape, {**sent, "status": None}) == []
    assert unknown(shape, {**sent, "mine": 1}) == ["mine"]
    assert check(shape, pod_of(container(resources={"limits": {"cpu": True}}))) != []


def test_a_deployment_is_filled_in() -> None:
    spec = fill_defaults("Deployment", deployment())["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert spec["revisionHistoryLimit"] == 10
    assert spec["progressDeadlineSeconds"] == 600
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert fill_defaults("Deployment", deployment(replicas=0))["spec"]["replicas"] == 0


def test_a_job_is_filled_in() -> None:
    spec = fill_defaults("Job", job())["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"]) == ("NonIndexed", False)
    assert "completions" not in fill_defaults("Job", job(parallelism=3))["spec"]
    assert fill_defaults("Job", job(completions=3))["spec"]["parallelism"] == 1


def test_a_namespace_is_filled_in() -> None:
    assert fill_defaults("Namespace", {"kind": "Namespace", "metadata": {"name": "team"}}) == {
        "kind": "Namespace",
        "metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}},
        "status": {"phase": "Active"},
    }


def test_a_node_may_give_what_it_has() -> None:
    filled = fill_defaults("Node", named("Node", status={"capacity": {"cpu": 8}}))
    assert filled["status"] == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}


def test_a_secret_keeps_text_as_data() -> None:
    filled = fill_defaults("Secret", named("Secret", stringData={"key": "value"}))
    assert filled["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in filled
    assert filled["type"] == "Opaque"


def test_a_webhook_is_filled_in() -> None:
    (hook,) = fill_defaults("ValidatingWebhookConfiguration", webhooks())["webhooks"]
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Fail", 10)
    assert hook["clientConfig"]["service"]["port"] == 443
    assert hook["rules"][0]["scope"] == "*"


def test_a_definition_is_filled_in() -> None:
    names = fill_defaults("CustomResourceDefinition", definition())["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("thing", "ThingList")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Pod", pod_of()),
        ("Pod", pod_of(container(resources={"limits": {"nvidia.com/gpu": 1}}))),
        ("Pod", pod_of(tolerations=[{"operator": "Exists"}], nodeSelector={"zone": "a"})),
        ("Pod", pod_of(schedulingGates=[{"name": "example.com/wait"}])),
        ("Deployment", deployment()),
        ("Job", job()),
        ("Namespace", {"metadata": {"name": "team"}}),
        ("Node", named("Node", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})),
        ("ConfigMap", named("ConfigMap", data={"a.b-c_D": ""})),
        ("Secret", named("Secret", data={"a": "dmFsdWU="})),
        ("PriorityClass", {"metadata": {"name": "high"}, "value": 1_000_000_000}),
        ("PriorityClass", {"metadata": {"name": "low"}, "value": -5}),
        ("PodDisruptionBudget", named("PDB", spec={"minAvailable": "50%", "selector": {}})),
        ("ResourceQuota", named("RQ", spec={"hard": {"volcano.sh/namespace.weight": "3"}})),
        ("Lease", named("Lease", spec={"holderIdentity": "", "leaseDurationSeconds": 1})),
        ("CustomResourceDefinition", definition()),
        ("ValidatingWebhookConfiguration", webhooks()),
        ("Event", named("Event", involvedObject={"namespace": "team"})),
        ("Queue.scheduling.volcano.sh", {"metadata": {"name": "q"}, "spec": {"anything": 1}}),
    ],
)
def test_what_is_fine(kind: str, body: Body) -> None:
    assert made(kind, body) == []


LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("Pod", {"metadata": {}}, "metadata.name: Required value: name or generateName is req"),
        ("Pod", {"metadata": {"name": "A_b"}}, 'metadata.name: Invalid value: "A_b": a lowercase'),
        ("Pod", {"metadata": {"name": "a" * 254}}, "must be no more than 253 characters"),
        ("Namespace", {"metadata": {"name": "a.b"}}, f'Invalid value: "a.b": {LABEL}'),
        (
            "Pod",
            {"metadata": {"name": "a", "labels": {"-": "b"}}},
            'metadata.labels: Invalid value: "-": name part must consist',
        ),
        (
            "Pod",
            {"metadata": {"name": "a", "labels": {"x": "b c"}}},
            'metadata.labels: Invalid value: "b c": a valid label must be',
        ),
        (
            "Pod",
            {"metadata": {"name": "a", "labels": {"x": True}}},
            'Invalid value: "boolean": metadata.labels.x in body must be of type string',
        ),
        (
            "ConfigMap",
            {"metadata": {"name": "a", "annotations": {"x": "y" * 300_000}}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            "ConfigMap",
            {"metadata": {"name": "a", "ownerReferences": [{"kind": "Pod"}]}},
            'metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
        ),
        ("Pod", {"metadata": {"name": "a"}}, "spec.containers: Required value"),
        ("Pod", pod_of({"name": "x"}), "spec.containers[0].image: Required value"),
        ("Pod", pod_of({"image": "x"}), "spec.containers[0].name: Required value"),
        (
            "Pod",
            pod_of(container(), container()),
            'spec.containers[1].name: Duplicate value: "main"',
        ),
        (
            "Pod",
            pod_of(initContainers=[container()]),
            'spec.containers[0].name: Duplicate value: "main"',
        ),
        (
            "Pod",
            pod_of(container(name="A")),
            f'spec.containers[0].name: Invalid value: "A": {LABEL}',
        ),
        (
            "Pod",
            pod_of(restartPolicy="Sometimes"),
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"',
        ),
        (
            "Pod",
            pod_of(container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
            "equal to cpu limit of 1",
        ),
        (
            "Pod",
            pod_of(container(resources={"requests": {"nvidia.com/gpu": 1}})),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non "
            "overcommitable resources",
        ),
        (
            "Pod",
            pod_of(
                container(
                    resources={
                        "requests": {"nvidia.com/gpu": 1},
                        "limits": {"nvidia.com/gpu": 2},
                    }
                )
            ),
            'Invalid value: "1": must be equal to nvidia.com/gpu limit of 2',
        ),
        (
            "Pod",
            pod_of(container(resources={"limits": {"nvidia.com/gpu": "500m"}})),
            "spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "
            '"500m": must be an integer',
        ),
        (
            "Pod",
            pod_of(container(resources={"limits": {"cpu": "-1"}})),
            'limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            "Pod",
            pod_of(container(resources={"limits": {"gpus": "1"}})),
            'Invalid value: "gpus": must be a standard resource for containers',
        ),
        (
            "Pod",
            pod_of(container(resources={"limits": {"cpu": "lots"}})),
            "spec.containers[0].resources.limits.cpu in body should match",
        ),
        (
            "Pod",
            pod_of(container(volumeMounts=[{"name": "v", "mountPath": "/v"}])),
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            "Pod",
            pod_of(schedulingGates=[{"name": "wait"}], nodeName="n1"),
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        ("Pod", pod_of(activeDeadlineSeconds=0), "must be between 1 and 2147483647, inclusive"),
        ("Pod", pod_of(nodeSelector={"a b": "c"}), 'spec.nodeSelector: Invalid value: "a b"'),
        (
            "Pod",
            pod_of(tolerations=[{"value": "x"}]),
            "spec.tolerations[0].operator: Invalid value: "
            '"Equal": operator must be Exists when `key` is empty',
        ),
        (
            "Pod",
            pod_of(tolerations=[{"key": "a", "effect": "Never"}]),
            'spec.tolerations[0].effect: Unsupported value: "Never"',
        ),
        ("Pod", {"metadata": {"name": "a"}, "spec": []}, 'must be of type object: "array"'),
        ("Pod", {"metadata": []}, 'metadata in body must be of type object: "array"'),
        ("Pod", pod_of(priority="high"), "spec.priority in body must be of type integer"),
        ("Deployment", deployment(selector=None), "spec.selector: Required value"),
        (
            "Deployment",
            deployment(selector={}),
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            "Deployment",
            deployment(selector={"matchLabels": {"app": "db"}}),
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not '
            "match template `labels`",
        ),
        ("Deployment", deployment(replicas=-1), "spec.replicas: Invalid value: -1: must be great"),
        ("Deployment", deployment(replicas="3"), "spec.replicas in body must be of type integer"),
        (
            "Deployment",
            deployment(strategy={"type": "Slowly"}),
            'spec.strategy.type: Unsupported value: "Slowly"',
        ),
        (
            "ReplicaSet",
            deployment(template={**deployment()["spec"]["template"], "spec": {}}),
            "spec.template.spec.containers: Required value",
        ),
        (
            "Job",
            job(template={"spec": {"containers": [container()]}}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        ("Job", job(parallelism=-1), "spec.parallelism: Invalid value: -1"),
        ("Job", job(completionMode="Indexed", parallelism=2), "spec.completions: Required value"),
        (
            "Node",
            named("Node", spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
            'spec.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}',
        ),
        ("Node", named("N", spec={"taints": [{"key": "a"}]}), "spec.taints[0].effect: Required"),
        ("ConfigMap", named("C", data={"a b": ""}), 'data[a b]: Invalid value: "a b": a valid con'),
        ("Secret", named("S", data={"a": "not base64!"}), "data[a]: Invalid value: "),
        (
            "PriorityClass",
            {"metadata": {"name": "high"}, "value": 1_000_000_001},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "PriorityClass",
            {"metadata": {"name": "system-mine"}, "value": 1},
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved",
        ),
        (
            "PodDisruptionBudget",
            named("P", spec={"minAvailable": 1, "maxUnavailable": 1}),
            "spec: Invalid value: "
            '{"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be',
        ),
        (
            "PodDisruptionBudget",
            named("P", spec={"minAvailable": "half"}),
            'spec.minAvailable: Invalid value: "half": a valid percent string',
        ),
        (
            "PodDisruptionBudget",
            named("P", spec={"minAvailable": "101%"}),
            "must not be greater than 100%",
        ),
        (
            "PodDisruptionBudget",
            named("P", spec={"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}),
            '"?" is not a valid label selector operator',
        ),
        (
            "ResourceQuota",
            named("R", spec={"hard": {"cpu": "-1"}}),
            'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            "Lease",
            named("L", spec={"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "Event",
            named("E", involvedObject={"namespace": "other"}),
            'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
        ),
        (
            "CustomResourceDefinition",
            definition(group="example.org"),
            'metadata.name: Invalid value: "things.example.com": must be spec.names.plural+"."',
        ),
        ("CustomResourceDefinition", definition(scope="World"), "spec.scope: Unsupported value"),
        (
            "CustomResourceDefinition",
            definition(versions=[{"name": "v1", "storage": True}]),
            "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
        ),
        (
            "CustomResourceDefinition",
            definition(versions=[]),
            "must have exactly one version marked as storage version",
        ),
        (
            "ValidatingWebhookConfiguration",
            webhooks(name="short"),
            "webhooks[0].name: Invalid value: "
            '"short": should be a domain with at least three segments',
        ),
        (
            "ValidatingWebhookConfiguration",
            webhooks(sideEffects=None),
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            "ValidatingWebhookConfiguration",
            webhooks(clientConfig={}),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            "ValidatingWebhookConfiguration",
            webhooks(timeoutSeconds=31),
            "the timeout value must be between 1 and 30 seconds",
        ),
        (
            "Queue.scheduling.volcano.sh",
            {"metadata": {"name": "Q!"}},
            'metadata.name: Invalid value: "Q!"',
        ),
    ],
)
def test_what_is_refused(kind: str, body: Body, words: str) -> None:
    assert any(words in each for each in made(kind, body)), made(kind, body)


ODD: list[Any] = [None, -1, "x y", [], {}, True, [None], [{}], {"a": 1}, {"a": {"b": None}}]
STATUS = {
    "name": "init",
    "state": {"terminated": {"exitCode": 1, "reason": "Error"}, "waiting": {"reason": "x"}},
    "lastState": {"terminated": {"finishedAt": "2024-05-01T12:00:00Z"}},
    "restartCount": 1,
}
WHOLE: dict[str, Body] = {
    "Pod": pod_of(
        container(
            env=[{"name": "A"}],
            ports=[{"containerPort": 1}],
            resources={"limits": {"cpu": "1", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}},
            volumeMounts=[{"name": "v", "mountPath": "/"}],
        ),
        initContainers=[container(name="init", restartPolicy="Always")],
        volumes=[{"name": "v"}],
        tolerations=[{"key": "a", "operator": "Exists"}],
        nodeSelector={"a": "b"},
        affinity={"nodeAffinity": {"x": []}},
        schedulingGates=[{"name": "g"}],
        activeDeadlineSeconds=5,
        overhead={"cpu": "1"},
        readinessGates=[{"conditionType": "x"}],
    )
    | {
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": "1.2.3.4"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [STATUS],
            "initContainerStatuses": [STATUS],
        }
    },
    "Deployment": deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
    "Job": job(completions=1, parallelism=1, selector={"matchLabels": {"a": "b"}}),
    "Node": named(
        "Node",
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}], "providerID": "x"},
        status={
            "capacity": {"cpu": 1},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
            "nodeInfo": {"kernelVersion": "6"},
        },
    ),
    "Namespace": {"metadata": {"name": "a", "labels": {"a": "b"}}, "status": {"phase": "Active"}},
    "Secret": named("Secret", data={"a": "YQ=="}, stringData={"b": "c"}, immutable=True),
    "ConfigMap": named("ConfigMap", data={"a": "b"}, binaryData={"c": "ZA=="}),
    "PodDisruptionBudget": named(
        "P", spec={"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a"}]}}
    ),
    "ResourceQuota": named("R", spec={"hard": {"cpu": 1}}, status={"hard": {"cpu": "1"}}),
    "Lease": named("L", spec={"leaseDurationSeconds": 1, "leaseTransitions": 1}),
    "PriorityClass": named("P", value=1, preemptionPolicy="Never"),
    "Event": named("E", involvedObject={"kind": "Pod", "namespace": "team"}, series={"count": 1}),
    "CustomResourceDefinition": definition(),
    "ValidatingWebhookConfiguration": webhooks(),
}


def twisted(value: Any) -> Iterator[Any]:
    """The same with one thing in it, at any depth, turned into something odd."""
    yield from ODD
    if isinstance(value, dict):
        for key, each in value.items():
            yield from ({**value, key: odd} for odd in twisted(each))
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from ([*value[:index], odd, *value[index + 1 :]] for odd in twisted(each))


@pytest.mark.parametrize("kind", WHOLE)
def test_nothing_odd_is_too_much_for_the_rules(kind: str) -> None:
    good = fill_defaults(kind, WHOLE[kind])
    for odd in twisted(WHOLE[kind]):
        if not isinstance(odd, dict):
            continue
        filled = fill_defaults(kind, odd)
        causes = check_create(kind, filled)
        check_create(kind, odd)
        check_update(kind, good, filled)
        if not causes:
            table(kind, [filled], datetime(2024, 5, 1, tzinfo=UTC))


def with_labels(body: Body, **labels: str) -> Body:
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("Pod", pod_of(), pod_of()),
        ("Pod", pod_of(), with_labels(pod_of(), a="b")),
        ("Pod", pod_of(), pod_of(container(image="train:2"))),
        ("Pod", pod_of(), pod_of(activeDeadlineSeconds=5)),
        ("Pod", pod_of(activeDeadlineSeconds=5), pod_of(activeDeadlineSeconds=4)),
        ("Pod", pod_of(), pod_of(tolerations=[{"key": "a", "operator": "Exists"}])),
        (
            "Pod",
            pod_of(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}]),
            pod_of(
                tolerations=[
                    {
                        "key": "a",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 3,
                    }
                ]
            ),
        ),
        (
            "Pod",
            pod_of(schedulingGates=[{"name": "a"}, {"name": "b"}]),
            pod_of(schedulingGates=[{"name": "b"}]),
        ),
        ("Pod", pod_of(schedulingGates=[{"name": "a"}]), pod_of()),
        (
            "Pod",
            pod_of(schedulingGates=[{"name": "a"}]),
            pod_of(schedulingGates=[{"name": "a"}], nodeSelector={"zone": "a"}),
        ),
        ("Deployment", deployment(), deployment(replicas=5)),
        ("Job", job(), job(parallelism=3, completions=1)),
        ("Job", job(suspend=True), job(suspend=False)),
        ("ConfigMap", named("C", data={"a": "1"}), named("C", data={"a": "2"}, immutable=True)),
        ("Node", named("N"), named("N", spec={"providerID": "x"})),
        ("PriorityClass", named("P", value=1), named("P", value=1, description="d")),
        ("CustomResourceDefinition", definition(), definition()),
    ],
)
def test_what_may_change(kind: str, old: Body, new: Body) -> None:
    assert changed(kind, old, new) == []


def going(body: Body, *finalizers: str) -> Body:
    metadata = {**body["metadata"], "deletionTimestamp": "2024-05-01T12:00:00Z"}
    return {**body, "metadata": {**metadata, "finalizers": list(finalizers)}}


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        (
            "Pod",
            {**pod_of(), "metadata": {"name": "a", "uid": "1"}},
            {**pod_of(), "metadata": {"name": "a", "uid": "2"}},
            'metadata.uid: Invalid value: "2": field is immutable',
        ),
        (
            "Pod",
            pod_of(),
            {**pod_of(), "metadata": {"name": "b", "namespace": "team"}},
            'metadata.name: Invalid value: "b": field is immutable',
        ),
        (
            "Pod",
            going(pod_of(), "a.b/c"),
            going(pod_of(), "a.b/c", "d.e/f"),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
            'being deleted, found new finalizers []string{"d.e/f"}',
        ),
        (
            "Pod",
            pod_of(),
            pod_of(nodeName="n1"),
            "spec: Forbidden: pod updates may not change fields",
        ),
        ("Pod", pod_of(), pod_of(priority=5), "spec: Forbidden: pod updates may not change fields"),
        (
            "Pod",
            pod_of(),
            pod_of(container(resources={"limits": {"cpu": 1}})),
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].im",
        ),
        (
            "Pod",
            pod_of(),
            pod_of(container(), container(name="b")),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            "Pod",
            pod_of(activeDeadlineSeconds=5),
            pod_of(activeDeadlineSeconds=6),
            "must be less than or equal to previous value",
        ),
        (
            "Pod",
            pod_of(activeDeadlineSeconds=5),
            pod_of(),
            "must not update from a positive integer to nil value",
        ),
        (
            "Pod",
            pod_of(tolerations=[{"key": "a", "operator": "Exists"}]),
            pod_of(),
            "spec.tolerations: Forbidden: existing toleration can not be modified",
        ),
        (
            "Pod",
            pod_of(),
            pod_of(schedulingGates=[{"name": "a"}]),
            "spec.schedulingGates[0]: Forbidden: only deletion is allowed, but found new "
            "scheduling gate 'a'",
        ),
        (
            "Pod",
            pod_of(schedulingGates=[{"name": "a"}], nodeSelector={"zone": "a"}),
            pod_of(schedulingGates=[{"name": "a"}]),
            "only additions to spec.nodeSelector are allowed",
        ),
        ("Pod", pod_of(), pod_of(nodeSelector={"zone": "a"}), "pod updates may not change fields"),
        (
            "Deployment",
            deployment(),
            deployment(
                selector={"matchLabels": {"app": "db"}},
                template={
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [container()]},
                },
            ),
            'spec.selector: Invalid value: {"matchLabels":{"app":"db"}}: field is immutable',
        ),
        ("Job", job(), job(completions=2, parallelism=1), "spec.completions: Invalid value: 2: "),
        (
            "PriorityClass",
            named("P", value=1),
            named("P", value=2),
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            "ConfigMap",
            named("C", data={"a": "1"}, immutable=True),
            named("C", data={"a": "2"}, immutable=True),
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "Secret",
            named("C", immutable=True),
            named("C"),
            "immutable: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "Secret",
            named("C"),
            named("C", type="kubernetes.io/tls"),
            'type: Invalid value: "kubernetes.io/tls": field is immutable',
        ),
        (
            "Node",
            named("N", spec={"providerID": "x"}),
            named("N", spec={"providerID": "y"}),
            "spec.providerID: Forbidden",
        ),
        (
            "CustomResourceDefinition",
            definition(),
            definition(scope="Cluster"),
            'spec.scope: Invalid value: "Cluster": field is immutable',
        ),
        (
            "CustomResourceDefinition",
            definition(),
            definition(names={"plural": "things", "kind": "Other"}),
            'spec.names.kind: Invalid value: "Other": field is immutable',
        ),
        ("Pod", pod_of(), pod_of(restartPolicy="Maybe"), 'Unsupported value: "Maybe"'),
        (
            "Pod",
            pod_of(),
            {**pod_of(), "spec": 3},
            'spec in body must be of type object: "integer"',
        ),
    ],
)
def test_what_may_not_change(kind: str, old: Body, new: Body, words: str) -> None:
    assert any(words in each for each in changed(kind, old, new)), changed(kind, old, new)
