"""What is read of a watched cluster: whose pods count, which objects stand, what matters."""

from typing import Any

import msgspec
import pytest

from aliquot.dialects.configuration import Configuration, Profile
from aliquot.dialects.core.objects import NodeWire, PodWire, TopologySpreadConstraint
from aliquot.dialects.nos.cards import Cards
from aliquot.engine.model.events import (
    Event,
    GangSet,
    GpuQuotaGone,
    GpuQuotaSet,
    NamespaceGone,
    NamespaceSet,
    NodeGone,
    NodeImagesSet,
    NodeSet,
    PodGone,
    PodSet,
    QuotaGone,
    QuotaSet,
)
from aliquot.engine.model.gpu import GpuBound
from aliquot.engine.model.pod_rules import PodRules
from aliquot.errors import InputError
from aliquot.kube.api.resource import CUSTOM, NAMESPACES, NODES, PRIORITY_CLASSES
from aliquot.kube.intake.objects import Objects
from aliquot.kube.intake.pods import Pods
from aliquot.kube.intake.sharing_mode import PodHints, one_policy, sharing_mode
from aliquot.mirror.mirror import Mirror
from tests.build import manifests

GPUS = CUSTOM["gpus.tensor-fusion.ai"]
QUOTAS = CUSTOM["elasticquotas.scheduling.x-k8s.io"]
OLDER = CUSTOM["elasticquotas.scheduling.sigs.k8s.io"]
NOS = CUSTOM["elasticquotas.nos.nebuly.com"]
GPU_QUOTAS = CUSTOM["gpuresourcequotas.tensor-fusion.ai"]
GROUPS = CUSTOM["podgroups.scheduling.volcano.sh"]
Body = dict[str, Any]


class Watched:
    """A mirror that is fed as by watches, and what the engine heard."""

    def __init__(self, cards: Cards | None = None) -> None:
        self.heard: list[Event] = []
        self.mirror = Mirror(self.heard.append, cards or Cards(), live=True)
        self.objects = Objects(self.mirror)
        self.pods = Pods(self.mirror, {"aliquot"})

    def pod(self, name: str, **said: Any) -> list[Event]:
        return self._after(lambda: self.pods.put(wire(name, **said)))

    def gone(self, name: str) -> list[Event]:
        return self._after(lambda: self.pods.gone(f"uid-{name}"))

    def put(self, resource: Any, body: Any) -> list[Event]:
        def act() -> None:
            self.objects.put(resource, body)
            self.objects.settle()

        return self._after(act)

    def drop(self, resource: Any, namespace: str, name: str) -> list[Event]:
        def act() -> None:
            self.objects.gone(resource, namespace, name)
            self.objects.settle()

        return self._after(act)

    def _after(self, act: Any) -> list[Event]:
        self.heard.clear()
        act()
        return [each for each in self.heard if not isinstance(each, NamespaceSet)]


def wire(
    name: str,
    *,
    node: str = "",
    scheduler: str | None = "aliquot",
    phase: str = "Pending",
    cpu: str = "1",
    **metadata: Any,
) -> PodWire:
    spec: Body = {"schedulerName": scheduler, "nodeName": node, "priority": 7}
    status = {"phase": phase, "startTime": "2026-01-01T00:00:05Z"}
    body = manifests.pod(f"team-a/{name}", {"cpu": cpu}, **spec, status=status)
    born = {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    body["metadata"] |= {**born, **metadata}
    return msgspec.convert(body, PodWire)


def watched_quota(low: int, name: str = "quota", **more: Any) -> Body:
    """A quota as a list holds it: without apiVersion and kind."""
    body = manifests.quota(f"team-a/{name}", {"cpu": low}, {"cpu": 10})
    metadata = {**body["metadata"], "resourceVersion": "1", **more}
    return {"metadata": metadata, "spec": body["spec"]}


def watched_node(name: str, cpu: str = "8") -> NodeWire:
    return msgspec.convert(manifests.node(name, cpu=cpu), NodeWire)


def test_our_pods_wait_and_everybodys_bound_pods_count() -> None:
    watched = Watched()
    (mine,) = watched.pod("mine")
    assert isinstance(mine, PodSet)
    assert (mine.pod.node, mine.pod.priority, mine.pod.started) == (None, 7, 0)
    assert watched.pod("theirs", scheduler="other") == []
    assert watched.pod("default", scheduler=None) == []
    (bound,) = watched.pod("theirs", scheduler="other", node="n")
    assert isinstance(bound, PodSet)
    assert bound.pod.node == "n"
    assert bound.pod.started - bound.pod.created == 5_000_000_000


def test_the_end_of_a_pod_is_read_from_its_deadline_its_annotation_and_its_deletion() -> None:
    watched = Watched()
    expected = {"annotations": {"aliquot.dev/expected-duration": "60s"}}
    (runs,) = watched.pod("runs", node="n", **expected)
    assert isinstance(runs, PodSet)
    assert runs.pod.expected_end == runs.pod.started + 60_000_000_000
    (leaves,) = watched.pod("runs", node="n", deletionTimestamp="2026-01-01T00:00:35Z", **expected)
    assert isinstance(leaves, PodSet)
    assert leaves.pod.expected_end == leaves.pod.gone_by == leaves.pod.created + 35_000_000_000


def test_nothing_is_told_twice() -> None:
    watched = Watched()
    watched.pod("p", node="n")
    assert watched.pod("p", node="n", resourceVersion="2", phase="Running") == []
    assert len(watched.pod("p", node="n", cpu="2")) == 1


def test_a_pod_that_ends_or_goes_is_gone_once() -> None:
    watched = Watched()
    watched.pod("p", node="n")
    assert watched.pod("p", node="n", phase="Succeeded") == [PodGone("uid-p")]
    assert watched.pod("p", node="n", phase="Succeeded") == []
    assert watched.gone("p") == []
    watched.pod("q", node="n")
    assert watched.gone("q") == [PodGone("uid-q")]
    assert watched.mirror.records == {}
    assert watched.pods.shown == {}


def test_one_that_had_ended_before_is_remembered_by_its_gang_only() -> None:
    watched = Watched()
    group = {"metadata": {"name": "g", "namespace": "team-a"}, "spec": {"minMember": 2}}
    watched.put(GROUPS, group)
    named = {"scheduling.k8s.io/group-name": "g"}
    (told,) = watched.pod("done", node="n", phase="Succeeded", annotations=named)
    assert isinstance(told, GangSet)
    assert told.gang.done == (("", 1),)
    assert watched.pod("loner", node="n", phase="Failed") == []
    assert set(watched.mirror.records) == {"uid-done"}
    (told,) = watched.gone("done")
    assert isinstance(told, GangSet)
    assert told.gang.done == ()


def test_pods_have_a_say_in_the_terms_whether_or_not_they_make_sense() -> None:
    """Whether one makes sense can depend on the sharing mode: so it must not change it by that."""
    watched = Watched(Cards(shared=True))
    asks = {"tensor-fusion.ai/vram-request": "lots"}
    assert watched.pod("p", annotations=asks) == []
    assert list(watched.pods.invalid) == ["uid-p"]
    assert watched.pods.sharing == {"uid-p": False}
    watched.pod("p")
    assert not watched.pods.sharing
    watched.pod("p", annotations=asks)
    watched.gone("p")
    assert not watched.pods.sharing


def test_a_pod_that_makes_no_sense_waits_or_holds_what_it_holds() -> None:
    watched = Watched()
    torn = {
        "scheduling.k8s.io/group-name": "one",
        "scheduling.volcano.sh/group-name": "another",
    }
    assert watched.pod("p", annotations=torn) == []
    assert list(watched.pods.invalid) == ["uid-p"]
    (told,) = watched.pod("p", annotations=torn, node="n")
    assert isinstance(told, PodSet)
    assert told.pod.node == "n"
    assert dict(told.pod.shape.requests)["cpu"] == 1000


def test_pods_of_one_template_share_a_shape() -> None:
    watched = Watched()
    watched.pod("p")
    watched.pod("q", node="n")
    watched.pod("r", cpu="3")
    shapes = [record.pod.shape for record in watched.mirror.records.values()]
    assert shapes[0] is shapes[1]
    assert shapes[2] != shapes[0]


def test_our_own_word_coming_back_means_nothing() -> None:
    watched = Watched()
    (told,) = watched.put(QUOTAS, watched_quota(4))
    assert isinstance(told, QuotaSet)
    written = watched_quota(4, annotations={"quota.scheduling.koordinator.sh/runtime": "{}"})
    written["status"] = {"used": {"cpu": "3"}}
    written["metadata"]["resourceVersion"] = "9"
    assert watched.put(QUOTAS, written) == []
    kept = watched.mirror.store.objects["ElasticQuota", "team-a", "quota"]
    assert kept.body["status"] == written["status"], "to be compared with what we would write"
    assert len(watched.put(QUOTAS, watched_quota(5))) == 1


def test_an_object_that_makes_no_sense_leaves_the_last_good_one() -> None:
    watched = Watched()
    watched.put(QUOTAS, watched_quota(4))
    bad = watched_quota(4)
    bad["spec"]["min"] = {"cpu": "four"}
    assert watched.put(QUOTAS, bad) == []
    assert "cpu" in next(iter(watched.objects.problems.values()))
    kept = watched.mirror.store.objects["ElasticQuota", "team-a", "quota"]
    assert kept.body["spec"] == bad["spec"], "as the cluster shows it, for statuses to be compared"
    assert len(watched.put(QUOTAS, watched_quota(6))) == 1
    assert watched.objects.problems == {}
    assert len(watched.drop(QUOTAS, "team-a", "quota")) == 1


def test_a_gpu_quota_that_never_made_sense_lets_nobody_have_any() -> None:
    watched = Watched()
    bad = {"metadata": {"name": "q", "namespace": "team-a"}}
    nonsense = {**bad, "spec": {"total": {"requests": {"tflops": "many"}}}}
    (told,) = watched.put(GPU_QUOTAS, nonsense)
    assert isinstance(told, GpuQuotaSet)
    assert (told.quota.workers, told.quota.requests) == (0, GpuBound(0, 0))
    assert "tflops" in told.quota.problem
    assert watched.put(GPU_QUOTAS, {**nonsense, "status": {"used": {}}}) == []
    (told,) = watched.put(GPU_QUOTAS, {**bad, "spec": {"total": {"requests": {"tflops": "9"}}}})
    assert isinstance(told, GpuQuotaSet)
    assert (told.quota.requests.tflops, told.quota.problem) == (9000, "")
    (told,) = watched.put(GPU_QUOTAS, nonsense)
    assert isinstance(told, GpuQuotaSet)
    assert told.quota.requests.tflops == 9000, "the last good one"
    assert told.quota.problem
    assert watched.drop(GPU_QUOTAS, "team-a", "q") == [GpuQuotaGone("team-a")]
    assert watched.mirror.gpu_quotas.problems == {}


def test_of_two_of_one_name_one_stands_and_the_other_follows() -> None:
    watched = Watched()
    assert len(watched.put(NOS, watched_quota(1))) == 1
    (told,) = watched.put(QUOTAS, watched_quota(2))
    assert isinstance(told, QuotaSet)
    assert told.quota.min == (("cpu", 2000),)
    assert watched.put(NOS, watched_quota(3)) == []
    (told,) = watched.drop(QUOTAS, "team-a", "quota")
    assert isinstance(told, QuotaSet)
    assert told.quota.min == (("cpu", 3000),)
    assert isinstance(watched.drop(NOS, "team-a", "quota")[0], QuotaGone)
    assert watched.drop(NOS, "team-a", "quota") == []


def test_a_group_waits_for_its_priority_class() -> None:
    watched = Watched()
    spec = {"minMember": 1, "priorityClassName": "high"}
    group = {"metadata": {"name": "g", "namespace": "team-a"}, "spec": spec}
    assert watched.put(GROUPS, group) == []
    told = watched.put(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 9})
    assert [each.gang.priority for each in told if isinstance(each, GangSet)] == [9]


def test_nodes_come_change_and_go() -> None:
    watched = Watched()
    (told,) = watched.put(NODES, watched_node("n"))
    assert isinstance(told, NodeSet)
    assert watched.put(NODES, watched_node("n")) == []
    assert len(watched.put(NODES, watched_node("n", "16"))) == 1
    assert watched.drop(NODES, "", "n") == [NodeGone("n")]


def test_a_replay_tells_the_same_to_somebody_new() -> None:
    watched = Watched()
    watched.put(QUOTAS, watched_quota(4))
    watched.put(NODES, watched_node("n"))
    watched.pod("p", node="n")
    watched.pod("q")
    watched.pod("over", node="n", phase="Succeeded")
    again: list[Event] = []
    watched.mirror.replay(again.append)
    kinds = [type(each) for each in again]
    assert kinds == [NamespaceSet, QuotaSet, NodeSet, PodSet, PodSet]


def manifests_of(*found: tuple[Any, Body]) -> list[Any]:
    watched = Watched()
    for resource, body in found:
        watched.put(resource, body)
    return list(watched.mirror.store.objects.values())


def test_the_terms_follow_objects_and_pods() -> None:
    bare = Configuration()
    assert (
        sharing_mode(bare, None, manifests_of((QUOTAS, watched_quota(1))), PodHints()).policy
        == "capacity"
    )
    assert (
        sharing_mode(bare, None, manifests_of((NOS, watched_quota(1))), PodHints()).policy == "fair"
    )
    assert sharing_mode(bare, "fair", [], PodHints()).policy == "fair"
    queue = (CUSTOM["queues.scheduling.volcano.sh"], {"metadata": {"name": "q"}, "spec": {}})
    assert sharing_mode(bare, None, manifests_of(queue), PodHints()).policy == "queues"
    with pytest.raises(InputError, match="queues and quotas"):
        sharing_mode(bare, None, manifests_of(queue, (QUOTAS, watched_quota(1))), PodHints())
    assert (
        sharing_mode(
            bare, "queues", manifests_of(queue, (QUOTAS, watched_quota(1))), PodHints()
        ).policy
        == "queues"
    )


def test_gpus_are_told_apart_as_soon_as_somebody_shares_them() -> None:
    assert not sharing_mode(Configuration(), None, [], PodHints()).cards.shared
    shared = sharing_mode(Configuration(), None, [], PodHints(sharing=True)).cards
    assert (shared.shared, shared.compute) == (True, False)
    assert sharing_mode(
        Configuration(), None, [], PodHints(sharing=True, compute=True)
    ).cards.compute


def test_profiles_that_do_not_agree_are_refused() -> None:
    one_policy(Configuration())
    torn = [Profile("aliquot", "auto"), Profile("volcano", "queues")]
    with pytest.raises(InputError, match="volcano: queues"):
        one_policy(Configuration(profiles=torn))


def test_what_is_known_of_gangs_goes_with_their_pods() -> None:
    watched = Watched()
    for number in range(3):
        about = {"scheduling.k8s.io/group-name": f"gang-{number}"}
        watched.pod(f"p-{number}", node="n", annotations=about)
        watched.pod(f"p-{number}", node="n", annotations=about, phase="Succeeded")
    endings, dependents = watched.mirror.gangs._endings, watched.mirror._dependents
    assert endings.done(("PodGroup", "team-a", "gang-0")) == (("", 1),)
    for number in range(3):
        watched.gone(f"p-{number}")
    assert (endings._count, dependents._by_object) == ({}, {})


def gpu(free: str, **status: Any) -> Body:
    """A GPU of 40 GiB on a node, with so much left."""
    amounts = {"capacity": {"vram": "40Gi"}, "available": {"vram": free}}
    where = {"nodeSelector": {"kubernetes.io/hostname": "n"}, "phase": "Running"}
    return {"metadata": {"name": "g"}, "status": {**amounts, **where, **status}}


def test_what_a_gpu_has_left_is_our_own_word_and_nobody_elses() -> None:
    """Whatever ended while nobody wrote it down: every user of a GPU is a pod."""
    watched = Watched(Cards(shared=True))
    watched.put(NODES, watched_node("n"))
    watched.put(GPUS, gpu("20Gi"))
    assert watched.mirror.devices.sent["g"].used_elsewhere.vram == 0
    asks = {"tensor-fusion.ai/vram-request": "20Gi", "tensor-fusion.ai/gpu-ids": "g"}
    watched.pod("p", node="n", annotations=asks)
    watched.pod("p", node="n", phase="Succeeded", annotations=asks)
    watched.put(GPUS, gpu("20Gi", runningApps=[]))
    assert watched.mirror.devices.sent["g"].used_elsewhere.vram == 0


def test_images_of_nodes_are_told_apart_from_nodes() -> None:
    def reporting(*names: str) -> NodeWire:
        body = manifests.node("n", cpu="8")
        body["status"]["images"] = [{"names": [each], "sizeBytes": 5} for each in names]
        return msgspec.convert(body, NodeWire)

    def images(told: list[Event]) -> list[Event]:
        return [each for each in told if isinstance(each, NodeImagesSet)]

    watched = Watched()
    assert images(watched.put(NODES, watched_node("n"))) == []
    watched.objects.dirty = False
    assert images(watched.put(NODES, reporting("a:1"))) == [NodeImagesSet("n", (("a:1", 5),))]
    assert watched.put(NODES, reporting("a:1")) == []
    both = NodeImagesSet("n", (("a:1", 5), ("b:1", 5)))
    assert images(watched.put(NODES, reporting("b:1", "a:1"))) == [both]
    assert not watched.objects.dirty
    replayed: list[Event] = []
    watched.mirror.replay(replayed.append)
    assert images(replayed) == [both]
    assert watched.drop(NODES, "", "n") == [NodeGone("n")]
    assert images(watched.put(NODES, reporting("a:1"))) == [NodeImagesSet("n", (("a:1", 5),))]
    assert images(watched.put(NODES, watched_node("n"))) == [NodeImagesSet("n", ())]


def test_a_watched_pod_names_its_images() -> None:
    watched = Watched()
    found = wire("p")
    assert found.spec is not None
    assert found.spec.containers is not None
    found.spec.containers[0].image = "a"
    watched.pods.put(found)
    assert watched.mirror.records["uid-p"].pod.images == ("a:latest",)


def test_a_live_node_has_the_labels_that_its_kubelet_gave_it() -> None:
    """One without a hostname is in no domain of hostnames, as kube-scheduler sees it."""
    watched = Watched()
    (bare,) = watched.put(NODES, manifests.node("bare", cpu=1))
    (labelled,) = watched.put(NODES, manifests.ready_node("labelled"))
    assert isinstance(bare, NodeSet)
    assert isinstance(labelled, NodeSet)
    assert bare.node.labels == ()
    assert labelled.node.labels == (("kubernetes.io/hostname", "labelled"),)


def test_pods_of_a_template_share_their_rules_but_for_labels_that_these_read() -> None:
    watched = Watched()
    keys = {"matchLabelKeys": ["v"], "labelSelector": {"matchLabels": {"app": "x"}}}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **keys}

    def told(name: str, **labels: str) -> PodRules:
        read = wire(name, labels=labels)
        assert read.spec is not None
        written = [msgspec.convert(constraint, TopologySpreadConstraint)]
        read.spec.topology_spread_constraints = written
        watched.pods.put(read)
        (found,) = (each for each in watched.heard if isinstance(each, PodSet))
        watched.heard.clear()
        return found.pod.rules

    first = told("p", app="x", v="1", index="0")
    assert told("q", app="x", v="1", index="1") is first
    other = told("r", app="x", v="2")
    assert other != first
    assert other.spread[0].counts_itself
    assert not told("s", v="1").spread[0].counts_itself
    assert told("plain2", app="x", v="1") is first


def test_namespaces_are_told_with_their_labels_and_before_their_pods() -> None:
    watched = Watched()
    watched.pods.put(wire("p"))
    name = ("kubernetes.io/metadata.name", "team-a")
    assert watched.heard[0] == NamespaceSet("team-a", (name,))
    watched.heard.clear()
    watched.put(NAMESPACES, {"metadata": {"name": "team-a", "labels": {"env": "prod"}}})
    assert NamespaceSet("team-a", (("env", "prod"), name)) in watched.heard
    assert watched.drop(NAMESPACES, "", "team-a") == [NamespaceGone("team-a")]
