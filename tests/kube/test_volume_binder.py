"""What is written before a pod is bound, in which order, and when its binding is given up."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest

from aliquot.dialects.core.storage.volumes import BIND_COMPLETED, SELECTED_NODE
from aliquot.engine import Bind, VolumeBinding
from aliquot.errors import ApiError, UnreachableError
from aliquot.json import Body
from aliquot.kube.api.client import Client
from aliquot.kube.api.resource import CLAIMS, VOLUMES
from aliquot.kube.exchange.shown_volumes import ShownVolumes
from aliquot.kube.execution.volume_binder import VolumeBinder
from aliquot.kube.execution.writer import Write, Writer
from tests.build.values import pod
from tests.kube.workshop import Answers, always

DATA, LOGS, MADE = "a/data", "a/logs", "a/made"
THREE = (VolumeBinding(MADE), VolumeBinding(DATA, "pv-data"), VolumeBinding(LOGS, "pv-logs"))
ONE = (VolumeBinding(DATA, "pv-data"),)
NEW = (VolumeBinding(MADE),)


class Objects(Answers):
    """Claims and volumes with versions, as an API server keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.unanswered = 0
        """So many patches are carried out, and nobody is told."""

    async def patch(self, path: str, body: Body, *_: Any, **__: Any) -> Body:
        self._refuse(path)
        about = body["metadata"]
        there = self.objects.get(path)
        if there is None:
            raise ApiError(404, "NotFound", f"{path} not found")
        if any(about[key] != there["metadata"][key] for key in ("uid", "resourceVersion")):
            raise ApiError(409, "Conflict", "the object has been modified")
        self.written.append(("PATCH", path, body))
        self.edit(path, annotations=about.get("annotations"), **body.get("spec", {}))
        if self.unanswered:
            self.unanswered -= 1
            raise UnreachableError("no answer", sent=True)
        return self.objects[path]

    def edit(self, path: str, annotations: Any = None, **spec: Any) -> None:
        """Somebody edits an object; None drops a field or an annotation."""
        there = self.objects[path]
        metadata = {**there["metadata"]}
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        metadata["annotations"] = _merged(metadata.get("annotations") or {}, annotations or {})
        edited = {"metadata": metadata, "spec": _merged(there["spec"], spec)}
        self.objects = {**self.objects, path: edited}


def _merged(before: Body, change: Body) -> Body:
    return {key: value for key, value in {**before, **change}.items() if value is not None}


def at(name: str) -> str:
    """The path of a claim (`namespace/name`), or of a volume."""
    namespace, _, bare = name.rpartition("/")
    return CLAIMS.path(namespace, bare) if namespace else VOLUMES.path(None, bare)


class Bench:
    """A volume binder whose writes run when the test says so, at the times that it says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, timeout: float = 600.0) -> None:
        self.objects, self.shown, self.told = Objects(), ShownVolumes(), list[str]()
        self.now, self.there, self.timeout = 0.0, True, timeout
        monkeypatch.setattr("aliquot.kube.execution.volume_binder.time.monotonic", lambda: self.now)
        self.shown.nodes = {"n1": {"zone": "z1"}, "n2": {"zone": "z2"}}
        self.shown_paths = set[str]()
        for claim in (DATA, LOGS, MADE):
            self.make(claim)
        for volume in ("pv-data", "pv-logs"):
            self.make(volume)
        self.show()
        self.writes: list[Write] = []
        self.binder = self.begin()

    def begin(self) -> VolumeBinder:
        """A binder of a new engine, with nothing under way."""
        self.writes.clear()
        writer = type(
            "Writes",
            (),
            {"add": lambda _, write: self.writes.append(write), "withdraw": lambda *_: None},
        )()
        self.binder = VolumeBinder(
            *(cast("Client", self.objects), cast("Writer", writer), self.shown),
            lambda _: self.there,
            lambda decision: self.told.append(f"ready on {decision.node}"),
            lambda _, why: self.told.append(f"failed: {why}"),
            *(lambda _, words: self.told.append(f"waits: {words}"), self.timeout),
        )
        return self.binder

    def make(self, name: str, **spec: Any) -> None:
        """A claim or a volume is there."""
        namespace, _, bare = name.rpartition("/")
        metadata = {"name": bare, "uid": f"uid-{bare}", "resourceVersion": "7"}
        if namespace:
            metadata["namespace"] = namespace
        self.objects.objects[at(name)] = {"metadata": metadata, "spec": spec}

    def show(self) -> None:
        """The watch shows how everything is now."""
        for path in self.shown_paths - self.objects.objects.keys():
            *_, namespace, _, name = ("", *path.split("/"))
            claim = "/persistentvolumeclaims/" in path
            self.shown.gone(CLAIMS if claim else VOLUMES, namespace if claim else "", name)
        self.shown_paths = {*self.objects.objects}
        for path, body in self.objects.objects.items():
            self.shown.put(CLAIMS if "/persistentvolumeclaims/" in path else VOLUMES, body)

    def bind(self, volumes: tuple[VolumeBinding, ...], node: str = "n1") -> None:
        """The engine decides; nothing is sent yet."""
        self.binder.bind(Bind(pod("p", 1, "a"), node, volumes=volumes))

    def send(self, most: int = 100) -> int:
        """Send what is to be written; what is refused for a while is sent again."""
        sent = 0
        while self.writes and sent < most:
            write, sent = self.writes.pop(0), sent + 1
            try:
                asyncio.run(cast("Any", write.run()))
            except (ApiError, UnreachableError):
                self.writes.append(write)
        return sent

    def complete(self, name: str, volume: str) -> None:
        """The PersistentVolume controller completes a binding."""
        namespace, _, bare = name.partition("/")
        claim = {"namespace": namespace, "name": bare, "uid": f"uid-{bare}"}
        if at(volume) not in self.objects.objects:
            self.make(volume)
        self.objects.edit(at(volume), claimRef=claim)
        self.objects.edit(at(name), {BIND_COMPLETED: "yes"}, volumeName=volume)

    def look(self, at: float) -> list[str]:
        """The watch shows everything, the binder looks; what it has told since the last time."""
        self.now = at
        self.show()
        self.binder.check()
        told, self.told = self.told, []
        return told

    @property
    def paths(self) -> list[str]:
        return [path.rpartition("/")[2] for _, path, _ in self.objects.written]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_volumes_get_their_claims_then_claims_their_node_and_the_pod_comes_last(
    bench: Bench,
) -> None:
    bench.bind(THREE)
    bench.send()
    assert bench.paths == ["pv-data", "pv-logs", "made"]
    (_, _, first), _, (_, _, last) = bench.objects.written
    assert first == {
        "metadata": {
            "uid": "uid-pv-data",
            "resourceVersion": "7",
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        },
        "spec": {
            "claimRef": {
                **{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "a"},
                **{"name": "data", "uid": "uid-data", "resourceVersion": "7"},
            }
        },
    }
    assert last == {
        "metadata": {
            "uid": "uid-made",
            "resourceVersion": "7",
            "annotations": {"volume.kubernetes.io/selected-node": "n1"},
        }
    }
    assert bench.look(0.5) == []
    bench.complete(DATA, "pv-data")
    bench.complete(LOGS, "pv-logs")
    assert bench.look(0.6) == []
    bench.complete(MADE, "pv-made")
    assert bench.look(0.7) == ["ready on n1"]
    assert bench.look(5) == []


def test_a_pod_says_what_it_waits_for_after_a_second(bench: Bench) -> None:
    bench.bind(THREE)
    bench.send()
    assert bench.look(0.9) == []
    assert bench.look(2) == [
        "waits: starts on n1 when its volumes are bound: claim a/made waits for a volume to be "
        "provisioned near n1 (3 of 3 claims are not bound)"
    ]
    assert bench.look(3) == [], "the same is not said twice"
    bench.complete(MADE, "pv-made")
    assert bench.look(4) == [
        "waits: starts on n1 when its volumes are bound: claim a/data waits to be bound to volume "
        "pv-data (2 of 3 claims are not bound)"
    ]


def test_nothing_is_written_for_what_is_bound_already(bench: Bench) -> None:
    bench.complete(DATA, "pv-data")
    bench.show()
    bench.bind(ONE)
    assert (bench.paths, bench.told) == ([], ["ready on n1"])


def test_a_volume_that_a_person_keeps_for_the_claim_stays_theirs(bench: Bench) -> None:
    bench.objects.edit(at("pv-data"), claimRef={"namespace": "a", "name": "data"})
    bench.show()
    bench.bind(ONE)
    bench.send()
    (_, _, body) = bench.objects.written[0]
    assert "annotations" not in body["metadata"]
    assert body["spec"]["claimRef"]["uid"] == "uid-data"


def taken(bench: Bench) -> None:
    other = {"namespace": "b", "name": "x", "uid": "other"}
    bench.objects.edit(at("pv-data"), claimRef=other)


def relabelled(bench: Bench) -> None:
    bench.objects.edit(at("pv-data"), {"note": "edited"})


def removed(bench: Bench) -> None:
    del bench.objects.objects[at("pv-data")]


@pytest.mark.parametrize("happens", [taken, relabelled, removed])
def test_a_volume_is_written_only_as_the_engine_knew_it(
    bench: Bench, happens: Callable[[Bench], None]
) -> None:
    bench.bind(ONE)
    happens(bench)
    bench.send()
    assert bench.paths == []
    (told,) = bench.told
    assert told.startswith("failed: PersistentVolume pv-data was not written: ")


def test_a_volume_that_is_known_to_be_taken_is_not_written_at_all(bench: Bench) -> None:
    taken(bench)
    bench.show()
    bench.bind(ONE)
    assert bench.told == ["failed: volume pv-data is taken by claim b/x"]
    assert bench.writes == []


def test_a_write_that_was_not_answered_is_not_made_twice(bench: Bench) -> None:
    bench.objects.unanswered = 1
    bench.bind(THREE)
    assert bench.send() == 4, "the first one is sent again, and meets itself"
    assert bench.paths == ["pv-data", "pv-logs", "made"]
    assert bench.told == []


@pytest.mark.parametrize("code", [403, 422])
def test_a_write_that_is_refused_is_given_up(bench: Bench, code: int) -> None:
    bench.objects.refuse["pv-data"] = always(code)
    bench.bind(THREE)
    assert bench.send() == 1
    assert bench.told == ["failed: PersistentVolume pv-data was not written: not now"]


def test_a_server_in_trouble_is_asked_again(bench: Bench) -> None:
    bench.objects.refuse["pv-data"] = always(503)
    bench.bind(ONE)
    bench.send(3)
    assert (bench.told, len(bench.writes)) == ([], 1)
    bench.objects.refuse.clear()
    bench.send()
    assert bench.paths == ["pv-data"]


def test_the_watch_may_be_behind_what_was_written(bench: Bench) -> None:
    bench.bind(THREE)
    bench.send()
    bench.now = 2.0
    bench.binder.check()
    assert [each[:5] for each in bench.told] == ["waits"]


def no_claim(bench: Bench) -> str:
    del bench.objects.objects[at(MADE)]
    return "claim a/made is gone"


def another_claim(bench: Bench) -> str:
    bench.objects.objects[at(MADE)]["metadata"]["uid"] = "another"
    return "claim a/made was deleted and made anew"


def given_up_by_the_provisioner(bench: Bench) -> str:
    bench.objects.edit(at(MADE), {SELECTED_NODE: None})
    return "no volume for claim a/made near n1: it is given up"


def moved_by_somebody(bench: Bench) -> str:
    bench.objects.edit(at(MADE), {SELECTED_NODE: "n2"})
    return "no volume for claim a/made near n1: it is near n2"


def provisioned_elsewhere(bench: Bench) -> str:
    affinity = [{"key": "zone", "operator": "In", "values": ["z2"]}]
    terms = {"nodeSelectorTerms": [{"matchExpressions": affinity}]}
    bench.make("pv-made", nodeAffinity={"required": terms})
    bench.complete(MADE, "pv-made")
    return "volume pv-made cannot be reached from node n1"


def freed_by_the_controller(bench: Bench) -> str:
    bench.objects.edit(at("pv-logs"), claimRef=None)
    return "volume pv-logs belongs to no claim now"


def given_to_another(bench: Bench) -> str:
    bench.objects.edit(at("pv-logs"), claimRef={"namespace": "b", "name": "x", "uid": "other"})
    return "volume pv-logs belongs to claim b/x now"


def no_volume(bench: Bench) -> str:
    del bench.objects.objects[at("pv-logs")]
    return "volume pv-logs is gone"


def no_node(bench: Bench) -> str:
    del bench.shown.nodes["n1"]
    return "node n1 is gone"


def no_pod(bench: Bench) -> str:
    bench.there = False
    return "the pod is gone"


@pytest.mark.parametrize(
    "happens",
    [
        *(no_claim, another_claim, given_up_by_the_provisioner, moved_by_somebody, no_pod),
        *(provisioned_elsewhere, freed_by_the_controller, given_to_another, no_volume, no_node),
    ],
)
def test_what_can_never_be_bound_is_given_up_within_a_second(
    bench: Bench, happens: Callable[[Bench], str]
) -> None:
    bench.bind(THREE)
    bench.send()
    assert bench.look(0.5) == []
    problem = happens(bench)
    assert bench.look(1.5) == [f"failed: {problem}"]
    assert bench.look(3) == []
    assert bench.paths == ["pv-data", "pv-logs", "made"], "what was written stays"


def test_a_pod_does_not_wait_for_ever(bench: Bench) -> None:
    bench.bind(NEW)
    bench.send()
    assert bench.look(2) != []
    assert bench.look(599) == []
    assert bench.look(600) == [
        "failed: claim a/made waits for a volume to be provisioned near n1, for 600 s by now"
    ]


def test_with_a_timeout_of_zero_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, timeout=0)
    bench.bind(ONE)
    bench.send()
    assert [each[:6] for each in bench.told] == ["failed"]
    assert bench.paths == ["pv-data"], "it is begun all the same"


def test_the_last_moment_is_early_enough(bench: Bench) -> None:
    bench.bind(NEW)
    bench.send()
    bench.complete(MADE, "pv-made")
    assert bench.look(600) == ["ready on n1"]


@pytest.mark.parametrize("written", range(4))
def test_whoever_comes_next_goes_on_from_there(bench: Bench, written: int) -> None:
    """The process ends after any write; the next one writes the rest, and nothing twice."""
    bench.bind(THREE)
    bench.send(written)
    assert len(bench.paths) == written
    bench.binder.stop()
    bench.send()
    assert len(bench.paths) == written, "nothing more is written for an engine that was dropped"
    bench.show()
    bench.begin()
    bench.bind(THREE)
    bench.send()
    assert sorted(bench.paths) == ["made", "pv-data", "pv-logs"]
    for claim, volume in ((DATA, "pv-data"), (LOGS, "pv-logs"), (MADE, "pv-made")):
        bench.complete(claim, volume)
    assert bench.look(1) == ["ready on n1"]


def test_a_claim_with_a_node_is_not_moved_to_another(bench: Bench) -> None:
    bench.bind(NEW, "n2")
    bench.send()
    bench.show()
    bench.begin()
    bench.bind(NEW, "n1")
    assert bench.told == ["failed: claim a/made is being provisioned for near n2, not near n1"]
    assert bench.paths == ["made"]


def test_a_former_leaders_choice_that_no_watch_has_shown_stands(bench: Bench) -> None:
    bench.bind(NEW, "n2")
    bench.send()
    bench.begin()
    bench.bind(NEW, "n1")
    bench.send()
    assert bench.objects.objects[at(MADE)]["metadata"]["annotations"] == {SELECTED_NODE: "n2"}
    assert [each[:6] for each in bench.told] == ["failed"]


def test_a_pod_that_is_decided_anew_is_bound_once(bench: Bench) -> None:
    bench.bind(ONE)
    bench.bind(ONE)
    with suppress(IndexError):
        bench.send()
    bench.complete(DATA, "pv-data")
    assert bench.look(1) == ["ready on n1"]
    assert bench.paths == ["pv-data"]
