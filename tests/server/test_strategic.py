"""Strategic merge patches: lists by their keys, and what the directives do."""

from copy import deepcopy
from typing import Any

import pytest

from aliquot.errors import PatchError, UnsupportedPatchError
from aliquot.server.patch.merge import strategic_merge_patch

Body = dict[str, Any]


def patched(kind: str, body: Body, patch: Any) -> Body:
    given = deepcopy((body, patch))
    result = strategic_merge_patch(body, patch, kind)
    assert (body, patch) == given
    return result


def spec(kind: str, old: Body, patch: Body) -> Any:
    return patched(kind, {"spec": old}, {"spec": patch})["spec"]


def test_fields_are_merged_and_null_takes_away() -> None:
    body = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"nodeName": "n"}}
    patch = {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": None}
    assert patched("Pod", body, patch) == {"metadata": {"labels": {"b": "2", "c": "3"}}}


def test_containers_are_merged_by_name() -> None:
    old = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}
    patch = {"containers": [{"name": "b", "image": "3"}]}
    assert spec("Pod", old, patch)["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "3"},
    ]


def test_a_new_item_comes_first_as_kubernetes_has_it() -> None:
    old = {"containers": [{"name": "a"}]}
    assert spec("Pod", old, {"containers": [{"name": "b", "image": "2", "command": None}]}) == {
        "containers": [{"name": "b", "image": "2"}, {"name": "a"}]
    }


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("initContainers", "name"),
        ("ephemeralContainers", "name"),
        ("volumes", "name"),
        ("imagePullSecrets", "name"),
        ("hostAliases", "ip"),
        ("topologySpreadConstraints", "topologyKey"),
        ("resourceClaims", "name"),
        ("schedulingGates", "name"),
    ],
)
def test_lists_of_a_pod_and_their_keys(field: str, key: str) -> None:
    old = {field: [{key: "a", "x": 1}, {key: "b", "x": 2}]}
    assert spec("Pod", old, {field: [{key: "a", "y": 3}]}) == {
        field: [{key: "a", "x": 1, "y": 3}, {key: "b", "x": 2}]
    }


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("env", "name"),
        ("ports", "containerPort"),
        ("volumeMounts", "mountPath"),
        ("volumeDevices", "devicePath"),
    ],
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job"])
def test_lists_of_a_container_and_their_keys(kind: str, field: str, key: str) -> None:
    def wrapped(items: Any) -> Body:
        containers = {"containers": [{"name": "c", field: items}]}
        return containers if kind == "Pod" else {"template": {"spec": containers}}

    old = wrapped([{key: 1, "x": 1}, {key: 2, "x": 2}])
    assert spec(kind, old, wrapped([{key: 2, "x": 3}])) == wrapped(
        [{key: 1, "x": 1}, {key: 2, "x": 3}]
    )


@pytest.mark.parametrize(
    ("kind", "field"), [("Pod", "tolerations"), ("Node", "taints"), ("Pod", "readinessGates")]
)
def test_lists_that_are_replaced(kind: str, field: str) -> None:
    old = {field: [{"key": "a"}, {"key": "b"}]}
    assert spec(kind, old, {field: [{"key": "c", "value": None}]}) == {field: [{"key": "c"}]}


def test_conditions_are_merged_by_type() -> None:
    for kind in ("Pod", "Node", "Deployment", "Job", "Namespace", "PodDisruptionBudget"):
        body = {"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]}}
        patch = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
        assert patched(kind, body, patch)["status"]["conditions"] == [
            {"type": "A", "status": "True"},
            {"type": "B"},
        ]


def test_ports_of_a_service_are_merged_by_port() -> None:
    old = {"ports": [{"port": 80, "name": "a"}]}
    assert spec("Service", old, {"ports": [{"port": 80, "protocol": "TCP"}]}) == {
        "ports": [{"port": 80, "name": "a", "protocol": "TCP"}]
    }


def test_owners_by_uid_and_finalizers_as_a_set() -> None:
    body = {"metadata": {"ownerReferences": [{"uid": "1"}], "finalizers": ["a", "b"]}}
    patch = {"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}], "finalizers": ["b", "c"]}}
    assert patched("ConfigMap", body, patch)["metadata"] == {
        "ownerReferences": [{"uid": "1", "name": "x"}],
        "finalizers": ["a", "b", "c"],
    }


def test_the_selector_of_a_budget_is_replaced() -> None:
    old = {"selector": {"matchLabels": {"a": "1"}}}
    assert spec("PodDisruptionBudget", old, {"selector": {"matchLabels": {"b": "2"}}}) == {
        "selector": {"matchLabels": {"b": "2"}}
    }


def test_an_item_is_deleted() -> None:
    old = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": "2"}]}
    assert spec("Pod", old, patch) == {"containers": [{"name": "b", "image": "2"}]}


def test_deleting_what_is_not_there_is_fine() -> None:
    patch = {"containers": [{"name": "z", "$patch": "delete"}]}
    assert spec("Pod", {"containers": [{"name": "a"}]}, patch) == {"containers": [{"name": "a"}]}
    assert spec("Pod", {}, patch) == {"containers": []}


def test_a_list_is_replaced() -> None:
    old = {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}
    patch = {"containers": [{"name": "a"}, {"$patch": "replace"}]}
    assert spec("Pod", old, patch) == {"containers": [{"name": "a"}]}
    assert spec("Pod", old, {"containers": [{"$patch": "replace"}]}) == {"containers": []}


def test_an_object_is_replaced_or_emptied() -> None:
    old = {"nodeSelector": {"a": "1"}}
    replaced = {"nodeSelector": {"$patch": "replace", "b": "2", "c": None}}
    assert spec("Pod", old, replaced) == {"nodeSelector": {"b": "2"}}
    assert spec("Pod", old, {"nodeSelector": {"$patch": "delete"}}) == {"nodeSelector": {}}


def test_only_some_keys_are_retained() -> None:
    old = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert spec("Deployment", old, patch) == {"strategy": {"type": "Recreate"}}


def test_a_volume_that_becomes_another_sort() -> None:
    old = {"volumes": [{"name": "v", "emptyDir": {}}]}
    item = {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/"}}
    assert spec("Pod", old, {"volumes": [item]}) == {
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}]
    }


def test_plain_values_are_deleted_from_a_list() -> None:
    body = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}}
    assert patched("Pod", body, patch) == {"metadata": {"finalizers": ["a", "c"]}}
    both = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["d"]}}
    kept = patched("Pod", body, both)["metadata"]["finalizers"]
    assert sorted(kept) == ["b", "c", "d"]
    assert patched("Pod", {"metadata": {}}, patch) == {"metadata": {}}


def names(spec: Any) -> list[str]:
    return [each["name"] for each in spec["containers"]]


def test_items_are_put_in_order() -> None:
    old = {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    order = [{"name": "c"}, {"name": "b"}, {"name": "a"}]
    assert names(spec("Pod", old, {"$setElementOrder/containers": order})) == ["c", "b", "a"]


def test_items_that_the_patch_does_not_know_stay_where_they_were() -> None:
    old = {"containers": [{"name": "a"}, {"name": "other"}, {"name": "b"}]}
    patch = {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "new"}, {"name": "b"}],
        "containers": [{"name": "new"}],
    }
    assert names(spec("Pod", old, patch)) == ["a", "new", "other", "b"]


def test_plain_values_are_put_in_order() -> None:
    body = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$setElementOrder/finalizers": ["b", "a", "c"], "finalizers": ["c"]}}
    assert patched("Pod", body, patch)["metadata"]["finalizers"] == ["b", "a", "c"]


def test_what_is_new_comes_without_nulls_and_directives() -> None:
    patch = {"affinity": {"nodeAffinity": None, "podAffinity": {"x": None, "y": [{"z": None}]}}}
    assert spec("Pod", {}, patch) == {"affinity": {"podAffinity": {"y": [{}]}}}
    nested = {"securityContext": {"$retainKeys": ["a"], "a": {"$setElementOrder/b": [], "b": [1]}}}
    assert spec("Pod", {}, nested) == {"securityContext": {"a": {"b": [1]}}}


def test_a_value_of_another_type_is_replaced() -> None:
    assert spec("Pod", {"affinity": "odd"}, {"affinity": {"a": 1}}) == {"affinity": {"a": 1}}
    assert spec("Pod", {"affinity": {"a": 1}}, {"affinity": "odd"}) == {"affinity": "odd"}
    assert spec("Pod", {"containers": "odd"}, {"containers": [{"name": "a"}]}) == {
        "containers": [{"name": "a"}]
    }


def test_cordoning_a_node() -> None:
    body = {"spec": {"taints": [{"key": "a"}]}, "status": {"capacity": {"cpu": "1"}}}
    assert patched("Node", body, {"spec": {"unschedulable": True}}) == {
        "spec": {"taints": [{"key": "a"}], "unschedulable": True},
        "status": {"capacity": {"cpu": "1"}},
    }


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ([], "must be an object"),
        ({"spec": {"containers": [{"image": "x"}]}}, "does not contain declared merge key: name"),
        ({"spec": {"containers": ["x"]}}, "merged by name must be an object"),
        ({"spec": {"containers": [{"name": "a", "$patch": "twist"}]}}, "unknown patch type: twist"),
        ({"spec": {"$patch": "twist"}}, "unknown patch type: twist"),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": 3}}, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, "must be a list"),
        ({"spec": {"$setElementOrder/containers": {}}}, "must be a list"),
        ({"spec": {"containers": [{"$patch": "delete"}]}}, "does not contain declared merge key"),
    ],
)
def test_patches_that_make_no_sense(patch: Any, words: str) -> None:
    body = {"metadata": {}, "spec": {"containers": [{"name": "a"}]}}
    with pytest.raises(PatchError) as caught:
        patched("Pod", body, patch)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["ElasticQuota.nos.nebuly.ai", "Job.batch.volcano.sh"])
def test_custom_kinds_have_no_such_patches(kind: str) -> None:
    with pytest.raises(UnsupportedPatchError):
        strategic_merge_patch({}, {}, kind)


def test_what_a_patch_gives_shares_nothing_with_what_it_got() -> None:
    body: Any = {"spec": {"containers": [{"name": "a", "env": []}]}}
    patch: Any = {"spec": {"containers": [{"name": "b", "args": ["x"]}]}}
    result = strategic_merge_patch(body, patch, "Pod")
    for each in result["spec"]["containers"]:
        each["touched"] = True
    assert body == {"spec": {"containers": [{"name": "a", "env": []}]}}
    assert patch == {"spec": {"containers": [{"name": "b", "args": ["x"]}]}}
