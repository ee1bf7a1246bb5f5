"""Kinds that are answered, not stored; and containers that do not run."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aliquot.json import Body
from aliquot.server.app import Settings
from aliquot.server.controllers.simulated_nodes import nodes
from tests.build.manifests import pod
from tests.server.client import PODS, Client, served

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
ACCESS = f"{_AUTHORIZATION}/selfsubjectaccessreviews"
OTHERS = f"{_AUTHORIZATION}/subjectaccessreviews"
RULES = f"{_AUTHORIZATION}/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
METRICS = "/apis/metrics.k8s.io/v1beta1"

Story = Callable[[Client], Awaitable[None]]


def test_who_holds_the_token_may_do_everything_and_is_told_why() -> None:
    async def story(client: Client) -> None:
        spec = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
        code, said = await client.post(ACCESS, {"spec": spec})
        assert code == 201
        assert said["status"]["allowed"] is True
        assert "stored, not enforced" in said["status"]["reason"]
        _, who = await client.post(WHO, {})
        assert who["status"]["userInfo"]["username"] == "kubernetes-admin"
        assert "system:masters" in who["status"]["userInfo"]["groups"]
        _, rules = await client.post(RULES, {"spec": {"namespace": "default"}})
        assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
        assert (await client.get(ACCESS))[0] == 405

    _tell(story)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({"verb": "get", "resource": "pods", "namespace": "default"}, True),
        ({"verb": "get", "resource": "pods", "subresource": "log", "namespace": "default"}, True),
        ({"verb": "get", "resource": "pods", "namespace": "kube-system"}, False),
        ({"verb": "get", "resource": "pods"}, False),
        ({"verb": "delete", "resource": "pods", "namespace": "default"}, False),
        ({"verb": "get", "group": "apps", "resource": "pods", "namespace": "default"}, False),
        ({"verb": "list", "resource": "nodes"}, True),
        ({"verb": "get", "resource": "secrets", "name": "one", "namespace": "default"}, True),
        ({"verb": "get", "resource": "secrets", "name": "two", "namespace": "default"}, False),
    ],
)
def test_stored_roles_answer_for_other_users(asked: Body, allowed: bool) -> None:
    async def story(client: Client) -> None:
        await _make_roles(client)
        account = "system:serviceaccount:default:robot"
        _, said = await client.post(
            OTHERS, {"spec": {"user": account, "resourceAttributes": asked}}
        )
        assert said["status"]["allowed"] is allowed
        assert ("RBAC: allowed by" in said["status"].get("reason", "")) is allowed

    _tell(story)


def test_paths_and_groups() -> None:
    async def story(client: Client) -> None:
        await _make_roles(client)
        for path, groups, allowed in (
            ("/metrics/x", ["watchers"], True),
            ("/metrics", ["watchers"], False),
            ("/metrics/x", [], False),
        ):
            asked = {"verb": "get", "path": path}
            spec = {"user": "u", "groups": groups, "nonResourceAttributes": asked}
            _, said = await client.post(OTHERS, {"spec": spec})
            assert said["status"]["allowed"] is allowed, path
        code, _ = await client.post(OTHERS, {"spec": {"user": "u"}})
        assert code == 400

    _tell(story)


def test_metrics_follow_from_requests() -> None:
    async def story(client: Client) -> None:
        asks = {"cpu": "1500m", "memory": "2Gi"}
        for name in ("a", "b"):
            await client.post(PODS, pod(f"default/{name}", asks, nodeName="node-0"))
        await client.post(PODS, pod("default/waits", asks))
        listed = f"{METRICS}/namespaces/default/pods"
        found = await client.until(listed, lambda _, each: len(each["items"]) == 2)
        assert found["kind"] == "PodMetricsList"
        (container,) = found["items"][0]["containers"]
        assert container["usage"] == asks | {"cpu": "1500m"}
        _, of_nodes = await client.get(f"{METRICS}/nodes")
        usage = {each["metadata"]["name"]: each["usage"] for each in of_nodes["items"]}
        assert usage == {
            "node-0": {"cpu": "3", "memory": "4Gi"},
            "node-1": {"cpu": "0", "memory": "0"},
        }
        assert (await client.get(f"{METRICS}/nodes/node-0"))[1]["usage"]["cpu"] == "3"
        assert (await client.get(f"{METRICS}/nodes/nowhere"))[0] == 404
        assert (await client.get(f"{listed}/waits"))[0] == 404
        assert (await client.post(f"{METRICS}/nodes", {}))[0] == 405

    _tell(story)


@pytest.mark.parametrize(
    ("subresource", "words"),
    [
        ("log", "writes no logs"),
        ("exec", "can run no command"),
        ("attach", "has no process to attach to"),
        ("portforward", "has no port to forward"),
    ],
)
def test_containers_do_not_run(subresource: str, words: str) -> None:
    async def story(client: Client) -> None:
        await client.post(PODS, pod("default/a", nodeName="node-0"))
        await client.post(PODS, pod("default/waits"))
        await client.until(f"{PODS}/a", lambda _, each: each["status"].get("phase") == "Running")
        code, said = await client.get(f"{PODS}/a/{subresource}")
        assert (code, said["reason"]) == (400, "BadRequest")
        simulated = "node node-0 is simulated, and no container runs on it"
        assert said["message"] == f'pod "a" {words}: {simulated}'
        _, said = await client.get(f"{PODS}/waits/{subresource}")
        assert "is waiting to start: it is not scheduled yet" in said["message"]
        assert (await client.get(f"{PODS}/nobody/{subresource}"))[0] == 404

    _tell(story)


async def _make_roles(client: Client) -> None:
    """A robot may read pods and one Secret in its namespace, and nodes; watchers read metrics."""
    robot = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    rules = [
        {"apiGroups": [""], "resources": ["pods", "*/log"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get"]},
    ]
    inside = f"{RBAC}/namespaces/default"
    await _make(client, f"{inside}/roles", "reader", rules=rules)
    role = {"kind": "Role", "name": "reader"}
    await _make(client, f"{inside}/rolebindings", "reader", roleRef=role, subjects=[robot])
    nodes_rule = {"apiGroups": ["*"], "resources": ["nodes"], "verbs": ["*"]}
    metadata = {"name": "part", "labels": {"part": "yes"}}
    await client.post(f"{RBAC}/clusterroles", {"metadata": metadata, "rules": [nodes_rule]})
    selector = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
    await _make(client, f"{RBAC}/clusterroles", "whole", aggregationRule=selector)
    paths = [{"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]}]
    await _make(client, f"{RBAC}/clusterroles", "metrics", rules=paths)
    for name, subject in (("whole", robot), ("metrics", {"kind": "Group", "name": "watchers"})):
        role = {"kind": "ClusterRole", "name": name}
        where = f"{RBAC}/clusterrolebindings"
        await _make(client, where, name, roleRef=role, subjects=[subject])


async def _make(client: Client, path: str, name: str, **fields: Any) -> None:
    code, said = await client.post(path, {"metadata": {"name": name}, **fields})
    assert code == 201, said


def _tell(story: Story) -> None:
    async def tell() -> None:
        async with served(Settings(nodes=tuple(nodes("2x0", "none")))) as client:
            await story(client)

    asyncio.run(tell())
