"""`aliquot validate`: everything at once, with file, document and field; errors are exit code 1."""

import json
from pathlib import Path
from typing import Any

import pytest

from aliquot.json import Body
from tests.build.manifests import node, pod, priority_class, queue, quota, timeline, workload
from tests.cli.conftest import Run

GPU = "nvidia.com/gpu"


def findings(aliquot: Run, *documents: Any, code: int) -> list[Body]:
    ran = aliquot("validate", list(documents), "-o", "json")
    assert ran.code == code, ran.out + ran.err
    found: list[Body] = json.loads(ran.out)["findings"]
    return found


def warnings(aliquot: Run, *documents: Any) -> list[tuple[str, str, str]]:
    found = findings(aliquot, *documents, code=0)
    assert {each["severity"] for each in found} <= {"warning"}
    return [(each["object"], each["field"], each["problem"]) for each in found]


def hard(namespace: str, **amounts: Any) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "rq", "namespace": namespace},
        "spec": {"hard": {key.replace("_", "."): value for key, value in amounts.items()}},
    }


def test_valid_manifests_are_counted_and_exit_with_0(aliquot: Run) -> None:
    ran = aliquot("validate", [node(), quota("a", {"gpu": 2}, {"gpu": 4}), pod("a/p", {"gpu": 2})])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "3 objects in 1 file: no errors, no warnings\n"


def test_every_finding_is_reported_at_once(aliquot: Run) -> None:
    ran = aliquot(
        "validate",
        [
            node(),
            quota("a", {"gpu": 4}, {"gpu": 2}),
            pod("a/bad", {"cpu": "x"}),
            pod("a/Name"),
            ["no", "object"],
            pod("a/good"),
        ],
        [pod("b/p", containers={}), {"apiVersion": "v1", "kind": "Service"}],
    )
    assert ran.code == 1
    assert ran.err == "skipped, not read by a simulation: 1 Service\n"
    lines = ran.out.splitlines()
    assert [line.split(":")[0].split()[:3] for line in lines if line.startswith("  ")] == [
        ["error", "document", str(number)] for number in (2, 3, 4, 5, 1)
    ]
    assert lines[0].endswith("input-1.yaml")
    assert lines[1].endswith(f"ElasticQuota a/quota: spec.min[{GPU}]: min 4 is above max 2")
    assert lines[6].endswith("input-2.yaml")
    assert lines[-1] == "6 objects in 2 files: 5 errors, no warnings"


def test_every_bad_number_of_every_job_of_a_framework_is_reported(aliquot: Run) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    roles = {name: {"replicas": -1, "template": template} for name in ("Master", "Worker")}
    torch = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    workers = {"size": 0, "workerTemplate": template}
    leader = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    found = findings(
        aliquot,
        {**torch, "metadata": {"name": "j"}, "spec": {"pytorchReplicaSpecs": roles}},
        {**leader, "metadata": {"name": "l"}, "spec": {"leaderWorkerTemplate": workers}},
        pod("a/p", {"cpu": "many"}),
        code=1,
    )
    assert [(each["object"], each["field"]) for each in found] == [
        ("PyTorchJob default/j", "spec.pytorchReplicaSpecs.Master.replicas"),
        ("PyTorchJob default/j", "spec.pytorchReplicaSpecs.Worker.replicas"),
        ("LeaderWorkerSet default/l", "spec.leaderWorkerTemplate.size"),
        ("Pod a/p", "spec.containers[0].resources.requests[cpu]"),
    ]


def test_json_names_file_document_object_and_field(aliquot: Run) -> None:
    (found,) = findings(aliquot, node(), pod("a/p", {"cpu": "many"}), code=1)
    file = found.pop("file")
    assert Path(file).name == "input-1.yaml"
    written = Path(file).read_text().splitlines()
    assert found == {
        "severity": "error",
        "place": f"{file}, document 2",
        "line": next(number for number, line in enumerate(written, start=1) if "many" in line),
        "object": "Pod a/p",
        "field": "spec.containers[0].resources.requests[cpu]",
        "problem": "'many' is not a quantity, such as 2, 500m, 1.5 or 10Gi",
        "at": 0,
    }


def test_files_are_told_apart(aliquot: Run, tmp_path: Path) -> None:
    folder = tmp_path / "team, document 1"
    folder.mkdir()
    bad = json.dumps(pod("a/p", {"cpu": "x"}))
    (folder / "a.yaml").write_text(bad)
    (folder / "b.json").write_text(bad.replace('"p"', '"q"') * 2)
    ran = aliquot("validate", str(folder), "-o", "json")
    found = json.loads(ran.out)["findings"]
    assert [Path(each["file"]).name for each in found] == ["a.yaml", *["b.json"] * 3]
    assert "stands twice" in aliquot("validate", str(folder)).out


@pytest.mark.parametrize(
    ("hard_amounts", "problem"),
    [
        ({"cpu": 3}, "max 4 is above hard 3 of ResourceQuota rq"),
        ({"requests_cpu": "3500m"}, "max 4 is above hard 3500m of ResourceQuota rq"),
        ({"requests_cpu": 2, "cpu": 8}, "max 4 is above hard 2 of ResourceQuota rq"),
    ],
)
def test_bounds_are_within_hard(aliquot: Run, hard_amounts: Body, problem: str) -> None:
    found = findings(aliquot, quota("a", {"cpu": 1}, {"cpu": 4}), hard("a", **hard_amounts), code=1)
    assert [(each["field"], each["problem"]) for each in found] == [("spec.max[cpu]", problem)]
    assert warnings(aliquot, quota("a", {"cpu": 1}, {"cpu": 4}), hard("a", requests_cpu=4)) == []
    assert warnings(aliquot, quota("a", {"cpu": 1}, {"cpu": 4}), hard("b", cpu=1)) == []


def test_hard_of_a_resource_quota_is_checked_too(aliquot: Run) -> None:
    (found,) = findings(aliquot, hard("a", requests_cpu="lots"), code=1)
    assert found["field"] == "spec.hard[requests.cpu]"


def test_a_second_quota_is_an_error(aliquot: Run) -> None:
    found = findings(aliquot, quota("a", {}), quota("a/x", {}), code=1)
    assert [each["object"] for each in found] == ["ElasticQuota a/x"]
    assert "has a quota already: ElasticQuota a/quota" in found[0]["problem"]


def test_guarantees_above_capacity_are_a_warning(aliquot: Run) -> None:
    found = warnings(aliquot, node(gpu=8), quota("a", {"gpu": 6}), quota("b", {"gpu": 4}))
    problem = f"with this quota, guarantees add up to 10 of 8 {GPU} that the nodes have"
    assert found == [("ElasticQuota b/quota", f"spec.min[{GPU}]", problem)]


def test_the_time_of_a_finding_is_said(aliquot: Run) -> None:
    documents = [node(gpu=8), node("m", gpu=2), quota("a", {"gpu": 10})]
    shrinks = timeline({"at": "1m", "delete": [{"kind": "Node", "name": "m"}]}, {"at": "2m"})
    (found,) = findings(aliquot, *documents, shrinks, code=0)
    assert (found["severity"], found["at"]) == ("warning", 60)
    assert "(from 60s on)" in aliquot("validate", [*documents, shrinks]).out


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, f"asks for 9 {GPU}, no node has more than 8"),
        ({"nodeSelector": {"zone": "x"}}, f"asks for 9 {GPU}, no node has more than 8"),
    ],
)
def test_a_pod_that_no_node_could_hold_is_a_warning(aliquot: Run, spec: Body, problem: str) -> None:
    found = warnings(aliquot, node(), pod("a/p", {"gpu": 9}, **spec))
    assert found == [("Pod a/p", "spec", f"can never start: {problem}")]


def test_the_warning_says_why_no_node_could_hold_a_pod(aliquot: Run) -> None:
    (selected,) = warnings(aliquot, node(), pod("a/p", nodeSelector={"zone": "x"}))
    assert "selectors or the nodes' taints" in selected[2]
    nodes = [node("many-cpus", cpu=8, gpu=1), node("many-gpus", cpu=1, gpu=8)]
    (split,) = warnings(aliquot, *nodes, workload("Job", "a/j", {"cpu": 8, "gpu": 8}))
    assert split[1:] == (
        "spec.template.spec",
        "can never start: no single node has all that it asks for",
    )


def test_a_pod_above_its_quotas_max_is_a_warning(aliquot: Run) -> None:
    small = quota("a", {"gpu": 1}, {"gpu": 2})
    found = warnings(aliquot, node(), small, pod("a/p", {"gpu": 3}), pod("b/p", {"gpu": 3}))
    problem = f"can never start: asks for 3 {GPU}, max is 2 in quota a/quota"
    assert found == [("Pod a/p", "spec", problem)]
    assert len(warnings(aliquot, small, pod("a/p", {"gpu": 3}))) == 1


def test_can_never_start_is_said_only_if_no_step_changes_it(aliquot: Run) -> None:
    waits = pod("a/p", {"gpu": 9})
    grows = timeline({"at": 60, "apply": [node("big", gpu=16)]})
    raised = timeline({"at": 60, "apply": [quota("a", {"gpu": 9}, {"gpu": 9})]})
    small = quota("a", {"gpu": 1}, {"gpu": 2})
    assert warnings(aliquot, node(), waits, grows) == []
    assert warnings(aliquot, waits) == []
    assert warnings(aliquot, node(gpu=16), small, waits, raised) == []
    assert warnings(aliquot, node(gpu=8), pod("a/runs", {"gpu": 9}, nodeName="n")) == []
    too_late = timeline(
        {"at": 1, "delete": [{"kind": "Pod", "namespace": "a", "name": "p"}]},
        {"at": 2, "apply": [node("big", gpu=16), pod("a/q", {"gpu": 17})]},
    )
    found = warnings(aliquot, node(), waits, too_late)
    assert [each[0] for each in found] == ["Pod a/p", "Pod a/q"]


def test_one_error_does_not_cause_others(aliquot: Run) -> None:
    unreadable = {**node("m"), "status": {"allocatable": {"cpu": 8}, "conditions": 3}}
    negative = node("minus", cpu=-1)
    found = findings(
        aliquot,
        node(),
        unreadable,
        negative,
        pod("a/on-m", nodeName="m"),
        pod("a/on-minus", nodeName="minus"),
        quota("a", {"gpu": 100}, {"gpu": 100}),
        pod("a/p", {"gpu": 100}),
        timeline({"at": 1, "delete": [{"kind": "Node", "name": "m"}]}),
        code=1,
    )
    assert [each["object"] for each in found] == ["Node m", "Node minus"]


def test_steps_of_a_timeline_are_checked_one_by_one(aliquot: Run) -> None:
    found = findings(
        aliquot,
        node(),
        timeline(
            {"at": "noon"},
            {"at": 1, "apply": [pod("a/p", {"cpu": "x"}), timeline(), pod("a/q"), pod("a/q")]},
            {"at": 2, "delete": [{"kind": "Pod", "name": "ghost"}]},
            {"at": 3, "apply": [quota("a", {"cpu": 2}, {"cpu": 1})]},
        ),
        code=1,
    )
    said = [(each["place"].partition(": ")[2], each["problem"].split(";")[0]) for each in found]
    assert [place for place, _ in said] == [
        "",
        "Timeline steps[1].apply[0]",
        "Timeline steps[1].apply[1]",
        "Timeline steps[1].apply[3]",
        "Timeline steps[2].delete[0]",
        "Timeline steps[3].apply[0]",
    ]
    assert [each["at"] for each in found] == [0, 1, 0, 0, 2, 3]


def test_a_policy_that_is_not_there_is_one_error(aliquot: Run) -> None:
    nos = {**quota("a", {"gpu": 1}), "apiVersion": "nos.nebuly.com/v1alpha1"}
    koordinator = quota("a", {"gpu": 1})
    koordinator["metadata"]["labels"] = {"quota.scheduling.koordinator.sh/name": "q"}
    for each in (nos, koordinator):
        simulated = aliquot("simulate", [node(), each])
        found = findings(aliquot, node(), each, code=1 if simulated.code else 0)
        assert len(found) == (1 if simulated.code else 0)
        assert all(each["problem"] in simulated.err for each in found)


def test_pods_of_a_workload_are_checked_before_they_are_made(aliquot: Run) -> None:
    named = workload("Deployment", f"a/{'x' * 250}", {})
    labelled = workload("Deployment", "a/labelled", {})
    labelled["spec"]["template"]["metadata"] = {"labels": {"app": ["x"]}}
    dated = workload("Deployment", "a/dated", {})
    dated["spec"]["template"]["metadata"] = {"creationTimestamp": "today"}
    found = findings(aliquot, named, labelled, dated, code=1)
    template = "spec.template.metadata"
    assert [each["field"] for each in found] == [
        "metadata.name",
        f"{template}.labels[app]",
        f"{template}.creationTimestamp",
    ]


def test_a_slip_in_the_kind_is_a_warning(aliquot: Run) -> None:
    slip = {**pod("a/p"), "kind": "pod"}
    ((_, field, problem),) = warnings(aliquot, slip)
    assert (field, problem) == ("kind", "skipped pod of v1; did you mean Pod of v1?")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_a_template_may_name_a_priority_class_that_is_not_there(aliquot: Run, kind: str) -> None:
    body = workload(kind, "a/w", {"cpu": 1}, **_required(kind))
    body["spec"]["template"]["spec"]["priorityClassName"] = "vip"
    where = "spec.template.spec.priorityClassName"
    problem = "there is no PriorityClass vip: a server refuses its pods"
    assert warnings(aliquot, node(), body) == [(f"{kind} a/w", where, problem)]
    ran = aliquot("simulate", [node(), body], "-o", "json")
    assert (ran.code, json.loads(ran.out)["pods"]) == (0, [])
    assert "there is no PriorityClass vip" in ran.err
    assert warnings(aliquot, node(), body, priority_class("vip", 5)) == []


def test_pods_are_made_when_their_priority_class_comes(aliquot: Run) -> None:
    body = workload("Deployment", "a/w", {"cpu": 1}, **_required("Deployment"))
    body["spec"]["template"]["spec"]["priorityClassName"] = "vip"
    vip = priority_class("vip", 5)
    later = timeline({"at": "1m", "apply": [vip]})
    ran = aliquot("simulate", [node(), body, later], "-o", "json")
    assert [each["at"] for each in json.loads(ran.out)["bindings"]] == [60]


def _required(kind: str) -> Body:
    return {"selector": {"matchLabels": {"app": "x"}}} if kind != "Job" else {}


@pytest.mark.parametrize(
    ("version", "kind", "what"),
    [
        ("scheduling.koordinator.sh/v1alpha1", "Reservation", "no room is kept for it"),
        ("tensor-fusion.ai/v1", "TensorFusionWorkload", "no pods are made of it"),
        ("flow.volcano.sh/v1alpha1", "JobFlow", "no pods are made of it"),
        ("batch.volcano.sh/v1alpha1", "CronJob", "no pods are made of it"),
    ],
)
def test_what_is_not_looked_at_is_said(aliquot: Run, version: str, kind: str, what: str) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "a"}}
    problem = f"{kind} of {version} ({what}) is not known here, and not checked"
    ((_, where, said),) = warnings(aliquot, body)
    assert (where, said) == ("kind", problem)
    ran = aliquot("simulate", [node(), body])
    assert ran.code == 0
    assert problem in ran.err


@pytest.mark.parametrize("limits", [{}, {GPU: 2}])
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "Job"])
def test_gpus_are_not_overcommitted(aliquot: Run, kind: str, limits: Body) -> None:
    asked = {"requests": {"cpu": 1, GPU: 1}, "limits": limits}
    spec = {"containers": [{"name": "c", "image": "i", "resources": asked}]}
    at = "spec" if kind == "Pod" else "spec.template.spec"
    body = pod("a/w") if kind == "Pod" else workload(kind, "a/w", {}, **_required(kind))
    (body if kind == "Pod" else body["spec"]["template"])["spec"] = spec
    (found,) = findings(aliquot, node(), body, code=1)
    assert found["field"] == f"{at}.containers[0].resources.requests[{GPU}]"
    assert "must be equal to" in found["problem"]
    ran = aliquot("simulate", [node(), body], "-o", "json")
    assert (ran.code, len(json.loads(ran.out)["bindings"])) == (0, 1)
    asked["limits"] = {GPU: "1"}
    assert findings(aliquot, node(), body, code=0) == []


def test_an_image_is_pulled_by_a_known_rule(aliquot: Run) -> None:
    one = {"name": "c", "image": "i", "imagePullPolicy": "IfNotpresent"}
    (found,) = findings(aliquot, node(), pod("a/p", containers=[one]), code=1)
    assert found["field"] == "spec.containers[0].imagePullPolicy"
    assert found["problem"] == "'IfNotpresent' is none of Always, IfNotPresent, Never"


def test_what_a_terminal_would_obey_is_not_printed(aliquot: Run) -> None:
    hostile = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\x1b[31m\nerror"}}
    ran = aliquot("validate", [{**hostile, "spec": 3}])
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert len(ran.out.splitlines()) == 5


@pytest.mark.parametrize("content", [b"a: [1", b"\xff\xfe", b"a: 1\na: 2", b'{"a": "\\ud800"}'])
def test_what_is_no_documents_is_refused(aliquot: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "input.yaml"
    file.write_bytes(content)
    for arguments in (str(file),), (str(tmp_path / "nowhere"),), ():
        ran = aliquot("validate", *arguments)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_standard_input_is_read_with_a_byte_order_mark(aliquot: Run) -> None:
    ran = aliquot("validate", "-", stdin="\ufeff" + json.dumps(pod("a/p", {"cpu": "x"})))
    assert ran.code == 1
    assert ran.out.startswith("standard input\n  error    line 1: Pod a/p: spec.containers[0]")


def test_volumes_that_a_cluster_never_has_are_warnings(aliquot: Run) -> None:
    """A claim that is not there, a class that is not there, volumes that are too small."""

    def mounts(path: str, claim: str) -> Body:
        made = pod(path)
        made["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        return made

    def asks(name: str, storage_class: str) -> Body:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "a"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "resources": {"requests": {"storage": "10Gi"}},
            },
        }

    shelf = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "shelf"},
        "provisioner": "kubernetes.io/no-provisioner",
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "shelf",
            "hostPath": {"path": "/v"},
        },
    }
    objects = [mounts("a/p", "nowhere"), mounts("a/q", "large"), asks("large", "shelf")]
    objects += [asks("classless", "gone"), shelf, volume]
    at = "spec.volumes[0].persistentVolumeClaim.claimName"
    assert warnings(aliquot, node(), *objects) == [
        ("Pod a/p", at, "there is no claim a/nowhere: what mounts it waits"),
        (
            "PersistentVolumeClaim a/large",
            "spec.resources.requests[storage]",
            "asks for 10Gi; the largest volume of class shelf has 5Gi",
        ),
        (
            "PersistentVolumeClaim a/classless",
            "spec.storageClassName",
            "there is no storage class gone: the claim gets no volume",
        ),
    ]
    assert warnings(aliquot, mounts("a/p", "nowhere")) == []


A100, V100 = "gpu.aliquot.dev/a100", "gpu.aliquot.dev/v100"


def cards_of(model: str, count: int = 8) -> Body:
    body = node(model, gpu=count)
    body["metadata"]["labels"] = {"nvidia.com/gpu.product": model}
    return body


def test_mins_by_model_above_the_cards_there_are(aliquot: Run) -> None:
    found = warnings(aliquot, cards_of("a100"), quota("a", {A100: 5}), quota("b", {A100: 4}))
    assert {(field, problem.removeprefix("with this quota, ")) for _, field, problem in found} == {
        (f"spec.min[{name}]", f"guarantees add up to 9 of 8 {name} that the nodes have")
        for name in (GPU, A100)
    }


def test_mins_by_model_above_the_max_in_all(aliquot: Run) -> None:
    one = quota("a", {A100: 3}, {"gpu": 2})
    both = quota("b", {A100: 2, V100: 2}, {"gpu": 3})
    found = findings(aliquot, cards_of("a100"), cards_of("v100"), one, both, code=1)
    assert [(each["field"], each["problem"]) for each in found] == [
        (f"spec.min[{A100}]", f"min 3, above max 2 {GPU}"),
        (f"spec.min[{V100}]", f"with it, mins by model add up to 4, above max 3 {GPU}"),
    ]


def test_deserved_by_model_above_the_capability_in_all(aliquot: Run) -> None:
    one = queue("q", capability={"gpu": 3}, deserved={A100: 2, V100: 2})
    found = findings(aliquot, cards_of("a100"), cards_of("v100"), one, code=1)
    assert [(each["field"], each["problem"]) for each in found] == [
        (
            f"spec.deserved[{V100}]",
            f"with it, deserved shares by model add up to 4, above max 3 {GPU}",
        )
    ]


def test_a_min_by_model_above_its_own_max(aliquot: Run) -> None:
    found = findings(aliquot, cards_of("a100"), quota("a", {A100: 3}, {A100: 2}), code=1)
    assert [each["problem"] for each in found] == ["min 3 is above max 2"]


def test_a_model_that_no_node_has(aliquot: Run) -> None:
    found = warnings(aliquot, cards_of("a100"), quota("a", {}, {"gpu.aliquot.dev/h100": 4}))
    assert [(field, problem.partition(":")[0]) for _, field, problem in found] == [
        ("spec.max[gpu.aliquot.dev/h100]", "no node has cards of the model h100")
    ]


def test_a_pod_above_the_max_of_every_model_it_can_run_on(aliquot: Run) -> None:
    bounds = quota("a", {}, {A100: 2, V100: 4})
    nodes = cards_of("a100"), cards_of("v100")
    large, larger = pod("a/large", {"gpu": 3}), pod("a/larger", {"gpu": 5})
    found = warnings(aliquot, *nodes, bounds, large, larger)
    assert [(each, problem) for each, _, problem in found] == [
        ("Pod a/larger", f"can never start: asks for 5 {A100}, max is 2 in quota a/quota")
    ]


def test_children_may_name_a_model_that_their_parent_does_not(aliquot: Run) -> None:
    parent, child = quota("p", {"gpu": 4}, {"gpu": 8}), quota("c", {"gpu": 4, A100: 2}, {"gpu": 8})
    prefix = "quota.scheduling.koordinator.sh"
    parent["metadata"]["labels"] = {f"{prefix}/is-parent": "true"}
    child["metadata"]["labels"] = {f"{prefix}/parent": parent["metadata"]["name"]}
    child["metadata"]["name"] = "child"
    assert warnings(aliquot, cards_of("a100"), parent, child) == []
