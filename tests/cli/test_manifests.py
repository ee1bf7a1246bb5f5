"""`aliquot manifests`: what is printed, in which order, and what is refused."""

import json
from collections import Counter
from typing import Any

import pytest
import yaml

from aliquot.cli.main import cli
from aliquot.dialects.crds import DEFINITIONS
from tests.cli.conftest import Run

Body = dict[str, Any]
KNOBS = {
    "apiVersion": "config.aliquot.dev/v1alpha1",
    "kind": "Configuration",
    "capacity": {"borrow": "freeCapacity"},
}


def printed(aliquot: Run, *words: Any) -> list[Body]:
    ran = aliquot("manifests", *words)
    assert (ran.code, ran.err) == (0, "")
    return list(yaml.safe_load_all(ran.out))


def only(bodies: list[Body], kind: str, name: str = "") -> Body:
    (found,) = (
        body
        for body in bodies
        if body["kind"] == kind and (not name or body["metadata"]["name"] == name)
    )
    return found


def test_what_is_needed_comes_before_what_needs_it(aliquot: Run) -> None:
    bodies = printed(aliquot)
    order = [body["kind"] for body in bodies]
    first = {kind: order.index(kind) for kind in order}
    last = {kind: number for number, kind in enumerate(order)}
    assert order[0] == "Namespace"
    assert last["CustomResourceDefinition"] < first["ServiceAccount"]
    assert last["ServiceAccount"] < first["ClusterRoleBinding"]
    assert last["ConfigMap"] < first["Deployment"]
    assert last["Deployment"] < first["MutatingWebhookConfiguration"]
    for binding in bodies:
        if binding["kind"].endswith("RoleBinding"):
            reference = binding["roleRef"]
            role = only(bodies, reference["kind"], reference["name"])
            assert bodies.index(role) < bodies.index(binding)


def test_the_namespace_replaces_the_default_everywhere(aliquot: Run) -> None:
    text = aliquot("manifests", "--namespace", "quotas").out
    assert "aliquot-system" not in text
    bodies = list(yaml.safe_load_all(text))
    assert only(bodies, "Namespace")["metadata"]["name"] == "quotas"
    for configuration in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        ours, pods = only(bodies, configuration)["webhooks"]
        assert ours["clientConfig"]["service"]["namespace"] == "quotas"
        (spared,) = pods["namespaceSelector"]["matchExpressions"]
        assert spared["values"] == ["kube-system", "quotas"]


def test_image_and_replicas_are_those_of_both_deployments(aliquot: Run) -> None:
    bodies = printed(aliquot, "--image", "registry.example/a/b@sha256:0a", "--replicas", "3")
    for name in ("aliquot-scheduler", "aliquot-webhook"):
        spec = only(bodies, "Deployment", name)["spec"]
        assert spec["replicas"] == 3
        (container,) = spec["template"]["spec"]["containers"]
        assert container["image"] == "registry.example/a/b@sha256:0a"


def test_a_configuration_is_kept_as_it_was_written_and_replaces_pods(aliquot: Run) -> None:
    plain, said = printed(aliquot), printed(aliquot, "--config", [KNOBS])
    (text,) = only(said, "ConfigMap")["data"].values()
    assert yaml.safe_load(text) == KNOBS
    before, after = (
        only(bodies, "Deployment", "aliquot-scheduler")["spec"]["template"]["metadata"]
        for bodies in (plain, said)
    )
    assert before["annotations"] != after["annotations"]
    assert before["labels"] == after["labels"]


def test_without_a_webhook_nothing_of_it_is_left(aliquot: Run) -> None:
    text = aliquot("manifests", "--no-webhook").out
    assert "webhook" not in text.lower()
    assert only(list(yaml.safe_load_all(text)), "Deployment")


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        (["crds"], {"CustomResourceDefinition"}),
        (["webhooks"], {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}),
        (
            ["rbac"],
            {
                "Namespace",
                "ServiceAccount",
                "ClusterRole",
                "ClusterRoleBinding",
                "Role",
                "RoleBinding",
            },
        ),
        (
            ["workloads", "crds"],
            {
                "Namespace",
                "CustomResourceDefinition",
                "ConfigMap",
                "Service",
                "PodDisruptionBudget",
                "Deployment",
            },
        ),
    ],
)
def test_only_prints_the_objects_of_a_part(aliquot: Run, parts: list[str], kinds: set[str]) -> None:
    words = [word for part in parts for word in ("--only", part)]
    assert {body["kind"] for body in printed(aliquot, *words)} == kinds


def test_json_is_one_list_of_the_same_objects(aliquot: Run) -> None:
    found = json.loads(aliquot("manifests", "-o", "json").out)
    assert found["kind"] == "List"
    assert found["items"] == printed(aliquot)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--namespace", "No_Name"], "--namespace: 'No_Name' is no name for a namespace"),
        (["--namespace", "a" * 64], "is no name for a namespace"),
        (["--image", "not an image"], "--image: 'not an image' is no name of an image"),
        (["--image", ""], "--image: '' is no name of an image"),
        (["--replicas", "0"], "--replicas"),
        (["--only", "everything"], "--only"),
        (["--config", "missing.yaml"], "missing.yaml: no such file or directory"),
        (["--config", [{**KNOBS, "capacity": {"borrow": "all"}}]], "capacity.borrow: 'all'"),
        (["--config", [{**KNOBS, "colour": "red"}]], "colour"),
        (["--config", [KNOBS, KNOBS]], "expected one Configuration, found 2 documents"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(aliquot: Run, words: list[Any], said: str) -> None:
    ran = aliquot("manifests", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_no_two_kinds_share_a_short_name() -> None:
    words = [word for each in DEFINITIONS for word in each.short_names]
    words += [word for each in DEFINITIONS if each.kind == "GPU" for word in ("gpu", "gpus")]
    assert [word for word, number in Counter(words).items() if number > 1] == []


def rules(bodies: list[Body], word: str) -> dict[str, list[Body]]:
    found = only(bodies, f"{word}WebhookConfiguration")["webhooks"]
    return {each["name"].split(".")[0]: each["rules"] for each in found}


def test_webhooks_are_asked_about_all_quotas_and_no_statuses(aliquot: Run) -> None:
    bodies = printed(aliquot)
    asked = {
        (rule["apiGroups"][0], rule["apiVersions"][0], resource)
        for rule in rules(bodies, "Validating")["kinds"]
        for resource in rule["resources"]
    }
    assert asked == {
        ("scheduling.x-k8s.io", "v1alpha1", "elasticquotas"),
        ("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
        ("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas"),
        ("scheduling.sigs.k8s.io", "v1alpha1", "podgroups"),
        ("nos.nebuly.com", "v1alpha1", "elasticquotas"),
        ("nos.nebuly.com", "v1alpha1", "compositeelasticquotas"),
        ("nos.nebuly.ai", "v1alpha1", "elasticquotas"),
        ("nos.nebuly.ai", "v1alpha1", "compositeelasticquotas"),
        ("tensor-fusion.ai", "v1", "gpuresourcequotas"),
        ("scheduling.volcano.sh", "v1beta1", "queues"),
        ("scheduling.volcano.sh", "v1beta1", "podgroups"),
        ("topology.volcano.sh", "v1alpha1", "hypernodes"),
        ("quota.koordinator.sh", "v1alpha1", "elasticquotaprofiles"),
    }


@pytest.mark.parametrize("name", ["scheduler", "webhook"])
def test_the_command_understands_what_it_is_told(aliquot: Run, name: str) -> None:
    (container,) = only(printed(aliquot), "Deployment", f"aliquot-{name}")["spec"]["template"][
        "spec"
    ]["containers"]
    word, *arguments = container["args"]
    command = cli.commands.get(word)
    if command is None:
        pytest.skip(f"NOT run: there is no command {word} yet")
    known = {option for each in command.params for option in each.opts}
    assert {each.split("=")[0] for each in arguments} <= known
