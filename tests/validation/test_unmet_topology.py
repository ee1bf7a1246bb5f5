"""What `validate` says of topology that nothing can meet, and what it refuses."""

from typing import Any

import pytest

from aliquot.dialects.configuration import Configuration
from aliquot.dialects.core.documents import Document
from aliquot.dialects.core.manifest import all_errors, read
from aliquot.dialects.frameworks.gangs import WANTS_GANG
from aliquot.json import Body
from aliquot.mirror.store import Store
from aliquot.validation.inputs import examine
from aliquot.validation.unmet_topology import UnmetTopology
from tests.build.manifests import node, pod

RACK, REQUIRED = "example.com/rack", "aliquot.dev/topology-required"
PREFERRED = "aliquot.dev/topology-preferred"
LEVELS = Configuration(topology=["example.com/block", RACK])


def warnings(*bodies: Body, settings: Configuration = LEVELS) -> list[str]:
    rules = UnmetTopology(settings)
    documents = [Document(f"object {i}", body) for i, body in enumerate(bodies)]
    inputs = examine(documents, settings, (rules.add_state,))
    assert not [each for each in inputs.findings if each.severity == "error"]
    return [f"{each.object}: {each.field}: {each.problem}" for each in rules.findings()]


def racked(name: str, rack: str, **labels: str) -> Body:
    return {**node(name), "metadata": {"name": name, "labels": {RACK: rack, **labels}}}


def group(pods: int, **annotations: str) -> Body:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "a", "annotations": annotations},
        "spec": {"minMember": pods},
    }


def member(name: str, **more: Any) -> Body:
    body = pod(f"a/{name}", **more)
    body["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    return body


def hyper_node(name: str, tier: int, *members: Body, kind: str = "Node") -> Body:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": [{"type": kind, "selector": each} for each in members]},
    }


def exactly(name: str) -> Body:
    return {"exactMatch": {"name": name}}


def volcano_job(**topology: Any) -> Body:
    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    tasks = [{"name": "w", "replicas": 2, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "a"},
        "spec": {"minAvailable": 2, "tasks": tasks, "networkTopology": topology},
    }


def test_a_level_that_the_configuration_does_not_name() -> None:
    asked = group(1, **{REQUIRED: RACK})
    assert warnings(racked("n", "r0"), asked) == []
    (said,) = warnings(racked("n", "r0"), asked, settings=Configuration())
    where = f"PodGroup a/g: metadata.annotations[{REQUIRED}]"
    assert said == (
        f"{where}: {RACK} is not among the levels in `topology` of the configuration (none): "
        "it counts as a level by itself"
    )
    (said,) = warnings(racked("n", "r0"), group(1, **{PREFERRED: "example.com/zone"}))
    assert said.endswith("no node has the label example.com/zone")


def test_annotations_that_reach_no_gang() -> None:
    alone = pod("a/p")
    alone["metadata"]["annotations"] = {REQUIRED: RACK}
    (said,) = warnings(racked("n", "r0"), alone)
    assert said.endswith("has no effect: the pod is in no gang, and has no owner")
    job: Body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "a", "annotations": {REQUIRED: RACK}},
        "spec": {"template": {"spec": {"containers": [{"name": "m"}], "restartPolicy": "Never"}}},
    }
    (said,) = warnings(racked("n", "r0"), job)
    assert "has no effect here: put it on the template of the pods, or on their PodGroup" in said
    job["spec"]["parallelism"] = 2
    job["metadata"]["annotations"][WANTS_GANG] = "true"
    assert warnings(racked("n", "r0"), job) == []


def test_a_gang_that_no_domain_holds_even_when_empty() -> None:
    nodes = [racked("n0", "r0"), racked("n1", "r0"), racked("n2", "r1")]
    cpu = str(node("n")["status"]["allocatable"]["cpu"])
    main = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    pods = [member(f"p{i}", containers=[main]) for i in range(3)]
    (said,) = warnings(*nodes, group(3, **{REQUIRED: RACK}), *pods)
    assert said == (
        f"PodGroup a/g: metadata.annotations[{REQUIRED}]: no domain of {RACK} holds 3 of its pods "
        "even when empty: the largest, r0, holds 2"
    )
    assert warnings(*nodes, group(2, **{REQUIRED: RACK}), *pods) == []
    assert warnings(*nodes, group(3, **{PREFERRED: RACK}), *pods) == []


def test_tiers_that_there_are_not() -> None:
    tree = [node("n0"), hyper_node("s0", 1, exactly("n0"))]
    assert warnings(*tree, volcano_job(mode="soft", highestTierAllowed=1)) == []
    (said,) = warnings(*tree, volcano_job(mode="hard", highestTierAllowed=4))
    assert "spec.networkTopology.highestTierAllowed: tier 4 is above the highest that there" in said
    (said,) = warnings(*tree, volcano_job(mode="hard", highestTierName="rack"))
    assert said.endswith(
        "spec.networkTopology.highestTierName: no HyperNode has a tier named 'rack'"
    )
    (said,) = warnings(node("n0"), volcano_job(highestTierAllowed=1), settings=Configuration())
    assert "there are no HyperNodes, and no levels in `topology`" in said
    assert said.endswith("its pods never start")


def test_hyper_nodes_that_make_no_tree() -> None:
    said = warnings(
        node("n0"),
        hyper_node("s0", 1, exactly("n0"), exactly("gone")),
        hyper_node("s1", 2, exactly("s0"), exactly("s2"), kind="HyperNode"),
        hyper_node("s2", 2, exactly("s1"), kind="HyperNode"),
        hyper_node("s3", 3, exactly("s0"), kind="HyperNode"),
    )
    cycle = "of tier 2, which is not below tier 2: it is not considered, as it would be a cycle"
    assert said == [
        "HyperNode s0: spec.members[1]: selects no Node",
        f"HyperNode s1: spec.members[1]: selects HyperNode s2 {cycle}",
        f"HyperNode s2: spec.members[0]: selects HyperNode s1 {cycle}",
        "HyperNode s3: spec.members[0]: selects HyperNode s0, which is a member of s1: "
        "that one counts",
    ]


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ({}, "spec.members[0].selector: must hold one of exactMatch, regexMatch and labelMatch"),
        ({**exactly("n"), "regexMatch": {"pattern": "n"}}, "must hold one of exactMatch"),
        (
            {"regexMatch": {"pattern": "("}},
            "spec.members[0].selector.regexMatch.pattern: '(' is no",
        ),
    ],
)
def test_members_that_cannot_be_read(selector: Body, problem: str) -> None:
    manifest = read(Document("x", hyper_node("s", 1, selector)))
    assert manifest is not None
    (error,) = all_errors(manifest, Store().check)
    assert problem in f"{error.field}: {error.problem}"
