"""Sources: what decides of a cluster, read from its objects or from a snapshot of them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from aliquot.cli.main import run
from aliquot.errors import InputError
from aliquot.json import Body
from aliquot.questions.sources import snapshot
from aliquot.questions.sources.accepted import accepted_inputs
from aliquot.questions.sources.origin import Origin, read_files
from aliquot.questions.sources.source import Source
from aliquot.simulation.outcome import outcome
from tests.build.manifests import container, limited_pod, pod, quota, ready_node, resource

NOW = 1_700_000_000 * 10**9
SECRET = "hunter2"


def served(body: Body, number: int = 0) -> Body:
    """The object as a server shows it."""
    metadata = {"uid": f"uid-{number}", "resourceVersion": str(number + 1), **body["metadata"]}
    return {**body, "metadata": metadata}


def dump(folder: Path, bodies: list[Body], name: str = "dump.json") -> str:
    """A file as `kubectl get -o json` writes it."""
    items = [served(body, number) for number, body in enumerate(bodies)]
    file = folder / name
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def taken(folder: Path, bodies: list[Body], name: str = "cluster.json.gz") -> str:
    """A snapshot of these objects."""
    file = folder / name
    snapshot.write(read_files((dump(folder, bodies),)), file, NOW)
    return str(file)


CLUSTER = [
    ready_node("n-1", gpu=2),
    quota("owner/owner", {"gpu": 2}),
    quota("lent/lent", {"gpu": 0}),
    limited_pod("lent/p-1", 1, nodeName="n-1"),
    limited_pod("lent/p-2", 1, nodeName="n-1"),
    limited_pod("owner/o-1", 1),
    limited_pod("owner/o-2", 2),
]


def played(source: Source) -> Any:
    simulation = source.simulation()
    simulation.run(None)
    return outcome(simulation)


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz", "cluster.snapshot"])
def test_a_snapshot_decides_as_the_objects_do(tmp_path: Path, name: str) -> None:
    file = taken(tmp_path, CLUSTER, name)
    compressed = Path(file).read_bytes().startswith(b"\x1f\x8b")
    assert compressed is not name.endswith(".json")
    expected = played(read_files((dump(tmp_path, CLUSTER),)))
    found = read_files((file,))
    assert (found.taken, found.accepted) == (NOW, True)
    assert played(found) == expected
    assert [each["for"] for each in expected["evictions"]] == ["owner/o-1"]


def test_simulate_reads_a_snapshot_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", taken(tmp_path, CLUSTER), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == played(read_files((dump(tmp_path, CLUSTER),)))


def test_secrets_environment_and_names_of_images_stay_outside(tmp_path: Path) -> None:
    env = [{"name": "TOKEN", "value": SECRET}]
    told = container(env=env, command=["run", SECRET], image=f"{SECRET}.example/train:1")
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": env}),
        "vault.example/token": SECRET,
        "aliquot.dev/expected-duration": "10m",
    }
    volumes = [{"name": "s", "secret": {"secretName": SECRET}}]
    secretive = pod("a/p", containers=[told], volumes=volumes, annotations=annotations)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": secretive["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    owner = resource("apps/v1", "ReplicaSet", "a/rs", spec=spec, annotations=annotations)
    node = ready_node("n")
    names = [f"{SECRET}.example/train:1", f"{SECRET}.example/other:1"]
    node["status"]["images"] = [{"names": [each], "sizeBytes": 10**9} for each in names]
    bad = {**pod("a/bad", containers=SECRET), "metadata": {"name": "bad", "namespace": "a"}}
    content = Path(taken(tmp_path, [node, secretive, owner, bad])).read_bytes()
    text = gzip.decompress(content).decode()
    assert SECRET not in text
    assert '"aliquot.dev/expected-duration":"10m"' in text
    found = {each["kind"]: each for each in json.loads(text)["items"][:3]}
    asked = found["Pod"]["spec"]["containers"][0]["image"]
    assert found["Node"]["status"]["images"] == [{"names": [asked], "sizeBytes": 10**9}]


def test_what_the_control_plane_would_not_see_does_not_count(tmp_path: Path) -> None:
    other = limited_pod("owner/other", 1, schedulerName="default-scheduler")
    lame = resource("v1", "Node", "n-2", status={"allocatable": {"cpu": "a lot"}})
    source = read_files((taken(tmp_path, [*CLUSTER, other, lame]),))
    inputs = accepted_inputs(source.documents, source.settings, None)
    (finding,) = inputs.findings
    assert "Node n-2: status.allocatable[cpu]: does not count: 'a lot' is not" in str(finding)
    names = {each.name for each in inputs.manifests()}
    assert "o-1" in names
    assert not names & {"other", "n-2"}


def test_an_invalid_pod_that_runs_uses_its_node_all_the_same(tmp_path: Path) -> None:
    ports = [container(ports=[{"containerPort": 1, "hostPort": 99_999}])]
    bad = pod("a/bad", nodeName="n-1", containers=ports)
    source = read_files((taken(tmp_path, [ready_node("n-1", pods=1), bad, pod("a/next")]),))
    result = played(source)
    assert [each["pod"] for each in result["pods"] if each["phase"] == "Running"] == ["a/bad"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"snapshot":{"version":99,"taken":"x","source":""},"items":[]}', "this Aliquot"),
        (b'{"snapshot":{"version":1}}', "not a snapshot"),
        (b'{"snapshot":{"version":1,"taken":"x","source":""},"items":[]}', "is not a time"),
        (
            b'{"snapshot":{"version":1,"taken":"2024-05-01T12:00:00Z","source":"",'
            b'"configuration":{"a":1}},"items":[]}',
            "unknown field",
        ),
        (gzip.compress(b'{"snapshot":{}}', mtime=0)[:-9], "not gzip"),
    ],
)
def test_a_file_that_is_no_snapshot_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    file = tmp_path / "cluster.json.gz"
    file.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_files((str(file),))


def test_a_snapshot_of_a_dump_was_taken_when_the_dump_was(tmp_path: Path) -> None:
    """By the latest time that its objects show, also where a snapshot leaves that out."""
    node = ready_node("n-1", gpu=1)
    node["metadata"]["managedFields"] = [{"time": "2024-05-01T12:00:00Z"}]
    assert read_files((taken(tmp_path, [node]),)).taken == 1_714_564_800 * 10**9
    assert read_files((taken(tmp_path, CLUSTER),)).taken == NOW  # it shows none


def test_a_snapshot_stands_alone(tmp_path: Path) -> None:
    file = taken(tmp_path, CLUSTER)
    with pytest.raises(InputError, match="has all objects: name no other file"):
        read_files((file, dump(tmp_path, CLUSTER)))


def test_settings_are_those_of_the_snapshot_unless_others_are_named(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    about = "apiVersion: config.aliquot.dev/v1alpha1\nkind: Configuration\n"
    config.write_text(f"{about}eviction: {{minRuntime: 7s}}\n")
    file = tmp_path / "cluster.json"
    snapshot.write(
        Origin((dump(tmp_path, CLUSTER),), config=str(config), policy="fair").read(), file, NOW
    )
    found = Origin((str(file),)).read()
    assert (found.settings.eviction.min_runtime, found.policy) == ("7s", "fair")
    config.write_text(about)
    other = Origin((str(file),), config=str(config), policy="capacity").read()
    assert (other.settings.eviction.min_runtime, other.policy) == ("0s", "capacity")


def test_several_files_follow_one_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [dump(tmp_path, [body], f"{n}.json") for n, body in enumerate(CLUSTER[:3])]
    written = tmp_path / "all.json"
    assert run(["snapshot", "--from", *files, "-o", str(written)]) == 0
    assert "Wrote 3 objects" in capsys.readouterr().out
    assert len(json.loads(written.read_text())["items"]) == 3
    repeated = [word for file in files for word in ("--from", file)]
    assert run(["snapshot", *repeated, "-o", str(written)]) == 0
    assert len(json.loads(written.read_text())["items"]) == 3


def test_files_and_a_cluster_are_not_asked_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = dump(tmp_path, CLUSTER)
    assert run(["snapshot", "--from", file, "--context", "prod", "-o", "x"]) == 2
    assert "--from asks files" in capsys.readouterr().err


def test_a_cluster_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
    )
    assert run(["snapshot", "--kubeconfig", str(file), "-o", str(tmp_path / "x")]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "127.0.0.1:1" in said.err
    assert said.out == ""
